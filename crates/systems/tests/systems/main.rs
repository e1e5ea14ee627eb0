//! Adapters against systems made from their contracts, against recorded exchanges, and a process of the user's own.

mod at_hand;
mod batches;
mod chance;
mod changes;
mod cheats;
mod check_faults;
mod contracts;
mod handed_on;
mod hosted;
mod letters;
mod listing;
mod process;
mod recorded;
mod robust;
mod schema;
mod started;
mod traps;

use std::sync::Arc;

use bench_systems::{
    BuildContext, MemorySystem, SystemSettings, adapter,
    check::{self, Form, Outcome, Step, Told},
    policy::Policy,
    registry,
};
use bench_testkit::fakes::Fake;

/// The shipped adapter of a name, pointed at a URL, with changes to its text.
fn system(name: &str, url: &str, changes: &[(&str, &str)]) -> Arc<dyn MemorySystem> {
    let (_, text) = adapter::shipped::SHIPPED.iter().find(|(shipped, _)| *shipped == name).expect("is shipped");
    let text = changes.iter().fold((*text).to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{name} has no '{from}'");
        text.replace(from, to)
    });
    of_text(&text, Some(url))
}

/// Shipped adapters whose requests are sent; those that call tools are tested with the servers that have these.
fn over_http() -> impl Iterator<Item = &'static str> {
    adapter::shipped::SHIPPED.iter().filter(|(_, text)| !text.contains("\nmcp: ")).map(|(name, _)| *name)
}

fn of_text(text: &str, url: Option<&str>) -> Arc<dyn MemorySystem> {
    let mut spec = adapter::file::parse(text).expect("the adapter reads");
    if url.is_some() {
        // the fakes stand for systems that somebody else has started
        spec.start = None;
    }
    let adapter = serde_json::to_value(&spec).expect("serialises");
    let mut settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), adapter)]);
    if let Some(url) = url {
        settings.insert(adapter::URL.to_owned(), url.into());
    }
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    let context = context.in_home(env!("CARGO_TARGET_TMPDIR"));
    registry::build(&spec.name, &settings, &context).expect("builds")
}

/// Runs the checks; each as `name: result`.
async fn checked(system: &dyn MemorySystem) -> (Vec<String>, Vec<Step>) {
    let told = Told { top_k: 10, names_ids: false, by_names: false, form: Form::File };
    let steps = check::run(system, "bench-check-1", told).await;
    (steps.iter().map(|step| format!("{}: {}", step.check, step.outcome.word())).collect(), steps)
}

fn outcome(steps: &[Step], check: &str) -> Outcome {
    steps.iter().find(|step| step.check == check).unwrap_or_else(|| panic!("{check}: {steps:?}")).outcome
}

/// Quick polls, for tests.
const QUICK: &[(&str, &str)] = &[("every: 2s", "every: 10ms")];

fn changes_of(name: &str) -> Vec<(&'static str, &'static str)> {
    match name {
        "graphiti" => QUICK.to_vec(),
        "hindsight" => vec![("every: 1s", "every: 10ms")],
        // its key has to be there; the fake takes any
        "mem0-cloud" => vec![("every: 1s", "every: 5ms"), ("auth: {env: MEM0_CLOUD_API_KEY,", "auth: {env: PATH,")],
        "zep" => vec![("every: 5s", "every: 5ms"), ("auth: {env: ZEP_API_KEY,", "auth: {env: PATH,")],
        "memmachine" => vec![("every: 10s", "every: 5ms"), ("stable_for: 30s", "stable_for: 50ms")],
        "evermemos" => vec![("every: 5s", "every: 5ms"), ("stable_for: 30s", "stable_for: 50ms")],
        "supermemory" => [QUICK, &[("auth: {env: SUPERMEMORY_API_KEY,", "auth: {env: PATH,")]].concat(),
        _ => Vec::new(),
    }
}

fn start(name: &str) -> (Fake, Arc<dyn MemorySystem>) {
    let fake = Fake::start(name);
    let system = system(name, fake.url(), &changes_of(name));
    (fake, system)
}
