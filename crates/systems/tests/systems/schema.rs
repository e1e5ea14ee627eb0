//! The published JSON Schemas of adapter files and of the process protocol. `BENCH_BLESS=1` rewrites them.

use bench_systems::adapter::{AdapterSpec, ProcessReply, ProcessRequest};

fn published(name: &str, schema: &schemars::Schema) {
    let path = format!("{}/../../docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(schema).expect("serialises") + "\n";
    if std::env::var_os("BENCH_BLESS").is_some() {
        std::fs::create_dir_all(format!("{}/../../docs/schemas", env!("CARGO_MANIFEST_DIR"))).expect("a folder");
        std::fs::write(&path, &text).expect("is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "docs/schemas/{name}.json is not what the types say: BENCH_BLESS=1 rewrites it");
}

#[test]
fn schemas_are_published() {
    published("adapter", &schemars::schema_for!(AdapterSpec));
    published("process-request", &schemars::schema_for!(ProcessRequest));
    published("process-reply", &schemars::schema_for!(ProcessReply));
}
