//! From a file to one line for each question of a dataset.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use bench_datasets::Dataset;
use bench_proto::dataset::QuestionOutline;

use super::{
    ImportError,
    fields::{self, Line},
    forms::{self, Known},
    grades::{Grade, Reading},
    lookup::Fields,
    ours::{Given, Ours},
    read,
    records::{Record, Search},
    resolve::{KnownBank, KnownQuestion, Resolver},
};
use crate::exit::CliError;

/// Metric of grades that name none.
const UNNAMED_METRIC: &str = "imported";

/// What a file says about the questions of a dataset.
pub(crate) struct Lines {
    /// Lines by the dataset's id of their question.
    pub(crate) by_question: BTreeMap<String, Line>,
    /// Metric of the grades that they bring.
    pub(crate) metric: Option<String>,
    /// How the file was read, for its user.
    pub(crate) notes: Vec<String>,
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
    let form = forms::form_of(&records, &reading.given);
    let lines = records.iter().map(|record| fields::line(record, form, reading)).collect::<Result<Vec<_>, _>>();
    let mut lines = lines.map_err(in_file)?;
    drop(records);
    let metric = metric_of(&lines, reading.metric.as_deref()).map_err(in_file)?;
    let mut notes: Vec<String> = say_form(form, &lines).into_iter().collect();
    name_categories(dataset.manifest().categories, &mut lines);
    add_texts(dataset, &mut banks, &lines)?;
    let mut by_question = by_question(&banks, lines).map_err(in_file)?;
    notes.extend(drop_gold(dataset, &mut by_question)?);
    Ok(Lines { by_question, metric, notes })
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

/// The metric of the grades, when the lines bring some: the named one, else the one that all lines name.
fn metric_of(lines: &[Line], named: Option<&str>) -> Result<Option<String>, ImportError> {
    if lines.iter().all(|line| line.grade == Grade::None) {
        return Ok(None);
    }
    let mut metric = named;
    for line in lines {
        let name = line.metric.as_deref().unwrap_or(UNNAMED_METRIC);
        match (metric, line.grade) {
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
fn name_categories(categories: &[(&str, u64)], lines: &mut [Line]) {
    let named = |number: usize| categories.get(number.checked_sub(1)?).map(|(name, _)| (*name).to_owned());
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
fn add_texts(dataset: &dyn Dataset, banks: &mut [KnownBank], lines: &[Line]) -> Result<(), CliError> {
    let ids: HashSet<&str> = banks.iter().flat_map(|bank| bank.questions.iter().map(|q| q.id.as_str())).collect();
    if lines.iter().all(|line| line.id.as_deref().is_some_and(|id| ids.contains(id))) {
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

/// Lines by question, each question once.
fn by_question(banks: &[KnownBank], lines: Vec<Line>) -> Result<BTreeMap<String, Line>, ImportError> {
    let mut resolver = Resolver::new(banks);
    let mut found: BTreeMap<String, Line> = BTreeMap::new();
    for line in lines {
        let id = resolver.resolve(&line)?;
        if let Some(earlier) = found.get(&id) {
            return Err(ImportError::at(&line.place, format!("question '{id}' stands in {} already", earlier.place)));
        }
        found.insert(id, line);
    }
    Ok(found)
}
