//! What a scenario lets a run have: which scorers, which models, and what heads its report.

use std::collections::BTreeMap;

use bench_grading::{
    judging::rubric,
    scorers::{Reads, Scorer, registry, retrieval},
};
use bench_proto::{
    nearest::{did_you_mean, nearest},
    profile::Profile,
    scenario::{AnsweredBy, RecallPlan, Scenario},
    spec::{ModelSpec, OwnK, RunSpec, ScorerSpec},
};

use bench_settings::RunSettings;
use bench_systems::Capabilities;

use crate::{exit::CliError, out};

/// Cut-off of the figures that head a run of recalls alone whose dataset names none.
const DEFAULT_K: u32 = 10;

/// The scenario of a name from flags or settings.
///
/// # Errors
/// Exit 2 with the names that there are.
pub(crate) fn named(name: &str) -> Result<Scenario, CliError> {
    Scenario::from_name(name).ok_or_else(|| {
        let known = Scenario::ALL.map(Scenario::name).join(", ");
        CliError::usage(format!("--scenario {name}: there are {known}"))
    })
}

/// Who answers in a scenario: in `reflect` the memory system where it can, whoever was named where it cannot.
#[must_use]
pub(crate) fn answerer_of<'a>(scenario: Scenario, capabilities: &Capabilities, named: &'a str) -> &'a str {
    if scenario == Scenario::Reflect && capabilities.answers { "system" } else { named }
}

/// How often is recalled for a question by settings; `given` is the flag for a model that searches by itself.
///
/// # Errors
/// Exit 2 for numbers that the scenario does not take.
pub(crate) fn recall_plan(scenario: Scenario, run: &RunSettings, given: Option<u32>) -> Result<RecallPlan, CliError> {
    let at_most = if scenario == Scenario::Agentic { run.max_recalls } else { given.unwrap_or_default() };
    let plan = RecallPlan { rephrased: run.multi_query, at_most };
    plan.check(scenario).map_err(|error| CliError::usage(format!("--max-recalls, --multi-query: {error}")))?;
    Ok(plan)
}

/// Refuses several recalls where nobody could word them, or nothing is searched.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) fn check_recalls(
    scenario: Scenario,
    plan: RecallPlan,
    answerer: &str,
    system: &str,
    capabilities: &Capabilities,
) -> Result<(), CliError> {
    if plan.is_once() {
        return Ok(());
    }
    let flag = if scenario == Scenario::Agentic { "--scenario agentic" } else { "--multi-query" };
    let refuse = |why: String| Err(CliError::usage(format!("{flag}: {why}")));
    if !scenario.answers() {
        return refuse(format!(
            "--scenario {} has no model that could word further queries; leave one of them out",
            scenario.name()
        ));
    }
    if matches!(answerer, "extractive" | "none" | "system") {
        return refuse(format!(
            "a model has to word the queries, and {answerer} is not one: add --answerer PROVIDER:MODEL"
        ));
    }
    if !capabilities.recalls {
        return refuse(format!("{system} only answers by itself: there is nothing to search in"));
    }
    if capabilities.ignores_k {
        return refuse(format!("{system} hands over whole banks: every query finds the same"));
    }
    Ok(())
}

/// Takes the figures of recalls out of the scorers of a run whose answers rest on none that is seen, for the reason `why`.
pub(crate) fn leave_recalls_out(scorers: &mut Vec<ScorerSpec>, why: &str) {
    let before = scorers.len();
    scorers.retain(|spec| !reads_recalls(spec));
    if scorers.len() < before {
        out::note(&format!("left out: figures of recalls, for {why}"));
    }
}

/// Refuses figures of recalls where the memory system answers by itself: what its answer rests on is not seen.
///
/// # Errors
/// Exit 2 with the scorer.
pub(crate) fn check_native(spec: &RunSpec) -> Result<(), CliError> {
    if spec.answered_by() != Some(AnsweredBy::Native) {
        return Ok(());
    }
    match spec.scorers.iter().find(|scorer| reads_recalls(scorer)) {
        None => Ok(()),
        Some(scorer) => Err(CliError::usage(format!(
            "--scorer {}: in --scenario reflect {} answers by itself, and a recall beside it is not what its answer rests on; \
             --scenario retrieve-only measures its recalls",
            scorer.name, spec.system.name
        ))),
    }
}

/// Whether a scorer looks at what was recalled, not at the answer.
#[must_use]
pub(crate) fn reads_recalls(spec: &ScorerSpec) -> bool {
    registry::find(&spec.name).is_ok_and(|scorer| scorer.reads() != Reads::Answer)
}

/// The answerer of runs without answers.
pub(crate) fn nobody() -> ModelSpec {
    ModelSpec {
        provider: "none".to_owned(),
        name: String::new(),
        account: String::new(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version: 0,
    }
}

/// Refuses who would answer, or grade answers, where there are none.
///
/// # Errors
/// Exit 2 with the flag.
pub(crate) fn check_models(scenario: Scenario, answerer: Option<&str>, judges: usize) -> Result<(), CliError> {
    let flag = match answerer {
        _ if scenario.answers() => return Ok(()),
        Some(name) if name != "none" => "--answerer",
        _ if judges > 0 => "--judge",
        _ => return Ok(()),
    };
    Err(CliError::usage(format!("{flag}: --scenario {} has no answers; leave one of them out", scenario.name())))
}

/// The fewest hits that a recall of a run asks for: figures at a larger cut-off would be about fewer hits than they say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fewest {
    hits: u32,
    /// A question asks for so few on its own, whatever `--top-k` says.
    by_question: bool,
}

impl Fewest {
    /// Of a run whose questions ask for these numbers on their own.
    #[must_use]
    pub(crate) fn with_own_k(top_k: u32, own: Option<OwnK>) -> Self {
        match own {
            Some(own) if own.all || own.smallest < top_k => Self { hits: own.smallest, by_question: true },
            _ => Self { hits: top_k, by_question: false },
        }
    }

    /// Of a planned run.
    #[must_use]
    pub(crate) fn of_run(spec: &RunSpec) -> Self {
        Self::with_own_k(spec.system.top_k, spec.sample.own_k)
    }
}

/// The configured judges, as far as there are answers to judge; the others are left out with a note.
pub(crate) fn who_judges(scenario: Scenario, judges: Vec<String>) -> Vec<String> {
    if scenario.answers() || judges.is_empty() {
        return judges;
    }
    out::note(&format!("the configured judges are left out: --scenario {} has no answers", scenario.name()));
    Vec::new()
}

/// The scorers of these names, which somebody has asked for.
///
/// # Errors
/// Exit 2 for an unknown name, and for a scorer that has nothing to look at.
pub(crate) fn asked_for(scenario: Scenario, fewest: Fewest, names: &[String]) -> Result<Vec<ScorerSpec>, CliError> {
    let of = |name: &String| {
        let scorer =
            registry::find(name).map_err(|unknown| match rubric::names(&Profile::implied()).any(|of| of == name) {
                true => CliError::usage(format!(
                    "--scorer {name} is a rubric for model judges: add --judge PROVIDER:MODEL --rubric {name}"
                )),
                false => CliError::usage_of(unknown),
            })?;
        match misfit(scorer, scenario, fewest) {
            None => Ok(scorer.spec()),
            Some(why) => Err(CliError::usage(format!("--scorer {name} {why}"))),
        }
    };
    names.iter().map(of).collect()
}

/// Those of a dataset's or another run's scorers that have something to look at; the others are left out with a note.
///
/// # Errors
/// Exit 2 for an unknown name.
pub(crate) fn that_fit(scenario: Scenario, fewest: Fewest, names: &[String]) -> Result<Vec<ScorerSpec>, CliError> {
    let (mut specs, mut left_out) = (Vec::new(), BTreeMap::<String, Vec<&str>>::new());
    for name in names {
        let scorer = registry::find(name).map_err(CliError::usage_of)?;
        match misfit(scorer, scenario, fewest) {
            None => specs.push(scorer.spec()),
            Some(why) => left_out.entry(why).or_default().push(name),
        }
    }
    for (why, names) in left_out {
        out::note(&format!("left out: {}: {why}", names.join(", ")));
    }
    Ok(specs)
}

/// The scorers of a run: the first before the others, each once. Where there are none and nothing is answered, figures of the
/// recalls.
#[must_use]
pub(crate) fn joined(
    scenario: Scenario,
    fewest: Fewest,
    first: Vec<ScorerSpec>,
    others: Vec<ScorerSpec>,
) -> Vec<ScorerSpec> {
    let mut specs: Vec<ScorerSpec> = Vec::new();
    for spec in first.into_iter().chain(others) {
        if specs.iter().all(|known| known.name != spec.name) {
            specs.push(spec);
        }
    }
    if specs.is_empty() && !scenario.answers() {
        let figures = retrieval::defaults(DEFAULT_K.min(fewest.hits));
        specs.extend(figures.iter().filter_map(|name| Some(registry::find(name).ok()?.spec())));
    }
    specs
}

/// Why a scorer has nothing to look at, and what would help.
fn misfit(scorer: &dyn Scorer, scenario: Scenario, fewest: Fewest) -> Option<String> {
    if scorer.reads() == Reads::Answer && !scenario.answers() {
        return Some(format!(
            "grades answers, and --scenario {} has none (a figure of recalls is such as recall@10)",
            scenario.name()
        ));
    }
    let (least, Fewest { hits, by_question }) = (scorer.least_k(), fewest);
    (least > hits).then(|| match by_question {
        true => format!("looks at {least} hits, and a question of the sample asks for {hits} on its own"),
        false => format!("looks at {least} hits, and a recall brings {hits} (--top-k {least} brings them)"),
    })
}

/// Puts a metric at the head of the report; a scorer that the run does not have yet is added for it.
///
/// # Errors
/// Exit 2 for what no judge and no scorer gives.
pub(crate) fn head(spec: &mut RunSpec, metric: &str) -> Result<(), CliError> {
    let known = metrics(spec);
    if !known.iter().any(|known| known == metric) {
        if registry::find(metric).is_err() {
            let hint = did_you_mean(&nearest(metric, known.iter().map(String::as_str)));
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            return Err(CliError::usage(format!(
                "--headline {metric}{hint}: the run has {}; `bench-coord score --list` shows further scorers",
                known.join(", ")
            )));
        }
        spec.scorers.extend(asked_for(spec.scenario, Fewest::of_run(spec), &[metric.to_owned()])?);
    }
    spec.headline = Some(metric.to_owned());
    Ok(())
}

/// Refuses a fork whose report would be headed by what its source has and nothing in it gives any more. A grade that came with the
/// answers of its source is nobody's in a fork, which is headed by a figure of its own.
///
/// # Errors
/// Exit 2 with what the run has.
pub(crate) fn keep_headline(source: &RunSpec, spec: &mut RunSpec) -> Result<(), CliError> {
    let Some(headline) = spec.headline.clone() else { return Ok(()) };
    let known = metrics(spec);
    if known.contains(&headline) {
        return Ok(());
    }
    if !metrics(source).contains(&headline) {
        spec.headline = None;
        if !known.is_empty() {
            out::note(&format!(
                "'{headline}' came with the answers and is not taken over: the report is headed by {}; --headline names another figure",
                spec.headline_metric()
            ));
        }
        return Ok(());
    }
    Err(CliError::usage(format!(
        "nothing gives {headline} any more, which headed the report: name another with --headline (the run has {})",
        known.join(", ")
    )))
}

/// Names of what a run measures.
fn metrics(spec: &RunSpec) -> Vec<String> {
    let of_scorers = spec.scorers.iter().flat_map(ScorerSpec::metric_names).map(str::to_owned);
    spec.judge_metrics().into_iter().chain(of_scorers).collect()
}

/// Whether anything of a run looks at its answers.
#[must_use]
pub(crate) fn grades_answers(spec: &RunSpec) -> bool {
    let reads_answers =
        |spec: &ScorerSpec| registry::find(&spec.name).is_ok_and(|found| found.reads() == Reads::Answer);
    !spec.judges.is_empty() || spec.scorers.iter().any(reads_answers)
}

/// Refuses a run that nothing would grade.
///
/// # Errors
/// Exit 2 with the flags that help.
pub(crate) fn check_graded(spec: &RunSpec) -> Result<(), CliError> {
    if spec.scorers.is_empty() && spec.judges.is_empty() {
        return Err(CliError::usage(format!(
            "nothing would grade the answers: {} has no deterministic scorer of its own; add --judge PROVIDER:MODEL, or --scorer (`bench-coord score --list` shows all)",
            spec.dataset.name
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scenario: Scenario, top_k: u32, of_dataset: &[&str], asked_for: &[&str]) -> Result<String, String> {
        let [of_dataset, asked_for] =
            [of_dataset, asked_for].map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
        let top_k = Fewest::with_own_k(top_k, None);
        let asked_for = super::asked_for(scenario, top_k, &asked_for).map_err(|error| error.to_string())?;
        let specs = that_fit(scenario, top_k, &of_dataset).map_err(|error| error.to_string())?;
        let specs = joined(scenario, top_k, specs, asked_for);
        Ok(specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_fork_is_headed_by_what_it_gives() {
        let source: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        let headed = |metric: &str, scorers: &[ScorerSpec]| {
            let mut fork = RunSpec { headline: Some(metric.to_owned()), scorers: scorers.to_vec(), ..source.clone() };
            keep_headline(&source, &mut fork).map(|()| fork.headline).map_err(|error| error.to_string())
        };
        assert_eq!(headed("locomo-f1", &source.scorers), Ok(Some("locomo-f1".to_owned())));
        assert_eq!(headed("imported", &source.scorers), Ok(None), "the grades came with the answers");
        assert!(headed("locomo-f1", &[]).expect_err("is refused").contains("nothing gives locomo-f1 any more"));
    }

    #[test]
    fn a_scenario_without_answers_has_scorers_of_recalls() {
        let (answer, only) = (Scenario::Answer, Scenario::RetrieveOnly);
        for (scenario, top_k, of_dataset, asked_for, expected) in [
            (answer, 10, &["locomo-f1", "exact"][..], &["recall@5", "exact"][..], "locomo-f1 exact recall@5"),
            (only, 10, &["locomo-f1", "exact"], &[], "session-recall@10 recall@10 ndcg@10"),
            (only, 3, &[], &[], "session-recall@3 recall@3 ndcg@3"),
            (only, 500, &[], &[], "session-recall@10 recall@10 ndcg@10"),
            (only, 10, &["locomo-f1", "hit@5"], &["mrr@10"], "hit@5 mrr@10"),
            (answer, 4, &["exact", "hit@5"], &[], "exact"),
        ] {
            assert_eq!(names(scenario, top_k, of_dataset, asked_for).as_deref(), Ok(expected));
        }
        let refused = |scenario, name: &str| names(scenario, 10, &[], &[name]).expect_err("has nothing to look at");
        insta::assert_snapshot!(refused(only, "exact"), @"--scorer exact grades answers, and --scenario retrieve-only has none (a figure of recalls is such as recall@10)");
        insta::assert_snapshot!(refused(answer, "recall@20"), @"--scorer recall@20 looks at 20 hits, and a recall brings 10 (--top-k 20 brings them)");
        insta::assert_snapshot!(refused(answer, "recal@5"), @"unknown scorer 'recal@5' (did you mean 'recall@5'?); `bench-coord score --list` shows all");
        let own = |smallest, all| Fewest::with_own_k(10, Some(OwnK { smallest, largest: 20, all }));
        assert_eq!(own(15, false), Fewest { hits: 10, by_question: false }, "others ask for top-k");
        assert_eq!(own(15, true), Fewest { hits: 15, by_question: true });
        let few = super::asked_for(only, own(2, false), &["recall@5".to_owned()]).expect_err("a recall brings 2");
        insta::assert_snapshot!(few.to_string(), @"--scorer recall@5 looks at 5 hits, and a question of the sample asks for 2 on its own");
        insta::assert_snapshot!(refused(answer, "judge-single"), @"--scorer judge-single is a rubric for model judges: add --judge PROVIDER:MODEL --rubric judge-single");
        insta::assert_snapshot!(named("retrieve").expect_err("unknown").to_string(), @"--scenario retrieve: there are answer, retrieve-only, ask-basic, ask-augmented, reflect, agentic");
        insta::assert_snapshot!(check_models(only, None, 1).expect_err("no answers").to_string(), @"--judge: --scenario retrieve-only has no answers; leave one of them out");
        insta::assert_snapshot!(check_models(only, Some("extractive"), 0).expect_err("no answers").to_string(), @"--answerer: --scenario retrieve-only has no answers; leave one of them out");
        let (bm25, own) = (
            Capabilities::from_items("1"),
            Capabilities { answers: true, recalls: false, ..Capabilities::from_items("1") },
        );
        let whole = Capabilities { ignores_k: true, ..bm25.clone() };
        assert_eq!(answerer_of(Scenario::Reflect, &own, "openai:m"), "system");
        assert_eq!(answerer_of(Scenario::Reflect, &bm25, "openai:m"), "openai:m");
        let agentic = RecallPlan { at_most: 5, ..RecallPlan::default() };
        let rephrased = RecallPlan { rephrased: 2, ..RecallPlan::default() };
        let refused = |scenario, plan, answerer: &str, system: &Capabilities| {
            check_recalls(scenario, plan, answerer, "mine", system).expect_err("is refused").to_string()
        };
        insta::assert_snapshot!([
            refused(Scenario::Agentic, agentic, "extractive", &bm25),
            refused(Scenario::Agentic, agentic, "openai:m", &whole),
            refused(answer, rephrased, "system", &own),
            refused(answer, rephrased, "openai:m", &own),
            refused(only, rephrased, "none", &bm25),
        ].join("\n"), @r"
        --scenario agentic: a model has to word the queries, and extractive is not one: add --answerer PROVIDER:MODEL
        --scenario agentic: mine hands over whole banks: every query finds the same
        --multi-query: a model has to word the queries, and system is not one: add --answerer PROVIDER:MODEL
        --multi-query: mine only answers by itself: there is nothing to search in
        --multi-query: --scenario retrieve-only has no model that could word further queries; leave one of them out
        ");
        assert!(check_recalls(Scenario::Agentic, agentic, "openai:m", "mine", &bm25).is_ok());
        assert!(check_models(only, Some("none"), 0).is_ok() && check_models(answer, Some("extractive"), 1).is_ok());
    }
}
