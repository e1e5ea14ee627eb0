//! Why something failed: words for a person, and what the errors behind them said.

use std::{error::Error, fmt, ops::Deref};

/// Why something failed, in words for a person. What the errors behind it said is kept as words, the nearest first: so a reason can
/// be copied and compared, which those errors cannot.
///
/// ```
/// use bench_proto::reason::Reason;
/// let refused = std::io::Error::other("connection refused");
/// let reason = Reason::from("no server listens at db:5432").because(&refused);
/// assert_eq!(reason.to_string(), "no server listens at db:5432");
/// assert_eq!(std::error::Error::source(&reason).map(ToString::to_string), Some("connection refused".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    words: String,
    cause: Option<Box<Reason>>,
}

impl Reason {
    /// The same words with an error behind them, and with what that error names as its causes.
    #[must_use]
    pub fn because(self, error: &(dyn Error + 'static)) -> Self {
        let cause = Self::from(error.to_string());
        let cause = match error.source() {
            Some(source) => cause.because(source),
            None => cause,
        };
        Self { cause: Some(Box::new(cause)), ..self }
    }

    /// Other words for what the same errors are behind.
    #[must_use]
    pub fn saying(self, words: String) -> Self {
        Self { words, ..self }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Error for Reason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

impl Deref for Reason {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self { words, cause: None }
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self::from(words.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_causes_are_kept_when_the_words_change() {
        let inner = Reason::from("the connection broke").because(&std::io::Error::other("reset by peer"));
        let outer = Reason::from("no answer").because(&inner).saying("no answer; try again".to_owned());
        let chain = std::iter::successors(outer.source(), |error| (*error).source()).map(ToString::to_string);
        assert_eq!(chain.collect::<Vec<_>>(), ["the connection broke", "reset by peer"]);
        assert!(outer.ends_with("try again"), "{outer}");
    }
}
