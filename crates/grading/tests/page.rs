//! docs/GRADERS.md says what the registry says: every scorer with its direction, every figure of judges with its source, and tests
//! that are there.

use std::{fs, path::Path};

use bench_grading::scorers::registry;
use bench_proto::metric::Better;

/// The source files below some folder, as one text.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            *text += &fs::read_to_string(&path).expect("the file can be read");
        }
    }
}

#[test]
fn every_figure_of_judges_has_a_formula_a_source_and_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/GRADERS.md")).expect("the page is there");
    let (_, section) = page.split_once("### Figures of judges").expect("the section is there");
    let (section, _) = section.split_once("### ").expect("another one follows");
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut code = String::new();
    ["coordinator", "crates", "datasets", "proto", "worker"]
        .iter()
        .for_each(|room| sources(&root.join(room), &mut code));
    for row in &rows {
        let [figure, formula, source, tests] = row[..] else { panic!("four cells: {row:?}") };
        assert!([figure, formula, source, tests].iter().all(|cell| !cell.is_empty()), "{row:?}");
        for test in tests.split(", ") {
            assert!(code.contains(&format!("fn {test}(")), "{figure}: there is no test {test}");
        }
    }
    for needed in ["false accepts", "ceiling", "corrected key", "kappa", "votes", "verdict"] {
        assert!(rows.iter().any(|row| row[0].contains(needed)), "no row of {needed}");
    }
}

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
