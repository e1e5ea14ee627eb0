//! Asks a listener on this machine how it is: the probe of containers, whose images hold no HTTP client and whose listeners
//! want a token that an orchestrator cannot send.

use std::{borrow::Cow, time::Duration};

use bench_proto::redact;
use reqwest::{StatusCode, header::AUTHORIZATION, redirect::Policy};

use crate::http::BearerToken;

/// Longest wait for an answer: below the five seconds that a probe usually has.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read, and a little more: health pages are one line.
const LONGEST_ANSWER: usize = 16 * 1024;

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The text is no address that can be asked.
    #[error("'{0}' cannot be asked: give http://HOST:PORT/PATH")]
    Url(String),
    /// Nobody answers.
    #[error("{url} does not answer: {reason}")]
    Silent {
        /// What was asked.
        url: String,
        /// Why there is no answer.
        reason: String,
    },
    /// It answers, but not with 200.
    #[error("{url} answers {answer}")]
    Unwell {
        /// What was asked.
        url: String,
        /// Status line and body.
        answer: String,
    },
}

/// Gets `url` (`http://HOST:PORT/PATH`), with the token when there is one.
///
/// # Errors
/// When nothing answers 200 in time.
pub async fn ask(url: &str, token: Option<&BearerToken>) -> Result<(), ProbeError> {
    if !names_a_page(url) {
        return Err(ProbeError::Url(shown(url).into_owned()));
    }
    let silent = |error: reqwest::Error| {
        // the last word of the chain is the reason, the others repeat the URL
        let mut reason: &dyn std::error::Error = &error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        ProbeError::Silent { url: shown(url).into_owned(), reason: reason.to_string() }
    };
    let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).timeout(PATIENCE);
    let mut request = client.build().map_err(silent)?.get(url);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token.header());
    }
    let mut answer = request.send().await.map_err(silent)?;
    let status = answer.status();
    if status == StatusCode::OK {
        return Ok(());
    }
    let mut body = Vec::new();
    while body.len() < LONGEST_ANSWER
        && let Some(part) = answer.chunk().await.map_err(silent)?
    {
        body.extend_from_slice(&part);
    }
    let body = String::from_utf8_lossy(&body);
    let answer = format!("{:?} {status} {}", answer.version(), body.lines().last().unwrap_or_default());
    Err(ProbeError::Unwell { url: shown(url).into_owned(), answer: answer.trim().to_owned() })
}

/// What was asked for, as it may be repeated: whoever mistypes an address may have given a password with it.
fn shown(url: &str) -> Cow<'_, str> {
    if url.contains('@') { redact::url(url) } else { redact::text(url) }
}

/// Whether a URL is `http://HOST:PORT/PATH`.
fn names_a_page(url: &str) -> bool {
    let Some((authority, _)) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')) else { return false };
    let plain = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    plain && authority.contains(':') && !authority.contains('@')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::http::{listen, tests::Fixed};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_probe_follows_readiness_and_brings_the_token() {
        let token = BearerToken::new("s3cret").expect("a token");
        let up = listen("127.0.0.1:0", Some(token.clone()), Arc::new(Fixed(Ok(())))).await.expect("listens");
        let url = format!("http://{}/readyz", up.address);
        ask(&url, Some(&token)).await.expect("ready");
        let refused = ask(&url, None).await.expect_err("no token").to_string();
        assert!(refused.contains("401"), "{refused}");

        let down = listen("127.0.0.1:0", None, Arc::new(Fixed(Err("no broker".into())))).await.expect("listens");
        let said = ask(&format!("http://{}/readyz", down.address), None).await.expect_err("not ready").to_string();
        assert!(said.contains("503") && said.contains("no broker"), "{said}");
        ask(&format!("http://{}/healthz", down.address), None).await.expect("alive all the same");
    }

    #[tokio::test]
    async fn addresses_that_cannot_be_asked_are_refused() {
        for url in
            ["", "127.0.0.1:80/x", "https://h:1/x", "http://h/x", "http://h:1", "http://u@h:1/x", "http://h:1/a b"]
        {
            assert!(matches!(ask(url, None).await, Err(ProbeError::Url(_))), "{url}");
        }
        assert!(matches!(ask("http://127.0.0.1:1/x", None).await, Err(ProbeError::Silent { .. })));
    }

    #[tokio::test]
    async fn a_password_in_an_address_is_not_repeated() {
        let urls =
            ["http://u:s3cret@h:1/x", "u:s3cret@h:1/x", "https://u:s3/cret@h/x", "http://127.0.0.1:1/x?token=s3cret"];
        for url in urls {
            let said = ask(url, None).await.expect_err("nobody is asked, or nobody answers").to_string();
            assert!(!said.contains("s3") && !said.contains("cret"), "{url}: {said}");
        }
    }
}
