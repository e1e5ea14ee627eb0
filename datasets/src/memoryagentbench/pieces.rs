//! Long texts in pieces, as something that is read bit by bit.

/// The longest piece, in bytes of UTF-8.
const MOST_BYTES: usize = 2_000;

/// The pieces of a text, in order: as many whole paragraphs as fit, else whole lines, else whole words.
pub(super) fn cut(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(end(rest));
        rest = behind.trim_start();
        Some(piece.trim_end())
    })
}

/// Where the first piece of a text ends, which neither begins nor ends with white space: behind its first byte.
fn end(text: &str) -> usize {
    if text.len() <= MOST_BYTES {
        return text.len();
    }
    // the first character always fits, so that the end is behind it
    let most = text.floor_char_boundary(MOST_BYTES);
    let head = text.get(..most).unwrap_or(text);
    ["\n\n", "\n", " "].iter().find_map(|end| head.rfind(end)).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_end_where_something_ends() {
        let paragraph = "word ".repeat(300);
        let text = format!("{paragraph}\n\n{paragraph}\nline\n\n{}", "x".repeat(2_500));
        let found: Vec<usize> = cut(&text).map(str::len).collect();
        assert_eq!(found, [1_499, 1_505, 2_000, 500]);
        assert_eq!(cut(" \n ").count(), 0);
        assert_eq!(cut("short").collect::<Vec<_>>(), ["short"]);
    }

    proptest! {
        #[test]
        fn nothing_but_white_space_is_lost(words in prop::collection::vec("[a-zé😀]{1,900}", 0..12), gap in prop::sample::select(vec![" ", "\n", "\n\n", " \n"])) {
            let text = words.join(gap);
            let pieces: Vec<&str> = cut(&text).collect();
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= MOST_BYTES));
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(squeezed(&pieces.concat()), squeezed(&text));
        }
    }
}
