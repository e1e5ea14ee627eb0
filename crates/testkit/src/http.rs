//! One HTTP request after another, as plainly as possible: tests look at health pages, statistics and management APIs.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::Context as _;
use serde_json::Value;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The body as text.
    pub body: String,
}

impl Reply {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("not JSON ({e}): {}", self.body))
    }
}

/// `GET path` from `host:port`.
///
/// # Errors
/// When nobody answers there.
pub fn get(place: &str, path: &str) -> anyhow::Result<Reply> {
    request("GET", place, path, None, "")
}

/// A request to `host:port`, with user and password where they are asked for.
///
/// # Errors
/// When nobody answers there, or not in HTTP.
pub fn request(method: &str, place: &str, path: &str, user: Option<(&str, &str)>, body: &str) -> anyhow::Result<Reply> {
    let mut stream = TcpStream::connect(place)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let authorization = user.map_or_else(String::new, |(name, password)| {
        format!("Authorization: Basic {}\r\n", base64(format!("{name}:{password}").as_bytes()))
    });
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n{authorization}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no HTTP")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    Ok(Reply { status, body: body.to_owned() })
}

/// Base64 with padding: not worth a dependency.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number =
            chunk.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * place)) as usize & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_as_in_rfc_4648() {
        for (plain, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(super::base64(plain.as_bytes()), encoded);
        }
    }
}
