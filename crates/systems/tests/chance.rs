//! What `random` finds of a dataset's evidence is what chance finds, question by question, by the closed formula: evidence that
//! is easier to find than it should be, or ids that tell, would show.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use bench_datasets::OpenOptions;
use bench_proto::{
    dataset::{Bank, StreamEntry},
    ids::Sha256Hash,
};
use bench_systems::{BankRef, BuildContext, RecallQuery, SystemSettings, registry};

const DRAWS: u32 = 600;
const K: usize = 5;

/// Files of ours, and real ones where they are at hand.
fn files() -> Vec<(&'static str, PathBuf)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ours = here.join("datasets/testdata/longmemeval");
    let reference = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| here.join("../shared"), PathBuf::from);
    let mut files =
        vec![("longmemeval@s", ours.join("whole.json")), ("longmemeval@oracle", ours.join("evidence.json"))];
    let real = reference.join("data/longmemeval");
    if real.is_dir() {
        files.push(("longmemeval@s", real.join("longmemeval_s_real_1.json")));
        files.push(("longmemeval@oracle", real.join("longmemeval_oracle_rebuilt_16.json")));
    } else {
        eprintln!("NOT TESTED: no reference data at {} (set BENCH_REFERENCE_DIR)", real.display());
    }
    files
}

/// The chance that none of `wanted` among `all` is drawn in `k` draws without putting back.
fn none_of(wanted: usize, all: usize, k: usize) -> f64 {
    (0..k.min(all)).map(|drawn| (all - wanted).saturating_sub(drawn) as f64 / (all - drawn) as f64).product()
}

/// Shares of draws in which `random` finds a turn of the evidence, a session of it; and the mean part of the turns found.
async fn found(bank: &Bank, place: &BankRef) -> [f64; 3] {
    let (question, gold) = (&bank.questions[0], &bank.gold[0]);
    let mut sums = [0.0; 3];
    for seed in 0..DRAWS {
        let settings: SystemSettings = BTreeMap::from([("random.seed".to_owned(), seed.to_string().into())]);
        let system = registry::build("random", &settings, &BuildContext::default()).expect("builds");
        let query = RecallQuery {
            question_id: question.shown_id(),
            text: &question.text,
            k: K as u32,
            visible_entries: question.ask_after,
            ..RecallQuery::default()
        };
        let hits = system.recall(place, &query).await.expect("recalls").hits;
        let turns = hits.iter().filter(|hit| gold.evidence_turns.contains(&hit.id)).count();
        let session = hits.iter().any(|hit| gold.evidence_sessions.contains(&hit.session_id));
        let part = turns as f64 / gold.evidence_turns.len() as f64;
        for (sum, value) in sums.iter_mut().zip([f64::from(u8::from(turns > 0)), f64::from(u8::from(session)), part]) {
            *sum += value / f64::from(DRAWS);
        }
    }
    sums
}

#[tokio::test]
async fn random_finds_what_chance_finds() {
    let mut checked = 0;
    for (name, path) in files() {
        let options = OpenOptions { path: Some(path), allow_modified: true, ..OpenOptions::default() };
        let dataset = bench_datasets::open(name, &options, &|_, _| ()).unwrap_or_else(|error| panic!("{error}"));
        for number in 0..dataset.bank_count() {
            let bank = dataset.bank(number).expect("a bank");
            let gold = &bank.gold[0];
            if gold.evidence_turns.is_empty() {
                continue;
            }
            let sessions: HashSet<&str> = gold.evidence_sessions.iter().map(String::as_str).collect();
            let turns = |of: &dyn Fn(&StreamEntry) -> bool| {
                bank.content.entries.iter().filter(|entry| of(entry)).map(StreamEntry::turns).sum::<usize>()
            };
            let (all, of_evidence) = (turns(&|_| true), turns(&|entry| sessions.contains(entry.id())));
            let expected = [
                1.0 - none_of(gold.evidence_turns.len(), all, K),
                1.0 - none_of(of_evidence, all, K),
                K.min(all) as f64 / all as f64,
            ];
            let place = BankRef {
                name: format!("chance-{number}"),
                handle: None,
                bank_id: bank.content.bank_id.clone(),
                content_hash: Sha256Hash::of(&serde_json::to_vec(&bank.content).expect("JSON")),
                content: Some(Arc::new(bank.content.clone())),
            };
            for (found, expected) in found(&bank, &place).await.into_iter().zip(expected) {
                // five standard deviations of a share; a mean part spreads less
                let tolerance = 5.0 * (expected * (1.0 - expected) / f64::from(DRAWS)).max(0.0).sqrt() + 1e-9;
                let id = &gold.question_id;
                assert!((found - expected).abs() <= tolerance, "{name} {id}: {found} where chance is {expected}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}
