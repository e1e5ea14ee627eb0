//! Where a request goes: the provider's base URL and the operation's path, whichever of both paths the client used.

use reqwest::Url;

use crate::{
    address::Operation,
    ask::Asked,
    outcome::Refusal,
    refusal::Rejection,
    upstream::{Paths, Upstream},
};

/// The API version that Azure is asked for when nobody names one.
const AZURE_API_VERSION: &str = "2024-10-21";

/// The URL of a request at its provider.
pub(crate) fn provider_url(upstream: &Upstream, asked: &Asked) -> Result<Url, Rejection> {
    // it does not pass by itself
    let wrong = || {
        let why = "the base URL of the account cannot be used: set accounts.NAME.base_url where the meter runs";
        Rejection::from(Refusal::UnknownModel(why.to_owned()))
    };
    let mut url = Url::parse(&upstream.base_url).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
        return Err(wrong());
    }
    let own = url.query().map(str::to_owned);
    let base = url.path().trim_end_matches('/').to_owned();
    let is_azure = upstream.paths == Paths::Azure && !base.ends_with("/v1");
    if is_azure {
        azure_path(&mut url, &base, asked)?;
    } else {
        // a deployment is a word of Azure's alone: elsewhere the body names the model that answers, and is billed
        if asked.deployment.is_some() && asked.named != asked.deployment {
            let why = "model: name the deployment of the path in the body too; this provider reads the body";
            return Err(Rejection::unreadable(Some("model"), why));
        }
        let base = if upstream.paths == Paths::Anthropic && base.is_empty() { "/v1" } else { base.as_str() };
        url.set_path(&format!("{base}/{}", asked.suffix));
    }
    let is_version = |pair: &str| pair.starts_with("api-version=");
    let pairs = |query: Option<&str>| -> Vec<String> {
        query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !pair.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let mut query = pairs(asked.query.as_deref());
    if !is_azure && asked.deployment.is_some() {
        query.retain(|pair| !is_version(pair));
    }
    let has_version = query.iter().any(|pair| is_version(pair));
    query.extend(pairs(own.as_deref()).into_iter().filter(|pair| !(has_version && is_version(pair))));
    if is_azure && !query.iter().any(|pair| is_version(pair)) {
        query.push(format!("api-version={AZURE_API_VERSION}"));
    }
    let query = query.join("&");
    url.set_query((!query.is_empty()).then_some(query.as_str()));
    Ok(url)
}

/// Azure's path: of the model's deployment, where the operation has one.
fn azure_path(url: &mut Url, base: &str, asked: &Asked) -> Result<(), Rejection> {
    let by_deployment = matches!(asked.operation, Operation::Chat | Operation::Completions | Operation::Embeddings);
    if by_deployment && base.contains("/openai/deployments/") {
        // the base URL says which one, whatever the request says
        let named = base.rsplit('/').next().unwrap_or_default();
        if named != asked.model {
            let why = format!(
                "nobody has told the meter where {} is: the account's base URL is of another deployment; leave /openai/deployments/… out of that URL",
                asked.model
            );
            return Err(Refusal::UnknownModel(why).into());
        }
        url.set_path(&format!("{base}/{}", asked.operation.path()));
        return Ok(());
    }
    let root = base.split("/openai/deployments/").next().unwrap_or(base).trim_end_matches("/openai");
    url.set_path(&format!("{root}/openai"));
    if let Ok(mut path) = url.path_segments_mut() {
        if by_deployment {
            path.extend(["deployments", &asked.model]).extend(asked.operation.path().split('/'));
        } else {
            path.extend(asked.suffix.split('/'));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use hyper::body::Bytes;

    use super::*;
    use crate::address;

    fn sent(
        base: &str,
        paths: Paths,
        path: &str,
        query: Option<&str>,
        body: &'static str,
    ) -> Result<String, Rejection> {
        let target = address::read(&format!("/m/r/{path}")).expect(path);
        let asked = Asked::read(target, query, &HeaderMap::new(), Bytes::from_static(body.as_bytes()))?;
        let upstream = Upstream { paths, ..Upstream::new(base, HeaderMap::new()) };
        provider_url(&upstream, &asked).map(String::from)
    }

    #[test]
    fn each_provider_has_its_paths_whichever_the_client_uses() {
        use Paths::{Anthropic, Azure, OpenAi};
        const BODY: &str = r#"{"model":"gpt-4o"}"#;
        const DEPLOYED: &str = "openai/deployments/gpt-4o/chat/completions";
        let version = Some("api-version=2025-01-01");
        for (base, paths, path, query, expected) in [
            ("https://api.example/v1", OpenAi, "v1/chat/completions", None, "https://api.example/v1/chat/completions"),
            (
                "https://api.example/v1/",
                OpenAi,
                "b/2/chat/completions",
                version,
                "https://api.example/v1/chat/completions?api-version=2025-01-01",
            ),
            (
                "https://api.example/v1?k=1",
                OpenAi,
                "v1/responses",
                version,
                "https://api.example/v1/responses?api-version=2025-01-01&k=1",
            ),
            ("https://api.example/v1", OpenAi, DEPLOYED, version, "https://api.example/v1/chat/completions"),
            ("https://api.example", Anthropic, "v1/messages", None, "https://api.example/v1/messages"),
            (
                "https://api.example/x/v1",
                Anthropic,
                "messages/count_tokens",
                Some("beta=true"),
                "https://api.example/x/v1/messages/count_tokens?beta=true",
            ),
            (
                "https://a.example",
                Azure,
                DEPLOYED,
                version,
                "https://a.example/openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01",
            ),
            (
                "https://a.example/openai?api-version=2024-06-01",
                Azure,
                "v1/embeddings",
                None,
                "https://a.example/openai/deployments/gpt-4o/embeddings?api-version=2024-06-01",
            ),
            (
                "https://a.example?api-version=2024-06-01",
                Azure,
                DEPLOYED,
                version,
                "https://a.example/openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01",
            ),
            (
                "https://a.example/openai/deployments/gpt-4o",
                Azure,
                "v1/chat/completions",
                None,
                "https://a.example/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
            ),
            (
                "https://a.example",
                Azure,
                "openai/responses",
                version,
                "https://a.example/openai/responses?api-version=2025-01-01",
            ),
            (
                "https://a.example/openai/v1",
                Azure,
                "v1/chat/completions",
                None,
                "https://a.example/openai/v1/chat/completions",
            ),
        ] {
            assert_eq!(sent(base, paths, path, query, BODY).expect(path), expected);
        }
    }

    #[test]
    fn a_model_is_not_named_twice_differently() {
        let path = "openai/deployments/small/chat/completions";
        for (base, paths, body, is_sent) in [
            ("https://api.example/v1", Paths::OpenAi, r#"{"model":"large"}"#, false),
            ("https://api.example/v1", Paths::OpenAi, "{}", false),
            ("https://a.example", Paths::Azure, r#"{"model":"large"}"#, true),
            ("https://a.example", Paths::Azure, "{}", true),
            ("https://a.example/openai/deployments/large", Paths::Azure, "{}", false),
        ] {
            assert_eq!(sent(base, paths, path, None, body).is_ok(), is_sent, "{base} {body}");
        }
        for base in ["", "ftp://x/v1", "mailto:x", "nothing"] {
            let refused = sent(base, Paths::OpenAi, "v1/responses", None, r#"{"model":"m"}"#).expect_err(base);
            assert!(refused.lasts() && refused.kept().contains("accounts.NAME.base_url"), "{base}: {refused:?}");
        }
    }
}
