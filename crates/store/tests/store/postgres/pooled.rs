//! The suite once more through PgBouncer in transaction mode, with two servers for four connections: consecutive
//! transactions of a connection meet different servers.

use std::sync::OnceLock;

use bench_store::{conformance::Fresh, open};
use bench_testkit::postgres::{PgBouncer, Postgres, shared};

/// A store behind the pooler, which the URL does not tell of.
async fn fresh() -> Fresh {
    static POOLER: OnceLock<(Postgres, PgBouncer)> = OnceLock::new();
    let (cluster, pooler) = POOLER.get_or_init(|| {
        let cluster = Postgres::start().expect("tests need PostgreSQL");
        let pooler = PgBouncer::start(&cluster).expect("tests need PgBouncer");
        (cluster, pooler)
    });
    let url = cluster.create_database().expect("a database is made");
    super::at(pooler.url(url.rsplit('/').next().unwrap_or_default())).await
}

bench_store::store_conformance!(crate::postgres::pooled::fresh);

#[tokio::test]
async fn poolers_are_recognised_or_named_by_the_url() {
    let behind = fresh().await;
    assert!(behind.store.check().await.expect("is sound").contains("through a pooler"));
    let url = shared().create_database();
    let direct = super::at(url.clone()).await;
    assert!(!direct.store.check().await.expect("is sound").contains("pooler"));
    let named = open(&format!("{url}?pgbouncer=true")).await.expect("opens");
    assert!(named.check().await.expect("is sound").contains("through a pooler"));
    assert_eq!(named.describe(), direct.store.describe());
}
