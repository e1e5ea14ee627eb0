//! The SQLite backend: the suite, and what only a file has.

use bench_store::{StoreError, conformance::Fresh, open};

/// A store in a folder of its own.
async fn fresh() -> Fresh {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite:{}", folder.path().join("sub/bench.db").display());
    let store = open(&url).await.expect("the store opens");
    Fresh {
        store,
        url,
        keep: Box::new(folder),
    }
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
    std::fs::write(
        folder.path().join("text"),
        "this is no database, and long enough to be seen as none".repeat(40),
    )
    .expect("is written");
    assert!(refusal("sqlite::memory:").await.contains("resumed"));
    assert!(refusal("sqlite:").await.contains("names no file"));
    assert!(refusal("postgres://u:secret@h/db").await.contains("many machines"));
    assert!(!refusal("mysql://u:secret@h/db").await.contains("secret"));
    assert!(refusal("bench.db").await.contains("sqlite:"));
    assert!(refusal(&at("")).await.contains("names no file"));
    assert!(
        refusal(&format!("sqlite:{}", folder.path().display()))
            .await
            .contains("folder")
    );
    assert!(refusal(&at("text")).await.contains("no SQLite file"));
    assert!(refusal(&at("text/bench.db")).await.contains("cannot be made"));
    assert!(refusal("sqlite:/proc/bench.db").await.contains("cannot be written"));
}
