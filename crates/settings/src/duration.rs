//! Durations as people write them: `500ms`, `2s`, `15m`, `1h30m`, `1.5s`.

use std::time::Duration;

const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads one; a number without a unit is none.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, seconds) = UNITS.into_iter().find(|(unit, _)| *unit == &rest[..letters])?;
        total += number * seconds;
        rest = rest[letters..].trim_start();
    }
    Duration::try_from_secs_f64(total).ok()
}

/// The shortest way to write one that [`parse`] reads back, to the millisecond.
pub(crate) fn show(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 => "0s".into(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown() {
        for (text, ms, shown) in [
            ("500ms", 500, "500ms"),
            ("2s", 2000, "2s"),
            ("15m", 900_000, "15m"),
            ("1h30m", 5_400_000, "90m"),
            ("1.5s", 1500, "1500ms"),
            ("0s", 0, "0s"),
            ("2h", 7_200_000, "2h"),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(ms)), "{text}");
            assert_eq!(show(Duration::from_millis(ms)), shown);
            assert_eq!(parse(shown), parse(text), "shown durations are read back");
        }
        for bad in ["", "5", "s", "5 parsecs", "-1s", "1.2.3s", "1e400s", "5S", "é"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
