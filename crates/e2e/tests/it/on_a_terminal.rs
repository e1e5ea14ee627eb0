//! What differs where a person sits in front of standard output: colours, and pages that go to files.

use std::{fs, process::Command};

use bench_testkit::bench::{Bench, Done, submit_sim, wait};

/// Runs a program with a terminal of 80 columns for its standard output, and passes on what it writes there.
const BEHIND: &str = "
import fcntl, os, pty, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=slave)
os.close(slave)
while True:
    try:
        data = os.read(master, 65536)
    except OSError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.stdout.flush()
sys.exit(child.wait())
";

/// `bench-coord` with these arguments in front of a terminal; a variable without a value is taken away.
fn on_terminal(bench: &Bench, args: &[&str], env: &[(&str, Option<&str>)]) -> Done {
    let plain = bench.command(args);
    let mut command = Command::new("python3");
    command.args(["-c", BEHIND]).arg(plain.get_program()).args(plain.get_args()).current_dir(bench.path()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("NO_COLOR");
    for (name, value) in env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    wait(command.spawn().expect("python3 starts"))
}

fn with_runs(runs: &[&str]) -> Bench {
    let bench = Bench::new();
    for &run in runs {
        let flags = ["--preset", "quick", "--latency-probe", "off", "--run-id", run];
        let _ = bench.run(submit_sim(&flags)).expect_code(0);
    }
    bench
}

#[test]
fn colours_are_for_terminals_that_have_them_and_for_people_who_want_them() {
    let bench = with_runs(&["one"]);
    let coloured = |env: &[(&str, Option<&str>)]| {
        on_terminal(&bench, &["report", "one"], env).expect_code(0).stdout.contains("\u{1b}[")
    };
    assert!(coloured(&[("TERM", Some("xterm-256color"))]));
    assert!(!coloured(&[("TERM", Some("dumb"))]), "a terminal without colours");
    assert!(!coloured(&[("TERM", Some("xterm")), ("NO_COLOR", Some("1"))]), "who wants none");
    assert!(!bench.run(["report", "one"]).expect_code(0).stdout.contains('\u{1b}'), "a pipe");
}

#[test]
fn a_page_is_written_and_not_printed_in_front_of_a_person() {
    let bench = with_runs(&["before", "after"]);
    for (args, file) in [
        (&["report", "after", "--format", "html"][..], ".bench/runs/after/report.html"),
        (
            &["report", "after", "--format", "html", "--baseline", "before"],
            ".bench/comparisons/before@after.report.html",
        ),
        (
            &["report", "after", "--format", "html", "--trace-url", "http://t/{trace_id}"],
            ".bench/runs/after/report-with-traces.html",
        ),
        (&["compare", "before", "after", "--format", "html"], ".bench/comparisons/before@after.html"),
    ] {
        let path = bench.path().join(file);
        let _ = fs::remove_file(&path);
        let done = on_terminal(&bench, args, &[]).expect_code(0);
        assert_eq!(done.stdout.trim(), file, "{args:?}");
        let page = fs::read_to_string(&path).expect("a page");
        assert!(page.contains("</html>"), "{args:?}");
        let piped = bench.run(args).expect_code(0);
        assert!(piped.stdout.contains("</html>"), "a pipe gets it: {args:?}");
    }
    let own = fs::read_to_string(bench.path().join(".bench/runs/after/report.html")).expect("a page");
    assert!(!own.contains("against before") && !own.contains("http://t/"), "the run's own page stays as it was");
    let _ = bench.run(["delete", "before", "--yes"]).expect_code(0);
    let left = fs::read_dir(bench.path().join(".bench/comparisons")).expect("is there").count();
    assert_eq!(left, 0, "pages of a deleted run go with it");
}

/// What stands at the end of a report can be typed as it stands.
#[test]
fn the_commands_at_the_end_of_a_report_do_what_they_say() {
    let bench = with_runs(&["before", "after"]);
    for page_is_there in [true, false] {
        if !page_is_there {
            fs::remove_file(bench.path().join(".bench/runs/after/report.html")).expect("it was there");
        }
        let brief = on_terminal(&bench, &["report", "after"], &[]).expect_code(0).stdout;
        let said = |what: &str| {
            let line =
                brief.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("no {what}: {brief}"));
            line.trim_start_matches(what).trim().to_owned()
        };
        for (what, names) in [("all of it", "after --full"), ("compared", "OTHER after")] {
            let command = said(what);
            assert!(command.ends_with(names), "{command}");
            let words: Vec<String> = command
                .split_whitespace()
                .skip(1)
                .map(|word| if word == "OTHER" { "before".to_owned() } else { word.to_owned() })
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let done = on_terminal(&bench, &words, &[]).expect_code(0);
            assert!(!done.stdout.contains("<html"), "{command}");
        }
        let page = said("a page");
        if page_is_there {
            assert_eq!(page, ".bench/runs/after/report.html");
            assert!(bench.path().join(page).is_file());
            continue;
        }
        let words: Vec<String> = page.split_whitespace().skip(1).map(|word| word.replace("DIR", "pages")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = on_terminal(&bench, &words, &[]).expect_code(0);
        assert!(bench.path().join("pages/report.html").is_file(), "{words:?}");
    }
}

#[test]
fn a_baseline_is_told_in_a_line_below_the_report() {
    let bench = with_runs(&["before", "after"]);
    let done = on_terminal(&bench, &["report", "after", "--baseline", "before"], &[]).expect_code(0);
    assert!(done.stdout.contains("against before: "), "{}", done.stdout);
    assert!(done.stderr.contains("`bench-coord compare before after` shows all"), "{}", done.stderr);
    let folder = ".bench/runs/before";
    let done = on_terminal(&bench, &["report", "after", "--baseline", folder], &[]).expect_code(0);
    assert!(done.stderr.contains(&format!("`bench-coord compare {folder} after`")), "{}", done.stderr);
    let _ = bench.run(["compare", folder, "after"]).expect_code(0);
}
