//! What a system says in place of what it was asked for, as messages show it.

/// Whether a text begins as a page for people does.
pub(super) fn looks_like_a_page(text: &str) -> bool {
    let begin: String = text.trim_start().chars().take(14).collect::<String>().to_ascii_lowercase();
    begin.starts_with("<!doctype html") || begin.starts_with("<html")
}

/// The beginning of a text on one line.
pub(super) fn excerpt(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        Some((at, _)) => format!("{} …", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p39_a_page_for_people_is_told_from_a_plain_text() {
        for page in ["<!DOCTYPE html><html>", "\n  <html lang=en>", "<HTML>"] {
            assert!(looks_like_a_page(page), "{page}");
        }
        for reply in ["ok", "", "<memory>a note</memory>", "the <html> tag"] {
            assert!(!looks_like_a_page(reply), "{reply}");
        }
    }
}
