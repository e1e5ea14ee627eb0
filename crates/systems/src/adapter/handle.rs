//! Handles: the names that systems give to banks. They become paths and filters of later requests, those that remove a bank among
//! them, so one that names nothing, or more than its bank, is refused.

use serde_json::Value;

/// Longest handle, in bytes.
const LONGEST: usize = 1024;

/// A handle that a system has given.
///
/// # Errors
/// What is wrong with it.
pub(super) fn checked(handle: String) -> Result<String, String> {
    if handle.len() > LONGEST {
        return Err(format!("the handle of the bank is longer than {LONGEST} bytes"));
    }
    // a bar separates the machine on which a system was started from the handle
    if !is_name(&handle) || handle.contains('|') || handle.chars().any(char::is_control) {
        return Err(format!("the handle of the bank is '{}', which names no bank", handle.escape_debug()));
    }
    Ok(handle)
}

/// Whether a value names one thing: it is not empty, and no part of it leads up or stays where it is.
pub(super) fn names_one(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(name)) => is_name(name),
        Some(_) => true,
    }
}

/// Whether a text may be the handle of a bank, or its name.
#[must_use]
pub fn is_handle(text: &str) -> bool {
    checked(text.to_owned()).is_ok()
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.split(['/', '\\']).all(|part| !matches!(part.trim(), "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_that_name_no_bank_are_refused() {
        for fine in ["b", "bench-1-g1", "0197:a/b", "ä b", "a..b", "..."] {
            assert_eq!(checked(fine.to_owned()).as_deref(), Ok(fine));
        }
        let long = "b".repeat(LONGEST + 1);
        for wrong in ["", " ", "|", "a|b", ".", "..", "../a", "a/../b", "a\\..", "a\nb", "a\0", &long] {
            assert!(checked(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
