//! PersonaMem: multiple-choice questions in the middle of long conversations, on what a person prefers by then.
//!
//! Every question knows how many messages of its context were said before it is asked. A system message with the persona
//! opens each block of a context; a block becomes a session, in parts where questions are asked inside it.

mod python;
mod rows;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use bench_proto::{
    dataset::{Bank, BankContent, BankOutline, Gold, GoldRecord, Question, Session, StreamEntry, Turn},
    profile::Profile,
};
use serde::Deserialize;

use crate::{
    About, Dataset, DatasetError, Opening,
    broken::broken,
    lines::{Line, LinePlace, Lines},
    neutral,
    notes::Notes,
};
use rows::Row;

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Opens the size that is the variant.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let files = opening.files()?;
    let size = opening.manifest().name.split_once('@').map_or("32k", |(_, size)| size);
    let size = if size == "1m" { "1M" } else { size };
    let (questions, contexts) = (format!("questions_{size}.csv"), format!("shared_contexts_{size}.jsonl"));
    let located = |error| files.located(error);
    let asked = Asked::read(&questions, &files.read(&questions)?).map_err(located)?;
    asked.check_types(opening.profile).map_err(located)?;
    let shown = files.shown(&contexts)?;
    let (contexts, notes) = Contexts::open(asked, &contexts, files.path(&contexts)?, shown).map_err(located)?;
    Ok(Box::new(PersonaMem { about: opening.about(&files, notes), contexts }))
}

struct PersonaMem {
    about: About,
    contexts: Contexts,
}

impl PersonaMem {
    fn no_bank(&self, bank: usize) -> DatasetError {
        DatasetError::no_bank(&self.about.manifest.name, bank, self.bank_count())
    }
}

impl Dataset for PersonaMem {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.contexts.places.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let place = self.contexts.places.get(bank);
        place.map(|(_, outline)| outline.clone()).ok_or_else(|| self.no_bank(bank))
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.contexts.bank(bank)?.ok_or_else(|| self.no_bank(bank))
    }
}

/// A message of a context.
#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    content: String,
}

/// The questions, by their contexts, in the order in which the table names these.
#[derive(Debug)]
struct Asked {
    /// The name of the table.
    path: String,
    /// The number of each context.
    numbers: HashMap<String, usize>,
    rows: Vec<Vec<Row>>,
}

impl Asked {
    /// Reads the table (CSV).
    ///
    /// # Errors
    /// Broken rows, with line and field.
    fn read(path: &str, table: &[u8]) -> Result<Self, DatasetError> {
        let mut asked = Self { path: path.to_owned(), numbers: HashMap::new(), rows: Vec::new() };
        for row in rows::read(path, table)? {
            let number = *asked.numbers.entry(row.context_id.clone()).or_insert(asked.rows.len());
            if number == asked.rows.len() {
                asked.rows.push(Vec::new());
            }
            asked.rows[number].push(row);
        }
        Ok(asked)
    }

    /// Refuses questions of a type that the profile does not know: it could not say how they are put and graded.
    fn check_types(&self, profile: &Profile) -> Result<(), DatasetError> {
        let is_unknown = |row: &&Row| !profile.categories.contains_key(&row.category);
        self.rows.iter().flatten().find(is_unknown).map_or(Ok(()), |row| {
            let known: Vec<&str> = profile.categories.keys().map(String::as_str).collect();
            Err(row.broken(&self.path, "question_type", format!("'{}' is none of {}", row.category, known.join(", "))))
        })
    }

    /// Goes through the contexts (a JSON object with one key a line), of which one is in memory at a time, and shows the bank
    /// of each that is asked about, with its number and its line. Gives what does not resolve.
    ///
    /// # Errors
    /// Broken input, with file, line and field; questions whose context is missing or shorter than they say.
    fn each_bank(
        &self,
        contexts_path: &str,
        contexts: impl BufRead,
        mut with: impl FnMut(usize, &Line, Bank),
    ) -> Result<Notes, DatasetError> {
        let mut is_there = vec![false; self.rows.len()];
        let (mut notes, mut unasked) = (Notes::default(), 0_usize);
        let mut lines = Lines::new(contexts_path, contexts);
        while let Some(line) = lines.next() {
            let line = line?;
            let (context_id, messages) = context(&line, contexts_path)?;
            let Some(number) = self.numbers.get(&context_id).copied() else {
                unasked += 1;
                continue;
            };
            if std::mem::replace(&mut is_there[number], true) {
                return Err(lines.broken(format!("context {context_id} is there twice")));
            }
            with(number, &line, self.bank(number, messages, &mut notes)?);
        }
        if unasked > 0 {
            notes.say("contexts that are left out", || {
                format!("{contexts_path}: {unasked} contexts have no question and are left out")
            });
        }
        let missing = self.rows.iter().zip(is_there).filter(|(_, is_there)| !is_there);
        match missing.flat_map(|(rows, _)| rows).next() {
            Some(row) => {
                let problem = format!("{} is no context of {contexts_path}", row.context_id);
                Err(row.broken(&self.path, "shared_context_id", problem))
            }
            None => Ok(notes),
        }
    }

    /// A context with its questions, in the order of the table.
    fn bank(&self, number: usize, messages: Vec<Message>, notes: &mut Notes) -> Result<Bank, DatasetError> {
        bank(&self.path, format!("P{}", number + 1), messages, &self.rows[number], notes)
    }
}

/// A file of contexts: where each of them stands that is asked about, and what planning needs of it. The contexts of the
/// largest size are too large to be held.
#[derive(Debug)]
struct Contexts {
    path: PathBuf,
    /// The path that errors tell.
    shown: PathBuf,
    asked: Asked,
    places: Vec<(LinePlace, BankOutline)>,
}

impl Contexts {
    /// Reads the file of a name once. Gives what does not resolve too, told of by the name: where the file lies on this machine
    /// is not published.
    fn open(asked: Asked, name: &str, path: &Path, shown: &Path) -> Result<(Self, Notes), DatasetError> {
        let file = BufReader::new(File::open(path).map_err(|source| DatasetError::io(path, source))?);
        let mut places = BTreeMap::new();
        let notes = asked.each_bank(name, file, |number, line, mut bank| {
            let in_file = neutral::hide_order(&mut bank);
            places.insert(number, (line.place(), neutral::outline(&bank, &in_file)));
        })?;
        let places = places.into_values().collect();
        Ok((Self { path: path.to_owned(), shown: shown.to_owned(), asked, places }, notes))
    }

    /// Reads a context again, the order of its questions hidden; none when there is no such one.
    fn bank(&self, number: usize) -> Result<Option<Bank>, DatasetError> {
        let Some((place, _)) = self.places.get(number) else { return Ok(None) };
        let line = place.read(&self.path, &self.shown)?;
        let (_, messages) = context(&line, &self.shown.display().to_string())?;
        // what does not resolve was told when the file was opened
        let mut bank = self.asked.bank(number, messages, &mut Notes::default())?;
        neutral::hide_order(&mut bank);
        Ok(Some(bank))
    }
}

/// A line of a file of contexts: the context's id and its messages.
fn context(line: &Line, path: &str) -> Result<(String, Vec<Message>), DatasetError> {
    let object: BTreeMap<String, Vec<Message>> = line.json(path)?;
    let keys = object.len();
    let mut contexts = object.into_iter();
    match (contexts.next(), contexts.next()) {
        (Some(context), None) => Ok(context),
        _ => {
            let problem = format!("an object with one key, the context's id, is expected; it has {keys}");
            Err(broken(path, format!("line {}", line.number), problem))
        }
    }
}

/// A bank of a context and the questions about it.
fn bank(
    path: &str,
    bank_id: String,
    messages: Vec<Message>,
    rows: &[Row],
    notes: &mut Notes,
) -> Result<Bank, DatasetError> {
    let ends: BTreeSet<usize> = rows.iter().map(|row| row.end).collect();
    let mut bank = Bank {
        content: BankContent { bank_id, entries: entries(messages, &ends), ..BankContent::default() },
        ..Bank::default()
    };
    // for each number of messages: the entries that hold them, and their characters
    let mut points = BTreeMap::from([(0, (0, 0))]);
    let (mut said, mut letters) = (0, 0);
    for (entry, number) in bank.content.entries.iter().zip(1..) {
        let StreamEntry::Session(session) = entry else { continue };
        said += session.turns.len();
        letters += session.turns.iter().map(|turn| turn.text.chars().count()).sum::<usize>();
        points.insert(said, (number, letters));
    }
    for (row, index) in rows.iter().zip(0..) {
        let Some((ask_after, letters)) = points.get(&row.end) else {
            let problem = format!("{} is more than the {said} messages of its context", row.end);
            return Err(row.broken(path, rows::END, problem));
        };
        if let Some(stated) = row.letters.filter(|stated| stated != letters) {
            let id = &row.question_id;
            notes.say("context_length_in_letters that is another", || {
                format!("{id}: context_length_in_letters is {stated}, and {letters} characters come before it is asked")
            });
        }
        bank.questions.push(Question {
            question_id: row.question_id.clone(),
            index,
            category: row.category.clone(),
            text: row.text.clone(),
            ask_after: *ask_after,
            choices: row.options.clone(),
            ..Question::default()
        });
        bank.gold.push(GoldRecord {
            question_id: row.question_id.clone(),
            gold: Gold::Choice(row.gold.clone()),
            facets: row.facets.clone(),
            hidden: row.hidden.clone(),
            ..GoldRecord::default()
        });
    }
    Ok(bank)
}

/// The messages as sessions, one for each block, cut where a question is asked.
fn entries(messages: Vec<Message>, ends: &BTreeSet<usize>) -> Vec<StreamEntry> {
    let mut entries = Vec::new();
    let mut session = Session::default();
    let (mut sessions, mut turns) = (0_u32, 0_u32);
    for (message, at) in messages.into_iter().zip(0..) {
        let opens = at == 0 || message.role == "system";
        if (opens || ends.contains(&at)) && !session.turns.is_empty() {
            let next = Session { id: session.id.clone(), part: session.part + 1, ..Session::default() };
            entries.push(StreamEntry::Session(std::mem::replace(&mut session, next)));
        }
        if opens {
            (sessions, turns) = (sessions + 1, 0);
            session = Session { id: format!("S{sessions}"), ..Session::default() };
        }
        turns += 1;
        session.turns.push(Turn {
            id: format!("{}:{turns}", session.id),
            speaker: message.role,
            text: message.content,
            ..Turn::default()
        });
    }
    if !session.turns.is_empty() {
        entries.push(StreamEntry::Session(session));
    }
    entries
}
