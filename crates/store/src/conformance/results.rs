//! Reading results; imports.

use bench_proto::{
    facts::{Outcome, QuestionFacts},
    failure::Failure,
    ids::{Role, RunNo, TaskKey, TaskKind},
    step::{Opens, StepFacts, StepNo, Timing},
};

use super::{
    Fresh, HEADLINE, Scene, answer_text, answered, bank, ending, new_run, question_facts, recall_text, recalled, scored,
};
use crate::{AdoptedQuestion, BankState, NewRun, RetryScope, RunState, Store};

/// Pages follow each other without gaps or repeats.
pub async fn facts_and_steps_are_read_in_pages(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1, 2])]), bank(1, &[(1, &[0, 1])])]).await;
    for no in [1, 0] {
        scene.make_ready(no, 1).await;
    }
    let questions = [(1, 0), (1, 1), (0, 2), (0, 0), (0, 1)].map(|(no, index)| TaskKey::question(no, index));
    for question in questions {
        scene.answer(question, 1.0, Opens::Nothing).await;
        scene.conclude(question, Outcome::Scored, 1.0).await;
    }
    let mut sorted = questions.to_vec();
    sorted.sort_unstable();
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = store.facts(scene.run, after, 2).await.expect("are read");
        let Some(last) = page.last() else { break };
        after = Some(last.task);
        seen.extend(page);
    }
    // all of them come back, the facets too
    let stored: Vec<_> = sorted.iter().map(|task| question_facts(*task, Outcome::Scored, 1.0)).collect();
    assert_eq!(seen, stored);
    assert!(stored.iter().all(|facts| facts.facets["abstention"] == "no"));
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = store.steps(scene.run, TaskKind::Question, after, 4).await.expect("are read");
        let Some(last) = page.last() else { break };
        after = Some((last.task, last.step));
        seen.extend(page.into_iter().map(|s| (s.task, s.step.0)));
    }
    let expected: Vec<_> = sorted.iter().flat_map(|task| (0..3).map(|step| (*task, step))).collect();
    assert_eq!(seen, expected);
    let retained = store.steps(scene.run, TaskKind::Retain, None, 100).await.expect("are read");
    assert_eq!(retained.len(), 2);
    assert_eq!(store.steps(scene.run, TaskKind::Judge, None, 100).await.expect("are read"), []);
}

/// Texts are stored apart and come back in (task, step) order.
pub async fn texts_come_back_with_their_questions(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let [q0, q1] = [0, 1].map(|index| TaskKey::question(0, index));
    for question in [q0, q1] {
        let epoch = scene.claim(question).await.epoch;
        let mut records = scene.whole_question(question, epoch, 1.0, Opens::Nothing);
        records[0].text = Some(recall_text("found"));
        records[1].text = Some(answer_text(&"long ".repeat(5000)));
        scene.commit(&records).await;
        records[1].text = Some(answer_text("second copy"));
        scene.commit(&records[1..2]).await;
    }
    let texts = store.question_texts(scene.run, &[q1, q0]).await.expect("are read");
    let keys: Vec<_> = texts.iter().map(|(task, step, _)| (*task, *step)).collect();
    assert_eq!(keys, [(q0, StepNo::RECALL), (q0, StepNo::ANSWER), (q1, StepNo::RECALL), (q1, StepNo::ANSWER)]);
    assert_eq!(texts[1].2, answer_text(&"long ".repeat(5000)), "the text belongs to the step that is stored");
    assert_eq!(store.question_texts(scene.run, &[]).await.expect("are read"), []);
    let answers = store.step_texts(scene.run, &[q1, q0, q1], StepNo::ANSWER).await.expect("are read");
    assert_eq!(answers, [(q0, texts[1].2.clone()), (q1, texts[3].2.clone())], "each once, and no other step");
    assert_eq!(store.step_texts(scene.run, &[q0], StepNo::SCORE).await.expect("are read"), []);
    assert_eq!(store.step_texts(scene.run, &[], StepNo::ANSWER).await.expect("are read"), []);
}

/// Results from elsewhere have facts and texts but no tasks.
pub async fn imported_results_are_results(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&NewRun { imported: true, ..new_run("import") }).await.expect("is created");
    let results: Vec<_> = (0..3)
        .map(|index| {
            let facts = question_facts(TaskKey::question(0, index), Outcome::Scored, 0.5);
            (facts, vec![(StepNo::ANSWER, answer_text(&format!("answer {index}")))])
        })
        .collect();
    store.import_results(run, HEADLINE, &results, false).await.expect("are imported");
    store.import_results(run, HEADLINE, &results, false).await.expect("are imported again");
    let row = store.run(run).await.expect("is read");
    assert_eq!((row.imported, row.counters.scored), (true, 3));
    assert!((row.counters.headline_sum - 1.5).abs() < 1e-12);
    assert_eq!((row.counters.unmeasured, row.counters.mean()), (0, Some(0.5)));
    let unmeasured = QuestionFacts { scores: vec![], ..question_facts(TaskKey::question(0, 3), Outcome::Scored, 0.0) };
    store.import_results(run, HEADLINE, &[(unmeasured, vec![])], false).await.expect("is imported");
    let counters = store.run(run).await.expect("is read").counters;
    assert_eq!((counters.scored, counters.unmeasured), (4, 1));
    assert_eq!(counters.mean(), Some(0.5), "what was not measured is no zero");
    assert_eq!(store.facts(run, None, 10).await.expect("are read").len(), 4);
    let texts = store.question_texts(run, &[TaskKey::question(0, 1)]).await.expect("are read");
    assert_eq!(texts, [(TaskKey::question(0, 1), StepNo::ANSWER, answer_text("answer 1"))]);
}

/// Questions of two banks as an archive brings them: one has its score, one failed behind its answer, one before its recall. A vote
/// on the second one was given.
const SCORED: TaskKey = TaskKey::question(0, 0);
const JUDGED_NOT: TaskKey = TaskKey::question(0, 1);
const VOTE: TaskKey = TaskKey::judge(0, 1, 0, 0);
const FOUND_NOT: TaskKey = TaskKey::question(1, 0);

/// Rebuilds a run of them, twice over as where it was cut.
async fn restored(store: &dyn Store) -> RunNo {
    let run = store.create_run(&new_run("restored")).await.expect("is created");
    let failure = Failure::permanent("timeout", "was slow");
    let failed = StepFacts::Failed { failure, usage: Default::default(), timing: Timing::default() };
    let both = vec![(StepNo::RECALL, recall_text("found")), (StepNo::ANSWER, answer_text("said"))];
    let steps = [(StepNo::RECALL, recalled()), (StepNo::ANSWER, answered())].into_iter().zip(&both);
    let steps = steps.map(|((step, facts), (_, text))| (step, facts, Some(text.clone())));
    let failed_questions = [
        AdoptedQuestion { task: JUDGED_NOT, steps: steps.chain([(StepNo::FAILED, failed.clone(), None)]).collect() },
        AdoptedQuestion { task: FOUND_NOT, steps: vec![(StepNo::FAILED, failed, None)] },
    ];
    let results = [
        (question_facts(SCORED, Outcome::Scored, 1.0), both.clone()),
        (question_facts(JUDGED_NOT, Outcome::InfraError, 0.0), both),
        (question_facts(FOUND_NOT, Outcome::InfraError, 0.0), Vec::new()),
    ];
    for _ in 0..2 {
        let banks = [bank(0, &[(1, &[0, 1])]), bank(1, &[(1, &[0])])];
        store.adopt(run, &banks, &[]).await.expect("are adopted");
        store.adopt(run, &[], &failed_questions).await.expect("are adopted");
        store.import_results(run, HEADLINE, &results, true).await.expect("are restored");
        store.put_texts(run, &[(VOTE, StepNo::JUDGE, answer_text("yes"))]).await.expect("are stored");
    }
    store.finish_plan(run).await.expect("is planned");
    run
}

/// What came from an archive has its tasks: whoever goes on with the run plans and concludes none of it anew.
pub async fn restored_results_are_not_asked_again(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let run = restored(store).await;
    for _ in 0..2 {
        let swept = store.sweep(run).await.expect("is swept");
        assert_eq!((swept.opened, swept.to_conclude), (vec![], vec![]));
    }
    for role in Role::ALL {
        assert_eq!(store.ready_tasks(run, role, 10).await.expect("are read"), [], "{role}");
    }
    let counters = store.run(run).await.expect("is read").counters;
    assert_eq!((counters.scored, counters.infra_error, counters.banks_ready), (1, 2, 2));
    assert_eq!(store.facts(run, None, 10).await.expect("are read").len(), 3);
}

/// A retry goes on from what a failed question had, fills the bank that nobody has filled, and leaves what has its score.
pub async fn what_failed_before_it_was_restored_is_repeated(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let run = restored(store).await;
    assert!(store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await.expect("is set"));
    assert_eq!(store.reopen(run, RetryScope::Errors).await.expect("reopens"), 2);
    assert!(store.set_run_state(run, &[RunState::Paused], RunState::Running, None).await.expect("is set"));
    let session = store.open_session("w1", "local", "{}").await.expect("a session opens");
    let scene = Scene { store, run, session };
    assert_eq!(scene.ready(Role::Question).await, [JUDGED_NOT], "the other one waits for its bank");
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(1, 0)]);
    assert_eq!((scene.bank(0).await.generation, scene.bank(1).await.generation), (1, 2));
    let steps = store.question_steps(run, &[JUDGED_NOT]).await.expect("are read");
    assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), [StepNo::RECALL, StepNo::ANSWER]);
    let texts = store.question_texts(run, &[JUDGED_NOT]).await.expect("are read");
    let texts: Vec<_> = texts.iter().map(|(task, step, _)| (*task, *step)).collect();
    assert_eq!(texts, [(JUDGED_NOT, StepNo::RECALL), (JUDGED_NOT, StepNo::ANSWER)], "a vote is given anew");
    let epoch = scene.claim(JUDGED_NOT).await.epoch;
    assert!(epoch > 1, "whoever claims it reads its steps");
    let end = ending(run, JUDGED_NOT, StepNo::SCORE, epoch, scored(1.0), Opens::Nothing);
    assert_eq!(scene.commit(&[end]).await.to_conclude, [(run, JUDGED_NOT)]);
    scene.retain(1, 0, 0, 1).await;
    scene.prove(1, 0).await;
    assert_eq!(scene.bank(1).await.state, BankState::Ready);
    scene.answer(FOUND_NOT, 1.0, Opens::Nothing).await;
    assert_eq!(scene.ready(Role::Question).await, []);
}
