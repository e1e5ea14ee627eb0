//! `systems list`: memory systems and what they can do.

use bench_worker::systems::{BuildContext, registry};
use serde_json::json;

use crate::{
    cli::SystemsVerb,
    exit::{CliError, CliResult, Exit},
    out,
    tables::{render, table},
};

/// Runs the verb.
pub(super) fn run(verb: &SystemsVerb) -> CliResult {
    let SystemsVerb::List { json } = verb;
    let systems: Vec<_> = registry::list(&BuildContext::default())
        .into_iter()
        .map(|info| info.capabilities.map(|capabilities| (info.entry, capabilities)))
        .collect::<Result<_, _>>()
        .map_err(|e| CliError::infrastructure(e.to_string()))?;
    if *json {
        let rows: Vec<_> = systems
            .iter()
            .map(|(entry, c)| {
                json!({
                    "name": entry.name, "description": entry.description, "version": c.version, "max_k": c.max_k,
                    "ordered": c.ordered, "event_times": c.event_times, "proves_ready": c.proves_ready,
                    "max_parallel": c.max_parallel, "control": c.sees_gold || c.empty_by_design,
                    "settings": entry.settings.iter().map(|s| s.name).collect::<Vec<_>>(),
                })
            })
            .collect();
        out::json(&rows);
        return Ok(Exit::Done);
    }
    let mut table = table(["system", "largest k", "event times", "proves ready", "what it is"]);
    let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
    for (entry, c) in &systems {
        let largest =
            if c.ignores_k { "-".to_owned() } else { c.max_k.map_or_else(|| "any".to_owned(), |k| k.to_string()) };
        table.add_row([
            entry.name.to_owned(),
            largest,
            yes(c.event_times),
            yes(c.proves_ready),
            entry.description.to_owned(),
        ]);
    }
    out::result(&render(&table));
    Ok(Exit::Done)
}
