//! Pages of two runs: where they lie in the home, and which of them go with a run.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// Their folder in the home.
const FOLDER: &str = "comparisons";
/// Stands between the ids of the two.
const BETWEEN: char = '@';
/// Characters of an id in the name of a file.
const LONGEST_ID: usize = 80;

/// The file of a page that shows these two runs; `kind` tells it from other pages of the two.
#[must_use]
pub(crate) fn comparison_page(home: &Path, [a, b]: [&str; 2], kind: &str) -> PathBuf {
    home.join(FOLDER).join(format!("{}{BETWEEN}{}{kind}.html", in_a_name(a), in_a_name(b)))
}

/// Removes the pages that show a run, or a group, beside another.
///
/// # Errors
/// What the disk says of the folder, or of one of them.
pub(crate) fn remove_comparisons(home: &Path, id: &str) -> io::Result<()> {
    let id = in_a_name(id);
    let entries = match fs::read_dir(home.join(FOLDER)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(|name| shows(name, &id)) {
            continue;
        }
        match fs::remove_file(entry.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether the page of this name shows the run.
fn shows(name: &str, id: &str) -> bool {
    let Some((a, rest)) = name.strip_suffix(".html").and_then(|name| name.split_once(BETWEEN)) else { return false };
    // what is behind a full stop is the kind of page: ids in names have none
    a == id || rest.split('.').next() == Some(id)
}

/// An id as a part of the name of a file. That of a run of a folder is whatever the folder says.
fn in_a_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    id.chars().take(LONGEST_ID).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_folders_lead_nowhere_else() {
        let page = comparison_page(Path::new("h"), ["../../etc/\u{202e}x", &"b".repeat(300)], "");
        assert_eq!(page, Path::new("h/comparisons").join(format!("______etc__x@{}.html", "b".repeat(80))));
    }

    #[test]
    fn pages_of_a_run_go_with_it_and_no_others() {
        let home = tempfile::tempdir().expect("a folder");
        let home = home.path();
        remove_comparisons(home, "a").expect("there is none yet");
        let long = "l".repeat(200);
        let page = |a: &str, b: &str, kind: &str| comparison_page(home, [a, b], kind);
        let gone = [
            page("a", "b", ""),
            page("b", "a", ".report"),
            page("b", "a", ".report-with-traces"),
            page("a", &long, ""),
        ];
        let stay = [page("aa", "b", ""), page("b", "a-1", ".report"), home.join(FOLDER).join("a.html")];
        fs::create_dir(home.join(FOLDER)).expect("is made");
        for file in gone.iter().chain(&stay) {
            fs::write(file, "a page").expect("is written");
        }
        remove_comparisons(home, "a").expect("are removed");
        assert!(gone.iter().all(|file| !file.exists()) && stay.iter().all(|file| file.is_file()));
        fs::write(page("x", &long, ""), "a page").expect("is written");
        remove_comparisons(home, &long).expect("is removed");
        assert!(!page("x", &long, "").exists(), "its id is cut in the name");
    }
}
