//! How long a search takes: `bm25` over conversations and over one large bank, exact search over vectors.

use std::{hint::black_box, time::Instant};

use bench_proto::dataset::StreamEntry;
use bench_systems::{
    BuildContext, SystemSettings, registry,
    vector::{Vectors, nearest},
};
use serde_json::{Value, json};

use super::{Percentiles, banks::Asked, timed};

/// Dimensions of the vectors, those of all-MiniLM-L6-v2.
const DIMENSIONS: usize = 384;
/// Searches of a round.
const SEARCHES: usize = 200;
/// Vectors lie around so many centres, as those of real texts lie around subjects.
const SUBJECTS: usize = 200;
const TARGET_VECTORS_MS: f64 = 15.0;

/// Every question of some banks, asked of `bm25` in each round; indexes are built beforehand, as in a run.
pub(super) async fn keywords(scenario: &str, banks: &[Asked], rounds: usize, target_ms: f64) -> anyhow::Result<Value> {
    let system = registry::build("bm25", &SystemSettings::new(), &BuildContext::default())?;
    let (mut times, mut passes, mut builds) = (Vec::new(), Vec::new(), Vec::new());
    for asked in banks {
        let began = Instant::now();
        system.recall(&asked.bank, &asked.query("nothing")).await?;
        builds.push(began.elapsed().as_secs_f64() * 1e3);
        for _ in 0..rounds {
            passes.push(timed(|| black_box(letters(asked.entries()))).0);
            for text in &asked.questions {
                let began = Instant::now();
                black_box(system.recall(&asked.bank, &asked.query(text)).await?);
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let (recall, pass) = (Percentiles::from_times(times), Percentiles::from_times(passes));
    Ok(json!({
        "scenario": scenario,
        "banks": banks.len(),
        "memories": banks.iter().map(Asked::turns).sum::<usize>(),
        "recall": recall,
        "target_p99_ms": target_ms,
        "met": recall.p99_ms < target_ms,
        "index_build": Percentiles::from_times(builds),
        "yardstick": {"what": "one look at every byte of the bank's texts", "p50_ms": pass.p50_ms, "ratio": recall.p50_ms / pass.p50_ms},
    }))
}

fn letters(entries: &[StreamEntry]) -> usize {
    let of_session = |entry: &StreamEntry| match entry {
        StreamEntry::Session(session) => {
            session.turns.iter().map(|turn| turn.text.bytes().filter(u8::is_ascii_lowercase).count()).sum::<usize>()
        }
        _ => 0,
    };
    entries.iter().map(of_session).sum()
}

/// Exact search for the ten nearest of so many vectors.
pub(super) fn vectors(memories: usize, rounds: usize) -> anyhow::Result<Value> {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let subjects: Vec<Vec<f32>> = (0..SUBJECTS).map(|_| draw.vector()).collect();
    let near = |draw: &mut Draw, at: usize| -> Vec<f32> {
        subjects[at % SUBJECTS].iter().zip(draw.vector()).map(|(subject, own)| subject + own).collect()
    };
    let mut vectors = Vectors::default();
    let mut plain: Vec<f32> = Vec::with_capacity(memories * DIMENSIONS);
    for at in 0..memories {
        let vector = near(&mut draw, at);
        plain.extend_from_slice(&vector);
        vectors.push(vector).map_err(anyhow::Error::msg)?;
    }
    vectors.seal();
    let (mut times, mut scans) = (Vec::new(), Vec::new());
    for at in 0..rounds * SEARCHES {
        let query = near(&mut draw, at);
        let (ms, found) = timed(|| nearest(&vectors, &query, 10));
        anyhow::ensure!(found.map_err(anyhow::Error::msg)?.len() == 10, "ten are found");
        times.push(ms);
        // a tenth as often: it takes longer than what is measured
        if at % 10 == 0 {
            scans.push(timed(|| black_box(plain_scan(&plain, &query))).0);
        }
    }
    let (search, scan) = (Percentiles::from_times(times), Percentiles::from_times(scans));
    Ok(json!({
        "scenario": "systems-vectors",
        "memories": memories,
        "dimensions": DIMENSIONS,
        "megabytes": vectors.bytes() as f64 / 1e6,
        "recall": search,
        "target_p99_ms": TARGET_VECTORS_MS,
        "met": search.p99_ms < TARGET_VECTORS_MS,
        "yardstick": {"what": "dot products with all vectors as 32-bit floats, in a plain loop, nothing kept", "p50_ms": scan.p50_ms, "ratio": search.p50_ms / scan.p50_ms},
    }))
}

fn plain_scan(vectors: &[f32], query: &[f32]) -> f32 {
    let dot = |vector: &[f32]| vector.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
    vectors.chunks_exact(DIMENSIONS).map(dot).fold(f32::MIN, f32::max)
}

/// Marsaglia's xorshift: the same vectors each time, in less time than they take to be stored.
struct Draw(u64);

impl Draw {
    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSIONS).map(|_| self.number()).collect()
    }

    fn number(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
