//! Tells the library of which commit it is: `BENCH_COMMIT` of whoever packs it, else what git says. Builds that are not for others
//! (debug) ask no git: they would be made anew with every commit.

#[path = "build/commit.rs"]
mod commit;

use std::{env, path::Path};

/// What binaries are made of.
const SOURCES: [&str; 8] =
    ["Cargo.lock", "Cargo.toml", "coordinator", "crates", "datasets", "migrations", "proto", "worker"];

fn main() {
    println!("cargo:rerun-if-env-changed=BENCH_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/commit.rs");
    let mut found = commit::said(env::var("BENCH_COMMIT").ok().as_deref());
    if found.is_none() && env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
        found = commit::of_git(&root);
        if found.is_some() {
            let sources = SOURCES.iter().map(|name| root.join(name));
            for path in commit::watched(&root).into_iter().chain(sources) {
                println!("cargo:rerun-if-changed={}", path.display());
            }
        }
    }
    println!("cargo:rustc-env=BENCH_BUILT_OF={}", found.as_deref().unwrap_or(commit::UNKNOWN));
}
