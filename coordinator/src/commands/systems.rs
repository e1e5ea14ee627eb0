//! `systems list`: memory systems and what they can do.

use bench_worker::systems::registry;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;

use crate::{
    cli::SystemsVerb,
    exit::{CliResult, Exit},
    out,
};

/// Runs the verb.
pub fn run(verb: &SystemsVerb) -> CliResult {
    let SystemsVerb::List { json } = verb;
    let systems = registry::list(&registry::BuildContext::default());
    if *json {
        let rows: Vec<_> = systems
            .iter()
            .map(|s| {
                json!({
                    "name": s.name, "description": s.description, "version": s.capabilities.version,
                    "max_k": s.capabilities.max_k, "ordered": s.capabilities.ordered,
                    "event_times": s.capabilities.event_times, "proves_ready": s.capabilities.proves_ready,
                    "max_parallel": s.capabilities.max_parallel, "control": s.capabilities.sees_gold || s.capabilities.empty_by_design,
                })
            })
            .collect();
        out::json(&rows);
        return Ok(Exit::Done);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["system", "largest k", "event times", "proves ready", "what it is"]);
    let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
    for s in &systems {
        let largest = if s.capabilities.ignores_k { "-".to_owned() } else { s.capabilities.max_k.map_or_else(|| "any".to_owned(), |k| k.to_string()) };
        table.add_row([s.name.to_owned(), largest, yes(s.capabilities.event_times), yes(s.capabilities.proves_ready), s.description.to_owned()]);
    }
    out::result(&table.to_string());
    Ok(Exit::Done)
}
