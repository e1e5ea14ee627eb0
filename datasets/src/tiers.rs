//! docs/DATASETS.md tells how many questions the presets take of each dataset, and how many calls of models those are: what
//! manifests and profiles say.

use std::{fs, path::Path};

use bench_testkit::data;

use crate::{Known, known};

/// The first lines of the table.
const HEAD: &str = "| Dataset | `quick` | `fair` | `full` |\n|---|---|---|---|\n";
/// Rubrics by whose programs a judge is called several times for an answer.
const BY_LINES: [&str; 2] = ["judge-lines", "judge-ordering"];

/// Questions that each preset takes; none where they were not counted.
fn questions(known: &Known) -> Option<[u64; 3]> {
    let all: u64 = known.manifest.categories.iter().map(|(_, count)| count).sum();
    let sizes = &known.profile.presets;
    let fair = sizes.fair.map_or(u64::from(sizes.fair_per_bank) * known.manifest.banks, u64::from);
    (all > 0).then(|| [u64::from(sizes.quick).min(all), fair.min(all), all])
}

/// A number of questions, with the calls for them in brackets: one for each answer, and those of a judge where one grades.
fn cell(known: &Known, questions: u64) -> String {
    if known.manifest.scorers == ["assertions"] {
        return grouped(questions);
    }
    let rubric = |category: &str| known.profile.categories.get(category).and_then(|rules| rules.rubric.as_deref());
    let rubrics = || known.manifest.categories.iter().map(|(category, count)| (rubric(category), *count));
    let all: u64 = rubrics().map(|(_, count)| count).sum();
    let judged: u64 = rubrics().filter(|(rubric, _)| rubric.is_some()).map(|(_, count)| count).sum();
    let by_lines = rubrics().any(|(rubric, _)| rubric.is_some_and(|rubric| BY_LINES.contains(&rubric)));
    let calls = questions + (questions * judged).div_ceil(all);
    format!("{} ({}{})", grouped(questions), grouped(calls), if by_lines { "+" } else { "" })
}

/// `1,986`.
fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

/// Whether the published files of a dataset are those of the tests of this project.
fn is_for_tests(known: &Known) -> bool {
    let Known { manifest, .. } = known;
    let folder = data::testdata().join(manifest.dataset());
    !manifest.is_generated() && manifest.files.iter().all(|file| folder.join(&file.path).exists())
}

/// The table, with those datasets in one row that have the same figures.
fn table() -> String {
    let mut rows: Vec<(Vec<&str>, String)> = Vec::new();
    for known in known().iter().filter(|known| !is_for_tests(known)) {
        let Some(questions) = questions(known) else { continue };
        let cells = questions.map(|questions| cell(known, questions)).join(" | ");
        match rows.iter_mut().find(|(_, of)| *of == cells) {
            Some((names, _)) => names.push(&known.manifest.name),
            None => rows.push((vec![&known.manifest.name], cells)),
        }
    }
    let row = |(names, cells): &(Vec<&str>, String)| format!("| `{}` | {cells} |\n", names.join("`, `"));
    format!("{HEAD}{}", rows.iter().map(row).collect::<String>())
}

#[test]
fn the_page_tells_what_the_presets_take_of_each_dataset() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/DATASETS.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (before, from) = page.split_once(HEAD).expect("the table is there");
    let rows: String = from.split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
    let expected = table();
    if std::env::var_os("BENCH_BLESS").is_some() {
        fs::write(&path, format!("{before}{expected}{}", &from[rows.len()..])).expect("writes");
    } else {
        assert_eq!(
            format!("{HEAD}{rows}"),
            expected,
            "the table of presets in docs/DATASETS.md is not that of manifests and profiles, which is:\n{expected}\n\
             `BENCH_BLESS=1 cargo test -p bench-datasets presets` writes it; no other page has these figures"
        );
    }
}

#[test]
fn figures_are_those_of_manifests_and_profiles() {
    let cells = |name: &str| {
        let known = crate::find(name).expect("is known");
        questions(known).map(|questions| questions.map(|questions| cell(known, questions)).join(", "))
    };
    assert_eq!(cells("locomo").as_deref(), Some("50 (100), 200 (400), 1,986 (3,972)"));
    assert_eq!(cells("personamem@32k").as_deref(), Some("50 (50), 200 (200), 589 (589)"), "letters need no judge");
    assert_eq!(cells("beam@100k").as_deref(), Some("50 (100+), 200 (400+), 400 (800+)"), "a call for each line");
    assert_eq!(cells("precision-sim").as_deref(), Some("50, 152, 152"), "nothing is answered");
    assert_eq!(cells("personamem@1m"), None);
}
