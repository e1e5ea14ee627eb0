//! Names that were probably meant: one measure and one wording for every "did you mean".

/// Most names that are offered.
const MOST: usize = 3;

/// How many letters are added, left out, changed or swapped between two names; case is nothing, and `_` is `-`.
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    strsim::osa_distance(&plain(a), &plain(b))
}

/// The known names that differ from `name` by a third of their letters at most, the nearest first, at most three.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let known = known.into_iter().map(|known| (distance(name, known), known));
    ranked(known.filter(|(distance, known)| *distance <= known.len().max(3) / 3))
}

/// The names of the smallest distances, the nearest first, at most three.
pub fn ranked<'a>(names: impl Iterator<Item = (usize, &'a str)>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// `did you mean 'locomo' or 'locomo-sim'?`, to be put behind a message; nothing when no name is near.
#[must_use]
pub fn did_you_mean<T: AsRef<str>>(nearest: &[T]) -> Option<String> {
    let names: Vec<String> = nearest.iter().map(|name| format!("'{}'", name.as_ref())).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_is_recognised_and_another_word_is_not() {
        let known = ["bm25", "full-context", "locomo", "locomo-sim"];
        assert_eq!(nearest("bm52", known), ["bm25"]);
        assert_eq!(nearest("Full_Context", known), ["full-context"]);
        assert_eq!(nearest("lokomo", known), ["locomo"]);
        assert!(nearest("mem0", known).is_empty());
        assert_eq!(did_you_mean(&nearest("locomo_sin", known)).as_deref(), Some("did you mean 'locomo-sim'?"));
        assert_eq!(did_you_mean::<&str>(&[]), None);
    }
}
