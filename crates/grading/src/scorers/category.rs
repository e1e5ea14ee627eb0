//! LoCoMo's categories, by name or number.

/// What the LoCoMo rules distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    /// Several parts, compared part by part.
    MultiHop,
    /// Plain.
    Temporal,
    /// Only the part of the gold before the first `;` counts.
    OpenDomain,
    /// Plain.
    SingleHop,
    /// The right answer says that there is none.
    Adversarial,
}

impl Category {
    /// All, in the order of LoCoMo's numbers 1 to 5.
    const ALL: [Self; 5] = [Self::MultiHop, Self::Temporal, Self::OpenDomain, Self::SingleHop, Self::Adversarial];

    /// The name that datasets and reports use.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MultiHop => "multi-hop",
            Self::Temporal => "temporal",
            Self::OpenDomain => "open-domain",
            Self::SingleHop => "single-hop",
            Self::Adversarial => "adversarial",
        }
    }

    /// By name; `None` for categories of other datasets, which are scored plainly.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    /// By LoCoMo's number, 1 to 5.
    pub(super) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
    }
}

/// The part of a gold that LoCoMo's rules score in `category`.
pub(super) fn used_part<'a>(gold: &'a str, category: &str) -> &'a str {
    if category == Category::OpenDomain.name() {
        super::text::trim(gold.split(';').next().unwrap_or_default())
    } else {
        gold
    }
}
