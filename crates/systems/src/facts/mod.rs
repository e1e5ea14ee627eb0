//! `facts`: a model takes notes of what is retained, and keyword search finds those that still hold. A fact is about a subject
//! and one of its attributes; a later value takes the place of the one before it. What the search gives back is the fact as the
//! model has worded it, placed at the turn or memory that it was taken from.
//!
//! The model is asked once for each entry, or for each part of a long one, while its bank is filled ([`prompt`] has the words).
//! No request depends on another's reply, so that banks are filled in any order, by anybody, and the same replies make the same
//! facts. Which of them hold is decided by rule, for each question among what it may see ([`held`]).

mod held;
mod prompt;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_models::{ChatRequest, capabilities::sent_params, registry::parse_model};
use bench_proto::{
    dataset::{BankContent, StreamEntry},
    failure::Failure,
    spec::ModelSpec,
    step::RetrievedHit,
};
use tantivy::tokenizer::TextAnalyzer;

use self::held::{Fact, holding};
pub use self::prompt::{MOST_REPLY_TOKENS, Part, Prompt, parts, schema};
use crate::{
    BuildContext, BuildError, Capabilities, MemorySystem, Prepared, Setting, StepContext, SystemSettings,
    at_once::several_at_once,
    bm25::{self, Bm25Index, analyzer, words},
    chat::{Asking, Chat, no_account},
    documents,
    from_items::{FromItems, Lookup, Search},
    index_cache::{BuiltIndex, IndexCache, IndexKey},
    settings::{number, text},
};

/// Raised whenever a recall can change. The prompt has a hash of its own in the version.
const VERSION: &str = "1.0.0";

const MODEL: Setting = Setting::new("facts.model", "model that takes the notes, provider:model", "openai:gpt-4o-mini");
const ACCOUNT: Setting =
    Setting::new("facts.account", "account whose server has the model; that of the provider's name without it", "");

const MOST_OUTPUT: Setting = Setting::new(
    "facts.max_output_tokens",
    "longest reply, 256 to 100000 tokens; one that is cut fails its bank",
    "4096",
);

pub(crate) const SETTINGS: &[Setting] = &[MODEL, ACCOUNT, MOST_OUTPUT, bm25::K1, bm25::B];

/// Name of the system.
const NAME: &str = "facts";
/// Requests of a bank that are under way at once.
const REQUESTS_AT_ONCE: usize = 8;

/// The chat model that a system with these settings calls; `None` where none is. Settings that cannot be read have none:
/// building the system says what is wrong.
#[must_use]
pub fn chat_model(system: &str, settings: &SystemSettings) -> Option<ModelSpec> {
    if system != NAME { None } else { model_of(settings).ok() }
}

/// What stands in for the system in estimates, where nobody is asked: its search, over whole turns and memories.
#[must_use]
pub fn rehearsed(settings: &SystemSettings) -> (&'static str, SystemSettings) {
    let of_search = settings.iter().filter(|(name, _)| bm25::SETTINGS.iter().any(|setting| setting.name == **name));
    ("bm25", of_search.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn model_of(settings: &SystemSettings) -> Result<ModelSpec, BuildError> {
    let (given, account) = (text(settings, &MODEL)?, text(settings, &ACCOUNT)?);
    let refused = |expected: String| BuildError::BadSetting {
        setting: MODEL.name,
        expected,
        value: serde_json::Value::from(given.as_str()).to_string(),
    };
    let parsed = parse_model(&given).map_err(|error| refused(format!("provider:model ({error})")))?;
    if !parsed.provider.remote {
        return Err(refused("a chat model such as openai:gpt-4o-mini".to_owned()));
    }
    let most = number(settings, &MOST_OUTPUT, 256.0, 100_000.0)? as u64;
    let wanted = [("temperature".to_owned(), 0.into()), ("max_completion_tokens".to_owned(), most.into())].into();
    Ok(ModelSpec {
        params: sent_params(parsed.provider.name, &parsed.model, &wanted),
        account: if account.is_empty() { parsed.provider.name.to_owned() } else { account },
        provider: parsed.provider.name.to_owned(),
        name: parsed.model,
        prompts: Default::default(),
        version: 1,
    })
}

struct Facts {
    model: ModelSpec,
    /// Who asks the model, unless the step does.
    chats: Option<Arc<dyn Chat>>,
    k1: f64,
    b: f64,
    settings_key: Arc<str>,
    analyzer: TextAnalyzer,
    cache: IndexCache,
}

pub(crate) fn build(settings: &SystemSettings, context: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    // runs of one process may have got different replies for equal banks
    static BUILT: AtomicU64 = AtomicU64::new(0);
    let (k1, b) = (number(settings, &bm25::K1, 0.0, 10.0)?, number(settings, &bm25::B, 0.0, 1.0)?);
    let facts = Facts {
        model: model_of(settings)?,
        chats: context.chats.clone(),
        k1,
        b,
        settings_key: format!("{}", BUILT.fetch_add(1, Ordering::Relaxed)).into(),
        analyzer: analyzer(),
        cache: context.index_cache.clone(),
    };
    let version = format!("{VERSION}+{}", prompt::hash(&facts.model));
    // what is not a fact is not held, and what is cannot be told without the replies
    let capabilities =
        Capabilities { derived: true, lists: false, stores_turns: false, ..Capabilities::from_items(&version) };
    Ok(FromItems::system(capabilities, facts))
}

impl Facts {
    fn chats<'a>(&'a self, step: StepContext<'a>) -> Result<&'a Arc<dyn Chat>, Failure> {
        self.chats.as_ref().or(step.chats).ok_or_else(|| no_account(&self.model.account))
    }

    async fn index_of(&self, lookup: Lookup<'_>) -> Result<(Arc<FactIndex>, Prepared), Failure> {
        let key = IndexKey::new(NAME, lookup.bank, lookup.content, lookup.query, &self.settings_key);
        let (content, model, visible_entries) = (Arc::clone(lookup.content), self.model.clone(), key.visible_entries);
        let chats = Arc::clone(self.chats(lookup.query.step)?);
        let (k1, b, runtime) = (self.k1, self.b, tokio::runtime::Handle::current());
        let build = move || {
            let parts = parts(&content.entries[..visible_entries as usize]);
            let requests: Vec<ChatRequest> = parts.iter().map(|part| part.prompt().request(&model)).collect();
            let ask = |request| chats.of_bank(Asking { model: &model, request, accept: prompt::check });
            // a thread for blocking work: the runtime goes on meanwhile
            let replies = runtime.block_on(several_at_once(requests.iter().map(ask).collect(), REQUESTS_AT_ONCE))?;
            FactIndex::of_replies(&content, visible_entries, &parts, &replies, (k1, b))
        };
        self.cache.find_or_build(&key, build).await
    }
}

#[async_trait]
impl Search for Facts {
    async fn search(&self, lookup: Lookup<'_>) -> Result<Vec<RetrievedHit>, Failure> {
        let (index, _) = self.index_of(lookup).await?;
        let words = words(&mut self.analyzer.clone(), lookup.query.text);
        let admitted = lookup.admitted()?.map(|admitted| holding(&index.facts, Some(&admitted)));
        index.texts.search(&words, lookup.query.k as usize, Some(admitted.as_deref().unwrap_or(&index.holding)))
    }

    async fn index(&self, lookup: Lookup<'_>) -> Result<Prepared, Failure> {
        self.index_of(lookup).await.map(|(_, prepared)| prepared)
    }

    async fn ahead(&self, entries: &[StreamEntry], step: StepContext<'_>) -> Result<Duration, Failure> {
        let (begun, chats) = (Instant::now(), self.chats(step)?);
        let requests: Vec<ChatRequest> = parts(entries).iter().map(|part| part.prompt().request(&self.model)).collect();
        let ask = |request| chats.ahead(Asking { model: &self.model, request, accept: prompt::check });
        several_at_once(requests.iter().map(ask).collect(), REQUESTS_AT_ONCE).await?;
        Ok(begun.elapsed())
    }
}

/// The facts of a bank as far as a query may see it, and where their words stand.
struct FactIndex {
    facts: Vec<Fact>,
    /// Those that hold for whoever may see all of them.
    holding: Vec<bool>,
    texts: Bm25Index,
}

impl BuiltIndex for FactIndex {
    fn bytes(&self) -> u64 {
        self.facts.iter().map(Fact::bytes).sum::<u64>() + self.texts.bytes()
    }
}

impl FactIndex {
    fn of_replies(
        content: &BankContent,
        visible_entries: u32,
        parts: &[Part<'_>],
        replies: &[String],
        (k1, b): (f64, f64),
    ) -> Result<Self, Failure> {
        let visible = documents::visible(content, visible_entries);
        let mut visible = visible.iter().enumerate().peekable();
        let (mut facts, mut hits) = (Vec::new(), Vec::new());
        for (part, reply) in parts.iter().zip(replies) {
            let mut noted = prompt::read(reply).map_err(|problem| Failure::permanent("bad_reply", problem))?;
            noted.sort_by_key(|fact| fact.line);
            let mut noted = noted.into_iter().peekable();
            for (number, document) in (1..).zip(&part.documents) {
                // what an update has taken away was asked about too, and nothing of it holds
                let place = visible.next_if(|(_, next)| next.is(*document)).map(|(place, _)| place);
                while noted.next_if(|fact| fact.line < number).is_some() {}
                while let Some(fact) = noted.next_if(|fact| fact.line == number) {
                    if let Some(place) = place {
                        facts.push(Fact::new(place, *document, &fact));
                        hits.push(held::hit(*document, &fact));
                    }
                }
            }
        }
        let holding = holding(&facts, None);
        Ok(Self { facts, holding, texts: Bm25Index::over(hits, k1, b)? })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use bench_proto::dataset::{Filter, Memory, Session, Turn};
    use serde_json::{Value, json};

    use super::*;
    use crate::{BankRef, RecallQuery};

    /// A model that notes every line as one fact, which replaces nothing.
    pub(crate) struct EachLine;

    /// A model that says what it is told, whatever it is asked.
    struct Says(fn(&str) -> Value);

    fn user_message<'a>(asking: &Asking<'a>) -> &'a str {
        &asking.request.messages[1].text
    }

    #[async_trait]
    impl Chat for EachLine {
        async fn ahead(&self, asking: Asking<'_>) -> Result<(), Failure> {
            self.of_bank(asking).await.map(drop)
        }

        async fn of_bank(&self, asking: Asking<'_>) -> Result<String, Failure> {
            let asked: Value = serde_json::from_str(user_message(&asking)).expect("an object");
            let fact = |line: &Value| json!({"line": line["line"], "subject": "", "attribute": "", "value": "", "text": line["text"]});
            let facts: Vec<Value> = asked["lines"].as_array().expect("lines").iter().map(fact).collect();
            let reply = json!({ "facts": facts }).to_string();
            (asking.accept)(&reply).map_err(|problem| Failure::permanent("bad_reply", problem))?;
            Ok(reply)
        }
    }

    #[async_trait]
    impl Chat for Says {
        async fn ahead(&self, asking: Asking<'_>) -> Result<(), Failure> {
            self.of_bank(asking).await.map(drop)
        }

        async fn of_bank(&self, asking: Asking<'_>) -> Result<String, Failure> {
            Ok((self.0)(user_message(&asking)).to_string())
        }
    }

    fn moved() -> BankContent {
        let session = |number: u32, day: u32, lines: &[&str]| {
            let turn = |(at, line): (usize, &&str)| Turn {
                id: format!("D{number}:{}", at + 1),
                speaker: "Ann".to_owned(),
                text: (*line).to_owned(),
                ..Turn::default()
            };
            StreamEntry::Session(Session {
                id: format!("D{number}"),
                time: Some(format!("2031-05-{day:02}T12:00:00")),
                turns: lines.iter().enumerate().map(turn).collect(),
                ..Session::default()
            })
        };
        let memory = |id: &str, text: &str| Memory { id: id.to_owned(), text: text.to_owned(), ..Memory::default() };
        let entries = vec![
            session(1, 1, &["I live in Bergen", "Lovely rain today"]),
            session(2, 9, &["I have moved: I live in Oslo now"]),
            StreamEntry::Memory(memory("m1", "Ann owns a cello")),
            StreamEntry::Update { replaces: "m1".to_owned(), memory: None },
        ];
        BankContent { bank_id: "b".to_owned(), speakers: Vec::new(), entries }
    }

    fn notes(asked: &str) -> Value {
        let fact = |line: u32, attribute: &str, value: &str| {
            let text = format!("Ann: {attribute} {value}");
            json!({"line": line, "subject": "Ann", "attribute": attribute, "value": value, "before": "", "single": true, "text": text})
        };
        match asked {
            // a line that there is not is left out, and the order of a reply says nothing
            asked if asked.contains("Bergen") => json!({"facts": [fact(9, "home", "Rome"), fact(1, "home", "Bergen")]}),
            asked if asked.contains("Oslo") => json!({"facts": [fact(1, "home", "Oslo")]}),
            _ => json!({"facts": [fact(1, "instrument", "cello")]}),
        }
    }

    fn system(says: fn(&str) -> Value) -> Arc<dyn MemorySystem> {
        let chats: Option<Arc<dyn Chat>> = Some(Arc::new(Says(says)));
        build(&SystemSettings::new(), &BuildContext { chats, ..BuildContext::default() }).expect("builds")
    }

    async fn found(system: &dyn MemorySystem, text: &str, visible_entries: u32, filter: &Filter) -> Vec<String> {
        let bank = BankRef::outside_of_runs("b", moved());
        let query = RecallQuery { text, k: 9, visible_entries, filter, ..RecallQuery::default() };
        let hits = system.recall(&bank, &query).await.expect("recalls").hits;
        hits.into_iter().map(|hit| format!("{} {}", hit.id, hit.text)).collect()
    }

    #[tokio::test]
    async fn an_update_takes_the_place_of_the_older_fact_as_far_as_a_question_sees_it() {
        let (system, all) = (system(notes), Filter::default());
        assert_eq!(
            found(system.as_ref(), "Ann's home", 1, &all).await,
            ["D1:1 [2031-05-01T12:00:00] Ann: home Bergen"]
        );
        assert_eq!(found(system.as_ref(), "Ann's home", 2, &all).await, ["D2:1 [2031-05-09T12:00:00] Ann: home Oslo"]);
        let cello = ["m1 Ann: instrument cello", "D2:1 [2031-05-09T12:00:00] Ann: home Oslo"];
        assert_eq!(found(system.as_ref(), "Ann's instrument", 3, &all).await, cello);
        assert_eq!(found(system.as_ref(), "Ann's instrument", 4, &all).await, cello[1..], "what was withdrawn is gone");
        let until = Filter { until: Some("2031-05-05T00:00:00".to_owned()), ..Filter::default() };
        assert_eq!(
            found(system.as_ref(), "Ann's home", 4, &until).await,
            ["D1:1 [2031-05-01T12:00:00] Ann: home Bergen"]
        );
    }

    #[tokio::test]
    async fn two_systems_of_one_process_keep_their_own_facts_of_equal_banks() {
        let context = |says| {
            let chats: Option<Arc<dyn Chat>> = Some(Arc::new(Says(says)));
            BuildContext { chats, ..BuildContext::default() }
        };
        let first = context(notes);
        let second = BuildContext { index_cache: first.index_cache.clone(), ..context(|_| json!({"facts": []})) };
        let [first, second] = [first, second].map(|context| build(&SystemSettings::new(), &context).expect("builds"));
        assert_eq!(found(first.as_ref(), "Ann", 2, &Filter::default()).await.len(), 1);
        assert_eq!(found(second.as_ref(), "Ann", 2, &Filter::default()).await, [""; 0]);
    }

    #[tokio::test]
    async fn a_reply_that_is_no_list_fails_and_nobody_to_ask_is_said() {
        let bank = BankRef::outside_of_runs("b", moved());
        let query = RecallQuery { text: "Ann", k: 1, visible_entries: 2, ..RecallQuery::default() };
        let failure = system(|_| json!("sorry")).recall(&bank, &query).await.expect_err("no list");
        assert_eq!(failure.code, "bad_reply");
        let nobody = build(&SystemSettings::new(), &BuildContext::default()).expect("builds");
        let entries = bank.content.as_ref().expect("is there").entries.clone();
        let failure = nobody.retain(&bank, &entries, StepContext::default()).await.expect_err("nobody");
        assert!(failure.message.contains("account 'openai' has no server and key"), "{failure}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn few_facts_of_many_memories_are_no_k_that_is_clipped() {
        let told = crate::check::Told { top_k: 10, names_ids: false, by_names: false, form: crate::check::Form::File };
        let one = |_: &str| {
            let text = "the crate in the boat house holds marbles";
            json!({"facts": [{"line": 1, "subject": "crate", "attribute": "holds", "value": "marbles", "before": "", "single": true, "text": text}]})
        };
        let steps = crate::check::run(system(one).as_ref(), "bench-check-1", told).await;
        let step = steps.iter().find(|step| step.check == "as many as asked").expect("was looked at");
        assert_eq!(step.outcome, crate::check::Outcome::Cannot, "{step:?}");
        assert!(step.detail.contains("it holds what it has made of 20 memories"), "{step:?}");
    }

    #[test]
    fn the_model_is_a_chat_model_and_its_account_has_its_name() {
        let model = |text: &str| {
            let settings = SystemSettings::from([(MODEL.name.to_owned(), text.into())]);
            model_of(&settings).map(|model| (model.account, model.name)).map_err(|error| error.to_string())
        };
        assert_eq!(model("anthropic:claude-x"), Ok(("anthropic".to_owned(), "claude-x".to_owned())));
        insta::assert_snapshot!(model("extractive").expect_err("makes no calls"), @r#"setting facts.model must be a chat model such as openai:gpt-4o-mini, not "extractive""#);
        insta::assert_snapshot!(model("gpt-4o-mini").expect_err("no provider"), @r#"setting facts.model must be provider:model ('gpt-4o-mini' is no provider (did you mean 'openai'?); known are openai, anthropic, azure, ollama, fake, extractive, system, none), not "gpt-4o-mini""#);
    }
}
