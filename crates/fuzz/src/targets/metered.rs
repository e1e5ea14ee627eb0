//! What passes the meter: requests of memory systems and replies of providers. The target of a request on the first line, then its
//! body, a zero byte, and the reply.

use bench_meter::{
    Asked,
    heard::{self, Heard},
};
use serde_json::Value;

/// Tokens beyond what was sent and what came that a provider is believed.
const BELIEVED: u64 = 2_000_000;

pub(super) fn metered(bytes: &[u8]) {
    let (target, rest) = super::first_line(bytes);
    let cut = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (body, reply) = (&rest[..cut], rest.get(cut + 1..).unwrap_or_default());
    let asked = match heard::request(target, body) {
        Ok(asked) => asked,
        Err(told) => {
            assert!(told.len() < 4096 && serde_json::from_str::<Value>(&told).is_ok(), "{} bytes: {told}", told.len());
            return;
        }
    };
    if let Some(sent) = heard::with_wish(&asked) {
        wishes(body, &sent);
    }
    let whole = heard::reply(&asked, reply, usize::MAX);
    look(&asked, reply, &whole);
    for piece in [1, 7, 1024] {
        let cut = heard::reply(&asked, reply, piece);
        look(&asked, reply, &cut);
        let read = |heard: &Heard| (heard.usage, heard.counted_here, heard.ended.clone());
        assert_eq!(read(&cut), read(&whole), "in pieces of {piece}");
    }
}

/// The body that goes out asks for the use, and says the same besides.
fn wishes(body: &[u8], sent: &[u8]) {
    // deeper ones are read by the meter, and not here
    let Ok(Value::Object(mut said)) = serde_json::from_slice(body) else { return };
    let Ok(Value::Object(mut sent)) = serde_json::from_slice(sent) else { panic!("what is sent is no object") };
    let options = sent.remove("stream_options").unwrap_or_default();
    assert_eq!(options["include_usage"], true, "it is not asked for");
    said.remove("stream_options");
    assert_eq!(said, sent, "something else was changed");
}

fn look(asked: &Asked, reply: &[u8], heard: &Heard) {
    if heard::with_wish(asked).is_none() {
        assert!(heard.passed == reply, "the reply was changed");
    }
    assert!(heard.passed.len() <= reply.len(), "the reply has grown");
    // what is counted here may be more: a picture has more tokens than its bytes
    let Some(tokens) = heard.usage.filter(|_| !heard.counted_here) else { return };
    let most = asked.max_reply_tokens.unwrap_or(0).max(reply.len() as u64).saturating_add(BELIEVED);
    assert!(tokens.prompt <= asked.prompt_bytes.saturating_add(BELIEVED), "{tokens:?}");
    assert!(tokens.completion <= most, "{tokens:?}");
}
