//! Runs that go on from what another run has stored.

use bench_proto::{
    facts::Outcome,
    failure::Failure,
    ids::{Role, TaskKey},
    step::{Opens, StepFacts, StepNo, Timing},
};

use super::*;
use crate::{AdoptedQuestion, BankState};

/// Adopted questions are ready with their steps, failed ones wait to be concluded, and nothing is retained or asked anew.
pub async fn forks_begin_where_another_run_ended(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let run = store.create_run(&new_run("fork")).await.expect("is created");
    let banks = [bank(0, &[(1, &[0]), (2, &[1, 2])])];
    let [q0, q1, q2] = [0, 1, 2].map(|index| TaskKey::question(0, index));
    let failed = StepFacts::Failed {
        failure: Failure::permanent("system", "was down"),
        usage: Default::default(),
        timing: Timing::default(),
    };
    let questions = [
        AdoptedQuestion {
            task: q0,
            steps: vec![
                (StepNo::RECALL, recalled(), Some(recall_text("found"))),
                (StepNo::ANSWER, answered(), Some(answer_text("said"))),
            ],
        },
        AdoptedQuestion { task: q1, steps: vec![(StepNo::RECALL, recalled(), Some(recall_text("found")))] },
        AdoptedQuestion { task: q2, steps: vec![(StepNo::FAILED, failed, None)] },
    ];
    store.adopt(run, &banks, &questions).await.expect("are adopted");
    store.adopt(run, &banks, &questions).await.expect("are adopted again");
    store.finish_plan(run).await.expect("is planned");
    let swept = store.sweep(run).await.expect("is swept");
    assert_eq!(swept.to_conclude, [(run, q2)], "what failed there has failed here");
    let row = store.banks(run, None).await.expect("are read").remove(0);
    assert_eq!((row.state, row.segment, row.open_recalls), (BankState::Ready, 1, 0));
    let counters = store.run(run).await.expect("is read").counters;
    assert_eq!((counters.banks_planned, counters.banks_ready, counters.answered), (1, 1, 1));
    for role in [Role::Retain, Role::Judge] {
        assert_eq!(store.ready_tasks(run, role, 10).await.expect("are read"), [], "{role}");
    }
    let ready: Vec<TaskKey> =
        store.ready_tasks(run, Role::Question, 10).await.expect("are read").iter().map(|ready| ready.task).collect();
    assert_eq!(ready, [q0, q1]);
    let session = store.open_session("w", "local", "{}").await.expect("is opened");
    let claimed = store.claim(session, &[(run, q0)]).await.expect("is claimed");
    assert!(claimed[0].epoch > 1, "whoever claims it reads its steps");
    let end = ending(run, q0, StepNo::SCORE, claimed[0].epoch, scored(1.0), Opens::Nothing);
    let outcome = store.commit(&[end]).await.expect("is stored");
    assert_eq!(outcome.to_conclude, [(run, q0)]);
    let facts = question_facts(q0, Outcome::Scored, 1.0);
    assert_eq!(store.store_facts(run, HEADLINE, &[facts]).await.expect("is concluded"), 1);
}

/// Whoever looks while banks are taken over sees each of them whole or not at all: no question is ready without its bank.
pub async fn forks_take_banks_over_whole(fresh: &Fresh) {
    const BANKS: u32 = 20;
    let store = fresh.store.as_ref();
    let run = store.create_run(&new_run("whole")).await.expect("is created");
    let adopting = async {
        for number in 0..BANKS {
            let question = |index| AdoptedQuestion { task: TaskKey::question(number, index), steps: Vec::new() };
            let questions = [0, 1, 2].map(question);
            store.adopt(run, &[bank(number, &[(1, &[0, 1, 2])])], &questions).await.expect("is adopted");
        }
        store.finish_plan(run).await.expect("is planned");
    };
    let looking = async {
        loop {
            let ready = store.ready_tasks(run, Role::Question, 3 * BANKS).await.expect("are read");
            // read later than the questions: whatever they belong to must be there by now
            let banks = store.banks(run, None).await.expect("are read");
            for task in &ready {
                let known = banks.iter().any(|bank| bank.bank_no == task.task.bank());
                assert!(known, "{:?} is ready, and its bank is not there", task.task);
            }
            if ready.len() as u32 == 3 * BANKS {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(adopting, looking);
}
