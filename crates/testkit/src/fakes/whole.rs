//! A memory server of nobody's: it replaces, forgets and filters, which none of the others does in all.

use serde_json::{Value, json};

use super::{Ask, Reply, Stored, World, systems::text};

fn has(item: &Stored, list: &str, wanted: &Value) -> bool {
    item.meta[list].as_array().is_some_and(|held| held.contains(wanted))
}

/// Whether a search's filter lets an item through.
fn is_admitted(item: &Stored, filter: &Value) -> bool {
    let wanted = |list: &str| filter[list].as_array().cloned().unwrap_or_default();
    let (tags, scopes) = (wanted("tags"), wanted("scopes"));
    let (time, from, until) = (item.meta["time"].as_str(), filter["from"].as_str(), filter["until"].as_str());
    tags.iter().all(|tag| has(item, "tags", tag))
        && (filter["user"].is_null() || item.meta["user"] == filter["user"])
        && (scopes.is_empty() || scopes.iter().any(|scope| has(item, "scopes", scope)))
        && from.is_none_or(|from| time.is_some_and(|time| time >= from))
        && until.is_none_or(|until| time.is_some_and(|time| time <= until))
}

/// A bank as lines, which [`take_in`] reads.
fn hand_on(world: &World, bank: &str) -> Reply {
    let line = |item: &Stored| format!("{}\n", json!({ "text": item.text, "meta": item.meta }));
    Reply::Text(world.banks.get(bank).into_iter().flatten().map(line).collect())
}

fn take_in(world: &mut World, bank: &str, lines: &[u8]) -> Reply {
    world.banks.remove(bank);
    for line in String::from_utf8_lossy(lines).lines() {
        let item: Value = serde_json::from_str(line).unwrap_or_default();
        world.store(bank, text(&item, "text"), item["meta"].clone());
    }
    Reply::Json(200, json!({}))
}

/// `POST /banks/B/items`, `POST /banks/B/batch`, `PUT` and `DELETE /banks/B/items/KEY`, `POST /banks/B/search`, `GET /banks/B/export`,
/// `PUT /banks/B/import`, `GET` and `DELETE /banks/B`.
pub(super) fn whole(world: &mut World, ask: &Ask<'_>) -> Reply {
    let body = &ask.body;
    let remove = |world: &mut World, bank: &str, key: &str| {
        let items = world.banks.entry(bank.to_owned()).or_default();
        let before = items.len();
        items.retain(|item| item.meta["key"] != key);
        before > items.len()
    };
    match (ask.method, ask.path.as_slice()) {
        ("GET", ["health"]) if world.version.is_empty() => Reply::Json(200, json!({ "ok": true })),
        ("GET", ["health"]) => Reply::Json(200, json!({ "ok": true, "version": world.version })),
        ("POST", ["banks", bank, "items"]) => {
            world.store(bank, text(body, "text"), body.clone());
            Reply::Json(200, json!({}))
        }
        ("POST", ["banks", bank, "batch"]) => {
            let items = world.part_of(body["items"].as_array().cloned().unwrap_or_default());
            for item in &items {
                // what has a key is there once
                if let Some(key) = item["key"].as_str() {
                    remove(world, bank, key);
                }
                world.store(bank, text(item, "text"), item.clone());
            }
            Reply::Json(200, json!({ "stored": items.len() }))
        }
        ("PUT", ["banks", bank, "items", key]) => {
            if !remove(world, bank, key) {
                return Reply::Json(404, json!({ "error": format!("no item {key}") }));
            }
            world.store(bank, text(body, "text"), body.clone());
            Reply::Json(200, json!({}))
        }
        ("DELETE", ["banks", bank, "items", key]) => match remove(world, bank, key) {
            true => Reply::Json(200, json!({ "tokens": 3 })),
            false => Reply::Empty(404),
        },
        ("POST", ["banks", bank, "search"]) => {
            let k = body["k"].as_u64().and_then(|k| usize::try_from(k).ok()).unwrap_or(10);
            let found = world.search(bank, text(body, "query"), usize::MAX).into_iter();
            let hits = found.filter(|(item, _)| is_admitted(item, &body["filter"])).take(k);
            let hit = |(item, score): (Stored, usize)| json!({ "id": item.meta["id"], "text": item.text, "session": item.meta["session"], "score": score });
            Reply::Json(200, json!({ "hits": hits.map(hit).collect::<Vec<_>>() }))
        }
        ("POST", ["banks", bank, "answer"]) => {
            let until = json!({ "until": body["filter"]["until"] });
            let known = |item: &Stored| until["until"].is_null() || is_admitted(item, &until);
            let found =
                world.search(bank, text(body, "question"), usize::MAX).into_iter().find(|(item, _)| known(item));
            let answer = found.map_or_else(|| "nothing is known".to_owned(), |(item, _)| item.text);
            Reply::Json(200, json!({ "answer": world.always_answers.clone().unwrap_or(answer) }))
        }
        ("POST", ["banks", bank, "list"]) => {
            let at = |name: &str| body[name].as_u64().and_then(|n| usize::try_from(n).ok());
            let (first, most) = (at("offset").unwrap_or(0), at("limit").unwrap_or(usize::MAX));
            let all = world.banks.get(*bank).map_or(&[][..], Vec::as_slice);
            let item = |item: &Stored| json!({ "id": item.meta["id"], "text": item.text });
            Reply::Json(200, json!({ "items": all.iter().skip(first).take(most).map(item).collect::<Vec<_>>() }))
        }
        ("GET", ["banks", bank, "export"]) => hand_on(world, bank),
        ("PUT", ["banks", bank, "import"]) => take_in(world, bank, ask.raw),
        ("GET", ["banks", bank]) => Reply::Json(200, json!({ "items": world.banks.get(*bank).map_or(0, Vec::len) })),
        ("DELETE", ["banks", bank]) => {
            world.banks.remove(*bank);
            Reply::Empty(204)
        }
        _ => Reply::Json(404, json!({ "error": "no such place" })),
    }
}
