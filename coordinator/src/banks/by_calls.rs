//! Banks that a server hands on and takes in by calls of its own (`export` and `import` of its adapter), where nobody can copy its
//! folder: each is a file, of which nobody but such a server knows what it says.

use std::path::Path;

use bench_models::backoff::BackoffSettings;
use bench_proto::{
    banks_archive::{ArchivedBank, BanksManifest, EXPORTED, FILES},
    failure::{Failure, FailureClass},
};
use bench_systems::{BankRef, MemorySystem};

use super::imported::{ImportedBanks, folder};
use crate::exit::CliError;

/// Most bytes that are taken of one bank.
const MOST: u64 = 16 << 30;
/// Tries of a call before its failure is told.
const TRIES: u32 = 4;
/// Code of the failure of a call that took longer than it may: once more it would take as long.
const TOO_SLOW: &str = "system_timeout";

/// Whether a server has handed on what an archive holds.
pub(crate) fn are_in(manifest: &BanksManifest) -> bool {
    let below = format!("{EXPORTED}/");
    manifest.files.iter().any(|file| file.name.starts_with(&below))
}

/// The memory system that filled an archive, where it is not the one of this name and version.
pub(crate) fn other_filler(manifest: &BanksManifest, name: &str, version: &str) -> Option<String> {
    let filler = &manifest.system;
    let is_same = filler.name == name && filler.version == version;
    (!is_same).then(|| format!("{} {}", filler.name, filler.version).trim_end().to_owned())
}

/// Has a memory system hand banks on, each into a file of its name in an empty folder; where it `counts`, what is in them is noted.
///
/// # Errors
/// Exit 4 with the first bank that it did not hand on.
pub(crate) async fn export(
    system: &dyn MemorySystem,
    banks: &mut [ArchivedBank],
    folder: &Path,
    counts: bool,
) -> Result<(), CliError> {
    for bank in banks {
        let (known, file, retained) = (reference(bank), folder.join(&bank.name), bank.retained);
        if counts {
            let counted = patiently(|| system.verify(&known, retained)).await;
            bank.items = counted.map_err(|failure| stopped(bank, "counted", &failure))?.map(|counted| counted.found);
        }
        let handed_on = patiently(|| system.export_bank(&known, &file, MOST)).await;
        handed_on.map_err(|failure| {
            let told = stopped(bank, "handed on", &failure);
            let message = format!("{}, and name its file with --adapter", told.message);
            if failure.code == TOO_SLOW { told.saying(message) } else { told }
        })?;
    }
    Ok(())
}

/// Gives the banks of an archive that lies here to a memory system, under the handles that they had: where it `counts`, those that
/// it does not hold already. How many it was given.
///
/// # Errors
/// Exit 2 for an archive that does not have them, and for a bank of which the system holds something else than all; exit 4 with the
/// first bank that the system did not take in.
pub(crate) async fn import(
    system: &dyn MemorySystem,
    archive: &ImportedBanks,
    home: &Path,
    counts: bool,
) -> Result<usize, CliError> {
    let files = folder(home, &archive.name)?.join(FILES);
    let mut missing = Vec::new();
    for bank in &archive.manifest.banks {
        let name = format!("{EXPORTED}/{}", bank.name);
        // its files were held to its manifest, so that no other file is read in their place
        if !archive.manifest.files.iter().any(|file| file.name == name) {
            return Err(CliError::usage(format!("the archive is damaged: bank {} has no file in it", bank.bank_id)));
        }
        let known = reference(bank);
        // all are looked at before one is given
        if !counts || !is_whole(bank, held(system, &known, bank).await?)? {
            missing.push((bank, known, files.join(name)));
        }
    }
    for (bank, known, file) in &missing {
        let taken_in = system.import_bank(known, file).await;
        taken_in.map_err(|failure| stopped(bank, "taken in", &failure))?;
    }
    Ok(missing.len())
}

/// Items that a memory system holds of a bank which it may never have heard of.
async fn held(system: &dyn MemorySystem, known: &BankRef, bank: &ArchivedBank) -> Result<u64, CliError> {
    match patiently(|| system.verify(known, bank.retained)).await {
        Ok(counted) => Ok(counted.map_or(0, |counted| counted.found)),
        Err(failure) if failure.class == FailureClass::Transient => Err(stopped(bank, "counted", &failure)),
        // who has no such bank says so in many ways
        Err(_) => Ok(0),
    }
}

/// Whether a memory system that holds so many items of a bank holds all of it, and not nothing.
///
/// # Errors
/// Exit 2 for anything between: a bank that is given again may be there twice.
fn is_whole(bank: &ArchivedBank, held: u64) -> Result<bool, CliError> {
    let id = &bank.bank_id;
    match (held, bank.items) {
        (0, _) => Ok(false),
        (held, Some(items)) if held == items => Ok(true),
        (held, Some(items)) => Err(CliError::usage(format!(
            "bank {id} has {items} items, and the memory system counts {held} in it: remove '{}' there first; nothing was given to it",
            bank.handle
        ))),
        (held, None) => Err(CliError::usage(format!(
            "the memory system counts {held} in bank {id} already, and the archive does not say how many items it has: remove '{}' \
             there first; nothing was given to it",
            bank.handle
        ))),
    }
}

/// Makes a call again while what it meets may pass.
async fn patiently<T, F>(call: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    BackoffSettings::default().patiently(TRIES, |failure| failure.code != TOO_SLOW, call).await
}

fn stopped(bank: &ArchivedBank, what: &str, failure: &Failure) -> CliError {
    CliError::infrastructure(format!("bank {} was not {what}: {}", bank.bank_id, failure.message))
}

/// A bank as its memory system knows it.
fn reference(bank: &ArchivedBank) -> BankRef {
    BankRef {
        name: bank.name.clone(),
        handle: Some(bank.handle.clone()),
        bank_id: bank.bank_id.clone(),
        content_hash: bank.content,
        content: None,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fs,
        sync::{Mutex, MutexGuard, PoisonError},
    };

    use async_trait::async_trait;
    use bench_proto::{
        banks_archive::{ArchivedFile, FilledSystem},
        dataset::StreamEntry,
        ids::Sha256Hash,
    };
    use bench_systems::{
        Capabilities, Counted, ListCursor, ListedPage, Readiness, Recall, RecallQuery, RetainReceipt, StepContext,
    };

    use super::*;

    /// Items that the server of the tests makes of each bank.
    const ITEMS: u64 = 5;

    /// What a server does and holds.
    #[derive(Default)]
    struct World {
        held: BTreeMap<String, u64>,
        /// Failures of the exports to come.
        fails: Vec<Failure>,
        exports: u32,
        imports: Vec<String>,
    }

    /// A server that counts, hands banks on and takes them in.
    struct Server {
        can: Capabilities,
        world: Mutex<World>,
    }

    impl Server {
        fn holding(held: &[(&str, u64)]) -> Self {
            let held = held.iter().map(|(name, items)| ((*name).to_owned(), *items)).collect();
            Self { can: Capabilities::from_items("1"), world: Mutex::new(World { held, ..World::default() }) }
        }

        fn world(&self) -> MutexGuard<'_, World> {
            self.world.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn unused<T>() -> Result<T, Failure> {
        Err(Failure::permanent("system_cannot", "nobody asks it"))
    }

    #[async_trait]
    impl MemorySystem for Server {
        fn capabilities(&self) -> &Capabilities {
            &self.can
        }

        async fn open_bank(&self, _: &BankRef) -> Result<String, Failure> {
            unused()
        }

        async fn retain(&self, _: &BankRef, _: &[StreamEntry], _: StepContext<'_>) -> Result<RetainReceipt, Failure> {
            unused()
        }

        async fn readiness(&self, _: &BankRef, _: u32) -> Result<Readiness, Failure> {
            unused()
        }

        async fn recall(&self, _: &BankRef, _: &RecallQuery<'_>) -> Result<Recall, Failure> {
            unused()
        }

        async fn list(&self, _: &BankRef, _: u32, _: &ListCursor) -> Result<ListedPage, Failure> {
            unused()
        }

        async fn reset_bank(&self, _: &BankRef) -> Result<(), Failure> {
            unused()
        }

        async fn health(&self) -> Result<String, Failure> {
            unused()
        }

        async fn verify(&self, bank: &BankRef, _: u32) -> Result<Option<Counted>, Failure> {
            let found = self.world().held.get(&bank.name).copied();
            let found = found.ok_or_else(|| Failure::permanent("system_http_404", "no such bank"))?;
            Ok(Some(Counted { expected: 0, found }))
        }

        async fn export_bank(&self, bank: &BankRef, to: &Path, _: u64) -> Result<u64, Failure> {
            let mut world = self.world();
            world.exports += 1;
            if let Some(failure) = world.fails.pop() {
                return Err(failure);
            }
            fs::write(to, &bank.name).expect("can be written");
            Ok(bank.name.len() as u64)
        }

        async fn import_bank(&self, bank: &BankRef, _: &Path) -> Result<(), Failure> {
            let mut world = self.world();
            world.imports.push(bank.name.clone());
            *world.held.entry(bank.name.clone()).or_default() += ITEMS;
            Ok(())
        }
    }

    fn bank(name: &str, items: Option<u64>) -> ArchivedBank {
        ArchivedBank {
            bank_id: format!("id of {name}"),
            name: name.to_owned(),
            handle: name.to_owned(),
            content: Sha256Hash::of_bytes(name.as_bytes()),
            retained: 1,
            items,
        }
    }

    fn archive(banks: Vec<ArchivedBank>) -> ImportedBanks {
        let file = |bank: &ArchivedBank| ArchivedFile {
            name: format!("{EXPORTED}/{}", bank.name),
            bytes: 1,
            sha256: String::new(),
        };
        let manifest = BanksManifest { files: banks.iter().map(file).collect(), banks, ..BanksManifest::default() };
        ImportedBanks { name: "mine".to_owned(), sha256: String::new(), manifest }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bank_is_counted_and_handed_on_although_the_server_is_away_for_a_moment() {
        let folder = tempfile::tempdir().expect("a folder");
        let away = |code: &str| Failure::transient(code, "not now");
        let server = Server::holding(&[("a", 7)]);
        server.world().fails = vec![away("system_http_503"), away("system_unreachable"), away("system_no_reply")];
        let mut banks = [bank("a", None)];
        export(&server, &mut banks, folder.path(), true).await.expect("is handed on");
        assert_eq!((banks[0].items, server.world().exports), (Some(7), TRIES));
        assert!(folder.path().join("a").exists());

        // what is too slow once is so again, and what is refused too
        for (failure, words) in [
            (away(TOO_SLOW), "not now, and name its file with --adapter"),
            (Failure::permanent("system_refused", "never"), "bank id of a was not handed on: never"),
        ] {
            server.world().fails = vec![failure];
            let exports = server.world().exports;
            let refused = export(&server, &mut banks, folder.path(), false).await.expect_err("it fails");
            assert!(refused.message.ends_with(words), "{}", refused.message);
            assert_eq!(server.world().exports, exports + 1);
        }
    }

    #[tokio::test]
    async fn an_import_goes_on_where_one_has_stopped_and_gives_no_bank_twice() {
        let home = tempfile::tempdir().expect("a folder");
        let all = archive(["a", "b", "c"].map(|name| bank(name, Some(ITEMS))).to_vec());
        let server = Server::holding(&[("a", ITEMS), ("b", 0)]);
        let given = import(&server, &all, home.path(), true).await.expect("are taken in");
        assert_eq!((given, server.world().imports.join(" ")), (2, "b c".to_owned()));
        let again = import(&server, &all, home.path(), true).await.expect("nothing is left to do");
        assert_eq!((again, server.world().imports.len()), (0, 2));

        // one in part, or of which nobody knows how much it is, is refused before any other is given
        let part = Server::holding(&[("c", ITEMS - 1)]);
        let refused = import(&part, &all, home.path(), true).await.expect_err("c is there in part");
        assert!(refused.message.contains("id of c has 5 items, and the memory system counts 4"), "{}", refused.message);
        let untold = archive(vec![bank("b", None), bank("c", None)]);
        let refused = import(&part, &untold, home.path(), true).await.expect_err("it may be all of c");
        assert!(refused.message.contains("the archive does not say how many items it has"), "{}", refused.message);
        assert!(part.world().imports.is_empty(), "{:?}", part.world().imports);
        // who cannot count is given everything
        assert_eq!(import(&part, &untold, home.path(), false).await.expect("are taken in"), 2);
    }

    #[test]
    fn another_system_or_version_than_the_one_that_filled_an_archive_is_named() {
        let system = FilledSystem { name: "mine".to_owned(), version: "1+ab".to_owned(), ..FilledSystem::default() };
        let manifest = BanksManifest { system, ..BanksManifest::default() };
        assert_eq!(other_filler(&manifest, "mine", "1+ab"), None);
        for (name, version) in [("mine", "2+ab"), ("other", "1+ab")] {
            assert_eq!(other_filler(&manifest, name, version).as_deref(), Some("mine 1+ab"));
        }
    }
}
