//! Server-sent events of an answer: frames end at an empty line, `data` lines of a frame are joined.

use bench_proto::json_bound::{Counted, TooMuchMemory};
use serde_json::{Value, json};

/// Bytes that an event takes in memory beside its data.
const EACH_EVENT: u64 = 128;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    /// Its name, `message` when it has none.
    pub(super) name: String,
    /// Its data: JSON where it is, else the text.
    pub(super) data: Value,
}

/// The events of a whole body. A last frame without its empty line is read too.
///
/// # Errors
/// All of them take more than `most` bytes in memory.
pub(super) fn events(body: &str, most: u64) -> Result<Vec<Event>, TooMuchMemory> {
    let mut needed = 0_u64;
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), Vec::new());
    // line ends are \n, \r\n or \r
    let body = body.strip_prefix('\u{feff}').unwrap_or(body).replace("\r\n", "\n").replace('\r', "\n");
    for line in body.split('\n').chain(std::iter::once("")) {
        if line.is_empty() {
            if !data.is_empty() {
                let text = data.join("\n");
                needed = needed.saturating_add(EACH_EVENT + Counted::whole(text.as_bytes()).memory());
                if needed > most {
                    return Err(TooMuchMemory { needed, most });
                }
                let data = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
                let name = if name.is_empty() { "message".to_owned() } else { name.clone() };
                events.push(Event { name, data });
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => data.push(value.to_owned()),
            _ => {}
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_many_values_are_refused_together() {
        // what stands between them opens no text that hides them
        let event = format!(": it's \" open\ndata: [{}0]\n\n", "{\"\":0},".repeat(10_000));
        let most = 64 << 20;
        assert_eq!(events(&event.repeat(2), most).map(|read| read.len()), Ok(2));
        let refused = events(&event.repeat(20), most).expect_err("are more");
        assert!(refused.needed > most && refused.most == most, "{refused}");
        assert!(events(&"data:x\n\n".repeat(1_000), 100_000).is_err(), "each is one, however short it is");
    }

    #[test]
    fn frames_are_read_as_they_come() {
        let body = ": hi\r\nevent: answer_delta\r\ndata: {\"text\":\r\ndata: \"o\"}\r\n\r\ndata: plain\n\nevent: empty\n\nevent: done\ndata: {\"ok\": true}";
        let read: Vec<_> = events(body, 1 << 20).expect("few").into_iter().map(|e| (e.name, e.data)).collect();
        assert_eq!(
            read,
            [
                ("answer_delta".to_owned(), json!({ "text": "o" })),
                ("message".to_owned(), json!("plain")),
                ("done".to_owned(), json!({ "ok": true })),
            ]
        );
    }
}
