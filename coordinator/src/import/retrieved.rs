//! Which sessions, turns and memories do retrieved ids name? Those of the dataset; and those that stand in its file, where the bank has
//! others for them. Ids that name nothing are misses without a word, so that the user of a file is told of them.

use std::collections::{BTreeMap, HashSet};

use bench_datasets::Dataset;
use bench_proto::dataset::StreamEntry;

use super::{ImportError, advice::shown, fields::Line, resolve::KnownBank};
use crate::exit::CliError;

/// Replaces the ids of the dataset's file by those of its banks.
///
/// # Errors
/// A bank that cannot be read.
pub(super) fn settle(
    dataset: &dyn Dataset,
    banks: &[KnownBank],
    lines: &mut BTreeMap<String, Line>,
) -> Result<Settled, CliError> {
    let mut settled = Settled::default();
    let has_ids = |line: &Line| line.retrieved.as_ref().is_some_and(|ids| !ids.is_empty());
    for (place, bank) in banks.iter().enumerate() {
        // others are not read
        if !bank.questions.iter().any(|question| lines.get(&question.id).is_some_and(has_ids)) {
            continue;
        }
        let ids = BankIds::read(dataset, place)?;
        for question in &bank.questions {
            if let Some(line) = lines.get_mut(&question.id) {
                settled.add(&ids, line);
            }
        }
    }
    Ok(settled)
}

/// What a file may name of a bank, and how it does.
#[derive(Debug, Default)]
struct BankIds {
    bank_id: String,
    /// Of sessions, turns and memories.
    ids: HashSet<String>,
    /// Ids of the file → those of the bank.
    given: BTreeMap<String, String>,
    /// One of them, as the file has it.
    example: Option<String>,
}

impl BankIds {
    fn read(dataset: &dyn Dataset, place: usize) -> Result<Self, CliError> {
        let bank = dataset.bank(place)?;
        let mut given = dataset.given_ids(place).cloned().unwrap_or_default();
        for gold in &bank.gold {
            for (ours, original) in gold.original_sessions() {
                given.entry(original).or_insert(ours);
            }
        }
        let mut all: Vec<String> = Vec::new();
        for entry in bank.content.entries {
            match entry {
                // turns come first: one of them is the better example
                StreamEntry::Session(session) => {
                    all.extend(session.turns.into_iter().map(|turn| turn.id));
                    all.push(session.id);
                }
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => all.push(memory.id),
                StreamEntry::Update { memory: None, .. } => {}
            }
        }
        let example = all.first().map(|id| {
            let theirs = given.iter().find(|(_, ours)| *ours == id).map(|(theirs, _)| theirs);
            theirs.unwrap_or(id).clone()
        });
        Ok(Self { bank_id: bank.content.bank_id, ids: all.into_iter().collect(), given, example })
    }

    /// What an id is called in the bank, and whether there is just that, or its session alone. Files of ours have the ids of the bank,
    /// those of others first of all those of the dataset's file.
    fn find(&self, id: &str, is_ours: bool) -> Option<(String, bool)> {
        let whole = |id: &str| {
            let given = self.given.get(id).filter(|_| !is_ours);
            given.or_else(|| self.ids.get(id)).cloned()
        };
        if let Some(found) = whole(id) {
            return Some((found, true));
        }
        let (session, rest) = id.split_once(':')?;
        Some((format!("{}:{rest}", whole(session)?), false))
    }
}

/// What became of the retrieved ids of a file.
#[derive(Debug, Default)]
pub(super) struct Settled {
    all: usize,
    /// Of these the ones that the dataset has.
    known: usize,
    /// The ones that it has not, but their session.
    of_session: usize,
    /// The first one that it has not.
    first: Option<Unknown>,
    /// One that it has.
    example: Option<String>,
    /// Whether lines say more than what was retrieved, or are a run's of ours, whose system may name what it keeps as it likes.
    has_more: bool,
}

#[derive(Debug)]
struct Unknown {
    id: String,
    place: String,
    bank_id: String,
}

impl Settled {
    fn add(&mut self, ids: &BankIds, line: &mut Line) {
        self.has_more |= line.ended.is_some() || line.is_answered();
        let Line { place, ended, retrieved: Some(retrieved), .. } = line else { return };
        if self.example.is_none() {
            self.example.clone_from(&ids.example);
        }
        for id in retrieved {
            self.all += 1;
            let found = ids.find(id, ended.is_some());
            let is_known = found.as_ref().is_some_and(|(_, is_whole)| *is_whole);
            if !is_known && self.first.as_ref().is_none_or(|first| order(place) < order(&first.place)) {
                self.first = Some(Unknown { id: id.clone(), place: place.clone(), bank_id: ids.bank_id.clone() });
            }
            self.known += usize::from(is_known);
            self.of_session += usize::from(found.is_some() && !is_known);
            if let Some((found, _)) = found {
                *id = found;
            }
        }
    }

    /// What a user should know of ids that the dataset does not have.
    ///
    /// # Errors
    /// Where it has none of them, and the file says nothing else: every recall would be a miss, whatever was retrieved.
    pub(super) fn say(&self) -> Result<Option<String>, ImportError> {
        let Some(Unknown { id, place, bank_id }) = &self.first else { return Ok(None) };
        let (id, bank_id) = (shown(id), shown(bank_id));
        let example = self.example.as_deref().map(shown).unwrap_or_default();
        if self.known + self.of_session == 0 && !self.has_more {
            let problem = format!(
                "retrieved id '{id}' names no session, turn or memory of bank '{bank_id}', and so does none of the {} retrieved ids of \
                 the file; an id of the dataset is '{example}'; where its texts have no ids of the dataset, leave the field out",
                self.all
            );
            return Err(ImportError::at(place, problem));
        }
        let of_session = match self.of_session {
            0 => String::new(),
            n => format!(", though of {n} of them the session is known"),
        };
        Ok(Some(format!(
            "{} of {} retrieved ids name no session, turn or memory of the dataset{of_session}, and are misses: the first is '{id}' \
             ({place}), one of the dataset is '{example}'",
            self.all - self.known,
            self.all
        )))
    }
}

/// Places by their number: line 9 stands before line 10.
fn order(place: &str) -> (&str, u64) {
    let (file, number) = place.rsplit_once(' ').unwrap_or((place, ""));
    (file, number.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::fields::Ended;

    /// The user's sessions s0, which is our S1, and S1, which is our S2.
    fn ids() -> BankIds {
        let given = [("s0", "S1"), ("s0:1", "S1:1"), ("S1", "S2"), ("S1:1", "S2:1")];
        BankIds {
            bank_id: "b1".to_owned(),
            ids: ["S1", "S1:1", "S2", "S2:1"].map(str::to_owned).into(),
            given: given.map(|(theirs, ours)| (theirs.to_owned(), ours.to_owned())).into(),
            example: Some("s0:1".to_owned()),
        }
    }

    fn line(place: &str, retrieved: &[&str], ended: Option<Ended>) -> Line {
        let retrieved = Some(retrieved.iter().map(|id| (*id).to_owned()).collect());
        Line { place: place.to_owned(), retrieved, ended, ..Line::default() }
    }

    #[test]
    fn ids_of_the_users_file_are_understood_before_those_of_the_bank() {
        let (mut settled, mut theirs) = (Settled::default(), line("line 1", &["s0:1", "S1", "S2:1", "s0:7"], None));
        settled.add(&ids(), &mut theirs);
        let expected = ["S1:1", "S2", "S2:1", "S1:7"].map(str::to_owned).to_vec();
        assert_eq!((theirs.retrieved, settled.known, settled.of_session), (Some(expected), 3, 1));
        let note = settled.say().expect("some are known").expect("one is not");
        assert!(note.starts_with("1 of 4 ") && note.contains("'s0:7' (line 1)"), "{note}");
        let mut ours = line("line 1", &["S1:1", "s0"], Some(Ended::Whole));
        settled.add(&ids(), &mut ours);
        let kept = ["S1:1", "s0"].map(str::to_owned).to_vec();
        assert_eq!(ours.retrieved, Some(kept), "a run of ours has ids of ours");
    }

    #[test]
    fn a_file_of_which_no_id_is_known_is_refused_with_the_first() {
        let mut settled = Settled::default();
        assert_eq!(settled.say(), Ok(None), "nothing was retrieved");
        for (place, id) in [("line 10", "y"), ("line 9", "x:1")] {
            settled.add(&ids(), &mut line(place, &[id], None));
        }
        let refused = settled.say().expect_err("is refused").to_string();
        assert!(refused.starts_with("line 9: retrieved id 'x:1'"), "{refused}");
        assert!(refused.contains("none of the 2 retrieved ids") && refused.contains("'s0:1'"), "{refused}");
        let ours = line("line 1", &["a-name-of-its-own"], Some(Ended::Whole));
        let answered = Line { answer: Some("tea".to_owned()), ..line("line 1", &["a-name-of-its-own"], None) };
        for mut more in [ours, answered] {
            let mut settled = Settled::default();
            settled.add(&ids(), &mut more);
            assert!(settled.say().is_ok_and(|note| note.is_some_and(|note| note.starts_with("1 of 1 "))));
        }
    }
}
