//! What holds for every verb: what two of them share lies below them, and an error tells its causes when it is asked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn verbs_do_not_use_each_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let verbs = entries(&folder).into_iter().filter(|path| path.file_stem().is_some_and(|name| name != "mod"));
    let mut looked_at = 0;
    for verb in verbs {
        // a verb of several files is a folder
        let files = if verb.is_dir() { entries(&verb) } else { vec![verb] };
        for path in files {
            let text = fs::read_to_string(&path).expect("a source file");
            let own = text.split("#[cfg(test)]").next().unwrap_or_default();
            assert!(!own.contains("super::") && !own.contains("commands::"), "{} uses another verb", path.display());
        }
        looked_at += 1;
    }
    assert!(looked_at > 20, "{looked_at} verbs");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("a file").path()).collect()
}

#[test]
fn an_error_tells_its_causes_when_it_is_asked() {
    let said = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bench-coord"))
            .args(["score", "--scorer", "exact", "--input", "/no/such/answers.jsonl"])
            .args(flags)
            .env_clear()
            .output()
            .expect("bench-coord runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).expect("text")
    };
    let message = "error: /no/such/answers.jsonl: No such file or directory (os error 2)\n";
    assert_eq!(said(&[]), message);
    assert_eq!(said(&["-v"]), format!("{message}  caused by: No such file or directory (os error 2)\n"));
}
