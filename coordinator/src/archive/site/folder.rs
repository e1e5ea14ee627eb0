//! The folder of a site: ours when it is empty or holds `site.json` of an earlier time; anything else stays as it is.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use bench_proto::text;
use bench_report::site::{SITE_SCHEMA, Site, names};
use bench_settings::private;
use serde::Deserialize;

use crate::{exit::CliError, results};

/// Longest `site.json` that is looked at, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// A folder that may be written into.
pub(super) struct SiteFolder {
    root: PathBuf,
}

/// What a site says of itself.
#[derive(Deserialize)]
struct Says {
    schema: String,
}

impl SiteFolder {
    /// Looks whether a folder is ours, and makes nothing.
    ///
    /// # Errors
    /// Exit 2 for a file, and for a folder with something else in it.
    pub(super) fn look_at(root: &Path) -> Result<Self, CliError> {
        let refused = |why: String| CliError::usage(format!("{}: {why}; name another folder", root.display()));
        let ours = Self { root: root.to_owned() };
        let mut inside = match fs::read_dir(root) {
            Ok(inside) => inside,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(ours),
            Err(error) => return Err(refused(format!("is no folder that can be read ({error})")).because(error)),
        };
        if inside.next().is_some() && !is_site(&root.join(names::DOCUMENT)) {
            return Err(refused(format!(
                "holds other files and no {} of a site, nothing is written over",
                names::DOCUMENT
            )));
        }
        for below in names::FOLDERS.map(|name| root.join(name)) {
            // a link would lead out of the folder
            if below.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
                return Err(refused(format!("{} is no folder", below.display())));
            }
        }
        Ok(ours)
    }

    /// Makes the folders, and says first that they are a site: one that is cut here is renewed the next time.
    ///
    /// # Errors
    /// Exit 2 where nothing can be written.
    pub(super) fn begin(&self) -> Result<Pages, CliError> {
        let wrong = |e: std::io::Error| {
            CliError::usage(format!("{} cannot be written: {e}; name another folder", self.root.display())).because(e)
        };
        private::create_folder(&self.root).map_err(wrong)?;
        let mode = fs::metadata(&self.root).map_err(wrong)?.permissions().mode() & 0o777;
        for name in names::FOLDERS {
            let below = self.root.join(name);
            if !below.exists() {
                private::create_folder(&below).map_err(wrong)?;
                fs::set_permissions(&below, Permissions::from_mode(mode)).map_err(wrong)?;
            }
        }
        let mut pages = Pages { root: self.root.clone(), mode, written: BTreeSet::new() };
        if !pages.root.join(names::DOCUMENT).exists() {
            pages.document(&Site::new(Vec::new(), Vec::new()))?;
        }
        Ok(pages)
    }
}

/// Whether a file says that it is of a site.
fn is_site(document: &Path) -> bool {
    let mut text = Vec::new();
    let file = fs::File::open(document).ok().filter(|_| document.symlink_metadata().is_ok_and(|about| about.is_file()));
    let read = file.map(|file| file.take(MOST_BYTES).read_to_end(&mut text));
    let says = serde_json::from_slice::<Says>(&text);
    matches!(read, Some(Ok(_))) && says.is_ok_and(|says| says.schema == SITE_SCHEMA)
}

/// Pages that are being written: as open as the folder that holds them.
pub(super) struct Pages {
    root: PathBuf,
    mode: u32,
    written: BTreeSet<PathBuf>,
}

impl Pages {
    /// Writes a page; it appears whole or not at all.
    ///
    /// # Errors
    /// Exit 4 naming the file.
    pub(super) fn write(&mut self, page: &str, content: &str) -> Result<(), CliError> {
        let path = self.root.join(page);
        results::replace(&path, |out| std::io::Write::write_all(out, content.as_bytes()))
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(self.mode & 0o666)))
            .map_err(|e| unwritable(&path, e))?;
        self.written.insert(path);
        Ok(())
    }

    fn document(&mut self, site: &Site) -> Result<(), CliError> {
        let json = serde_json::to_string_pretty(site).map_err(CliError::infrastructure_of)?;
        self.write(names::DOCUMENT, &format!("{}\n", text::json(&json)))
    }

    /// Writes the document, and removes the pages of an earlier time that are no longer made.
    ///
    /// # Errors
    /// Exit 4 naming the file.
    pub(super) fn finish(mut self, site: &Site) -> Result<(), CliError> {
        self.document(site)?;
        for below in names::FOLDERS.map(|name| self.root.join(name)) {
            for there in fs::read_dir(&below).map_err(|e| unwritable(&below, e))? {
                let path = there.map_err(|e| unwritable(&below, e))?.path();
                let is_page = path.extension().is_some_and(|ending| ending == "html");
                if is_page && !self.written.contains(&path) {
                    fs::remove_file(&path).map_err(|e| unwritable(&path, e))?;
                }
            }
        }
        Ok(())
    }
}

fn unwritable(path: &Path, error: std::io::Error) -> CliError {
    CliError::infrastructure(format!(
        "{} cannot be written: {error}; the same command makes all pages again",
        path.display()
    ))
    .because(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("is there").permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_with_anything_else_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let looked =
            |what: &str| SiteFolder::look_at(&folder.path().join(what)).map(drop).map_err(|e| (e.exit, e.message));
        assert_eq!((looked(""), looked("new/one")), (Ok(()), Ok(())), "an empty one, and one that is not there");
        assert!(!folder.path().join("new").exists(), "looking makes nothing");
        for content in ["{\"schema\": \"bench-report\"}", "{", ""] {
            fs::write(folder.path().join("site.json"), content).expect("is written");
            let (exit, why) = looked("").expect_err("is somebody else's");
            assert!(exit == Exit::Usage && why.contains("nothing is written over"), "{content}: {why}");
        }
        assert_eq!(looked("site.json").expect_err("is a file").0, Exit::Usage);
        fs::write(folder.path().join("site.json"), "{\"schema\": \"bench-site\", \"more\": 1}").expect("is written");
        assert_eq!(looked(""), Ok(()));
        std::os::unix::fs::symlink("/tmp", folder.path().join("pairs")).expect("is made");
        assert!(looked("").expect_err("leads elsewhere").1.contains("pairs is no folder"));
    }

    #[test]
    fn a_second_time_renews_what_is_ours_and_pages_are_as_open_as_their_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("site");
        let site = Site::new(Vec::new(), Vec::new());
        let begin = || SiteFolder::look_at(&root).expect("is ours").begin().expect("is made");
        let mut pages = begin();
        pages.write("runs/old.html", "old").expect("is written");
        assert!(root.join("site.json").exists(), "it is known as ours before it is whole");
        pages.finish(&site).expect("ends");
        assert_eq!((mode(&root), mode(&root.join("runs/old.html"))), (0o700, 0o600));
        fs::set_permissions(&root, Permissions::from_mode(0o755)).expect("is opened");
        fs::write(root.join("CNAME"), "example.org").expect("is written");
        let mut pages = begin();
        pages.write("runs/new.html", "new").expect("is written");
        pages.finish(&site).expect("ends");
        assert!(!root.join("runs/old.html").exists() && root.join("CNAME").exists());
        assert_eq!(mode(&root.join("runs/new.html")), 0o644);
    }
}
