//! Words, sentences, and the pieces of them that make short answers. Everything borrows from the text.

/// Longest answer, in words.
pub(super) const MAX_WORDS: usize = 8;

/// A word and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// As written; an apostrophe inside belongs to it.
    pub(super) text: &'a str,
    /// Byte at which it starts.
    start: usize,
    /// Whether a mark that ends a clause stands before it.
    pub(super) clause_starts: bool,
}

/// Words without a topic: articles, pronouns, prepositions, auxiliaries, question words. Sorted.
#[rustfmt::skip]
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before", "being",
    "but", "by", "can", "could", "did", "didn", "do", "does", "doesn", "doing", "don", "during", "for", "from", "had",
    "has", "have", "having", "he", "her", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its",
    "just", "kind", "many", "me", "much", "my", "not", "of", "on", "or", "our", "out", "really", "she", "should", "so",
    "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to",
    "too", "up", "us", "very", "was", "wasn", "we", "were", "what", "when", "where", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your",
];

const NUMBER_WORDS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "once", "twice",
];

const UNITS: &[&str] = &["minute", "hour", "day", "week", "month", "year", "decade"];

/// Calls `f` with every word and the byte at which it starts.
pub(super) fn for_each_word<'a>(text: &'a str, mut f: impl FnMut(usize, &'a str)) {
    let mut start = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let inside = c.is_alphanumeric()
            || (start.is_some()
                && matches!(c, '\'' | '’')
                && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric()));
        match (inside, start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                f(from, &text[from..at]);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        f(from, &text[from..]);
    }
}

/// The words of a text.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    for_each_word(text, |start, word| {
        let end = words.last().map_or(0, |last| last.start + last.text.len());
        let clause_starts =
            text[end..start].contains([',', ';', ':', '(', ')', '[', ']', '—', '–', '\n', '!', '?', '"']);
        words.push(Word { text: word, start, clause_starts });
    });
    words
}

/// Calls `f` with every sentence that holds something.
pub(super) fn for_each_sentence<'a>(text: &'a str, mut f: impl FnMut(&'a str)) {
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            f(&text[start..end]);
            start = end;
        }
    }
    if start < text.len() {
        f(&text[start..]);
    }
}

/// Whether a word carries no topic; contractions count by their first part.
pub(super) fn is_function_word(word: &str) -> bool {
    let word = word.split(['\'', '’']).next().unwrap_or(word);
    let mut lower = [0_u8; 8];
    let Some(lower) = lower.get_mut(..word.len()) else {
        return false;
    };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    FUNCTION_WORDS.binary_search_by(|known| known.as_bytes().cmp(lower)).is_ok()
}

/// Whether a word equals `lower`, which is in lower case.
pub(super) fn lower_eq(word: &str, lower: &str) -> bool {
    if word.is_ascii() {
        word.eq_ignore_ascii_case(lower)
    } else {
        word.chars().flat_map(char::to_lowercase).eq(lower.chars())
    }
}

fn is_one_of(word: &str, options: &[&str]) -> bool {
    options.iter().any(|option| lower_eq(word, option))
}

/// The word without its usual English endings. Always a prefix of the word, so nothing is copied.
pub(super) fn stem(word: &str) -> &str {
    let stem = word.split(['\'', '’']).next().unwrap_or(word);
    if !stem.is_ascii() {
        return stem;
    }
    let without = |ending: &str| {
        let kept = stem.len().checked_sub(ending.len()).filter(|kept| *kept >= 3)?;
        let ends = stem[kept..].eq_ignore_ascii_case(ending) && !stem[..kept].ends_with(['s', 'S']);
        ends.then(|| &stem[..kept])
    };
    if let Some(stem) = without("ing").or_else(|| without("ed")) {
        return match stem.as_bytes() {
            [.., a, b] if stem.len() > 3 && a.eq_ignore_ascii_case(b) => &stem[..stem.len() - 1], // running, run
            _ => stem,
        };
    }
    let stem = without("ies").or_else(|| without("es")).or_else(|| without("s")).unwrap_or(stem);
    if stem.len() > 3 { stem.strip_suffix(['e', 'y', 'E', 'Y']).unwrap_or(stem) } else { stem }
}

/// Whether two stems are the same but for case.
pub(super) fn same_stem(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}

/// The text from the first to the last of some words.
fn cut(text: &str, words: &[Word<'_>]) -> Option<String> {
    let (first, last) = (words.first()?, words.last()?);
    Some(text[first.start..last.start + last.text.len()].to_owned())
}

/// A number: digits, or a small one in words.
pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) || is_one_of(word, NUMBER_WORDS)
}

/// The first number; `one` is mostly a pronoun.
pub(super) fn number(words: &[Word<'_>]) -> Option<String> {
    words.iter().find(|word| is_number(word.text) && !lower_eq(word.text, "one")).map(|word| word.text.to_lowercase())
}

/// The first stretch of time, such as `three years`.
pub(super) fn duration(text: &str, words: &[Word<'_>]) -> Option<String> {
    let unit = words.iter().position(|word| UNITS.iter().any(|unit| same_stem(stem(word.text), stem(unit))))?;
    let amount = words.get(unit.checked_sub(1)?)?;
    (is_number(amount.text) || is_one_of(amount.text, &["a", "an", "few", "several", "couple", "many"]))
        .then(|| cut(text, &words[unit - 1..=unit]))?
}

/// The longest run of capitalised words that the question does not have; the word at the start of a sentence counts
/// only as part of a longer run.
pub(super) fn name(text: &str, words: &[Word<'_>], in_question: impl Fn(&str) -> bool) -> Option<String> {
    let fits = |word: &Word<'_>| {
        word.text.starts_with(char::is_uppercase) && !is_function_word(word.text) && !in_question(word.text)
    };
    let mut best: &[Word<'_>] = &[];
    let mut from = 0;
    while from < words.len() {
        let run = words[from..]
            .iter()
            .enumerate()
            .take_while(|(n, word)| fits(word) && (*n == 0 || !word.clause_starts))
            .count();
        if run > best.len() && !(from == 0 && run == 1) {
            best = &words[from..from + run.min(MAX_WORDS)];
        }
        from += run.max(1);
    }
    cut(text, best)
}

/// What follows a preposition of place, a capitalised name if there is one.
pub(super) fn place(text: &str, words: &[Word<'_>], in_question: impl Fn(&str) -> bool) -> Option<String> {
    let follows = |at: usize| {
        let rest = words.get(at + 1..)?;
        let rest = &rest[rest.iter().take_while(|word| is_function_word(word.text)).count()..];
        (!rest.is_empty()).then_some(rest)
    };
    let prepositions: Vec<usize> = (0..words.len())
        .filter(|at| is_one_of(words[*at].text, &["in", "at", "to", "from", "near", "on", "by"]))
        .collect();
    let named = prepositions.iter().find_map(|at| {
        let rest = follows(*at)?;
        let run = rest.iter().enumerate().take_while(|(n, word)| {
            word.text.starts_with(char::is_uppercase) && (*n == 0 || !word.clause_starts) && !in_question(word.text)
        });
        cut(text, &rest[..run.count().min(MAX_WORDS)])
    });
    named.or_else(|| {
        prepositions
            .iter()
            .find_map(|at| follows(*at).filter(|rest| !in_question(rest[0].text)).and_then(|rest| clause(text, rest)))
    })
}

/// What follows a word that gives a reason.
pub(super) fn reason(text: &str, words: &[Word<'_>]) -> Option<String> {
    let at = words.iter().position(|word| is_one_of(word.text, &["because", "since", "so"]))?;
    clause(text, &words[at + 1..])
}

/// Whether the words deny something.
pub(super) fn negated(words: &[Word<'_>]) -> bool {
    words.iter().any(|word| {
        is_one_of(word.text, &["no", "not", "never", "none", "cannot"])
            || word.text.ends_with("n't")
            || word.text.ends_with("n’t")
    })
}

/// A title in double quotes, when it is short.
pub(super) fn quoted(text: &str) -> Option<String> {
    let from = text.find(['"', '“'])?;
    let rest = text[from..].get(text[from..].chars().next()?.len_utf8()..)?;
    let title = rest[..rest.find(['"', '”'])?].trim();
    let count = words(title).len();
    (1..=MAX_WORDS).contains(&count).then(|| title.to_owned())
}

/// The first words up to the end of their clause, without function words at either end.
pub(super) fn clause(text: &str, words: &[Word<'_>]) -> Option<String> {
    let from = words.iter().position(|word| !is_function_word(word.text))?;
    let rest = &words[from..];
    let mut len = 1 + rest[1..].iter().take_while(|word| !word.clause_starts).count().min(MAX_WORDS - 1);
    while is_function_word(rest[len - 1].text) {
        len -= 1; // ends at the latest at the first word, which is none
    }
    cut(text, &rest[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_sorted_for_the_search() {
        assert!(FUNCTION_WORDS.is_sorted());
        for word in ["The", "don't", "I’m", "WHERE", "a"] {
            assert!(is_function_word(word), "{word}");
        }
        for word in ["kite", "’", "Äpfel", "somewhereelse", "12"] {
            assert!(!is_function_word(word), "{word}");
        }
    }

    #[test]
    fn endings_do_not_keep_words_apart() {
        for (a, b) in [
            ("painting", "Painted"),
            ("running", "runs"),
            ("hobbies", "hobby"),
            ("race", "racing"),
            ("kite's", "kites"),
            ("lessons", "Lesson"),
            ("Ärger", "ärger"),
        ] {
            assert!(same_stem(stem(a), stem(b)), "{a} {b}: {} {}", stem(a), stem(b));
        }
        for (a, b) in [("king", "kin"), ("glass", "gla"), ("red", "r"), ("kite", "boat")] {
            assert!(!same_stem(stem(a), stem(b)), "{a} {b}");
        }
    }

    #[test]
    fn words_and_sentences_come_apart() {
        let texts: Vec<&str> = words("Don't — it’s 'fine', O'Neil! 3.5").iter().map(|word| word.text).collect();
        assert_eq!(texts, ["Don't", "it’s", "fine", "O'Neil", "3", "5"]);
        let mut sentences = Vec::new();
        for_each_sentence("One. Two? 3.5 is a number!\nEnd", |sentence| sentences.push(sentence.trim()));
        assert_eq!(sentences, ["One.", "Two?", "3.5 is a number!", "", "End"]);
    }

    #[test]
    fn clauses_are_short_and_trimmed() {
        let text = "and the very old mill of the town, where we are";
        assert_eq!(clause(text, &words(text)).as_deref(), Some("old mill of the town"));
        let text = "a b c d e f g h i j k l m n o p";
        assert!(clause(text, &words(text)).is_some_and(|clause| words(&clause).len() <= MAX_WORDS));
        assert_eq!(clause("of the", &words("of the")), None);
    }
}
