//! One HTTP request after another, as plainly as possible: tests look at health pages, statistics and management APIs.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Receiver},
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

/// A server on loopback that answers each request by its head, and closes: its `host:port`, and the bodies that it is sent.
///
/// # Panics
/// When there is no port.
#[must_use]
pub fn answering(answer: impl Fn(&str) -> String + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    let (sender, bodies) = mpsc::channel();
    // ends with the process of the test
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // who goes before the answer is there wants none
            if let Ok(body) = answer_one(stream, &answer) {
                let _ = sender.send(body);
            }
        }
    });
    (place, bodies)
}

fn answer_one(mut stream: TcpStream, answer: &impl Fn(&str) -> String) -> std::io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    stream.write_all(answer(&head).as_bytes())?;
    Ok(String::from_utf8_lossy(&body).into_owned())
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
