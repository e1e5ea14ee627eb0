//! Answers whose grade is known before a judge sees them: right ones in other words, wrong ones that are specific or vague. What a
//! judge makes of them says how often it errs in either direction.
//!
//! They are made of a dataset's own questions and gold, without a model, and the same questions give the same answers. The words
//! are ours.

mod forms;

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    dataset::{Gold, GoldRecord, Question},
    ids::Sha256Hash,
};

pub use self::forms::Form;
use crate::scorers::normalize::normalize;

/// Version of what is planted: raised whenever it changes.
pub const VERSION: u32 = 2;
/// Candidates for a wrong answer that are looked at, before a question goes without one.
const MOST_CANDIDATES: usize = 200;
/// Words of a question that a vague answer takes up.
const TOPIC_WORDS: usize = 3;
/// Shorter words say nothing of a topic.
const SHORTEST_TOPIC_WORD: usize = 4;

/// What an answer is planted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Wrong: a value of the same kind from another question.
    Specific,
    /// Wrong: on the topic, and says nothing.
    Vague,
    /// Right: the expected answer in other words, another order or another form.
    Paraphrase,
    /// Right: the expected answer as it is.
    Verbatim,
    /// Wrong: an answer of a system, as somebody who knows has graded it.
    OwnWrong,
    /// Right: the same.
    OwnRight,
}

impl Kind {
    /// All kinds that can be planted; answers of a system are there already.
    pub const ALL: [Self; 4] = [Self::Specific, Self::Vague, Self::Paraphrase, Self::Verbatim];

    /// Its word in flags, facets and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Specific => "specific",
            Self::Vague => "vague",
            Self::Paraphrase => "paraphrase",
            Self::Verbatim => "verbatim",
            Self::OwnWrong => "own-wrong",
            Self::OwnRight => "own-right",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether a judge should reject it.
    #[must_use]
    pub const fn is_wrong(self) -> bool {
        matches!(self, Self::Specific | Self::Vague | Self::OwnWrong)
    }
}

/// How long an answer is: what grades should not depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The value alone.
    Bare,
    /// In a sentence around it.
    Sentence,
}

impl Length {
    /// Its word in facets and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Sentence => "sentence",
        }
    }
}

/// A planted answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// Kind of the planted answer.
    pub kind: Kind,
    /// Text of the planted answer.
    pub answer: String,
    /// The form of the expected answer.
    pub form: Form,
    /// Whether it is the value alone.
    pub length: Length,
}

/// A question that answers are planted for.
#[derive(Debug, Clone, Copy)]
pub struct Posed<'a> {
    /// Its bank, whose other questions lend their answers first.
    pub bank: u32,
    /// The question as published.
    pub question: &'a Question,
    /// What is expected.
    pub gold: &'a GoldRecord,
}

/// The form of an expected answer.
#[must_use]
pub fn form_of(gold: &Gold) -> Form {
    if gold.is_unanswerable() { Form::NoAnswer } else { Form::of_text(&text_of(gold)) }
}

/// Plants answers of some kinds for each question, in their order. A question goes without a kind where none can be made for it: no
/// other answer is surely wrong, or there is nothing to be vague about.
#[must_use]
pub fn plant(questions: &[Posed<'_>], kinds: &[Kind]) -> Vec<Vec<Planted>> {
    let lenders = Lenders::new(questions);
    questions.iter().map(|posed| kinds.iter().filter_map(|kind| one(posed, *kind, &lenders)).collect()).collect()
}

fn one(posed: &Posed<'_>, kind: Kind, lenders: &Lenders) -> Option<Planted> {
    let gold = &posed.gold.gold;
    let (form, text) = (form_of(gold), text_of(gold));
    let number = number_of(kind, &posed.question.question_id);
    let planted = |answer: String, length| Some(Planted { kind, answer, form, length });
    let length = if number.is_multiple_of(2) { Length::Bare } else { Length::Sentence };
    match kind {
        // answers of a system are its own
        Kind::OwnWrong | Kind::OwnRight => None,
        Kind::Verbatim => planted(text, Length::Bare),
        Kind::Paraphrase if form == Form::NoAnswer => {
            const NOT_KNOWN: [&str; 3] =
                ["I don't know.", "Nobody said anything about that.", "It cannot be told from what was said."];
            planted(pick(&NOT_KNOWN, number).to_owned(), Length::Sentence)
        }
        Kind::Paraphrase => match forms::rephrased(&text, form, number) {
            Some(other) => planted(spoken(other, length, number), length),
            None => planted(spoken(text, Length::Sentence, number), Length::Sentence),
        },
        Kind::Vague if form == Form::NoAnswer => None,
        Kind::Vague => {
            let topic = topic(&posed.question.text);
            let answer = match length {
                Length::Bare => format!("Something to do with {topic}"),
                Length::Sentence if number % 4 == 1 => {
                    format!("It had to do with {topic}, and they came back to it more than once.")
                }
                Length::Sentence => format!("They talked about {topic} for a while, and it clearly mattered to them."),
            };
            planted(answer, length)
        }
        Kind::Specific => planted(spoken(lenders.wrong(posed, number)?, length, number), length),
    }
}

/// What an answer says, whatever kind of gold it is: criteria become parts, and of several right texts the first counts.
fn text_of(gold: &Gold) -> String {
    match gold {
        Gold::AnyOf(texts) => texts.first().cloned().unwrap_or_default(),
        Gold::Abstain | Gold::Unanswerable(_) => "No information available".to_owned(),
        other => other.text(),
    }
    .trim()
    .to_owned()
}

/// A value alone, or said in a sentence.
fn spoken(value: String, length: Length, number: u64) -> String {
    match length {
        Length::Bare => value,
        Length::Sentence if number % 4 < 2 => format!("From what was said, the answer is: {value}"),
        Length::Sentence => format!("As far as the conversations tell, it is this: {value}"),
    }
}

fn pick<'a>(texts: &[&'a str], number: u64) -> &'a str {
    texts.get(number as usize % texts.len().max(1)).copied().unwrap_or_default()
}

/// A number that a question has for a kind, without order.
fn number_of(kind: Kind, question_id: &str) -> u64 {
    let hash = Sha256Hash::of_bytes(format!("bench-plant-v1:{}:{question_id}", kind.name()).as_bytes());
    hash.0[..8].iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// What a question is about, in a few of its own words.
fn topic(question: &str) -> String {
    const NO_TOPIC: [&str; 22] = [
        "what", "when", "where", "which", "whose", "does", "have", "that", "this", "with", "from", "they", "their",
        "there", "would", "could", "about", "been", "were", "many", "much", "likely",
    ];
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| {
        word.chars().count() >= SHORTEST_TOPIC_WORD && !NO_TOPIC.contains(&word.to_lowercase().as_str())
    });
    let words: Vec<&str> = words.take(TOPIC_WORDS).collect();
    if words.is_empty() { "that".to_owned() } else { words.join(" and ") }
}

/// What questions of a group have in common: the form, and where it counts bank and category.
type Shared = (Form, Option<u32>, Option<String>);

/// Answers that other questions lend as wrong ones.
struct Lenders {
    texts: Vec<(String, Said)>,
    /// By form, and by what else they share: bank and category, the bank, the category, nothing.
    groups: [BTreeMap<Shared, Vec<usize>>; 4],
}

/// What of the bank and the category must be shared in each group.
const SHARED: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

impl Lenders {
    fn new(questions: &[Posed<'_>]) -> Self {
        let mut lenders = Self { texts: Vec::new(), groups: Default::default() };
        for posed in questions.iter().filter(|posed| !posed.gold.gold.is_unanswerable()) {
            let text = text_of(&posed.gold.gold);
            if text.is_empty() {
                continue;
            }
            let (form, place) = (Form::of_text(&text), lenders.texts.len());
            for (group, shared) in lenders.groups.iter_mut().zip(SHARED) {
                group.entry(key(posed, form, shared)).or_default().push(place);
            }
            lenders.texts.push((text.clone(), Said::from_text(&text)));
        }
        lenders
    }

    /// An answer that is surely wrong: nothing of it is in what is expected. The nearest question lends it.
    fn wrong(&self, posed: &Posed<'_>, number: u64) -> Option<String> {
        let gold = &posed.gold.gold;
        let form = form_of(gold);
        let right: Vec<Said> = match gold {
            Gold::AnyOf(texts) => texts.iter().map(|text| Said::from_text(text)).collect(),
            gold => vec![Said::from_text(&text_of(gold))],
        };
        // what the question says itself would be no answer
        let asked = Said::from_text(&posed.question.text).words;
        let differs = |said: &Said| {
            !(said.words.is_empty() || said.words.is_subset(&asked)) && right.iter().all(|right| !said.may_be(right))
        };
        let forms = if form == Form::NoAnswer { Form::VALUES.to_vec() } else { vec![form] };
        for (group, shared) in self.groups.iter().zip(SHARED) {
            for form in &forms {
                let Some(places) = group.get(&key(posed, *form, shared)) else { continue };
                let from = number as usize % places.len();
                let turned = places[from..].iter().chain(&places[..from]).take(MOST_CANDIDATES);
                let mut texts = turned.filter_map(|place| self.texts.get(*place));
                if let Some((text, _)) = texts.find(|(_, said)| differs(said)) {
                    return Some(text.clone());
                }
            }
        }
        None
    }
}

fn key(posed: &Posed<'_>, form: Form, (bank, category): (bool, bool)) -> Shared {
    (form, bank.then_some(posed.bank), category.then(|| posed.question.category.clone()))
}

/// What tells an answer from another; days are in words in whatever notation they are written.
struct Said {
    words: BTreeSet<String>,
    /// It names one month, so that its year tells it from no other answer that does: two days of one year are two answers. A year
    /// alone, a season or a span may hold any day of theirs.
    names_a_month: bool,
    /// The text, where it is a date.
    date: Option<String>,
}

impl Said {
    fn from_text(text: &str) -> Self {
        let date = (Form::of_text(text) == Form::Date).then(|| text.to_owned());
        let in_words: Vec<String> =
            text.split_whitespace().map(|word| forms::day_in_words(word).unwrap_or_else(|| word.to_owned())).collect();
        let text = in_words.join(" ");
        let words = normalize(&text).split_whitespace().map(str::to_owned).collect();
        Self { words, names_a_month: forms::months(&text).count() == 1, date }
    }

    /// Whether both could mean the same: they share a word that may make it so, or are dates of which one may hold the other.
    fn may_be(&self, other: &Self) -> bool {
        let years_apart = self.names_a_month && other.names_a_month;
        let dates = self.date.as_deref().zip(other.date.as_deref());
        dates.is_some_and(|(one, other)| !forms::surely_differ(one, other))
            || self.words.intersection(&other.words).any(|word| !(years_apart && forms::is_year(word)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn posed(id: &str, category: &str, text: &str, gold: Gold) -> (Question, GoldRecord) {
        let question = Question {
            question_id: id.to_owned(),
            category: category.to_owned(),
            text: text.to_owned(),
            ..Question::default()
        };
        (question, GoldRecord { question_id: id.to_owned(), gold, ..GoldRecord::default() })
    }

    fn text(text: &str) -> Gold {
        Gold::Text(text.to_owned())
    }

    fn planted(all: &[(Question, GoldRecord)], kinds: &[Kind]) -> Vec<Vec<Planted>> {
        let all: Vec<Posed<'_>> = all.iter().map(|(question, gold)| Posed { bank: 0, question, gold }).collect();
        plant(&all, kinds)
    }

    #[test]
    fn a_wrong_answer_is_another_questions_of_the_same_form() {
        let all = [
            posed("a", "temporal", "When did Ann move?", text("7 May 2023")),
            posed("b", "temporal", "When did Bob leave?", text("12 June 2023")),
            posed("c", "single-hop", "What does Ann play?", text("the violin")),
            posed("d", "single-hop", "What does Bob fear?", text("heights")),
            posed("e", "adversarial", "What does Cid own?", Gold::Abstain),
        ];
        let specific: Vec<String> =
            planted(&all, &[Kind::Specific]).into_iter().map(|of| of[0].answer.clone()).collect();
        assert!(specific[0].contains("12 June 2023") && specific[1].contains("7 May 2023"), "{specific:?}");
        assert!(specific[2].contains("heights") && specific[3].contains("the violin"), "{specific:?}");
        assert!(["7 May", "12 June", "violin", "heights"].iter().any(|value| specific[4].contains(value)));
        let alone = planted(&all[..1], &Kind::ALL);
        let kinds: Vec<Kind> = alone[0].iter().map(|planted| planted.kind).collect();
        assert_eq!(kinds, [Kind::Vague, Kind::Paraphrase, Kind::Verbatim], "nobody lends a wrong one");
    }

    #[test]
    fn an_answer_that_shares_a_word_with_the_right_one_is_not_called_wrong() {
        let all = [
            posed("a", "x", "What does Ann like?", text("red wine")),
            posed("b", "x", "What does Bob like?", text("white wine")),
            posed("c", "x", "What does Cid like?", Gold::AnyOf(vec!["beer".to_owned(), "red ale".to_owned()])),
        ];
        let specific = planted(&all, &[Kind::Specific]);
        assert!(specific[0][0].answer.contains("beer"), "{specific:?}");
        assert!(specific[2][0].answer.contains("white wine"), "red is in one of its right answers");
    }

    #[test]
    fn a_date_that_may_be_the_right_one_is_not_called_wrong() {
        for (right, other, is_planted) in [
            ("2022", "7 May 2022", false),
            ("7 May 2022", "2022", false),
            ("7 May 2022", "2022-05-07", false),
            ("2022-05-07", "May 7, 2022", false),
            ("summer 2022", "July 2022", false),
            ("May to July 2022", "9 June 2022", false),
            ("the week before 1 June 2023", "28 May 2023", false),
            ("2022", "7 May 2021", true),
            ("7 May 2022", "12 June 2022", true),
            ("2022-05-07", "2022-06-12", true),
            ("2022-05-07", "12 June 2022", true),
        ] {
            let all = [right, other].map(|gold| posed(gold, "x", "When was it?", text(gold)));
            let specific = planted(&all, &[Kind::Specific]);
            assert_eq!(!specific[0].is_empty(), is_planted, "{right}, {other}: {specific:?}");
        }
        let all = [
            posed("a", "temporal", "When did Ann move?", text("2022")),
            posed("b", "temporal", "When did Bob leave?", text("December 2022")),
            posed("c", "temporal", "When did Cid come?", text("12 June 2023")),
        ];
        let specific = planted(&all, &[Kind::Specific]);
        for of in &specific[..2] {
            assert!(of[0].answer.contains("12 June 2023"), "{specific:?}");
        }
    }

    #[test]
    fn prose_and_dates_are_paraphrased_as_they_are() {
        for gold in ["The Friday before 23January, 2022", "They paint, which helps them with stress, and write."] {
            let paraphrase = &planted(&[posed("a", "x", "What?", text(gold))], &[Kind::Paraphrase])[0][0];
            assert!(paraphrase.answer.ends_with(gold) && paraphrase.length == Length::Sentence, "{paraphrase:?}");
        }
    }

    #[test]
    fn vague_answers_take_up_the_question_and_say_nothing() {
        let all = [posed("a", "x", "When did Melanie paint a sunrise?", text("2022"))];
        let vague = &planted(&all, &[Kind::Vague])[0][0];
        assert!(vague.answer.contains("Melanie and paint and sunrise") && !vague.answer.contains("2022"), "{vague:?}");
        let unanswerable = [posed("a", "x", "What does Cid own?", Gold::Unanswerable("nobody said".to_owned()))];
        let kinds = planted(&unanswerable, &Kind::ALL);
        let answers: Vec<&str> = kinds[0].iter().map(|planted| planted.answer.as_str()).collect();
        assert_eq!((answers.len(), answers[1]), (2, "No information available"));
    }

    #[test]
    fn paraphrases_are_never_the_answer_itself() {
        for gold in [text("7 May 2023"), text("a, b, and c"), Gold::Number(4.into()), text("the violin"), Gold::Abstain]
        {
            let expected = text_of(&gold);
            let planted = planted(&[posed("a", "x", "What?", gold)], &[Kind::Paraphrase, Kind::Verbatim]);
            assert_ne!(planted[0][0].answer, expected);
            assert_eq!(planted[0][1].answer, expected);
        }
    }

    proptest! {
        #[test]
        fn the_same_questions_give_the_same_answers_and_no_wrong_one_is_right(golds in prop::collection::vec("\\PC{0,20}|[0-9]{1,2} (May|June) 2023|(a|b|c|d)(, (a|b|e)){0,3}", 1..12)) {
            let all: Vec<_> = golds.iter().enumerate().map(|(i, gold)| posed(&i.to_string(), "x", gold, text(gold))).collect();
            let first = planted(&all, &Kind::ALL);
            prop_assert_eq!(&first, &planted(&all, &Kind::ALL));
            for ((_, record), planted) in all.iter().zip(&first) {
                let right = Said::from_text(&text_of(&record.gold));
                for wrong in planted.iter().filter(|planted| planted.kind == Kind::Specific && planted.length == Length::Bare) {
                    prop_assert!(!Said::from_text(&wrong.answer).may_be(&right), "{:?} {}", right.words, wrong.answer);
                }
            }
        }
    }
}
