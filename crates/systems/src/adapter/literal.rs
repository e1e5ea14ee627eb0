//! Secrets that somebody has written into an adapter file: they would go with the run into store, reports and archives.

use std::collections::BTreeMap;

use bench_models::classify::one_line;

use super::spec::{AdapterSpec, CallSpec};

/// What names of variables and headers with secrets have in common.
pub(super) const SECRETIVE: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];
/// The same of headers alone.
const HEADERS: [&str; 2] = ["AUTHORIZATION", "COOKIE"];
/// Beginnings by which keys of well-known services are known.
const BEGINNINGS: [&str; 9] = ["ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza", "eyJ"];
/// Shorter texts are no keys.
const SHORTEST: usize = 6;
/// Words that people write where a key has to be and none is needed.
const NO_KEYS: [&str; 8] =
    ["placeholder", "not-needed", "unused", "required", "disabled", "enabled", "anything", "optional"];

/// Refuses values that look like keys in the headers and variables of an adapter.
///
/// # Errors
/// The place of the first one, and how to name the secret instead.
pub fn check(spec: &AdapterSpec) -> Result<(), String> {
    let calls: [(&str, &Option<CallSpec>); 9] = [
        ("open", &spec.open),
        ("retain", &spec.retain),
        ("flush", &spec.flush),
        ("consolidate", &spec.consolidate),
        ("recall", &spec.recall),
        ("answer", &spec.answer),
        ("verify", &spec.verify),
        ("statistics", &spec.statistics),
        ("health", &spec.health),
    ];
    let calls = calls.into_iter().filter_map(|(name, call)| Some((name.to_owned(), call.as_ref()?)));
    let calls = calls.chain(spec.recall_also.iter().map(|call| ("recall_also".to_owned(), call)));
    let calls = calls.chain(spec.reset.iter().map(|call| ("reset".to_owned(), call)));
    let of_calls = calls.map(|(name, call)| (format!("{name}.headers"), &call.headers));
    let own = [("headers".to_owned(), &spec.headers), ("env".to_owned(), &spec.env)];
    let started = spec.start.iter().map(|start| ("start.env".to_owned(), &start.env));
    for (place, texts) in own.into_iter().chain(of_calls).chain(started) {
        if let Some(name) = literal_in(texts) {
            let how = match place.ends_with("env") {
                true => {
                    format!("write {name}: ${{env:{name}}} and set the variable {name} where the system is started")
                }
                false => "name it with `auth: {env: NAME}`, or write ${env:NAME} into `headers` of the file".to_owned(),
            };
            return Err(format!(
                "{place}.{name} holds what looks like a key, and the file goes with the run into the store, reports and archives: {how}"
            ));
        }
    }
    Ok(())
}

fn literal_in(texts: &BTreeMap<String, String>) -> Option<&str> {
    texts.iter().find(|(name, text)| is_literal_secret(name, text)).map(|(name, _)| name.as_str())
}

fn is_literal_secret(name: &str, text: &str) -> bool {
    if one_line(text, None).contains("[key]") || text.split(|c: char| !is_of_keys(c)).any(is_known) {
        return true;
    }
    let name = name.to_ascii_uppercase();
    let secretive = SECRETIVE.iter().chain(&HEADERS).any(|word| name.contains(word));
    // what is filled in later is no literal
    secretive && !text.contains('{') && text.split_whitespace().any(is_opaque)
}

fn is_of_keys(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Known by how it begins.
fn is_known(word: &str) -> bool {
    word.len() >= 16 && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
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
    fn literal_keys_are_found_and_what_is_named_or_plain_is_not() {
        for (name, text) in [
            ("Authorization", "Bearer abcdef123456"),
            ("X-Api-Key", "0123456789abcdef"),
            ("X-Whatever", "sk-abcdefgh12345678"),
            ("X-Whatever", "ghp_0123456789abcdefghij"),
            ("OPENAI_API_KEY", "${env:OPENAI_API_KEY:-sk-abcdefgh12345678}"),
            ("DB_PASSWORD", "correcthorse"),
            ("Cookie", "session=deadbeef42"),
        ] {
            assert!(is_literal_secret(name, text), "{name}: {text}");
        }
        for (name, text) in [
            ("Authorization", "Bearer ${env:MINE_KEY}"),
            ("OPENAI_API_KEY", "${env:SIM_KEY}"),
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_API_KEY", "not-needed"),
            ("MAX_TOKENS", "4096000"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("KEY_FILE", "/run/secrets/key"),
            ("X-Tenant", "benchmarks-of-the-team"),
            ("HEBB_HOME", "{dir}"),
        ] {
            assert!(!is_literal_secret(name, text), "{name}: {text}");
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
