//! docs/GRADERS.md says what the registry says: every scorer with its direction, and tests that are there.

use std::{fs, path::Path};

use bench_grading::scorers::registry;
use bench_proto::metric::Better;

#[test]
fn the_page_has_every_scorer_with_its_direction_and_its_vectors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/GRADERS.md");
    let page = fs::read_to_string(path).expect("the page is there");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        // other tables of the page have other columns
        .filter(|row: &Vec<&str>| row.len() == 5)
        .collect();
    let listed = registry::listed();
    for scorer in &listed {
        let name = format!("`{}`", scorer.name);
        let of_name: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0] == name).collect();
        assert_eq!(of_name.len(), 1, "{name}: one row");
        let [_, formula, better, source, tests] = of_name[0][..] else { panic!("{name}: five cells {:?}", of_name[0]) };
        assert!(!formula.is_empty() && !source.is_empty() && !tests.is_empty(), "{name}");
        let direction = if scorer.better == Better::Higher { "higher" } else { "lower" };
        assert!(better.starts_with(direction), "{name}: {better}");
        assert!(scorer.reversed.iter().all(|metric| better.contains(metric.as_str())), "{name}: {better}");
        assert_eq!(source.starts_with("ours"), scorer.source.starts_with("ours"), "{name}: {source}");
        for group in scorer.vectors {
            assert!(tests.contains(group), "{name}: no test of {group} among {tests}");
        }
    }
    let is_listed = |row: &&Vec<&str>| listed.iter().any(|scorer| row[0] == format!("`{}`", scorer.name));
    assert!(rows.iter().all(|row| is_listed(&row)), "{:?}", rows.iter().find(|row| !is_listed(row)));
}
