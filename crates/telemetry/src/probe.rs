//! Asks a listener on this machine how it is: the probe of containers, whose images hold no HTTP client and whose listeners
//! want a token that an orchestrator cannot send.

use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use crate::http::BearerToken;

/// Longest wait for a connection, and for each part of the answer: below the five seconds that a probe usually has.
const PATIENCE: Duration = Duration::from_secs(2);
/// So much of an answer is read: health pages are one line.
const LONGEST_ANSWER: u64 = 16 * 1024;

/// Why a probe failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Not an address of ours.
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
pub fn ask(url: &str, token: Option<&BearerToken>) -> Result<(), ProbeError> {
    let (authority, path) = parts(url).ok_or_else(|| ProbeError::Url(url.to_owned()))?;
    let silent = |error: std::io::Error| ProbeError::Silent { url: url.to_owned(), reason: error.to_string() };
    let answer = get(authority, path, token).map_err(silent)?;
    let mut lines = answer.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    let answer = format!("{status} {}", lines.last().unwrap_or_default());
    Err(ProbeError::Unwell { url: url.to_owned(), answer: answer.trim().to_owned() })
}

/// `HOST:PORT` and `/PATH`.
fn parts(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let slash = rest.find('/')?;
    let (authority, path) = rest.split_at(slash);
    let plain = !url.contains(|c: char| c.is_whitespace() || c.is_control());
    (plain && authority.contains(':') && !authority.contains('@')).then_some((authority, path))
}

fn get(authority: &str, path: &str, token: Option<&BearerToken>) -> std::io::Result<String> {
    let unknown = || std::io::Error::other("the name has no address");
    let address = authority.to_socket_addrs()?.next().ok_or_else(unknown)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let authorization = token.map(|token| format!("authorization: {}\r\n", token.header())).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::http::{Pages, listen};

    struct Fixed(Result<(), String>);

    #[async_trait::async_trait]
    impl Pages for Fixed {
        async fn ready(&self) -> Result<(), String> {
            self.0.clone()
        }

        async fn page(&self, _: &str) -> Option<Result<serde_json::Value, String>> {
            None
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_probe_follows_readiness_and_brings_the_token() {
        let token = BearerToken::new("s3cret").expect("a token");
        let up = listen("127.0.0.1:0", Some(token.clone()), Arc::new(Fixed(Ok(())))).await.expect("listens");
        let url = format!("http://{}/readyz", up.address);
        ask(&url, Some(&token)).expect("ready");
        let refused = ask(&url, None).expect_err("no token").to_string();
        assert!(refused.contains("401"), "{refused}");

        let down = listen("127.0.0.1:0", None, Arc::new(Fixed(Err("no broker".into())))).await.expect("listens");
        let said = ask(&format!("http://{}/readyz", down.address), None).expect_err("not ready").to_string();
        assert!(said.contains("503") && said.contains("no broker"), "{said}");
        ask(&format!("http://{}/healthz", down.address), None).expect("alive all the same");
    }

    #[test]
    fn addresses_that_cannot_be_asked_are_refused() {
        for url in
            ["", "127.0.0.1:80/x", "https://h:1/x", "http://h/x", "http://h:1", "http://u@h:1/x", "http://h:1/a b"]
        {
            assert!(matches!(ask(url, None), Err(ProbeError::Url(_))), "{url}");
        }
        assert!(matches!(ask("http://127.0.0.1:1/x", None), Err(ProbeError::Silent { .. })));
    }
}
