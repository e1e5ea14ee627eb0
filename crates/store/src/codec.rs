//! How values are written into the store: compressed JSON, small JSON, free texts without U+0000.

use std::{borrow::Cow, cell::RefCell};

use bench_proto::{ids::Sha256Hash, json_bound, spec::RunSpec};
use serde::{Serialize, de::DeserializeOwned};

use crate::{StoreError, StoreResult};

/// Level 1: replies and retrieved texts are written once and rarely read.
const ZSTD_LEVEL: i32 = 1;
/// A frame that claims more than this is damaged.
const MAX_PLAIN_BYTES: u64 = 1 << 30;

thread_local! {
    // a compression context is 1 MB and costs more to set up than a text of 1 kB to compress
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses bytes.
pub(crate) fn compress(plain: &[u8]) -> StoreResult<Vec<u8>> {
    let failed = |e: std::io::Error| StoreError::BadData(format!("cannot compress {} bytes: {e}", plain.len()));
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(failed)?),
        };
        compressor.compress(plain).map_err(failed)
    })
}

/// Decompresses what [`compress`] made; `what` names it in the error.
pub(crate) fn decompress(frame: &[u8], what: &str) -> StoreResult<Vec<u8>> {
    let damaged = |why: &str| StoreError::Corrupt(format!("{what} cannot be decompressed: {why}").into());
    let bytes = match zstd::zstd_safe::get_frame_content_size(frame) {
        Ok(Some(bytes)) if bytes <= MAX_PLAIN_BYTES => bytes as usize,
        Ok(_) => return Err(damaged("no sensible length")),
        Err(_) => return Err(damaged("no zstd frame")),
    };
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(zstd::bulk::Decompressor::new().map_err(|e| damaged(&e.to_string()))?),
        };
        decompressor.decompress(frame, bytes).map_err(|e| damaged(&e.to_string()))
    })
}

/// Writes a value as JSON. JSON escapes U+0000 by itself.
pub(crate) fn to_json<T: Serialize>(value: &T) -> StoreResult<String> {
    serde_json::to_string(value).map_err(|e| StoreError::BadData(format!("cannot be written as JSON: {e}")))
}

/// Reads JSON; `what` names it in the error. Whoever may write rows does not decide how much memory those take who read them.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str, what: impl FnOnce() -> String) -> StoreResult<T> {
    bounded(json, json_bound::REPORT, what)
}

/// The same of a list that has an element for each entry or question of a bank, and of what is stored of a step or a question: that
/// may have more values than the reply that it was made of, and was paid for.
pub(crate) fn large_from_json<T: DeserializeOwned>(json: &str, what: impl FnOnce() -> String) -> StoreResult<T> {
    bounded(json, json_bound::LIST, what)
}

/// The same of the spec of a run, or of a part of it.
pub(crate) fn spec_from_json<T: DeserializeOwned>(json: &str, what: impl FnOnce() -> String) -> StoreResult<T> {
    bounded(json, json_bound::DOCUMENT, what)
}

/// Writes the spec of a run, if it can be read again.
pub(crate) fn spec_to_json(spec: &RunSpec) -> StoreResult<String> {
    let json = to_json(spec)?;
    json_bound::check(json.as_bytes(), json_bound::DOCUMENT)
        .map_err(|e| StoreError::BadData(format!("the settings of the run cannot be stored: {e}")))?;
    Ok(json)
}

fn bounded<T: DeserializeOwned>(json: &str, most: u64, what: impl FnOnce() -> String) -> StoreResult<T> {
    json_bound::from_str(json, most).map_err(|e| unreadable(&e, &what()))
}

/// Writes a value as compressed JSON.
pub(crate) fn to_frame<T: Serialize>(value: &T) -> StoreResult<Vec<u8>> {
    compress(&serde_json::to_vec(value).map_err(|e| StoreError::BadData(format!("cannot be written as JSON: {e}")))?)
}

/// Reads compressed JSON; `what` names it in the error.
pub(crate) fn from_frame<T: DeserializeOwned>(frame: &[u8], what: impl Fn() -> String) -> StoreResult<T> {
    let plain = decompress(frame, &what())?;
    json_bound::from_slice(&plain, json_bound::LIST).map_err(|e| unreadable(&e, &what()))
}

fn unreadable(error: &serde_json::Error, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{what} is not readable: {error}").into()).because(error)
}

/// A free text as it is stored: U+0000 becomes `\0` and `\` becomes `\\`, because Postgres refuses the one and SQLite's
/// functions end a text at it (P8).
pub(crate) fn escape(text: &str) -> String {
    if text.contains(['\0', '\\']) { text.replace('\\', "\\\\").replace('\0', "\\0") } else { text.to_owned() }
}

/// The text behind [`escape`].
pub(crate) fn unescape(stored: String) -> String {
    if !stored.contains('\\') {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.next() == Some('0') => text.push('\0'),
            c => text.push(c),
        }
    }
    text
}

/// A hash that was stored as 32 bytes.
pub(crate) fn hash(bytes: &[u8], what: &str) -> StoreResult<Sha256Hash> {
    let bytes = bytes
        .try_into()
        .map_err(|_| StoreError::Corrupt(format!("{what} has {} bytes instead of 32", bytes.len()).into()))?;
    Ok(Sha256Hash(bytes))
}

/// Shortens a text for an error message.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn p8_any_text_survives_without_u0000(text in "[\\\\0a\u{0}é]{0,20}") {
            let stored = escape(&text);
            prop_assert!(!stored.contains('\0'));
            prop_assert_eq!(unescape(stored), text);
        }

        #[test]
        fn frames_come_apart_again(plain in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let frame = compress(&plain).expect("compresses");
            prop_assert_eq!(decompress(&frame, "test").expect("decompresses"), plain);
        }
    }

    #[test]
    fn rows_of_many_values_are_refused_before_they_are_read() {
        let values = |pairs: usize| format!("[{}0]", "{\"\":0},".repeat(pairs));
        let what = || "the spec of run b".to_owned();
        let spec = spec_from_json::<serde_json::Value>(&values(100_000), what).expect_err("is refused").to_string();
        assert!(spec.contains("the spec of run b is not readable: it has 300002 values"), "{spec}");
        assert!(from_json::<serde_json::Value>(&values(100_000), what).is_ok());
        let row = from_json::<serde_json::Value>(&values(200_000), what).expect_err("is refused").to_string();
        assert!(row.contains("at most 500000 are read"), "{row}");
        let frame = compress(values(700_000).as_bytes()).expect("compresses");
        assert!(frame.len() < 4096 && from_frame::<serde_json::Value>(&frame, what).is_err());
        assert!(large_from_json::<serde_json::Value>(&values(700_000), what).is_err());
        let golden = include_str!("../../../proto/golden/run_spec.v1.json");
        let mut spec: RunSpec = spec_from_json(golden, what).expect("is read");
        assert!(spec_to_json(&spec).is_ok());
        spec.dataset.settings.insert("list".to_owned(), serde_json::Value::from(vec![0; 200_000]));
        assert!(matches!(spec_to_json(&spec), Err(StoreError::BadData(why)) if why.contains("at most 200000")));
    }

    /// A hit that came as a bare text is stored with names and further members.
    #[test]
    fn a_step_that_has_more_values_than_a_reply_is_read_again() {
        let what = || "a stored step".to_owned();
        let step = vec![serde_json::json!({"id": null, "text": "x", "score": 0.5}); 100_000];
        let json = to_json(&step).expect("is written");
        assert!(json_bound::check(json.as_bytes(), json_bound::REPORT).is_err());
        let frame = to_frame(&step).expect("is written");
        assert_eq!(from_frame::<Vec<serde_json::Value>>(&frame, what).expect("is read").len(), step.len());
        assert_eq!(large_from_json::<Vec<serde_json::Value>>(&json, what).expect("is read").len(), step.len());
    }

    #[test]
    fn damaged_frames_are_named() {
        let mut frame = compress(&[7; 1000]).expect("compresses");
        frame.truncate(frame.len() - 3);
        let error = decompress(&frame, "item abc").expect_err("is cut").to_string();
        assert!(error.contains("item abc"), "{error}");
        assert!(decompress(b"no frame", "x").is_err());
    }
}
