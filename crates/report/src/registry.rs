//! The report formats.

use bench_proto::summary::Summary;

use crate::{error::RenderError, html::Page};

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
    pub render: Render,
}

/// What a format is made from.
#[derive(Debug, Clone, Copy)]
pub enum Render {
    /// The summary alone.
    Summary(fn(&Summary) -> Result<String, RenderError>),
    /// The summary and the questions.
    Page(fn(&Page<'_>) -> Result<String, RenderError>),
}

impl Format {
    /// Makes the file's text.
    ///
    /// # Errors
    /// A value that the format cannot hold.
    pub fn render(&self, page: &Page<'_>) -> Result<String, RenderError> {
        match self.render {
            Render::Summary(render) => render(page.summary),
            Render::Page(render) => render(page),
        }
    }

    /// Whether it shows single questions.
    #[must_use]
    pub const fn needs_questions(&self) -> bool {
        matches!(self.render, Render::Page(_))
    }
}

/// All formats. One line each; the conformance tests below run over the list.
pub const FORMATS: &[Format] = &[
    Format {
        name: "json",
        file_name: "report.json",
        about: "everything, schema version 1",
        render: Render::Summary(crate::json::render),
    },
    Format {
        name: "md",
        file_name: "report.md",
        about: "for people, also in pull requests",
        render: Render::Summary(crate::markdown::render),
    },
    Format {
        name: "html",
        file_name: "report.html",
        about: "one page with plots and all questions, needs no network",
        render: Render::Page(crate::html::render),
    },
    Format {
        name: "csv",
        file_name: "report.csv",
        about: "scores, one row per metric and category",
        render: Render::Summary(crate::csv::render),
    },
    Format {
        name: "junit",
        file_name: "junit.xml",
        about: "rules of the verdict as test cases, for CI",
        render: Render::Summary(crate::junit::render),
    },
];

/// The format that `--format NAME` asks for, if there is one.
#[must_use]
pub fn format_named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
