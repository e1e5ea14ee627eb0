//! Is anybody there? One cheap question to an account's server before anything depends on it: its list of models.
//!
//! Many servers have no such list, so that a 404 proves nothing, and a key may be good for calls alone. What is proven: that
//! nobody can be reached, that the list is at another path of the same server, that the key is refused.

use std::time::Duration;

use bench_proto::{failure::Failure, redact::Secrets};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    classify,
    openai::{
        HttpSettings, SharedHttp, checked_url,
        exchange::{Fault, read_body, root_cause},
        secret_header,
    },
    registry::Account,
};

/// Longest list of models in bytes: those of routers to every model there is have about one MB.
const MAX_LIST_BYTES: usize = 16 << 20;

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It lists its models: so many.
    Models(usize),
    /// It answers, with this status and without a list.
    Answers(u16),
    /// It refuses the key, in these words.
    KeyRefused(String),
    /// Requests would go to the wrong path; this base URL has a list. It may hold a key, as the one that was looked at.
    WrongPath(String),
    /// It was reached and did not answer in HTTP, or not in time; why.
    Silent(String),
    /// It cannot be reached; why.
    Away(String),
}

#[derive(Deserialize)]
struct List {
    data: Vec<serde::de::IgnoredAny>,
}

/// Looks at the server of an account, for at most `patience` to connect and once more for the answer.
///
/// # Errors
/// When the base URL or the key cannot be used at all.
pub async fn look(provider: &str, account: &Account, patience: Duration) -> Result<Look, Failure> {
    let settings = HttpSettings { connect_timeout: patience, request_timeout: patience * 2, ..HttpSettings::default() };
    let http = SharedHttp::new(settings)?;
    let (with_key, without) = (headers(provider, account.key.as_ref())?, headers(provider, None)?);
    let base = checked_url(&account.base_url)?;
    let seen = ask(&http, &list_of(provider, &base), &with_key, account).await;
    if seen != Look::Answers(404) || provider == "azure" {
        return Ok(seen);
    }
    for guess in guesses(&base) {
        let list = list_of(provider, &guess);
        let found = if is_below(&guess, &base) {
            matches!(ask(&http, &list, &with_key, account).await, Look::Models(_) | Look::KeyRefused(_))
        } else {
            // other paths of a server may be somebody else's: no key goes there, and one that wants a key everywhere says nothing by it
            match ask(&http, &list, &without, account).await {
                Look::Models(_) => true,
                Look::KeyRefused(_) => {
                    ask(&http, &list_of(provider, &base), &without, account).await == Look::Answers(404)
                }
                _ => false,
            }
        };
        if found {
            return Ok(Look::WrongPath(guess.to_string()));
        }
    }
    Ok(seen)
}

/// Ends of addresses that people copy from examples: what is before them is the base URL.
const OPERATIONS: [&str; 6] =
    ["/chat/completions", "/completions", "/embeddings", "/responses", "/models", "/messages"];

/// Base URLs that were probably meant by one that lists nothing: without the operation at its end, with the version that is
/// most common, and that version at the root of the server. At most three, since whoever is away makes each of them wait.
fn guesses(base: &reqwest::Url) -> Vec<reqwest::Url> {
    let path = base.path().trim_end_matches('/');
    let stripped = without_operation(path);
    let at = stripped.unwrap_or(path);
    let deeper = (!at.ends_with("/v1")).then(|| format!("{at}/v1"));
    let mut paths: Vec<String> = stripped.map(str::to_owned).into_iter().chain(deeper).collect();
    paths.push("/v1".to_owned());
    let mut known = vec![path.to_owned()];
    paths.retain(|path| {
        let new = !known.contains(path);
        known.push(path.clone());
        new
    });
    let of = |path: String| {
        let mut url = base.clone();
        url.set_path(&path);
        url
    };
    paths.into_iter().map(of).collect()
}

fn without_operation(path: &str) -> Option<&str> {
    OPERATIONS.iter().find_map(|operation| path.strip_suffix(operation))
}

/// Whether a guess leads to where the base URL was meant to lead, operations apart, or deeper.
fn is_below(guess: &reqwest::Url, base: &reqwest::Url) -> bool {
    let path = base.path().trim_end_matches('/');
    let rest = guess.path().trim_end_matches('/').strip_prefix(without_operation(path).unwrap_or(path));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where a provider lists its models, below its base URL.
fn list_path(provider: &str, base: &reqwest::Url) -> &'static str {
    match (provider, base.path().trim_end_matches('/')) {
        ("anthropic", "") => "/v1/models",
        ("azure", path) if !path.ends_with("/v1") => "/openai/models",
        _ => "/models",
    }
}

fn list_of(provider: &str, base: &reqwest::Url) -> reqwest::Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{}", base.path().trim_end_matches('/'), list_path(provider, base)));
    url
}

fn headers(provider: &str, key: Option<&SecretString>) -> Result<HeaderMap, Failure> {
    let mut headers = key_headers(provider, key)?;
    if provider == "anthropic" {
        headers.insert("anthropic-version", http::HeaderValue::from_static(super::anthropic::API_VERSION));
    }
    Ok(headers)
}

/// The header in which a provider wants its key, marked as secret; none without a key.
///
/// # Errors
/// When the key holds what no header can carry.
pub fn key_headers(provider: &str, key: Option<&SecretString>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key.map(|key| key.expose_secret().trim()) {
        match provider {
            "anthropic" => headers.insert("x-api-key", secret_header(key)?),
            "azure" => headers.insert("api-key", secret_header(key)?),
            _ => headers.insert(http::header::AUTHORIZATION, secret_header(&format!("Bearer {key}"))?),
        };
    }
    Ok(headers)
}

async fn ask(http: &SharedHttp, url: &reqwest::Url, headers: &HeaderMap, account: &Account) -> Look {
    let key = account.key.as_ref().map(ExposeSecret::expose_secret);
    let secrets = &Secrets::of_account(&account.base_url, key);
    let words = |error: reqwest::Error| {
        let away = error.is_connect();
        let why = classify::one_line(&root_cause(&error.without_url()), secrets);
        if away { Look::Away(why) } else { Look::Silent(why) }
    };
    let request = http.client.get(url.clone()).headers(headers.clone()).timeout(http.settings.request_timeout);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return words(error),
    };
    let status = response.status().as_u16();
    let mut body = Vec::new();
    match read_body(response, MAX_LIST_BYTES, &mut body).await {
        Ok(()) => {}
        Err(Fault::Broken { kind: classify::Transport::TooLarge, .. }) => return Look::Answers(status),
        Err(fault) => return Look::Silent(classify::one_line(&fault.to_string(), secrets)),
    }
    match status {
        200 => serde_json::from_slice::<List>(&body).map_or(Look::Answers(200), |list| Look::Models(list.data.len())),
        401 | 403 => Look::KeyRefused(classify::response(status, &body, None, secrets).failure.message),
        other => Look::Answers(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bench_store::PaceLimits;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[test]
    fn copied_addresses_are_guessed_back_to_their_base() {
        let guessed = |url: &str| -> Vec<String> {
            let url = reqwest::Url::parse(url).expect("a URL");
            guesses(&url).iter().map(|guess| guess.path().to_owned()).collect()
        };
        for (url, wanted) in [
            ("http://h/v1/chat/completions", vec!["/v1"]),
            ("http://h/openai/v1/embeddings/", vec!["/openai/v1", "/v1"]),
            ("http://h/api/models", vec!["/api", "/api/v1", "/v1"]),
            ("http://h/messages", vec!["", "/v1"]),
            ("http://h/v2", vec!["/v2/v1", "/v1"]),
            ("http://h", vec!["/v1"]),
            ("http://h/v1", vec![]),
        ] {
            let wanted: Vec<&str> = wanted.iter().map(|path| if path.is_empty() { "/" } else { path }).collect();
            assert_eq!(guessed(url), wanted, "{url}");
        }
    }

    /// A server with lists of models at some paths, one of which never ends; it notes what it was asked, and with which key.
    async fn server(lists: &'static [&'static str]) -> (String, Arc<Mutex<Vec<(String, bool)>>>) {
        let (listener, heard) = (TcpListener::bind("127.0.0.1:0").await.expect("listens"), Arc::default());
        let (url, asked) = (format!("http://{}", listener.local_addr().expect("an address")), Arc::clone(&heard));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let (mut head, asked) = (vec![0; 4096], Arc::<Mutex<Vec<(String, bool)>>>::clone(&asked));
                tokio::spawn(async move {
                    let length = stream.read(&mut head).await.expect("a request");
                    let head = String::from_utf8_lossy(&head[..length]).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    let has_key = head.contains("open-sesame");
                    asked.lock().expect("no panic").push((path.clone(), has_key));
                    let status = match (lists.contains(&&*path), has_key) {
                        (true, true) => "200 OK",
                        (true, false) => "401 Unauthorized",
                        _ => "404 Not Found",
                    };
                    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n{{\"data\":[");
                    let _ = stream.write_all(head.as_bytes()).await;
                    let more = if path.contains("endless") { usize::MAX } else { 0 };
                    for _ in 0..more {
                        if stream.write_all(&[b' '; 1 << 16]).await.is_err() {
                            return;
                        }
                    }
                    let _ = stream.write_all(b"]}").await;
                });
            }
        });
        (url, heard)
    }

    async fn look_at(base_url: String) -> Look {
        let key = Some("open-sesame".into());
        let (name, limits) = ("a".to_owned(), PaceLimits::default());
        let parameters = Vec::new();
        let account =
            Account { name, base_url, key, limits, counts_used_tokens: false, asks_stream_usage: true, parameters };
        look("openai", &account, Duration::from_secs(20)).await.expect("looks")
    }

    #[tokio::test]
    async fn a_list_of_models_that_does_not_end_is_not_read_to_its_end() {
        let (url, _) = server(&["/endless/models"]).await;
        assert_eq!(look_at(format!("{url}/endless")).await, Look::Answers(200));
    }

    #[tokio::test]
    async fn a_server_that_refuses_a_key_is_quoted_without_those_of_its_base_url() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let url =
            format!("http://{}/zQ7kXp20Ld9RtW4m/v1?key=zq9open0sesame7value", listener.local_addr().expect("bound"));
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.expect("a request");
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n").await;
            let _ = stream.write_all(&head[..length]).await;
        });
        let Look::KeyRefused(words) = look_at(url).await else { panic!("it is refused") };
        assert!(words.contains("GET /[key]/v1/models?key=[key] HTTP/1.1"), "{words}");
        assert!(!words.contains("zQ7k") && !words.contains("sesame"), "{words}");
    }

    #[tokio::test]
    async fn a_key_goes_to_no_path_that_is_not_below_its_base_url() {
        let (url, heard) = server(&["/v1/models"]).await;
        assert_eq!(look_at(format!("{url}/tenant-a/openai")).await, Look::WrongPath(format!("{url}/v1")));
        let heard = heard.lock().expect("no panic").clone();
        assert!(heard.contains(&("/v1/models".to_owned(), false)), "{heard:?}");
        assert!(heard.iter().all(|(path, has_key)| path.starts_with("/tenant-a/") || !has_key), "{heard:?}");
    }
}
