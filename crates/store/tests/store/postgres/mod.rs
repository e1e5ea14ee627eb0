//! The PostgreSQL backend: the suite on a real server, and what only a server has.

mod faults;
mod opening;
mod pooled;
mod races;
mod roles;

use std::time::Duration;

use bench_proto::{
    facts::Outcome,
    ids::{Role, RunNo, TaskKey, TaskKind},
    step::Opens,
};
use bench_store::{
    conformance::{Fresh, HEADLINE, Scene, bank, new_run, question_facts},
    migrate, open,
};
use bench_testkit::postgres::shared;
use sqlx::{Connection as _, PgConnection};

/// A store in a database of its own.
async fn fresh() -> Fresh {
    at(shared().create_database()).await
}

/// A store in the empty database behind a URL.
async fn at(url: String) -> Fresh {
    migrate(&url).await.expect("the schema is made");
    let store = open(&url).await.expect("the store opens");
    Fresh { store, url, keep: Box::new(()) }
}

/// A connection of its own to look at rows, and to damage them.
async fn raw(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("connects")
}

async fn change(conn: &mut PgConnection, sql: impl sqlx::SqlSafeStr) {
    sqlx::raw_sql(sql).execute(conn).await.expect("the statement runs");
}

bench_store::store_conformance!(crate::postgres::fresh);

#[test]
fn p27_histories_agree_with_the_transition_table() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let fresh = runtime.block_on(fresh());
    let looking = tokio::sync::Mutex::new(runtime.block_on(raw(&fresh.url)));
    let rows = async |run: RunNo| {
        let (low, high) = TaskKey::range_of_kind(TaskKind::Question);
        sqlx::query_as(
            "SELECT state::int8, lease_epoch, attempts::int8, losses::int8 FROM tasks \
             WHERE run_no = $1 AND task_key BETWEEN $2 AND $3 ORDER BY task_key",
        )
        .bind(run.0)
        .bind(low.0)
        .bind(high.0)
        .fetch_all(&mut *looking.lock().await)
        .await
        .expect("rows are read")
    };
    crate::history::agree(&runtime, &fresh.store, 32, rows);
}

/// Errors of the server are told apart, and leave a usable connection.
#[tokio::test]
async fn what_cannot_be_stored_is_bad_data() {
    let fresh = fresh().await;
    let item = bench_store::Item::from_bytes(vec![7; 100]);
    fresh.store.put_items(&[item.clone(), item.clone()]).await.expect("the same item twice is one");
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "ALTER TABLE run_events ADD CHECK (kind <> 'odd')").await;
    let run = fresh.store.create_run(&bench_store::conformance::new_run("r")).await.expect("is created");
    let refused = fresh.store.add_event(run, "odd", "").await.expect_err("breaks the check");
    assert!(matches!(refused, bench_store::StoreError::BadData(_)), "{refused}");
    fresh.store.add_event(run, "even", "").await.expect("the connection is usable afterwards");
    change(&mut conn, "DROP TABLE run_events").await;
    let damaged = fresh.store.events(run).await.expect_err("has no table");
    assert!(matches!(damaged, bench_store::StoreError::Broken(_)), "{damaged}");
    fresh.store.close().await;
    assert!(fresh.store.run(run).await.is_err_and(|e| e.is_transient()), "closed stores say so");
}

/// A batch of a run that the database has no statistics of is looked up row by row: nothing reads the whole run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_read_their_own_rows_only() {
    let fresh = fresh().await;
    let questions: Vec<u32> = (0..10_000).collect();
    let planned = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
    planned.make_ready(0, 1).await;
    let mut conn = raw(&fresh.url).await;
    fresh.store.close().await;
    let before = tasks_read(&mut conn).await;
    let store = open(&fresh.url).await.expect("opens");
    let scene = Scene { store: store.as_ref(), run: planned.run, session: planned.session };
    for _ in 0..3 {
        let ready = store.ready_tasks(scene.run, Role::Question, 100).await.expect("are read");
        let wanted: Vec<_> = ready.iter().map(|ready| (scene.run, ready.task)).collect();
        let claimed = store.claim(scene.session, &wanted).await.expect("are claimed");
        let records: Vec<_> =
            claimed.iter().flat_map(|c| scene.whole_question(c.task, c.epoch, 1.0, Opens::Nothing)).collect();
        let ended = scene.commit(&records).await.to_conclude;
        assert_eq!(ended.len(), 100);
        let facts: Vec<_> = ended.iter().map(|(_, task)| question_facts(*task, Outcome::Scored, 1.0)).collect();
        store.store_facts(scene.run, HEADLINE, &facts).await.expect("are stored");
    }
    store.close().await;
    let rows = tasks_read(&mut conn).await - before;
    assert!((300..9_000).contains(&rows), "300 questions of 10000 made the database read {rows} rows");
}

/// Rows of tasks that were read until now.
async fn tasks_read(conn: &mut PgConnection) -> i64 {
    // counted when the connections that have read are closed
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let sql = "SELECT (seq_tup_read + idx_tup_fetch)::int8 FROM pg_stat_user_tables WHERE relname = 'tasks'";
    sqlx::query_scalar(sql).fetch_one(conn).await.expect("is counted")
}

/// A claim of a run with a limit looks at no more votes than matter, however many wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p25_a_claim_beside_many_votes_that_wait_reads_a_few_of_them() {
    let fresh = fresh().await;
    let mut new = new_run("r");
    new.spec.judges = vec![new.spec.answerer.clone()];
    new.spec.limits.concurrency = Some(4);
    let scene = Scene::start_as(fresh.store.as_ref(), &new, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let (run, session) = (scene.run, scene.session);
    let mut conn = raw(&fresh.url).await;
    let votes = format!(
        "INSERT INTO tasks (run_no, task_key, state, lease_epoch, ready_at, concluded) \
         SELECT {}, {} + n * {}, CASE WHEN n < 5000 THEN 2 ELSE 0 END, 0, 0, 1 FROM generate_series(0, 9999) AS n",
        run.0,
        TaskKey::judge(0, 1, 0, 0).0,
        TaskKey::INDEX_STEP
    );
    change(&mut conn, sqlx::AssertSqlSafe(votes)).await;
    fresh.store.close().await;
    let before = tasks_read(&mut conn).await;
    let store = open(&fresh.url).await.expect("opens");
    for _ in 0..10 {
        let claimed = store.claim(session, &[(run, TaskKey::question(0, 0))]).await.expect("answers");
        assert_eq!(claimed, [], "all places are taken");
    }
    store.close().await;
    let rows = tasks_read(&mut conn).await - before;
    assert!(
        (1..1_000).contains(&rows),
        "10 claims beside 5000 votes that have ended and 5000 that wait made the database read {rows} rows"
    );
}
