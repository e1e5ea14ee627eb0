//! What is secret in the headers and in the base URL of a provider, hidden in what it says: a server that shows a key, or repeats
//! the path that it was asked at, shows it to nobody.

use std::sync::Arc;

use bench_proto::redact;
use http::HeaderMap;
use hyper::body::Bytes;
use memchr::memmem;

/// Texts that no client may see; the longest first.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<[Bytes]>);

impl Secrets {
    /// All that requests to a provider carry: in headers, and in the path and the query of its base URL, as some gateways want it.
    pub(crate) fn of_account(base_url: &str, headers: &HeaderMap) -> Self {
        let of_url = redact::secrets_of_url(base_url).into_iter().map(Bytes::from);
        Self::longest_first(of_headers(headers).chain(of_url))
    }

    fn longest_first(all: impl Iterator<Item = Bytes>) -> Self {
        let mut all: Vec<Bytes> = all.collect();
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all.into())
    }

    /// Those that look like keys: what a reply holds of others says nothing of them.
    pub(crate) fn like_keys(&self) -> Self {
        let is_like_key = |secret: &&Bytes| std::str::from_utf8(secret).map_or(true, redact::is_like_secret);
        Self(self.0.iter().filter(is_like_key).cloned().collect())
    }

    /// Whether one of them is in a text.
    pub(crate) fn are_in(&self, text: &[u8]) -> bool {
        self.0.iter().any(|secret| memmem::find(text, secret).is_some())
    }

    /// Replaces them in a text by stars, as many as they have bytes.
    pub(crate) fn hide(&self, text: &mut [u8]) {
        for secret in self.0.iter() {
            let found: Vec<usize> = memmem::find_iter(text, secret).collect();
            for at in found {
                if let Some(part) = text.get_mut(at..at + secret.len()) {
                    part.fill(b'*');
                }
            }
        }
    }

    /// Bytes at the end of a text with which one of them may begin.
    fn begun(&self, text: &[u8]) -> usize {
        let longest = |secret: &Bytes| {
            let mut lengths = (1..secret.len().min(text.len() + 1)).rev();
            lengths.find(|length| secret.get(..*length).is_some_and(|begin| text.ends_with(begin)))
        };
        self.0.iter().filter_map(longest).max().unwrap_or(0)
    }
}

/// Values of headers that are marked as sensitive, without their scheme (`Bearer`).
fn of_headers(own: &HeaderMap) -> impl Iterator<Item = Bytes> {
    let values = own.values().filter(|value| value.is_sensitive()).map(http::HeaderValue::as_bytes);
    let without_scheme = values.map(|value| value.split(|byte| *byte == b' ').next_back().unwrap_or(value));
    without_scheme.filter(|secret| secret.len() >= redact::SHORTEST_SECRET).map(Bytes::copy_from_slice)
}

/// Hides them in a body that passes in pieces. It holds the end of a piece only where a secret may begin there.
pub(crate) struct Veil {
    secrets: Secrets,
    held: Vec<u8>,
}

impl Veil {
    /// Over a body that has not begun.
    pub(crate) const fn over(secrets: Secrets) -> Self {
        Self { secrets, held: Vec::new() }
    }

    /// Takes a piece, and returns what may be seen by now. Where no secret is near, that is the piece itself.
    pub(crate) fn push(&mut self, piece: Bytes) -> Bytes {
        let mut seen = piece;
        if !self.held.is_empty() {
            let mut whole = std::mem::take(&mut self.held);
            whole.extend_from_slice(&seen);
            seen = whole.into();
        }
        if self.secrets.are_in(&seen) {
            let mut text = Vec::from(seen);
            self.secrets.hide(&mut text);
            seen = text.into();
        }
        let begun = self.secrets.begun(&seen);
        if begun > 0 {
            let end = seen.len() - begun;
            self.held = seen.split_off(end).to_vec();
        }
        seen
    }

    /// What is held when the body has ended: no secret, since none is whole.
    pub(crate) fn end(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::AUTHORIZATION};
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "sk-secret-1";

    fn secrets() -> Secrets {
        let mut own = HeaderMap::new();
        let mut secret = HeaderValue::from_static("Bearer sk-secret-1");
        secret.set_sensitive(true);
        own.insert(AUTHORIZATION, secret);
        let mut short = HeaderValue::from_static("team");
        short.set_sensitive(true);
        own.insert("x-short", short);
        own.insert("x-team", HeaderValue::from_static("team-blue"));
        Secrets::of_account("", &own)
    }

    fn veiled(pieces: &[&[u8]]) -> Vec<u8> {
        let mut veil = Veil::over(secrets());
        let mut seen = Vec::new();
        for piece in pieces {
            seen.extend_from_slice(&veil.push(Bytes::copy_from_slice(piece)));
        }
        seen.extend_from_slice(&veil.end());
        seen
    }

    #[test]
    fn keys_are_hidden_and_lengths_stay() {
        let mut text = b"wrong key sk-secret-1, sk-secret-1 of team-blue".to_vec();
        assert!(secrets().are_in(&text));
        secrets().hide(&mut text);
        assert_eq!(text, b"wrong key ***********, *********** of team-blue");
        assert!(!secrets().are_in(&text) && !Secrets::default().are_in(b"sk-secret-1"));
    }

    #[test]
    fn keys_of_a_base_url_are_hidden_as_those_of_headers_are() {
        let base = "https://gateway.example/zQ7kXp20Ld9RtW4m/v1?api-version=2024-10-21&key=v8Nc3Yh61Ts%3D";
        let secrets = Secrets::of_account(base, &HeaderMap::new());
        let mut text = b"no /zQ7kXp20Ld9RtW4m/v1/x?api-version=2024-10-21&key=v8Nc3Yh61Ts%3D (v8Nc3Yh61Ts=)".to_vec();
        assert!(secrets.are_in(&text));
        secrets.hide(&mut text);
        assert_eq!(text, b"no /****************/v1/x?api-version=2024-10-21&key=************** (************)");
        let plain = Secrets::of_account("https://api.example/openai/v1", &HeaderMap::new());
        assert!(!plain.are_in(b"POST /openai/v1/chat/completions of api.example"));
    }

    #[test]
    fn what_is_a_plain_word_is_secret_and_no_key() {
        for (base, said) in [
            ("https://a.example/v1?token=assistant", r#"{"role":"assistant"}"#),
            ("https://a.example/v1?key=completion", r#"{"object":"chat.completion"}"#),
            ("https://assistant@a.example/v1", r#"{"role":"assistant"}"#),
        ] {
            let secrets = Secrets::of_account(base, &HeaderMap::new());
            assert!(secrets.are_in(said.as_bytes()) && !secrets.like_keys().are_in(said.as_bytes()), "{base}");
        }
        let keys =
            Secrets::of_account("https://a.example/v1?key=v8Nc3Yh61Ts&token=assistant", &HeaderMap::new()).like_keys();
        assert!(keys.are_in(b"v8Nc3Yh61Ts") && !keys.are_in(b"assistant"));
        assert!(secrets().like_keys().are_in(SECRET.as_bytes()), "those of headers too");
    }

    #[test]
    fn a_key_is_hidden_wherever_pieces_end_and_what_is_none_passes() {
        let text = b"sk- sk-sk-secret-1 and s sk-secret-sk-secret-1";
        for size in 1..text.len() {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(veiled(&pieces), b"sk- sk-*********** and s sk-secret-***********", "{size}");
        }
        assert_eq!(veiled(&[b"nothing", b"", b" of it, and sk-secr"]), b"nothing of it, and sk-secr");
        let mut veil = Veil::over(secrets());
        assert_eq!(veil.push(Bytes::from_static(b"{\"a\":1}\n\n")), b"{\"a\":1}\n\n".as_slice(), "nothing is held");
    }

    proptest! {
        #[test]
        fn pieces_come_to_the_same_as_the_whole(text in "([ask1-]|sk-secret-1){0,30}", size in 1_usize..20) {
            let mut whole = text.clone().into_bytes();
            secrets().hide(&mut whole);
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let seen = veiled(&pieces);
            prop_assert!(memmem::find(&seen, SECRET.as_bytes()).is_none());
            prop_assert_eq!(seen, whole);
        }
    }
}
