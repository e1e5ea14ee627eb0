//! precision-sim: small memories of people that this project writes itself, in the model of PrecisionMemBench.
//!
//! There nearly half of the cases are passed by a system that finds nothing. Here something has to be found in nearly all of
//! them, systems are told all that they must leave out, and every bank is drawn anew: three users, two of whom share a scope,
//! names that mean something else in the next scope, values that are superseded by updates, aliases, slips of the pen, habits
//! that are found by what they rule out, relations, places that are scarce, and a session in which memories change.

mod lives;
mod plot;
#[cfg(test)]
mod tests;
mod world;

use bench_proto::dataset::{Bank, BankOutline};

use self::world::World;
use crate::{
    About, Dataset, DatasetError, Opening,
    generator::{
        rng::Rng,
        settings::{Names, Settings},
    },
    neutral::hide_order,
};

/// Raised (with the manifest's `loader_version`) whenever the same settings give another bank; a golden test forces it.
const GENERATOR_VERSION: u32 = 2;

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");
const NAMES: Names =
    Names { dataset: "precision-sim", section: "precision", banks: "worlds", default: 4, most: 100_000 };

/// The generator with its settings.
#[derive(Debug)]
struct PrecisionSim {
    about: About,
    settings: Settings,
}

/// Opens the generator; reads no file.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let settings = NAMES.read(&opening.options().settings)?;
    Ok(Box::new(PrecisionSim { about: opening.generated(NAMES.map(&settings)), settings }))
}

impl Dataset for PrecisionSim {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.settings.banks
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        Ok(self.bank(bank)?.outline())
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        make(&self.settings, bank)
    }
}

/// The bank of a number.
fn make(settings: &Settings, bank: usize) -> Result<Bank, DatasetError> {
    if bank >= settings.banks {
        return Err(DatasetError::no_bank(NAMES.dataset, bank, settings.banks));
    }
    let bank_id = format!("precision-{}-{bank}", settings.seed_label());
    let version = GENERATOR_VERSION.to_string();
    let rng = Rng::new(&[NAMES.dataset, &version, &settings.seed_text(), &bank.to_string()]);
    let world = World::new(rng).ok_or_else(|| "the table of lives is broken".to_owned());
    let made = world.and_then(|world| world.bank(&bank_id)).and_then(|(bank, notes)| match notes.into_iter().next() {
        None => Ok(bank),
        Some(note) => Err(note),
    });
    let hidden = made.map(|mut bank| {
        hide_order(&mut bank);
        bank
    });
    hidden.map_err(|problem| DatasetError::Broken {
        path: NAMES.dataset.to_owned(),
        place: bank_id,
        problem: format!("{problem}; take another precision.seed and report this one"),
    })
}
