//! Of which commit a build is: said by a packager, else by git, else unknown.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// What is said where nobody knows.
pub(crate) const UNKNOWN: &str = "commit unknown";
/// Characters of a commit that are shown.
const SHOWN: usize = 12;

/// What `BENCH_COMMIT` says, if it says a commit.
pub(crate) fn said(text: Option<&str>) -> Option<String> {
    let text = text?.trim();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+'));
    (is_plain && !text.is_empty() && text != "unknown").then(|| shown(text))
}

fn shown(commit: &str) -> String {
    let is_hash = commit.len() > SHOWN && commit.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash { commit.chars().take(SHOWN).collect() } else { commit.chars().take(40).collect() }
}

/// What git says of a folder: `1f2e3d4c5b6a`, with `-modified` when files differ from it. `None` without git, and in a folder that is
/// only a part of somebody else's repository.
pub(crate) fn of_git(root: &Path) -> Option<String> {
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = shown(&git(root, &["rev-parse", "HEAD"])?);
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-modified") })
}

/// Files that change with the commit.
pub(crate) fn watched(root: &Path) -> Vec<PathBuf> {
    let names = ["HEAD", "packed-refs"].map(str::to_owned);
    let branch = git(root, &["symbolic-ref", "-q", "HEAD"]);
    let place = |name: String| Some(root.join(git(root, &["rev-parse", "--git-path", &name])?));
    names.into_iter().chain(branch).filter_map(place).filter(|path| path.exists()).collect()
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("--no-optional-locks").arg("-C").arg(root).args(args).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}
