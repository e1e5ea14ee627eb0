//! Facts that a text states, found by simple rules of English: what a model replies that is asked to take notes. The rules know
//! proper names, clauses, and the ways in which a sentence says that something else held before; no dataset, and no answers.

use serde_json::{Value, json};

/// Words that a clause goes on with.
const VERBS: [&str; 12] = ["is", "was", "are", "were", "has", "had", "have", "will", "can", "may", "does", "did"];
/// Words at the beginning of a sentence, or of a name, that name nothing.
#[rustfmt::skip]
const NO_NAMES: &[&str] = &[
    "A", "After", "An", "And", "At", "Before", "But", "By", "For", "From", "I", "If", "In", "It", "My", "No", "Of", "On", "Our",
    "So", "That", "The", "There", "This", "To", "We", "What", "When", "While", "With", "Yes",
];
/// What comes before a value that holds no longer.
const FORMER: [&str; 5] = [" instead of ", " and is no longer ", " and no longer ", ", before that ", ", not "];

/// Longest value of a note, in words: what is longer is noted by its beginning.
const MOST_WORDS: usize = 60;

/// A fact of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) subject: String,
    pub(crate) attribute: String,
    pub(crate) value: String,
    pub(crate) before: String,
    pub(crate) text: String,
}

/// The reply to a request for the facts of numbered lines; no facts where it has none.
pub(crate) fn reply(request: &str) -> String {
    let asked: Value = serde_json::from_str(request).unwrap_or_default();
    let lines = asked["lines"].as_array().into_iter().flatten();
    let of_line = |line: &Value| {
        let number = line["line"].clone();
        let mut noted: Vec<Value> = Vec::new();
        for fact in facts(line["text"].as_str().unwrap_or_default()) {
            // what is said again is noted once
            let fact = fact.json(&number);
            if !noted.contains(&fact) {
                noted.push(fact);
            }
        }
        noted
    };
    let facts: Vec<Value> = lines.flat_map(of_line).collect();
    json!({ "facts": facts }).to_string()
}

impl Fact {
    fn json(&self, line: &Value) -> Value {
        let Self { subject, attribute, value, before, text } = self;
        // only what says itself that it takes the place of something has one value at a time
        let single = !before.is_empty();
        json!({
            "line": line, "subject": subject, "attribute": attribute, "value": beginning(value), "before": before,
            "single": single, "text": beginning(text),
        })
    }
}

fn beginning(text: &str) -> &str {
    let end = text.char_indices().filter(|(_, c)| c.is_whitespace()).nth(MOST_WORDS).map_or(text.len(), |(at, _)| at);
    // what has no words is no text of a language
    let most = (0..=end.min(MOST_WORDS * 16)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..most]
}

/// The facts that a line of somebody states.
fn facts(line: &str) -> Vec<Fact> {
    let (speaker, said) = match line.split_once(": ") {
        Some((speaker, said)) if speaker.split(' ').count() <= 3 && starts_name(speaker) => (speaker, said),
        _ => ("", line),
    };
    sentences(said)
        .into_iter()
        .filter(|sentence| !sentence.ends_with('?'))
        .flat_map(|it| of_sentence(it, speaker))
        .collect()
}

/// Sentences, with their last sign.
fn sentences(text: &str) -> Vec<&str> {
    let (mut sentences, mut from) = (Vec::new(), 0);
    for (at, sign) in text.match_indices(['.', '!', '?']) {
        let end = at + sign.len();
        // a point inside of a number ends nothing
        if text[end..].starts_with(' ') || end == text.len() {
            sentences.push(text[from..end].trim());
            from = end;
        }
    }
    sentences.push(text[from..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn of_sentence(sentence: &str, speaker: &str) -> Vec<Fact> {
    let sentence = sentence.trim_end_matches(['.', '!']);
    let (name, is_own) = match proper_name(sentence) {
        Some(name) => (name, false),
        None if !speaker.is_empty() => (speaker, true),
        None => return Vec::new(),
    };
    // what is said stands behind an introduction
    let said = sentence.rsplit([';', ':']).find(|part| part.contains(' ')).unwrap_or(sentence).trim();
    if let Some(change) = change(name, said) {
        return vec![change];
    }
    let predicate = said.strip_prefix(name).map(str::trim).filter(|rest| !rest.is_empty() && !is_own);
    match predicate {
        Some(predicate) => clauses(predicate).into_iter().map(|clause| plain(name, clause)).collect(),
        None => vec![Fact {
            subject: name.to_owned(),
            value: said.to_owned(),
            text: sentence.to_owned(),
            ..Fact::default()
        }],
    }
}

/// What a clause says of somebody.
fn plain(name: &str, clause: &str) -> Fact {
    let is_value = |word: &str| word.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '$');
    let words: Vec<&str> = clause.split(' ').collect();
    let at = words.iter().position(|word| is_value(word)).unwrap_or(1).min(words.len() - 1).max(1).min(words.len());
    let (attribute, value) = (words[..at].join(" "), words[at..].join(" "));
    Fact { subject: name.to_owned(), attribute, value, text: format!("{name} {clause}"), before: String::new() }
}

/// A new value in the place of a former one, where a sentence says both.
fn change(name: &str, said: &str) -> Option<Fact> {
    let made = |attribute: &str, value: &str, before: &str| {
        let [attribute, value, before] = [label(attribute, name), trimmed(value), trimmed(before)];
        let known = !attribute.is_empty() && !value.is_empty() && !before.is_empty();
        let text = format!("{name}: the {attribute} is {value}");
        known.then(|| Fact { subject: name.to_owned(), attribute, value, before, text })
    };
    // "its deadline moves from 3 May to 7 June"
    if let Some((head, rest)) = said.split_once(" from ")
        && let Some((before, value)) = rest.split_once(" to ")
        && let Some((attribute, _verb)) = head.rsplit_once(' ')
    {
        return made(attribute, value, before);
    }
    // "Bergen is the seat, Oslo was before"
    if let Some((held, before)) = said.strip_suffix(" was before").and_then(|said| said.rsplit_once(", "))
        && let Some((value, attribute)) = held.split_once(" is ")
    {
        return made(attribute, value, before);
    }
    let (head, before) = FORMER.iter().find_map(|sign| said.split_once(sign))?;
    let parted = [" is now ", " is ", " became ", " are now "].iter().find_map(|verb| head.split_once(verb));
    let (attribute, value) = parted.or_else(|| head.split_once(' '))?;
    made(attribute, value.trim_end_matches(" from now on"), before)
}

/// The name of an attribute: without articles, and without whose it is.
fn label(text: &str, name: &str) -> String {
    let without = text.replace(&format!("of {name}"), " ");
    let words = without.split_whitespace().filter(|word| !["the", "its", "a", "an", "is", "now"].contains(word));
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

fn trimmed(text: &str) -> String {
    text.trim().trim_end_matches(',').to_owned()
}

/// The clauses of a predicate: it is cut where another verb follows a comma or an "and".
fn clauses(predicate: &str) -> Vec<&str> {
    let is_verb = |rest: &str| {
        let word = rest.split(' ').next().unwrap_or_default();
        let is_third_person = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
        VERBS.contains(&word) || (is_third_person && word.chars().all(|c| c.is_ascii_lowercase()))
    };
    let (mut clauses, mut from) = (Vec::new(), 0);
    let mut cuts: Vec<(usize, usize)> = [", and ", ", ", " and "]
        .iter()
        .flat_map(|sign| predicate.match_indices(sign).map(|(at, sign)| (at, at + sign.len())))
        .filter(|(_, end)| is_verb(&predicate[*end..]))
        .collect();
    cuts.sort_unstable();
    for (at, end) in cuts.into_iter().filter(|(at, _)| *at > 0) {
        if at >= from {
            clauses.push(predicate[from..at].trim());
            from = end;
        }
    }
    clauses.push(predicate[from..].trim());
    clauses.retain(|clause| !clause.is_empty());
    clauses
}

fn starts_name(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
}

/// The first proper name of a sentence: capitalised words in a row, or a word with a hyphen or a figure that begins so. A single
/// capitalised word at the beginning is none: every sentence has one.
fn proper_name(sentence: &str) -> Option<&str> {
    let words: Vec<&str> = sentence.split(' ').collect();
    let start = |at: usize| words[at].as_ptr() as usize - sentence.as_ptr() as usize;
    let bare = |word: &'_ str| word.trim_end_matches([',', ':', ';']).trim_end_matches("'s").len();
    let is_part = |word: &str| starts_name(word) && !NO_NAMES.contains(&&word[..bare(word)]);
    let mut at = 0;
    while at < words.len() {
        if !is_part(words[at]) {
            at += 1;
            continue;
        }
        let mut last = at;
        // a comma ends a name, and a sign may join two words
        while bare(words[last]) == words[last].len() {
            let joined = usize::from(words.get(last + 1) == Some(&"&"));
            match words.get(last + 1 + joined) {
                Some(next) if is_part(next) || (next.starts_with(|c: char| c.is_ascii_digit()) && last > at) => {
                    last += 1 + joined;
                }
                _ => break,
            }
        }
        let word = &words[last][..bare(words[last])];
        let is_alone =
            at == 0 && last == 0 && !word.contains(['-', '&']) && !word.contains(|c: char| c.is_ascii_digit());
        if !is_alone {
            // a number of a file, a case or a log is a name by itself
            let is_id = word.contains('-') && word.contains(|c: char| c.is_ascii_digit());
            let from = if is_id { last } else { at };
            return Some(&sentence[start(from)..start(last) + bare(words[last])]);
        }
        at = last + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Vec<String> {
        let shown = |fact: Fact| {
            let Fact { subject, attribute, value, before, text } = fact;
            format!("{subject} | {attribute} | {value} | {before} | {text}")
        };
        facts(line).into_iter().map(shown).collect()
    }

    #[test]
    fn a_sentence_is_cut_into_its_clauses() {
        assert_eq!(
            told(
                "Clerk: Entry for the list: Project Opal Birch is due on 3 May, has a budget of $45,000 and fills 12 desks."
            ),
            [
                "Project Opal Birch | is due on | 3 May |  | Project Opal Birch is due on 3 May",
                "Project Opal Birch | has a budget of | $45,000 |  | Project Opal Birch has a budget of $45,000",
                "Project Opal Birch | fills | 12 desks |  | Project Opal Birch fills 12 desks",
            ]
        );
        assert_eq!(told("Ann: I like the sea. Do you?"), ["Ann |  | I like the sea |  | I like the sea"]);
        assert_eq!(told("Nothing of note"), [""; 0]);
        assert_eq!(told(""), [""; 0]);
    }

    #[test]
    fn what_held_before_is_told_apart_from_what_holds() {
        for line in [
            "Clerk: Change in Project Opal: the deadline is now 7 June instead of 3 May.",
            "Clerk: Project Opal was replanned; its deadline moves from 3 May to 7 June.",
            "Clerk: News of Project Opal: its deadline is 7 June from now on and no longer 3 May.",
            "Clerk: Correction to the list: of Project Opal the deadline is 7 June, not 3 May.",
            "Clerk: The plan turns: the deadline of Project Opal became 7 June and is no longer 3 May.",
            "Clerk: What I told of Project Opal is out of date: 7 June is the deadline, 3 May was before.",
        ] {
            let expected = "Project Opal | deadline | 7 June | 3 May | Project Opal: the deadline is 7 June";
            assert_eq!(told(line), [expected], "{line}");
        }
        assert_eq!(
            told("Clerk: IN-4711, next entry: status closed, before that open."),
            ["IN-4711 | status | closed | open | IN-4711: the status is closed"]
        );
    }

    #[test]
    fn names_are_found_behind_the_first_word_of_a_sentence() {
        for (sentence, name) in [
            ("Change in Project Opal: it grows", Some("Project Opal")),
            ("In Elm & Opal Works nobody sleeps", Some("Elm & Opal Works")),
            ("The cat of Ann Lee's slept", Some("Ann Lee")),
            ("Incident IN-12 is open", Some("IN-12")),
            ("Subnet jade-7 is small", None),
            ("SE-99 records a login", Some("SE-99")),
            ("The cat sleeps", None),
        ] {
            assert_eq!(proper_name(sentence), name, "{sentence}");
        }
    }

    #[test]
    fn a_reply_has_the_lines_that_were_asked_for() {
        let asked = r#"{"date":null,"lines":[{"line":1,"text":"Ann: Hello?"},{"line":2,"text":"Ann: Project Opal fills 12 desks."}]}"#;
        let reply: Value = serde_json::from_str(&reply(asked)).expect("JSON");
        assert_eq!((reply["facts"].as_array().map(Vec::len), &reply["facts"][0]["line"]), (Some(1), &json!(2)));
        assert_eq!(super::reply("no object"), r#"{"facts":[]}"#);
        let again = json!({"lines": [{"line": 1, "text": "Ann: The sea was calm. ".repeat(180)}]}).to_string();
        assert_eq!(
            super::reply(&again).matches("calm").count(),
            4,
            "text and value of two: said with and without a speaker"
        );
    }
}
