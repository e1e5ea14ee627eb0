//! Which texts are embedded together: those of one entry, at most 64 in a request. An entry's requests do not depend on what
//! comes before or after it, so that what was paid for when it was retained is found again by every later reader.

use bench_proto::dataset::StreamEntry;

use crate::documents::{self, Document};

const TEXTS_PER_REQUEST: usize = 64;

/// Texts that are embedded together: at most 64.
pub struct Request<'a> {
    /// What is embedded.
    pub texts: Vec<String>,
    /// Whose texts they are, in the same order.
    pub(super) documents: Vec<Document<'a>>,
}

/// The requests of entries, in order; `prefix` is what the model wants before a text.
#[must_use]
pub fn of_entries<'a>(entries: &'a [StreamEntry], prefix: &str) -> Vec<Request<'a>> {
    let of_entry = |entry| {
        let documents = documents::of_entry(entry);
        let request =
            |part: &[Document<'_>]| part.iter().map(|document| format!("{prefix}{}", document.text())).collect();
        let chunks = documents.chunks(TEXTS_PER_REQUEST);
        chunks.map(|part| Request { texts: request(part), documents: part.to_vec() }).collect::<Vec<_>>()
    };
    entries.iter().flat_map(of_entry).collect()
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::{BankContent, Memory, Session, Turn};

    use super::*;

    fn memory(id: &str) -> Memory {
        Memory { id: id.to_owned(), text: format!("text of {id}"), ..Memory::default() }
    }

    fn session(turns: usize) -> StreamEntry {
        let turn =
            |n| Turn { id: format!("t{n}"), speaker: "a".to_owned(), text: format!("turn {n}"), ..Turn::default() };
        let turns = (0..turns).map(turn).collect();
        StreamEntry::Session(Session { id: "s".to_owned(), turns, ..Session::default() })
    }

    #[test]
    fn an_entry_has_the_same_requests_wherever_it_stands() {
        let entries = vec![
            session(3),
            session(130),
            session(0),
            StreamEntry::Memory(memory("m")),
            StreamEntry::Update { replaces: "m".to_owned(), memory: Some(memory("n")) },
            StreamEntry::Update { replaces: "n".to_owned(), memory: None },
        ];
        let all: Vec<Vec<String>> = of_entries(&entries, "").into_iter().map(|request| request.texts).collect();
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [3, 64, 64, 2, 1, 1]);
        let alone = entries.iter().flat_map(|entry| of_entries(std::slice::from_ref(entry), ""));
        assert_eq!(alone.map(|request| request.texts).collect::<Vec<_>>(), all);
        let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
        let given: Vec<_> =
            of_entries(&content.entries, "").into_iter().flat_map(|request| request.documents).collect();
        let mut given = given.iter();
        let visible = documents::visible(&content, 6);
        assert!(visible.iter().all(|document| given.any(|of| of.is(*document))), "in the same order");
    }
}
