//! The settings of a fork: those of its source with what flags change.

use bench_grading::{counting::Counting, judging::rubric};
use bench_proto::{
    ids::Sha256Hash,
    scenario::{RecallPlan, Scenario},
    spec::{DatasetSpec, Limits, RunSpec, TakenOver},
};
use bench_settings::ModelRole;
use bench_store::RunRow;
use bench_systems::{BuildContext, Capabilities, adapter, registry as systems};

use super::{counted::Held, source::check_same_questions};
use crate::{
    app::{App, Deployment},
    cli::{ForkFrom, SubmitArgs},
    exit::CliError,
    out,
    planning::{
        self, DEFAULT_CAP, UserPrices, judge_prompts,
        scenario::{self, Fewest},
    },
};

/// Provider of answerers that are the memory system itself.
const ANSWERS_ITSELF: &str = "system";
/// Provider of runs without answers.
const NOBODY: &str = "none";

/// The source's settings with what flags change; a flag for a phase that is taken over is refused.
pub(super) fn forked_spec(app: &App, args: &SubmitArgs, run: &RunRow, from: ForkFrom) -> Result<RunSpec, CliError> {
    let source = &run.spec;
    let prices = planning::user_prices(app, args)?;
    let priced = planning::limits(app, prices.clone())?;
    let mut spec = asked_questions(run);
    // its banks are those of its source
    spec.lists = false;
    spec.taken_over = TakenOver::of_fork(from.into(), &run.run_id.0, &source.taken_over);
    let keeps_banks = capabilities(source).is_some_and(|capabilities| !capabilities.from_items);
    if from == ForkFrom::Recall && keeps_banks && source.taken_over.bank.is_none() {
        // those that its source asks are not its source's own
        spec.taken_over.banks_of = vec![run.run_id.0.clone()];
        spec.taken_over.banks_of.extend(source.taken_over.banks_of.iter().cloned());
    }
    if args.only_wrong {
        spec.taken_over.answered_again = source.taken_over.answered_again + 1;
    }
    check_same_questions(app, args, source, from)?;
    let counting = Held::from_args(args, source)?;
    let args = &counting.complete(args)?;
    let fork = Fork { app, args, run, from };
    if let Some(top_k) = args.top_k.filter(|top_k| *top_k != source.system.top_k) {
        if from != ForkFrom::Recall {
            return Err(fork.refused("--top-k"));
        }
        spec.system.top_k = top_k;
    }
    let other_scenario = fork.set_scenario(&mut spec)?;
    fork.set_recalls(&mut spec, other_scenario)?;
    fork.set_answerer(&mut spec, other_scenario, &priced)?;
    fork.check_answers(&mut spec)?;
    let answers_anew = other_scenario.is_some_and(Scenario::answers);
    if answers_anew {
        add_those_of_dataset(&mut spec)?;
    }
    let refit = other_scenario.is_some() || spec.system.top_k != source.system.top_k;
    regrade(app, args, &priced, refit, counting.named, &mut spec)?;
    fork.set_counted(&mut spec, counting, answers_anew)?;
    fork.set_limits(&mut spec, prices)?;
    Ok(spec)
}

/// The settings of a run without its rule for stopping early: a fork asks what was asked, and the sample of one that stopped is
/// another one.
fn asked_questions(run: &RunRow) -> RunSpec {
    let mut spec = run.asked_spec().into_owned();
    if spec.stop.take().is_some()
        && let Some(look) = run.looks.stopped()
    {
        let whole = &run.spec.sample;
        spec.sample.signature = Sha256Hash::of_bytes(format!("{}:{}", whole.signature, look.asked).as_bytes()).hex();
        spec.sample.notes.push(format!(
            "run {} stopped early: of its {} questions only the {} that it has asked are asked here",
            run.run_id, whole.n, look.asked
        ));
    }
    spec
}

/// What a fork is made of.
#[derive(Clone, Copy)]
struct Fork<'a> {
    app: &'a App,
    args: &'a SubmitArgs,
    /// The run that it takes results over from.
    run: &'a RunRow,
    /// The first phase that is done anew.
    from: ForkFrom,
}

impl Fork<'_> {
    fn refused(&self, flag: &str) -> CliError {
        CliError::usage(format!("{flag} cannot change what a fork --from {} takes over", self.from.phase()))
    }

    /// Sets the scenario; returns the one that the source has not.
    fn set_scenario(&self, spec: &mut RunSpec) -> Result<Option<Scenario>, CliError> {
        let named = self.args.scenario.as_deref().map(scenario::named).transpose()?;
        let other = named.filter(|new| *new != self.run.spec.scenario);
        if let Some(new) = other {
            if self.from == ForkFrom::Judge {
                return Err(self.refused("--scenario"));
            }
            spec.scenario = new;
            spec.headline = None;
        }
        Ok(other)
    }

    /// Sets how often and with which queries the fork searches.
    fn set_recalls(&self, spec: &mut RunSpec, other_scenario: Option<Scenario>) -> Result<(), CliError> {
        let Self { app, args, run, from } = *self;
        let of_source = run.spec.recalls;
        let words_queries = args.max_recalls.is_some() || args.multi_query.is_some();
        if words_queries && from != ForkFrom::Recall {
            return Err(self.refused(if args.max_recalls.is_some() { "--max-recalls" } else { "--multi-query" }));
        }
        if from == ForkFrom::Answer && spec.scenario == Scenario::Agentic {
            return Err(CliError::usage(
                "a fork --from answer takes recalls over, and in --scenario agentic a model makes them while it answers: \
                 fork --from recall, or add --scenario answer to answer from all that was found",
            ));
        }
        if !words_queries && other_scenario.is_none() {
            return Ok(());
        }
        spec.recalls = match spec.scenario {
            Scenario::Agentic => {
                RecallPlan { at_most: app.settings().run.max_recalls, rephrased: args.multi_query.unwrap_or_default() }
            }
            _ => RecallPlan {
                at_most: args.max_recalls.unwrap_or_default(),
                rephrased: args.multi_query.unwrap_or(of_source.rephrased),
            },
        };
        let checked = spec.recalls.check(spec.scenario);
        checked.map_err(|error| CliError::usage(format!("--max-recalls, --multi-query: {error}")))?;
        if of_source.at_most > 0 && from == ForkFrom::Answer {
            let note = "what is answered from is all that the searches of another run have found".to_owned();
            spec.sample.notes.push(note);
        }
        Ok(())
    }

    /// Sets the answerer: another one, or nobody where the fork has no answers. In another scenario the source's goes on where
    /// it can, and else the one of the settings begins.
    fn set_answerer(
        &self,
        spec: &mut RunSpec,
        other_scenario: Option<Scenario>,
        priced: &Limits,
    ) -> Result<(), CliError> {
        let Self { app, args, run, from } = *self;
        let before = run.spec.answerer.display();
        let goes_on = if before == ANSWERS_ITSELF || before == NOBODY { &app.settings().run.answerer } else { &before };
        let answerer = match other_scenario {
            Some(new) if new.answers() => Some(args.answerer.as_ref().unwrap_or(goes_on)),
            _ => args.answerer.as_ref(),
        };
        if !spec.scenario.answers() {
            if let Some(judge) = args.judge.first().filter(|_| other_scenario.is_none()) {
                return Err(CliError::usage(format!(
                    "--judge {judge}: run {0} has no answers (--scenario {1}); \
                     `bench-coord submit --fork {0} --from answer --scenario answer --judge {judge}` answers from its recalls first",
                    run.run_id,
                    spec.scenario.name()
                )));
            }
            scenario::check_models(spec.scenario, args.answerer.as_deref(), args.judge.len())?;
            spec.answerer = scenario::nobody();
            spec.judges.clear();
        } else if let Some(answerer) = answerer {
            if from == ForkFrom::Judge {
                return Err(self.refused("--answerer"));
            }
            let capabilities = capabilities(&run.spec);
            let answerer = match &capabilities {
                Some(capabilities) => scenario::answerer_of(spec.scenario, capabilities, answerer),
                None => answerer.as_str(),
            };
            // with all its parameters, unless another is named
            if args.answerer.is_some() || answerer != before {
                let will_call = will_call(app, args)?;
                spec.answerer = planning::model_spec(app, answerer, ModelRole::Answerer, args, priced, will_call)?;
            }
        }
        Ok(())
    }

    /// Checks that the system can be searched as often as is planned, and that the answerer can answer from recalls; notes its
    /// prompts.
    fn check_answers(&self, spec: &mut RunSpec) -> Result<(), CliError> {
        let Self { run: RunRow { spec: source, .. }, from, .. } = *self;
        if from == ForkFrom::Recall
            && let Some(capabilities) = capabilities(source)
        {
            let answerer = spec.answerer.display();
            scenario::check_recalls(spec.scenario, spec.recalls, &answerer, &source.system.name, &capabilities)?;
        }
        if from == ForkFrom::Judge {
            return Ok(());
        }
        planning::add_answerer_prompts(spec)?;
        if spec.answerer.provider == ANSWERS_ITSELF {
            return Err(CliError::usage(format!(
                "a fork --from {} answers from what is recalled, and {} would answer by itself: name another with --answerer",
                from.phase(),
                source.system.name
            )));
        }
        Ok(())
    }

    /// Sets how grades are counted and which metric heads the report, and checks that there is something to grade by.
    fn set_counted(&self, spec: &mut RunSpec, counting: Held, answers_anew: bool) -> Result<(), CliError> {
        counting.note(spec)?;
        match &self.args.headline {
            Some(metric) => scenario::head(spec, metric)?,
            None => scenario::keep_headline(&self.run.spec, spec)?,
        }
        scenario::check_graded(spec)?;
        if answers_anew && !scenario::grades_answers(spec) {
            return Err(CliError::usage(
                "nothing would grade the answers of the fork: add --scorer (`bench-coord score --list` shows all), or --judge",
            ));
        }
        planning::check_grading(spec.judges.len(), spec.votes)
    }

    /// Sets caps, pace and what else stays with the run to its end.
    fn set_limits(&self, spec: &mut RunSpec, prices: UserPrices) -> Result<(), CliError> {
        let Self { app, args, run, from } = *self;
        let mut before = std::mem::take(&mut spec.limits);
        let of_system = (before.meter.take(), before.system_parallel);
        spec.limits = limits(app, args, before, prices)?;
        if from == ForkFrom::Recall {
            spec.limits.latency_probe = planning::latency_probe(app)?;
            // the memory system is asked again: what it calls is counted as before, and no more is asked of it at once than it takes
            (spec.limits.meter, spec.limits.system_parallel) = of_system;
            if !args.dry_run {
                check_can_be_told(spec, run, args.naming.run_id.as_deref())?;
            }
        }
        let pays = !spec.judges.is_empty() || from != ForkFrom::Judge;
        if spec.limits.is_uncapped() && pays && planning::is_paid(spec) {
            spec.limits.max_cost = Some(DEFAULT_CAP);
        }
        Ok(())
    }
}

/// What the source's memory system can do, where this process knows it.
fn capabilities(source: &RunSpec) -> Option<Capabilities> {
    systems::capabilities(&source.system.name, &source.system.settings, &BuildContext::default()).ok()
}

/// Judges, votes and scorers that flags name take the place of the source's. With `refit` those that stay must still have
/// something to look at.
fn regrade(
    app: &App,
    args: &SubmitArgs,
    priced: &Limits,
    refit: bool,
    counting: Option<&Counting>,
    spec: &mut RunSpec,
) -> Result<(), CliError> {
    let profile_before = spec.dataset.profile.clone();
    if let Some(rubric) = &args.rubric {
        planning::grade_by(&mut spec.dataset.profile, rubric)?;
    }
    if !args.judge.is_empty() {
        let judge =
            |name: &String| planning::model_spec(app, name, ModelRole::Judge, args, priced, will_call(app, args)?);
        spec.judges = args.judge.iter().map(judge).collect::<Result<_, _>>()?;
        spec.votes = args.votes.unwrap_or(1);
        spec.headline = None;
    } else if let Some(votes) = args.votes {
        planning::check_votes(Some(votes), spec.judges.len())?;
        spec.votes = votes;
    }
    planning::check_rubric(args.rubric.as_deref(), &spec.judges)?;
    if let Some(path) = &args.judge_prompts {
        judge_prompts::take(path, &mut spec.dataset.profile, &spec.judges)?;
    }
    if let Some(counting) = counting {
        spec.dataset.profile = counting.profile(&spec.dataset.profile);
    }
    if !args.judge.is_empty() || args.rubric.is_some() || args.judge_prompts.is_some() {
        judge_prompts::set_params(app, Some(&profile_before), &spec.dataset.profile, &mut spec.judges)?;
        let profile = &spec.dataset.profile;
        let categories = || spec.sample.by_category.keys().map(String::as_str);
        // where the golds tell, they are read when the settings are whole
        rubric::check(profile, categories(), !rubric::is_told_by_golds(profile, categories()))?;
        spec.judges.iter_mut().try_for_each(|judge| planning::add_prompts(judge, profile))?;
    }
    let fewest = Fewest::of_run(spec);
    let asked_for = scenario::asked_for(spec.scenario, fewest, &args.scorer)?;
    if !asked_for.is_empty() || refit {
        // those that flags name head the report
        let before: Vec<String> = spec.scorers.iter().map(|scorer| scorer.name.clone()).collect();
        let kept = scenario::that_fit(spec.scenario, fewest, &before)?;
        spec.scorers = scenario::joined(spec.scenario, fewest, asked_for, kept);
    }
    if !args.scorer.is_empty() || args.only_scorers {
        spec.headline = None;
        if args.judge.is_empty() {
            // scoring again makes no calls: judgements stay with the run that paid for them
            spec.judges.clear();
        }
    }
    spec.judging = planning::judging(&spec.judges, &spec.dataset.profile)?;
    Ok(())
}

/// Puts the scorers of the run's dataset before those of its source, which had no use for the ones of answers. Runs of earlier
/// releases do not name them; registered datasets do.
fn add_those_of_dataset(spec: &mut RunSpec) -> Result<(), CliError> {
    let DatasetSpec { name, scorers, .. } = &spec.dataset;
    let names = match bench_datasets::find(name) {
        Ok(known) if scorers.is_empty() => known.manifest.scorers.clone(),
        _ => scorers.clone(),
    };
    let fewest = Fewest::of_run(spec);
    let own = scenario::that_fit(spec.scenario, fewest, &names)?;
    spec.scorers = scenario::joined(spec.scenario, fewest, own, std::mem::take(&mut spec.scorers));
    Ok(())
}

/// The limits of these settings; models that stay keep the prices that they were measured with.
fn limits(app: &App, args: &SubmitArgs, before: Limits, prices: UserPrices) -> Result<Limits, CliError> {
    let mut limits = planning::limits(app, before.prices.into_iter().chain(prices).collect())?;
    let lines = std::mem::take(&mut limits.price_lines);
    limits.price_lines = before.price_lines.into_iter().chain(lines).collect();
    if let Some(pool) = &args.pool {
        limits.pool.clone_from(pool);
    }
    Ok(limits)
}

/// Refuses a fork of a metered run whose memory system nobody here starts, where its person could not tell the system what the meter's
/// address is for the new run: an id that is drawn is not known before, and the address and key of the source count nothing any more.
///
/// # Errors
/// Exit 2 with how it is told.
fn check_can_be_told(spec: &RunSpec, source: &RunRow, run_id: Option<&str>) -> Result<(), CliError> {
    if spec.limits.meter.is_none() || adapter::server_of(&spec.system.settings).is_none() {
        return Ok(());
    }
    let (of, system) = (&source.run_id, &spec.system.name);
    let Some(id) = run_id else {
        return Err(CliError::usage(format!(
            "run {of} is metered and {system} runs elsewhere: it must be told the address and the key that the meter has for the new \
             run, for those of {of} count nothing any more. Choose an id, start {system} with what `bench-coord meter url ID` prints, \
             and fork with --run-id ID"
        )));
    };
    out::note(&format!(
        "run {of} is metered, and so is this one: {system} runs elsewhere and must have been told what `bench-coord meter url {id}` \
         prints, for the address and the key of {of} count nothing any more"
    ));
    Ok(())
}

/// In a cluster the keys are with the workers, and an estimate needs none.
fn will_call(app: &App, args: &SubmitArgs) -> Result<bool, CliError> {
    Ok(!args.dry_run && app.deployment()? == Deployment::Local)
}

#[cfg(test)]
mod tests {
    use bench_proto::metered::MeterPlan;
    use bench_store::conformance;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn p34_a_metered_system_elsewhere_is_told_of_a_fork_before_it_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let mut new = conformance::new_run("source");
        new.spec.system.settings.insert(adapter::ADAPTER.to_owned(), json!({ "url": "http://mine" }));
        let source = conformance::created(store.as_ref(), &new).await;
        let mut spec = new.spec;
        assert!(check_can_be_told(&spec, &source, None).is_ok(), "nothing is metered");
        spec.limits.meter = Some(MeterPlan::default());
        let refused = check_can_be_told(&spec, &source, None).expect_err("nobody knows its id").message;
        assert!(refused.contains("`bench-coord meter url ID`") && refused.contains("--run-id ID"), "{refused}");
        assert!(check_can_be_told(&spec, &source, Some("fork")).is_ok(), "its person knows the id");
        // what the worker starts is told by the worker
        spec.system.settings.insert(adapter::ADAPTER.to_owned(), json!({ "start": { "command": ["server"] } }));
        assert!(check_can_be_told(&spec, &source, None).is_ok());
    }
}
