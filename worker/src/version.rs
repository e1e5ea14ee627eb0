//! Version and commit of this build.

/// As binaries, runs and reports say it: `0.1.0 (1f2e3d4c5b6a)`, or `0.1.0 (commit unknown)`. Shown, never compared.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BENCH_BUILT_OF"), ")");

#[cfg(test)]
#[path = "../build/commit.rs"]
mod commit;

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::commit::{UNKNOWN, of_git, said, watched};

    fn git(folder: &Path, args: &[&str]) {
        let of = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"];
        let done = Command::new("git").arg("-C").arg(folder).args(of).args(args).output().expect("git is there");
        assert!(done.status.success(), "{done:?}");
    }

    #[test]
    fn the_commit_is_what_a_packager_says_else_what_git_says_else_unknown() {
        assert_eq!(said(Some("0123456789abcdef0123456789abcdef01234567\n")).as_deref(), Some("0123456789ab"));
        assert_eq!(said(Some("v0.1.0-3+deb12")).as_deref(), Some("v0.1.0-3+deb12"));
        for nothing in [None, Some(""), Some("unknown"), Some("$(rm -rf /)")] {
            assert_eq!(said(nothing), None);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        assert_eq!(of_git(root), None, "no repository");
        git(root, &["init", "-q"]);
        std::fs::write(root.join("file"), "one").expect("is written");
        assert_eq!(of_git(root), None, "no commit");
        git(root, &["add", "."]);
        git(root, &["commit", "-q", "-m", "one"]);
        let commit = of_git(root).expect("a commit");
        assert!(commit.len() == 12 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "{commit}");
        assert!(watched(root).iter().any(|path| path.ends_with("HEAD")), "{:?}", watched(root));
        std::fs::write(root.join("file"), "two").expect("is written");
        assert_eq!(of_git(root), Some(format!("{commit}-modified")));
        std::fs::create_dir(root.join("part")).expect("is made");
        assert_eq!(of_git(&root.join("part")), None, "unpacked within another repository");
        assert!(super::VERSION.starts_with(env!("CARGO_PKG_VERSION")) && super::VERSION.ends_with(')'));
        assert!(UNKNOWN.contains("unknown"));
    }
}
