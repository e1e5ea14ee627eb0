//! Which headers pass. Of a request those that SDKs need: gateways go by headers of their own where they send a request and its key.
//! Of a reply all but those of one connection, and those that show the key.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};

use crate::{refusal::Rejection, secrets::Secrets};

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

/// What SDKs say beside the body, and none of it says where a request goes or who pays.
const PASSING: [HeaderName; 10] = [
    ACCEPT,
    USER_AGENT,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-client-request-id"),
    HeaderName::from_static("x-request-id"),
];

/// How those begin in which the SDKs of OpenAI and Anthropic tell of themselves.
const OF_SDKS: &str = "x-stainless-";

fn passes(name: &HeaderName) -> bool {
    PASSING.contains(name) || name.as_str().starts_with(OF_SDKS)
}

/// Refuses a body that says that it is something else than is read: JSON in UTF-8 as it is. One that says nothing of itself is taken
/// for it.
pub(crate) fn check_body(headers: &HeaderMap) -> Result<(), Rejection> {
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Err(Rejection::encoded(&String::from_utf8_lossy(encoding.as_bytes())));
    }
    let is_json = headers.get_all(CONTENT_TYPE).iter().all(|kind| kind.to_str().is_ok_and(is_json));
    if is_json { Ok(()) } else { Err(Rejection::other_kind()) }
}

fn is_json(kind: &str) -> bool {
    let mut parts = kind.split(';').map(str::trim);
    let is_utf8 = |parameter: &str| match parameter.split_once('=') {
        Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => {
            let charset = charset.trim().trim_matches('"');
            charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
        }
        _ => true,
    };
    parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) && parts.all(is_utf8)
}

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
    let passing = headers.iter().filter(|(name, _)| passes(name));
    let mut sent: HeaderMap = passing.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in own {
        sent.insert(name.clone(), value.clone());
    }
    // as it was read here, in whatever words the client said so
    sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // what is compressed cannot be read on its way
    sent.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    sent
}

/// A reply's headers as the client gets them.
pub(crate) fn to_client(mut headers: HeaderMap, changes_length: bool, secrets: &Secrets) -> HeaderMap {
    without_hops(&mut headers);
    if changes_length {
        headers.remove(CONTENT_LENGTH);
    }
    if !headers.values().any(|value| secrets.are_in(value.as_bytes())) {
        return headers;
    }
    let passing = headers.iter().filter(|(_, value)| !secrets.are_in(value.as_bytes()));
    passing.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_provider_gets_what_sdks_need_and_its_own_key() {
        let passing = [
            ("accept", "application/json"),
            ("user-agent", "OpenAI/Python 3.57.0"),
            ("anthropic-beta", "a"),
            ("anthropic-beta", "b"),
            ("anthropic-version", "2023-06-01"),
            ("idempotency-key", "stainless-python-retry-1"),
            ("openai-beta", "assistants=v2"),
            ("x-stainless-lang", "python"),
            ("x-stainless-retry-count", "0"),
            ("traceparent", "00-1-2-01"),
            ("tracestate", "a=b"),
            ("x-client-request-id", "c-1"),
            ("x-request-id", "r-1"),
        ];
        let of_the_connection = [
            ("host", "127.0.0.1:1"),
            ("connection", "keep-alive, X-Stainless-Mine"),
            ("x-stainless-mine", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("content-type", "application/json; charset=utf-8"),
            ("expect", "100-continue"),
            ("accept-encoding", "gzip, br"),
            ("authorization", "Bearer token"),
            ("api-key", "token"),
            ("x-api-key", "token"),
            ("openai-organization", "org"),
            ("openai-project", "project"),
        ];
        let client = headers(&[&passing[..], &of_the_connection[..]].concat());
        let sent = to_provider(client, &headers(&[("authorization", "Bearer real")]));
        let own =
            [("authorization", "Bearer real"), ("content-type", "application/json"), ("accept-encoding", "identity")];
        assert_eq!(sent, headers(&[&passing[..], &own[..]].concat()));
    }

    #[test]
    fn no_header_of_a_client_says_where_a_gateway_sends_the_key() {
        let client = headers(&[
            ("x-portkey-custom-host", "https://evil.example"),
            ("x-portkey-config", "{}"),
            ("x-portkey-provider", "openai"),
            ("helicone-target-url", "https://evil.example"),
            ("helicone-auth", "Bearer x"),
            ("cf-aig-authorization", "Bearer x"),
            ("x-litellm-api-base", "https://evil.example"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "host=evil.example"),
            ("cookie", "a=1"),
            ("x-http-method-override", "DELETE"),
            ("x-mine", "1"),
        ]);
        let sent = to_provider(client, &headers(&[("api-key", "real")]));
        let own = [("api-key", "real"), ("content-type", "application/json"), ("accept-encoding", "identity")];
        assert_eq!(sent, headers(&own));
    }

    #[test]
    fn p34_what_says_that_it_is_something_else_than_json_in_utf_8_is_refused() {
        let checked = |kinds: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for kind in kinds {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            check_body(&headers).map_err(|rejection| rejection.status.as_u16())
        };
        assert_eq!(checked(&[]), Ok(()));
        for kind in [
            "application/json",
            "application/json; charset=utf-8",
            "Application/JSON;charset=\"UTF-8\"",
            "application/json; charset=utf8",
            "application/json;odata=verbose",
            "application/json;",
        ] {
            assert_eq!(checked(&[kind]), Ok(()), "{kind}");
        }
        for kind in [
            "application/json; charset=utf-7",
            "application/json; Charset = utf-16",
            "application/json; charset=utf-8; charset=utf-7",
            "multipart/form-data; boundary=x",
            "application/x-www-form-urlencoded",
            "text/plain;charset=UTF-8",
            "application/jsonl",
            "application/json, text/plain",
            "",
        ] {
            assert_eq!(checked(&[kind]), Err(415), "{kind}");
            assert_eq!(checked(&["application/json", kind]), Err(415), "{kind}");
        }
        for (encoding, code) in [("identity", None), ("gzip", Some("unsupported_encoding"))] {
            let refused = check_body(&headers(&[("content-encoding", encoding)])).err();
            assert_eq!(refused.map(|rejection| rejection.code()), code, "{encoding}");
        }
    }

    #[test]
    fn a_client_gets_everything_but_what_is_of_the_connection() {
        let of = [("connection", "close"), ("keep-alive", "timeout=5"), ("content-length", "7"), ("x-request-id", "r")];
        let none = Secrets::default();
        assert_eq!(to_client(headers(&of), false, &none), headers(&[("content-length", "7"), ("x-request-id", "r")]));
        assert_eq!(to_client(headers(&of), true, &none), headers(&[("x-request-id", "r")]));
    }

    #[test]
    fn a_header_that_shows_the_key_is_taken_out_and_those_beside_it_stay() {
        let mut own = headers(&[("x-api-key", "sk-secret-1")]);
        own.values_mut().for_each(|value| value.set_sensitive(true));
        let came = headers(&[
            ("x-sent", "x-api-key: sk-secret-1; b"),
            ("set-cookie", "a=1"),
            ("set-cookie", "key=sk-secret-1"),
            ("x-request-id", "r"),
        ]);
        let expected = headers(&[("set-cookie", "a=1"), ("x-request-id", "r")]);
        assert_eq!(to_client(came, false, &Secrets::of_account("", &own)), expected);
    }
}
