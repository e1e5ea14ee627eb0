//! Results that were read become a finished run.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use bench_datasets::Dataset;
use bench_grading::scorers::{self, Scorer};
use bench_plan::Sample;
use bench_proto::{
    ids::{RunId, RunNo},
    scenario::{RecallPlan, Scenario},
    spec::{DatasetSpec, JudgingSpec, Limits, RunSpec, SPEC_VERSION, SystemSpec, TakenOver},
};
use bench_store::{NewRun, RunState, Store};

use super::{
    ImportError,
    facts::{self, Grading},
    fields::Line,
};
use crate::{
    cli::NamingArgs,
    exit::CliError,
    planning::{self, planner},
    standing::{current_user, domains::LOCAL_DOMAIN},
};

/// What was read, with the part of the dataset that it is about.
pub(crate) struct Results {
    pub(crate) dataset: Arc<dyn Dataset>,
    pub(crate) sample: Sample,
    /// Lines by the id of their question.
    pub(crate) lines: BTreeMap<String, Line>,
    /// Metric of the grades that they bring.
    pub(crate) metric: Option<String>,
    /// What they are results of.
    pub(crate) scenario: Scenario,
    /// What scores them: the dataset's scorers unless others are set.
    pub(crate) scorers: Vec<&'static dyn Scorer>,
}

impl Results {
    /// With the scorers of the dataset.
    ///
    /// # Errors
    /// A scorer that this build does not have.
    pub(crate) fn new(
        dataset: Arc<dyn Dataset>,
        sample: Sample,
        lines: BTreeMap<String, Line>,
        metric: Option<String>,
    ) -> Result<Self, CliError> {
        let scorers = dataset.manifest().scorers.iter().map(|name| scorers::registry::find(name));
        let scorers = scorers.collect::<Result<_, _>>().map_err(CliError::usage_of)?;
        Ok(Self { dataset, sample, lines, metric, scenario: Scenario::default(), scorers })
    }

    /// The spec of a run in which nothing of ours recalled, answered or judged.
    pub(crate) fn spec(&self, dataset: DatasetSpec, system: SystemSpec) -> RunSpec {
        RunSpec {
            spec_version: SPEC_VERSION,
            dataset,
            sample: self.sample.spec.clone(),
            system,
            scenario: self.scenario,
            recalls: RecallPlan::default(),
            answerer: planning::scenario::nobody(),
            judges: Vec::new(),
            votes: 1,
            judging: JudgingSpec::default(),
            scorers: self.scorers.iter().map(|scorer| scorer.spec()).collect(),
            counting: None,
            headline: self.metric.clone(),
            limits: Limits::default(),
            canaries: None,
            stop: None,
            lists: false,
            taken_over: TakenOver::default(),
        }
    }

    /// Scores everything, and then stores it as a finished run: a line that cannot be used starts nothing. `file` says where a line
    /// is from that is of no question of the sample.
    ///
    /// # Errors
    /// What the dataset and the store meet.
    pub(crate) async fn keep(&self, store: &dyn Store, new_run: &NewRun, file: &str) -> Result<RunNo, CliError> {
        let banks = planning::banks_in_order(&self.sample);
        let phrases = &new_run.spec.dataset.abstention_phrases;
        let profile = &new_run.spec.dataset.profile;
        let grading = Grading { metric: self.metric.as_deref(), scorers: &self.scorers, profile, phrases };
        let (mut imported, mut sampled) = (Vec::new(), HashSet::new());
        for batch in planner::batches(self.dataset.as_ref(), &banks, None) {
            let batch = batch?;
            imported.extend(facts::of_lines(&batch, &self.lines, &grading)?);
            let questions = batch.parts.into_iter().flat_map(|bank| bank.questions);
            sampled.extend(questions.map(|question| question.question_id));
        }
        facts::check_sampled(&sampled, &self.lines, &new_run.spec.dataset.name)
            .map_err(|e: ImportError| CliError::usage(format!("{file}: {e}")).because(e))?;
        let run_no = store.create_run(new_run).await?;
        for batch in planner::batches(self.dataset.as_ref(), &banks, None) {
            let batch = batch?;
            store.put_items(&batch.items).await?;
            store.add_banks(run_no, &batch.banks).await?;
        }
        store.import_results(run_no, &new_run.spec.headline_metric(), &imported, false).await?;
        store.finish_plan(run_no).await?;
        store.set_run_state(run_no, &[RunState::Running], RunState::Finished, None).await?;
        Ok(run_no)
    }
}

/// A run that was made elsewhere.
pub(crate) fn new_run(naming: &NamingArgs, run_id: RunId, spec: RunSpec) -> NewRun {
    NewRun {
        name: naming.name.clone(),
        tags: naming.tag.clone(),
        user: current_user(),
        spec,
        lineage: run_id.0.clone(),
        run_id,
        control_of: None,
        domain: LOCAL_DOMAIN.to_owned(),
        imported: true,
        code_version: bench_worker::version::VERSION.to_owned(),
        group: None,
        waits: false,
        events: Vec::new(),
    }
}
