//! Reading all questions of a run. Large runs are read in parts, each by a thread of its own: aggregation merges in any order,
//! and what takes the time is making facts of rows.

use std::{num::NonZero, thread};

use bench_proto::{
    facts::QuestionFacts,
    ids::{TaskKey, TaskKind},
};
use bench_store::{Results, RunRow};
use tokio::runtime::Handle;

use crate::exit::CliError;

/// Facts read per page.
const PAGE: u32 = 4096;
/// Questions from which a second thread is worth its while.
const WORTH_A_THREAD: u64 = 20_000;
/// Most threads; a store has few connections for readers.
const MOST_THREADS: u32 = 3;

/// Reads the facts of all concluded questions into collections made by `new`, one per part of the run, in the order of the
/// parts. `done` is called for each part on its own thread.
///
/// # Errors
/// What the store meets.
pub(crate) async fn read_facts<T: Send>(
    store: &dyn Results,
    run: &RunRow,
    new: impl Fn() -> T + Sync,
    add: impl Fn(&mut T, QuestionFacts) + Sync,
    done: impl Fn(&mut T) + Sync,
) -> Result<Vec<T>, CliError> {
    let parts =
        parts(run.spec.sample.n, run.spec.sample.banks, thread::available_parallelism().map_or(1, NonZero::get));
    let read = async |(first, last): (TaskKey, TaskKey)| -> Result<T, CliError> {
        let mut collected = new();
        let mut after = Some(TaskKey(first.0 - 1));
        loop {
            let page = store.facts(run.run_no, after, PAGE).await?;
            let Some(end) = page.last().map(|facts| facts.task) else { break };
            after = Some(end);
            page.into_iter().take_while(|facts| facts.task <= last).for_each(|facts| add(&mut collected, facts));
            if end >= last {
                break;
            }
        }
        done(&mut collected);
        Ok(collected)
    };
    if let [whole] = parts.as_slice() {
        return Ok(vec![read(*whole).await?]);
    }
    let runtime = Handle::current();
    // borrowed data cannot go to tasks of the runtime, but to threads that end before this does
    tokio::task::block_in_place(|| {
        thread::scope(|scope| {
            let (read, runtime) = (&read, &runtime);
            let threads: Vec<_> =
                parts.into_iter().map(|part| scope.spawn(move || runtime.block_on(read(part)))).collect();
            let stopped = || CliError::infrastructure("reading the results stopped");
            threads.into_iter().map(|thread| thread.join().map_err(|_| stopped())?).collect()
        })
    })
}

/// The ranges of question keys that are read apart, banks evenly; the last one has no end.
fn parts(questions: u64, banks: u64, cores: usize) -> Vec<(TaskKey, TaskKey)> {
    let banks = u32::try_from(banks).unwrap_or(u32::MAX).clamp(1, TaskKey::MAX_BANKS);
    let wanted = u32::try_from(questions / WORTH_A_THREAD + 1).unwrap_or(u32::MAX);
    let n = wanted.min(MOST_THREADS).min(u32::try_from(cores).unwrap_or(1)).min(banks);
    let start = |part: u32| (u64::from(banks) * u64::from(part) / u64::from(n)) as u32;
    let (lowest, highest) = TaskKey::range_of_kind(TaskKind::Question);
    let low = |part| if part == 0 { lowest } else { TaskKey::range(TaskKind::Question, start(part)).0 };
    let high = |part| if part + 1 == n { highest } else { TaskKey(low(part + 1).0 - 1) };
    (0..n).map(|part| (low(part), high(part))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_neighbours_and_leave_no_question_out(
            questions in 0_u64..2_000_000, banks in 0_u64..5_000, cores in 1_usize..9,
        ) {
            let parts = parts(questions, banks, cores);
            let (lowest, highest) = TaskKey::range_of_kind(TaskKind::Question);
            prop_assert_eq!(parts.first().map(|part| part.0), Some(lowest));
            prop_assert_eq!(parts.last().map(|part| part.1), Some(highest));
            for pair in parts.windows(2) {
                prop_assert_eq!(pair[0].1.0 + 1, pair[1].0.0);
            }
            prop_assert!(parts.len() <= cores && parts.len() <= banks.max(1) as usize);
            prop_assert!(questions >= WORTH_A_THREAD || parts.len() == 1);
        }
    }
}
