//! What `random` finds of a dataset's evidence is what chance finds, question by question, by the closed formula: evidence that
//! is easier to find than it should be, or ids that tell, would show.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::dataset::{GoldRecord, Question};
use bench_systems::{BankRef, BuildContext, RecallQuery, SystemSettings, registry};

use super::at_hand;

const DRAWS: u32 = 200;
const K: u32 = 5;
/// Banks of a dataset from which a question is asked.
const BANKS: usize = 8;

/// The chance that none of `wanted` among `all` is drawn in `k` draws without putting back.
fn none_of(wanted: usize, all: usize, k: usize) -> f64 {
    (0..k.min(all)).map(|drawn| (all - wanted).saturating_sub(drawn) as f64 / (all - drawn) as f64).product()
}

/// What hits hold of the evidence: turns of it, and hits of its sessions.
async fn found(place: &BankRef, question: &Question, gold: &GoldRecord, k: u32, seed: u32) -> (usize, usize, usize) {
    let settings: SystemSettings = BTreeMap::from([("random.seed".to_owned(), seed.to_string().into())]);
    let system = registry::build("random", &settings, &BuildContext::default()).expect("builds");
    let entries = place.content.as_ref().map_or(0, |content| content.entries.len());
    let query = RecallQuery { k, ..RecallQuery::from_question(question, k, entries) };
    let hits = system.recall(place, &query).await.expect("recalls").hits;
    let turns = hits.iter().filter(|hit| gold.evidence_turns.contains(&hit.id)).count();
    let of_sessions = hits.iter().filter(|hit| gold.evidence_sessions.contains(&hit.session_id)).count();
    (turns, of_sessions, hits.len())
}

/// Shares of draws in which `random` finds a turn of the evidence, a session of it; and the mean part of the turns found.
async fn shares(place: &BankRef, question: &Question, gold: &GoldRecord, turns: usize) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for seed in 0..DRAWS {
        let (found, of_sessions, _) = found(place, question, gold, K, seed).await;
        let values =
            [f64::from(u8::from(found > 0)), f64::from(u8::from(of_sessions > 0)), found as f64 / turns as f64];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / f64::from(DRAWS));
    }
    sums
}

#[tokio::test]
async fn random_finds_what_chance_finds() {
    let (mut checked, mut without) = (BTreeMap::<String, usize>::new(), BTreeSet::new());
    for dataset in at_hand::all() {
        let name = &dataset.manifest().name;
        for number in 0..dataset.bank_count().min(BANKS) {
            let bank = dataset.bank(number).expect("a bank");
            let asked = bank.questions.iter().zip(&bank.gold);
            let Some((question, gold)) = asked.into_iter().find(|(_, gold)| !gold.evidence_turns.is_empty()) else {
                continue;
            };
            let place = at_hand::place(&bank, number);
            // all that a question may be answered from
            let (turns, of_sessions, all) = found(&place, question, gold, u32::MAX, 0).await;
            assert!(turns <= gold.evidence_turns.len(), "{name}: {} is there twice", question.question_id);
            if turns == 0 {
                continue;
            }
            let expected = [
                1.0 - none_of(turns, all, K as usize),
                1.0 - none_of(of_sessions, all, K as usize),
                (K as usize).min(all) as f64 / all as f64,
            ];
            for (found, expected) in shares(&place, question, gold, turns).await.into_iter().zip(expected) {
                // five standard deviations of a share; a mean part spreads less
                let tolerance = 5.0 * (expected * (1.0 - expected) / f64::from(DRAWS)).max(0.0).sqrt() + 1e-9;
                let id = &gold.question_id;
                assert!((found - expected).abs() <= tolerance, "{name} {id}: {found} where chance is {expected}");
            }
            *checked.entry(name.clone()).or_default() += 1;
        }
        if !checked.contains_key(name) {
            without.insert(dataset.manifest().dataset().to_owned());
        }
    }
    // these name no evidence
    let allowed = ["lifebench", "memoryagentbench", "personamem"];
    assert!(without.iter().all(|name| allowed.contains(&name.as_str())), "{without:?}");
    assert!(checked.len() >= 16 && checked.values().sum::<usize>() >= 40, "{checked:?}");
}
