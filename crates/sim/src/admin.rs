//! Questions about the simulator itself: its figures, and what can be changed while it runs.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    routing::{delete, get, post},
};
use serde_json::{Value, json};

use crate::{
    config::LiveConfig,
    core::Core,
    error::ApiError,
    outage::{Outage, OutageFigures},
};

pub(crate) fn router() -> Router<Arc<Core>> {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/stats", get(async |State(core): State<Arc<Core>>| Json(core.stats())))
        .route("/reset", post(async |State(core): State<Arc<Core>>| core.reset()))
        .route("/control", get(show_control).post(control))
        .route("/outages", get(show_outages).post(set_outage).delete(end_all))
        .route("/outages/{id}", delete(end_one))
}

async fn show_control(State(core): State<Arc<Core>>) -> Json<LiveConfig> {
    Json(LiveConfig::clone(&core.live()))
}

async fn control(State(core): State<Arc<Core>>, body: Bytes) -> Result<Json<LiveConfig>, ApiError> {
    let live = core.live().patched(&read(&body)?).map_err(|e| invalid(e.to_string()))?;
    core.set_live(live.clone());
    Ok(Json(live))
}

async fn show_outages(State(core): State<Arc<Core>>) -> Json<Vec<OutageFigures>> {
    Json(core.outage_figures())
}

async fn set_outage(State(core): State<Arc<Core>>, body: Bytes) -> Result<Json<Value>, ApiError> {
    let outage = Outage::from_json(read(&body)?).map_err(|e| invalid(e.to_string()))?;
    Ok(Json(json!({"id": core.set_outage(outage)})))
}

async fn end_all(State(core): State<Arc<Core>>) {
    core.end_outages(None);
}

async fn end_one(State(core): State<Arc<Core>>, Path(id): Path<u64>) -> Result<(), ApiError> {
    let unknown = || {
        let message = format!("there is no outage {id}: GET /outages lists them");
        ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", None, message)
    };
    if core.end_outages(Some(id)) { Ok(()) } else { Err(unknown()) }
}

fn read(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|e| invalid(format!("the body is not JSON: {e}")))
}

fn invalid(message: String) -> ApiError {
    ApiError::invalid(None, None, message)
}
