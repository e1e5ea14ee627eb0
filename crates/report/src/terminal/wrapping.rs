//! Lines of words within the width of a terminal: they end between words, and go on below where their text began.

use unicode_width::UnicodeWidthStr as _;

use super::cut;

/// A line as several, none wider than `width` columns: at most `more` of them beside the first. The last one is cut where even these
/// do not hold all of it.
pub(super) fn folded(line: &str, width: usize, more: usize) -> Vec<String> {
    if more == 0 || line.width() <= width {
        return vec![cut(line, width)];
    }
    let whole = within(line, width);
    let all: Vec<&str> = whole.lines().collect();
    let last = more.min(all.len().saturating_sub(1));
    let mut lines: Vec<String> = all.iter().take(last).map(|line| cut(line, width)).collect();
    let rest = all.iter().skip(last).enumerate().map(|(at, line)| if at == 0 { *line } else { line.trim_start() });
    lines.push(cut(&rest.collect::<Vec<_>>().join(" "), width));
    lines
}

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

    #[test]
    fn a_line_is_folded_into_as_many_as_there_is_room_for_and_the_last_is_cut() {
        for (more, shown) in [
            (0, &["  one tw…"][..]),
            (1, &["  one two", "  three …"]),
            (2, &["  one two", "  three", "  four"]),
            (9, &["  one two", "  three", "  four"]),
        ] {
            assert_eq!(folded("  one two three four", 9, more), shown, "{more}");
        }
        assert_eq!(folded("one", 9, 2), ["one"]);
        assert_eq!(folded("a averylongword b", 6, 2), ["a", "avery…", "b"]);
    }
}
