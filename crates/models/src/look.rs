//! Is anybody there? One cheap question to an account's server before anything depends on it: its list of models.
//!
//! Many servers have no such list, so that a 404 proves nothing, and a key may be good for calls alone. What is proven: that
//! nobody can be reached, that the list is one path deeper, that the key is refused.

use std::time::Duration;

use bench_proto::failure::Failure;
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    classify,
    openai::{HttpSettings, SharedHttp, checked_url, exchange::root_cause, secret_header},
    registry::Account,
};

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It lists its models: so many.
    Models(usize),
    /// It answers, with this status and without a list.
    Answers(u16),
    /// It refuses the key, in these words.
    KeyRefused(String),
    /// Requests would go to the wrong path; this base URL has a list.
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
    let headers = headers(provider, account.key.as_ref())?;
    let base = checked_url(&account.base_url)?;
    let seen = ask(&http, &with_path(&base, list_path(provider, &base)), &headers, account).await;
    if seen != Look::Answers(404) || provider == "azure" || base.path().contains("/v1") {
        return Ok(seen);
    }
    // without its version the base URL lacks the most common path
    let deeper = with_path(&base, "/v1");
    let there = ask(&http, &with_path(&deeper, "/models"), &headers, account).await;
    Ok(match there {
        Look::Models(_) | Look::KeyRefused(_) => Look::WrongPath(deeper.to_string()),
        _ => seen,
    })
}

/// Where a provider lists its models, below its base URL.
fn list_path(provider: &str, base: &reqwest::Url) -> &'static str {
    match (provider, base.path().trim_end_matches('/')) {
        ("anthropic", "") => "/v1/models",
        ("azure", path) if !path.ends_with("/v1") => "/openai/models",
        _ => "/models",
    }
}

fn with_path(base: &reqwest::Url, path: &str) -> reqwest::Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

fn headers(provider: &str, key: Option<&SecretString>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if provider == "anthropic" {
        headers.insert("anthropic-version", http::HeaderValue::from_static(super::anthropic::API_VERSION));
    }
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
    let key = account.key.as_ref().map(|key| key.expose_secret().trim());
    let words = |error: reqwest::Error| {
        let away = error.is_connect();
        let why = classify::one_line(&root_cause(&error.without_url()), key);
        if away { Look::Away(why) } else { Look::Silent(why) }
    };
    let request = http.client.get(url.clone()).headers(headers.clone()).timeout(http.settings.request_timeout);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return words(error),
    };
    let status = response.status().as_u16();
    let body = match response.bytes().await {
        Ok(body) => body,
        Err(error) => return words(error),
    };
    match status {
        200 => serde_json::from_slice::<List>(&body).map_or(Look::Answers(200), |list| Look::Models(list.data.len())),
        401 | 403 => Look::KeyRefused(classify::response(status, &body, None, key).failure.message),
        other => Look::Answers(other),
    }
}
