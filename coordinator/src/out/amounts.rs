//! Dollars, seconds and bytes as people read them.

/// A cap for people: `$20.00`, `$0.0500`.
#[must_use]
pub(crate) fn dollars(usd: f64) -> String {
    if usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// Seconds for people: `3 s`, `4 min 10 s`, `2 h 5 min`.
#[must_use]
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Bytes for people: `951 B`, `2.8 MB`.
#[must_use]
pub(crate) fn bytes(bytes: u64) -> String {
    let (mut amount, mut unit) = (bytes as f64, "B");
    for larger in ["kB", "MB", "GB"] {
        if amount < 1000.0 {
            break;
        }
        (amount, unit) = (amount / 1000.0, larger);
    }
    if unit == "B" || amount >= 100.0 { format!("{amount:.0} {unit}") } else { format!("{amount:.1} {unit}") }
}

/// A fraction as points, with their sign where it is negative: `-7.9`.
#[must_use]
pub(crate) fn points(fraction: f64) -> String {
    format!("{:.1}", 100.0 * fraction)
}

/// `1 memory`, `2 memories`, `3 banks`.
pub(crate) fn counted(n: u64, word: &str) -> String {
    match (n, word.strip_suffix('y')) {
        (1, _) => format!("1 {word}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_fits() {
        let texts = [951, 2_805_274, 277_383_467, 2_700_000_000_000].map(bytes);
        assert_eq!(texts, ["951 B", "2.8 MB", "277 MB", "2700 GB"]);
    }

    #[test]
    fn a_duration_has_two_units_at_most() {
        assert_eq!((duration(250.0).as_str(), duration(7500.0).as_str()), ("4 min 10 s", "2 h 5 min"));
    }
}
