//! The SQLite backend: the suite, and what only a file has.

use std::{path::PathBuf, sync::Arc};

use bench_proto::{
    facts::Outcome,
    ids::{Role, RunNo, TaskKey, TaskKind},
    spec::Limits,
    step::{Opens, StepNo},
    usage_cap::{UsageCap, UsageUnit},
};
use bench_store::{
    Item, NewGroup, NewRun, RunFilter, RunState, StoreError,
    conformance::{Fresh, Scene, bank, ending, judged, new_run},
    open,
    sqlite::back_up,
};

/// A store in a folder of its own.
async fn fresh() -> Fresh {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite:{}", folder.path().join("sub/bench.db").display());
    let store = open(&url).await.expect("the store opens");
    Fresh { store, url, keep: Box::new(folder) }
}

bench_store::store_conformance!(crate::sqlite::fresh);

async fn refusal(url: &str) -> String {
    match open(url).await {
        Err(error @ StoreError::Open(_)) => error.to_string(),
        Err(error) => panic!("{url}: wrong kind of error: {error:?}"),
        Ok(_) => panic!("{url} must be refused"),
    }
}

#[tokio::test]
async fn places_that_cannot_be_used_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    std::fs::write(folder.path().join("text"), "this is no database, and long enough to be seen as none".repeat(40))
        .expect("is written");
    assert!(refusal("sqlite::memory:").await.contains("resumed"));
    assert!(refusal("sqlite:").await.contains("names no file"));
    #[cfg(not(feature = "postgres"))]
    assert!(refusal("postgres://u:secret@h/db").await.contains("many machines"));
    assert!(!refusal("mysql://u:secret@h/db").await.contains("secret"));
    assert!(refusal("bench.db").await.contains("sqlite:"));
    assert!(refusal(&at("")).await.contains("names no file"));
    assert!(refusal(&format!("sqlite:{}", folder.path().display())).await.contains("folder"));
    let damaged = open(&at("text")).await.err().expect("text is no database");
    assert!(matches!(&damaged, StoreError::Broken(message) if message.contains("no SQLite file")), "{damaged:?}");
    assert!(std::error::Error::source(&damaged).is_some(), "what SQLite said is behind it: {damaged:?}");
    for (url, what) in
        [(at("text/bench.db"), "cannot be made"), ("sqlite:/proc/bench.db".to_owned(), "cannot be written")]
    {
        let refused = refusal(&url).await;
        assert!(
            refused.contains(what) && refused.contains("--store sqlite:PATH, or another home with BENCH_HOME"),
            "{refused}"
        );
    }
}

/// Nobody knows which file the program makes there to find out whether it may write: releases named it by their process.
#[cfg(unix)]
#[tokio::test]
async fn what_is_tried_out_beside_a_store_is_written_through_no_link() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "precious").expect("is written");
    let probe = folder.path().join(format!(".bench-probe-{}", std::process::id()));
    std::os::unix::fs::symlink(&victim, &probe).expect("is linked");
    let url = format!("sqlite:{}", folder.path().join("bench.db").display());
    open(&url).await.expect("the store opens").close().await;
    assert_eq!(std::fs::read_to_string(&victim).expect("is there"), "precious");
    let names = std::fs::read_dir(folder.path()).expect("is read").flatten().map(|entry| entry.file_name());
    let probes = names.filter(|name| name.to_string_lossy().starts_with(".bench-probe-")).count();
    assert!(probe.is_symlink() && probes == 1, "nothing of its own is left");
}

/// Releases before the files were their owner's alone made them for everybody.
#[cfg(unix)]
#[tokio::test]
async fn a_store_of_an_earlier_release_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let fresh = fresh().await;
    fresh.store.close().await;
    let file = file_of(&fresh.url);
    let beside = |ending: &str| PathBuf::from(format!("{}{ending}", file.display()));
    for left in [file.clone(), beside("-wal")] {
        let made = std::fs::OpenOptions::new().append(true).create(true).open(&left).expect("is there");
        made.set_permissions(std::fs::Permissions::from_mode(0o644)).expect("others may read it");
    }
    let store = open(&fresh.url).await.expect("opens");
    for file in [file.clone(), beside("-wal"), beside("-shm")] {
        let mode = std::fs::metadata(&file).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    store.close().await;
}

/// SQLite keeps its files beside what a link leads to.
#[cfg(unix)]
#[tokio::test]
async fn a_store_behind_a_link_is_closed_to_others_and_nothing_else_is() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let fresh = fresh().await;
    fresh.store.close().await;
    let file = file_of(&fresh.url);
    let (link, other) = (file.with_file_name("link.db"), file.with_file_name("other"));
    let log = PathBuf::from(format!("{}-wal", file.display()));
    for left in [&file, &log, &other] {
        let made = std::fs::OpenOptions::new().append(true).create(true).open(left).expect("is there");
        made.set_permissions(std::fs::Permissions::from_mode(0o644)).expect("others may read it");
    }
    symlink(&file, &link).expect("is linked");
    symlink(&other, file.with_file_name("link.db-wal")).expect("is linked");
    let store = open(&format!("sqlite:{}", link.display())).await.expect("opens");
    for (file, expected) in [(&file, 0o600), (&log, 0o600), (&other, 0o644)] {
        let mode = std::fs::metadata(file).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, expected, "{}", file.display());
    }
    store.close().await;
}

/// A connection of its own to look at rows, and to damage them.
async fn raw(url: &str) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions as _;
    let path = url.strip_prefix("sqlite:").expect("a file");
    sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.expect("opens")
}

async fn change(conn: &mut sqlx::SqliteConnection, sql: impl sqlx::SqlSafeStr) {
    sqlx::query(sql).execute(conn).await.expect("the statement runs");
}

/// Ids of the runs in a file that was copied alone, without the log beside it.
async fn runs_in_a_copy(url: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("copy.db");
    std::fs::copy(file_of(url), &copy).expect("is copied");
    runs_of(&format!("sqlite:{}", copy.display())).await
}

async fn runs_of(url: &str) -> Vec<String> {
    let store = open(url).await.expect("opens");
    let runs = store.list_runs(&RunFilter::default()).await.expect("are read");
    store.close().await;
    runs.into_iter().map(|run| run.run_id.0).collect()
}

fn file_of(url: &str) -> PathBuf {
    PathBuf::from(url.strip_prefix("sqlite:").expect("a file"))
}

/// Bytes of the write-ahead log; `None` when there is none.
fn log_of(url: &str) -> Option<u64> {
    let mut log = file_of(url).into_os_string();
    log.push("-wal");
    std::fs::metadata(log).ok().map(|log| log.len())
}

#[tokio::test]
async fn p21_a_closed_store_is_one_file_even_while_others_have_it_open() {
    let Fresh { store, url, keep } = fresh().await;
    let other = open(&url).await.expect("opens a second time");
    store.create_run(&new_run("r")).await.expect("is created");
    assert!(log_of(&url).is_some_and(|bytes| bytes > 0), "commits are in the log");
    store.close().await;
    assert_eq!(log_of(&url), Some(0), "nothing is left in it, though it is still in use");
    assert_eq!(runs_in_a_copy(&url).await, ["r"]);
    other.close().await;
    assert_eq!(log_of(&url), None);
    drop(keep);
}

#[tokio::test]
async fn a_backup_is_one_moment_of_a_store_that_others_write() {
    let Fresh { store, url, keep } = fresh().await;
    store.create_run(&new_run("first")).await.expect("is created");
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for number in 0.. {
                if store.create_run(&new_run(&format!("later-{number}"))).await.is_err() {
                    return;
                }
            }
        }
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("backup.db");
    let copied = back_up(&url, &file).await.expect("is copied");
    let runs = runs_of(&format!("sqlite:{}", file.display())).await;
    assert_eq!(i64::try_from(runs.len()), Ok(copied.runs));
    assert_eq!(runs.last().map(String::as_str), Some("first"));
    let mut looking = raw(&format!("sqlite:{}", file.display())).await;
    let halves: i64 =
        sqlx::query_scalar("SELECT count(*) FROM runs FULL JOIN run_counters USING (run_no) WHERE run_id IS NULL")
            .fetch_one(&mut looking)
            .await
            .expect("is read");
    assert_eq!(halves, 0, "a run is there as a whole or not at all");
    drop(looking);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).expect("is there").permissions().mode() & 0o777, 0o600);
    }
    let again = back_up(&url, &file).await.expect_err("it exists").to_string();
    assert!(again.contains("exists already"), "{again}");
    let nothing =
        back_up("sqlite:/nowhere/bench.db", &folder.path().join("other.db")).await.expect_err("nothing there");
    assert!(nothing.to_string().contains("no store /nowhere/bench.db"), "{nothing}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("is read").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("part")), "{left:?}");
    store.close().await;
    writing.await.expect("no panic");
    drop(keep);
}

#[test]
fn p27_histories_agree_with_the_transition_table() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let fresh = runtime.block_on(fresh());
    let looking = tokio::sync::Mutex::new(runtime.block_on(raw(&fresh.url)));
    let rows = async |run: RunNo| {
        let (low, high) = TaskKey::range_of_kind(TaskKind::Question);
        sqlx::query_as(
            "SELECT state, lease_epoch, attempts, losses FROM tasks WHERE run_no = $1 AND task_key BETWEEN $2 AND $3 ORDER BY task_key",
        )
        .bind(run.0)
        .bind(low.0)
        .bind(high.0)
        .fetch_all(&mut *looking.lock().await)
        .await
        .expect("rows are read")
    };
    crate::history::agree(&runtime, &fresh.store, 48, rows);
}

/// Whatever the counters say, the sweep derives the truth from the checkpoints.
#[tokio::test]
async fn p7_corrupted_counters_are_repaired_by_the_sweep() {
    let fresh = fresh().await;
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(2, &[0, 1]), (3, &[2])]), bank(1, &[(1, &[0])])]).await;
    let mut conn = raw(&fresh.url).await;
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    scene.make_ready(1, 1).await;
    let vote = TaskKey::judge(0, 0, 0, 0);
    scene.answer(TaskKey::question(0, 0), 0.5, Opens::Judges(vec![vote])).await;
    let question = TaskKey::question(1, 0);
    scene.answer(question, 1.0, Opens::Nothing).await;
    scene.conclude(question, Outcome::Scored, 1.0).await;
    let sound = (fresh.store.banks(scene.run, None).await.expect("are read"), scene.counters().await);
    for damage in [
        "UPDATE banks SET open_recalls = open_recalls + 7, position = 0",
        "UPDATE banks SET open_recalls = -3, state = 0, segment = 0",
        "UPDATE banks SET state = 1, segment = last_segment, open_recalls = 0",
        "UPDATE tasks SET open_children = open_children + 5",
        "UPDATE tasks SET open_children = -1",
        "UPDATE run_counters SET banks_planned = 9, banks_ready = 9, entries_planned = 0, entries_retained = 77, scored = 5, \
         abstained = 4, infra_error = 3, answered = 2, headline_sum = 99, unmeasured = 6, spent = 1, uncertain = 8",
        "DELETE FROM tasks WHERE state = 0 AND concluded = 0",
    ] {
        change(&mut conn, damage).await;
        let second = open(&fresh.url).await.expect("a process that takes over");
        let outcome = second.sweep(scene.run).await.expect("sweeps");
        assert_eq!(outcome.to_conclude, [], "{damage}");
        let repaired = (second.banks(scene.run, None).await.expect("are read"), scene.counters().await);
        assert_eq!(repaired, sound, "{damage}");
        second.close().await;
    }
    assert_eq!(scene.ready(Role::Question).await, [TaskKey::question(0, 1)], "a missing task is made again");
    change(&mut conn, "UPDATE tasks SET open_children = 3").await;
    let epoch = scene.claim(vote).await.epoch;
    let last = ending(scene.run, vote, StepNo::JUDGE, epoch, judged(1.0), Opens::Nothing);
    assert_eq!(scene.commit(&[last]).await.to_conclude, [], "the counter hides that the question is complete");
    let found = fresh.store.sweep(scene.run).await.expect("sweeps").to_conclude;
    assert_eq!(found, [(scene.run, TaskKey::question(0, 0))]);
    change(&mut conn, "UPDATE banks SET open_recalls = 5").await;
    scene.recall(TaskKey::question(0, 1)).await;
    assert_eq!(scene.ready(Role::Retain).await, []);
    assert_eq!(fresh.store.sweep(scene.run).await.expect("sweeps").opened, [(scene.run, Role::Retain)]);
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 1)]);
}

#[tokio::test]
async fn other_schemas_and_other_files_are_refused() {
    let store = fresh().await;
    store.store.close().await;
    let mut conn = raw(&store.url).await;
    change(&mut conn, "UPDATE bench_schema SET version = 99, min_writer = 1").await;
    open(&store.url).await.expect("a newer schema that still lets this build write").close().await;
    change(&mut conn, "UPDATE bench_schema SET min_writer = 99").await;
    match open(&store.url).await {
        Err(StoreError::Schema { found: 99, advice, .. }) => assert!(advice.contains("newer"), "{advice}"),
        other => panic!("must be refused: {:?}", other.err()),
    }
    change(&mut conn, "DROP TABLE bench_schema").await;
    assert!(refusal(&store.url).await.contains("something else"));
}

#[tokio::test]
async fn damage_is_named() {
    let fresh = fresh().await;
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    scene.recall(TaskKey::question(0, 0)).await;
    let item = Item::from_bytes(b"some bytes that are stored".to_vec());
    fresh.store.put_items(std::slice::from_ref(&item)).await.expect("are stored");
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "UPDATE checkpoints SET facts = '{\"step\":'").await;
    change(&mut conn, "UPDATE items SET body = x'28b52ffd'").await;
    let steps = fresh.store.question_steps(scene.run, &[TaskKey::question(0, 0)]).await.expect_err("is damaged");
    assert!(matches!(&steps, StoreError::Corrupt(what) if what.contains("Question(bank 0, 0")), "{steps}");
    let read = fresh.store.item(item.hash).await.expect_err("is damaged");
    assert!(matches!(&read, StoreError::Corrupt(what) if what.contains(&item.hash.hex())), "{read}");
    assert!(fresh.store.check().await.expect("is sound").contains("SQLite 3."));
    fresh.store.close().await;
    assert!(
        fresh.store.renew_session(scene.session, None).await.is_err_and(|e| e.is_transient()),
        "closed stores say so"
    );
}

/// What is wrong with one run is no other run's business, and an id that is a path leads nowhere.
#[tokio::test]
async fn a_run_that_cannot_be_read_hides_no_other() {
    for (damage, said) in [
        ("UPDATE runs SET run_id = '../../escaped' WHERE run_id = 'b'", "'../../escaped' is no id of a run"),
        ("UPDATE runs SET run_id = '/tmp/escaped' WHERE run_id = 'b'", "'/tmp/escaped' is no id of a run"),
        ("UPDATE runs SET run_id = 'x\u{202e}y' WHERE run_id = 'b'", "is no id of a run"),
        ("DELETE FROM run_counters WHERE run_no = 2", "run b has no counters"),
        ("UPDATE runs SET spec = '{}' WHERE run_id = 'b'", "the spec of run b is not readable"),
        ("UPDATE runs SET spec = '' WHERE run_id = 'b'", "the spec of run b is not readable"),
        (
            "UPDATE runs SET spec = '[' || replace(hex(zeroblob(100000)), '00', '{\"\":0},') || '0]' WHERE run_id = 'b'",
            "the spec of run b is not readable: it has 300002 values, at most 200000 are read",
        ),
        ("UPDATE runs SET tags = 'x' WHERE run_id = 'b'", "the tags of run b is not readable"),
        ("UPDATE runs SET state = 'x' WHERE run_id = 'b'", "'x' is no state of a run"),
    ] {
        let fresh = fresh().await;
        for id in ["a", "b", "c"] {
            let made = fresh.store.create_run(&new_run(id)).await.expect("is created");
            assert_eq!(made.0, i64::from(id.as_bytes()[0] - b'a') + 1);
        }
        change(&mut raw(&fresh.url).await, damage).await;
        let read = fresh.store.run(RunNo(2)).await.expect_err("is damaged");
        assert!(read.is_about_rows() && !read.is_transient() && read.to_string().contains(said), "{damage}: {read}");
        let listed = async |limit| {
            let filter = RunFilter { limit, ..RunFilter::default() };
            let rows = fresh.store.list_runs(&filter).await.expect("is listed");
            rows.into_iter().map(|row| row.run_id.0).collect::<Vec<_>>()
        };
        assert_eq!(listed(None).await, ["c", "a"], "{damage}");
        assert_eq!(listed(Some(2)).await, ["c", "a"], "{damage}: it takes nobody's place");
        assert_eq!(listed(Some(1)).await, ["c"], "{damage}");
        fresh.store.close().await;
    }
}

/// A run is deleted, and its group's cap changed, whatever is wrong with another run of the group.
#[tokio::test]
async fn p41_a_run_that_cannot_be_read_holds_up_no_change_of_its_group() {
    let fresh = fresh().await;
    let limits = |most| Limits { max_usage: Some(UsageCap { unit: UsageUnit::Calls, most }), ..Limits::default() };
    let mut runs = Vec::new();
    for id in ["a", "b", "c"] {
        let group = Some(NewGroup { id: "g".to_owned(), cap: None });
        let mut new = NewRun { group, ..new_run(id) };
        new.spec.limits = limits(10);
        runs.push(fresh.store.create_run(&new).await.expect("is created"));
    }
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "UPDATE runs SET spec = '{}' WHERE run_id = 'b'").await;
    change(&mut conn, "INSERT INTO budgets (kind, scope, part, spent, reserved, uncertain) VALUES (3, 1, 2, 4, 0, 0)")
        .await;
    let cap = async || fresh.store.run(runs[2]).await.expect("is sound").spec.limits.max_usage.map(|cap| cap.most);
    fresh.store.set_limits(runs[0], &limits(20)).await.expect("limits are set");
    assert_eq!(cap().await, Some(20));
    let paused = fresh.store.set_run_state(runs[0], &[RunState::Running], RunState::Paused, None).await;
    assert!(paused.expect("is paused") && fresh.store.delete_runs(&runs[..1]).await.expect("is deleted"));
    assert_eq!(cap().await, Some(16), "four calls were made");
}

/// Another process holds the file for a moment: writers wait for it.
#[tokio::test]
async fn writers_wait_for_another_process() {
    let fresh = fresh().await;
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "BEGIN IMMEDIATE").await;
    let store = fresh.store.clone();
    let waiting = tokio::spawn(async move { store.open_session("w", "local", "{}").await });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    assert!(fresh.store.open_sessions("local").await.expect("readers never wait").is_empty());
    change(&mut conn, "COMMIT").await;
    waiting.await.expect("ends").expect("the session opens");
}

/// Releases up to schema 13 believed any count of a provider, and a sum beyond 64 bits was no integer any more: nothing that reads
/// money could open such a store.
#[tokio::test]
async fn sums_that_became_fractions_are_mended() {
    use sqlx::Connection as _;
    let fresh = fresh().await;
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    let run = scene.run.0;
    fresh.store.close().await;
    let mut conn = raw(&fresh.url).await;
    // as tables were before they were checked
    change(&mut conn, "PRAGMA ignore_check_constraints = ON").await;
    let absurd = "1, 9000000000000000000, 9223372036854775807, 1, 0, x''";
    let sound = "100, 10, 500000, 1, 0, x''";
    let change = [
        format!("INSERT INTO calls VALUES (x'01', {run}, 1, x'', 1, 0, 'm', {absurd}, 'stop')"),
        format!("INSERT INTO calls VALUES (x'02', {run}, 1, x'', 1, 0, 'm', {sound}, 'stop')"),
        "UPDATE run_counters SET spent = 9223372036854775807 + 500000, overdraft = 9223372036854775807 + 1".to_owned(),
        format!("INSERT INTO budgets VALUES (1, {run}, 1, 9223372036854775807 + 500000, 0, 0)"),
        "INSERT INTO budgets VALUES (2, 0, 0, 9223372036854775807 + 500000, 0, 0)".to_owned(),
        "INSERT INTO budgets VALUES (2, 1, 0, 7, 0, 0)".to_owned(),
    ];
    for statement in change {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut conn).await.expect("is damaged");
    }
    let version: i64 =
        sqlx::query_scalar("SELECT version FROM bench_schema").fetch_one(&mut conn).await.expect("a version");
    let migration = include_str!("../../../../migrations/sqlite/0014_believed.sql");
    sqlx::raw_sql(migration).execute(&mut conn).await.expect("is mended");
    sqlx::query("UPDATE bench_schema SET version = $1").bind(version).execute(&mut conn).await.expect("is set back");
    conn.close().await.expect("closes");
    let store = open(&fresh.url).await.expect("opens");
    assert_eq!(store.run(scene.run).await.expect("can be read").counters.spent.0, 500_000);
    store.close().await;
    let mut conn = raw(&fresh.url).await;
    let sums: Vec<(i64, i64)> = sqlx::query_as("SELECT kind, spent FROM budgets ORDER BY kind, scope")
        .fetch_all(&mut conn)
        .await
        .expect("integers");
    assert_eq!(sums, [(1, 500_000), (2, 500_000), (2, 7)]);
}

/// A process of an earlier release may write such counts after that; from schema 18 on the tables refuse them.
#[tokio::test]
async fn what_others_wrote_beyond_64_bits_is_mended_and_then_refused() {
    let fresh = fresh().await;
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    let run = scene.run.0;
    fresh.store.close().await;
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "ALTER TABLE run_counters DROP COLUMN whole_counts").await;
    for table in ["calls", "reservations", "run_counters", "budgets"] {
        change(&mut conn, sqlx::AssertSqlSafe(format!("ALTER TABLE {table} DROP COLUMN whole"))).await;
    }
    change(&mut conn, "ALTER TABLE run_counters DROP COLUMN unmeasured").await;
    change(&mut conn, "DROP INDEX banks_filled_by").await;
    for column in ["filled_name", "filled_handle", "filled_by", "later"] {
        change(&mut conn, sqlx::AssertSqlSafe(format!("ALTER TABLE banks DROP COLUMN {column}"))).await;
    }
    change(&mut conn, "ALTER TABLE runs DROP COLUMN looks").await;
    change(&mut conn, "ALTER TABLE incarnations DROP COLUMN identity").await;
    let absurd =
        format!("INSERT INTO calls VALUES (x'01', {run}, 1, x'', 1, 0, 'm', 1, 9e30, 'much', 1, 0, x'', 'stop')");
    let booked = "UPDATE run_counters SET spent = 9e30, reserved = 9e30";
    for statement in [
        absurd.as_str(),
        &format!("INSERT INTO calls VALUES (x'02', {run}, 1, x'', 1, 0, 'm', 100, 10, 500000, 1, 0, x'', 'stop')"),
        &format!("INSERT INTO reservations VALUES (x'03', {run}, 1, 9e30, 0, 1, 0)"),
        booked,
        &format!("INSERT INTO budgets VALUES (1, {run}, 1, 9e30, 0, 0)"),
        "UPDATE bench_schema SET version = 17",
    ] {
        change(&mut conn, sqlx::AssertSqlSafe(statement.to_owned())).await;
    }
    let store = open(&fresh.url).await.expect("opens");
    let counters = store.run(scene.run).await.expect("can be read").counters;
    assert_eq!((counters.spent.0, counters.reserved.0), (500_000, 0));
    store.close().await;
    for refused in [absurd.replace("x'01'", "x'04'").as_str(), booked] {
        let refused = sqlx::query(sqlx::AssertSqlSafe(refused.to_owned())).execute(&mut conn).await;
        assert!(refused.is_err_and(|e| e.to_string().contains("CHECK constraint failed")));
    }
}

/// The same of what is counted in other units than money, from schema 23 on.
#[tokio::test]
async fn counters_that_are_no_whole_numbers_are_counted_again_and_then_refused() {
    let fresh = fresh().await;
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    let before = fresh.store.run(scene.run).await.expect("can be read").counters;
    fresh.store.close().await;
    let mut conn = raw(&fresh.url).await;
    let absurd = [
        "UPDATE run_counters SET scored = 9e18 * 10",
        "UPDATE run_counters SET banks_planned = 0.5",
        "UPDATE run_counters SET headline_sum = 'much'",
        "UPDATE run_counters SET unmeasured = 'none'",
    ];
    for statement in ["ALTER TABLE run_counters DROP COLUMN whole_counts", "UPDATE bench_schema SET version = 22"]
        .into_iter()
        .chain(absurd)
    {
        change(&mut conn, statement).await;
    }
    let store = open(&fresh.url).await.expect("opens");
    assert_eq!(store.run(scene.run).await.expect("can be read").counters, before);
    store.close().await;
    for refused in absurd {
        let said = sqlx::query(refused).execute(&mut conn).await.expect_err(refused).to_string();
        assert!(said.contains("CHECK constraint failed"), "{said}");
    }
}
