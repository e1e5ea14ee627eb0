//! Text in XML and HTML.

use std::fmt;

use askama::filters::Escaper;
use bench_proto::text::acts;

/// The escaping of all templates: text that is safe in XML and HTML, between tags and in attributes. What [`acts`] becomes a
/// blank: control characters, which XML does not know, among it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markup;

impl Escaper for Markup {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => to.write_str("&amp;"),
                '<' => to.write_str("&lt;"),
                '>' => to.write_str("&gt;"),
                '"' => to.write_str("&quot;"),
                '\'' => to.write_str("&#39;"),
                c if acts(c) => to.write_char(' '),
                c => to.write_char(c),
            }?;
        }
        Ok(())
    }
}

/// Text as [`Markup`] writes it.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // writing to a String cannot fail
    let _ = Markup.write_escaped_str(&mut escaped, text);
    escaped
}
