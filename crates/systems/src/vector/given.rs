//! Vectors that somebody else has made: of memories, and of what is searched for. A file is a JSON array of records, each with
//! its `embedding` and the `text` (or `query`) that it was made of. The text of a belief of PrecisionMemBench is put together as
//! that benchmark gives it to systems.
//!
//! Vectors are found by their text alone. Ids of a dataset are hidden from systems, and those that systems see are numbers that
//! the loader has given: an id of a file may be the id of something else in a bank.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    path::Path,
};

use bench_proto::{
    dataset::{BankContent, Question},
    failure::Failure,
    ids::Sha256Hash,
};
use bench_settings::bounded;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::error::Category;

use super::{FOLDER, LOCAL, MODEL, PRECOMPUTED, QUERIES, embedder::Embedder, remote_model};
use crate::{
    BuildContext, BuildError, Setting, StepContext, SystemSettings,
    documents::{self, Document},
    embed::HashEmbeddings,
    settings::text,
};

/// Most bytes of a file: 12,000 vectors of 1,024 numbers with all their digits.
const MOST_BYTES: u64 = bounded::RESULTS;
/// Characters of a text that a message shows.
const SHOWN: usize = 60;
/// Code of the failure of a query or a bank that given vectors do not cover.
const MISSING: &str = "given_vector_missing";

/// The vectors that settings name.
pub(super) struct Given {
    memories: Table,
    queries: Option<Table>,
    /// Beginning of a hash over the files: part of the run's fingerprint, which their paths are not.
    pub(super) hash: String,
}

impl Given {
    /// Reads the files that settings name; `None` where they name none.
    ///
    /// # Errors
    /// What is wrong with a file, and where.
    pub(super) fn read(settings: &SystemSettings) -> Result<Option<Self>, BuildError> {
        let (memories, queries) = (text(settings, &PRECOMPUTED)?, text(settings, &QUERIES)?);
        if memories.is_empty() && queries.is_empty() {
            return Ok(None);
        }
        if memories.is_empty() {
            return Err(refused(format!(
                "{} names vectors of queries, and there are none of memories: give {} too",
                QUERIES.name, PRECOMPUTED.name
            )));
        }
        let (memories, mut hash) = Table::read(&PRECOMPUTED, &memories)?;
        let queries = match queries.as_str() {
            "" => None,
            path => {
                let (queries, of_queries) = Table::read(&QUERIES, path)?;
                hash = Sha256Hash::of_bytes(format!("{}\n{}", hash.hex(), of_queries.hex()).as_bytes());
                Some(queries)
            }
        };
        let wanted = memories.dimensions;
        if let Some(queries) = queries.as_ref().filter(|queries| queries.dimensions != wanted) {
            return Err(refused(format!(
                "{}: vectors of queries have {} numbers, those of memories {wanted} ({})",
                queries.name, queries.dimensions, memories.name
            )));
        }
        if queries.is_none() && text(settings, &MODEL)? == "hash" {
            let made = HashEmbeddings::DIMENSIONS;
            if made != wanted {
                return Err(other_length("vector.model=hash", made, &memories));
            }
        }
        Ok(Some(Self { memories, queries, hash: hash.hex()[..16].to_owned() }))
    }

    /// Numbers of each vector.
    pub(super) const fn dimensions(&self) -> usize {
        self.memories.dimensions
    }

    /// The vector of a turn or memory.
    ///
    /// # Errors
    /// There is none, or the one of its id is of another text.
    pub(super) fn of_document(&self, document: Document<'_>) -> Result<Vec<f32>, Failure> {
        self.memories.of_document(document).map(<[f32]>::to_vec).map_err(missing)
    }

    /// Whether nothing is searched for, and nobody makes a vector of it.
    pub(super) fn finds_nothing(&self, query: &str) -> bool {
        self.queries.is_some() && query.trim().is_empty()
    }

    /// The vector of a query; `None` where queries are embedded.
    ///
    /// # Errors
    /// There is none for it.
    pub(super) fn of_query(&self, query: &str) -> Result<Option<Vec<f32>>, Failure> {
        let Some(queries) = &self.queries else { return Ok(None) };
        queries.of_query(query).map(|vector| Some(vector.to_vec())).map_err(missing)
    }

    /// The failure of an embedded query that is longer or shorter than what is given: every query's would be, so the run stops.
    pub(super) fn other_length(&self, dimensions: usize) -> Failure {
        Failure::terminal(
            "embedding_shape",
            other_length("the embedding model", dimensions, &self.memories).to_string(),
        )
    }
}

fn missing(what: String) -> Failure {
    Failure::permanent(MISSING, what)
}

fn refused(reason: String) -> BuildError {
    BuildError::Adapter { system: "vector".to_owned(), reason: reason.into() }
}

fn other_length(who: &str, dimensions: usize, memories: &Table) -> BuildError {
    refused(format!(
        "{who} makes vectors of {dimensions} numbers for queries, and those of memories have {} ({}): name the model that made \
         them, or a file of vectors of queries ({})",
        memories.dimensions, memories.name, QUERIES.name
    ))
}

/// Looks, before a run, whether given vectors cover what it retains and asks.
pub struct GivenVectors {
    given: Given,
    embedder: Option<Embedder>,
}

impl GivenVectors {
    /// Those of a system's settings; `None` where it has none.
    ///
    /// # Errors
    /// As for building the system.
    pub fn of_system(system: &str, settings: &SystemSettings) -> Result<Option<Self>, BuildError> {
        if !["vector", "hybrid"].contains(&system) {
            return Ok(None);
        }
        let Some(given) = Given::read(settings)? else { return Ok(None) };
        let at_home = given.queries.is_none() && remote_model(system, settings).is_none();
        let embedder = at_home.then(|| Embedder::new(settings, &BuildContext::default())).transpose()?;
        Ok(Some(Self { given, embedder }))
    }

    /// Whether only what its file names can be searched for: no words of a model or of the runner.
    #[must_use]
    pub const fn knows_its_queries_only(&self) -> bool {
        self.given.queries.is_some()
    }

    /// Makes sure that a model of this machine makes vectors of the same length. One of a server is not asked before the run.
    ///
    /// # Errors
    /// It makes others, or none.
    pub async fn check_model(&self) -> Result<(), String> {
        let Some(embedder) = &self.embedder else { return Ok(()) };
        let made = embedder.query("a question", StepContext::default()).await.map_err(|failure| failure.message)?;
        match made.len() == self.given.dimensions() {
            true => Ok(()),
            false => Err(other_length(&format!("vector.model={LOCAL}"), made.len(), &self.given.memories).to_string()),
        }
    }

    /// Makes sure that everything that a bank retains and what is asked of it has a vector.
    ///
    /// # Errors
    /// The first that has none.
    pub fn check_bank<'q>(
        &self,
        content: &BankContent,
        questions: impl Iterator<Item = &'q Question>,
    ) -> Result<(), String> {
        let bank = &content.bank_id;
        for document in content.entries.iter().flat_map(documents::of_entry) {
            self.given.memories.of_document(document).map_err(|problem| format!("bank {bank}: {problem}"))?;
        }
        let Some(queries) = &self.given.queries else { return Ok(()) };
        // where nothing is searched for, nothing is found
        for question in questions.filter(|question| !question.text.trim().is_empty()) {
            queries
                .of_query(&question.text)
                .map_err(|problem| format!("bank {bank}, question {}: {problem}", question.question_id))?;
        }
        Ok(())
    }
}

/// Whether banks are embedded by the model of these settings: not where the vectors of their memories are given.
#[must_use]
pub fn embeds_banks(settings: &SystemSettings) -> bool {
    text(settings, &PRECOMPUTED).is_ok_and(|path| path.is_empty())
}

/// The settings without the files that they name: what can be known of the system where these are not.
#[must_use]
pub fn without_given(settings: &SystemSettings) -> SystemSettings {
    let is_file = |name: &str| [PRECOMPUTED.name, QUERIES.name].contains(&name);
    settings.iter().filter(|(name, _)| !is_file(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether a setting of a built-in system is the path of a file or folder.
#[must_use]
pub fn is_path(setting: &str) -> bool {
    [PRECOMPUTED.name, QUERIES.name, FOLDER.name].contains(&setting)
}

/// The vectors of a file, found by text.
#[derive(Debug, Default)]
struct Table {
    /// Setting and path.
    name: String,
    dimensions: usize,
    vectors: Vec<f32>,
    /// Place of the vector of each text; `None` where records of one text have different vectors: it means none of them.
    places: HashMap<String, Option<usize>>,
}

impl Table {
    fn read(setting: &Setting, path: &str) -> Result<(Self, Sha256Hash), BuildError> {
        let name = format!("{} {path}", setting.name);
        let wrong = |problem: String| refused(format!("{name}: {problem}"));
        // a pipe or a device would be waited for
        let about = fs::metadata(path).map_err(|error| {
            wrong(format!("{error}; every machine that works on the run needs the file at this path"))
        })?;
        if !about.is_file() {
            return Err(wrong("it is no file".to_owned()));
        }
        let bytes = bounded::bytes(Path::new(path), MOST_BYTES).map_err(|error| wrong(error.to_string()))?;
        let mut table = Self { name: name.clone(), ..Self::default() };
        table.fill(&bytes, setting.name == QUERIES.name).map_err(wrong)?;
        Ok((table, Sha256Hash::of_bytes(&bytes)))
    }

    /// Takes in all records.
    ///
    /// # Errors
    /// The first that is wrong, by its number and its place. Nothing of the file is said: whoever names it for a worker may not be who may
    /// read it, and it may be any file of that machine.
    fn fill(&mut self, bytes: &[u8], are_queries: bool) -> Result<(), String> {
        let mut filling = Filling { table: self, are_queries, problem: None };
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let read = json.deserialize_seq(&mut filling).and_then(|()| json.end());
        let Filling { table, problem, .. } = filling;
        let number = table.len() + 1;
        match (read, problem) {
            (_, Some(problem)) => Err(format!("record {number}: {problem}")),
            (Err(error), None) => {
                let what = kind(bytes, &error);
                Err(format!("record {number}: {what} (line {}, column {})", error.line(), error.column()))
            }
            (Ok(()), None) if table.len() == 0 => Err("it has no records".to_owned()),
            (Ok(()), None) => Ok(()),
        }
    }

    fn len(&self) -> usize {
        self.vectors.len() / self.dimensions.max(1)
    }

    /// # Errors
    /// What is wrong with the record, to be put behind its number.
    fn add(&mut self, record: &Record, are_queries: bool) -> Result<(), String> {
        let Some(text) = record.text() else {
            let wanted = if are_queries { "'text' or 'query'" } else { "'text'" };
            return Err(format!("it has no {wanted}, by which its vector is found"));
        };
        let vector: Vec<f32> = record.embedding.iter().map(|number| *number as f32).collect();
        if vector.is_empty() {
            return Err("it has no 'embedding'".to_owned());
        }
        if self.dimensions == 0 {
            self.dimensions = vector.len();
        }
        if vector.len() != self.dimensions {
            let before = self.dimensions;
            return Err(format!("its embedding has {} numbers, those before it have {before}", vector.len()));
        }
        if let Some(at) = vector.iter().position(|number| !number.is_finite()) {
            return Err(format!("number {} of its embedding is too large", at + 1));
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err("its embedding is nothing but zeros, and has no direction".to_owned());
        }
        let at = self.len();
        match self.places.entry(text) {
            Entry::Vacant(free) => {
                free.insert(Some(at));
            }
            Entry::Occupied(mut known) => {
                let same = |at: usize| self.vectors[at * self.dimensions..][..self.dimensions] == vector;
                if !known.get().is_some_and(same) {
                    known.insert(None);
                }
            }
        }
        self.vectors.extend_from_slice(&vector);
        Ok(())
    }

    /// The vector of the first of these texts that the file knows.
    fn of_texts(&self, texts: &[String]) -> Result<&[f32], &'static str> {
        match texts.iter().find_map(|text| self.places.get(text)) {
            Some(Some(at)) => Ok(&self.vectors[at * self.dimensions..][..self.dimensions]),
            Some(None) => Err("there are several vectors, which differ,"),
            None => Err("there is no vector"),
        }
    }

    fn of_document(&self, document: Document<'_>) -> Result<&[f32], String> {
        let texts = texts_of(document);
        let own = texts.last().map(|text| shown(text)).unwrap_or_default();
        let lack = |found| format!("{}: {found} for {} ({own})", self.name, document.id());
        self.of_texts(&texts).map_err(lack)
    }

    fn of_query(&self, query: &str) -> Result<&[f32], String> {
        let texts = [query.trim().to_owned()];
        self.of_texts(&texts).map_err(|found| format!("{}: {found} for the query {}", self.name, shown(query)))
    }
}

/// The texts by which a turn or memory may be known: with its time, with its speaker, its words alone.
fn texts_of(document: Document<'_>) -> Vec<String> {
    let own = match document {
        Document::Turn(_, turn) => vec![turn.line(), turn.text.clone()],
        Document::Memory(memory) => vec![memory.text.clone()],
    };
    [document.text()].into_iter().chain(own).map(|text| text.trim().to_owned()).collect()
}

/// A text in quotes, cut where it is long.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("'{}{dots}'", cut.escape_debug())
}

/// What is wrong with a text, in words of our own: those of the reader repeat what stands there.
fn kind(bytes: &[u8], error: &serde_json::Error) -> String {
    if let Some(word) = no_number(bytes, error) {
        return format!("{word} is no number");
    }
    let what = match error.classify() {
        Category::Data => "a JSON array of records with 'text' and 'embedding', a list of numbers, is wanted",
        Category::Eof => "it ends in the middle",
        Category::Syntax | Category::Io => "it is no JSON",
    };
    what.to_owned()
}

/// The word that Python writes where JSON has no number, if that is what cannot be read.
fn no_number(bytes: &[u8], error: &serde_json::Error) -> Option<&'static str> {
    let line = bytes.split(|byte| *byte == b'\n').nth(error.line().checked_sub(1)?)?;
    let from = error.column().saturating_sub(2).min(line.len());
    let at = &line[from..line.len().min(from + 12)];
    ["NaN", "Infinity"].into_iter().find(|word| at.windows(word.len()).any(|window| window == word.as_bytes()))
}

/// A record as it is written.
#[derive(Deserialize)]
struct Record {
    #[serde(default, alias = "query")]
    text: Option<String>,
    #[serde(default)]
    canonical_name: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    content: String,
    #[serde(default)]
    why_it_matters: String,
    #[serde(default, alias = "vector")]
    embedding: Vec<f64>,
}

impl Record {
    fn text(&self) -> Option<String> {
        let of_belief = || {
            let names = [&self.canonical_name].into_iter().chain(&self.aliases);
            let parts = names.chain([&self.content, &self.why_it_matters]).filter(|part| !part.is_empty());
            parts.map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let text = self.text.clone().unwrap_or_else(of_belief);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// Fills a table, a record at a time: a file of many vectors is not held twice.
struct Filling<'t> {
    table: &'t mut Table,
    are_queries: bool,
    problem: Option<String>,
}

impl<'de> Visitor<'de> for &mut Filling<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON array of records with 'text' and 'embedding'")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<(), A::Error> {
        while let Some(record) = records.next_element::<Record>()? {
            if let Err(problem) = self.table.add(&record, self.are_queries) {
                self.problem = Some(problem);
                return Err(A::Error::custom("a record is wrong"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{Memory, Session, StreamEntry, Turn};
    use serde_json::{Value, json};

    use super::*;

    fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> Value {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("is written");
        path.display().to_string().into()
    }

    fn settings(memories: &str, queries: Option<&str>) -> (tempfile::TempDir, SystemSettings) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = SystemSettings::from([(PRECOMPUTED.name.to_owned(), file(&folder, "m.json", memories))]);
        settings.extend(queries.map(|queries| (QUERIES.name.to_owned(), file(&folder, "q.json", queries))));
        (folder, settings)
    }

    fn problem(memories: &str, queries: Option<&str>) -> String {
        let (folder, settings) = settings(memories, queries);
        let error = Given::read(&settings).err().expect("must be refused").to_string();
        error.replace(&folder.path().display().to_string(), "F").replace("memory system 'vector': ", "")
    }

    fn record(text: &str, numbers: &[f64]) -> Value {
        json!({"_id": format!("b-{text}"), "text": text, "embedding": numbers})
    }

    fn bank() -> BankContent {
        let memory = |id: &str, text: &str| Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() };
        let turn = Turn { id: "D1:1".to_owned(), speaker: "Ann".to_owned(), text: "Hi!".to_owned(), ..Turn::default() };
        let session = Session { id: "D1".to_owned(), turns: vec![turn], ..Session::default() };
        let entries = vec![
            StreamEntry::Session(session),
            StreamEntry::Memory(memory("M1", "tea ")),
            StreamEntry::Update { replaces: "M1".to_owned(), memory: Some(memory("M2", "coffee")) },
        ];
        BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_record() {
        insta::assert_snapshot!(problem("{}", None), @"vector.precomputed F/m.json: record 1: a JSON array of records with 'text' and 'embedding', a list of numbers, is wanted (line 1, column 0)");
        insta::assert_snapshot!(problem("[]", None), @"vector.precomputed F/m.json: it has no records");
        insta::assert_snapshot!(problem("[{\"text\": \"tea\", \"embedding\": [1, 2]}, {\"text\": \"x\",\n\"embedding\": [1, NaN]}]", None), @"vector.precomputed F/m.json: record 2: NaN is no number (line 2, column 18)");
        insta::assert_snapshot!(problem("[{\"text\": \"tea\", \"embedding\": [1, -Infinity]}]", None), @"vector.precomputed F/m.json: record 1: Infinity is no number (line 1, column 36)");
        insta::assert_snapshot!(problem("[{\"text\": \"tea\", \"embedding\": [1, null]}]", None), @"vector.precomputed F/m.json: record 1: a JSON array of records with 'text' and 'embedding', a list of numbers, is wanted (line 1, column 38)");
        insta::assert_snapshot!(problem("[{\"text\": \"tea\", \"embedding\": [1e39]}]", None), @"vector.precomputed F/m.json: record 1: number 1 of its embedding is too large");
        insta::assert_snapshot!(problem(&json!([record("tea", &[1.0, 2.0]), record("x", &[1.0])]).to_string(), None), @"vector.precomputed F/m.json: record 2: its embedding has 1 numbers, those before it have 2");
        insta::assert_snapshot!(problem(&json!([record("tea", &[0.0, 0.0])]).to_string(), None), @"vector.precomputed F/m.json: record 1: its embedding is nothing but zeros, and has no direction");
        insta::assert_snapshot!(problem(&json!([{"_id": "b-1", "embedding": [1]}]).to_string(), None), @"vector.precomputed F/m.json: record 1: it has no 'text', by which its vector is found");
        insta::assert_snapshot!(problem(&json!([{"text": "tea", "values": [1]}]).to_string(), None), @"vector.precomputed F/m.json: record 1: it has no 'embedding'");
        let two = json!([record("tea", &[1.0, 2.0])]).to_string();
        insta::assert_snapshot!(problem(&two, Some(&json!([record("what?", &[1.0])]).to_string())), @"vector.queries F/q.json: vectors of queries have 1 numbers, those of memories 2 (vector.precomputed F/m.json)");
        insta::assert_snapshot!(problem("[", None), @"vector.precomputed F/m.json: record 1: it ends in the middle (line 1, column 1)");
        let none = SystemSettings::from([(PRECOMPUTED.name.to_owned(), "/no/such/file".into())]);
        insta::assert_snapshot!(Given::read(&none).err().expect("must be refused").to_string(), @"memory system 'vector': vector.precomputed /no/such/file: No such file or directory (os error 2); every machine that works on the run needs the file at this path");
        let endless = SystemSettings::from([(PRECOMPUTED.name.to_owned(), "/dev/zero".into())]);
        insta::assert_snapshot!(Given::read(&endless).err().expect("must be refused").to_string(), @"memory system 'vector': vector.precomputed /dev/zero: it is no file");
        let queries = SystemSettings::from([(QUERIES.name.to_owned(), "/x".into())]);
        insta::assert_snapshot!(Given::read(&queries).err().expect("must be refused").to_string(), @"memory system 'vector': vector.queries names vectors of queries, and there are none of memories: give vector.precomputed too");
        let (_folder, mut hash) = settings(&two, None);
        hash.insert(MODEL.name.to_owned(), "hash".into());
        let said = Given::read(&hash).err().expect("must be refused").to_string();
        assert!(
            said.contains("vector.model=hash makes vectors of 384 numbers for queries, and those of memories have 2"),
            "{said}"
        );
    }

    #[test]
    fn nothing_of_a_file_is_said_that_holds_something_else() {
        let secret = "pw-hunter2";
        for file in [
            format!("{secret}\n"),
            format!("\"{secret}\""),
            format!("{{\"password\": \"{secret}\"}}"),
            format!("[\"{secret}\"]"),
            format!("[{{\"id\": \"{secret}\"}}]"),
            format!("[{{\"text\": \"{secret}\"}}]"),
            format!("[{{\"text\": \"{secret}\", \"embedding\": \"{secret}\"}}]"),
            format!("[{{\"text\": \"{secret}\", \"embedding\": [\"{secret}\"]}}]"),
            format!("[{{\"text\": \"{secret}\", \"embedding\": [1]}}, {{\"{secret}\": 1, \"id\": [\"{secret}\"]}}]"),
            format!("[{{\"text\": \"{secret}\", \"embedding\": [1]}}, {secret}]"),
            format!("[{{\"text\": \"{secret}\", \"embedding\": [1], \"embedding\": [\"{secret}\"]}}]"),
        ] {
            for said in [problem(&file, None), problem(&json!([record("tea", &[1.0])]).to_string(), Some(&file))] {
                assert!(said.contains(": record ") && !said.contains("hunter"), "{file}: {said}");
            }
        }
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large.json");
        fs::File::create(&path).and_then(|file| file.set_len(MOST_BYTES + 1)).expect("a file with a hole");
        let settings = SystemSettings::from([(PRECOMPUTED.name.to_owned(), path.display().to_string().into())]);
        let said = Given::read(&settings).err().expect("must be refused").to_string();
        assert!(said.ends_with("it has more than 256 MiB, and is not read"), "{said}");
    }

    #[test]
    fn vectors_are_found_by_the_words_that_they_were_made_of_and_never_by_an_id() {
        let all = [record("Ann: Hi!", &[1.0, 0.0]), record("tea", &[0.0, 1.0]), record("coffee", &[3.0, 3.0])];
        let queries = json!([{"id": "q1", "query": "Which drink?", "embedding": [1, 1]}]).to_string();
        let check = |memories: &[Value], question: &str| {
            let (folder, settings) = settings(&json!(memories).to_string(), Some(&queries));
            let given = GivenVectors::of_system("vector", &settings).expect("reads").expect("is given");
            let question = Question { question_id: "q7".to_owned(), text: question.to_owned(), ..Question::default() };
            let checked = given.check_bank(&bank(), [&question].into_iter());
            checked.map_err(|problem| problem.replace(&folder.path().display().to_string(), "F"))
        };
        assert_eq!(check(&all, "Which drink?"), Ok(()));
        insta::assert_snapshot!(check(&all, "Which tea?").expect_err("has none"), @"bank b, question q7: vector.queries F/q.json: there is no vector for the query 'Which tea?'");
        insta::assert_snapshot!(check(&all[..2], "Which drink?").expect_err("has none"), @"bank b: vector.precomputed F/m.json: there is no vector for M2 ('coffee')");
        let other = [all[0].clone(), all[2].clone(), json!({"_id": "M1", "text": "milk", "embedding": [1, 2]})];
        insta::assert_snapshot!(check(&other, "Which drink?").expect_err("an id says nothing"), @"bank b: vector.precomputed F/m.json: there is no vector for M1 ('tea')");
        let twice = [&all[..], &[record("tea", &[0.0, 2.0])]].concat();
        insta::assert_snapshot!(check(&twice, "Which drink?").expect_err("which of them?"), @"bank b: vector.precomputed F/m.json: there are several vectors, which differ, for M1 ('tea')");
        let same = [&all[..], &[record("tea", &[0.0, 1.0])]].concat();
        assert_eq!(check(&same, "Which drink?"), Ok(()));
    }

    #[tokio::test]
    async fn the_nearest_of_the_given_vectors_are_found_and_nobody_is_asked() {
        let memories = json!([record("Hi!", &[1.0, 0.0]), record("tea", &[0.9, 0.1]), record("coffee", &[0.0, 5.0])]);
        let queries = json!([record("strong?", &[0.1, 9.0]), record("hello?", &[7.0, 0.0])]).to_string();
        let (_folder, settings) = settings(&memories.to_string(), Some(&queries));
        assert_eq!(remote_model("vector", &settings), None);
        let system = crate::registry::build("vector", &settings, &BuildContext::default()).expect("builds");
        let version = system.capabilities().version.clone();
        assert!(version.starts_with("1.1.0+") && version.len() == 22, "{version}");
        let bank = crate::BankRef::outside_of_runs("b", bank());
        let find = async |text: &str, visible_entries| {
            let query = crate::RecallQuery { text, k: 9, visible_entries, ..crate::RecallQuery::default() };
            let hits = system.recall(&bank, &query).await?.hits;
            Ok::<_, Failure>(hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>())
        };
        assert_eq!(find("strong?", 3).await, Ok(vec!["M2".to_owned(), "D1:1".to_owned()]));
        assert_eq!(find("hello?", 2).await, Ok(vec!["D1:1".to_owned(), "M1".to_owned()]), "as far as it is visible");
        let unknown = find("weak?", 3).await.expect_err("has no vector");
        assert_eq!(unknown.code, MISSING);
        let receipt = system.retain(&bank, &bank.content.as_ref().expect("is there").entries, StepContext::default());
        assert_eq!(receipt.await.expect("nothing is embedded").build_us, 0);
        let mut embedded = settings.clone();
        embedded.remove(QUERIES.name);
        assert!(remote_model("vector", &embedded).is_some_and(|model| model.name == "text-embedding-3-small"));
        assert!(!embeds_banks(&embedded) && embeds_banks(&without_given(&embedded)));
    }

    #[test]
    fn a_belief_has_the_text_that_systems_are_given() {
        let record: Record = serde_json::from_value(json!({
            "_id": "b", "canonical_name": "style", "aliases": ["tone", "voice"], "content": "Is brief.", "why_it_matters": "",
            "embedding": [1]
        }))
        .expect("reads");
        assert_eq!(record.text().as_deref(), Some("style tone voice Is brief."));
    }
}
