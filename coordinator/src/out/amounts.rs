//! Dollars and seconds as people read them.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_two_units_at_most() {
        assert_eq!((duration(250.0).as_str(), duration(7500.0).as_str()), ("4 min 10 s", "2 h 5 min"));
    }
}
