//! The one redactor: URLs and words of others, as they may be shown and logged. What cannot be read as a URL is not shown, because
//! nobody knows where its password ends.

mod secrets;

use std::{borrow::Cow, ops::Range};

use url::{Position, Url};

pub use self::secrets::{Secrets, secrets_of_url, without};
use crate::ids::Sha256Hash;

/// What stands for a secret.
pub const HIDDEN: &str = "***";

/// Shorter secrets are left in words of others: they stand in many words by chance, and taking them out would make a message
/// unreadable. Real keys are longer; `x` and `EMPTY` are what servers without keys are given.
pub const SHORTEST_SECRET: usize = 8;

/// How the key of a metered run begins, before [`RUN_KEY_DIGITS`]: whoever finds one knows what it is, and that it opens no provider.
pub const RUN_KEY: &str = "bm-";

/// How many hexadecimal digits the key of a metered run has.
pub const RUN_KEY_DIGITS: usize = 40;

/// Schemes of places on this machine: a path, no user, no host.
const PATHS: [&str; 3] = ["file", "memory", "sqlite"];

/// Parameters that say how something is reached; the values of all others are hidden.
const PLAIN_PARAMETERS: [&str; 20] = [
    "api-version",
    "application_name",
    "cacertfile",
    "certfile",
    "channel_max",
    "connect_timeout",
    "connection_timeout",
    "dbname",
    "frame_max",
    "heartbeat",
    "host",
    "keyfile",
    "mode",
    "pgbouncer",
    "port",
    "region",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
];

/// Names of parameters that are known to hold what is hidden; any other name may be the end of a password with `&`.
const SECRET_PARAMETERS: [&str; 14] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "code",
    "key",
    "password",
    "secret",
    "sig",
    "signature",
    "sslpassword",
    "subscription-key",
    "token",
    "user",
];

/// Parameters of the URL of a Postgres database that its driver reads, and `pgbouncer`, which the store reads.
const READ_OF_POSTGRES: [&str; 19] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "pgbouncer",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// A URL as it may be shown: passwords, fragments and the values of most parameters are `***`; of http also the user, which is a
/// token as often as a name. An `@` behind the host means that a password with `/`, `?` or `#` was read as something else:
/// only the scheme is shown then.
///
/// ```
/// use bench_proto::redact::url;
/// assert_eq!(url("amqp://bench:secret@mq:5672/%2f"), "amqp://bench:***@mq:5672/%2f");
/// assert_eq!(url("https://api.example/v1?api-version=2&key=secret"), "https://api.example/v1?api-version=2&key=***");
/// assert_eq!(url("postgres://bench:12/34@db/x"), "postgres://***");
/// assert_eq!(url("postgres://bench:s/cret@db/x"), "***");
/// ```
#[must_use]
pub fn url(text: &str) -> Cow<'_, str> {
    let Ok(parsed) = Url::parse(text) else { return HIDDEN.into() };
    let shown = shown(&parsed);
    // as it was written, when nothing had to be hidden
    if shown.contains(HIDDEN) { shown.into() } else { text.into() }
}

fn shown(url: &Url) -> String {
    let scheme = url.scheme();
    let query = url.query().map(|query| format!("?{}", parameters(query))).unwrap_or_default();
    let fragment = url.fragment().map(|_| format!("#{HIDDEN}")).unwrap_or_default();
    if PATHS.contains(&scheme) && url.host_str().is_none_or(str::is_empty) {
        return format!("{}{query}{fragment}", &url[..Position::AfterPath]);
    }
    if !url.has_authority() {
        return format!("{scheme}:{HIDDEN}");
    }
    if has_at_behind_host(url) {
        return format!("{scheme}://{HIDDEN}");
    }
    let user = match (url.username(), url.password()) {
        ("", None) => String::new(),
        _ if matches!(scheme, "http" | "https") => format!("{HIDDEN}@"),
        (user, None) => format!("{user}@"),
        (user, Some(_)) => format!("{user}:{HIDDEN}@"),
    };
    let hides = |part: &str| is_key(part) || (scheme.starts_with("http") && is_random(part));
    let path: Vec<&str> = url.path().split('/').map(|part| if hides(part) { HIDDEN } else { part }).collect();
    let host = &url[Position::BeforeHost..Position::BeforePath];
    format!("{scheme}://{user}{host}{}{query}{fragment}", path.join("/"))
}

/// Whether a part of a path is a key, as some gateways want it.
fn is_key(part: &str) -> bool {
    (part.starts_with("sk-") && part.len() >= SHORTEST_SECRET) || run_key(part.as_bytes()).is_some()
}

/// Whether a part of a path looks drawn by chance, as keys and some names of accounts do: hexadecimal digits, or letters and digits
/// in no order that a word or a version has.
fn is_random(part: &str) -> bool {
    const SHORTEST: usize = 16;
    let signs: Vec<char> = part.chars().filter(char::is_ascii_alphanumeric).collect();
    let digits = signs.iter().filter(|c| c.is_ascii_digit()).count();
    let is_hex = signs.iter().all(char::is_ascii_hexdigit) && digits >= 2 && digits < signs.len();
    let kind = |c: &char| (c.is_ascii_digit(), c.is_ascii_uppercase());
    let turns = signs.windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count();
    signs.len() >= SHORTEST && (is_hex || turns * 20 >= signs.len() * 7)
}

fn has_at_behind_host(url: &Url) -> bool {
    [Some(url.path()), url.query(), url.fragment()].into_iter().flatten().any(|part| part.contains('@'))
}

/// Whether a URL with a host was probably meant otherwise than it is read: an `@` behind the host is the end of a password that holds
/// a `/`, `?` or `#`. Whoever connects refuses it, or parts of the password would be sent and shown as host, port and path.
#[must_use]
pub fn is_misread(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| url.host_str().is_some_and(|host| !host.is_empty()) && has_at_behind_host(&url))
}

fn parameters(query: &str) -> String {
    query.split('&').map(parameter).collect::<Vec<_>>().join("&")
}

/// A URL as the name of the server behind it, for keys of calls and for reports. What [`url()`] hides may still tell servers
/// apart: parameters of unknown names and parts of the path leave a mark, those that are known to be keys do not, so that a new
/// key finds the stored replies.
#[must_use]
pub fn identity(text: &str) -> String {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let in_path = path.split('/').skip(3).filter(|part| text.starts_with("http") && !is_key(part) && is_random(part));
    let in_query = query.split('&').filter(|pair| !pair.is_empty() && parameter(pair) == HIDDEN);
    let unknown: Vec<&str> = in_path.chain(in_query).collect();
    let mark =
        (!unknown.is_empty()).then(|| format!("#{}", &Sha256Hash::of_bytes(unknown.join("&").as_bytes()).hex()[..8]));
    format!("{}{}", url(text), mark.unwrap_or_default())
}

/// A parameter `name=value` of a query: as it is when its name is known to be harmless, `name=***` when it is known to be a secret,
/// else [`HIDDEN`].
fn parameter(pair: &str) -> Cow<'_, str> {
    let is_in = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    match pair.split_once('=') {
        Some((name, _)) if is_in(&PLAIN_PARAMETERS, name) => pair.into(),
        Some((name, _)) if is_in(&SECRET_PARAMETERS, name) => format!("{name}={HIDDEN}").into(),
        _ => HIDDEN.into(),
    }
}

/// The parameters of the URL of a Postgres database that nobody reads, without their values; `None` where there are none. A name that
/// nobody knows may be the rest of a password with `&`: its number stands for it.
///
/// ```
/// use bench_proto::redact::unread_of_postgres;
/// let url = "postgres://bench@db/x?sslmode=require&sslpassword=secret&ret=";
/// assert_eq!(unread_of_postgres(url).as_deref(), Some("sslpassword, parameter 3"));
/// ```
#[must_use]
pub fn unread_of_postgres(url: &str) -> Option<String> {
    let parsed = Url::parse(url).ok()?;
    let is_read = |name: &str| READ_OF_POSTGRES.contains(&name) || name.starts_with("options[");
    let is_known = |name: &str| PLAIN_PARAMETERS.contains(&name) || SECRET_PARAMETERS.contains(&name);
    let unread: Vec<String> = (1..)
        .zip(parsed.query_pairs())
        .filter(|(_, (name, _))| !is_read(name))
        .map(|(number, (name, _))| if is_known(&name) { name.into_owned() } else { format!("parameter {number}") })
        .collect();
    (!unread.is_empty()).then(|| unread.join(", "))
}

/// The scheme of a URL and the host that it leads to, as whoever connects reads it; `None` for one without a host.
///
/// ```
/// use bench_proto::redact::scheme_and_host;
/// assert_eq!(scheme_and_host("HTTP://u:p@134744072/v1"), Some(("http".to_owned(), "8.8.8.8".to_owned())));
/// ```
#[must_use]
pub fn scheme_and_host(url: &str) -> Option<(String, String)> {
    let parsed = Url::parse(url).ok()?;
    let host = parsed.host_str().filter(|host| !host.is_empty())?;
    Some((parsed.scheme().to_owned(), host_written_out(host)))
}

/// A host in small letters and without brackets. One in numbers of any notation is an address to whoever connects, and is written as
/// one: `134744072` is 8.8.8.8.
#[must_use]
pub fn host_written_out(host: &str) -> String {
    let parsed = Url::parse(&format!("http://{host}/")).ok().filter(|url| url.path() == "/");
    let read = parsed.as_ref().and_then(Url::host_str).unwrap_or(host);
    read.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// A text of one's own, such as a setting: shown as it is unless it is a URL.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    if text.contains("://") { url(text) } else { text.into() }
}

/// Words of others with the URLs in them as [`url()`] shows them.
///
/// ```
/// use bench_proto::redact::words;
/// assert_eq!(words("no route to (amqp://bench:secret@mq:5672/), give up"), "no route to (amqp://bench:***@mq:5672/), give up");
/// ```
#[must_use]
pub fn words(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return text.into();
    }
    text.split_inclusive(char::is_whitespace).map(word).collect::<String>().into()
}

/// A word with the URL in it as it may be shown; brackets, quotes and full stops around it are no part of it.
fn word(word: &str) -> Cow<'_, str> {
    let Some(colon) = word.find("://") else { return word.into() };
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let (before, from) = word.split_at(word[..colon].trim_end_matches(is_of_scheme).len());
    let inside = from.trim_end_matches(|c: char| c.is_whitespace() || ")>]}'\"`,.;:".contains(c));
    format!("{before}{}{}", url(inside), &from[inside.len()..]).into()
}

/// As many letters, behind `Bearer` or a colon, are a secret even without a digit: words of a sentence are shorter.
const LETTERS_OF_SECRET: usize = 16;

/// Words of others in which parameters stand outside of a URL too, as in what a service repeats of a request: the values of those
/// that are known to be secrets are hidden, with `=` or as JSON, and what stands behind `Bearer`.
///
/// ```
/// use bench_proto::redact::signed;
/// assert_eq!(signed("403 <Q>sv=1&amp;sig=abc%3D</Q>, Bearer ya29.a"), "403 <Q>sv=1&amp;sig=***</Q>, Bearer ***");
/// assert_eq!(signed(r#"{"access_token": "ya29.a b", "n": 1}"#), r#"{"access_token": "***", "n": 1}"#);
/// ```
#[must_use]
pub fn signed(text: &str) -> Cow<'_, str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let (mut shown, mut from, mut at) = (String::new(), 0, 0);
    while let Some(begin) = text[at..].find(is_of_name).map(|found| at + found) {
        let end = text[begin..].find(|c: char| !is_of_name(c)).map_or(text.len(), |found| begin + found);
        let (before, name, behind) = (&text[..begin], &text[begin..end], &text[end..]);
        let value = if name.eq_ignore_ascii_case("bearer") {
            behind_bearer(behind)
        } else if is_secret_parameter(before, name) {
            behind_name(behind)
        } else {
            None
        };
        at = end;
        if let Some(value) = value {
            shown.push_str(&text[from..end + value.start]);
            shown.push_str(HIDDEN);
            at = end + value.end;
            from = at;
        }
    }
    if from == 0 {
        return text.into();
    }
    shown.push_str(&text[from..]);
    if shown == text { text.into() } else { shown.into() }
}

/// Whether a name is that of a secret: `code` and `user` say in prose what a status is and who asks, and `key` names an object
/// wherever it is no parameter of a query.
fn is_secret_parameter(before: &str, name: &str) -> bool {
    let begins_parameter = || before.ends_with(['?', '&']) || before.ends_with("&amp;");
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "code" | "user" => false,
        "key" => begins_parameter(),
        // what ends in `key` may be a key of an object or of a table, which is none
        name => {
            let is_secretive = || secrets::SECRETIVE.iter().any(|end| *end != "key" && name.ends_with(end));
            SECRET_PARAMETERS.contains(&name) || is_secretive()
        }
    }
}

/// Where the value is in what stands behind the name of a secret: `=value`, `="value"`, `":"value"`. Behind a colon, a name without
/// quotes may be a word of a sentence.
fn behind_name(behind: &str) -> Option<Range<usize>> {
    let unquoted = behind.trim_start_matches('\\').strip_prefix(['"', '\'']);
    let rest = unquoted.unwrap_or(behind).trim_start();
    let value = rest.strip_prefix(['=', ':'])?;
    let (inside, is_hidden) = match quoted(value.trim_start()) {
        Some(inside) => (inside, unquoted.is_some() || rest.starts_with('=') || is_like_secret(inside)),
        // what is behind `Bearer` is looked at by itself
        None => (bare(value), behind.starts_with('=') && !bare(value).eq_ignore_ascii_case("bearer")),
    };
    (is_hidden && !inside.is_empty()).then(|| place_of(inside, behind))
}

/// Where the token is in what stands behind `Bearer`: neither a word of a sentence nor a parameter as of `WWW-Authenticate`.
fn behind_bearer(behind: &str) -> Option<Range<usize>> {
    let opening = |c: char| c.is_whitespace() || matches!(c, '\\' | '"' | '\'');
    let rest = behind.trim_start_matches(opening);
    let token = bare(rest);
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let is_parameter = token.split_once('=').is_some_and(|(name, _)| is_name(name));
    let is_token = behind.starts_with(char::is_whitespace) && !is_parameter && is_like_secret(token);
    is_token.then(|| place_of(token, behind))
}

/// Where a part of a text stands in it.
fn place_of(part: &str, text: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Whether a text may be a key: it has a digit, or more letters than words have. What is secret and a plain word is in many texts.
#[must_use]
pub fn is_like_secret(value: &str) -> bool {
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    value.contains(|c: char| c.is_ascii_digit()) || letters >= LETTERS_OF_SECRET
}

/// What has no quotes around it ends with a blank, or with what ends a parameter.
fn bare(text: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || "?&<>'\",;".contains(c);
    text[..text.find(ends).unwrap_or(text.len())].trim_end_matches('\\')
}

/// What is in quotes, which are written with `\` where JSON is in JSON; one that was cut has no quote at its end.
fn quoted(text: &str) -> Option<&str> {
    let opened = text.trim_start_matches('\\');
    let quote = opened.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let slashes = text.len() - opened.len();
    let inside = &opened[1..];
    let before = |at: usize| at - inside[..at].trim_end_matches('\\').len();
    let closing = inside.match_indices(quote).map(|(at, _)| at).find(|at| before(*at) <= slashes);
    Some(closing.map_or_else(|| bare(inside), |at| &inside[..at - before(at)]))
}

/// Words of others without a secret, see [`SHORTEST_SECRET`].
#[must_use]
pub fn secret<'t>(text: &'t str, secret: &str) -> Cow<'t, str> {
    if secret.len() >= SHORTEST_SECRET && text.contains(secret) {
        text.replace(secret, "[key]").into()
    } else {
        text.into()
    }
}

/// Where the first key of a metered run stands, in a text or in any bytes.
#[must_use]
pub fn run_key(bytes: &[u8]) -> Option<Range<usize>> {
    let length = RUN_KEY.len() + RUN_KEY_DIGITS;
    let is_key = |window: &[u8]| {
        let digits = window.strip_prefix(RUN_KEY.as_bytes());
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    bytes.windows(length).position(is_key).map(|at| at..at + length)
}

/// Words of others without keys of metered runs, which a memory system is given in place of real ones.
///
/// ```
/// use bench_proto::redact::run_keys;
/// assert_eq!(run_keys("no bm-00112233445566778899aabbccddeeff00112233, no bm-25"), "no [key], no bm-25");
/// ```
#[must_use]
pub fn run_keys(text: &str) -> Cow<'_, str> {
    hidden(text, |rest| run_key(rest.as_bytes()))
}

/// A text without what `next` finds in it and in each rest of it.
fn hidden(text: &str, next: impl Fn(&str) -> Option<Range<usize>>) -> Cow<'_, str> {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(found) = next(rest) {
        shown.push_str(&rest[..found.start]);
        shown.push_str("[key]");
        rest = &rest[found.end..];
    }
    if rest.len() == text.len() {
        return text.into();
    }
    shown.push_str(rest);
    shown.into()
}

/// Words of others without what looks like a provider's key (`sk-…`, also when the provider has masked its middle).
///
/// ```
/// use bench_proto::redact::provider_keys;
/// assert_eq!(provider_keys("no sk-proj-0123****cdef, no task-force"), "no [key], no task-force");
/// ```
#[must_use]
pub fn provider_keys(text: &str) -> Cow<'_, str> {
    hidden(text, provider_key)
}

/// Where the first of them stands.
fn provider_key(text: &str) -> Option<Range<usize>> {
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.');
    let mut from = 0;
    while let Some(at) = text[from..].find("sk-").map(|at| from + at) {
        let starts_word = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let end = text[at..].find(|c: char| !is_key_char(c)).map_or(text.len(), |length| at + length);
        if starts_word && end - at >= SHORTEST_SECRET {
            return Some(at..end);
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn passwords_are_hidden() {
        for (given, seen) in [
            ("postgres://bench:s3c@ret@db/x?sslmode=require", "postgres://bench:***@db/x?sslmode=require"),
            ("redis://:secret@cache", "redis://:***@cache"),
            ("https://token@api.example/v1", "https://***@api.example/v1"),
            ("postgres://db/x?user=u&password=secret", "postgres://db/x?user=***&password=***"),
            ("https://api.example/v1?secret", "https://api.example/v1?***"),
            ("https://api.example/v1#secret", "https://api.example/v1#***"),
            ("https://gateway.example/sk-secret/v1", "https://gateway.example/***/v1"),
            ("https://gateway.example/0123456789abcdef/v1", "https://gateway.example/***/v1"),
            ("http://m/bm-0000000000000000000000000000000000000000/v1", "http://m/***/v1"),
            ("https://gateway.example/v1/9f86d081-884c-4d63-a5b1-bd2f1e2c7a10", "https://gateway.example/v1/***"),
            ("https://gateway.example/k/gsk_Xy7Tq2Lm9Rv4Bn8Wz1Pc", "https://gateway.example/k/***"),
            ("https://gateway.example/AIzaSyD3x9-KfQ2v8LmN0pRt5uWz7bC1dE4gHjk/v1", "https://gateway.example/***/v1"),
            ("postgres://u:12?34@db/x", "postgres://***"),
            ("postgres://u:12#34@db/x", "postgres://***"),
            ("postgres:u:secret@db", "postgres:***"),
            ("api.example/v1?key=secret", "***"),
            ("sk-secret", "***"),
        ] {
            assert_eq!(url(given), seen);
        }
    }

    #[test]
    fn urls_in_words_of_others_are_shown_without_passwords() {
        for (given, seen) in [
            ("cannot read 'postgres://bench:secret@db/x': no host", "cannot read 'postgres://bench:***@db/x': no host"),
            ("url (https://token@api.example/v1)", "url (https://***@api.example/v1)"),
            ("a\nhttps://api.example/v1?key=secret.", "a\nhttps://api.example/v1?key=***."),
            ("postgres://u:s/cret@db", "***"),
            ("connection refused (os error 111)", "connection refused (os error 111)"),
        ] {
            assert_eq!(words(given), seen);
        }
    }

    #[test]
    fn parameters_outside_of_a_url_are_hidden_by_their_names() {
        for (given, seen) in [
            ("?sv=1&sig=a%3D&se=2", "?sv=1&sig=***&se=2"),
            ("Query: X-Amz-Signature=abc, x=1", "Query: X-Amz-Signature=***, x=1"),
            ("client_secret=abc&refresh_token=x", "client_secret=***&refresh_token=***"),
            ("(Session-Token=abc, X-Goog-Credential=b)", "(Session-Token=***, X-Goog-Credential=***"),
            ("https://h.example/c?sig=*** is refused", "https://h.example/c?sig=*** is refused"),
            ("authorization: bearer  ya29.abc; x", "authorization: bearer  ***; x"),
            ("code=403 of user=me, sig=", "code=403 of user=me, sig="),
            ("Signature did not match", "Signature did not match"),
            ("(sig=abc), form.token=abc", "(sig=***, form.token=***"),
            ("/v1?key=secret&x=1, &amp;key=secret", "/v1?key=***&x=1, &amp;key=***"),
        ] {
            assert_eq!(signed(given), seen);
        }
    }

    #[test]
    fn parameters_in_quotes_are_hidden_whole() {
        for (given, seen) in [
            (r#"sig="abc", x="1""#, r#"sig="***", x="1""#),
            ("token='ya29.abc' is refused", "token='***' is refused"),
            ("password = 'a, b; c'", "password = '***'"),
            (r#"{"access_token":"ya29.abc","n":1}"#, r#"{"access_token":"***","n":1}"#),
            (r#"{"password" : "a\"b c", "n": 1}"#, r#"{"password" : "***", "n": 1}"#),
            (
                r#""body": "{\"access_token\": \"ya29.abc\", \"n\": 1}""#,
                r#""body": "{\"access_token\": \"***\", \"n\": 1}""#,
            ),
            (r#"{\"sig\":\"abc\"}"#, r#"{\"sig\":\"***\"}"#),
            ("{'token': 'abc'}, token: 'ya29.abc'", "{'token': '***'}, token: '***'"),
            (r#"{"access_token":"ya29.cut"#, r#"{"access_token":"***"#),
            (r#"{"id_token":"eyJ.abc","n":1}"#, r#"{"id_token":"***","n":1}"#),
            (r#"{"sig":"","token":null,"password":""}"#, r#"{"sig":"","token":null,"password":""}"#),
        ] {
            assert_eq!(signed(given), seen);
        }
    }

    #[test]
    fn what_is_behind_bearer_is_hidden_where_it_may_be_a_token() {
        for (given, seen) in [
            ("Bearer abc1", "Bearer ***"),
            ("Bearer abcdefghijklmnop", "Bearer ***"),
            ("Bearer 'YWJjZGVm1w==', x", "Bearer '***', x"),
            (r#""authorization":"Bearer ya29.abc""#, r#""authorization":"Bearer ***""#),
            ("(bearer\tya29.abc", "(bearer\t***"),
            ("token=Bearer ya29.abc", "token=Bearer ***"),
        ] {
            assert_eq!(signed(given), seen);
        }
    }

    #[test]
    fn words_of_a_sentence_and_keys_of_objects_stay() {
        for same in [
            "invalid bearer token: expired",
            "WWW-Authenticate: Bearer realm=\"https://auth.example/1\", error=\"invalid_token\"",
            "Bearer realm=example, authorization_uri=\"https://auth.example\"",
            "Bearer authorization_uri=\"https://auth.example\"",
            "unexpected token: '<'",
            "no object with key=runs/2026-01-22/manifest.json",
            r#"{"key":"runs/2026-01-22/manifest.json","code":"404","user":"me"}"#,
            "the password: of nobody",
            "prompt_tokens=5, max_tokens: 5, n_tokens='5'",
            r#"{"primary_key":"5","usage":{"total_tokens":5},"error":"invalid_token","token_type":"bearer"}"#,
            "sort_key=name of the table, invalid_token: expired",
            "secret",
            "token=",
        ] {
            assert!(matches!(signed(same), Cow::Borrowed(shown) if shown == same), "{same}: {}", signed(same));
        }
    }

    #[test]
    fn everything_else_stays() {
        for same in [
            "memory:",
            "sqlite:/a/b@c.db",
            "sqlite:.bench/bench.db",
            "amqp://guest@mq",
            "https://api.example",
            "https://api.example/v1?api-version=2025-01-01",
            "https://x.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18",
            "https://api.example/models/Qwen2.5-Coder-32B-Instruct-AWQ/v1",
            "https://api.example/accounts/fireworks/routers/memory-benchmark-production-2",
            "https://api.example/20260122093000123/v1",
        ] {
            assert!(matches!(url(same), Cow::Borrowed(shown) if shown == same), "{same}");
        }
        assert_eq!(text("a folder/with spaces"), "a folder/with spaces");
        assert_eq!(text("s3://u:secret@b/c"), "s3://u:***@b/c");
    }

    #[test]
    fn servers_are_told_apart_without_their_keys() {
        let plain = "https://api.example/v1?api-version=2025-01-01";
        assert_eq!(identity(plain), plain);
        assert_eq!(identity("https://api.example/v1?key=one"), identity("https://api.example/v1?key=two"));
        let (red, blue) = (identity("https://api.example/v1?route=red"), identity("https://api.example/v1?route=blue"));
        assert!(red != blue && !red.contains("red"), "{red} {blue}");
        let of = |tenant: &str| identity(&format!("https://api.example/{tenant}/v1"));
        assert_ne!(of("0123456789abcdef"), of("fedcba9876543210"));
        assert!(of("0123456789abcdef").starts_with("https://api.example/***/v1#"));
        assert_eq!(of("sk-secret-one"), of("sk-secret-two"));
    }

    #[test]
    fn a_password_that_ends_the_host_is_noticed() {
        for wrong in ["postgres://u:12/34@db/x", "amqp://u:12?34@mq", "amqp://u:12#34@mq"] {
            assert!(is_misread(wrong), "{wrong}");
        }
        for fine in ["postgres://u:1@2@db/x", "amqp://u:p@mq/%2f", "sqlite:/a@b.db", "sqlite:///a@b.db", "nonsense"] {
            assert!(!is_misread(fine), "{fine}");
        }
    }

    #[test]
    fn parameters_that_nobody_reads_are_named_without_what_may_be_a_password() {
        for (query, said) in [
            ("", None),
            ("?sslmode=require&options[jit]=off&password=secret", None),
            ("?sslpassword=secret", Some("sslpassword")),
            ("?password=ab&cdefgh12345", Some("parameter 2")),
            ("?connect_timeout=5&passwd=secret&&x", Some("connect_timeout, parameter 2, parameter 3")),
        ] {
            assert_eq!(unread_of_postgres(&format!("postgres://bench@db/x{query}")).as_deref(), said, "{query}");
        }
    }

    #[test]
    fn hosts_are_what_whoever_connects_reads() {
        for (url, host) in [
            ("http://134744072/v1", Some("8.8.8.8")),
            ("http://0x8.8.2056/v1", Some("8.8.8.8")),
            ("amqp://u:p@134744072:5672/v", Some("8.8.8.8")),
            ("amqp://u:p@localhost@MQ.example/v", Some("mq.example")),
            ("amqps://[2001:DB8::1]:5671", Some("2001:db8::1")),
            ("https:mem.example/v1", Some("mem.example")),
            ("memory:", None),
            ("sqlite:/a@b.db", None),
            ("nonsense", None),
        ] {
            assert_eq!(scheme_and_host(url).map(|(_, host)| host).as_deref(), host, "{url}");
        }
        assert_eq!(host_written_out("DB.example"), "db.example");
        assert_eq!(host_written_out("a/b"), "a/b");
    }

    #[test]
    fn keys_of_metered_runs_are_known_wherever_they_stand() {
        let key = format!("{RUN_KEY}{}", "0a".repeat(RUN_KEY_DIGITS / 2));
        assert_eq!(run_key(key.as_bytes()), Some(0..43));
        assert_eq!(run_key(&[b"\xff\0k=".as_slice(), key.as_bytes(), b"\xff"].concat()), Some(4..47));
        assert_eq!(run_keys(&format!("ü{key}: 401; '{key}'")), "ü[key]: 401; '[key]'");
        // also where nothing stands before it, or behind it, or between two
        assert_eq!(run_keys(&key), "[key]");
        assert_eq!(run_keys(&format!("{key}{key}0ü")), "[key][key]0ü");
        // in one pass: a text of many keys takes no minutes
        assert_eq!(run_keys(&key.repeat(10_000)), "[key]".repeat(10_000));
        for other in ["bm-", "bm-25", &key[..42], &key.replace('a', "x")] {
            assert!(matches!(run_keys(other), Cow::Borrowed(same) if same == other), "{other}");
        }
    }

    #[test]
    fn short_secrets_do_not_redact_whole_texts() {
        assert_eq!(secret("a text with many letters", "t"), "a text with many letters");
        assert_eq!(secret("key 12345678 is wrong", "12345678"), "key [key] is wrong");
    }

    /// Digits, which also pass for a port, between every character that has a meaning in URLs.
    fn password() -> impl Strategy<Value = String> {
        let between = proptest::collection::vec(prop::sample::select(b"/?#@:%&=\\[]+ ;".to_vec()), 1..5);
        between
            .prop_map(|parts| parts.into_iter().fold(MARK.to_owned(), |all, c| format!("{all}{}{MARK}", char::from(c))))
    }

    const MARK: &str = "7531";
    const SCHEMES: [&str; 9] = ["http", "https", "postgres", "postgresql", "amqp", "amqps", "redis", "s3", "grpc"];

    proptest! {
        #[test]
        fn no_generated_password_is_shown(
            scheme in prop::sample::select(SCHEMES.to_vec()), password in password(), at in 0_usize..7,
            (user, host, path) in ("[a-z]{0,4}", "[a-z]{1,6}", "(/[a-z]{0,4}){0,3}"),
            name in "(password|key|token|code|[a-z]{1,5})",
        ) {
            let given = match at {
                0 => format!("{scheme}://{user}:{password}@{host}{path}"),
                1 => format!("{scheme}://{user}:{password}@{host}:80{path}?sslmode=require"),
                2 => format!("{scheme}://{host}{path}?{name}={password}"),
                3 => format!("{scheme}://{host}{path}?api-version=1&{name}={password}"),
                4 => format!("{scheme}://{host}{path}?{password}"),
                5 => format!("{scheme}://{host}{path}#{password}"),
                _ => format!("{scheme}:{user}:{password}@{host}"),
            };
            prop_assert!(!url(&given).contains(MARK), "{} is shown as {}", given, url(&given));
        }

        #[test]
        fn any_text_is_read(given in any::<String>()) {
            let _ = (url(&given), signed(&given));
        }

        #[test]
        fn any_words_are_read(given in r#"((sig|token|key|bearer|ü|a1)[\\"'=: &]{0,3}){0,8}"#) {
            let _ = signed(&given);
        }
    }
}
