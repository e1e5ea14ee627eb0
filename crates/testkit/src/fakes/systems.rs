//! The systems, one function each.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Ask, Reply, Stored, System, World};

/// Name of the adapter → its system.
pub const SYSTEMS: &[(&str, System)] = &[
    ("astrocyte", astrocyte),
    ("jeffs-brain", jeffs_brain),
    ("astrocyte-started", astrocyte),
    ("jeffs-brain-go", jeffs_brain),
    ("jeffs-brain-python", jeffs_brain),
    ("jeffs-brain-typescript", jeffs_brain),
    ("hebb-mind", hebb_mind),
    ("amplihack", amplihack),
    ("precisionmembench", precisionmembench),
    ("precisionmembench-scoped", precisionmembench),
    ("mem0", mem0),
    ("graphiti", graphiti),
    ("hindsight", hindsight),
    ("supermemory", supermemory),
    ("mem0-cloud", super::hosted::mem0_cloud),
    ("zep", super::hosted::zep),
    ("letta", super::hosted::letta),
    ("memmachine", super::hosted::memmachine),
    ("evermemos", super::hosted::evermemos),
    ("cognee", super::hosted::cognee),
    ("whole", super::whole::whole),
];

pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub(super) fn number(value: &Value, default: usize) -> usize {
    value.as_u64().map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

pub(super) fn not_found() -> Reply {
    Reply::Json(404, json!({ "detail": "Not Found" }))
}

fn astrocyte(world: &mut World, ask: &Ask<'_>) -> Reply {
    let (body, bank) = (&ask.body, text(&ask.body, "bank_id"));
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["health"]) => Reply::Json(200, json!({ "healthy": true, "message": "in-memory vector store" })),
        ("POST", ["v1", "retain"]) => {
            let content = text(body, "content");
            if content.is_empty() {
                return Reply::Json(
                    200,
                    json!({ "stored": false, "memory_id": null, "deduplicated": false, "error": "Content is empty" }),
                );
            }
            let is_there = |items: &Vec<Stored>| items.iter().any(|item| item.text == content);
            if !world.stores_twice && world.banks.get(bank).is_some_and(is_there) {
                let error = "All chunks are near-duplicates";
                return Reply::Json(
                    200,
                    json!({ "stored": false, "memory_id": null, "deduplicated": true, "error": error }),
                );
            }
            let id = world.store(bank, content, body["metadata"].clone());
            Reply::Json(200, json!({ "stored": true, "memory_id": id, "deduplicated": false, "error": null }))
        }
        ("POST", ["v1", "recall"]) => {
            if bank.is_empty() {
                return Reply::Json(400, json!({ "detail": "Value error, bank_id or banks is required" }));
            }
            let k = number(&body["max_results"], 10).max(1);
            let hits: Vec<Value> = world
                .search(bank, text(body, "query"), k)
                .into_iter()
                .map(|(item, score)| json!({ "text": item.text, "score": score, "metadata": item.meta, "memory_id": item.id }))
                .collect();
            let trace = json!({ "strategies_used": ["semantic", "keyword"], "fusion_method": "rrf" });
            Reply::Json(200, json!({ "hits": hits, "total_available": hits.len(), "truncated": false, "trace": trace }))
        }
        ("POST", ["v1", "reflect"]) => {
            let sources: Vec<Value> = world
                .search(bank, text(body, "query"), 3)
                .into_iter()
                .map(|(item, _)| json!({ "metadata": item.meta }))
                .collect();
            Reply::Json(200, json!({ "answer": world.answer(bank, text(body, "query")), "sources": sources }))
        }
        ("POST", ["v1", "forget"]) => {
            if text(body, "scope") != "all" {
                return Reply::Json(400, json!({ "detail": "scope: Input should be 'all'" }));
            }
            let gone = world.banks.remove(bank).map_or(0, |items| items.len());
            Reply::Json(200, json!({ "deleted_count": gone, "archived_count": 0 }))
        }
        _ => not_found(),
    }
}

fn problem(status: u16, detail: &str) -> Reply {
    Reply::Json(status, json!({ "status": status, "detail": detail }))
}

fn jeffs_brain(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["healthz"]) => Reply::Json(200, json!({ "ok": true })),
        ("POST", ["v1", "brains"]) => {
            let brain = text(body, "brainId");
            if world.banks.contains_key(brain) {
                return problem(409, &format!("brain already exists: {brain}"));
            }
            world.banks.insert(brain.to_owned(), Vec::new());
            Reply::Json(201, json!({ "brainId": brain }))
        }
        (_, ["v1", "brains", brain, ..]) if !world.banks.contains_key(*brain) => {
            problem(404, &format!("brain not found: {brain}"))
        }
        ("POST", ["v1", "brains", brain, "documents", "batch-ops"]) => {
            let ops = body["ops"].as_array().cloned().unwrap_or_default();
            for op in &ops {
                let document = unbase64(text(op, "content_base64"));
                let (front, content) =
                    document.trim_start_matches("---\n").split_once("---\n").unwrap_or(("", &document));
                let session = front.lines().find_map(|line| line.strip_prefix("session_id: ")).unwrap_or_default();
                let (path, date) =
                    (text(op, "path"), front.lines().find_map(|line| line.strip_prefix("session_date: ")));
                // a path that is there is overwritten
                world.banks.entry((*brain).to_owned()).or_default().retain(|item| item.meta["path"] != path);
                if text(op, "type") == "delete" {
                    continue;
                }
                let dated = format!("{}{}", date.map(|d| format!("[{d}] ")).unwrap_or_default(), content.trim());
                world.store(brain, &dated, json!({ "path": path, "session_id": session }));
            }
            Reply::Json(200, json!({ "committed": ops.len() }))
        }
        ("POST", ["v1", "brains", brain, "search"]) => {
            if body["query"].is_null() {
                return problem(400, "query required");
            }
            let found = world.search(brain, text(body, "query"), number(&body["topK"], 10));
            let chunks: Vec<Value> = found
                .into_iter()
                .enumerate()
                .map(|(at, (item, score))| json!({ "path": item.meta["path"], "text": item.text, "score": score, "metadata": item.meta, "bm25Rank": at + 1, "vectorSimilarity": 0.5, "rerankScore": null }))
                .collect();
            Reply::Json(200, json!({ "chunks": chunks, "tookMs": 0, "trace": { "effective_mode": "bm25" } }))
        }
        ("POST", ["v1", "brains", brain, "ask"]) => {
            let answer = world.answer(brain, text(body, "question"));
            let half = answer.chars().count() / 2;
            let (first, second): (String, String) =
                (answer.chars().take(half).collect(), answer.chars().skip(half).collect());
            let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
            let mut events = event("retrieve", json!({ "chunks": [], "topK": 2 }));
            for part in [first, second] {
                events.push_str(&event("answer_delta", json!({ "text": part })));
            }
            events.push_str(&event("citation", json!({ "path": "raw/lme/D1.md" })));
            events.push_str(&event("done", json!({ "ok": true })));
            Reply::Events(events)
        }
        ("GET", ["v1", "brains", brain, "documents"]) => {
            let items: Vec<Value> =
                world.banks[*brain].iter().map(|item| json!({ "path": item.meta["path"], "is_dir": false })).collect();
            Reply::Json(200, json!({ "items": items }))
        }
        ("DELETE", ["v1", "brains", brain]) => {
            if ask.headers.get("x-confirm-delete").is_none_or(|value| value != "yes") {
                return problem(428, "delete brain requires X-Confirm-Delete: yes header");
            }
            world.banks.remove(*brain);
            Reply::Empty(204)
        }
        _ => not_found(),
    }
}

fn unbase64(text: &str) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    String::from_utf8(STANDARD.decode(text).unwrap_or_default()).unwrap_or_default()
}

fn hebb_memory(id: &str, content: &str, meta: &Value) -> Value {
    json!({ "id": id, "content": content, "metadata": meta })
}

/// What is found, and the turns that stand near it.
fn hebb_search(world: &World, body: &Value) -> Reply {
    let k = number(&body["top_k"], 10);
    if k == 0 || k > 100 {
        return Reply::Json(422, json!({ "detail": "top_k: 1 to 100" }));
    }
    let partition = body["partition_ids"][0].as_str().unwrap_or("mem_hippocampus");
    let found = world.search(partition, text(body, "query"), k);
    // by session and number, of those that have a number
    let window = |key| i64::try_from(number(&body[key], 0)).unwrap_or(0);
    let (before, behind) = (window("prev_turns"), window("next_turns"));
    let stands = |meta: &Value| Some((meta["session_id"].as_str()?.to_owned(), meta["turn"].as_i64()?));
    let is_near = |meta: &Value| {
        let Some((session, turn)) = stands(meta) else { return false };
        let mut hits = found.iter().filter_map(|(hit, _)| stands(&hit.meta));
        hits.any(|(of, at)| of == session && (at - before..=at + behind).contains(&turn))
    };
    let is_hit = |id: &str| found.iter().any(|(hit, _)| hit.id == id);
    let items = world.banks.get(partition).into_iter().flatten();
    let related: Vec<Value> = items
        .filter(|item| before + behind > 0 && !is_hit(&item.id) && is_near(&item.meta))
        .map(|item| hebb_memory(&item.id, &item.text, &item.meta))
        .collect();
    let results: Vec<Value> = found
        .iter()
        .map(|(item, score)| json!({ "memory": hebb_memory(&item.id, &item.text, &item.meta), "score": score, "recency_score": 0.0, "importance_score_normalized": 0.5, "relevance_score": score, "pre_rerank_score": score }))
        .collect();
    Reply::Json(200, json!({ "results": results, "related": related }))
}

fn hebb_mind(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["health"]) => Reply::Json(200, json!({ "status": "ok", "version": "0.3.0" })),
        ("POST", ["api", "v1", "partitions"]) => {
            let id = text(body, "id");
            if !id.starts_with("mem_") || id.contains('-') {
                return Reply::Json(422, json!({ "detail": "String should match pattern '^mem_[a-z0-9_]+$'" }));
            }
            if world.banks.contains_key(id) {
                return Reply::Json(409, json!({ "detail": "Partition already exists" }));
            }
            world.banks.insert(id.to_owned(), Vec::new());
            Reply::Json(201, json!({ "id": id }))
        }
        ("POST", ["api", "v1", "memories", "batch"]) => {
            let mut made = Vec::new();
            for item in world.part_of(body.as_array().cloned().unwrap_or_default()) {
                let (bank, content) = (text(&item, "partition_id"), text(&item, "content"));
                if !world.banks.contains_key(bank) {
                    return not_found();
                }
                if content.is_empty() || content.chars().count() > 10_000 {
                    return Reply::Json(422, json!({ "detail": "content must have 1 to 10000 characters" }));
                }
                let id = world.store(bank, content, item["metadata"].clone());
                made.push(hebb_memory(&id, content, &item["metadata"]));
            }
            Reply::Json(201, Value::Array(made))
        }
        ("GET", ["api", "v1", "memories"]) => {
            let items = world.banks.get(&ask.query["partition_id"]).cloned().unwrap_or_default();
            let (offset, limit) = (ask.number("offset", 0), ask.number("limit", 50));
            if limit > 200 {
                return Reply::Json(422, json!({ "detail": "limit: 1 to 200" }));
            }
            let page = items.iter().skip(offset).take(limit);
            let page: Vec<Value> = page.map(|item| hebb_memory(&item.id, &item.text, &item.meta)).collect();
            Reply::Json(200, json!({ "items": page, "total": items.len(), "offset": offset, "limit": limit }))
        }
        ("DELETE", ["api", "v1", "memories", id]) => {
            world.banks.values_mut().for_each(|items| items.retain(|item| item.id != *id));
            Reply::Empty(204)
        }
        ("POST", ["api", "v1", "search"]) => hebb_search(world, body),
        ("POST", ["api", "v1", "admin", "consolidate"]) => {
            Reply::Json(200, json!({ "processed": 1, "succeeded": 1, "failed": 0, "errors": [] }))
        }
        // the memories stay, and are still found
        ("DELETE", ["api", "v1", "partitions", _]) => Reply::Empty(204),
        _ => not_found(),
    }
}

fn amplihack(world: &mut World, ask: &Ask<'_>) -> Reply {
    match (ask.method, ask.path.as_slice()) {
        ("POST", ["learn"]) => {
            world.store("all", text(&ask.body, "content"), Value::Null);
            Reply::Json(200, json!({}))
        }
        ("POST", ["answer"]) => Reply::Json(200, json!({ "answer": world.answer("all", text(&ask.body, "question")) })),
        ("POST", ["reset"]) => {
            world.banks.clear();
            Reply::Json(200, json!({}))
        }
        _ => not_found(),
    }
}

fn precisionmembench(world: &mut World, ask: &Ask<'_>) -> Reply {
    let (body, user) = (&ask.body, text(&ask.body, "user_id"));
    match (ask.method, ask.path.as_slice()) {
        ("POST", ["add"]) => {
            world.store(user, text(body, "text"), body["metadata"].clone());
            Reply::Json(200, json!({ "ok": true, "db_overhead_ms": 1 }))
        }
        ("POST", ["search"]) => {
            // one that is named is looked for, as some of the wrappers do
            let scope = body["scope"].as_str().filter(|scope| !scope.is_empty());
            let results: Vec<Value> = world
                .search(user, text(body, "query"), usize::MAX)
                .into_iter()
                .filter(|(item, _)| scope.is_none_or(|scope| item.meta["scope"] == scope))
                .take(number(&body["limit"], 10))
                .map(|(item, score)| json!({ "id": item.meta["beliefId"], "memory": item.text, "score": score }))
                .collect();
            Reply::Json(200, json!({ "results": results }))
        }
        // all users
        ("DELETE", ["reset"]) => {
            world.banks.clear();
            Reply::Json(200, json!({ "ok": true }))
        }
        _ => not_found(),
    }
}

fn mem0(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["openapi.json"]) => Reply::Json(200, json!({ "info": { "version": "1.0.0" } })),
        ("POST", ["memories"]) => {
            let user = text(body, "user_id");
            if user.is_empty() {
                return Reply::Json(400, json!({ "detail": "At least one identifier is required." }));
            }
            let mut results = Vec::new();
            for message in body["messages"].as_array().cloned().unwrap_or_default() {
                let id = world.store(user, text(&message, "content"), body["metadata"].clone());
                results.push(json!({ "id": id, "memory": message["content"], "event": "ADD" }));
            }
            Reply::Json(200, json!({ "results": results }))
        }
        ("POST", ["search"]) => {
            let user = body["filters"]["user_id"].as_str().unwrap_or_default();
            // `limit` is not known any more
            let results: Vec<Value> = world
                .search(user, text(body, "query"), number(&body["top_k"], 20))
                .into_iter()
                .map(|(item, score)| json!({ "id": item.id, "memory": item.text, "score": score, "metadata": item.meta }))
                .collect();
            Reply::Json(200, json!({ "results": results }))
        }
        ("GET", ["memories"]) => {
            let most = ask.number("top_k", 20);
            let items = world.banks.get(&ask.query["user_id"]).cloned().unwrap_or_default();
            let memory = |item: &Stored| json!({ "id": item.id, "memory": item.text, "metadata": item.meta });
            Reply::Json(200, json!({ "results": items.iter().take(most).map(memory).collect::<Vec<_>>() }))
        }
        ("DELETE", ["memories"]) => {
            world.banks.remove(&ask.query["user_id"]);
            Reply::Json(200, json!({ "message": "All relevant memories deleted" }))
        }
        _ => not_found(),
    }
}

fn graphiti(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["healthcheck"]) => Reply::Json(200, json!({ "status": "healthy" })),
        ("POST", ["messages"]) => {
            for message in body["messages"].as_array().cloned().unwrap_or_default() {
                if message.get("role").is_none() {
                    return Reply::Json(422, json!({ "detail": "role: Field required" }));
                }
                // it may be missing, and is now then
                if message.get("timestamp").is_some_and(|time| !time.is_string()) {
                    return Reply::Json(422, json!({ "detail": "timestamp: Input should be a valid datetime" }));
                }
                // looked up, not found, and the worker is gone for good
                world.worker_dead |= !message["uuid"].is_null();
                world.accept(text(body, "group_id"), text(&message, "content"), message.clone());
            }
            Reply::Json(202, json!({ "message": "Messages added to processing queue", "success": true }))
        }
        ("GET", ["episodes", group]) => {
            let items = world.banks.get(*group).cloned().unwrap_or_default();
            let episode = |item: &Stored| json!({ "uuid": item.id, "content": item.text, "source_description": item.meta["source_description"] });
            Reply::Json(200, Value::Array(items.iter().take(ask.number("last_n", 3)).map(episode).collect()))
        }
        ("POST", ["search"]) => {
            let group = body["group_ids"][0].as_str().unwrap_or_default();
            // what is said twice is one fact, of both episodes
            let all = world.banks.get(group).cloned().unwrap_or_default();
            let episodes = |fact: &str| -> Vec<&str> {
                all.iter().filter(|item| item.text == fact).map(|item| item.id.as_str()).collect()
            };
            let mut said = BTreeSet::new();
            let facts: Vec<Value> = world
                .search(group, text(body, "query"), number(&body["max_facts"], 10))
                .into_iter()
                .filter(|(item, _)| said.insert(item.text.clone()))
                .map(|(item, _)| json!({ "uuid": format!("fact-{}", item.id), "name": "SAID", "fact": item.text, "episodes": episodes(&item.text) }))
                .collect();
            Reply::Json(200, json!({ "facts": facts }))
        }
        ("DELETE", ["group", group]) => {
            world.banks.remove(*group);
            Reply::Json(200, json!({ "message": "Group deleted", "success": true }))
        }
        _ => not_found(),
    }
}

fn hindsight(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["health"]) => Reply::Json(200, json!({ "status": "healthy" })),
        ("PUT", ["v1", "default", "banks", bank]) => {
            world.banks.entry((*bank).to_owned()).or_default();
            Reply::Json(200, json!({ "bank_id": bank }))
        }
        ("POST", ["v1", "default", "banks", bank, "memories"]) => {
            let items = body["items"].as_array().cloned().unwrap_or_default();
            for item in &items {
                let document = item["document_id"].clone();
                world
                    .banks
                    .entry((*bank).to_owned())
                    .or_default()
                    .retain(|known| known.meta["document_id"] != document);
                let mut meta = item["metadata"].clone();
                meta["document_id"] = document;
                let dated = format!("{} ({})", text(item, "content"), text(item, "timestamp"));
                world.accept(bank, &dated, meta);
            }
            let usage = json!({ "input_tokens": 100, "output_tokens": 10 });
            Reply::Json(200, json!({ "success": true, "bank_id": bank, "items_count": items.len(), "usage": usage }))
        }
        // as old as a minute, and without what is being worked on: nobody learns from it whether a bank is ready
        ("GET", ["v1", "default", "banks", _, "stats"]) => {
            Reply::Json(200, json!({ "pending_operations": 0, "failed_operations": 0, "total_documents": 0 }))
        }
        ("GET", ["v1", "default", "banks", bank, "operations"]) => {
            let worked_on = world.waiting.iter().filter(|(name, _)| name == bank).count();
            let total = if ask.query.get("status").is_some_and(|of| of == "processing") { worked_on } else { 0 };
            Reply::Json(200, json!({ "bank_id": bank, "total": total, "operations": [] }))
        }
        ("GET", ["v1", "default", "banks", bank, "documents"]) => {
            let documents = world.banks.get(*bank).map_or(0, Vec::len);
            Reply::Json(200, json!({ "items": [], "total": documents }))
        }
        ("GET", ["v1", "default", "banks", bank, "memories", "list"]) => {
            let all = world.banks.get(*bank).cloned().unwrap_or_default();
            let page = all.iter().skip(ask.number("offset", 0)).take(ask.number("limit", 100));
            let items: Vec<Value> =
                page.map(|item| json!({ "id": item.id, "text": item.text, "metadata": item.meta })).collect();
            Reply::Json(200, json!({ "items": items, "total": all.len() }))
        }
        ("POST", ["v1", "default", "banks", bank, "memories", "recall"]) => {
            // as many as fit into the budget
            let mut left = number(&body["max_tokens"], 4096) * 4;
            let results: Vec<Value> = world
                .search(bank, text(body, "query"), usize::MAX)
                .into_iter()
                .take_while(|(item, _)| {
                    let fits = item.text.len() <= left;
                    left = left.saturating_sub(item.text.len());
                    fits
                })
                .map(|(item, score)| json!({ "id": item.id, "text": item.text, "type": "world", "metadata": item.meta, "scores": { "keyword": score } }))
                .collect();
            Reply::Json(200, json!({ "results": results }))
        }
        ("POST", ["v1", "default", "banks", bank, "reflect"]) => {
            let usage = json!({ "input_tokens": 50, "output_tokens": 5 });
            Reply::Json(200, json!({ "text": world.answer(bank, text(body, "query")), "usage": usage }))
        }
        ("POST", ["v1", "default", "banks", _, "consolidate"]) => Reply::Json(200, json!({ "success": true })),
        ("DELETE", ["v1", "default", "banks", bank]) => {
            world.banks.remove(*bank);
            Reply::Json(200, json!({ "success": true }))
        }
        _ => not_found(),
    }
}

fn supermemory(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["v3", "documents", "processing"]) => Reply::Json(200, json!({ "documents": [] })),
        ("POST", ["v3", "documents"]) => {
            let (tag, custom) = (text(body, "containerTag").to_owned(), body["customId"].clone());
            world.banks.entry(tag.clone()).or_default().retain(|item| item.meta["customId"] != custom);
            let mut meta = body["metadata"].clone();
            meta["customId"] = custom;
            let id = world.accept(&tag, text(body, "content"), meta);
            Reply::Json(200, json!({ "id": id, "status": "queued" }))
        }
        ("GET", ["v3", "documents", id]) => {
            let is = |meta: &Value| meta["customId"] == *id;
            if world.waiting.iter().any(|(_, item)| is(&item.meta)) {
                return Reply::Json(200, json!({ "id": id, "status": "extracting" }));
            }
            if world.banks.values().flatten().any(|item| is(&item.meta)) {
                return Reply::Json(200, json!({ "id": id, "status": "done" }));
            }
            // what has failed is deleted after a while
            not_found()
        }
        ("POST", ["v4", "search"]) => {
            let limit = number(&body["limit"], 10);
            if limit > 100 {
                return Reply::Json(400, json!({ "error": "limit must be at most 100" }));
            }
            let found = world.search(text(body, "containerTag"), text(body, "q"), limit);
            let best = found.first().map_or(1, |(_, score)| *score);
            let threshold = body["threshold"].as_f64().unwrap_or(0.5);
            let results: Vec<Value> = found
                .into_iter()
                .map(|(item, score)| (item, score as f64 / (best + 1) as f64))
                .filter(|(_, similarity)| *similarity >= threshold)
                .map(|(item, similarity)| json!({ "id": item.id, "memory": item.text, "similarity": similarity, "metadata": item.meta }))
                .collect();
            Reply::Json(200, json!({ "results": results, "timing": 3, "total": results.len() }))
        }
        ("DELETE", ["v3", "container-tags", tag]) => {
            world.banks.remove(*tag);
            Reply::Json(200, json!({ "success": true }))
        }
        _ => not_found(),
    }
}
