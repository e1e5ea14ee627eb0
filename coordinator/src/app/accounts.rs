//! The accounts behind a run's models: a server, a key, limits; and the parameters that are sent to it.

use std::collections::BTreeMap;

use bench_models::{parameters, prices, registry, spent::SpentAt};
use bench_proto::{
    metered::MeterPlan,
    spec::{Limits, ModelSpec, RunSpec},
};
use bench_settings::{Account, ApiKey, ModelRole};
use bench_store::PaceLimits;
use bench_systems::{adapter::literal, embed::EmbeddingModel, facts, vector};
use bench_worker::transport;
use serde_json::Value;

use super::{App, Deployment};
use crate::exit::CliError;

/// Accounts of the providers whose wire the meter speaks.
const METERED: [&str; 3] = ["anthropic", "azure", "openai"];

impl App {
    /// Parameters that are wanted of a role's model of `provider`, before the model's own limits.
    ///
    /// # Errors
    /// Exit 2 when the role's further parameters are no JSON object, or hold one that its account is not sent.
    pub(crate) fn model_params(&self, role: ModelRole, provider: &str) -> Result<BTreeMap<String, Value>, CliError> {
        let of = if role == ModelRole::Judge { &self.settings.judge } else { &self.settings.answerer };
        let mut params = BTreeMap::from([
            ("temperature".to_owned(), Value::from(of.temperature)),
            ("max_completion_tokens".to_owned(), Value::from(of.max_output_tokens)),
        ]);
        if let Some(text) = &of.params {
            let more: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| {
                let role = role.name();
                CliError::usage(format!(
                    "{role}.params is no JSON object ({error}): write {role}.params={{\"service_tier\": \"flex\"}}"
                ))
                .because(error)
            })?;
            let setting = format!("{}.params", role.name());
            // first, for its words say where a key belongs
            literal::check_params(&setting, &more).map_err(CliError::usage)?;
            let account = self.settings.account_for(role, provider);
            if let Some(unsent) = parameters::unsent(&more, &account.parameters) {
                let (name, why) = (unsent.name.escape_debug(), unsent.why(&account.name));
                return Err(CliError::usage(format!("{setting} holds '{name}', {why}")));
            }
            params.extend(more);
        }
        Ok(params)
    }

    /// The account of a role, usable: with a base URL, and with a key unless the server is a local one.
    ///
    /// # Errors
    /// Exit 2 with the variable to set, before the first call.
    pub(crate) fn account(&self, role: ModelRole, provider: &str, flag: &str) -> Result<registry::Account, CliError> {
        let mut account = self.settings.account_for(role, provider);
        if provider == registry::FAKE && account.base_url.is_none() {
            account.base_url = Some(self.simulator(flag)?);
        }
        self.usable(account, role, flag)
    }

    /// The account of a run's model, which is sent all parameters that the run has.
    ///
    /// # Errors
    /// As [`App::account`], and for a parameter that is not sent.
    fn account_of_model(
        &self,
        role: ModelRole,
        model: &ModelSpec,
        limits: &Limits,
        flag: &str,
    ) -> Result<registry::Account, CliError> {
        let account = self.account(role, &model.provider, flag)?;
        let price = prices::price_at(&model.provider, &model.name, limits);
        let sent = registry::check_params(model, &account, price.as_ref());
        sent.map_err(|failure| CliError::usage(format!("{flag}: {}", failure.message)))?;
        Ok(account)
    }

    /// The account that embeds for a memory system.
    ///
    /// # Errors
    /// As [`App::account`].
    pub(crate) fn embedding_account(&self, model: &EmbeddingModel) -> Result<registry::Account, CliError> {
        let account = match model.account.as_str() {
            registry::DEFAULT_EMBEDDING_ACCOUNT => {
                self.settings.account_named(ModelRole::Embedder, model.account.clone())
            }
            named => self.settings.accounts.get(named).cloned().ok_or_else(|| {
                let known: Vec<&str> = self.settings.accounts.keys().map(String::as_str).collect();
                CliError::usage(format!("vector.account={named}: no such account; known are {}", known.join(", ")))
            })?,
        };
        self.usable(account, ModelRole::Embedder, "vector.model")
    }

    /// The account of the chat model of a memory system.
    ///
    /// # Errors
    /// As [`App::account`].
    pub(crate) fn chat_account(&self, model: &ModelSpec) -> Result<registry::Account, CliError> {
        const FLAG: &str = "facts.model";
        let (named, known) = (&model.account, &self.settings.accounts);
        if *named != model.provider && !known.contains_key(named) {
            let known = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(CliError::usage(format!("facts.account={named}: no such account; known are {known}")));
        }
        let mut account = self.settings.shared_account(named.clone());
        if model.provider == registry::FAKE && account.base_url.is_none() {
            account.base_url = Some(self.simulator(FLAG)?);
        }
        self.usable(account, ModelRole::Answerer, FLAG)
    }

    fn usable(&self, account: Account, role: ModelRole, flag: &str) -> Result<registry::Account, CliError> {
        transport::warn(&self.settings, transport::to_account(&account));
        let base_url = account.base_url.clone().ok_or_else(|| {
            CliError::usage(format!(
                "{flag}: account '{}' has no base URL; set accounts.{}.base_url",
                account.name, account.name
            ))
        })?;
        let limits = PaceLimits { rpm: account.rpm, tpm: account.tpm };
        let key = account.key.secret().cloned();
        let usable = registry::Account {
            name: account.name.clone(),
            base_url,
            key,
            limits,
            counts_used_tokens: account.tpm_counts_used,
            asks_stream_usage: account.stream_usage,
            parameters: account.parameters.clone(),
        };
        if usable.key.is_none() && !usable.is_local() {
            return Err(CliError::usage(format!("{flag}: {}", missing_key(&account, role))));
        }
        Ok(usable)
    }

    /// Checks that the models that a run calls can be reached from here.
    ///
    /// # Errors
    /// As [`App::account`].
    pub(crate) fn check_run_accounts(&self, spec: &RunSpec) -> Result<(), CliError> {
        if self.deployment()? == Deployment::Cluster {
            // the keys are with the workers
            return Ok(());
        }
        self.accounts_of(spec).map(|_| ())
    }

    /// The accounts of a run's models, except those that no call needs and that cannot be used.
    pub(super) fn accounts_of(&self, spec: &RunSpec) -> Result<BTreeMap<String, registry::Account>, CliError> {
        let mut accounts = BTreeMap::new();
        let taken_over = &spec.taken_over;
        if spec.answerer.is_remote() {
            match self.account_of_model(ModelRole::Answerer, &spec.answerer, &spec.limits, "--answerer") {
                // nobody will be asked
                Err(_) if taken_over.answers_of.is_some() => {}
                account => drop(accounts.insert(spec.answerer.account.clone(), account?)),
            }
        }
        for judge in spec.judges.iter().filter(|judge| judge.is_remote()) {
            accounts.insert(
                judge.account.clone(),
                self.account_of_model(ModelRole::Judge, judge, &spec.limits, "--judge")?,
            );
        }
        let (name, settings) = (&spec.system.name, &spec.system.settings);
        let embeds = vector::remote_model(name, settings).map(|model| self.embedding_account(&model));
        let words = facts::chat_model(name, settings).map(|model| self.chat_account(&model));
        for account in embeds.into_iter().chain(words) {
            match account {
                Err(_) if taken_over.recalls_of.is_some() => {}
                account => {
                    let account = account?;
                    accounts.entry(account.name.clone()).or_insert(account);
                }
            }
        }
        if let Some(meter) = &spec.limits.meter {
            for account in self.meter_accounts(meter, !accounts.is_empty())? {
                accounts.entry(account.name.clone()).or_insert(account);
            }
        }
        Ok(accounts)
    }

    /// The accounts of a run, where all of them say what was spent with their keys; `None` where one does not.
    pub(crate) fn accounts_that_tell(&self, spec: &RunSpec) -> Option<Vec<(registry::Account, SpentAt)>> {
        let accounts = self.accounts_of(spec).ok()?.into_values();
        let tells = |account: registry::Account| {
            let told = self.settings.accounts.get(&account.name)?.spent.as_deref()?;
            Some((account, SpentAt::named(told)?))
        };
        accounts.map(tells).collect::<Option<Vec<_>>>().filter(|accounts| !accounts.is_empty())
    }

    /// The accounts that a memory system's own calls may go to: those that the run names, and those of the providers' names.
    /// `others`: the run's own models have some, which serve where there are none of these.
    ///
    /// # Errors
    /// Exit 2 for one that is named and cannot be used, and where there is none at all.
    fn meter_accounts(&self, meter: &MeterPlan, others: bool) -> Result<Vec<registry::Account>, CliError> {
        let mut usable = bench_worker::environment::usable_accounts(&self.settings);
        for (wire, name) in &meter.accounts {
            if !usable.contains_key(name) {
                let known = usable.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(CliError::usage(format!(
                    "--meter-account {wire}={name}: no account of this name has a base URL and a key; usable are: {known}"
                )));
            }
        }
        usable.retain(|name, _| METERED.contains(&name.as_str()) || meter.accounts.values().any(|named| named == name));
        if usable.is_empty() && !others {
            return Err(CliError::usage(
                "--meter: there is no account that the memory system's calls could go to: set OPENAI_API_KEY (and OPENAI_BASE_URL for \
                 another server) or ANTHROPIC_API_KEY",
            ));
        }
        Ok(usable.into_values().collect())
    }

    /// Checks before anything is made that a metered run has somewhere to send calls to. In a cluster the keys are with the workers.
    ///
    /// # Errors
    /// As [`App::check_run_accounts`].
    pub(crate) fn check_meter(&self, meter: &MeterPlan, others: bool) -> Result<(), CliError> {
        if self.deployment()? == Deployment::Cluster {
            return Ok(());
        }
        self.meter_accounts(meter, others).map(drop)
    }

    /// Whether a key for OpenAI's own servers is set.
    #[must_use]
    pub(crate) fn has_openai_key(&self) -> bool {
        matches!(self.settings.account_of(ModelRole::Answerer).key, ApiKey::Set(..))
    }
}

/// What to do about a missing key.
fn missing_key(account: &Account, role: ModelRole) -> String {
    let own = format!("BENCH_{}_API_KEY", role.name().to_uppercase());
    match &account.key {
        ApiKey::Missing(why) => format!("account '{}' needs a key, but {why}; set it, or {own}", account.name),
        ApiKey::None | ApiKey::Set(..) => {
            format!("account '{}' needs a key; set {own}, or accounts.{}.api_key_env", account.name, account.name)
        }
    }
}
