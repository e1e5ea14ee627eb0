//! Whose ids of a system's own are: facts name what they were made of by the server's ids, and `places` of the file says which items of
//! ours these are. In comes the response of that request, out comes what it tells ([`Paths::read`]); what a bank was told is kept, for
//! each recall rests on it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    path::{Path, scalar},
    spec::PlacesSpec,
};
use crate::kept::Kept;

/// The detail of a hit that has what it was made of besides the first.
pub(super) const MADE_OF: &str = "made_of";
/// Bytes of what is kept: that of the banks that were asked last.
const KEPT_BYTES: u64 = 32 << 20;

/// Our ids by those of the system; none where it was asked and did not say.
pub(super) type Known = HashMap<String, Option<String>>;

/// Where the response says it, compiled.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    list: Path,
    id: Path,
    is: Path,
}

impl Paths {
    pub(super) fn new(spec: &PlacesSpec) -> Self {
        Self { list: Path::new(&spec.list), id: Path::new(&spec.id), is: Path::new(&spec.is) }
    }

    /// What a response tells. An element without an id of ours is nobody's.
    ///
    /// # Errors
    /// The list is not there.
    pub(super) fn read(&self, value: &Value) -> Result<Known, String> {
        let list = self.list.list(value)?.ok_or_else(|| self.list.absent("", value))?;
        Ok(list.into_iter().filter_map(|element| Some((self.id.string(element)?, self.is.string(element)))).collect())
    }
}

/// The system's ids at a path: one, or a list of them; texts or numbers, as `places` reads them.
pub(super) fn own_ids(made_of: &Path, element: &Value) -> Vec<String> {
    let ids = |value: &Value| -> Vec<String> {
        match value {
            Value::Array(list) => list.iter().filter_map(scalar).collect(),
            one => scalar(one).into_iter().collect(),
        }
    };
    made_of.all(element).into_iter().flat_map(ids).collect()
}

/// Whose turn it is to look a bank up.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// What was told of each bank.
pub(super) struct Places {
    /// By their names, each when it had so many entries.
    kept: Mutex<Kept<String, (u32, Arc<Known>)>>,
    /// Banks that are being looked up, or waited for.
    turns: Mutex<HashMap<String, Turn>>,
}

impl Default for Places {
    fn default() -> Self {
        Self { kept: Mutex::new(Kept::new(KEPT_BYTES)), turns: Mutex::default() }
    }
}

impl Places {
    /// What is known of a bank, where it has all ids that are asked for and was told of so many entries at least.
    pub(super) fn all_of(&self, bank: &str, asked: &BTreeSet<String>, at_least: u32) -> Option<Arc<Known>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, known) = kept.get(&bank.to_owned())?;
        let is_enough = *of >= at_least && asked.iter().all(|id| known.contains_key(id));
        is_enough.then(|| Arc::clone(known))
    }

    /// The turn of a bank: who holds it looks the bank up, and whoever waits for it finds what came of that.
    pub(super) fn turn(&self, bank: &str) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(bank.to_owned()).or_default())
    }

    /// Keeps what a bank was told. Ids that were asked for and are nobody's stay so, and are not looked up with every recall.
    pub(super) fn keep(&self, bank: &str, entries: u32, mut told: Known, asked: &BTreeSet<String>) -> Arc<Known> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, before) = kept.get(&bank.to_owned()).cloned().unwrap_or_default();
        for id in before.keys().chain(asked) {
            let _ = told.entry(id.clone()).or_default();
        }
        let weight = |(id, of): (&String, &Option<String>)| id.len() + of.as_ref().map_or(0, String::len) + 64;
        let bytes: usize = told.iter().map(weight).sum();
        let told = Arc::new(told);
        let gone = kept.keep(bank.to_owned(), (entries.max(of), Arc::clone(&told)), bytes as u64);
        // freed when the lock is gone
        drop(kept);
        drop(gone);
        told
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_told_is_kept_and_what_is_nobodys_is_not_asked_for_again() {
        let spec: PlacesSpec =
            serde_norway::from_str("{call: {request: GET /all}, list: episodes, id: uuid, is: name}").expect("is YAML");
        let paths = Paths::new(&spec);
        let told = |value: Value| paths.read(&value).expect("is told");
        let first = told(json!({"episodes": [{"uuid": "e1", "name": "D1:1"}, {"uuid": "e2"}, {"name": "D1:3"}]}));
        assert_eq!(first.len(), 2);
        assert!(paths.read(&json!({"facts": []})).expect_err("no list").contains("field 'episodes' is missing"));

        let places = Places::default();
        let known = places.keep("b", 4, first, &BTreeSet::from(["gone".to_owned()]));
        assert_eq!((known.get("e1"), known.get("gone")), (Some(&Some("D1:1".to_owned())), Some(&None)));
        let known = places.keep("b", 6, told(json!({"episodes": [{"uuid": "e2", "name": "D1:2"}]})), &BTreeSet::new());
        assert_eq!((known.get("e2"), known.get("gone")), (Some(&Some("D1:2".to_owned())), Some(&None)));
        let nothing = BTreeSet::new();
        let all_of = |bank: &str, asked: &BTreeSet<String>, at_least| {
            places.all_of(bank, asked, at_least).map(|known| known.len())
        };
        assert_eq!(
            [all_of("b", &nothing, 6), all_of("b", &nothing, 7), all_of("c", &nothing, 0)],
            [Some(3), None, None]
        );
        // a question of fewer entries says nothing of those that came since
        let more = BTreeSet::from(["e9".to_owned()]);
        assert_eq!(all_of("b", &more, 0), None);
        let known = places.keep("b", 2, told(json!({"episodes": []})), &more);
        assert_eq!((known.get("e9"), all_of("b", &more, 6)), (Some(&None), Some(4)));
    }

    #[test]
    fn a_turn_is_one_for_all_who_want_it_and_gone_when_nobody_does() {
        let places = Places::default();
        let (mine, yours) = (places.turn("b"), places.turn("b"));
        assert!(Arc::ptr_eq(&mine, &yours));
        let held = mine.try_lock().expect("is free");
        assert!(yours.try_lock().is_err());
        assert!(places.turn("c").try_lock().is_ok(), "another bank is not waited for");
        drop(held);
        drop((mine, yours));
        let _other = places.turn("d");
        assert_eq!(places.turns.lock().expect("is free").len(), 1);
    }

    #[test]
    fn ids_are_one_or_a_list_of_them_and_numbers_are_read_as_places_reads_them() {
        let of = |value: Value| own_ids(&Path::new("of"), &value).join(" ");
        assert_eq!(
            [of(json!({"of": ["a", 1, "b", null, {}]})), of(json!({"of": 17})), of(json!({"of": null}))],
            ["a 1 b", "17", ""]
        );
        let spec: PlacesSpec =
            serde_norway::from_str("{call: {request: GET /all}, list: '', id: n, is: name}").expect("is YAML");
        let told = Paths::new(&spec).read(&json!([{"n": 17, "name": "D1:1"}])).expect("is told");
        assert_eq!(told.get(&of(json!({"of": 17}))), Some(&Some("D1:1".to_owned())));
    }
}
