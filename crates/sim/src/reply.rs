//! What a chat request is answered with: a pure function of (seed, request, draw), see P17.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    config::{AnswerMode, JudgeMode, SimConfig},
    draw::{Purpose, bits, unit},
    extraction,
    fault::FaultKind,
    notes,
    request::{ChatRequest, ReplyForm},
    schema::Verdict,
};

/// What an abstaining answer says: LoCoMo's own phrase.
const ABSTENTION: &str = "No information available";

/// One choice of a chat reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) content: String,
    /// `stop`, `length`, `content_filter`, or [`REFUSAL`], which each wire says in its own way.
    pub(crate) finish_reason: &'static str,
    pub(crate) tokens: u64,
}

/// The end of a reply in which the model refuses.
pub(crate) const REFUSAL: &str = "refusal";

/// What a model that words searches is asked for: by a schema, or in words where the server has only JSON mode.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SearchForm {
    /// To search or to answer.
    Move {
        /// It may still search.
        may_search: bool,
    },
    /// A query under each of these keys.
    Queries(Vec<String>),
}

/// What the request asks a model that words searches for; `None` when it asks for something else.
fn search_form(request: &ChatRequest<'_>) -> Option<SearchForm> {
    let is_query = |name: &str| name.strip_prefix("query_").is_some_and(|n| n.parse::<u32>().is_ok());
    match &request.form {
        ReplyForm::JsonSchema(schema) if schema.names().eq(["action", "text"]) => {
            Some(SearchForm::Move { may_search: schema.allows("action", "search") })
        }
        ReplyForm::JsonSchema(schema) => {
            let names: Vec<String> = schema.names().map(str::to_owned).collect();
            (!names.is_empty() && names.iter().all(|name| is_query(name))).then_some(SearchForm::Queries(names))
        }
        ReplyForm::JsonObject | ReplyForm::Text => {
            let quoted: Vec<&str> = request
                .messages
                .iter()
                .filter(|message| message.role == "system")
                .flat_map(|message| message.text.split('"').skip(1).step_by(2))
                .collect();
            let names: Vec<String> =
                quoted.iter().filter(|name| is_query(name)).map(|name| (*name).to_owned()).collect();
            let is_move = ["action", "search", "answer", "text"].iter().all(|word| quoted.contains(word));
            let may_search = !request.last_user_text().contains("No search is left");
            let as_move = is_move.then_some(SearchForm::Move { may_search });
            as_move.or_else(|| (!names.is_empty()).then_some(SearchForm::Queries(names)))
        }
    }
}

/// The reply of a model that words searches: it searches first, then by lot, as long as it may; queries are words of the request.
fn search(config: &SimConfig, request: &ChatRequest<'_>, form: &SearchForm, index: u64) -> String {
    let text = request.last_user_text();
    // what is found and what was searched for before stand around it
    let source = text.lines().rfind(|line| line.starts_with("Question")).unwrap_or(text);
    let words = |nth: u64| {
        let words = &source[extract(source, bits(config.seed, request.key, Purpose::Answer, (index << 32) + nth))];
        if words.is_empty() { "nothing" } else { words }
    };
    match form {
        SearchForm::Move { may_search } => {
            let is_first = text.starts_with("Searches so far: none.");
            let by_lot = unit(config.seed, request.key, Purpose::Verdict, index) < 0.5;
            let reply = match *may_search && (is_first || by_lot) {
                true => serde_json::json!({ "action": "search", "text": words(1) }),
                false => serde_json::json!({ "action": "answer", "text": answer(config, request, index) }),
            };
            reply.to_string()
        }
        SearchForm::Queries(names) => {
            let queries: BTreeMap<&str, &str> =
                names.iter().zip(1..).map(|(name, nth)| (name.as_str(), words(nth))).collect();
            serde_json::json!(queries).to_string()
        }
    }
}

/// Whether a request asks for the facts of a text: by a schema, or in words where the server has only JSON mode.
fn asks_for_facts(request: &ChatRequest<'_>) -> bool {
    match &request.form {
        ReplyForm::JsonSchema(schema) => {
            schema.names().eq(["facts"]) && schema.items_of("facts").any(|name| name == "subject")
        }
        ReplyForm::JsonObject | ReplyForm::Text => {
            let systems = || request.messages.iter().filter(|message| message.role == "system");
            ["\"facts\"", "\"subject\"", "\"attribute\""]
                .iter()
                .all(|key| systems().any(|message| message.text.contains(key)))
        }
    }
}

/// How a judge is asked to reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JudgeForm {
    Schema,
    Object,
    YesNo,
    CorrectWrong,
    RightWrong,
}

/// The form of the verdict when the request asks for one. Structured replies are taken as a judge's; in free text the
/// instructions are looked for in system messages and at the end of the last message, where they do not mix with context.
fn judge_form(request: &ChatRequest<'_>) -> Option<JudgeForm> {
    match request.form {
        ReplyForm::JsonSchema(_) => return Some(JudgeForm::Schema),
        ReplyForm::JsonObject => return Some(JudgeForm::Object),
        ReplyForm::Text => {}
    }
    let systems =
        request.messages.iter().filter(|message| message.role == "system").map(|message| message.text.as_ref());
    systems.chain([tail(request.last_user_text(), 400)]).find_map(|text| {
        if contains_any(text, &["yes or no", "Yes or No", "YES or NO", "yes/no"]) {
            Some(JudgeForm::YesNo)
        } else if text.contains("Reply with JSON: {") {
            Some(JudgeForm::Object)
        } else if text.contains("CORRECT") && text.contains("WRONG") {
            Some(JudgeForm::CorrectWrong)
        } else if text.contains("RIGHT or WRONG") {
            Some(JudgeForm::RightWrong)
        } else {
            None
        }
    })
}

/// Whether the request asks for a verdict, or for facts: for a reply of a form that may be broken.
pub(crate) fn is_judge(request: &ChatRequest<'_>) -> bool {
    let is_extraction = !asks_for_facts(request) && extraction::wanted(request).is_some();
    search_form(request).is_none() && !is_extraction && judge_form(request).is_some()
}

/// Writes choice number `index`. Faults of the content are applied here; all others concern the transport.
pub(crate) fn choice(config: &SimConfig, request: &ChatRequest<'_>, index: u64, fault: Option<FaultKind>) -> Choice {
    let (seed, key) = (config.seed, request.key);
    let mut content: Cow<'_, str> = if let Some(form) = search_form(request) {
        search(config, request, &form, index).into()
    } else if asks_for_facts(request) {
        notes::reply(request.last_user_text()).into()
    } else if let Some(wanted) = extraction::wanted(request) {
        extraction::reply(&wanted, request.last_user_text()).into()
    } else if let Some(form) = judge_form(request) {
        verdict(config, request, form, index).into()
    } else {
        answer(config, request, index)
    };
    let mut finish_reason = "stop";
    match fault {
        Some(FaultKind::MalformedJudge) => content = malformed(&content, bits(seed, key, Purpose::Shape, index)).into(),
        Some(FaultKind::Empty) => content = "".into(),
        Some(FaultKind::Filter) => (content, finish_reason) = ("".into(), "content_filter"),
        Some(FaultKind::Refusal) => {
            (content, finish_reason) = ("I'm sorry, but I can't help with that.".into(), REFUSAL)
        }
        Some(FaultKind::Length) => {
            (content, finish_reason) = (head(&content, content.len() / 2).to_owned().into(), "length")
        }
        _ => {}
    }
    let mut tokens = config.tokens.count(&content);
    if let Some(max) = request.max_output.filter(|max| tokens > *max) {
        let bytes = (content.len() as u64 * max / tokens) as usize;
        (content, finish_reason, tokens) = (head(&content, bytes).to_owned().into(), "length", max);
    }
    Choice { content: content.into_owned(), finish_reason, tokens }
}

fn answer<'a>(config: &'a SimConfig, request: &'a ChatRequest<'_>, index: u64) -> Cow<'a, str> {
    let source = request.last_user_text();
    match &config.answer {
        AnswerMode::Fixed(text) => text.as_str().into(),
        AnswerMode::Echo => source.into(),
        AnswerMode::Extract => {
            if unit(config.seed, request.key, Purpose::Verdict, index) < config.abstain {
                return ABSTENTION.into();
            }
            let extract = &source[extract(source, bits(config.seed, request.key, Purpose::Answer, index))];
            if extract.is_empty() { ABSTENTION.into() } else { extract.into() }
        }
    }
}

/// Two to six words that begin near a place chosen by hash. Reads only around that place: contexts are long.
fn extract(text: &str, hash: u64) -> Range<usize> {
    let words_wanted = 2 + (hash >> 32) as usize % 5;
    let spot = floor_char(text, (hash & 0xffff_ffff) as usize % text.len().max(1));
    // back to the start of the word, then back further while too few words follow
    let start = text[..spot].rfind(char::is_whitespace).map_or(0, |space| space + whitespace_len(&text[space..]));
    let rest = &text[start..];
    let skipped = rest.len() - rest.trim_start().len();
    let start = start + skipped;
    let mut end = start;
    for word in text[start..].split_whitespace().take(words_wanted) {
        // both are parts of `text`: the distance is the word's place in it
        end = word.as_ptr() as usize - text.as_ptr() as usize + word.len();
    }
    if end == start && start > 0 {
        let words = text.trim_end();
        let start = words.rfind(char::is_whitespace).map_or(0, |space| space + whitespace_len(&words[space..]));
        return start..words.len();
    }
    start..end
}

fn whitespace_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Whether the answer of a request agrees with its reference or its one criterion; `None` when it holds no answer that can be read.
fn agrees(request: &ChatRequest<'_>) -> Option<bool> {
    let case: serde_json::Value = serde_json::from_str(request.last_user_text()).ok()?;
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let answer = case.get("answer")?.as_str()?;
    let expected = case.get("reference").or_else(|| case.get("criterion"));
    let Some(reference) = expected.and_then(serde_json::Value::as_str) else {
        return Some(contains_any(&answer.to_lowercase(), &["no information available", "not mentioned"]));
    };
    let (reference, answer) = (words(reference), words(answer));
    Some(!reference.is_empty() && 2 * reference.intersection(&answer).count() >= reference.len())
}

fn verdict(config: &SimConfig, request: &ChatRequest<'_>, form: JudgeForm, index: u64) -> String {
    let by_lot = || unit(config.seed, request.key, Purpose::Verdict, index) < config.judge_accept;
    let accept = match config.judge {
        JudgeMode::Lot => by_lot(),
        JudgeMode::Reference => agrees(request).unwrap_or_else(by_lot),
    };
    match form {
        JudgeForm::Schema => {
            let ReplyForm::JsonSchema(schema) = &request.form else {
                return String::new();
            };
            let mut nth = index << 32;
            let mut pick = |n: usize| {
                nth += 1;
                bits(config.seed, request.key, Purpose::Answer, nth) as usize % n.max(1)
            };
            schema.reply(&mut Verdict { accept, pick: &mut pick })
        }
        JudgeForm::Object => object_verdict(request, accept),
        JudgeForm::YesNo => if accept { "yes" } else { "no" }.into(),
        JudgeForm::CorrectWrong => format!(r#"{{"label": "{}"}}"#, if accept { "CORRECT" } else { "WRONG" }),
        JudgeForm::RightWrong => if accept { "RIGHT" } else { "WRONG" }.into(),
    }
}

/// JSON without a schema: the keys are those that the prompt quotes, else `label`.
fn object_verdict(request: &ChatRequest<'_>, accept: bool) -> String {
    let prompt_has = |needle: &str| request.messages.iter().any(|message| message.text.contains(needle));
    let word = match (prompt_has("CORRECT"), prompt_has("INCORRECT")) {
        (true, true) => ["INCORRECT", "CORRECT"],
        (true, false) => ["WRONG", "CORRECT"],
        (false, _) => ["no", "yes"],
    }[usize::from(accept)];
    let quoted = |key: &str| prompt_has(&format!("\"{key}\"")) || prompt_has(&format!("'{key}'"));
    let mut reply = serde_json::Map::new();
    for key in ["explanation", "reason", "reasoning"] {
        if quoted(key) {
            let text = if accept {
                "the answer agrees with what is expected"
            } else {
                "the answer differs from what is expected"
            };
            reply.insert(key.into(), text.into());
        }
    }
    for key in ["correct", "is_correct", "accepted", "passed"] {
        if quoted(key) {
            // some are shown as a word
            let is_word = prompt_has(&format!("\"{key}\": \""));
            reply.insert(key.into(), if is_word { word.into() } else { accept.into() });
        }
    }
    for key in ["score", "grade", "rating"] {
        if quoted(key) {
            reply.insert(key.into(), u8::from(accept).into());
        }
    }
    let only_reasons = reply.values().all(|value| value.is_string());
    for key in ["label", "verdict", "judgement", "judgment"] {
        if quoted(key) || (only_reasons && key == "label") {
            reply.insert(key.into(), word.into());
        }
    }
    serde_json::Value::Object(reply).to_string()
}

/// Content that no careful parser takes for a verdict.
fn malformed(content: &str, hash: u64) -> String {
    let cut = head(content, content.len() / 2);
    match hash % 3 {
        0 => "It depends.".into(),
        1 if cut.starts_with('{') => cut.into(),
        _ => r#"{"unexpected": [1, 2, 3]}"#.into(),
    }
}

fn contains_any(text: &str, needles: &[&str]) -> bool {
    needles.iter().any(|needle| text.contains(needle))
}

fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..floor_char(text, bytes)]
}

fn tail(text: &str, bytes: usize) -> &str {
    &text[floor_char(text, text.len().saturating_sub(bytes))..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(config: &SimConfig, body: serde_json::Value, fault: Option<FaultKind>) -> Choice {
        let body = body.to_string();
        choice(config, &ChatRequest::parse(body.as_bytes(), None).expect("a good request"), 0, fault)
    }

    fn config() -> SimConfig {
        SimConfig { tokens: crate::TokenCounter::Bytes, ..SimConfig::default() }
    }

    fn user(text: &str) -> serde_json::Value {
        serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]})
    }

    proptest! {
        #[test]
        fn extracts_are_words_of_the_text(text in "[a-zäß \n]{0,80}", hash in any::<u64>()) {
            let words = &text[extract(&text, hash)];
            prop_assert_eq!(words.trim(), words);
            prop_assert_eq!(words.is_empty(), text.trim().is_empty());
            prop_assert!(words.split_whitespace().count() <= 6);
            prop_assert!(words.split_whitespace().all(|word| text.split_whitespace().any(|known| known == word)), "{:?}", words);
        }
    }

    #[test]
    fn answers_depend_on_seed_and_request_only() {
        let text = "Context: Caroline adopted a puppy called Biscuit in March. Question: what is the puppy called?";
        let first = ask(&config(), user(text), None);
        assert_eq!(first, ask(&config(), user(text), None));
        assert!(text.contains(&first.content));
        let others =
            (1..6).filter(|seed| ask(&SimConfig { seed: *seed, ..config() }, user(text), None) != first).count();
        assert!(others >= 3);
        let abstained = SimConfig { abstain: 1.0, ..config() };
        assert_eq!(ask(&abstained, user(text), None).content, ABSTENTION);
        let echo = SimConfig { answer: AnswerMode::Echo, ..config() };
        assert_eq!(ask(&echo, user(text), None).content, text);
        let fixed = SimConfig { answer: AnswerMode::Fixed("42".into()), ..config() };
        assert_eq!(ask(&fixed, user(text), None).content, "42");
    }

    #[test]
    fn judges_accept_as_often_as_asked_in_every_form() {
        let forms: [(serde_json::Value, &str); 4] = [
            (
                serde_json::json!({"type": "json_schema", "json_schema": {"name": "v", "schema": {"type": "object", "properties": {"correct": {"type": "boolean"}}}}}),
                "true",
            ),
            (serde_json::json!({"type": "json_object"}), "CORRECT"),
            (serde_json::json!({"type": "text"}), "CORRECT"),
            (serde_json::Value::Null, "yes"),
        ];
        for (n, (format, accepting)) in forms.into_iter().enumerate() {
            let ask_for =
                if n == 3 { "Answer yes or no only." } else { "Reply with CORRECT or WRONG in the key \"label\"." };
            let accepted = (0..1000)
                .filter(|i| {
                    let mut body = user(&format!("Is answer {i} right? {ask_for}"));
                    body["response_format"] = format.clone();
                    ask(&config(), body, None).content.contains(accepting)
                })
                .count();
            assert!((650..750).contains(&accepted), "form {n}: {accepted} of 1000");
        }
    }

    #[test]
    fn p45_a_judge_by_the_reference_reads_what_it_judges() {
        let judge = SimConfig { judge: JudgeMode::Reference, ..config() };
        let verdict = |case: serde_json::Value| {
            let mut body = user(&case.to_string());
            body["response_format"] = serde_json::json!({"type": "json_object"});
            body["messages"][0]["role"] = "user".into();
            ask(&judge, body, None).content
        };
        let of = |reference: &str, answer: &str| {
            verdict(serde_json::json!({"question": "When?", "reference": reference, "answer": answer}))
        };
        assert_eq!(of("8 May 2023", "On May 8"), r#"{"label":"yes"}"#);
        assert_eq!(of("8 May 2023", "In June 2023"), r#"{"label":"no"}"#);
        assert_eq!(verdict(serde_json::json!({"answer": "Not mentioned."})), r#"{"label":"yes"}"#);
        assert_eq!(verdict(serde_json::json!({"answer": "In June"})), r#"{"label":"no"}"#);
        let met = serde_json::json!({"criterion": "names May", "answer": "It was in May"});
        assert_eq!(verdict(met), r#"{"label":"yes"}"#);
    }

    #[test]
    fn models_that_word_searches_search_first_and_answer_in_the_end_in_every_form() {
        let made = |user_text: &str, actions: &[&str], schema: bool| {
            let system =
                r#"one JSON object with two keys. "action" is "search" or "answer"; "text" is what to search for"#;
            let mut body = serde_json::json!({"model": "m", "messages": [
                {"role": "system", "content": system}, {"role": "user", "content": user_text}
            ]});
            let properties =
                serde_json::json!({"action": {"type": "string", "enum": actions}, "text": {"type": "string"}});
            body["response_format"] = match schema {
                true => {
                    serde_json::json!({"type": "json_schema", "json_schema": {"name": "t", "schema": {"type": "object", "properties": properties}}})
                }
                false => serde_json::json!({"type": "json_object"}),
            };
            let reply: serde_json::Value = serde_json::from_str(&ask(&config(), body, None).content).expect("JSON");
            assert!(!reply["text"].as_str().expect("a text").is_empty(), "{reply}");
            reply["action"].as_str().expect("an action").to_owned()
        };
        for schema in [true, false] {
            assert_eq!(made("Searches so far: none.\n\nQuestion: Who?", &["search", "answer"], schema), "search");
            assert_eq!(made("Searches so far:\n1. x\n\nNo search is left: answer now.", &["answer"], schema), "answer");
            let later =
                |n: u32| made(&format!("Searches so far:\n1. x{n}\n\nQuestion: Who?"), &["search", "answer"], schema);
            let searches = (0..100).filter(|n| later(*n) == "search").count();
            assert!((30..70).contains(&searches), "{searches} of 100");
        }
        let mut body = user("Where does Ann live now?");
        let text = serde_json::json!({"type": "string"});
        let properties = serde_json::json!({"query_1": text, "query_2": text});
        body["response_format"] = serde_json::json!({"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object", "properties": properties}}});
        let reply: BTreeMap<String, String> = serde_json::from_str(&ask(&config(), body, None).content).expect("texts");
        assert_eq!(reply.keys().map(String::as_str).collect::<Vec<_>>(), ["query_1", "query_2"]);
        assert!(reply.values().all(|query| "Where does Ann live now?".contains(query.as_str())), "{reply:?}");
    }

    #[test]
    fn faults_of_the_content() {
        let mut body = user("Is it right?");
        body["response_format"] = serde_json::json!({"type": "json_object"});
        for i in 0..20 {
            body["seed"] = i.into();
            let malformed = ask(&config(), body.clone(), Some(FaultKind::MalformedJudge)).content;
            let value: Result<serde_json::Value, _> = serde_json::from_str(&malformed);
            assert!(value.is_err() || value.is_ok_and(|value| value.get("label").is_none()));
        }
        assert_eq!(ask(&config(), user("hi there"), Some(FaultKind::Empty)).content, "");
        assert_eq!(ask(&config(), user("hi there"), Some(FaultKind::Filter)).finish_reason, "content_filter");
        assert_eq!(ask(&config(), user("hi there"), Some(FaultKind::Refusal)).finish_reason, REFUSAL);
        assert_eq!(ask(&config(), user("hi there"), Some(FaultKind::Length)).finish_reason, "length");
        let mut short = user(&"many words ".repeat(50));
        short["max_tokens"] = 1.into();
        let cut = ask(&config(), short, None);
        assert_eq!((cut.finish_reason, cut.tokens), ("length", 1));
    }
}
