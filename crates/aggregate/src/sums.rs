//! What is summed while questions come in; all of it integers, so that order cannot show.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    call::Usage,
    facts::{PhaseUsage, QuestionFacts},
    money::PicoUsd,
    step::{Canary, SystemStats},
    summary::{BankLeak, CanaryShare, CanarySummary, FailureAttribution, PassCount, RecallAnswer},
};

use serde_json::Value;

use crate::{examples::Examples, interval::wilson, retrieval::RetrievalSums, verdict::RecallLengths};

/// Facts that did not come back and are told by name.
const LOST_FACTS_SHOWN: usize = 10;

/// Number and sum of some times in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeSum {
    n: u64,
    us: u64,
}

impl TimeSum {
    pub(crate) fn add(&mut self, us: Option<u64>) {
        if let Some(us) = us {
            self.n += 1;
            self.us += us;
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.n += other.n;
        self.us += other.us;
    }

    pub(crate) fn seconds(self) -> Option<f64> {
        (self.n > 0).then(|| self.us as f64 / 1e6)
    }
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    pub(crate) retain_usage: Usage,
    pub(crate) usage: PhaseUsage,
    /// The part of it that no question used.
    canary_usage: Usage,
    pub(crate) retain: TimeSum,
    pub(crate) consolidate_usage: Usage,
    pub(crate) consolidate: TimeSum,
    pub(crate) ready: TimeSum,
    pub(crate) recall: TimeSum,
    pub(crate) answer: TimeSum,
    pub(crate) judge: TimeSum,
    /// Questions that the memory system was asked; those of a bank that failed were not.
    pub(crate) asked: u64,
    pub(crate) attribution: FailureAttribution,
    pub(crate) recall_answer: RecallAnswer,
    pub(crate) context_bytes: u64,
    pub(crate) errors: BTreeMap<String, u64>,
    /// What was told with each of these codes.
    pub(crate) error_examples: Examples,
    pub(crate) replies: BTreeMap<String, u64>,
    pub(crate) retrieval: RetrievalSums,
    /// Bank number → proven ready, in all its segments.
    pub(crate) proofs: BTreeMap<u32, bool>,
    /// Numbers of banks of which it is only known that storing returned.
    pub(crate) returned: BTreeSet<u32>,
    /// Bank number → (segment, what the system said when it was ready): the last segment counts.
    stats: BTreeMap<u32, (u32, SystemStats)>,
    /// Bank number → what its canary showed.
    canaries: BTreeMap<u32, Canary>,
    /// (bank number, generation) → entries that were retained, and their turns.
    entries: BTreeMap<(u32, i64), (u64, u64)>,
    /// Hits of a recall → questions that got so many.
    hits: BTreeMap<u32, u64>,
    /// Bank numbers of these questions.
    hit_banks: BTreeSet<u32>,
    /// Sessions among the hits of a recall that was cut → questions with evidence sessions.
    sessions: BTreeMap<u32, u64>,
}

impl Sums {
    pub(crate) fn merge(&mut self, other: Self) {
        self.retain_usage += other.retain_usage;
        self.usage.recall += other.usage.recall;
        self.usage.answer += other.usage.answer;
        self.usage.judge += other.usage.judge;
        self.canary_usage += other.canary_usage;
        self.retain.merge(other.retain);
        self.consolidate_usage += other.consolidate_usage;
        self.consolidate.merge(other.consolidate);
        self.ready.merge(other.ready);
        self.recall.merge(other.recall);
        self.answer.merge(other.answer);
        self.judge.merge(other.judge);
        self.asked += other.asked;
        self.attribution.evidence_missing += other.attribution.evidence_missing;
        self.attribution.evidence_partial += other.attribution.evidence_partial;
        self.attribution.evidence_found += other.attribution.evidence_found;
        self.attribution.recall_failed += other.attribution.recall_failed;
        self.attribution.no_ground_truth += other.attribution.no_ground_truth;
        self.attribution.not_retained += other.attribution.not_retained;
        self.attribution.judge_in_doubt += other.attribution.judge_in_doubt;
        for (row, more) in rows(&mut self.recall_answer).into_iter().zip(rows(&mut { other.recall_answer })) {
            row.passed += more.passed;
            row.failed += more.failed;
        }
        self.context_bytes += other.context_bytes;
        for (finish, n) in other.replies {
            *self.replies.entry(finish).or_default() += n;
        }
        for (code, n) in other.errors {
            *self.errors.entry(code).or_default() += n;
        }
        self.error_examples.merge(other.error_examples);
        self.retrieval.merge(&other.retrieval);
        for (bank, proven) in other.proofs {
            self.prove(bank, proven);
        }
        self.returned.extend(other.returned);
        for (bank, (segment, stats)) in other.stats {
            self.say(bank, segment, &stats);
        }
        self.canaries.extend(other.canaries);
        for (bank, (entries, turns)) in other.entries {
            let of_bank = self.entries.entry(bank).or_default();
            *of_bank = (of_bank.0 + entries, of_bank.1 + turns);
        }
        for (hits, questions) in other.hits {
            *self.hits.entry(hits).or_default() += questions;
        }
        self.hit_banks.extend(other.hit_banks);
        for (sessions, questions) in other.sessions {
            *self.sessions.entry(sessions).or_default() += questions;
        }
    }

    pub(crate) fn retain(&mut self, bank: u32, generation: i64, turns: u64) {
        let of_bank = self.entries.entry((bank, generation)).or_default();
        *of_bank = (of_bank.0 + 1, of_bank.1 + turns);
    }

    /// (entries, turns) of each bank, by its last generation.
    fn last_generations(&self) -> impl Iterator<Item = (u64, u64)> {
        let last: BTreeMap<u32, (u64, u64)> = self.entries.iter().map(|((bank, _), of)| (*bank, *of)).collect();
        last.into_values()
    }

    /// Turns that the banks hold.
    pub(crate) fn turns(&self) -> u64 {
        self.last_generations().map(|(_, turns)| turns).sum()
    }

    /// Entries of the smallest bank, by its last generation; 0 without banks. A system may store a session as one item; of one that
    /// stores each turn by itself they are turns.
    pub(crate) fn fewest_stored(&self, by_turn: bool) -> u64 {
        let of_bank = |(entries, turns): (u64, u64)| if by_turn { entries.max(turns) } else { entries };
        self.last_generations().map(of_bank).min().unwrap_or(0)
    }

    pub(crate) fn recalled(&mut self, bank: u32, hits: Option<u32>) {
        if let Some(hits) = hits {
            *self.hits.entry(hits).or_default() += 1;
            self.hit_banks.insert(bank);
        }
    }

    /// Notes of how many sessions the hits are; a recall with fewer hits than the fewest that are `asked` for was not cut.
    pub(crate) fn sessions_of(&mut self, facts: &QuestionFacts, asked: u32) {
        let (Some(retrieval), Some(hits)) = (&facts.retrieval, facts.hits) else { return };
        if retrieval.session.gold > 0 && hits >= asked && hits > retrieval.session.ranked {
            *self.sessions.entry(retrieval.session.ranked).or_default() += 1;
        }
    }

    /// Questions whose hits are of fewer than `k` sessions because they were cut before there were more.
    pub(crate) fn short_of_sessions(&self, k: u32) -> u64 {
        self.sessions.range(..k).map(|(_, questions)| questions).sum()
    }

    pub(crate) fn recall_lengths(&self) -> RecallLengths {
        let (most, with_most) = self.hits.last_key_value().map_or((0, 0), |(most, n)| (*most, *n));
        RecallLengths { questions: self.hits.values().sum(), banks: self.hit_banks.len() as u64, most, with_most }
    }

    pub(crate) fn sing(&mut self, bank: u32, canary: &Canary) {
        self.usage.recall += canary.usage;
        self.canary_usage += canary.usage;
        self.canaries.insert(bank, canary.clone());
    }

    /// Calls that questions took, and what they come to at list prices.
    pub(crate) fn of_questions(&self) -> (u64, PicoUsd) {
        let listed = |usage: &Usage| usage.cost.saturating_add(usage.saved);
        let all = [self.usage.recall, self.usage.answer, self.usage.judge];
        let calls: u64 = all.iter().map(|usage| usage.calls).sum();
        let usd: PicoUsd = all.iter().map(listed).sum();
        let beside = &self.canary_usage;
        (calls.saturating_sub(beside.calls), PicoUsd(usd.0.saturating_sub(listed(beside).0).max(0)))
    }

    /// What all canaries have shown; `name` is the dataset's id of a bank by its number.
    pub(crate) fn canaries(&self, top_k: u32, name: impl Fn(u32) -> String) -> Option<CanarySummary> {
        if self.canaries.is_empty() {
            return None;
        }
        let mut seen = CanarySummary { banks: self.canaries.len() as u64, ..CanarySummary::default() };
        let (mut whole, mut foreign, mut foreign_found) = (0_u64, 0_u64, 0_u64);
        for (bank, canary) in &self.canaries {
            seen.planted |= canary.planted;
            seen.failed += u64::from(canary.failed);
            whole += u64::from(canary.whole);
            foreign += u64::from(canary.foreign);
            foreign_found += u64::from(canary.foreign_found);
            let more = LOST_FACTS_SHOWN.saturating_sub(seen.lost_facts.len());
            seen.lost_facts.extend(canary.lost.iter().take(more).cloned());
            seen.asked += u64::from(canary.asked);
            seen.found += u64::from(canary.found);
            seen.empty += u64::from(canary.empty);
            seen.verbatim |= canary.verbatim;
            seen.others_asked += u64::from(canary.other.is_some());
            let leak = canary.other.iter().filter(|_| canary.leaked);
            seen.leaks.extend(leak.map(|other| match canary.planted {
                true => BankLeak { asked: name(*bank), given: other.clone() },
                false => BankLeak { asked: other.clone(), given: name(*bank) },
            }));
        }
        if seen.planted {
            seen.verbatim = seen.found > 0 && whole * 10 >= seen.found * 9;
            seen.lost = share(seen.asked - seen.found, seen.asked);
            seen.leaked = share(foreign_found, foreign);
            (seen.clipped, seen.clipped_at) = self.clipped(top_k);
        }
        Some(seen)
    }

    /// Of the recalls for which their banks have as many hits as are asked for, those that stopped at the most hits
    /// that any recall of the run brought; and that number, where it is below k.
    fn clipped(&self, top_k: u32) -> (Option<CanaryShare>, Option<u32>) {
        let wide = || self.canaries.values().flat_map(|canary| &canary.wide).copied();
        let most = wide().max().unwrap_or(0).max(self.recall_lengths().most);
        let at = (most > 0 && most < top_k).then_some(most);
        let stopped = wide().filter(|hits| Some(*hits) == at).count() as u64;
        (share(stopped, wide().count() as u64), at.filter(|_| stopped > 0))
    }

    pub(crate) fn say(&mut self, bank: u32, segment: u32, stats: &SystemStats) {
        let newest = self.stats.get(&bank).is_none_or(|(known, _)| *known <= segment);
        if newest && !stats.is_empty() {
            self.stats.insert(bank, (segment, stats.clone()));
        }
    }

    /// What the system said about itself: the versions that it reported, and its numbers summed over all banks.
    pub(crate) fn system_stats(&self) -> BTreeMap<String, Value> {
        let mut versions: Vec<&str> = self.stats.values().filter_map(|(_, stats)| stats.version.as_deref()).collect();
        versions.sort_unstable();
        versions.dedup();
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, number) in self.stats.values().flat_map(|(_, stats)| &stats.numbers) {
            *sums.entry(name).or_default() += number;
        }
        let mut said: BTreeMap<String, Value> =
            sums.into_iter().map(|(name, sum)| (name.to_owned(), Value::from(sum))).collect();
        match versions.as_slice() {
            [] => {}
            [one] => drop(said.insert("version".to_owned(), (*one).into())),
            // instances of one run that are not alike
            several => drop(said.insert("version".to_owned(), several.join(", ").into())),
        }
        said
    }

    pub(crate) fn prove(&mut self, bank: u32, proven: bool) {
        *self.proofs.entry(bank).or_insert(true) &= proven;
    }
}

fn rows(table: &mut RecallAnswer) -> [&mut PassCount; 4] {
    [&mut table.evidence_found, &mut table.evidence_partial, &mut table.evidence_missing, &mut table.no_ground_truth]
}

/// A share with its interval; none of nothing.
fn share(n: u64, of: u64) -> Option<CanaryShare> {
    let (part, whole) = (n as f64, of as f64);
    (of > 0).then(|| CanaryShare { n, of, share: part / whole, ci95: wilson(part, whole) })
}
