//! Whether a run can be forked from a phase, said before anything of the fork is stored or called.

use std::collections::BTreeSet;

use bench_proto::{
    ids::TaskKey,
    spec::{IMPORTED_SYSTEM, RunSpec},
    step::StepNo,
};
use bench_store::{RunRow, RunState, Segment, Store};
use bench_systems::{BuildContext, adapter, registry as systems};
use bench_worker::banks::BankQuestions;
use serde_json::Value;

use crate::{
    app::App,
    cli::{ForkFrom, SampleArgs, SubmitArgs},
    exit::CliError,
    planning::filled,
    runs::adopt::TEXTS_AT_ONCE,
    standing::check_banks as check_there,
};

/// What can be taken over. All that stands in the way is found here, before anything of the fork is stored.
///
/// # Errors
/// Exit 2 with what can be done instead.
pub(super) async fn check(store: &dyn Store, source: &RunRow, from: ForkFrom) -> Result<(), CliError> {
    if source.state != RunState::Finished {
        return Err(CliError::usage(format!(
            "run {0} is not finished: `bench-coord resume {0}` first, so that the fork has all its questions",
            source.run_id
        )));
    }
    check_ended(source)?;
    let imported = source.spec.system.version == IMPORTED_SYSTEM;
    match from {
        ForkFrom::Recall => check_banks(store, source, imported).await,
        ForkFrom::Answer if imported => Err(CliError::usage(format!(
            "run {0} was imported without the texts of what was recalled: there is nothing to answer from; `--from judge` grades again what it holds",
            source.run_id
        ))),
        ForkFrom::Answer => check_stored(store, source, StepNo::RECALL, "recalled").await,
        ForkFrom::Judge if !source.spec.scenario.answers() => {
            check_stored(store, source, StepNo::RECALL, "recalled").await
        }
        ForkFrom::Judge => check_stored(store, source, StepNo::ANSWER, "answered").await,
    }
}

/// Refuses a run that is over and has questions which never ended, as where it was told to go on to its end and was killed before it
/// did: a fork would wait for them and never end.
///
/// # Errors
/// Exit 2 with what to do.
fn check_ended(source: &RunRow) -> Result<(), CliError> {
    let (all, ended) = (source.sample_size(), u64::try_from(source.counters.ended()).unwrap_or(0));
    // what somebody else's results do not hold has failed in the fork, and nobody can ask it
    if ended >= all || source.imported {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "of the {all} questions of run {0} {ended} have ended: `bench-coord resume {0}` asks the others first, so that the fork has them too",
        source.run_id
    )))
}

/// Whether the banks of a run can be recalled from once more.
async fn check_banks(store: &dyn Store, source: &RunRow, imported: bool) -> Result<(), CliError> {
    if imported {
        return Err(CliError::usage(format!(
            "run {0} was imported: there is no system that could recall; `--from judge` grades again what it holds",
            source.run_id
        )));
    }
    let system = &source.spec.system;
    let capabilities =
        systems::capabilities(&system.name, &system.settings, &BuildContext::default()).map_err(CliError::usage_of)?;
    if !capabilities.from_items {
        filled::check_kept(&source.spec, &capabilities, "--from recall").map_err(|error| {
            let else_ = match capabilities.recalls {
                true => format!(
                    "; `bench-coord submit --fork {} --from answer` asks the answerer again on what was recalled",
                    source.run_id
                ),
                false => String::new(),
            };
            let message = format!("{error}{else_}");
            error.saying(message)
        })?;
        check_there(store, source).await?;
        if store.banks(source.run_no, None).await?.iter().all(|row| filled::as_filled(row).is_none()) {
            return Err(CliError::usage(format!(
                "run {0} has no bank that is known to be filled, as where it came from an archive: `--from answer` goes on from what \
                 it has recalled",
                source.run_id
            )));
        }
    }
    let streamed = store.banks(source.run_no, None).await?.into_iter().find(|row| is_streamed(&row.segments));
    match streamed {
        None => Ok(()),
        Some(row) => Err(CliError::usage(format!(
            "bank {} is asked at {} points of its stream: a recall from its end would see the future; `--from answer` takes the recalls over",
            row.bank_id,
            row.segments.len()
        ))),
    }
}

/// Whether questions are asked before everything is retained. A segment at the end that retains nothing is there for canaries.
fn is_streamed(segments: &[Segment]) -> bool {
    segments.iter().any(|segment| Some(segment.until) != segments.last().map(|last| last.until))
}

/// Refuses a run of which no question got as far as a fork needs: all that could come of it is errors.
async fn check_stored(store: &dyn Store, source: &RunRow, needed: StepNo, done: &str) -> Result<(), CliError> {
    for row in store.banks(source.run_no, None).await? {
        let bank_no = row.bank_no;
        let bank = BankQuestions::read(store, &row).await?;
        for questions in bank.questions().chunks(TEXTS_AT_ONCE) {
            let keys: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(bank_no, q.index)).collect();
            if store.question_texts(source.run_no, &keys).await?.iter().any(|(_, step, _)| *step == needed) {
                return Ok(());
            }
        }
    }
    Err(CliError::usage(format!(
        "no question of run {} was {done}: there is nothing to go on from; `bench-coord report {0}` says what happened",
        source.run_id
    )))
}

/// A fork has the questions and the banks of its source: flags that ask for others are refused, those that name the same do no
/// harm.
///
/// # Errors
/// Exit 2 with the flag.
pub(super) fn check_same_questions(
    app: &App,
    args: &SubmitArgs,
    source: &RunSpec,
    from: ForkFrom,
) -> Result<(), CliError> {
    check_set(app, source)?;
    let other = |given: &Option<String>, own: &str| given.as_ref().is_some_and(|given| given != own);
    let SampleArgs { dataset, dataset_seed, preset, sampler, seed, .. } = &args.sample;
    let dataset = dataset.as_deref().map(bench_datasets::full_name).map(str::to_owned);
    let chosen = SampleArgs {
        dataset: None,
        dataset_seed: None,
        preset: None,
        sampler: None,
        seed: None,
        ..args.sample.clone()
    };
    let of_sample = [
        ("--dataset", other(&dataset, &source.dataset.name)),
        ("--dataset-seed", dataset_seed.is_some()),
        ("--preset", other(preset, &source.sample.preset)),
        ("--sampler", other(sampler, &source.sample.sampler)),
        ("--seed", seed.is_some() && *seed != source.sample.seed),
    ];
    let of_run = [
        ("--system", other(&args.system, &source.system.name)),
        ("--mode", args.mode.is_some()),
        ("--dispositions", args.dispositions.is_some()),
        ("--controls", args.controls),
        ("--no-canaries", args.no_canaries),
        ("--meter", args.meter.meter),
        ("--reuse-banks", args.banks.reuse_banks),
        ("--banks-from", args.banks.banks_from.is_some()),
        ("--bank", args.banks.bank.is_some()),
    ];
    let chosen = chosen.first_given().map(|flag| (flag, true));
    let mut all = of_sample.into_iter().chain(chosen).chain(of_run);
    let flag = all.find(|(_, given)| *given).map(|(flag, _)| flag.to_owned());
    let Some(flag) = flag.or_else(|| other_setting(app, source)) else { return Ok(()) };
    Err(CliError::usage(format!(
        "{flag} cannot change what a fork --from {} takes over: the {} questions of {} and the banks of {} are those of its source; \
         leave it out, or submit a run of its own",
        from.phase(),
        source.sample.n,
        source.dataset.name,
        source.system.name,
    )))
}

/// Refuses settings of a memory system that is not the source's.
fn check_set(app: &App, source: &RunSpec) -> Result<(), CliError> {
    let is_of_source = |set: &&String| set.split_once('.').is_some_and(|(section, _)| section == source.system.name);
    match app.set_of_source().iter().find(|set| !is_of_source(set)) {
        None => Ok(()),
        Some(set) => Err(CliError::usage(format!(
            "--set {set}: unknown setting '{set}': the memory system of a fork is that of its source, {}; leave it out, or submit a run \
             of its own with --system",
            source.system.name
        ))),
    }
}

/// Whether a value is what the source's memory system takes where nothing is said.
fn is_default_of_system(source: &RunSpec, name: &str, value: &bench_settings::Value) -> bool {
    let system = &source.system;
    let Some(adapter) = system.settings.get(adapter::ADAPTER) else {
        let built_in = systems::find(&system.name).map_or(&[][..], |entry| entry.settings);
        let full = format!("{}.{name}", system.name);
        let known = built_in.iter().find(|setting| setting.name == full);
        return known.is_some_and(|setting| value.json().is_some_and(|value| as_text(&value) == setting.default));
    };
    let default = adapter.pointer(&format!("/settings/{name}/default"));
    default.is_some_and(|default| value.json().is_some_and(|value| as_text(&value) == as_text(default)))
}

/// A value as it is typed: a text that is typed as a number is stored as a text.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A setting of the memory system or the dataset on the command line that is another one than the source's.
fn other_setting(app: &App, source: &RunSpec) -> Option<String> {
    let of_dataset = bench_datasets::find(&source.dataset.name).map_or("", |known| known.manifest.section.as_str());
    // where the meter listens is no part of a run
    let own_section =
        |key: &String| key.split_once('.').map(|(section, _)| section.to_owned()).filter(|of| of != "meter");
    let mut sections: BTreeSet<String> = source.system.settings.keys().filter_map(own_section).collect();
    sections.extend(["system", &source.system.name, of_dataset].map(str::to_owned));
    let typed = sections.iter().filter(|section| !section.is_empty()).flat_map(|section| app.settings().typed(section));
    let is_other = |(key, value): &(&str, &bench_settings::Value)| {
        let name = key.split_once('.').map_or(*key, |(_, name)| name);
        let own = source.system.settings.get(*key).or_else(|| source.dataset.settings.get(name));
        match own {
            Some(own) => value.json().as_ref().map(as_text) != Some(as_text(own)),
            // what is the default is not stored
            None => !is_default_of_system(source, name, value),
        }
    };
    typed.into_iter().find(is_other).map(|(key, _)| format!("--set {key}"))
}

#[cfg(test)]
mod tests {
    use bench_store::conformance::{created, new_run, store_in};

    use super::*;

    #[tokio::test]
    async fn a_run_that_is_over_before_its_last_question_is_forked_by_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let mut run = created(store.as_ref(), &new_run("a")).await;
        run.state = RunState::Finished;
        run.spec.sample.n = 3;
        run.counters.scored = 2;
        let refused = check(store.as_ref(), &run, ForkFrom::Answer).await.expect_err("one question never ended");
        assert!(
            refused.message.contains("of the 3 questions of run a 2 have ended: `bench-coord resume a`"),
            "{refused}"
        );
        run.counters.infra_error = 1;
        assert!(check_ended(&run).is_ok(), "what failed has ended");
        run.counters.infra_error = 0;
        run.imported = true;
        assert!(check_ended(&run).is_ok(), "results of others hold what they hold");
    }
}
