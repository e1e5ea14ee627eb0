//! A ranking by chance must score chance on every dataset: more means that ids repeat, among what is seen or in the evidence.
//! Whether ids tell of themselves that they are evidence is looked at in [`crate::hiding`].

use std::collections::{BTreeSet, HashSet};

use bench_grading::scorers::{ScoreCase, registry};
use bench_proto::{
    dataset::{Bank, GoldRecord, Question, StreamEntry},
    retrieval::RetrievalMetrics,
    step::RankHits,
};

use crate::{conformance::at_hand, generator::rng::Rng};

/// Hits of a ranking, at most: of few ids half, or all would be found.
const K: usize = 10;
/// Questions of a dataset that are looked at, and rankings of each.
const QUESTIONS: usize = 400;
const RANKINGS: usize = 8;

/// Datasets that name no evidence, or of which only the questions are at hand; all variants of a name without one.
const WITHOUT_EVIDENCE: [&str; 3] = ["personamem", "lifebench@en-questions", "memoryagentbench"];
/// Letters that are drawn for each question of a multiple choice.
const LETTERS: u32 = 64;

/// Scores of rankings by chance, and what chance is.
#[derive(Default)]
struct Sums {
    n: f64,
    score: f64,
    chance: f64,
    variance: f64,
}

impl Sums {
    /// Ranks ids in orders that `rank` makes. By chance recall at k of a set of g among n ids is hypergeometric: k/n on average,
    /// with the variance k/n · (1 − k/n) · (n − g)/(n − 1) / g.
    fn add(&mut self, ids: &[&str], gold: &[String], mut rank: impl FnMut(&mut Vec<&str>)) {
        let (n, g) = (ids.len() as f64, gold.len() as f64);
        let k = K.min(ids.len() / 2).max(1);
        let share = k as f64 / n;
        let mut order: Vec<&str> = ids.to_vec();
        for _ in 0..RANKINGS {
            rank(&mut order);
            let hits = RankHits::find(order.iter().take(k).copied(), gold.iter().map(String::as_str));
            let metrics = RetrievalMetrics::at(&hits, k as u32).expect("there is evidence");
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
        let is_named = |without: &&str| *without == name || *without == dataset.manifest().dataset();
        if WITHOUT_EVIDENCE.iter().any(is_named) {
            assert_eq!((by_turn.n, by_session.n), (0.0, 0.0), "{name} has evidence");
            continue;
        }
        by_turn.check(name, "turns");
        by_session.check(name, "sessions");
    }
}

/// Letters by chance are right as often as chance: one of four, on PersonaMem, MemBench and LifeBench's choices, by each rule.
#[test]
fn letters_by_chance_score_chance() {
    let mut of_choices = BTreeSet::new();
    for dataset in at_hand() {
        let manifest = dataset.manifest();
        let named = manifest.scorers.iter().filter(|name| name.starts_with("choice"));
        for scorer in named.map(|name| registry::find(name).expect("a scorer")) {
            let mut rng = Rng::new(&["letters", &manifest.name]);
            let (mut n, mut score, mut chance, mut variance) = (0.0, 0.0, 0.0, 0.0);
            for bank in (0..dataset.bank_count()).map(|number| dataset.bank(number).expect("a bank")) {
                for (question, gold) in
                    bank.questions.iter().zip(&bank.gold).filter(|(asked, _)| !asked.choices.is_empty())
                {
                    let case = ScoreCase::unanswered(dataset.profile(), question, gold);
                    let letters: Vec<char> = ('a'..='d').take(question.choices.len()).collect();
                    let share = 1.0 / letters.len() as f64;
                    for _ in 0..LETTERS {
                        let answer = format!("({})", letters[rng.below(letters.len())]);
                        let Some(scored) = scorer.score(&ScoreCase { answer: Some(&answer), ..case }) else { break };
                        (n, score) = (n + 1.0, score + scored);
                        (chance, variance) = (chance + share, variance + share * (1.0 - share));
                    }
                }
            }
            let told = format!("{} by {}: {score} of {n} by chance, expected {chance}", manifest.name, scorer.name());
            assert!(n > 0.0 && (score - chance).abs() <= 5.0 * f64::sqrt(variance), "{told}");
            of_choices.insert(manifest.dataset().to_owned());
        }
    }
    assert_eq!(of_choices.into_iter().collect::<Vec<_>>(), ["lifebench", "membench", "personamem"]);
}
