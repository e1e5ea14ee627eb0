//! Reading recorded responses as an adapter reads live ones, for tests of adapters without their systems.

use bench_proto::{failure::Failure, ids::Sha256Hash};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;

#[cfg(feature = "mcp")]
use super::mcp::{self, tools::ToolCall};
use super::{
    AdapterSpec,
    call::{Call, Read},
    file::{self, Adapter},
    http::{self, Response, response_bytes},
    index::Indexes,
    path::Path,
    places::Known,
    recalling::{self, Among},
    settings,
    template::Vars,
};
use crate::{BankRef, SystemSettings};

fn call<'a>(adapter: &'a Adapter, name: &str) -> Option<&'a Call> {
    match name {
        "open" => adapter.open.as_ref(),
        "retain" => adapter.retain.as_ref(),
        "recall" => adapter.searches.first().map(|(call, _)| call),
        "answer" => adapter.answer.as_ref(),
        "verify" => adapter.verify.as_ref(),
        "reset" => adapter.reset.as_ref(),
        "health" => adapter.health.as_ref(),
        _ => None,
    }
}

fn compiled(spec: &AdapterSpec) -> Result<Adapter, Failure> {
    let told = settings::told(spec.clone(), &SystemSettings::new());
    told.and_then(|spec| file::compile(&spec)).map_err(|error| Failure::permanent("adapter", error))
}

/// What the adapter reads out of a response: hits as `id session text` lines, a text, a number, or nothing.
///
/// # Errors
/// As the live call.
pub fn read(spec: &AdapterSpec, name: &str, status: u16, kind: &str, body: &[u8]) -> Result<String, Failure> {
    let adapter = compiled(spec)?;
    let call = call(&adapter, name).ok_or_else(|| Failure::permanent("adapter", format!("no call '{name}'")))?;
    let mut headers = HeaderMap::new();
    if let Ok(kind) = HeaderValue::from_str(kind) {
        headers.insert(CONTENT_TYPE, kind);
    }
    let read = call.read(Response { status, headers, body: body.to_vec(), max_bytes: response_bytes(spec) })?;
    told(spec, &adapter, (name, call), &read)
}

/// What the adapter reads out of the result of a tool, as [`read`] does out of a response.
///
/// # Errors
/// As the live call.
#[cfg(feature = "mcp")]
pub fn read_tool(spec: &AdapterSpec, name: &str, result: &[u8]) -> Result<String, Failure> {
    let adapter = compiled(spec)?;
    let wrong = |error: String| Failure::permanent("adapter", error);
    let call = call(&adapter, name).ok_or_else(|| wrong(format!("no call '{name}'")))?;
    let tool = call.tool().ok_or_else(|| wrong(format!("'{name}' calls no tool")))?;
    let read = call.look_at(mcp::read(name, tool, result, response_bytes(spec))?)?;
    told(spec, &adapter, (name, call), &read)
}

/// Whether a server that lists these tools has what the adapter calls.
///
/// # Errors
/// What is missing, or why the list cannot be read.
#[cfg(feature = "mcp")]
pub fn check_tools(spec: &AdapterSpec, list: &[u8]) -> Result<(), Failure> {
    let adapter = compiled(spec)?;
    let calls: Vec<ToolCall> = adapter.calls().filter_map(|call| call.tool().cloned()).collect();
    mcp::check(&calls, list)
}

fn told(spec: &AdapterSpec, adapter: &Adapter, (name, call): (&str, &Call), read: &Read) -> Result<String, Failure> {
    match name {
        "recall" => {
            let bank = BankRef {
                name: "replay".to_owned(),
                handle: None,
                bank_id: "replay".to_owned(),
                content_hash: Sha256Hash::of_bytes(b"replay"),
                content: None,
            };
            let (indexes, known, mut lines) = (Indexes::default(), Known::default(), Vec::new());
            let among = Among { bank: &bank, indexes: &indexes, unit: spec.unit, known: &known };
            for hits in &adapter.searches[0].1 {
                for hit in recalling::hits_of(call, read, hits, &among)? {
                    lines.push(format!("{} {} {}", hit.id, hit.session_id, hit.text));
                }
            }
            Ok(lines.join("\n"))
        }
        "answer" => recalling::answer_text(call, read, spec.answer.as_ref()),
        "verify" => {
            let path = Path::new(spec.verify.as_ref().and_then(|verify| verify.count.as_deref()).unwrap_or_default());
            path.count(&read.value).map(|count| count.to_string()).map_err(|error| call.shape(error))
        }
        _ => Ok(String::new()),
    }
}

/// Where a call for a bank goes below a base URL.
///
/// # Errors
/// As the live call: a base URL that may not be used, a bank that names nothing.
pub fn request_url(spec: &AdapterSpec, name: &str, base: &str, bank: &str) -> Result<String, Failure> {
    let adapter = compiled(spec)?;
    let wrong = |error: String| Failure::permanent("adapter", error);
    let base = http::check_url(base, base, true, false, false).map_err(wrong)?;
    let call = call(&adapter, name).ok_or_else(|| wrong(format!("no call '{name}'")))?;
    let vars = Vars::default().with("bank", bank).with("name", bank).with("expected", Value::from(1));
    call.url(&base, &vars).map(String::from)
}

/// Method and path of a call for a bank, as they are sent.
#[must_use]
pub fn request_line(spec: &AdapterSpec, name: &str, bank: &str) -> String {
    let Ok(adapter) = compiled(spec) else { return String::new() };
    let vars = Vars::default().with("bank", bank).with("name", bank).with("expected", Value::from(1));
    call(&adapter, name).map(|call| call.line(&vars)).unwrap_or_default()
}
