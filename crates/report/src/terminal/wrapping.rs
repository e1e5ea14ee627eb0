//! Lines of words within the width of a terminal: they end between words, and go on below where their text began.

use unicode_width::UnicodeWidthStr as _;

/// The lines of a text, none wider than `width` columns but by a single word. A line of two columns, as `name   what it is`, goes on
/// below its second one where that leaves room for half a line.
#[must_use]
pub fn within(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| if line.width() <= width { line.to_owned() } else { wrapped(line, width) });
    lines.collect::<Vec<_>>().join("\n")
}

fn wrapped(line: &str, width: usize) -> String {
    let begin = line.len() - line.trim_start_matches(' ').len();
    let indent = second_column(line, begin).filter(|column| *column <= width / 2).unwrap_or(begin);
    let (mut wrapped, mut column, mut rest) = (String::new(), 0, line);
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[blanks..].find(' ').map_or(rest.len(), |at| blanks + at);
        let word = rest[blanks..end].width();
        if column > indent && column + blanks + word > width {
            // a long word begins further to the left
            let indent = indent.min(width.saturating_sub(word));
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = indent + word;
            wrapped.push_str(&rest[blanks..end]);
        } else {
            wrapped.push_str(&rest[..end]);
            column += blanks + word;
        }
        rest = &rest[end..];
    }
    wrapped
}

/// Where the text begins that follows the first wide gap after `begin`.
fn second_column(line: &str, begin: usize) -> Option<usize> {
    let gap = begin + line[begin..].find("  ")?;
    let text = line[gap..].trim_start_matches(' ');
    Some(line[..line.len() - text.len()].width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_go_on_below_their_text() {
        for (text, width, shown) in [
            ("one two three", 80, "one two three"),
            ("one two three", 8, "one two\nthree"),
            ("  one two three", 9, "  one two\n  three"),
            ("name  one two three", 12, "name  one\n      two\n      three"),
            ("  a  one two three", 12, "  a  one two\n     three"),
            ("a name that is long  one two", 22, "a name that is long\none two"),
            ("a  b averylongword", 14, "a  b\n averylongword"),
            ("https://a.example/b one", 8, "https://a.example/b\none"),
            ("記憶の 実験", 8, "記憶の\n実験"),
            ("", 8, ""),
        ] {
            assert_eq!(within(text, width), shown);
        }
    }
}
