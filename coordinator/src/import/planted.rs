//! Planted answers as results of a dataset in which each question stands once for each of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use bench_datasets::{About, Dataset, DatasetError};
use bench_grading::planting::{self, Kind, Length, Planted, Posed};
use bench_proto::{
    audit::{PLANTED, PLANTED_FORM, PLANTED_LENGTH, PlantedSpec},
    dataset::{Bank, BankContent, BankOutline, GoldRecord, Question},
    ids::Sha256Hash,
    profile::Profile,
};

use super::{fields::Line, file_name, grades::Grade};
use crate::planning::planner::BankParts;

/// Longest answer, in words, that counts as the value alone.
const MOST_BARE_WORDS: usize = 6;

/// A dataset of planted answers.
pub(crate) struct PlantedSet {
    about: About,
    banks: Vec<Bank>,
}

/// Planted answers with the questions that they are planted in.
pub(crate) struct PlantedAnswers {
    /// What the spec of their run says of them.
    pub(crate) spec: PlantedSpec,
    /// The dataset in which each question stands once for each answer.
    pub(crate) dataset: Arc<dyn Dataset>,
    /// Answers by the ids of these questions.
    pub(crate) lines: BTreeMap<String, Line>,
    /// Metric of the grades that they bring.
    pub(crate) metric: Option<String>,
}

impl Dataset for PlantedSet {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.banks.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        self.banks.get(bank).map(Bank::outline).ok_or_else(|| no_bank(bank))
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.banks.get(bank).cloned().ok_or_else(|| no_bank(bank))
    }
}

fn no_bank(bank: usize) -> DatasetError {
    DatasetError::NotFound(format!("there are no planted answers of bank {bank}"))
}

/// Answers made of the questions and gold of a sample, for those that a judge grades.
pub(crate) fn of_sample(about: &About, parts: Vec<BankParts>, kinds: &[Kind]) -> PlantedAnswers {
    let profile = &about.profile;
    let asked = |part: &BankParts| part.questions.iter().cloned().zip(part.gold.iter().cloned()).collect::<Vec<_>>();
    let banks: Vec<(String, Vec<(Question, GoldRecord)>)> = parts
        .iter()
        .map(|part| (part.bank_id.clone(), asked(part).into_iter().filter(|asked| is_judged(profile, asked)).collect()))
        .collect();
    let posed: Vec<Posed<'_>> = (0..)
        .zip(&banks)
        .flat_map(|(bank, (_, asked))| asked.iter().map(move |(question, gold)| Posed { bank, question, gold }))
        .collect();
    let mut planted = planting::plant(&posed, kinds).into_iter();
    let mut making = Making::new(about);
    for (bank_id, asked) in &banks {
        making.bank(bank_id);
        for (question, gold) in asked {
            for Planted { kind, answer, form, length } in planted.next().unwrap_or_default() {
                let line = Line { answer: Some(answer), ..Line::default() };
                making.add(question, gold, kind, (form.name(), length), line);
            }
        }
    }
    making.end(planting::VERSION, None, None)
}

/// Answers of one kind that a file holds, by the ids of their questions.
pub(crate) fn of_lines(
    about: &About,
    parts: Vec<BankParts>,
    mut lines: BTreeMap<String, Line>,
    (kind, metric): (Kind, Option<String>),
    source: String,
) -> PlantedAnswers {
    let mut making = Making::new(about);
    for part in &parts {
        making.bank(&part.bank_id);
        for (question, gold) in part.questions.iter().zip(&part.gold) {
            let Some(line) = lines.remove(&question.question_id) else { continue };
            making.add(question, gold, kind, (planting::form_of(&gold.gold).name(), length_of(&line)), line);
        }
    }
    making.end(0, Some(source), metric)
}

/// Answers of a run that somebody who knows has graded: by the ids of their questions, the line and whether it is right.
pub(crate) fn of_run(
    about: &About,
    parts: Vec<BankParts>,
    mut graded: BTreeMap<String, (Line, bool)>,
    (source, answers_of): (String, String),
    metric: Option<String>,
) -> PlantedAnswers {
    let mut making = Making::new(about);
    for part in &parts {
        making.bank(&part.bank_id);
        for (question, gold) in part.questions.iter().zip(&part.gold) {
            let Some((line, right)) = graded.remove(&question.question_id) else { continue };
            let kind = if right { Kind::OwnRight } else { Kind::OwnWrong };
            making.add(question, gold, kind, (planting::form_of(&gold.gold).name(), length_of(&line)), line);
        }
    }
    let mut planted = making.end(0, Some(source), metric);
    planted.spec.answers_of = Some(answers_of);
    planted
}

/// A file of answers by its name and what stands in it.
pub(crate) fn source_of(file: &Path, bytes: &[u8]) -> String {
    format!("{}, sha256 {}", file_name(file), Sha256Hash::of_bytes(bytes).hex())
}

/// How long an answer is.
fn length_of(line: &Line) -> Length {
    let words = line.answer.as_deref().unwrap_or_default().split_whitespace().count();
    if words <= MOST_BARE_WORDS { Length::Bare } else { Length::Sentence }
}

/// Whether a judge would grade answers to a question.
fn is_judged(profile: &Profile, (question, gold): &(Question, GoldRecord)) -> bool {
    profile.rubric(&question.category, Some(gold)).is_some()
}

struct Making {
    about: About,
    banks: Vec<Bank>,
    lines: BTreeMap<String, Line>,
    kinds: BTreeSet<Kind>,
}

impl Making {
    fn new(about: &About) -> Self {
        Self { about: about.clone(), banks: Vec::new(), lines: BTreeMap::new(), kinds: BTreeSet::new() }
    }

    fn bank(&mut self, bank_id: &str) {
        // what judges see of it stands with the gold
        let content = BankContent { bank_id: bank_id.to_owned(), ..BankContent::default() };
        self.banks.push(Bank { content, ..Bank::default() });
    }

    fn add(&mut self, asked: &Question, gold: &GoldRecord, kind: Kind, (form, length): (&str, Length), line: Line) {
        let Some(bank) = self.banks.last_mut() else { return };
        let question_id = format!("{}#{}", asked.question_id, kind.name());
        let index = u32::try_from(bank.questions.len()).unwrap_or(u32::MAX);
        let facets = [(PLANTED, kind.name()), (PLANTED_FORM, form), (PLANTED_LENGTH, length.name())];
        let facets = facets.map(|(facet, value)| (facet.to_owned(), value.to_owned()));
        let mut gold = GoldRecord { question_id: question_id.clone(), ..gold.clone() };
        gold.facets.extend(facets);
        bank.questions.push(Question { question_id: question_id.clone(), index, ask_after: 0, ..asked.clone() });
        bank.gold.push(gold);
        self.kinds.insert(kind);
        self.lines.insert(question_id, Line { place: "planted".to_owned(), ..line });
    }

    fn end(self, version: u32, source: Option<String>, metric: Option<String>) -> PlantedAnswers {
        let Self { about, mut banks, lines, kinds } = self;
        banks.retain(|bank| !bank.questions.is_empty());
        let of = |wrong: bool| {
            kinds.iter().filter(|kind| kind.is_wrong() == wrong).map(|kind| kind.name().to_owned()).collect()
        };
        let graded = lines.values().any(|line| line.grade != Grade::None);
        PlantedAnswers {
            spec: PlantedSpec { version, source, answers_of: None, wrong: of(true), right: of(false) },
            dataset: Arc::new(PlantedSet { about, banks }),
            lines,
            metric: metric.filter(|_| graded),
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_datasets::OpenOptions;

    use super::*;

    fn sampled() -> (Box<dyn Dataset>, Vec<BankParts>) {
        let dataset = bench_datasets::open("locomo-sim", &OpenOptions::default(), &|_, _| ()).expect("is generated");
        let parts = (0..dataset.bank_count()).map(|bank| {
            let Bank { content, questions, gold } = dataset.bank(bank).expect("is there");
            BankParts { bank_id: content.bank_id, questions, gold }
        });
        let parts = parts.collect();
        (dataset, parts)
    }

    #[test]
    fn each_question_stands_once_for_each_answer_and_keeps_its_gold() {
        let (dataset, parts) = sampled();
        let all: usize = parts.iter().map(|part| part.questions.len()).sum();
        let answers = of_sample(dataset.about(), parts, &Kind::ALL);
        assert_eq!((answers.spec.wrong.len(), answers.spec.right.len(), answers.metric), (2, 2, None));
        let mut seen = 0;
        for bank in 0..answers.dataset.bank_count() {
            let planted = answers.dataset.bank(bank).expect("is there");
            for (at, (question, gold)) in planted.questions.iter().zip(&planted.gold).enumerate() {
                let (published, kind) = question.question_id.rsplit_once('#').expect("names its kind");
                assert_eq!((question.index as usize, gold.facets[PLANTED].as_str()), (at, kind));
                assert!(!published.is_empty() && answers.lines.contains_key(&question.question_id));
                let answer = answers.lines[&question.question_id].answer.as_deref().expect("has one");
                assert_eq!(kind == "verbatim", answer == gold.gold.text().trim(), "{answer}");
                seen += 1;
            }
        }
        assert_eq!(seen, answers.lines.len());
        assert!(seen > all * 3 && seen <= all * 4, "{seen} of {all}");
    }

    #[test]
    fn answers_of_a_file_are_of_one_kind_and_keep_their_grades() {
        let (dataset, parts) = sampled();
        let id = parts[0].questions[0].question_id.clone();
        let line = Line { answer: Some("nothing much".to_owned()), grade: Grade::Score(1.0), ..Line::default() };
        let metric = Some("imported".to_owned());
        let answers = of_lines(
            dataset.about(),
            parts,
            BTreeMap::from([(id.clone(), line)]),
            (Kind::Vague, metric.clone()),
            "x.json".to_owned(),
        );
        assert_eq!((answers.dataset.bank_count(), answers.metric), (1, metric));
        let planted = answers.dataset.bank(0).expect("is there");
        assert_eq!(planted.questions[0].question_id, format!("{id}#vague"));
        assert_eq!(planted.gold[0].facets[PLANTED_LENGTH], "bare");
        assert_eq!((answers.spec.wrong, answers.spec.right), (vec!["vague".to_owned()], vec![]));
    }
}
