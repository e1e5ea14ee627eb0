//! From stream entries to what a request carries: turns or sessions, texts that are too long split in parts.

use bench_proto::dataset::{Memory, Session, StreamEntry, Turn};
use serde_json::{Value, json};

use super::{
    process::ProcessItem,
    spec::Unit,
    template::{Template, Vars},
};

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
    "messages",
    "metadata",
    "document64",
];

/// Something that is stored as one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// Id of the turn, memory or session; parts after the first are `id#2`, `id#3`, …
    pub(super) id: String,
    session_id: String,
    speaker: String,
    role: &'static str,
    text: String,
    time: Option<String>,
    time_text: Option<String>,
    messages: Vec<(String, &'static str, String)>,
}

/// The items of some entries. `text_bytes` bounds the text of one; the date that `{content}` puts before it is counted too.
pub(super) fn items_of(entries: &[StreamEntry], unit: Unit, text_bytes: Option<u32>) -> Vec<Item> {
    let mut items = Vec::new();
    for entry in entries {
        match entry {
            StreamEntry::Session(session) if unit == Unit::Session => items.extend(of_session(session)),
            StreamEntry::Session(session) => {
                let first = session.turns.first().map(|turn| turn.speaker.as_str());
                items.extend(session.turns.iter().map(|turn| of_turn(session, turn, first)));
            }
            StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                items.push(of_memory(memory));
            }
            StreamEntry::Update { memory: None, .. } => {}
        }
    }
    // a system has nothing to remember of an empty line, and many refuse it
    items.retain(|item| !item.text.trim().is_empty());
    match text_bytes {
        Some(most) => items.into_iter().flat_map(|item| split(item, most as usize)).collect(),
        None => items,
    }
}

fn role_of(turn: &Turn, first: Option<&str>) -> &'static str {
    match turn.speaker.to_lowercase().as_str() {
        "assistant" | "ai" | "bot" | "system" => "assistant",
        "user" => "user",
        _ if Some(turn.speaker.as_str()) == first => "user",
        _ => "assistant",
    }
}

fn of_turn(session: &Session, turn: &Turn, first: Option<&str>) -> Item {
    let line = if turn.text.trim().is_empty() && turn.caption.is_none() { String::new() } else { turn.line() };
    let role = role_of(turn, first);
    Item {
        id: turn.id.clone(),
        session_id: session.id.clone(),
        speaker: turn.speaker.clone(),
        role,
        messages: vec![(turn.speaker.clone(), role, line.clone())],
        text: line,
        time: session.time.clone(),
        time_text: session.time_text.clone(),
    }
}

fn of_session(session: &Session) -> Option<Item> {
    let first = session.turns.first().map(|turn| turn.speaker.as_str());
    let turns: Vec<Item> = session.turns.iter().map(|turn| of_turn(session, turn, first)).collect();
    let messages: Vec<_> = turns.into_iter().flat_map(|item| item.messages).filter(|m| !m.2.is_empty()).collect();
    let text = messages.iter().map(|(_, _, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    Some(Item {
        id: session.id.clone(),
        session_id: session.id.clone(),
        speaker: String::new(),
        role: "user",
        text,
        time: session.time.clone(),
        time_text: session.time_text.clone(),
        messages,
    })
}

fn of_memory(memory: &Memory) -> Item {
    Item {
        id: memory.id.clone(),
        session_id: memory.id.clone(),
        speaker: String::new(),
        role: "user",
        text: memory.text.clone(),
        time: memory.time.clone(),
        time_text: memory.time.clone(),
        messages: vec![(String::new(), "user", memory.text.clone())],
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
        messages: vec![(item.speaker.clone(), item.role, text.clone())],
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

impl Item {
    fn content(&self) -> String {
        match &self.time_text {
            Some(time) => format!("[{time}] {}", self.text),
            None => self.text.clone(),
        }
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
            time: self.time.as_deref().and_then(utc).map(|zoned| zoned.timestamp().to_string()),
            time_text: self.time_text.clone(),
        }
    }

    /// Its id, and the texts under which a system may hand it back.
    pub(super) fn texts(&self) -> (String, [String; 2]) {
        (self.id.clone(), [self.text.trim().to_owned(), self.content().trim().to_owned()])
    }

    /// Its variables. `bank` makes `{key}` different in each bank and generation, and the same at each try.
    pub(super) fn vars(&self, bank: &str, index: u64, message: Option<&Template>) -> Vars {
        let content = self.content();
        let utc = self.time.as_deref().and_then(utc);
        let iso = utc.as_ref().map(|zoned| zoned.timestamp().to_string());
        let messages: Vec<Value> = self
            .messages
            .iter()
            .map(|(speaker, role, line)| {
                let vars = Vars::default()
                    .with("speaker", speaker.as_str())
                    .with("role", *role)
                    .with("text", line.as_str())
                    .with("time", iso.clone())
                    .with("session_id", self.session_id.as_str());
                let plain = json!({ "role": role, "content": line });
                message.and_then(|template| template.render(&vars)).unwrap_or(plain)
            })
            .collect();
        Vars::default()
            .with("id", self.id.as_str())
            .with("key", format!("{bank}-{}", self.id.replace([':', '#', '/'], "-")))
            .with("text", self.text.as_str())
            .with("tagged", format!("[{}] {content}", self.id))
            .with("base64", base64(&content))
            .with("document64", base64(&self.document()))
            .with("content", content)
            .with("speaker", if self.speaker.is_empty() { Value::Null } else { self.speaker.as_str().into() })
            .with("role", self.role)
            .with("session_id", self.session_id.as_str())
            .with("time", iso)
            .with("time_text", self.time_text.clone())
            .with("time_unix", utc.as_ref().map(|zoned| zoned.timestamp().as_second()))
            .with("time_ms", utc.as_ref().map(|zoned| zoned.timestamp().as_millisecond()))
            .with("index", index)
            .with("messages", messages)
            .with("metadata", json!({ "id": self.id, "session_id": self.session_id, "time": self.time_text }))
    }
}

/// A time of the dataset, which has no zone, as if it were in UTC.
fn utc(time: &str) -> Option<jiff::Zoned> {
    time.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()
}

fn base64(text: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session(lines: &[&str]) -> StreamEntry {
        let turn = |(at, line): (usize, &&str)| Turn {
            id: format!("D1:{}", at + 1),
            speaker: ["Ann", "Bo"][at % 2].to_owned(),
            text: (*line).to_owned(),
            caption: None,
        };
        StreamEntry::Session(Session {
            id: "D1".to_owned(),
            time_text: Some("1:56 pm on 8 May, 2023".to_owned()),
            time: Some("2023-05-08T13:56:00".to_owned()),
            turns: lines.iter().enumerate().map(turn).collect(),
        })
    }

    #[test]
    fn turns_and_sessions_become_items() {
        let entries = [session(&["hello", "", "bye"])];
        let turns = items_of(&entries, Unit::Turn, None);
        assert_eq!(
            turns.iter().map(|i| (i.id.as_str(), i.role)).collect::<Vec<_>>(),
            [("D1:1", "user"), ("D1:3", "user")]
        );
        let sessions = items_of(&entries, Unit::Session, None);
        assert_eq!((sessions.len(), sessions[0].text.as_str()), (1, "Ann: hello\nAnn: bye"));
        let all = Template::compile(&json!(["{key}", "{time}", "{time_unix}", "{time_ms}", "{content}"]), ITEM_VARS);
        let rendered = all.expect("compiles").render(&turns[0].vars("bench-1-g1", 0, None)).expect("renders");
        let expected = json!([
            "bench-1-g1-D1-1",
            "2023-05-08T13:56:00Z",
            1_683_554_160,
            1_683_554_160_000_i64,
            "[1:56 pm on 8 May, 2023] Ann: hello"
        ]);
        assert_eq!(rendered, expected);
    }

    proptest! {
        /// Splitting loses nothing and no part is too long.
        #[test]
        fn long_texts_are_split_and_not_clipped(text in "[a-z🪁é \n]{1,2000}", most in 200_u32..600) {
            let parts = items_of(&[session(&[&text])], Unit::Turn, Some(most));
            let joined: String = parts.iter().map(|part| part.text.as_str()).collect();
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            if !text.trim().is_empty() {
                prop_assert_eq!(letters(&joined), letters(&format!("Ann: {text}")));
            }
            for part in &parts {
                prop_assert!(part.content().len() <= most as usize);
                prop_assert_eq!(whole_id(&part.id), "D1:1");
            }
        }
    }
}
