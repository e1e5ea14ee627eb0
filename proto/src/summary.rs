//! The summary of a run: `report.json`, schema version 3. Version 1 is read too (see [`UsageTotal`]), and version 2, in which building
//! was part of recall.
//!
//! Keys may be added, and are changed only with a new [`REPORT_SCHEMA_VERSION`]. Scores, shares and intervals are
//! fractions in [0, 1]; times carry their unit in the name; money is US dollars (floats for reading only, sums are made
//! in [`crate::money::PicoUsd`]). **A figure that was not computed is `null`, never 0.** The JSON Schema is published as
//! `proto/schema/report.schema.json`, an example as `proto/golden/report.v4.json`.

mod audit;
mod corrected;
mod labels;
mod memory;
mod metered;
mod models;
mod panel;
mod probe;
mod question_line;
mod run;
mod scores;
mod settings;
mod stop;
mod times;
mod usage;
mod without_texts;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{counting::CountingSummary, profile::Part};

pub use audit::{AuditRate, JudgeAudit, JudgeError};
pub use corrected::{Corrected, CorrectedBy, CorrectedCategory, CorrectedRange, CorrectedScore};
pub use labels::labels;
pub use memory::{
    BankLeak, CanaryShare, CanarySummary, Cause, CauseKind, CauseShare, CauseSummary, ContextSummary,
    FailureAttribution, FilteredRecalls, PassCount, RecallAnswer, RetrievalAtK, RetrievalSummary, StoredCount,
    StoredEvidence, StoredSummary, StoredUpdates,
};
pub use metered::{
    AccountsSpent, MeteredBank, MeteredFigures, MeteredModel, MeteredRefused, MeteredStage, MeteredSummary,
};
pub use models::{ModelSummary, PromptText, ServedModel};
pub use panel::{DifferingJudge, JudgeSpread, PanelSummary, SampledJudge};
pub use probe::{
    BuildSummary, ConcurrencySummary, InFlight, LATENCY_PROBE_VERSION, LatencyProbe, PhasesSummary, ProbeAtRate,
    ProbeConditions,
};
pub use question_line::{
    FoundLine, JudgementLine, LineLevel, PhaseUsageLine, QuestionLine, RetrievedLine, SearchLine, TimingLine,
};
pub use run::{CheckState, OutageMet, RunSummary, Verdict, VerdictCheck};
pub use scores::{
    Agreement, AnswerKeyScore, CategoryScore, ControlScore, Estimator, FacetScore, Headline, Interval, KeyedCategory,
    KeyedScore, MOST_FACET_VALUES, MOST_FACETS, MetricScore, OTHER_FACET_VALUES, Outcomes, PartScore, PublishedFigure,
    TotalScore, WorstQuestion,
};
pub use settings::{ANSWERER_NOT_SAID, DatasetSummary, SampleSummary, SpecSummary};
pub use stop::{Saved, StopSummary};
pub use times::{LatencyCurves, LatencySummary, Percentiles, PhaseSeconds, SlowQuestion};
pub use usage::{Booked, GroupSummary, MemoryCost, UsageFigures, UsageSummary, UsageTotal};

/// Version of [`Summary`] as written.
pub const REPORT_SCHEMA_VERSION: u32 = 4;
/// What the total that has a key of its own ([`Summary::without_adversarial`]) leaves out.
const ADVERSARIAL: &str = "adversarial";
/// Label of reports whose answers come from the built-in extractive answerer.
pub const LABEL_DEMO_ANSWERER: &str = "demo answerer";
/// Label of reports whose answers come from a simulated model (`fake`): a rehearsal, whose score says nothing of a memory system.
pub const LABEL_SIMULATED_ANSWERER: &str = "simulated answerer";
/// Label of reports whose grades come from such a model.
pub const LABEL_SIMULATED_JUDGE: &str = "simulated judge";
/// Label of reports over a dataset file that is not the published one.
pub const LABEL_MODIFIED_DATASET: &str = "modified dataset";
/// Label of reports whose judges were told the words of the dataset's authors, and read as they do.
pub const LABEL_OFFICIAL_JUDGE: &str = "official judge prompts (yes-anywhere)";
/// Label of reports over a dataset of whose published file no checksum is known.
pub const LABEL_UNKNOWN_CHECKSUM: &str = "dataset checksum not known";

/// Label of reports over planted answers: their score is a judge's, not a system's.
pub const LABEL_JUDGE_AUDIT: &str = "judge audit: planted answers";
/// Label of reports over answers of a run that somebody who knows has graded.
pub const LABEL_OWN_AUDIT: &str = "judge audit: graded answers of a run";
/// Label of reports of `retry --wrong`: what was right by luck stayed, what was wrong was drawn again.
pub const LABEL_ANSWERED_AGAIN: &str = "wrong answers were asked again";

/// Everything that is reported of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`REPORT_SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Which run, and whether its result can be trusted.
    pub run: RunSummary,
    /// What was asked.
    pub dataset: DatasetSummary,
    /// Effective settings.
    pub spec: SpecSummary,
    /// Where its models were, and what answered there; null in reports of builds before this field.
    #[serde(default)]
    pub models: Option<Vec<ModelSummary>>,
    /// Marks that every view prints beside the result: those of what was asked ([`labels()`]), and [`LABEL_OFFICIAL_JUDGE`], which
    /// only a report says.
    #[serde(default)]
    pub labels: Vec<String>,
    /// How the questions ended.
    pub outcomes: Outcomes,
    /// The one number.
    pub headline: Headline,
    /// The headline metric without the category `adversarial`, when the sample has that category among others.
    #[serde(default)]
    pub without_adversarial: Option<PartScore>,
    /// The headline metric over other parts of the categories, as the dataset's profile wants them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<TotalScore>,
    /// The headline metric as the published results of the dataset count it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<PublishedFigure>,
    /// The headline metric by a corrected answer key; absent unless a report was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_key: Option<AnswerKeyScore>,
    /// The headline metric corrected for the errors of its judge; absent unless a report was asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<CorrectedScore>,
    /// The figures by somebody else's counting; absent unless the run is held to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counting: Option<CountingSummary>,
    /// How often judges erred about planted answers; absent unless the run is a judge audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_audit: Option<JudgeAudit>,
    /// What it has found at its looks; absent unless it could stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopSummary>,
    /// All metrics, the headline's first.
    pub scores: Vec<MetricScore>,
    /// Retrieval quality against the dataset's evidence ids.
    pub retrieval: RetrievalSummary,
    /// Why questions below the pass threshold of the headline metric failed.
    #[serde(default)]
    pub failure_attribution: FailureAttribution,
    /// Why answers are wrong, as far as it is known; null when none is, and in reports of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<CauseSummary>,
    /// What banks hold, by their memory system's own listing; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredSummary>,
    /// Passed and failed questions of the headline metric, by what recall had found: what is lost in memory, and what after.
    #[serde(default)]
    pub recall_answer: RecallAnswer,
    /// Agreement of judges and votes on the same answers.
    #[serde(default)]
    pub judge_agreement: Vec<Agreement>,
    /// What its judges say together; absent where there are not several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelSummary>,
    /// Contexts handed to the answerer; null when nothing was recalled.
    #[serde(default)]
    pub context: Option<ContextSummary>,
    /// Dollars (as if nothing had been cached; with those of a metered memory system) per passed question of the headline metric; null
    /// when none passed.
    #[serde(default)]
    pub usd_per_correct: Option<f64>,
    /// Errors of `infra_error` questions: code → number of questions.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Of each of these codes the message that was told most often, one line, cut; absent where nothing failed, and in reports of
    /// earlier builds. Messages that begin alike are counted as one, of different ones the first 1,000 in byte order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_examples: BTreeMap<String, String>,
    /// Answers that did not end by themselves, in questions: `length`, `content_filter`, `refusal`, `empty`, …
    #[serde(default)]
    pub replies: BTreeMap<String, u64>,
    /// Controls that were run beside it.
    pub controls: Vec<ControlScore>,
    /// What canaries have shown; absent where none was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canaries: Option<CanarySummary>,
    /// How much was in flight while `latency_ms` was measured; null in reports of earlier builds.
    #[serde(default)]
    pub concurrency: Option<ConcurrencySummary>,
    /// Latency percentiles in milliseconds, under the load of the run: never compared (P43).
    pub latency_ms: LatencySummary,
    /// Latency of one recall at a time; null when it was not wanted.
    #[serde(default)]
    pub latency_probe: Option<LatencyProbe>,
    /// Phases that are no part of a question.
    #[serde(default)]
    pub phases: PhasesSummary,
    /// The same as curves; null when no question was timed.
    #[serde(default)]
    pub latency_curves: Option<LatencyCurves>,
    /// Usage per phase, and its total.
    pub usage: UsageSummary,
    /// What the memory system spent on models itself; absent where it was not metered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered: Option<MeteredSummary>,
    /// The same object as `usage.total`.
    pub total: UsageTotal,
    /// The runs that were started with it, under one cap; a run that was started alone is a group by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupSummary>,
    /// The ten slowest questions, slowest first.
    pub slowest: Vec<SlowQuestion>,
    /// The five worst scores by the headline metric, worst first, ties in byte order of the question id.
    pub worst: Vec<WorstQuestion>,
    /// Seconds of work per phase, summed over all workers.
    pub phase_seconds: PhaseSeconds,
    /// Providers that were away for a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageMet>,
    /// What the memory system said of itself.
    pub system_stats: BTreeMap<String, Value>,
    /// Mean of the score that the system gave its best hit; directional only.
    pub top1_score: Option<f64>,
    /// What a reader of the figures should know, one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// sha256 over the sorted (question id, outcome, scores), see [`crate::digest`].
    pub result_digest: String,
}

impl Summary {
    /// The totals beside the headline: that of LoCoMo, which has a key of its own, and the others in the order of the profile.
    #[must_use]
    pub fn all_totals(&self) -> Vec<(Part, &PartScore)> {
        let of_locomo = self.without_adversarial.iter().map(|score| (without_adversarial(), score));
        of_locomo.chain(self.totals.iter().map(|total| (total.part.clone(), &total.score))).collect()
    }

    /// What the memory system spends, metered or by calls of the runner; `None` where nobody knows.
    #[must_use]
    pub fn memory_cost(&self) -> Option<MemoryCost> {
        let metered = self.metered.as_ref().map(|metered| MemoryCost {
            usd: metered.total.usd_list(),
            usd_per_1000_turns: metered.usd_per_1000_turns,
            usd_per_question: metered.usd_per_question,
        });
        metered.or_else(|| self.usage.memory.clone())
    }

    /// The part of the categories that the headline is about.
    #[must_use]
    pub fn headline_part(&self) -> Part {
        Part { without: self.headline.without.clone() }
    }
}

/// Splits totals into the one with a key of its own and the others.
#[must_use]
pub fn keyed_totals(totals: Vec<TotalScore>) -> (Option<PartScore>, Vec<TotalScore>) {
    let (of_locomo, others): (Vec<_>, Vec<_>) =
        totals.into_iter().partition(|total| total.part == without_adversarial());
    (of_locomo.into_iter().next().map(|total| total.score), others)
}

fn without_adversarial() -> Part {
    Part { without: vec![ADVERSARIAL.to_owned()] }
}

#[cfg(test)]
mod tests;
