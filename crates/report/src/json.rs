//! `report.json`: the summary as it is.

use bench_proto::summary::Summary;

use crate::registry::RenderError;

/// The summary as indented JSON.
///
/// # Errors
/// Never for a summary made of finite numbers.
pub fn render(summary: &Summary) -> Result<String, RenderError> {
    let mut text = serde_json::to_string_pretty(summary)?;
    text.push('\n');
    Ok(text)
}
