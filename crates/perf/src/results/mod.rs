//! What is done with stored results: aggregating a million questions, comparing two large runs, finding and exporting questions
//! of one, writing the page of one.
//!
//! The runs are written into a store of their own, so that nothing but the reading is measured. Where rows are looked through, the
//! yardstick reads the same rows with `sqlite3` of Python and keeps nothing.

mod repeats;
pub(crate) mod written;

use std::{path::Path, process::Command};

use anyhow::Context as _;
use serde_json::{Value, json};

pub(crate) use self::repeats::repeats;
use self::written::{Texts, write_run};
pub(crate) use self::written::{new_run, spec as spec_of, write_bank};
use crate::{
    measure::{Sample, median, run, run_until},
    scenarios::Lab,
};

/// All of it.
pub(crate) async fn results(lab: &Lab, rounds: usize, questions: u32, compared: u32) -> anyhow::Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("bench.db").display());
    let store = bench_store::open(&url).await?;
    write_run(store.as_ref(), "large", questions, 0, Texts::Without).await?;
    write_run(store.as_ref(), "one", compared, 0, Texts::With).await?;
    write_run(store.as_ref(), "two", compared, 1, Texts::Without).await?;
    store.close().await;
    let command = |args: &[&str]| {
        let mut command = Command::new(lab.binaries.join("bench-coord"));
        command.current_dir(folder.path()).args(["--store", &url]).args(args);
        command
    };
    let mut measured = Vec::new();
    // a stored summary would be printed: each round aggregates a run that has none yet
    let aggregated = (0..rounds)
        .map(|_| {
            forget_summaries(folder.path())?;
            run(&mut command(&["report", "large", "--format", "json"]))
        })
        .collect::<anyhow::Result<Vec<Sample>>>()?;
    measured.push(figure("aggregate", questions, &aggregated, 5.0, Some(300.0)));
    // both summaries are there, as after any run
    for id in ["one", "two"] {
        run(&mut command(&["report", id, "--format", "json"]))?;
    }
    // a comparison that finds a regression exits with 1: that is a result
    let compare = |sides: &[&str]| run_until(&mut command(&[&["compare"], sides, &["--json"]].concat()), &[0, 1]);
    measured.push(figure("compare", compared, &rounds_of(rounds, || compare(&["one", "two"]))?, 2.0, Some(300.0)));
    // the same when one side is a folder with the files of a report
    let files = folder.path().join("files");
    std::fs::create_dir(&files)?;
    let report = command(&["report", "one", "--format", "json"]).output()?;
    std::fs::write(files.join("report.json"), report.stdout)?;
    run(&mut command(&["export", "one", "--format", "jsonl", "--output-dir", "files"]))?;
    let from_folder = rounds_of(rounds, || compare(&["two", "files"]))?;
    measured.push(figure("compare-folder", compared, &from_folder, 10.0, Some(300.0)));
    let last = format!("conversation-{}:{}", (compared - 1) / written::PER_BANK, (compared - 1) % written::PER_BANK);
    for (name, question) in [("trace-slowest", "--slowest"), ("trace-question", last.as_str())] {
        let traced = beside(rounds, folder.path(), "facts", || run(&mut command(&["trace", "one", question])))?;
        measured.push(traced.figure(name, compared, 1.0));
    }
    for format in ["jsonl", "csv"] {
        let export = ["export", "one", "--format", format, "--output-dir", "out"];
        let exported = beside(rounds, folder.path(), "texts", || run(&mut command(&export)))?;
        // 20,000 rows a second
        let mut figure = exported.figure(&format!("export-{format}"), compared, f64::from(compared) / 20_000.0);
        let seconds = figure["wall_seconds"].as_f64().unwrap_or(f64::NAN);
        figure["rows_per_second"] = json!(f64::from(compared) / seconds);
        figure["target_rows_per_second"] = json!(20_000);
        measured.push(figure);
    }
    measured.push(page(lab, rounds)?);
    Ok(measured)
}

fn rounds_of(rounds: usize, once: impl FnMut() -> anyhow::Result<Sample>) -> anyhow::Result<Vec<Sample>> {
    std::iter::repeat_with(once).take(rounds).collect()
}

/// Samples of a command and of its yardstick, in turn.
struct Beside {
    samples: Vec<Sample>,
    yardstick: Vec<Sample>,
}

impl Beside {
    fn figure(&self, name: &str, questions: u32, seconds: f64) -> Value {
        let mut figure = figure(name, questions, &self.samples, seconds, Some(300.0));
        let yardstick = median(self.yardstick.iter().map(|s| s.wall_seconds));
        figure["yardstick_seconds"] = json!(yardstick);
        figure["to_yardstick"] = json!(median(self.samples.iter().map(|s| s.wall_seconds)) / yardstick);
        figure
    }
}

/// Measures a command in turn with the bare reading of the rows of `table` that the run has.
fn beside(
    rounds: usize,
    folder: &Path,
    table: &str,
    mut once: impl FnMut() -> anyhow::Result<Sample>,
) -> anyhow::Result<Beside> {
    let program = "import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
(run,) = c.execute(\"SELECT run_no FROM runs WHERE run_id = 'one'\").fetchone()
for row in c.execute(f'SELECT * FROM {sys.argv[2]} WHERE run_no = ?', (run,)): pass";
    let mut beside = Beside { samples: Vec::new(), yardstick: Vec::new() };
    for _ in 0..rounds {
        beside.samples.push(once()?);
        let mut reading = Command::new("python3");
        reading.args(["-c", program]).arg(folder.join("bench.db")).arg(table);
        beside.yardstick.push(run(&mut reading)?);
    }
    Ok(beside)
}

/// The page of a whole run of LoCoMo's size, questions read from the store.
fn page(lab: &Lab, rounds: usize) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let command = |args: &[&str]| {
        let mut command = Command::new(lab.binaries.join("bench-coord"));
        command.current_dir(folder.path()).args(args);
        command.envs(lab.datasets_dir.iter().map(|dir| ("BENCH_DATASETS_DIR", dir)));
        command
    };
    let submit = ["submit", "--dataset", lab.dataset(), "--preset", "full", "--display", "none", "--run-id", "page"];
    run(&mut command(&submit))?;
    let report = ["report", "page", "--format", "html", "--output-dir", "out"];
    let samples = (0..rounds).map(|_| run(&mut command(&report))).collect::<anyhow::Result<Vec<Sample>>>()?;
    let bytes = std::fs::metadata(folder.path().join("out/report.html"))?.len();
    let mut figure = figure("html", 1_986, &samples, 1.0, None);
    figure["megabytes"] = json!(bytes as f64 / 1e6);
    figure["target_megabytes"] = json!(6.0);
    Ok(figure)
}

fn figure(name: &str, questions: u32, samples: &[Sample], seconds: f64, mib: Option<f64>) -> Value {
    json!({
        "scenario": format!("results-{name}"),
        "questions": questions,
        "wall_seconds": median(samples.iter().map(|s| s.wall_seconds)),
        "peak_mib": median(samples.iter().map(|s| s.peak_mib)),
        "target_seconds": seconds,
        "target_mib": mib,
        "samples": samples,
    })
}

/// Takes stored summaries away, so that they are made again.
fn forget_summaries(folder: &Path) -> anyhow::Result<()> {
    let file = folder.join("bench.db");
    let done = Command::new("python3")
        .args([
            "-c",
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM summaries'); c.commit()",
        ])
        .arg(&file)
        .status()
        .context("python3 is needed to take summaries away")?;
    anyhow::ensure!(done.success(), "the summaries of {} could not be taken away", file.display());
    Ok(())
}
