//! Homes that this program has made, or that the user has taken as their own. The usual home, `.bench`, is a part of the current
//! folder, and folders come from everywhere: what a store says about runs, and what a folder says about started systems, is
//! acted on only where it was written here. The list is kept as [`OwnList`]s are.

use std::{
    env,
    fs::{self, DirEntry},
    io,
    os::unix::fs::MetadataExt as _,
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
/// Links that are remembered with a home.
const MOST_LINKS: usize = 1_000;
/// Folders in which others are made by names that whoever made a home can know before, and the levels of folders below them in which
/// that is so.
const NAMED_BEFORE: [(&str, u32); 4] = [("runs", 0), ("load", 0), ("banks", 0), ("datasets", 3)];

/// How names begin of what is made in a home itself; a store of another name ends in [`STORES`].
const OURS: [&str; 7] = ["banks", STORE, "comparisons", "datasets", "load", "runs", SYSTEMS];
/// What names of stores, of their locks and of the files that a database puts beside them have in common.
const STORES: &str = ".db";

/// A home as it was when it was noted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    home: String,
    folder: String,
    store: Option<String>,
    /// The link that led there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    /// Links in it that its user has allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkIn>,
}

/// A link in a home: where it lies in it, and where it leads.
type LinkIn = [String; 2];

impl Noted {
    /// A home as it is now, whichever way leads to it.
    fn from_home(home: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(home)?;
        let name = path.to_str().ok_or_else(|| io::Error::other(format!("{} is no text", path.display())))?;
        Ok(Self {
            home: name.to_owned(),
            folder: identity(&path).unwrap_or_default(),
            store: identity(&path.join(STORE)),
            link: link_to(home),
            links: Vec::new(),
        })
    }

    /// Whether both are one home, to which the same way leads.
    fn is_same_home(&self, other: &Self) -> bool {
        (&self.home, &self.link) == (&other.home, &other.link)
    }
}

/// The link that a home is, by its own full path: of one home several folders may have one.
fn link_to(home: &Path) -> Option<String> {
    let path = || std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    is_link(home).then(|| format!("{} {}", identity(home).unwrap_or_default(), path().display()))
}

/// Whether a home is a link, and not in the user's own folder, where nobody else makes any.
#[must_use]
pub fn is_link(home: &Path) -> bool {
    home.is_symlink() && !is_in_own_folder(home)
}

fn is_in_own_folder(home: &Path) -> bool {
    let above = home.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let own = env::home_dir().and_then(|own| own.canonicalize().ok());
    own.is_some() && own == above.canonicalize().ok()
}

/// Links in a home by which something would be read, written or removed elsewhere, but for those that its user has allowed: whatever
/// lies in it, and in the folders of what it holds what is no plain file, which is replaced and not written into. A link to nothing
/// whose name nobody here uses is none, such as the mark of an editor. Memory systems are looked after where they are started.
///
/// # Errors
/// What the disk says of a folder that cannot be looked through.
pub fn links_in(home: &Path) -> io::Result<Vec<PathBuf>> {
    links_strange_to(OwnList::named(LIST).as_ref(), home)
}

fn links_strange_to(list: Option<&OwnList>, home: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = all_links_in(home)?;
    if !found.is_empty()
        && let (Some(list), Ok(now)) = (list, Noted::from_home(home))
    {
        let allowed = allowed(list, &now);
        found.retain(|link| !link_in(home, link).is_some_and(|link| allowed.contains(&link)));
    }
    Ok(found)
}

fn all_links_in(home: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if is_in_own_folder(home) {
        return Ok(found);
    }
    let is_unused = |entry: &DirEntry| !entry.path().exists() && !is_ours(entry);
    let links = entries(home)?.into_iter().filter(is_link_there);
    found.extend(links.filter(|entry| !is_unused(entry)).map(|entry| entry.path()));
    for (name, levels) in NAMED_BEFORE {
        let folder = home.join(name);
        if !folder.is_symlink() {
            add_links(&folder, levels, &mut found)?;
        }
    }
    found.sort();
    Ok(found)
}

/// Whether an entry is a link; it may be gone again.
fn is_link_there(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    OURS.iter().any(|ours| name.starts_with(ours)) || name.contains(STORES)
}

fn add_links(folder: &Path, levels: u32, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in entries(folder)? {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() && !path.is_file() => found.push(path),
            Ok(kind) if kind.is_dir() && levels > 0 => add_links(&path, levels - 1, found)?,
            // it may be gone again
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// A link as it is noted; `None` for one whose names are no text.
fn link_in(home: &Path, link: &Path) -> Option<LinkIn> {
    let place = link.strip_prefix(home).ok()?.to_str()?.to_owned();
    Some([place, link.read_link().ok()?.to_str()?.to_owned()])
}

/// Links that were allowed in a home, which is still the very folder.
fn allowed(list: &OwnList, now: &Noted) -> Vec<LinkIn> {
    let lines = list.lines().unwrap_or_default();
    let noted = lines.iter().filter_map(|line| serde_json::from_str::<Noted>(line).ok());
    noted.filter(|noted| noted.is_same_home(now) && noted.folder == now.folder).flat_map(|noted| noted.links).collect()
}

/// What lies in a folder; nothing in one that is not there, and in one of somebody else that can neither be read nor written.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let may_be_written = || {
        let own = rustix::process::geteuid().as_raw();
        fs::metadata(folder).is_ok_and(|about| about.uid() == own || about.mode() & 0o022 != 0)
    };
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Vec::new()),
            io::ErrorKind::PermissionDenied if !may_be_written() => Ok(Vec::new()),
            _ => Err(error),
        },
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

/// Whether nothing in a home is acted on before a word: its store, or without one its folder of systems, was not made here; or it is a
/// link, which nobody has taken as their own.
#[must_use]
pub fn is_strange(home: &Path) -> bool {
    OwnList::named(LIST).map_or_else(|| holds_something(home) || is_link(home), |list| is_strange_to(&list, home))
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
    is_empty && !is_link(home) && fs::symlink_metadata(home.join(SYSTEMS)).is_err()
}

fn is_strange_to(list: &OwnList, home: &Path) -> bool {
    if !holds_something(home) && !is_link(home) {
        return false;
    }
    let Ok(now) = Noted::from_home(home) else { return true };
    let noted = list.lines().unwrap_or_default();
    let noted = noted.iter().filter_map(|line| serde_json::from_str::<Noted>(line).ok());
    let same = |noted: Noted| match &now.store {
        Some(_) => noted.store == now.store,
        None => noted.folder == now.folder,
    };
    !noted.filter(|noted| noted.is_same_home(&now)).any(same)
}

/// Notes that a home is this user's as it is now. One that is not there is made, and so is an empty file for its store when
/// `with_store`: before anything is in it, so that no end of the process comes between. Links that were allowed in it stay so, and no
/// others are.
///
/// # Errors
/// What the disk says; when there is no place for the list.
pub fn note(home: &Path, with_store: bool) -> io::Result<()> {
    private::create_folder(home)?;
    if with_store {
        drop(private::append(&store_in(home))?);
    }
    note_in(&own_list()?, home)
}

/// Notes that a home is this user's as it is now, with the links in it: each is allowed as long as it leads where it does now.
///
/// # Errors
/// As [`note`]; for a home with more links than are remembered.
pub fn note_with_links(home: &Path) -> io::Result<()> {
    private::create_folder(home)?;
    note_with_links_in(&own_list()?, home)
}

fn own_list() -> io::Result<OwnList> {
    OwnList::named(LIST).ok_or_else(|| io::Error::other("this user has no home folder"))
}

fn note_in(list: &OwnList, home: &Path) -> io::Result<()> {
    let now = Noted::from_home(home)?;
    let links = allowed(list, &now);
    put(list, &Noted { links, ..now })
}

fn note_with_links_in(list: &OwnList, home: &Path) -> io::Result<()> {
    let links: Vec<LinkIn> = all_links_in(home)?.iter().filter_map(|link| link_in(home, link)).collect();
    if links.len() > MOST_LINKS {
        return Err(io::Error::other(format!("it has more than {MOST_LINKS} links")));
    }
    put(list, &Noted { links, ..Noted::from_home(home)? })
}

fn put(list: &OwnList, noted: &Noted) -> io::Result<()> {
    let line = serde_json::to_string(noted)?;
    list.change(|lines| {
        lines.retain(|line| serde_json::from_str::<Noted>(line).is_ok_and(|old| !old.is_same_home(noted)));
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
    fn a_link_to_a_home_wants_a_word_of_its_own() {
        use std::os::unix::fs::symlink;
        let own = tempfile::tempdir().expect("a folder");
        let list = OwnList::in_folder(own.path(), LIST);
        let folder = tempfile::tempdir().expect("a folder");
        let (home, link) = (folder.path().join("mine"), folder.path().join(".bench"));
        fs::create_dir(&home).expect("is made");
        symlink(&home, &link).expect("is linked");
        let strange = |home: &Path| is_strange_to(&list, home);
        assert!(strange(&link) && !strange(&home), "nothing is in it, and it leads elsewhere");
        fs::write(store_in(&home), "mine").expect("is written");
        note_in(&list, &home).expect("is noted");
        assert!(strange(&link) && !strange(&home), "the word is the home's, whoever links to it");
        note_in(&list, &link).expect("is noted");
        assert!(!strange(&link) && !strange(&home), "each has its own");
        fs::remove_file(&link).expect("is removed");
        symlink(folder.path(), &link).expect("is linked");
        assert!(strange(&link), "it leads to something else");
    }

    #[test]
    fn links_are_found_wherever_something_would_be_written_by_them() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join(".bench");
        let links = |home: &Path| {
            let found = all_links_in(home).expect("are looked for");
            let inside = |path: &PathBuf| path.strip_prefix(home).expect("is below").display().to_string();
            found.iter().map(inside).collect::<Vec<_>>()
        };
        assert!(links(&home).is_empty(), "nothing is there");
        for made in ["runs/a", "banks/mine/files", "systems/a/mine/data", "datasets/locomo"] {
            fs::create_dir_all(home.join(made)).expect("is made");
        }
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").expect("is written");
        // a file of a run takes the place of a link, and what a memory system stores is its own
        for fine in ["runs/a/report.md", "runs/index.html", "systems/a/mine/data/link", "datasets/locomo/locomo10.json"]
        {
            symlink(&victim, home.join(fine)).expect("is linked");
        }
        // an editor's mark says who writes a file, and leads nowhere
        symlink("me@here.1:2", home.join(".#notes")).expect("is linked");
        assert!(links(&home).is_empty(), "{:?}", links(&home));
        let wrong = ["banks/.downloads", "bench.db.a.lock", "datasets/beam", "datasets/locomo/parts", "load", "runs/b"];
        for name in wrong {
            let to = if name.starts_with("bench.db") { victim.as_path() } else { folder.path() };
            symlink(to, home.join(name)).expect("is linked");
        }
        symlink("/nowhere", home.join("runs/c")).expect("is linked");
        assert_eq!(links(&home), [&wrong[..], &["runs/c"]].concat());
        for (name, to) in [("systems", "/nowhere"), ("other.db-wal", "/nowhere"), ("unknown", "/")] {
            fs::remove_dir_all(home.join(name)).ok();
            symlink(to, home.join(name)).expect("is linked");
            assert!(links(&home).contains(&name.to_owned()), "{name}: {:?}", links(&home));
        }
    }

    #[test]
    fn a_link_that_was_allowed_is_so_while_it_and_its_home_are_the_same() {
        use std::os::unix::fs::symlink;
        let own = tempfile::tempdir().expect("a folder");
        let list = OwnList::in_folder(own.path(), LIST);
        let folder = tempfile::tempdir().expect("a folder");
        let (home, disk) = (folder.path().join(".bench"), folder.path().join("disk"));
        for made in [&home, &disk] {
            fs::create_dir(made).expect("is made");
        }
        let datasets = home.join("datasets");
        symlink(&disk, &datasets).expect("is linked");
        let strange = || links_strange_to(Some(&list), &home).expect("are looked for");
        note_in(&list, &home).expect("is noted");
        assert_eq!(strange(), std::slice::from_ref(&datasets), "the word was for the home");
        note_with_links_in(&list, &home).expect("is noted");
        assert!(strange().is_empty());
        note_in(&list, &home).expect("is noted");
        assert!(strange().is_empty(), "it stays allowed");
        symlink(&disk, home.join("runs")).expect("is linked");
        assert_eq!(strange(), [home.join("runs")], "another one");
        fs::remove_file(home.join("runs")).and_then(|()| fs::remove_file(&datasets)).expect("are removed");
        symlink(folder.path(), &datasets).expect("is linked");
        assert_eq!(strange(), std::slice::from_ref(&datasets), "it leads elsewhere");
        fs::remove_file(&datasets).and_then(|()| symlink(&disk, &datasets)).expect("is linked");
        assert!(strange().is_empty());
        fs::rename(&home, folder.path().join("moved")).and_then(|()| fs::create_dir(&home)).expect("is another");
        symlink(&disk, &datasets).expect("is linked");
        assert_eq!(strange(), [datasets], "another home");
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
