//! What answered the calls of a run: noted as an event of the run, once for each process, model, server and name in replies.

use serde::{Deserialize, Serialize};

use crate::{call::Phase, server::ServerAddress, step::Served};

/// Who answered calls to a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServedNote {
    /// The phase that called it.
    pub phase: Phase,
    /// The account whose base URL was called.
    pub account: String,
    /// The model as it was asked for.
    pub model: String,
    /// Where the base URL leads; none for replies of the call store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
    /// The model as the reply names it.
    pub served: Served,
}
