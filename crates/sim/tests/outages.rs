//! Outages as a client sees them, over real connections, and what the simulator counts of them.

use std::time::Duration;

use bench_sim::{KeyConfig, LiveConfig, Outage, OutageKind, OutageState, RunningSim, Sim, SimConfig, TokenCounter};
use futures::future::join_all;
use reqwest::{Client, Response};
use serde_json::{Value, json};

async fn start(outages: Vec<Outage>) -> RunningSim {
    let config = SimConfig { tokens: TokenCounter::Bytes, seed: 42, outages, ..SimConfig::default() };
    Sim::start(config).await.expect("starts")
}

fn question(n: usize) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": format!("question {n}: what did she paint?")}]})
}

async fn post(client: &Client, sim: &RunningSim, path: &str, body: &Value) -> reqwest::Result<Response> {
    client.post(format!("{}{path}", sim.base_url)).bearer_auth("key").body(body.to_string()).send().await
}

async fn ask(client: &Client, sim: &RunningSim, body: &Value) -> reqwest::Result<Response> {
    post(client, sim, "/chat/completions", body).await
}

#[tokio::test]
async fn each_kind_of_outage_ends_requests_in_its_way_and_is_over_when_it_is_ended() {
    let sim = start(Vec::new()).await;
    let client = Client::builder().timeout(Duration::from_millis(300)).build().expect("a client");
    let set = |text: &str| sim.set_outage(text.parse().expect("an outage")).expect("is set");

    set("kind=status,status=529,retry_after_s=86400,message=too much");
    let response = ask(&client, &sim, &question(1)).await.expect("an answer");
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (529, &"86400".parse().expect("a value"))
    );
    assert!(response.text().await.expect("a body").contains("too much"));
    sim.end_outages();

    set("kind=html");
    let response = ask(&client, &sim, &question(1)).await.expect("an answer");
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"].to_str().expect("ascii")[..9]),
        (200, "text/html")
    );
    assert!(response.json::<Value>().await.is_err());
    sim.end_outages();

    set("kind=cut");
    let error = ask(&client, &sim, &question(1)).await.expect_err("is cut");
    assert!(error.is_request() && !error.is_timeout() && !error.is_connect(), "{error:?}");
    sim.end_outages();
    assert_eq!(sim.stats().answers, 0);

    set("kind=cut_body");
    let response = ask(&client, &sim, &question(1)).await.expect("a head");
    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.is_err());
    assert_eq!(sim.stats().by_model["m"].paid_replies, 1, "a reply that was made is paid");
    sim.end_outages();

    set("kind=hang");
    assert!(ask(&client, &sim, &question(1)).await.expect_err("hangs").is_timeout());
    sim.end_outages();

    assert_eq!(ask(&client, &sim, &question(1)).await.expect("an answer").status(), 200);
    let seen: Vec<_> = sim.outages().iter().map(|outage| (outage.requests, outage.state)).collect();
    assert_eq!(seen, [(1, OutageState::Over); 5]);
}

#[tokio::test]
async fn refused_connections_are_refused_by_the_system_and_accepted_again_on_the_same_port() {
    let sim = start(vec!["kind=refuse,after_requests=2,for_ms=300".parse().expect("an outage")]).await;
    let client = Client::new();
    // the third request waits in flight when the second lets the outage begin
    sim.set_outage(Outage { contains: Some("question 7".into()), ..Outage::of_everything(OutageKind::Hang) })
        .expect("is set");
    let waiting = tokio::spawn({
        let (client, url) = (client.clone(), format!("{}/chat/completions", sim.base_url));
        async move { client.post(url).body(question(7).to_string()).send().await }
    });
    while sim.stats().in_flight == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let _ = ask(&client, &sim, &question(2)).await;
    let error = waiting.await.expect("no panic").expect_err("open connections end");
    assert!(!error.is_timeout(), "{error:?}");
    let error = ask(&client, &sim, &question(3)).await.expect_err("is refused");
    assert!(error.is_connect() && format!("{error:?}").contains("ConnectionRefused"), "{error:?}");

    let told: Value =
        client.get(format!("{}/outages", sim.admin_url)).send().await.expect("answers").json().await.expect("JSON");
    assert_eq!((&told[0]["state"], &told[0]["requests"]), (&json!("on"), &json!(0)));
    let began = std::time::Instant::now();
    while ask(&client, &sim, &question(3)).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(5), "the port opens again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seen = sim.outages().remove(0);
    assert_eq!((seen.ended_ms.zip(seen.began_ms).map(|(end, begin)| end - begin), seen.after.requests), (Some(300), 1));
}

#[tokio::test]
async fn outages_of_a_model_a_kind_of_call_or_a_text_leave_the_rest_alone() {
    let sim = start(vec![
        "kind=status,model=away".parse().expect("an outage"),
        "kind=status,calls=embeddings,times=1".parse().expect("an outage"),
        Outage::poison("question 13"),
    ])
    .await;
    let client = Client::new();
    let mut other = question(1);
    other["model"] = json!("away");
    let vector = json!({"model": "m", "input": "a text"});
    assert_eq!(ask(&client, &sim, &other).await.expect("an answer").status(), 503);
    assert_eq!(ask(&client, &sim, &question(1)).await.expect("an answer").status(), 200);
    assert_eq!(post(&client, &sim, "/embeddings", &vector).await.expect("an answer").status(), 503);
    assert_eq!(post(&client, &sim, "/embeddings", &vector).await.expect("an answer").status(), 200);
    for _ in 0..3 {
        assert!(ask(&client, &sim, &question(13)).await.is_err(), "poison always dies");
    }
    let stats = sim.stats();
    let of = |model: &str| (stats.by_model[model].requests, stats.by_model[model].distinct_requests);
    assert_eq!((of("away"), of("m")), ((1, 0), (6, 2)));
    assert_eq!(sim.outages()[2].requests, 3);
}

#[tokio::test]
async fn a_wave_after_an_outage_is_seen_and_turned_away_beyond_the_capacity() {
    // long enough that each wave is there before its outage, or its first answer, is over, however busy the machine is
    let sim = start(vec!["kind=status,for_ms=1000".parse().expect("an outage")]).await;
    sim.control(|live| (live.limits.capacity, live.latency.median_ms) = (Some(5), 1000.0)).expect("good settings");
    let client = Client::new();
    let wave = |n: usize| {
        let asked = (0..n).map(|n| {
            let (client, sim) = (&client, &sim);
            async move { ask(client, sim, &question(n)).await.expect("an answer").status().as_u16() }
        });
        join_all(asked)
    };
    assert!(wave(8).await.iter().all(|status| *status == 503));
    while sim.outages()[0].state != OutageState::Over {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let after = wave(20).await;
    assert_eq!(after.iter().filter(|status| **status == 200).count(), 5);
    let seen = sim.outages().remove(0);
    assert_eq!((seen.requests, seen.distinct_requests, seen.by_model["m"]), (8, 8, 8));
    assert_eq!((seen.after.requests, seen.after.turned_away, sim.stats().over_capacity), (20, 15, 15));
    assert!((6..=20).contains(&seen.after.max_in_flight) && seen.after.max_per_100ms >= 5, "{seen:?}");
}

#[tokio::test]
async fn keys_and_outages_change_at_run_time_through_the_admin_address() {
    let sim = start(Vec::new()).await;
    let client = Client::new();
    let admin = async |method: &str, path: &str, body: Value| {
        let method = method.parse().expect("a method");
        let reply = client.request(method, format!("{}{path}", sim.admin_url)).body(body.to_string()).send().await;
        let reply = reply.expect("an answer");
        (reply.status().as_u16(), reply.text().await.expect("a body"))
    };
    assert_eq!(admin("POST", "/control", json!({"keys": {"accept": ["new"]}})).await.0, 200);
    assert_eq!(ask(&client, &sim, &question(1)).await.expect("an answer").status(), 401);
    assert_eq!(sim.live(), LiveConfig { keys: KeyConfig { accept: vec!["new".into()], refuse: vec![] }, ..sim.live() });
    admin("POST", "/control", json!({"keys": {"accept": ["new", "key"]}})).await;
    assert_eq!(ask(&client, &sim, &question(1)).await.expect("an answer").status(), 200);

    assert_eq!(
        admin("POST", "/outages", json!({"kind": "status", "status": 500})).await,
        (200, r#"{"id":1}"#.to_owned())
    );
    assert_eq!(ask(&client, &sim, &question(1)).await.expect("an answer").status(), 500);
    assert_eq!(admin("DELETE", "/outages/1", Value::Null).await.0, 200);
    assert_eq!(admin("DELETE", "/outages/2", Value::Null).await.0, 404);
    assert_eq!(ask(&client, &sim, &question(1)).await.expect("an answer").status(), 200);
    let (status, said) = admin("POST", "/outages", json!({"kind": "loud"})).await;
    assert!(status == 400 && said.contains("unknown variant"), "{said}");
    admin("POST", "/reset", Value::Null).await;
    assert_eq!(admin("GET", "/outages", Value::Null).await.1, "[]");
}
