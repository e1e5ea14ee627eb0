//! Looks of a run that may stop early: made when all questions of a round have ended, by whoever looks after the run.
//!
//! A look reads the scores of the questions that have been asked, and those of the baseline where it compares, and writes what it
//! found beside the run. The next sweep opens the questions that follow from it, or leaves them out.

use std::collections::BTreeSet;

use bench_aggregate::{
    compare::RunFacts,
    stopping::{self, Seen},
};
use bench_proto::{
    facts::QuestionFacts,
    ids::RunId,
    stop::{Look, LookOutcome, StopGoal},
};
use bench_store::{RunRow, RunState, Store};

use super::shards;
use crate::{
    exit::CliError,
    out::amounts::{counted, points},
    standing::latency::all_ended,
};

/// Kind of the run event that tells of a look.
pub(crate) const LOOK_EVENT: &str = "look";

/// Makes the look of a run that is due, if any; whether something follows from it that a sweep has to do.
///
/// # Errors
/// What the store meets; another process that looks at the same time is none.
pub(crate) async fn look_if_due(store: &dyn Store, run: &RunRow) -> Result<bool, CliError> {
    let Some(rule) = run.spec.stop.as_ref().filter(|_| run.look_is_due()) else { return Ok(false) };
    let number = run.looks.made.len();
    let (facts, asked) = facts_of(store, run, run).await?;
    let baseline = match &rule.goal {
        StopGoal::Interval { .. } => None,
        StopGoal::Decided { run: id, digest, .. } => Some(baseline(store, run, (id, digest)).await?),
    };
    let seen = match &baseline {
        Some(None) => Seen::nothing(LookOutcome::NoBaseline),
        known => stopping::look(rule, number, &run.spec, &facts, known.iter().flatten().next()),
    };
    let kinds = asked.iter().map(|facts| (facts.category.as_str(), &facts.facets));
    let (by_category, by_stratum) = run.spec.count_asked(kinds);
    let [low, high] = seen.interval.map_or([None; 2], |bounds| bounds.map(Some));
    let look = Look {
        asked: asked.len() as u64,
        banks: asked.iter().map(|facts| facts.task.bank()).collect::<BTreeSet<u32>>().len() as u64,
        used: seen.used,
        estimate: seen.estimate,
        low,
        high,
        clustered: seen.clustered,
        outcome: seen.outcome,
        by_category,
        by_stratum,
    };
    let told = told(run, &look, number);
    let mut looks = run.looks.clone();
    looks.made.push(look);
    if store.set_looks(run.run_no, &run.looks, &looks).await? {
        store.add_event(run.run_no, LOOK_EVENT, &told).await?;
    }
    Ok(true)
}

/// The scores of a run by the metric of another's headline, and its questions.
async fn facts_of(store: &dyn Store, run: &RunRow, like: &RunRow) -> Result<(RunFacts, Vec<QuestionFacts>), CliError> {
    let new = || (RunFacts::new(&like.spec.headline_metric(), like.spec.system.top_k), Vec::new());
    let add = |(all, list): &mut (RunFacts, Vec<QuestionFacts>), facts: QuestionFacts| {
        all.add(&facts);
        list.push(facts);
    };
    let parts = shards::read_facts(store, run, new, add, |_| {}).await?;
    let mut together = new();
    for (facts, list) in parts {
        together.0.merge(facts);
        together.1.extend(list);
    }
    Ok(together)
}

/// The scores of the baseline; `None` when it is gone, or has another result than when the run began.
async fn baseline(store: &dyn Store, run: &RunRow, (id, digest): (&str, &str)) -> Result<Option<RunFacts>, CliError> {
    let Some(row) = store.run_by_id(&RunId(id.to_owned())).await? else { return Ok(None) };
    let stored = store.summary(row.run_no).await?;
    if stored.and_then(|summary| digest_of(&summary)).is_none_or(|now| now != digest) {
        return Ok(None);
    }
    facts_of(store, &row, run).await.map(|(facts, _)| Some(facts))
}

/// The digest that a stored summary says.
fn digest_of(summary: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Digest {
        result_digest: String,
    }
    serde_json::from_str::<Digest>(summary).ok().map(|digest| digest.result_digest)
}

/// What a person reads of the last look of a run; of one that may stop early and has made none, when the first is.
pub(crate) fn last(run: &RunRow) -> Option<String> {
    let rule = run.spec.stop.as_ref()?;
    match run.looks.made.last() {
        Some(look) => {
            // killed before it was at work again, it is as finished as before, and has not gone on
            let has_gone_on = run.state == RunState::Finished && all_ended(run);
            let on = on_to_the_end(run.looks.to_the_end, run.state, has_gone_on);
            Some(format!("{}{on}", told(run, look, run.looks.made.len() - 1)))
        }
        None => Some(format!("{}: first look at {}", rule.goal, counted(rule.due(&run.looks), "question"))),
    }
}

/// What becomes of a run behind its looks that was told not to stop by them.
const fn on_to_the_end(to_the_end: bool, state: RunState, has_gone_on: bool) -> &'static str {
    match (to_the_end, state) {
        (false, _) => "",
        (true, RunState::Running | RunState::Paused) => "; it goes on to its end (--no-stop)",
        (true, RunState::Finished) if has_gone_on => "; it went on to its end (--no-stop)",
        (true, RunState::Finished | RunState::Cancelled) => "; it was to go on to its end (--no-stop)",
    }
}

/// What a person reads of a look.
fn told(run: &RunRow, look: &Look, number: usize) -> String {
    let of = run.spec.stop.as_ref().map_or(0, |rule| rule.looks.len());
    let figure = match (look.estimate, look.low, look.high) {
        (Some(estimate), Some(low), Some(high)) => {
            format!(": {} [{}, {}] points", points(estimate), points(low), points(high))
        }
        _ => String::new(),
    };
    let asked = counted(look.asked, "question");
    format!("look {} of {of}, {asked}{figure}: {}", number + 1, look.outcome.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_has_ended_does_not_go_on() {
        assert_eq!(on_to_the_end(true, RunState::Running, false), "; it goes on to its end (--no-stop)");
        assert_eq!(on_to_the_end(true, RunState::Finished, true), "; it went on to its end (--no-stop)");
        assert!(!on_to_the_end(true, RunState::Cancelled, false).contains("goes on"));
        assert!(!on_to_the_end(true, RunState::Finished, false).contains("went on"), "killed before it began");
        assert_eq!(on_to_the_end(false, RunState::Finished, true), "");
    }
}
