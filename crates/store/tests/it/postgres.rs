//! The PostgreSQL backend: the suite on a real server, and what only a server has.

use bench_store::{conformance::Fresh, migrate, open};
use bench_testkit::postgres::shared;

/// A store in a database of its own.
async fn fresh() -> Fresh {
    let url = shared().create_database();
    migrate(&url).await.expect("the schema is made");
    let store = open(&url).await.expect("the store opens");
    Fresh { store, url, keep: Box::new(()) }
}

bench_store::store_conformance!(crate::postgres::fresh);
