//! What a system that is a process can do, as its adapter file says: nothing is started, and nothing of HTTP may stand in it.

use std::time::Duration;

use bench_proto::dataset::FilterParts;

use crate::{
    Capabilities,
    adapter::{
        code, file,
        spec::{AdapterSpec, CodeSpec, FilterName, ReadyRule, Unit},
        time,
    },
};

/// The last resort against an operation that hangs is no shorter.
const LEAST_DEADLINE: Duration = Duration::from_secs(3600);

pub(in super::super) fn capabilities(spec: &AdapterSpec) -> Result<Capabilities, String> {
    let http = [
        ("url", spec.url.is_some()),
        ("start", spec.start.is_some()),
        ("retain", spec.retain.is_some()),
        ("update", spec.update.is_some()),
        ("forget", spec.forget.is_some()),
        ("recall", spec.recall.is_some()),
        ("item", spec.item.is_some()),
        ("undated", spec.undated.is_some()),
        ("places", spec.places.is_some()),
        ("list", spec.list.is_some()),
        ("export", spec.export.is_some()),
        ("import", spec.import.is_some()),
        ("mcp", spec.mcp.is_some()),
    ];
    if let Some((field, _)) = http.iter().find(|(_, given)| *given) {
        return Err(format!("{field}: a system with `command` is asked over stdin, not over HTTP"));
    }
    if spec.command.as_ref().is_none_or(Vec::is_empty) {
        return Err("command: give a program and its arguments".to_owned());
    }
    spec.code.as_ref().map_or(Ok(()), code::check)?;
    let filters = filters(&spec.can.filters);
    let timeout = spec.timeout.as_deref().and_then(|text| time::parse(text).ok()).unwrap_or_default();
    Ok(Capabilities {
        version: format!("{}+{}", spec.version, file::fingerprint(spec)),
        updates: spec.can.updates || spec.can.withdraws,
        withdraws: spec.can.withdraws,
        filters,
        answer_filters: filters,
        max_k: spec.limits.max_k,
        // what a new process is given again it is given as it was the first time: entry by entry
        max_batch: if spec.can.survives_restart { batch_of(spec) } else { 1 },
        ordered: spec.can.order,
        retain_idempotent: spec.can.repeat,
        recall_mutates: spec.can.learns_from_recall,
        event_times: spec.can.times,
        proves_ready: spec.ready.when != ReadyRule::Promised,
        max_parallel: spec.limits.parallel,
        one_at_a_time: spec.code.as_ref().is_some_and(does_one_thing),
        remote: true,
        opens: true,
        asked_ready: true,
        token_budget: spec.can.token_budget,
        banks: spec.can.banks,
        stores_turns: spec.unit == Unit::Turn,
        // the process says what it cannot do
        consolidates: true,
        answers: true,
        verifies: true,
        lists: spec.can.lists,
        // what it allows one operation, with the start of its process before it
        deadline: Some(timeout.saturating_mul(2).max(LEAST_DEADLINE)),
        from_items: false,
        ..Capabilities::from_items("")
    })
}

/// Whether a class does one thing at a time, in one process.
fn does_one_thing(code: &CodeSpec) -> bool {
    code.at_once == Some(1) && code.processes.unwrap_or(1) == 1
}

/// Items of a request.
pub(super) fn batch_of(spec: &AdapterSpec) -> u32 {
    spec.limits.batch.unwrap_or(64).clamp(1, 1024)
}

/// The parts of a filter that a file names.
fn filters(names: &[FilterName]) -> FilterParts {
    let has = |name| names.contains(&name);
    FilterParts {
        tags: has(FilterName::Tags),
        user: has(FilterName::User),
        scope: has(FilterName::Scope) || has(FilterName::Scopes),
        scopes: has(FilterName::Scopes),
        from: has(FilterName::From),
        until: has(FilterName::Until),
    }
}
