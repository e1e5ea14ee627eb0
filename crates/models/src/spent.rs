//! What a provider says that a key has spent so far, in dollars. Between two looks it is what everybody has spent with that key: also
//! a memory system that goes around the meter.

use std::time::Duration;

use reqwest::{Client, Url, redirect};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use crate::registry::Account;

/// Longest wait for a figure.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest reply, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Who says it, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentAt {
    /// `OpenRouter`: `GET key` below the base URL, `data.usage`.
    OpenRouter,
    /// A proxy of `LiteLLM` with virtual keys: `GET /key/info`, `info.spend`.
    LiteLlm,
}

impl SpentAt {
    /// By its name in the settings.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "openrouter" => Some(Self::OpenRouter),
            "litellm" => Some(Self::LiteLlm),
            _ => None,
        }
    }

    /// Where it is asked.
    fn url(self, base: &str) -> Option<Url> {
        let base = base.trim_end_matches('/');
        let url = match self {
            Self::OpenRouter => format!("{base}/key"),
            Self::LiteLlm => format!("{}/key/info", base.strip_suffix("/v1").unwrap_or(base)),
        };
        url.parse().ok()
    }

    /// Where the figure stands in a reply.
    const fn place(self) -> &'static str {
        match self {
            Self::OpenRouter => "/data/usage",
            Self::LiteLlm => "/info/spend",
        }
    }

    /// The figure in a reply; none where there is none that could be one.
    fn read(self, reply: &Value) -> Option<f64> {
        reply.pointer(self.place())?.as_f64().filter(|usd| usd.is_finite() && *usd >= 0.0)
    }
}

/// Dollars that an account's key has spent in all its life.
///
/// # Errors
/// Why that cannot be known, in words without the key.
pub async fn spent(account: &Account, at: SpentAt) -> Result<f64, String> {
    let place = at.url(&account.base_url).ok_or("its base URL cannot be read")?;
    let broken = |error: reqwest::Error| error.without_url().to_string();
    let client = Client::builder().timeout(PATIENCE).redirect(redirect::Policy::none()).build().map_err(broken)?;
    let mut request = client.get(place);
    if let Some(key) = &account.key {
        request = request.bearer_auth(key.expose_secret());
    }
    let mut response = request.send().await.map_err(broken)?;
    if !response.status().is_success() {
        return Err(format!("it answers {}", response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MOST_BYTES {
            return Err("its reply does not end".to_owned());
        }
    }
    let reply: Value = serde_json::from_slice(&bytes).map_err(|_| "its reply is no JSON")?;
    at.read(&reply).ok_or_else(|| format!("its reply has no dollars at {}", at.place()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_figure_is_asked_where_each_has_it_and_what_is_none_is_not_believed() {
        let url = |at: SpentAt, base: &str| at.url(base).map(String::from);
        assert_eq!(
            url(SpentAt::OpenRouter, "https://openrouter.ai/api/v1").as_deref(),
            Some("https://openrouter.ai/api/v1/key")
        );
        for base in ["https://llm.example/v1", "https://llm.example/v1/", "https://llm.example"] {
            assert_eq!(url(SpentAt::LiteLlm, base).as_deref(), Some("https://llm.example/key/info"), "{base}");
        }
        assert_eq!(SpentAt::OpenRouter.read(&json!({"data": {"usage": 25.5}})), Some(25.5));
        assert_eq!(SpentAt::LiteLlm.read(&json!({"info": {"spend": 0}})), Some(0.0));
        for wrong in [json!({}), json!({"data": {"usage": "1"}}), json!({"data": {"usage": -1.0}}), json!([])] {
            assert_eq!(SpentAt::OpenRouter.read(&wrong), None, "{wrong}");
        }
        assert_eq!([SpentAt::named("openrouter"), SpentAt::named("other")], [Some(SpentAt::OpenRouter), None]);
    }
}
