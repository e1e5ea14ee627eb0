//! Whether the home that verbs act on is this user's own. The usual one, `.bench`, is a part of the current folder, and folders come
//! from everywhere: a store that was not made here says what is asked, what runs and what may be spent only after a word, and a link
//! leads to no other folder of the user's.

use std::{
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};

use bench_settings::{Origin, homes};
use bench_store::Access;

use super::App;
#[cfg(feature = "archive")]
use crate::cli::ArchiveVerb;
use crate::{
    cli::{BanksVerb, SystemsVerb, Verb},
    exit::CliError,
    out,
};

/// Whether a verb runs, spends or removes by what a store or a home says.
pub(crate) fn acts(verb: &Verb) -> bool {
    match verb {
        Verb::Submit(args) => !args.dry_run,
        Verb::JudgeAudit(args) => !args.dry_run,
        Verb::Load(args) => args.system.is_some(),
        Verb::Resume(_)
        | Verb::Retry(_)
        | Verb::Gc(_)
        | Verb::Delete(_)
        // imported banks are files of this home, and nobody is asked
        | Verb::Banks(BanksVerb::Remove { imported: false, .. } | BanksVerb::Export { .. })
        | Verb::Systems(SystemsVerb::Check { .. } | SystemsVerb::Try { .. }) => true,
        _ => false,
    }
}

/// Whether a verb is refused in a home with links: all that come here but those that use nothing of it, and those that look by
/// themselves: what completes words says nothing, and `doctor` tells it among what it finds.
pub(crate) fn uses(verb: &Verb) -> bool {
    !matches!(verb, Verb::Config(_) | Verb::Models(_) | Verb::Prices(_) | Verb::Complete(_) | Verb::Doctor(_))
}

/// What a verb opens the store for: who only looks, or goes on with what is there, makes none.
pub(super) fn access(verb: &Verb) -> Access {
    match verb {
        Verb::Submit(args) if args.dry_run => Access::Read,
        // of a run that is there, or of none
        Verb::Submit(args) if args.fork.is_some() => Access::Change,
        Verb::Submit(_) | Verb::JudgeAudit(_) | Verb::Import(_) | Verb::Migrate(_) => Access::Make,
        #[cfg(feature = "cluster")]
        Verb::Serve(_) => Access::Make,
        #[cfg(feature = "archive")]
        Verb::Archive(ArchiveVerb::Fetch { restore: true, .. }) => Access::Make,
        #[cfg(feature = "archive")]
        Verb::Archive(ArchiveVerb::Push { .. }) => Access::Change,
        Verb::Resume(_) | Verb::Retry(_) | Verb::Pause(_) | Verb::Cancel(_) => Access::Change,
        Verb::Rename(_) | Verb::Tag(_) | Verb::Gc(_) | Verb::Delete(_) | Verb::Restore => Access::Change,
        Verb::Banks(BanksVerb::Remove { imported: false, .. }) => Access::Change,
        _ => Access::Read,
    }
}

/// How long another process may take from the making of a home to the note that it is this user's own.
const NOTED_WITHIN: Duration = Duration::from_secs(1);

/// Links that a message names.
const TOLD: usize = 3;

impl App {
    /// Whether nobody said a setting: a flag or a variable is a person's word.
    fn is_unsaid(&self, key: &str) -> bool {
        self.settings.entry(key).is_none_or(|entry| !matches!(entry.origin, Origin::Env(_) | Origin::Flag(_)))
    }

    /// Whether the home lies in the current folder because nobody said otherwise, wherever the store is.
    fn home_follows_the_folder(&self) -> bool {
        self.settings.home.is_relative() && self.is_unsaid("home")
    }

    /// Whether home and store lie in the current folder because nobody said otherwise.
    fn follows_the_folder(&self) -> bool {
        self.home_follows_the_folder() && self.is_unsaid("store.url") && self.store_is_in_home()
    }

    /// Whether the home of the current folder is a link that nobody has taken as their own.
    fn home_is_a_strange_link(&self) -> bool {
        let home = &self.settings.home;
        self.home_follows_the_folder() && homes::is_link(home) && homes::is_strange(home)
    }

    fn store_is_in_home(&self) -> bool {
        self.store_file().is_some_and(|file| file == homes::store_in(&self.settings.home))
    }

    /// Whether a home of the current folder, and what it holds, came from elsewhere.
    pub(crate) fn home_is_strange(&self) -> bool {
        self.home_is_a_strange_link() || (self.follows_the_folder() && homes::is_strange(&self.settings.home))
    }

    /// Refuses a home of the current folder that leads elsewhere, by itself or by what lies in it: whoever made the folder decides where
    /// that is, and results, stores and locks would be written there.
    ///
    /// # Errors
    /// Exit 2 with the links, and the word.
    pub(crate) fn check_links(&self) -> Result<(), CliError> {
        let home = &self.settings.home;
        if self.home_is_a_strange_link() {
            return Err(CliError::usage(format!(
                "{0} leads to {1}, by a link that may have come with this folder: nothing is read or written there. If it is yours, \
                 `bench-coord config trust` takes it as your own, and BENCH_HOME={0} uses it this once",
                home.display(),
                home.read_link().unwrap_or_default().display()
            )));
        }
        let links = self.links_in_home()?;
        if links.is_empty() { Ok(()) } else { Err(self.has_links(&links)) }
    }

    /// Links in a home that came with the current folder, which nobody has allowed.
    ///
    /// # Errors
    /// Exit 2 for a home that cannot be looked through.
    pub(crate) fn links_in_home(&self) -> Result<Vec<PathBuf>, CliError> {
        let home = &self.settings.home;
        if !self.home_follows_the_folder() {
            return Ok(Vec::new());
        }
        homes::links_in(home).map_err(|error| {
            CliError::usage(format!(
                "{} cannot be looked through: {error}; set BENCH_HOME to a folder of your own",
                home.display()
            ))
            .because(error)
        })
    }

    /// What is said of links in a home that came with the current folder.
    fn has_links(&self, links: &[PathBuf]) -> CliError {
        let home = &self.settings.home;
        let mut named = links.iter().take(TOLD).map(|link| leads(link)).collect::<Vec<_>>().join(", ");
        if let Some(more) = links.len().checked_sub(TOLD).filter(|more| *more > 0) {
            named.push_str(&format!(" and so do {more} more"));
        }
        let datasets = match links.iter().any(|link| link.starts_with(home.join("datasets"))) {
            true => "; datasets that lie elsewhere are named by datasets_dir in a settings file, or BENCH_DATASETS_DIR",
            false => "",
        };
        CliError::usage(format!(
            "{named}: a link may have come with this folder, and nothing is written or removed by one. Remove it; if it is yours, \
             `bench-coord config trust` allows it until it leads elsewhere, and BENCH_HOME={} says so this once{datasets}",
            home.display()
        ))
    }

    /// Refuses to act on a home that came with the current folder.
    ///
    /// # Errors
    /// Exit 2 with what to look at, and the word.
    pub(crate) async fn check_home(&self) -> Result<(), CliError> {
        let began = tokio::time::Instant::now();
        while self.home_is_strange() {
            // it may be that of a verb that was started at this very moment, or one that was killed before it could note it
            if !homes::is_just_begun(&self.settings.home) {
                return Err(self.strange());
            }
            if began.elapsed() > NOTED_WITHIN {
                return self.trust_home();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// What is said of a home that came with the current folder.
    fn strange(&self) -> CliError {
        let home = self.settings.home.display();
        CliError::usage(format!(
            "{home} of this folder was not made here: who made it decides what its runs ask, start and spend. `bench-coord list` \
             shows them; then `bench-coord config trust` takes it as your own, and BENCH_HOME={home} uses it this once"
        ))
    }

    /// Notes that a home in the current folder is this user's, before anything is in it.
    pub(crate) fn begin_home(&self, with_store: bool) {
        let home = &self.settings.home;
        let elsewhere = home.is_absolute() || (with_store && !self.store_is_in_home());
        // what is in it already is not made one's own by what is added
        let begun = if with_store {
            homes::store_in(home).symlink_metadata().is_ok() || homes::is_strange(home)
        } else {
            homes::holds_something(home)
        };
        if elsewhere || begun {
            return;
        }
        let is_new = !home.exists();
        let noted = homes::note(home, with_store);
        if is_new && home.exists() {
            self.home_is_new.store(true, Ordering::SeqCst);
        }
        // what cannot be made is said by who needs it
        if let Err(error) = noted
            && home.exists()
            && self.follows_the_folder()
        {
            out::note(&format!(
                "that {0} is yours cannot be noted: {error}; verbs that go on with its runs will ask for BENCH_HOME={0}",
                home.display()
            ));
        }
    }

    /// Takes the home of the current folder as this user's, as it is now; not the links in it.
    ///
    /// # Errors
    /// Exit 2 when that cannot be noted.
    fn trust_home(&self) -> Result<(), CliError> {
        homes::note(&self.settings.home, false).map_err(|error| self.unnoted(error))
    }

    /// Takes the home of the current folder as this user's, with the links in it, each until it leads elsewhere.
    ///
    /// # Errors
    /// Exit 2 when that cannot be noted.
    pub(crate) fn trust_home_and_links(&self) -> Result<(), CliError> {
        homes::note_with_links(&self.settings.home).map_err(|error| self.unnoted(error))
    }

    fn unnoted(&self, error: std::io::Error) -> CliError {
        let said =
            format!("that {0} is yours cannot be noted: {error}; BENCH_HOME={0} says it", self.settings.home.display());
        CliError::usage(said).because(error)
    }
}

/// A link, and where it leads.
pub(crate) fn leads(link: &Path) -> String {
    format!("{} leads to {}", link.display(), link.read_link().unwrap_or_default().display())
}
