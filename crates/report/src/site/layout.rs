//! How the pages are laid out: a title, the way back, and parts one below the other.

use askama::Template;

use crate::{
    blocks::{Block, aligned},
    error::RenderError,
    html::STYLE,
};

/// What stands at the foot of each page.
const FOOTER: &str = "figures of archived runs, made by bench-coord; a rank is shared where a paired comparison with Holm's correction does not \
                      tell two results apart; what nobody has checked here, and what is told the evidence, is marked and has no rank";

/// A part of a page.
pub(super) enum Part {
    /// What reports are made of.
    Of(Block),
    /// A table whose cells lead elsewhere.
    Linked(Linked),
    /// Title, picture.
    Picture(String, String),
}

/// A table whose cells may be links and have marks.
pub(super) struct Linked {
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<Cell>>,
}

/// What stands in one column of a row.
#[derive(Default)]
pub(super) struct Cell {
    text: String,
    link: Option<String>,
    mark: Option<&'static str>,
    /// What it is called, and the lines behind it.
    folded: Option<(String, Vec<String>)>,
}

impl Cell {
    /// Text alone.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Text that leads to a page.
    pub(super) fn link(text: impl Into<String>, page: String) -> Self {
        Self { link: Some(page), ..Self::text(text) }
    }

    /// The same with lines that are shown when somebody opens them.
    pub(super) fn folding(self, folded: Option<(String, Vec<String>)>) -> Self {
        Self { folded, ..self }
    }

    /// The same with a mark that must not be overlooked.
    pub(super) fn marked(self, mark: Option<&'static str>) -> Self {
        Self { mark, ..self }
    }
}

/// A table; columns whose title starts with `>` are aligned right.
pub(super) fn linked(columns: &[&str], rows: Vec<Vec<Cell>>) -> Part {
    Part::Linked(Linked { columns: aligned(columns), rows })
}

/// A page: its title, the way back (link, words), and its parts.
pub(super) struct Laid {
    pub(super) title: String,
    pub(super) trail: Vec<(String, String)>,
    pub(super) parts: Vec<Part>,
}

#[derive(Template)]
#[template(path = "site.html")]
struct View {
    title: String,
    trail: Vec<(String, String)>,
    parts: Vec<Part>,
    style: &'static str,
    footer: &'static str,
}

/// The page as text.
///
/// # Errors
/// Never for text and pictures.
pub(super) fn page(laid: Laid) -> Result<String, RenderError> {
    let view = View { title: laid.title, trail: laid.trail, parts: laid.parts, style: STYLE, footer: FOOTER };
    let mut html = view.render()?;
    html.push('\n');
    Ok(html)
}
