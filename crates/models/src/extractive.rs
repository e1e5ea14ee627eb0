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
pub const VERSION: u32 = 2;

/// The answer when the hits do not hold one.
pub const NO_ANSWER: &str = "No information available";

/// Share of the question's weight that the best sentence of endlessly many hits must hold; below, there is no answer.
const MIN_COVERAGE: f64 = 1.0 / 3.0;

/// Sentences this close to the best may hold the answer when the best one has nothing that fits.
const CLOSE: f64 = 0.6;

/// Weight of words that stand in the turn, but not in the sentence.
const ELSEWHERE: f64 = 0.5;

/// Weight of a sentence that asks: it repeats the question's words and answers nothing.
const ASKING: f64 = 0.3;

/// Weight of a turn that is neither by nor about the speaker whom the question names.
const OTHER_PERSON: f64 = 0.4;

/// More new words than this make a piece no better.
const ENOUGH_NEW: usize = 3;

/// New words that sharing a clause with words of the question is worth.
const SAME_CLAUSE: usize = 2;

/// Advantage of the first hit over the last.
const FIRST_RANK: f64 = 0.3;

/// More different words of a question than this are not used.
const MAX_TERMS: usize = 64;

/// An answer and the hits that it was taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// What was copied out of the hits, the letter of an option, or words that say that nothing was found.
    pub answer: String,
    /// Ids of the hits; empty without an answer.
    pub citations: Vec<String>,
}

/// Answers `question` from `hits`, as a pure function of its arguments. With `choices`, the answer is the letter of one of
/// them in brackets: every rule for choices reads `(b)`, and MemBench's nothing longer.
#[must_use]
pub fn extract(question: &str, hits: &[RetrievedHit], choices: &[String]) -> Extracted {
    if !choices.is_empty() {
        return choose(hits, choices);
    }
    answer(&Asked::new(question), hits)
        .unwrap_or_else(|| Extracted { answer: NO_ANSWER.to_owned(), citations: Vec::new() })
}

/// What kind of answer a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    When,
    HowLong,
    HowMany,
    Who,
    Which,
    Where,
    Why,
    YesNo,
    Other,
}

impl Kind {
    fn from_words(words: &[Word<'_>]) -> Self {
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
            if is(at, &["which"]) {
                return Self::Which;
            }
            if is(at, &["what"]) {
                return Self::Other;
            }
        }
        let auxiliaries = [
            "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "would", "will",
            "should",
        ];
        if is(0, &auxiliaries) { Self::YesNo } else { Self::Other }
    }
}

/// A question, taken apart.
struct Asked<'a> {
    /// Stems of its words that carry a topic, without repeats.
    terms: Vec<&'a str>,
    /// The terms that are written like names, one bit each; the first word is in capitals anyway and does not count.
    names: u64,
    kind: Kind,
}

impl<'a> Asked<'a> {
    fn new(question: &'a str) -> Self {
        let words = words(question);
        let kind = Kind::from_words(&words);
        let mut terms: Vec<&str> = Vec::new();
        let mut names = 0;
        for (nth, word) in words.iter().enumerate().filter(|(_, word)| !is_function_word(word.text)) {
            let stem = stem(word.text);
            let known = terms.iter().position(|term| same_stem(term, stem));
            let at = known.unwrap_or(terms.len());
            if at == MAX_TERMS {
                continue;
            }
            if known.is_none() {
                terms.push(stem);
            }
            if nth > 0 && word.text.starts_with(char::is_uppercase) {
                names |= 1 << at;
            }
        }
        Self { terms, names, kind }
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
    fn from_text(text: &'a str) -> Self {
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
    /// Its turn is neither by nor about the person whom the question names.
    other_person: bool,
}

impl Candidate<'_> {
    /// Whether it tells enough of what was asked to be answered from. The best of many hits shares words with a question
    /// by chance, so the more there are, the more it must share; what was retrieved alone is taken at its word, unless
    /// somebody else says it.
    fn is_evidence(&self, hits: usize) -> bool {
        let by_chance = if self.other_person { 1.0 } else { 1.0 - 1.0 / hits as f64 };
        self.coverage >= MIN_COVERAGE * by_chance
    }
}

fn answer(asked: &Asked<'_>, hits: &[RetrievedHit]) -> Option<Extracted> {
    let turns: Vec<Turn<'_>> = hits.iter().map(|hit| Turn::from_text(&hit.text)).collect();
    let candidates = candidates(asked, &turns);
    let best = candidates.first().filter(|best| best.is_evidence(hits.len()))?;
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
            Kind::Which => text::quoted(sentence).or_else(|| text::name(sentence, &words, in_question)),
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
    let mut named = 0; // speakers whom the question names
    let mut found: Vec<Found<'_>> = Vec::new();
    for (hit, turn) in turns.iter().enumerate() {
        let speaker = asked.found_in(turn.speaker);
        named |= speaker;
        let mut in_turn = speaker;
        let first = found.len();
        text::for_each_sentence(turn.body, |sentence| {
            let in_sentence = asked.found_in(sentence);
            in_turn |= in_sentence;
            found.push(Found { hit, sentence, in_sentence, in_turn: 0 });
        });
        for at in bits(in_turn) {
            frequency[at] += 1;
        }
        for sentence in &mut found[first..] {
            sentence.in_turn = in_turn;
        }
    }
    if named == 0 {
        named = asked.names; // nobody who is asked about speaks here
    }
    let total = turns.len() as f64;
    let weights: Vec<f64> =
        (0..asked.terms.len()).map(|at| (1.0 + (total + 0.5) / (f64::from(frequency[at]) + 0.5)).ln()).collect();
    let weigh = |terms: u64| bits(terms).map(|at| weights[at]).sum::<f64>();
    let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);

    let mut candidates: Vec<Candidate<'_>> = found
        .into_iter()
        .map(|Found { hit, sentence, in_sentence, in_turn }| {
            let mut held = weigh(in_sentence) + ELSEWHERE * weigh(in_turn & !in_sentence);
            if sentence.ends_with('?') {
                held *= ASKING;
            }
            let other_person = named != 0 && in_turn & named == 0;
            if other_person {
                held *= OTHER_PERSON;
            }
            let score = held * (1.0 + FIRST_RANK / (1.0 + hit as f64));
            Candidate { hit, sentence, score, coverage: held / all, other_person }
        })
        .filter(|candidate| candidate.score > 0.0)
        .collect();
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates
}

/// A sentence and the question's terms that it and its turn hold.
struct Found<'a> {
    hit: usize,
    sentence: &'a str,
    in_sentence: u64,
    in_turn: u64,
}

fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..MAX_TERMS).filter(move |at| mask >> at & 1 == 1)
}

/// The piece of a sentence that tells most that the question does not say itself. A clause that shares words with the
/// question counts more; of equal pieces the last wins, because what is told mostly stands behind what it is told about.
fn span(asked: &Asked<'_>, sentence: &str) -> Option<String> {
    let is_shared = |word: &Word<'_>| asked.position(word.text).is_some();
    let is_new = |word: &Word<'_>| !is_function_word(word.text) && !is_shared(word);
    let words = words(sentence);
    let mut best: Option<(usize, &[Word<'_>])> = None;
    for clause in words.chunk_by(|_, next| !next.clause_starts) {
        let bonus = if clause.iter().any(is_shared) { SAME_CLAUSE } else { 0 };
        for piece in clause.chunk_by(|_, next| !is_shared(next)) {
            let new = piece.iter().filter(|word| is_new(word)).count().min(ENOUGH_NEW);
            if new > 0 && best.is_none_or(|(most, _)| new + bonus >= most) {
                best = Some((new + bonus, piece));
            }
        }
    }
    let (_, piece) = best?;
    let skip = piece.iter().take_while(|word| !is_new(word)).count();
    text::clause(sentence, &piece[skip..])
}

/// The option that shares most with the hits, by the letter that prompts show it under; the first one when none does.
fn choose(hits: &[RetrievedHit], choices: &[String]) -> Extracted {
    let mut best = ('a', f64::MIN, None);
    for (letter, choice) in ('a'..='z').zip(choices) {
        let asked = Asked::new(choice);
        let count = asked.terms.len().max(1) as f64;
        let held = |hit: &RetrievedHit| f64::from(asked.found_in(&hit.text).count_ones()) / count;
        for (rank, hit) in hits.iter().enumerate() {
            let score = held(hit) / (1.0 + 0.05 * rank as f64);
            if score > best.1 {
                best = (letter, score, (score > 0.0).then_some(rank));
            }
        }
    }
    Extracted {
        answer: format!("({})", best.0),
        citations: best.2.map(|rank| hits[rank].id.clone()).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hits(texts: &[&str]) -> Vec<RetrievedHit> {
        let hit = |(at, text): (usize, &&str)| RetrievedHit {
            id: format!("D1:{}", at + 1),
            session_id: "D1".to_owned(),
            score: None,
            text: (*text).to_owned(),
            ..RetrievedHit::default()
        };
        texts.iter().enumerate().map(hit).collect()
    }

    fn ask(question: &str, texts: &[&str]) -> String {
        let extracted = extract(question, &hits(texts), &[]);
        format!("{} {:?}", extracted.answer, extracted.citations)
    }

    const TALK: &[&str] = &[
        "[4:05 pm on 3 June, 2031] Ines: I started pottery lessons two weeks ago with my cousin Marta Silva. It is calming!",
        "[4:05 pm on 3 June, 2031] Tom: Nice! Did you start pottery lessons alone?",
        "[4:05 pm on 3 June, 2031] Ines: We meet at the old mill in Porto because the rent is low there.",
        "[9:00 am on 10 July, 2031] Tom: Yesterday I sold 12 jars of honey, and I bought a blue canoe.",
        "[9:00 am on 10 July, 2031] Ines: My favourite novel is \"The Silent Orchard\". I have owned it for six years.",
        "[9:00 am on 10 July, 2031] Tom: I have never eaten snails in my life.",
    ];

    #[test]
    fn each_kind_of_question_gets_its_kind_of_answer() {
        let questions = [
            "When did Ines start pottery lessons?",
            "When did Tom buy a canoe?",
            "Who takes pottery lessons with Ines?",
            "Where do Ines and Marta meet?",
            "Why do Ines and Marta meet at the mill?",
            "How many jars of honey did Tom sell?",
            "What colour is the canoe that Tom bought?",
            "Which novel is Ines's favourite?",
            "How long has Ines owned her favourite novel?",
            "Has Tom eaten snails?",
            "Did Tom sell honey?",
            "What is the name of the president of the chess club?",
        ];
        let lines: Vec<String> =
            questions.iter().map(|question| format!("{question} {}", ask(question, TALK))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        When did Ines start pottery lessons? 2 weeks before 3 June 2031 ["D1:1"]
        When did Tom buy a canoe? 9 July 2031 ["D1:4"]
        Who takes pottery lessons with Ines? Marta Silva ["D1:1"]
        Where do Ines and Marta meet? Porto ["D1:3"]
        Why do Ines and Marta meet at the mill? rent is low ["D1:3"]
        How many jars of honey did Tom sell? 12 ["D1:4"]
        What colour is the canoe that Tom bought? blue ["D1:4"]
        Which novel is Ines's favourite? The Silent Orchard ["D1:5"]
        How long has Ines owned her favourite novel? six years ["D1:5"]
        Has Tom eaten snails? No ["D1:6"]
        Did Tom sell honey? Yes ["D1:4"]
        What is the name of the president of the chess club? No information available []
        "#);
    }

    #[test]
    fn without_evidence_there_is_no_answer_and_no_citation() {
        let nothing = Extracted { answer: NO_ANSWER.to_owned(), citations: vec![] };
        for (question, texts) in [
            ("When did Ines move?", &[][..]),
            ("When did Ines move?", &["", "[] : ", "[x] Tom: Hello there"]),
            ("", TALK),
            ("what is it?", TALK),
            ("Who won the chess tournament in Lisbon?", TALK),
        ] {
            assert_eq!(extract(question, &hits(texts), &[]), nothing, "{question}");
        }
    }

    #[test]
    fn what_another_person_says_counts_less() {
        let said = [
            "[9:00 am on 10 July, 2031] Tom: I adopted a grey parrot.",
            "[9:00 am on 10 July, 2031] Ines: Good morning.",
        ];
        assert_eq!(ask("What bird did Tom adopt?", &said), "grey parrot [\"D1:1\"]");
        assert_eq!(ask("What bird did Ines adopt?", &said), "No information available []");
    }

    #[test]
    fn a_turn_that_was_retrieved_alone_is_taken_at_its_word() {
        let lift = "[9:00 am on 17 July, 2031] Ines: So, I got stuck in a lift exactly one week ago.";
        let question = "When did Ines get trapped in an elevator?";
        assert_eq!(ask(question, &[lift]), "the week before 17 July 2031 [\"D1:1\"]");
        // among others the same turn shares too little with the question
        let among: Vec<&str> = TALK.iter().copied().chain([lift]).collect();
        assert_eq!(ask(question, &among), "No information available []");
        // and somebody else's word is no evidence
        assert_eq!(ask("When did Tom get trapped in an elevator?", &[lift]), "No information available []");
    }

    #[test]
    fn choices_are_answered_with_the_letter_of_one() {
        for choices in [["(A) a red bike", "(B) a blue canoe", "(C) a green tent"], ["a bike", "a canoe", "a tent"]] {
            let choices = choices.map(str::to_owned);
            let extracted = extract("What did Tom buy?", &hits(TALK), &choices);
            assert_eq!(extracted, Extracted { answer: "(b)".to_owned(), citations: vec!["D1:4".to_owned()] });
            let unknown = extract("What did Tom buy?", &[], &choices);
            assert_eq!(unknown, Extracted { answer: "(a)".to_owned(), citations: vec![] });
        }
    }

    #[test]
    fn other_shapes_of_hits_are_read_too() {
        assert_eq!(ask("What did Tom buy?", &["Tom bought a red lamp."]), "bought a red lamp [\"D1:1\"]");
        assert_eq!(
            ask("When did Tom buy a lamp?", &["[2031-02-03T10:00:00] Tom bought a lamp."]),
            "3 February 2031 [\"D1:1\"]"
        );
        assert_eq!(ask("When did Tom buy a lamp?", &["[soon] Tom bought a lamp."]), "soon [\"D1:1\"]");
    }

    proptest! {
        #[test]
        fn any_text_gives_a_short_answer(
            question in "(when|how many|how long|who|where|why|which|what|is)? ?(\\PC|[a-z ’'\"?.,\u{0}]){0,40}",
            texts in proptest::collection::vec("(\\[(\\PC){0,12}\\] )?([A-Za-z]{0,5}: )?(\\PC|[a-zA-Z0-9 ’'\"“”?.,!\n]){0,80}", 0..6),
            choices in proptest::collection::vec("\\PC{0,12}", 0..3),
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let hits = hits(&texts);
            let extracted = extract(&question, &hits, &choices);
            prop_assert_eq!(&extracted, &extract(&question, &hits, &choices));
            prop_assert!(extracted.citations.len() <= 1);
            prop_assert!(extracted.citations.iter().all(|id| hits.iter().any(|hit| hit.id == *id)));
            if choices.is_empty() {
                prop_assert!(!extracted.answer.is_empty());
                prop_assert_eq!(extracted.answer == NO_ANSWER, extracted.citations.is_empty());
            } else {
                let letters: Vec<String> = ('a'..='z').zip(&choices).map(|(letter, _)| format!("({letter})")).collect();
                prop_assert!(letters.contains(&extracted.answer));
            }
        }

        #[test]
        fn words_of_the_question_repeated_in_the_text_never_break_it(
            words in proptest::collection::vec("(kite|Ann|when|İ|ß|ǅ|e\u{301}|12|May|ago|last|week|\"|“|,|\\.|\\?|'s|—|a|99999999999999999999)", 0..60),
        ) {
            let text = words.join(" ");
            for glue in ["", "[8 May, 2031] ", "[9999-12-31] Ann: ", "[-9999-01-01] Ann: "] {
                let _ = extract(&text, &hits(&[&format!("{glue}{text}"), &text]), &[]);
            }
        }
    }
}
