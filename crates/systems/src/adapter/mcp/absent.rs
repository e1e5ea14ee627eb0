//! In place of the protocol, where this build has none.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::AtomicBool},
};

use bench_proto::{failure::Failure, trace::StepTrace};
use reqwest::{Url, header::HeaderMap};
use serde_json::{Map, Value};
use tokio::process::{ChildStdin, ChildStdout};

use super::{reply::Reply, tools::Tool};

/// A connection that nobody has.
pub(super) struct Wire(Infallible);

fn absent() -> Failure {
    Failure::terminal(
        "system_start",
        "this program was built without the Model Context Protocol: build it with the feature `mcp`, which is on by default",
    )
}

impl Wire {
    pub(super) async fn over_pipes(
        _: (ChildStdout, ChildStdin),
        _longest: usize,
        _too_long: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        Err(absent())
    }

    pub(super) async fn over_http(
        _: reqwest::Client,
        _: (&Url, &HeaderMap),
        _longest: usize,
        _at_once: usize,
    ) -> Result<Self, Failure> {
        Err(absent())
    }

    pub(super) fn server(&self) -> Option<String> {
        match self.0 {}
    }

    pub(super) async fn tools(&self) -> Result<Vec<Tool>, Failure> {
        match self.0 {}
    }

    pub(super) async fn call(
        &self,
        _tool: &str,
        _arguments: Map<String, Value>,
        _trace: Option<&StepTrace>,
    ) -> Result<Reply, Failure> {
        match self.0 {}
    }

    pub(super) fn is_closed(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn close(&self) {
        match self.0 {}
    }
}
