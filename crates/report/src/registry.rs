//! The report formats.

use bench_proto::summary::Summary;

/// A format that a report can be written in.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name in `--format`.
    pub name: &'static str,
    /// Name of its file in the run's folder.
    pub file_name: &'static str,
    /// What it is good for, one line.
    pub about: &'static str,
    /// Makes the file's text; ends with a newline.
    pub render: fn(&Summary) -> Result<String, RenderError>,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A value that the format cannot hold.
    #[error("the report cannot be written as json: {0}")]
    Json(#[from] serde_json::Error),
    /// The same for CSV.
    #[error("the report cannot be written as csv: {0}")]
    Csv(String),
    /// The same for JUnit XML.
    #[error("the report cannot be written as junit xml: {0}")]
    Junit(String),
}

/// All formats. One line each; the conformance tests below run over the list.
pub const FORMATS: &[Format] = &[
    Format {
        name: "json",
        file_name: "report.json",
        about: "everything, schema version 1",
        render: crate::json::render,
    },
    Format {
        name: "md",
        file_name: "report.md",
        about: "for people, also in pull requests",
        render: crate::markdown::render,
    },
    Format {
        name: "csv",
        file_name: "report.csv",
        about: "scores, one row per metric and category",
        render: crate::csv::render,
    },
    Format {
        name: "junit",
        file_name: "junit.xml",
        about: "rules of the verdict as test cases, for CI",
        render: crate::junit::render,
    },
];

/// The format with this name.
#[must_use]
pub fn format_named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
