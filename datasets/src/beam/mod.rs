//! BEAM: long chats of one user with an assistant, and twenty questions on each, two of each of ten kinds.
//!
//! Published as folders: `chats/<size>/<chat>/` holds the chat and `probing_questions/probing_questions.json`. A chat is a
//! list of batches, a batch a list of groups of messages (what the user asks, the reply, what follows from it). A group is a
//! session here: with batches, of which a chat has three to five, whatever is recalled would hit the right session.

mod chat;
mod defects;
mod marker;
mod questions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::dataset::{Bank, BankContent};

use crate::{Dataset, DatasetError, OpenOptions, Opening, broken::broken, by_file::ByFile, files::Files, notes::Notes};
use defects::Defects;

/// Where the questions of a chat are, below its folder.
const QUESTIONS: &str = "probing_questions/probing_questions.json";

/// The chat below its folder: where there is a shortened one (spelled so) it is what the official code reads.
const CHATS: [&str; 2] = ["chat_trunecated.json", "chat.json"];

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Opens the chats of the size that is the variant.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let defects = Defects::read(&opening.options().settings)?;
    let options = OpenOptions { settings: BTreeMap::new(), ..opening.options().clone() };
    let opening = &Opening { options: &options, ..*opening };
    let files = opening.files()?;
    let size = opening.manifest().name.split_once('@').map_or("100k", |(_, size)| size).to_uppercase();
    let chats = chats(&size, files.list("")).map_err(|error| files.located(error))?;
    let read = |files: &Files, chat: &Chat, notes: &mut Notes| {
        let bank = bank(chat, |name| files.read(name), notes)?;
        Ok(vec![bank])
    };
    let mut dataset = ByFile::open(opening, files, chats, read)?;
    defects.apply(&mut dataset.about.profile);
    dataset.about.settings = defects.settings();
    Ok(Box::new(dataset))
}

/// The files of a chat.
#[derive(Debug)]
struct Chat {
    number: u64,
    questions: String,
    /// One, or one for each of its plans, in their order.
    messages: Vec<String>,
}

/// The chats of a size (`100K`), by their numbers, among files with these names.
fn chats<'a>(size: &str, names: impl Iterator<Item = &'a str>) -> Result<Vec<Chat>, DatasetError> {
    let names: BTreeSet<&str> = names.collect();
    let chats: Vec<Chat> = folders(size, &names)
        .into_iter()
        .map(|(number, folder)| {
            let messages = chat_files(folder, &names)?;
            Ok(Chat { number, questions: format!("{folder}{QUESTIONS}"), messages })
        })
        .collect::<Result<_, DatasetError>>()?;
    if chats.is_empty() {
        let problem = format!("no chat of the size {size}: a file {size}/<number>/{QUESTIONS} is expected for each");
        return Err(DatasetError::NotFound(format!("dataset 'beam' has {problem}")));
    }
    Ok(chats)
}

/// Reads a chat and its questions; `read` gives the content of a file.
fn bank(
    chat: &Chat,
    read: impl Fn(&str) -> Result<Vec<u8>, DatasetError>,
    notes: &mut Notes,
) -> Result<Bank, DatasetError> {
    let mut content = BankContent { bank_id: format!("chat-{}", chat.number), ..BankContent::default() };
    let mut messages = chat::Messages::default();
    for path in &chat.messages {
        chat::add(chat::batches(path, &read(path)?)?, &mut content, &mut messages, notes);
    }
    let kinds = questions::parse(&chat.questions, &read(&chat.questions)?)?;
    Ok(questions::bank(content, kinds, &messages, notes))
}

/// The folders of the chats of a size, each with `/` at its end, by their numbers.
fn folders<'a>(size: &str, names: &BTreeSet<&'a str>) -> BTreeSet<(u64, &'a str)> {
    let chat = |name: &&'a str| {
        let folder = name.strip_suffix(QUESTIONS)?;
        let mut parts = folder.strip_suffix('/')?.rsplit('/');
        let (number, of_size) = (parts.next()?, parts.next()?);
        (of_size == size).then_some((number.parse().ok()?, folder))
    };
    names.iter().filter_map(chat).collect()
}

/// The files of a chat in their order: one, or one for each of its plans.
fn chat_files(folder: &str, names: &BTreeSet<&str>) -> Result<Vec<String>, DatasetError> {
    let there = |folder: &str| {
        let mut paths = CHATS.iter().map(|file| format!("{folder}{file}"));
        paths.find(|path| names.contains(path.as_str()))
    };
    if let Some(path) = there(folder) {
        return Ok(vec![path]);
    }
    let plan = |name: &&str| chat::plan_number(name.strip_prefix(folder)?.split_once('/')?.0);
    let plans: BTreeSet<u64> = names.iter().filter_map(plan).collect();
    let files: Vec<String> = plans.iter().filter_map(|plan| there(&format!("{folder}plan-{plan}/"))).collect();
    if files.is_empty() {
        return Err(broken(
            folder,
            "chat",
            format!("neither {} nor folders plan-<number> with one", CHATS.join(" nor ")),
        ));
    }
    Ok(files)
}
