//! Durations in adapter files: `250ms`, `30s`, `10m`, `4h`.

use std::time::Duration;

/// Reads a duration.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("'{text}' is no duration: write 250ms, 30s, 10m or 4h");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let ms = match unit {
        "ms" => number,
        "s" => number.saturating_mul(1000),
        "m" => number.saturating_mul(60_000),
        "h" => number.saturating_mul(3_600_000),
        _ => return Err(wrong()),
    };
    if ms == 0 || ms > 24 * 3_600_000 {
        return Err(format!("'{text}' must be more than nothing and at most 24h"));
    }
    Ok(Duration::from_millis(ms))
}

/// A duration for people.
pub(super) fn show(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("4h"), Ok(Duration::from_secs(14_400)));
        for wrong in ["", "5", "s", "0s", "-1s", "1d", "25h", "99999999999999999999s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
