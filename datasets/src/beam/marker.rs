//! The mark ` ->-> 3,17` at the end of messages: bookkeeping of the data's makers, which nobody said.

/// What begins a mark.
const ARROWS: &str = "->->";

/// A message without the mark at its end; texts that have arrows elsewhere stay as they are.
pub(super) fn without(text: &str) -> &str {
    let Some((said, mark)) = text.rsplit_once(ARROWS) else { return text };
    if is_mark(mark) && said.chars().next_back().is_none_or(char::is_whitespace) { said.trim_end() } else { text }
}

/// Whether this is a batch number and a number in it, in one of the forms that occur: `3,17`, `3,17)`, `2,N/A`, `2,22, 24`.
fn is_mark(mark: &str) -> bool {
    let mark = mark.trim();
    let mut numbers = mark.strip_suffix(')').unwrap_or(mark).split(',').map(str::trim);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (batch, number) = (numbers.next(), numbers.next());
    batch.is_some_and(is_number)
        && number.is_some_and(|text| is_number(text) || text == "N/A")
        && numbers.all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_cut_off_where_they_stand() {
        for (text, said) in [
            ("Plan my week? ->-> 1,1", "Plan my week?"),
            ("Plan my week? ->->  3,8", "Plan my week?"),
            ("since 1985 ->-> 1,5)", "since 1985"),
            ("a pack ->-> 2,N/A", "a pack"),
            ("a will? ->-> 2,22, 24", "a will?"),
            ("a will? ->-> 2,22 \n", "a will?"),
            ("twice ->-> 1,1 ->-> 1,2", "twice ->-> 1,1"),
            ("->-> 1,1", ""),
        ] {
            assert_eq!(without(text), said, "{text}");
        }
        let untouched = [
            "",
            "no mark ",
            "f ->-> g",
            "f ->-> 1",
            "f ->-> 1,",
            "f ->-> ,1",
            "f ->-> 1,b",
            "f ->-> N/A,1",
            "f ->-> 1,2 and so on",
            "->-> 1,2 is how it begins",
            "f->-> 1,2",
        ];
        for text in untouched {
            assert_eq!(without(text), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_cut_text_is_the_beginning_of_the_whole(text in "[a-c ,>)\\-0-9]*(->->)?[ ,0-9NA/)]*") {
            proptest::prop_assert!(text.starts_with(without(&text)));
        }
    }
}
