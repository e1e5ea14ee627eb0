//! The memory system's own calls, as the meter has booked them among the calls of their run (P34).

use bench_proto::{
    call::CallOutcome,
    ids::{RunNo, TaskKey},
    metered::{MeteredCalls, MeteredEnd, MeteredKey},
    money::PicoUsd,
};

use super::{Backend, Row, Sql, SqlStore, args, codes, sums::sum};
use crate::{StoreError, StoreResult, codec::unescape};

/// What is summed up of calls that are alike.
const SUMS: [&str; 5] = ["n.prompt_tokens", "n.completion_tokens", "n.cost", "n.duration_us", "n.saved"];

/// See [`crate::Calls::metered_calls`].
pub(super) async fn read<B: Backend>(store: &SqlStore<B>, run: RunNo) -> StoreResult<Vec<MeteredCalls>> {
    static READ: Sql = Sql::new(|| {
        let (low, most, stored) = (TaskKey::METERED.0, codes::UNCERTAIN, MeteredEnd::Stored.to_text());
        let (sums, accepted) = (SUMS.map(sum).join(", "), codes::ACCEPTED);
        format!(
            "SELECT n.task_key, n.model, n.finish, n.outcome, count(*), {sums} FROM \
             (SELECT c.task_key, c.model, c.finish, c.outcome, c.prompt_tokens, c.completion_tokens, c.cost, c.duration_us, \
             CASE WHEN c.finish = '{stored}' THEN COALESCE((SELECT max(o.cost) FROM calls AS o WHERE o.call_key = c.call_key \
             AND o.outcome = {accepted}), 0) ELSE 0 END AS saved FROM calls AS c \
             WHERE c.run_no = $1 AND c.task_key >= {low} AND c.outcome <= {most}) AS n \
             GROUP BY n.task_key, n.model, n.finish, n.outcome ORDER BY n.task_key, n.model, n.finish, n.outcome"
        )
    });
    store.fetch(&READ, args![run.0]).await?.into_iter().map(read_row).collect()
}

fn read_row(mut row: Row) -> StoreResult<MeteredCalls> {
    let corrupt =
        |what: String| StoreError::Corrupt(format!("{what} of a metered call is of no version that is known").into());
    let key = row.int(0)?;
    let key = MeteredKey::of_task(TaskKey(key)).ok_or_else(|| corrupt(format!("the key {key}")))?;
    let end = unescape(row.text(2)?);
    let end = MeteredEnd::from_text(&end).ok_or_else(|| corrupt(format!("the end '{end}'")))?;
    Ok(MeteredCalls {
        key,
        model: unescape(row.text(1)?),
        end,
        is_uncertain: codes::outcome_from(row.int(3)?)? == CallOutcome::Uncertain,
        calls: row.small(4)?,
        prompt_tokens: row.small(5)?,
        completion_tokens: row.small(6)?,
        cost: PicoUsd(row.int(7)?),
        duration_us: row.small(8)?,
        saved: PicoUsd(row.int(9)?),
    })
}
