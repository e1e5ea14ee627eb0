//! A bank that is filled: which rows of runs are such, how another run may ask them, and what is told of them.

use std::collections::BTreeSet;

use bench_store::{BankRow, BankState, FilledBank, RunRow};

use crate::out::amounts::counted;

/// A bank that a run has filled, or has found filled in an archive.
#[derive(Debug, Clone)]
pub(super) struct Filled {
    /// Id of the run.
    pub(super) run: String,
    /// Name of the archive that the run found it filled in; `None` where the run filled it.
    pub(super) archive: Option<String>,
    /// The bank as that run stores it.
    pub(super) row: BankRow,
}

impl Filled {
    /// Of a run that has the bank; `None` for one that is another run's, or holds something that nobody knows.
    pub(super) fn of_run(run: &RunRow, row: BankRow) -> Option<Self> {
        let taken_over = &run.spec.taken_over;
        // what another system has filled is a part of what is measured
        let archive =
            taken_over.archive.as_ref().filter(|asked| asked.filled_by.is_none() && taken_over.bank.is_none());
        let archive = match row.filled_before() {
            None => None,
            Some(before) => Some(archive.filter(|_| before.by.is_none())?.name.clone()),
        };
        as_filled(&row)?;
        Some(Self { run: run.run_id.0.clone(), archive, row })
    }

    /// How its run has it.
    pub(super) const fn has(&self) -> &'static str {
        if self.archive.is_some() { "asks" } else { "filled" }
    }
}

/// A bank as another run may ask it: where it was filled, by its own run or before that. `None` for one that does not hold all that it
/// was to hold, or is not known to.
#[must_use]
pub(crate) fn as_filled(row: &BankRow) -> Option<FilledBank> {
    let handle = row.handle.clone().filter(|_| holds_all(row))?;
    let own = || FilledBank { name: row.name_of(row.generation), handle, by: Some(row.bank_row) };
    Some(row.filled_before().cloned().unwrap_or_else(own))
}

/// Whether a run has filled a bank itself, to its end.
#[must_use]
pub(crate) fn is_filled(row: &BankRow) -> bool {
    row.filled_before().is_none() && as_filled(row).is_some()
}

/// Whether everything was retained in a bank, and proven to be there.
fn holds_all(row: &BankRow) -> bool {
    let until = row.segments.last().map_or(0, |segment| segment.until);
    // behind the last question a segment may follow that retains nothing
    let is_proven = row.state == BankState::Ready || (row.state == BankState::Building && row.segment > 0);
    is_proven && row.position >= until
}

/// Says where filled banks are from. `banks`: how many the run has; `of`: the runs that have those which were found.
pub(super) fn who_filled(found: &[Filled], banks: u64, of: &[String]) -> String {
    let archives: BTreeSet<&str> = found.iter().filter_map(|filled| filled.archive.as_deref()).collect();
    let archived = found.iter().filter(|filled| filled.archive.is_some()).count();
    let (own, of) = (found.len() - archived, of.join(", "));
    let banks = counted(banks, "bank");
    let named = archives.into_iter().collect::<Vec<_>>().join(", ");
    match (own, archived) {
        (1, 0) => format!("1 of {banks} was filled by run {of}: what that took stands in its report"),
        (_, 0) => format!("{own} of {banks} were filled by run {of}: what that took stands in its report"),
        (0, _) => format!("{archived} of {banks} as run {of} asks them, from the archive {named}"),
        _ => format!("{} of {banks} as run {of} has them, {archived} of these from the archive {named}", found.len()),
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::spec::{AskedArchive, TakenOver};
    use bench_store::conformance;

    use super::*;

    #[tokio::test]
    async fn banks_out_of_an_archive_are_found_as_those_of_the_run_that_asks_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let run = store.create_run(&conformance::new_run("asks")).await.expect("is created");
        let run = store.run(run).await.expect("is there");
        store.add_banks(run.run_no, &[conformance::bank(0, &[(2, &[0])])]).await.expect("is added");
        let new = store.banks(run.run_no, None).await.expect("are read").remove(0);
        let handle = Some("theirs-1".to_owned());
        let row = BankRow { handle, state: BankState::Ready, position: 2, ..new };
        let before = |by| Some(FilledBank { name: "theirs-1".to_owned(), handle: "theirs-1".to_owned(), by });
        let archive = |filled_by: Option<&str>| {
            let asked = AskedArchive {
                name: "theirs".to_owned(),
                filled_by: filled_by.map(str::to_owned),
                ..AskedArchive::default()
            };
            TakenOver { archive: Some(asked), ..TakenOver::default() }
        };
        let named = TakenOver { bank: Some("theirs-1".to_owned()), ..archive(None) };
        for (taken_over, filled, found) in [
            (TakenOver::default(), None, Some(None)),
            (archive(None), before(None), Some(Some("theirs"))),
            (archive(None), None, Some(None)),
            (archive(None), before(Some(7)), None),
            (archive(Some("other 1")), before(None), None),
            (TakenOver::default(), before(Some(7)), None),
            (named, before(None), None),
        ] {
            let mut asks = run.clone();
            asks.spec.taken_over = taken_over.clone();
            let of_run = Filled::of_run(&asks, BankRow { filled, ..row.clone() });
            let archives = of_run.as_ref().map(|filled| filled.archive.as_deref());
            assert_eq!(archives, found, "{taken_over:?}");
        }
        let half = BankRow { filled: before(None), position: 1, ..row.clone() };
        let mut asks = run.clone();
        asks.spec.taken_over = archive(None);
        assert!(Filled::of_run(&asks, half).is_none(), "nothing is known of one that was not proven");

        let of = |archive: Option<&str>| Filled {
            run: "a".to_owned(),
            archive: archive.map(str::to_owned),
            row: row.clone(),
        };
        let told = |found: &[Filled]| who_filled(found, 3, &["a".to_owned()]);
        assert_eq!(told(&[of(None)]), "1 of 3 banks was filled by run a: what that took stands in its report");
        assert_eq!(told(&[of(Some("theirs"))]), "1 of 3 banks as run a asks them, from the archive theirs");
        let mixed = told(&[of(None), of(Some("theirs"))]);
        assert_eq!(mixed, "2 of 3 banks as run a has them, 1 of these from the archive theirs");
    }
}
