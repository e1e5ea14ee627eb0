//! The simulator as a client sees it, over real connections.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench_sim::{
    AnswerMode, FaultConfig, KeyConfig, LimitConfig, LiveConfig, Price, RunningSim, Sim, SimConfig, TokenCounter,
    Window,
};
use futures::{StreamExt as _, stream};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

/// Counting with the real table costs much time in unoptimised builds; the unit tests cover it.
fn config() -> SimConfig {
    SimConfig { tokens: TokenCounter::Bytes, seed: 42, ..SimConfig::default() }
}

async fn start(config: SimConfig) -> RunningSim {
    Sim::start(config).await.expect("starts")
}

fn with_faults(faults: FaultConfig) -> SimConfig {
    SimConfig { live: LiveConfig { faults, ..LiveConfig::default() }, ..config() }
}

fn with_limits(limits: LimitConfig) -> SimConfig {
    SimConfig { live: LiveConfig { limits, ..LiveConfig::default() }, ..config() }
}

fn question(n: usize) -> Value {
    let content = format!(
        "Context: Caroline painted a sunrise in {n} strokes on a quiet Monday. Question {n}: what did she paint?"
    );
    json!({"model": "m", "messages": [{"role": "user", "content": content}], "temperature": 0})
}

fn judgement(n: usize) -> Value {
    let mut body = question(n);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "verdict", "strict": true, "schema": {
        "type": "object", "properties": {"reasoning": {"type": "string"}, "correct": {"type": "boolean"}},
        "required": ["reasoning", "correct"], "additionalProperties": false}}});
    body
}

async fn post(client: &Client, sim: &RunningSim, path: &str, body: &Value) -> reqwest::Result<Response> {
    client.post(format!("{}{path}", sim.base_url)).bearer_auth("key").body(body.to_string()).send().await
}

async fn ask(client: &Client, sim: &RunningSim, body: &Value) -> Response {
    post(client, sim, "/chat/completions", body).await.expect("an answer")
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("ascii"))
}

#[tokio::test]
async fn a_model_that_is_given_tools_calls_the_one_that_is_named_or_the_first_unless_it_may_not() {
    let (client, sim) = (Client::new(), start(config()).await);
    let tool = |name: &str| {
        let parameters =
            json!({"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    let with = |choice: Value| {
        let mut body = question(1);
        body["tools"] = json!([tool("first"), tool("second")]);
        body["tool_choice"] = choice;
        body
    };
    for (choice, called) in [
        (json!(null), Some("first")),
        (json!("required"), Some("first")),
        (json!({"type": "function", "function": {"name": "second"}}), Some("second")),
        (json!("none"), None),
    ] {
        let reply: Value = ask(&client, &sim, &with(choice.clone())).await.json().await.expect("is JSON");
        let (message, ended) = (&reply["choices"][0]["message"], &reply["choices"][0]["finish_reason"]);
        assert_eq!(message["tool_calls"][0]["function"]["name"].as_str(), called, "{choice}: {reply}");
        assert_eq!((message["content"].is_null(), ended == "tool_calls"), (called.is_some(), called.is_some()));
        if let Some(arguments) = message["tool_calls"][0]["function"]["arguments"].as_str() {
            let arguments: Value = serde_json::from_str(arguments).expect("are JSON");
            assert!(arguments["content"].is_string(), "{reply}");
        }
    }
    let unknown = ask(&client, &sim, &with(json!({"type": "function", "function": {"name": "third"}}))).await;
    assert_eq!(unknown.status(), StatusCode::BAD_REQUEST);
}

/// Asks once; the answer is a status with the body's hash-like text, or what broke.
async fn outcome(client: &Client, sim: &RunningSim, body: &Value) -> String {
    let response = ask(client, sim, body).await;
    let status = response.status();
    match response.text().await {
        Ok(text) => format!("{status} {text}"),
        Err(_) => format!("{status} cut"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p17_replies_and_faults_do_not_depend_on_order_or_concurrency() {
    let faults = FaultConfig {
        http_500: 0.1,
        http_503: 0.05,
        http_429: 0.05,
        cut: 0.1,
        garbage: 0.1,
        malformed_judge: 0.1,
        empty: 0.1,
        length: 0.1,
        filter: 0.05,
        ..FaultConfig::default()
    };
    let bodies: Vec<Value> = (0..60).map(|n| if n % 3 == 0 { judgement(n) } else { question(n) }).collect();
    // for each request the outcomes of its tries, in order
    let run = async |order: Vec<usize>, concurrency: usize| -> BTreeMap<usize, Vec<String>> {
        let sim = start(with_faults(faults.clone())).await;
        let client = Client::new();
        let all = stream::iter(order)
            .map(|n| {
                let (client, sim, body) = (&client, &sim, &bodies[n]);
                async move {
                    let mut tries = Vec::new();
                    for _ in 0..5 {
                        tries.push(outcome(client, sim, body).await);
                    }
                    (n, tries)
                }
            })
            .buffer_unordered(concurrency)
            .collect()
            .await;
        let stats = sim.stop().await;
        assert_eq!((stats.requests, stats.distinct_requests, stats.repeated_requests), (300, 60, 240));
        all
    };
    let one_by_one = run((0..60).collect(), 1).await;
    let shuffled = run((0..60).map(|n| n * 37 % 60).rev().collect(), 16).await;
    assert_eq!(one_by_one, shuffled);
    let kinds = ["500", "503", "429", "cut", "\"content_filter\"", "\"length\"", "\"content\":\"\""];
    for kind in kinds {
        assert!(one_by_one.values().flatten().any(|outcome| outcome.contains(kind)), "no {kind} in 300 tries");
    }
}

#[tokio::test]
async fn p17_no_request_fails_more_often_in_a_row_than_allowed() {
    let faults = FaultConfig { http_500: 0.5, garbage: 0.5, max_in_a_row: 2, ..FaultConfig::default() };
    let sim = start(with_faults(faults)).await;
    let client = Client::new();
    for n in 0..10 {
        let mut good = Vec::new();
        for _ in 0..4 {
            let response = ask(&client, &sim, &question(n)).await;
            good.push(response.status() == StatusCode::OK && response.json::<Value>().await.is_ok());
        }
        assert_eq!(good, [false, false, true, true]);
    }
}

#[tokio::test]
async fn usage_cost_and_repeats_are_counted_exactly() {
    let mut config = config();
    config.answer = AnswerMode::Fixed("four".into());
    config.prices = BTreeMap::from([("m".to_owned(), Price::parse("m=0.15/0.60").expect("a price").1)]);
    let sim = start(config).await;
    let client = Client::new();
    let (mut prompt, mut completion) = (0, 0);
    for n in [0, 1, 1, 2, 0, 0] {
        let reply: Value = ask(&client, &sim, &question(n)).await.json().await.expect("JSON");
        assert_eq!(reply["choices"][0]["message"]["content"], "four");
        let usage = &reply["usage"];
        assert_eq!(usage["total_tokens"].as_u64(), Some(usage["prompt_tokens"].as_u64().expect("a number") + 1));
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 0);
        prompt += usage["prompt_tokens"].as_u64().expect("a number");
        completion += usage["completion_tokens"].as_u64().expect("a number");
    }
    let served: bench_sim::Stats = serde_json::from_str(
        &client.get(sim.base_url.replace("/v1", "/stats")).send().await.expect("answers").text().await.expect("text"),
    )
    .expect("statistics");
    assert_eq!(served, sim.stats());
    assert_eq!((served.requests, served.answers, served.repeated_answers), (6, 6, 3));
    assert_eq!(served.tries, BTreeMap::from([(1, 1), (2, 1), (3, 1)]));
    assert_eq!((served.prompt_tokens, served.completion_tokens), (prompt, completion));
    assert_eq!(served.cost_pico_usd, (prompt * 150_000 + completion * 600_000) as i64);
    assert_eq!(served.with_status("chat", 200), 6);
    assert_eq!(served.requests_per_second.iter().sum::<u64>(), 6);

    client.post(sim.base_url.replace("/v1", "/reset")).send().await.expect("answers");
    assert_eq!(sim.stop().await, bench_sim::Stats::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p19_a_bucket_is_enforced_and_told_in_openais_words() {
    let sim = start(with_limits(LimitConfig { rpm: Some(1200), ..LimitConfig::default() })).await; // 20 a second
    let client = Client::new();
    let started = Instant::now();
    let statuses: Vec<StatusCode> = stream::iter(0..60)
        .map(|n| {
            let (client, sim) = (&client, &sim);
            async move { ask(client, sim, &question(n)).await.status() }
        })
        .buffer_unordered(8)
        .collect()
        .await;
    let most = 20.0 + 20.0 * started.elapsed().as_secs_f64();
    let passed = statuses.iter().filter(|status| **status == StatusCode::OK).count();
    assert!(passed >= 20 && passed as f64 <= most.ceil(), "{passed} of 60 passed, at most {most:.1} may");
    let stats = sim.stats();
    assert_eq!((stats.answers, stats.rate_limited), (passed as u64, 60 - passed as u64));
    assert_eq!(stats.distinct_requests, passed as u64, "refused requests are no tries");

    let refused = loop {
        let response = ask(&client, &sim, &question(100)).await;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            break response;
        }
    };
    assert_eq!(header(&refused, "x-ratelimit-limit-requests"), "1200");
    assert!(header(&refused, "x-ratelimit-reset-requests").ends_with('s'));
    assert_eq!(header(&refused, "retry-after"), "1");
    let ms: u64 = header(&refused, "retry-after-ms").parse().expect("a number");
    assert!((1..=50).contains(&ms), "{ms} ms until the next of 20 a second");
    let error: Value = refused.json().await.expect("JSON");
    assert_eq!((&error["error"]["type"], &error["error"]["code"]), (&json!("requests"), &json!("rate_limit_exceeded")));
    assert!(error["error"]["message"].as_str().expect("text").starts_with("Rate limit reached for m"));
    tokio::time::sleep(Duration::from_millis(ms + 5)).await;
    assert_eq!(ask(&client, &sim, &question(101)).await.status(), StatusCode::OK, "waiting as told is enough");
}

#[tokio::test]
async fn p19_a_sliding_window_is_enforced_and_limits_change_at_run_time() {
    let limits =
        LimitConfig { rpm: Some(300), window: Window::Sliding(Duration::from_secs(2)), ..LimitConfig::default() };
    let sim = start(with_limits(limits)).await; // 10 in any 2 seconds
    let client = Client::new();
    let passed = async |from: usize, count: usize| {
        let mut passed = 0;
        for n in from..from + count {
            passed += u32::from(ask(&client, &sim, &question(n)).await.status() == StatusCode::OK);
        }
        passed
    };
    assert_eq!(passed(0, 15).await, 10);
    let control = sim.base_url.replace("/v1", "/control");
    let change =
        async |patch: Value| client.post(&control).body(patch.to_string()).send().await.expect("answers").status();
    assert_eq!(change(json!({"limits": {"factor": 0.5}})).await, StatusCode::OK);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(passed(20, 15).await, 5, "halved without saying so");
    let response = ask(&client, &sim, &question(50)).await;
    assert_eq!(header(&response, "x-ratelimit-limit-requests"), "300");
    assert_eq!(change(json!({"limits": {"rpm": null}})).await, StatusCode::OK);
    assert_eq!(passed(60, 15).await, 15);
    assert_eq!(header(&ask(&client, &sim, &question(99)).await, "x-ratelimit-limit-requests"), "");
    assert_eq!(change(json!({"limits": {"rpms": 1}})).await, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn token_limits_count_prompt_and_maximal_output() {
    let sim = start(with_limits(LimitConfig { tpm: Some(600), burst_seconds: 60.0, ..LimitConfig::default() })).await;
    let client = Client::new();
    let mut body = question(1);
    body["max_completion_tokens"] = 400.into();
    let first = ask(&client, &sim, &body).await;
    let used = 600 - header(&first, "x-ratelimit-remaining-tokens").parse::<u64>().expect("a number");
    let reply: Value = first.json().await.expect("JSON");
    assert_eq!(used, 400 + reply["usage"]["prompt_tokens"].as_u64().expect("a number"));
    let refused: Value = ask(&client, &sim, &body).await.json().await.expect("JSON");
    assert_eq!(refused["error"]["type"], "tokens");
    body["max_completion_tokens"] = 700.into();
    let too_large: Value = ask(&client, &sim, &body).await.json().await.expect("JSON");
    assert!(too_large["error"]["message"].as_str().expect("text").starts_with("Request too large"));
}

#[tokio::test]
async fn streams_carry_the_same_reply_and_usage() {
    let sim = start(config()).await;
    let client = Client::new();
    let whole: Value = ask(&client, &sim, &question(7)).await.json().await.expect("JSON");
    let mut body = question(7);
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let response = ask(&client, &sim, &body).await;
    assert_eq!(header(&response, "content-type"), "text/event-stream");
    let text = response.text().await.expect("text");
    let events: Vec<&str> = text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(events.last(), Some(&"[DONE]"));
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
    let content: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(content, whole["choices"][0]["message"]["content"].as_str().expect("text"));
    assert_eq!(chunks.last().expect("chunks")["usage"], whole["usage"]);
    assert!(chunks.iter().all(|chunk| chunk["id"] == whole["id"] && chunk["object"] == "chat.completion.chunk"));
    assert_eq!(sim.stats().distinct_requests, 1, "streaming is the same request");
}

#[tokio::test]
async fn responses_say_in_their_form_what_they_say_in_a_stream() {
    let sim = start(config()).await;
    let client = Client::new();
    let schema =
        json!({"type": "object", "properties": {"duplicate_facts": {"type": "array", "items": {"type": "integer"}}}});
    let format = json!({"type": "json_schema", "name": "EdgeDuplicate", "strict": true, "schema": schema});
    let mut body = json!({"model": "m", "max_output_tokens": 100, "text": {"format": format}, "input": [
        {"role": "system", "content": "Which facts are there already?"},
        {"role": "user", "content": "Bob works for the harbour in Hamburg"},
    ]});
    let whole: Value = post(&client, &sim, "/responses", &body).await.expect("an answer").json().await.expect("JSON");
    assert_eq!((&whole["object"], &whole["status"]), (&json!("response"), &json!("completed")), "{whole}");
    let part = &whole["output"][0]["content"][0];
    assert_eq!((&part["type"], &part["text"]), (&json!("output_text"), &json!(r#"{"duplicate_facts":[]}"#)));
    let tokens = |of: &str| whole["usage"][of].as_u64().expect("a number");
    assert!(tokens("input_tokens") > 0 && tokens("output_tokens") > 0);
    assert_eq!(tokens("total_tokens"), tokens("input_tokens") + tokens("output_tokens"));

    body["stream"] = true.into();
    let text = post(&client, &sim, "/responses", &body).await.expect("an answer").text().await.expect("text");
    let events: Vec<Value> = text
        .split("\n\n")
        .filter_map(|event| event.split_once("\ndata: "))
        .map(|(_, data)| serde_json::from_str(data).expect("JSON"))
        .collect();
    let is_delta = |event: &&Value| event["type"] == "response.output_text.delta";
    let said: String = events.iter().filter(is_delta).filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(said, r#"{"duplicate_facts":[]}"#);
    let last = events.last().expect("events");
    assert_eq!((&last["type"], &last["response"]), (&json!("response.completed"), &whole));
    assert_eq!(sim.stats().distinct_requests, 1, "streaming is the same request");

    body["text"] = json!({"format": {"type": "text"}});
    (body["stream"], body["max_output_tokens"]) = (false.into(), 1.into());
    let cut: Value = post(&client, &sim, "/responses", &body).await.expect("an answer").json().await.expect("JSON");
    assert_eq!(
        (&cut["status"], &cut["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
}

#[tokio::test]
async fn cut_streams_and_bodies_break_and_are_paid() {
    let sim = start(with_faults(FaultConfig { cut: 1.0, permanent: true, ..FaultConfig::default() })).await;
    let client = Client::new();
    for stream in [false, true] {
        let mut body = question(1);
        body["stream"] = stream.into();
        let response = ask(&client, &sim, &body).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.text().await.is_err(), "stream {stream}: the body must end early");
    }
    let stats = sim.stop().await;
    assert_eq!((stats.answers, stats.faults["cut"], stats.by_model["m"].paid_replies), (0, 2, 2));
}

#[tokio::test]
async fn hanging_requests_end_with_the_client_or_the_simulator() {
    let sim = start(with_faults(FaultConfig { hang: 1.0, ..FaultConfig::default() })).await;
    let client = Client::builder().timeout(Duration::from_millis(100)).build().expect("a client");
    assert!(post(&client, &sim, "/chat/completions", &question(1)).await.expect_err("hangs").is_timeout());
    let deadline = Instant::now() + Duration::from_secs(5);
    while sim.stats().in_flight > 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stats = sim.stats();
    assert_eq!((stats.in_flight, stats.max_in_flight, stats.by_endpoint["chat"]["abandoned"]), (0, 1, 1));

    let patient = Client::new();
    let url = format!("{}/chat/completions", sim.base_url);
    let waiting = tokio::spawn(patient.post(url).body(question(1).to_string()).send());
    while sim.stats().in_flight == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let started = Instant::now();
    sim.stop().await;
    assert!(started.elapsed() < Duration::from_secs(4), "stopping waits for no hanging request");
    assert_eq!(waiting.await.expect("no panic").expect("an answer").status(), StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn judges_get_verdicts_or_with_the_fault_none() {
    let sim = start(config()).await;
    let client = Client::new();
    let verdict = async |n| {
        let reply: Value = ask(&client, &sim, &judgement(n)).await.json().await.expect("JSON");
        let content = reply["choices"][0]["message"]["content"].as_str().expect("text").to_owned();
        serde_json::from_str::<Value>(&content).ok().and_then(|verdict| verdict["correct"].as_bool())
    };
    let mut accepted = 0;
    for n in 0..100 {
        accepted += u32::from(verdict(n).await.expect("a verdict"));
    }
    assert!((55..=85).contains(&accepted), "{accepted} of 100 accepted");
    sim.control(|live| (live.faults.malformed_judge, live.faults.permanent) = (1.0, true)).expect("allowed");
    for n in 0..20 {
        assert_eq!(verdict(n).await, None);
    }
}

#[tokio::test]
async fn embeddings_are_near_for_similar_texts_in_both_encodings() {
    let sim = start(config()).await;
    let client = Client::new();
    let mut body = json!({"model": "e", "dimensions": 256, "input": [
        "Caroline painted a sunrise over the lake", "What did Caroline paint over the lake?", "Quarterly revenue declined sharply"]});
    let reply: Value = post(&client, &sim, "/embeddings", &body).await.expect("an answer").json().await.expect("JSON");
    let vectors: Vec<Vec<f64>> = reply["data"]
        .as_array()
        .expect("data")
        .iter()
        .map(|one| {
            one["embedding"].as_array().expect("a vector").iter().map(|x| x.as_f64().expect("a number")).collect()
        })
        .collect();
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum::<f64>();
    assert!(vectors.iter().all(|vector| vector.len() == 256));
    assert!((cosine(0, 0) - 1.0).abs() < 1e-4 && cosine(0, 1) > cosine(0, 2) + 0.2);
    assert_eq!(reply["usage"]["prompt_tokens"], reply["usage"]["total_tokens"]);

    body["encoding_format"] = "base64".into();
    let encoded: Value =
        post(&client, &sim, "/embeddings", &body).await.expect("an answer").json().await.expect("JSON");
    let text = encoded["data"][1]["embedding"].as_str().expect("base64");
    assert_eq!(text.len(), 4 * (256_usize * 4).div_ceil(3));
}

#[tokio::test]
async fn refusals_have_openais_form() {
    let sim = start(SimConfig {
        live: LiveConfig {
            keys: KeyConfig { accept: vec!["good".into()], refuse: vec!["revoked".into()] },
            ..LiveConfig::default()
        },
        unknown_models: vec!["gone".into()],
        max_context: 100,
        quota_after: Some(1),
        ..config()
    })
    .await;
    let client = Client::new();
    let send = async |key: &str, path: &str, body: String| {
        let response =
            client.post(format!("{}{path}", sim.base_url)).bearer_auth(key).body(body).send().await.expect("an answer");
        let status = response.status().as_u16();
        let error: Value = response.json().await.expect("JSON");
        assert!(error["error"]["message"].is_string() || status == 200, "{error}");
        (status, error["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    let chat = "/chat/completions";
    let long = json!({"model": "m", "messages": [{"role": "user", "content": "word ".repeat(1000)}]}).to_string();
    let gone = json!({"model": "gone", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    for (key, path, body, status, code) in [
        ("bad", chat, question(1).to_string(), 401, "invalid_api_key"),
        ("revoked", chat, question(1).to_string(), 401, "invalid_api_key"),
        ("good", chat, "{not json".to_owned(), 400, ""),
        ("good", chat, json!({"model": "m"}).to_string(), 400, "missing_required_parameter"),
        ("good", "/embeddings", json!({"model": "m"}).to_string(), 400, "missing_required_parameter"),
        ("good", chat, gone, 404, "model_not_found"),
        ("good", chat, long, 400, "context_length_exceeded"),
        ("good", "/completions", question(1).to_string(), 404, ""),
        ("good", "/models", String::new(), 405, "method_not_supported"),
        ("good", chat, question(1).to_string(), 200, ""),
        ("good", chat, question(1).to_string(), 429, "insufficient_quota"),
        ("good", chat, question(2).to_string(), 429, "insufficient_quota"),
    ] {
        assert_eq!(send(key, path, body).await, (status, code.to_owned()), "{key} {path} {status}");
    }
    assert_eq!(sim.stats().out_of_quota, 2);
}

#[tokio::test]
async fn several_choices_differ_and_draws_are_apart() {
    let sim = start(config()).await;
    let client = Client::new();
    let mut body = question(3);
    body["n"] = 8.into();
    let reply: Value = ask(&client, &sim, &body).await.json().await.expect("JSON");
    let contents: std::collections::BTreeSet<&str> = reply["choices"]
        .as_array()
        .expect("choices")
        .iter()
        .map(|choice| choice["message"]["content"].as_str().expect("text"))
        .collect();
    assert!(contents.len() > 1);
    let drawn = async |draw: &str| {
        let request = client.post(format!("{}/chat/completions", sim.base_url)).header("x-bench-draw", draw);
        request.body(question(3).to_string()).send().await.expect("an answer").text().await.expect("text")
    };
    assert_eq!(drawn("5").await, drawn("5").await);
    assert_ne!(drawn("5").await, drawn("6").await);
}

/// Printed, not asserted: the machine may be busy and the build unoptimised.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crude_throughput() {
    let sim = start(config()).await;
    let client = Client::new();
    let requests = if cfg!(debug_assertions) { 2_000 } else { 100_000 };
    let started = Instant::now();
    let answered = stream::iter(0..requests)
        .map(|n| {
            let (client, sim) = (&client, &sim);
            async move { ask(client, sim, &question(n)).await.bytes().await.is_ok() }
        })
        .buffer_unordered(64)
        .filter(|ok| std::future::ready(*ok))
        .count()
        .await;
    assert_eq!(answered, requests);
    eprintln!(
        "simulator and client in one process: {:.0} requests/s",
        requests as f64 / started.elapsed().as_secs_f64()
    );
}
