//! What a page tells of a question beside its line in `questions.jsonl`: the words of missed evidence, prompts as they were sent,
//! and the same question in another run.

use bench_proto::summary::{LineLevel, QuestionLine, RetrievedLine};

/// What is told of a question beside its line.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Words of the evidence that is not among the hits: (id as in [`missed`], its text); ids that nothing is known of are absent.
    pub evidence: Vec<(String, String)>,
    /// What models were sent for it.
    pub prompts: Vec<SentPrompt>,
    /// The question in the run that this one is held against, where one of them passed and the other did not.
    pub other: Option<QuestionLine>,
}

/// A prompt as a model was sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPrompt {
    /// Its names in `prompts` of the question; several where several models were sent the same.
    pub names: Vec<String>,
    /// The instructions.
    pub system: String,
    /// The question as it was laid out.
    pub user: Vec<Piece>,
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These words.
    Text(String),
    /// A part of the text of a hit, which the page has anyway.
    Hit {
        /// Place of the hit among those of the question, from 0.
        rank: usize,
        /// Where the part begins in its text, in UTF-16 units, as scripts count.
        from: usize,
        /// Where it ends.
        to: usize,
    },
}

impl SentPrompt {
    /// The question as it was laid out, with the words of its hits.
    #[must_use]
    pub fn laid_out(&self, hits: &[RetrievedLine]) -> String {
        joined(&self.user, hits)
    }
}

/// A text of pieces of which the hits are known.
fn joined(pieces: &[Piece], hits: &[RetrievedLine]) -> String {
    let of_hit = |rank: usize, from: usize, to: usize| {
        let units = hits.get(rank).map(|hit| hit.text.encode_utf16().collect::<Vec<_>>()).unwrap_or_default();
        String::from_utf16_lossy(units.get(from..to).unwrap_or_default())
    };
    let words = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Hit { rank, from, to } => of_hit(*rank, *from, *to),
    };
    pieces.iter().map(words).collect()
}

/// Shortest text of a hit that is worth a reference, in bytes.
const WORTH_A_REFERENCE: usize = 24;

/// A text in pieces: what a hit says is named by its place, so that it travels once.
#[must_use]
pub fn pieces(text: &str, hits: &[RetrievedLine]) -> Vec<Piece> {
    let mut found: Vec<(usize, usize, Piece)> = Vec::new();
    for (rank, hit) in hits.iter().enumerate() {
        // prompts leave the date away that stands before what some systems found
        let dated = hit.text.starts_with('[').then(|| hit.text.find("] ")).flatten();
        let starts = [Some(0), dated.map(|end| end + 2)].into_iter().flatten();
        let part = starts.map(|from| (from, hit.text[from..].trim_end())).find_map(|(from, part)| {
            let at = (part.len() >= WORTH_A_REFERENCE).then(|| text.find(part)).flatten()?;
            Some((at, from, part))
        });
        let Some((at, from, part)) = part else { continue };
        let units = |text: &str| text.encode_utf16().count();
        let before = units(&hit.text[..from]);
        found.push((at, at + part.len(), Piece::Hit { rank, from: before, to: before + units(part) }));
    }
    found.sort_by_key(|(at, end, _)| (*at, usize::MAX - end));
    let (mut pieces, mut done) = (Vec::with_capacity(2 * found.len() + 1), 0);
    for (at, end, piece) in found {
        // a text that stands within another one is part of that
        if at < done {
            continue;
        }
        if at > done {
            pieces.push(Piece::Text(text[done..at].to_owned()));
        }
        pieces.push(piece);
        done = end;
    }
    if done < text.len() {
        pieces.push(Piece::Text(text[done..].to_owned()));
    }
    pieces
}

/// By what the evidence of a question is looked for among its hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceBy {
    /// By the ids of turns.
    Turns,
    /// By the ids of sessions: the dataset or the hits say nothing of turns.
    Sessions,
}

/// By what the evidence of a question is looked for.
#[must_use]
pub fn evidence_by(line: &QuestionLine) -> EvidenceBy {
    let is_turn = |hit: &RetrievedLine| matches!(hit.level, None | Some(LineLevel::Turn));
    let of_turns = !line.evidence.is_empty() && (line.retrieved.is_empty() || line.retrieved.iter().any(is_turn));
    if of_turns { EvidenceBy::Turns } else { EvidenceBy::Sessions }
}

/// Ids of the evidence that is not among the hits, in the dataset's order.
#[must_use]
pub fn missed(line: &QuestionLine) -> Vec<&str> {
    let by_turns = evidence_by(line) == EvidenceBy::Turns;
    let named = if by_turns || line.evidence.is_empty() && line.evidence_sessions.is_empty() {
        &line.evidence
    } else {
        &line.evidence_sessions
    };
    let of = |hit: &'_ RetrievedLine| if by_turns { hit.id.clone() } else { hit.session_id.clone() };
    named.iter().filter(|id| line.retrieved.iter().all(|hit| of(hit) != **id)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hit(id: &str, text: &str) -> RetrievedLine {
        RetrievedLine {
            id: id.to_owned(),
            session_id: "S1".to_owned(),
            score: None,
            text: text.to_owned(),
            placed_by: None,
            level: None,
            details: Default::default(),
        }
    }

    #[test]
    fn what_a_hit_says_travels_once() {
        let hits = [
            hit("1", "[8 May 👩] Ann: the quince is in bloom this week \n"),
            hit("2", "short"),
            hit("3", "Ben: two lines\nof rain, and then some more of it"),
        ];
        let text = "Session S1 (8 May 👩)\n[1] Ann: the quince is in bloom this week\n[2] short\n\
                    [3] Ben: two lines\nof rain, and then some more of it\n\nQuestion: Who?";
        let pieces = pieces(text, &hits);
        assert_eq!(joined(&pieces, &hits), text);
        let references = pieces.iter().filter(|piece| matches!(piece, Piece::Hit { .. })).count();
        assert_eq!((pieces.len(), references), (5, 2), "{pieces:?}");
        // 👩 is two units
        assert_eq!(pieces[1], Piece::Hit { rank: 0, from: 11, to: 48 });
    }

    proptest! {
        #[test]
        fn pieces_are_the_text(
            texts in prop::collection::vec("(\\[d\\] )?(ab|é|👩| ){0,30}", 0..6),
            around in "(ab|é|👩| |\\[d\\] ){0,20}",
        ) {
            let hits: Vec<RetrievedLine> = texts.iter().map(|text| hit("x", text)).collect();
            let text = texts.iter().fold(around.clone(), |all, text| format!("{all}{}{around}", text.trim_end()));
            prop_assert_eq!(joined(&pieces(&text, &hits), &hits), text);
        }
    }

    #[test]
    fn evidence_is_looked_for_by_turns_or_by_sessions() {
        let mut line = crate::questions::tests::question();
        assert!(missed(&line).is_empty());
        line.evidence = vec!["D1:1".to_owned(), "D2:4".to_owned()];
        line.evidence_sessions = vec!["D1".to_owned(), "D2".to_owned()];
        line.retrieved = vec![RetrievedLine { session_id: "D1".to_owned(), ..hit("D1:1", "tea") }];
        assert_eq!((evidence_by(&line), missed(&line)), (EvidenceBy::Turns, vec!["D2:4"]));
        line.retrieved[0].level = Some(LineLevel::Session);
        assert_eq!((evidence_by(&line), missed(&line)), (EvidenceBy::Sessions, vec!["D2"]));
        line.retrieved.clear();
        assert_eq!(missed(&line), ["D1:1", "D2:4"]);
    }
}
