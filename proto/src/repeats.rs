//! The repeats of one run as one result: what `report GROUP --json` prints, schema version 1.
//!
//! Figures and intervals are fractions; a figure that was not computed is `null`, with a note that says why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    metered::Stage,
    summary::{Estimator, Interval, MeteredFigures, MeteredSummary, Verdict},
};

/// Version of [`RepeatsReport`] as written.
pub const REPEATS_SCHEMA_VERSION: u32 = 1;

/// Standard deviation of a question's scores over the repeats above which it is called noisy.
pub const NOISY_SD: f64 = 0.10;

/// A group of repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsReport {
    /// [`REPEATS_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was repeated, and what it cost.
    pub group: RepeatsGroup,
    /// Its runs, in the order of their numbers.
    pub runs: Vec<RepeatedRun>,
    /// What the memory system spent on models itself, in all repeats that have ended; absent where it was not metered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metered: Option<RepeatsMetered>,
    /// The metric of all figures: the headline's.
    pub metric: String,
    /// How a run's figure is made of its questions.
    pub estimator: Estimator,
    /// The mean over the runs that have ended.
    pub mean: RepeatsMean,
    /// How the questions behave from repeat to repeat.
    pub stability: Stability,
    /// What the noise is made of.
    pub variance: VarianceShares,
    /// What half the interval would take.
    pub halving: Halving,
    /// All repeats have the same result digest and the same answers: they are one draw, and say nothing about noise.
    pub deterministic: bool,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}

/// What the repeats have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsGroup {
    /// Public id.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// Repeats that were asked for.
    pub repeats: u32,
    /// Repeats that have ended.
    pub ended: u32,
    /// Name of the dataset, with its variant.
    pub dataset: String,
    /// Preset of the sample.
    pub preset: String,
    /// Questions of the sample.
    pub questions: u64,
    /// Banks of the sample.
    pub banks: u64,
    /// Memory system.
    pub system: String,
    /// Who answers.
    pub answerer: String,
    /// Model judges.
    pub judges: Vec<String>,
    /// Votes of a judge for each answer.
    pub votes: u32,
    /// Whether each repeat filled its banks by a filling of its own, so that what filling changes is a part of the noise.
    pub filled_anew: bool,
    /// The cap of the whole group, in dollars.
    pub cap_usd: Option<f64>,
    /// What the ledger of the group holds, in dollars.
    pub booked_usd: f64,
}

/// A run of the group with its own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedRun {
    /// Public id.
    pub id: String,
    /// Its number, from 1.
    pub number: u32,
    /// One word: `finished`, `paused`, `running` …
    pub status: String,
    /// The headline; none before it has ended.
    pub value: Option<f64>,
    /// Questions with a score.
    pub n: u64,
    /// (scored + abstained) / sample.
    pub coverage: Option<f64>,
    /// Whether its result may be used.
    pub verdict: Option<Verdict>,
    /// Equal for equal outcomes and scores of the same questions; none before it has ended.
    pub result_digest: Option<String>,
    /// What was spent on it, in dollars.
    pub usd: f64,
}

/// What a memory system spent on models itself, over the repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsMetered {
    /// Repeats whose calls these are.
    pub runs: u64,
    /// All of the calls.
    #[serde(flatten)]
    pub total: MeteredFigures,
    /// Dollars of filling (retain and consolidate), as if no reply had come from the store.
    pub usd_filling: f64,
    /// The same of asking (recall and answer). What is in neither are checks, and calls of which nobody can say what they were for.
    pub usd_asking: f64,
}

impl RepeatsMetered {
    /// The sum over runs; none where no run was metered.
    #[must_use]
    pub fn sum_of<'m>(runs: impl IntoIterator<Item = &'m MeteredSummary>) -> Option<Self> {
        let mut sum = Self::default();
        for metered in runs {
            sum.runs += 1;
            sum.total.add(&metered.total);
            sum.usd_filling += metered.usd_list_of(&Stage::FILLING);
            sum.usd_asking += metered.usd_list_of(&Stage::ASKING);
        }
        (sum.runs > 0).then_some(sum)
    }
}

/// The mean over the repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsMean {
    /// Mean of the runs' headlines.
    pub value: Option<f64>,
    /// Sample standard deviation of the runs' headlines, with n − 1.
    pub sd: Option<f64>,
    /// *Conversations like these*: holds questions, banks and repeats.
    pub ci95: Option<Interval>,
    /// Why there is no interval, or how it is to be read.
    pub ci95_note: Option<String>,
    /// *This benchmark* under new draws.
    pub benchmark_ci95: Option<Interval>,
    /// Why there is none.
    pub benchmark_note: Option<String>,
    /// How far a single run may lie from the mean of many on the same questions (95 %): t · sd.
    pub one_run_within: Option<f64>,
    /// Variance of what all questions of a repeat have in common, such as a provider that drifts; 0 where none is seen.
    pub drift_variance: Option<f64>,
}

/// How stable the questions are. Only questions with a score in every repeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stability {
    /// Questions with a score in every repeat.
    pub questions: u64,
    /// Questions that lack the score of a repeat.
    pub left_out: u64,
    /// Share of questions that passed in every repeat.
    pub always_passed: SharedFigure,
    /// Share of questions that passed in none.
    pub never_passed: SharedFigure,
    /// Share of questions that passed in some and not in others.
    pub mixed: SharedFigure,
    /// Share of questions whose scores have a standard deviation above [`NOISY_SD`].
    pub noisy: SharedFigure,
    /// The noisiest questions, at most twenty.
    pub noisiest: Vec<RepeatedQuestion>,
    /// pass@k and pass^k by k.
    pub passes: Vec<PassesAtK>,
}

/// A share of questions, or a mean over them, with its interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedFigure {
    /// The figure, weighted as the headline is.
    pub value: Option<f64>,
    /// Questions that are counted.
    pub count: u64,
    /// Its interval, clustered by bank.
    pub ci95: Option<Interval>,
    /// Why there is no interval.
    pub note: Option<String>,
}

/// A question with its score in each repeat: a line of the group's `questions.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedQuestion {
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank.
    pub bank_id: String,
    /// The dataset's kind of question that it is.
    pub category: String,
    /// Scores in the order of the repeats.
    pub scores: Vec<f64>,
    /// Mean of the scores.
    pub mean: f64,
    /// Their sample standard deviation.
    pub sd: f64,
}

/// How often k tries pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassesAtK {
    /// Tries.
    pub k: u32,
    /// Chance that at least one of k tries passes.
    pub pass_at_k: SharedFigure,
    /// Chance that all of k tries pass (pass^k).
    pub pass_all_k: SharedFigure,
}

/// Variance of a single score in the order of where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VarianceShares {
    /// Questions that the shares rest on: those with a score in every repeat.
    pub questions: u64,
    /// Banks that they are about.
    pub banks: u64,
    /// Repeats that the shares rest on.
    pub repeats: u64,
    /// Sum of the components.
    pub total: Option<f64>,
    /// The components; shares sum to 1.
    pub components: Vec<VarianceComponent>,
    /// Why there are none, or what they do not say.
    pub notes: Vec<String>,
}

/// Where a part of the variance comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VarianceComponent {
    /// `bank`, `question`, `ingest`, `answer draw` or `judge draw`.
    pub source: Source,
    /// Sources that this design cannot tell from it.
    pub joined_with: Vec<Source>,
    /// The component.
    pub variance: f64,
    /// Its 95 % interval.
    pub variance_ci95: Option<Interval>,
    /// Its share of the total.
    pub share: f64,
    /// The 95 % interval of the share.
    pub share_ci95: Option<Interval>,
}

/// A source of variance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Source {
    /// Banks differ in how hard they are.
    #[serde(rename = "bank")]
    Bank,
    /// Questions of a bank differ.
    #[serde(rename = "question")]
    Question,
    /// Filling a bank again makes another memory of it.
    #[serde(rename = "ingest")]
    Ingest,
    /// Asking again brings another recall or answer.
    #[serde(rename = "answer draw")]
    AnswerDraw,
    /// Grading the same answer again brings another grade.
    #[serde(rename = "judge draw")]
    JudgeDraw,
}

impl Source {
    /// Its words in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bank => "bank",
            Self::Question => "question",
            Self::Ingest => "ingest",
            Self::AnswerDraw => "answer draw",
            Self::JudgeDraw => "judge draw",
        }
    }
}

/// What it would take to make an interval half as wide, by the components' point estimates and at the same t.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halving {
    /// For *conversations like these*.
    pub conversations: HalvingBy,
    /// For *this benchmark* under new draws: repeats help, and of a sample further questions of the dataset.
    pub benchmark: HalvingBy,
}

/// Ways to halve an interval; `null` where the way does not lead there, however far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalvingBy {
    /// Further repeats of the same questions.
    pub repeats: Option<u64>,
    /// Further questions about the same banks.
    pub questions_same_banks: Option<u64>,
    /// Further questions, with banks of their own.
    pub questions_new_banks: Option<u64>,
    /// Why nothing is said.
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_report_of_repeats_is_read_and_written_unchanged() {
        let text = include_str!("../golden/repeats.v1.json");
        let report: RepeatsReport = serde_json::from_str(text).expect("the golden report is one");
        assert_eq!(report.schema_version, REPEATS_SCHEMA_VERSION);
        assert_eq!(serde_json::to_string_pretty(&report).expect("serialises"), text.trim_end());
        let sources: Vec<&str> = report.variance.components.iter().map(|c| c.source.name()).collect();
        assert_eq!(sources, ["bank", "question", "answer draw"]);
    }
}
