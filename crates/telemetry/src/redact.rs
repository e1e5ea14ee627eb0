//! Secrets in URLs.

use std::borrow::Cow;

/// `scheme://user:password@host/…` with the password replaced by `***`; anything else as it is. For every URL that is
/// logged or shown.
///
/// ```
/// assert_eq!(bench_telemetry::redact_url("amqp://bench:secret@mq:5672/%2f"), "amqp://bench:***@mq:5672/%2f");
/// assert_eq!(bench_telemetry::redact_url("sqlite:.bench/bench.db"), "sqlite:.bench/bench.db");
/// ```
#[must_use]
pub fn redact_url(url: &str) -> Cow<'_, str> {
    redacted(url).map_or(Cow::Borrowed(url), Cow::Owned)
}

fn redacted(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // the last '@' ends the user part, so that a password with an '@' does not leak its end
    let (user_part, host) = authority.rsplit_once('@')?;
    let (user, _) = user_part.split_once(':')?;
    Some(format!("{scheme}://{user}:***@{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        assert_eq!(
            redact_url("postgres://bench:s3c@ret@db/x?sslmode=require"),
            "postgres://bench:***@db/x?sslmode=require"
        );
        assert_eq!(redact_url("redis://:secret@cache"), "redis://:***@cache");
    }

    #[test]
    fn everything_else_stays() {
        for url in
            ["", "memory:", "sqlite:/a/b.db", "amqp://guest@mq", "https://api.example/v1?a=b:c@d", "no url at all"]
        {
            assert!(matches!(redact_url(url), Cow::Borrowed(same) if same == url), "{url}");
        }
    }
}
