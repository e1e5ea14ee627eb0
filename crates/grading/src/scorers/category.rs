//! LoCoMo's categories by name or number, for lines and files that have no profile.

use std::sync::LazyLock;

use bench_proto::profile::{CategoryRules, GoldReading, Profile};

/// Names of LoCoMo's categories, in the order of its numbers 1 to 5.
const NAMES: [&str; 5] = ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial"];

/// The name of a category by LoCoMo's number.
pub(super) fn of_number(number: u64) -> Option<&'static str> {
    NAMES.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}

/// The name of LoCoMo's category, where it is one.
pub(super) fn of_name(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

/// The rules of LoCoMo's category of a name; those of no special category for any other.
pub(super) fn rules(name: &str) -> &'static CategoryRules {
    static LOCOMO: LazyLock<Profile> = LazyLock::new(Profile::implied);
    LOCOMO.rules(name)
}

/// The part of a gold that counts where golds are read by `rules`.
pub(super) fn used_part<'a>(gold: &'a str, rules: &CategoryRules) -> &'a str {
    match rules.gold {
        GoldReading::FirstPart => super::text::trim(gold.split(';').next().unwrap_or_default()),
        GoldReading::Whole | GoldReading::ByParts => gold,
    }
}
