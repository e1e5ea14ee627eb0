//! Whose results are they? Named after the file where nobody says it, so that results of several systems do not pass for those
//! of one.

use std::path::Path;

use bench_proto::spec::IMPORTED_SYSTEM;

/// Names of files and folders that say nothing about whose results are in them.
const GENERIC: [&str; 14] = [
    "answers",
    "data",
    "eval",
    "evaluation",
    "graded",
    "grades",
    "judged",
    "locomo",
    "output",
    "outputs",
    "predictions",
    "questions",
    "results",
    "scores",
];

/// Endings of files of results; whatever else stands behind a dot is part of a name (`gpt-4.1-mini`).
const ENDINGS: [&str; 17] = [
    "arrow", "bz2", "csv", "gz", "json", "jsonl", "md", "ndjson", "parquet", "tar", "tsv", "txt", "xz", "yaml", "yml",
    "zip", "zst",
];

/// A file's name without its endings, as many as there are.
fn without_endings(file: &str) -> &str {
    let mut stem = file;
    while let Some((before, ending)) = stem.rsplit_once('.') {
        if before.is_empty() || !ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)) {
            break;
        }
        stem = before;
    }
    stem
}

/// A system's name from a path: the file's name without its endings, behind the folder's where the file's says nothing.
pub(crate) fn named_after(path: &Path) -> String {
    let clean = |name: &str| {
        let fine = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = name.chars().map(fine).collect();
        name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    };
    let mut names = path.iter().rev().filter_map(|name| name.to_str());
    let file = names.next().unwrap_or_default();
    let stem = clean(without_endings(file));
    let says =
        |stem: &str| stem.split('-').any(|word| !GENERIC.contains(&word) && !word.chars().all(|c| c.is_ascii_digit()));
    if says(&stem) {
        return stem;
    }
    let folder = names.next().map(clean).filter(|name| !name.is_empty());
    let parts: Vec<String> = folder.into_iter().chain((!stem.is_empty()).then_some(stem)).collect();
    if parts.is_empty() { IMPORTED_SYSTEM.to_owned() } else { parts.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_named_after_its_file_and_folder() {
        for (path, name) in [
            ("/x/mem0_locomo.jsonl", "mem0-locomo"),
            ("/x/Zep Cloud.json.gz", "zep-cloud"),
            ("/x/mem0/results.json", "mem0-results"),
            ("/x/zep/results_2.json", "zep-results-2"),
            ("/x/hindsight/2026-10-01.csv", "hindsight-2026-10-01"),
            ("/x/mem0", "mem0"),
            ("/x/gpt-4.1-mini.jsonl", "gpt-4-1-mini"),
            ("/x/gpt-4.5-mini.JSON.zst", "gpt-4-5-mini"),
            ("/x/gpt-4.1", "gpt-4-1"),
            ("/x/y/.json", "json"),
            ("/", "imported"),
        ] {
            assert_eq!(named_after(Path::new(path)), name, "{path}");
        }
    }
}
