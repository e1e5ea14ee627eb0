//! Judgements that the lineage of a fork has paid for already: the calls that its judges will make are looked for in the call
//! store by their keys (P9), and what is found is not paid again.
//!
//! Of a vote only the calls are looked for that rest on no reply. Where those are stored, the others are too, since a vote that has
//! ended has made them all.

use std::collections::HashSet;

use bench_grading::judging::{Next, Replies, keys::Case};
use bench_models::{
    call_key::call_key,
    openai::{HttpSettings, SharedHttp},
    registry,
};
use bench_proto::{
    call::CacheScope,
    dataset::Question,
    ids::Sha256Hash,
    spec::{ModelSpec, RunSpec},
};
use bench_settings::ModelRole;
use bench_store::{PaceLimits, Store};
use bench_worker::judge::judge_request;

use crate::{
    app::{App, Deployment},
    exit::CliError,
};

/// Keys that are looked for at once.
const AT_ONCE: usize = 1_000;

/// The calls of the votes of a fork whose answers are there.
pub(super) struct KnownVotes<'a> {
    spec: &'a RunSpec,
    judges: Vec<Asked>,
    /// Who carries the run out may call another server by the name of an account.
    is_sure: bool,
}

/// The calls of a judge.
struct Asked {
    /// Endpoint and account; none where they are not known here.
    whom: Option<(String, String)>,
    keys: Vec<Sha256Hash>,
}

/// What is known of the calls of a fork's judges.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownCalls {
    /// Of each judge: how many of so many calls are stored.
    pub(crate) stored: Vec<(u64, u64)>,
    /// More may be stored than can be seen from here.
    pub(crate) at_most: bool,
}

impl<'a> KnownVotes<'a> {
    /// Of the judges of a fork; nothing yet.
    pub(super) fn of_fork(app: &App, spec: &'a RunSpec) -> Self {
        let http = SharedHttp::new(HttpSettings::default()).ok();
        let asked = |judge| Asked { whom: http.as_ref().and_then(|http| whom(app, judge, http)), keys: Vec::new() };
        let is_sure = app.deployment().is_ok_and(|deployment| deployment == Deployment::Local);
        Self { spec, judges: spec.judges.iter().map(asked).collect(), is_sure }
    }

    /// Adds the votes on an answer.
    pub(super) fn add(&mut self, case: &Case<'_>, question: &Question) {
        let Next::Ask(calls) = case.next(&Replies::new()) else { return };
        let (id, spec) = (question.question_id.as_str(), self.spec);
        for (no, (judge, asked)) in (0..).zip(spec.judges.iter().zip(&mut self.judges)) {
            let Some((endpoint, account)) = &asked.whom else { continue };
            let sample = spec.judging.samples.iter().find(|sample| sample.judge == no);
            if sample.is_some_and(|sample| !sample.holds(&question.category, id)) {
                continue;
            }
            for vote in 0..spec.votes.max(1) {
                asked.keys.extend(calls.iter().map(|call| {
                    let request = judge_request(judge, call, id, vote);
                    call_key(endpoint, account, &judge.name, &request, id, vote)
                }));
            }
        }
    }

    /// Looks for them among the calls of a lineage, and of all runs where the fork shares calls.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn look_up(self, store: &dyn Store, lineage: &str) -> Result<KnownCalls, CliError> {
        let sees_all = self.is_sure && self.judges.iter().all(|asked| asked.whom.is_some());
        let mut stored = Vec::with_capacity(self.judges.len());
        for asked in &self.judges {
            let mut found = HashSet::new();
            for keys in asked.keys.chunks(AT_ONCE) {
                found.extend(store.find_calls(lineage, keys).await?.iter().map(|call| call.record.key));
                if self.spec.limits.cache == CacheScope::Shared {
                    let others: Vec<Sha256Hash> = keys.iter().copied().filter(|key| !found.contains(key)).collect();
                    found.extend(store.find_shared_calls(&others).await?.iter().map(|call| call.record.key));
                }
            }
            let known = asked.keys.iter().filter(|key| found.contains(*key)).count();
            stored.push((known as u64, asked.keys.len() as u64));
        }
        let at_most = !sees_all && store.call_count(lineage).await? > 0;
        Ok(KnownCalls { stored, at_most })
    }
}

/// The endpoint of a judge and the name of its account, as they stand in keys; none where this process could not call it.
fn whom(app: &App, judge: &ModelSpec, http: &SharedHttp) -> Option<(String, String)> {
    let account = app.settings().account_for(ModelRole::Judge, &judge.provider);
    let account = registry::Account {
        name: account.name.clone(),
        base_url: account.base_url.clone()?,
        key: account.key.secret().cloned(),
        limits: PaceLimits::default(),
        counts_used_tokens: false,
    };
    let model = registry::build_chat(&judge.provider, &judge.name, &account, http).ok()?;
    Some((model.endpoint().to_owned(), account.name))
}
