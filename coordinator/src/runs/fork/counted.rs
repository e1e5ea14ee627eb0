//! What becomes of somebody else's counting when a run that is held to it is forked: it stays with what it counts, or the fork
//! begins again from the dataset's own rules.

use bench_grading::counting::{self as countings, Counting};
use bench_proto::{scenario::Scenario, spec::RunSpec};
use bench_store::RunRow;

use crate::{
    app::App,
    cli::SubmitArgs,
    exit::CliError,
    out,
    planning::{OF_DATASET, counting, dataset_of, judge_prompts},
};

/// Whether a fork leaves the counting of its source: flags name another one or the dataset's own rubrics, or nothing would be
/// there to be counted.
pub(super) fn leaves(args: &SubmitArgs, source: &RunSpec) -> bool {
    let Some(before) = &source.counting else { return false };
    let by_flag = args.count_as.is_some() || args.canonical_judge || args.rubric.as_deref() == Some(OF_DATASET);
    let judged = countings::find(&before.name).is_none_or(|known| known.scorer().is_none());
    let only_scores = (args.only_scorers || !args.scorer.is_empty()) && args.judge.is_empty();
    let scenario = args.scenario.as_deref().and_then(Scenario::from_name);
    let counts_nothing = (judged && only_scores) || scenario.is_some_and(|scenario| !scenario.answers());
    if counts_nothing && !by_flag {
        out::note(&format!("not counted as {} any more: what it counts is not measured", before.name));
    }
    by_flag || counts_nothing
}

/// The run as it would be by our own counting: its dataset's rubrics and totals are as the dataset has them, and its judges have
/// room for replies to them.
///
/// # Errors
/// Exit 2 when the dataset cannot be opened, and for parameters of judges in settings that are none.
pub(super) async fn uncounted(app: &App, source: &RunRow) -> Result<RunRow, CliError> {
    let dataset = dataset_of(app, &source.spec).await?;
    let mut source = source.clone();
    source.spec.counting = None;
    let counted = std::mem::replace(&mut source.spec.dataset.profile, dataset.profile().clone());
    judge_prompts::set_params(app, Some(&counted), dataset.profile(), &mut source.spec.judges)?;
    Ok(source)
}

/// The counting of a fork: that of the flags, else that of its source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// What the flags name.
    pub(super) named: Option<&'static Counting>,
    /// What the source is held to, and its fork with it.
    kept: Option<&'static Counting>,
}

impl Held {
    /// By flags and the source that the fork begins from.
    ///
    /// # Errors
    /// Exit 2 as [`counting::chosen`], and for what cannot be had together with a counting.
    pub(super) fn from_args(args: &SubmitArgs, source: &RunSpec) -> Result<Self, CliError> {
        let named = counting::chosen(args, &source.dataset.name)?;
        let Some(before) = &source.counting else { return Ok(Self { named, kept: None }) };
        let flag = match (&args.rubric, &args.judge_prompts) {
            (Some(rubric), _) => Some(format!("--rubric {rubric}")),
            (None, Some(_)) => Some("--judge-prompts".to_owned()),
            (None, None) => None,
        };
        match flag {
            None => Ok(Self { named, kept: countings::find(&before.name) }),
            Some(flag) => Err(CliError::usage(format!(
                "{flag}: the run is counted as {}, which has rubrics of its own; a fork with --rubric {OF_DATASET} goes back to \
                 the dataset's, and can be forked with {flag} then",
                before.name
            ))),
        }
    }

    /// Flags with what the counting says of judges and votes, where they do not.
    ///
    /// # Errors
    /// Exit 2 as [`counting::judges`].
    pub(super) fn complete(self, args: &SubmitArgs) -> Result<SubmitArgs, CliError> {
        // the judges that a source has been counted by stay, unless flags name others
        let counting = match (self.named, self.kept) {
            (Some(named), _) => named,
            (None, Some(kept)) if !args.judge.is_empty() => kept,
            (None, _) => return Ok(args.clone()),
        };
        if self.named.is_none() && counting.scorer().is_some() {
            return Err(CliError::usage(format!(
                "--judge: the run is counted as {}, where no model judges; a fork with --rubric {OF_DATASET} is graded by the \
                 dataset's rubrics",
                counting.name
            )));
        }
        let judge = counting::judges(counting, &args.judge)?;
        let scorer = args.scorer.iter().cloned().chain(counting.scorer().map(str::to_owned)).collect();
        let only_scorers = args.only_scorers || judge.is_empty();
        Ok(SubmitArgs { votes: args.votes.or(Some(counting.votes)), judge, scorer, only_scorers, ..args.clone() })
    }

    /// Notes in the settings of the fork what it is held to.
    ///
    /// # Errors
    /// Exit 2 as [`counting::note`].
    pub(super) fn note(self, spec: &mut RunSpec) -> Result<(), CliError> {
        self.named.or(self.kept).map_or(Ok(()), |counting| counting::note(counting, spec))
    }
}
