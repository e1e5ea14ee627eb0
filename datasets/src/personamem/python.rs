//! Lists of texts as Python prints them: `['it\'s', "so", 'it "is"']`. Nothing else of the language is read.

use std::{iter::Peekable, str::Chars};

/// Why a text is no such list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Number of the character at fault, from 1; one more than there are when the text ends too early.
    pub(super) at: usize,
    /// What is wrong there.
    pub(super) problem: String,
}

/// The longest list that is read.
const MOST_TEXTS: usize = 1_000;

/// Reads a list.
///
/// # Errors
/// Anything but a list of quoted texts with commas between them. Texts side by side without a comma are refused, although
/// Python joins them: a forgotten comma would cost an option in silence.
pub(super) fn texts(literal: &str) -> Result<Vec<String>, Fault> {
    let mut reader = ListReader { rest: literal.chars().peekable(), at: 0 };
    let mut texts = Vec::new();
    if reader.next_visible() != Some('[') {
        return reader.fault("a list begins with [");
    }
    loop {
        match reader.next_visible() {
            Some(']') => break,
            Some(quote @ ('\'' | '"')) if texts.len() < MOST_TEXTS => texts.push(reader.text(quote)?),
            Some('\'' | '"') => return reader.fault(&format!("a list has at most {MOST_TEXTS} texts")),
            _ => return reader.fault("a text in quotes or the ] of the list is expected"),
        }
        match reader.next_visible() {
            Some(',') => {}
            Some(']') => break,
            _ => return reader.fault("a comma or the ] of the list is expected"),
        }
    }
    if reader.next_visible().is_some() {
        return reader.fault("nothing may follow the list");
    }
    Ok(texts)
}

struct ListReader<'a> {
    rest: Peekable<Chars<'a>>,
    /// Number of the last character that was read.
    at: usize,
}

impl ListReader<'_> {
    fn fault<T>(&self, problem: &str) -> Result<T, Fault> {
        Err(Fault { at: self.at, problem: problem.to_owned() })
    }

    fn next(&mut self) -> Option<char> {
        self.at += 1;
        self.rest.next()
    }

    fn next_visible(&mut self) -> Option<char> {
        loop {
            match self.next() {
                Some(blank) if blank.is_ascii_whitespace() => {}
                other => return other,
            }
        }
    }

    /// Reads the rest of a text, up to its closing quote.
    fn text(&mut self, quote: char) -> Result<String, Fault> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('\\') => text.extend(self.escape()?),
                Some(end) if end == quote => return Ok(text),
                Some('\n' | '\r') => return self.fault("a text in quotes ends on its line"),
                Some(other) => text.push(other),
                None => return self.fault("the text in quotes is not closed"),
            }
        }
    }

    /// What stands behind a backslash; a line that goes on gives nothing.
    fn escape(&mut self) -> Result<Option<char>, Fault> {
        Ok(Some(match self.next() {
            Some(same @ ('\\' | '\'' | '"')) => same,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('v') => '\x0b',
            Some('x') => self.code(2)?,
            Some('u') => self.code(4)?,
            Some('U') => self.code(8)?,
            Some(digit @ '0'..='7') => self.octal(digit),
            Some('\n') => return Ok(None),
            _ => return self.fault("this escape is not known"),
        }))
    }

    /// The character of a hexadecimal number with this many digits.
    fn code(&mut self, digits: usize) -> Result<char, Fault> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let Some(digit) = self.next().and_then(|digit| digit.to_digit(16)) else {
                return self.fault(&format!("{digits} hexadecimal digits are expected"));
            };
            // at most eight digits: it fits
            code = code << 4 | digit;
        }
        char::from_u32(code).map_or_else(|| self.fault("the number names no character"), Ok)
    }

    /// The character of an octal number with up to three digits, the first of which is given.
    fn octal(&mut self, first: char) -> char {
        let mut code = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            let Some(digit) = self.rest.peek().and_then(|digit| digit.to_digit(8)) else { break };
            self.next();
            code = code * 8 + digit;
        }
        // at most 0o777, which is no surrogate
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_of_a_printed_list_is_read() {
        let cases: [(&str, &[&str]); 9] = [
            ("[]", &[]),
            (" [ 'a' , \"b\" , ] ", &["a", "b"]),
            (r#"['it\'s', "it's", 'a "b"', "a \"b\""]"#, &["it's", "it's", "a \"b\"", "a \"b\""]),
            (r"['one\ntwo\t\\']", &["one\ntwo\t\\"]),
            (r"['\xe9\u00e9\U0001f600\101\0']", &["éé😀A\0"]),
            ("['é 😀']", &["é 😀"]),
            ("['a\\\nb']", &["ab"]),
            (r#"["[', ', ]"]"#, &["[', ', ]"]),
            (r"['']", &[""]),
        ];
        for (literal, expected) in cases {
            assert_eq!(
                texts(literal).as_deref(),
                Ok(&expected.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>()[..]),
                "{literal}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused_at_its_character() {
        for (literal, at, problem) in [
            ("", 1, "a list begins with ["),
            ("'a'", 1, "a list begins with ["),
            ("['a' 'b']", 6, "a comma or the ] of the list is expected"),
            ("['''a''']", 4, "a comma or the ] of the list is expected"),
            ("['a', b'c']", 7, "a text in quotes or the ] of the list is expected"),
            ("['a', ['b']]", 7, "a text in quotes or the ] of the list is expected"),
            ("['a', 1]", 7, "a text in quotes or the ] of the list is expected"),
            ("['a'", 5, "a comma or the ] of the list is expected"),
            ("['é", 4, "the text in quotes is not closed"),
            ("['a\nb']", 4, "a text in quotes ends on its line"),
            (r"['\q']", 4, "this escape is not known"),
            (r"['\N{DASH}']", 4, "this escape is not known"),
            (r"['\xg0']", 5, "2 hexadecimal digits are expected"),
            (r"['\ud800']", 8, "the number names no character"),
            ("['a'] + ['b']", 7, "nothing may follow the list"),
        ] {
            assert_eq!(texts(literal), Err(Fault { at, problem: problem.to_owned() }), "{literal}");
        }
        let long = format!("[{}]", "'',".repeat(MOST_TEXTS + 1));
        assert_eq!(texts(&long).map_err(|fault| fault.problem), Err("a list has at most 1000 texts".to_owned()));
    }

    /// As Python's `repr` writes a text in quotes of this kind.
    fn printed(text: &str, quote: char) -> String {
        let mut printed = String::from(quote);
        for c in text.chars() {
            match c {
                '\\' => printed.push_str("\\\\"),
                '\n' => printed.push_str("\\n"),
                '\r' => printed.push_str("\\r"),
                c if c == quote => printed.extend(['\\', c]),
                c if c.is_control() => printed.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => printed.push(c),
            }
        }
        printed.push(quote);
        printed
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(list in prop::collection::vec((any::<String>(), any::<bool>()), 0..6)) {
            let quoted = list.iter().map(|(text, single)| printed(text, if *single { '\'' } else { '"' }));
            let literal = format!("[{}]", quoted.collect::<Vec<_>>().join(", "));
            prop_assert_eq!(texts(&literal), Ok(list.into_iter().map(|(text, _)| text).collect()));
        }

        #[test]
        fn any_text_is_survived(text in "[\\[\\]'\",\\\\ xuU0-9a]*") {
            // a fault lies in the text or at its end
            if let Err(fault) = texts(&text) {
                prop_assert!(fault.at >= 1 && fault.at <= text.chars().count() + 1, "{:?}", fault);
            }
        }
    }
}
