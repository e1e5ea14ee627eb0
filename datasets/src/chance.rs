//! A ranking by chance must score chance on every dataset: more means that ids repeat, among what is seen or in the evidence.
//! Whether ids tell of themselves that they are evidence is looked at in [`crate::hiding`].

use std::collections::HashSet;

use bench_proto::{
    dataset::{Bank, GoldRecord, Question, StreamEntry},
    retrieval::RetrievalMetrics,
    step::RankHits,
};

use crate::{conformance::at_hand, generator::rng::Rng};

/// Hits of a ranking.
const K: u32 = 10;
/// Questions of a dataset that are looked at, and rankings of each.
const QUESTIONS: usize = 400;
const RANKINGS: usize = 8;

/// Datasets that name no evidence, or of which only the questions are at hand.
const WITHOUT_EVIDENCE: [&str; 3] =
    ["personamem@32k", "lifebench@en-questions", "memoryagentbench@conflict-resolution"];

/// Scores of rankings by chance, and what chance is.
#[derive(Default)]
struct Sums {
    n: f64,
    score: f64,
    chance: f64,
    variance: f64,
}

impl Sums {
    /// Ranks ids in orders that `rank` makes. By chance recall at k of a set of g among n ids is hypergeometric: k/n on average, with the variance
    /// k/n · (1 − k/n) · (n − g)/(n − 1) / g.
    fn add(&mut self, ids: &[&str], gold: &[String], mut rank: impl FnMut(&mut Vec<&str>)) {
        let (n, g) = (ids.len() as f64, gold.len() as f64);
        let share = (f64::from(K) / n).min(1.0);
        let mut order: Vec<&str> = ids.to_vec();
        for _ in 0..RANKINGS {
            rank(&mut order);
            let hits = RankHits::of(order.iter().take(K as usize).copied(), gold.iter().map(String::as_str));
            let metrics = RetrievalMetrics::at(&hits, K).expect("there is evidence");
            self.n += 1.0;
            self.score += metrics.recall;
            self.chance += share;
            self.variance += share * (1.0 - share) * (n - g) / (n - 1.0).max(1.0) / g;
        }
    }

    fn check(&self, name: &str, level: &str) {
        assert!(self.n > 0.0, "{name}: no {level} are evidence; is it to be in WITHOUT_EVIDENCE?");
        let (score, chance, error) = (self.score / self.n, self.chance / self.n, self.variance.sqrt() / self.n);
        assert!(
            self.is_chance(),
            "{name}: by chance {level} have a recall of {score:.4} at {K}, expected {chance:.4} ± {error:.4}"
        );
    }

    fn is_chance(&self) -> bool {
        (self.score - self.chance).abs() <= 5.0 * self.variance.sqrt() + 1e-12 * self.n
    }
}

/// What is looked for is found: rankings that know something, and ids that are there several times.
#[test]
fn what_is_no_chance_is_found() {
    let (mut rng, names) = (Rng::new(&["knows"]), (0..100).map(|n| format!("t{n}")).collect::<Vec<_>>());
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let gold = &names[40..42];
    let of = |ids: &[&str], rank: &mut dyn FnMut(&mut Vec<&str>)| {
        let mut sums = Sums::default();
        (0..40).for_each(|_| sums.add(ids, gold, &mut *rank));
        sums.is_chance()
    };
    assert!(of(&ids, &mut |order| rng.shuffle(order)));
    assert!(!of(&ids, &mut |order| order.sort_by_key(|id| !gold.contains(&(*id).to_owned()))), "knows the evidence");
    let repeated = [ids.as_slice(), &vec![ids[40]; 50]].concat();
    assert!(!of(&repeated, &mut |order| rng.shuffle(order)), "an id that is there again and again");
}

/// Ids of turns and of sessions that a question may be answered from, each once.
fn visible<'a>(bank: &'a Bank, question: &Question) -> [Vec<&'a str>; 2] {
    let (mut turns, mut sessions, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for entry in &bank.content.entries[..question.ask_after as usize] {
        if seen.insert(entry.id()) {
            sessions.push(entry.id());
        }
        match entry {
            StreamEntry::Session(session) => turns.extend(session.turns.iter().map(|turn| turn.id.as_str())),
            StreamEntry::Memory(_) | StreamEntry::Update { .. } if !turns.contains(&entry.id()) => {
                turns.push(entry.id())
            }
            StreamEntry::Memory(_) | StreamEntry::Update { .. } => {}
        }
    }
    [turns, sessions]
}

/// Evidence that can be found at all.
fn findable(evidence: &[String], ids: &[&str]) -> Vec<String> {
    evidence.iter().filter(|id| ids.contains(&id.as_str())).cloned().collect()
}

#[test]
fn rankings_by_chance_score_chance() {
    for dataset in at_hand() {
        let name = &dataset.manifest().name;
        let mut rng = Rng::new(&["chance", name]);
        let (mut by_turn, mut by_session) = (Sums::default(), Sums::default());
        let mut left = QUESTIONS;
        for number in 0..dataset.bank_count() {
            if left == 0 {
                break;
            }
            let bank = dataset.bank(number).expect("a bank");
            for (question, GoldRecord { evidence_turns, evidence_sessions, .. }) in
                bank.questions.iter().zip(&bank.gold).take(left)
            {
                left -= 1;
                let [turns, sessions] = visible(&bank, question);
                for (sums, ids, evidence) in
                    [(&mut by_turn, &turns, evidence_turns), (&mut by_session, &sessions, evidence_sessions)]
                {
                    let gold = findable(evidence, ids);
                    if !gold.is_empty() {
                        sums.add(ids, &gold, |order| rng.shuffle(order));
                    }
                }
            }
        }
        if WITHOUT_EVIDENCE.contains(&name.as_str()) {
            assert_eq!((by_turn.n, by_session.n), (0.0, 0.0), "{name} has evidence");
            continue;
        }
        by_turn.check(name, "turns");
        by_session.check(name, "sessions");
    }
}
