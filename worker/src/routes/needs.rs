//! Which routes a run needs for what, read from its spec alone.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    ids::Role,
    outage::{Operation, RouteKey, RouteKind},
    spec::{IMPORTED_SYSTEM, ModelSpec, RunSpec, SystemSpec},
};

use crate::systems::{adapter, vector};

/// The route of a model's chats; `None` for what needs no server.
#[must_use]
pub fn chat_route(model: &ModelSpec) -> Option<RouteKey> {
    model.is_remote().then(|| of_model(RouteKind::Chat, &model.account, &model.name))
}

/// The route of an operation of a run's memory server; `None` for systems of this process, and for those that it starts itself:
/// what goes wrong with them is its own matter.
#[must_use]
pub fn memory_route(system: &SystemSpec, operation: Operation) -> Option<RouteKey> {
    if system.version == IMPORTED_SYSTEM {
        return None;
    }
    let place = adapter::server_of(&system.settings)?.to_owned();
    Some(RouteKey::Memory { operation, place, system: system.name.clone() })
}

fn of_model(kind: RouteKind, account: &str, model: &str) -> RouteKey {
    RouteKey::Model { kind, account: account.to_owned(), model: model.to_owned() }
}

/// What each role needs of routes to work on a run: any of the routes in a list is enough.
#[must_use]
pub fn needs(spec: &RunSpec) -> BTreeMap<Role, Vec<Vec<RouteKey>>> {
    let mut needs: BTreeMap<Role, Vec<Vec<RouteKey>>> = BTreeMap::new();
    if let Some(model) = vector::remote_model(&spec.system.name, &spec.system.settings) {
        let key = of_model(RouteKind::Embeddings, &model.account, &model.name);
        needs.entry(Role::Retain).or_default().push(vec![key.clone()]);
        needs.entry(Role::Question).or_default().push(vec![key]);
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
    if let Some(key) = chat_route(&spec.answerer) {
        needs.entry(Role::Question).or_default().push(vec![key]);
    }
    let judges: Vec<RouteKey> = spec.judges.iter().filter_map(chat_route).collect();
    if !judges.is_empty() && judges.len() == spec.judges.len() {
        needs.entry(Role::Judge).or_default().push(judges);
    }
    needs
}

/// Roles of a run that can do nothing while the routes in `closed` are.
#[must_use]
pub fn stopped_roles(needs: &BTreeMap<Role, Vec<Vec<RouteKey>>>, closed: impl Fn(&RouteKey) -> bool) -> BTreeSet<Role> {
    let stopped = |lists: &Vec<Vec<RouteKey>>| lists.iter().any(|any_of| any_of.iter().all(&closed));
    needs.iter().filter(|(_, lists)| stopped(lists)).map(|(role, _)| *role).collect()
}

/// All routes that a run may use.
#[must_use]
pub fn routes_of(spec: &RunSpec) -> BTreeSet<RouteKey> {
    needs(spec).into_values().flatten().flatten().collect()
}
