//! What README.md and docs/CLI.md promise: their commands exist, and their local lines work as they stand.

use bench_testkit::bench::Bench;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}/{name}")).expect("the page is there")
}

/// Lines of `sh` blocks that call `bench-coord`, without comments.
fn commands(name: &str) -> Vec<Vec<String>> {
    page(name)
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
    let local: Vec<_> = commands("README.md")
        .into_iter()
        .chain(commands("docs/CLI.md"))
        .filter(|args| !args.iter().any(|a| a == "locomo" || a.contains("openai") || a == "theirs.jsonl"))
        // systems of the reader's own: systems/mine.rs and systems/classes.rs run these
        .filter(|args| !args.iter().any(|a| a.contains("mine.")))
        // these need many machines, other runs, or an object store
        .filter(|args| !["serve", "migrate", "compare", "gate", "archive", "site"].contains(&args[0].as_str()))
        .collect();
    assert!(local.len() >= 3, "{local:?}");
    for args in local {
        let done = bench.run(&args);
        assert_eq!(done.code, 0, "bench-coord {}\n{}", args.join(" "), done.stderr);
    }
}

/// Whoever pastes its lines in their order has the runs that they compare.
#[test]
fn the_runs_that_it_compares_are_those_that_it_submits() {
    let bench = Bench::new();
    let lines = commands("README.md");
    // a system of the reader's own is not there: systems/classes.rs runs it
    let shipped = |arg: String| if arg == "mine.py:Mine" { "bm25".to_owned() } else { arg };
    let named = lines.iter().filter(|args| args.iter().any(|arg| arg == "--name"));
    let named: Vec<Vec<String>> = named.map(|args| args.iter().cloned().map(shipped).collect()).collect();
    assert_eq!(named.len(), 2, "{named:?}");
    for args in named {
        let _ = bench.run(&args).expect_code(0);
    }
    let compare = lines.iter().find(|args| args[0] == "compare").expect("README compares");
    let done = bench.run(compare);
    assert!(done.code == 0 || done.code == 6, "{}: {}", done.code, done.stderr);
}

#[test]
fn every_line_is_understood() {
    let bench = Bench::new();
    let (readme, cli) = (commands("README.md"), commands("docs/CLI.md"));
    assert!(readme.len() >= 7 && cli.len() >= 15, "{readme:?} {cli:?}");
    for args in readme.into_iter().chain(cli) {
        // a flag or verb that does not exist would be refused by the parser before anything else
        let done = bench.run(args.iter().map(String::as_str).chain(["--help"]));
        assert_eq!(done.code, 0, "bench-coord {}\n{}", args.join(" "), done.stderr);
    }
}

#[test]
fn the_files_that_it_names_exist() {
    let text = page("README.md");
    let mut links = 0;
    let pictures = text.split("src=\"").skip(1).filter_map(|part| part.split('"').next());
    let named = text.split("](").skip(1).filter_map(|part| part.split(')').next()).chain(pictures);
    for target in named.filter(|target| !target.starts_with("http")) {
        let target = target.split('#').next().unwrap_or_default();
        assert!(std::path::Path::new(ROOT).join(target).exists(), "README names {target}, which does not exist");
        links += 1;
    }
    assert!(links > 10);
}

/// Two screens: what is beyond stands in a page that it names.
#[test]
fn the_readme_is_short() {
    let text = page("README.md");
    let (lines, height) = (text.lines().count(), height_of(&text));
    assert!(lines <= 106, "README.md has {lines} lines: move some to a page of docs and name that");
    assert!(height <= 2_600, "README.md is about {height} pixels high where it is read, its picture included");
}

/// About how many pixels a page takes where it is 830 wide: what GitHub gives to a line of text and of code, to a heading, and to the
/// picture. Of the page as it was in the year of this test a browser says 2,181.
fn height_of(text: &str) -> u32 {
    const TEXT: u32 = 24;
    const CODE: u32 = 20;
    const HEADING: u32 = 75;
    const BETWEEN: u32 = 16;
    let (mut height, mut in_code, mut in_paragraph) = (0, false, false);
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        let is_prose = !(in_code || is_fence || line.is_empty() || line.starts_with(['#', '<']));
        height += match line {
            _ if is_fence && in_code => 3 * BETWEEN,
            _ if is_fence => 0,
            _ if in_code => CODE,
            _ if is_prose => TEXT + if in_paragraph { 0 } else { BETWEEN },
            line if line.starts_with('#') => HEADING,
            line if line.starts_with("<img ") => height_of_picture(line) + BETWEEN,
            _ => 0,
        };
        in_paragraph = is_prose;
    }
    height
}

/// How high a picture is shown whose width is given.
fn height_of_picture(tag: &str) -> u32 {
    let given = |name: &str| tag.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    let bytes = std::fs::read(format!("{ROOT}/{}", given("src").expect("a file"))).expect("is there");
    // the head of a PNG: its width and height begin at byte 16
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let width: u32 = given("width").expect("a width").parse().expect("is a number");
    width * number(20) / number(16)
}

#[test]
fn the_height_of_a_page_counts_its_picture() {
    let tag = "<img src=\"docs/pictures/report-light.png\" width=\"560\" alt=\"\">";
    assert!((200..500).contains(&height_of_picture(tag)), "it is no portrait");
    assert_eq!(height_of("# a\n\none\ntwo\n\nthree\n```sh\nx\n```\n"), 75 + (16 + 48) + (16 + 24) + (48 + 20));
    assert_eq!(height_of(tag), height_of_picture(tag) + 16);
}
