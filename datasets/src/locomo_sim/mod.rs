//! LoCoMo-sim: conversations that this project writes itself, in the shape and schema of LoCoMo.
//!
//! For tests, rehearsals and load: no download, no licence, any size, and labels that are right because the questions are
//! made from the same facts as the text. A bank depends on seed and number alone, so that the ten thousandth costs what
//! the first costs. Scores on it say whether a system works, not how good it is on people's conversations.

mod calendar;
mod draft;
mod plot;
mod render;
mod rng;
mod settings;
mod shape;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bench_proto::dataset::{Bank, BankOutline, QuestionOutline};
use serde_json::{Value, json};

use self::{draft::Draft, rng::Rng, settings::Settings};
use crate::{Dataset, DatasetError, Manifest, OnProgress, OpenOptions, checksum, locomo};

/// Raised whenever the same settings give another bank; a golden test forces it.
const GENERATOR_VERSION: u32 = 1;

/// What is known about LoCoMo-sim.
pub(crate) static MANIFEST: Manifest = Manifest {
    name: "locomo-sim",
    description: "LoCoMo-sim: generated conversations in LoCoMo's shape (10, or as many as sim.conversations says), labels right by construction",
    version: "1",
    licence: "Apache-2.0",
    source: "generated",
    files: &[],
    categories: locomo::CATEGORIES,
    banks: 10,
    sessions: 272,
    turns: 5_882,
    abstention_phrases: locomo::ABSTENTION_PHRASES,
    scorers: &["locomo-f1"],
    loader_version: GENERATOR_VERSION,
    section: "sim",
};

/// The generator with its settings.
#[derive(Debug)]
pub(crate) struct LocomoSim {
    settings: Settings,
    seed: String,
    label: String,
    sha256: String,
}

/// Opens the generator; reads no file.
pub(crate) fn open(options: &OpenOptions, _on_progress: OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    Ok(Box::new(LocomoSim::new(Settings::read(&options.settings)?)))
}

impl LocomoSim {
    fn new(settings: Settings) -> Self {
        let identity =
            json!({ "generator_version": GENERATOR_VERSION, "name": MANIFEST.name, "settings": settings.to_map() });
        // keys are sorted here and in the settings, so equal settings give equal bytes
        let sha256 = checksum::of_bytes(identity.to_string().as_bytes());
        Self { seed: settings.seed_text(), label: settings.seed_label(), sha256, settings }
    }

    fn bank_id(&self, bank: usize) -> Result<String, DatasetError> {
        if bank < self.settings.conversations {
            return Ok(format!("sim-{}-{bank}", self.label));
        }
        Err(DatasetError::no_bank(MANIFEST.name, bank, self.settings.conversations))
    }

    /// Facts and questions of a bank, before they become text.
    fn draft(&self, bank: usize) -> Option<Draft> {
        let version = GENERATOR_VERSION.to_string();
        let rng = Rng::new(&[MANIFEST.name, &version, &self.seed, &bank.to_string()]);
        let shape = shape::of(bank);
        let mut draft = Draft::new(rng, shape)?;
        plot::write(&mut draft, shape)?;
        Some(draft)
    }
}

impl Dataset for LocomoSim {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn sha256(&self) -> &str {
        &self.sha256
    }

    fn is_modified(&self) -> bool {
        false
    }

    fn settings(&self) -> BTreeMap<String, Value> {
        self.settings.to_map()
    }

    fn notes(&self) -> &[String] {
        &[]
    }

    fn bank_count(&self) -> usize {
        self.settings.conversations
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let bank_id = self.bank_id(bank)?;
        let shape = shape::of(bank);
        let entries = u32::try_from(shape.sessions).unwrap_or(u32::MAX);
        let questions = shape.layout.iter().enumerate().map(|(index, category)| QuestionOutline {
            question_id: format!("{bank_id}:{index}"),
            category: category.name().to_owned(),
            ask_after: entries,
        });
        let questions = questions.collect();
        Ok(BankOutline { bank_id, entries, turns: u32::try_from(shape.turns).unwrap_or(u32::MAX), questions })
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        let bank_id = self.bank_id(bank)?;
        let generated = self.draft(bank).and_then(|draft| render::bank(&bank_id, draft, shape::of(bank)));
        generated.ok_or_else(|| DatasetError::Broken {
            path: MANIFEST.name.to_owned(),
            place: bank_id,
            problem:
                "the facts of this seed do not fit into the conversation; take another sim.seed and report this one"
                    .to_owned(),
        })
    }
}
