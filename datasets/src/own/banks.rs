//! The project's own form: a first line that says what the file is, then one bank with all that belongs to it on each line, as
//! [`Bank`] is written in JSON. Only outlines stay in memory; a bank is read when it is asked for.

use std::{
    collections::HashSet,
    io::{BufWriter, Write},
    path::Path,
};

use bench_proto::{
    dataset::{Bank, BankContent, BankOutline, Filter, StreamEntry},
    profile::Profile,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Counted, IsTaken, Keys, OwnFile, is_word, unread::unread, word};
use crate::{
    About, Dataset, DatasetError,
    lines::{Line, LinePlace},
    neutral::is_time,
    notes::Notes,
    sets::{Problem, Said, check_span},
    whole_file::{Hashed, WholeFile},
};

/// What the first line says the file is.
const FORM: &str = "bench-coord banks";
/// Version of the form, and of this reader.
const VERSION: u32 = 1;

/// Options are shown under the letters a to z.
const MOST_CHOICES: usize = 26;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    form: String,
    version: u32,
    #[serde(default)]
    dataset: Said,
    profile: Profile,
}

pub(super) fn is_it(ending: &str, keys: Option<&Keys>) -> bool {
    ending == "jsonl" && keys.is_some_and(|keys| keys.contains_key("form"))
}

/// The banks of a file.
struct OwnBanks {
    about: About,
    file: OwnFile,
    banks: Vec<BankPlace>,
}

/// Where a bank stands, and what it held.
struct BankPlace {
    line: LinePlace,
    outline: BankOutline,
}

pub(super) fn open(file: &OwnFile) -> Result<Box<dyn Dataset>, DatasetError> {
    let mut lines = file.lines()?;
    let head: Head = match lines.next() {
        Some(line) => read(file, &line?)?,
        None => return Err(file.broken(("line 1".to_owned(), "is missing".to_owned()))),
    };
    if (head.form.as_str(), head.version) != (FORM, VERSION) {
        let problem = format!("is '{}' {}; this build reads '{FORM}' {VERSION}", head.form, head.version);
        return Err(file.broken(("field form".to_owned(), problem)));
    }
    let sizes = &head.profile.presets;
    let none = [("quick", Some(sizes.quick)), ("fair_per_bank", Some(sizes.fair_per_bank)), ("fair", sizes.fair)];
    if let Some((field, _)) = none.into_iter().find(|(_, size)| *size == Some(0)) {
        let place = format!("line 1, field profile.presets.{field}");
        return Err(file.broken((place, "is 0: a sample has at least one question".to_owned())));
    }
    let (mut banks, mut counted, mut ids) = (Vec::new(), Counted::default(), Ids::default());
    for line in lines {
        let line = line?;
        let bank: Bank = read(file, &line)?;
        let check = ids.check(&bank, &head.profile);
        check.map_err(|(place, problem)| file.broken((format!("line {}, {place}", line.number), problem)))?;
        let outline = bank.outline();
        counted.add(&outline);
        banks.push(BankPlace { line: line.place(), outline });
    }
    if banks.iter().all(|bank| bank.outline.questions.is_empty()) {
        return Err(file.broken(("file".to_owned(), "asks nothing: it has no bank with questions".to_owned())));
    }
    let about = file.about(head.dataset, VERSION, head.profile, counted, Notes::default())?;
    Ok(Box::new(OwnBanks { about, file: file.clone(), banks }))
}

/// A line as what it must be, without a field that nobody reads.
fn read<T: Serialize + DeserializeOwned>(file: &OwnFile, line: &Line) -> Result<T, DatasetError> {
    let read = file.json(line)?;
    match unread(&line.text, &read) {
        None => Ok(read),
        Some(field) => {
            let place = format!("line {}, field {field}", line.number);
            Err(file.broken((
                place,
                "is unknown; see `Bank` in proto/src/dataset.rs, or `Profile` in profile.rs".to_owned(),
            )))
        }
    }
}

/// Ids that were seen, which may not come again.
#[derive(Default)]
struct Ids {
    banks: HashSet<String>,
    questions: HashSet<String>,
}

impl Ids {
    /// What every bank must hold, so that nothing later meets a surprise.
    fn check(&mut self, bank: &Bank, profile: &Profile) -> Result<(), Problem> {
        let problem = |place: String, problem: &str| Err((place, problem.to_owned()));
        let content = &bank.content;
        if !self.banks.insert(content.bank_id.clone()) {
            return problem("field content.bank_id".to_owned(), "is the id of an earlier bank");
        }
        if bank.questions.len() != bank.gold.len() {
            return problem("field gold".to_owned(), "has not one record for each question");
        }
        let held = Held::from_content(content)?;
        for (number, (question, gold)) in bank.questions.iter().zip(&bank.gold).enumerate() {
            let at = |field: &str| format!("field questions[{number}].{field}");
            if !self.questions.insert(question.question_id.clone()) {
                return problem(at("question_id"), "is the id of an earlier question");
            }
            if question.index as usize != number {
                return problem(at("index"), "is not its number in the bank, from 0");
            }
            if question.ask_after as usize > content.entries.len() {
                return problem(at("ask_after"), "is more than the bank has entries");
            }
            if !profile.categories.contains_key(&question.category) {
                return problem(at("category"), "is not among the categories of the profile in line 1");
            }
            if gold.question_id != question.question_id {
                return problem(format!("field gold[{number}].question_id"), "is not that of the question");
            }
            let has_style = |name: &String| profile.all_styles().any(|style| style.name == *name);
            if gold.style.as_ref().is_some_and(|name| !has_style(name)) {
                return problem(
                    format!("field gold[{number}].style"),
                    "is not among the styles of the profile in line 1",
                );
            }
            if gold.rubric.as_deref().is_some_and(|name| !profile.rubric_names().contains(name)) {
                return problem(
                    format!("field gold[{number}].rubric"),
                    "is not among the rubrics of the profile in line 1; `by_question` there lists them",
                );
            }
            if question.choices.len() > MOST_CHOICES {
                let told = format!("are {}, and {MOST_CHOICES} have a letter", question.choices.len());
                return problem(at("choices"), &told);
            }
            if question.k == Some(0) {
                return problem(at("k"), "is 0: at least one hit has to be asked for");
            }
            let Filter { from, until, .. } = &question.filter;
            for (field, time) in [("time", &question.time), ("filter.from", from), ("filter.until", until)] {
                is_of_the_model(time).map_err(|told| (at(field), told))?;
            }
            check_span(&question.filter).map_err(|(field, told)| (at(&format!("filter.{field}")), told))?;
            let evidence = [
                ("evidence_sessions", &gold.evidence_sessions, &held.entries, "entry"),
                ("evidence_turns", &gold.evidence_turns, &held.turns, "turn or memory"),
            ];
            for (field, ids, known, what) in evidence {
                if let Some(unknown) = ids.iter().find(|id| !known.contains(id.as_str())) {
                    let text = format!("names {unknown}, which is no {what} of the bank");
                    return problem(format!("field gold[{number}].{field}"), &text);
                }
            }
        }
        Ok(())
    }
}

/// The ids of what a bank holds.
#[derive(Default)]
struct Held<'a> {
    entries: HashSet<&'a str>,
    /// Turns, and memories, which are turns of themselves.
    turns: HashSet<&'a str>,
}

impl<'a> Held<'a> {
    /// Looks at ids, times and what is replaced.
    fn from_content(content: &'a BankContent) -> Result<Self, Problem> {
        let (mut held, mut parts) = (Self::default(), HashSet::new());
        for (number, entry) in content.entries.iter().enumerate() {
            held.add(entry, &mut parts)
                .map_err(|(field, told)| (format!("field content.entries[{number}]{field}"), told))?;
        }
        Ok(held)
    }

    fn add(&mut self, entry: &'a StreamEntry, parts: &mut HashSet<(&'a str, u32)>) -> Result<(), Problem> {
        let problem = |field: &str, told: &str| Err((field.to_owned(), told.to_owned()));
        let memory = match entry {
            StreamEntry::Session(session) => {
                if !parts.insert((&session.id, session.part)) {
                    return problem("", "has the id of an earlier entry");
                }
                is_of_the_model(&session.time).map_err(|told| (".time".to_owned(), told))?;
                for (at, turn) in session.turns.iter().enumerate() {
                    is_of_the_model(&turn.time).map_err(|told| (format!(".turns[{at}].time"), told))?;
                    if !self.turns.insert(&turn.id) {
                        return problem(&format!(".turns[{at}].id"), "is the id of an earlier turn");
                    }
                }
                self.entries.insert(&session.id);
                return Ok(());
            }
            StreamEntry::Memory(memory) => Some(memory),
            StreamEntry::Update { replaces, memory } => {
                if !self.entries.contains(replaces.as_str()) {
                    return problem(".replaces", &format!("names {replaces}, which is no earlier entry"));
                }
                memory.as_ref()
            }
        };
        // a withdrawal has the id of what it takes away
        let Some(memory) = memory else { return Ok(()) };
        is_of_the_model(&memory.time).map_err(|told| (".time".to_owned(), told))?;
        if !parts.insert((&memory.id, 0)) || !self.turns.insert(&memory.id) {
            return problem("", "has the id of an earlier entry");
        }
        self.entries.insert(&memory.id);
        Ok(())
    }
}

/// Refuses a time of another form than all that compare times expect.
fn is_of_the_model(time: &Option<String>) -> Result<(), String> {
    match time {
        Some(text) if !is_time(text) => Err(format!("'{text}' is no time of the form 2026-03-04T10:00:00")),
        _ => Ok(()),
    }
}

impl OwnBanks {
    fn place(&self, bank: usize) -> Result<&BankPlace, DatasetError> {
        self.banks.get(bank).ok_or_else(|| DatasetError::no_bank(&self.about.manifest.name, bank, self.banks.len()))
    }
}

impl Dataset for OwnBanks {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.banks.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        Ok(self.place(bank)?.outline.clone())
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.file.json(&self.place(bank)?.line.read(&self.file.path, &self.file.shown)?)
    }
}

/// Writes all banks of a dataset, one after the other: (bytes, sha256). The file is there whole or not at all.
pub(crate) fn write(dataset: &dyn Dataset, path: &Path, is_taken: IsTaken) -> Result<(u64, String), DatasetError> {
    let io = |source| DatasetError::io(path, source);
    let manifest = dataset.manifest();
    let stem = word(path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default());
    let is_free = is_word(&stem) && !is_taken(&stem);
    let head = Head {
        form: FORM.to_owned(),
        version: VERSION,
        dataset: Said {
            name: Some(if is_free { stem } else { format!("{}-file", manifest.name.replace('@', "-")) }),
            description: Some(manifest.description.clone()),
            version: Some(manifest.version.clone()),
            licence: Some(manifest.licence.clone()),
            source: Some(manifest.source.clone()),
            abstention_phrases: Some(manifest.abstention_phrases.clone()),
            scorers: Some(manifest.scorers.clone()),
        },
        profile: dataset.profile().clone(),
    };
    let mut out = Hashed::new(BufWriter::new(WholeFile::create(path).map_err(io)?));
    let line = |out: &mut Hashed<_>, json: serde_json::Result<Vec<u8>>| {
        let mut json = json?;
        json.push(b'\n');
        out.write_all(&json)
    };
    line(&mut out, serde_json::to_vec(&head)).map_err(io)?;
    for bank in 0..dataset.bank_count() {
        line(&mut out, serde_json::to_vec(&dataset.bank(bank)?)).map_err(io)?;
    }
    let (inner, bytes, sha256) = out.finish();
    inner.into_inner().map_err(|error| io(error.into_error()))?.keep().map_err(io)?;
    Ok((bytes, sha256))
}
