//! What a client is told when nothing is forwarded, in the form of its provider's errors, so that SDKs understand it.
//!
//! SDKs repeat 408, 409, 429 and 5xx by themselves, and follow `retry-after` and `x-should-retry`. So what passes by itself is one of
//! these, and what somebody has to do something about is none, and says `x-should-retry: false` besides.

use std::time::Duration;

use bench_models::classify::holds_key;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER},
};
use hyper::body::Bytes;
use serde_json::{error::Category, json};

use crate::{faults::FaultKind, outcome::Refusal};

/// Whose form an error has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    OpenAi,
    Anthropic,
}

/// An error that the meter itself answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    /// OpenAI's `type`, and its `code`.
    kind: &'static str,
    code: &'static str,
    param: Option<Box<str>>,
    message: Box<str>,
    /// What is wrong with a body that the message may quote.
    quotes: Option<Category>,
    /// What is kept in place of a message that names more than may be kept.
    reason: Option<Box<str>>,
    /// See [`Rejection::lasts`]. Not of what the state of the run says by itself: it has ended, is stopped, has no money left.
    lasts: bool,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
}

const INVALID: &str = "invalid_request_error";
/// Bytes of the longest name of a member that is kept.
const LONGEST_KEPT: usize = 40;

impl Rejection {
    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into().into_boxed_str();
        Self {
            status,
            kind,
            code,
            param: None,
            message,
            quotes: None,
            reason: None,
            lasts: false,
            retry_after: None,
            allow: None,
        }
    }

    /// It does not pass by itself: somebody has to do something about it.
    pub(crate) const fn lasts(&self) -> bool {
        self.lasts
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Why, for whoever keeps it: without what a body says and where, which the client alone may be told, and which would make each
    /// body a reason of its own. So would the ids in paths.
    pub(crate) fn kept(&self) -> &str {
        match self.quotes {
            None => self.reason.as_deref().unwrap_or(&self.message),
            Some(Category::Eof) => "the body is no JSON object that can be read: it ends too early",
            Some(Category::Data) => "the body is no JSON object that can be read: it is something else",
            Some(Category::Syntax | Category::Io) => "the body is no JSON object that can be read: it is no JSON",
        }
    }

    /// The same with a message that may quote a body, which is wrong in this way.
    pub(crate) fn quoting(self, wrong: Category) -> Self {
        Self { quotes: Some(wrong), ..self }
    }

    pub(crate) fn foreign_host() -> Self {
        let why = "the meter on loopback answers only those who name this machine: use 127.0.0.1 or localhost in the base URL, or list the name in the setting meter.hosts";
        Self::new(StatusCode::FORBIDDEN, INVALID, "foreign_host", why)
    }

    pub(crate) fn nowhere(path: &str) -> Self {
        let shown: String = path.chars().take(200).collect();
        let told = |at: &str| {
            format!(
                "the meter forwards nothing at {at}: the base URL is /m/RUN/v1 or /m/RUN/BANK/GENERATION/v1, with chat/completions, responses, completions, embeddings, messages or models behind it"
            )
        };
        let plain = Self::new(StatusCode::NOT_FOUND, INVALID, "unknown_url", told(&shown));
        Self { lasts: true, reason: Some(told(&words_of(path)).into()), ..plain }
    }

    pub(crate) fn method(allow: &'static str) -> Self {
        let message = format!("only {allow} is allowed here");
        let plain = Self::new(StatusCode::METHOD_NOT_ALLOWED, INVALID, "method_not_supported", message);
        Self { allow: Some(allow), ..plain }
    }

    pub(crate) fn unreadable(param: Option<&'static str>, message: impl Into<String>) -> Self {
        let param = param.map(Into::into);
        Self { param, lasts: true, ..Self::new(StatusCode::BAD_REQUEST, INVALID, "invalid_request", message) }
    }

    /// The client left, or its connection did: the same request may come whole the next time.
    pub(crate) fn broken_off() -> Self {
        Self { lasts: false, ..Self::unreadable(None, "the body of the request broke off") }
    }

    /// A parameter of the query that is not passed on.
    pub(crate) fn foreign_parameter(name: &str) -> Self {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
        let message = format!(
            "{shown}: leave this parameter out of the URL; the meter passes on api-version, beta=true of Anthropic's, and those of lists of models"
        );
        Self { param: Some(shown.into()), ..Self::unreadable(None, message) }
    }

    /// A member of the body that its account has to let through.
    pub(crate) fn unlisted(name: &str, instead: &str, account: &str) -> Self {
        let told = |name: &str| {
            format!(
                "{name}: {instead}; the meter passes on what is known to cost nothing beyond tokens. Where it costs nothing else at \
                 this provider, its operator lets it through with accounts.{account}.parameters"
            )
        };
        let shown = shown(name);
        // what else a name may be is the client's own
        let is_word = (1..=LONGEST_KEPT).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && !holds_key(name);
        let reason = (!is_word).then(|| told("a member of another form than those of providers").into());
        Self { param: Some(shown.as_str().into()), reason, ..Self::unreadable(None, told(&shown)) }
    }

    /// More such members than are held until it is known what their account lets through.
    pub(crate) fn too_many_unlisted(first: &str, most: usize) -> Self {
        let shown = shown(first);
        let told = |first: &str| {
            format!(
                "the body has more than {most} members or types of items that are not known here{first}: leave them out; no account lets \
                 as many through"
            )
        };
        let reason = Some(told("").into());
        Self {
            param: Some(shown.as_str().into()),
            reason,
            ..Self::unreadable(None, told(&format!(", the first is {shown}")))
        }
    }

    pub(crate) fn encoded(encoding: &str) -> Self {
        let shown: String = encoding.chars().take(40).collect();
        let message = format!("the meter reads bodies as they are: send it without content-encoding {shown}");
        let plain = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID, "unsupported_encoding", message);
        Self { lasts: true, ..plain }
    }

    /// A body that says that it is something else than JSON in UTF-8.
    pub(crate) fn other_kind() -> Self {
        let why = "the meter reads bodies as JSON in UTF-8: send it with content-type application/json";
        let plain = Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID, "unsupported_media_type", why);
        Self { lasts: true, ..plain }
    }

    pub(crate) fn too_large(most: usize) -> Self {
        let message = format!("a request through the meter has at most {most} bytes: send less at a time");
        Self { lasts: true, ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, INVALID, "request_too_large", message) }
    }

    pub(crate) fn slow_body() -> Self {
        let why = "the rest of the request did not come in time: send it again";
        Self::new(StatusCode::REQUEST_TIMEOUT, INVALID, "request_timeout", why)
    }

    pub(crate) fn no_room() -> Self {
        let why = "the meter holds as many bytes of requests as it may: come again";
        Self::busy(Duration::from_secs(1), why)
    }

    fn busy(retry_after: Duration, reason: &str) -> Self {
        let plain = Self::new(StatusCode::TOO_MANY_REQUESTS, "requests", "rate_limit_exceeded", reason);
        Self { retry_after: Some(retry_after), ..plain }
    }

    pub(crate) fn not_reached(cause: &str) -> Self {
        let message = format!("the meter has no connection to the provider: {cause}");
        Self::new(StatusCode::BAD_GATEWAY, "server_error", "provider_not_reached", message)
    }

    pub(crate) fn cut(cause: &str) -> Self {
        let message = format!("the provider broke off: {cause}");
        Self::new(StatusCode::BAD_GATEWAY, "server_error", "provider_cut", message)
    }

    pub(crate) fn silent(waited: Duration) -> Self {
        let message = format!("the provider did not answer within {} s", waited.as_secs());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "server_error", "provider_timeout", message)
    }

    /// What a provider in that trouble would say.
    pub(crate) fn fault(kind: FaultKind) -> Self {
        let FaultKind::Status(status) = kind else { return Self::cut("a fault on purpose") };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = format!("status {} on purpose: the meter was told to make faults", status.as_u16());
        match status {
            StatusCode::TOO_MANY_REQUESTS => Self::busy(Duration::from_secs(1), &message),
            status if status.is_server_error() => Self::new(status, "server_error", "meter_fault", message),
            status => Self::new(status, INVALID, "meter_fault", message),
        }
    }

    /// Anthropic's `type`.
    fn anthropic(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::PAYMENT_REQUIRED => "billing_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::GATEWAY_TIMEOUT => "timeout_error",
            StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
            status if status.is_server_error() => "api_error",
            _ => INVALID,
        }
    }

    /// Its headers and its body.
    pub(crate) fn written(&self, form: Form) -> (HeaderMap, Bytes) {
        let body = match form {
            Form::OpenAi => {
                let Self { message, kind, param, code, .. } = self;
                json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            }
            Form::Anthropic => {
                json!({"type": "error", "error": {"type": self.anthropic(), "message": self.message}})
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
            headers.insert("retry-after-ms", HeaderValue::from(ms));
        }
        let is_repeated = matches!(self.status.as_u16(), 408 | 409 | 429) || self.status.is_server_error();
        headers.insert("x-should-retry", HeaderValue::from_static(if is_repeated { "true" } else { "false" }));
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        (headers, Bytes::from(body.to_string()))
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        let new = |status, kind, code, message: &str| Self::new(status, kind, code, message);
        let lasting = |status, code, message: &str| Self { lasts: true, ..Self::new(status, INVALID, code, message) };
        match refusal {
            Refusal::UnknownRun => {
                let why = "no run has the name in the base URL: take the address from `bench-coord meter url RUN`";
                new(StatusCode::NOT_FOUND, INVALID, "unknown_run", why)
            }
            Refusal::ForeignKey => {
                let why = "the key is no token of this run: take address and key from `bench-coord meter url RUN`";
                new(StatusCode::UNAUTHORIZED, INVALID, "invalid_api_key", why)
            }
            Refusal::RunEnded(how) => {
                let message = format!("the run has ended ({how}): nothing is spent for it any more");
                new(StatusCode::FORBIDDEN, INVALID, "run_ended", &message)
            }
            Refusal::ModelNotAllowed { model, allowed } => {
                // first what to do: whoever keeps it may cut a long list
                let message = format!(
                    "the run may not use {0}: submit it with --meter-allow {0} too; it may use {1}",
                    shown(&model),
                    allowed.join(", ")
                );
                Self { param: Some("model".into()), ..lasting(StatusCode::FORBIDDEN, "model_not_allowed", &message) }
            }
            Refusal::UnknownModel(why) => {
                Self { param: Some("model".into()), ..lasting(StatusCode::NOT_FOUND, "model_not_found", &why) }
            }
            Refusal::UnknownParameter { name, instead, account } => Self::unlisted(&name, instead, &account),
            Refusal::UnknownBank(bank) => {
                let message = format!(
                    "the run has no bank {}, which the base URL names: take the address from bench_coord.meter_url(bank), or the one without a bank from `bench-coord meter url RUN`",
                    shown(&bank)
                );
                lasting(StatusCode::NOT_FOUND, "unknown_bank", &message)
            }
            Refusal::Busy { retry_after, reason } => Self::busy(retry_after, &reason),
            // 429 would be repeated until the SDK gives up, and then again by the system under test
            Refusal::OverBudget(what) => {
                new(StatusCode::PAYMENT_REQUIRED, "insufficient_quota", "insufficient_quota", &what)
            }
            Refusal::Stopped(what) => new(StatusCode::FORBIDDEN, INVALID, "run_stopped", &what),
            Refusal::Unavailable(why) => {
                let plain = new(StatusCode::SERVICE_UNAVAILABLE, "server_error", "meter_unavailable", &why);
                Self { retry_after: Some(Duration::from_secs(2)), ..plain }
            }
        }
    }
}

/// Words of paths that SDKs of OpenAI, Anthropic and Azure have, beside versions.
const WORDS_OF_PATHS: [&str; 40] = [
    "api",
    "assistants",
    "audio",
    "batches",
    "cancel",
    "chat",
    "checkpoints",
    "completions",
    "containers",
    "content",
    "conversations",
    "count_tokens",
    "deployments",
    "edits",
    "embeddings",
    "engines",
    "evals",
    "events",
    "files",
    "fine_tuning",
    "generations",
    "images",
    "input_items",
    "items",
    "jobs",
    "messages",
    "models",
    "moderations",
    "openai",
    "realtime",
    "rerank",
    "responses",
    "runs",
    "speech",
    "threads",
    "transcriptions",
    "translations",
    "uploads",
    "vector_stores",
    "videos",
];

/// What is kept of a path: the words behind the run that SDKs have. Anything else may be a name, an id or a key, and is `…`.
fn words_of(path: &str) -> String {
    const MOST: usize = 8;
    let is_version = |segment: &str| {
        let number = segment.strip_prefix('v').unwrap_or_default();
        matches!(number.len(), 1..=2) && number.bytes().all(|b| b.is_ascii_digit())
    };
    let is_word = |segment: &str| segment.is_empty() || is_version(segment) || WORDS_OF_PATHS.contains(&segment);
    let behind = path.split('/').skip(3).take(MOST);
    let words: Vec<&str> = behind.map(|segment| if is_word(segment) { segment } else { "…" }).collect();
    format!("/{}", words.join("/"))
}

/// A name that a request has brought, in one line and not too long for what is said of it.
fn shown(name: &str) -> String {
    const LONGEST: usize = 100;
    name.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(refusal: Refusal, form: Form) -> (u16, HeaderMap, serde_json::Value) {
        let rejection = Rejection::from(refusal);
        let (headers, body) = rejection.written(form);
        (rejection.status.as_u16(), headers, serde_json::from_slice(&body).expect("json"))
    }

    fn unknown(name: &str) -> Refusal {
        Refusal::UnknownParameter { name: name.to_owned(), instead: "leave it out", account: "openai".to_owned() }
    }

    #[test]
    fn every_refusal_has_the_form_of_its_provider_and_says_whether_to_come_again() {
        let busy = Refusal::Busy { retry_after: Duration::from_millis(1500), reason: "20 s for its turn".to_owned() };
        let not_allowed = Refusal::ModelNotAllowed { model: "m".to_owned(), allowed: vec!["a".into(), "b".into()] };
        for (refusal, status, code, kind, again) in [
            (Refusal::UnknownRun, 404, "unknown_run", "not_found_error", "false"),
            (Refusal::ForeignKey, 401, "invalid_api_key", "authentication_error", "false"),
            (Refusal::RunEnded("completed".into()), 403, "run_ended", "permission_error", "false"),
            (not_allowed, 403, "model_not_allowed", "permission_error", "false"),
            (Refusal::UnknownModel("m".into()), 404, "model_not_found", "not_found_error", "false"),
            (unknown("logits_processors"), 400, "invalid_request", "invalid_request_error", "false"),
            (Refusal::UnknownBank("b".into()), 404, "unknown_bank", "not_found_error", "false"),
            (busy, 429, "rate_limit_exceeded", "rate_limit_error", "true"),
            (Refusal::OverBudget("spent".into()), 402, "insufficient_quota", "billing_error", "false"),
            (Refusal::Stopped("stopped".into()), 403, "run_stopped", "permission_error", "false"),
            (Refusal::Unavailable("no store".into()), 503, "meter_unavailable", "overloaded_error", "true"),
        ] {
            let (seen, headers, body) = written(refusal.clone(), Form::OpenAi);
            assert_eq!((seen, body["error"]["code"].as_str()), (status, Some(code)), "{refusal:?}");
            assert!(body["error"]["type"].is_string() && body["error"]["message"].is_string(), "{body}");
            assert!(body["error"].as_object().is_some_and(|error| error.contains_key("param")), "{body}");
            assert_eq!(headers["x-should-retry"], again, "{refusal:?}");
            let (seen, _, body) = written(refusal, Form::Anthropic);
            assert_eq!((seen, body["type"].as_str()), (status, Some("error")));
            assert_eq!(body["error"]["type"], kind);
        }
    }

    #[test]
    fn p34_what_does_not_pass_by_itself_is_told_apart_from_what_does() {
        let busy = Refusal::Busy { retry_after: Duration::from_secs(1), reason: "its turn".to_owned() };
        let not_allowed = Refusal::ModelNotAllowed { model: "m".to_owned(), allowed: vec!["a".to_owned()] };
        for (refusal, lasts) in [
            (not_allowed, true),
            (Refusal::UnknownModel("m".into()), true),
            (unknown("logits_processors"), true),
            (Refusal::UnknownBank("b".into()), true),
            (Refusal::UnknownRun, false),
            (Refusal::ForeignKey, false),
            (Refusal::RunEnded("completed".into()), false),
            (busy, false),
            (Refusal::OverBudget("spent".into()), false),
            (Refusal::Stopped("stopped".into()), false),
            (Refusal::Unavailable("no store".into()), false),
        ] {
            assert_eq!(Rejection::from(refusal.clone()).lasts(), lasts, "{refusal:?}");
        }
        for (rejection, lasts) in [
            (Rejection::unreadable(None, "no model"), true),
            (Rejection::foreign_parameter("model"), true),
            (Rejection::encoded("gzip"), true),
            (Rejection::other_kind(), true),
            (Rejection::too_large(1), true),
            (Rejection::nowhere("/m/r/v1/files"), true),
            (Rejection::broken_off(), false),
            (Rejection::slow_body(), false),
            (Rejection::no_room(), false),
            (Rejection::fault(FaultKind::Status(404)), false),
        ] {
            assert_eq!(rejection.lasts(), lasts, "{rejection:?}");
        }
    }

    #[test]
    fn p34_what_a_refused_call_is_told_of_says_what_to_do() {
        let allowed = vec!["gpt-4o".to_owned(), "text-*".to_owned()];
        let not_allowed = Refusal::ModelNotAllowed { model: "o1\npro".to_owned(), allowed };
        let why = "the run may not use o1pro: submit it with --meter-allow o1pro too; it may use gpt-4o, text-*";
        assert_eq!(Rejection::from(not_allowed).kept(), why);
        // whoever keeps it cuts what is long
        let long = "x".repeat(300);
        let not_allowed = Refusal::ModelNotAllowed { model: long.clone(), allowed: vec![long.clone()] };
        let rejection = Rejection::from(not_allowed);
        assert!(rejection.kept().find(" too; ").is_some_and(|at| at < 280), "{}", rejection.kept());
        let rejection = Rejection::from(Refusal::UnknownBank(long));
        assert!(rejection.kept().len() < 300 && rejection.kept().contains("meter_url(bank)"), "{}", rejection.kept());
    }

    #[test]
    fn p34_of_a_member_that_does_not_pass_the_name_is_kept_where_it_is_a_word_of_a_provider() {
        let long = "x".repeat(LONGEST_KEPT + 1);
        for (name, is_kept) in [
            ("use_beam_search", true),
            ("providerOptions", true),
            ("alice at 5", false),
            ("user_12345", false),
            ("sk-planted-abcdefgh", false),
            (long.as_str(), false),
            ("", false),
        ] {
            let rejection = Rejection::from(unknown(name));
            assert_eq!(rejection.kept().starts_with(&format!("{name}: ")), is_kept, "{rejection:?}");
            assert!(
                rejection.kept().contains("leave it out") && rejection.kept().contains("accounts.openai.parameters")
            );
            let (_, body) = rejection.written(Form::OpenAi);
            let body: serde_json::Value = serde_json::from_slice(&body).expect("json");
            assert_eq!((rejection.status.as_u16(), &body["error"]["param"]), (400, &json!(name)), "{body}");
        }
    }

    #[test]
    fn p34_of_a_path_that_leads_nowhere_the_words_are_kept_and_no_ids() {
        for (path, kept) in [
            ("/m/r1/v1/files", "/v1/files"),
            ("/m/r1/conv-26/3/v1/images/generations", "/…/…/v1/images/generations"),
            ("/m/r1/alice/3/v1/files", "/…/…/v1/files"),
            ("/m/r1/v1/responses/resp_68a1", "/v1/responses/…"),
            ("/m/r1/sk-proj-0123456789abcdef/v1", "/…/v1"),
            ("/m/r1/v1/vector_stores", "/v1/vector_stores"),
            ("/m/r1", "/"),
        ] {
            let rejection = Rejection::nowhere(path);
            assert!(rejection.kept().starts_with(&format!("the meter forwards nothing at {kept}: ")), "{rejection:?}");
            let (_, body) = rejection.written(Form::OpenAi);
            let told = format!("nothing at {path}: ");
            assert!(String::from_utf8_lossy(&body).contains(&told), "the client is told of its own path: {body:?}");
        }
    }

    #[test]
    fn a_refused_model_is_told_why_and_nothing_else() {
        let (_, _, body) = written(Refusal::UnknownModel("m has no price".into()), Form::OpenAi);
        assert_eq!(body["error"]["message"], "m has no price");
        assert_eq!(body["error"]["param"], "model");
    }

    #[test]
    fn a_wait_is_said_in_whole_seconds_and_in_milliseconds() {
        let busy = |ms| Refusal::Busy { retry_after: Duration::from_millis(ms), reason: String::new() };
        for (ms, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (20_000, "20")] {
            let (_, headers, _) = written(busy(ms), Form::OpenAi);
            assert_eq!(headers["retry-after"], seconds, "{ms}");
            assert_eq!(headers["retry-after-ms"], ms.max(1).to_string().as_str());
        }
    }
}
