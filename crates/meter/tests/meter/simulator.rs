//! In front of the simulator: what it has counted is what the meter tells.

use bench_meter::{Ended, MeterSettings, Tokens};
use bench_sim::{Sim, SimConfig};
use serde_json::{Value, json};

use crate::ledger::{Running, meter};

async fn post(client: &reqwest::Client, base: &str, path: &str, body: &Value) -> (u16, Vec<u8>) {
    let request =
        client.post(format!("{base}/{path}")).bearer_auth("token-1").header("anthropic-version", "2023-06-01");
    let reply = request.json(body).send().await.expect("answered");
    (reply.status().as_u16(), reply.bytes().await.expect("whole").to_vec())
}

fn bodies() -> Vec<(&'static str, Value)> {
    let messages = |n: usize| json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": format!("What is {n} and {n}?")}]);
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]);
    let schema = json!({"type": "json_schema", "json_schema": {"name": "v", "strict": true, "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}});
    let mut all = Vec::new();
    for n in 0..5 {
        all.push(("chat/completions", json!({"model": "gpt-4o-mini", "messages": messages(n), "max_tokens": 30})));
        all.push(("chat/completions", json!({"model": "gpt-4o-mini", "messages": messages(n), "stream": true})));
        let asks = json!({"include_usage": true});
        all.push((
            "chat/completions",
            json!({"model": "gpt-4o-mini", "messages": messages(n), "stream": true, "n": 2, "stream_options": asks}),
        ));
        all.push(("chat/completions", json!({"model": "gpt-4o-mini", "messages": messages(n), "tools": tools})));
        all.push((
            "chat/completions",
            json!({"model": "gpt-4o-mini", "messages": messages(n), "response_format": schema}),
        ));
        all.push(("embeddings", json!({"model": "text-embedding-3-small", "input": [format!("text {n}"), "more"]})));
        let user = json!([{"role": "user", "content": format!("And {n}?")}]);
        all.push(("messages", json!({"model": "claude", "max_tokens": 20, "messages": user})));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_those_of_the_simulator_and_its_ledger_is_the_sum_of_what_is_told() {
    let config = || SimConfig { seed: 3, cached_share: 0.25, ..SimConfig::default() };
    let (direct, behind) = (Sim::start(config()).await.expect("starts"), Sim::start(config()).await.expect("starts"));
    let meter = meter(&behind.base_url, MeterSettings::default()).await;
    let client = reqwest::Client::new();
    for (path, body) in bodies() {
        let expected = post(&client, &direct.base_url, path, &body).await;
        let got = post(&client, &meter.base(), path, &body).await;
        assert_eq!(expected.0, 200, "{}", String::from_utf8_lossy(&expected.1));
        assert_eq!(String::from_utf8_lossy(&got.1), String::from_utf8_lossy(&expected.1), "{path} {body}");
    }
    let told = meter.ledger.settled(bodies().len()).await;
    assert!(told.iter().all(|told| told.ended == Ended::Complete && !told.counted_here && told.usage.is_some()));
    let sum = sum(&meter);
    let (stats, other) = (behind.stats(), direct.stats());
    let of = |stats: &bench_sim::Stats| (stats.prompt_tokens, stats.completion_tokens, stats.cached_tokens);
    assert_eq!((sum.prompt, sum.completion, sum.cached), of(&stats));
    assert_eq!(of(&stats), of(&other), "the wish for a use changes no reply");
}

fn sum(meter: &Running) -> Tokens {
    meter.ledger.seen().settled.iter().filter_map(|told| told.usage).fold(Tokens::default(), |sum, usage| Tokens {
        prompt: sum.prompt + usage.prompt,
        completion: sum.completion + usage.completion,
        cached: sum.cached + usage.cached,
        ..sum
    })
}
