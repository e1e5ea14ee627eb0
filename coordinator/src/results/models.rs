//! Where the models of a run were: its settings, and what workers noted of replies.

use std::collections::{BTreeMap, BTreeSet};

use bench_grading::judging;
use bench_proto::{
    call::Phase,
    served::ServedNote,
    spec::{ModelSpec, RunSpec},
    summary::{LABEL_OFFICIAL_JUDGE, ModelSummary, PromptText, ServedModel, Summary},
};
use bench_store::{RunEvent, SERVED_EVENT};
use bench_systems::{facts, vector::remote_model};
use serde_json::Value;

/// Fills in the models and the prompts' texts.
pub(super) fn fill(summary: &mut Summary, spec: &RunSpec, events: &[RunEvent]) {
    let notes = served(events);
    let models = models(spec, &notes);
    summary.warnings.extend(models.iter().filter_map(several));
    summary.models = Some(models);
    if !spec.judges.is_empty() && judging::official::is_official(&spec.dataset.profile) {
        summary.labels.push(LABEL_OFFICIAL_JUDGE.to_owned());
    }
    let known = judging::texts(&spec.dataset.profile);
    for (name, sha256) in &summary.spec.prompts {
        // the text of a hash that this build has no prompt for is not known
        let text = known.get(sha256).map(|of| PromptText { system: of.system.clone(), user: of.user.clone() });
        summary.spec.prompt_texts.insert(name.clone(), text);
    }
}

/// What workers noted of replies, among all events of a run.
pub(crate) fn served(events: &[RunEvent]) -> Vec<ServedNote> {
    RunEvent::notes(events, SERVED_EVENT).collect()
}

fn models(spec: &RunSpec, notes: &[ServedNote]) -> Vec<ModelSummary> {
    let judges = spec.judge_plan().metrics;
    let judges = judges.into_iter().zip(&spec.judges).map(|(role, judge)| (role, Phase::Judge, judge));
    let chats = std::iter::once(("answerer".to_owned(), Phase::Answer, &spec.answerer)).chain(judges);
    let mut models: Vec<ModelSummary> = chats
        .filter(|(_, _, model)| model.is_remote())
        .map(|(role, phase, model)| {
            let ModelSpec { name, account, params, .. } = model;
            let is_of = |note: &&ServedNote| (note.phase, &note.account, &note.model) == (phase, account, name);
            summary_of(role, model.display(), params.clone(), notes.iter().filter(is_of))
        })
        .collect();
    if let Some(embeddings) = remote_model(&spec.system.name, &spec.system.settings) {
        let of_embeddings = |phase| matches!(phase, Phase::Retain | Phase::Recall);
        let is_of = |note: &&ServedNote| of_embeddings(note.phase) && note.model == embeddings.name;
        let model = format!("{}:{}", embeddings.account, embeddings.name);
        models.push(summary_of("embeddings".to_owned(), model, BTreeMap::new(), notes.iter().filter(is_of)));
    }
    if let Some(model) = facts::chat_model(&spec.system.name, &spec.system.settings) {
        let of_system = |phase| matches!(phase, Phase::Retain | Phase::Recall);
        // rephrasings are the answerer's
        let is_of =
            |note: &&ServedNote| of_system(note.phase) && note.model == model.name && note.account == model.account;
        let params = model.params.clone();
        models.push(summary_of("facts".to_owned(), model.display(), params, notes.iter().filter(is_of)));
    }
    models
}

/// A warning where one model has become another during the run.
fn several(model: &ModelSummary) -> Option<String> {
    let names: BTreeSet<&str> = model.served.iter().flatten().filter_map(|served| served.model.as_deref()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    (names.len() > 1)
        .then(|| format!("{} was not one model: replies of {} name {}", model.role, model.model, names.join(", ")))
}

fn summary_of<'n>(
    role: String,
    model: String,
    params: BTreeMap<String, Value>,
    notes: impl Iterator<Item = &'n ServedNote>,
) -> ModelSummary {
    let (mut servers, mut served, mut is_known) = (Vec::new(), Vec::new(), false);
    let mut add_new = |note: &ServedNote| {
        is_known = true;
        let server = note.server.as_ref().map(ToString::to_string);
        servers.extend(server.filter(|server| !servers.contains(server)));
        let names = &note.served;
        let names = ServedModel {
            model: Some(names.model.clone()).filter(|name| !name.is_empty()),
            system_fingerprint: names.fingerprint.clone(),
        };
        if !served.contains(&names) {
            served.push(names);
        }
    };
    notes.for_each(&mut add_new);
    ModelSummary { role, model, params, servers: is_known.then_some(servers), served: is_known.then_some(served) }
}

#[cfg(test)]
mod tests {
    use bench_proto::step::Served;

    use super::*;

    fn spec() -> RunSpec {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        let judge =
            ModelSpec { provider: "openai".into(), name: "m".into(), account: "a".into(), ..spec.answerer.clone() };
        spec.answerer = ModelSpec { params: BTreeMap::from([("seed".to_owned(), Value::from(7))]), ..judge.clone() };
        spec.judges = vec![judge.clone(), ModelSpec { name: "other".into(), ..judge }];
        spec
    }

    fn note(phase: Phase, model: &str, served: &str, port: Option<u16>) -> ServedNote {
        let server = port.map(|port| ("api.example".to_owned(), port).into());
        ServedNote {
            phase,
            account: "a".into(),
            model: model.into(),
            server,
            served: Served::named(served, Some("fp")),
        }
    }

    #[test]
    fn each_role_has_what_answered_it_and_null_where_nobody_knows() {
        let notes = [
            note(Phase::Judge, "m", "m-1", Some(443)),
            note(Phase::Judge, "m", "m-2", Some(8443)),
            note(Phase::Judge, "m", "m-1", Some(443)),
            note(Phase::Answer, "m", "", None),
        ];
        let models = models(&spec(), &notes);
        let [answerer, judge, second] = &models[..] else { panic!("three roles: {models:?}") };
        let served = |model: Option<&str>| ServedModel {
            model: model.map(str::to_owned),
            system_fingerprint: Some("fp".to_owned()),
        };
        assert_eq!((answerer.role.as_str(), answerer.params["seed"].as_u64()), ("answerer", Some(7)));
        assert_eq!(answerer.servers, Some(vec![]), "all of it came from the call store");
        assert_eq!(answerer.served, Some(vec![served(None)]));
        assert_eq!(judge.servers, Some(vec!["api.example:443".to_owned(), "api.example:8443".to_owned()]));
        assert_eq!(judge.served, Some(vec![served(Some("m-1")), served(Some("m-2"))]));
        assert_eq!((second.role.as_str(), &second.servers, &second.served), ("judge-2", &None, &None));
        let warned = several(judge).expect("a warning");
        assert_eq!(warned, "judge was not one model: replies of openai:m name m-1, m-2");
        assert_eq!((several(answerer), several(second)), (None, None));
    }

    #[test]
    fn an_embedding_model_of_a_server_is_a_model_too() {
        let mut spec = spec();
        spec.system.name = "vector".into();
        spec.system.settings = BTreeMap::from([("vector.model".to_owned(), "e".into())]);
        let models_of =
            |spec: &RunSpec| models(spec, &[note(Phase::Retain, "e", "e-1", Some(1))]).pop().expect("models");
        assert_eq!((models_of(&spec).role.as_str(), models_of(&spec).model.as_str()), ("embeddings", "openai:e"));
        assert_eq!(models_of(&spec).servers, Some(vec!["api.example:1".to_owned()]));
        spec.system.settings.insert("vector.model".to_owned(), "hash".into());
        assert_eq!(models_of(&spec).role, "judge-2", "this one is at home");
    }
}
