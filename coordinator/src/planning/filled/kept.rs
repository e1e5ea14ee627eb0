//! Whether banks that one run fills are what another may ask: which memory systems keep them, and which runs fill the same.

use std::collections::BTreeSet;

use bench_proto::spec::RunSpec;
use bench_systems::{Capabilities, adapter};

use super::super::PlannedRun;
use crate::{cli::SubmitArgs, exit::CliError};

/// Whether runs that are created together may share what the first of them fills: whoever creates them writes the plans of the others
/// as it goes, and does not leave before.
#[must_use]
pub(crate) fn shares_banks(args: &SubmitArgs, planned: &PlannedRun) -> bool {
    let (spec, capabilities) = (&planned.spec, &planned.capabilities);
    let is_free = !args.repeat_ingest && !spec.taken_over.asks_filled_banks();
    is_free && !args.detach && !capabilities.from_items && why_not_kept(spec, capabilities).is_none()
}

/// Whether two runs that share banks fill the same ones.
#[must_use]
pub(crate) fn fills_the_same(a: &RunSpec, b: &RunSpec) -> bool {
    let same_sessions = a.sample.max_sessions == b.sample.max_sessions && a.sample.banks == b.sample.banks;
    differs(a, b).is_none() && a.dataset.sha256 == b.dataset.sha256 && same_sessions && a.canaries == b.canaries
}

/// Why no other run may ask the banks that a run fills; `None` where one may.
#[must_use]
pub(crate) fn why_not_kept(spec: &RunSpec, capabilities: &Capabilities) -> Option<&'static str> {
    if capabilities.recall_mutates {
        return Some("a recall changes its banks, so that what one run leaves is not what the next would have filled");
    }
    let is_the_runs =
        "it is started for each run, or keeps the banks of each run apart; a server that stays is given by its `url`";
    adapter::server_of(&spec.system.settings).is_none().then_some(is_the_runs)
}

/// Refuses to ask filled banks of a memory system whose banks do not outlive a run, or change when they are asked.
///
/// # Errors
/// Exit 2 with the reason; `flag` is what asked for it.
pub(crate) fn check_kept(spec: &RunSpec, capabilities: &Capabilities, flag: &str) -> Result<(), CliError> {
    match why_not_kept(spec, capabilities) {
        None => Ok(()),
        Some(why) => {
            let name = &spec.system.name;
            Err(CliError::usage(format!("{flag}: {name} keeps no banks from one run to the next: {why}")))
        }
    }
}

/// How a run begins with what an earlier one has filled where the memory system is started for each run; `None` where its files are
/// those of a server of somebody else's, or nobody knows where they lie.
pub(super) fn archived_instead(spec: &RunSpec) -> Option<&'static str> {
    let file = spec.system.settings.get(adapter::ADAPTER)?;
    let is_said = |pointer: &str| file.pointer(pointer).is_some_and(|value| !value.is_null());
    (is_said("/start") || is_said("/mcp/command")).then_some(
        "`bench-coord banks export RUN` writes what such a run has filled into a file, `bench-coord banks import FILE --name NAME` keeps \
         it here, and `--banks-from NAME` starts the system on a copy of it",
    )
}

/// What of a run that filled banks makes them others than this one's, beside what they were given.
pub(super) fn differs(filler: &RunSpec, spec: &RunSpec) -> Option<String> {
    if filler.dataset.name != spec.dataset.name {
        return Some(format!("dataset, {}", filler.dataset.name));
    }
    let (a, b) = (&filler.system.settings, &spec.system.settings);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let other = names.into_iter().find(|name| name.as_str() != adapter::ADAPTER && a.get(*name) != b.get(*name));
    match other {
        Some(name) => Some(format!("value of {name}")),
        // settings are a part of the version, and say more
        None => (filler.system.version != spec.system.version)
            .then(|| "version of the system or of its adapter file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use bench_systems::SystemSettings;
    use serde_json::{Value, json};

    use super::*;

    fn kept(adapter: Option<Value>, url: Option<&str>, capabilities: &Capabilities) -> Result<(), String> {
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../../proto/golden/run_spec.v1.json")).expect("a spec");
        (spec.system.name, spec.system.settings) = ("mine".to_owned(), SystemSettings::new());
        spec.system.settings.extend(adapter.map(|adapter| (adapter::ADAPTER.to_owned(), adapter)));
        spec.system.settings.extend(url.map(|url| (adapter::URL.to_owned(), json!(url))));
        check_kept(&spec, capabilities, "--reuse-banks").map_err(|error| error.message)
    }

    #[test]
    fn only_banks_of_a_server_that_stays_are_asked_by_another_run() {
        let can = Capabilities { from_items: false, ..Capabilities::from_items("1") };
        let start = json!({ "start": { "command": ["mine"] } });
        for (stays, adapter, url) in [
            (true, Some(json!({ "url": "http://mine" })), None),
            (true, Some(json!({ "mcp": { "url": "http://mine" } })), None),
            (true, Some(start.clone()), Some("http://mine")),
            (false, Some(start), None),
            (false, Some(json!({ "command": ["python3", "mine.py"] })), None),
            (false, Some(json!({ "mcp": { "command": ["mine"] } })), None),
            (false, None, None),
        ] {
            assert_eq!(kept(adapter.clone(), url, &can).is_ok(), stays, "{adapter:?} {url:?}");
        }
        let mut spec: RunSpec =
            serde_json::from_str(include_str!("../../../../proto/golden/run_spec.v1.json")).expect("a spec");
        for (adapter, has_a_way) in [
            (json!({ "start": { "command": ["mine"] } }), true),
            (json!({ "mcp": { "command": ["mine"] } }), true),
            (json!({ "command": ["python3", "mine.py"], "start": null }), false),
        ] {
            spec.system.settings.insert(adapter::ADAPTER.to_owned(), adapter);
            let way = archived_instead(&spec);
            assert_eq!(way.is_some_and(|way| way.contains("banks export") && way.contains("--banks-from")), has_a_way);
        }
        let learns = Capabilities { recall_mutates: true, ..can };
        let refused = kept(Some(json!({ "url": "http://mine" })), None, &learns).expect_err("is refused");
        assert!(refused.contains("--reuse-banks: mine") && refused.contains("a recall changes its banks"), "{refused}");
    }
}
