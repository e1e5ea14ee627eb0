//! The searchable units of a bank: its turns and memories, as far as a query may see them.

use std::collections::{HashMap, HashSet};

use bench_proto::{
    dataset::{BankContent, Filter, Memory, Session, StreamEntry, Time, Turn},
    failure::Failure,
    step::{HitLevel, PlacedBy, RetrievedHit},
};

use crate::moments::Bounds;

/// One turn or memory, borrowed from the bank.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Document<'a> {
    /// A turn and the session that holds it.
    Turn(&'a Session, &'a Turn),
    /// A single memory; it counts as its own session.
    Memory(&'a Memory),
}

impl<'a> Document<'a> {
    /// Whether both are the same turn or memory of the same bank, and not only equal.
    pub(crate) fn is(self, other: Document<'_>) -> bool {
        match (self, other) {
            (Self::Turn(_, a), Document::Turn(_, b)) => std::ptr::eq(a, b),
            (Self::Memory(a), Document::Memory(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }

    /// Id of the turn or memory.
    pub(crate) fn id(self) -> &'a str {
        match self {
            Self::Turn(_, turn) => &turn.id,
            Self::Memory(memory) => &memory.id,
        }
    }

    pub(crate) fn session_id(self) -> &'a str {
        match self {
            Self::Turn(session, _) => &session.id,
            Self::Memory(memory) => &memory.id,
        }
    }

    /// What is searched and what the answerer reads: `[<time>] <line>`, without the bracket when no time is known.
    pub(crate) fn text(self) -> String {
        self.dated(self.line())
    }

    /// What was said, by whom; without its time.
    pub(crate) fn line(self) -> String {
        match self {
            Self::Turn(_, turn) => turn.line(),
            Self::Memory(memory) => memory.text.clone(),
        }
    }

    /// A text with the document's time before it, where that is known.
    pub(crate) fn dated(self, text: String) -> String {
        match self.time().text {
            Some(time) => format!("[{time}] {text}"),
            None => text,
        }
    }

    /// When it was said, or is said to have happened.
    pub(crate) fn time(self) -> Time<'a> {
        match self {
            Self::Turn(session, turn) => session.time_of(turn),
            Self::Memory(memory) => Time { text: memory.time.as_deref(), iso: memory.time.as_deref() },
        }
    }

    /// Whether a question with this filter may be answered from it. What has no tags, user, scopes or time is not admitted by a
    /// part of the filter that wants some.
    fn is_admitted(self, filter: &Filter, bounds: &Bounds) -> bool {
        let Filter { tags, user, scopes, from: _, until: _ } = filter;
        let held = match self {
            Self::Turn(..) => None,
            Self::Memory(memory) => Some(memory),
        };
        let holds =
            |of: fn(&Memory) -> &Vec<String>, wanted: &String| held.is_some_and(|memory| of(memory).contains(wanted));
        tags.iter().all(|tag| holds(|memory| &memory.tags, tag))
            && user.as_ref().is_none_or(|user| held.is_some_and(|memory| memory.user.as_ref() == Some(user)))
            && (scopes.is_empty() || scopes.iter().any(|scope| holds(|memory| &memory.scopes, scope)))
            && bounds.admit(self.time().iso)
    }

    /// The document as a hit.
    pub(crate) fn hit(self, score: Option<f64>) -> RetrievedHit {
        RetrievedHit {
            id: self.id().to_owned(),
            session_id: self.session_id().to_owned(),
            score,
            text: self.text(),
            ..RetrievedHit::default()
        }
    }
}

/// All documents of the first `visible_entries` entries, in stream order (P6). An update takes away what it replaces.
pub(crate) fn visible(content: &BankContent, visible_entries: u32) -> Vec<Document<'_>> {
    let entries = &content.entries[..visible_len(content, visible_entries)];
    let mut documents: Vec<Option<Document<'_>>> = Vec::with_capacity(entries.iter().map(StreamEntry::turns).sum());
    let mut positions: Option<HashMap<&str, usize>> = None; // only streams with updates pay for it
    for entry in entries {
        let before = documents.len();
        match entry {
            StreamEntry::Session(session) => {
                documents.extend(session.turns.iter().map(|turn| Some(Document::Turn(session, turn))));
            }
            StreamEntry::Memory(memory) => documents.push(Some(Document::Memory(memory))),
            StreamEntry::Update { replaces, memory } => {
                let positions = positions.get_or_insert_with(|| {
                    documents.iter().enumerate().filter_map(|(at, d)| Some(((*d)?.id(), at))).collect()
                });
                if let Some(at) = positions.remove(replaces.as_str()) {
                    documents[at] = None;
                }
                documents.extend(memory.as_ref().map(|memory| Some(Document::Memory(memory))));
            }
        }
        if let Some(positions) = &mut positions {
            let added = documents[before..].iter().enumerate();
            positions.extend(added.filter_map(|(at, d)| Some(((*d)?.id(), before + at))));
        }
    }
    documents.into_iter().flatten().collect()
}

/// Which of the visible documents a filter admits, in the same order; `None` when it restricts nothing.
///
/// # Errors
/// A filter whose times cannot be read.
pub(crate) fn admitted(
    content: &BankContent,
    visible_entries: u32,
    filter: &Filter,
) -> Result<Option<Vec<bool>>, Failure> {
    if filter.parts().is_empty() {
        return Ok(None);
    }
    let bounds = Bounds::from_filter(filter)?;
    let documents = visible(content, visible_entries).into_iter();
    Ok(Some(documents.map(|document| document.is_admitted(filter, &bounds)).collect()))
}

/// How many hits a question's filter does not admit, by what was stored under their ids. None where it has no filter, and where
/// no hit is known by an id: two memories may say the same, and differ in what a filter looks at.
#[must_use]
pub fn outside_filter(content: &BankContent, filter: &Filter, hits: &[RetrievedHit]) -> Option<u32> {
    if filter.parts().is_empty() {
        return None;
    }
    let is_known =
        |hit: &RetrievedHit| hit.placed_by != Some(PlacedBy::Text) && matches!(hit.level, None | Some(HitLevel::Turn));
    let ids: HashSet<&str> = hits.iter().filter(|hit| is_known(hit)).map(|hit| hit.id.as_str()).collect();
    if ids.is_empty() {
        return None;
    }
    let bounds = Bounds::from_filter(filter).ok()?;
    let found = content.entries.iter().flat_map(of_entry).filter(|document| ids.contains(document.id()));
    let outside: HashSet<&str> =
        found.filter(|document| !document.is_admitted(filter, &bounds)).map(Document::id).collect();
    let is_outside = |hit: &&RetrievedHit| is_known(hit) && outside.contains(hit.id.as_str());
    u32::try_from(hits.iter().filter(is_outside).count()).ok()
}

/// The visible documents that a filter admits.
///
/// # Errors
/// As [`admitted`].
pub(crate) fn visible_to<'a>(
    content: &'a BankContent,
    visible_entries: u32,
    filter: &Filter,
) -> Result<Vec<Document<'a>>, Failure> {
    let bounds = Bounds::from_filter(filter)?;
    let mut documents = visible(content, visible_entries);
    documents.retain(|document| document.is_admitted(filter, &bounds));
    Ok(documents)
}

/// The documents that are visible, as hits without scores.
pub(crate) fn hits(content: &BankContent, visible_entries: u32) -> Vec<RetrievedHit> {
    visible(content, visible_entries).into_iter().map(|document| document.hit(None)).collect()
}

/// All documents of one entry, whatever may take them away later.
pub(crate) fn of_entry(entry: &StreamEntry) -> Vec<Document<'_>> {
    match entry {
        StreamEntry::Session(session) => session.turns.iter().map(|turn| Document::Turn(session, turn)).collect(),
        StreamEntry::Memory(memory) => vec![Document::Memory(memory)],
        StreamEntry::Update { memory, .. } => memory.iter().map(Document::Memory).collect(),
    }
}

/// Number of entries that a query may see.
pub(crate) fn visible_len(content: &BankContent, visible_entries: u32) -> usize {
    content.entries.len().min(visible_entries as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(id: &str, text: &str) -> Memory {
        Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() }
    }

    #[test]
    fn hits_that_a_filter_does_not_admit_are_counted_where_their_ids_are_known() {
        let tagged =
            |id: &str, tag: &str| StreamEntry::Memory(Memory { tags: vec![tag.to_owned()], ..memory(id, "tea") });
        let content =
            BankContent { entries: vec![tagged("m1", "home"), tagged("m2", "work")], ..BankContent::default() };
        let hit = |id: &str, placed_by| RetrievedHit { id: id.to_owned(), placed_by, ..RetrievedHit::default() };
        let home = Filter { tags: vec!["home".to_owned()], ..Filter::default() };
        let both = [hit("m1", Some(PlacedBy::Id)), hit("m2", Some(PlacedBy::Id))];
        assert_eq!(outside_filter(&content, &home, &both), Some(1));
        assert_eq!(outside_filter(&content, &home, &both[..1]), Some(0));
        assert_eq!(outside_filter(&content, &Filter::default(), &both), None);
        assert_eq!(outside_filter(&content, &home, &[hit("m2", Some(PlacedBy::Text))]), None, "m1 says the same");
        assert_eq!(outside_filter(&content, &home, &[]), None);
    }

    #[test]
    fn updates_take_away_what_they_replace_and_only_once_visible() {
        let content = BankContent {
            bank_id: "b".to_owned(),
            speakers: vec![],
            entries: vec![
                StreamEntry::Memory(memory("m1", "tea")),
                StreamEntry::Memory(memory("m2", "cats")),
                StreamEntry::Update { replaces: "m1".to_owned(), memory: Some(memory("m3", "coffee")) },
                StreamEntry::Update { replaces: "m3".to_owned(), memory: Some(memory("m3", "water")) },
                StreamEntry::Update { replaces: "m2".to_owned(), memory: None },
                StreamEntry::Update { replaces: "unknown".to_owned(), memory: None },
            ],
        };
        let texts = |n| visible(&content, n).into_iter().map(Document::text).collect::<Vec<_>>();
        assert_eq!(texts(0), Vec::<String>::new());
        assert_eq!(texts(2), ["tea", "cats"]);
        assert_eq!(texts(3), ["cats", "coffee"]);
        assert_eq!(texts(4), ["cats", "water"]);
        assert_eq!(texts(5), ["water"]);
        assert_eq!(texts(u32::MAX), ["water"]);
    }

    #[test]
    fn text_carries_the_time_in_front() {
        let turn = Turn {
            id: "D1:1".into(),
            speaker: "Ann".into(),
            text: "Look".into(),
            caption: Some("a kite".into()),
            ..Turn::default()
        };
        let mut session =
            Session { id: "D1".into(), time_text: Some("9:00 am on 2 May, 2031".into()), ..Session::default() };
        let line = Document::Turn(&session, &turn).text();
        assert_eq!(line, "[9:00 am on 2 May, 2031] Ann: Look [shares an image: a kite]");
        session.time_text = None;
        assert_eq!(Document::Turn(&session, &turn).text(), "Ann: Look [shares an image: a kite]");
    }
}
