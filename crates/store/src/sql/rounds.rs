//! Rounds of runs that may stop early: what their looks have found, and the questions that follow from it.
//!
//! The looks of a run are written first, in one place; the sweep opens rounds from them, bank by bank, as often as it must (P7). A
//! kill between the two loses nothing.

use bench_proto::{
    ids::RunNo,
    stop::{Looks, Opened},
};

use super::{Batch, Conn, Sql, args, banks, missing_run};
use crate::{
    BankRow, StoreResult,
    codec::{from_json, to_json},
};

/// Reads looks as they are stored.
pub(super) fn read(looks: Option<String>, of: impl FnOnce() -> String) -> StoreResult<Looks> {
    looks.map_or_else(|| Ok(Looks::default()), |text| from_json(&text, of))
}

/// Writes looks unless others were written since `before` was read.
pub(super) async fn write(conn: &mut dyn Conn, run: RunNo, before: Looks, looks: Looks) -> StoreResult<bool> {
    static READ: Sql = Sql::new(|| "SELECT looks FROM runs WHERE run_no = $1".to_owned());
    static WRITE: Sql = Sql::new(|| "UPDATE runs SET looks = $2 WHERE run_no = $1".to_owned());
    conn.lock(&READ, args![run.0]).await?;
    let mut rows = conn.fetch(&READ, args![run.0]).await?;
    let stored = rows.first_mut().ok_or_else(|| missing_run(run))?.opt_text(0)?;
    if read(stored, || format!("the looks of run number {}", run.0))? != before {
        return Ok(false);
    }
    conn.execute(&WRITE, args![run.0, to_json(&looks)?]).await?;
    Ok(true)
}

/// Moves what is opened of some banks (ascending, each once) into their segments. Their tasks follow when the banks are settled.
/// Returns how many of the banks had come to their end and have not any more.
pub(super) async fn open(conn: &mut dyn Conn, run: RunNo, part: &[u32], opened: Opened) -> StoreResult<i64> {
    static UPDATE: Sql = Sql::new(|| {
        "UPDATE banks AS k SET segments = b.segments, last_segment = b.last, later = b.later \
         FROM @rows($2: bank int, last int, segments text, later text) AS b \
         WHERE k.run_no = @each($1, b.bank) AND k.bank_no = b.bank"
            .to_owned()
    });
    banks::lock(conn, run, part).await?;
    let stored = banks::read(conn, run, Some(part)).await?;
    let changes: Vec<(&BankRow, BankRow)> =
        stored.iter().filter_map(|bank| Some((bank, bank.with_opened(opened)?))).collect();
    if changes.is_empty() {
        return Ok(0);
    }
    let reopened =
        changes.iter().filter(|(before, after)| banks::is_complete(before) && !banks::is_complete(after)).count();
    let changed: Vec<BankRow> = changes.into_iter().map(|(_, after)| after).collect();
    let texts = |text: fn(&BankRow) -> StoreResult<Option<String>>| {
        changed.iter().map(text).collect::<StoreResult<Vec<Option<String>>>>()
    };
    let segments = texts(|bank| to_json(&bank.segments).map(Some))?;
    let later = texts(|bank| bank.later.as_ref().map(to_json).transpose())?;
    let batch = Batch::default()
        .int(changed.iter().map(|bank| i64::from(bank.bank_no)))
        .int(changed.iter().map(|bank| bank.segments.len() as i64 - 1))
        .opt_text(segments)
        .opt_text(later);
    conn.execute(&UPDATE, args![run.0, batch]).await?;
    Ok(reopened as i64)
}
