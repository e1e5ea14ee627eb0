//! Banks as a file in LoCoMo's own schema, so that other runners can use them.

use std::{
    io::{BufWriter, Write},
    path::Path,
};

use bench_proto::dataset::{Bank, Gold, GoldRecord, Question, StreamEntry};
use serde_json::Value;

use super::schema::{Answer, Category, Conversation, Qa, RawTurn, Sample};
use crate::{
    Dataset, DatasetError,
    whole_file::{Hashed, WholeFile},
};

/// Writes all banks of a dataset, one after the other: (bytes, sha256). The file is there whole or not at all.
pub(crate) fn write(dataset: &dyn Dataset, path: &Path) -> Result<(u64, String), DatasetError> {
    let io = |source| DatasetError::io(path, source);
    let file = WholeFile::create(path).map_err(io)?;
    let mut out = Hashed::new(BufWriter::new(file));
    for bank in 0..dataset.bank_count() {
        out.write_all(if bank == 0 { b"[\n" } else { b",\n" }).map_err(io)?;
        let sample = sample(dataset.bank(bank)?).ok_or_else(|| DatasetError::Broken {
            path: dataset.manifest().name.clone(),
            place: format!("bank {bank}"),
            problem: "has something that LoCoMo's schema cannot hold".to_owned(),
        })?;
        serde_json::to_writer(&mut out, &sample).map_err(|error| io(error.into()))?;
    }
    out.write_all(b"\n]\n").map_err(io)?;
    let (inner, bytes, sha256) = out.finish();
    let file = inner.into_inner().map_err(|error| io(error.into_error()))?;
    file.keep().map_err(io)?;
    Ok((bytes, sha256))
}

/// A bank as LoCoMo writes it; nothing when it has entries, golds or categories that LoCoMo does not know.
fn sample(bank: Bank) -> Option<Sample> {
    let Bank { content, questions, gold } = bank;
    let mut speakers = content.speakers.into_iter();
    let mut conversation = Conversation {
        speaker_a: speakers.next().unwrap_or_default(),
        speaker_b: speakers.next().unwrap_or_default(),
        ..Conversation::default()
    };
    for entry in content.entries {
        let StreamEntry::Session(session) = entry else {
            return None;
        };
        let number = session.id.strip_prefix('D')?.parse().ok()?;
        let turns = session.turns.into_iter().map(|turn| RawTurn {
            speaker: turn.speaker,
            dia_id: turn.id,
            text: turn.text,
            blip_caption: turn.caption,
        });
        conversation.sessions.insert(number, turns.collect());
        conversation.dates.extend(session.time_text.map(|text| (number, text)));
    }
    let qa = questions.into_iter().zip(gold).map(|(question, gold)| qa(question, gold)).collect::<Option<_>>()?;
    Some(Sample { sample_id: content.bank_id, conversation, qa })
}

fn qa(question: Question, record: GoldRecord) -> Option<Qa> {
    let hidden = |key: &str| match record.hidden.get(key) {
        Some(Value::String(text)) => Some(Answer::Text(text.clone())),
        Some(Value::Number(number)) => Some(Answer::Number(number.clone())),
        _ => None,
    };
    let answer = match record.gold {
        Gold::Text(text) => Some(Answer::Text(text)),
        Gold::Number(number) => Some(Answer::Number(number)),
        Gold::Abstain => hidden("answer"),
        Gold::Choice(_)
        | Gold::AnyOf(_)
        | Gold::Rubric(_)
        | Gold::Keywords(_)
        | Gold::Retrieval { .. }
        | Gold::Assertions(_)
        | Gold::Unanswerable(_) => return None,
    };
    Some(Qa {
        question: question.text,
        answer,
        category: Category::from_name(&question.category)?,
        adversarial_answer: hidden("adversarial_answer"),
        evidence: record.evidence_turns,
    })
}
