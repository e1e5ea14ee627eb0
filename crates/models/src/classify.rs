//! What a failed attempt means: pure functions from status, body and transport error to a failure.

use std::fmt::Write as _;

use bench_proto::{
    failure::{Failure, FailureClass, code},
    redact,
    text::acts,
};
use serde_json::Value;

use super::AttemptError;

/// Longest message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// Only this much of an error body is looked at, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// How an exchange broke off without a usable response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// No connection was made: refused, unknown host, TLS, connect time-out. Surely not billed.
    Connect,
    /// The request's time was over.
    Timeout,
    /// The connection ended before the reply did.
    Cut,
    /// The reply was longer than allowed.
    TooLarge,
    /// A 200 whose body is not a chat completion.
    Garbage,
    /// A web page: something before the model has answered, and nothing was billed.
    Page,
    /// The request could not be built (a bad base URL): no attempt of any task can work.
    Unsendable,
}

/// The words of an error body, whatever its shape.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    message: String,
    kind: String,
    code: String,
    /// The code of Azure's error within the error.
    inner: String,
    param: String,
}

impl Words {
    /// Reads `{"error": {"message", "type", "code", "param"}}`, `{"error": "…"}`, `{"message": "…"}`, `{"detail": "…"}`,
    /// and takes anything else as plain text.
    fn read(body: &[u8]) -> Self {
        let body = &body[..body.len().min(MAX_BODY_BYTES)];
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return Self { message: plain_text(&String::from_utf8_lossy(body)), ..Self::default() };
        };
        // some servers wrap the object in a list
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").unwrap_or(value);
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        if let Value::String(message) = error {
            return Self { message: message.clone(), ..Self::default() };
        }
        let message =
            ["message", "detail", "msg"].iter().map(|name| text(error.get(*name))).find(|words| !words.is_empty());
        Self {
            message: message.unwrap_or_else(|| value.to_string()),
            kind: text(error.get("type")),
            code: text(error.get("code")),
            inner: text(error.pointer("/innererror/code").or_else(|| error.pointer("/inner_error/code"))),
            param: text(error.get("param")),
        }
    }

    /// Code or type is one of `names`.
    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.code == *name || self.kind == *name)
    }

    /// The message holds one of `parts`, whatever their case.
    fn says(&self, parts: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        parts.iter().any(|part| message.contains(part))
    }

    /// What was asked, or the reply to it, was withheld for what it says: a model has read it.
    fn withhold(&self) -> bool {
        let is_code = |code: &String| {
            let code = code.to_ascii_lowercase();
            WITHHOLDING.contains(&code.as_str()) || WITHHOLDING_BEGINS.iter().any(|begin| code.starts_with(begin))
        };
        // what could not be read as JSON, since it was cut, has its codes in the message
        [&self.code, &self.kind, &self.inner].into_iter().any(is_code) || self.says(&WITHHOLDING_WORDS)
    }

    /// The request was wrong, and nothing was done about it.
    fn are_of_a_bad_request(&self) -> bool {
        let codes = [&self.code, &self.kind].map(|code| code.to_ascii_lowercase());
        codes.iter().any(|code| INVALID.iter().any(|part| code.contains(part)))
            || lacks_schemas(self)
            || self.says(&TOO_LONG)
    }
}

/// Codes and types with which providers withhold a reply, and begins of such. Others that hold the same words say something else (that
/// a moderation cannot be reached, that an organisation's policy is violated).
const WITHHOLDING: [&str; 5] =
    ["content_moderation", "invalid_prompt", "moderation", "policy_violation", "responsibleaipolicyviolation"];
const WITHHOLDING_BEGINS: [&str; 3] = ["content_filter", "content_policy_violation", "moderation_blocked"];
/// Those that are in no message of another kind.
const WITHHOLDING_WORDS: [&str; 3] = ["content_filter", "responsibleaipolicyviolation", "content_policy_violation"];

/// Parts of the codes and types of requests that no model has seen.
const INVALID: [&str; 8] = [
    "invalid",
    "badrequesterror",
    "unsupported",
    "not_supported",
    "notsupported",
    "unknown_parameter",
    "missing",
    "context_length_exceeded",
];

/// Words of what is said of a prompt that no model can take.
const TOO_LONG: [&str; 4] = ["maximum context length", "context length", "context window", "prompt is too long"];

/// The text of an error page: tags out.
fn plain_text(page: &str) -> String {
    if !page.trim_start().starts_with('<') {
        return page.to_owned();
    }
    let mut text = String::new();
    let mut in_tag = false;
    for c in page.chars() {
        match c {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                text.push(' ');
            }
            c if !in_tag => text.push(c),
            _ => {}
        }
    }
    text
}

/// One readable line: white space collapsed, control characters out, keys scrubbed ([`redact::SHORTEST_SECRET`]), bounded. `secrets`
/// are those of the account that was asked: `&`[`redact::Secrets`], or nothing where no account was.
#[must_use]
pub fn one_line<'s>(text: &str, secrets: impl IntoIterator<Item = &'s str>) -> String {
    let text = redact::without(text, secrets);
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split(|c: char| c.is_whitespace() || acts(c)).filter(|word| !word.is_empty()) {
        let without_run_keys = redact::run_keys(word);
        let word = redact::provider_keys(&without_run_keys);
        let length = word.chars().count();
        // before the cut too: a key that was sent in two words must not be joined
        if !line.is_empty() {
            line.push(' ');
        }
        if chars + length + 1 > MAX_MESSAGE_CHARS {
            line.extend(word.chars().take(MAX_MESSAGE_CHARS.saturating_sub(chars + 2)));
            line.push('…');
            break;
        }
        line.push_str(&word);
        chars += length + 1;
    }
    line
}

/// Whether a name is, or holds, what [`one_line`] would not show: the key of a metered run, or what looks like a provider's.
#[must_use]
pub fn holds_key(name: &str) -> bool {
    redact::run_key(name.as_bytes()).is_some() || redact::provider_keys(name) != name
}

/// A server that has no JSON schemas (or no JSON mode) says so about `response_format`.
fn lacks_schemas(words: &Words) -> bool {
    let about_format = words.param.starts_with("response_format")
        || words.says(&["response_format", "response format", "json_schema"]);
    about_format
        && !words.says(&["invalid schema"])
        && words.says(&[
            "support",
            "unavailable",
            "unknown",
            "unrecognized",
            "not permitted",
            "extra",
            "must be",
            "should be",
        ])
}

/// Whether a provider may ask money for what it has answered with this status. A gateway gives up on an upstream that may still finish
/// and bill, a server on a reply that takes too long, and what was withheld has been read by a model. Azure charges for whatever it has
/// processed, so there the other answers that do not say that nothing was done may be billed too.
#[must_use]
pub fn may_be_billed(status: u16, body: &[u8], is_azure: bool) -> bool {
    may_words_be_billed(status, &Words::read(body), is_azure)
}

fn may_words_be_billed(status: u16, words: &Words, is_azure: bool) -> bool {
    match status {
        408 | 499 | 504 | 524 => true,
        400.. if words.withhold() => true,
        401 | 403 | 404 | 413 | 415 | 422 | 429 => false,
        400..=499 => is_azure && !words.are_of_a_bad_request(),
        _ => false,
    }
}

/// Ends of the hosts of Azure's models and gateways.
const OF_AZURE: [&str; 5] = [".azure.com", ".azure.us", ".azure.cn", ".api.cognitive.microsoft.com", ".azure-api.net"];
/// In the name of a machine that anybody rents there, and on which any server may be.
const RENTED: &str = ".cloudapp.azure.";

/// Whether a base URL is one of Azure's.
#[must_use]
pub fn is_azure(base_url: &str) -> bool {
    let of_azure = |host: &str| OF_AZURE.iter().any(|end| host.ends_with(end)) && !host.contains(RENTED);
    reqwest::Url::parse(base_url).is_ok_and(|url| url.host_str().is_some_and(of_azure))
}

/// What a response other than success means; `secrets` as of [`one_line`]: many servers repeat the path of a request in an error,
/// and some gateways want a key there.
#[must_use]
pub fn response<'s>(
    status: u16,
    body: &[u8],
    retry_after_ms: Option<u64>,
    secrets: impl IntoIterator<Item = &'s str>,
) -> AttemptError {
    let words = Words::read(body);
    let (class, code, hint) = class_of(status, &words);
    let mut message = format!("the provider answered {status}");
    let said = one_line(&words.message, secrets);
    if !said.is_empty() {
        let _ = write!(message, ": {}", said.trim_end_matches('.'));
    }
    message.push_str(hint);
    let mut failure = Failure::new(class, code, message);
    failure.retry_after_ms = retry_after_ms.filter(|_| class == FailureClass::Transient);
    let maybe_billed = may_words_be_billed(status, &words, false);
    AttemptError { failure, status, maybe_billed, adapted: false }
}

/// The response says that `response_format` is not known there.
#[must_use]
pub fn is_schema_refusal(status: u16, body: &[u8]) -> bool {
    matches!(status, 400 | 415 | 422 | 501) && lacks_schemas(&Words::read(body))
}

/// Class, code and what to do next.
fn class_of(status: u16, words: &Words) -> (FailureClass, String, &'static str) {
    use FailureClass::{Permanent, Terminal, Transient};
    let say = |class, code: &str, hint| (class, code.to_owned(), hint);
    let bad_key = || say(Terminal, code::INVALID_API_KEY, "; check the key of this account and resume");
    let quota = || say(Terminal, code::INSUFFICIENT_QUOTA, "; add credit or raise the account's limit and resume");
    let no_model = || say(Terminal, code::MODEL_NOT_FOUND, "; check the model's name and the account's access");
    match status {
        400..=499 if words.is(&["invalid_api_key"]) || words.says(&["api key not valid", "incorrect api key"]) => {
            bad_key()
        }
        400..=499
            if words.is(&[
                "insufficient_quota",
                "billing_hard_limit_reached",
                "billing_not_active",
                "billing_error",
            ]) =>
        {
            quota()
        }
        400..=499 if words.says(&["credit balance is too low"]) => quota(),
        400..=499 if words.is(&["model_not_found", "DeploymentNotFound"]) => no_model(),
        400..=499 if words.withhold() => say(Permanent, "content_filter", ""),
        401 => bad_key(),
        402 => quota(),
        403 if words.says(&["moderation", "flagged", "content policy"]) => say(Permanent, "content_filter", ""),
        403 if words.says(&["key", "token", "authentication", "credential"]) => bad_key(),
        403 => say(Terminal, code::FORBIDDEN, "; check what this account may use"),
        404 if words.says(&["model"]) => no_model(),
        404 => say(Terminal, "not_found", "; check the base URL (most end in /v1)"),
        429 => say(Transient, code::RATE_LIMITED, ""),
        400 | 413 | 422 if words.is(&["context_length_exceeded"]) || words.says(&TOO_LONG) => {
            say(Permanent, "context_length_exceeded", "; retrieve less (--top-k) or use a model with a larger context")
        }
        413 => say(Permanent, "request_too_large", ""),
        408 | 409 | 425 | 500..=599 => (Transient, format!("http_{status}"), ""),
        300..=399 => say(Terminal, "redirected", "; set the base URL to where it leads"),
        400 | 422 => say(Permanent, "bad_request", ""),
        _ => (Permanent, format!("http_{status}"), ""),
    }
}

/// What a body is that is no JSON of the provider's.
#[must_use]
pub fn unreadable(body: &[u8]) -> Transport {
    match body.trim_ascii_start().first() {
        Some(b'<') => Transport::Page,
        _ => Transport::Garbage,
    }
}

/// What a broken exchange means; `secrets` as of [`one_line`].
#[must_use]
pub fn transport<'s>(
    kind: Transport,
    status: u16,
    detail: &str,
    secrets: impl IntoIterator<Item = &'s str>,
) -> AttemptError {
    let (code, words, maybe_billed) = match kind {
        Transport::Connect => ("connect", "no connection to the provider", false),
        Transport::Timeout => ("timeout", "no complete reply in time", true),
        Transport::Cut => ("cut", "the connection broke before the reply was complete", true),
        Transport::TooLarge => ("reply_too_large", "the reply is longer than allowed", true),
        Transport::Page => ("garbage", "the reply is a web page, not a chat completion", false),
        Transport::Garbage => ("garbage", "the reply is not a chat completion", true),
        Transport::Unsendable => ("unsendable", "the request cannot be sent; check the base URL", false),
    };
    let detail = one_line(detail, secrets);
    let message = if detail.is_empty() { words.to_owned() } else { format!("{words}: {detail}") };
    let class = if kind == Transport::Unsendable { FailureClass::Terminal } else { FailureClass::Transient };
    AttemptError { failure: Failure::new(class, code, message), status, maybe_billed, adapted: false }
}

/// Codes with which a provider refuses a process: its key, its URL, the name of the model.
const REFUSALS: [&str; 4] = [code::INVALID_API_KEY, code::FORBIDDEN, "not_found", code::MODEL_NOT_FOUND];

/// Whether a failure of this code says that the provider refuses the process that asked, and not what it asked.
#[must_use]
pub fn is_refusal(code: &str) -> bool {
    REFUSALS.contains(&code)
}

/// Whether a transport's message says that this process lacks something that every request needs. What the system said stands at
/// its end: EMFILE, ENFILE, ENOMEM, ENOSPC.
pub fn lacks(message: &str) -> bool {
    [24, 23, 12, 28].iter().any(|number| message.contains(&format!("(os error {number})")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class_and_code(status: u16, body: &str) -> (FailureClass, String) {
        let failure = response(status, body.as_bytes(), None, None).failure;
        (failure.class, failure.code)
    }

    /// A response, and the class and the code that it has: status, body, class, code.
    type Told = (u16, &'static str, FailureClass, &'static str);

    fn assert_told(responses: &[Told]) {
        for (status, body, class, code) in responses {
            assert_eq!(class_and_code(*status, body), (*class, (*code).to_owned()), "{status} {body}");
        }
    }

    #[test]
    fn names_that_hold_keys_are_known() {
        let run_key = format!("bm-{}", "0af3".repeat(10));
        for name in
            [run_key.as_str(), &format!("m/{run_key}"), "sk-planted0123456789", "m:sk-pr***89", "my sk-12345678"]
        {
            assert!(holds_key(name) && one_line(name, None).contains("[key]"), "{name}");
        }
        for name in ["gpt-4o", "", "ask-me-about-birds", "sk-1", "bm-25", "m-[key]", "two  words"] {
            assert!(!holds_key(name), "{name}");
        }
    }

    #[test]
    fn responses_in_openais_form_are_told_apart() {
        use FailureClass::{Permanent, Terminal, Transient};
        assert_told(&[
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-x","code":"invalid_api_key"}}"#,
                Terminal,
                "invalid_api_key",
            ),
            (401, "", Terminal, "invalid_api_key"),
            (403, r#"{"error":{"message":"bad key"}}"#, Terminal, "invalid_api_key"),
            (403, r#"{"error":{"message":"country not served"}}"#, Terminal, "forbidden"),
            (
                400,
                r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#,
                Terminal,
                "invalid_api_key",
            ),
            (402, r#"{"error":"Insufficient Balance"}"#, Terminal, "insufficient_quota"),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#,
                Terminal,
                "insufficient_quota",
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
                Transient,
                "rate_limited",
            ),
            (429, "slow down", Transient, "rate_limited"),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
                Terminal,
                "model_not_found",
            ),
            (404, "<html><body>Not Found</body></html>", Terminal, "not_found"),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
                Permanent,
                "context_length_exceeded",
            ),
            (400, r#"{"error":{"message":"bad","code":"content_filter"}}"#, Permanent, "content_filter"),
            (400, r#"{"error":{"message":"Unsupported parameter: 'temperature'"}}"#, Permanent, "bad_request"),
            (422, r#"{"detail":[{"msg":"field required"}]}"#, Permanent, "bad_request"),
        ]);
    }

    #[test]
    fn responses_in_other_forms_are_told_apart() {
        use FailureClass::{Permanent, Terminal, Transient};
        assert_told(&[
            (
                404,
                r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
                Terminal,
                "model_not_found",
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-0"}}"#,
                Terminal,
                "model_not_found",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API"}}"#,
                Terminal,
                "insufficient_quota",
            ),
            (
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                Terminal,
                "invalid_api_key",
            ),
            (
                429,
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
                Transient,
                "rate_limited",
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Transient,
                "http_529",
            ),
            (408, "", Transient, "http_408"),
            (409, "", Transient, "http_409"),
            (500, "oops", Transient, "http_500"),
            (529, "", Transient, "http_529"),
            (302, "", Terminal, "redirected"),
            (418, "", Permanent, "http_418"),
        ]);
    }

    #[test]
    fn refusals_of_schemas_are_told_from_bad_schemas() {
        for (body, refused) in [
            (
                r#"{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."}}"#,
                true,
            ),
            (r#"{"error":{"message":"This response_format type is unavailable now"}}"#, true),
            (r#"{"error":{"message":"This model does not support response format `json_schema`"}}"#, true),
            (r#"{"error":{"message":"Invalid schema for response_format 'verdict': 'x' is not supported"}}"#, false),
            (r#"{"error":{"message":"temperature is not supported"}}"#, false),
        ] {
            assert_eq!(is_schema_refusal(400, body.as_bytes()), refused, "{body}");
        }
        assert!(!is_schema_refusal(500, br#"{"error":{"message":"response_format not supported"}}"#));
    }

    #[test]
    fn only_what_may_have_been_done_may_have_been_billed() {
        for (kind, billed) in [
            (Transport::Connect, false),
            (Transport::Timeout, true),
            (Transport::Cut, true),
            (Transport::Garbage, true),
            (Transport::Page, false),
            (Transport::TooLarge, true),
        ] {
            let error = transport(kind, 0, "", None);
            assert_eq!((error.failure.class, error.maybe_billed), (FailureClass::Transient, billed), "{kind:?}");
        }
        assert!(!response(500, b"", None, None).maybe_billed);
        assert!(response(504, b"", None, None).maybe_billed);
    }

    /// As Azure says it, and others with it.
    const WITHHELD: &str = r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true}}}}}"#;

    #[test]
    fn what_was_withheld_or_took_too_long_may_have_been_billed_whoever_answers() {
        let inner = r#"{"error":{"message":"no","code":"400","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#;
        for (status, body) in [
            (408, ""),
            (499, ""),
            (504, ""),
            (524, ""),
            (400, WITHHELD),
            // the begin of one that is too long to be kept
            (400, &WITHHELD[..WITHHELD.len() - 9]),
            (400, inner),
            (400, r#"{"error":{"message":"no","type":"content_policy_violation"}}"#),
            (400, r#"{"error":{"message":"flagged","type":"invalid_request_error","code":"invalid_prompt"}}"#),
            (403, r#"{"error":{"message":"flagged","code":"moderation_blocked"}}"#),
            (403, r#"{"error":{"message":"flagged","type":"moderation"}}"#),
            (400, r#"{"error":{"message":"no","code":"content_filtered"}}"#),
        ] {
            for is_azure in [true, false] {
                assert!(may_be_billed(status, body.as_bytes(), is_azure), "{status} {body}");
            }
            assert!(response(status, body.as_bytes(), None, None).maybe_billed, "{status} {body}");
        }
        assert_eq!(class_and_code(400, inner), (FailureClass::Permanent, "content_filter".to_owned()));
    }

    #[test]
    fn a_code_that_only_holds_such_words_withholds_nothing() {
        for code in ["moderation_unavailable", "ip_policy_violation", "no_content_filter", "data_policy_violation_risk"]
        {
            let body = format!(r#"{{"error":{{"message":"no","code":"{code}"}}}}"#);
            for (status, class) in [(403, "forbidden"), (400, "bad_request")] {
                assert!(!may_be_billed(status, body.as_bytes(), false), "{status} {code}");
                assert_eq!(class_and_code(status, &body).1, class, "{status} {code}");
            }
        }
    }

    #[test]
    fn on_azure_what_does_not_say_that_nothing_was_done_may_have_been_billed() {
        let invalid =
            r#"{"error":{"message":"Unrecognized request argument","type":"invalid_request_error","code":null}}"#;
        let schema = r#"{"error":{"message":"response_format 'json_schema' is not supported"}}"#;
        let long = r#"{"error":{"message":"This model's maximum context length is 8192 tokens"}}"#;
        for (status, body, is_billed) in [
            (400, "", true),
            (400, r#"{"error":{"message":"the request failed"}}"#, true),
            (409, "", true),
            (400, invalid, false),
            (400, r#"{"error":{"message":"no","code":"unsupported_parameter"}}"#, false),
            (400, r#"{"object":"error","message":"no","type":"BadRequestError","code":400}"#, false),
            (400, schema, false),
            (400, long, false),
            (401, "", false),
            (403, "", false),
            (404, r#"{"error":{"code":"DeploymentNotFound"}}"#, false),
            (413, "", false),
            (415, "", false),
            (422, "", false),
            (429, "", false),
            (500, "", false),
            (503, "", false),
            (302, "", false),
        ] {
            assert_eq!(may_be_billed(status, body.as_bytes(), true), is_billed, "{status} {body}");
            assert!(!may_be_billed(status, body.as_bytes(), false), "elsewhere nobody charges for it: {status} {body}");
        }
        for (url, expected) in [
            ("https://name.openai.azure.com/openai/v1", true),
            ("https://name.services.ai.azure.com/anthropic", true),
            ("https://westus.api.cognitive.microsoft.com/openai", true),
            ("https://mine.azure-api.net/openai", true),
            ("https://my-vm.westeurope.cloudapp.azure.com/v1", false),
            ("https://azure.com.evil.example/v1", false),
            ("https://api.openai.com/v1", false),
            ("http://127.0.0.1:1/azure.com", false),
            ("no URL", false),
        ] {
            assert_eq!(is_azure(url), expected, "{url}");
        }
    }

    #[test]
    fn a_short_key_leaves_messages_as_they_are() {
        let said = |key: &str| one_line("the text of the reply is too long", Some(key));
        for key in ["e", "x", "the", "EMPTY", ""] {
            assert_eq!(said(key), "the text of the reply is too long", "{key}");
        }
        assert_eq!(one_line("key k3y-of-mine is wrong", Some("k3y-of-mine")), "key [key] is wrong");
    }

    #[test]
    fn keys_of_a_base_url_are_no_part_of_a_message() {
        let base = "https://gateway.example/zQ7kXp20Ld9RtW4m/v1?key=v8Nc3Yh61Ts%3D";
        let secrets = redact::Secrets::of_account(base, Some("k3y-of-mine"));
        let sent = "/zQ7kXp20Ld9RtW4m/v1/chat/completions?key=v8Nc3Yh61Ts%3D";
        for body in [
            format!("<pre>Cannot POST {sent}</pre>"),
            serde_json::json!({"error": {"message": format!("Invalid URL (POST {sent})")}}).to_string(),
            serde_json::json!({"detail": {"path": sent, "query": {"key": "v8Nc3Yh61Ts="}}}).to_string(),
        ] {
            let said = [
                response(404, body.as_bytes(), None, &secrets).failure.message,
                transport(Transport::Cut, 0, &body, &secrets).failure.message,
            ];
            for message in said {
                assert!(message.contains("/[key]/v1/chat/completions"), "{message}");
                assert!(!["zQ7k", "v8Nc", "61Ts"].iter().any(|part| message.contains(part)), "{message}");
            }
        }
        assert_eq!(
            one_line(&format!("no {sent}, nor k3y-of-mine"), &secrets),
            "no /[key]/v1/chat/completions?key=[key], nor [key]"
        );
    }

    #[test]
    fn a_key_of_a_metered_run_is_no_part_of_a_message() {
        let said = "401: 'bm-00112233445566778899aabbccddeeff00112233', sk-abcdefgh1234 too, and bm-25 is a rank";
        assert_eq!(one_line(said, None), "401: '[key]', [key] too, and bm-25 is a rank");
    }

    #[test]
    fn what_drives_a_terminal_is_no_part_of_a_message() {
        assert_eq!(one_line("a\u{1b}[2Jb \u{202e}c\u{9b}d", None), "a [2Jb c d");
        let broken = format!("{}sk-pla\nnted-{}", "word ".repeat(50), "9".repeat(80));
        assert!(one_line(&broken, None).ends_with("…") && !one_line(&broken, None).contains("sk-planted"));
    }

    #[test]
    fn messages_read_well() {
        let error = response(429, br#"{"error":{"message":"Rate limit\n reached."}}"#, Some(1500), None);
        assert_eq!(error.failure.to_string(), "rate_limited: the provider answered 429: Rate limit reached");
        assert_eq!(error.failure.retry_after_ms, Some(1500));
        let error = response(
            401,
            br#"{"error":{"message":"Incorrect API key provided: sk-proj*****9xYz. Find it."}}"#,
            None,
            None,
        );
        insta::assert_snapshot!(error.failure.message, @"the provider answered 401: Incorrect API key provided: [key] Find it; check the key of this account and resume");
        insta::assert_snapshot!(response(502, b"<html><h1>502 Bad Gateway</h1><hr>nginx</html>", None, None).failure.message, @"the provider answered 502: 502 Bad Gateway nginx");
    }

    proptest! {
        #[test]
        fn messages_are_one_bounded_line_without_the_key(status in 300_u16..600, body in ".{0,600}", key in "[A-Za-z0-9]{12,40}", at in 0_usize..600) {
            let mut body = body;
            let at = (0..=at.min(body.len())).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
            body.insert_str(at, &key);
            for body in [body.clone(), serde_json::json!({"error": {"message": body}}).to_string()] {
                let message = response(status, body.as_bytes(), None, Some(key.as_str())).failure.message;
                prop_assert!(!message.contains(&key));
                prop_assert!(!message.contains('\n'));
                prop_assert!(message.chars().count() < 450);
            }
        }
    }
}
