//! The evidence ids of LoCoMo: `D<session>:<turn>`, with the repairs that the published file needs.

/// Session number and turn number.
pub(super) type TurnPlace = (u32, u32);

/// Every `D`, optional colon, digits, colon, digits in a text, both numbers as integers.
///
/// This one rule covers `D8:6; D9:17`, `D9:1 D4:4`, `D:11:26` and `D30:05`; a lone `D` gives nothing.
pub(super) fn places(text: &str) -> Vec<TurnPlace> {
    let mut places = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('D') {
        rest = &rest[at + 1..];
        let Some((session, after)) = number(rest.strip_prefix(':').unwrap_or(rest)) else {
            continue;
        };
        let Some((turn, after)) = after.strip_prefix(':').and_then(number) else {
            continue;
        };
        places.push((session, turn));
        rest = after;
    }
    places
}

/// Leading digits as a number, and what follows.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_every_published_form() {
        let cases: [(&str, &[TurnPlace]); 12] = [
            ("D1:3", &[(1, 3)]),
            ("D8:6; D9:17", &[(8, 6), (9, 17)]),
            ("D22:1 D22:2 D9:10 D9:11", &[(22, 1), (22, 2), (9, 10), (9, 11)]),
            ("D:11:26", &[(11, 26)]),
            ("D30:05", &[(30, 5)]),
            ("(D2:4)", &[(2, 4)]),
            ("D2:4D3:5", &[(2, 4), (3, 5)]),
            ("D", &[]),
            ("", &[]),
            ("D1", &[]),
            ("DD1:2", &[(1, 2)]),
            ("D99999999999:1", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(places(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in ".*") {
            places(&text);
        }

        #[test]
        fn what_is_written_is_found(list in proptest::collection::vec((0_u32..5000, 0_u32..5000), 0..6)) {
            let text: Vec<String> = list.iter().map(|(session, turn)| format!("D{session}:{turn}")).collect();
            proptest::prop_assert_eq!(places(&text.join("; ")), list);
        }
    }
}
