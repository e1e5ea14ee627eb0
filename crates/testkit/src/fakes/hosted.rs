//! Systems whose contracts want more than one request for one operation, bodies of several parts, or counters that stand still.

use serde_json::{Value, json};

use super::{
    Ask, Reply, Stored, World,
    systems::{not_found, number, text},
};

fn refused(status: u16, detail: &str) -> Reply {
    Reply::Json(status, json!({ "detail": detail }))
}

/// What became of the items of an event.
fn state_of(world: &World, items: &[String]) -> &'static str {
    let held = |id: &String| world.banks.values().flatten().any(|item| item.id == *id);
    let waits = |id: &String| world.waiting.iter().any(|(_, item)| item.id == *id);
    match (items.iter().all(held), items.iter().any(waits)) {
        (true, _) => "SUCCEEDED",
        (false, true) => "RUNNING",
        (false, false) => "FAILED",
    }
}

/// Mem0's hosted service: paths end with a slash, everything that writes is an event.
pub(super) fn mem0_cloud(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    if !ask.slashed {
        return not_found();
    }
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["v1", "ping"]) => Reply::Json(200, json!({ "status": "ok" })),
        ("POST", ["v3", "memories", "add"]) => {
            let user = text(body, "user_id");
            if user.is_empty() {
                return refused(400, "at least one entity id is required");
            }
            let messages = body["messages"].as_array().cloned().unwrap_or_default();
            let ids =
                messages.iter().map(|message| world.accept(user, text(message, "content"), body["metadata"].clone()));
            let ids: Vec<String> = ids.collect();
            let event = format!("event-{}", world.number());
            world.events.insert(event.clone(), ids);
            Reply::Json(200, json!({ "event_id": event, "status": "PENDING" }))
        }
        ("GET", ["v1", "event", event]) => {
            if let Some(removal) = world.removals.get_mut(*event) {
                // gone when it is looked at for the second time
                let Some(user) = removal.take() else { return Reply::Json(200, json!({ "status": "SUCCEEDED" })) };
                world.banks.remove(&user);
                return Reply::Json(200, json!({ "status": "RUNNING" }));
            }
            match world.events.get(*event) {
                Some(items) => Reply::Json(200, json!({ "id": event, "status": state_of(world, items) })),
                None => not_found(),
            }
        }
        ("POST", ["v3", "memories", "search"]) => {
            let k = number(&body["top_k"], 10);
            let Some(user) = body["filters"]["AND"][0]["user_id"].as_str().filter(|_| (1..=1000).contains(&k)) else {
                return refused(400, "filters: a user; top_k: 1 to 1000");
            };
            let threshold = body["threshold"].as_f64().unwrap_or(0.1);
            let found = world.search(user, text(body, "query"), k);
            let best = found.first().map_or(1, |(_, score)| *score) as f64;
            let hit = |(item, score): (Stored, usize)| {
                let score = score as f64 / best;
                json!({ "id": item.id, "memory": item.text, "score": score, "metadata": item.meta, "score_breakdown": { "keyword": score } })
            };
            let kept = |hit: &Value| hit["score"].as_f64().is_some_and(|score| score >= threshold);
            let results: Vec<Value> = found.into_iter().map(hit).filter(kept).collect();
            Reply::Json(200, json!({ "results": results }))
        }
        ("POST", ["v3", "memories"]) => {
            let user = text(&body["filters"], "user_id");
            let (page, size) = (ask.number("page", 1).max(1), ask.number("page_size", 1).max(1));
            let items = world.banks.get(user).cloned().unwrap_or_default();
            if page > 1 && (page - 1) * size >= items.len() {
                return refused(404, "Invalid page.");
            }
            let memory = |item: &Stored| json!({ "id": item.id, "memory": item.text, "metadata": item.meta });
            let results: Vec<Value> = items.iter().skip((page - 1) * size).take(size).map(memory).collect();
            let next =
                (page * size < items.len()).then(|| format!("https://api.mem0.ai/v3/memories/?page={}", page + 1));
            Reply::Json(200, json!({ "count": items.len(), "next": next, "previous": null, "results": results }))
        }
        ("DELETE", ["v1", "memories"]) => {
            let event = format!("event-{}", world.number());
            world.removals.insert(event.clone(), Some(ask.query["user_id"].clone()));
            Reply::Json(200, json!({ "message": "deletion has begun", "event_id": event }))
        }
        _ => not_found(),
    }
}

/// Zep's graphs: episodes are taken in one after the other, and searched by kind.
pub(super) fn zep(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    let episode = |item: &Stored, processed: bool| json!({ "uuid": item.id, "content": item.text, "processed": processed, "source_description": item.meta["source_description"] });
    match (ask.method, ask.path.as_slice()) {
        ("POST", ["graph", "create"]) => {
            world.banks.entry(text(body, "graph_id").to_owned()).or_default();
            Reply::Json(201, json!({ "graph_id": body["graph_id"] }))
        }
        ("POST", ["graph-batch"]) => {
            let (graph, episodes) = (text(body, "graph_id"), body["episodes"].as_array().cloned().unwrap_or_default());
            if !world.banks.contains_key(graph) {
                return refused(404, "no such graph");
            }
            let long = |episode: &Value| text(episode, "data").chars().count() > 10_000;
            if episodes.is_empty() || episodes.len() > 20 || episodes.iter().any(long) {
                return refused(400, "1 to 20 episodes of at most 10,000 characters");
            }
            let taken = episodes.iter().map(|episode| {
                let id = world.accept(graph, text(episode, "data"), episode.clone());
                json!({ "uuid": id, "processed": false })
            });
            Reply::Json(202, Value::Array(taken.collect()))
        }
        ("GET", ["graph", "episodes", "graph", graph]) => {
            let last = ask.number("lastn", 3);
            let held = world.banks.get(*graph).into_iter().flatten().map(|item| episode(item, true));
            let waiting = world.waiting.iter().filter(|(name, _)| name == graph).map(|(_, item)| episode(item, false));
            let mut episodes: Vec<Value> = held.chain(waiting).collect();
            let begin = episodes.len().saturating_sub(last);
            Reply::Json(200, json!({ "episodes": episodes.split_off(begin) }))
        }
        ("POST", ["graph", "search"]) => {
            let (k, scope) = (number(&body["limit"], 10), text(body, "scope"));
            if k > 50 {
                return refused(400, "limit: at most 50");
            }
            let found = world.search(text(body, "graph_id"), text(body, "query"), k).into_iter();
            match scope {
                "edges" => {
                    let edge = |(item, score): (Stored, usize)| json!({ "uuid": format!("edge-{}", item.id), "fact": item.text, "valid_at": item.meta["created_at"], "score": score });
                    Reply::Json(200, json!({ "edges": found.map(edge).collect::<Vec<_>>() }))
                }
                "nodes" => Reply::Json(200, json!({ "nodes": [] })),
                _ => Reply::Json(
                    200,
                    json!({ "episodes": found.map(|(item, _)| episode(&item, true)).collect::<Vec<_>>() }),
                ),
            }
        }
        ("DELETE", ["graph", graph]) => match world.banks.remove(*graph) {
            Some(_) => Reply::Json(200, json!({ "message": "deleted" })),
            None => not_found(),
        },
        _ => not_found(),
    }
}

/// What an agent says: what it thinks, something beside its tool calls, and at last the answer.
fn said(answer: &str) -> Value {
    json!([
        { "message_type": "reasoning_message", "reasoning": "what is in my archive?" },
        { "message_type": "assistant_message", "content": "Let me look into my archive." },
        { "message_type": "tool_call_message", "tool_call": { "name": "archival_memory_search", "arguments": "{}" } },
        { "message_type": "tool_return_message", "tool_return": "[]", "status": "success" },
        { "message_type": "assistant_message", "content": answer },
    ])
}

/// Letta's agents: their ids are the server's, tags come back in another order, some paths end with a slash.
pub(super) fn letta(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["v1", "health"]) if ask.slashed => Reply::Json(200, json!({ "version": "0.16.0", "status": "ok" })),
        ("POST", ["v1", "agents"]) if ask.slashed => {
            let id = format!("agent-{}", world.number());
            world.banks.insert(id.clone(), Vec::new());
            Reply::Json(200, json!({ "id": id, "name": body["name"] }))
        }
        (_, ["v1", "agents", agent, ..]) if !world.banks.contains_key(*agent) => refused(404, "agent not found"),
        ("POST", ["v1", "agents", agent, "archival-memory"]) => {
            let mut meta = body.clone();
            // kept as a set
            if let Some(tags) = meta["tags"].as_array_mut() {
                tags.reverse();
            }
            let id = world.store(agent, text(body, "text"), meta.clone());
            Reply::Json(200, json!([{ "id": id, "text": body["text"], "tags": meta["tags"] }]))
        }
        ("GET", ["v1", "agents", agent, "archival-memory", "search"]) => {
            let found = world.search(agent, &ask.query["query"], ask.number("top_k", 10)).into_iter();
            let hit = |(item, _): (Stored, usize)| json!({ "id": item.id, "timestamp": item.meta["created_at"], "content": item.text, "tags": item.meta["tags"] });
            let results: Vec<Value> = found.map(hit).collect();
            Reply::Json(200, json!({ "count": results.len(), "results": results }))
        }
        ("POST", ["v1", "agents", agent, "messages"]) => {
            let answer = world.answer(agent, text(&body["messages"][0], "content"));
            let usage = json!({ "prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44, "step_count": 1 });
            Reply::Json(
                200,
                json!({ "messages": said(&answer), "stop_reason": { "stop_reason": "end_turn" }, "usage": usage }),
            )
        }
        ("DELETE", ["v1", "agents", agent]) => {
            world.banks.remove(*agent);
            Reply::Json(200, json!({ "message": "Agent deleted" }))
        }
        _ => not_found(),
    }
}

/// MemMachine's projects: episodes at once, facts when its models have thought, which only their counters tell.
pub(super) fn memmachine(world: &mut World, ask: &Ask<'_>) -> Reply {
    let (body, project) = (&ask.body, text(&ask.body, "project_id"));
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["api", "v2", "health"]) => Reply::Json(200, json!({ "status": "healthy", "version": "0.3.10" })),
        ("POST", ["api", "v2", "projects"]) => {
            world.banks.entry(project.to_owned()).or_default();
            Reply::Json(201, json!({ "org_id": body["org_id"], "project_id": project }))
        }
        ("POST", ["api", "v2", "memories"]) => {
            world.tokens.1 = 3;
            let messages = body["messages"].as_array().cloned().unwrap_or_default();
            let made = messages.iter().map(
                |message| json!({ "uid": world.store(project, text(message, "content"), message["metadata"].clone()) }),
            );
            Reply::Json(200, json!({ "results": made.collect::<Vec<_>>() }))
        }
        ("GET", ["api", "v2", "metrics"]) => {
            if world.tokens.1 > 0 {
                world.tokens = (world.tokens.0 + 70, world.tokens.1 - 1);
            }
            // one for each kind of model that it has been given; the second has not been asked yet
            let name = |kind: &str| format!("language_model_{kind}_usage_input_tokens_total");
            let (asked, idle) = (name("openai_responses"), name("litellm"));
            let page =
                format!("# TYPE {asked} counter\n{asked}{{model=\"m\"}} {}.0\n# TYPE {idle} counter\n", world.tokens.0);
            Reply::Text(page)
        }
        ("POST", ["api", "v2", "projects", "episode_count", "get"]) => {
            Reply::Json(200, json!({ "count": world.banks.get(project).map_or(0, Vec::len) }))
        }
        ("POST", ["api", "v2", "memories", "search"]) => {
            let found = world.search(project, text(body, "query"), number(&body["top_k"], 10));
            let last = world
                .banks
                .get(project)
                .and_then(|items| items.last())
                .map(|item| json!({ "content": item.text, "metadata": item.meta }));
            let episode = |(item, score): (Stored, usize)| json!({ "uid": item.id, "content": item.text, "metadata": item.meta, "score": score });
            let semantic: Vec<Value> = found.first().map(|(item, _)| json!({ "category": "profile", "tag": "said", "feature_name": "last", "value": format!("They said: {}", item.text) })).into_iter().collect();
            let episodes: Vec<Value> = found.into_iter().map(episode).collect();
            let episodic = json!({ "long_term_memory": { "episodes": episodes }, "short_term_memory": { "episodes": [last], "episode_summary": [] } });
            Reply::Json(
                200,
                json!({ "status": 0, "content": { "episodic_memory": episodic, "semantic_memory": semantic } }),
            )
        }
        ("POST", ["api", "v2", "memories", "list"]) => {
            let (page, size) = (number(&body["page_num"], 0), number(&body["page_size"], 100));
            let items = world.banks.get(project).cloned().unwrap_or_default();
            let episode = |item: &Stored| json!({ "uid": item.id, "content": item.text, "metadata": item.meta });
            let episodes: Vec<Value> = items.iter().skip(page * size).take(size).map(episode).collect();
            let content = json!({ "episodic_memory": episodes, "semantic_memory": null });
            Reply::Json(200, json!({ "status": 0, "content": content }))
        }
        ("POST", ["api", "v2", "projects", "delete"]) => {
            world.banks.remove(project);
            Reply::Empty(204)
        }
        _ => not_found(),
    }
}

/// Why EverMemOS does not take messages of a user.
fn no_messages(messages: &[Value], user: &str) -> Option<&'static str> {
    let in_no_ms = |message: &Value| message["timestamp"].as_u64().is_none_or(|ms| ms < 100_000_000_000);
    let is_of_another = |message: &Value| {
        text(message, "role") == "user" && message["sender_id"].as_str().is_some_and(|sender| sender != user)
    };
    if messages.is_empty() || messages.len() > 500 {
        return Some("messages: 1 to 500");
    }
    if messages.iter().any(in_no_ms) {
        return Some("timestamp: unix milliseconds are required");
    }
    messages.iter().any(is_of_another).then_some("sender_id: of a message with the role user it is user_id")
}

/// EverMemOS: messages accumulate until their session is flushed, times are milliseconds.
pub(super) fn evermemos(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    let user = body["filters"]["user_id"].as_str().unwrap_or_else(|| text(body, "user_id"));
    let session = body["session_id"].as_str().unwrap_or("-1");
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["health"]) => Reply::Json(200, json!({ "status": "healthy" })),
        ("POST", ["api", "v1", "memories"]) => {
            let messages = body["messages"].as_array().cloned().unwrap_or_default();
            if let Some(wrong) = no_messages(&messages, user) {
                return refused(422, wrong);
            }
            let lines: Vec<&str> = messages.iter().map(|message| text(message, "content")).collect();
            world.accumulate(user, &lines.join("\n"), json!({ "session_id": session }));
            Reply::Json(200, json!({ "data": { "status": "accumulated", "message_count": messages.len() } }))
        }
        ("POST", ["api", "v1", "memories", "flush"]) => {
            let is_of_session = |(_, item): &(String, Stored)| item.meta["session_id"] == session;
            let (flushed, others): (Vec<_>, Vec<_>) = world.accumulated_of(user).into_iter().partition(is_of_session);
            world.waiting.extend(flushed);
            world.accumulated.extend(others);
            Reply::Json(200, json!({ "data": { "status": "extracted" } }))
        }
        ("POST", ["api", "v1", "memories", "get"]) => {
            let (page, size) = (number(&body["page"], 1), number(&body["page_size"], 20));
            if page == 0 || !(1..=100).contains(&size) {
                return refused(422, "page: from 1 on; page_size: 1 to 100");
            }
            let items = world.banks.get(user).cloned().unwrap_or_default();
            let episode =
                |item: &Stored| json!({ "id": item.id, "session_id": item.meta["session_id"], "episode": item.text });
            let episodes: Vec<Value> = items.iter().skip((page - 1) * size).take(size).map(episode).collect();
            Reply::Json(200, json!({ "data": { "episodes": episodes, "total_count": items.len() } }))
        }
        ("POST", ["api", "v1", "memories", "search"]) => {
            let k = body["top_k"].as_i64().unwrap_or(10);
            if k != -1 && !(1..=100).contains(&k) {
                return refused(422, "top_k: -1 or 1 to 100");
            }
            let found = world.search(user, text(body, "query"), usize::try_from(k).unwrap_or(usize::MAX)).into_iter();
            let episode = |(item, score): (Stored, usize)| json!({ "id": item.id, "session_id": item.meta["session_id"], "episode": item.text, "subject": "a talk", "score": score });
            Reply::Json(
                200,
                json!({ "data": { "episodes": found.map(episode).collect::<Vec<_>>(), "profiles": [], "raw_messages": [] } }),
            )
        }
        ("POST", ["api", "v1", "memories", "delete"]) => {
            world.banks.remove(user);
            drop(world.accumulated_of(user));
            Reply::Empty(204)
        }
        _ => not_found(),
    }
}

/// The parts of a form: name, file name, content.
fn parts(ask: &Ask<'_>) -> Vec<(String, Option<String>, String)> {
    let kind = ask.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let Some(boundary) = kind.strip_prefix("multipart/form-data; boundary=") else { return Vec::new() };
    let body = String::from_utf8_lossy(ask.raw).into_owned();
    let of = |part: &str| {
        let (head, content) = part.strip_prefix("\r\n")?.split_once("\r\n\r\n")?;
        let named = |key: &str| Some(head.split_once(&format!(" {key}=\""))?.1.split_once('"')?.0.to_owned());
        Some((named("name")?, named("filename"), content.strip_suffix("\r\n")?.to_owned()))
    };
    body.split(&format!("--{boundary}")).filter_map(of).collect()
}

/// Cognee: files are added, and found when a graph was made of them.
pub(super) fn cognee(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["health"]) => Reply::Json(200, json!({ "status": "ready", "health": "healthy", "version": "0.5.1" })),
        ("POST", ["api", "v1", "add"]) => {
            let parts = parts(ask);
            let Some((_, _, dataset)) = parts.iter().find(|(name, ..)| name == "datasetName") else {
                return refused(400, "datasetName or datasetId is required");
            };
            for (_, file, content) in parts.iter().filter(|(name, ..)| name == "data") {
                let Some(file) = file else { return refused(422, "data: a file") };
                // a file of the same name is the same data
                world.accumulated.retain(|(bank, item)| bank != dataset || item.meta["file"] != file.as_str());
                world.accumulate(dataset, content, json!({ "file": file }));
            }
            Reply::Json(200, json!({ "status": "PipelineRunCompleted", "dataset_id": format!("id-of-{dataset}") }))
        }
        ("POST", ["api", "v1", "cognify"]) => {
            let dataset = body["datasets"][0].as_str().unwrap_or_default();
            for (bank, item) in world.accumulated_of(dataset) {
                world.banks.entry(bank).or_default().push(item);
            }
            Reply::Json(200, json!({ format!("id-of-{dataset}"): { "status": "PipelineRunCompleted" } }))
        }
        ("POST", ["api", "v1", "search"]) => {
            if !["CHUNKS", "SUMMARIES"].contains(&text(body, "search_type")) {
                return Reply::Json(200, json!(["a model's answer"]));
            }
            let dataset = body["datasets"][0].as_str().unwrap_or_default();
            let found = world.search(dataset, text(body, "query"), number(&body["top_k"], 15)).into_iter();
            let chunks: Vec<Value> = found.map(|(item, _)| json!({ "id": item.id, "text": item.text })).collect();
            Reply::Json(
                200,
                match world.access_control {
                    true => {
                        json!([{ "dataset_id": format!("id-of-{dataset}"), "dataset_name": dataset, "search_result": chunks }])
                    }
                    false => json!(chunks),
                },
            )
        }
        ("POST", ["api", "v1", "forget"]) => {
            let dataset = text(body, "dataset");
            if dataset.is_empty() {
                return refused(400, "name a dataset");
            }
            world.banks.remove(dataset);
            Reply::Json(200, json!({ "status": "success" }))
        }
        _ => not_found(),
    }
}
