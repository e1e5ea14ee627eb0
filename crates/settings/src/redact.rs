//! Passwords in URLs are never shown.

/// `scheme://user:password@host` with the password replaced by `***`. Text that is no such URL is returned as it is.
pub(crate) fn redact_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let Some((user, host)) = authority.rsplit_once('@') else {
        return url.to_owned();
    };
    match user.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{host}{path}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_and_nothing_else_changes() {
        assert_eq!(redact_password("postgres://bench:s3c@ret@db:5432/x"), "postgres://bench:***@db:5432/x");
        for same in ["sqlite:.bench/bench.db", "memory:", "amqp://guest@mq/%2f", "https://api.example/v1?a=b:c@d", ""] {
            assert_eq!(redact_password(same), same);
        }
    }
}
