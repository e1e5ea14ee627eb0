//! How a number is written for people: scores as per cent with two decimals, `–` for what was not computed.

use bench_proto::{summary::Interval, text};

/// Stands for a figure that was not computed.
pub(crate) const NONE: &str = "–";

/// `62.24 %`: published figures have two decimals.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:.2} %", fraction * 100.0)
}

/// `62.24 %`, or a dash.
pub(crate) fn percent_or_none(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| NONE.to_owned(), percent)
}

/// Like [`percent_or_none`], rounded down: 98.96 % must not be read as 99.0 %.
pub(crate) fn percent_down(fraction: Option<f64>) -> String {
    // the small term undoes what binary fractions lose, so that 0.995 stays 99.5 %
    fraction.map_or_else(|| NONE.to_owned(), |f| format!("{:.1} %", (f * 1_000.0 + 1e-9).floor() / 10.0))
}

/// `57.1 to 67.4`, in per cent without the sign, for tables.
pub(crate) fn interval(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| NONE.to_owned(), |i| format!("{:.1} to {:.1}", i.low * 100.0, i.high * 100.0))
}

/// `57.1 to 67.4 % (± 5.1)`: the half-width in points.
pub(crate) fn interval_with_width(given: Option<&Interval>) -> String {
    given.map_or_else(|| NONE.to_owned(), |i| format!("{} % (± {:.1})", interval(Some(i)), (i.high - i.low) * 50.0))
}

/// `+1.50`: a difference of shares in points.
pub(crate) fn points(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| NONE.to_owned(), |f| format!("{:+.2}", f * 100.0))
}

/// `-2.08 to +5.08`, in points.
pub(crate) fn points_interval(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| NONE.to_owned(), |i| format!("{:+.2} to {:+.2}", i.low * 100.0, i.high * 100.0))
}

/// `0.368`, `< 0.001`, or a dash.
pub(crate) fn p_value(p: Option<f64>) -> String {
    match p {
        None => NONE.to_owned(),
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

/// `0.603`, or a dash.
pub(crate) fn fraction(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |v| format!("{v:.3}"))
}

/// `1,986`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1,986`, or a dash.
pub(crate) fn count_or_none(n: Option<u64>) -> String {
    n.map_or_else(|| NONE.to_owned(), count)
}

/// `1,386` from a thousand on, `12.4` from ten on, `0.83` below.
pub(crate) fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 999.5 => count(ms.round() as u64),
        ms if ms >= 9.95 => format!("{ms:.1}"),
        ms => format!("{ms:.2}"),
    }
}

/// `$12.34`, `$0.0042`, `$0`.
pub(crate) fn usd(usd: f64) -> String {
    match usd {
        0.0 => "$0".to_owned(),
        usd if usd.abs() >= 1.0 => format!("${usd:.2}"),
        usd => format!("${usd:.4}"),
    }
}

/// `41 min 7 s`, `2.8 s`, `3 h 0 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}

/// `n word` with an s when it takes one.
pub(crate) fn counted(n: u64, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{} {word}s", count(n)) }
}

/// Free text on one line of at most `most` characters, without what could drive a terminal.
pub(crate) fn one_line(words: &str, most: usize) -> String {
    let mut clean = text::one_line(words).into_owned();
    if let Some((cut, _)) = clean.char_indices().nth(most) {
        clean.truncate(cut);
        clean.push('…');
    }
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_000, 5_882_001].map(count), ["0", "999", "1,000", "5,882,001"]);
        assert_eq!([0.834, 12.44, 999.7, 1_385.7].map(ms), ["0.83", "12.4", "1,000", "1,386"]);
        assert_eq!([0.0, 0.0042, 12.345].map(usd), ["$0", "$0.0042", "$12.35"]);
        assert_eq!([2.84, 2_467.2, 10_800.0].map(duration), ["2.8 s", "41 min 7 s", "3 h 0 min"]);
        assert_eq!(counted(1, "bank"), "1 bank");
        assert_eq!(percent_down(Some(0.9896)), "98.9 %");
        assert_eq!(percent_down(Some(0.995)), "99.5 %");
        assert_eq!(percent_or_none(None), "–");
    }

    #[test]
    fn free_text_cannot_break_a_line_or_drive_a_terminal() {
        assert_eq!(one_line("a\nb\u{1b}[31mred", 40), "a b [31mred");
        assert_eq!(one_line("a\u{202e}b\u{9b}c", 40), "a b c");
        assert_eq!(one_line("ääääää", 3), "äää…");
    }
}
