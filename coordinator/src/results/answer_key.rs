//! `report --answer-key FILE` and `--label-fixes NAME`: what known mistakes in a dataset's answer key mean for a run. The published key stays the one
//! that is reported; beside it stand the score by the corrected key, the score without those questions, and how high a perfect
//! system gets by the published key.

use std::{collections::BTreeMap, path::Path};

use bench_aggregate::answer_key::{AnswerKey, Keyed};
use bench_datasets::Dataset;
use bench_grading::scorers::{self, ScoreCase};
use bench_proto::{
    dataset::{Gold, GoldRecord},
    profile::{CategoryRules, Profile},
    summary::{AnswerKeyScore, QuestionLine},
};
use bench_settings::bounded;
use bench_store::{RunRow, Store};
use serde::Deserialize;

use crate::{
    app::App,
    exit::CliError,
    import::{
        ImportError,
        fields::Line,
        file_name,
        records::list_or_lines,
        resolve::{KnownBank, KnownQuestion, Resolver},
    },
    out, planning, results,
};

/// A mistake as files of corrections write it.
#[derive(Debug, Deserialize)]
struct Mistake {
    #[serde(alias = "id")]
    question_id: String,
    question: Option<String>,
    #[serde(alias = "corrected_answer", alias = "correction", alias = "corrected")]
    correct_answer: Option<Corrected>,
    #[serde(alias = "type")]
    error_type: Option<String>,
}

/// A corrected answer as such files write it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "the corrected answer has to be a text or a number")]
enum Corrected {
    Text(String),
    Number(serde_json::Number),
}

impl From<Corrected> for Gold {
    fn from(corrected: Corrected) -> Self {
        match corrected {
            Corrected::Text(text) => Self::Text(text),
            Corrected::Number(number) => Self::Number(number),
        }
    }
}

impl Mistake {
    /// A wrong citation is a mistake in the evidence: the expected answer stands.
    fn is_of_evidence(&self) -> bool {
        self.error_type.as_deref().is_some_and(|kind| kind.to_lowercase().contains("citation"))
    }
}

/// The mistakes of a key, by the dataset's ids: the corrected answer, where there is one.
type Mistakes = BTreeMap<String, Option<Gold>>;

/// Where mistakes are known from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// A file of the user's.
    File(&'a Path),
    /// Label fixes by name.
    Fixes(&'a str),
}

/// The headline metric by the published and by the corrected key; another one of answers where recalls head the report.
///
/// # Errors
/// Exit 2 for a run without answers of a system, for a file that cannot be read, or names questions that the dataset does not have.
pub(crate) async fn score(
    app: &App,
    store: &dyn Store,
    run: &RunRow,
    source: Source<'_>,
) -> Result<AnswerKeyScore, CliError> {
    let flag = match source {
        Source::File(_) => "--answer-key",
        Source::Fixes(_) => "--label-fixes",
    };
    let metric = planning::metric_by_answer_key(&run.spec, flag)?;
    let dataset = planning::dataset_of(app, &run.spec).await?;
    let (mistakes, reviewed, source) = match source {
        Source::File(file) => in_file(dataset.as_ref(), file)?,
        Source::Fixes(name) => {
            let fixes = planning::open_label_fixes(app, name, &dataset, false).await?;
            let wrong = fixes.all().map(|(id, fix)| (id.to_owned(), fix.gold.clone())).collect();
            (wrong, fixes.spec().categories.clone(), name.to_owned())
        }
    };
    let scorer = scorers::registry::find(&metric).ok();
    let mut key = AnswerKey::new(&metric, &reviewed, scorer.is_some());
    results::each_question(store, run, |line| {
        let mistake = mistakes.get(&line.question_id);
        key.add(&line.category, keyed(&line, mistake, &metric, scorer, &run.spec.dataset.profile));
        Ok(true)
    })
    .await?;
    Ok(key.finish(source))
}

/// What a file of the user's says: the mistakes, the categories that were looked through, and its name.
fn in_file(dataset: &dyn Dataset, file: &Path) -> Result<(Mistakes, Vec<String>, String), CliError> {
    let in_file = |e: ImportError| CliError::usage(format!("{}: {e}", file.display()));
    let text =
        bounded::text(file, bounded::RESULTS).map_err(|e| in_file(ImportError::file(e.to_string())).because(e))?;
    let mistakes = list_or_lines::<Mistake>(&text).map_err(in_file)?;
    let Resolved { mistakes, reviewed, said } = resolve(&known_banks(dataset)?, &mistakes).map_err(in_file)?;
    // a key that counts from 1 would correct other questions than it means
    if let Some(said) = said {
        out::note(&format!("{}: {said}", file.display()));
    }
    Ok((mistakes, reviewed, file_name(file)))
}

/// A question by both keys.
fn keyed(
    line: &QuestionLine,
    mistake: Option<&Option<Gold>>,
    metric: &str,
    scorer: Option<&'static dyn scorers::Scorer>,
    profile: &Profile,
) -> Keyed {
    let published = line.scores.get(metric).copied().filter(|_| line.outcome.has_score());
    let corrected = || {
        let gold = GoldRecord { gold: mistake?.clone()?, ..GoldRecord::default() };
        by_gold(scorer?, line.answer.as_deref(), &gold, profile.rules(&line.category))
    };
    Keyed { wrong: mistake.is_some(), published, corrected: published.and_then(|_| corrected()) }
}

/// The score of an answer by a corrected gold; none where the answer is not at hand, which says nothing of how good it was.
fn by_gold(
    scorer: &dyn scorers::Scorer,
    answer: Option<&str>,
    gold: &GoldRecord,
    rules: &CategoryRules,
) -> Option<f64> {
    scorer.score(&ScoreCase { answer: Some(answer?), gold: Some(gold), rules, ..ScoreCase::default() })
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

/// What a file names, in the dataset's terms.
#[derive(Debug)]
struct Resolved {
    /// The mistakes by the dataset's ids.
    mistakes: Mistakes,
    /// The categories that were looked through: those that the file names questions of.
    reviewed: Vec<String>,
    /// How ids were read that are not the dataset's; nothing where all are.
    said: Option<String>,
}

/// Which questions of the dataset a file's mistakes are of.
fn resolve(banks: &[KnownBank], mistakes: &[Mistake]) -> Result<Resolved, ImportError> {
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
            found.insert(id, mistake.correct_answer.clone().map(Gold::from));
        }
    }
    reviewed.sort_unstable();
    Ok(Resolved { mistakes: found, reviewed, said: resolver.say() })
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
        let Resolved { mistakes, reviewed, said } =
            resolve(&banks(), &list_or_lines::<Mistake>(text).expect("is read")).expect("are known");
        assert!(said.is_some_and(|said| said.ends_with("with which their texts agree: c_0_qa1 = c-1:1")));
        assert_eq!(mistakes, Mistakes::from([("c-1:0".to_owned(), Some(Gold::Text("Ann".to_owned())))]));
        assert_eq!(reviewed, ["odd", "plain"]);
        let lines = "{\"id\": \"c-1:1\"}\n\n{\"id\": \"c-9:1\"}\n";
        let unknown =
            resolve(&banks(), &list_or_lines::<Mistake>(lines).expect("is read")).expect_err("is refused").to_string();
        assert!(unknown.starts_with("record 2: "), "{unknown}");
        let broken = list_or_lines::<Mistake>("{\"id\": \"c-1:1\"}\n{\"id\": 3}").expect_err("is refused").to_string();
        assert!(broken.starts_with("line 2: "), "{broken}");
    }

    #[test]
    fn a_corrected_answer_is_a_text_or_a_number() {
        let read = |answer: &str| {
            let text = format!("{{\"id\": \"c-1:0\", \"correct_answer\": {answer}}}");
            let mistakes = list_or_lines::<Mistake>(&text).map_err(|error| error.to_string())?;
            Ok::<_, String>(resolve(&banks(), &mistakes).expect("is known").mistakes["c-1:0"].clone())
        };
        assert_eq!(read("7"), Ok(Some(Gold::Number(7.into()))));
        assert_eq!(read("\"7\""), Ok(Some(Gold::Text("7".to_owned()))));
        assert_eq!(read("null"), Ok(None));
        let refused = read("[7]").expect_err("is refused");
        assert!(refused.contains("a text or a number"), "{refused}");
    }

    #[test]
    fn an_answer_that_is_not_at_hand_is_not_the_empty_one() {
        let exact = scorers::registry::find("exact").expect("is registered");
        let gold = GoldRecord { gold: Gold::Text("Ann".to_owned()), ..GoldRecord::default() };
        let profile = Profile::implied();
        let by_gold = |answer| by_gold(exact, answer, &gold, profile.rules("any"));
        assert_eq!((by_gold(None), by_gold(Some("")), by_gold(Some("Ann"))), (None, Some(0.0), Some(1.0)));
    }
}
