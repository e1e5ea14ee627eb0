//! Long dialogues that this project writes itself: facts told in blocks over hundreds or thousands of turns, some of them
//! replaced, contradicted or taken back later, and questions on what holds in the end.
//!
//! `long-horizon` is ours: a seed decides about people, values and questions, facts grow with the turns, every question
//! can be answered from the turns that it names, and the holdout shares neither texts nor facts with the other half.
//! `long-horizon-compat` has the blocks, facts and questions by number that published results were made with, in
//! sentences of ours. A bank depends on its settings and seed alone.

mod blocks;
mod draft;
mod questions;
mod render;
mod settings;
mod shape;
mod tables;
#[cfg(test)]
mod tests;

use bench_proto::dataset::{Bank, BankOutline};

use self::{draft::Draft, questions::Candidates, settings::Settings};
use crate::{About, Dataset, DatasetError, Opening, generator::rng::Rng, neutral::hide_order};

/// Raised (with the manifests' `loader_version`) whenever the same settings give another bank; a golden test forces it.
const GENERATOR_VERSION: u32 = 2;

/// What is known about ours.
pub(crate) const MANIFEST: &str = include_str!("manifest.toml");

/// What is known about the compatible one.
pub(crate) const COMPATIBLE: &str = include_str!("manifest_compatible.toml");

/// How questions of ours are graded.
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// The same without the category that only ours has.
pub(crate) const COMPATIBLE_PROFILE: &str = include_str!("profile_compatible.toml");

/// Whose counts a dialogue keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edition {
    /// Counts of this project.
    Own,
    /// Counts of the generator behind published results.
    Compatible,
}

impl Edition {
    fn name(self) -> &'static str {
        match self {
            Self::Own => "long-horizon",
            Self::Compatible => "long-horizon-compat",
        }
    }

    /// The shortest dialogue in which every block has something to say.
    fn least_turns(self) -> usize {
        match self {
            Self::Own => 100,
            Self::Compatible => 20,
        }
    }
}

/// The generator with its settings.
#[derive(Debug, Clone, Copy)]
struct LongHorizon {
    edition: Edition,
    settings: Settings,
}

impl LongHorizon {
    /// What a report tells of the dialogues: all tell equally many facts.
    fn notes(&self) -> Vec<String> {
        let draft = self.draft(0);
        let (facts, turns) = (draft.facts.len(), self.settings.turns);
        let mut notes = vec![format!("{facts} facts are told in the {turns} turns of a dialogue")];
        let (asked, wanted) = (self.questions(&draft, 0).len(), self.settings.questions);
        if asked < wanted {
            notes.push(format!("{asked} questions are asked of the {wanted} that are wanted: there are no more"));
        }
        notes
    }

    /// The seed of a bank.
    fn seed(&self, bank: usize) -> i64 {
        self.settings.seed.saturating_add(i64::try_from(bank).unwrap_or(i64::MAX))
    }

    fn rng(&self, bank: usize, what: &str) -> Rng {
        let (version, seed) = (GENERATOR_VERSION.to_string(), self.seed(bank).to_string());
        Rng::new(&[self.edition.name(), &version, &self.settings.turns.to_string(), &seed, what])
    }

    /// The dialogue of a bank, before it becomes sessions.
    fn draft(&self, bank: usize) -> Draft {
        let mut draft = Draft::new(self.rng(bank, "dialogue"), self.edition, self.settings.turns);
        for block in shape::blocks(self.edition, self.settings.turns) {
            blocks::write(&mut draft, block);
        }
        draft
    }

    /// The questions of a bank, of the half that the settings say.
    fn questions(&self, draft: &Draft, bank: usize) -> Vec<questions::Posed> {
        let half = usize::from(self.settings.holdout);
        let candidates = Candidates::new(draft, half);
        let wanted = self.settings.questions;
        let counts = match self.edition {
            Edition::Own => shape::own_counts(candidates.stock(), wanted),
            Edition::Compatible => shape::compatible_counts(self.settings.turns, wanted, self.settings.categories),
        };
        let mut rng = self.rng(bank, if self.settings.holdout { "holdout" } else { "questions" });
        candidates.pose(draft, &mut rng, counts)
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        if bank >= self.settings.seeds {
            return Err(DatasetError::no_bank(self.edition.name(), bank, self.settings.seeds));
        }
        // both halves are asked about the same dialogue, in banks of their own
        let half = if self.settings.holdout { "b" } else { "a" };
        let bank_id = format!("horizon-{}-{}{half}", self.settings.turns, self.seed(bank));
        let draft = self.draft(bank);
        let questions = self.questions(&draft, bank);
        let mut bank = render::bank(&bank_id, draft, questions);
        hide_order(&mut bank);
        Ok(bank)
    }
}

/// The generator as a dataset.
struct Generated {
    about: About,
    horizon: LongHorizon,
}

/// Opens ours; reads no file.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    generated(Edition::Own, opening)
}

pub(crate) fn open_compatible(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    generated(Edition::Compatible, opening)
}

fn generated(edition: Edition, opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let horizon = LongHorizon { edition, settings: Settings::read(edition, &opening.options().settings)? };
    let about = About { notes: horizon.notes(), ..opening.generated(horizon.settings.to_map(edition)) };
    Ok(Box::new(Generated { about, horizon }))
}

impl Dataset for Generated {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.horizon.settings.seeds
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        Ok(self.bank(bank)?.outline())
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.horizon.bank(bank)
    }
}
