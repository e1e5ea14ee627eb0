//! Secrets that somebody has written into an adapter file: they would go with the run into store, reports and archives.

use std::collections::BTreeMap;

use bench_models::classify::one_line;
use bench_proto::redact;
use reqwest::Url;
use serde_json::Value;

use super::{
    spec::AdapterSpec,
    variables::{Piece, pieces},
};

/// What names of variables and headers with secrets have in common. Classes look for the same (`_process.py`, `process.mjs`).
const SECRETIVE: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];
/// What names of headers with secrets have in common besides.
const HEADERS: [&str; 1] = ["COOKIE"];
/// Beginnings by which keys of well-known services are known.
const BEGINNINGS: [&str; 9] = ["ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza", "eyJ"];
/// Beginnings of keys that words of other kinds have too: what follows is letters and digits, some of each.
const BEGINNINGS_OF_MORE: [&str; 9] = ["hf_", "gsk_", "sk_live_", "sk_test_", "pplx-", "r8_", "nvapi-", "xai-", "m0-"];
/// Shorter texts are no keys.
const SHORTEST: usize = 6;
/// Shorter words behind `Bearer` are words of a sentence.
const SHORTEST_BORNE: usize = 12;
/// Words before a key, such as `Bearer`, are shorter.
const LONGEST_SCHEME: usize = 16;
/// What stands for what is filled in: valid everywhere, and no key.
const FILLED: &str = "0";
/// Words that people write where a key has to be and none is needed.
const NO_KEYS: [&str; 8] =
    ["placeholder", "not-needed", "unused", "required", "disabled", "enabled", "anything", "optional"];

/// Names of members of a body, a file or an argument that hold nothing else than a key.
const NAMES: [&str; 9] =
    ["password", "passwd", "secret", "api_key", "apikey", "api-key", "token", "credential", "credentials"];
/// Parameters of a query that may be keys and are more often something else.
const RARELY_KEYS: [&str; 2] = ["code", "user"];

/// Whether the name of a variable or header says that it holds a secret.
pub(super) fn is_secretive(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_").replace("TOKENIZ", "");
    let is_of_words = SECRETIVE.iter().any(|word| name.contains(word));
    // the shell's own are the names of folders
    let is_password = name.ends_with("PWD") && !["PWD", "OLDPWD"].contains(&name.as_str());
    // files and addresses are known by their values
    (is_of_words && !name.ends_with("_HOST")) || name.contains("AUTHORIZATION") || name.ends_with("AUTH") || is_password
}

/// Refuses values that look like keys, wherever they stand in an adapter.
///
/// # Errors
/// The place of the first one, and how to name the secret instead.
pub fn check(spec: &AdapterSpec) -> Result<(), String> {
    let file = serde_json::to_value(spec).unwrap_or_default();
    let Some(place) = find(&file, &[]) else { return Ok(()) };
    let how = match place.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "env", name] => {
            format!("write {name}: ${{env:{name}}} and set the variable {name} where the system is started")
        }
        ["code", _, file] if !file.ends_with(".py") => {
            "read process.env.NAME, and name the variable in the class: static env = [\"NAME\"]".to_owned()
        }
        ["code", ..] => {
            "read it with os.environ[\"NAME\"], and name the variable in the class: env = [\"NAME\"]".to_owned()
        }
        ["start" | "command", ..] | ["mcp", "command", ..] => {
            "write ${env:NAME} in its place and set the variable NAME where the system is started".to_owned()
        }
        _ => "name it with `auth: {env: NAME}`, or write ${env:NAME} into `headers` of the file".to_owned(),
    };
    Err(format!(
        "{} holds what looks like a key, and the file goes with the run into the store, reports and archives: {how}",
        match place.as_slice() {
            [code, files, path] if code == "code" && files == "files" => path.clone(),
            place => place.join("."),
        }
    ))
}

/// Refuses the address that a run gives for the server of its memory system, where it holds what looks like a key.
///
/// # Errors
/// How to name the secret instead.
pub fn check_url(url: &str) -> Result<(), String> {
    if !is_literal_secret(&["url"], url) {
        return Ok(());
    }
    Err("system.url holds what looks like a key, and it goes with the run into the store, reports and archives: name the key with \
         `auth: {env: NAME}` in the adapter's file, or write ${env:NAME} in its place"
        .to_owned())
}

/// Refuses the address of a page, of the setting `setting`, that holds what looks like a key. Unlike a server a page is led by its
/// parameters: a word without digits is none where no name says so.
///
/// # Errors
/// That whoever follows the link needs no key in it.
pub fn check_link(setting: &str, url: &str) -> Result<(), String> {
    let leads = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or((*pair, ""));
        let is_word = value.chars().all(|c| c.is_ascii_alphabetic() || "-_.".contains(c));
        is_word && !one_line(value, None).contains("[key]") && !is_secretive(name) && !names_a_key(name)
    };
    let (page, query) = url.split_once('?').unwrap_or((url, ""));
    let left: Vec<&str> = query.split('&').filter(|pair| !leads(pair)).collect();
    if !is_literal_secret(&["url"], &format!("{page}?{}", left.join("&"))) {
        return Ok(());
    }
    Err(format!(
        "{setting} holds what looks like a key, and it goes with the run into the store, reports and archives: take it out, whoever \
         follows a link of a report logs in there"
    ))
}

/// Refuses parameters of a model, of the setting `setting`, that look like keys.
///
/// # Errors
/// The place of the first one, and how to name the key instead.
pub fn check_params(setting: &str, params: &BTreeMap<String, Value>) -> Result<(), String> {
    let found = params.iter().find_map(|(name, value)| find(value, &["body".to_owned(), name.clone()]));
    let Some(place) = found else { return Ok(()) };
    Err(format!(
        "{setting}.{} holds what looks like a key, and it goes with the run into the store, reports and archives: take it out, and name \
         the key's variable with accounts.NAME.api_key_env",
        place.get(1..).unwrap_or_default().join(".")
    ))
}

/// The place of the first text that looks like a key, below a place.
fn find(value: &Value, place: &[String]) -> Option<Vec<String>> {
    let below = |name: String, value: &Value| find(value, &[place, &[name]].concat());
    match value {
        Value::Array(items) if is_command(place) => {
            named_word(items).map(|at| [place, &[at.to_string()]].concat()).or_else(|| each(items, &below))
        }
        Value::Object(members) => members.iter().find_map(|(name, value)| below(name.clone(), value)),
        Value::Array(items) => each(items, &below),
        Value::String(text) => {
            let names: Vec<&str> = place.iter().map(String::as_str).collect();
            is_literal_secret(&names, text).then(|| place.to_vec())
        }
        _ => None,
    }
}

fn each(items: &[Value], below: &dyn Fn(String, &Value) -> Option<Vec<String>>) -> Option<Vec<String>> {
    items.iter().enumerate().find_map(|(at, value)| below(at.to_string(), value))
}

fn is_command(place: &[String]) -> bool {
    place.last().is_some_and(|name| name == "command" || name == "check")
}

/// The number of a command's word that stands behind the name of a key (`--password WORD`).
fn named_word(words: &[Value]) -> Option<usize> {
    let written_out = |word: &Value| word.as_str().map(plain);
    let names = |word: &Value| written_out(word).is_some_and(|word| word.starts_with('-') && names_a_key(&word));
    let is_key = |word: &Value| {
        written_out(word).is_some_and(|word| !word.starts_with('-') && !word.contains('{') && is_value(&word))
    };
    (1..words.len()).find(|at| names(&words[at - 1]) && is_key(&words[*at]))
}

/// A text as the file says it: what is filled in later is no literal, what is filled in when nothing else is there is one.
pub(super) fn plain(text: &str) -> String {
    pieces(text).map_or_else(|_| text.to_owned(), |pieces| pieces.into_iter().map(written).collect())
}

/// Whether a text at a place of an adapter is a key or holds one.
fn is_literal_secret(place: &[&str], text: &str) -> bool {
    // a word that is filled in part is none of the file's
    let unfilled: String =
        pieces(text).map_or_else(|_| text.to_owned(), |pieces| pieces.into_iter().map(open).collect());
    let text = &plain(text);
    let words = || text.split(|c: char| c.is_whitespace() || "\"'<>,;".contains(c));
    let is_key =
        |word: &str| one_line(word, None).contains("[key]") || word.split(|c: char| !is_of_keys(c)).any(is_known);
    if words().any(|word| is_key(word) || word.contains("://") && url_holds_a_key(word)) || bears_a_key(&unfilled) {
        return true;
    }
    let is_plain = !text.contains('{');
    match place {
        [.., "headers" | "extra_headers" | "env", name] => {
            let secretive = is_secretive(name) || HEADERS.iter().any(|word| name.to_ascii_uppercase().contains(word));
            secretive && is_plain && unfilled.split_whitespace().any(|word| !word.contains('{') && is_value(word))
        }
        [.., "query", name] => is_plain && is_key_of_query(name, text),
        [.., "request"] => {
            text.split_once(char::is_whitespace).is_some_and(|(_, path)| url_holds_a_key(&format!("http://h{path}")))
        }
        ["auth", "prefix"] => {
            // what stands before the key is a word of a scheme
            text.split_whitespace().skip(1).any(is_opaque)
                || is_opaque(text.trim()) && text.trim().len() >= LONGEST_SCHEME
        }
        ["start", "files", _] | [.., "command", _] | [.., "text_body"] => {
            text.split(['\n', ',', ';', '{', '}', '&']).any(member_holds_a_key)
        }
        [.., "multipart", name, "text"] => is_plain && names_a_key(name) && is_value(text),
        _ if place.iter().any(|name| ["arguments", "body", "item", "message"].contains(name)) => {
            let name = place.last().copied().unwrap_or_default();
            is_plain && names_a_key(name) && is_value(text)
        }
        _ => false,
    }
}

/// What a file says of a piece itself.
fn written(piece: Piece<'_>) -> &str {
    match piece {
        Piece::Plain(plain) => plain,
        Piece::Variable(_, default) => default.unwrap_or(FILLED),
    }
}

/// The same, and where nothing but what is filled in says it an open brace.
fn open(piece: Piece<'_>) -> &str {
    match piece {
        Piece::Plain(plain) => plain,
        Piece::Variable(_, default) => default.unwrap_or("{"),
    }
}

fn names_a_key(name: &str) -> bool {
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
    NAMES.iter().any(|word| name.ends_with(word))
}

/// `name = value` or `name: value`, in whatever quotes.
fn member_holds_a_key(member: &str) -> bool {
    let Some((name, value)) = member.split_once([':', '=']) else { return false };
    names_a_key(name) && is_value(value.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c)))
}

fn is_key_of_query(name: &str, value: &str) -> bool {
    let is_hidden = redact::url(&format!("http://h/?{name}={value}")).ends_with(&format!("={}", redact::HIDDEN));
    is_hidden && !RARELY_KEYS.iter().any(|known| known.eq_ignore_ascii_case(name)) && is_opaque(value)
}

/// Whether a URL holds a password, a user that is a token, or a parameter that is a key: written there, not filled in.
fn url_holds_a_key(text: &str) -> bool {
    let scheme = text.find("://").map_or(0, |at| {
        text[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && !"+.-".contains(c)).map_or(0, |before| before + 1)
    });
    let mut plain = text.get(scheme..).unwrap_or(text).to_owned();
    // a port or a path of templates
    while let Some((at, end)) = plain.find('{').and_then(|at| Some((at, at + plain[at..].find('}')?))) {
        plain.replace_range(at..=end, FILLED);
    }
    let Ok(url) = Url::parse(&plain) else { return false };
    let is_written = |part: &str| !part.replace(FILLED, "").is_empty();
    let is_token = matches!(url.scheme(), "http" | "https") && is_written(url.username());
    is_token
        || url.password().is_some_and(is_written)
        || url.query_pairs().any(|(name, value)| is_key_of_query(&name, &value))
}

fn is_of_keys(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Known by how it begins.
fn is_known(word: &str) -> bool {
    let is_drawn = |rest: &str| {
        let (mut letters, mut digits) = (false, false);
        let fits = rest.chars().all(|c| {
            (letters, digits) = (letters || c.is_ascii_alphabetic(), digits || c.is_ascii_digit());
            c.is_ascii_alphanumeric()
        });
        fits && letters && digits
    };
    word.len() >= 16
        && (BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
            || BEGINNINGS_OF_MORE.iter().filter_map(|beginning| word.strip_prefix(beginning)).any(is_drawn))
}

/// Whether `Bearer` stands somewhere before a word that looks drawn: of letters and digits, some of each.
fn bears_a_key(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_drawn = |word: &str| {
        let word = word.trim_end_matches(|c: char| "\"'`,;)]}".contains(c));
        word.len() >= SHORTEST_BORNE
            && word.chars().all(|c| is_of_keys(c) || "+/=~".contains(c))
            && word.chars().any(|c| c.is_ascii_digit())
            && word.chars().any(|c| c.is_ascii_alphabetic())
    };
    words.windows(2).any(|pair| pair[0].to_ascii_lowercase().ends_with("bearer") && is_drawn(pair[1]))
}

/// Whether a value of a variable is one that nobody else may read: not a word that stands where no key is needed, nor a path or an
/// address, nor so short that it stands in other words by chance.
pub(super) fn is_secret(value: &str) -> bool {
    value.len() >= redact::SHORTEST_SECRET && is_value(value)
}

/// A word that is a key where its name says so, whatever it is made of: no path from a root or a folder, and no address.
fn is_value(word: &str) -> bool {
    let elsewhere = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root)) || word.contains("://");
    !elsewhere && is_opaque(&word.replace(['/', ':'], "_"))
}

/// A word that could be a key, where a key is expected: no number, path, address or truth value.
fn is_opaque(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    word.len() >= SHORTEST
        && word.parse::<f64>().is_err()
        && !word.contains('/')
        && !word.contains(':')
        && !NO_KEYS.contains(&lower.as_str())
        && !["bearer", "digest"].contains(&lower.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_class_know_the_same_words() {
        let words = SECRETIVE.map(|word| format!("{word:?}")).join(", ");
        for (file, text) in [
            ("_process.py", include_str!("../../../../python/bench_coord/_process.py")),
            ("process.mjs", include_str!("../../../../typescript/process.mjs")),
        ] {
            assert!(text.contains(&words), "{file} lacks {words}");
        }
    }

    #[test]
    fn literal_keys_are_found_and_what_is_named_or_plain_is_not() {
        for (name, text) in [
            ("Authorization", "Bearer abcdef123456"),
            ("X-Api-Key", "0123456789abcdef"),
            ("X-Whatever", "sk-abcdefgh12345678"),
            ("X-Whatever", "ghp_0123456789abcdefghij"),
            ("OPENAI_API_KEY", "${env:OPENAI_API_KEY:-sk-abcdefgh12345678}"),
            ("Authorization", "Bearer ${env:MINE_KEY:-abcdef123456}"),
            ("DB_PASSWORD", "correcthorse"),
            ("Cookie", "session=deadbeef42"),
            ("Authorization", "Bearer abc/def+ghi123456789"),
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE"),
            ("NEO4J_AUTH", "neo4j/opensesame1234"),
            ("DB_PWD", "opensesame1234"),
            ("X-Auth", "opensesame1234"),
            ("TOKENIZER_API_KEY", "opensesame1234"),
            ("SECRET_URL", "opensesame1234"),
            ("X-Tenant", "hf_0123456789abcdefgh"),
            ("X-Tenant", "gsk_0123456789abcdefgh"),
            ("X-Tenant", "m0-0123456789abcdefgh"),
            ("X-Tenant", "a Bearer plantedkeyplantedkey12345"),
            ("X-Tenant", "Authorization: bearer abc/def+ghi123456789=="),
        ] {
            assert!(is_literal_secret(&["headers", name], text), "{name}: {text}");
        }
        for (name, text) in [
            ("Authorization", "Bearer ${env:MINE_KEY}"),
            ("OPENAI_API_KEY", "${env:SIM_KEY}"),
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_API_KEY", "${env:OPENAI_API_KEY:-not-needed}"),
            ("OPENAI_API_KEY", "not-needed"),
            ("MAX_TOKENS", "4096000"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("KEY_FILE", "/run/secrets/key"),
            ("KEY_FILE", "./secrets/key"),
            ("NEO4J_AUTH", "neo4j/${env:NEO4J_PASSWORD}"),
            ("X-Api-Key", "user:${env:K}"),
            ("POSTGRES_HOST_AUTH_METHOD", "scram-sha-256"),
            ("GIT_AUTHOR_NAME", "benchmark"),
            ("TOKENIZER", "BAAI/bge-m3"),
            ("KEYCLOAK_HOST", "localhost:8080"),
            ("MODEL", "pplx-embed-v1-0.6b"),
            ("MODEL", "hf_embedding_model"),
            ("AUTH_URL", "https://login.example/oauth"),
            ("X-Tenant", "benchmarks-of-the-team"),
            ("X-Tenant", "m0-search-with-graph"),
            ("X-Tenant", "the bearer of-this-letter"),
            ("X-Tenant", "Bearer ${env:MINE_KEY}"),
            ("HEBB_HOME", "{dir}"),
        ] {
            assert!(!is_literal_secret(&["headers", name], text), "{name}: {text}");
        }
    }

    #[test]
    fn a_literal_key_is_found_wherever_it_stands_and_what_is_filled_in_is_none() {
        let of = |text: &str| check(&super::super::file::parse(&format!("name: mine\n{text}")).expect("reads"));
        let key = "sk-abcdefgh12345678";
        for (place, text) in [
            ("url", "url: 'https://a.example/v1?key=opensesame1234'"),
            ("url", "url: 'https://a.example/KEY/v1'"),
            ("url", "url: 'https://opensesame1234@a.example/v1'"),
            ("auth.prefix", "auth: {env: A, prefix: 'Bearer opensesame1234'}"),
            ("auth.prefix", "auth: {env: A, prefix: 'opensesame1234opensesame'}"),
            (
                "ready.call.headers.X-Api-Key",
                "ready: {when: count, call: {request: GET /, headers: {X-Api-Key: opensesame1234}}}",
            ),
            (
                "purge.list.headers.Cookie",
                "purge: {list: {request: GET /, headers: {Cookie: s=opensesame1234}}, ids: a, remove: {request: GET /}}",
            ),
            (
                "purge.remove.headers.A",
                "purge: {list: {request: GET /}, ids: a, remove: {request: GET /, headers: {A: KEY}}}",
            ),
            ("recall.query.api_key", "recall: {request: GET /, query: {api_key: opensesame1234}}"),
            ("recall.request", "recall: {request: 'GET /search?token=opensesame1234'}"),
            ("recall_also.0.body.a.1", "recall_also: [{request: POST /, body: {a: [b, KEY]}}]"),
            ("recall.body.auth.password", "recall: {request: POST /, body: {auth: {password: opensesame1234}}}"),
            ("recall.text_body", "recall: {request: POST /, text_body: 'key KEY'}"),
            ("command.1", "command: [mem, KEY]"),
            ("command.1", "command: [mem, --api-key=opensesame1234]"),
            ("command.1", "command: [mem, '--db=postgres://u:${env:PW:-opensesame1234}@db/x']"),
            ("command.2", "command: [mem, --password, opensesame1234]"),
            ("command.2", "command: [mem, --db-token, '${env:PW:-open/sesame1234}']"),
            ("command.1", "command: [mem, --token=opensesame1234]"),
            ("recall.body.token", "recall: {request: POST /, body: {token: opensesame1234}}"),
            (
                "recall.multipart.password.text",
                "recall: {request: POST /, multipart: {password: {text: opensesame1234}}}",
            ),
            ("recall.text_body", "recall: {request: POST /, text_body: 'a=1&password=opensesame1234'}"),
            ("start.files.a.env", "start: {files: {a.env: 'MEM_TOKEN=opensesame1234'}}"),
            ("env.DATABASE_URL", "env: {DATABASE_URL: 'postgres://u:opensesame1234@db/x'}"),
            ("start.command.2", "start: {command: [mem, --key, KEY]}"),
            ("start.check.2", "start: {command: [mem], check: [mem, --key, KEY]}"),
            ("start.env.A", "start: {env: {A: 'a postgres://u:opensesame1234@${env:HOST}/x'}}"),
            ("start.files.a.toml", "start: {files: {a.toml: \"[a]\\napi_key = 'opensesame1234'\\n\"}}"),
        ] {
            let error = of(&text.replace("KEY", key)).expect_err(text);
            assert!(error.starts_with(&format!("{place} holds")), "{text}: {error}");
            assert!(!error.contains("opensesame") && !error.contains(key), "{error}");
        }
        let nested = "start: {files: {a.json: '{\"a\": [1, {\"password\": \"opensesame1234\"}]}'}}";
        assert!(of(nested).is_err_and(|error| error.starts_with("start.files.a.json holds")));
        for fine in [
            "url: 'https://a.example/v1?api-version=2025-01-01&collection=benchmark&key=${env:KEY}'",
            "url: '${env:MEM_URL:-http://127.0.0.1:8080}'",
            "auth: {env: A, prefix: 'Bearer '}",
            "auth: {env: A, prefix: 'Token '}",
            "auth: {env: A, name: api_key, place: query}",
            "recall: {request: 'GET /search?q={query}&user={bank}', query: {key: '{bank}', user: benchmark, tokenizer: standard}}",
            "recall: {request: POST /, body: {keyword: semantic, max_tokens: '{k}', password: '{bank}'}}",
            "command: [mem, --password, '${env:PW}', --token-file, /run/secrets/token, --api-key, '{dir}/key.json']",
            "start: {command: [mem, --secret-name=benchmark, --port, '{port}', --url, 'http://127.0.0.1:{port}/v1'], env: {DATABASE_URL: 'postgres://u:${env:PW}@db/x'}}",
            "start: {files: {a.json: '{\"api_key\": \"${env:MINE_KEY}\", \"url\": \"http://127.0.0.1:{port}\"}'}}",
        ] {
            assert_eq!(of(fine), Ok(()), "{fine}");
        }
    }

    #[test]
    fn an_address_and_parameters_of_a_run_hold_no_key() {
        for url in [
            "http://127.0.0.1:9912/sk-opensesame456789012/v1",
            "http://127.0.0.1:9912/v1?token=opensesame456",
            "http://user:opensesame123@127.0.0.1:9912",
            "http://opensesame123@127.0.0.1:9912",
        ] {
            let refused = check_url(url).expect_err(url);
            assert!(refused.starts_with("system.url holds") && !refused.contains("opensesame"), "{refused}");
        }
        for fine in ["http://127.0.0.1:9912/v1", "https://mem.example/mcp", "https://${env:HOST}/v1?key=${env:KEY}"] {
            assert_eq!(check_url(fine), Ok(()), "{fine}");
        }
        for url in [
            "https://user:opensesame123@jaeger.example/trace/{trace_id}",
            "https://opensesame123@jaeger.example/trace/{trace_id}",
            "https://jaeger.example/trace/{trace_id}?token=opensesame123",
            "https://jaeger.example/trace/{trace_id}?view=opensesame123&token=opensesame",
            "https://jaeger.example/sk-opensesame456789012/{trace_id}",
            "https://jaeger.example/trace/{trace_id}?view=sk-opensesame",
        ] {
            let refused = check_link("trace.url", url).expect_err(url);
            assert!(refused.starts_with("trace.url holds") && !refused.contains("opensesame"), "{refused}");
        }
        for fine in [
            "https://jaeger.example/trace/{trace_id}?x={trace_id}",
            "http://127.0.0.1:16686/trace/{trace_id}",
            "https://app.example/apm/trace/{trace_id}?graphType=waterfall&orgId=1",
            "https://ui.example/team/trace?trace_id={trace_id}&dataset=bench-coord",
        ] {
            assert_eq!(check_link("trace.url", fine), Ok(()), "{fine}");
        }
        let of = |text: &str| check_params("answerer.params", &serde_json::from_str(text).expect("an object"));
        for (place, text) in [
            ("api_key", r#"{"api_key": "sk-abcdef0123456789abcd"}"#),
            ("extra_headers.Authorization", r#"{"extra_headers": {"Authorization": "Bearer opensesame123"}}"#),
            ("metadata.token", r#"{"metadata": {"token": "opensesame123"}}"#),
            ("stop.0", r#"{"stop": ["sk-abcdef0123456789abcd"]}"#),
        ] {
            let refused = of(text).expect_err(text);
            assert!(refused.starts_with(&format!("answerer.params.{place} holds")), "{refused}");
            assert!(!refused.contains("opensesame") && !refused.contains("sk-"), "{refused}");
        }
        for fine in [
            r#"{"service_tier": "flex", "max_tokens": 100, "prompt_cache_key": "bench-of-the-team", "user": "benchmarks"}"#,
            r#"{"metadata": {"team": "memory"}, "extra_headers": {"X-Title": "benchmark-1"}, "stop": ["END"]}"#,
            r#"{"response_format": {"schema": {"properties": {"password": {"type": "string"}}, "required": ["password"]}}}"#,
        ] {
            assert_eq!(of(fine), Ok(()), "{fine}");
        }
    }

    #[test]
    fn a_file_with_a_literal_key_is_refused_with_the_way_to_name_it() {
        let refused = |more: &str| {
            let text = format!("name: mine\n{more}\nretain: {{request: POST /add}}\n");
            check(&super::super::file::parse(&text).expect("reads")).expect_err("must be refused")
        };
        let header = refused("url: https://a.example\nheaders: {X-Api-Key: 0123456789abcdef}");
        assert!(header.contains("headers.X-Api-Key") && header.contains("auth: {env: NAME}"), "{header}");
        assert!(!header.contains("0123456789abcdef"), "the key itself is not shown: {header}");
        let started = refused("start: {command: [serve], env: {MINE_TOKEN: abcdef123456}}");
        assert!(started.contains("start.env.MINE_TOKEN") && started.contains("${env:MINE_TOKEN}"), "{started}");
        for (name, text) in super::super::shipped::SHIPPED {
            check(&super::super::file::parse(text).expect("reads")).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
