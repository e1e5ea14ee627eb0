//! How deep the lists and maps of a YAML text stand in each other. The parser looks through all brackets that are open at each word: a
//! small file of nothing else would hold a processor for minutes, long before the reader that has a limit sees the first of them.
//!
//! Words are found as the parser finds them (libyaml's scanner), so that a bracket within a text counts for nothing, and one behind a
//! quotation mark that quotes nothing counts. What the parser refuses may be gone over here: it goes no further, so nothing is lost.

use std::{borrow::Cow, str::Chars};

use serde::de::Error;

/// Most lists and maps in brackets within each other; the reader takes no more either.
const DEEPEST: usize = 128;

/// Looks for more brackets within each other than are ever read, in one pass.
///
/// # Errors
/// The line, and what to do.
pub fn check_nesting<E: Error>(text: &[u8]) -> Result<(), E> {
    let text = decoded(text);
    let words = Words {
        rest: text.strip_prefix('\u{feff}').unwrap_or(&text).chars(),
        line: 1,
        column: 0,
        depth: 0,
        indent: -1,
        outer: Vec::new(),
        may_be_key: true,
        key: None,
    };
    match words.too_deep() {
        None => Ok(()),
        Some(line) => Err(E::custom(format!(
            "line {line}: more than {DEEPEST} lists and maps stand in each other; write it flatter"
        ))),
    }
}

/// As the parser reads it: by its mark of the byte order.
fn decoded(text: &[u8]) -> Cow<'_, str> {
    match text {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(of_pairs(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(of_pairs(rest, u16::from_be_bytes)),
        _ => String::from_utf8_lossy(text),
    }
}

fn of_pairs(bytes: &[u8], join: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let read = char::decode_utf16(pairs.iter().map(|pair| join(*pair)));
    read.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Whether a word may end before this.
fn is_gap(c: Option<char>) -> bool {
    c.is_none_or(|c| is_blank(c) || is_break(c))
}

/// What the parser's scanner knows outside of brackets; within them it needs no more than their number.
struct Words<'a> {
    rest: Chars<'a>,
    line: usize,
    column: i64,
    /// Brackets that are open.
    depth: usize,
    /// Column of the block that is open, and of those around it.
    indent: i64,
    outer: Vec<i64>,
    /// Whether a key may begin here.
    may_be_key: bool,
    /// Line and column of what is a key if a colon follows.
    key: Option<(usize, i64)>,
}

impl Words<'_> {
    /// The line in which too many are open.
    fn too_deep(mut self) -> Option<usize> {
        while let Some(first) = self.next_word() {
            if !self.pass(first) {
                return None;
            }
            if self.depth > DEEPEST {
                return Some(self.line);
            }
        }
        None
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.clone().nth(ahead)
    }

    fn advance(&mut self) {
        let Some(c) = self.rest.next() else { return };
        self.column += 1;
        if is_break(c) && !(c == '\r' && self.peek(0) == Some('\n')) {
            self.line += 1;
            self.column = 0;
        }
    }

    fn skip_while(&mut self, goes_on: fn(char) -> bool) {
        while self.peek(0).is_some_and(goes_on) {
            self.advance();
        }
    }

    fn skip_to_break(&mut self) {
        self.skip_while(|c| !is_break(c));
    }

    fn skip_break(&mut self) {
        if self.peek(0) == Some('\r') && self.peek(1) == Some('\n') {
            self.advance();
        }
        self.advance();
    }

    /// Goes over blanks and a comment; whether the line ends behind them.
    fn skip_to_end_of_line(&mut self) -> bool {
        self.skip_while(is_blank);
        if self.peek(0) == Some('#') {
            self.skip_to_break();
        }
        self.peek(0).is_some_and(is_break)
    }

    /// Goes to the next word, over blanks and comments; its first character.
    fn next_word(&mut self) -> Option<char> {
        loop {
            if self.column == 0 && self.peek(0) == Some('\u{feff}') {
                self.advance();
            }
            if !self.skip_to_end_of_line() {
                break;
            }
            self.skip_break();
            self.may_be_key |= self.depth == 0;
        }
        // a key and its colon stand in one line
        self.key = self.key.filter(|(line, _)| *line == self.line);
        self.close_blocks(self.column);
        self.peek(0)
    }

    fn close_blocks(&mut self, column: i64) {
        while self.depth == 0 && self.indent > column {
            self.indent = self.outer.pop().unwrap_or(-1);
        }
    }

    fn open_block(&mut self, column: i64) {
        if self.indent < column {
            self.outer.push(self.indent);
            self.indent = column;
        }
    }

    /// What begins here is a key, if a colon follows.
    fn begin(&mut self) {
        if self.depth == 0 && self.may_be_key {
            self.key = Some((self.line, self.column));
        }
        self.may_be_key = false;
    }

    fn is_document_mark(&self) -> bool {
        let three = |mark: char| (0..3).all(|ahead| self.peek(ahead) == Some(mark));
        self.column == 0 && (three('-') || three('.')) && is_gap(self.peek(3))
    }

    /// Goes over a word; `false` where no word can begin so.
    fn pass(&mut self, first: char) -> bool {
        let (outside, before_gap) = (self.depth == 0, is_gap(self.peek(1)));
        match first {
            '%' if self.column == 0 => {
                self.begin_document();
                self.skip_to_break();
            }
            '-' | '.' if self.is_document_mark() => {
                self.begin_document();
                (0..3).for_each(|_| self.advance());
            }
            '[' | '{' => {
                self.begin();
                self.depth += 1;
                self.advance();
            }
            ']' | '}' => {
                self.key = self.key.filter(|_| !outside);
                self.depth = self.depth.saturating_sub(1);
                self.may_be_key = false;
                self.advance();
            }
            ',' => self.separate(),
            '-' if before_gap => self.open_entry(),
            '?' if before_gap || !outside => self.open_entry(),
            ':' if before_gap || !outside => self.open_value(),
            '*' | '&' => {
                self.begin();
                self.advance();
                self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            }
            '!' => self.tag(),
            '|' | '>' if outside => self.block_text(),
            '\'' | '"' => self.quoted(first),
            '|' | '>' | '%' | '@' | '`' => return false,
            _ => self.plain(),
        }
        true
    }

    fn begin_document(&mut self) {
        self.close_blocks(-1);
        self.separate_only();
        self.may_be_key = false;
    }

    fn separate_only(&mut self) {
        self.key = self.key.filter(|_| self.depth > 0);
        self.may_be_key = true;
    }

    fn separate(&mut self) {
        self.separate_only();
        self.advance();
    }

    /// `-` or `?`.
    fn open_entry(&mut self) {
        if self.depth == 0 {
            self.open_block(self.column);
        }
        self.separate();
    }

    fn open_value(&mut self) {
        if self.depth == 0 {
            let key = self.key.take();
            self.open_block(key.map_or(self.column, |(_, column)| column));
            self.may_be_key = key.is_none();
        }
        self.advance();
    }

    fn tag(&mut self) {
        self.begin();
        match self.peek(1) {
            Some('<') => {
                self.skip_while(|c| c != '>' && !is_gap(Some(c)));
                self.advance();
            }
            _ => self.skip_while(|c| c != ',' && !is_gap(Some(c))),
        }
    }

    fn quoted(&mut self, mark: char) {
        self.begin();
        self.advance();
        while let Some(c) = self.peek(0) {
            self.advance();
            let twice = mark == '\'' && self.peek(0) == Some('\'');
            if c == mark && !twice {
                return;
            }
            if c == mark || c == '\\' && mark == '"' {
                self.advance();
            }
        }
    }

    /// A text without quotation marks, which may go on in lines that stand further in.
    fn plain(&mut self) {
        self.begin();
        let within = self.indent + 1;
        loop {
            if self.is_document_mark() || self.peek(0) == Some('#') {
                return;
            }
            while self.peek(0).is_some_and(|c| !is_gap(Some(c)) && !self.ends_plain(c)) {
                self.may_be_key = false;
                self.advance();
            }
            if !self.peek(0).is_some_and(|c| is_gap(Some(c))) {
                return;
            }
            while let Some(c) = self.peek(0).filter(|c| is_gap(Some(*c))) {
                self.may_be_key |= is_break(c);
                self.advance();
            }
            if self.depth == 0 && self.column < within {
                return;
            }
        }
    }

    fn ends_plain(&self, c: char) -> bool {
        match c {
            ':' => is_gap(self.peek(1)),
            ',' | '[' | ']' | '{' | '}' => self.depth > 0,
            _ => false,
        }
    }

    /// A text of whole lines, behind `|` or `>`.
    fn block_text(&mut self) {
        self.separate();
        let mut further = 0;
        while let Some(c) = self.peek(0).filter(|c| c.is_ascii_digit() || matches!(c, '+' | '-')) {
            further = c.to_digit(10).map_or(further, i64::from);
            self.advance();
        }
        if !self.skip_to_end_of_line() {
            return;
        }
        self.skip_break();
        let told = if further == 0 { 0 } else { self.indent.max(0) + further };
        let mut indent = self.skip_empty_lines(told);
        while self.column == indent && self.peek(0).is_some() {
            self.skip_to_break();
            self.skip_break();
            indent = self.skip_empty_lines(indent);
        }
    }

    /// Goes to the next line of a text that has something in it; where the text begins, if that is not known (0) so far.
    fn skip_empty_lines(&mut self, indent: i64) -> i64 {
        let mut furthest = 0;
        loop {
            while (indent == 0 || self.column < indent) && self.peek(0) == Some(' ') {
                self.advance();
            }
            furthest = furthest.max(self.column);
            if !self.peek(0).is_some_and(is_break) {
                break;
            }
            self.skip_break();
        }
        if indent == 0 { furthest.max(self.indent + 1).max(1) } else { indent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(text: &[u8]) -> Result<(), String> {
        check_nesting::<serde_json::Error>(text).map_err(|error| error.to_string())
    }

    #[test]
    fn brackets_within_each_other_are_counted() {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- [", "]"), ("\n[", "]"), ("!!seq [", "]"), ("&a [", "]")] {
            let text = |deep: usize| format!("a: {}{}", open.repeat(deep), close.repeat(deep));
            assert_eq!(looked_at(text(DEEPEST).as_bytes()), Ok(()), "{open}");
            let refused = looked_at(text(DEEPEST + 1).as_bytes()).expect_err(open);
            assert!(refused.starts_with("line ") && refused.contains("write it flatter"), "{refused}");
            assert!(looked_at(open.repeat(100_000).as_bytes()).is_err(), "{open}");
        }
        assert_eq!(looked_at("[a, [b]]\n".repeat(1_000).as_bytes()), Ok(()));
        let wide = format!("\u{feff}{}", "[".repeat(200));
        let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(looked_at(&wide).is_err(), "by the mark of its byte order");
    }

    #[test]
    fn brackets_within_texts_and_comments_count_for_nothing() {
        let many = "[{".repeat(200);
        for text in [
            format!("a: '{many}'\nb: \"\\\"{many}\"\nc: x{many}\nd: 'it''s {many}'\n"),
            format!("a: |\n  {many}\n\n    {many}\n  ' \" {many}\nb: >-\n  {many}\n"),
            format!("a: |2\n    {many}\n  {many}\nb: x\n"),
            format!("- x\n  {many}\n- a: x\n   ' {many}\n"),
            format!("# {many}\na: [x, # {many}\n  y]\n"),
            format!("--- # {many}\n%TAG {many}\n"),
            format!("a:\r\n  - |\r\n    {many}\r\n  - y\r\n"),
        ] {
            assert_eq!(looked_at(text.as_bytes()), Ok(()), "{text}");
        }
    }

    /// Nothing that is no quotation, comment or text of lines for the parser hides what follows it.
    #[test]
    fn brackets_are_not_hidden() {
        let many = "[".repeat(200);
        for text in [
            format!("a: x\n  '\nb: {many}"),
            format!("a: x'\nb: {many}"),
            format!("a: [x'y, \"it's\", '\\', {many}"),
            format!("a: x\n  |\nb: {many}"),
            format!("a: |\n x\nb: {many}"),
            format!("a: |+2\n   x\nb: {many}"),
            format!("a: x#y\nb: {many}"),
            format!("a: [# ]\n{many}"),
            format!("a: [# ]\u{2028}{many}"),
            format!("a: [']', \"]\", {many}"),
            format!("a: !x {many}"),
            format!("a: [!x,{many}"),
            format!("a: !<'> {many}"),
            format!("- - a:\n    x\n  - {many}"),
            format!("? {many}"),
            format!("? a\n: {many}"),
            format!("{{a: b}}: {many}"),
        ] {
            assert!(looked_at(text.as_bytes()).is_err(), "{text}");
        }
    }
}
