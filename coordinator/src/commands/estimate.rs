//! `estimate`: calls, tokens, dollars, minutes and the interval to expect, before paying.

use bench_grading::prompts::{self, answer::style_rules};
use bench_models::{capabilities, prices, tokens::Encoding};
use bench_plan::{
    Announcement, CallProfile, Estimate, EstimateInput, PhaseCalls, TokenGuess, TokenPrice, announce, estimate,
};
use bench_proto::{
    call::Phase,
    money::PicoUsd,
    price::ModelPrice,
    spec::{ModelSpec, RunSpec},
};
use bench_store::CallProfile as CallProfileOfStore;
use bench_worker::{
    answerer::answer_prompt as answer_prompt_of,
    systems::{
        canary::{self, CANARY_BANKS, CANARY_RECALLS},
        vector::{self, EmbeddingModel},
    },
};
use serde_json::json;

use crate::{
    app::App,
    cli::SubmitArgs,
    commands::controls,
    exit::{CliResult, Exit},
    out,
    planning::{PlannedRun, plan_run},
    progress::dollars,
    rehearsal::{Effort, Embedded, rehearse},
};

/// Milliseconds of a call to a hosted model, when nothing better is known.
const TYPICAL_LATENCY_MS: f64 = 1500.0;
/// Prompts of this length are cached by providers that cache without being asked.
const SHORTEST_CACHED: u64 = 1024;
/// The same of a request for embeddings.
const TYPICAL_EMBEDDING_MS: f64 = 300.0;
/// Calls in flight that a hosted model's limits let through on average.
const TYPICAL_CONCURRENCY: u32 = 32;
/// Completion tokens of a short answer and of a reasoned verdict: (low, expected), where the store has no calls to learn from.
const ANSWER_TOKENS: (u64, u64) = (2, 7);
const VERDICT_TOKENS: (u64, u64) = (10, 18);
/// Calls of the store that are enough to learn from.
const ENOUGH_CALLS: u64 = 30;
/// Banks whose turns are measured for the average context.
const MEASURED_BANKS: usize = 2;

/// How prompts are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the model's own token table, which takes a moment and 46 MB to load.
    Exact,
    /// By length: English text has a token every 4.3 bytes or so.
    Rough,
}

impl Counting {
    pub(super) const fn effort(self) -> Effort {
        match self {
            Self::Exact => Effort { banks: 40, questions: 250 },
            Self::Rough => Effort { banks: 2, questions: 12 },
        }
    }

    fn tokens(self, model: &str, text: &str) -> u64 {
        let encoding = Encoding::of(model);
        match self {
            Self::Exact if encoding.is_exact() => encoding.count(text),
            Self::Exact | Self::Rough => (text.len() as u64 * 10).div_ceil(43),
        }
    }

    /// Tokens of two messages with the chat's overhead.
    pub(super) fn of_messages(self, model: &str, messages: &prompts::Messages) -> u64 {
        self.tokens(model, &messages.system) + self.tokens(model, &messages.user) + 11
    }
}

/// An estimate of everything that a command starts, with the interval that its run will print.
pub(crate) struct RunEstimate {
    /// Calls, tokens, dollars, minutes of the run.
    pub estimate: Estimate,
    /// The same of each of its controls, by memory system.
    controls: Vec<(String, Estimate)>,
    /// All of them, one after the other.
    total: Estimate,
    /// Expected intervals.
    pub announcement: Announcement,
    questions: u64,
    /// Recalls of the memory system that its canaries make beside those of the questions, at most.
    canary_recalls: u64,
    cap_usd: Option<f64>,
}

/// Runs the verb.
pub(crate) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    if let (Some(source), Some(from)) = (&args.fork, args.from) {
        let dry = SubmitArgs { dry_run: true, ..args.clone() };
        return super::fork::run(app, &dry, source, from).await;
    }
    let planned = plan_run(app, args, false).await?;
    let controls = controls::plans(app, &planned)?;
    RunEstimate::of_group(app, &planned, &controls, Counting::Exact).await.print(args.output.json)
}

impl RunEstimate {
    /// The estimate of a planned run and its controls.
    pub(super) async fn of_group(app: &App, planned: &PlannedRun, controls: &[PlannedRun], counting: Counting) -> Self {
        let mut all = Self::of(app, planned, counting).await;
        for control in controls {
            let estimate = Self::of(app, control, counting).await.estimate;
            all.total.followed_by(&estimate);
            all.controls.push((control.spec.system.name.clone(), estimate));
        }
        all
    }

    /// The estimate of a planned run.
    async fn of(app: &App, planned: &PlannedRun, counting: Counting) -> Self {
        let spec = &planned.spec;
        let count = |model: &str, messages: &prompts::Messages| counting.of_messages(model, messages);
        let rehearsal = rehearse(planned, counting.effort(), &count, &|model, text| counting.tokens(model, text)).await;
        let answer = || rehearsal.answer.unwrap_or_else(|| answer_prompt(planned, counting));
        let answer = spec.answerer.is_remote().then(answer);
        let embeddings = rehearsal.embeddings;
        let announcement = announce(&planned.sample);
        let all = Self::of_prompts(app, spec, answer, embeddings, &rehearsal.judges, counting, announcement).await;
        let canary_recalls = match canary::possible(&planned.capabilities) {
            Ok(()) => spec.sample.banks.min(CANARY_BANKS.into()) * u64::from(CANARY_RECALLS),
            Err(_) => 0,
        };
        Self { canary_recalls, ..all }
    }

    /// The estimate of a run whose prompts were measured: of its answers, when they are to be made, of its embeddings, and per
    /// judge, the reply's schema left out.
    pub(super) async fn of_prompts(
        app: &App,
        spec: &RunSpec,
        answer: Option<TokenGuess>,
        embeddings: Option<Embedded>,
        judges: &[TokenGuess],
        counting: Counting,
        announcement: Announcement,
    ) -> Self {
        let past = Past::read(app, spec).await;
        let mut input = EstimateInput { questions: spec.sample.n, votes: spec.votes, ..EstimateInput::default() };
        input.answerer =
            answer.map(|prompt| profile(app, spec, &spec.answerer, prompt, past.of(&spec.answerer, ANSWER_TOKENS)));
        input.judges = spec
            .judges
            .iter()
            .zip(judges)
            .map(|(judge, prompt)| {
                let of_schema = counting.tokens(&judge.name, &prompts::verdict::schema().to_string()) + 32;
                let answer_at_most = capabilities::max_tokens_of(&spec.answerer.params).unwrap_or(0);
                let prompt = TokenGuess {
                    low: prompt.low + of_schema,
                    expected: prompt.expected + of_schema,
                    worst: prompt.worst + of_schema + answer_at_most,
                };
                profile(app, spec, judge, prompt, past.of(judge, VERDICT_TOKENS))
            })
            .collect();
        if let (Some(embeds), Some(model)) =
            (embeddings, vector::remote_model(&spec.system.name, &spec.system.settings))
        {
            let calls = |phase, calls, prompt| PhaseCalls {
                phase,
                calls,
                profile: embedding(app, spec, &model, prompt, &past),
            };
            input.system = vec![
                calls(Phase::Retain, embeds.bank_calls, embeds.bank),
                calls(Phase::Recall, spec.sample.n + probed(spec), embeds.question),
            ];
        }
        let estimate = estimate(&input);
        Self {
            total: estimate.clone(),
            estimate,
            controls: Vec::new(),
            announcement,
            questions: spec.sample.n,
            canary_recalls: 0,
            cap_usd: spec.limits.max_cost.map(PicoUsd::usd),
        }
    }

    /// Expected dollars of all runs.
    #[must_use]
    pub(crate) fn expected_usd(&self) -> f64 {
        self.total.expected.usd()
    }

    /// What it is of beside the run, to be put behind an amount; empty for a run alone.
    #[must_use]
    pub(super) fn what(&self) -> String {
        match self.controls.len() {
            0 => String::new(),
            1 => " with its control".to_owned(),
            n => format!(" with its {n} controls"),
        }
    }

    /// What canaries ask of the memory system, which may cost something where a recall does.
    fn canaries(&self) -> Option<String> {
        (self.canary_recalls > 0).then(|| {
            format!(
                "canaries: up to {} recalls of the memory system beside those of the questions",
                self.canary_recalls
            )
        })
    }

    /// One or two lines for the start of a run.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let interval = format!(
            "expected 95 % interval {}; a paired comparison can detect {:.1} points",
            half_width(&self.announcement),
            self.announcement.detectable_points
        );
        let total = &self.total;
        if total.calls == 0 {
            return interval;
        }
        format!(
            "estimate{}: {} calls, {} prompt and {} completion tokens, {} (worst {}){}, {}; {interval}",
            self.what(),
            total.calls,
            total.prompt_tokens,
            total.completion_tokens,
            total.expected,
            total.worst,
            self.cap_usd.map(|cap| format!(", cap {}", dollars(cap))).unwrap_or_default(),
            crate::progress::duration(total.minutes * 60.0)
        )
    }

    /// Prints it.
    ///
    /// # Errors
    /// Never; the type is the verbs'.
    pub(crate) fn print(&self, as_json: bool) -> CliResult {
        if as_json {
            let phases: Vec<_> = self
                .total
                .phases
                .iter()
                .map(|p| {
                    json!({
                        "phase": p.phase, "calls": p.calls, "prompt_tokens": p.prompt_tokens,
                        "completion_tokens": p.completion_tokens, "minutes": p.minutes,
                        "usd": {"low": p.low.usd(), "expected": p.expected.usd(), "worst": p.worst.usd()},
                    })
                })
                .collect();
            let of = |e: &Estimate| {
                json!({
                    "calls": e.calls,
                    "prompt_tokens": e.prompt_tokens,
                    "completion_tokens": e.completion_tokens,
                    "usd": {"low": e.low.usd(), "expected": e.expected.usd(), "worst": e.worst.usd()},
                    "minutes": e.minutes,
                })
            };
            let mut all = of(&self.total);
            all["questions"] = json!(self.questions);
            all["usd_cap"] = json!(self.cap_usd);
            all["canary_recalls"] = json!(self.canary_recalls);
            all["phases"] = json!(phases);
            all["interval"] = json!(self.announcement);
            all["measured"] = of(&self.estimate);
            all["controls"] = self.controls.iter().map(|(name, e)| (name.clone(), of(e))).collect();
            out::json(&all);
        } else {
            let mut lines = vec![format!("{} questions", self.questions)];
            let calls = |calls: u64, prompt: u64, completion: u64, usd: [PicoUsd; 3]| {
                let [low, expected, worst] = usd;
                format!(
                    "{calls} calls, {prompt} prompt and {completion} completion tokens, {low} to {worst}, expected {expected}"
                )
            };
            for p in &self.estimate.phases {
                let of = calls(p.calls, p.prompt_tokens, p.completion_tokens, [p.low, p.expected, p.worst]);
                lines.push(format!("  {:<7} {of}", p.phase.name()));
            }
            let of = |e: &Estimate| calls(e.calls, e.prompt_tokens, e.completion_tokens, [e.low, e.expected, e.worst]);
            for (name, estimate) in &self.controls {
                lines.push(format!("  control {name}: {}", of(estimate)));
            }
            if self.total.calls == 0 {
                lines.push("  no model calls: free".to_owned());
            } else {
                let cap = self.cap_usd.map(|cap| format!(" (cap {})", dollars(cap))).unwrap_or_default();
                lines.push(format!("  total{}: {}{cap}", self.what(), of(&self.total)));
            }
            lines.extend(self.canaries().map(|canaries| format!("  {canaries}")));
            lines.push(format!("  about {}", crate::progress::duration(self.total.minutes * 60.0)));
            lines.push(format!("  95 % interval to expect: {}", half_width(&self.announcement)));
            lines.push(format!(
                "  smallest difference a paired comparison finds: {:.1} points",
                self.announcement.detectable_points
            ));
            out::result(&lines.join("\n"));
        }
        Ok(Exit::Done)
    }

    /// Dollars and minutes of the same sample with a small hosted model as answerer and judge, for the closing hint.
    #[must_use]
    pub(crate) fn with_a_small_model(spec: &RunSpec) -> (f64, f64) {
        const MODEL: &str = "gpt-4o-mini";
        let price = prices::price_of(MODEL, &spec.limits);
        let price = price.map_or_else(TokenPrice::default, |p| token_price(&p, None, 0));
        let calls = |prompt: u64, completion: (u64, u64)| CallProfile {
            account: "openai".to_owned(),
            prompt_tokens: TokenGuess { low: prompt, expected: prompt, worst: prompt * 2 },
            completion_tokens: TokenGuess { low: completion.0, expected: completion.1, worst: 256 },
            price,
            latency_ms: TYPICAL_LATENCY_MS,
            concurrency: TYPICAL_CONCURRENCY,
            ..CallProfile::default()
        };
        let input = EstimateInput {
            questions: spec.sample.n,
            answerer: Some(calls(700, ANSWER_TOKENS)),
            judges: vec![calls(300, VERDICT_TOKENS)],
            votes: 1,
            ..EstimateInput::default()
        };
        let estimate = estimate(&input);
        (estimate.expected.usd(), estimate.minutes.max(1.0))
    }
}

/// Recalls of the latency probe, with the one that opens connections and that nobody times.
fn probed(spec: &RunSpec) -> u64 {
    match spec.limits.latency_probe.recalls_of(spec.sample.n) {
        0 => 0,
        recalls => recalls + 1,
    }
}

fn half_width(a: &Announcement) -> String {
    match a.clustered_points {
        Some((narrow, wide)) => {
            format!("± {narrow:.1} to {wide:.1} points for conversations like these (± {:.1} naive)", a.naive_points)
        }
        None => format!("± {:.1} points naive; fewer than three banks give no clustered interval", a.naive_points),
    }
}

/// What a token costs in a tier, in prompts of a length.
fn token_price(price: &ModelPrice, service: Option<&str>, prompt: u64) -> TokenPrice {
    let rates = price.rates(service, prompt);
    let lowest_input = if prompt >= SHORTEST_CACHED { rates.cached_input } else { rates.input };
    TokenPrice { input: rates.input, lowest_input, output: rates.output }
}

/// What a count may be off by: a known vocabulary by what a provider writes around messages, a guess by bytes by a third.
fn widened(model: &str, guess: TokenGuess) -> TokenGuess {
    let (less, more) = if Encoding::of(model).is_exact() { (98, 102) } else { (70, 135) };
    TokenGuess {
        low: guess.low * less / 100,
        expected: guess.expected,
        worst: (guess.worst * more).div_ceil(100).max(guess.expected),
    }
}

/// What the newest calls of the store say of the run's models.
#[derive(Debug, Default)]
struct Past(Vec<(String, CallProfileOfStore)>);

/// Completion tokens and milliseconds of a call, as expected.
#[derive(Debug, Clone, Copy)]
struct Expected {
    completion: (u64, u64),
    latency_ms: f64,
}

impl Past {
    /// Reads what is there; a store that cannot be read has nothing to say about an estimate.
    async fn read(app: &App, spec: &RunSpec) -> Self {
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
        for (model, phase) in answerer.into_iter().chain(judges) {
            if let Ok(Some(profile)) = store.call_profile(&model.name, phase).await
                && profile.calls >= ENOUGH_CALLS
            {
                past.push((model.name.clone(), profile));
            }
        }
        Self(past)
    }

    fn of(&self, model: &ModelSpec, otherwise: (u64, u64)) -> Expected {
        let phase = if otherwise == VERDICT_TOKENS { Phase::Judge } else { Phase::Answer };
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

fn profile(app: &App, spec: &RunSpec, model: &ModelSpec, prompt: TokenGuess, past: Expected) -> CallProfile {
    let price = prices::price_of(&model.name, &spec.limits);
    let service = model.params.get("service_tier").and_then(serde_json::Value::as_str);
    let output_limit = capabilities::max_tokens_of(&model.params).unwrap_or(256);
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
fn embedding(app: &App, spec: &RunSpec, model: &EmbeddingModel, prompt: TokenGuess, past: &Past) -> CallProfile {
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

/// Prompt tokens of an answer: the prompt around an empty context, and k turns of average (low: half, worst: double)
/// length. A system that ignores k hands over whole banks.
fn answer_prompt(planned: &PlannedRun, counting: Counting) -> TokenGuess {
    let model = &planned.spec.answerer.name;
    let (mut turns, mut tokens, mut question) = (0_u64, 0_u64, None);
    for bank in planned.sample.banks.iter().take(MEASURED_BANKS) {
        let Ok(bank) = planned.dataset.bank(bank.file_index as usize) else { continue };
        question = question.or_else(|| bank.questions.first().cloned());
        for entry in &bank.content.entries {
            if let bench_proto::dataset::StreamEntry::Session(session) = entry {
                for turn in &session.turns {
                    turns += 1;
                    tokens += counting.tokens(model, &format!("[{}] {}\n", turn.id, turn.line()));
                }
            }
        }
    }
    let Some(question) = question else { return TokenGuess::default() };
    let content =
        bench_proto::dataset::BankContent { bank_id: String::new(), speakers: Vec::new(), entries: Vec::new() };
    let style = style_rules(&planned.spec.dataset.profile).unwrap_or_default();
    let empty = counting.of_messages(model, &answer_prompt_of(style, &question, &[], &content));
    let average = tokens.div_ceil(turns.max(1));
    let banks = planned.sample.banks.iter().map(|b| u64::from(b.turns)).sum::<u64>()
        / (planned.sample.banks.len() as u64).max(1);
    let hits = if planned.capabilities.empty_by_design {
        0
    } else if planned.capabilities.ignores_k {
        banks
    } else {
        u64::from(planned.spec.system.top_k)
    };
    let expected = empty + hits * average;
    TokenGuess { low: empty + hits * average / 2, expected, worst: empty + hits * average * 2 }
}
