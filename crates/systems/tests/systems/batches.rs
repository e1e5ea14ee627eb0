//! Single memories go together, as many as a file says; what of a batch was stored is known, or the batch is in doubt.

use std::sync::Arc;

use bench_proto::{
    dataset::{BankContent, Memory, Session, StreamEntry, Turn},
    failure::{Failure, FailureClass},
};
use bench_systems::{BankRef, MemorySystem, StepContext};
use bench_testkit::fakes::Fake;

use super::{changes_of, of_text, robust::bank, start, system};

fn memory(n: usize) -> StreamEntry {
    StreamEntry::Memory(Memory { id: format!("m{n}"), text: format!("heron number {n}"), ..Memory::default() })
}

fn filled(entries: Vec<StreamEntry>) -> BankRef {
    let content = BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries };
    BankRef { handle: None, content: Some(Arc::new(content)), ..bank() }
}

/// Retains a bank as a run does: the entries of each retain, of which some may be left for the next.
async fn retain(system: &dyn MemorySystem, bank: &mut BankRef) -> Result<Vec<usize>, Failure> {
    bank.handle = Some(system.open_bank(bank).await?);
    let entries = bank.content.clone().expect("has content").entries.clone();
    let (mut position, mut retains) = (0, Vec::new());
    while position < entries.len() {
        let rest = &entries[position..];
        let together = system.together(rest);
        assert!((1..=rest.len()).contains(&together));
        let receipt = system.retain(bank, &rest[..together], StepContext::default()).await?;
        let stored = together - receipt.left as usize;
        assert!(stored > 0, "{receipt:?}");
        retains.push(stored);
        position += stored;
    }
    Ok(retains)
}

fn stored(fake: &Fake) -> Vec<String> {
    fake.with(|world| world.banks.values().flatten().map(|item| item.text.clone()).collect())
}

fn herons(until: usize) -> Vec<String> {
    (0..until).map(|n| format!("heron number {n}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memories_go_together_and_sessions_and_changes_alone() {
    let (fake, hebb) = start("hebb-mind");
    let turn =
        |n: usize| Turn { id: format!("S1:{n}"), speaker: "Ann".to_owned(), text: "tea".to_owned(), ..Turn::default() };
    let session =
        StreamEntry::Session(Session { id: "S1".to_owned(), turns: vec![turn(1), turn(2)], ..Session::default() });
    let change = StreamEntry::Update { replaces: "m0".to_owned(), memory: None };
    let entries =
        (0..120).map(memory).chain([session.clone(), session, change]).chain((120..123).map(memory)).collect();
    let retains = retain(hebb.as_ref(), &mut filled(entries)).await.expect("is stored");
    assert_eq!(retains, [50, 50, 20, 1, 1, 1, 3]);
    let batches = fake.with(|world| world.requests.iter().filter(|line| line.ends_with("/memories/batch")).count());
    assert_eq!(batches, 6, "what is withdrawn stays: the system cannot forget");
    // long texts are fewer in a request
    let long = |n| StreamEntry::Memory(Memory { id: format!("m{n}"), text: "x".repeat(3 << 20), ..Memory::default() });
    let entries: Vec<StreamEntry> = (0..4).map(long).collect();
    assert_eq!(hebb.together(&entries), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_which_some_is_stored_goes_on_behind_it() {
    let (fake, hebb) = start("hebb-mind");
    fake.with(|world| world.takes_part_once = true);
    let retains = retain(hebb.as_ref(), &mut filled((0..120).map(memory).collect())).await.expect("is stored");
    assert_eq!(retains, [49, 50, 21], "its reply names what was stored, and the next batch begins behind that");
    assert_eq!(stored(&fake), herons(120), "each once, and in order");
}

/// A system of nobody's that takes batches and says in its own way what it has stored.
fn batching(url: &str, more: &str) -> Arc<dyn MemorySystem> {
    let text = format!(
        "
name: batching
limits: {{batch: 10}}
item: {{id: '{{id}}', text: '{{text}}'}}
retain: {{request: 'POST /banks/{{bank}}/batch', body: {{items: '{{items}}'}}, stored: stored}}
recall: {{request: 'POST /banks/{{bank}}/search', body: {{query: '{{query}}'}}, hits: [{{list: hits, text: text, id: id}}]}}
{more}
"
    );
    of_text(&text, Some(url))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_which_nobody_knows_what_is_stored_is_in_doubt() {
    // a count alone does not say which ones
    let fake = Fake::start("whole");
    fake.with(|world| world.takes_part = true);
    let failure = retain(batching(fake.url(), "").as_ref(), &mut filled((0..30).map(memory).collect())).await;
    let failure = failure.expect_err("is in doubt");
    assert_eq!((failure.code.as_str(), failure.class), ("system_partial_batch", FailureClass::Transient));
    assert!(failure.message.contains("9 of 10 items were stored"), "{failure}");
    // a request that failed in the middle of several is met again by who asks again, where a repeat does no harm
    for (can, left) in [("can: {repeat: true}", Some(50)), ("", None)] {
        let fake = Fake::start("whole");
        let system = batching(fake.url(), can);
        let mut bank = filled((0..80).map(memory).collect());
        bank.handle = Some(system.open_bank(&bank).await.expect("is named"));
        let entries = bank.content.clone().expect("has content").entries.clone();
        fake.with(|world| world.fails_after = Some((3, 503)));
        match (system.retain(&bank, &entries, StepContext::default()).await, left) {
            (Ok(receipt), Some(left)) => assert_eq!((receipt.written, receipt.left), (30, left)),
            (Err(failure), None) => assert_eq!(failure.code, "system_http_503"),
            (other, _) => panic!("{can}: {other:?}"),
        }
        // with nothing stored there is nothing to go on behind
        let failure = system.retain(&bank, &entries[30..], StepContext::default()).await.expect_err("still fails");
        assert_eq!(failure.code, "system_http_503");
    }
    let side_by_side = batching(fake.url(), "can: {order: false}");
    assert_eq!(side_by_side.together(&(0..100).map(memory).collect::<Vec<_>>()), 80, "eight batches at a time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_no_order_goes_side_by_side() {
    let fake = Fake::start("supermemory");
    fake.with(|world| world.slow = std::time::Duration::from_millis(60));
    let supermemory = system("supermemory", fake.url(), &changes_of("supermemory"));
    let began = std::time::Instant::now();
    let retains = retain(supermemory.as_ref(), &mut filled((0..20).map(memory).collect())).await.expect("is stored");
    assert_eq!(retains, [4; 5], "its `parallel`");
    assert!(began.elapsed().as_millis() < 20 * 60 * 2 / 3, "{:?}", began.elapsed());
}
