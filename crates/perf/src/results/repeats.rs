//! The report of a group of repeats: its time on ten runs of LoCoMo's size, and its memory on three large ones beside that of one.

use std::process::Command;

use bench_store::{NewGroup, NewRun, Store};
use serde_json::{Value, json};

use super::{
    figure, forget_summaries,
    written::{Texts, new_run, spec, write_new},
};
use crate::{
    measure::{Sample, median, run},
    scenarios::Lab,
};

/// Repeats and questions of the group whose shares of variance are timed.
const SMALL: (u32, u32) = (10, 1_986);
/// Repeats of the large group.
const LARGE: u32 = 3;
/// Most seconds for the shares of the small one.
const SECONDS: f64 = 2.0;
/// Most memory of a large group beside that of one of its runs.
const TIMES_ONE: f64 = 1.5;

/// Both groups; the large one of so many questions a run. The yardstick of memory is the report of one of its runs, in turn.
pub(crate) async fn repeats(lab: &Lab, rounds: usize, questions: u32) -> anyhow::Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("bench.db").display());
    let store = bench_store::open(&url).await?;
    write_group(store.as_ref(), "small", SMALL.0, SMALL.1).await?;
    write_group(store.as_ref(), "large", LARGE, questions).await?;
    store.close().await;
    let report = |of: &str| {
        let mut command = Command::new(lab.binaries.join("bench-coord"));
        command.current_dir(folder.path()).args(["--store", &url, "report", of, "--json"]);
        command
    };
    // what single runs say is stored after any run: what is left are the shares and all else of the group
    run(&mut report("small"))?;
    let mut small: Vec<Sample> = Vec::new();
    let (mut group, mut one): (Vec<Sample>, Vec<Sample>) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        small.push(run(&mut report("small"))?);
        forget_summaries(folder.path())?;
        one.push(run(&mut report("large-r1"))?);
        forget_summaries(folder.path())?;
        group.push(run(&mut report("large"))?);
        run(&mut report("small"))?;
    }
    let peak = |samples: &[Sample]| median(samples.iter().map(|sample| sample.peak_mib));
    let mut large = figure("repeats-large", questions, &group, f64::NAN, None);
    large["repeats"] = json!(LARGE);
    large["one_run_mib"] = json!(peak(&one));
    large["to_one_run"] = json!(peak(&group) / peak(&one));
    large["target_to_one_run"] = json!(TIMES_ONE);
    let mut shares = figure("repeats-shares", SMALL.1, &small, SECONDS, None);
    shares["repeats"] = json!(SMALL.0);
    Ok(vec![shares, large])
}

/// Finished repeats of one run, each with scores of its own.
async fn write_group(store: &dyn Store, id: &str, repeats: u32, questions: u32) -> anyhow::Result<()> {
    for number in 1..=repeats {
        let alike = new_run(&format!("{id}-r{number}"), spec(questions, 0));
        let new = NewRun { group: Some(NewGroup { id: id.to_owned(), cap: None }), ..alike };
        write_new(store, &new, questions, number, Texts::Without).await?;
    }
    Ok(())
}
