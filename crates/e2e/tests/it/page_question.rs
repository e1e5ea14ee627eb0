//! One question on `report.html`: what is told when it is opened, what can be copied, and what the address of the page keeps.

use std::{
    collections::{BTreeSet, HashMap},
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use bench_testkit::{
    bench::{Bench, submit_sim},
    browser::{Visit, told_after},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

/// What scripts of these tests share.
const HELP: &str = r##"
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const byId = (id) => document.getElementById(id);
  const items = () => [...document.querySelectorAll("#list > li")];
  const open = (item) => { item.firstChild.click(); return item.querySelector(".detail"); };
  const choose = async (id, value) => { byId(id).value = value; byId(id).dispatchEvent(new Event("change")); await wait(50); };
  const said = (detail) => {
    const all = {};
    for (const dt of detail.querySelectorAll("dl > dt")) (all[dt.textContent] ||= []).push(dt.nextElementSibling.textContent);
    return all;
  };
"##;

fn told(page: &Path, fragment: &str, script: &str) -> Value {
    let told = told_after(page, Visit { fragment, ..Visit::default() }, &format!("{HELP}{script}"));
    assert_eq!(told.get("error"), None, "{told}");
    told
}

fn page_of(bench: &Bench, run: &str) -> PathBuf {
    bench.path().join(".bench/runs").join(run).join("report.html")
}

fn by_id(questions: Vec<Value>) -> HashMap<String, Value> {
    questions.into_iter().map(|q| (q["question_id"].as_str().expect("an id").to_owned(), q)).collect()
}

fn quick(bench: &Bench, run: &str, more: &[&str]) {
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", run];
    let _ = bench.run(submit.iter().chain(more)).expect_code(0);
}

#[test]
fn a_flip_shows_what_the_other_run_made_of_it() {
    let bench = Bench::new();
    quick(&bench, "before", &[]);
    quick(&bench, "after", &["--system", "random"]);
    let args = ["report", "after", "--format", "html", "--baseline", "before", "--output-dir", "out"];
    let _ = bench.run(args).expect_code(0);
    let flips = told(
        &bench.path().join("out/report.html"),
        "",
        r##"await choose("result", "lost");
        return items().map((item) => {
          const detail = open(item);
          const sides = [...detail.querySelectorAll(".sides > div")];
          const hits = (side) => [...side.querySelectorAll(".hits > li > code")].map((code) => code.textContent.split(" ")[0]);
          return { id: item.dataset.id, said: said(detail), heads: sides.map((side) => side.querySelector(":scope > div > strong").textContent), hits: sides.map(hits) };
        });"##,
    );
    let flips = flips.as_array().expect("a list");
    assert!(!flips.is_empty());
    let (before, after) = (by_id(bench.questions("before")), by_id(bench.questions("after")));
    for flip in flips {
        let id = flip["id"].as_str().expect("an id");
        let (before, after) = (&before[id], &after[id]);
        let shown = |run: &Value| match run["answer"].as_str() {
            Some("") => json!(["(empty)"]),
            answer => json!([answer]),
        };
        assert_eq!(
            (&flip["said"]["answer of before"], &flip["said"]["answer"]),
            (&shown(before), &shown(after)),
            "{flip}"
        );
        let score = before["scores"]["locomo-f1"].as_f64().expect("a score");
        assert!(flip["said"]["scores of before"][0].as_str().is_some_and(|said| said.contains(&format!("{score:.4}"))));
        let hits = |run: &Value| {
            let hits = run["retrieved"].as_array().expect("hits").iter();
            hits.map(|hit| hit["id"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(flip["hits"], json!([hits(before), hits(after)]), "{flip}");
        let heads = ["retrieved by before", "retrieved by this run"];
        for (head, words) in flip["heads"].as_array().expect("two").iter().zip(heads) {
            assert!(head.as_str().is_some_and(|head| head.ends_with(words)), "{flip}");
        }
    }
    // and nothing of it where there is no flip
    let others = told(
        &bench.path().join("out/report.html"),
        "",
        r##"await choose("result", "passed");
        items().slice(0, 5).forEach(open);
        return document.querySelectorAll(".sides").length;"##,
    );
    let won = after.keys().filter(|id| flips.iter().all(|flip| flip["id"] != **id)).count();
    assert!(won > 0 && others.as_u64().is_some_and(|n| n < 5), "{others}");
}

#[test]
fn missed_evidence_is_shown_with_its_words() {
    let bench = Bench::new();
    quick(&bench, "bad", &["--system", "random"]);
    let missed = told(
        &page_of(&bench, "bad"),
        "",
        r##"const all = {};
        for (const item of items()) {
          const lines = [...open(item).querySelectorAll(".missed li")];
          all[item.dataset.id] = lines.map((li) => [li.firstChild.textContent.trim(), li.lastChild.textContent]);
        }
        return all;"##,
    );
    let (mut seen, mut words) = (0, 0);
    for question in bench.questions("bad") {
        let id = question["question_id"].as_str().expect("an id");
        let shown = bench.run(["show", "bad", id, "--json"]).expect_code(0).json();
        let expected: Vec<Value> = shown["missed"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|missed| json!([missed["id"], missed["text"]]))
            .collect();
        assert_eq!(missed[id], json!(expected), "{id}");
        seen += 1;
        words += expected.len();
        if seen == 12 {
            break;
        }
    }
    assert!(words > 5, "random finds little");
}

/// Requests that a provider got: instructions and question of each.
type Heard = Arc<Mutex<Vec<(String, String)>>>;

/// Passes what comes on to a provider, and remembers the messages.
fn overhear(provider: &Provider) -> (String, Heard) {
    let place = provider.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let heard = Heard::default();
    let remembered = Arc::clone(&heard);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (place, heard) = (place.clone(), Arc::clone(&heard));
            thread::spawn(move || pass_on(client, &place, &heard));
        }
    });
    (url, remembered)
}

fn pass_on(mut client: TcpStream, place: &str, heard: &Heard) {
    let Ok(mut server) = TcpStream::connect(place) else { return };
    let (Ok(mut replies), Ok(mut back)) = (server.try_clone(), client.try_clone()) else { return };
    thread::spawn(move || {
        // a server that is through with a connection is not waited for
        let _ = std::io::copy(&mut replies, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let (mut unread, mut part) = (Vec::new(), [0; 16_384]);
    while let Ok(n @ 1..) = client.read(&mut part) {
        unread.extend_from_slice(&part[..n]);
        if server.write_all(&part[..n]).is_err() {
            return;
        }
        while let Some(end) = whole_request(&unread) {
            let rest = unread.split_off(end);
            let body = std::mem::replace(&mut unread, rest);
            if let Some(messages) = messages_of(&body) {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(messages);
            }
        }
    }
}

/// Where the first request ends, if all of it is there.
fn whole_request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    (bytes.len() >= head + length).then_some(head + length)
}

fn messages_of(request: &[u8]) -> Option<(String, String)> {
    let head = request.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let body: Value = serde_json::from_slice(&request[head..]).ok()?;
    let said = |role: &str| {
        let mut messages = body["messages"].as_array()?.iter();
        messages.find(|message| message["role"] == role)?["content"].as_str().map(str::to_owned)
    };
    Some((said("system")?, said("user")?))
}

#[test]
fn prompts_are_shown_as_they_were_sent() {
    let provider = Provider::start(&[]);
    let (url, heard) = overhear(&provider);
    let bench = Bench::new().with_env("OPENAI_BASE_URL", url).with_env("OPENAI_API_KEY", KEY);
    let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini", "--max-cost", "1"];
    quick(&bench, "asked", &models);
    let shown = told(
        &page_of(&bench, "asked"),
        "",
        r##"return items().flatMap((item) => [...open(item).querySelectorAll("dl > dt")]
          .filter((dt) => dt.textContent.startsWith("prompt"))
          .map((dt) => [dt.textContent, ...[...dt.nextElementSibling.querySelectorAll("summary, pre")].map((part) => part.textContent)]));"##,
    );
    let shown: Vec<Vec<String>> = serde_json::from_value(shown).expect("prompts");
    assert!(shown.iter().all(|prompt| prompt.len() == 4 && prompt[0] == "prompt as sent"), "{shown:?}");
    assert_eq!(shown.iter().filter(|prompt| prompt[1].starts_with("answerer.answer")).count(), 50);
    assert_eq!(shown.iter().filter(|prompt| prompt[1].starts_with("judge.judge-")).count(), 50);
    let shown: BTreeSet<(String, String)> = shown.into_iter().map(|p| (p[2].clone(), p[3].clone())).collect();
    // checks of graders ask too: what is shown is what was sent, letter by letter
    let heard: BTreeSet<(String, String)> =
        heard.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
    let invented: Vec<_> = shown.difference(&heard).collect();
    assert!(invented.is_empty(), "was never sent: {invented:#?}");
    assert!(shown.len() > 90, "{}", shown.len());

    // of a whole bank no text is stored again with each question: there the sample is shown, and it says so
    quick(&bench, "whole", &[&models[..], &["--system", "full-context", "--limit", "3"]].concat());
    let whole = told(&page_of(&bench, "whole"), "", r##"return said(open(items()[0]));"##);
    let sample = whole["prompt"][0].as_str().unwrap_or_else(|| panic!("no sample: {whole}"));
    assert!(
        sample.starts_with("answerer.answer") && sample.contains("in this sample, which is another one"),
        "{sample}"
    );
    assert!(whole["prompt as sent"][0].as_str().is_some_and(|judge| judge.starts_with("judge.judge-")), "{whole}");
}

#[test]
fn a_judge_gives_its_reason_as_text_for_every_vote() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let models =
        ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini", "--votes", "3", "--max-cost", "5"];
    quick(&bench, "judged", &models);
    let shown = told(
        &page_of(&bench, "judged"),
        "",
        r##"const item = items()[0];
        return { id: item.dataset.id, votes: [...open(item).querySelectorAll("dl > dt")]
          .filter((dt) => dt.textContent === "judgement").map((dt) => dt.nextElementSibling)
          .map((dd) => ({ text: dd.firstChild.textContent + dd.childNodes[1].textContent,
            reason: dd.querySelector(".reason").textContent,
            folded: !dd.querySelector("details").open, raw: dd.querySelector("details pre").textContent })) };"##,
    );
    let question = by_id(bench.questions("judged")).remove(shown["id"].as_str().expect("an id")).expect("is there");
    let (votes, stored) =
        (shown["votes"].as_array().expect("votes"), question["judgements"].as_array().expect("votes"));
    assert_eq!((votes.len(), stored.len()), (3, 3));
    for (vote, stored) in votes.iter().zip(stored) {
        let raw: Value = serde_json::from_str(stored["raw"].as_str().expect("a reply")).expect("JSON");
        assert_eq!(vote["reason"], raw["reasoning"], "{vote}");
        assert_eq!((&vote["raw"], &vote["folded"]), (&stored["raw"], &json!(true)));
        let (text, verdict) = (vote["text"].as_str().expect("a text"), stored["verdict"].as_str().expect("a word"));
        assert!(text.starts_with(verdict) && text.contains("openai:gpt-4o-mini, vote "), "{text}");
        assert_eq!(text.ends_with("another vote speaks for its judge"), stored["chosen"] != true, "{text}");
    }
}

#[test]
fn all_judges_stand_in_the_head_with_their_hosts() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let judges = ["--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o", "--run-id", "two", "--max-cost", "5"];
    let submit = ["--preset", "quick", "--answerer", "openai:gpt-4o-mini"];
    let done = bench.run(submit_sim(&[&submit[..], &judges].concat()));
    // the two judge by lot, and may agree no better than chance
    assert!(matches!(done.code, 0 | 5), "{}", done.stderr);
    let head = told(&page_of(&bench, "two"), "", r##"return document.querySelector(".facts").textContent;"##);
    let host = provider.base_url().trim_start_matches("http://").trim_end_matches("/v1");
    let said = format!("judged by openai:gpt-4o-mini at {host} and openai:gpt-4o at {host}");
    assert!(head.as_str().is_some_and(|head| head.contains(&said)), "'{said}' is missing: {head}");
    let terminal = bench.run(["report", "two"]).expect_code(0).stdout;
    assert!(terminal.contains("judged by openai:gpt-4o-mini at"), "{terminal}");
}

#[test]
fn ids_questions_and_commands_are_copied_with_a_clipboard_and_without() {
    let bench = Bench::new();
    quick(&bench, "run", &[]);
    let copied = told(
        &page_of(&bench, "run"),
        "",
        r##"const by = { clipboard: [], selection: [] };
        const buttons = [...open(items()[0]).querySelectorAll(".copy")];
        const press = async () => { for (const button of buttons) { button.click(); await wait(20); } };
        let taken;
        const clipboard = (value) => Object.defineProperty(navigator, "clipboard", { value, configurable: true });
        clipboard({ writeText: async (text) => { by.clipboard.push(text); } });
        await press();
        const labels = buttons.map((button) => button.textContent);
        await wait(1600);
        const after = buttons.map((button) => button.textContent);
        document.execCommand = (command) => {
          const box = document.activeElement;
          taken = box.value.slice(box.selectionStart, box.selectionEnd);
          by.selection.push(command + " " + taken);
          return true;
        };
        // a page that may not use its clipboard, and one that has none
        clipboard({ writeText: () => Promise.reject(new Error("not here")) });
        await press();
        clipboard(undefined);
        await press();
        document.execCommand = () => false;
        buttons[0].click();
        await wait(20);
        return { id: items()[0].dataset.id, by, labels, after, refused: buttons[0].textContent,
          left: document.querySelectorAll("textarea").length, focus: document.activeElement === buttons[0] };"##,
    );
    let id = copied["id"].as_str().expect("an id");
    let question = by_id(bench.questions("run"))[id]["question"].as_str().expect("a text").to_owned();
    let command = format!("bench-coord show run {id}");
    let expected = [id, &*question, &*command];
    assert_eq!(copied["by"]["clipboard"], json!(expected), "{copied}");
    let by_selection: Vec<String> = expected.iter().chain(&expected).map(|text| format!("copy {text}")).collect();
    assert_eq!(copied["by"]["selection"], json!(by_selection), "{copied}");
    assert_eq!(
        (&copied["labels"], &copied["after"]),
        (&json!(["copied", "copied", "copied"]), &json!(["copy id", "copy question", "copy command"]))
    );
    assert_eq!(
        (&copied["refused"], &copied["left"], &copied["focus"]),
        (&json!("this browser does not copy"), &json!(0), &json!(true))
    );
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(bench.run(words).expect_code(0).stdout.contains(&question), "the command works");
}

#[test]
fn a_link_shows_the_same_list_and_back_takes_a_step_back() {
    let bench = Bench::new();
    quick(&bench, "run", &[]);
    let page = page_of(&bench, "run");
    let walked = told(
        &page,
        "",
        r##"const steps = [];
        const note = () => steps.push({ hash: location.hash, shown: byId("shown").textContent, ids: items().map((item) => item.dataset.id),
          open: [...document.querySelectorAll("#list > li:has(.detail)")].map((item) => item.dataset.id) });
        note();
        await choose("result", "failed");
        note();
        await choose("order", "slow");
        note();
        for (const letter of ["w", "wh"]) { byId("search").value = letter; byId("search").dispatchEvent(new Event("input")); await wait(150); }
        note();
        open(items()[1]);
        note();
        const back = [];
        for (let i = 0; i < 4; i++) {
          history.back();
          await wait(200);
          back.push({ hash: location.hash, shown: byId("shown").textContent, open: document.querySelectorAll(".detail").length });
        }
        location.hash = "plots";
        await wait(100);
        return { steps, back, anchor: byId("shown").textContent };"##,
    );
    let steps = walked["steps"].as_array().expect("steps");
    let hash = |at: usize| steps[at]["hash"].as_str().expect("a hash").to_owned();
    let opened = steps[4]["open"][0].as_str().expect("one is open");
    assert_eq!([hash(0), hash(1), hash(2)], ["", "#result=failed", "#result=failed&order=slow"]);
    assert_eq!(hash(3), "#search=wh&result=failed&order=slow");
    assert!(hash(4).starts_with(&format!("{}&q=", hash(3))), "{walked}");
    // each step back shows what was there; what was typed in one go is one step
    for (back, step) in walked["back"].as_array().expect("steps").iter().zip([3, 2, 1, 0]) {
        assert_eq!((&back["hash"], &back["shown"]), (&steps[step]["hash"], &steps[step]["shown"]), "{walked}");
        assert_eq!(back["open"], 0, "{walked}");
    }
    assert_eq!(walked["anchor"], steps[0]["shown"], "a part of the page is no list");

    // who gets the link sees the same: the list, its order, and the open question
    let seen = told(
        &page,
        &hash(4)[1..],
        r##"return { ids: items().map((item) => item.dataset.id), shown: byId("shown").textContent,
          values: ["search", "result", "order"].map((id) => byId(id).value),
          open: [...document.querySelectorAll("#list > li:has(.detail)")].map((item) => item.dataset.id) };"##,
    );
    assert_eq!((&seen["ids"], &seen["shown"]), (&steps[4]["ids"], &steps[4]["shown"]), "{seen}");
    assert_eq!((&seen["values"], &seen["open"]), (&json!(["wh", "failed", "slow"]), &json!([opened])));
    // links of earlier pages name the question alone
    let old = told(&page, &format!("q={opened}"), r##"return document.querySelector("li:has(.detail)").dataset.id;"##);
    assert_eq!(old, json!(opened));
    // and what no page has is all
    let none =
        told(&page, "category=hops&q=nothing", r##"return [byId("shown").textContent, byId("category").value];"##);
    assert_eq!(none, json!(["50 of 50", ""]));
}
