//! Segments, failed banks, generations, the sweep.

use bench_proto::{
    call::{Phase, Usage},
    facts::Outcome,
    ids::{Role, TaskKey},
    spec::RunSpec,
    step::{Opens, StepFacts, StepNo, Timing},
    stop::{Look, LookOutcome, Looks, StopGoal, StopRule},
};

use super::{Fresh, Scene, bank, ending, new_run, proven, recalled, record, retained, scored, spec};
use crate::{BankState, Later, LaterRound, NewBank, NewRun};

/// Two segments with two questions and one.
async fn two_segments(fresh: &Fresh) -> Scene<'_> {
    Scene::start(fresh.store.as_ref(), &[bank(0, &[(2, &[0, 1]), (3, &[2])])]).await
}

/// Questions of a segment are asked before the next part of the stream is retained.
pub async fn p6_a_segment_opens_when_all_recalls_of_the_last_are_stored(fresh: &Fresh) {
    let scene = two_segments(fresh).await;
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    let (q0, q1) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    assert_eq!(scene.ready(Role::Question).await, [q0, q1]);
    assert_eq!(scene.counters().await.banks_ready, 0, "half a bank is not ready");
    scene.recall(q0).await;
    assert_eq!(scene.ready(Role::Retain).await, []);
    let epoch = scene.claim(q1).await.epoch;
    let step = record(scene.run, q1, StepNo::RECALL, epoch, recalled());
    let outcome = scene.commit(std::slice::from_ref(&step)).await;
    assert_eq!(outcome.opened, [(scene.run, Role::Retain)]);
    assert_eq!(scene.commit(&[step]).await.opened, [], "a recall counts once");
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 1)]);
    let row = scene.bank(0).await;
    assert_eq!((row.state, row.segment, row.position, row.open_recalls), (BankState::Building, 1, 2, 1));
    scene.retain(0, 1, 2, 3).await;
    scene.prove(0, 1).await;
    assert_eq!(scene.ready(Role::Question).await, [TaskKey::question(0, 2)]);
    assert_eq!((scene.counters().await.banks_ready, scene.bank(0).await.position), (1, 3));
}

/// A question with several recalls holds the segment until it is stored what they found together (P6): they all see the same.
pub async fn p6_several_recalls_hold_the_segment_until_what_they_found_together_is_stored(fresh: &Fresh) {
    let scene = two_segments(fresh).await;
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    let (q0, q1) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    scene.recall(q0).await;
    let epoch = scene.claim(q1).await.epoch;
    for number in 0..2 {
        let (usage, timing) = (Usage::default(), Timing::default());
        let phrased = StepFacts::Phrased { phase: Phase::Answer, usage, timing: timing.clone() };
        let searched = StepFacts::Searched { generation: 1, hits: 3, effective_k: 3, usage, timing };
        let records = [(StepNo::phrase(number), phrased), (StepNo::search(number), searched)];
        let records = records.map(|(step, facts)| record(scene.run, q1, step, epoch, facts));
        assert_eq!(scene.commit(&records).await.opened, [], "search {number}");
        assert_eq!(scene.commit(&records).await.already.iter().flatten().count(), 2, "each is stored once");
        assert_eq!((scene.bank(0).await.segment, scene.bank(0).await.open_recalls), (0, 1));
    }
    let together = record(scene.run, q1, StepNo::RECALL, epoch, recalled());
    assert_eq!(scene.commit(&[together]).await.opened, [(scene.run, Role::Retain)]);
    assert_eq!(scene.bank(0).await.segment, 1);
    let late = StepFacts::Searched {
        generation: 0,
        hits: 1,
        effective_k: 1,
        usage: Usage::default(),
        timing: Timing::default(),
    };
    let late = scene.commit(&[record(scene.run, q1, StepNo::search(2), epoch, late)]).await;
    assert_eq!(late.refused, [0], "a search of an old generation is none of this one");
}

/// Giving a question up before its recall counts like the recall.
pub async fn p6_a_given_up_recall_opens_the_next_segment_too(fresh: &Fresh) {
    let scene = two_segments(fresh).await;
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    let (q0, q1) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    let epoch = scene.recall(q0).await;
    let failed = scene.commit(&[super::failing(scene.run, q0, epoch, "filtered")]).await;
    assert_eq!((failed.opened, failed.to_conclude), (vec![], vec![(scene.run, q0)]));
    assert_eq!(scene.bank(0).await.open_recalls, 1, "its recall was counted already");
    let failed = scene.give_up(q1, "http_400").await;
    assert_eq!(failed.opened, [(scene.run, Role::Retain)]);
    assert_eq!(scene.bank(0).await.segment, 1);
}

/// A bank that cannot be retained fails with its reason, and every question of it that has not ended.
pub async fn p22_a_failed_bank_fails_its_questions(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = two_segments(fresh).await;
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    let [q0, q1, q2] = [0, 1, 2].map(|index| TaskKey::question(0, index));
    scene.answer(q0, 1.0, Opens::Nothing).await;
    let epoch = scene.recall(q1).await;
    let outcome = scene.give_up(TaskKey::retain(0, 1), "disk_full").await;
    assert_eq!(outcome.to_conclude, [(scene.run, q1), (scene.run, q2)]);
    let row = scene.bank(0).await;
    assert_eq!(row.state, BankState::Failed);
    assert!(row.reason.as_deref().is_some_and(|why| why.contains("disk_full")), "{row:?}");
    let steps = store.question_steps(scene.run, &[q2]).await.expect("are read");
    assert!(matches!(&steps[..], [one] if one.step == StepNo::FAILED && matches!(&one.facts,
        StepFacts::Failed { failure, .. } if failure.code == "disk_full")));
    assert_eq!(scene.ready(Role::Question).await, []);
    let late = scene.commit(&[record(scene.run, q1, StepNo::ANSWER, epoch, super::answered())]).await;
    assert!(matches!(&late.already[0], Some(StepFacts::Failed { .. })), "what ended stays ended");
    let kinds: Vec<String> =
        store.events(scene.run).await.expect("are read").into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["created", "bank_failed"]);
    // a ready task that is given up does the same
    let other = Scene { run: store.create_run(&super::new_run("r2")).await.expect("is created"), ..scene };
    store.add_banks(other.run, &[bank(0, &[(1, &[0])])]).await.expect("are added");
    other.retain(0, 0, 0, 1).await;
    let outcome = other.give_up(TaskKey::ready(0, 0), "never_ready").await;
    assert_eq!(outcome.to_conclude, [(other.run, q0)]);
}

/// A late worker can only reach the generation that it knows.
pub async fn p5_records_of_an_old_generation_are_refused(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(2, &[0])])]).await;
    let retain = TaskKey::retain(0, 0);
    let epoch = scene.claim(retain).await.epoch;
    store.new_generation(scene.run, 0, epoch).await.expect("is raised");
    let late = ending(scene.run, retain, StepNo::retain(1), epoch, retained(1), Opens::ReadyTask);
    let outcome = scene.commit(&[record(scene.run, retain, StepNo::retain(0), epoch, retained(1)), late]).await;
    assert_eq!((outcome.refused, outcome.opened), (vec![0, 1], vec![]));
    let row = scene.bank(0).await;
    assert_eq!((row.position, scene.counters().await.entries_retained), (0, 0));
}

/// A recall of an old generation is refused, with everything that rests on it in its batch.
pub async fn p5_recalls_of_an_old_generation_are_refused(fresh: &Fresh) {
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let epoch = scene.claim(question).await.epoch;
    let mut old = recalled();
    if let StepFacts::Recalled { generation, .. } = &mut old {
        *generation = 0;
    }
    let last = ending(scene.run, question, StepNo::SCORE, epoch, scored(1.0), Opens::Nothing);
    let outcome = scene.commit(&[record(scene.run, question, StepNo::RECALL, epoch, old), last.clone()]).await;
    assert_eq!((outcome.refused, outcome.to_conclude), (vec![0, 1], vec![]));
    let current = record(scene.run, question, StepNo::RECALL, epoch, recalled());
    assert_eq!(scene.commit(&[current, last]).await.refused, Vec::<usize>::new());
}

/// A sound run is a fixed point.
pub async fn p7_sweeping_changes_nothing_in_a_sound_run(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = two_segments(fresh).await;
    let sweep = async || {
        let (banks, counters) = (store.banks(scene.run, None).await.expect("are read"), scene.counters().await);
        let ready =
            (scene.ready(Role::Retain).await, scene.ready(Role::Question).await, scene.ready(Role::Judge).await);
        let outcome = store.sweep(scene.run).await.expect("sweeps");
        assert_eq!(outcome.opened, []);
        assert_eq!(store.banks(scene.run, None).await.expect("are read"), banks);
        assert_eq!(scene.counters().await, counters);
        let after =
            (scene.ready(Role::Retain).await, scene.ready(Role::Question).await, scene.ready(Role::Judge).await);
        assert_eq!(after, ready);
        outcome.to_conclude
    };
    assert_eq!(sweep().await, []);
    scene.retain(0, 0, 0, 2).await;
    assert_eq!(sweep().await, []);
    scene.prove(0, 0).await;
    assert_eq!(sweep().await, []);
    let question = TaskKey::question(0, 0);
    let vote = TaskKey::judge(0, 0, 0, 0);
    scene.answer(question, 0.5, Opens::Judges(vec![vote])).await;
    assert_eq!(sweep().await, []);
    scene.give_up(vote, "timeout").await;
    assert_eq!(sweep().await, [(scene.run, question)]);
    scene.conclude(question, Outcome::Scored, 0.5).await;
    assert_eq!(sweep().await, []);
    scene.give_up(TaskKey::question(0, 1), "http_400").await;
    assert_eq!(sweep().await, [(scene.run, TaskKey::question(0, 1))]);
    scene.conclude(TaskKey::question(0, 1), Outcome::InfraError, 0.0).await;
    scene.give_up(TaskKey::retain(0, 1), "disk_full").await;
    assert_eq!(sweep().await, [(scene.run, TaskKey::question(0, 2))]);
    assert!(store.sweep(bench_proto::ids::RunNo(999)).await.is_err());
}

/// The answer of a commit was lost with its worker: the sweep says again what is to be concluded.
pub async fn p7_the_sweep_finds_what_an_unanswered_commit_left(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    scene.answer(TaskKey::question(0, 0), 1.0, Opens::Nothing).await;
    let proof = ending(scene.run, TaskKey::ready(0, 0), StepNo::READY, 1, proven(), Opens::SegmentQuestions);
    assert_eq!(scene.commit(&[proof]).await.opened, []);
    for _ in 0..2 {
        let outcome = store.sweep(scene.run).await.expect("sweeps");
        assert_eq!(outcome.to_conclude, [(scene.run, TaskKey::question(0, 0))]);
    }
}

/// A run of two banks of which the second is asked only after a look, and a question of the first too.
async fn with_rounds(fresh: &Fresh) -> Scene<'_> {
    let later = |round, segment, questions: &[u32]| Later {
        rounds: vec![LaterRound { round, segment, questions: questions.to_vec() }],
        left_out: false,
    };
    let banks = [
        // the second segment closes the bank
        NewBank { later: Some(later(1, 0, &[1])), ..bank(0, &[(2, &[0]), (2, &[])]) },
        NewBank { later: Some(later(1, 0, &[0, 1])), ..bank(1, &[(2, &[])]) },
    ];
    let rule = StopRule { goal: StopGoal::Interval { half_width: 0.1 }, looks: vec![1, 4] };
    let new = NewRun { spec: RunSpec { stop: Some(rule), ..spec() }, ..new_run("r") };
    Scene::start_as(fresh.store.as_ref(), &new, &banks).await
}

/// Ends a segment that has no entries of its own.
async fn retain_nothing(scene: &Scene<'_>, bank: u32, segment: u32) {
    let task = TaskKey::retain(bank, segment);
    let (row, epoch) = (scene.bank(bank).await, scene.claim(task).await.epoch);
    let nothing = retained(row.generation);
    scene.commit(&[ending(scene.run, task, StepNo::retain(row.position), epoch, nothing, Opens::ReadyTask)]).await;
}

fn look(asked: u64, outcome: LookOutcome) -> Look {
    Look {
        asked,
        banks: 1,
        used: asked,
        estimate: Some(0.5),
        low: Some(0.4),
        high: Some(0.6),
        clustered: None,
        outcome,
        by_category: [("single-hop".to_owned(), asked)].into(),
        by_stratum: Vec::new(),
    }
}

/// Questions of later rounds are asked when a look has opened them, and their banks are not filled before.
pub async fn p46_questions_of_a_round_are_asked_when_its_look_is_made(fresh: &Fresh) {
    let scene = with_rounds(fresh).await;
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 0)], "the second bank waits for a look");
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    assert_eq!(scene.ready(Role::Question).await, [TaskKey::question(0, 0)]);
    scene.recall(TaskKey::question(0, 0)).await;
    scene.store.sweep(scene.run).await.expect("sweeps");
    assert_eq!(scene.ready(Role::Retain).await, [], "a bank is not closed before its last round");
    let (before, after) = (Looks::default(), Looks { made: vec![look(1, LookOutcome::Continues)], ..Looks::default() });
    assert!(scene.store.set_looks(scene.run, &before, &after).await.expect("is written"));
    assert!(!scene.store.set_looks(scene.run, &before, &Looks::default()).await.expect("others were quicker"));
    assert_eq!(scene.store.run(scene.run).await.expect("is there").looks, after);
    scene.store.sweep(scene.run).await.expect("sweeps");
    scene.store.sweep(scene.run).await.expect("sweeps");
    assert_eq!(scene.ready(Role::Question).await, [TaskKey::question(0, 1)]);
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(1, 0)]);
    scene.recall(TaskKey::question(0, 1)).await;
    assert_eq!(scene.bank(0).await.segment, 1, "its last round closes it");
    assert_eq!(scene.bank(0).await.later, None);
}

/// A run that has stopped asks no more, closes the banks that it has asked and leaves the others alone; it goes on when it is told to.
pub async fn p46_what_a_stopped_run_leaves_out_is_asked_when_it_goes_on(fresh: &Fresh) {
    let scene = with_rounds(fresh).await;
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    scene.recall(TaskKey::question(0, 0)).await;
    let stopped = Looks { made: vec![look(1, LookOutcome::Narrow)], ..Looks::default() };
    assert!(scene.store.set_looks(scene.run, &Looks::default(), &stopped).await.expect("is written"));
    scene.store.sweep(scene.run).await.expect("sweeps");
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 1)], "the bank is closed");
    let row = scene.store.run(scene.run).await.expect("is there");
    assert_eq!((row.sample_size(), row.questions_due(), row.look_is_due()), (1, 1, false));
    retain_nothing(&scene, 0, 1).await;
    scene.prove(0, 1).await;
    scene.store.sweep(scene.run).await.expect("sweeps");
    assert_eq!(scene.counters().await.banks_ready, 1);
    let goes_on = Looks { to_the_end: true, ..stopped.clone() };
    assert!(scene.store.set_looks(scene.run, &stopped, &goes_on).await.expect("is written"));
    let told = scene.store.run(scene.run).await.expect("is there");
    for bank_no in [0, 1] {
        let stored = scene.bank(bank_no).await;
        assert_eq!(row.asked_bank(&stored).waits_for_a_look(), bank_no == 1, "as long as it is stopped");
        assert!(told.asked_bank(&stored).left_out().is_empty() && !stored.left_out().is_empty(), "before a sweep");
    }
    scene.store.sweep(scene.run).await.expect("sweeps");
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 2), TaskKey::retain(1, 0)]);
    assert_eq!(scene.counters().await.banks_ready, 0, "it is not at its end any more");
    retain_nothing(&scene, 0, 2).await;
    scene.prove(0, 2).await;
    assert_eq!(scene.ready(Role::Question).await, [TaskKey::question(0, 1)]);
}
