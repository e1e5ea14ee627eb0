use serde_json::{Value, json};

use super::*;

fn prompt(operation: Operation, body: &Value) -> u64 {
    count(operation, Encoding::O200k, body.to_string().as_bytes()).tokens
}

fn of_chat(message: &Value) -> u64 {
    prompt(Operation::Chat, &json!({"messages": [message]}))
}

#[test]
fn prompts_of_all_operations_are_counted() {
    let hello = Encoding::O200k.count("hello world");
    let message = json!({"role": "user", "content": "hello world"});
    let parts = json!({"role": "user", "content": [{"type": "text", "text": "hello world"}]});
    for message in [message.clone(), parts] {
        assert_eq!(prompt(Operation::Chat, &json!({"messages": [message, message]})), 2 * (hello + 4) + 3);
    }
    assert_eq!(prompt(Operation::Responses, &json!({"input": "hello world"})), hello + 3);
    assert_eq!(
        prompt(Operation::Responses, &json!({"instructions": "hello world", "input": [message]})),
        2 * hello + 7
    );
    let of_claude = json!({"system": [{"type": "text", "text": "hello world"}], "messages": [message]});
    assert_eq!(prompt(Operation::Messages, &of_claude), 2 * hello + 7);
    for input in [json!("hello world"), json!(["hello world"])] {
        assert_eq!(prompt(Operation::Embeddings, &json!({"input": input})), hello);
    }
    assert_eq!(prompt(Operation::Embeddings, &json!({"input": [[1, 2], [3]]})), 3);
    assert_eq!(prompt(Operation::Completions, &json!({"prompt": ["hello world", "hello world"]})), 2 * hello);
    let tools = json!({"messages": [message], "tools": [{"type": "function"}]});
    assert!(prompt(Operation::Chat, &tools) > 32 + hello);
    assert_eq!(count(Operation::Chat, Encoding::O200k, b"no json").tokens, 7);
    assert_eq!(count(Operation::Models, Encoding::O200k, b""), Counted::default());
}

#[test]
fn p10_no_member_of_a_request_hides_text_from_the_count() {
    let text = "hello world ".repeat(200);
    let least = Encoding::O200k.count(&text);
    for body in [
        json!({"functions": [{"name": "f", "description": text}]}),
        json!({"messages": [{"role": "user", "id": text}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "index": text}]}]}),
        json!({"messages": [{"role": text}]}),
        json!({"messages": [{"role": "user", "content": [{"type": text}]}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "cache_control": {"type": text}}]}]}),
        json!({"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": {"call_id": text}}}]}]}),
        json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"id": text}}]}]}),
        json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {text.clone(): 1}}]}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "my image", "text": text}]}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "image_url", "text": text}]}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x", "note": text}}]}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "image_url": {"url": text}}]}]}),
        json!({"messages": [{"role": "user", "content": [{"type": "image_url", "source": {"data": text}}]}]}),
        json!({"messages": [{"role": "user", text.clone(): 1}]}),
        json!({"documents": [{"title": "t", "text": text}]}),
        json!({"prediction": {"type": "content", "content": text}}),
    ] {
        let counted = prompt(Operation::Chat, &body);
        assert!(counted >= least, "{counted} of {least}: {}", &body.to_string()[..80]);
    }
    let twice = format!(r#"{{"messages":[{{"content":"{text}"}}],"messages":[]}}"#);
    assert!(count(Operation::Chat, Encoding::O200k, twice.as_bytes()).tokens >= least);
    let types = format!(r#"{{"messages":[{{"type":"image_url","type":"text","image_url":"{text}"}}]}}"#);
    assert!(
        count(Operation::Chat, Encoding::O200k, types.as_bytes()).tokens >= least,
        "readers differ in which they believe"
    );
}

#[test]
fn p34_ids_and_the_data_of_pictures_are_no_text() {
    let data = "iVBORw0KGgo".repeat(100);
    for part in [
        json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}"), "detail": "high"}}),
        json!({"image_url": {"url": "http://a.example/x"}, "type": "image_url"}),
        json!({"type": "input_image", "image_url": format!("data:image/png;base64,{data}")}),
        json!({"type": "input_image", "file_id": "file-1"}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}),
        json!({"type": "image", "source": {"type": "url", "url": "https://a.example/x.png"}}),
        json!({"type": "image", "source": {"type": "file", "file_id": "file_1"}, "cache_control": {"type": "ephemeral"}}),
    ] {
        assert_eq!(of_chat(&json!({"role": "user", "content": [part]})), 1_600 + 7, "{part}");
    }
    let called = json!({"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "index": 0}]});
    assert_eq!(of_chat(&called), 7);
    let settings = json!({"model": "gpt-4o", "user": "somebody", "metadata": {"a": "b"}, "stop": ["x"], "top_k": 40,
        "tool_choice": {"type": "auto"}, "response_format": {"type": "json_object"}, "messages": [], "tools": null});
    assert_eq!(prompt(Operation::Chat, &settings), 3);
}

#[test]
fn p34_what_stands_in_the_place_of_a_picture_is_one() {
    let asks = |part: &Value| {
        let body = json!({"messages": [{"role": "user", "content": [part]}]}).to_string();
        count(Operation::Chat, Encoding::Bytes, body.as_bytes())
    };
    let url = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let source = |source: Value| json!({"type": "image", "source": source});
    for part in [
        url("data:image/png;base64,AAAA"),
        url("DATA:IMAGE/jpeg;base64,AAAA"),
        url("https://a.example/x"),
        json!({"type": "input_image", "image_url": "http://a.example/x.png"}),
        json!({"type": "input_image", "file_id": "file-1", "image_url": null}),
        json!({"type": "image_url", "image_url": {"url": "https://a.example/x", "format": "image/png", "detail": "low"}}),
        source(json!({"type": "base64", "media_type": "image/png", "data": "AAAA"})),
        source(json!({"type": "url", "url": "https://a.example/x.png"})),
        source(json!({"type": "file", "file_id": "file_1"})),
    ] {
        let counted = asks(&part);
        assert!(!counted.is_no_picture && !counted.is_elsewhere, "{part}: {counted:?}");
    }
    for part in [
        url("data:video/mp4;base64,AAAA"),
        url("data:audio/wav;base64,AAAA"),
        url("data:application/pdf;base64,AAAA"),
        url("data:;base64,AAAA"),
        url("gs://bucket/x.mp4"),
        url("file:///etc/passwd"),
        url("AAAA"),
        json!({"type": "input_image", "image_url": "data:video/mp4;base64,AAAA"}),
        json!({"image_url": {"url": "data:video/mp4;base64,AAAA"}}),
        json!({"type": "image_url", "image_url": {"url": "https://a.example/x", "format": "video/mp4"}}),
        json!({"type": "image_url", "image_url": ["https://a.example/x.mp4"]}),
        json!({"type": "image_url", "image_url": {"url": 7}}),
        source(json!({"type": "base64", "media_type": "video/mp4", "data": "AAAA"})),
        source(json!({"type": "base64", "media_type": "image/png", "data": "data:video/mp4;base64,AAAA"})),
        source(json!({"type": "base64", "Media_Type": "audio/wav", "media_type": "image/png", "data": "AAAA"})),
        source(json!({"type": "url", "url": "data:video/mp4;base64,AAAA"})),
    ] {
        assert!(asks(&part).is_no_picture, "{part}");
    }
}

#[test]
fn p34_of_a_picture_the_begin_is_read_and_no_more_unless_it_has_escapes() {
    let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).expect(text);
    for (text, begin) in [
        (r#""""#, Some("")),
        (r#""data:""#, Some("data:")),
        (r#""d\u0061ta:image/png""#, Some("data:image/png")),
        (r#""data:image/png;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAA\u0041""#, Some("data:image/png;base64,AAAAAAAAAA")),
        ("7", None),
        ("{}", None),
        ("null", None),
    ] {
        assert_eq!(begin_of(&raw(text)).as_deref(), begin, "{text}");
    }
    let umlauts = format!(r#""{}""#, "ä".repeat(40));
    assert_eq!(begin_of(&raw(&umlauts)).as_deref(), Some("ä".repeat(16).as_str()));
    let odd = format!(r#""x{}""#, "ä".repeat(40));
    assert_eq!(begin_of(&raw(&odd)).map(|begin| begin.len()), Some(31), "no letter is cut");
    assert!(is_picture(&raw(&format!(r#""data:image/png;base64,{}""#, "A".repeat(1 << 20)))));
    assert!(!is_picture(&raw(r#""data:vid\u0065o/mp4;base64,AAAA""#)));
    assert!(is_picture(&raw(r#"{"type":"base64","media_type":"im\u0061ge/png","data":"AAAA"}"#)));
}

#[test]
fn p34_many_small_objects_are_counted_one_by_one() {
    let list = format!("[{}]", vec![r#"{"":0}"#; 20_000].join(","));
    for (operation, name, least) in [
        (Operation::Chat, "messages", 20_000),
        (Operation::Responses, "input", 20_000),
        (Operation::Chat, "functions", 20_000),
        (Operation::Chat, "unheard_of", 20_000),
    ] {
        let body = format!(r#"{{"model":"m","{name}":{list}}}"#);
        let counted = count(operation, Encoding::Bytes, body.as_bytes());
        assert!(counted.tokens >= least && counted.tokens <= body.len() as u64 + 32, "{name}: {counted:?}");
    }
    let deep = format!(r#"{{"messages":{}{}}}"#, r#"[{"content":"#.repeat(200), "}]".repeat(200));
    assert_eq!(count(Operation::Chat, Encoding::Bytes, deep.as_bytes()).tokens, deep.len() as u64);
    let within = format!(r#"{{"messages":[{}1{}]}}"#, r#"{"source":"#.repeat(50_000), "}".repeat(50_000));
    assert!(count(Operation::Chat, Encoding::Bytes, within.as_bytes()).tokens >= 50_000, "nothing overflows");
}

#[test]
fn p34_an_inline_text_may_begin_with_an_address_and_data_may_not() {
    let asks = |source: &str| {
        let part = format!(r#"{{"type":"document","source":{source}}}"#);
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{part}]}}]}}"#);
        count(Operation::Messages, Encoding::Bytes, body.as_bytes())
    };
    let page = "https://example.com/page says that tea is at four";
    for source in [
        format!(r#"{{"type":"text","media_type":"text/plain","data":"{page}"}}"#),
        format!(r#"{{"data":"{page}","type":"text"}}"#),
    ] {
        let counted = asks(&source);
        assert!(!counted.is_elsewhere && counted.tokens >= page.len() as u64, "{source}: {counted:?}");
    }
    for source in [
        r#"{"type":"base64","data":"https://example.com/a.pdf"}"#,
        r#"{"data":"https://example.com/a.pdf"}"#,
        r#"{"type":"text","data":"https://example.com/a.pdf","type":"base64"}"#,
        r#"{"Type":"url","type":"text","data":"tea"}"#,
        r#"{"type":"text","data":"tea","url":"https://example.com/a.pdf"}"#,
        r#"{"type":"text","file_data":"https://example.com/a.pdf"}"#,
    ] {
        assert!(asks(source).is_elsewhere, "{source}");
    }
}

#[test]
fn p34_a_body_is_walked_for_names_of_files_and_not_for_words() {
    let attaches = |content: &str| {
        let body = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
        attached(Operation::Chat, body.as_bytes()).is_some()
    };
    for words in [r#""a file, a document, an image, its source, a file_id""#, r#""caf\u00e9\u2026 \u0022a file\u0022""#]
    {
        assert!(!attaches(words), "{words}");
    }
    for part in
        [r#"[{"\u0066ile":{}}]"#, r#"[{"imag\u0065_ur\u006c":""}]"#, r#"[{"file_id":"f"}]"#, r#"[{"video":[]}]"#]
    {
        assert!(attaches(part), "{part}");
    }
}

#[test]
fn p34_half_a_letter_is_read_as_a_whole_one() {
    let body = br#"{"messages":[{"role":"user","content":"hello \ud83d"},{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}"#;
    let counted = count(Operation::Chat, Encoding::Bytes, body);
    assert!(counted.is_elsewhere && counted.tokens < body.len() as u64, "{counted:?}");
    let plain = br#"{"messages":[{"role":"user","content":"hello \ud83d"}]}"#;
    let nine = Counted { tokens: 9 + 4 + 3, ..Counted::default() };
    assert_eq!(count(Operation::Chat, Encoding::Bytes, plain), nine);
}

#[test]
fn json_is_counted_without_the_white_space_of_its_writer() {
    assert_eq!(compact("{ \"a b\" :\n [ 1, \"\\u00e9 \\\"\" ] }"), "{\"a b\":[1,\"é \\\"\"]}");
    assert_eq!(compact(r#"{"a":"\ud800 x"}"#), r#"{"a":"\ud800 x"}"#);
    assert_eq!(compact("17"), "17");
}
