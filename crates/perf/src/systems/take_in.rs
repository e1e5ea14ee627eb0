//! All sessions of LoCoMo taken in by `bm25`: retained, ready, and found in; and a whole run that asks all its questions.

use std::{hint::black_box, time::Instant};

use bench_systems::{BuildContext, Readiness, StepContext, SystemSettings, registry};
use serde_json::{Value, json};

use super::{Percentiles, banks::Asked};
use crate::{
    measure::{Sample, median},
    scenarios::Lab,
};

const TARGET_MS: f64 = 300.0;

/// Both, a round each.
pub(super) async fn take_in(lab: &Lab, banks: &[Asked]) -> anyhow::Result<Value> {
    let (mut retained, mut searchable) = (Vec::new(), Vec::new());
    for _ in 0..lab.rounds {
        // a fresh cache each time: every index is built
        let system = registry::build("bm25", &SystemSettings::new(), &BuildContext::default())?;
        let began = Instant::now();
        for asked in banks {
            system.open_bank(&asked.bank).await?;
            for entry in asked.entries() {
                system.retain(&asked.bank, std::slice::from_ref(entry), StepContext::default()).await?;
            }
            let entries = u32::try_from(asked.entries().len())?;
            anyhow::ensure!(
                system.readiness(&asked.bank, entries).await? == Readiness::Proven,
                "bm25 is ready at once"
            );
        }
        retained.push(began.elapsed().as_secs_f64() * 1e3);
        for asked in banks {
            black_box(system.recall(&asked.bank, &asked.query("anything")).await?);
        }
        searchable.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let whole = ["--dataset", lab.dataset()];
    let runs = (0..lab.rounds).map(|_| lab.once_with(&whole, &[])).collect::<anyhow::Result<Vec<Sample>>>()?;
    let searchable = Percentiles::from_times(searchable);
    Ok(json!({
        "scenario": "systems-take-in",
        "sessions": banks.iter().map(|asked| asked.entries().len()).sum::<usize>(),
        "turns": banks.iter().map(Asked::turns).sum::<usize>(),
        "retained": Percentiles::from_times(retained),
        "searchable": searchable,
        "target_ms": TARGET_MS,
        "met": searchable.p50_ms < TARGET_MS,
        "yardstick": {"what": "a whole run that retains all sessions and asks all questions, process start to report", "wall_seconds": median(runs.iter().map(|run| run.wall_seconds))},
    }))
}
