//! `extractive`: the demo answerer. No model, no key, no network: it copies a short answer out of the retrieved text.
//!
//! It exists so that a first run works at once and so that whole runs can be repeated exactly (P17). It is no yardstick
//! for answer quality: its reports say "demo answerer". The way: score the sentences of the hits by the words that they
//! share with the question, then cut the piece out of the best one that fits the kind of question. It knows neither
//! category nor gold.

mod dates;
mod text;

use bench_proto::step::RetrievedHit;

use self::text::{Word, is_function_word, lower_eq, same_stem, stem, words};

/// Raised whenever an answer can change.
pub const VERSION: u32 = 1;

/// The answer when the hits do not hold one.
pub const NO_ANSWER: &str = "No information available";

/// Share of the question's weight that the best sentence must hold; below, there is no answer.
const MIN_COVERAGE: f64 = 0.3;

/// Sentences this close to the best may hold the answer when the best one has nothing that fits.
const CLOSE: f64 = 0.6;

/// More different words of a question than this are not used.
const MAX_TERMS: usize = 64;

/// An answer and the hits that it was taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// The answer.
    pub answer: String,
    /// Ids of the hits; empty without an answer.
    pub citations: Vec<String>,
}

/// Answers `question` from `hits`, as a pure function of its arguments. With `choices`, the answer is one of them.
#[must_use]
pub fn extract(question: &str, hits: &[RetrievedHit], choices: &[String]) -> Extracted {
    let asked = Asked::new(question);
    if !choices.is_empty() {
        return choose(hits, choices);
    }
    answer(&asked, hits).unwrap_or_else(|| Extracted { answer: NO_ANSWER.to_owned(), citations: Vec::new() })
}

/// What kind of answer a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    When,
    HowLong,
    HowMany,
    Who,
    Where,
    Why,
    YesNo,
    Other,
}

impl Kind {
    fn of(words: &[Word<'_>]) -> Self {
        let is = |at: usize, options: &[&str]| {
            words.get(at).is_some_and(|word| options.iter().any(|option| lower_eq(word.text, option)))
        };
        for at in 0..words.len() {
            if is(at, &["when"]) || (is(at, &["what", "which"]) && is(at + 1, &["date", "year", "month", "day"])) {
                return Self::When;
            }
            if is(at, &["how"]) {
                return match () {
                    () if is(at + 1, &["many", "much", "often", "old"]) => Self::HowMany,
                    () if is(at + 1, &["long"]) => Self::HowLong,
                    () => Self::Other,
                };
            }
            if is(at, &["who", "whom", "whose"]) {
                return Self::Who;
            }
            if is(at, &["where"]) {
                return Self::Where;
            }
            if is(at, &["why"]) {
                return Self::Why;
            }
            if is(at, &["what", "which"]) {
                return Self::Other;
            }
        }
        let auxiliaries = [
            "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "would", "will", "should",
        ];
        if is(0, &auxiliaries) { Self::YesNo } else { Self::Other }
    }
}

/// A question, taken apart.
struct Asked<'a> {
    /// Stems of its words that carry a topic, without repeats.
    terms: Vec<&'a str>,
    kind: Kind,
}

impl<'a> Asked<'a> {
    fn new(question: &'a str) -> Self {
        let words = words(question);
        let kind = Kind::of(&words);
        let mut terms: Vec<&str> = Vec::new();
        for word in words.iter().filter(|word| !is_function_word(word.text)) {
            let stem = stem(word.text);
            if terms.len() < MAX_TERMS && !terms.iter().any(|term| same_stem(term, stem)) {
                terms.push(stem);
            }
        }
        Self { terms, kind }
    }

    /// The terms that a text holds, one bit each.
    fn found_in(&self, text: &str) -> u64 {
        let mut found = 0;
        text::for_each_word(text, |_, word| {
            if let Some(at) = self.position(word) {
                found |= 1 << at;
            }
        });
        found
    }

    fn position(&self, word: &str) -> Option<usize> {
        let stem = stem(word);
        self.terms.iter().position(|term| same_stem(term, stem))
    }
}

/// A hit's text, taken apart: `[time] speaker: body`.
struct Turn<'a> {
    time: Option<&'a str>,
    speaker: &'a str,
    body: &'a str,
}

impl<'a> Turn<'a> {
    fn of(text: &'a str) -> Self {
        let (time, line) = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((time, line)) if time.len() <= 80 => (Some(time), line),
            _ => (None, text),
        };
        match line.split_once(": ") {
            Some((speaker, body)) if speaker.len() <= 40 && !speaker.contains(['.', '!', '?']) => {
                Self { time, speaker, body }
            }
            _ => Self { time, speaker: "", body: line },
        }
    }
}

/// A sentence and how well it fits the question.
struct Candidate<'a> {
    hit: usize,
    sentence: &'a str,
    score: f64,
    coverage: f64,
}

fn answer(asked: &Asked<'_>, hits: &[RetrievedHit]) -> Option<Extracted> {
    let turns: Vec<Turn<'_>> = hits.iter().map(|hit| Turn::of(&hit.text)).collect();
    let candidates = candidates(asked, &turns);
    let best = candidates.first()?;
    if best.coverage < MIN_COVERAGE {
        return None;
    }
    let close = || candidates.iter().filter(|candidate| candidate.score >= best.score * CLOSE);
    let piece = |candidate: &Candidate<'_>| {
        let (sentence, turn) = (candidate.sentence, &turns[candidate.hit]);
        let words = words(sentence);
        let in_question = |word: &str| asked.position(word).is_some();
        match asked.kind {
            Kind::When => dates::answer(sentence, turn.body, turn.time),
            Kind::HowLong => text::duration(sentence, &words),
            Kind::HowMany => text::number(&words),
            Kind::Who => text::name(sentence, &words, in_question),
            Kind::Where => text::place(sentence, &words, in_question),
            Kind::Why => text::reason(sentence, &words),
            Kind::YesNo => Some(if text::negated(&words) { "No" } else { "Yes" }.to_owned()),
            Kind::Other => text::quoted(sentence),
        }
    };
    let fitting = close().find_map(|candidate| Some((candidate, piece(candidate)?)));
    let (candidate, answer) = match fitting {
        Some(found) => found,
        None => close().find_map(|candidate| Some((candidate, span(asked, candidate.sentence)?)))?,
    };
    Some(Extracted { answer, citations: vec![hits[candidate.hit].id.clone()] })
}

/// The sentences that share a word with the question, best first.
fn candidates<'a>(asked: &Asked<'_>, turns: &[Turn<'a>]) -> Vec<Candidate<'a>> {
    let mut frequency = [0_u32; MAX_TERMS];
    let mut found = Vec::new();
    for (hit, turn) in turns.iter().enumerate() {
        let speaker = asked.found_in(turn.speaker);
        let first = found.len();
        let mut in_turn = speaker;
        text::for_each_sentence(turn.body, |sentence| {
            let in_sentence = asked.found_in(sentence);
            in_turn |= in_sentence;
            found.push((hit, sentence, in_sentence, speaker));
        });
        for at in bits(in_turn) {
            frequency[at] += 1;
        }
        for (_, _, _, context) in &mut found[first..] {
            *context = in_turn;
        }
    }
    let total = turns.len() as f64;
    let weights: Vec<f64> =
        (0..asked.terms.len()).map(|at| (1.0 + (total + 0.5) / (f64::from(frequency[at]) + 0.5)).ln()).collect();
    let weigh = |terms: u64| bits(terms).map(|at| weights[at]).sum::<f64>();
    let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);

    let mut candidates: Vec<Candidate<'_>> = found
        .into_iter()
        .map(|(hit, sentence, in_sentence, context)| {
            // words elsewhere in the turn count half; an earlier rank decides between equals
            let held = weigh(in_sentence) + 0.5 * weigh(context & !in_sentence);
            Candidate { hit, sentence, score: held * (1.0 + 0.3 / (1.0 + hit as f64)), coverage: held / all }
        })
        .filter(|candidate| candidate.score > 0.0)
        .collect();
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates
}

fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..MAX_TERMS).filter(move |at| mask >> at & 1 == 1)
}

/// The piece of a sentence that the question does not say itself: what follows the last shared word, up to the end of
/// the clause; what stands before the first one when nothing follows.
fn span(asked: &Asked<'_>, sentence: &str) -> Option<String> {
    let words = words(sentence);
    let shared = |word: &Word<'_>| asked.position(word.text).is_some();
    let after = words.iter().rposition(shared).map_or(0, |last| last + 1);
    let before = words.iter().position(shared).unwrap_or(0);
    text::clause(sentence, &words[after..])
        .or_else(|| text::last_clause(sentence, &words[..before]))
        .or_else(|| text::clause(sentence, &words))
}

/// The option that shares most with the hits; the first one when none does.
fn choose(hits: &[RetrievedHit], choices: &[String]) -> Extracted {
    let mut best = (0, f64::MIN, None);
    for (at, choice) in choices.iter().enumerate() {
        let asked = Asked::new(choice);
        let count = asked.terms.len().max(1) as f64;
        let held = |hit: &RetrievedHit| f64::from(asked.found_in(&hit.text).count_ones()) / count;
        for (rank, hit) in hits.iter().enumerate() {
            let score = held(hit) / (1.0 + 0.05 * rank as f64);
            if score > best.1 {
                best = (at, score, (score > 0.0).then_some(rank));
            }
        }
    }
    Extracted {
        answer: choices[best.0].clone(),
        citations: best.2.map(|rank| hits[rank].id.clone()).into_iter().collect(),
    }
}
