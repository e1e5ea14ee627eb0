//! Which facts hold: a later value of an attribute takes the place of the one before it, and so does what a line says no longer
//! holds. Both are about one subject of one owner.

use std::collections::HashMap;

use bench_proto::{
    dataset::Memory,
    step::{HitLevel, PlacedBy, RetrievedHit},
};

use super::prompt::Noted;
use crate::documents::Document;

/// A fact, with what decides about it.
#[derive(Debug)]
pub(super) struct Fact {
    /// Place of its turn or memory among those that are visible.
    pub(super) document: usize,
    /// Whose memory it is, and in which scopes: facts of others say nothing about it.
    owner: String,
    subject: String,
    attribute: String,
    value: Vec<String>,
    before: Vec<String>,
    single: bool,
}

impl Fact {
    /// What was noted of a document.
    pub(super) fn new(place: usize, document: Document<'_>, noted: &Noted) -> Self {
        let owner = match document {
            Document::Turn(..) => String::new(),
            Document::Memory(Memory { user, scopes, .. }) => {
                format!("{}\n{}", user.as_deref().unwrap_or_default(), scopes.join("\n"))
            }
        };
        Self {
            document: place,
            owner,
            subject: name(&noted.subject),
            attribute: name(&noted.attribute),
            value: words(&noted.value),
            before: words(&noted.before),
            single: noted.single,
        }
    }

    /// Memory that it holds, roughly.
    pub(super) fn bytes(&self) -> u64 {
        let texts = [&self.owner, &self.subject, &self.attribute].map(String::len).iter().sum::<usize>();
        let words = self.value.iter().chain(&self.before).map(|word| word.len() + size_of::<String>()).sum::<usize>();
        (texts + words + size_of::<Self>()) as u64
    }

    /// Whether it takes away an earlier one about the same subject.
    fn replaces(&self, earlier: &Self) -> bool {
        let named = !self.attribute.is_empty() && self.attribute == earlier.attribute;
        let same = self.single && earlier.single && named;
        let said = !self.before.is_empty() && holds(&earlier.value, &self.before);
        same || said
    }
}

/// Which facts hold, among those whose documents are admitted. They are in the order of the stream.
pub(super) fn holding(facts: &[Fact], admitted: Option<&[bool]>) -> Vec<bool> {
    let mut holding: Vec<bool> =
        facts.iter().map(|fact| admitted.is_none_or(|admitted| admitted.get(fact.document) == Some(&true))).collect();
    let mut about: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    let seen: Vec<usize> = (0..facts.len()).filter(|at| holding[*at] && !facts[*at].subject.is_empty()).collect();
    for at in seen {
        let fact = &facts[at];
        let earlier = about.entry((&fact.owner, &fact.subject)).or_default();
        earlier.retain(|before| {
            let stays = !fact.replaces(&facts[*before]);
            holding[*before] = stays;
            stays
        });
        earlier.push(at);
    }
    holding
}

/// A name as it is compared: its words, without an article before them.
fn name(text: &str) -> String {
    let words = words(text);
    let articles = usize::from(words.len() > 1 && ["the", "a", "an"].contains(&words[0].as_str()));
    words[articles..].join(" ")
}

/// The words of a text in their order: letters and digits, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Whether these words stand in a value, one after the other.
fn holds(value: &[String], said: &[String]) -> bool {
    value.windows(said.len()).any(|window| window == said)
}

/// The hit of a fact: its words, at the place that it was taken from.
pub(super) fn hit(document: Document<'_>, noted: &Noted) -> RetrievedHit {
    let own = format!("{}: {}: {}", noted.subject, noted.attribute, noted.value);
    let text = if noted.text.trim().is_empty() { own } else { noted.text.clone() };
    let (placed_by, level) = (Some(PlacedBy::Id), Some(HitLevel::Turn));
    RetrievedHit { text: document.dated(text), placed_by, level, ..document.hit(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(subject: &str, attribute: &str, value: &str, before: &str, single: bool) -> Noted {
        let [subject, attribute, value, before] = [subject, attribute, value, before].map(str::to_owned);
        Noted { line: 1, subject, attribute, value, before, single, text: String::new() }
    }

    fn facts(noted: &[(Memory, Noted)]) -> Vec<Fact> {
        let numbered = noted.iter().enumerate();
        numbered.map(|(at, (memory, noted))| Fact::new(at, Document::Memory(memory), noted)).collect()
    }

    fn of(owner: &str) -> Memory {
        Memory { user: Some(owner.to_owned()), ..Memory::default() }
    }

    #[test]
    fn a_later_value_takes_the_place_of_the_one_before_it() {
        let all = facts(&[
            (of("a"), noted("The Project Opal", "deadline", "3 May", "", true)),
            (of("a"), noted("project opal", "is due on", "3 May 2031", "", true)),
            (of("a"), noted("Project Opal", "Deadline", "7 June", "3 May", true)),
            (of("a"), noted("Project Opal", "helper", "Ann", "", false)),
            (of("a"), noted("Project Opal", "helper", "Bo", "", false)),
            (of("b"), noted("Project Opal", "deadline", "9 July", "7 June", true)),
            (of("a"), noted("Project Jade", "deadline", "9 July", "7 June", true)),
        ]);
        assert_eq!(holding(&all, None), [false, false, true, true, true, true, true]);
        // whoever may not see the newer one is told the older
        let until = [true, true, false, true, false, true, true];
        assert_eq!(holding(&all, Some(&until)), [true, true, false, true, false, true, true]);
        assert_eq!(holding(&[], None), Vec::<bool>::new());
    }

    #[test]
    fn what_no_longer_holds_is_a_whole_value_or_words_of_it_one_after_the_other() {
        let value = words("port 8080, since 3 May");
        for said in ["8080", "3 may", "Port 8080"] {
            assert!(holds(&value, &words(said)), "{said}");
        }
        for said in ["80", "8080 May", "port 8080 since 3 May too"] {
            assert!(!holds(&value, &words(said)), "{said}");
        }
    }

    #[test]
    fn a_hit_says_the_fact_at_the_place_of_its_source() {
        let memory = Memory { id: "m1".to_owned(), text: "I moved to Oslo.".to_owned(), ..Memory::default() };
        let hit = hit(Document::Memory(&memory), &noted("Ann", "home", "Oslo", "", true));
        assert_eq!((hit.id.as_str(), hit.session_id.as_str(), hit.text.as_str()), ("m1", "m1", "Ann: home: Oslo"));
    }
}
