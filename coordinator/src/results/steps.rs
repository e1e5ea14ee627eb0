//! Steps of questions, made again from what is kept of them: for a fork, which takes them over, and for a run that is restored.

use bench_proto::{
    call::Usage,
    facts::QuestionFacts,
    failure::Failure,
    money::PicoUsd,
    step::{StepFacts, StepNo, StepText, Timing},
};
#[cfg(any(feature = "archive", test))]
use bench_store::AdoptedQuestion;

/// Steps up to one, made again from the facts and texts of their question; `used` says what they cost whoever takes them.
pub(crate) fn until(
    facts: &QuestionFacts,
    texts: Vec<(StepNo, StepText)>,
    last: StepNo,
    used: fn(&Usage) -> Usage,
) -> Vec<(StepNo, StepFacts, Option<StepText>)> {
    texts
        .into_iter()
        .filter(|(step, _)| *step <= last || step.is_search())
        .filter_map(|(step, text)| Some((step, step_facts(facts, &text, used)?, Some(text))))
        .collect()
}

/// A failed question of an archived run as it failed: what it had recalled and answered stays, and a retry goes on from there.
#[cfg(any(feature = "archive", test))]
pub(crate) fn failed_again(facts: &QuestionFacts, texts: &[(StepNo, StepText)]) -> AdoptedQuestion {
    let is_recalled = texts.iter().any(|(step, _)| *step == StepNo::RECALL);
    let mut steps = match is_recalled {
        true => until(facts, texts.to_vec(), StepNo::ANSWER, |usage| *usage),
        // searches that came to no end are made again
        false => Vec::new(),
    };
    let unknown = || Failure::permanent("not_run", "its archive does not say why it has no result");
    steps.push(failed(facts.failure.clone().unwrap_or_else(unknown)));
    AdoptedQuestion { task: facts.task, steps }
}

fn step_facts(facts: &QuestionFacts, text: &StepText, used: fn(&Usage) -> Usage) -> Option<StepFacts> {
    let timing = |us: Option<u64>| Timing {
        started_us: facts.times.started_us,
        total_us: us.unwrap_or(0),
        attempts: 1,
        ..Timing::default()
    };
    match text {
        StepText::Recalled { hits } => Some(StepFacts::Recalled {
            generation: 1,
            hits: u32::try_from(hits.len()).unwrap_or(u32::MAX),
            effective_k: u32::try_from(hits.len()).unwrap_or(u32::MAX),
            context_bytes: facts.context_bytes.unwrap_or_else(|| {
                if facts.empty_context { 0 } else { hits.iter().map(|h| h.text.len() as u64).sum::<u64>().max(1) }
            }),
            top1_score: facts.top1_score,
            retrieval: facts.retrieval.clone().unwrap_or_default(),
            usage: used(&facts.usage.recall),
            timing: timing(facts.times.recall_us),
        }),
        StepText::Answered { .. } => Some(StepFacts::Answered {
            // a cut answer stays one
            finish: facts.finish.clone().unwrap_or_else(|| "stop".to_owned()),
            usage: used(&facts.usage.answer),
            timing: timing(facts.times.answer_us),
        }),
        // what it took stands with what all searches found together
        StepText::Searched { hits, .. } => {
            let hits = u32::try_from(hits.len()).unwrap_or(u32::MAX);
            let timing = Timing { started_us: facts.times.started_us, ..Timing::default() };
            Some(StepFacts::Searched { generation: 1, hits, effective_k: hits, usage: Usage::default(), timing })
        }
        StepText::Judged { .. } | StepText::JudgedPart { .. } | StepText::Phrased { .. } => None,
    }
}

/// The step of a question that has failed so, which cost nothing here.
pub(crate) fn failed(failure: Failure) -> (StepNo, StepFacts, Option<StepText>) {
    (StepNo::FAILED, StepFacts::Failed { failure, usage: Usage::default(), timing: Timing::default() }, None)
}

/// Usage of another run, as if served from the call store: nothing is paid for it here, tokens as little as dollars.
pub(crate) fn saved(usage: &Usage) -> Usage {
    Usage {
        calls: 0,
        cached_calls: usage.calls + usage.cached_calls,
        retries: 0,
        rate_limited: 0,
        prompt_tokens: 0,
        completion_tokens: 0,
        cost: PicoUsd(0),
        saved: usage.cost.saturating_add(usage.saved),
        uncounted: usage.uncounted,
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::TaskKey;

    use super::*;

    #[test]
    fn what_another_run_has_paid_for_is_saved_and_none_of_it_is_paid_here() {
        let paid = Usage { calls: 2, cached_calls: 1, prompt_tokens: 90, completion_tokens: 7, ..Usage::default() };
        let paid = Usage { retries: 1, cost: PicoUsd(5), saved: PicoUsd(3), ..paid };
        assert_eq!(saved(&paid), Usage { cached_calls: 3, saved: PicoUsd(8), ..Usage::default() });
    }

    #[test]
    fn a_failed_question_of_an_archive_keeps_what_it_had_and_what_that_cost() {
        let identity = bench_proto::facts::QuestionIdentity {
            task: TaskKey::question(0, 7),
            question_id: "b:7".to_owned(),
            bank_id: "b".to_owned(),
            category: "c".to_owned(),
            facets: std::collections::BTreeMap::new(),
        };
        let mut facts = QuestionFacts::without_steps(identity, bench_proto::facts::Outcome::InfraError);
        facts.failure = Some(Failure::permanent("judge", "said nothing"));
        facts.usage.answer.calls = 1;
        facts.usage.answer.cost = PicoUsd(5);
        let answer = StepText::Answered { answer: "said".to_owned(), raw: None, citations: Vec::new() };
        let recall = StepText::Recalled { hits: Vec::new() };
        let steps = |texts: &[(StepNo, StepText)]| -> Vec<StepNo> {
            failed_again(&facts, texts).steps.into_iter().map(|(step, ..)| step).collect()
        };
        let both = [(StepNo::RECALL, recall), (StepNo::ANSWER, answer.clone())];
        assert_eq!(steps(&both), [StepNo::RECALL, StepNo::ANSWER, StepNo::FAILED]);
        assert_eq!(steps(&[(StepNo::ANSWER, answer)]), [StepNo::FAILED], "nothing is answered before its recall");
        let kept = failed_again(&facts, &both).steps;
        assert!(
            matches!(&kept[1].1, StepFacts::Answered { usage, .. } if usage.calls == 1 && usage.cost == PicoUsd(5))
        );
        assert!(matches!(&kept[2].1, StepFacts::Failed { failure, .. } if failure.code == "judge"));
    }
}
