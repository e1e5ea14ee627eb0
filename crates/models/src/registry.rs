//! How a model is built: its provider and its name, the account that is asked, and what is sent to it.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use bench_proto::{
    address::is_public,
    failure::{Failure, code::CANNOT_SERVE},
    nearest::{did_you_mean, distance},
    price::ModelPrice,
    spec::ModelSpec,
};
use bench_store::PaceLimits;
use secrecy::SecretString;
use serde_json::Value;

pub use super::providers::{FAKE, PROVIDERS, Provider, is_paid};
use super::{
    ChatModel,
    anthropic::AnthropicChat,
    openai::{ModelServer, OpenAiChat, Scheme, SharedHttp, embeddings::OpenAiEmbeddings},
    parameters,
};

/// The parameter that asks for a service tier.
pub const SERVICE_TIER: &str = "service_tier";
/// What to do in the place of asking for one whose price is not known.
pub const TIERS_THAT_PASS: &str = "ask for auto, default or flex, or for one that has a price";

/// The simulated model when nobody names one.
const SIMULATED: &str = "simulated";

/// `provider:model`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// What stands before the colon, as registered.
    pub provider: &'static Provider,
    /// The model; empty for providers without models.
    pub model: String,
}

/// A model name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelNameError {
    /// No such provider.
    #[error("'{name}' is no provider{}; known are {}", meant(.name, .nearest), known())]
    UnknownProvider {
        /// What was asked for.
        name: String,
        /// The known name that is most like it.
        nearest: &'static str,
    },
    /// A remote provider without a model.
    #[error("'{0}' needs a model: write {0}:<model>, such as openai:gpt-4o-mini")]
    NoModel(&'static str),
    /// A model of a provider that has none.
    #[error("'{0}' has no models: write {0} alone")]
    NeedlessModel(&'static str),
    /// What is not the name of one model.
    #[error("'{0}' is no name of one model: it has a comma, a control character, or white space around it")]
    NotOneModel(String),
}

/// Whether a name can be that of one model. Gateways take several apart that stand in its place, and ask them all. Spaces in it are
/// usual where people name models themselves (`Claude 3.5 Sonnet`).
#[must_use]
pub fn names_one_model(name: &str) -> bool {
    !name.is_empty() && name.trim() == name && !name.chars().any(|c| c == ',' || c.is_control())
}

fn not_one(model: &str) -> ModelNameError {
    ModelNameError::NotOneModel(model.escape_debug().to_string())
}

/// Servers that speak OpenAI's API and are often named as if they were providers, with the port of their default.
const LIKE_OPENAI: &[(&str, u16)] = &[("vllm", 8000), ("lmstudio", 1234), ("llamacpp", 8080)];

fn meant(name: &str, nearest: &str) -> String {
    if let Some((_, port)) = LIKE_OPENAI.iter().find(|(server, _)| *server == name) {
        return format!(
            " (it speaks OpenAI's API: write openai:<model> and set OPENAI_BASE_URL=http://127.0.0.1:{port}/v1)"
        );
    }
    did_you_mean(&[nearest]).map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn known() -> String {
    PROVIDERS.iter().map(|provider| provider.name).collect::<Vec<_>>().join(", ")
}

/// Reads `provider:model` (`openai:gpt-4o-mini`, `openai:meta-llama/Llama-3:70b`, `extractive`).
///
/// # Errors
/// Unknown providers, and models that are missing or too many.
pub fn parse_model(text: &str) -> Result<ModelName, ModelNameError> {
    let (name, model) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let Some(provider) = PROVIDERS.iter().find(|provider| provider.name == name) else {
        return Err(ModelNameError::UnknownProvider { name: name.to_owned(), nearest: nearest(text.trim(), name) });
    };
    match (provider.remote, model.is_empty()) {
        (true, true) if provider.name == FAKE => Ok(ModelName { provider, model: SIMULATED.to_owned() }),
        (true, true) => Err(ModelNameError::NoModel(provider.name)),
        (false, false) => Err(ModelNameError::NeedlessModel(provider.name)),
        (true, false) if !names_one_model(model) => Err(not_one(model)),
        _ => Ok(ModelName { provider, model: model.to_owned() }),
    }
}

/// The provider that was probably meant. A bare name of an OpenAI model lacks only its provider.
fn nearest(text: &str, name: &str) -> &'static str {
    if ["gpt-", "o1", "o3", "o4", "chatgpt"].iter().any(|prefix| text.starts_with(prefix)) {
        return "openai";
    }
    if text.starts_with("claude") {
        return "anthropic";
    }
    let ranked = PROVIDERS.iter().map(|provider| (distance(name, provider.name), provider.name)).min();
    ranked.map_or("openai", |(_, nearest)| nearest)
}

/// An account: a configured name under which a base URL and a key belong together (P32). Its `Debug` shows no key, nor one that
/// stands in the URL.
#[derive(Clone)]
pub struct Account {
    /// The name: part of pace, stop flag and cache key.
    pub name: String,
    /// Base URL with its `/v1`.
    pub base_url: String,
    /// Key; may be absent for local servers only.
    pub key: Option<SecretString>,
    /// What the provider allows to each of its models, if known.
    pub limits: PaceLimits,
    /// Its token limit counts the reply that came and not the largest one that was asked for.
    pub counts_used_tokens: bool,
    /// Its server takes the wish that a stream tells its use.
    pub asks_stream_usage: bool,
    /// Names of parameters that its operator knows to cost nothing beyond tokens there, beside those of [`parameters::check`].
    pub parameters: Vec<String>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base_url = bench_proto::redact::url(&self.base_url);
        f.debug_struct("Account").field("name", &self.name).field("base_url", &base_url).finish_non_exhaustive()
    }
}

impl Account {
    /// Whether the base URL is on this machine or its private network, where servers without keys are usual.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let Ok(url) = reqwest::Url::parse(&self.base_url) else {
            return false;
        };
        let Some(host) = url.host_str() else { return false };
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) => !is_public(ip),
            // names without a dot are services of a compose or cluster network
            Err(_) => {
                !host.contains('.') || [".localhost", ".local", ".internal"].iter().any(|end| host.ends_with(end))
            }
        }
    }
}

/// Builds the chat model of a run, for an account that is sent all of its parameters.
///
/// # Errors
/// As [`check_params`] and [`build_chat`].
pub fn build_model(
    model: &ModelSpec,
    account: &Account,
    price: Option<&ModelPrice>,
    http: &SharedHttp,
) -> Result<Arc<dyn ChatModel>, Failure> {
    check_params(model, account, price)?;
    build_chat(&model.provider, &model.name, account, http)
}

/// Checks that a model is one, and that an account is sent all of its parameters: a run that is stored may have any, and is not
/// measured with other ones. `price` is what its calls are booked at, if they are.
///
/// # Errors
/// A terminal failure: of the model's name, or of this process, for the operator of another one may let a parameter through.
pub fn check_params(model: &ModelSpec, account: &Account, price: Option<&ModelPrice>) -> Result<(), Failure> {
    if is_remote(&model.provider) {
        check_name(&model.name)?;
    }
    let of = model.name.escape_debug();
    if let Some(unsent) = parameters::unsent(&model.params, &account.parameters) {
        let (name, why) = (unsent.name.escape_debug(), unsent.why(&account.name));
        return Err(Failure::terminal(CANNOT_SERVE, format!("the model {of} has the parameter '{name}', {why}")));
    }
    let tier = model.params.get(SERVICE_TIER).and_then(Value::as_str);
    if has_price_of(price, tier, &account.parameters) {
        return Ok(());
    }
    let (tier, account) = (tier.unwrap_or_default().escape_debug(), &account.name);
    Err(Failure::terminal(
        CANNOT_SERVE,
        format!(
            "the model {of} has the service_tier '{tier}', of which its price says nothing: {TIERS_THAT_PASS}; where it costs what the \
             standard one costs, list service_tier in accounts.{account}.parameters where you submit, and in a cluster for the workers too"
        ),
    ))
}

/// Whether calls in a service tier are booked at its price: a model without one is booked at nothing, and an unknown tier of one that
/// has a price at the standard tier's, which only the operator of an account can say is right.
#[must_use]
pub fn has_price_of(price: Option<&ModelPrice>, tier: Option<&str>, let_through: &[String]) -> bool {
    let is_known = tier.zip(price).is_none_or(|(tier, price)| price.knows_tier(tier));
    is_known || let_through.iter().any(|name| name == SERVICE_TIER)
}

fn is_remote(provider: &str) -> bool {
    PROVIDERS.iter().any(|known| known.name == provider && known.remote)
}

/// Builds a chat model of a provider.
///
/// # Errors
/// A terminal failure in one readable line: no such provider, a provider that makes no calls, a missing key, a bad URL.
pub fn build_chat(
    provider: &str,
    model: &str,
    account: &Account,
    http: &SharedHttp,
) -> Result<Arc<dyn ChatModel>, Failure> {
    if is_remote(provider) {
        check_key(provider, account)?;
        check_name(model)?;
    }
    let parameters = &account.parameters;
    let of_scheme = |scheme| -> Result<Arc<dyn ChatModel>, Failure> {
        Ok(Arc::new(OpenAiChat::at(server_of(account, scheme), model, http)?.letting_through(parameters)))
    };
    match provider {
        "openai" | "ollama" | FAKE => of_scheme(Scheme::OpenAi),
        "azure" => of_scheme(Scheme::Azure),
        "anthropic" => {
            let chat = AnthropicChat::new(&account.base_url, account.key.as_ref(), model, http)?;
            Ok(Arc::new(chat.letting_through(parameters)))
        }
        "extractive" | "none" => Err(Failure::terminal(
            "no_chat_model",
            format!("'{provider}' makes no calls and cannot be used as a chat model"),
        )),
        other => Err(Failure::terminal(
            "unknown_provider",
            ModelNameError::UnknownProvider { name: other.to_owned(), nearest: nearest(other, other) }.to_string(),
        )),
    }
}

fn server_of(account: &Account, scheme: Scheme) -> ModelServer<'_> {
    ModelServer { scheme, base_url: &account.base_url, key: account.key.as_ref() }
}

fn check_name(model: &str) -> Result<(), Failure> {
    let refused = || Failure::terminal("bad_model_name", not_one(model).to_string());
    names_one_model(model).then_some(()).ok_or_else(refused)
}

/// A key, or a server at home.
fn check_key(provider: &str, account: &Account) -> Result<(), Failure> {
    if account.key.is_some() || account.is_local() {
        return Ok(());
    }
    let variables = match provider {
        "anthropic" => "ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL",
        "azure" => "AZURE_OPENAI_API_KEY, or AZURE_OPENAI_ENDPOINT",
        _ => "OPENAI_API_KEY, or OPENAI_BASE_URL",
    };
    let message = format!("account '{}' has no key: set {variables} to a local server", account.name);
    Err(Failure::terminal("missing_api_key", message))
}

/// The account that embeds: the role's own (`BENCH_EMBEDDER_BASE_URL`) where one is set and the default is wanted, else the
/// one that is named.
#[must_use]
pub fn embedding_account<'a>(accounts: &'a BTreeMap<String, Account>, named: &str) -> Option<&'a Account> {
    let own = accounts.get(EMBEDDER).filter(|_| named == DEFAULT_EMBEDDING_ACCOUNT);
    own.or_else(|| accounts.get(named))
}

/// Account of `BENCH_EMBEDDER_BASE_URL` and `BENCH_EMBEDDER_API_KEY`.
pub const EMBEDDER: &str = "embedder";
/// Account of embedding models when nobody names another.
pub const DEFAULT_EMBEDDING_ACCOUNT: &str = "openai";

/// Builds an embedding model of an account: Azure's scheme for the account of that name, else OpenAI's.
///
/// # Errors
/// A terminal failure in one readable line: a missing key, a bad URL.
pub fn build_embeddings(model: &str, account: &Account, http: &SharedHttp) -> Result<Arc<dyn ChatModel>, Failure> {
    let (provider, scheme) =
        if account.name == "azure" { ("azure", Scheme::Azure) } else { ("openai", Scheme::OpenAi) };
    check_key(provider, account)?;
    check_name(model)?;
    Ok(Arc::new(OpenAiEmbeddings::at(server_of(account, scheme), model, http)?))
}

#[cfg(test)]
mod tests {
    use bench_proto::money::PicoUsd;
    use serde_json::json;

    use super::*;
    use crate::{openai::HttpSettings, prices::PriceTable};

    fn account(base_url: &str, key: Option<&str>) -> Account {
        Account {
            name: "acc".to_owned(),
            base_url: base_url.to_owned(),
            key: key.map(SecretString::from),
            limits: PaceLimits::default(),
            counts_used_tokens: false,
            asks_stream_usage: true,
            parameters: Vec::new(),
        }
    }

    #[test]
    fn an_account_shows_no_key_wherever_it_stands() {
        let account = Account {
            name: "mine".to_owned(),
            base_url: "https://ann:s3cret-one@api.example/v1?key=s3cret-two".to_owned(),
            key: Some("sk-s3cret-three".into()),
            limits: PaceLimits::default(),
            counts_used_tokens: false,
            asks_stream_usage: true,
            parameters: Vec::new(),
        };
        let shown = format!("{account:?}");
        assert!(shown.contains("mine") && shown.contains("api.example") && !shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn model_names_are_taken_apart() {
        let name = parse_model("openai:meta-llama/Llama-3:70b").expect("known");
        assert_eq!((name.provider.name, name.model.as_str()), ("openai", "meta-llama/Llama-3:70b"));
        assert_eq!(parse_model("ollama:llama3.1:8b").expect("known").model, "llama3.1:8b");
        assert_eq!(parse_model("fake").expect("known").model, "simulated");
        assert_eq!(parse_model("fake:small").expect("known").model, "small");
        assert_eq!(parse_model("extractive").expect("known").model, "");
        assert_eq!(parse_model("openai:"), Err(ModelNameError::NoModel("openai")));
        assert_eq!(parse_model("none:x"), Err(ModelNameError::NeedlessModel("none")));
        assert_eq!(parse_model("openai:Claude 3.5 Sonnet").expect("an alias").model, "Claude 3.5 Sonnet");
        for several in ["openai/gpt-5-pro,openai/gpt-4o-mini", " gpt-4o", "gpt-4o\tmini", "m\u{7}", "a\nb"] {
            let refused = parse_model(&format!("openai:{several}")).expect_err(several);
            assert!(refused.to_string().contains("is no name of one model"), "{refused}");
        }
        for (wrong, nearest) in [
            ("opanai:gpt", "openai"),
            ("gpt-4o-mini", "openai"),
            ("claude-x", "anthropic"),
            ("Extractiv", "extractive"),
            ("nil", "none"),
        ] {
            match parse_model(wrong) {
                Err(ModelNameError::UnknownProvider { nearest: found, .. }) => assert_eq!(found, nearest, "{wrong}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
        insta::assert_snapshot!(
            parse_model("vllm:llama3.1").expect_err("is a server"),
            @"'vllm' is no provider (it speaks OpenAI's API: write openai:<model> and set OPENAI_BASE_URL=http://127.0.0.1:8000/v1); known are openai, anthropic, azure, ollama, fake, extractive, system, none"
        );
        insta::assert_snapshot!(
            parse_model("opanai:gpt-4o").expect_err("unknown"),
            @"'opanai' is no provider (did you mean 'openai'?); known are openai, anthropic, azure, ollama, fake, extractive, system, none"
        );
    }

    #[test]
    fn keys_are_needed_away_from_home() {
        let http = SharedHttp::new(HttpSettings::default()).expect("a client");
        for local in [
            "http://localhost:8080/v1",
            "http://127.0.0.1:1/v1",
            "http://[::1]:1/v1",
            "http://10.0.0.3/v1",
            "http://sim:8080/v1",
        ] {
            assert!(build_chat("openai", "m", &account(local, None), &http).is_ok(), "{local}");
        }
        let failure =
            build_chat("openai", "m", &account("https://api.openai.com/v1", None), &http).err().expect("no key");
        assert_eq!(failure.code, "missing_api_key");
        assert!(build_chat("openai", "m", &account("https://api.openai.com/v1", Some("sk-1")), &http).is_ok());
        for (provider, url, code) in [
            ("openai", "ftp://x/v1", "bad_base_url"),
            ("openai", "nonsense", "missing_api_key"),
            ("openai", "http://user:secret@localhost/v1", "bad_base_url"),
            ("extractive", "http://localhost/v1", "no_chat_model"),
            ("opnai", "http://localhost/v1", "unknown_provider"),
        ] {
            let failure = build_chat(provider, "m", &account(url, None), &http).err().expect("refused");
            assert_eq!(failure.code, code, "{provider} {url}");
            assert!(!failure.message.contains("secret"));
        }
    }

    #[test]
    fn a_stored_run_asks_one_model_and_sends_what_its_account_lets_through() {
        let http = SharedHttp::new(HttpSettings::default()).expect("a client");
        let spec = |provider: &str, name: &str, params: serde_json::Value| ModelSpec {
            provider: provider.to_owned(),
            name: name.to_owned(),
            account: "acc".to_owned(),
            params: serde_json::from_value(params).expect("an object"),
            prompts: BTreeMap::new(),
            version: 1,
        };
        let strict = account("http://localhost/v1", None);
        let open = Account { parameters: vec!["chat_template".to_owned()], ..strict.clone() };
        let code = |spec: &ModelSpec, account: &Account| {
            build_model(spec, account, None, &http).err().map(|failed| failed.code)
        };
        for provider in ["openai", "azure", "anthropic", "ollama", FAKE] {
            let plain = spec(provider, "m", json!({"temperature": 0, "seed": 7}));
            assert_eq!(code(&plain, &strict), None, "{provider}");
            let several = spec(provider, "gpt-5-pro,gpt-4o-mini", json!({}));
            assert_eq!(code(&several, &open).as_deref(), Some("bad_model_name"), "{provider}");
            let template = spec(provider, "m", json!({"chat_template": "{{ messages }}"}));
            assert_eq!((code(&template, &strict).as_deref(), code(&template, &open)), (Some(CANNOT_SERVE), None));
            for params in [json!({"api_base": "https://evil.example"}), json!({"n": 128}), json!({"speed": "fast"})] {
                assert_eq!(
                    code(&spec(provider, "m", params.clone()), &open).as_deref(),
                    Some(CANNOT_SERVE),
                    "{params}"
                );
            }
        }
        let refused =
            check_params(&spec("openai", "m", json!({"api_base": "x"})), &strict, None).expect_err("is refused");
        assert!(
            refused.message.contains("'api_base'") && refused.message.contains("accounts.acc.parameters"),
            "{refused}"
        );
        let several = check_params(&spec("openai", "a,b", json!({})), &strict, None).expect_err("is refused at once");
        assert_eq!(several.code, "bad_model_name");
        assert!(check_params(&spec("extractive", "", json!({})), &strict, None).is_ok(), "it has no models");
        assert!(build_embeddings("a,b", &strict, &http).is_err());
    }

    #[test]
    fn p34_a_service_tier_without_a_known_price_is_refused_unless_the_operator_of_the_account_knows_it() {
        let asked = |provider: &str, name: &str, tier: &str, parameters: &[&str]| {
            let model = ModelSpec {
                provider: provider.to_owned(),
                name: name.to_owned(),
                account: "acc".to_owned(),
                params: BTreeMap::from([(SERVICE_TIER.to_owned(), json!(tier))]),
                prompts: BTreeMap::new(),
                version: 1,
            };
            let parameters = parameters.iter().map(|&name| name.to_owned()).collect();
            let price = (provider == "openai").then(|| PriceTable::built_in().price(name)).flatten();
            check_params(&model, &Account { parameters, ..account("http://localhost/v1", None) }, price).err()
        };
        for tier in ["auto", "default", "standard", "standard_only", "flex", "batch", "scale", "priority", "fast"] {
            assert_eq!(asked("openai", "gpt-4o", tier, &[]), None, "{tier}");
        }
        for (name, tier) in [("gpt-4o", "ultrafast"), ("gpt-4o", "Priority")] {
            let refused = asked("openai", name, tier, &[]).expect(tier);
            assert!(refused.message.contains(tier) && refused.message.contains("accounts.acc.parameters"), "{refused}");
            assert_eq!(asked("openai", name, tier, &[SERVICE_TIER]), None, "its operator knows");
            assert_eq!(asked("ollama", name, tier, &[]), None, "nobody is paid for it");
        }
        assert_eq!(asked("openai", "unheard-of", "priority", &[]), None, "nothing is booked");
        // a price that the user has given says nothing of tiers, whatever the table says
        let flat = ModelPrice::flat(PicoUsd(1), PicoUsd(1));
        assert!(!has_price_of(Some(&flat), Some("priority"), &[]) && has_price_of(Some(&flat), Some("flex"), &[]));
        assert!(
            has_price_of(Some(&flat), Some("priority"), &[SERVICE_TIER.to_owned()])
                && has_price_of(Some(&flat), None, &[])
        );
    }

    #[test]
    fn azure_has_its_own_paths() {
        let http = SharedHttp::new(HttpSettings::default()).expect("a client");
        for (base, endpoint) in [
            ("https://x.openai.azure.com", "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21"),
            (
                "https://x.openai.azure.com/openai/?api-version=2025-01-01-preview",
                "https://x.openai.azure.com/openai/deployments/d?api-version=2025-01-01-preview",
            ),
            (
                "https://x.openai.azure.com/openai/deployments/e?api-version=1",
                "https://x.openai.azure.com/openai/deployments/e?api-version=1",
            ),
            ("https://x.openai.azure.com/openai/v1/", "https://x.openai.azure.com/openai/v1"),
        ] {
            let model = build_chat("azure", "d", &account(base, Some("key")), &http).expect("builds");
            assert_eq!(model.endpoint(), endpoint, "{base}");
        }
    }

    #[test]
    fn embeddings_have_an_account_of_their_own_where_one_is_set() {
        let all = |names: &[&str]| -> BTreeMap<String, Account> {
            names
                .iter()
                .map(|name| ((*name).to_owned(), Account { name: (*name).to_owned(), ..account("u", None) }))
                .collect()
        };
        let of =
            |names: &[&str], named: &str| embedding_account(&all(names), named).map(|account| account.name.clone());
        assert_eq!(of(&["openai", "embedder"], "openai").as_deref(), Some("embedder"));
        assert_eq!(of(&["openai", "embedder", "eu"], "eu").as_deref(), Some("eu"));
        assert_eq!(of(&["openai"], "openai").as_deref(), Some("openai"));
        assert_eq!(of(&["embedder"], "eu"), None);
        let http = SharedHttp::new(HttpSettings::default()).expect("a client");
        let azure = Account { name: "azure".to_owned(), ..account("https://x.openai.azure.com", Some("key")) };
        let model = build_embeddings("d", &azure, &http).expect("builds");
        assert_eq!(model.endpoint(), "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21");
        let failure = build_embeddings("m", &account("https://api.openai.com/v1", None), &http).err().expect("no key");
        assert_eq!(failure.code, "missing_api_key");
    }

    #[test]
    fn debug_shows_no_key() {
        let http = SharedHttp::new(HttpSettings::default()).expect("a client");
        let account = account("http://localhost/v1?api-version=2024-10-21", Some("very-secret-key"));
        let model = OpenAiChat::new(&account.base_url, account.key.as_ref(), "m", &http).expect("builds");
        assert_eq!(model.endpoint(), "http://localhost/v1?api-version=2024-10-21");
        assert!(!format!("{account:?} {model:?}").contains("very-secret"));
    }
}
