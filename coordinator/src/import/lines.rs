//! From a file to one line for each question of a dataset.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::Path,
};

use bench_datasets::Dataset;
use bench_grading::scorers::registry;
use bench_proto::{dataset::QuestionOutline, scenario::Scenario};

use super::{
    ImportError,
    fields::{self, Ended, Line},
    forms::{self, Known},
    grades::{self, Grade, Reading},
    lookup::Fields,
    ours::{Given, Ours},
    read,
    records::{Record, Search},
    resolve::{KnownBank, KnownQuestion, Resolver},
    retrieved,
};
use crate::exit::CliError;

/// Metric of grades that name none.
const UNNAMED_METRIC: &str = "imported";

/// What a file says about the questions of a dataset.
pub(crate) struct Lines {
    /// Lines by the dataset's id of their question.
    pub(crate) by_question: BTreeMap<String, Line>,
    /// Questions of which it says that they were not run: they have no result with us either.
    pub(crate) not_run: BTreeSet<String>,
    /// Metric of the grades that they bring.
    pub(crate) metric: Option<String>,
    /// How the file was read, for its user.
    pub(crate) notes: Vec<String>,
    /// How its questions were found, where it has ids that are not the dataset's: whoever reads the result has to know.
    pub(crate) matched: Option<String>,
}

impl Lines {
    /// Whether it says anything of a question.
    pub(crate) fn names(&self, question_id: &str) -> bool {
        self.by_question.contains_key(question_id) || self.not_run.contains(question_id)
    }

    /// All questions of which it says anything.
    pub(crate) fn named(&self) -> Vec<String> {
        self.by_question.keys().chain(&self.not_run).cloned().collect()
    }

    /// What the lines are results of: of recalls where none has an answer or the grade of one.
    pub(crate) fn scenario(&self) -> Scenario {
        let mut lines = self.by_question.values();
        let of_recalls = |line: &Line| line.retrieved.is_some() && line.ended != Some(Ended::Failed);
        match !lines.clone().any(Line::is_answered) && lines.any(of_recalls) {
            true => Scenario::RetrieveOnly,
            false => Scenario::Answer,
        }
    }

    /// The most ids that a line has; nothing where none has any.
    pub(crate) fn most_retrieved(&self) -> Option<u32> {
        let retrieved = self.by_question.values().filter_map(|line| line.retrieved.as_ref());
        retrieved.map(|ids| u32::try_from(ids.len()).unwrap_or(u32::MAX)).max()
    }
}

/// Reads a file, or a folder of files, of at most so many bytes.
///
/// # Errors
/// A line that cannot be understood or means no question of the dataset, with its place; a dataset that cannot be read.
pub(crate) fn read(dataset: &dyn Dataset, path: &Path, reading: &Reading, most_bytes: u64) -> Result<Lines, CliError> {
    let in_file = |e: ImportError| CliError::usage(format!("{}: {e}", path.display()));
    let mut banks = known_banks(dataset)?;
    let records = {
        let resolver = Resolver::new(&banks);
        let search = Search { is_question: &|name| resolver.is_question(name), given: &reading.given };
        read::records(path, search, most_bytes).map_err(in_file)?
    };
    check_given(&records, &reading.given).map_err(in_file)?;
    // they have no say in what the others are
    let (not_run, mut records): (Vec<Record>, Vec<Record>) = records.into_iter().partition(fields::was_not_run);
    if records.is_empty() {
        return Err(in_file(ImportError::file("all of its questions are not_run: there is nothing to import")));
    }
    if reading.metric.is_none() && reading.given.path(Ours::Score).is_none() {
        grades::keep_one_grade(&mut records);
    }
    let form = forms::form_of(&records, &reading.given);
    let understood = |records: Vec<Record>| {
        records.iter().map(|record| fields::line(record, form, reading)).collect::<Result<Vec<Line>, ImportError>>()
    };
    let mut lines = understood(records).map_err(in_file)?;
    let mut not_run = understood(not_run).map_err(in_file)?;
    fill_empty(&mut lines);
    check_alike(&lines).map_err(in_file)?;
    let metric = metric_of(&lines, reading.metric.as_deref()).map_err(in_file)?;
    check_name(metric.as_deref(), &lines).map_err(in_file)?;
    let mut notes: Vec<String> = say_form(form, &lines).into_iter().collect();
    for lines in [&mut lines, &mut not_run] {
        name_categories(&dataset.manifest().categories, lines);
    }
    add_texts(dataset, &mut banks, lines.iter().chain(&not_run))?;
    let mut resolver = Resolver::new(&banks);
    let (mut by_question, not_run) = by_question(&mut resolver, lines, &not_run).map_err(in_file)?;
    let matched = resolver.say();
    notes.extend(matched.clone());
    if !not_run.is_empty() {
        notes.push(format!("not run, as the file says: {} of its questions", not_run.len()));
    }
    notes.extend(drop_gold(dataset, &mut by_question)?);
    notes.extend(retrieved::settle(dataset, &banks, &mut by_question)?.say().map_err(in_file)?);
    Ok(Lines { by_question, not_run, metric, notes, matched })
}

/// A field that the user names and that no record has is a mistake, not a field that is empty everywhere.
fn check_given(records: &[Record], given: &Given) -> Result<(), ImportError> {
    let is_in = |path: &str| records.iter().any(|record| Fields::in_record(&record.fields).at(path).is_some());
    // a missing grade is a mistake in each record, and named there
    let mut others = given.paths().filter(|(ours, _)| *ours != Ours::Score);
    match others.find(|(_, path)| !is_in(path)) {
        Some((ours, path)) => {
            Err(ImportError::file(format!("no record has a field '{path}' (--field {}={path})", ours.name())))
        }
        None => Ok(()),
    }
}

/// Gives lines of ours back what a table does not write: an answer without words, a recall without hits.
fn fill_empty(lines: &mut [Line]) {
    let (answers, grades) = (lines.iter().any(|line| line.answer.is_some()), lines.iter().any(Line::is_answered));
    let recalls = lines.iter().any(|line| line.retrieved.is_some());
    for line in lines.iter_mut().filter(|line| line.ended == Some(Ended::Whole)) {
        if answers && line.answer.is_none() {
            line.answer = Some(String::new());
        }
        if (recalls || !grades) && line.retrieved.is_none() {
            line.retrieved = Some(Vec::new());
        }
    }
}

/// Retrieved ids alone are a result where no line has more: among answers they are a question that nobody answered. A question of
/// ours that failed has neither.
fn check_alike(lines: &[Line]) -> Result<(), ImportError> {
    let is_other = |line: &&Line| !line.is_answered() && line.ended != Some(Ended::Failed);
    let (answered, other) = (lines.iter().any(Line::is_answered), lines.iter().find(is_other));
    match other.filter(|_| answered) {
        Some(line) => {
            let problem =
                "neither answer nor score, but other lines have one: leave the line out, and its question is not_run";
            Err(ImportError::at(&line.place, problem))
        }
        None => Ok(()),
    }
}

/// The metric of the grades, when the lines bring some: the named one, else the one that all lines name.
fn metric_of(lines: &[Line], named: Option<&str>) -> Result<Option<String>, ImportError> {
    // what failed with us has no grade, whether there are others or not
    let mut graded = lines.iter().filter(|line| line.ended != Some(Ended::Failed)).peekable();
    if graded.peek().is_some() && graded.clone().all(|line| line.grade == Grade::None) {
        return Ok(None);
    }
    if let Some(named) = named.filter(|_| lines.iter().all(|line| line.grade == Grade::Inapplicable)) {
        return Err(ImportError::file(format!("--metric {named}: no line has a score by it")));
    }
    let mut metric = named;
    for line in graded {
        let name = line.metric.as_deref().unwrap_or(UNNAMED_METRIC);
        match (metric, line.grade) {
            // it ended with us, and the metric says nothing about it
            (_, Grade::None) if line.ended.is_some() => {}
            (_, Grade::None) => {
                let problem = "no score, but other lines have one: give it to all lines or to none";
                return Err(ImportError::at(&line.place, problem));
            }
            (Some(known), Grade::Score(_)) if named.is_none() && known != name => {
                return Err(ImportError::at(&line.place, format!("metric '{name}', but earlier lines have '{known}'")));
            }
            (None, Grade::Score(_)) => metric = Some(name),
            _ => {}
        }
    }
    Ok(Some(metric.unwrap_or(UNNAMED_METRIC).to_owned()))
}

/// The name of a scorer says that it graded: grades of others have another name, but for those of a run of ours.
fn check_name(metric: Option<&str>, lines: &[Line]) -> Result<(), ImportError> {
    let of_ours = |line: &Line| line.ended.is_some();
    let of_others = |line: &Line| matches!(line.grade, Grade::Score(_)) && !of_ours(line);
    match metric.filter(|name| registry::find(name).is_ok() && lines.iter().any(of_others)) {
        None => Ok(()),
        Some(name) => Err(ImportError::file(format!(
            "'{name}' is a scorer of this program, and these grades were given by others: name them otherwise (--metric their-{name}), or bring answers without grades, which it scores"
        ))),
    }
}

/// Says as which form the file was read, and which fields were taken for the grade: a file may have several.
fn say_form(form: &Known, lines: &[Line]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    lines.iter().filter_map(|line| line.graded_by.as_deref()).for_each(|field| *counts.entry(field).or_default() += 1);
    let fields: Vec<String> = counts.iter().map(|(field, n)| format!("{field} ({n})")).collect();
    (!fields.is_empty()).then(|| {
        format!(
            "read as form '{}' (import --forms): grades from {}; --field score=NAME names another field",
            form.name(),
            fields.join(", ")
        )
    })
}

/// Published files number categories from 1, in the order in which the dataset lists them.
fn name_categories(categories: &[(String, u64)], lines: &mut [Line]) {
    let named = |number: usize| categories.get(number.checked_sub(1)?).map(|(name, _)| name.clone());
    for category in lines.iter_mut().filter_map(|line| line.category.as_mut()) {
        if let Some(name) = category.parse().ok().and_then(named) {
            *category = name;
        }
    }
}

/// The dataset's questions, without their texts.
fn known_banks(dataset: &dyn Dataset) -> Result<Vec<KnownBank>, CliError> {
    let bank = |bank| {
        let outline = dataset.outline(bank)?;
        let known = |q: QuestionOutline| KnownQuestion { id: q.question_id, text: String::new(), category: q.category };
        Ok(KnownBank { bank_id: outline.bank_id, questions: outline.questions.into_iter().map(known).collect() })
    };
    (0..dataset.bank_count()).map(bank).collect()
}

/// Adds the texts when a line cannot be found by its id alone.
fn add_texts<'a>(
    dataset: &dyn Dataset,
    banks: &mut [KnownBank],
    mut lines: impl Iterator<Item = &'a Line>,
) -> Result<(), CliError> {
    let ids: HashSet<&str> = banks.iter().flat_map(|bank| bank.questions.iter().map(|q| q.id.as_str())).collect();
    if lines.all(|line| line.id.as_deref().is_some_and(|id| ids.contains(id))) {
        return Ok(());
    }
    for (place, bank) in banks.iter_mut().enumerate() {
        for (known, question) in bank.questions.iter_mut().zip(dataset.bank(place)?.questions) {
            known.text = question.text;
        }
    }
    Ok(())
}

/// A file that keeps the gold in the field `answer` and no answer at all: what is the gold on nearly every line was not answered
/// by anybody, and must not be scored as if it had been.
fn drop_gold(dataset: &dyn Dataset, lines: &mut BTreeMap<String, Line>) -> Result<Option<String>, CliError> {
    if lines.is_empty() || !lines.values().all(|line| line.may_be_gold && line.grade != Grade::None) {
        return Ok(None);
    }
    let mut same = 0;
    for bank in 0..dataset.bank_count() {
        for gold in dataset.bank(bank)?.gold {
            let answer = lines.get(&gold.question_id).and_then(|line| line.answer.as_deref());
            same += usize::from(answer.is_some_and(|answer| answer.trim() == gold.gold.text().trim()));
        }
    }
    if same * 10 < lines.len() * 9 {
        return Ok(None);
    }
    lines.values_mut().for_each(|line| line.answer = None);
    Ok(Some("the field 'answer' holds the expected answers: the grades are imported without answers".to_owned()))
}

/// Lines by question, each question once, and the questions that have none because they were not run.
fn by_question(
    resolver: &mut Resolver<'_>,
    lines: Vec<Line>,
    not_run: &[Line],
) -> Result<(BTreeMap<String, Line>, BTreeSet<String>), ImportError> {
    let mut found: BTreeMap<String, Line> = BTreeMap::new();
    for line in lines {
        let id = resolver.resolve(&line)?;
        if let Some(earlier) = found.get(&id) {
            return Err(ImportError::at(&line.place, format!("question '{id}' stands in {} already", earlier.place)));
        }
        found.insert(id, line);
    }
    let mut without = not_run.iter().map(|line| resolver.resolve(line)).collect::<Result<BTreeSet<String>, _>>()?;
    without.retain(|id| !found.contains_key(id));
    Ok((found, without))
}

#[cfg(test)]
mod tests {
    use bench_datasets::OpenOptions;

    use super::*;
    use crate::cli::Reduce;

    /// Three lines of a file about the first questions of `locomo-sim`, `Q` standing for their ids, as they were read.
    fn three(name: &str, text: &str) -> Result<(Lines, Vec<Line>), String> {
        let dataset = bench_datasets::open("locomo-sim", &OpenOptions::default(), &|_, _| ()).expect("is generated");
        let ids: Vec<String> =
            dataset.outline(0).expect("is there").questions.into_iter().map(|q| q.question_id).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let named = |text: String, at: usize| text.replace(&format!("Q{at}"), &ids[at]);
        std::fs::write(&path, (0..3).fold(text.to_owned(), named)).expect("writes");
        let given = Given::read(std::iter::empty()).expect("nothing is given");
        let reading = Reading { given, scale: 1.0, reduce: Reduce::Mean, metric: None };
        let lines = read(dataset.as_ref(), &path, &reading, 1 << 20).map_err(|e| e.to_string())?;
        let in_order = ids[..3].iter().filter_map(|id| lines.by_question.get(id).cloned()).collect();
        Ok((lines, in_order))
    }

    #[test]
    fn a_table_of_recalls_of_ours_reads_back() {
        let table = "question_id,outcome,answer,retrieved,score:recall@10\n\
                     Q0,scored,,\"D1:1 D1:2\",0.5\nQ1,scored,,,0\nQ2,infra_error,,,\n";
        let (lines, read) = three("questions.csv", table).expect("reads");
        assert_eq!((lines.scenario(), lines.metric.as_deref()), (Scenario::RetrieveOnly, None));
        let retrieved = |line: &Line| line.retrieved.as_ref().map(Vec::len);
        assert_eq!(read.iter().map(retrieved).collect::<Vec<_>>(), [Some(2), Some(0), None]);
        assert!(read.iter().all(|line| line.answer.is_none()));
        assert_eq!(read.iter().map(|line| line.grade).collect::<Vec<_>>(), [Grade::None, Grade::None, Grade::Failed]);
        // nothing found anywhere leaves the column out
        let (lines, read) =
            three("questions.csv", "question_id,outcome,retrieved\nQ0,scored,\nQ1,scored,\n").expect("reads");
        assert_eq!((lines.scenario(), retrieved(&read[1])), (Scenario::RetrieveOnly, Some(0)));
    }

    #[test]
    fn lines_of_ours_read_back_with_what_failed_and_what_was_not_measured() {
        let line = |id: &str, outcome: &str, answer: &str, scores: &str| {
            format!(
                r#"{{"question_id": "{id}", "outcome": "{outcome}", "answer": {answer}, "retrieved": [], "scores": {scores}}}"#
            )
        };
        let recalls = [
            line("Q0", "scored", "null", r#"{"recall@10": 1}"#),
            line("Q1", "scored", "null", "{}"),
            line("Q2", "infra_error", "null", "{}"),
        ];
        let (lines, read) = three("questions.jsonl", &recalls.join("\n")).expect("reads");
        assert_eq!((lines.scenario(), lines.metric.as_deref()), (Scenario::RetrieveOnly, None));
        assert_eq!(read[2].grade, Grade::Failed);
        let answers = [
            line("Q0", "scored", r#""x""#, r#"{"exact": 1, "contains": 1}"#),
            line("Q1", "abstained", r#""""#, r#"{"exact": 0, "contains": 0}"#),
            line("Q2", "infra_error", "null", "{}"),
        ];
        let (lines, read) = three("questions.jsonl", &answers.join("\n")).expect("reads");
        assert_eq!((lines.scenario(), lines.metric.as_deref()), (Scenario::Answer, None));
        assert_eq!((read[1].answer.as_deref(), read[2].answer.as_deref()), (Some(""), None));
        let one = [
            line("Q0", "scored", r#""x""#, r#"{"exact": 1}"#),
            line("Q1", "scored", r#""y""#, "{}"),
            line("Q2", "infra_error", "null", "{}"),
        ];
        let (lines, read) = three("questions.jsonl", &one.join("\n")).expect("reads");
        let grades: Vec<Grade> = read.iter().map(|line| line.grade).collect();
        assert_eq!(
            (lines.metric.as_deref(), grades),
            (Some("imported"), vec![Grade::Score(1.0), Grade::None, Grade::Failed])
        );
    }

    #[test]
    fn a_question_of_ours_that_was_not_run_is_asked_and_has_no_result() {
        let line = |id: &str, outcome: &str, answer: &str, scores: &str| {
            format!(
                r#"{{"question_id": "{id}", "outcome": "{outcome}", "answer": {answer}, "retrieved": [], "scores": {scores}}}"#
            )
        };
        let of = |outcome: &str| {
            let first = line("Q0", "scored", r#""x""#, r#"{"exact": 1}"#);
            let lines = [first, line("Q1", outcome, "null", "{}"), line("Q2", "infra_error", "null", "{}")];
            three("questions.jsonl", &lines.join("\n")).expect("reads")
        };
        let grades = |lines: &[Line]| lines.iter().map(|line| line.grade).collect::<Vec<_>>();
        let (whole, read) = of("infra_error");
        assert_eq!(grades(&read), [Grade::Score(1.0), Grade::Failed, Grade::Failed]);
        let says = |lines: &Lines| lines.notes.iter().find(|note| note.starts_with("not run")).cloned();
        assert_eq!((whole.not_run.len(), says(&whole)), (0, None));
        let (part, read) = of("not_run");
        assert_eq!(grades(&read), [Grade::Score(1.0), Grade::Failed], "the second has no result");
        assert_eq!((part.by_question.len(), part.not_run.len()), (2, 1));
        let sorted = |mut ids: Vec<String>| {
            ids.sort_unstable();
            ids
        };
        assert_eq!(sorted(part.named()), sorted(whole.named()), "it is of the sample that the file names");
        assert_eq!(says(&part).as_deref(), Some("not run, as the file says: 1 of its questions"));
        let table = "question_id,outcome,answer\nQ0,not_run,\n";
        let nothing = three("questions.csv", table).err().expect("is refused");
        assert!(nothing.contains("all of its questions are not_run"), "{nothing}");
    }

    /// Some questions have no figure of recalls, and some no judge's grade: none is graded by what the others are not.
    #[test]
    fn all_lines_of_ours_are_graded_by_one_metric() {
        let line = |id: &str, scores: &str| {
            format!(
                r#"{{"question_id": "{id}", "outcome": "scored", "answer": "x", "retrieved": [], "scores": {scores}}}"#
            )
        };
        let of = |scores: [&str; 3]| [line("Q0", scores[0]), line("Q1", scores[1]), line("Q2", scores[2])].join("\n");
        let grades = |text: &str, name: &str| {
            let (lines, read) = three(name, text).expect("reads");
            (lines.metric, read.iter().map(|line| line.grade).collect::<Vec<_>>())
        };
        let (one, half, none) = (Grade::Score(1.0), Grade::Score(0.5), Grade::None);
        let imported = || Some("imported".to_owned());
        for (scores, expected) in [
            (
                [r#"{"exact": 1, "recall@10": 0}"#, r#"{"exact": 0.5}"#, r#"{"exact": 1, "recall@10": 1}"#],
                (imported(), vec![one, half, one]),
            ),
            (
                [r#"{"judge": 1, "exact": 0}"#, r#"{"exact": 0}"#, r#"{"judge": 0.5, "judge.tone": 0, "exact": 0}"#],
                (imported(), vec![one, none, half]),
            ),
            ([r#"{"contains": 1, "exact": 0}"#, r#"{"exact": 0}"#, "{}"], (None, vec![none; 3])),
        ] {
            assert_eq!(grades(&of(scores), "questions.jsonl"), expected, "{scores:?}");
        }
        let table = "question_id,outcome,answer,retrieved,score:exact,score:judge,score:judge.tone\n\
                     Q0,scored,x,D1:1,0,1,0\nQ1,scored,x,,0,,\nQ2,scored,x,,0,0.5,1\n";
        assert_eq!(grades(table, "questions.csv"), (imported(), vec![one, none, half]), "as in JSON lines");
    }

    #[test]
    fn retrieved_ids_that_the_dataset_does_not_have_are_told() {
        let line = |at: u8, ids: &str| format!(r#"{{"question_id": "Q{at}", "retrieved": [{ids}]}}"#);
        let of = |ids: [&str; 3]| {
            let lines: Vec<String> = (0..).zip(ids).map(|(at, ids)| line(at, ids)).collect();
            three("theirs.jsonl", &lines.join("\n"))
        };
        let none = of([r#""x1:1""#, "", r#""x2""#]).err().expect("is refused");
        assert!(none.contains("line 1: ") && none.contains("'x1:1'") && none.contains("'D1:1'"), "{none}");
        let (lines, read) = of([r#""D1:1", "x1""#, r#""D1""#, r#""D1:9999""#]).expect("reads");
        let [note] = &lines.notes[..] else { panic!("one note: {:?}", lines.notes) };
        assert!(note.starts_with("2 of 4 retrieved ids ") && note.contains("'x1' (line 1)"), "{note}");
        assert_eq!(read[2].retrieved, Some(vec!["D1:9999".to_owned()]), "its session is known");
        let (lines, _) = of([r#""D1:1""#, "", ""]).expect("reads");
        assert!(lines.notes.is_empty(), "{:?}", lines.notes);
    }

    #[test]
    fn ids_that_are_not_the_datasets_are_told_to_the_user_and_to_the_report() {
        let text = "{\"question_id\": \"locomo_0_qa0\", \"score\": 1}\n{\"question_id\": \"Q1\", \"score\": 0}\n";
        let (lines, _) = three("theirs.jsonl", text).expect("reads");
        let matched = lines.matched.clone().expect("is told");
        assert!(matched.starts_with("1 id is not the dataset's: read as numbers"), "{matched}");
        assert!(lines.notes.contains(&matched) && lines.by_question.len() == 2, "{:?}", lines.notes);
        let (lines, _) = three("theirs.jsonl", "{\"question_id\": \"Q1\", \"score\": 0}\n").expect("reads");
        assert_eq!(lines.matched, None);
    }

    #[test]
    fn an_answer_without_words_is_one_in_a_table_of_ours_alone() {
        let (_, read) =
            three("questions.csv", "question_id,outcome,answer\nQ0,scored,x\nQ1,abstained,\n").expect("reads");
        assert_eq!(read[1].answer.as_deref(), Some(""));
        let theirs = three("theirs.csv", "question_id,answer\nQ0,x\nQ1,\n").err().expect("says nothing of Q1");
        assert!(theirs.contains("neither answer nor score"), "{theirs}");
    }
}
