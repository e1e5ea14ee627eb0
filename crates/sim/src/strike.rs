//! What an outage does to a request.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures::stream;

use crate::{
    core::{Core, Ticket},
    error::ApiError,
    fault::FaultKind,
    outage::{About, OutageKind},
};

/// How long a hanging request is held, at most.
const HANG: Duration = Duration::from_secs(600);

/// A page as proxies and captive portals send it.
const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n";

/// An end before the reply that was asked for.
pub(crate) enum Early {
    /// An error, in the form of the API that was asked.
    Error(ApiError),
    /// Something that is no reply of any API.
    Other(Response),
}

impl From<ApiError> for Early {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Early {
    /// The response, with errors in the form of an API.
    pub(crate) fn response(self, form: fn(ApiError) -> Response) -> Response {
        match self {
            Self::Error(error) => form(error),
            Self::Other(response) => response,
        }
    }

    /// The response, with errors in OpenAI's form.
    pub(crate) fn openai(self) -> Response {
        self.response(ApiError::into_response)
    }
}

/// Lets the outages have their way with a request; the answer is the fault that its reply will have.
pub(crate) async fn strike(core: &Core, ticket: &mut Ticket, about: &About<'_>) -> Result<Option<FaultKind>, Early> {
    let Some(outage) = ticket.about(about) else { return Ok(None) };
    match outage.kind {
        OutageKind::Status => Err(outage.error().into()),
        OutageKind::Hang => Err(hang(core).await.into()),
        // the connection ends with the door
        OutageKind::Refuse => Err(hang(core).await.into()),
        OutageKind::Cut => Err(Early::Other(cut())),
        OutageKind::CutBody => Ok(Some(FaultKind::Cut)),
        OutageKind::Html => Err(Early::Other(page())),
    }
}

/// Answers nothing for ten minutes.
pub(crate) async fn hang(core: &Core) -> ApiError {
    tokio::select! {
        () = tokio::time::sleep(HANG) => {}
        () = core.stop.cancelled() => {}
    }
    ApiError::timed_out()
}

/// Closes the connection before a byte is sent: a body that is broken at once takes the head with it.
fn cut() -> Response {
    Response::new(Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("cut by the simulator"))])))
}

fn page() -> Response {
    let mut response = Response::new(Body::from(PAGE));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}
