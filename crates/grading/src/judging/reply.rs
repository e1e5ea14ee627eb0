//! Forms of a judge's reply. Each is read strictly and by its name; what cannot be read is asked again, and then a failure of the
//! judge, not of the answer.

use serde_json::Value;

use super::verdict;
use crate::prompts::without_fence;

/// What a reply said.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A grade.
    Score {
        /// In [0, 1].
        value: f64,
        /// By names of their own.
        parts: Vec<(&'static str, f64)>,
        /// The grade in a word, for people.
        word: String,
    },
    /// Which of the things that were named it is (from 0), if any.
    Match(Option<usize>),
}

/// A reply that has not the form that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplyError(pub String);

/// How the reply to a call is asked for and read; equal names and versions read alike.
pub trait ReplyForm: std::fmt::Debug + Send + Sync {
    /// Its name in requests and fingerprints.
    fn name(&self) -> &'static str;

    /// Version of its reader: raised whenever a reply is read differently.
    fn version(&self) -> u32;

    /// The JSON schema that a server may hold the model to; none: plain text.
    fn schema(&self) -> Option<Value>;

    /// Output limit in tokens, when the parameters have none.
    fn max_tokens(&self) -> u32 {
        256
    }

    /// Tokens of a reply, for estimates: of a short one, and as many as are expected. A sentence of reasoning and a word, unless it
    /// is said otherwise.
    fn tokens(&self) -> (u64, u64) {
        (10, 18)
    }

    /// What a reply to a good answer says, for estimates: a program goes on from it.
    fn example(&self) -> Reply {
        Reply::Score { value: 1.0, parts: Vec::new(), word: String::new() }
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// [`ReplyError`] for everything that has not the form.
    fn read(&self, reply: &str) -> Result<Reply, ReplyError>;
}

/// `correct` or `incorrect`, with a reason.
#[derive(Debug)]
pub struct Verdict;

impl ReplyForm for Verdict {
    fn name(&self) -> &'static str {
        verdict::SCHEMA_NAME
    }

    fn version(&self) -> u32 {
        verdict::VERSION
    }

    fn schema(&self) -> Option<Value> {
        Some(verdict::schema())
    }

    fn read(&self, reply: &str) -> Result<Reply, ReplyError> {
        let verdict = verdict::parse(reply).map_err(|error| ReplyError(error.to_string()))?;
        Ok(Reply::Score { value: verdict.score(), parts: Vec::new(), word: verdict.word().to_owned() })
    }
}

/// The JSON in a reply: as it is, or in one code fence.
#[must_use]
pub fn json_of(reply: &str) -> &str {
    without_fence(reply.trim())
}
