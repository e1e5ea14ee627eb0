//! Messages as they travel: a versioned JSON body, and properties.

use bench_proto::task::TaskMessage;
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, ShortString},
};

use crate::{Headers, Outgoing};

/// Written to disk before it is confirmed.
const PERSISTENT: u8 = 2;

/// Body and properties of a message.
pub(super) fn encode(outgoing: &Outgoing) -> Result<(Vec<u8>, BasicProperties), serde_json::Error> {
    let body = serde_json::to_vec(&outgoing.message)?;
    let mut properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("application/json".into())
        .with_type("bench.task".into());
    if let Ok(id) = ShortString::try_new(outgoing.message.message_id()) {
        properties = properties.with_message_id(id);
    }
    if !outgoing.headers.is_empty() {
        let mut table = FieldTable::default();
        for (name, value) in &outgoing.headers {
            // a name that AMQP cannot carry is no header of ours
            if let Ok(name) = ShortString::try_new(name.as_str()) {
                table.insert(name, AMQPValue::LongString(value.as_str().into()));
            }
        }
        properties = properties.with_headers(table);
    }
    Ok((body, properties))
}

/// Reads a message with text headers, without a broker; the error is for the log.
///
/// # Errors
/// What is wrong with it.
pub fn read(body: &[u8], headers: &[(&str, &[u8])]) -> Result<(TaskMessage, Headers), String> {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        if let Ok(name) = ShortString::try_new(*name) {
            table.insert(name, AMQPValue::LongString((*value).into()));
        }
    }
    decode(body, &BasicProperties::default().with_headers(table))
}

/// Reads a delivered message; the error is for the log.
pub(super) fn decode(body: &[u8], properties: &BasicProperties) -> Result<(TaskMessage, Headers), String> {
    let message = TaskMessage::from_bytes(body)?;
    let table = properties.headers().as_ref().map(FieldTable::inner);
    let text = |value: &AMQPValue| match value {
        AMQPValue::LongString(text) => std::str::from_utf8(text.as_bytes()).ok().map(str::to_owned),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        // the broker's own headers (x-delivery-count, x-death) have other types: not for callers
        _ => None,
    };
    let headers = table.into_iter().flatten();
    // the broker's text headers (x-first-death-reason) are not for callers either
    let ours = headers.filter(|(name, _)| !name.as_str().starts_with("x-"));
    Ok((message, ours.filter_map(|(name, value)| text(value).map(|value| (name.to_string(), value))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_read_again_without_the_brokers_own_headers() {
        let outgoing = crate::conformance::messages(7..8).remove(0);
        let (body, properties) = encode(&outgoing).expect("serialises");
        assert_eq!(properties.delivery_mode(), &Some(2));
        assert_eq!(properties.message_id().as_ref().map(ToString::to_string), Some(outgoing.message.message_id()));
        let mut table = properties.headers().clone().expect("headers");
        table.insert("x-delivery-count".into(), AMQPValue::LongLongInt(3));
        table.insert("x-first-death-reason".into(), AMQPValue::LongString("rejected".into()));
        let (message, headers) = decode(&body, &properties.with_headers(table)).expect("readable");
        assert_eq!((message, headers), (outgoing.message, outgoing.headers));
        assert!(decode(b"{}", &BasicProperties::default()).is_err());
    }
}
