//! Reading adapter files: YAML with line and column of every mistake, then what a schema cannot say.
//!
//! In comes the text of a file; out come an `AdapterSpec` ([`parse`]), its [`fingerprint`], and an `Adapter` whose templates
//! are known to be filled by what a step brings (`compile`). Start reading at [`parse`], then at `compile`. Nothing is sent.

use std::{collections::BTreeSet, time::Duration};

use bench_proto::{dataset::FilterParts, ids::Sha256Hash, weight};
use serde_json::Value;

use super::{
    Sends,
    call::{Call, Secret},
    http,
    items::{ITEM_VARS, REPLACED_VARS},
    mistakes::{check_fields, check_name, check_ready, check_whole},
    path::Path,
    places::{self, MADE_OF},
    spec::{AdapterSpec, CallSpec, HitsSpec, Permission, PortSpec, ReadyRule, StartSpec},
    template::Template,
    time,
    variables::{self, fill_env},
};

/// Longest adapter file in bytes.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// What it may become with all that it stands for, in bytes.
const MAX_WEIGHT: usize = 32 * MAX_FILE_BYTES;
/// Time of a request when nothing is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Variables of every call.
const BANK_VARS: &[&str] = &["bank", "name"];
#[rustfmt::skip]
const RECALL_VARS: &[&str] = &[
    "bank", "name", "query", "k", "time", "time_text", "asked_at", "max_tokens", "question_id", "reader_mode",
    "tags", "user", "scope", "scopes", "from", "until",
];
const LIST_VARS: &[&str] = &["bank", "name", "limit", "offset", "page", "page_index", "cursor"];
const BATCH_VARS: &[&str] = &["bank", "name", "items"];
const MESSAGE_VARS: &[&str] = &["speaker", "role", "text", "dated", "time", "time_unix", "time_ms", "session_id"];

/// Reads a file's text.
///
/// # Errors
/// Line, column and what is wrong.
pub fn parse(text: &str) -> Result<AdapterSpec, String> {
    if text.len() > MAX_FILE_BYTES {
        return Err(format!("the file is longer than {MAX_FILE_BYTES} bytes"));
    }
    // editors of some systems begin files with a mark
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let short = weight::check_nesting(text.as_bytes())
        .and_then(|()| weight::check(serde_norway::Deserializer::from_str(text), MAX_WEIGHT));
    short.and_then(|()| serde_norway::from_str(text)).map_err(|error| {
        let message = error.to_string();
        match error.location() {
            Some(at) if !message.contains("line") => format!("line {}, column {}: {message}", at.line(), at.column()),
            _ => message,
        }
    })
}

/// Marks the part of a fingerprint that says what is started.
pub const STARTED: &str = "+start.";

/// Hash of what can change a score: all but the place of the system. Of what the runner starts itself, program, image,
/// environment and files have a hash of their own behind [`STARTED`], with variables as they are written.
#[must_use]
pub fn fingerprint(spec: &AdapterSpec) -> String {
    let started = spec.start.as_ref().map(|start| format!("{STARTED}{}", hash_of(&identity(start))));
    format!("{}{}", hash_of(&conversation(spec)), started.unwrap_or_default())
}

fn hash_of<T: serde::Serialize>(what: &T) -> String {
    Sha256Hash::of_bytes(&serde_json::to_vec(what).unwrap_or_default()).hex()[..8].to_owned()
}

/// How a system is started, as far as it can change a score: not where it listens, nor how many of it there are at a time.
fn identity(start: &StartSpec) -> StartSpec {
    StartSpec {
        command: start.command.clone(),
        // it refuses or does nothing
        check: Vec::new(),
        image: start.image.clone(),
        image_port: None,
        port: PortSpec::default(),
        env: start.env.clone(),
        files: start.files.clone(),
        timeout: None,
        version: start.version.clone(),
        per: start.per,
        at_once: None,
        kept: None,
    }
}

/// What is said to a system and read of it.
fn conversation(spec: &AdapterSpec) -> AdapterSpec {
    let mut spec = spec.clone();
    (spec.url, spec.start, spec.auth, spec.timeout) = (None, None, None, None);
    (spec.description, spec.traps, spec.allow, spec.statistics) = (String::new(), Vec::new(), Vec::new(), None);
    // what it holds is asked for when all questions have been, and handed on when no run does
    (spec.list, spec.can.lists) = (None, false);
    (spec.export, spec.import) = (None, None);
    (spec.limits.parallel, spec.limits.response_bytes) = (None, None);
    // what is kept beside a hit for its readers is neither asked for nor answered from
    spec.calls_mut().for_each(forget_details);
    if let Some(mcp) = &mut spec.mcp {
        mcp.url = None;
    }
    if let Some(code) = &mut spec.code {
        (code.folder, code.at_once, code.processes) = (String::new(), None, None);
    }
    spec
}

fn forget_details(call: &mut CallSpec) {
    for hits in &mut call.hits {
        hits.details.clear();
        hits.details_of_reply.clear();
    }
    call.then.iter_mut().for_each(forget_details);
}

/// An adapter whose calls are compiled. Secrets and places are not looked at yet.
#[derive(Debug, Clone)]
pub(super) struct Adapter {
    pub(super) spec: AdapterSpec,
    pub(super) bank: Template,
    pub(super) open: Option<Call>,
    pub(super) retain: Option<Call>,
    pub(super) update: Option<Call>,
    pub(super) forget: Option<Call>,
    pub(super) flush: Option<Call>,
    pub(super) consolidate: Option<Call>,
    pub(super) ready: Option<Call>,
    pub(super) searches: Vec<(Call, Vec<Hits>)>,
    pub(super) places: Option<(Call, places::Paths)>,
    pub(super) answer: Option<Call>,
    pub(super) verify: Option<Call>,
    pub(super) list: Option<Listing>,
    pub(super) statistics: Option<Call>,
    pub(super) reset: Option<Call>,
    pub(super) export: Option<Call>,
    pub(super) import: Option<Call>,
    pub(super) purge: Option<(Call, Path, Call)>,
    pub(super) health: Option<Call>,
    pub(super) item: Option<Template>,
    /// Variables of the item, or of the request that is one.
    pub(super) item_vars: BTreeSet<String>,
    pub(super) message: Option<Template>,
    pub(super) every: Duration,
    pub(super) stalled_after: Duration,
    pub(super) stable_for: Duration,
}

impl Adapter {
    /// All of its calls, with those that follow.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        let named = [
            &self.open,
            &self.retain,
            &self.update,
            &self.forget,
            &self.flush,
            &self.consolidate,
            &self.ready,
            &self.answer,
            &self.verify,
            &self.statistics,
            &self.reset,
            &self.export,
            &self.import,
            &self.health,
        ];
        let places = self.places.iter().map(|(call, _)| call);
        let searches = self.searches.iter().map(|(call, _)| call).chain(self.list.iter().map(|listing| &listing.call));
        let purge = self.purge.iter().flat_map(|(list, _, remove)| [list, remove]);
        let all = named.into_iter().flatten().chain(searches).chain(places).chain(purge);
        all.flat_map(|call| std::iter::once(call).chain(call.steps.then()))
    }
}

fn names_of<'a>(calls: impl Iterator<Item = &'a Call>) -> BTreeSet<String> {
    calls.flat_map(Call::names).cloned().collect()
}

impl Adapter {
    /// The variables of its requests that say something, by operation.
    pub(super) fn sends(&self) -> Sends {
        let told = |names: BTreeSet<String>| -> BTreeSet<String> {
            names
                .into_iter()
                .filter(|name| {
                    !["bank", "name", "items", "index"].contains(&name.as_str()) && !name.starts_with("step.")
                })
                .collect()
        };
        let mut retain = names_of(self.retain.iter());
        retain.extend(self.item_vars.iter().cloned());
        let by_operation = [
            ("retain", retain),
            ("update", names_of(self.update.iter())),
            ("forget", names_of(self.forget.iter())),
            ("recall", names_of(self.searches.iter().map(|(call, _)| call))),
            ("answer", names_of(self.answer.iter())),
        ];
        by_operation
            .into_iter()
            .map(|(name, names)| (name, told(names)))
            .filter(|(_, names)| !names.is_empty())
            .collect()
    }
}

/// A list of hits, compiled.
#[derive(Debug, Clone)]
pub(super) struct Hits {
    pub(super) list: Path,
    pub(super) text: Path,
    pub(super) id: Option<Path>,
    pub(super) made_of: Option<Path>,
    pub(super) session: Option<Path>,
    pub(super) score: Option<Path>,
    pub(super) time: Option<Path>,
    pub(super) optional: bool,
    pub(super) not_with: Option<Path>,
    pub(super) beside_k: bool,
    pub(super) details: Vec<(String, Path)>,
    pub(super) details_of_reply: Vec<(String, Path)>,
}

impl Hits {
    fn new(spec: &HitsSpec) -> Self {
        let path = |text: &Option<String>| text.as_deref().map(Path::new);
        let named = |(name, path): (&String, &String)| (name.clone(), Path::new(path));
        Self {
            list: Path::new(&spec.list),
            text: Path::new(&spec.text),
            id: path(&spec.id),
            made_of: path(&spec.made_of),
            session: path(&spec.session),
            score: path(&spec.score),
            time: path(&spec.time),
            optional: spec.optional,
            not_with: path(&spec.not_with),
            beside_k: spec.beside_k,
            details: spec.details.iter().map(named).collect(),
            details_of_reply: spec.details_of_reply.iter().map(named).collect(),
        }
    }
}

/// How a bank is listed, compiled.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    pub(super) call: Call,
    pub(super) hits: Vec<Hits>,
    pub(super) next: Option<Path>,
    /// Its requests name a page by its place.
    pub(super) has_pages: bool,
    /// Items that it gives at most, where it has no pages.
    pub(super) most: Option<u32>,
}

/// Compiles an adapter whose requests are sent, or whose tools are called.
///
/// # Errors
/// What is wrong, with the name of the field.
pub(super) fn compile(spec: &AdapterSpec) -> Result<Adapter, String> {
    check_name(&spec.name)?;
    check_whole(spec)?;
    check_ready(spec)?;
    let timeout =
        spec.timeout.as_deref().map_or(Ok(DEFAULT_TIMEOUT), time::parse).map_err(|e| format!("timeout: {e}"))?;
    let vars = |more: &[&'static str]| [BANK_VARS, more].concat();
    let call = |what: &str, call: &Option<CallSpec>, known: &[&str]| {
        call.as_ref().map(|call| compile_call(what, call, known, timeout)).transpose()
    };
    let template = |field: &str, template: &Option<Value>, known: &[&str]| {
        let compiled = template.as_ref().map(|template| Template::compile(template, known)).transpose();
        compiled.map_err(|e| format!("{field}: {e}"))
    };
    let duration = |field: &str, text: &Option<String>, default: u64| {
        text.as_deref().map_or(Ok(Duration::from_secs(default)), time::parse).map_err(|e| format!("ready.{field}: {e}"))
    };
    let item_vars = vars(ITEM_VARS);
    let item = template("item", &spec.item, &item_vars)?;
    let retain = call("retain", &spec.retain, if item.is_some() { BATCH_VARS } else { &item_vars })?;
    if item.is_some() && retain.as_ref().is_some_and(|call| !call.uses("items")) {
        return Err("retain.body: `item` is given, so the body must hold {items}".to_owned());
    }
    let mut item_names = BTreeSet::new();
    match (&item, &retain) {
        (Some(item), _) => item.names(&mut item_names),
        (None, Some(retain)) => item_names.clone_from(retain.names()),
        (None, None) => {}
    }
    let ready_vars = match spec.ready.when {
        ReadyRule::EachDone => item_vars.clone(),
        _ => vars(&["expected"]),
    };
    Ok(Adapter {
        bank: Template::text(spec.bank.as_deref().unwrap_or("{name}"), &["name", "slug"])
            .map_err(|e| format!("bank: {e}"))?,
        open: call("open", &spec.open, BANK_VARS)?,
        retain,
        update: call("update", &spec.update, &[&item_vars, REPLACED_VARS].concat())?,
        forget: call("forget", &spec.forget, &vars(REPLACED_VARS))?,
        flush: call("flush", &spec.flush, BANK_VARS)?,
        consolidate: call("consolidate", &spec.consolidate, BANK_VARS)?,
        // whoever waits for a bank holds no slot: its looks are polls of their own (P11), where they may begin again
        ready: call("ready.call", &spec.ready.call, &ready_vars)?.map(Call::looking_if_it_may),
        searches: compile_searches(spec, timeout)?,
        places: compile_places(spec, timeout)?,
        answer: call("answer", &spec.answer, RECALL_VARS)?,
        verify: call("verify", &spec.verify, &vars(&["expected"]))?,
        list: compile_listing(spec, timeout)?,
        statistics: call("statistics", &spec.statistics, BANK_VARS)?,
        reset: call("reset", &spec.reset, BANK_VARS)?,
        export: call("export", &spec.export, BANK_VARS)?,
        import: call("import", &spec.import, BANK_VARS)?,
        purge: match &spec.purge {
            None => None,
            Some(purge) => Some((
                Call::compile("purge.list", &purge.list, BANK_VARS, timeout)?,
                Path::new(&purge.ids),
                Call::compile("purge.remove", &purge.remove, &vars(&["item"]), timeout)?,
            )),
        },
        health: call("health", &spec.health, &[])?,
        item,
        item_vars: item_names,
        message: template("message", &spec.message, MESSAGE_VARS)?,
        every: duration("every", &spec.ready.every, 1)?,
        stalled_after: duration("stalled_after", &spec.ready.stalled_after, stalled_after(spec.ready.when))?,
        stable_for: duration("stable_for", &spec.ready.stable_for, 30)?,
        spec: spec.clone(),
    })
}

/// Seconds after which a bank has failed, where the file does not say: nothing has moved, or nothing has stood still.
const fn stalled_after(when: ReadyRule) -> u64 {
    match when {
        ReadyRule::Stable => 4 * 3600,
        _ => 120,
    }
}

fn compile_call(what: &str, spec: &CallSpec, known: &[&str], timeout: Duration) -> Result<Call, String> {
    check_fields(what, spec)?;
    Call::compile(what, spec, known, timeout)
}

/// The searches of a recall, each with the lists of hits in its response.
fn compile_searches(spec: &AdapterSpec, timeout: Duration) -> Result<Vec<(Call, Vec<Hits>)>, String> {
    let search = |(at, search): (usize, &CallSpec)| {
        let what = if at == 0 { "recall".to_owned() } else { format!("recall_also.{}", at - 1) };
        check_fields("recall", search)?;
        if search.hits.is_empty() {
            return Err(format!("{what}.hits is missing: where are the hits in the response?"));
        }
        let call = Call::compile(&what, search, RECALL_VARS, timeout)?;
        Ok((call, search.hits.iter().map(Hits::new).collect()))
    };
    spec.recall.iter().chain(&spec.recall_also).enumerate().map(search).collect()
}

/// How the system's own ids are looked up.
fn compile_places(spec: &AdapterSpec, timeout: Duration) -> Result<Option<(Call, places::Paths)>, String> {
    let calls = spec.recall.iter().chain(&spec.recall_also).chain(&spec.list);
    let mut made_of = calls.flat_map(|call| &call.hits).filter(|hits| hits.made_of.is_some()).peekable();
    let is_used = made_of.peek().is_some();
    let of_the_file = |hits: &HitsSpec| {
        [("details", &hits.details), ("details_of_reply", &hits.details_of_reply)]
            .into_iter()
            .find_map(|(list, named)| named.contains_key(MADE_OF).then_some(list))
    };
    if let Some(list) = made_of.find_map(of_the_file) {
        return Err(format!(
            "hits.{list}.{MADE_OF}: the detail of this name has what `{MADE_OF}` says besides the first: give yours another one"
        ));
    }
    match (&spec.places, is_used) {
        (Some(places), true) => {
            let call = compile_call("places.call", &places.call, BANK_VARS, timeout)?;
            Ok(Some((call, places::Paths::new(places))))
        }
        (None, false) => Ok(None),
        (Some(_), false) => Err("places: no list of `hits` has `made_of`, the path of the ids to look up".to_owned()),
        (None, true) => Err("hits.made_of: `places` is missing: what are these ids looked up by?".to_owned()),
    }
}

/// How a bank is listed.
fn compile_listing(spec: &AdapterSpec, timeout: Duration) -> Result<Option<Listing>, String> {
    let Some(list) = &spec.list else { return Ok(None) };
    let call = compile_call("list", list, LIST_VARS, timeout)?;
    if list.hits.is_empty() {
        return Err("list.hits is missing: where does the response say what the bank holds?".to_owned());
    }
    let has_pages = ["offset", "page", "page_index"].iter().any(|place| call.uses(place));
    let asks = call.uses("cursor") || has_pages;
    if (list.next.is_some() && !asks) || (list.next.is_none() && call.uses("cursor")) {
        return Err(
            "list: `next` is the path of what says that there is a next page, and {cursor}, {page} or {offset} asks for it: give \
             both, or neither"
                .to_owned(),
        );
    }
    if list.most.is_some() && asks {
        return Err("list.most: it is for a listing without pages; leave it out".to_owned());
    }
    Ok(Some(Listing {
        call,
        // what is listed is compared word for word with what was retained: no time is put before it
        hits: list.hits.iter().map(|hits| Hits { time: None, ..Hits::new(hits) }).collect(),
        next: list.next.as_deref().map(Path::new),
        has_pages,
        most: list.most,
    }))
}

/// Parts of a filter that a call sends along.
pub(super) fn filters_of(call: &Call) -> FilterParts {
    FilterParts {
        tags: call.uses("tags"),
        user: call.uses("user"),
        scope: call.uses("scope") || call.uses("scopes"),
        scopes: call.uses("scopes"),
        from: call.uses("from"),
        until: call.uses("until"),
    }
}

/// Whether memories are stored in all of their scopes: a request that names one scope alone stores them in the first.
pub(super) fn stores_several_scopes(adapter: &Adapter) -> bool {
    let uses = |call: &Option<Call>, name: &str| call.as_ref().is_some_and(|call| call.uses(name));
    let retains = |name: &str| adapter.item_vars.contains(name) || uses(&adapter.retain, name);
    let updates = |name: &str| uses(&adapter.update, name);
    let in_one = |names: &dyn Fn(&str) -> bool| names("scope") && !names("scopes");
    !in_one(&retains) && !in_one(&updates)
}

/// Whether variables are filled into headers, or into the URL behind its host: what goes there from an environment is a key for
/// all that is known.
pub(super) fn sends_variables(spec: &AdapterSpec, url: &str) -> bool {
    let behind_host = |(_, rest): (&str, &str)| rest.find(['/', '?', '#']).map(|at| rest[at..].to_owned());
    let behind = url.split_once("://").and_then(behind_host);
    spec.headers.values().chain(&behind).any(|value| variables::names(value).next().is_some())
}

/// Where a system that is not started by the runner listens, and its secret.
///
/// # Errors
/// What is missing or not allowed.
pub(super) fn place(spec: &AdapterSpec, url: Option<&str>) -> Result<(Option<reqwest::Url>, Option<Secret>), String> {
    let secret = spec.auth.as_ref().map(Secret::read).transpose()?.flatten();
    let url = match (url, spec.address(), &spec.start) {
        (Some(url), ..) | (None, Some(url), None) => url,
        (None, _, Some(_)) => return Ok((None, secret)),
        (None, None, None) => {
            return Err("url is missing: where does the system listen? (or `start`, or --set system.url=…)".to_owned());
        }
    };
    let allowed = |permission| spec.allow.contains(&permission);
    let private = allowed(Permission::PrivateAddresses);
    let filled = fill_env(url)?;
    let has_key = secret.is_some() || sends_variables(spec, url);
    let checked = http::check_url(&filled, url, private, has_key, allowed(Permission::PlainTextKey))?;
    Ok((Some(checked), secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
name: mine
url: http://127.0.0.1:9
retain: {request: POST /add, body: {text: '{text}', user: '{bank}'}}
recall:
  request: POST /search
  body: {query: '{query}', user: '{bank}', limit: '{k}'}
  hits: [{list: results, text: memory, id: id}]
reset: {request: 'DELETE /users/{bank}'}
";

    fn error(text: &str) -> String {
        parse(text).and_then(|spec| compile(&spec).map(drop)).expect_err("must be refused")
    }

    #[test]
    fn a_small_file_is_enough() {
        let adapter = compile(&parse(SMALL).expect("reads")).expect("compiles");
        assert_eq!(adapter.searches.len(), 1);
        assert_eq!(fingerprint(&adapter.spec).len(), 8);
    }

    #[test]
    fn a_key_in_a_header_goes_nowhere_without_tls() {
        let spec = |more: &str| -> AdapterSpec {
            serde_norway::from_str(&format!("name: mine\nurl: http://mem.example\n{more}")).expect("is YAML")
        };
        let key = "headers: {X-Key: 'of ${env:PATH}'}\n";
        let error = place(&spec(key), None).err().expect("is refused");
        assert!(error.starts_with("a key would go to mem.example without TLS"), "{error}");
        for fine in ["headers: {X-Kind: test}\n", &format!("{key}allow: [plain_text_key]\n")] {
            assert!(place(&spec(fine), None).is_ok(), "{fine}");
        }
        assert!(place(&spec(key), Some("http://127.0.0.1:8080")).is_ok(), "it stays on this machine");
        let behind = place(&spec(""), Some("http://mem.example/v1?key=${env:HOME}")).err().expect("is refused");
        assert!(behind.contains("without TLS"), "{behind}");
        assert!(place(&spec(""), Some("${env:NO_SUCH_URL:-http://mem.example}/v1")).is_ok(), "where, not what");
    }

    #[test]
    fn a_text_that_is_named_once_does_not_stand_for_a_million() {
        let text = format!("name: mine\ncommand: [&a {}{}]\n", "x".repeat(100_000), ", *a".repeat(1_000));
        assert!(error(&text).contains("without aliases"));
    }

    #[test]
    fn brackets_within_brackets_hold_no_processor() {
        for open in ["[", "{a: ", "\n[", "['\\', "] {
            let refused = error(&format!("{SMALL}body: {}", open.repeat(40_000)));
            assert!(refused.contains("write it flatter"), "{open}: {refused}");
        }
        // in a text they are characters like others
        let told = parse(&format!("{SMALL}tested: |\n  {}\n", "[".repeat(1_000))).expect("reads");
        assert_eq!(told.tested.map(|text| text.trim().len()), Some(1_000));
    }

    #[test]
    fn how_it_was_tested_is_read_and_goes_with_no_run() {
        let spec = parse(&format!("{SMALL}tested: against the real server 1.1.0\n")).expect("reads");
        assert_eq!(spec.tested.as_deref(), Some("against the real server 1.1.0"));
        let of = |spec: &AdapterSpec| serde_json::to_value(spec).expect("serialises");
        let without = parse(SMALL).expect("reads");
        assert_eq!((of(&spec), fingerprint(&spec)), (of(&without), fingerprint(&without)));
    }

    #[test]
    fn a_mark_at_the_beginning_is_no_mistake() {
        assert_eq!(parse(&format!("\u{feff}{}", SMALL.trim_start())), parse(SMALL));
    }

    #[test]
    fn mistakes_have_their_place() {
        let changes = [
            ("request: POST /search", "request: POST /search\n  bodi: 3"),
            ("name: mine", "name: mine\nurll: x"),
            ("'{k}'", "'{top_k}'"),
            ("POST /search", "POST search"),
            ("POST /add", "STORE /add"),
            ("hits: [{list: results, text: memory, id: id}]", "count: x"),
            ("name: mine", "name: Mine"),
            ("name: mine", "name: [mine"),
            ("name: mine", "name: mine\nready: {when: count}"),
            ("name: mine", "name: mine\nlimits: {batch: 5}"),
            ("name: mine", "name: mine\ntimeout: 5"),
            ("POST /add", "DELETE_ALL"),
            ("'{text}'", "'{text'"),
            ("retain:", "rettain:"),
            ("'{k}'", "'{field.kind}'"),
            ("name: mine", "name: mine\ncan: {updates: true}"),
            ("name: mine", "name: mine\nforget: {request: 'DELETE /memories/{id}'}"),
        ];
        let lines: Vec<String> =
            changes.iter().map(|(from, to)| format!("{to}\n  -> {}", error(&SMALL.replace(from, to)))).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_is_kept_beside_a_hit_changes_no_fingerprint() {
        let hits = "hits: [{list: results, text: memory";
        assert!(SMALL.contains(hits), "{SMALL}");
        let spec = parse(&SMALL.replace(hits, &format!("{hits}, details: {{rank: bm25}}"))).expect("reads");
        assert!(spec.recall.as_ref().is_some_and(|recall| !recall.hits[0].details.is_empty()));
        assert_eq!(fingerprint(&spec), fingerprint(&parse(SMALL).expect("reads")));
    }

    #[test]
    fn what_a_hit_was_made_of_has_a_detail_of_its_own_name() {
        let hits = |more: &str| {
            let places = "places: {call: {request: GET /all}, list: '', id: uuid, is: name}";
            let hits = format!("hits: [{{list: results, text: memory, id: id, made_of: of{more}}}]");
            format!("{}{places}\n", SMALL.replace("hits: [{list: results, text: memory, id: id}]", &hits))
        };
        assert!(compile(&parse(&hits(", details: {of: of}")).expect("reads")).is_ok());
        for list in ["details", "details_of_reply"] {
            let said = error(&hits(&format!(", {list}: {{made_of: of}}")));
            assert!(said.starts_with(&format!("hits.{list}.made_of: ")), "{said}");
        }
    }

    #[test]
    fn a_bank_that_is_handed_on_is_one_body_and_changes_no_fingerprint() {
        let both = "export: {request: 'GET /banks/{bank}/dump'}\nimport: {request: 'PUT /banks/{bank}/dump'}\n";
        let spec = parse(&format!("{SMALL}{both}")).expect("reads");
        assert!(compile(&spec).is_ok_and(|adapter| adapter.export.is_some() && adapter.import.is_some()));
        assert_eq!(fingerprint(&spec), fingerprint(&parse(SMALL).expect("reads")));
        for (from, to, words) in [
            (
                "GET /banks/{bank}/dump'",
                "GET /dump', hits: [{list: a, text: b}]",
                "export.hits: this call does not read it",
            ),
            ("GET /banks/{bank}/dump'", "POST /dump', then: [{request: GET /dump}]", "export: is one request"),
            ("GET /banks/{bank}/dump'", "GET /dump', expect: [{path: ok, is: true}]", "export.expect:"),
            ("PUT /banks/{bank}/dump'", "PUT /dump', body: {all: true}", "import: its body is what `export`"),
            ("PUT /banks/{bank}/dump'", "PUT /dump/{query}'", "query"),
        ] {
            let said = error(&format!("{SMALL}{}", both.replace(from, to)));
            assert!(said.contains(words), "{to}: {said}");
        }
        let said = error(&format!("{TOOLS}export: {{tool: dump}}\n"));
        assert!(said.contains("export: is for systems over HTTP"), "{said}");
    }

    const TOOLS: &str = "
name: mine
mcp: {command: [mem, serve]}
retain: {tool: add, arguments: {text: '{text}', user: '{bank}'}}
recall: {tool: search, arguments: {query: '{query}', limit: '{k}'}, hits: [{list: results, text: memory, id: id}]}
";

    #[test]
    fn a_file_of_tools_says_no_requests_and_one_of_requests_no_tools() {
        let adapter = compile(&parse(TOOLS).expect("reads")).expect("compiles");
        let called: Vec<&str> = adapter.calls().filter_map(|call| Some(call.tool()?.name.as_str())).collect();
        assert_eq!(called, ["add", "search"]);
        let mcp = "mcp: {command: [mem, serve]}";
        for (from, to, said) in [
            (mcp, "url: http://127.0.0.1:9", "tool: is for systems with `mcp`"),
            (mcp, "mcp: {}", "mcp: give `command`"),
            (mcp, "mcp: {command: [mem], url: 'http://127.0.0.1:9/mcp'}", "mcp: give `command`"),
            (mcp, "mcp: {command: []}", "mcp.command: give a program"),
            (mcp, "mcp: {command: [mem]}\nurl: http://127.0.0.1:9", "`mcp` says itself"),
            (mcp, "mcp: {command: [mem]}\nheaders: {X-A: b}", "auth, headers: are for servers over HTTP"),
            (mcp, "mcp: {url: 'http://127.0.0.1:9/mcp'}\nenv: {A: b}", "env: is for systems with `command`"),
            (mcp, "mcp: {url: 'http://127.0.0.1:9/mcp'}\nallow: [redirects]", "redirects are not followed"),
            ("tool: add, arguments:", "request: POST /add, body:", "POST /add: a system with `mcp` is asked by"),
            ("tool: add,", "tool: add, body: {a: b},", "body: belongs to a request, and the tool 'add'"),
            ("'{k}'", "'{top_k}'", "recall.arguments: unknown variable {top_k}"),
            ("tool: add, arguments: {text: '{text}', user: '{bank}'}", "tool: ''", "tool: name one"),
        ] {
            let error = error(&TOOLS.replace(from, to));
            assert!(error.contains(said), "{to}: {error}");
        }
    }

    #[test]
    fn the_example_of_the_documentation_is_a_whole_file() {
        let text = include_str!("../../../../docs/SYSTEMS.md");
        let section = text.split("## A server of the Model Context Protocol").nth(1).expect("has a section");
        let example =
            section.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("has an example");
        let spec = parse(example).expect("reads");
        super::super::check(&spec).expect("compiles");
        super::super::literal::check(&spec).expect("holds no key");
    }

    #[test]
    fn the_program_of_a_server_of_tools_is_a_part_of_the_fingerprint_and_its_address_is_not() {
        let of = |mcp: &str| fingerprint(&parse(&TOOLS.replace("{command: [mem, serve]}", mcp)).expect("reads"));
        assert_ne!(of("{command: [mem, serve]}"), of("{command: [mem, other]}"));
        assert_eq!(of("{url: 'http://127.0.0.1:9/mcp'}"), of("{url: 'http://127.0.0.1:10/mcp'}"));
    }

    #[test]
    fn place_and_speed_are_no_part_of_the_fingerprint() {
        let spec = parse(SMALL).expect("reads");
        let other = parse(&SMALL.replace(":9", ":10")).expect("reads");
        assert_eq!(fingerprint(&spec), fingerprint(&other));
        let other = parse(&SMALL.replace("'{query}'", "'x {query}'")).expect("reads");
        assert_ne!(fingerprint(&spec), fingerprint(&other));
    }

    #[test]
    fn p13_what_is_started_is_part_of_the_fingerprint_and_of_what_is_not_started_nothing_changes() {
        let of = |text: &str| fingerprint(&parse(text).expect("reads"));
        let started = |start: &str| of(&SMALL.replace("url: http://127.0.0.1:9", &format!("start: {start}")));
        let small = "{image: 'mem:1', env: {EMBEDDER: 'small-${env:KIND}'}, files: {c.toml: 'k = 1'}}";
        let first = started(small);
        // what is said to it is hashed as it always was: runs of earlier releases have this part alone
        assert_eq!(first.split_once(STARTED).expect("is started").0, of(SMALL));
        for (from, to) in
            [("mem:1", "mem:2"), ("small-", "large-"), ("k = 1", "k = 2"), ("image: 'mem:1'", "command: [mem]")]
        {
            assert_ne!(started(&small.replace(from, to)), first, "{to}");
        }
        for more in ["port: 4711", "at_once: 3", "kept: 2", "timeout: 9s", "image_port: 80", "check: [mem]"] {
            assert_eq!(started(&small.replace("{image", &format!("{{{more}, image"))), first, "{more}");
        }
    }
}
