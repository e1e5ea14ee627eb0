//! Opening and migrating: what is refused, and what it says to do.

use bench_store::{
    StoreError,
    conformance::{Fresh, p7_a_question_goes_from_retain_to_conclusion},
    migrate, open,
};
use bench_testkit::postgres::{Postgres, shared};

use super::{at, change, raw};

async fn refusal(url: &str) -> String {
    match open(url).await {
        Err(StoreError::Open(message) | StoreError::Unavailable(message)) => message.to_string(),
        Err(error) => panic!("wrong kind of error: {error:?}"),
        Ok(_) => panic!("{url} must be refused"),
    }
}

#[tokio::test]
async fn migrating_is_explicit_and_may_be_repeated() {
    let url = shared().create_database();
    match open(&url).await {
        Err(StoreError::Schema { found: 0, advice, .. }) => assert!(advice.contains("bench-coord migrate"), "{advice}"),
        other => panic!("must be refused: {:?}", other.err()),
    }
    let all: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { migrate(&url).await })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.expect("ends").expect("migrates"), 23);
    }
    let store = open(&url).await.expect("opens");
    store.create_run(&bench_store::conformance::new_run("r")).await.expect("is created");
    assert_eq!(migrate(&url).await.expect("is up to date"), 23);
    assert!(store.check().await.expect("is sound").contains("schema 23, 1 runs"), "nothing was lost");
}

#[tokio::test]
async fn other_schemas_are_refused() {
    let fresh = at(shared().create_database()).await;
    let mut conn = raw(&fresh.url).await;
    change(&mut conn, "UPDATE bench_schema SET version = 99").await;
    open(&fresh.url).await.expect("a newer schema that still lets this build write").close().await;
    assert_eq!(migrate(&fresh.url).await.expect("a newer schema stays"), 99);
    change(&mut conn, "UPDATE bench_schema SET min_writer = 99").await;
    for opened in [open(&fresh.url).await.map(drop), migrate(&fresh.url).await.map(drop)] {
        match opened {
            Err(StoreError::Schema { found: 99, advice, .. }) => assert!(advice.contains("newer"), "{advice}"),
            other => panic!("must be refused: {other:?}"),
        }
    }
    change(&mut conn, "UPDATE bench_schema SET version = 0, min_writer = 1").await;
    assert!(matches!(open(&fresh.url).await, Err(StoreError::Schema { found: 0, .. })));
    let url = shared().create_database();
    change(&mut raw(&url).await, "CREATE TABLE runs (mine text)").await;
    let occupied = migrate(&url).await.expect_err("the name is taken").to_string();
    assert!(occupied.contains("of its own"), "{occupied}");
}

#[tokio::test]
async fn refusals_say_what_to_do_and_keep_secrets() {
    let cluster = Postgres::start().expect("tests need PostgreSQL");
    cluster.sql("postgres", "CREATE ROLE ann LOGIN PASSWORD 'right'").expect("a role is made");
    cluster.ask_password_of("ann").expect("the server asks");
    let port = cluster.port();
    let [closed] = bench_testkit::ports::reserve().expect("a port");
    for (url, expected) in [
        (format!("postgres://ann:s3cret@127.0.0.1:{port}/postgres"), "check the user and the password"),
        (format!("postgres://s3cret@127.0.0.1:{port}/nowhere"), "role \"s3cret\" does not exist"),
        (format!("postgres://ann:right@127.0.0.1:{port}/nowhere"), "createdb nowhere"),
        (format!("postgresql://ann:s3cret@127.0.0.1:{closed}/postgres"), "no server listens at"),
        (format!("postgres://ann:s3cret@no-such-host.invalid:{port}/postgres"), "check host and port"),
        (format!("postgres://ann:s3cret@127.0.0.1:{port}/postgres?sslmode=require"), "check sslmode"),
        ("postgres://ann:s3cret@127.0.0.1:port/postgres".to_owned(), "cannot be read"),
        ("postgres:ann:s3cret".to_owned(), "cannot be read"),
    ] {
        let message = refusal(&url).await;
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains(":s3cret"), "{message}");
    }
    let right = open(&format!("postgres://ann:right@127.0.0.1:{port}/postgres")).await.map(drop);
    assert!(matches!(right, Err(StoreError::Schema { found: 0, .. })), "{right:?}");
}

/// The grants that the migrations' README lists are enough.
#[tokio::test]
async fn a_role_with_the_documented_grants_can_work() {
    let readme = include_str!("../../../../../migrations/postgres/README.md");
    let (_, script) = readme.split_once("```sql\n").expect("the statements");
    let (script, _) = script.split_once("```").expect("their end");
    let cluster = Postgres::start().expect("tests need PostgreSQL");
    cluster.script(script).expect("the documented statements run");
    let url = |role: &str| cluster.url("bench").replace("postgres@", &format!("{role}@"));
    let refused = migrate(&url("bench_worker")).await.expect_err("may make no tables").to_string();
    assert!(refused.contains("permission denied") && refused.contains("README.md"), "{refused}");
    migrate(&url("bench_owner")).await.expect("the owner may");
    let store = open(&url("bench_worker")).await.expect("opens");
    let fresh = Fresh { store, url: url("bench_worker"), keep: Box::new(()) };
    p7_a_question_goes_from_retain_to_conclusion(&fresh).await;
    let rows = sqlx::raw_sql("TRUNCATE runs").execute(&mut raw(&fresh.url).await).await;
    assert!(rows.is_err(), "and no more than that");
}

#[tokio::test]
async fn encrypted_connections_check_the_server() {
    let cluster = Postgres::start().expect("tests need PostgreSQL");
    let certificate = cluster.speak_tls().expect("the server speaks TLS");
    let port = cluster.port();
    let url = |host: &str, mode: &str| {
        format!("postgres://postgres@{host}:{port}/postgres?sslmode={mode}&sslrootcert={}", certificate.display())
    };
    migrate(&url("localhost", "verify-full")).await.expect("the certificate is that of localhost");
    let store = open(&url("localhost", "verify-full")).await.expect("opens");
    assert!(store.check().await.expect("is sound").contains("PostgreSQL"));
    assert_eq!(store.describe(), format!("postgres://postgres@localhost:{port}/postgres"));
    let other = refusal(&url("127.0.0.1", "verify-full")).await;
    assert!(other.contains("check sslmode and sslrootcert"), "{other}");
    let untrusted = refusal(&format!("postgres://postgres@localhost:{port}/postgres?sslmode=verify-full")).await;
    assert!(untrusted.contains("check sslmode and sslrootcert"), "{untrusted}");
}

/// One call with an absurd count made each sum over it an error, for good.
#[tokio::test]
async fn what_others_wrote_beyond_64_bits_is_mended_and_then_refused() {
    let fresh = at(shared().create_database()).await;
    let run = fresh.store.create_run(&bench_store::conformance::new_run("r")).await.expect("is created");
    let mut conn = raw(&fresh.url).await;
    for table in ["calls", "reservations", "run_counters", "budgets"] {
        let drop = format!("ALTER TABLE {table} DROP CONSTRAINT {table}_whole");
        change(&mut conn, sqlx::AssertSqlSafe(drop)).await;
    }
    let call = |id: &str, tokens: &str| {
        format!(
            "INSERT INTO calls (attempt_id, call_key, run_no, task_key, prompt_tokens, completion_tokens, cost, duration_us, at_us, \
             phase, outcome, model, reply) VALUES ('{id}', '', {}, 1, 1, {tokens}, 5, 1, 0, 1, 0, 'm', '')",
            run.0
        )
    };
    let most = i64::MAX.to_string();
    for statement in [
        call("a", &most).as_str(),
        &call("b", &most),
        "UPDATE run_counters SET spent = 9000000000000000000",
        "UPDATE bench_schema SET version = 17",
    ] {
        change(&mut conn, sqlx::AssertSqlSafe(statement.to_owned())).await;
    }
    assert_eq!(migrate(&fresh.url).await.expect("migrates"), 23);
    let row = fresh.store.run(run).await.expect("is read");
    let ledger = fresh.store.ledger(&row).await.expect("is read");
    assert_eq!((row.counters.spent.0, ledger.unfinished.completion_tokens), (10, 0));
    let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(call("c", &most))).execute(&mut conn).await;
    assert!(refused.is_err_and(|e| e.to_string().contains("calls_whole")));
}
