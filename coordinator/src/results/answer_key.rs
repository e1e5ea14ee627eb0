//! `report --answer-key FILE`: what known mistakes in a dataset's answer key mean for a run. The published key stays the one
//! that is reported; beside it stand the score by the corrected key, the score without those questions, and how high a perfect
//! system gets by the published key.

use std::{collections::BTreeMap, path::Path};

use bench_datasets::Dataset;
use bench_grading::scorers::{self, ScoreCase};
use bench_proto::{
    dataset::Gold,
    facts::Outcome,
    summary::{AnswerKeyScore, QuestionLine},
};
use bench_store::{RunRow, Store};
use serde::Deserialize;

use crate::{
    app::App,
    cli::SampleArgs,
    exit::CliError,
    import::{
        ImportError,
        fields::Line,
        resolve::{KnownBank, KnownQuestion, Resolver},
    },
    planning, results,
};

/// A mistake as files of corrections write it.
#[derive(Debug, Deserialize)]
struct Mistake {
    #[serde(alias = "id")]
    question_id: String,
    question: Option<String>,
    #[serde(alias = "corrected_answer", alias = "correction", alias = "corrected")]
    correct_answer: Option<String>,
    #[serde(alias = "type")]
    error_type: Option<String>,
}

impl Mistake {
    /// A wrong citation is a mistake in the evidence: the expected answer stands.
    fn is_of_evidence(&self) -> bool {
        self.error_type.as_deref().is_some_and(|kind| kind.to_lowercase().contains("citation"))
    }
}

/// The mistakes of a key, by the dataset's ids: the corrected answer, where there is one.
type Mistakes = BTreeMap<String, Option<String>>;

/// The headline metric by the published and by the corrected key.
///
/// # Errors
/// Exit 2 for a file that cannot be read, or names questions that the dataset does not have.
pub(crate) async fn score(app: &App, store: &dyn Store, run: &RunRow, file: &Path) -> Result<AnswerKeyScore, CliError> {
    let args = SampleArgs {
        dataset_path: run.spec.dataset.path.clone(),
        allow_modified_dataset: run.spec.dataset.modified,
        ..SampleArgs::default()
    };
    let dataset = planning::open_dataset(app, &run.spec.dataset.name, &args, run.spec.dataset.settings.clone()).await?;
    let in_file = |e: ImportError| CliError::usage(format!("{}: {e}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| in_file(ImportError::file(e.to_string())))?;
    let mistakes = parse(&text).map_err(in_file)?;
    let banks = known_banks(dataset.as_ref())?;
    let (mistakes, reviewed) = resolve(&banks, &mistakes).map_err(in_file)?;
    let metric = run.spec.headline_metric();
    let mut tally = Tally::new(&metric);
    results::each_question(store, run, |line| {
        if reviewed.contains(&line.category) {
            tally.add(&line, mistakes.get(&line.question_id));
        }
        Ok(true)
    })
    .await?;
    let source =
        file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(tally.finish(source, reviewed))
}

/// A JSON list, or one object a line.
fn parse(text: &str) -> Result<Vec<Mistake>, ImportError> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|e| ImportError::file(e.to_string()));
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|e| ImportError::at(&format!("line {number}"), e.to_string()))
        })
        .collect()
}

fn known_banks(dataset: &dyn Dataset) -> Result<Vec<KnownBank>, CliError> {
    let known = |bank| {
        let bank = dataset.bank(bank)?;
        let question =
            |q: bench_proto::dataset::Question| KnownQuestion { id: q.question_id, text: q.text, category: q.category };
        Ok(KnownBank { bank_id: bank.content.bank_id, questions: bank.questions.into_iter().map(question).collect() })
    };
    (0..dataset.bank_count()).map(known).collect()
}

/// The mistakes by the dataset's ids, and the categories that were looked through: those that the file names questions of.
fn resolve(banks: &[KnownBank], mistakes: &[Mistake]) -> Result<(Mistakes, Vec<String>), ImportError> {
    let categories: BTreeMap<&str, &str> = banks
        .iter()
        .flat_map(|bank| &bank.questions)
        .map(|question| (question.id.as_str(), question.category.as_str()))
        .collect();
    let (mut found, mut reviewed) = (Mistakes::new(), Vec::new());
    let mut resolver = Resolver::new(banks);
    for (number, mistake) in (1..).zip(mistakes) {
        let line = Line {
            place: format!("record {number}"),
            id: Some(mistake.question_id.clone()),
            text: mistake.question.clone(),
            ..Line::default()
        };
        let id = resolver.resolve(&line)?;
        if let Some(category) = categories.get(id.as_str()).filter(|category| !reviewed.iter().any(|r| r == **category))
        {
            reviewed.push((*category).to_owned());
        }
        if !mistake.is_of_evidence() {
            found.insert(id, mistake.correct_answer.clone());
        }
    }
    reviewed.sort_unstable();
    Ok((found, reviewed))
}

/// Means over the questions of the categories that were looked through.
struct Tally<'a> {
    metric: &'a str,
    scorer: Option<&'static dyn scorers::Scorer>,
    asked: u64,
    wrong: u64,
    published: Mean,
    corrected: Mean,
    without_wrong: Mean,
}

#[derive(Default)]
struct Mean {
    sum: f64,
    n: u64,
}

impl Mean {
    fn add(&mut self, score: f64) {
        self.sum += score;
        self.n += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }
}

impl<'a> Tally<'a> {
    fn new(metric: &'a str) -> Self {
        let scorer = scorers::registry::find(metric).ok();
        let [published, corrected, without_wrong] = [Mean::default(), Mean::default(), Mean::default()];
        Self { metric, scorer, asked: 0, wrong: 0, published, corrected, without_wrong }
    }

    fn add(&mut self, line: &QuestionLine, mistake: Option<&Option<String>>) {
        self.asked += 1;
        self.wrong += u64::from(mistake.is_some());
        if !matches!(line.outcome, Outcome::Scored | Outcome::Abstained) {
            return;
        }
        let Some(score) = line.scores.get(self.metric).copied() else { return };
        self.published.add(score);
        let Some(corrected) = mistake else {
            self.corrected.add(score);
            self.without_wrong.add(score);
            return;
        };
        // without a better answer nobody knows what the question is worth
        let (Some(scorer), Some(corrected)) = (self.scorer, corrected) else { return };
        let gold = Gold::Text(corrected.clone());
        let prediction = line.answer.as_deref().unwrap_or_default();
        let case = ScoreCase { prediction, gold: Some(&gold), category: &line.category };
        if let Some(score) = scorer.score(&case) {
            self.corrected.add(score);
        }
    }

    fn finish(self, source: String, reviewed: Vec<String>) -> AnswerKeyScore {
        AnswerKeyScore {
            source,
            metric: self.metric.to_owned(),
            categories: reviewed,
            n: self.asked,
            wrong: self.wrong,
            ceiling: (self.asked > 0).then(|| 1.0 - self.wrong as f64 / self.asked as f64),
            published: self.published.value(),
            corrected: self.scorer.and_then(|_| self.corrected.value()),
            without_wrong: self.without_wrong.value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banks() -> Vec<KnownBank> {
        let question = |id: &str, text: &str, category: &str| KnownQuestion {
            id: id.to_owned(),
            text: text.to_owned(),
            category: category.to_owned(),
        };
        let questions = vec![question("c-1:0", "who?", "plain"), question("c-1:1", "when?", "odd")];
        vec![KnownBank { bank_id: "c-1".to_owned(), questions }]
    }

    #[test]
    fn mistakes_of_the_evidence_only_say_what_was_looked_through() {
        let text = r#"[{"question_id": "c-1:0", "correct_answer": "Ann", "error_type": "HALLUCINATION"},
            {"question_id": "c_0_qa1", "question": "when?", "correct_answer": "May", "error_type": "WRONG_CITATION"}]"#;
        let (found, reviewed) = resolve(&banks(), &parse(text).expect("is read")).expect("are known");
        assert_eq!(found, Mistakes::from([("c-1:0".to_owned(), Some("Ann".to_owned()))]));
        assert_eq!(reviewed, ["odd", "plain"]);
        let lines = "{\"id\": \"c-1:1\"}\n\n{\"id\": \"c-9:1\"}\n";
        let unknown = resolve(&banks(), &parse(lines).expect("is read")).expect_err("is refused").to_string();
        assert!(unknown.starts_with("record 2: "), "{unknown}");
        let broken = parse("{\"id\": \"c-1:1\"}\n{\"id\": 3}").expect_err("is refused").to_string();
        assert!(broken.starts_with("line 2: "), "{broken}");
    }
}
