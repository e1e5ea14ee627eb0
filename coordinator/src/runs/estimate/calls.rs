//! What a call of each model is expected to need: tokens, price, time and limits, from prices, accounts and calls that the store
//! has seen.

use bench_grading::prompts::answer::Instructions;
use bench_models::{capabilities, prices, registry, tokens::Encoding};
use bench_plan::{CallProfile, TokenGuess, TokenPrice};
use bench_proto::{
    call::Phase,
    dataset::{BankContent, StreamEntry},
    price::ModelPrice,
    spec::{ModelSpec, RunSpec},
};
use bench_store::CallProfile as CallProfileOfStore;
use bench_systems::{embed::EmbeddingModel, facts, vector};
use bench_worker::answerer::Shown;

use super::{Counting, rehearsal::Sent};
use crate::{app::App, planning::PlannedRun};

/// Milliseconds of a call to a hosted model, when nothing better is known.
pub(super) const TYPICAL_LATENCY_MS: f64 = 1500.0;
/// Prompts of this length are cached by providers that cache without being asked.
const SHORTEST_CACHED: u64 = 1024;
/// Milliseconds of a request for embeddings, when nothing better is known.
const TYPICAL_EMBEDDING_MS: f64 = 300.0;
/// Calls in flight that a hosted model's limits let through on average.
pub(super) const TYPICAL_CONCURRENCY: u32 = 32;
/// Completion tokens of a short answer: (low, expected), where the store has no calls to learn from.
pub(super) const ANSWER_TOKENS: (u64, u64) = (2, 7);
/// Completion tokens of the notes of a part of a bank: (low, expected).
pub(super) const NOTES_TOKENS: (u64, u64) = (50, 700);
/// Completion tokens of a question in other words: (low, expected).
pub(super) const REPHRASING_TOKENS: (u64, u64) = (15, 60);
/// The most completion tokens of an answer, where the parameters set no limit.
pub(super) const ANSWER_LIMIT: u64 = 256;
/// Calls of the store that are enough to learn from.
const ENOUGH_CALLS: u64 = 30;
/// Banks whose turns are measured for the average context.
const MEASURED_BANKS: usize = 2;

/// What a token costs in a tier, in prompts of a length.
pub(super) fn token_price(price: &ModelPrice, service: Option<&str>, prompt: u64) -> TokenPrice {
    let rates = price.rates(service, prompt);
    let lowest_input = if prompt >= SHORTEST_CACHED { rates.cached_input } else { rates.input };
    TokenPrice { input: rates.input, lowest_input, output: rates.output }
}

/// What a count may be off by: a known vocabulary by what a provider writes around messages, a guess by bytes by a third.
fn widened(model: &str, guess: TokenGuess) -> TokenGuess {
    let (less, more) = if Encoding::for_model(model).is_exact() { (98, 102) } else { (70, 135) };
    TokenGuess {
        low: guess.low * less / 100,
        expected: guess.expected,
        worst: (guess.worst * more).div_ceil(100).max(guess.expected),
    }
}

/// What the newest calls of the store say of the run's models.
#[derive(Debug, Default)]
pub(super) struct SeenCalls(Vec<(String, CallProfileOfStore)>);

/// Completion tokens and milliseconds of a call, as expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    completion: (u64, u64),
    latency_ms: f64,
}

impl SeenCalls {
    /// Reads what is there; a store that cannot be read has nothing to say about an estimate.
    pub(super) async fn read(app: &App, spec: &RunSpec) -> Self {
        if app.store_file().is_some_and(|file| !file.exists()) {
            return Self::default();
        }
        let Ok(store) = app.open_store().await else { return Self::default() };
        let answerer = spec.answerer.is_remote().then_some((&spec.answerer, Phase::Answer));
        let judges = spec.judges.iter().map(|judge| (judge, Phase::Judge));
        let embeds = vector::remote_model(&spec.system.name, &spec.system.settings);
        let mut past = Vec::new();
        if let Some(model) = &embeds
            && let Ok(Some(profile)) = store.call_profile(&model.name, Phase::Retain).await
        {
            past.push((model.name.clone(), profile));
        }
        let notes = facts::chat_model(&spec.system.name, &spec.system.settings);
        let notes = notes.as_ref().map(|model| (model, Phase::Retain));
        for (model, phase) in answerer.into_iter().chain(judges).chain(notes) {
            if let Ok(Some(profile)) = store.call_profile(&model.name, phase).await
                && profile.calls >= ENOUGH_CALLS
            {
                past.push((model.name.clone(), profile));
            }
        }
        Self(past)
    }

    /// A call of a model in a phase, by what is there; `otherwise` are completion tokens where nothing is.
    pub(super) fn expected(&self, model: &ModelSpec, phase: Phase, otherwise: (u64, u64)) -> Expected {
        let known = self.0.iter().find(|(name, profile)| *name == model.name && profile.phase == phase);
        match known {
            Some((_, profile)) => {
                let expected = profile.completion_tokens.round().max(1.0) as u64;
                Expected {
                    completion: (otherwise.0.min(expected), expected),
                    latency_ms: (profile.duration_us / 1000.0).max(0.1),
                }
            }
            None => Expected { completion: otherwise, latency_ms: TYPICAL_LATENCY_MS },
        }
    }
}

/// A call of a model that answers or judges: its prompt, and the longest reply that is asked for where the parameters set no limit.
pub(super) fn profile(
    app: &App,
    spec: &RunSpec,
    model: &ModelSpec,
    (prompt, reply): (TokenGuess, u64),
    past: Expected,
) -> CallProfile {
    let price = prices::price_at(&model.provider, &model.name, &spec.limits);
    let service = model.params.get(registry::SERVICE_TIER).and_then(serde_json::Value::as_str);
    let thinking = capabilities::thinking_budget_of(&model.params);
    let output_limit = capabilities::max_tokens_of(&model.params).unwrap_or(reply).saturating_add(thinking);
    let prompt = widened(&model.name, prompt);
    let (low, expected) = past.completion;
    let expected = expected.min(output_limit);
    // the run's own limits come before those of the account
    let account = app.settings().accounts.get(&model.account);
    let limits = &spec.limits;
    CallProfile {
        account: format!("{} {}", model.account, prices::limit_group(&model.name)),
        prompt_tokens: prompt,
        completion_tokens: TokenGuess { low: low.min(expected), expected, worst: output_limit },
        price: price.map_or_else(TokenPrice::default, |p| token_price(&p, service, prompt.expected)),
        rpm: limits.max_rpm.or(account.and_then(|account| account.rpm)),
        tpm: limits.max_tpm.or(account.and_then(|account| account.tpm)),
        tpm_counts_max_output: account.is_none_or(|account| !account.tpm_counts_used),
        latency_ms: past.latency_ms,
        concurrency: spec.limits.questions_at_once().unwrap_or(TYPICAL_CONCURRENCY),
    }
}

/// Embeddings of a model that has been called before may be in the store already and cost nothing then.
pub(super) fn embedding(
    app: &App,
    spec: &RunSpec,
    model: &EmbeddingModel,
    prompt: TokenGuess,
    past: &SeenCalls,
) -> CallProfile {
    let price = prices::price_of(&model.name, &spec.limits);
    let account = app.settings().accounts.get(&model.account);
    let prompt = widened(&model.name, prompt);
    let known = past.0.iter().find(|(name, _)| *name == model.name).map(|(_, profile)| profile);
    CallProfile {
        account: format!("{} {} embeddings", model.account, prices::limit_group(&model.name)),
        prompt_tokens: TokenGuess { low: if known.is_some() { 0 } else { prompt.low }, ..prompt },
        completion_tokens: TokenGuess::default(),
        price: price.map_or_else(TokenPrice::default, |p| token_price(&p, None, prompt.expected)),
        rpm: spec.limits.max_rpm.or(account.and_then(|account| account.rpm)),
        tpm: spec.limits.max_tpm.or(account.and_then(|account| account.tpm)),
        tpm_counts_max_output: false,
        latency_ms: known.map_or(TYPICAL_EMBEDDING_MS, |profile| (profile.duration_us / 1000.0).max(0.1)),
        concurrency: spec.limits.concurrency.unwrap_or(TYPICAL_CONCURRENCY),
    }
}

/// Prompt tokens of an answer: the prompt around an empty context, and as many turns as are asked for, of average (low: half,
/// worst: double) length. A system that ignores k hands over whole banks.
pub(super) fn answer_prompt(planned: &PlannedRun, counting: Counting) -> TokenGuess {
    let model = &planned.spec.answerer.name;
    let (mut turns, mut tokens, mut question) = (0_u64, 0_u64, None);
    for bank in planned.sample.banks.iter().take(MEASURED_BANKS) {
        let Ok(bank) = planned.dataset.bank(bank.file_index as usize) else { continue };
        question = question.or_else(|| bank.questions.first().cloned());
        for entry in &bank.content.entries {
            let mut count = |id: &str, line: &str| {
                turns += 1;
                tokens += counting.tokens(model, &format!("[{id}] {line}\n"));
            };
            match entry {
                StreamEntry::Session(session) => session.turns.iter().for_each(|turn| count(&turn.id, &turn.line())),
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    count(&memory.id, &memory.text);
                }
                StreamEntry::Update { memory: None, .. } => {}
            }
        }
    }
    let Some(question) = question else { return TokenGuess::default() };
    let content = BankContent { bank_id: String::new(), speakers: Vec::new(), entries: Vec::new() };
    let Ok(instructions) = Instructions::from_profile(&planned.spec.dataset.profile, planned.spec.scenario) else {
        return TokenGuess::default();
    };
    let shown = Shown { question: &question, gold: None, hits: &[], bank: &content };
    let empty =
        Sent::for_question(&planned.spec, &instructions, shown, |messages| counting.message_tokens(model, messages))
            .mean;
    let average = tokens.div_ceil(turns.max(1));
    let banks = planned.sample.banks.iter().map(|b| u64::from(b.turns)).sum::<u64>()
        / (planned.sample.banks.len() as u64).max(1);
    let hits = if planned.capabilities.empty_by_design {
        Hits::default()
    } else if planned.capabilities.ignores_k {
        Hits { fewest: banks, mean: banks, most: banks }
    } else {
        hits(planned)
    };
    hits.prompt(empty, average, u64::from(planned.spec.recalls.at_most))
}

/// Hits of a recall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Hits {
    fewest: u64,
    mean: u64,
    most: u64,
}

impl Hits {
    /// Of questions, each with the number that it asks for on its own, where it does.
    fn asked_for(top_k: u32, own: impl Iterator<Item = Option<u32>>) -> Self {
        let all: Vec<u64> = own.map(|own| own.unwrap_or(top_k).into()).collect();
        let top_k = u64::from(top_k);
        Self {
            fewest: all.iter().copied().min().unwrap_or(top_k),
            mean: all.iter().sum::<u64>().checked_div(all.len() as u64).unwrap_or(top_k),
            most: all.iter().copied().max().unwrap_or(top_k),
        }
    }

    /// Prompt tokens around an empty context of so many, with hits of an average length. A model that searches by itself, so
    /// many times, has on average half of what all its searches bring before it.
    fn prompt(self, empty: u64, average: u64, searches: u64) -> TokenGuess {
        let (halves, all) = if searches == 0 { (2, 1) } else { (searches, searches) };
        TokenGuess {
            low: empty + self.fewest * average / 2,
            expected: empty + self.mean * average * halves / 2,
            worst: empty + self.most * average * 2 * all,
        }
    }
}

/// Hits that the questions of a sample ask for.
fn hits(planned: &PlannedRun) -> Hits {
    let top_k = planned.spec.system.top_k;
    if planned.spec.sample.own_k.is_none() {
        return Hits::asked_for(top_k, std::iter::empty());
    }
    let own = planned.sample.banks.iter().flat_map(|bank| {
        let outline = planned.dataset.outline(bank.file_index as usize).unwrap_or_default();
        let asked = bank.questions.iter().filter_map(move |index| Some(outline.questions.get(*index as usize)?.k));
        asked.collect::<Vec<_>>()
    });
    Hits::asked_for(top_k, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_asks_for_hits_of_its_own_is_estimated_with_these() {
        let of = |own: &[Option<u32>]| Hits::asked_for(10, own.iter().copied());
        assert_eq!(of(&[]), Hits { fewest: 10, mean: 10, most: 10 });
        assert_eq!(of(&[Some(4), Some(70), None]), Hits { fewest: 4, mean: 28, most: 70 });
        let guess = |low, expected, worst| TokenGuess { low, expected, worst };
        assert_eq!(of(&[]).prompt(100, 20, 0), guess(200, 300, 500));
        assert_eq!(of(&[Some(4), Some(70), None]).prompt(100, 20, 0), guess(140, 660, 2_900));
        assert_eq!(of(&[]).prompt(100, 20, 5), guess(200, 600, 2_100), "five searches, half of which came before");
    }
}
