//! Which operation is next.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draws::Draws;

/// An operation of a memory system under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Stores a memory.
    Retain,
    /// Searches.
    Recall,
}

impl Operation {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 2] = [Self::Retain, Self::Recall];

    /// For people and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retain => "retain",
            Self::Recall => "recall",
        }
    }
}

/// Shares of the operations, as whole numbers of any sum above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mix {
    /// Parts of all operations that store a memory.
    pub retain: u32,
    /// Parts of all operations that search for one.
    pub recall: u32,
}

impl Default for Mix {
    /// Memories are asked more often than they are filled.
    fn default() -> Self {
        Self { retain: 1, recall: 4 }
    }
}

impl Mix {
    /// The share of an operation.
    #[must_use]
    pub const fn share_of(self, operation: Operation) -> u32 {
        match operation {
            Operation::Retain => self.retain,
            Operation::Recall => self.recall,
        }
    }

    /// The next operation.
    pub fn draw(self, draws: &mut Draws) -> Operation {
        let all = u64::from(self.retain) + u64::from(self.recall);
        if draws.below(all) < u64::from(self.retain) { Operation::Retain } else { Operation::Recall }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = Operation::ALL.map(|operation| format!("{}={}", operation.name(), self.share_of(operation)));
        f.write_str(&parts.join(","))
    }
}

/// What is wrong with a mix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no mix: give shares as whole numbers, retain=1,recall=4, at least one of them above 0")]
pub struct MixError(String);

impl FromStr for Mix {
    type Err = MixError;

    /// Reads `retain=1,recall=4`; what is not named has no share.
    fn from_str(text: &str) -> Result<Self, MixError> {
        let wrong = || MixError(text.to_owned());
        let mut shares = [None; 2];
        for part in text.split(',') {
            let (name, share) = part.split_once('=').ok_or_else(wrong)?;
            let at = Operation::ALL.iter().position(|known| known.name() == name.trim()).ok_or_else(wrong)?;
            let share: u32 = share.trim().parse().map_err(|_| wrong())?;
            if shares[at].replace(share).is_some() {
                return Err(wrong());
            }
        }
        let [retain, recall] = shares.map(Option::unwrap_or_default);
        if retain == 0 && recall == 0 { Err(wrong()) } else { Ok(Self { retain, recall }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_and_written() {
        for (text, retain, recall) in [("retain=1,recall=4", 1, 4), ("recall=1", 0, 1), (" recall=2 , retain=3", 3, 2)]
        {
            let mix: Mix = text.parse().expect(text);
            assert_eq!((mix.retain, mix.recall), (retain, recall));
            assert_eq!(mix.to_string().parse(), Ok(mix));
        }
        for wrong in ["", "recall", "recall=0", "search=1", "recall=1,recall=2", "recall=-1", "recall=0.5", "recall=1,"]
        {
            let told = wrong.parse::<Mix>().expect_err(wrong).to_string();
            assert!(told.contains("retain=1,recall=4"), "{told}");
        }
    }

    /// Bound: five standard errors.
    #[test]
    fn operations_come_in_their_shares() {
        let (mix, mut draws) = (Mix { retain: 1, recall: 4 }, Draws::new(3, 1));
        let retains = (0..100_000).filter(|_| mix.draw(&mut draws) == Operation::Retain).count();
        assert!((f64::from(retains as u32) / 1e5 - 0.2).abs() < 0.0064, "{retains}");
        assert!((0..1_000).all(|_| Mix { retain: 0, recall: 1 }.draw(&mut draws) == Operation::Recall));
    }
}
