//! Whose ids of a system's own are: facts name what they were made of by the server's ids, and `places` of the file says which items of
//! ours these are. In comes the response of that request, out comes what it tells ([`Paths::read`]); what a bank was told is kept, for
//! each recall rests on it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{path::Path, spec::PlacesSpec};
use crate::kept::Kept;

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

/// The system's ids at a path: texts, or a list of them.
pub(super) fn own_ids<'v>(made_of: &Path, element: &'v Value) -> Vec<&'v str> {
    let each = |value: &'v Value| -> Vec<&'v Value> {
        match value {
            Value::Array(list) => list.iter().collect(),
            one => vec![one],
        }
    };
    made_of.all(element).into_iter().flat_map(each).filter_map(Value::as_str).collect()
}

/// What was told of each bank, when it had so many entries.
pub(super) struct Places(Mutex<Kept<String, (u32, Arc<Known>)>>);

impl Default for Places {
    fn default() -> Self {
        Self(Mutex::new(Kept::new(KEPT_BYTES)))
    }
}

impl Places {
    /// What is known of a bank, and of how many of its entries.
    pub(super) fn get(&self, bank: &str) -> Option<(u32, Arc<Known>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&bank.to_owned()).cloned()
    }

    /// Keeps what a bank was told. Ids that were asked for and are nobody's stay so, and are not looked up with every recall.
    pub(super) fn keep(&self, bank: &str, entries: u32, mut told: Known, asked: &BTreeSet<String>) -> Arc<Known> {
        let before = self.get(bank).map(|(_, before)| before).unwrap_or_default();
        for id in before.keys().chain(asked) {
            let _ = told.entry(id.clone()).or_default();
        }
        let weight = |(id, of): (&String, &Option<String>)| id.len() + of.as_ref().map_or(0, String::len) + 64;
        let bytes: usize = told.iter().map(weight).sum();
        let told = Arc::new(told);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = kept.keep(bank.to_owned(), (entries, Arc::clone(&told)), bytes as u64);
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
        assert_eq!(places.get("b").map(|(entries, known)| (entries, known.len())), Some((6, 3)));
        assert!(places.get("c").is_none());
    }

    #[test]
    fn ids_are_a_text_or_a_list_of_texts() {
        let of = |value: Value| own_ids(&Path::new("of"), &value).join(" ");
        assert_eq!(
            [of(json!({"of": ["a", 1, "b"]})), of(json!({"of": "a"})), of(json!({"of": null}))],
            ["a b", "a", ""]
        );
    }
}
