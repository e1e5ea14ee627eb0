//! Files and servers with a fault each, and the check that finds it, with what would mend it.

use bench_systems::{
    adapter,
    check::{self, Form, Outcome, Step, Told},
};
use bench_testkit::fakes::{Fake, World};
use serde_json::json;

use super::{of_text, outcome};

const FILE: &str = "
name: mine
can: {order: true}
retain:
  request: POST /banks/{bank}/items
  body: &item {id: '{id}', key: '{key}', text: '{content}', time: '{time?}', tags: '{tags?}', user: '{user?}', scopes: '{scopes?}'}
update: {request: 'PUT /banks/{bank}/items/{replaces_key}', body: *item}
forget: {request: 'DELETE /banks/{bank}/items/{replaces_key}'}
recall:
  request: POST /banks/{bank}/search
  body: {query: '{query}', k: '{k}', filter: {tags: '{tags?}', user: '{user?}', scopes: '{scopes?}', from: '{from?}', until: '{until?}'}}
  hits: [{list: hits, text: text, id: id}]
answer: {request: 'POST /banks/{bank}/answer', body: {question: '{query}', filter: {until: '{until?}'}}, text: answer}
verify: {request: 'GET /banks/{bank}', count: items}
reset: {request: 'DELETE /banks/{bank}'}
health: {request: GET /health}
";

/// What a check finds of a server with a fault behind a file with another.
async fn found(trouble: impl FnOnce(&mut World), changes: &[(&str, &str)]) -> Vec<Step> {
    found_at(10, trouble, changes).await
}

/// The same where a run asks for so many hits.
async fn found_at(top_k: u32, trouble: impl FnOnce(&mut World), changes: &[(&str, &str)]) -> Vec<Step> {
    let fake = Fake::start("whole");
    fake.with(trouble);
    let mut text = FILE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    check::run(
        of_text(&text, Some(fake.url())).as_ref(),
        "bench-check-1",
        Told { top_k, names_ids: true, by_names: false, form: Form::File },
    )
    .await
}

fn detail<'a>(steps: &'a [Step], check: &str) -> &'a str {
    let step = steps.iter().find(|step| step.check == check);
    &step.unwrap_or_else(|| panic!("{check}: {steps:#?}")).detail
}

/// That a check fails, and no other one.
fn fails_alone(steps: &[Step], check: &str) {
    let failed: Vec<&str> = steps.iter().filter(|s| s.outcome == Outcome::Fail).map(|s| s.check).collect();
    assert_eq!(failed, [check], "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_fault_passes_every_check() {
    let steps = found(|_| (), &[]).await;
    let others: Vec<&Step> = steps.iter().filter(|step| step.outcome != Outcome::Pass).collect();
    let checks: Vec<&str> = others.iter().map(|step| step.check).collect();
    assert_eq!(checks, ["lists", "repeat"], "{others:#?}");
    assert!(detail(&steps, "lists").contains("to claim it: list: {request:"), "{}", detail(&steps, "lists"));
    assert!(detail(&steps, "repeat").ends_with("to claim it: can: {repeat: true}"), "{}", detail(&steps, "repeat"));
    assert!(detail(&steps, "as many as asked").contains("10 and 20 hits"), "{}", detail(&steps, "as many as asked"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_later_is_not_known_earlier() {
    let later = "I painted my bicycle Hortensia anew today: it is ochre now.";
    let answers = found(|world| world.always_answers = Some(later.to_owned()), &[]).await;
    assert_eq!(outcome(&answers, "the future"), Outcome::Fail);
    assert!(detail(&answers, "the future").starts_with("an answer tells what is stored only later"));
    let searches = found(
        |world| {
            world.mixes_banks = true;
            world.store("of-an-earlier-check", later, json!({}));
        },
        &[],
    );
    let searches = searches.await;
    assert!(detail(&searches, "the future").starts_with("a search found what is stored only later"), "{searches:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_that_does_nothing_and_one_that_an_answer_ignores() {
    let steps = found(|_| (), &[("k: '{k}', filter", "k: '{k}', other")]).await;
    fails_alone(&steps, "filters");
    assert!(detail(&steps, "filters").starts_with("a filter does nothing: a search with one (tags)"), "{steps:#?}");
    let told = "The locker of Leocadia holds a sextant.";
    let steps = found(|world| world.always_answers = Some(told.to_owned()), &[]).await;
    assert!(detail(&steps, "filters").contains("tells of what came after it"), "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_k_that_is_clipped_below_what_a_run_asks_for_and_above_it() {
    let steps = found(|world| world.clips = Some(5), &[]).await;
    fails_alone(&steps, "as many as asked");
    assert!(detail(&steps, "as many as asked").starts_with("k is clipped: 10 and 20 hits were asked for and 5 came"));
    let steps = found(|world| world.clips = Some(12), &[]).await;
    assert_eq!(outcome(&steps, "as many as asked"), Outcome::Pass);
    assert!(detail(&steps, "as many as asked").contains("`limits: {max_k: 12}`"), "{steps:#?}");
    // as many are stored as a run asks for
    let steps = found_at(100, |world| world.clips = Some(80), &[]).await;
    fails_alone(&steps, "as many as asked");
    assert!(
        detail(&steps, "as many as asked").starts_with("k is clipped: 100 and 155 hits were asked for and 80 came")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_that_are_lost_are_not_taken_for_a_k_that_is_clipped() {
    let uncounted = ("verify: {request: 'GET /banks/{bank}', count: items}\n", "");
    for (changes, lost) in [
        (&[][..], "18 of 20 stored memories are there: "),
        (
            &[uncounted][..],
            "2 of 20 stored memories did not come, and of 2 that were looked for by their own words 2 are not there",
        ),
    ] {
        let steps = found(|world| world.loses_every = 10, changes).await;
        fails_alone(&steps, "as many as asked");
        let said = detail(&steps, "as many as asked");
        assert!(said.starts_with(lost) && !said.contains("max_k"), "{said}");
    }
    // nobody counts, and all can be found
    let steps = found(|world| world.clips = Some(12), &[uncounted]).await;
    assert!(detail(&steps, "as many as asked").contains("`limits: {max_k: 12}`"), "{steps:#?}");
    let steps = found(|world| world.loses_every = 1, &[uncounted]).await;
    let said = detail(&steps, "as many as asked");
    assert_eq!(outcome(&steps, "as many as asked"), Outcome::Cannot, "{said}");
    assert!(said.starts_with("none of 20 memories that all fit came"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_that_were_never_stored_are_no_ids() {
    let steps = found(|_| (), &[("{id: '{id}'", "{id: 'own-{key}'")]).await;
    fails_alone(&steps, "ids come back");
    assert!(detail(&steps, "ids come back").contains("what stands there was never stored"), "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_leaves_the_old_text() {
    let put = "'PUT /banks/{bank}/items/{replaces_key}'";
    let steps = found(|_| (), &[(put, "'POST /banks/{bank}/items'")]).await;
    fails_alone(&steps, "updates");
    assert_eq!(detail(&steps, "updates"), "a memory that was replaced is still found, beside the new one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_path_of_hits_is_named_with_the_fields_that_there_are() {
    let steps = found(|_| (), &[("list: hits", "list: results")]).await;
    let said = detail(&steps, "ready is true");
    assert!(said.contains("field 'results' is missing: it has hits"), "{said}");
    let steps = found(|_| (), &[("text: text, id", "text: memory, id")]).await;
    let said = detail(&steps, "ready is true");
    assert!(said.contains("field 'memory' of hit 0 is missing: it has id, score, session, text"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_beyond_k_are_told_although_they_are_cut() {
    // the server knows `k`, and gives ten to who does not say it
    let steps = found(|_| (), &[("k: '{k}', filter", "limit: '{k}', filter")]).await;
    let said = detail(&steps, "limits");
    assert_eq!(outcome(&steps, "limits"), Outcome::Fail, "{said}");
    assert!(said.starts_with("2 hits asked for, ") && said.contains(" came: cut to 2; it is told how many"), "{said}");
    let steps = found(|_| (), &[("k: '{k}', filter", "filter")]).await;
    let said = detail(&steps, "limits");
    assert_eq!(outcome(&steps, "limits"), Outcome::Pass, "nobody tells it how many: {said}");
    assert!(said.ends_with(" came: cut to 2; no upper limit is known"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_that_hits_come_without_are_named_once() {
    for (score, wrong) in [
        ("text", "field 'text' of hit 0 must be a number, not a text (\""),
        ("relevance", "field 'relevance' of hit 0 is missing: it has id, score, session, text"),
        ("session", "field 'session' of hit 0 is null"),
    ] {
        let named = format!("id: id, score: {score}}}]");
        let steps = found(|_| (), &[("id: id}]", named.as_str())]).await;
        let said = detail(&steps, "ready is true");
        assert!(said.contains(&format!("; note: hits come without score: {wrong}")), "{said}");
        let notes = steps.iter().filter(|step| step.detail.contains("; note: ")).count();
        assert_eq!((notes, outcome(&steps, "ready is true")), (1, Outcome::Pass), "{steps:#?}");
    }
    let steps = found(|_| (), &[("id: id}]", "id: id, score: score}]")]).await;
    assert!(steps.iter().all(|step| !step.detail.contains("note:")), "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_lost_the_first_time_is_not_stored_again() {
    // what has a key is there once
    let changes = [
        ("can: {order: true}", "can: {order: true, repeat: true}"),
        ("items\n  body: &item {id", "batch\n  body: {items: [&item {id"),
        ("'{scopes?}'}\nupdate", "'{scopes?}'}]}\nupdate"),
    ];
    let whole = found(|_| (), &changes).await;
    assert_eq!(outcome(&whole, "repeat"), Outcome::Pass, "{whole:#?}");
    let steps = found(|world| world.loses_every = 3, &changes).await;
    let said = detail(&steps, "repeat");
    assert_eq!(outcome(&steps, "repeat"), Outcome::Fail, "{said}");
    assert!(said.starts_with("6 of 8 items were stored, ") && !said.contains("stored again:"), "{said}");
}

#[test]
fn a_variable_without_quotes_is_told_from_an_object() {
    let parsed = adapter::file::parse(&FILE.replace("k: '{k}'", "k: {k}"));
    let refused = parsed.and_then(|spec| adapter::check(&spec)).expect_err("it is an object");
    assert!(refused.contains("{k} without quotes is an object: write \"{k}\""), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_is_not_accused_of_what_an_earlier_step_has_broken() {
    // a server that is full after the first bank
    let steps = found(|world| world.keeps_at_most = Some(8), &[]).await;
    assert_eq!(outcome(&steps, "isolation"), Outcome::Fail, "{steps:#?}");
    assert_eq!((outcome(&steps, "reset"), detail(&steps, "reset")), (Outcome::Pass, "the bank is gone"));
}
