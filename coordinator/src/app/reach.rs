//! Model accounts as they are from here: looked at before a run starts, and by `doctor`.

use std::{collections::BTreeSet, time::Duration};

use bench_models::{
    ChatMessage, ChatRequest, MessageRole, capabilities,
    look::{Look, look},
    openai::{HttpSettings, SharedHttp},
    parameters, registry,
};
use bench_proto::spec::RunSpec;
use bench_settings::{Account, ApiKey, ModelRole};
use bench_systems::{facts, vector};

use crate::{app::App, cli::model_of_judge, exit::CliError};

/// How long a start waits for a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long `doctor` does.
const LONG_PATIENCE: Duration = Duration::from_secs(5);

/// Looks at the servers of a run's models before anything starts: what cannot be reached, or is asked at the wrong path, is
/// refused. A server that answers anything else may work. Without `answers` only judges are called.
///
/// # Errors
/// Exit 2 with the address that was probably meant, and how to start all the same.
pub(crate) async fn look_first(app: &App, spec: &RunSpec, answers: bool) -> Result<(), CliError> {
    if !app.settings().models.look_first {
        return Ok(());
    }
    let servers = servers_of(app, spec, answers)?;
    let looks = servers.iter().map(async |(provider, account)| (account, look(provider, account, PATIENCE).await));
    for (account, seen) in futures::future::join_all(looks).await {
        let seen =
            seen.map_err(|failure| CliError::usage(format!("account '{}': {}", account.name, failure.message)))?;
        if let Some(problem) = problem(account, &seen) {
            return Err(CliError::usage(format!(
                "{problem}, or add --set models.look_first=false when the server comes later; nothing was started"
            )));
        }
    }
    Ok(())
}

/// Providers and accounts that a run's calls go to, each once.
///
/// # Errors
/// Exit 2 for an account that cannot be used here.
pub(crate) fn servers_of(
    app: &App,
    spec: &RunSpec,
    answers: bool,
) -> Result<Vec<(String, registry::Account)>, CliError> {
    let mut found: Vec<(String, registry::Account)> = Vec::new();
    let answerer = answers.then_some((ModelRole::Answerer, &spec.answerer, "--answerer"));
    let judges = spec.judges.iter().map(|judge| (ModelRole::Judge, judge, "--judge"));
    for (role, model, flag) in answerer.into_iter().chain(judges).filter(|(_, model, _)| model.is_remote()) {
        found.push((model.provider.clone(), app.account(role, &model.provider, flag)?));
    }
    if answers && let Some(model) = vector::remote_model(&spec.system.name, &spec.system.settings) {
        let account = app.embedding_account(&model)?;
        let provider = if account.name == "azure" { "azure" } else { "openai" };
        found.push((provider.to_owned(), account));
    }
    if answers && let Some(model) = facts::chat_model(&spec.system.name, &spec.system.settings) {
        found.push((model.provider.clone(), app.chat_account(&model)?));
    }
    let mut known = BTreeSet::new();
    found.retain(|(_, account)| known.insert((account.name.clone(), account.base_url.clone())));
    Ok(found)
}

/// The account of a server that people start themselves on their machine.
const OLLAMA: &str = "ollama";

/// What stands against a server whatever is asked of it.
fn problem(account: &registry::Account, seen: &Look) -> Option<String> {
    let (name, url) = (&account.name, bench_proto::redact::url(&account.base_url));
    match seen {
        Look::Away(why) => {
            let advice = if name == OLLAMA { "start it (`ollama serve`), or check" } else { "check" };
            Some(format!("account '{name}': {url} cannot be reached ({why}): {advice} its base URL"))
        }
        Look::WrongPath(meant) => Some(format!(
            "account '{name}': {url} lists no models and {meant} does: set its base URL to that",
            meant = bench_proto::redact::url(meant)
        )),
        Look::Models(_) | Look::Answers(_) | Look::KeyRefused(_) | Look::Silent(_) => None,
    }
}

/// What `doctor` finds of an account.
#[derive(Debug)]
pub(crate) enum Found {
    /// The account can be used; details.
    Fine(String),
    /// Nothing needs the account, and nobody has set it up; details.
    Unused(String),
    /// The account cannot be used; what to do.
    Broken(String),
}

/// All accounts that somebody has set up or that a setting needs, looked at; with `paid`, the models of the roles are asked
/// for one token each.
pub(crate) async fn examine(app: &App, paid: bool) -> Vec<(String, Found)> {
    let settings = app.settings();
    let mut looks = Vec::new();
    let models =
        [(ModelRole::Answerer, vec![settings.run.answerer.clone()]), (ModelRole::Judge, settings.run.judge.clone())];
    let mut named: Vec<String> = Vec::new();
    for (role, texts) in models {
        let remote = texts
            .iter()
            .filter_map(|text| registry::parse_model(model_of_judge(text)).ok())
            .find(|model| model.provider.remote);
        let provider = remote.as_ref().map_or("openai", |model| model.provider.name);
        let account = settings.account_for(role, provider);
        let own = settings.is_set(&format!("{}.base_url", role.name()))
            || settings.is_set(&format!("{}.account", role.name()));
        let wanted = remote.is_some() || own || is_set_up(app, &account);
        named.push(account.name.clone());
        let model = remote.as_ref().filter(|_| paid).map(|model| (role, model.model.clone()));
        let what = format!("account of the {}", role.name());
        looks.push((what, provider.to_owned(), account, wanted, model));
    }
    let others = settings.accounts.values().filter(|account| !named.contains(&account.name) && is_set_up(app, account));
    for account in others {
        let provider =
            if matches!(account.name.as_str(), "anthropic" | "azure") { account.name.as_str() } else { "openai" };
        looks.push((format!("account {}", account.name), provider.to_owned(), account.clone(), true, None));
    }
    let looks = looks.into_iter().map(async |(what, provider, account, wanted, model)| {
        let found = match wanted {
            true => one(app, &provider, &account, model).await,
            false => Found::Unused(format!("{}, not set up: no model is configured to use it", account.name)),
        };
        (what, found)
    });
    futures::future::join_all(looks).await
}

/// Whether somebody has given an account a key or a server of its own.
fn is_set_up(app: &App, account: &Account) -> bool {
    account.key.secret().is_some() || app.settings().is_set(&format!("accounts.{}.base_url", account.name))
}

async fn one(app: &App, provider: &str, account: &Account, model: Option<(ModelRole, String)>) -> Found {
    let Some(base_url) = account.base_url.clone() else {
        return Found::Broken(format!("{}, no base URL: set accounts.{}.base_url", account.name, account.name));
    };
    let shown = format!("{}, {}", account.name, bench_proto::redact::url(&base_url));
    let key = account.key.secret().cloned();
    let of_key = if key.is_some() { "key set" } else { "no key" };
    let usable = registry::Account {
        name: account.name.clone(),
        base_url,
        key,
        limits: Default::default(),
        counts_used_tokens: false,
        asks_stream_usage: true,
        parameters: account.parameters.clone(),
    };
    if usable.key.is_none() && !usable.is_local() {
        let why = match &account.key {
            ApiKey::Missing(why) => why.as_str(),
            ApiKey::None | ApiKey::Set(..) => "none is set",
        };
        return Found::Broken(format!("{shown}: it needs a key, but {why}"));
    }
    let seen = match look(provider, &usable, LONG_PATIENCE).await {
        Ok(seen) => seen,
        Err(failure) => return Found::Broken(format!("{shown}: {}", failure.message)),
    };
    if let Some(problem) = problem(&usable, &seen) {
        return Found::Broken(problem);
    }
    if let Some((role, name)) = model {
        return match ask_for_a_token(app, role, provider, &name, &usable).await {
            Ok(()) => Found::Fine(format!("{shown}, {of_key}, {name} answers")),
            Err(why) => Found::Broken(format!("{shown}, {of_key}: {name}: {why}")),
        };
    }
    match seen {
        Look::Models(count) => Found::Fine(format!("{shown}, {of_key}, {count} models")),
        Look::KeyRefused(words) => Found::Broken(format!("{shown}: {words}")),
        Look::Silent(why) => Found::Broken(format!("{shown}: it does not answer ({why})")),
        Look::Answers(status) if status >= 500 => Found::Broken(format!("{shown}: it answers {status}")),
        _ => Found::Fine(format!(
            "{shown}, {of_key}; it answers and lists no models: `doctor --paid` asks a configured model for one token"
        )),
    }
}

/// Asks a model for one token: the smallest call that proves its key and its name.
async fn ask_for_a_token(
    app: &App,
    role: ModelRole,
    provider: &str,
    name: &str,
    account: &registry::Account,
) -> Result<(), String> {
    let models = &app.settings().models;
    let http = HttpSettings {
        connect_timeout: models.connect_timeout,
        request_timeout: models.timeout,
        ..HttpSettings::default()
    };
    let http = SharedHttp::new(http).map_err(|failure| failure.message)?;
    let model = registry::build_chat(provider, name, account, &http).map_err(|failure| failure.message)?;
    let mut params = app.model_params(role, provider).map_err(|error| error.message)?;
    // a run with it is refused
    if let Some(unsent) = parameters::unsent(&params, &account.parameters) {
        return Err(format!("{}.params holds '{}', {}", role.name(), unsent.name, unsent.why(&account.name)));
    }
    params.insert("max_completion_tokens".to_owned(), 1.into());
    let request = ChatRequest {
        messages: vec![ChatMessage { role: MessageRole::User, text: "Reply with the word ok.".to_owned() }],
        params: capabilities::sent_params(provider, name, &params),
        schema: None,
        max_output_tokens: 1,
    };
    model.attempt(&request, None).await.result.map(drop).map_err(|error| error.failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_reach_the_server_of_this_machine_is_told_how_to_start_it() {
        let told = |name: &str| {
            let account = registry::Account {
                name: name.to_owned(),
                base_url: "http://127.0.0.1:11434/v1".to_owned(),
                key: None,
                limits: Default::default(),
                counts_used_tokens: false,
                asks_stream_usage: true,
                parameters: Vec::new(),
            };
            problem(&account, &Look::Away("refused".to_owned())).expect("a problem")
        };
        assert!(told("ollama").ends_with("(refused): start it (`ollama serve`), or check its base URL"));
        assert!(told("openai").ends_with("(refused): check its base URL"));
    }
}
