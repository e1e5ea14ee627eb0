//! The PostgreSQL backend: the suite on a real server, and what only a server has.

mod faults;
mod opening;
mod pooled;
mod races;

use bench_proto::ids::{RunNo, TaskKey, TaskKind};
use bench_store::{conformance::Fresh, migrate, open};
use bench_testkit::postgres::shared;
use proptest::test_runner::{Config, TestRunner};
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

async fn change(conn: &mut PgConnection, sql: &'static str) {
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
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 32, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&crate::history::histories(), |history| {
        number.set(number.get() + 1);
        runtime.block_on(crate::history::drive(fresh.store.clone(), &format!("h{}", number.get()), &history, &rows));
        Ok(())
    });
    checked.expect("all histories agree");
}

/// Errors of the server are told apart, and leave a usable connection.
#[tokio::test]
async fn what_cannot_be_stored_is_bad_data() {
    let fresh = fresh().await;
    let item = bench_store::Item::of(vec![7; 100]);
    fresh.store.put_items(&[item.clone(), item.clone()]).await.expect("the same item twice is one");
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "ALTER TABLE run_events ADD CHECK (kind <> 'odd')").await;
    let run = fresh.store.create_run(&bench_store::conformance::new_run("r")).await.expect("is created");
    let refused = fresh.store.add_event(run, "odd", "").await.expect_err("breaks the check");
    assert!(matches!(refused, bench_store::StoreError::BadData(_)), "{refused}");
    fresh.store.add_event(run, "even", "").await.expect("the connection is usable afterwards");
    change(&mut conn, "DROP TABLE run_events").await;
    let damaged = fresh.store.events(run).await.expect_err("has no table");
    assert!(matches!(damaged, bench_store::StoreError::Corrupt(_)), "{damaged}");
    fresh.store.close().await;
    assert!(fresh.store.run(run).await.is_err_and(|e| e.is_transient()), "closed stores say so");
}
