//! What a question may be answered from.

use serde::{Deserialize, Serialize};

use crate::call::is_default;

/// What a question may be answered from; an absent part restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filter {
    /// All of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A memory of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// One of these scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Not before this time, in the form of [`Session::time`](super::Session::time).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Not after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Filter {
    /// Which parts a filter has.
    #[must_use]
    pub fn parts(&self) -> FilterParts {
        FilterParts {
            tags: !self.tags.is_empty(),
            user: self.user.is_some(),
            scope: !self.scopes.is_empty(),
            scopes: self.scopes.len() > 1,
            from: self.from.is_some(),
            until: self.until.is_some(),
        }
    }
}

impl Default for &Filter {
    /// A filter that restricts nothing.
    fn default() -> Self {
        static NOTHING: Filter = Filter { tags: Vec::new(), user: None, scopes: Vec::new(), from: None, until: None };
        &NOTHING
    }
}

/// Parts of filters: those that questions have, or those that a memory system can honour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterParts {
    /// By tags.
    #[serde(skip_serializing_if = "is_default")]
    pub tags: bool,
    /// By a user.
    #[serde(skip_serializing_if = "is_default")]
    pub user: bool,
    /// By scopes.
    #[serde(skip_serializing_if = "is_default")]
    pub scope: bool,
    /// By several scopes of which any one is enough.
    #[serde(skip_serializing_if = "is_default")]
    pub scopes: bool,
    /// From a time on.
    #[serde(skip_serializing_if = "is_default")]
    pub from: bool,
    /// Until a time.
    #[serde(skip_serializing_if = "is_default")]
    pub until: bool,
}

impl FilterParts {
    /// Every part of a filter.
    pub const ALL: Self = Self { tags: true, user: true, scope: true, scopes: true, from: true, until: true };

    /// What one of both has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            tags: self.tags || other.tags,
            user: self.user || other.user,
            scope: self.scope || other.scope,
            scopes: self.scopes || other.scopes,
            from: self.from || other.from,
            until: self.until || other.until,
        }
    }

    /// What both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            tags: self.tags && other.tags,
            user: self.user && other.user,
            scope: self.scope && other.scope,
            scopes: self.scopes && other.scopes,
            from: self.from && other.from,
            until: self.until && other.until,
        }
    }

    /// What it has and the other does not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self {
            tags: self.tags && !other.tags,
            user: self.user && !other.user,
            scope: self.scope && !other.scope,
            scopes: self.scopes && !other.scopes,
            from: self.from && !other.from,
            until: self.until && !other.until,
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The parts that it has, as files and flags write them.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.tags, "tags"),
            (self.user, "user"),
            (self.scope, "scope"),
            (self.scopes, "scopes"),
            (self.from, "from"),
            (self.until, "until"),
        ];
        all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
    }
}
