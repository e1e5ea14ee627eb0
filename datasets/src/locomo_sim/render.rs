//! A finished draft as a bank: turns with small talk between the facts, questions in the order of the shape.

use std::collections::{BTreeMap, VecDeque};

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question, Session, StreamEntry, Turn};
use serde_json::Value;

use super::{
    draft::{Asked, Draft, Scene, fill},
    rng::Rng,
    shape::Shape,
    tables::smalltalk,
};
use crate::locomo::{schema::Category, time};

/// Share of turns with a shared image, in percent.
const CAPTIONS: usize = 20;

/// The bank; nothing when the draft has other counts than the shape.
pub(super) fn bank(bank_id: &str, draft: Draft, shape: &Shape) -> Option<Bank> {
    let mut draft = draft;
    let mut rng = draft.rng.clone();
    let entries = draft.scenes.iter().enumerate().map(|(number, scene)| {
        let turns = (0..scene.turns.len()).map(|turn| render_turn(&draft, &mut rng, number, scene, turn));
        StreamEntry::Session(Session {
            id: format!("D{}", number + 1),
            time_text: Some(time::text(scene.time)),
            time: Some(time::iso(scene.time)),
            turns: turns.collect(),
            ..Session::default()
        })
    });
    let entries: Vec<StreamEntry> = entries.collect();

    let mut queues: BTreeMap<Category, VecDeque<Asked>> = BTreeMap::new();
    for asked in in_order(&mut draft, &mut rng) {
        queues.entry(asked.category).or_default().push_back(asked);
    }
    let ask_after = u32::try_from(entries.len()).ok()?;
    let (mut questions, mut gold) = (Vec::with_capacity(shape.layout.len()), Vec::with_capacity(shape.layout.len()));
    for (index, category) in shape.layout.iter().enumerate() {
        let asked = queues.get_mut(category)?.pop_front()?;
        let question_id = format!("{bank_id}:{index}");
        gold.push(record(&draft, &question_id, &asked));
        questions.push(Question {
            question_id,
            index: u32::try_from(index).ok()?,
            category: category.name().to_owned(),
            text: asked.text,
            ask_after,
            ..Question::default()
        });
    }
    let content = BankContent { bank_id: bank_id.to_owned(), speakers: draft.names.to_vec(), entries };
    queues.values().all(VecDeque::is_empty).then_some(Bank { content, questions, gold })
}

/// The questions in the order in which the conversation comes to them; those without evidence anywhere.
fn in_order(draft: &mut Draft, rng: &mut Rng) -> Vec<Asked> {
    let asked = std::mem::take(&mut draft.asked);
    let mut keyed: Vec<_> = asked
        .into_iter()
        .map(|asked| {
            match asked.evidence.iter().map(|fact| &draft.facts[*fact]).min_by_key(|fact| (fact.scene, fact.turn)) {
                Some(fact) => ((fact.scene, fact.turn), asked),
                None => ((rng.below(draft.scenes.len()), 0), asked),
            }
        })
        .collect();
    keyed.sort_by_key(|(place, _)| *place);
    keyed.into_iter().map(|(_, asked)| asked).collect()
}

fn turn_id(scene: usize, turn: usize) -> String {
    format!("D{}:{}", scene + 1, turn + 1)
}

fn record(draft: &Draft, question_id: &str, asked: &Asked) -> GoldRecord {
    let mut evidence_sessions = Vec::new();
    let mut evidence_turns = Vec::with_capacity(asked.evidence.len());
    for fact in asked.evidence.iter().map(|fact| &draft.facts[*fact]) {
        evidence_turns.push(turn_id(fact.scene, fact.turn));
        let session = format!("D{}", fact.scene + 1);
        if !evidence_sessions.contains(&session) {
            evidence_sessions.push(session);
        }
    }
    let wrong = asked.unsaid.iter().map(|(wrong, _)| {
        let value = match wrong {
            Gold::Number(number) => Value::Number(number.clone()),
            other => Value::String(other.text()),
        };
        ("adversarial_answer".to_owned(), value)
    });
    GoldRecord {
        question_id: question_id.to_owned(),
        gold: asked.gold.clone(),
        evidence_turns,
        evidence_sessions,
        hidden: wrong.collect(),
        ..GoldRecord::default()
    }
}

fn render_turn(draft: &Draft, rng: &mut Rng, number: usize, scene: &Scene, turn: usize) -> Turn {
    let who = (scene.first + turn) % 2;
    let other = draft.names[1 - who].as_str();
    let (text, caption) = match scene.turns[turn] {
        Some(fact) => (draft.facts[fact].text.clone(), draft.facts[fact].caption.clone()),
        None if turn == 0 => (edge(rng, &smalltalk::TABLE.greetings, other), None),
        None if turn + 1 == scene.turns.len() => (edge(rng, &smalltalk::TABLE.farewells, other), None),
        None => (small_talk(rng, other), None),
    };
    let caption = caption.or_else(|| rng.chance(CAPTIONS).then(|| image(rng)));
    Turn { id: turn_id(number, turn), speaker: draft.names[who].clone(), text, caption, ..Turn::default() }
}

/// Greeting or farewell, mostly with a word about life.
fn edge(rng: &mut Rng, list: &[&'static str], other: &str) -> String {
    let text = fill(rng.word(list), &[("o", other)]);
    if rng.chance(25) { text } else { format!("{text} {}.", rng.word(&smalltalk::TABLE.middles)) }
}

fn small_talk(rng: &mut Rng, other: &str) -> String {
    let opener = fill(rng.word(&smalltalk::TABLE.openers), &[("o", other)]);
    format!("{opener} {}{}", rng.word(&smalltalk::TABLE.middles), rng.word(&smalltalk::TABLE.closers))
}

fn image(rng: &mut Rng) -> String {
    let values = [("k", rng.word(&smalltalk::TABLE.things)), ("v", rng.word(&smalltalk::TABLE.lights))];
    fill(rng.word(&smalltalk::TABLE.captions), &values)
}
