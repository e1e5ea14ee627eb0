//! The four roles: each can do everything that its programs do, and nothing that is not theirs.
//!
//! [`Parted`] lists every method of the store with the roles of those who call it; a method without a line does not compile. The whole
//! suite runs over it twice, with the weakest role of each line and with the other end of it, so that each statement of each program is
//! tried under its role. The sources are held to the same list.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use bench_proto::{
    call::{CallOutcome, CallRecord, Ledger, Phase},
    facts::{Outcome, QuestionFacts},
    ids::{Role, RunId, RunNo, Sha256Hash, TaskKey, TaskKind},
    metered::MeteredCalls,
    money::PicoUsd,
    outage::OutageEvent,
    spec::Limits,
    step::{Opens, StepNo, StepRecord, StepText, StoredStep},
    stop::Looks,
    task::TaskState,
    trace::{AttemptNote, StoredSpan},
};
use bench_store::{
    conformance::{Fresh, HEADLINE, Scene, bank, call, question_facts},
    migrate, name_roles, open,
    postgres::roles::Part,
    *,
};
use bench_testkit::postgres::{Granted, run_sql, shared};

use super::raw;

/// A store that does each thing under one of the roles of those who do it.
struct Parted {
    stores: BTreeMap<&'static str, Arc<dyn Store>>,
    order: [Part; 4],
}

impl Parted {
    fn store_for(&self, parts: &[Part]) -> &dyn Store {
        let part = self.order.iter().find(|part| parts.contains(part)).expect("somebody calls it");
        self.stores[part.name()].as_ref()
    }
}

/// Everybody reads.
const R: &[Part] = &Part::ALL;
/// Clients and coordinators.
const S: &[Part] = &[Part::Submit, Part::Coordinate];
/// All who change something.
const A: &[Part] = &[Part::Submit, Part::Coordinate, Part::Work];
/// Coordinators and workers.
const W: &[Part] = &[Part::Coordinate, Part::Work];
/// Workers alone.
const O: &[Part] = &[Part::Work];
/// Coordinators alone.
const C: &[Part] = &[Part::Coordinate];

/// The whole list: trait, method, arguments, result, roles. Also written out as text, for the test that reads the sources.
macro_rules! parted {
    ($($who:ident { $($parts:ident $([$other:ident if $case:expr])? $method:ident($($name:ident: $kind:ty),*) -> $out:ty;)+ })+) => {
        $(
            #[async_trait]
            impl $who for Parted {
                $(async fn $method(&self, $($name: $kind),*) -> StoreResult<$out> {
                    let parts = $parts;
                    $(let parts = if $case { $other } else { parts };)?
                    self.store_for(parts).$method($($name),*).await
                })+
            }
        )+
        const CALLERS: &[(&str, &[Part])] = &[$($((stringify!($method), $parts)),+),+];
    };
}

parted! {
    Runs {
        S create_or_find(run: &NewRun, others: &[NewRun]) -> Creation;
        R run(run: RunNo) -> RunRow;
        R run_by_id(id: &RunId) -> Option<RunRow>;
        R list_runs(filter: &RunFilter) -> Vec<RunRow>;
        A set_run_state(run: RunNo, from: &[RunState], to: RunState, reason: Option<&str>) -> bool;
        S set_limits(run: RunNo, limits: &Limits) -> ();
        S set_labels(run: RunNo, name: Option<&str>, tags: &[String]) -> ();
        S set_looks(run: RunNo, before: &Looks, looks: &Looks) -> bool;
        R running_runs(domain: &str) -> Vec<(RunNo, i64)>;
        R run_states(runs: &[RunNo]) -> Vec<(RunNo, RunState, i64)>;
        S close_lost_interval(run: RunNo) -> ();
        C put_summary(run: RunNo, result_version: i64, summary_json: &str) -> String;
        R summary(run: RunNo) -> Option<String>;
        A add_event(run: RunNo, kind: &str, message: &str) -> ();
        R events(run: RunNo) -> Vec<RunEvent>;
    }
    Items {
        S put_items(items: &[Item]) -> ();
        C drop_unreferenced_items() -> Option<u64>;
        R item(hash: Sha256Hash) -> Vec<u8>;
    }
    Plan {
        S add_banks(run: RunNo, banks: &[NewBank]) -> ();
        S finish_plan(run: RunNo) -> ();
        C open_probe(run: RunNo) -> TaskState;
        R banks(run: RunNo, bank_nos: Option<&[u32]>) -> Vec<BankRow>;
        R banks_in_use(run: RunNo) -> BTreeMap<u32, String>;
        O set_bank_handle(run: RunNo, bank_no: u32, generation: i64, handle: &str) -> String;
        O new_generation(run: RunNo, bank_no: u32, epoch: i64) -> Option<i64>;
    }
    Tasks {
        R ready_tasks(run: RunNo, role: Role, limit: u32) -> Vec<ReadyTask>;
        C note_published(run: RunNo, tasks: &[ReadyTask]) -> ();
        C forget_published(run: RunNo, role: Option<Role>, older_than_ms: u64) -> u64;
        W put_back(run: RunNo, tasks: &[TaskKey], delay_ms: u64, reason: Option<&str>) -> u64;
        O claim(session: SessionId, tasks: &[(RunNo, TaskKey)]) -> Vec<ClaimedTask>;
        R leases(session: SessionId) -> Vec<ClaimedTask>;
        R leased(run: RunNo) -> Vec<TaskKey>;
        O release(releases: &[Release]) -> ();
        R open_tasks_of(runs: &[RunNo], at_most: u32) -> BTreeMap<RunNo, OpenByRole>;
        R waits_for(run: RunNo) -> Option<String>;
    }
    Sessions {
        A open_session(worker: &str, domain: &str, info_json: &str) -> SessionId;
        A [O if evidence.is_some()] renew_session(session: SessionId, evidence: Option<&str>) -> Renewal;
        W end_session(session: SessionId) -> u64;
        S close_session(session: SessionId) -> ();
        R open_sessions(domain: &str) -> Vec<SessionRow>;
    }
    Leaders {
        R leader(scope: &str) -> Option<LeaderRow>;
        C take_lead(scope: &str, holder: &str, seen: Option<(i64, i64)>) -> Option<i64>;
        C renew_lead(scope: &str, epoch: i64, trouble: &str) -> Option<LeadTold>;
        C resign_lead(scope: &str, epoch: i64) -> ();
    }
    Incarnations {
        R incarnation() -> Incarnation;
        W change_incarnation(seen: i64, why: &str) -> i64;
        O restore_session(live: &LiveSession) -> ();
        O restore_leases(session: SessionId, held: &[ClaimedTask]) -> u64;
        O restore_money(run: RunNo, session: SessionId, open: &[Want], lost: &[Want]) -> (u64, PicoUsd);
    }
    Checkpoints {
        O commit_marked(records: &[StepRecord], conclusions: &[Conclusion], mark: Option<CommitMark>) -> CommitOutcome;
        R question_steps(run: RunNo, questions: &[TaskKey]) -> Vec<StoredStep>;
        W store_facts(run: RunNo, headline_metric: &str, facts: &[QuestionFacts]) -> u64;
        C sweep(run: RunNo) -> CommitOutcome;
        C reopen(run: RunNo, scope: RetryScope) -> u64;
    }
    Results {
        R facts(run: RunNo, after: Option<TaskKey>, limit: u32) -> FactsPage;
        R steps(run: RunNo, kind: TaskKind, after: Option<(TaskKey, StepNo)>, limit: u32) -> Vec<StoredStep>;
        R question_texts(run: RunNo, questions: &[TaskKey]) -> Vec<(TaskKey, StepNo, StepText)>;
        R judging_texts(run: RunNo, questions: &[TaskKey], begun: &[TaskKey]) -> Vec<(TaskKey, StepNo, StepText)>;
        R step_texts(run: RunNo, tasks: &[TaskKey], step: StepNo) -> Vec<(TaskKey, StepText)>;
    }
    Calls {
        R call_count(lineage: &str) -> u64;
        R find_calls(lineage: &str, keys: &[Sha256Hash]) -> Vec<StoredCall>;
        R find_shared_calls(keys: &[Sha256Hash]) -> Vec<StoredCall>;
        R call_profile(model: &str, phase: Phase) -> Option<CallProfile>;
        R mean_call_us(run: RunNo, last: u32) -> Option<f64>;
        R metered_calls(run: RunNo) -> Vec<MeteredCalls>;
        O put_calls(run: RunNo, task: TaskKey, calls: &[CallRecord]) -> ();
        O book_calls(run: RunNo, calls: &[(TaskKey, CallRecord)]) -> ();
    }
    Money {
        O change_budget(change: &BudgetChange) -> BudgetAnswer;
        O lose_open(run: RunNo, session: SessionId) -> ();
        O stop_account(run: RunNo, account: &str, model: Option<&str>, reason: &str) -> Vec<RunNo>;
        C release_uncertain(run: RunNo) -> PicoUsd;
        R group(run: RunNo) -> Option<GroupState>;
        R usage(run: &RunRow) -> Option<BudgetState>;
        R ledger(run: &RunRow) -> Ledger;
    }
    Paces {
        O take_slots(ask: &SlotAsk) -> SlotAnswer;
        S release_holds(run: RunNo, accounts: &[String]) -> ();
    }
    Outages {
        R outages(domain: &str) -> Vec<OutageRow>;
        R outages_since(domain: &str, since_us: i64) -> Vec<OutageRow>;
        O [S if matches!(event, OutageEvent::ProbeNow)] outage(domain: &str, route: &str, event: OutageEvent, reason: &str) -> (bool, OutageRow);
        O held_back(domain: &str, route: &str, tasks: i64) -> ();
    }
    Imports {
        C import_results(run: RunNo, headline_metric: &str, results: &[(QuestionFacts, Vec<(StepNo, StepText)>)], may_go_on: bool) -> ();
        C put_texts(run: RunNo, texts: &[(TaskKey, StepNo, StepText)]) -> ();
    }
    Forks {
        C adopt(run: RunNo, banks: &[NewBank], questions: &[AdoptedQuestion]) -> ();
    }
    Traces {
        R spans(run: RunNo, questions: &[TaskKey]) -> Vec<StoredSpan>;
        R bank_steps(run: RunNo, bank_no: u32) -> Vec<StoredSpan>;
        O note_attempts(run: RunNo, attempts: &[AttemptNote]) -> ();
        R attempts(run: RunNo, question: TaskKey) -> Vec<AttemptNote>;
        R facts_of_id(run: RunNo, question_id: &str) -> Option<QuestionFacts>;
        R facts_of(run: RunNo, questions: &[TaskKey]) -> Vec<QuestionFacts>;
        R slowest(run: RunNo, most: u32) -> Vec<QuestionFacts>;
        W take_unsent_traces(limit: u32) -> Vec<(RunNo, TaskKey)>;
        C inherit_traces(run: RunNo) -> ();
        W settle_traces(questions: &[(RunNo, TaskKey)], sent: bool) -> ();
        W own_trace_parts(run: RunNo, question: TaskKey, parts: &[TaskKey]) -> Vec<TaskKey>;
        W add_latencies(run: RunNo, counts: &[(u16, u64)]) -> Vec<(u16, u64)>;
        R oldest_ready(runs: &[RunNo]) -> Vec<(RunNo, Role, i64)>;
        R session_names(sessions: &[SessionId]) -> Vec<(SessionId, String)>;
    }
}

#[async_trait]
impl Store for Parted {
    fn describe(&self) -> String {
        self.store_for(R).describe()
    }

    async fn check(&self) -> StoreResult<String> {
        self.store_for(R).check().await
    }

    async fn connection_room(&self) -> StoreResult<Option<ConnectionRoom>> {
        self.store_for(R).connection_room().await
    }

    async fn delete_runs(&self, runs: &[RunNo]) -> StoreResult<bool> {
        self.store_for(C).delete_runs(runs).await
    }

    async fn close(&self) {
        for store in self.stores.values() {
            store.close().await;
        }
    }
}

/// A store with roles in a database of its own.
async fn granted() -> Granted {
    let granted = Granted::make(&shared().url()).expect("a database with roles");
    migrate(&granted.owner).await.expect("the owner makes the schema");
    let names = name_roles(&granted.owner, "bench").await.expect("the roles are granted");
    assert_eq!(names, ["bench_read", "bench_submit", "bench_work", "bench_coordinate"]);
    granted
}

async fn stores(granted: &Granted) -> BTreeMap<&'static str, Arc<dyn Store>> {
    let urls = &granted.roles;
    let mut stores = BTreeMap::new();
    for (part, url) in Part::ALL.into_iter().zip([&urls.read, &urls.submit, &urls.work, &urls.coordinate]) {
        stores.insert(part.name(), open(url).await.expect("each role opens the store"));
    }
    stores
}

async fn parted(order: [Part; 4]) -> Fresh {
    let granted = granted().await;
    let store = Parted { stores: stores(&granted).await, order };
    // a second process of the suite is another worker
    Fresh { store: Arc::new(store), url: granted.owner, keep: Box::new(()) }
}

async fn weakest_first() -> Fresh {
    parted([Part::Read, Part::Submit, Part::Coordinate, Part::Work]).await
}

async fn workers_first() -> Fresh {
    parted([Part::Work, Part::Coordinate, Part::Submit, Part::Read]).await
}

mod every_statement_under_the_weakest_role {
    bench_store::store_conformance!(super::weakest_first);
}

mod every_statement_under_the_other_role {
    bench_store::store_conformance!(super::workers_first);
}

/// The statements of programs are those that were tried under their roles: nobody calls what is not listed for it.
#[test]
fn programs_call_what_their_role_may_do() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // who is called `release`, or gives back something else by that name, is told apart by reading
    let elsewhere = ["release"];
    let held_to = |part: Part, files: &[String]| {
        for file in files {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (method, _) in
                CALLERS.iter().filter(|(name, parts)| !parts.contains(&part) && !elsewhere.contains(name))
            {
                let calls = [format!("store.{method}("), format!("store().{method}("), format!(".store\n.{method}(")];
                // what stands before a store passes everything on
                let passes_on = code.contains(&format!("async fn {method}("));
                let squeezed = code.lines().map(str::trim).collect::<Vec<_>>().join("\n");
                assert!(
                    passes_on || !calls.iter().any(|call| squeezed.contains(call)),
                    "{file} calls {method} as {part:?}"
                );
            }
        }
    };
    let mut worker = Vec::new();
    collect(&root, Path::new("worker/src"), &mut worker);
    held_to(Part::Work, &worker);
    let of = |names: &[&str]| names.iter().map(|name| format!("coordinator/src/{name}.rs")).collect::<Vec<_>>();
    held_to(
        Part::Submit,
        &of(&["planning/planner", "planning/mod", "commands/submit", "commands/pause", "commands/cancel"]),
    );
    held_to(Part::Submit, &of(&["runs/client", "runs/controls", "runs/execution", "archive/auto", "archive/bundle"]));
    held_to(
        Part::Submit,
        &of(&["runs/group/mod", "runs/group/cells", "runs/group/matrix", "runs/group/execution", "runs/group/ending"]),
    );
    held_to(Part::Submit, &of(&["commands/matrix"]));
    held_to(Part::Read, &of(&["results/repeats", "standing/group"]));
    held_to(Part::Read, &of(&["comparison/matrix", "comparison/mod", "comparison/baseline", "comparison/before"]));
    let mut reads = Vec::new();
    for verb in ["status", "list", "watch", "report", "compare", "gate", "export", "trace", "doctor", "estimate"] {
        let folder = PathBuf::from(format!("coordinator/src/commands/{verb}"));
        if root.join(&folder).is_dir() {
            collect(&root, &folder, &mut reads);
        } else {
            reads.push(format!("{}.rs", folder.display()));
        }
    }
    held_to(Part::Read, &reads);
    held_to(Part::Read, &of(&["runs/estimate/mod", "runs/estimate/calls", "runs/estimate/fork", "comparison/inputs"]));
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(root.join(folder)).expect("a folder of sources").flatten() {
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            files.push(path.display().to_string());
        }
    }
}

/// Changes of results, which only workers make.
const OF_RESULTS: [&str; 12] = [
    "DELETE FROM checkpoints",
    "UPDATE checkpoints SET facts = '{}'",
    "INSERT INTO checkpoints (run_no, task_key, step_no, facts) VALUES (1, 1, 1, '{}')",
    "INSERT INTO texts (run_no, task_key, step_no, body) VALUES (1, 1, 1, '')",
    "DELETE FROM facts",
    "UPDATE facts SET doc = '{}'",
    "INSERT INTO facts (run_no, task_key, question_id, category, outcome, doc) VALUES (1, 1, 'q', 'c', 'scored', '{}')",
    "UPDATE run_counters SET headline_sum = 1",
    "UPDATE run_counters SET scored = 1",
    "INSERT INTO summaries (run_no, result_version, body) VALUES (1, 1, '')",
    "UPDATE tasks SET state = 2",
    "UPDATE tasks SET lease_epoch = 9",
];
/// Changes of what was spent.
const OF_MONEY: [&str; 7] = [
    "UPDATE run_counters SET spent = 0",
    "UPDATE run_counters SET uncertain = 0",
    "INSERT INTO run_counters (run_no, spent) VALUES (77, -1)",
    "DELETE FROM calls",
    "UPDATE calls SET cost = 0",
    "DELETE FROM reservations",
    "UPDATE budgets SET spent = 0",
];
/// Changes of what was asked for.
const OF_SPECS: [&str; 9] = [
    "UPDATE runs SET spec = '{}'",
    "UPDATE runs SET question_limit = 9",
    "UPDATE run_groups SET cap = NULL",
    "INSERT INTO runs (run_id) VALUES ('x')",
    "INSERT INTO items (hash, body) VALUES ('', '')",
    "UPDATE items SET body = ''",
    "DELETE FROM items",
    "UPDATE banks SET content = ''",
    "UPDATE banks SET segments = '[]'",
];

/// What each role must not do, tried on a run that has results and costs.
#[tokio::test]
async fn nobody_changes_what_is_not_theirs() {
    let granted = granted().await;
    let stores = stores(&granted).await;
    let owner = open(&granted.owner).await.expect("opens");
    let scene = Scene::start(owner.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let task = TaskKey::question(0, 0);
    let claimed = owner.claim(scene.session, &[(scene.run, task)]).await.expect("is claimed");
    scene.commit(&scene.whole_question(task, claimed[0].epoch, 1.0, Opens::Nothing)).await;
    let facts = [question_facts(task, Outcome::Scored, 1.0)];
    owner.store_facts(scene.run, HEADLINE, &facts).await.expect("is concluded");

    let tables =
        run_sql(&granted.admin, "SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'public'");
    let tables = tables.expect("tables are listed");
    let urls = &granted.roles;
    for statement in OF_RESULTS.iter().chain(&OF_MONEY).chain(&["UPDATE items SET body = ''", "DELETE FROM items"]) {
        denied(&urls.submit, statement).await;
    }
    for statement in OF_SPECS.iter().chain(&["UPDATE facts SET doc = '{}'", "DELETE FROM facts", "DELETE FROM calls"]) {
        denied(&urls.work, statement).await;
    }
    for statement in
        ["UPDATE calls SET cost = 0", "DELETE FROM calls", "UPDATE items SET body = ''", "UPDATE facts SET doc = '{}'"]
    {
        denied(&urls.coordinate, statement).await;
    }
    for url in [&urls.read, &urls.submit, &urls.work, &urls.coordinate] {
        denied(url, "CREATE TABLE mine (it text)").await;
        denied(url, "UPDATE bench_schema SET version = 99").await;
        denied(url, "UPDATE bench_roles SET prefix = 'other'").await;
        denied(url, "DROP TABLE runs").await;
        for table in tables.split_whitespace() {
            denied(url, &format!("TRUNCATE {table}")).await;
        }
    }
    for table in tables.split_whitespace() {
        denied(&urls.read, &format!("DELETE FROM {table}")).await;
    }
    let writes = "SELECT count(*) FROM information_schema.column_privileges WHERE grantee = 'bench_read' AND privilege_type <> 'SELECT'";
    assert_eq!(run_sql(&granted.admin, writes).expect("is counted").trim(), "0");

    let asked = stores["submit"].may(Right::Results).await.expect_err("a submitter may not").to_string();
    assert!(asked.contains("docs/OPERATIONS.md"), "{asked}");
    let read = stores["read"].add_event(scene.run, "a", "b").await.expect_err("a reader writes nothing");
    assert!(matches!(read, StoreError::Denied(_)), "{read}");
    for (right, part) in
        [(Right::Results, "coordinate"), (Right::Lead, "coordinate"), (Right::Work, "work"), (Right::Results, "work")]
    {
        stores[part].may(right).await.expect("is its work");
        owner.may(right).await.expect("one user for everything may");
    }
    owner.may(Right::Delete).await.expect("the owner may");
    for part in Part::ALL {
        stores[part.name()].may(Right::Delete).await.expect_err("is nobody's work");
    }
    for (right, part) in
        [(Right::Lead, "work"), (Right::Work, "coordinate"), (Right::Work, "submit"), (Right::Lead, "read")]
    {
        stores[part].may(right).await.expect_err("is not its work");
    }
    assert_eq!(owner.facts(scene.run, None, 10).await.expect("are read").len(), 1, "nothing was changed");
}

/// Caps are held by whoever books: a worker may book too little, and says neither what the caps are nor what calls have cost. What a run
/// has spent is counted anew from its calls.
#[tokio::test]
async fn who_books_may_book_too_little_and_changes_neither_caps_nor_costs() {
    let granted = granted().await;
    let stores = stores(&granted).await;
    let owner = open(&granted.owner).await.expect("opens");
    let scene = Scene::start(owner.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    let paid = call("paid", CallOutcome::Accepted, 7);
    owner.put_calls(scene.run, TaskKey::question(0, 0), &[paid]).await.expect("is put");
    for statement in [
        "UPDATE run_counters SET spent = -4000000000000000000",
        "INSERT INTO budgets (kind, scope, part, spent) VALUES (2, 99999, 0, -4000000000000000000)",
    ] {
        run_sql(&granted.roles.work, statement).expect("who works books");
    }
    for statement in [
        "UPDATE run_groups SET cap = NULL",
        "UPDATE runs SET spec = '{}'",
        "UPDATE calls SET cost = 0",
        "DELETE FROM calls",
        "DELETE FROM budgets",
    ] {
        denied(&granted.roles.work, statement).await;
    }
    stores["coordinate"].sweep(scene.run).await.expect("is swept");
    let counters = owner.run(scene.run).await.expect("is read").counters;
    assert_eq!(counters.spent, PicoUsd(7));
}

/// Whoever may add items may add one that is not what its hash says, before others store the right one, and can take none away. It is
/// read by nobody, and who may delete items makes room.
#[tokio::test]
async fn an_item_that_is_not_what_its_hash_says_is_refused_until_it_is_taken_away() {
    let granted = granted().await;
    let stores = stores(&granted).await;
    let item = Item::from_bytes(b"a question".to_vec());
    let hash = item.hash.hex();
    let wrong = format!("INSERT INTO items (hash, body) VALUES ('\\x{hash}', '\\x00')");
    run_sql(&granted.roles.submit, &wrong).expect("a submitter adds items");
    let put = async || stores["submit"].put_items(std::slice::from_ref(&item)).await.expect("is put");
    put().await;
    let refused = stores["work"].item(item.hash).await.expect_err("it is another");
    assert!(matches!(refused, StoreError::Corrupt(_)) && refused.to_string().contains(&hash), "{refused}");
    let take_away = format!("DELETE FROM items WHERE hash = '\\x{hash}'");
    denied(&granted.roles.submit, &take_away).await;
    denied(&granted.roles.work, &take_away).await;
    run_sql(&granted.roles.coordinate, &take_away).expect("a coordinator deletes items");
    put().await;
    assert_eq!(stores["work"].item(item.hash).await.expect("is read"), item.bytes);
}

async fn denied(url: &str, statement: &str) {
    let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut raw(url).await).await;
    let said = refused.expect_err(&format!("{url} must not: {statement}")).to_string();
    assert!(said.contains("permission denied") || said.contains("must be owner"), "{statement}: {said}");
}

/// A migration after the roles were named leaves them right: new tables are read by all, and what somebody granted beside is taken.
#[tokio::test]
async fn migrations_leave_the_grants_right() {
    let granted = granted().await;
    let admin = |sql: &str| run_sql(&granted.admin, sql).unwrap_or_else(|e| panic!("{sql}: {e:#}"));
    admin(
        "GRANT ALL ON facts TO bench_submit; GRANT UPDATE (spec) ON runs TO bench_work; REVOKE ALL ON runs FROM bench_read",
    );
    run_sql(&granted.owner, "CREATE TABLE of_a_later_release (it text)").expect("the owner makes tables");
    migrate(&granted.owner).await.expect("is up to date");
    denied(&granted.roles.submit, "UPDATE facts SET doc = ''").await;
    denied(&granted.roles.work, "UPDATE runs SET spec = ''").await;
    run_sql(&granted.roles.read, "SELECT * FROM runs, of_a_later_release").expect("all tables are read");
    denied(&granted.roles.coordinate, "INSERT INTO of_a_later_release VALUES ('')").await;
    // as the schema before had it, with its roles noted by hand
    admin("UPDATE bench_schema SET version = 17");
    migrate(&granted.owner).await.expect("may be repeated");
    open(&granted.roles.work).await.expect("opens").close().await;
}

/// Who goes back to an older build has processes of the newer one that still drain: they keep what they were granted.
#[tokio::test]
async fn an_older_build_takes_nothing_from_the_roles_of_a_newer_one() {
    let granted = granted().await;
    let newer = "UPDATE bench_schema SET version = 99; CREATE TABLE of_a_later_release (it text); \
                 GRANT INSERT ON of_a_later_release TO bench_work";
    run_sql(&granted.owner, newer).expect("as a newer build leaves it");
    assert_eq!(migrate(&granted.owner).await.expect("is used as it is"), 99);
    let names = name_roles(&granted.owner, "bench").await.expect("as the chart asks each time");
    assert_eq!(names.len(), Part::ALL.len());
    run_sql(&granted.roles.work, "INSERT INTO of_a_later_release VALUES ('')").expect("may still write");
    open(&granted.roles.work).await.expect("opens").close().await;
    let refused = name_roles(&granted.owner, "others").await.expect_err("it does not know all grants").to_string();
    assert!(refused.contains("migrate --roles others` of the newer build"), "{refused}");
}

/// Who may not make roles is told the statements for one who may; another prefix takes the place of the first.
#[tokio::test]
async fn roles_are_made_by_who_may() {
    let granted = granted().await;
    let prefix = format!("t{}", std::process::id());
    let refused = name_roles(&granted.owner, &prefix).await.expect_err("the owner makes no roles").to_string();
    let statement = format!("CREATE ROLE {prefix}_read NOLOGIN; CREATE ROLE {prefix}_submit NOLOGIN;");
    assert!(refused.contains(&statement) && refused.contains("superuser"), "{refused}");
    open(&granted.roles.read).await.expect("nothing was changed").close().await;

    name_roles(&granted.admin, &prefix).await.expect("a superuser makes them");
    let closed = match open(&granted.roles.read).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the roles of before have no right any more"),
    };
    assert!(closed.contains("permission denied"), "{closed}");
    let member = format!("GRANT {prefix}_work TO bench_read");
    run_sql(&granted.admin, &member).expect("a member");
    let store = open(&granted.roles.read).await.expect("a member of a role has its rights");
    let session = store.open_session("w", "d", "{}").await.expect("writes");
    store.end_session(session).await.expect("ends");
    store.close().await;
    let leave = format!("REVOKE {prefix}_work FROM bench_read");
    run_sql(&granted.admin, &leave).expect("no member any more");
    for part in Part::ALL {
        let drop = format!("DROP OWNED BY {prefix}_{0}; DROP ROLE {prefix}_{0}", part.name());
        run_sql(&granted.admin, &drop).expect("the role goes");
    }
    let gone = migrate(&granted.owner).await.expect_err("its roles are not at the server").to_string();
    assert!(gone.contains(&format!("--roles {prefix}")), "{gone}");
}
