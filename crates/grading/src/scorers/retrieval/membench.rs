//! MemBench's recall: which of the steps that answer a question were retrieved, at any rank.

use std::collections::HashSet;

/// Share of the distinct targets that are among the retrieved steps; none without targets (the published program divides by zero).
#[must_use]
pub fn step_recall(retrieved: &[&str], targets: &[&str]) -> Option<f64> {
    let targets: HashSet<&str> = targets.iter().copied().collect();
    let found = targets.iter().filter(|target| retrieved.contains(target)).count();
    (!targets.is_empty()).then(|| found as f64 / targets.len() as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::scorers::reference;

    #[test]
    fn membench() {
        let Some(vectors) = reference::json("vectors/membench.json") else { return };
        let cases = reference::list(&vectors["cases"]);
        assert_eq!(cases.len(), 7);
        for case in cases {
            let steps = |key: &str| -> Vec<String> {
                case[key].as_array().into_iter().flatten().map(Value::to_string).collect()
            };
            let (retrieved, targets) = (steps("retrieved"), steps("target_step_id"));
            let [retrieved, targets] =
                [&retrieved, &targets].map(|steps| steps.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(step_recall(&retrieved, &targets), case["recall"].as_f64(), "{case}");
        }
    }
}
