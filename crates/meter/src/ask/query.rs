//! The query of a request: what SDKs write there passes, and nothing else, since gateways may go by any other parameter.

use crate::{address::Operation, refusal::Rejection};

/// Parameters of lists of models: OpenAI's and Anthropic's.
const OF_LISTS: [&str; 6] = ["after", "after_id", "before", "before_id", "limit", "order"];

/// Refuses a parameter that no SDK needs.
pub(super) fn check(query: Option<&str>, operation: Operation) -> Result<(), Rejection> {
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !is_plain(value) || !is_known(name, value, operation) {
            return Err(Rejection::foreign_parameter(name));
        }
    }
    Ok(())
}

fn is_known(name: &str, value: &str, operation: Operation) -> bool {
    let is_list = operation == Operation::Models;
    match name {
        "api-version" => true,
        "beta" => value == "true" && (is_list || operation.is_anthropic()),
        name => is_list && OF_LISTS.contains(&name),
    }
}

/// Whether nobody can read a further parameter in a value.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/%".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sdks_write_passes_and_nothing_else() {
        use Operation::{Chat, Embeddings, Messages, Models};
        for (operation, query) in [
            (Chat, ""),
            (Chat, "api-version=2024-10-21"),
            (Embeddings, "&api-version=2025-01-01-preview&"),
            (Messages, "beta=true"),
            (Models, "limit=20&after_id=claude-x&order=desc"),
            (Models, "beta=true&before=gpt-4o"),
        ] {
            assert_eq!(check(Some(query), operation), Ok(()), "{query}");
        }
        assert_eq!(check(None, Chat), Ok(()));
        for (operation, query, name) in [
            (Chat, "model=gpt-5-pro", "model"),
            (Chat, "api-version=1&x-target=https://evil.example", "x-target"),
            (Chat, "beta=true", "beta"),
            (Chat, "limit=1", "limit"),
            (Messages, "beta=false", "beta"),
            (Chat, "api-version=1;model=x", "api-version"),
            (Chat, "%61pi-version=1", "%61pi-version"),
            (Chat, "route", "route"),
            (Models, "API-VERSION=1", "API-VERSION"),
        ] {
            let rejection = check(Some(query), operation).expect_err(query);
            let (_, said) = rejection.written(crate::refusal::Form::OpenAi);
            let said: serde_json::Value = serde_json::from_slice(&said).expect("json");
            assert_eq!((rejection.status.as_u16(), said["error"]["param"].as_str()), (400, Some(name)), "{said}");
            assert!(said["error"]["message"].as_str().is_some_and(|words| words.contains(name)), "{said}");
        }
    }
}
