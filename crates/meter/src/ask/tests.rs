use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::address;

fn ask(path: &str, body: &str) -> Result<Asked, Rejection> {
    let target = address::read(&format!("/m/r/v1/{path}")).expect(path);
    Asked::read(target, None, &HeaderMap::new(), Bytes::copy_from_slice(body.as_bytes()))
}

fn chat(body: &str) -> Asked {
    ask("chat/completions", body).expect(body)
}

#[test]
fn a_request_says_what_it_wants() {
    let asked = chat(
        r#"{"model":"gpt-4o","max_completion_tokens":7,"n":3,"temperature":0,"service_tier":"flex","messages":[{"role":"user","content":"hello world"}]}"#,
    );
    assert_eq!(
        (asked.model.as_str(), asked.max_reply_tokens, asked.stream, asked.cacheable),
        ("gpt-4o", Some(21), false, true)
    );
    assert_eq!((asked.prompt_tokens.count(), asked.service_tier.as_deref()), (2 + 4 + 3, Some("flex")));
    assert!(asked.prompt_tokens.is_exact());
    let shown = format!("{asked:?}");
    assert!(!shown.contains("hello"), "{shown}");
    let asked = chat(r#"{"model":"m","max_tokens":1000,"stream":true,"temperature":0.0}"#);
    assert_eq!((asked.max_reply_tokens, asked.stream, asked.cacheable), (Some(1000), true, false));
    assert!(asked.wish.is_added());
    let asked = chat(r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#);
    assert!(!asked.wish.is_added());
    let asked = ask("embeddings", r#"{"model":"m","input":"x"}"#).expect("good");
    assert_eq!((asked.cacheable, asked.max_reply_tokens), (true, None));
    let asked = ask("responses", r#"{"model":"m","input":"x","stream":true,"max_output_tokens":5}"#).expect("good");
    assert_eq!((asked.max_reply_tokens, asked.wish.is_added()), (Some(5), false));
    let kept = ask("responses", r#"{"model":"m","temperature":0,"previous_response_id":"r"}"#).expect("good");
    assert!(!kept.cacheable, "its reply depends on more than itself");
    let listed = ask("models", "").expect("good");
    assert_eq!((listed.model.as_str(), listed.cacheable), ("", false));
}

#[test]
fn what_cannot_be_read_is_refused() {
    for body in [
        "",
        "[]",
        "nothing",
        r#"{"messages":[]}"#,
        r#"{"model":null}"#,
        r#"{"model":7}"#,
        r#"{"model":""}"#,
        r#"{"model":"a\u0000b"}"#,
        r#"{"model":"a","model":"b"}"#,
        r#"{"model":"a","mod\u0065l":"b"}"#,
        r#"{"model":"a","stream":"true"}"#,
        r#"{"model":"a","stream":1}"#,
        r#"{"model":"a","stream":true,"stream":false}"#,
        r#"{"model":"a","background":true}"#,
        r#"{"model":"a","Model":"b"}"#,
        r#"{"model":"a","tools":[{"type":"web_search"}]}"#,
        r#"{"model":"a","functions":[{"googleSearch":{}}]}"#,
        r#"{"model":"a","functions":[],"functions":[{"name":"f"}]}"#,
        r#"{"model":"a","prompt":{"id":"pmpt_1"}}"#,
        r#"{"model":"a","service_tier":["ultrafast"]}"#,
        r#"{"model":"a","messages":[],"messages":[]}"#,
        r#"{"model":"a"} {"#,
    ] {
        let rejection = ask("chat/completions", body).expect_err(body);
        assert_eq!(rejection.status.as_u16(), 400, "{body}");
    }
    let kept = r#"{"model":"a","prompt":{"id":"pmpt_1"}}"#;
    assert!(ask("responses", kept).is_err(), "what the provider keeps may name tools");
    let video = json!({"type": "image_url", "image_url": {"url": "data:video/mp4;base64,AAAA"}});
    let video = json!({"model": "a", "messages": [{"role": "user", "content": [video]}]}).to_string();
    assert!(ask("chat/completions", &video).is_err(), "a video has more tokens than a picture");
    assert!(ask("completions", r#"{"model":"a","prompt":["b"]}"#).is_ok());
    let long = json!({"model": "m".repeat(LONGEST_MODEL + 1)}).to_string();
    assert!(ask("chat/completions", &long).is_err());
    let target = address::read("/m/r/v1/embeddings").expect("a path");
    assert!(Asked::read(target, None, &HeaderMap::new(), Bytes::from_static(b"{\"model\":\"\xff\"}")).is_err());
}

#[test]
fn p34_one_model_is_asked_by_a_name_that_asks_for_nothing_else() {
    let read = |path: &str, model: &str| {
        let body = json!({"model": model, "messages": []}).to_string();
        Asked::read(address::read(path).expect("a path"), None, &HeaderMap::new(), Bytes::from(body))
    };
    for several in [
        "openai/gpt-5-pro,openai/gpt-4o-mini",
        "gpt-4o-mini, gpt-5-pro",
        " gpt-4o-mini",
        "gpt-4o-mini ",
        "gpt-4o\tmini",
        "gpt-4o-mini\n",
        "openai/gpt-4o:online",
        "openai/gpt-4o:Online",
        "@preset/dear",
        "openai/gpt-4o@preset/dear",
        "openai/o1-pro@Preset/gpt-4o-mini",
    ] {
        let encoded: String = several.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let azure = format!("/m/r/openai/deployments/{encoded}/chat/completions");
        let of_body = read("/m/r/v1/chat/completions", several).expect_err(several);
        let (_, said) = of_body.written(crate::refusal::Form::OpenAi);
        let said: serde_json::Value = serde_json::from_slice(&said).expect("json");
        assert_eq!((of_body.status.as_u16(), &said["error"]["param"]), (400, &json!("model")), "{several}");
        // of a control character the path is nowhere
        if let Some(target) = address::read(&azure) {
            let body = Bytes::from_static(br#"{"model":"m","messages":[]}"#);
            assert!(Asked::read(target, None, &HeaderMap::new(), body).is_err(), "{azure}");
        }
    }
    for one in [
        "openai/gpt-4o:free",
        "claude-3-5-sonnet@20241022",
        "ft:gpt-4o-mini:o::1",
        "llama3.1:8b",
        "online",
        "Claude 3.5 Sonnet",
    ] {
        assert!(read("/m/r/v1/chat/completions", one).is_ok(), "{one}");
    }
}

#[test]
fn p34_what_is_not_listed_is_the_affair_of_the_account() {
    let asked = chat(r#"{"model":"m","seed":7,"models":["m","n"],"models":["m","n"],"n_predict":9,"ttl":null}"#);
    let through = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        asked.check_parameters(&names, "mine").err().map(|refusal| match refusal {
            Refusal::UnknownParameter { name, account, .. } if account == "mine" => name,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(through(&[]).as_deref(), Some("models"));
    assert_eq!(through(&["Models", "n_predict"]).as_deref(), Some("models"));
    assert_eq!(through(&["models"]).as_deref(), Some("n_predict"));
    assert_eq!(through(&["models", "n_predict"]), None);
}

#[test]
fn p34_what_brings_tools_or_sounds_within_a_conversation_is_the_affair_of_the_account_too() {
    let refused = |path: &str, body: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        ask(path, body).expect(body).check_parameters(&names, "mine").err().map(Rejection::from)
    };
    for (path, body, name) in [
        ("responses", r#"{"model":"m","input":[{"type":"additional_tools","tools":[]}]}"#, "additional_tools"),
        ("responses", r#"{"model":"m","input":[{"type":"compaction_trigger"}]}"#, "compaction_trigger"),
        (
            "messages",
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"tool_addition"}]}]}"#,
            "tool_addition",
        ),
        ("messages", r#"{"model":"m","system":[{"type":"tool_addition"}],"messages":[]}"#, "tool_addition"),
        ("chat/completions", r#"{"model":"m","messages":[{"content":[{"type":"input_audio"}]}]}"#, "input_audio"),
    ] {
        let rejection = refused(path, body, &[]).unwrap_or_else(|| panic!("passes: {body}"));
        assert!(rejection.status.as_u16() == 400 && rejection.kept().starts_with(name), "{rejection:?}");
        assert!(rejection.kept().contains("accounts.mine.parameters"), "{rejection:?}");
        assert_eq!(refused(path, body, &[name]), None, "{body}");
    }
    for body in [
        r#"{"model":"m","messages":[{"role":"system","tools":[{"type":"web_search"}]}]}"#,
        r#"{"model":"m","messages":[{"content":[{"tool":{"type":"tool_definition","definition":{"type":"mcp"}}}]}]}"#,
        r#"{"model":"m","messages":[],"messages":[{"type":"tool_addition"}]}"#,
    ] {
        assert!(ask("chat/completions", body).is_err(), "whoever the account is: {body}");
    }
}

#[test]
fn p10_what_is_thought_beside_a_reply_is_reserved_beside_its_limit() {
    for (limits, most, thinking) in [
        (r#""max_tokens":100,"thinking_budget":32768"#, Some(32_868), 32_768),
        (r#""max_tokens":100,"thinking_budget":4,"n":3"#, Some(312), 12),
        (r#""thinking_budget":4,"n":3"#, None, 12),
        (r#""max_tokens":7,"thinking_budget":null"#, Some(7), 0),
        (r#""max_tokens":7,"thinking_budget":99999999999999999999"#, Some(u64::MAX), u64::MAX),
    ] {
        let asked = chat(&format!(r#"{{"model":"m",{limits}}}"#));
        assert_eq!((asked.max_reply_tokens, asked.thinking_tokens), (most, thinking), "{limits}");
    }
}

#[test]
fn the_largest_limit_holds_whatever_it_is_called_and_0_is_none() {
    for (limits, most) in [
        (r#""max_completion_tokens":1,"max_tokens":50000"#, Some(50_000)),
        (r#""max_tokens":1,"max_completion_tokens":50000"#, Some(50_000)),
        (r#""max_output_tokens":9,"max_tokens":3,"n":2"#, Some(18)),
        (r#""max_tokens":0"#, None),
        (r#""max_tokens":0,"max_completion_tokens":5"#, Some(5)),
        (r#""max_tokens":null,"max_completion_tokens":5,"n":null"#, Some(5)),
        (r#""max_tokens":7,"n":2,"best_of":3"#, Some(21)),
        (r#""max_tokens":7,"n":0"#, Some(7)),
        (r#""max_tokens":99999999999999999999999,"n":3"#, Some(u64::MAX)),
        (r#""n":3"#, None),
        (r#""n":3,"max_tokens":0"#, None),
    ] {
        assert_eq!(chat(&format!(r#"{{"model":"m",{limits}}}"#)).max_reply_tokens, most, "{limits}");
    }
}

#[test]
fn a_number_that_somebody_could_read_in_another_way_is_refused_and_named() {
    for name in ["max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "thinking_budget"] {
        for value in ["\"9\"", "-1", "-0", "1e3", "7.0", "0.5", "true", "[]", "{}", "[9]"] {
            for path in ["chat/completions", "completions", "responses", "messages"] {
                let body = format!(r#"{{"model":"m","{name}":{value}}}"#);
                let rejection = ask(path, &body).expect_err(&body);
                assert_eq!(rejection.status.as_u16(), 400, "{body}");
                let (_, said) = rejection.written(crate::refusal::Form::OpenAi);
                let said: serde_json::Value = serde_json::from_slice(&said).expect("json");
                assert_eq!(said["error"]["param"], name, "{body}");
            }
        }
    }
}

#[test]
fn p10_choices_are_counted_without_a_limit_too_and_each_prompt_of_a_list_is_one_more() {
    for (path, body, choices, most) in [
        ("chat/completions", r#"{"model":"m","n":120}"#, 120, None),
        ("chat/completions", r#"{"model":"m","n":2,"best_of":7}"#, 7, None),
        ("chat/completions", r#"{"model":"m","n":0}"#, 1, None),
        ("chat/completions", r#"{"model":"m","prompt":["a","b"]}"#, 1, None),
        ("responses", r#"{"model":"m","n":3,"max_output_tokens":5}"#, 3, Some(15)),
        ("completions", r#"{"model":"m","prompt":"a","max_tokens":7}"#, 1, Some(7)),
        ("completions", r#"{"model":"m","prompt":["a","b","c"],"max_tokens":7}"#, 3, Some(21)),
        ("completions", r#"{"model":"m","prompt":["a","b","c"],"n":2,"best_of":5,"max_tokens":7}"#, 15, Some(105)),
        ("completions", r#"{"model":"m","prompt":["a","b","c"]}"#, 3, None),
        ("completions", r#"{"model":"m","prompt":[1,2,3],"max_tokens":7}"#, 1, Some(7)),
        ("completions", r#"{"model":"m","prompt":[[1,2],[3]],"max_tokens":7}"#, 2, Some(14)),
        ("completions", r#"{"model":"m","prompt":[],"max_tokens":7}"#, 1, Some(7)),
        ("completions", r#"{"model":"m","prompt":["a","b"],"n":99999999999999999999}"#, u64::MAX, None),
    ] {
        let asked = ask(path, body).expect(body);
        assert_eq!((asked.choices, asked.max_reply_tokens), (choices, most), "{body}");
    }
}

#[test]
fn p34_files_by_url_or_id_are_refused_and_pictures_are_reserved() {
    for (path, part) in [
        ("chat/completions", json!({"type": "file", "file": {"file_id": "file-1"}})),
        ("chat/completions", json!({"type": "file", "file": {"file_data": "https://a.example/x.pdf"}})),
        ("chat/completions", json!({"type": "file", "type ": 1, "File": {"file_id": "file-1"}})),
        ("chat/completions", json!({"type": "video_url", "video_url": {"url": "https://a.example/x.mp4"}})),
        ("responses", json!({"type": "input_file", "file_id": "file-1"})),
        ("responses", json!({"type": "input_file", "file_url": "https://a.example/x.pdf"})),
        ("messages", json!({"type": "document", "source": {"type": "url", "url": "https://a.example/x.pdf"}})),
        ("messages", json!({"type": "document", "Source": {"type": "url", "url": "https://a.example/x.pdf"}})),
        ("messages", json!({"type": "document", "source": {"type": "file", "file_id": "file_1"}})),
        ("messages", json!({"type": "tool_result", "content": [{"type": "document", "source": {"type": "file"}}]})),
        ("messages", json!({"type": "video", "source": {"type": "url", "url": "https://a.example/a.mp4"}})),
        ("chat/completions", json!({"input_audio": {"data": "https://a.example/a.mp3"}})),
        ("chat/completions", json!({"video": ["https://a.example/a.mp4"]})),
    ] {
        let within = if path == "responses" { "input" } else { "messages" };
        let body = json!({"model": "m", within: [{"role": "user", "content": [part]}]}).to_string();
        // a letter that is written as an escape is one all the same
        let escaped = [("file", "\\u0066ile"), ("doc", "\\u0064oc"), ("source", "\\u0073ource")];
        for body in escaped.map(|(word, written)| body.replace(word, written)).into_iter().chain([body]) {
            let refused = ask(path, &body).expect_err(&body);
            assert_eq!(refused.status.as_u16(), 400, "{body}");
        }
    }
    for (path, part) in [
        ("chat/completions", json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}})),
        ("chat/completions", json!({"type": "text", "text": "a file, a document, an image_url"})),
        ("chat/completions", json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})),
        ("responses", json!({"type": "input_image", "file_id": "file-1"})),
        ("responses", json!({"type": "input_file", "filename": "x.pdf", "file_data": "AAAA"})),
        ("messages", json!({"type": "document", "source": {"type": "base64", "data": "AAAA"}})),
        ("messages", json!({"type": "image", "source": {"type": "url", "url": "https://a.example/x.png"}})),
        ("messages", json!({"type": "search_result", "source": "https://a.example/file", "title": "t"})),
        ("messages", json!({"type": "tool_use", "name": "f", "input": {"type": "file", "file_id": "mine"}})),
    ] {
        let within = if path == "responses" { "input" } else { "messages" };
        let body = json!({"model": "m", within: [{"role": "user", "content": [part]}]}).to_string();
        assert!(ask(path, &body).is_ok(), "{body}");
    }
    let picture = json!({"type": "image_url", "image_url": {"url": "https://a.example/x.png"}});
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [picture, picture]}]}).to_string();
    let asked = chat(&body);
    assert!(asked.prompt_bytes >= 3_200, "a picture by its URL has few bytes");
    let tokens = prompt::count(Operation::Chat, Encoding::Bytes, body.as_bytes()).tokens;
    assert_eq!(asked.prompt_tokens.counted.get(), Some(&tokens), "it is counted once");
    let of_known = chat(&body.replace(r#""m""#, r#""gpt-4o""#));
    assert_eq!(of_known.prompt_tokens.counted.get(), None, "its own vocabulary counts fewer");
    let plain = r#"{"model":"m","messages":[]}"#;
    assert_eq!(chat(plain).prompt_bytes, plain.len() as u64);
}

#[tokio::test]
async fn p34_a_large_body_is_counted_beside_others() {
    let body = format!(r#"{{"model":"m","messages":[{}]}}"#, vec![r#"{"":0}"#; 60_000].join(","));
    assert!(body.len() > LARGE);
    let asked = chat(&body);
    let others = async {
        let mut turns = 0_u64;
        while asked.prompt_tokens.counted.get().is_none() {
            turns += 1;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        turns
    };
    let (counted, again, turns) = tokio::join!(asked.prompt_tokens.counted(), asked.prompt_tokens.counted(), others);
    assert_eq!((counted, again, asked.prompt_tokens.clone().count()), (60_003, 60_003, 60_003));
    assert!(turns > 0, "the runtime went on");
}

#[test]
fn equal_requests_have_equal_hashes_and_others_have_not() {
    let hash = |path: &str, body: &str| ask(path, body).expect(body).body_hash;
    let body = r#"{"model":"m","input":"x"}"#;
    assert_eq!(hash("embeddings", body), hash("embeddings", body));
    assert_ne!(hash("embeddings", body), hash("responses", body));
    assert_ne!(hash("embeddings", body), hash("embeddings", r#"{"model":"m","input":"y"}"#));
    let at = |path: &str| {
        let target = address::read(path).expect(path);
        Asked::read(target, None, &HeaderMap::new(), Bytes::from_static(body.as_bytes())).expect(path).body_hash
    };
    assert_ne!(at("/m/r/openai/deployments/a/embeddings"), at("/m/r/openai/deployments/b/embeddings"));
    assert_eq!(at("/m/r/b/1/v1/embeddings"), at("/m/other/v1/embeddings"));
}

#[test]
fn a_key_in_the_place_of_a_model_is_refused_and_not_repeated() {
    let read = |path: &str, model: &str| {
        let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
        Asked::read(address::read(path).expect("a path"), None, &HeaderMap::new(), Bytes::from(body))
    };
    let run_key = format!("bm-{}", "0af3".repeat(10));
    for key in [run_key.as_str(), "sk-planted0123456789"] {
        let azure = format!("/m/r/openai/deployments/{key}/chat/completions");
        for (path, model) in [("/m/r/v1/chat/completions", key), (azure.as_str(), "m")] {
            let refused = read(path, model).expect_err("is no model");
            assert!(!format!("{refused:?}").contains(key), "{refused:?}");
        }
    }
    for model in ["ask-me-about-birds", "house-[key]"] {
        assert!(read("/m/r/v1/chat/completions", model).is_ok(), "{model}");
    }
}

#[test]
fn each_provider_has_its_header_for_the_key() {
    let token_of = |name: &'static str, value: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, http::HeaderValue::from_static(value));
        token(&headers)
    };
    assert_eq!(token_of("authorization", "Bearer t1"), "t1");
    assert_eq!(token_of("authorization", "bearer  t1 "), "t1");
    assert_eq!(token_of("authorization", "Basic t1"), "");
    assert_eq!(token_of("api-key", "t2"), "t2");
    assert_eq!(token_of("x-api-key", "t3"), "t3");
    assert_eq!(token(&HeaderMap::new()), "");
}

proptest! {
    #[test]
    fn no_body_breaks_it(body in proptest::collection::vec(any::<u8>(), 0..100), text in "\\{\"model\":\"m\",\"messages\":.{0,40}\\}") {
        let target = || address::read("/m/r/v1/chat/completions").expect("a path");
        for body in [body, text.into_bytes()] {
            if let Ok(asked) = Asked::read(target(), None, &HeaderMap::new(), Bytes::from(body)) {
                prop_assert!(asked.prompt_tokens.count() <= asked.prompt_bytes + 2_000);
            }
        }
    }
}
