//! Errors: those of the simulator's own settings, and those it answers in OpenAI's form.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::announced::Announced;

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Why the simulator did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}; choose another address with --listen or --admin-listen")]
    Listen {
        /// The address asked for.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The ledger cannot be opened.
    #[error("cannot write the ledger {}: {source}", .path.display())]
    Ledger {
        /// Its file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// An error reply in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// Sent as `retry-after` (whole seconds, rounded up) and `retry-after-ms`.
    pub(crate) retry_after_ms: Option<u64>,
    /// Sent with it when limits apply.
    pub(crate) announced: Option<Box<Announced>>,
}

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        kind: &'static str,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self { status, kind, code, param: None, message: message.into(), retry_after_ms: None, announced: None }
    }

    /// 400 for a request that can never work.
    pub(crate) fn invalid(code: Option<&'static str>, param: Option<&str>, message: impl Into<String>) -> Self {
        Self {
            param: param.map(str::to_owned),
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
        }
    }

    /// 400 for a parameter that is not there.
    pub(crate) fn missing(param: &str) -> Self {
        Self::invalid(
            Some("missing_required_parameter"),
            Some(param),
            format!("Missing required parameter: '{param}'."),
        )
    }

    /// 400 for a parameter of the wrong type.
    pub(crate) fn wrong_type(param: &str, expected: &str) -> Self {
        Self::invalid(Some("invalid_type"), Some(param), format!("Invalid type for '{param}': expected {expected}."))
    }

    pub(crate) fn bad_key() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "invalid_request_error",
            Some("invalid_api_key"),
            "Incorrect API key provided. This is the simulator: good keys are given by --accept-key.",
        )
    }

    pub(crate) fn unknown_model(model: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            Some("model_not_found"),
            format!("The model `{model}` does not exist or you do not have access to it."),
        )
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "server_error", None, "The request has timed out.")
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            None,
            "The engine is currently overloaded, please try again later.",
        )
    }

    pub(crate) fn quota() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        )
    }

    /// Adds headers of limits.
    pub(crate) fn announcing(mut self, announced: Announced) -> Self {
        self.announced = Some(Box::new(announced));
        self
    }

    fn body(&self) -> String {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
            .to_string()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(announced) = &self.announced {
            announced.write(headers);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(ms) = self.retry_after_ms {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
            headers.insert("retry-after-ms", HeaderValue::from(ms));
        }
        response
    }
}
