//! Homes that this program has made, or that the user has taken as their own. The usual home, `.bench`, is a part of the current
//! folder, and folders come from everywhere: what a store says about runs, and what a folder says about started systems, is
//! acted on only where it was written here. The list is kept as [`OwnList`]s are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    own::{OwnList, identity},
    private,
};

/// Name of the list.
const LIST: &str = "homes";
/// Homes that are remembered; the oldest are forgotten, and want a word again.
const MOST: usize = 2000;
/// Name of the store in its home.
const STORE: &str = "bench.db";
/// Folder of started systems in their home.
const SYSTEMS: &str = "systems";

/// A home as it was when it was noted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    home: String,
    folder: String,
    store: Option<String>,
}

impl Noted {
    /// A home as it is now, whichever way leads to it.
    fn from_home(home: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(home)?;
        let name = path.to_str().ok_or_else(|| io::Error::other(format!("{} is no text", path.display())))?;
        Ok(Self {
            home: name.to_owned(),
            folder: identity(&path).unwrap_or_default(),
            store: identity(&path.join(STORE)),
        })
    }
}

/// A home by its full path and the very folder behind it, for lists of what is trusted in it.
///
/// # Errors
/// When it is not there.
pub fn identity_of(home: &Path) -> io::Result<(String, String)> {
    let now = Noted::from_home(home)?;
    Ok((now.home, now.folder))
}

/// The store in a home.
#[must_use]
pub fn store_in(home: &Path) -> PathBuf {
    home.join(STORE)
}

/// Whether nothing in a home is acted on before a word: its store, or without one its folder of systems, was not made here.
#[must_use]
pub fn is_strange(home: &Path) -> bool {
    OwnList::named(LIST).map_or_else(|| holds_something(home), |list| is_strange_to(&list, home))
}

/// Whether a home holds anything that is acted on.
#[must_use]
pub fn holds_something(home: &Path) -> bool {
    [STORE, SYSTEMS].iter().any(|name| fs::symlink_metadata(home.join(name)).is_ok())
}

/// Whether there is nothing in a home to act on but a store without a byte: whoever made it was ended before it could be noted.
#[must_use]
pub fn is_just_begun(home: &Path) -> bool {
    let is_empty = fs::symlink_metadata(store_in(home)).is_ok_and(|store| store.is_file() && store.len() == 0);
    is_empty && fs::symlink_metadata(home.join(SYSTEMS)).is_err()
}

fn is_strange_to(list: &OwnList, home: &Path) -> bool {
    if !holds_something(home) {
        return false;
    }
    let Ok(now) = Noted::from_home(home) else { return true };
    let noted = list.lines().unwrap_or_default();
    let noted = noted.iter().filter_map(|line| serde_json::from_str::<Noted>(line).ok());
    let same = |noted: Noted| match &now.store {
        Some(_) => noted.store == now.store,
        None => noted.folder == now.folder,
    };
    !noted.filter(|noted| noted.home == now.home).any(same)
}

/// Notes that a home is this user's as it is now. One that is not there is made, and so is an empty file for its store when
/// `with_store`: before anything is in it, so that no end of the process comes between.
///
/// # Errors
/// What the disk says; when there is no place for the list.
pub fn note(home: &Path, with_store: bool) -> io::Result<()> {
    private::create_folder(home)?;
    if with_store {
        drop(private::append(&store_in(home))?);
    }
    let list = OwnList::named(LIST).ok_or_else(|| io::Error::other("this user has no home folder"))?;
    note_in(&list, home)
}

fn note_in(list: &OwnList, home: &Path) -> io::Result<()> {
    let noted = Noted::from_home(home)?;
    let line = serde_json::to_string(&noted)?;
    list.change(|lines| {
        lines.retain(|line| serde_json::from_str::<Noted>(line).is_ok_and(|old| old.home != noted.home));
        lines.drain(..lines.len().saturating_sub(MOST));
        lines.push(line);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_its_users_while_its_store_is_the_one_that_was_noted() {
        let own = tempfile::tempdir().expect("a folder");
        let list = OwnList::in_folder(own.path(), LIST);
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join(".bench");
        let strange = |home: &Path| is_strange_to(&list, home);
        assert!(!strange(&home), "nothing is there");
        fs::create_dir_all(home.join("datasets")).expect("is made");
        assert!(!strange(&home), "nothing in it is acted on");
        fs::write(store_in(&home), "").expect("is written");
        assert!(strange(&home) && is_just_begun(&home), "ended before it was noted");
        fs::remove_file(store_in(&home)).expect("is removed");
        fs::create_dir(home.join(SYSTEMS)).expect("is made");
        assert!(strange(&home), "somebody's systems");
        note_in(&list, &home).expect("is noted");
        assert!(!strange(&home));
        fs::write(store_in(&home), "theirs").expect("is written");
        assert!(strange(&home) && !is_just_begun(&home), "a store that came to a home");
        note_in(&list, &home).expect("is noted");
        assert!(!strange(&home));
        fs::write(store_in(&home), "more rows").expect("is written");
        assert!(!strange(&home), "what is written into it is written here");
        // another file in its place
        fs::write(home.join("new"), "theirs").expect("is written");
        fs::rename(home.join("new"), store_in(&home)).expect("is moved");
        assert!(strange(&home));
        note_in(&list, &home).expect("is noted");
        // the folder under another name, and another folder
        fs::rename(&home, folder.path().join("moved")).expect("is moved");
        assert!(strange(&folder.path().join("moved")));
        fs::create_dir(&home).expect("is made");
        fs::write(store_in(&home), "theirs").expect("is written");
        assert!(strange(&home));
    }

    #[test]
    fn many_homes_are_remembered_and_the_newest_stay() {
        let own = tempfile::tempdir().expect("a folder");
        let list = OwnList::in_folder(own.path(), LIST);
        let line = |n| format!("{{\"home\":\"/{n}\",\"folder\":\"1@1\",\"store\":null}}");
        list.change(|lines| lines.extend((0..3 * MOST).map(line))).expect("is written");
        let home = tempfile::tempdir().expect("a folder");
        fs::write(store_in(home.path()), "").expect("is written");
        note_in(&list, home.path()).expect("is noted");
        assert!(!is_strange_to(&list, home.path()));
        assert_eq!(list.lines().expect("is read").len(), MOST + 1);
    }
}
