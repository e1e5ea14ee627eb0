//! Which routes a run needs for what, read from its spec alone.

use std::collections::{BTreeMap, BTreeSet};

use bench_models::routes::Needs;
use bench_proto::{
    ids::Role,
    outage::{Operation, RouteKey, RouteKind},
    redact,
    spec::{IMPORTED_SYSTEM, RunSpec, SystemSpec},
};
use bench_systems::{adapter, facts, vector};

/// The route of an operation of a run's memory server, whose address is shown without what may be a key; `None` for systems of this
/// process, and for those that it starts itself: what goes wrong with them is its own matter.
#[must_use]
pub fn memory_route(system: &SystemSpec, operation: Operation) -> Option<RouteKey> {
    if system.version == IMPORTED_SYSTEM {
        return None;
    }
    let given = adapter::server_of(&system.settings)?;
    let shown = redact::identity(given);
    // an address that a variable fills in is none yet; what stands before an `@` in it may be a key all the same
    let is_open = given.contains("${") && !given.contains('@') && shown.starts_with(redact::HIDDEN);
    let place = if is_open { given.to_owned() } else { shown };
    Some(RouteKey::Memory { operation, place, system: system.name.clone() })
}

fn of_model(kind: RouteKind, account: &str, model: &str) -> RouteKey {
    RouteKey::Model { kind, account: account.to_owned(), model: model.to_owned() }
}

/// What each role needs of routes to work on a run: any of the routes in a list is enough.
#[must_use]
pub fn needs(spec: &RunSpec) -> Needs {
    let mut needs: Needs = BTreeMap::new();
    if let Some(model) = vector::remote_model(&spec.system.name, &spec.system.settings) {
        let key = of_model(RouteKind::Embeddings, &model.account, &model.name);
        if vector::embeds_banks(&spec.system.settings) {
            needs.entry(Role::Retain).or_default().push(vec![key.clone()]);
        }
        needs.entry(Role::Question).or_default().push(vec![key]);
    }
    if let Some(key) = facts::chat_model(&spec.system.name, &spec.system.settings).and_then(|model| model.chat_route())
    {
        // what was noted is read back from the store
        needs.entry(Role::Retain).or_default().push(vec![key]);
    }
    let answers = spec.answerer.provider == "system";
    for (role, operation, is_needed) in [
        (Role::Retain, Operation::Retain, true),
        // also what only waits in this role is held back: nothing can be asked of a bank that is not ready
        (Role::Retain, Operation::Ready, true),
        (Role::Question, Operation::Recall, adapter::searches(&spec.system.settings)),
        (Role::Question, Operation::Answer, answers),
    ] {
        if let Some(key) = memory_route(&spec.system, operation).filter(|_| is_needed) {
            needs.entry(role).or_default().push(vec![key]);
        }
    }
    if let Some(key) = spec.answerer.chat_route().filter(|_| spec.taken_over.answers_of.is_none()) {
        needs.entry(Role::Question).or_default().push(vec![key]);
    }
    let judges = spec.judge_routes();
    if !judges.is_empty() && judges.len() == spec.judges.len() {
        needs.entry(Role::Judge).or_default().push(judges);
    }
    needs
}

/// All routes that a run may use.
#[must_use]
pub fn routes_of(spec: &RunSpec) -> BTreeSet<RouteKey> {
    needs(spec).into_values().flatten().flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(adapter: &Value, url: Option<&str>, answerer: &str) -> RunSpec {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../proto/golden/run_spec.v1.json")).expect("the golden file reads");
        spec.system.name = "mine".to_owned();
        spec.system.settings = [(adapter::ADAPTER.to_owned(), adapter.clone())].into();
        spec.system.settings.extend(url.map(|url| (adapter::URL.to_owned(), url.into())));
        spec.answerer.provider = answerer.to_owned();
        spec.judges.clear();
        spec
    }

    fn shown(spec: &RunSpec) -> Vec<String> {
        let of_role = |(role, lists): (Role, Vec<Vec<RouteKey>>)| {
            lists.into_iter().flatten().map(move |key| format!("{role}: {key}")).collect::<Vec<_>>()
        };
        needs(spec).into_iter().flat_map(of_role).collect()
    }

    #[test]
    fn p39_a_run_needs_the_operations_of_its_memory_server_at_the_place_that_it_names() {
        let mine = json!({"name": "mine", "url": "${env:MINE_URL}", "recall": {"request": "POST /search"}});
        let all = ["retain: mine (retain at X)", "retain: mine (ready at X)", "question: mine (recall at X)"];
        let at = |place: &str| all.map(|key| key.replace('X', place));
        assert_eq!(shown(&run(&mine, None, "extractive")), at("${env:MINE_URL}"));
        assert_eq!(shown(&run(&mine, Some("http://127.0.0.1:9"), "extractive")), at("http://127.0.0.1:9"));
        let answers = shown(&run(&json!({"name": "mine", "url": "http://m"}), None, "system"));
        assert_eq!(
            answers.last().map(String::as_str),
            Some("question: mine (answer at http://m)"),
            "nothing is searched"
        );
        assert!(!answers.iter().any(|key| key.contains("recall")), "{answers:?}");
        let model = shown(&run(&mine, None, "openai"));
        assert_eq!(model.last().map(String::as_str), Some("question: gpt-4o-mini (account openai)"));
    }

    #[test]
    fn a_route_shows_no_part_of_an_address_that_may_be_a_key() {
        let mine = json!({"name": "mine", "recall": {"request": "POST /search"}});
        let place = |url: &str| match memory_route(&run(&mine, Some(url), "extractive").system, Operation::Recall) {
            Some(RouteKey::Memory { place, .. }) => place,
            other => panic!("no memory server: {other:?}"),
        };
        for secret in ["9f86d081884c4d63a5b1bd2f1e2c7a10", "sk-opensesame456789012"] {
            let shown = place(&format!("http://h/{secret}/v1"));
            assert!(shown.starts_with("http://h/***/v1") && !shown.contains(secret), "{shown}");
        }
        assert_ne!(place("http://h/9f86d081884c4d63a5b1bd2f1e2c7a10/v1"), place("http://h/9f86d081884c4d63/v1"));
        assert_eq!(place("http://u:opensesame@${env:MINE_HOST}:8/v1"), redact::HIDDEN);
        assert_eq!(place("${env:MINE_URL:-http://h:8}"), "${env:MINE_URL:-http://h:8}");
        assert_eq!(place("https://mem.example/${env:TENANT}/v1"), "https://mem.example/${env:TENANT}/v1");
    }

    #[test]
    fn p39_what_a_process_starts_itself_is_no_route_of_a_run() {
        let start = json!({"command": ["mine", "{port}"]});
        for own in [json!({"name": "mine", "start": start}), json!({"name": "mine", "command": ["mine"]})] {
            assert_eq!(shown(&run(&own, None, "extractive")), [] as [&str; 0], "{own}");
        }
        let elsewhere = run(&json!({"name": "mine", "start": start}), Some("http://m"), "extractive");
        assert!(!shown(&elsewhere).is_empty(), "it is not started then");
        let mut imported = elsewhere;
        imported.system.version = IMPORTED_SYSTEM.to_owned();
        assert_eq!(shown(&imported), [] as [&str; 0], "nothing is asked of it");
    }
}
