//! Finding: searches, lists that become one, answers of the system's own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bench_proto::{call::Usage, failure::Failure, ids::Sha256Hash, step::RetrievedHit};
use serde_json::Value;

use super::{
    call::{Call, Read},
    file::Hits,
    index::{BankIndex, Handed, Indexes},
    items::{PAGE_ITEMS, behind, rfc3339},
    path::{Path, kind, scalar},
    places::{Known, MADE_OF, own_ids},
    spec::{CallSpec, Merge, Pick, Unit},
    system::{AdapterSystem, bank_vars},
    template::Vars,
};
use crate::{
    BankRef, ListCursor, ListedPage, NativeAnswer, Prepared, Recall, RecallQuery,
    check::heard::{self, BeyondK, Remark},
    moments::Bounds,
    system::bounded_details,
};

/// Letters of a value that a remark shows.
const SHOWN: usize = 24;
/// Tokens of a recall for systems that are asked by budget, when nothing is said.
const DEFAULT_MAX_TOKENS: u32 = 4096;

impl AdapterSystem {
    /// Sends all searches of a recall and makes one list of their hits.
    pub(super) async fn search(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        if self.adapter.searches.is_empty() {
            return Ok(Recall::default());
        }
        let vars = self.recall_vars(bank, query)?;
        let reads = self.adapter.searches.iter().map(|(call, _)| self.send_for(query.step, call, Some(bank), &vars));
        let reads = futures::future::try_join_all(reads).await?;
        let named = self.adapter.searches.iter().zip(&reads).flat_map(|((_, lists), read)| named_in(lists, read));
        let named: BTreeSet<String> = named.collect();
        let known = self.whose(bank, query.visible_entries, named).await?;
        let among = self.among(bank, &known);
        let (mut lists, mut beside, mut usage) = (Vec::new(), Vec::new(), Usage::default());
        let mut said_once = BTreeMap::new();
        for ((call, lists_of), read) in self.adapter.searches.iter().zip(reads) {
            usage += read.usage;
            for hits in lists_of {
                let found = hits_of(call, &read, hits, &among)?;
                for (name, value) in of_reply(&read, hits) {
                    let _ = said_once.entry(name).or_insert(value);
                }
                if found.len() > query.k as usize && !hits.beside_k && !self.capabilities.token_budget {
                    heard::note_beyond_k(BeyondK { came: found.len(), was_told: is_bounded(call, lists_of, hits) });
                }
                if hits.beside_k { beside.extend(found) } else { lists.push(found) }
            }
        }
        let mut hits = merge(lists, self.adapter.spec.merge);
        // a system that ignores k does not get an advantage of it; one that is asked by tokens has no k
        if !self.capabilities.token_budget {
            hits.truncate(query.k as usize);
        }
        let asked = if self.capabilities.token_budget { hits.len() } else { query.k as usize };
        if !beside.is_empty() {
            let known: BTreeSet<(&str, &str)> = hits.iter().map(|hit| (hit.id.as_str(), hit.text.as_str())).collect();
            beside.retain(|hit| !known.contains(&(hit.id.as_str(), hit.text.as_str())));
        }
        // how many it really was stands in the report
        let effective_k = u32::try_from(asked + beside.len()).unwrap_or(u32::MAX);
        hits.append(&mut beside);
        let mut recall = Recall { hits, effective_k, usage, said_once: bounded_details(said_once) };
        // the hit that had it may be none of those that are left
        recall.keep_said_once();
        Ok(recall)
    }

    /// Asks for a page of what the bank holds.
    pub(super) async fn list_page(
        &self,
        bank: &BankRef,
        entries: u32,
        from: &ListCursor,
    ) -> Result<ListedPage, Failure> {
        let Some(listing) = &self.adapter.list else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `list`"));
        };
        let vars = bank_vars(bank)
            .with("limit", PAGE_ITEMS)
            .with("offset", from.listed)
            .with("page", from.pages + 1)
            .with("page_index", from.pages)
            .with("cursor", from.cursor.clone());
        let read = self.send(&listing.call, Some(bank), &vars).await?;
        let known = self.whose(bank, entries, named_in(&listing.hits, &read)).await?;
        let among = self.among(bank, &known);
        let mut items = Vec::new();
        for hits in &listing.hits {
            items.extend(hits_of(&listing.call, &read, hits, &among)?);
        }
        if let Some(most) = listing.most.filter(|most| items.len() >= *most as usize) {
            return Err(listing
                .call
                .shape(format!("the listing gives at most {most} items, and came to as many: it may lack some")));
        }
        // `has_more: false` says that there is none, as an empty text does
        let next = listing.next.as_ref().filter(|next| !matches!(next.first(&read.value), Some(Value::Bool(false))));
        let cursor = next.and_then(|next| next.string(&read.value)).filter(|next| !next.is_empty());
        let more = if listing.next.is_some() { cursor.is_some() } else { listing.has_pages && !items.is_empty() };
        // where a page is asked for by its number, every page may say the same of the next one
        if listing.call.uses("cursor") && cursor.is_some() && cursor == from.cursor {
            return Err(listing.call.shape("the next page is the one that was asked for: the listing has no end"));
        }
        let next = more.then(|| from.behind(items.len(), cursor));
        Ok(ListedPage { items, next })
    }

    fn among<'a>(&'a self, bank: &'a BankRef, known: &'a Known) -> Among<'a> {
        Among { bank, indexes: &self.indexes, unit: self.adapter.spec.unit, known }
    }

    /// Whose these ids of the system's own are; looked up where one of them was not there yet.
    async fn whose(&self, bank: &BankRef, entries: u32, asked: BTreeSet<String>) -> Result<Arc<Known>, Failure> {
        if asked.is_empty() {
            return Ok(Arc::default());
        }
        self.known(bank, entries, &asked, 0).await.map(|(known, _)| known)
    }

    /// Looks up whose the system's own ids are before a recall needs it, so that it is no part of the recall's latency.
    pub(super) async fn places_ahead(&self, bank: &BankRef, entries: u32) -> Result<Prepared, Failure> {
        self.known(bank, entries, &BTreeSet::new(), entries).await.map(|(_, how)| how)
    }

    /// What is known of a bank, where it has all ids that are asked for and was told of so many entries at least; else it is looked
    /// up, by one at a time: whoever waits has what came of that.
    async fn known(
        &self,
        bank: &BankRef,
        entries: u32,
        asked: &BTreeSet<String>,
        at_least: u32,
    ) -> Result<(Arc<Known>, Prepared), Failure> {
        // without its content nothing can be placed, and what is timed has no further request (`load`)
        let Some((call, paths)) = self.adapter.places.as_ref().filter(|_| bank.content.is_some()) else {
            return Ok((Arc::default(), Prepared::Ready));
        };
        if let Some(known) = self.places.all_of(&bank.name, asked, at_least) {
            return Ok((known, Prepared::Ready));
        }
        let turn = self.places.turn(&bank.name);
        let _mine = turn.lock().await;
        if let Some(known) = self.places.all_of(&bank.name, asked, at_least) {
            return Ok((known, Prepared::Waited));
        }
        let read = self.send(call, Some(bank), &bank_vars(bank)).await?;
        let told = paths.read(&read.value).map_err(|error| call.shape(error))?;
        Ok((self.places.keep(&bank.name, entries, told, asked), Prepared::Built))
    }

    /// Lets the system answer by itself.
    pub(super) async fn ask(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        let (Some(call), Some(spec)) = (&self.adapter.answer, &self.adapter.spec.answer) else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `answer`"));
        };
        let read = self.send_for(query.step, call, Some(bank), &self.recall_vars(bank, query)?).await?;
        let text = answer_text(call, &read, Some(spec))?;
        let cites = spec.cites.as_deref().map(Path::new);
        let values = std::iter::once(&read.value).chain(read.events.iter().map(|event| &event.data));
        let citations = values
            .flat_map(|value| cites.as_ref().map(|path| path.all(value)).unwrap_or_default())
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect();
        Ok(NativeAnswer { text, citations, usage: read.usage })
    }

    /// The variables of a question; what is above a limit is refused, never clipped. `{scope}` is the one that is asked: the first
    /// of several would leave out what the question may be answered from.
    fn recall_vars(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Vars, Failure> {
        let limits = &self.adapter.spec.limits;
        let refuse = |what: String| Failure::permanent("system_limit", what);
        if let Some(most) = limits.max_k.filter(|most| query.k > *most) {
            return Err(refuse(format!("{} hits are asked for, the system gives at most {most}", query.k)));
        }
        if let Some(most) = limits.query_bytes.filter(|most| query.text.len() > *most as usize) {
            return Err(refuse(format!("the query has {} bytes, the system takes at most {most}", query.text.len())));
        }
        let can = self.capabilities.filters.or(self.capabilities.answer_filters);
        let bounds = if can.from || can.until { Bounds::from_filter(query.filter)? } else { Bounds::default() };
        let mut calls = self.adapter.searches.iter().map(|(call, _)| call).chain(&self.adapter.answer);
        let is_told = calls.any(|call| call.uses("question_id"));
        let at = query.time.and_then(rfc3339);
        let only_scope = <&[String; 1]>::try_from(query.filter.scopes.as_slice()).ok();
        Ok(bank_vars(bank)
            .with("query", query.text)
            .with("k", query.k)
            .with("time", at.clone())
            .with("asked_at", at)
            .with("time_text", query.time_text.map(str::to_owned))
            .with("tags", query.filter.tags.clone())
            .with("user", query.filter.user.clone())
            .with("scope", only_scope.map(|[scope]| scope.clone()))
            .with("scopes", query.filter.scopes.clone())
            .with("from", bounds.from.as_deref().and_then(rfc3339))
            .with("until", bounds.until.as_deref().and_then(rfc3339))
            .with("max_tokens", limits.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS))
            .with("question_id", is_told.then(|| opaque(bank, query.question_id)))
            .with("reader_mode", query.reader_mode.name()))
    }
}

/// A question's id as a memory system gets it: of this bank alone, so that no table of answers by a dataset's ids is of use.
fn opaque(bank: &BankRef, question_id: &str) -> String {
    let mut id = Sha256Hash::of_bytes(format!("bench-question-v1\n{}\n{question_id}", bank.name).as_bytes()).hex();
    id.truncate(16);
    id
}

/// What a response says once beside its hits.
fn of_reply(read: &Read, hits: &Hits) -> BTreeMap<String, Value> {
    let detail = |(name, path): &(String, Path)| Some((name.clone(), path.first(&read.value)?.clone()));
    hits.details_of_reply.iter().filter_map(detail).collect()
}

/// By what hits are placed among what was stored.
pub(super) struct Among<'a> {
    pub(super) bank: &'a BankRef,
    pub(super) indexes: &'a Indexes,
    pub(super) unit: Unit,
    /// Whose ids of the system's own are.
    pub(super) known: &'a Known,
}

/// The ids of the system's own that the hits of a response name, to be looked up.
fn named_in(lists: &[Hits], read: &Read) -> BTreeSet<String> {
    let in_list = |hits: &Hits| {
        let elements = hits.made_of.as_ref().and_then(|_| hits.list.list(&read.value).ok().flatten());
        let ids =
            |element: &Value| -> Vec<String> { hits.made_of.iter().flat_map(|path| own_ids(path, element)).collect() };
        elements.unwrap_or_default().into_iter().flat_map(ids).collect::<Vec<_>>()
    };
    lists.iter().flat_map(in_list).collect()
}

/// The id by which a hit is placed, and what it was made of besides: its own where that is known, else the first that it was made of.
fn placed_by(hits: &Hits, element: &Value, known: &Known, index: &BankIndex) -> (Option<String>, Vec<String>) {
    let id = hits.id.as_ref().and_then(|path| path.string(element));
    let Some(path) = &hits.made_of else { return (id, Vec::new()) };
    let mut made_of: Vec<String> =
        own_ids(path, element).into_iter().filter_map(|id| known.get(&id)?.clone()).collect();
    if made_of.is_empty() || id.as_deref().is_some_and(|id| index.knows(id)) {
        return (id, made_of);
    }
    let first = made_of.remove(0);
    (Some(first), made_of)
}

/// The hits of one list in a response.
pub(super) fn hits_of(call: &Call, read: &Read, hits: &Hits, among: &Among<'_>) -> Result<Vec<RetrievedHit>, Failure> {
    let list = hits.list.list(&read.value).map_err(|error| call.shape(error))?;
    let list = match list {
        Some(list) => list,
        None if hits.optional => return Ok(Vec::new()),
        None => return Err(call.shape(absent(&hits.list, None, &read.value))),
    };
    let Among { bank, indexes, unit, known } = among;
    let index = indexes.find_or_build(bank.content_hash, bank.content.as_deref(), *unit);
    let is_other = |element: &&Value| hits.not_with.as_ref().is_some_and(|path| path.first(element).is_some());
    let list: Vec<&Value> = list.into_iter().filter(|element| !is_other(element)).collect();
    if heard::is_listening() {
        remark_on(hits, &list);
    }
    let mut said_once = of_reply(read, hits);
    let mut found = Vec::with_capacity(list.len());
    for (at, element) in list.into_iter().enumerate() {
        let text = match hits.text.first(element) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                return Err(call.shape(format!(
                    "field '{}' of hit {at} must be a text, not {}",
                    hits.text.shown(),
                    kind(other)
                )));
            }
            None => return Err(call.shape(absent(&hits.text, Some(at), element))),
        };
        let read_path = |path: &Option<Path>| path.as_ref().and_then(|path| path.string(element));
        let score = hits.score.as_ref().and_then(|path| path.first(element)).and_then(Value::as_f64);
        let session = read_path(&hits.session);
        let detail = |(name, path): &(String, Path)| Some((name.clone(), path.first(element)?.clone()));
        let mut details: BTreeMap<String, Value> = hits.details.iter().filter_map(detail).collect();
        // once, with the first
        details.append(&mut said_once);
        let (id, made_of) = placed_by(hits, element, known, &index);
        if !made_of.is_empty() {
            let _ = details.insert(MADE_OF.to_owned(), made_of.into());
        }
        let details = bounded_details(details);
        let mut hit = index.place(at, Handed { id, session, text, score, details });
        // a text that begins with a time keeps that one alone
        let time = read_path(&hits.time).filter(|time| !time.trim().is_empty() && !hit.text.starts_with('['));
        if let Some(time) = time {
            hit.text = behind(Some(time.trim()), &hit.text);
        }
        found.push(hit);
    }
    Ok(found)
}

/// Whether a list has no more hits than the request asks for: it asks for a number, and that of nothing else in the response.
fn is_bounded(call: &Call, lists: &[Hits], hits: &Hits) -> bool {
    call.uses("k") && !hits.list.has_each() && lists.iter().filter(|hits| !hits.beside_k).count() == 1
}

/// Whether a field has the type that it is to have.
type IsRight = fn(&Value) -> bool;

fn is_name(value: &Value) -> bool {
    scalar(value).is_some()
}

/// One name, or a list of them.
fn are_names(value: &Value) -> bool {
    value.as_array().map_or_else(|| is_name(value), |list| list.iter().all(is_name))
}

/// Tells who listens of fields that the file names and that no hit has, or that are of another type: hits come without them.
fn remark_on(hits: &Hits, list: &[&Value]) {
    let fields: [(&str, &Option<Path>, IsRight, &str); 5] = [
        ("score", &hits.score, Value::is_number, "a number"),
        ("id", &hits.id, is_name, "a text"),
        ("made_of", &hits.made_of, are_names, "an id or a list of ids"),
        ("session", &hits.session, is_name, "a text"),
        ("time", &hits.time, is_name, "a text"),
    ];
    for (what, path, is_right, wanted) in fields {
        let Some(path) = path else { continue };
        let values: Vec<Option<&Value>> = list.iter().map(|element| path.first(element)).collect();
        let is_wrong = |value: &Option<&Value>| value.is_some_and(|value| !is_right(value));
        let wrong = match (values.iter().position(is_wrong), list.first()) {
            (Some(at), _) => {
                let (path, value) = (path.shown(), values[at].unwrap_or(&Value::Null));
                let begin: String = value.to_string().chars().take(SHOWN).collect();
                format!("field '{path}' of hit {at} must be {wanted}, not {} ({begin})", kind(value))
            }
            (None, Some(first)) if values.iter().all(Option::is_none) => absent(path, Some(0), first),
            _ => continue,
        };
        let about = format!("{what} {}", path.shown());
        heard::remark(Remark { about, text: format!("hits come without {what}: {wrong}") });
    }
}

/// That a field of a response, or of one of its hits, is not there, and what is there instead.
fn absent(path: &Path, hit: Option<usize>, value: &Value) -> String {
    path.absent(&hit.map(|at| format!(" of hit {at}")).unwrap_or_default(), value)
}

/// The text of an answer: of a field, or of all events together, or of the one of several that the file picks.
pub(super) fn answer_text(call: &Call, read: &Read, spec: Option<&CallSpec>) -> Result<String, Failure> {
    let path = Path::new(spec.and_then(|spec| spec.text.as_deref()).unwrap_or_default());
    let pick = spec.and_then(|spec| spec.pick);
    let text = if read.events.is_empty() {
        let found = if pick == Some(Pick::Last) { path.last(&read.value) } else { path.first(&read.value) };
        let found = found.ok_or_else(|| call.shape(path.absent("", &read.value)))?;
        found.as_str().map_or_else(|| found.to_string(), str::to_owned)
    } else {
        let parts: Vec<String> = read.events.iter().filter_map(|event| path.string(&event.data)).collect();
        if let (true, Some(last)) = (parts.is_empty(), read.events.last()) {
            return Err(call.shape(path.absent(" in every event", &last.data)));
        }
        match pick {
            None => parts.concat(),
            Some(Pick::First) => parts.into_iter().next().unwrap_or_default(),
            Some(Pick::Last) => parts.into_iter().next_back().unwrap_or_default(),
        }
    };
    Ok(text.trim().to_owned())
}

/// One list of several, best first; what several of them hold once. A single list is what the system gave: hits that it gives
/// twice stay, for they have taken a place.
fn merge(mut lists: Vec<Vec<RetrievedHit>>, how: Merge) -> Vec<RetrievedHit> {
    if lists.len() == 1 {
        return lists.pop().unwrap_or_default();
    }
    let mut merged: Vec<RetrievedHit> = match how {
        Merge::Append => lists.into_iter().flatten().collect(),
        Merge::Score => {
            let mut all: Vec<RetrievedHit> = lists.into_iter().flatten().collect();
            all.sort_by(|a, b| b.score.unwrap_or(f64::MIN).total_cmp(&a.score.unwrap_or(f64::MIN)));
            all
        }
        Merge::Interleave => {
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
            (0..longest).flat_map(|_| lists.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
        }
    };
    let mut seen = BTreeSet::new();
    merged.retain(|hit| seen.insert((hit.id.clone(), hit.text.clone())));
    merged
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bench_proto::{
        dataset::{BankContent, Memory, StreamEntry},
        step::HitLevel,
    };
    use serde_json::json;

    use super::*;
    use crate::adapter::{file, sse::Event};

    fn hit(id: &str) -> RetrievedHit {
        RetrievedHit { id: id.to_owned(), text: format!("text of {id}"), ..RetrievedHit::default() }
    }

    #[test]
    fn lists_are_joined_one_after_the_other_or_one_hit_of_each_in_turn() {
        let lists = || vec![vec![hit("a1"), hit("a2"), hit("a3")], vec![hit("b1"), hit("a1"), hit("b3"), hit("b4")]];
        let ids = |how| merge(lists(), how).into_iter().map(|hit| hit.id).collect::<Vec<_>>();
        assert_eq!(ids(Merge::Append), ["a1", "a2", "a3", "b1", "b3", "b4"], "of k = 3 the second list has none");
        assert_eq!(ids(Merge::Interleave), ["a1", "b1", "a2", "a3", "b3", "b4"], "of k = 3 it has one");
    }

    /// An adapter whose hits have an id, and name what they were made of.
    fn of_facts() -> file::Adapter {
        let text = "
name: mine
url: http://127.0.0.1:9
retain: {request: POST /add, body: {text: '{text}'}}
recall: {request: POST /search, body: {q: '{query}'}, hits: [{list: facts, text: fact, id: uuid, made_of: of}]}
places: {call: {request: GET /all}, list: '', id: n, is: name}
";
        file::compile(&file::parse(text).expect("reads")).expect("compiles")
    }

    #[test]
    fn a_hit_is_placed_by_its_own_id_where_that_is_known_and_else_by_what_it_was_made_of() {
        let memory = |id: &str| Memory { id: id.to_owned(), text: format!("text of {id}"), ..Memory::default() };
        let entries = ["m1", "m2", "m3"].map(|id| StreamEntry::Memory(memory(id))).into();
        let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
        let bank = BankRef::outside_of_runs("b", content);
        let own = [("7", Some("m1")), ("8", Some("m2")), ("9", None)];
        let known: Known = own.map(|(id, is)| (id.to_owned(), is.map(str::to_owned))).into();
        let (adapter, indexes) = (of_facts(), Indexes::default());
        let among = Among { bank: &bank, indexes: &indexes, unit: Unit::Turn, known: &known };
        let (call, lists) = &adapter.searches[0];
        let placed = |id: Value, of: Value| {
            let value = json!({ "facts": [{ "fact": "it was made of them", "uuid": id, "of": of }] });
            let read = Read { value, ..Read::default() };
            let hit = hits_of(call, &read, &lists[0], &among).expect("is read").remove(0);
            (hit.id, hit.level, hit.details.get(MADE_OF).cloned())
        };
        let turn = Some(HitLevel::Turn);
        for (id, of, is) in [
            (json!("m3"), json!([7, 8]), ("m3".to_owned(), turn, Some(json!(["m1", "m2"])))),
            (json!("fact-1"), json!([9, 7, "8"]), ("m1".to_owned(), turn, Some(json!(["m2"])))),
            (json!(null), json!(8), ("m2".to_owned(), turn, None)),
            (json!("fact-1"), json!([9, 10]), ("fact-1".to_owned(), Some(HitLevel::Unknown), None)),
        ] {
            assert_eq!(placed(id.clone(), of.clone()), is, "{id} {of}");
        }
    }

    #[tokio::test]
    async fn ids_of_what_hits_were_made_of_that_cannot_be_read_are_told_of() {
        let adapter = of_facts();
        let lists = &adapter.searches[0].1;
        let told = |of: Value| {
            let element = json!({ "fact": "red", "uuid": "f1", "of": of });
            heard::listening(async move {
                remark_on(&lists[0], &[&element]);
                heard::take_remarks().into_iter().map(|remark| remark.text).collect::<Vec<_>>()
            })
        };
        for of in [json!([7, "8"]), json!(7), json!([])] {
            assert_eq!(told(of).await, [""; 0]);
        }
        let wrong = told(json!([{ "id": 7 }])).await.concat();
        assert!(
            wrong.starts_with("hits come without made_of: field 'of' of hit 0 must be an id or a list of ids"),
            "{wrong}"
        );
        let absent = told(json!(null)).await.concat();
        assert_eq!(absent, "hits come without made_of: field 'of' of hit 0 is null");
    }

    #[test]
    fn of_several_texts_an_answer_is_the_one_that_is_picked() {
        let of = |pick, read: &Read| {
            let spec = CallSpec {
                request: "POST /ask".to_owned(),
                text: Some("messages.*.content|delta".to_owned()),
                pick,
                ..CallSpec::default()
            };
            let call = Call::compile("answer", &spec, &[], Duration::from_secs(1)).expect("compiles");
            answer_text(&call, read, Some(&spec)).expect("has a text")
        };
        let value = json!({ "messages": [{ "content": "let me see" }, { "tool": "search" }, { "content": "red" }] });
        let read = Read { value, ..Read::default() };
        let picks = [None, Some(Pick::First), Some(Pick::Last)];
        assert_eq!(picks.map(|pick| of(pick, &read)), ["let me see", "let me see", "red"]);
        let event = |text: &str| Event { name: "delta".to_owned(), data: json!({ "delta": text }) };
        let read = Read { events: vec![event("it is "), event("red")], ..Read::default() };
        assert_eq!(picks.map(|pick| of(pick, &read)), ["it is red", "it is", "red"]);
    }
}
