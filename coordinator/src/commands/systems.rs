//! `systems`: memory systems, what they can do, and whether a live one does it.

use std::collections::BTreeSet;

use bench_proto::{
    dataset::FilterParts,
    ids::{RunId, short_id},
    policy::SystemPolicy,
    text::one_line,
};
use bench_systems::{
    BuildContext, Capabilities, SystemSettings,
    adapter::{
        self, Sends,
        spec::{SettingSpec, Unit},
    },
    check::{self, Outcome},
    policy::{Policy, Refusal, SystemHash},
    registry,
    trial::{self, Trial},
};
use serde_json::{Value, json};

use crate::{
    app::App,
    cli::SystemsVerb,
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::counted,
        tables::{render, table},
    },
};

/// Prints memory systems, the hash of an adapter, or what a live system does step by step; exit 5 when a step of that fails.
pub(super) async fn run(app: &App, verb: &SystemsVerb) -> CliResult {
    match verb {
        SystemsVerb::List { json } => list(*json),
        SystemsVerb::Check { system, json } => check_system(app, system, *json).await,
        SystemsVerb::Try { system, text, question, json } => try_system(app, system, (text, question), *json).await,
        SystemsVerb::Hash { system, json, .. } => hash(app, system, *json),
    }
}

/// The hash by which an adapter is allowed, and the lines that allow it.
fn hash(app: &App, given: &str, json: bool) -> CliResult {
    let (name, settings) = app.system(given)?;
    let Some(hash) = SystemHash::of_settings(&settings) else {
        return Err(CliError::usage(format!("{name} is built in: every process takes it")));
    };
    if json {
        let mode = settings.get(adapter::MODE).and_then(Value::as_str).unwrap_or("raw");
        out::json(&json!({ "system": name, "mode": mode, "sha256": hash.hex() }));
        return Ok(Exit::Done);
    }
    out::result(&Refusal::of_all(&name, hash).lines());
    let known = Policy::new(SystemPolicy::default()).check(&settings).is_ok();
    if known {
        out::note(&format!("{name} is taken by every process as it is"));
    } else if let Some(file) = settings.get(adapter::ADAPTER).and_then(|spec| spec.pointer("/code/file")?.as_str()) {
        let packages = if file.ends_with(".py") { "that Python has installed" } else { "in node_modules" };
        out::note(&format!(
            "the hash covers the file and the modules of its folder that it imports, not the packages {packages}"
        ));
    } else if settings
        .get(adapter::ADAPTER)
        .is_some_and(|spec| ["/command", "/start/command", "/mcp/command"].iter().any(|at| spec.pointer(at).is_some()))
    {
        out::note(
            "the hash covers the file, not the programs and scripts that it names: whoever can change them changes what is run",
        );
    }
    Ok(Exit::Done)
}

/// A row of the list.
struct Row {
    name: String,
    description: String,
    kind: &'static str,
    /// What one item is; none of a system that holds nothing.
    unit: Option<Unit>,
    /// How it was tested, in words; of what is built in all tests are its own.
    tested: Option<String>,
    settings: Vec<Told>,
    /// What of an item, a question and a filter its requests carry.
    sends: Sends,
    c: Capabilities,
}

/// A setting, as it is listed.
struct Told {
    name: String,
    default: Option<Value>,
    takes: String,
    about: String,
}

impl Told {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), default: None, takes: String::new(), about: String::new() }
    }

    /// A setting that says by its words alone what it takes.
    fn in_words(name: String, default: &str, about: &str) -> Self {
        let default = (!default.is_empty()).then(|| serde_json::from_str(default).unwrap_or_else(|_| default.into()));
        Self { name, default, takes: String::new(), about: about.to_owned() }
    }

    /// Whether there is something to say of it beside its name.
    fn is_told(&self) -> bool {
        !self.about.is_empty()
    }

    fn declared(system: &str, (name, setting): (&String, &SettingSpec)) -> Self {
        Self {
            name: format!("{system}.{name}"),
            default: setting.default.clone(),
            takes: adapter::settings::takes(setting),
            about: setting.about.clone(),
        }
    }

    fn line(&self) -> String {
        let Self { name, default, takes, about } = self;
        let none = if takes.is_empty() { "none" } else { "the system's own" };
        let default = default.as_ref().map_or_else(|| none.to_owned(), plain);
        let takes = if takes.is_empty() { String::new() } else { format!(" ({takes})") };
        format!("  {name} [{default}]: {about}{takes}")
    }

    fn json(&self) -> Value {
        let Self { name, default, takes, about } = self;
        json!({ "name": name, "default": default, "takes": takes, "about": about })
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn list(json: bool) -> CliResult {
    let rows = rows()?;
    if json {
        out::json(&rows.iter().map(Row::json).collect::<Vec<_>>())
    } else {
        out::words(&listed(&rows))
    }
    Ok(Exit::Done)
}

/// Built-in systems, then adapters that are shipped, then libraries.
fn rows() -> Result<Vec<Row>, CliError> {
    let mut rows = Vec::new();
    for info in registry::list(&BuildContext::default()) {
        let c = info.capabilities.map_err(CliError::infrastructure_of)?;
        let control = c.sees_gold || c.empty_by_design;
        rows.push(Row {
            name: info.entry.name.to_owned(),
            description: info.entry.description.to_owned(),
            kind: if control { "control" } else { "built-in" },
            unit: (!c.empty_by_design).then_some(Unit::Turn),
            tested: None,
            settings: info
                .entry
                .settings
                .iter()
                .map(|s| Told::in_words(s.name.to_owned(), s.default, s.description))
                .collect(),
            sends: Sends::new(),
            c,
        });
    }
    for (name, text) in adapter::shipped::SHIPPED {
        let spec = adapter::file::parse(text).map_err(CliError::infrastructure)?;
        let kind = match (spec.start.is_some(), spec.mcp.is_some()) {
            (true, _) => "started",
            (_, true) => "mcp",
            _ => "server",
        };
        let c = adapter::check(&spec).map_err(CliError::infrastructure)?;
        let told = (!spec.dispositions.is_empty()).then_some(adapter::dispositions::DISPOSITIONS);
        let moves = spec.program().is_none().then_some(adapter::URL);
        let of_all = moves.into_iter().chain([adapter::MODE]).chain(told).map(Told::named);
        rows.push(Row {
            settings: of_all.chain(spec.settings.iter().map(|setting| Told::declared(name, setting))).collect(),
            sends: adapter::sends(&spec).map_err(CliError::infrastructure)?,
            name: (*name).to_owned(),
            description: spec.description,
            kind,
            unit: Some(spec.unit),
            tested: spec.tested,
            c,
        });
    }
    for library in adapter::code::libraries::LIBRARIES {
        rows.push(Row {
            name: library.name.to_owned(),
            description: library.description.to_owned(),
            kind: "library",
            unit: Some(Unit::default()),
            tested: Some(format!("with {}", library.packages.join(", ").replace("==", " "))),
            settings: std::iter::once(Told::named(adapter::MODE))
                .chain(
                    library
                        .settings
                        .iter()
                        .map(|s| Told::in_words(format!("{}.{}", library.name, s.name), s.default, s.about)),
                )
                .collect(),
            sends: Sends::new(),
            c: library.capabilities().map_err(CliError::infrastructure)?,
        });
    }
    Ok(rows)
}

impl Row {
    fn json(&self) -> Value {
        let Self { name, description, kind, unit, tested, settings, sends, c } = self;
        let (names, declared): (Vec<&String>, Vec<Value>) = (
            settings.iter().map(|setting| &setting.name).collect(),
            settings.iter().filter(|setting| setting.is_told()).map(Told::json).collect(),
        );
        json!({
            "name": name, "description": description, "kind": kind, "version": c.version, "max_k": c.max_k,
            "unit": unit.map(Unit::name), "tested": tested,
            "ordered": c.ordered, "event_times": c.event_times, "proves_ready": c.proves_ready,
            "max_parallel": c.max_parallel, "control": c.sees_gold || c.empty_by_design,
            "retain_idempotent": c.retain_idempotent, "recall_mutates": c.recall_mutates,
            "consolidates": c.consolidates, "answers": c.answers, "recalls": c.recalls, "verifies": c.verifies, "lists": c.lists,
            "token_budget": c.token_budget, "banks": c.banks, "updates": c.updates, "withdraws": c.withdraws,
            "filters": c.filters.names(), "answer_filters": c.answer_filters.names(), "settings": names,
            "declared_settings": declared, "sends": sends,
        })
    }
}

/// The filters that the searches of a system have, for people.
fn filters(has: FilterParts) -> String {
    match has {
        FilterParts::ALL => "all".to_owned(),
        none if none.is_empty() => "-".to_owned(),
        some => some.names().join(", "),
    }
}

fn listed(rows: &[Row]) -> String {
    let mut table = table([
        "system",
        "kind",
        "unit",
        "largest k",
        "filters",
        "repeatable",
        "event times",
        "proves ready",
        "counts",
        "answers",
        "tested",
        "what it is",
    ])
    .sparing(&[
        "tested",
        "counts",
        "event times",
        "proves ready",
        "repeatable",
        "answers",
        "filters",
        "unit",
        "largest k",
    ]);
    let yes = |b: bool| if b { "yes" } else { "-" }.to_owned();
    for Row { name, description, kind, unit, tested, c, .. } in rows {
        let largest = if c.ignores_k {
            "-".to_owned()
        } else if c.token_budget {
            "tokens".to_owned()
        } else {
            c.max_k.map_or_else(|| "any".to_owned(), |k| k.to_string())
        };
        table.add_row([
            name.clone(),
            (*kind).to_owned(),
            unit.map_or("-", Unit::name).to_owned(),
            largest,
            filters(c.filters),
            yes(c.retain_idempotent),
            yes(c.event_times),
            yes(c.proves_ready),
            yes(c.verifies || (c.from_items && !c.derived)),
            yes(c.answers),
            tested.clone().unwrap_or_else(|| "-".to_owned()),
            description.clone(),
        ]);
    }
    format!(
        "{}\nsettings (--set NAME=VALUE):\n{}\nwhat requests carry beside their bank:\n{}\nan own system: --system mine.py:Mine or mine.ts:Mine, or a file for --system ./mine.yaml, see docs/SYSTEMS.md; does it work? bench-coord systems check NAME|FILE",
        render(&table),
        settings_of_all(rows).join("\n"),
        carried(rows).join("\n"),
    )
}

/// A line for each setting; systems share some.
fn settings_of_all(rows: &[Row]) -> Vec<String> {
    let mut said = BTreeSet::new();
    let told = rows.iter().flat_map(|row| &row.settings).filter(|setting| setting.is_told());
    told.filter(|setting| said.insert(setting.name.as_str())).map(Told::line).collect()
}

/// A line for each system that is asked by requests: what of an item, a question and a filter they carry.
fn carried(rows: &[Row]) -> Vec<String> {
    let of_operation = |(operation, names): (&&str, &BTreeSet<String>)| {
        format!("{operation} {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    };
    let asked = rows.iter().filter(|row| !row.sends.is_empty());
    asked
        .map(|row| format!("  {}: {}", row.name, row.sends.iter().map(of_operation).collect::<Vec<_>>().join("; ")))
        .collect()
}

/// Whether an adapter says where the id of a hit stands: `hits: [{list: …, id: …}]` somewhere in it.
fn names_ids(adapter: &Value) -> bool {
    match adapter {
        Value::Object(map) => {
            let is_named = |one: &Value| one["id"].is_string() || one["made_of"].is_string();
            let of_hits = |hits: &Value| hits.as_array().is_some_and(|all| all.iter().any(is_named));
            map.get("hits").is_some_and(of_hits) || map.values().any(names_ids)
        }
        Value::Array(list) => list.iter().any(names_ids),
        _ => false,
    }
}

/// A name that nobody has had before: what an interrupted command has left in a system, or on this machine, is no part of the next
/// one. The number of a process would not do: in a container it is always the same.
fn fresh(verb: &str) -> String {
    let RunId(id) = RunId::fresh();
    format!("{verb}-{}", short_id(&id))
}

/// Stores a text, asks a question, and prints what came back; exit 4 when the system fails.
async fn try_system(app: &App, given: &str, (text, question): (&str, &str), json: bool) -> CliResult {
    let own = fresh("try");
    let driven = app.drive(given, &own).await?;
    let bank = format!("bench-{own}");
    let interrupts = app.interrupts();
    let tried = tokio::select! {
        tried = trial::run(driven.system.as_ref(), &bank, (text, question), app.settings().run.top_k) => Some(tried),
        () = interrupts.stop.cancelled() => None,
    };
    driven.close(&interrupts).await;
    let tried = tried.ok_or_else(|| {
        CliError::resumable(format!("interrupted: bank {bank} may be left in a system that runs on; try again"))
    })?;
    driven.leave(tried.is_ok());
    let tried = tried.map_err(|failure| CliError::infrastructure(format!("{}: {failure}", driven.name)))?;
    if json {
        let mut document = json!(tried);
        document["system"] = json!(driven.name);
        document["question"] = json!(question);
        out::json(&document);
        return Ok(Exit::Done);
    }
    told(&tried, (text, question));
    out::note(&format!("`bench-coord systems check {given}` tries everything that a run asks of it"));
    Ok(Exit::Done)
}

/// How long storing took, and whether anybody but the system says that it is done.
fn stored(tried: &Trial, text: &str) -> String {
    let checked = if tried.proven { "checked" } else { "not checked: the system says so" };
    format!("stored in {} ms ({checked}): {text}", tried.stored_ms)
}

/// Prints what a trial came to.
fn told(tried: &Trial, (text, question): (&str, &str)) {
    out::words(&stored(tried, text));
    out::words(&format!("asked: {question}"));
    match tried.recall_ms {
        Some(ms) if tried.hits.is_empty() => out::result(&format!("found nothing in {ms} ms")),
        Some(ms) => {
            out::result(&format!("found {} in {ms} ms:", counted(tried.hits.len() as u64, "hit")));
            let mut table = table(["", "score", "id", "text"]).wrapping();
            for (at, hit) in tried.hits.iter().enumerate() {
                let score = hit.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.4}"));
                let id = if tried.without_id.contains(&at) { "(no id)" } else { hit.id.as_str() };
                table.add_row([(at + 1).to_string(), score, id.to_owned(), hit.text.clone()]);
            }
            out::result(&render(&table));
            tried.notes.iter().for_each(|note| out::note(note));
        }
        None => out::result("it does not search"),
    }
    if let (Some(answer), Some(ms)) = (&tried.answer, tried.answer_ms) {
        out::words(&format!("answered in {ms} ms: {}", one_line(answer)));
    }
}

/// Refuses a control, which is told what it finds or finds nothing by design.
///
/// # Errors
/// Exit 2: what to name instead.
fn no_control(given: &str) -> Result<(), CliError> {
    match registry::capabilities(given, &SystemSettings::new(), &BuildContext::default()) {
        Ok(can) if can.sees_gold || can.empty_by_design => Err(CliError::usage(format!(
            "{given} is a control, which searches nothing that is stored: there is nothing to check; name a memory system \
             (`bench-coord systems list`)"
        ))),
        _ => Ok(()),
    }
}

async fn check_system(app: &App, given: &str, json: bool) -> CliResult {
    no_control(given)?;
    let own = fresh("check");
    let driven = app.drive(given, &own).await?;
    let (name, settings) = (&driven.name, &driven.settings);
    let banks = format!("bench-{own}");
    let spec = settings.get(adapter::ADAPTER);
    let names_ids = spec.is_some_and(names_ids);
    let form = spec.map_or(check::Form::BuiltIn, check::Form::of_adapter);
    let by_names = registry::finds_by_names(name);
    let told = check::Told { top_k: app.settings().run.top_k, names_ids, by_names, form };
    let interrupts = app.interrupts();
    let steps = tokio::select! {
        steps = check::run(driven.system.as_ref(), &banks, told) => Some(steps),
        () = interrupts.stop.cancelled() => None,
    };
    // however it ends: what was started does not stay
    driven.close(&interrupts).await;
    let steps = steps.ok_or_else(|| {
        CliError::resumable(format!(
            "interrupted: banks named {banks}-… may be left in a system that runs on; check again"
        ))
    })?;
    let failed = steps.iter().filter(|step| step.outcome == Outcome::Fail).count();
    driven.leave(failed == 0);
    if json {
        out::json(&json!({ "system": name, "failed": failed, "steps": steps }));
    } else {
        let mut table = table(["check", "result", "ms", "what was done and seen"]).wrapping();
        for step in &steps {
            table.add_row([
                step.check.to_owned(),
                step.outcome.word().to_owned(),
                step.ms.to_string(),
                step.detail.clone(),
            ]);
        }
        out::result(&render(&table));
        if let Some(spec) = spec
            && let Some(traps) = spec.get("traps").and_then(|traps| traps.as_array())
        {
            for trap in traps.iter().filter_map(|trap| trap.as_str()) {
                out::words(&format!("known: {trap}"));
            }
        }
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Invalid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_says_what_an_item_is_which_filters_there_are_and_how_it_was_tested() {
        let rows = rows().expect("all of them can be listed");
        let row = |name: &str| rows.iter().find(|row| row.name == name).expect("is listed").json();
        assert_eq!(
            ["bm25", "none", "mem0", "graphiti"].map(|name| row(name)["unit"].clone()),
            [json!("turn"), Value::Null, json!("session"), json!("turn")]
        );
        assert_eq!(row("langgraph")["tested"], "with langgraph 1.2.24, numpy 2.4.6");
        assert_eq!(row("bm25")["tested"], Value::Null);
        let some = FilterParts { user: true, until: true, ..FilterParts::default() };
        let shown = [FilterParts::ALL, FilterParts::default(), some].map(filters);
        assert_eq!(shown, ["all", "-", "user, until"]);
        assert!(rows.iter().all(|row| listed(&rows).contains(&row.name)));
    }

    #[test]
    fn settings_of_all_systems_are_listed_once_and_what_requests_carry() {
        let rows = rows().expect("all of them can be listed");
        let lines = settings_of_all(&rows);
        let line = |name: &str| {
            let of_name: Vec<&String> = lines.iter().filter(|line| line.starts_with(&format!("  {name} ["))).collect();
            assert_eq!(of_name.len(), 1, "{name}: {lines:#?}");
            of_name[0].clone()
        };
        for name in ["alias.near", "bm25.b", "facts.model", "hindsight.budget"] {
            assert!(line(name).contains("]: "), "{name}");
        }
        assert_eq!(line("langgraph.model"), "  langgraph.model [text-embedding-3-small]: embedding model");
        assert!(line("vector.account").starts_with("  vector.account [openai]: "));
        let langmem = rows.iter().find(|row| row.name == "langmem").expect("is listed").json();
        assert_eq!(langmem["declared_settings"][2]["default"], 1536, "{langmem}");
        let said = carried(&rows);
        assert!(said.iter().any(|line| line.starts_with("  mem0: ") && line.contains("recall ")), "{said:?}");
        assert!(!said.iter().any(|line| line.starts_with("  bm25: ")), "{said:?}");
    }

    #[test]
    fn a_trial_says_whether_storing_was_checked() {
        let trial = |proven| Trial {
            stored_ms: 7,
            proven,
            recall_ms: None,
            hits: Vec::new(),
            without_id: Vec::new(),
            notes: Vec::new(),
            answer: None,
            answer_ms: None,
        };
        let said = [true, false].map(|proven| stored(&trial(proven), "tea"));
        assert_eq!(said, ["stored in 7 ms (checked): tea", "stored in 7 ms (not checked: the system says so): tea"]);
    }

    #[test]
    fn a_control_is_not_checked() {
        for control in ["none", "oracle"] {
            let refused = no_control(control).expect_err("is refused").to_string();
            assert!(refused.starts_with(&format!("{control} is a control")), "{refused}");
        }
        for system in ["bm25", "alias", "mem0", "./mine.yaml"] {
            assert!(no_control(system).is_ok(), "{system}");
        }
    }

    #[test]
    fn what_a_check_makes_is_never_named_as_another_one_was() {
        let names = [fresh("check"), fresh("check")];
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() == "check-0123456789ab".len()), "{names:?}");
    }
}
