//! From stream entries to what a request carries: turns or sessions, texts that are too long split in parts, and what an item
//! does to those before it.
//!
//! In come entries as the dataset has them; out come [`Item`]s with their ids, texts and times, ready for a template or a
//! process, and what they replace. Start reading at `Cut::items` (what is sent) and `Cut::expected` (what must be found
//! afterwards). Pure: nothing is sent here.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    canary,
    dataset::{BankContent, Memory, Session, StreamEntry, Time, Turn},
    failure::Failure,
};
use serde_json::{Value, json};

use super::{
    process_item::ProcessItem,
    spec::{AdapterSpec, Unit},
    template::{Template, Vars},
};
use crate::{BankRef, Capabilities};

/// Items that a page of a listing is asked for.
pub(super) const PAGE_ITEMS: u32 = 200;

/// Names of an item's variables.
pub(super) const ITEM_VARS: &[&str] = &[
    "id",
    "key",
    "text",
    "content",
    "tagged",
    "base64",
    "speaker",
    "role",
    "session_id",
    "time",
    "time_text",
    "time_unix",
    "time_ms",
    "index",
    "turn",
    "messages",
    "metadata",
    "document64",
    "tags",
    "user",
    "scope",
    "scopes",
    "fields",
];

/// Names of the variables of what an update or a withdrawal takes away.
pub(super) const REPLACED_VARS: &[&str] = &["replaces", "replaces_key"];

/// Something that is stored as one, or taken away.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// Id of the turn, memory or session; parts of a text after the first are `id#2`, `id#3`, …
    pub(super) id: String,
    /// What it does to those before it.
    pub(super) change: Change,
    session_id: String,
    /// The number of a turn in its session, from 0.
    turn: Option<u64>,
    speaker: String,
    role: &'static str,
    text: String,
    time: Option<String>,
    time_text: Option<String>,
    messages: Vec<Message>,
    labels: Labels,
}

/// What an item does to those before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Change {
    /// It is one more.
    #[default]
    Adds,
    /// It comes in place of what was stored under these ids: a memory, in as many parts as it was cut into.
    Replaces(Vec<String>),
    /// It holds nothing: what was stored under these ids goes.
    Withdraws(Vec<String>),
}

/// One line of an item.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    speaker: String,
    role: &'static str,
    line: String,
    time: Option<String>,
    /// The words for its time.
    time_text: Option<String>,
    /// Its time is not the item's.
    has_own_time: bool,
}

impl Message {
    /// With its time, where that is not the item's.
    fn with_own_time(&self) -> String {
        behind(self.time_text.as_deref().filter(|_| self.has_own_time), &self.line)
    }

    /// With its time, where it has one.
    fn dated(&self) -> String {
        let time = self.time.as_deref().and_then(rfc3339);
        behind(time.as_deref().or(self.time_text.as_deref()), &self.line)
    }
}

/// A text behind its date.
pub(super) fn behind(date: Option<&str>, text: &str) -> String {
    date.map_or_else(|| text.to_owned(), |date| format!("[{date}] {text}"))
}

/// What a memory carries beside its text.
#[derive(Debug, Clone, Default, PartialEq)]
struct Labels {
    tags: Vec<String>,
    user: Option<String>,
    scopes: Vec<String>,
    fields: BTreeMap<String, String>,
}

/// What a session was before one of its parts.
#[derive(Debug, Clone, Copy)]
struct Began<'s> {
    /// Who speaks first in it.
    speaker: Option<&'s str>,
    /// Turns of the parts before.
    turns: u64,
}

/// How a stream is cut into items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut<'a> {
    /// What one item is.
    pub(super) unit: Unit,
    /// Most bytes of an item's text; the date that `{content}` puts before it is counted too.
    pub(super) text_bytes: Option<u32>,
    /// The whole bank, in which entries find what they go on with or replace.
    pub(super) content: Option<&'a BankContent>,
}

impl<'a> Cut<'a> {
    /// How the stream of a bank is cut for a system.
    pub(super) fn for_bank(spec: &AdapterSpec, bank: &'a BankRef) -> Self {
        Self { unit: spec.unit, text_bytes: spec.limits.text_bytes, content: bank.content.as_deref() }
    }

    /// What the bank holds after its first entries, in a system that can do this much.
    ///
    /// # Errors
    /// As [`Cut::items`].
    pub(super) fn expected(&self, entries: u32, can: &Capabilities) -> Result<Vec<Item>, Failure> {
        let Some(content) = self.content else { return Ok(Vec::new()) };
        self.held(&content.entries[..content.entries.len().min(entries as usize)], can.updates, can.withdraws)
    }

    /// The items of some entries, in order.
    ///
    /// # Errors
    /// A turn is replaced or withdrawn by itself, and is stored as a part of its session.
    pub(super) fn items(&self, entries: &[StreamEntry]) -> Result<Vec<Item>, Failure> {
        self.items_and_ends(entries).map(|(items, _)| items)
    }

    /// The same, and for each entry the number of items up to its end.
    ///
    /// # Errors
    /// As [`Cut::items`].
    pub(super) fn items_and_ends(&self, entries: &[StreamEntry]) -> Result<(Vec<Item>, Vec<usize>), Failure> {
        let (mut items, mut ends) = (Vec::new(), Vec::with_capacity(entries.len()));
        let mut first: Option<(&str, Began<'_>)> = None; // the session that is under way, and what was before
        for entry in entries {
            match entry {
                StreamEntry::Session(session) => {
                    let began = match first {
                        Some((id, began)) if session.part > 0 && id == session.id => began,
                        // the bank is asked once for each session, and not for each of its parts
                        _ => Began { speaker: self.who_began(session), turns: self.turns_before(session) },
                    };
                    first = Some((&session.id, Began { turns: began.turns + session.turns.len() as u64, ..began }));
                    items.extend(self.of_session(session, began));
                }
                StreamEntry::Memory(memory) => items.extend(self.parts(of_memory(memory))),
                StreamEntry::Update { replaces, memory } => {
                    let gone = self.stored_as(replaces)?;
                    let replaced =
                        |gone| if gone == Vec::<String>::new() { Change::Adds } else { Change::Replaces(gone) };
                    match memory.as_ref().map(of_memory).filter(Item::says_something) {
                        Some(new) => items.extend(self.parts(Item { change: replaced(gone), ..new })),
                        None if gone.is_empty() => {}
                        None => {
                            let nothing = of_memory(&Memory { id: replaces.clone(), ..Memory::default() });
                            items.push(Item { change: Change::Withdraws(gone), ..nothing });
                        }
                    }
                }
            }
            ends.push(items.len());
        }
        Ok((items, ends))
    }

    /// What a bank holds after some entries; of a system that `updates` or `withdraws`, without what was taken away.
    ///
    /// # Errors
    /// As [`Cut::items`].
    fn held(&self, entries: &[StreamEntry], updates: bool, withdraws: bool) -> Result<Vec<Item>, Failure> {
        let (mut held, mut at): (Vec<Option<Item>>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
        for item in self.items(entries)? {
            let gone = match &item.change {
                Change::Replaces(gone) if updates => gone.as_slice(),
                Change::Withdraws(gone) if withdraws => gone.as_slice(),
                _ => &[],
            };
            for id in gone {
                if let Some(place) = at.remove(id) {
                    held[place] = None;
                }
            }
            if !matches!(item.change, Change::Withdraws(_)) {
                at.insert(item.id.clone(), held.len());
                held.push(Some(item));
            }
        }
        Ok(held.into_iter().flatten().collect())
    }

    fn of_session(&self, session: &Session, began: Began<'_>) -> Vec<Item> {
        let whole = match self.unit {
            Unit::Session => vec![of_session(session, began.speaker)],
            Unit::Turn => {
                let numbered = session.turns.iter().zip(began.turns..);
                numbered.map(|(turn, number)| of_turn(session, turn, began.speaker, number)).collect()
            }
        };
        whole.into_iter().flat_map(|item| self.parts(item)).collect()
    }

    /// An item in parts that are not too long; none of one that says nothing, which many systems refuse.
    fn parts(&self, item: Item) -> Vec<Item> {
        match self.text_bytes {
            _ if !item.says_something() => Vec::new(),
            Some(most) => split(item, most as usize),
            None => vec![item],
        }
    }

    /// Turns of a session in the parts before this one.
    fn turns_before(&self, session: &Session) -> u64 {
        let turns_of = |entry: &StreamEntry| match entry {
            StreamEntry::Session(other) if other.id == session.id && other.part < session.part => {
                other.turns.len() as u64
            }
            _ => 0,
        };
        let whole = self.content.filter(|_| session.part > 0);
        whole.map_or(0, |content| content.entries.iter().map(turns_of).sum())
    }

    /// Who speaks first in a session, of which this may be a later part.
    fn who_began<'s>(&'s self, session: &'s Session) -> Option<&'s str> {
        let begins = |entry: &'s StreamEntry| match entry {
            StreamEntry::Session(first) if first.id == session.id => first.turns.first(),
            _ => None,
        };
        let whole = self.content.filter(|_| session.part > 0).map(|content| &content.entries);
        let first = whole.and_then(|entries| entries.iter().find_map(begins)).or_else(|| session.turns.first());
        first.map(|turn| turn.speaker.as_str())
    }

    /// The ids under which a memory or turn was stored: several where its text was too long for one; none of what is not in the
    /// bank.
    fn stored_as(&self, id: &str) -> Result<Vec<String>, Failure> {
        let Some(content) = self.content else { return Ok(vec![id.to_owned()]) };
        for entry in &content.entries {
            let found = match entry {
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    (memory.id == id).then(|| of_memory(memory))
                }
                StreamEntry::Session(session) => match session.turns.iter().find(|turn| turn.id == id) {
                    Some(_) if self.unit == Unit::Session => {
                        return Err(Failure::permanent(
                            "system_cannot",
                            format!(
                                "turn {id} is replaced or withdrawn by itself, and the adapter stores sessions (`unit: session`)"
                            ),
                        ));
                    }
                    turn => turn.map(|turn| of_turn(session, turn, None, 0)),
                },
                StreamEntry::Update { memory: None, .. } => None,
            };
            if let Some(item) = found {
                return Ok(self.parts(item).into_iter().map(|part| part.id).collect());
            }
        }
        Ok(Vec::new())
    }
}

/// Bytes of the texts of memories that are stored together, where one alone is not longer.
const TOGETHER_BYTES: usize = 4 << 20;

/// How many of the next entries are stored together: single memories, as many as a system takes and as many as have room in
/// a request that is not too large. A session goes by itself, as it always has: what a system makes of two in one request is not
/// what it makes of each. What replaces or withdraws goes by itself too. Where turns are stored by themselves and several in
/// a request (`by_turn`), some facts of the run's own (P45) go with the session before them.
pub(super) fn together(entries: &[StreamEntry], most: u32, by_turn: bool) -> usize {
    if by_turn
        && most > 1
        && let [StreamEntry::Session(session), fact, ..] = entries
        && session.turns.len() > 1
        && canary::goes_along(fact)
    {
        return 2;
    }
    let mut bytes = 0;
    let fits = |entry: &&StreamEntry| match entry {
        StreamEntry::Memory(memory) => {
            bytes += memory.text.len();
            bytes <= TOGETHER_BYTES
        }
        StreamEntry::Session(_) | StreamEntry::Update { .. } => false,
    };
    entries.iter().take(most as usize).take_while(fits).count().max(1).min(entries.len())
}

fn role_of(turn: &Turn, first: Option<&str>) -> &'static str {
    match turn.speaker.to_lowercase().as_str() {
        "assistant" | "ai" | "bot" | "system" => "assistant",
        "user" => "user",
        _ if Some(turn.speaker.as_str()) == first => "user",
        _ => "assistant",
    }
}

fn message_of(turn: &Turn, first: Option<&str>, time: Time<'_>, own: bool) -> Message {
    let says_nothing = turn.text.trim().is_empty() && turn.caption.is_none();
    Message {
        speaker: turn.speaker.clone(),
        role: role_of(turn, first),
        line: if says_nothing { String::new() } else { turn.line() },
        time: time.iso.map(str::to_owned),
        time_text: time.text.map(str::to_owned),
        has_own_time: own,
    }
}

fn of_turn(session: &Session, turn: &Turn, first: Option<&str>, number: u64) -> Item {
    let time = session.time_of(turn);
    // the item's time is the turn's
    let message = message_of(turn, first, time, false);
    Item {
        id: turn.id.clone(),
        change: Change::Adds,
        session_id: session.id.clone(),
        turn: Some(number),
        speaker: turn.speaker.clone(),
        role: message.role,
        text: message.line.clone(),
        time: time.iso.map(str::to_owned),
        time_text: time.text.map(str::to_owned),
        messages: vec![message],
        labels: Labels::default(),
    }
}

/// Id of the item that is a session or a part of one.
pub(super) fn session_item_id(session: &Session) -> String {
    match session.part {
        0 => session.id.clone(),
        part => format!("{}-part-{}", session.id, part + 1),
    }
}

fn of_session(session: &Session, first: Option<&str>) -> Item {
    let message = |turn| message_of(turn, first, session.time_of(turn), turn.has_own_time());
    let messages: Vec<Message> = session.turns.iter().map(message).filter(|message| !message.line.is_empty()).collect();
    let time = session.shown_time();
    Item {
        id: session_item_id(session),
        change: Change::Adds,
        session_id: session.id.clone(),
        turn: None,
        speaker: String::new(),
        role: "user",
        text: messages.iter().map(Message::with_own_time).collect::<Vec<_>>().join("\n"),
        time: time.iso.map(str::to_owned),
        time_text: time.text.map(str::to_owned),
        messages,
        labels: Labels::default(),
    }
}

fn of_memory(memory: &Memory) -> Item {
    let Memory { id, text, time, tags, user, scopes, fields } = memory.clone();
    let message = Message {
        speaker: String::new(),
        role: "user",
        line: text.clone(),
        time: time.clone(),
        time_text: time.clone(),
        has_own_time: false,
    };
    Item {
        session_id: id.clone(),
        turn: None,
        id,
        change: Change::Adds,
        speaker: String::new(),
        role: "user",
        text,
        time_text: time.clone(),
        time,
        messages: vec![message],
        labels: Labels { tags, user, scopes, fields },
    }
}

/// Parts of at most `most` bytes, cut at white space where there is some in the last quarter.
fn split(item: Item, most: usize) -> Vec<Item> {
    let dated = item.content().len() - item.text.len() + item.id.len() + 8;
    let most = most.saturating_sub(dated).max(64);
    if item.text.len() <= most {
        return vec![item];
    }
    let (mut parts, mut rest) = (Vec::new(), item.text.as_str());
    while !rest.is_empty() {
        let mut end = most.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        if end < rest.len()
            && let Some(space) = rest[..end].rfind(char::is_whitespace)
            && space > end / 4 * 3
        {
            end = space;
        }
        let (part, tail) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = tail;
    }
    let part = |(at, text): (usize, String)| Item {
        id: part_id(&item.id, at),
        change: if at == 0 { item.change.clone() } else { Change::Adds },
        messages: vec![Message {
            speaker: item.speaker.clone(),
            role: item.role,
            line: text.clone(),
            time: item.time.clone(),
            time_text: item.time_text.clone(),
            has_own_time: false,
        }],
        text,
        ..item.clone()
    };
    parts.into_iter().filter(|text| !text.trim().is_empty()).enumerate().map(part).collect()
}

fn part_id(id: &str, at: usize) -> String {
    if at == 0 { id.to_owned() } else { format!("{id}#{}", at + 1) }
}

/// The dataset's id of what may be a part.
pub(super) fn whole_id(id: &str) -> &str {
    match id.rsplit_once('#') {
        Some((whole, number)) if number.parse::<u32>().is_ok() => whole,
        _ => id,
    }
}

/// The id of an item as it stands in keys.
fn key_of(bank: &str, id: &str) -> String {
    format!("{bank}-{}", id.replace([':', '#', '/'], "-"))
}

/// The variables of what an update or a withdrawal takes away.
pub(super) fn replaced_vars(vars: Vars, bank: &str, id: &str) -> Vars {
    vars.with("replaces", id).with("replaces_key", key_of(bank, id))
}

impl Item {
    fn says_something(&self) -> bool {
        !self.text.trim().is_empty()
    }

    fn content(&self) -> String {
        behind(self.time_text.as_deref(), &self.text)
    }

    /// The item with this time where it has none that can be read; its messages likewise.
    #[must_use]
    pub(super) fn or_at(mut self, undated: &str) -> Self {
        for time in self.messages.iter_mut().map(|said| &mut said.time).chain([&mut self.time]) {
            if time.as_deref().and_then(utc).is_none() {
                *time = Some(undated.to_owned());
            }
        }
        self
    }

    /// A Markdown document with its session and date in front.
    fn document(&self) -> String {
        let date = self.time_text.as_deref().map(|time| format!("session_date: {time}\n")).unwrap_or_default();
        format!("---\nsession_id: {}\n{date}---\n\n{}\n", self.session_id, self.text)
    }

    /// The item as a process gets it.
    pub(super) fn for_process(&self) -> ProcessItem {
        let content = self.content();
        ProcessItem {
            id: self.id.clone(),
            text: self.text.clone(),
            content,
            speaker: Some(self.speaker.clone()).filter(|speaker| !speaker.is_empty()),
            role: self.role.to_owned(),
            session_id: self.session_id.clone(),
            time: self.time.as_deref().and_then(rfc3339),
            time_text: self.time_text.clone(),
            tags: self.labels.tags.clone(),
            user: self.labels.user.clone(),
            scopes: self.labels.scopes.clone(),
            fields: self.labels.fields.clone(),
        }
    }

    /// Its id, and the texts under which a system may hand it back.
    pub(super) fn texts(&self) -> (String, [String; 2]) {
        (self.id.clone(), [self.text.trim().to_owned(), self.content().trim().to_owned()])
    }

    /// Its `{key}` in a bank.
    pub(super) fn key(&self, bank: &str) -> String {
        key_of(bank, &self.id)
    }

    fn message(&self, said: &Message, template: Option<&Template>) -> Value {
        let utc = said.time.as_deref().and_then(utc).map(|zoned| zoned.timestamp());
        let vars = Vars::default()
            .with("speaker", if said.speaker.is_empty() { Value::Null } else { said.speaker.as_str().into() })
            .with("role", said.role)
            .with("text", said.line.as_str())
            .with("dated", said.dated())
            .with("time", utc.map(|at| at.to_string()))
            .with("time_unix", utc.map(jiff::Timestamp::as_second))
            .with("time_ms", utc.map(jiff::Timestamp::as_millisecond))
            .with("session_id", self.session_id.as_str());
        let plain = || json!({ "role": said.role, "content": said.with_own_time() });
        template.and_then(|template| template.render(&vars)).unwrap_or_else(plain)
    }

    /// Its variables; those that take some making, where `wanted`. `bank` makes `{key}` different in each bank and generation, and the
    /// same at each try.
    pub(super) fn vars(
        &self,
        bank: &str,
        index: u64,
        message: Option<&Template>,
        wanted: impl Fn(&str) -> bool,
    ) -> Vars {
        let content = self.content();
        let utc = self.time.as_deref().and_then(utc);
        let iso = utc.as_ref().map(|zoned| zoned.timestamp().to_string());
        let made = |name: &'static str, make: &dyn Fn() -> Value| if wanted(name) { make() } else { Value::Null };
        let messages = || -> Value { self.messages.iter().map(|said| self.message(said, message)).collect() };
        Vars::default()
            .with("id", self.id.as_str())
            .with("key", self.key(bank))
            .with("text", self.text.as_str())
            .with("tagged", made("tagged", &|| format!("[{}] {content}", self.id).into()))
            .with("base64", made("base64", &|| base64(&content).into()))
            .with("document64", made("document64", &|| base64(&self.document()).into()))
            .with("messages", made("messages", &messages))
            .with("content", content)
            .with("speaker", if self.speaker.is_empty() { Value::Null } else { self.speaker.as_str().into() })
            .with("role", self.role)
            .with("session_id", self.session_id.as_str())
            .with("time", iso)
            .with("time_text", self.time_text.clone())
            .with("time_unix", utc.as_ref().map(|zoned| zoned.timestamp().as_second()))
            .with("time_ms", utc.as_ref().map(|zoned| zoned.timestamp().as_millisecond()))
            .with("index", index)
            .with("turn", self.turn)
            .with("tags", self.labels.tags.clone())
            .with("user", self.labels.user.clone())
            .with("scope", self.labels.scopes.first().cloned())
            .with("scopes", self.labels.scopes.clone())
            .with("fields", json!(self.labels.fields))
            .with("metadata", json!({ "id": self.id, "session_id": self.session_id, "time": self.time_text }))
    }
}

/// A time of the dataset, which has no zone, as if it were in UTC.
fn utc(time: &str) -> Option<jiff::Zoned> {
    time.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()
}

/// A time in RFC 3339, as it goes over the wire.
pub(super) fn rfc3339(time: &str) -> Option<String> {
    utc(time).map(|zoned| zoned.timestamp().to_string())
}

fn base64(text: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}
