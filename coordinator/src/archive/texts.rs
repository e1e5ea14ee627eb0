//! Whether the texts of a run's questions, memories and answers go into an archive, which is made to be read by others.

use std::str::FromStr;

use bench_proto::spec::DatasetSpec;
use clap::ValueEnum as _;

use crate::{app::App, cli::ArchivedTexts, exit::CliError, results::licence};

impl FromStr for ArchivedTexts {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let values = || Self::value_variants().iter().filter_map(|choice| Some((*choice, choice.to_possible_value()?)));
        let found = values().find(|(_, value)| value.get_name() == word).map(|(choice, _)| choice);
        found.ok_or_else(|| {
            let words: Vec<String> = values().map(|(_, value)| value.get_name().to_owned()).collect();
            format!("'{word}' says of no texts whether they are archived; the words are {}", words.join(", "))
        })
    }
}

/// Why the texts of a run stay here; `None` where they go into the archive. `asked` was said for this push, else the
/// setting `archive.texts` decides.
///
/// # Errors
/// Exit 2 for a setting that is none of its words.
pub(crate) fn kept_back(
    app: &App,
    asked: Option<ArchivedTexts>,
    dataset: &DatasetSpec,
) -> Result<Option<String>, CliError> {
    let asked = match asked {
        Some(asked) => asked,
        None => {
            let set = app.settings().archive_texts.parse();
            set.map_err(|why: String| CliError::usage(format!("archive.texts: {why}")))?
        }
    };
    Ok(licence::kept_back(asked, dataset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_setting_are_read_and_another_is_refused_with_them() {
        for (word, meant) in [
            ("by-licence", ArchivedTexts::ByLicence),
            ("always", ArchivedTexts::Always),
            ("never", ArchivedTexts::Never),
        ] {
            assert_eq!(word.parse::<ArchivedTexts>(), Ok(meant), "{word}");
        }
        for other in ["", "some", "Always", "by_licence"] {
            let refused = other.parse::<ArchivedTexts>().expect_err("is no word of it");
            assert!(refused.contains(&format!("'{other}'")), "{refused}");
            assert!(refused.ends_with("by-licence, always, never"), "{refused}");
        }
    }
}
