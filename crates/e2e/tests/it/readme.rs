//! What README promises: its commands exist, and its local lines work as they stand.

use bench_testkit::bench::Bench;

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("README.md is there")
}

/// Lines of `sh` blocks that call `bench-coord`, without comments.
fn commands() -> Vec<Vec<String>> {
    readme()
        .split("```")
        .filter_map(|block| block.strip_prefix("sh\n"))
        .flat_map(str::lines)
        .filter_map(|line| line.split('#').next())
        .map(|line| line.trim().trim_end_matches('&').trim_end())
        .filter_map(|line| line.strip_prefix("bench-coord "))
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[test]
fn the_lines_that_need_nothing_work_in_their_order() {
    let bench = Bench::new();
    let local: Vec<_> = commands()
        .into_iter()
        .filter(|args| !args.iter().any(|a| a == "locomo" || a.contains("openai") || a == "theirs.jsonl"))
        // these need many machines, other runs, an object store, or a server under load
        .filter(|args| !["serve", "migrate", "compare", "gate", "archive", "load"].contains(&args[0].as_str()))
        .collect();
    assert!(local.len() >= 3, "{local:?}");
    for args in local {
        let done = bench.run(&args);
        assert_eq!(done.code, 0, "bench-coord {}\n{}", args.join(" "), done.stderr);
    }
}

#[test]
fn every_line_is_understood() {
    let bench = Bench::new();
    let all = commands();
    assert!(all.len() >= 8, "{all:?}");
    for args in all {
        // a flag or verb that does not exist would be refused by the parser before anything else
        let done = bench.run(args.iter().map(String::as_str).chain(["--help"]));
        assert_eq!(done.code, 0, "bench-coord {}\n{}", args.join(" "), done.stderr);
    }
}

#[test]
fn the_files_that_it_names_exist() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = readme();
    let mut links = 0;
    for part in text.split("](").skip(1) {
        let Some(target) = part.split(')').next().filter(|t| !t.starts_with("http")) else { continue };
        let target = target.split('#').next().unwrap_or_default();
        assert!(std::path::Path::new(root).join(target).exists(), "README names {target}, which does not exist");
        links += 1;
    }
    assert!(links > 10);
}
