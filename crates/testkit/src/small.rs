//! Small files in the schema of datasets whose published files are not at hand: a few questions each, in words of ours.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde_json::{Value, json};

/// Writes what `--dataset-path FOLDER --allow-modified-dataset` reads as a dataset, by its name (`beam@500k`). Files that
/// several variants have in common are written again. False for a dataset that is not known here.
///
/// # Errors
/// When the folder cannot be written.
pub fn write(name: &str, folder: &Path) -> io::Result<bool> {
    let (dataset, variant) = name.split_once('@').unwrap_or((name, ""));
    let files = match dataset {
        "beam" => beam(&variant.to_uppercase()),
        "convomem" => convomem(variant),
        "lifebench" => lifebench(),
        "membench" => membench(usize::from(variant == "steps-from-1")),
        "memoryagentbench" => vec![memoryagentbench(variant)],
        "precisionmembench" => precisionmembench(),
        _ => return Ok(false),
    };
    for (path, content) in files {
        put(&folder.join(path), &content.to_string())?;
    }
    Ok(true)
}

fn put(path: &Path, content: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, content)
}

/// Files by their paths.
type Files = Vec<(String, Value)>;

/// Two chats of a size with a question of each of four kinds, one of them about an order.
fn beam(size: &str) -> Files {
    const KINDS: [&str; 4] = ["abstention", "event_ordering", "information_extraction", "summarization"];
    let chat = |number: usize| {
        let said = |year: usize| {
            let text = format!("In year {year} I kept {} bees in garden {number}.", 3 * year);
            json!([{"role": "user", "id": 2 * year, "content": text}, {"role": "assistant", "id": 2 * year + 1, "content": "A lot."}])
        };
        let turns: Vec<Value> = (0..KINDS.len()).map(said).collect();
        let question = |(year, kind): (usize, &&str)| {
            let lines: Vec<String> =
                (0..2).map(|line| format!("names detail {line} of year {year} in garden {number}")).collect();
            let question = json!({"question": format!("How many bees were in garden {number} in year {year}?"), "rubric": lines, "source_chat_ids": [2 * year]});
            ((*kind).to_owned(), json!([question]))
        };
        let questions: serde_json::Map<String, Value> = KINDS.iter().enumerate().map(question).collect();
        let folder = format!("chats/{size}/{number}");
        [
            (
                format!("{folder}/chat.json"),
                json!([{"batch_number": 1, "time_anchor": "March-15-2024", "turns": turns}]),
            ),
            (format!("{folder}/probing_questions/probing_questions.json"), Value::Object(questions)),
        ]
    };
    (1..3).flat_map(chat).collect()
}

/// A question of each kind of evidence: with the conversation that holds it, in a haystack of two, or as LoCoMo was put.
fn convomem(variant: &str) -> Files {
    const KINDS: [&str; 6] = [
        "user_evidence",
        "assistant_facts_evidence",
        "changing_evidence",
        "abstention_evidence",
        "preference_evidence",
        "implicit_connection_evidence",
    ];
    const OF_LOCOMO: [&str; 2] = ["locomo_category_1", "locomo_category_5"];
    let kinds: &[&str] = if variant == "locomo" { &OF_LOCOMO } else { &KINDS };
    let conversation = |texts: &[(&str, String)]| {
        let said = |(speaker, text): &(&str, String)| json!({"speaker": speaker, "text": text});
        json!({"messages": texts.iter().map(said).collect::<Vec<_>>()})
    };
    let of_kind = |(number, kind): (usize, &&str)| {
        let hives = format!("We have {} hives in field {number}.", number + 2);
        let has_answer = !["abstention_evidence", "locomo_category_5"].contains(kind);
        let mut item = json!({
            "question": format!("How many hives are in field {number}?"),
            "answer": has_answer.then(|| format!("{} hives", number + 2)),
            "message_evidences": [{"speaker": "User", "text": hives}],
            "category": kind,
        });
        let held = conversation(&[
            ("User", "I keep bees.".to_owned()),
            ("Assistant", "How many?".to_owned()),
            ("User", hives),
        ]);
        let rain = conversation(&[("User", "It rains.".to_owned()), ("Assistant", "Take a coat.".to_owned())]);
        match variant {
            "evidence" => {
                item["conversations"] = json!([held]);
                let path = format!("core_benchmark/evidence_questions/{kind}/1_evidence/1234_beekeeper.json");
                (path, json!({"evidence_items": [item]}))
            }
            "locomo" => {
                let path = format!("test_cases_locomo/{kind}.json");
                (path, json!([{"evidenceItems": [item], "conversations": [held, rain]}]))
            }
            _ => {
                let path = format!("core_benchmark/pre_mixed_testcases/{kind}/1_evidence/batch.json");
                (path, json!([{"contextSize": 2, "evidenceItems": [item], "conversations": [held, rain]}]))
            }
        }
    };
    kinds.iter().enumerate().map(of_kind).collect()
}

/// Two people with a question of each category, and what they have told; the questions stand for themselves too.
fn lifebench() -> Files {
    let (mut queries, mut documents) = (Vec::new(), Vec::new());
    for person in ["Ida", "Olav"] {
        let asked = [
            ("information-extraction", "Which month did NAME move in? A: May. B: June. C: Never.", "B"),
            ("temporal-updating", "Where does NAME live now?", "In the old mill"),
            ("unanswerable", "What did NAME pay for the boat?", "Unable to answer"),
            ("multi-hop", "What do the mill and the stove of NAME have in common?", "Both are cold"),
            ("nondeclarative", "How does NAME like to be answered?", "In few words"),
        ];
        queries.extend(asked.iter().enumerate().map(|(number, (category, question, answer))| {
            json!({
                "id": format!("{person}_{number}"), "query": question.replace("NAME", person), "gold_answers": [answer],
                "gold_ids": [format!("{}-{person}", if number < 3 { "diary" } else { "talk" })], "user_id": person,
                "meta": {"sample_id": person, "category": category, "query_timestamp": "2025-12-31T00:00:00+00:00"},
            })
        }));
        documents.push(json!({
            "id": format!("diary-{person}"), "content": format!("Diary of {person}: I moved into the old mill in June."),
            "user_id": person, "timestamp": "2025-06-28T10:00:00+08:00",
        }));
        documents.push(json!({
            "id": format!("talk-{person}"), "content": "a talk", "user_id": person, "timestamp": "2025-11-02",
            "messages": [{"role": "user", "content": format!("I am {person}, and mill and stove are cold. Few words, please.")}, {"role": "assistant", "content": "Light a fire."}],
        }));
    }
    vec![("queries.json".to_owned(), json!(queries)), ("documents.json".to_owned(), json!(documents))]
}

/// Trajectories of what an agent observed and of what a person told, with steps that are counted from `first`; each letter is
/// right equally often.
fn membench(first: usize) -> Files {
    const WHERE: [&str; 4] = ["At sea", "In the mill", "At home", "In a tower"];
    const OBSERVED: usize = 8;
    let works = |number: usize| format!("Bo {number} works {}.", WHERE[number % WHERE.len()].to_lowercase());
    let trajectory = |number: usize, messages: Value, target: Value| {
        let letters = ["A", "B", "C", "D"];
        let choices: BTreeMap<&str, &str> = letters.into_iter().zip(WHERE).collect();
        let right = number % WHERE.len();
        json!({"tid": number, "message_list": messages, "QA": {
            "qid": 0, "question": format!("Where does Bo {number} work?"), "answer": WHERE[right], "target_step_id": target,
            "choices": choices, "ground_truth": letters[right], "time": "2024-10-02 09:00",
        }})
    };
    let observed = |number: usize| {
        let hums = (0..4).map(|hour| format!("Bo {number} hums at {hour}."));
        trajectory(number, json!(hums.chain([works(number)]).collect::<Vec<_>>()), json!([first + 4]))
    };
    let told = |number: usize| {
        let told = [works(number), format!("Bo {number} hums.")].map(|said| json!({"user": said, "agent": "I see."}));
        trajectory(number, json!([told]), json!([[first, first]]))
    };
    let observed: Vec<Value> = (0..OBSERVED).map(observed).collect();
    let told: Vec<Value> = (OBSERVED..OBSERVED + WHERE.len()).map(told).collect();
    vec![
        ("MemData/ThirdAgent/simple.json".to_owned(), json!({"roles": observed})),
        ("MemData/FirstAgent/noisy.json".to_owned(), json!({"roles": told})),
    ]
}

/// A list of facts, of which one contradicts another, with two questions.
fn memoryagentbench(split: &str) -> (String, Value) {
    let (file, source) = match split {
        "accurate-retrieval" => ("Accurate_Retrieval", "ruler_qa"),
        "test-time-learning" => ("Test_Time_Learning", "icl_banking"),
        "long-range-understanding" => ("Long_Range_Understanding", "infbench_sum"),
        _ => ("Conflict_Resolution", "factconsolidation_sh_6k"),
    };
    let facts = ["The lamp stands in the hall.", "The lamp stands in the attic.", "Bo plays the harp."];
    let facts: String = facts.iter().enumerate().map(|(number, fact)| format!("{number}. {fact}\n")).collect();
    // a summary has one reference
    let attic = if split == "long-range-understanding" { json!(["the attic"]) } else { json!(["the attic", "attic"]) };
    let row = json!({
        "context": format!("Here is a list of facts:\n{facts}"),
        "questions": [format!("Where does the lamp stand by {source}?"), format!("What does Bo play by {source}?")],
        "answers": [attic, ["harp"]],
        "metadata": {"source": source, "qa_pair_ids": ["a", "b"]},
    });
    (format!("{file}.json"), json!([row]))
}

/// Four beliefs with three cases, and a session of two turns; once more as the version of the paper has its files.
fn precisionmembench() -> Files {
    let belief = |id: &str, name: &str, content: &str, scope: &str| {
        json!({
            "_id": id, "user_id": "test-user", "type": "preference", "canonical_name": name, "content": content,
            "scope": [scope],
        })
    };
    let beliefs = json!([
        belief("b-tea", "tea", "Drinks green tea in the morning.", "domain:home"),
        belief("b-bread", "bread", "Bakes rye bread on Sundays.", "domain:home"),
        belief("b-database", "database", "Keeps everything in one database.", "domain:code"),
        belief("b-editor", "editor", "Writes code in a plain editor.", "domain:code"),
    ]);
    let wanted = |id: &str| json!({"relevantBeliefs": {"mustInclude": [id]}});
    let case = |id: &str, category: &str, scope: &str, query: &str, belief: &str| json!({"caseId": id, "category": category, "scope": [scope], "query": query, "expect": wanted(belief)});
    let cases = json!([
        case("tea", "Alias resolution", "domain:home", "Which tea in the morning?", "b-tea"),
        case("bread", "Scope disambiguation", "domain:home", "What is baked on Sundays?", "b-bread"),
        case("editor", "Alias resolution", "domain:code", "Which editor for code?", "b-editor"),
    ]);
    let turn = |number: usize, scope: &str, message: &str, belief: &str| json!({"turnIndex": number, "label": "turn", "scope": [scope], "userMessage": message, "expect": wanted(belief)});
    let sessions = json!([{"caseId": "session", "turns": [
        turn(0, "domain:home", "Let us talk of green tea.", "b-tea"),
        turn(1, "domain:code", "Now of the plain editor.", "b-editor"),
    ]}]);
    let files =
        [("beliefs.seed.json", beliefs), ("retrieval.cases.json", cases), ("session-retrieval.cases.json", sessions)];
    let twice =
        |(name, content): (&str, Value)| [(name.to_owned(), content.clone()), (format!("paper/{name}"), content)];
    files.into_iter().flat_map(twice).collect()
}
