//! The three suites and the question set of our own, which need no file of the user: `basic`, `accuracy`, `reflect`; `smoke`.
//! Beside the text of each lie its manifest and its profile.

#[cfg(test)]
mod tests;

use bench_proto::dataset::Bank;

use crate::{About, Dataset, DatasetError, Opening, checksum, loaded::Loaded, notes::Notes, sets::suite};

/// `basic`: does a memory work at all?
pub(crate) mod basic {
    use crate::{Dataset, DatasetError, Opening};

    pub(crate) const MANIFEST: &str = include_str!("basic.manifest.toml");
    pub(crate) const PROFILE: &str = include_str!("basic.profile.toml");
    pub(crate) const TEXT: &str = include_str!("basic.yaml");

    pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
        super::of_text(opening, TEXT)
    }
}

/// `accuracy`: does a memory find what is meant?
pub(crate) mod accuracy {
    use crate::{Dataset, DatasetError, Opening};

    pub(crate) const MANIFEST: &str = include_str!("accuracy.manifest.toml");
    pub(crate) const PROFILE: &str = include_str!("accuracy.profile.toml");
    pub(crate) const TEXT: &str = include_str!("accuracy.yaml");

    pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
        super::of_text(opening, TEXT)
    }
}

/// `reflect`: does a memory, or who answers from it, put together what was said apart?
pub(crate) mod reflect {
    use crate::{Dataset, DatasetError, Opening};

    pub(crate) const MANIFEST: &str = include_str!("reflect.manifest.toml");
    pub(crate) const PROFILE: &str = include_str!("reflect.profile.toml");
    pub(crate) const TEXT: &str = include_str!("reflect.yaml");

    pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
        super::of_text(opening, TEXT)
    }
}

/// `smoke`: does anything come back at all?
pub(crate) mod smoke {
    use crate::{Dataset, DatasetError, Opening, sets::question_set};

    pub(crate) const MANIFEST: &str = include_str!("smoke.manifest.toml");
    pub(crate) const PROFILE: &str = include_str!("smoke.profile.toml");
    pub(crate) const TEXT: &str = include_str!("smoke.jsonl");

    pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
        opening.has_no_settings()?;
        let (bank, notes) = question_set::of_text("smoke.jsonl", TEXT)?;
        Ok(super::with(opening, TEXT, vec![bank], notes))
    }
}

fn of_text(opening: &Opening<'_>, text: &str) -> Result<Box<dyn Dataset>, DatasetError> {
    opening.has_no_settings()?;
    let name = &opening.manifest().name;
    let suite = suite::read(&format!("{name}.yaml"), name, text.as_bytes())?;
    Ok(with(opening, text, suite.banks, suite.notes))
}

/// What was read of a text, which is its identity.
fn with(opening: &Opening<'_>, text: &str, banks: Vec<Bank>, notes: Notes) -> Box<dyn Dataset> {
    let sha256 = checksum::of_bytes(text.as_bytes());
    let about = About { sha256, notes: notes.lines(), ..opening.generated(Default::default()) };
    Box::new(Loaded::with(about, banks))
}
