//! LoCoMo-sim: conversations that this project writes itself, in the shape and schema of LoCoMo.
//!
//! For tests, rehearsals and load: no download, no licence, any size, and labels that are right because the questions are
//! made from the same facts as the text. A bank depends on seed and number alone, so that the ten thousandth costs what
//! the first costs. Scores on it say whether a system works, not how good it is on people's conversations.

mod calendar;
mod draft;
mod plot;
mod render;
mod shape;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

use bench_proto::dataset::{Bank, BankOutline, QuestionOutline};

use self::{draft::Draft, rng::Rng};
use crate::{
    About, Dataset, DatasetError, Opening,
    generator::{
        rng,
        settings::{Names, Settings},
    },
};

/// Raised (with the manifest's `loader_version`) whenever the same settings give another bank; a golden test forces it.
const GENERATOR_VERSION: u32 = 1;

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
const NAMES: Names =
    Names { dataset: "locomo-sim", section: "sim", banks: "conversations", default: 10, most: 1_000_000 };

/// The generator with its settings.
#[derive(Debug)]
pub(crate) struct LocomoSim {
    about: About,
    settings: Settings,
    seed: String,
    label: String,
}

/// Opens the generator; reads no file.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let settings = NAMES.read(&opening.options().settings)?;
    Ok(Box::new(LocomoSim::new(opening, settings)))
}

impl LocomoSim {
    fn new(opening: &Opening<'_>, settings: Settings) -> Self {
        let about = opening.generated(NAMES.map(&settings));
        Self { about, seed: settings.seed_text(), label: settings.seed_label(), settings }
    }

    fn bank_id(&self, bank: usize) -> Result<String, DatasetError> {
        if bank < self.settings.banks {
            return Ok(format!("sim-{}-{bank}", self.label));
        }
        Err(DatasetError::no_bank(NAMES.dataset, bank, self.settings.banks))
    }

    /// Facts and questions of a bank, before they become text.
    fn draft(&self, bank: usize) -> Option<Draft> {
        let version = GENERATOR_VERSION.to_string();
        let rng = Rng::new(&[NAMES.dataset, &version, &self.seed, &bank.to_string()]);
        let shape = shape::of_bank(bank);
        let mut draft = Draft::new(rng, shape)?;
        plot::write(&mut draft, shape)?;
        Some(draft)
    }
}

impl Dataset for LocomoSim {
    fn about(&self) -> &About {
        &self.about
    }

    fn bank_count(&self) -> usize {
        self.settings.banks
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let bank_id = self.bank_id(bank)?;
        let shape = shape::of_bank(bank);
        let entries = u32::try_from(shape.sessions).unwrap_or(u32::MAX);
        let questions = shape.layout.iter().enumerate().map(|(index, category)| QuestionOutline {
            question_id: format!("{bank_id}:{index}"),
            category: category.name().to_owned(),
            ask_after: entries,
            ..QuestionOutline::default()
        });
        let questions = questions.collect();
        let turns = u32::try_from(shape.turns).unwrap_or(u32::MAX);
        Ok(BankOutline { bank_id, entries, turns, questions, ..BankOutline::default() })
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        let bank_id = self.bank_id(bank)?;
        let generated = self.draft(bank).and_then(|draft| render::bank(&bank_id, draft, shape::of_bank(bank)));
        generated.ok_or_else(|| DatasetError::Broken {
            path: NAMES.dataset.to_owned(),
            place: bank_id,
            problem:
                "the facts of this seed do not fit into the conversation; take another sim.seed and report this one"
                    .to_owned(),
        })
    }
}
