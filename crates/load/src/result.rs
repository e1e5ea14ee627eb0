//! What is written of a load, read again, and added up over several processes.
//!
//! [`LoadResult`] is the file. What is measured in it are tallies; its figures are made of these, when it is written and again when
//! it is read: a file cannot say one thing in its histogram and another in its percentiles.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    histogram::Latencies,
    line::Line,
    mix::{Mix, Operation},
    saturation::{self, Measured, Saturation, Standing},
    tally::{Tally, countable, growth},
};

/// Name of the form.
pub const SCHEMA: &str = "bench-load";
/// Its version: raised when a meaning changes.
pub const SCHEMA_VERSION: u32 = 1;
/// Share of the longer of two steps in which both have to be under way to be one load.
const TOGETHER: f64 = 0.8;
/// Share of its time that a whole step has been under way: clocks do not agree to the last digit.
const WHOLE: f64 = 0.999;
/// Latest start at the 99th percentile that nobody is told of, in milliseconds.
const LATE_MS: f64 = 1.0;

/// What was to be done: equal in all processes of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Name of the memory system.
    pub system: String,
    /// Its version, as its adapter says.
    pub system_version: String,
    /// sha256 of its settings, where it is left out.
    pub settings_sha256: String,
    /// `poisson`, `constant` or `steps`.
    pub arrivals: String,
    /// Operations a second of each process, in the order of the steps.
    pub rates: Vec<f64>,
    /// Shares of the operations.
    pub mix: Mix,
    /// Banks of each process.
    pub banks: u32,
    /// Memories that each bank is filled with before the steps of its size.
    pub bank_sizes: Vec<u32>,
    /// Hits that a recall asks for.
    pub top_k: u32,
    /// Seconds of a step.
    pub seconds: f64,
    /// Seconds of the same rate before it.
    pub warm_up_seconds: f64,
    /// Seconds after it in which what is due is still sent and waited for.
    pub drain_seconds: f64,
    /// Most operations under way in each process.
    pub in_flight: u32,
}

/// A process that took part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its id: the names of its banks begin with it.
    pub id: String,
    /// Seed of its arrivals, its mix and its memories.
    pub seed: u64,
    /// Kind of its machine.
    pub machine: String,
    /// Version of the program.
    pub code_version: String,
    /// `debug` or `release`: how it was built.
    pub build: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When it ended.
    pub ended_at: String,
    /// It was stopped before its time.
    pub interrupted: bool,
}

/// Percentiles in milliseconds, from the intended start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Median; `null` here and below where fewer operations were served.
    pub p50: Option<f64>,
    /// 90 %.
    pub p90: Option<f64>,
    /// 95 %.
    pub p95: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
    /// 99.9 %.
    pub p99_9: Option<f64>,
}

impl Percentiles {
    /// Of latencies, with so many operations that were never served.
    #[must_use]
    pub fn from_latencies(latencies: &Latencies, never: u64) -> Self {
        let at = |share| latencies.quantile_ms(share, never);
        Self { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), p99_9: at(0.999) }
    }
}

/// Whether recalls found what they asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Recalls that had their memory among the hits.
    pub found: u64,
    /// Recalls that had not.
    pub missed: u64,
    /// Recalls with a memory of another bank among the hits.
    pub foreign: u64,
}

impl Findings {
    /// Adds those of another.
    pub fn add(&mut self, other: Self) {
        self.found += other.found;
        self.missed += other.missed;
        self.foreign += other.foreign;
    }

    pub(crate) const fn counts(&self) -> [u64; 3] {
        [self.found, self.missed, self.foreign]
    }
}

/// Figures of an operation, made of its tally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Operations that were due.
    pub intended: u64,
    /// Those that ended well.
    pub served: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that ended well, a second of the step.
    pub served_per_second: f64,
    /// Latency of everything that was due: what was not served took forever.
    pub latency_ms: Percentiles,
    /// Latency of what was served alone.
    pub served_ms: Percentiles,
    /// Mean of what was served.
    pub mean_ms: Option<f64>,
    /// Longest of what was served.
    pub max_ms: Option<f64>,
}

impl Figures {
    /// Of a tally of a step of so many seconds.
    #[must_use]
    pub fn from_tally(tally: &Tally, seconds: f64) -> Self {
        Self {
            intended: tally.intended(),
            served: tally.served.n(),
            failed: tally.errors(),
            served_per_second: if seconds > 0.0 { tally.departed as f64 / seconds } else { 0.0 },
            latency_ms: Percentiles::from_latencies(&tally.served, tally.unserved()),
            served_ms: Percentiles::from_latencies(&tally.served, 0),
            mean_ms: tally.served.mean_ms(),
            max_ms: tally.served.max_ms(),
        }
    }
}

/// An operation in a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationResult {
    /// For people and tools.
    #[serde(skip_deserializing)]
    pub figures: Figures,
    /// What is added up.
    pub tally: Tally,
    /// Of recalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Findings>,
}

/// A step of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// Memories that each bank was filled with.
    pub bank_size: u32,
    /// Memories of a bank on average when the step began, those among them that were retained under load.
    pub memories_per_bank: f64,
    /// Operations that were due a second, over all processes.
    pub rate: f64,
    /// When operations began to be due, milliseconds of Unix time.
    pub begun_at_ms: u64,
    /// Seconds in which operations were due; of several processes on average, by their rates.
    pub seconds: f64,
    /// Whether the system kept up.
    pub standing: Standing,
    /// How its latency grew, seconds for each second.
    #[serde(skip_deserializing)]
    pub growth: Option<Line>,
    /// By operation.
    pub operations: BTreeMap<Operation, OperationResult>,
    /// Of the warm-up, both operations together.
    pub warm_up: OperationResult,
    /// Operations that were due when as many were under way as are allowed.
    pub waited_for_a_place: u64,
    /// How late operations began that found a place at once.
    #[serde(skip_deserializing)]
    pub late_ms: Percentiles,
    /// The same, to be added up.
    pub late: Latencies,
}

impl StepResult {
    /// Makes all figures anew, of a step whose operations were to be due for `window` seconds.
    pub fn count(&mut self, window: f64) {
        for operation in self.operations.values_mut() {
            operation.figures = Figures::from_tally(&operation.tally, self.seconds);
        }
        self.warm_up.figures = Figures::from_tally(&self.warm_up.tally, 0.0);
        self.late_ms = Percentiles::from_latencies(&self.late, 0);
        self.growth = growth(self.operations.values().map(|operation| &operation.tally), window);
        let sum = |of: fn(&Tally) -> u64| self.operations.values().map(|operation| of(&operation.tally)).sum();
        self.standing = Standing::from_step(sum(Tally::intended), sum(Tally::unserved), self.growth);
    }

    /// Whether it ended before its `window` was over: it may have been held for no longer than that.
    #[must_use]
    pub fn is_cut(&self, window: f64) -> bool {
        self.seconds < window * WHOLE
    }

    fn measured(&self) -> Measured {
        let all = || self.operations.values().map(|operation| &operation.tally.served);
        let n: u64 = all().map(Latencies::n).sum();
        let sum: f64 = all().filter_map(|served| Some(served.mean_ms()? * served.n() as f64)).sum();
        Measured {
            rate: self.rate,
            standing: self.standing,
            served: self.operations.values().map(|operation| operation.figures.served_per_second).sum(),
            mean_ms: (n > 0).then(|| sum / n as f64),
        }
    }

    /// Adds the same step of another process.
    fn add(&mut self, other: &Self) {
        let rate = self.rate + other.rate;
        if rate > 0.0 {
            // what was served, through these, is the sum of what each process has served a second
            self.seconds = (self.rate * self.seconds + other.rate * other.seconds) / rate;
        }
        self.rate = rate;
        self.memories_per_bank = self.memories_per_bank.max(other.memories_per_bank);
        self.begun_at_ms = self.begun_at_ms.min(other.begun_at_ms);
        for (operation, more) in &other.operations {
            let sum = self.operations.entry(*operation).or_default();
            sum.tally.add(&more.tally);
            if let Some(more) = more.findings {
                sum.findings.get_or_insert_default().add(more);
            }
        }
        self.warm_up.tally.add(&other.warm_up.tally);
        self.waited_for_a_place += other.waited_for_a_place;
        self.late.add(&other.late);
    }

    /// Why another process had not the same step under way at the same time.
    fn apart_from(&self, other: &Self) -> Option<String> {
        let (longer, shorter) = (self.seconds.max(other.seconds), self.seconds.min(other.seconds));
        let apart = self.begun_at_ms.abs_diff(other.begun_at_ms) as f64 / 1e3;
        if self.bank_size != other.bank_size || apart > (1.0 - TOGETHER) * longer {
            return Some("not under way at the same time: start all processes with the same --start-at".to_owned());
        }
        (shorter < TOGETHER * longer).then(|| {
            format!(
                "a step was under way for {shorter:.1} s in one process and for {longer:.1} s in another: one was stopped in the middle of it"
            )
        })
    }

    /// Everything that it counts.
    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let operations = self.operations.values().flat_map(|of| {
            let findings = of.findings.iter().flat_map(|findings| findings.counts());
            of.tally.counts().chain(findings)
        });
        let all = operations.chain(self.warm_up.tally.counts());
        all.chain([self.waited_for_a_place, self.late.n()])
    }
}

/// Saturation and knee with banks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtBankSize {
    /// Memories that each bank was filled with.
    pub bank_size: u32,
    /// Between which rates the system saturates.
    #[serde(flatten)]
    pub saturation: Saturation,
    /// The rate with the most throughput for its latency.
    pub knee: Option<f64>,
}

/// How the median latency of an operation grows with the banks, at one rate that was held with all sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthOfBanks {
    /// Operations a second.
    pub rate: f64,
    /// Which operation grows so.
    pub operation: Operation,
    /// Milliseconds for a thousand memories more in each bank.
    pub ms_per_1000_memories: Line,
}

/// A load and what came of it: the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadResult {
    /// Name of the form of this file ([`SCHEMA`]).
    pub schema: String,
    /// Version of that form ([`SCHEMA_VERSION`]).
    pub schema_version: u32,
    /// What was to be done.
    pub plan: Plan,
    /// Who did it.
    pub processes: Vec<Process>,
    /// In the order in which they were made.
    pub steps: Vec<StepResult>,
    /// By bank size.
    #[serde(skip_deserializing)]
    pub at_bank_sizes: Vec<AtBankSize>,
    /// Of at least three bank sizes.
    #[serde(skip_deserializing)]
    pub growth_of_banks: Vec<GrowthOfBanks>,
    /// Why it ended before its time, where the system or a machine has ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What a reader has to know.
    #[serde(skip_deserializing)]
    pub notes: Vec<String>,
}

/// Why a file is no result, or results are not of one load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// They cannot be added.
    #[error("{0}")]
    NotOne(String),
}

impl LoadResult {
    /// What a process has measured, with its figures.
    #[must_use]
    pub fn new(plan: Plan, process: Process, steps: Vec<StepResult>) -> Self {
        let processes = vec![process];
        let mut result = Self {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            plan,
            processes,
            steps,
            at_bank_sizes: Vec::new(),
            growth_of_banks: Vec::new(),
            failure: None,
            notes: Vec::new(),
        };
        result.count();
        result
    }

    /// The same, with why it ended before its time.
    #[must_use]
    pub fn ended_by(mut self, failure: Option<String>) -> Self {
        self.failure = failure;
        self.count();
        self
    }

    /// A file's head and body, once they are read: other forms and versions are told apart from broken files.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(mut self) -> Result<Self, MergeError> {
        let unreadable = |why: &str| MergeError::Unreadable(why.to_owned());
        if self.schema != SCHEMA {
            return Err(unreadable("is no result of the verb `load`"));
        }
        if self.schema_version != SCHEMA_VERSION {
            let version = self.schema_version;
            return Err(MergeError::Unreadable(format!(
                "has version {version} of its form, this program reads {SCHEMA_VERSION}: use one version for all processes"
            )));
        }
        let is_time = |seconds: f64| seconds.is_finite() && (0.0..=1e7).contains(&seconds);
        if self.processes.is_empty() || !self.steps.iter().all(|step| is_time(step.seconds) && is_time(step.rate)) {
            return Err(unreadable("has no process, or times and rates that no process can have"));
        }
        if !self.is_countable() {
            return Err(unreadable("has counts that no process can have"));
        }
        self.count();
        Ok(self)
    }

    fn is_countable(&self) -> bool {
        countable(self.steps.iter().flat_map(StepResult::counts))
    }

    /// Adds up processes that have loaded one system together.
    ///
    /// # Errors
    /// When there is none, when their plans differ, or when they were not under way at the same time.
    pub fn merged(results: Vec<Self>) -> Result<Self, MergeError> {
        let mut results = results.into_iter();
        let not_one = |why: String| Err(MergeError::NotOne(why));
        let Some(mut sum) = results.next() else { return not_one("there is nothing to add up".to_owned()) };
        for other in results {
            if let Some(differs) = different(&sum.plan, &other.plan) {
                return not_one(format!("not of one load: {differs}"));
            }
            for process in &other.processes {
                if sum.processes.iter().any(|known| known.id == process.id) {
                    return not_one(format!("process {} is named twice", process.id));
                }
                if sum.processes.iter().any(|known| known.seed == process.seed) {
                    let seed = process.seed;
                    return not_one(format!("two processes have seed {seed}: their arrivals coincide"));
                }
            }
            let common = sum.steps.len().min(other.steps.len());
            sum.steps.truncate(common);
            for (step, more) in sum.steps.iter_mut().zip(&other.steps) {
                if let Some(why) = step.apart_from(more) {
                    return not_one(why);
                }
                step.add(more);
            }
            if !sum.is_countable() {
                return not_one("together they count more than can be counted".to_owned());
            }
            sum.failure = sum.failure.or(other.failure);
            sum.processes.extend(other.processes);
        }
        sum.count();
        Ok(sum)
    }

    /// Whether one of its processes was stopped before its time.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.processes.iter().any(|process| process.interrupted)
    }

    /// Whether all of its processes have made all of their steps: neither a person nor a failure has ended one before.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.is_interrupted() && self.failure.is_none()
    }

    /// Makes everything anew that is made of tallies.
    fn count(&mut self) {
        let window = self.plan.seconds;
        self.steps.iter_mut().for_each(|step| step.count(window));
        let mut sizes: Vec<u32> = self.steps.iter().map(|step| step.bank_size).collect();
        sizes.dedup();
        let at_size = |bank_size| {
            let of_size = self.steps.iter().filter(|step| step.bank_size == bank_size && !step.is_cut(window));
            let measured: Vec<Measured> = of_size.map(StepResult::measured).collect();
            let (saturation, knee) = (saturation::saturation(&measured), saturation::knee(&measured));
            AtBankSize { bank_size, saturation, knee }
        };
        self.at_bank_sizes = sizes.into_iter().map(at_size).collect();
        self.growth_of_banks = self.growth_of_banks();
        self.notes = self.notes();
    }

    fn growth_of_banks(&self) -> Vec<GrowthOfBanks> {
        let mut rates: Vec<f64> = self.steps.iter().map(|step| step.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let mut found = Vec::new();
        for rate in rates {
            let is_whole = |step: &&StepResult| !step.is_cut(self.plan.seconds);
            let of_rate = move |step: &&StepResult| step.rate.total_cmp(&rate).is_eq();
            let at_rate = || self.steps.iter().filter(of_rate).filter(is_whole);
            if at_rate().any(|step| step.standing == Standing::Behind) {
                continue;
            }
            for operation in Operation::ALL {
                let points = at_rate().filter_map(|step| {
                    let median = step.operations.get(&operation)?.figures.latency_ms.p50?;
                    Some((f64::from(step.bank_size) / 1e3, median))
                });
                let line = Line::through(&points.collect::<Vec<_>>());
                found.extend(line.map(|line| GrowthOfBanks { rate, operation, ms_per_1000_memories: line }));
            }
        }
        found
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_interrupted() {
            notes.push("interrupted: what was measured until then".to_owned());
        }
        if let Some(why) = &self.failure {
            notes.push(format!("it ended before its time, and this is what was measured until then: {why}"));
        }
        let of = |count: fn(&OperationResult) -> u64| -> u64 {
            self.steps.iter().flat_map(|step| step.operations.values()).map(count).sum()
        };
        let findings = |of_findings: fn(&Findings) -> u64| -> u64 {
            let all = self.steps.iter().flat_map(|step| step.operations.values());
            all.filter_map(|operation| operation.findings.as_ref()).map(of_findings).sum()
        };
        let unsent = of(|operation| operation.tally.unsent);
        if unsent > 0 {
            notes.push(format!("{unsent} operations were due and never sent: the system was behind until the end"));
        }
        let unfinished = of(|operation| operation.tally.unfinished);
        if unfinished > 0 {
            notes.push(format!("{unfinished} operations were sent and had not ended when nobody waited any longer"));
        }
        let (missed, foreign) = (findings(|findings| findings.missed), findings(|findings| findings.foreign));
        if missed > 0 {
            let asked = missed + findings(|findings| findings.found);
            notes.push(format!("{missed} of {asked} recalls did not find the memory that they asked for"));
        }
        if foreign > 0 {
            notes.push(format!("{foreign} recalls found a memory of another bank: banks are not kept apart"));
        }
        let late = self.steps.iter().filter_map(|step| step.late_ms.p99).fold(0.0, f64::max);
        if late > LATE_MS {
            notes.push(format!(
                "this machine began 1 % of the operations of a step more than {late:.1} ms late: it is a part of what was measured"
            ));
        }
        notes
    }
}

/// The first thing in which two plans differ.
fn different(one: &Plan, other: &Plan) -> Option<String> {
    let shown = |plan: &Plan| {
        [
            ("system", format!("{} {}", plan.system, plan.system_version)),
            ("settings", plan.settings_sha256.clone()),
            ("--arrivals", plan.arrivals.clone()),
            ("--mix", plan.mix.to_string()),
            ("--banks", plan.banks.to_string()),
            ("--bank-size", format!("{:?}", plan.bank_sizes)),
            ("steps of --rate", plan.rates.len().to_string()),
            ("--top-k", plan.top_k.to_string()),
            ("--seconds", plan.seconds.to_string()),
            ("--warm-up", plan.warm_up_seconds.to_string()),
            ("--drain", plan.drain_seconds.to_string()),
            ("--in-flight", plan.in_flight.to_string()),
        ]
    };
    let pairs = shown(one).into_iter().zip(shown(other));
    let mut differ = pairs.filter(|((_, one), (_, other))| one != other);
    differ.next().map(|((what, one), (_, other))| format!("{what} is {one} in one and {other} in the other"))
}

#[cfg(test)]
mod tests;
