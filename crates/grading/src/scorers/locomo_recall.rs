//! Retrieval recall as the official LoCoMo evaluation prints it: kept for comparison with published figures. It knows no
//! ranks, counts repeated evidence twice and never repairs malformed evidence; our own metrics are `bench_proto::retrieval`.

/// The share of evidence entries found in the context.
///
/// 1 when no context was stored or there is no evidence. When the first context id starts with `S` the ids are sessions
/// and an entry counts by the session number between its first letter and its first colon; otherwise entries must be
/// found verbatim. An empty context scores 0 (the official program stops there).
#[must_use]
pub fn locomo_recall(evidence: &[&str], context: Option<&[&str]>) -> f64 {
    let Some(context) = context.filter(|_| !evidence.is_empty()) else {
        return 1.0;
    };
    let by_session = context.first().is_some_and(|id| id.starts_with('S'));
    let found = |entry: &str| {
        if by_session {
            let session = session_number(entry);
            context.iter().any(|id| without_first(id) == session)
        } else {
            context.contains(&entry)
        }
    };
    evidence.iter().filter(|entry| found(entry)).count() as f64 / evidence.len() as f64
}

fn session_number(entry: &str) -> &str {
    without_first(entry.split(':').next().unwrap_or_default())
}

fn without_first(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::reference;

    #[test]
    fn turns_sessions_and_oddities() {
        let recall = |evidence: &[&str], context: &[&str]| locomo_recall(evidence, Some(context));
        assert_eq!(locomo_recall(&["D1:3"], None), 1.0);
        assert_eq!(recall(&[], &[]), 1.0);
        assert_eq!(recall(&["D1:3"], &[]), 0.0);
        assert_eq!(recall(&["D1:3", "D1:3", "D2:1"], &["D1:3"]), 2.0 / 3.0);
        assert_eq!(recall(&["D1:3", "D12:5"], &["S12", "S3"]), 0.5);
        assert_eq!(recall(&["D"], &["S1"]), 0.0);
        assert_eq!(recall(&["D8:6; D9:1"], &["S8"]), 1.0);
    }

    #[test]
    fn recall_vectors() {
        let Some(vectors) = reference::json("vectors/locomo-f1.json") else {
            return;
        };
        let strings = |value: &serde_json::Value| -> Vec<String> {
            reference::list(value).iter().map(|id| reference::str(id).to_owned()).collect()
        };
        let cases = reference::list(&vectors["recall_vectors"]);
        assert!(cases.len() > 15);
        for case in cases {
            let evidence = strings(&case["evidence"]);
            let evidence: Vec<&str> = evidence.iter().map(String::as_str).collect();
            let context = (!case["context"].is_null()).then(|| strings(&case["context"]));
            let context: Option<Vec<&str>> = context.as_ref().map(|ids| ids.iter().map(String::as_str).collect());
            assert_eq!(locomo_recall(&evidence, context.as_deref()), reference::number(&case["recall"]), "{case}");
        }
    }
}
