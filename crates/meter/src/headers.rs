//! Which headers pass. All do but those of one connection, those that say who asks whom, and the key.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

/// Of one connection (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Of the client's account, which is not the one that pays.
const ACCOUNT: [HeaderName; 5] = [
    AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

fn without_hops(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// A request's headers as the provider gets them: with these of its own in the place of the client's key.
pub(crate) fn to_provider(mut headers: HeaderMap, own: &HeaderMap) -> HeaderMap {
    without_hops(&mut headers);
    // the length is that of the body that is sent
    for name in ACCOUNT.iter().chain(&[HOST, CONTENT_LENGTH, EXPECT]) {
        headers.remove(name);
    }
    for (name, value) in own {
        headers.insert(name.clone(), value.clone());
    }
    // what is compressed cannot be read on its way
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// A reply's headers as the client gets them.
pub(crate) fn to_client(mut headers: HeaderMap, changes_length: bool) -> HeaderMap {
    without_hops(&mut headers);
    if changes_length {
        headers.remove(CONTENT_LENGTH);
    }
    headers
}

/// Replaces what is secret in a text by stars, as many as it has bytes: a server that shows the key that it refuses shows it to nobody.
pub(crate) fn hide(text: &mut [u8], own: &HeaderMap) {
    /// Nothing shorter is a key, and a short one is in many texts.
    const SHORTEST: usize = 8;
    for value in own.values().filter(|value| value.is_sensitive()) {
        let secret = value.as_bytes();
        let secret = secret.split(|byte| *byte == b' ').next_back().unwrap_or(secret);
        if secret.len() < SHORTEST {
            continue;
        }
        let found: Vec<usize> = memchr::memmem::find_iter(text, secret).collect();
        for at in found {
            if let Some(part) = text.get_mut(at..at + secret.len()) {
                part.fill(b'*');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_provider_gets_everything_but_the_key_and_what_is_of_the_connection() {
        let client = headers(&[
            ("host", "127.0.0.1:1"),
            ("authorization", "Bearer token"),
            ("api-key", "token"),
            ("x-api-key", "token"),
            ("openai-organization", "org"),
            ("connection", "keep-alive, X-Mine"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("accept-encoding", "gzip, br"),
            ("content-type", "application/json; charset=utf-8"),
            ("openai-beta", "assistants=v2"),
            ("x-stainless-lang", "python"),
            ("traceparent", "00-1-2-01"),
        ]);
        let sent = to_provider(client, &headers(&[("authorization", "Bearer real")]));
        let expected = headers(&[
            ("authorization", "Bearer real"),
            ("accept-encoding", "identity"),
            ("content-type", "application/json; charset=utf-8"),
            ("openai-beta", "assistants=v2"),
            ("x-stainless-lang", "python"),
            ("traceparent", "00-1-2-01"),
        ]);
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_client_gets_everything_but_what_is_of_the_connection() {
        let of = [("connection", "close"), ("keep-alive", "timeout=5"), ("content-length", "7"), ("x-request-id", "r")];
        assert_eq!(to_client(headers(&of), false), headers(&[("content-length", "7"), ("x-request-id", "r")]));
        assert_eq!(to_client(headers(&of), true), headers(&[("x-request-id", "r")]));
    }

    #[test]
    fn keys_are_hidden_and_lengths_stay() {
        let mut own = HeaderMap::new();
        let mut secret = HeaderValue::from_static("Bearer sk-secret-1");
        secret.set_sensitive(true);
        own.insert(AUTHORIZATION, secret);
        own.insert("x-team", HeaderValue::from_static("team-blue"));
        let mut text = b"wrong key sk-secret-1, sk-secret-1 of team-blue".to_vec();
        hide(&mut text, &own);
        assert_eq!(text, b"wrong key ***********, *********** of team-blue");
    }
}
