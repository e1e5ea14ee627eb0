//! What a run will cost before it does: calls, tokens, dollars, minutes, and the interval to expect.
//!
//! In comes a plan (or, for a fork, what its source has stored); out comes a [`RunEstimate`], which prints itself. Nothing is
//! called and nothing stored. [`rehearsal`] makes the prompts without sending them, [`calls`] says what a call of each model
//! needs, [`ages`] which prices were read long ago, [`fork`] measures stored prompts, [`known`] looks for judgements that are
//! stored, [`judged`] says what it saves that a judge grades a sample, [`words`] prints the result.

mod ages;
mod calls;
pub(crate) mod fork;
mod judged;
mod known;
pub(crate) mod rehearsal;
mod words;

use bench_grading::prompts;
use bench_models::{capabilities, prices, tokens::Encoding};
use bench_plan::{
    Announcement, CallProfile, Estimate, EstimateInput, PhaseCalls, TokenGuess, TokenPrice, announce, estimate,
};
use bench_proto::{
    call::Phase,
    canary::{CanarySpec, FOREIGN_FACTS, WIDE_RECALLS},
    money::PicoUsd,
    scenario::Scenario,
    spec::{ModelSpec, RunSpec},
    usage_cap::UsageUnit,
};
use bench_systems::{
    canary::{self, CANARY_BANKS, CANARY_RECALLS},
    facts, vector,
};

use self::{
    calls::{
        ANSWER_LIMIT, ANSWER_TOKENS, NOTES_TOKENS, REPHRASING_TOKENS, SeenCalls, TYPICAL_CONCURRENCY,
        TYPICAL_LATENCY_MS, answer_prompt, embedding, profile, token_price,
    },
    judged::JudgedPart,
    rehearsal::{Effort, JudgeGuess, Rehearsal, VERDICT_TOKENS, rehearse},
};
use crate::{app::App, planning::PlannedRun, runs::controls::PlannedGroup};

/// How prompts are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the model's own token table, which takes a moment and 46 MB to load.
    Exact,
    /// By length: English text has a token every 4.3 bytes or so.
    Rough,
}

impl Counting {
    /// How much of a sample is measured.
    const fn effort(self) -> Effort {
        match self {
            Self::Exact => Effort { banks: 40, questions: 250 },
            Self::Rough => Effort { banks: 2, questions: 12 },
        }
    }

    fn tokens(self, model: &str, text: &str) -> u64 {
        let encoding = Encoding::for_model(model);
        match self {
            Self::Exact if encoding.is_exact() => encoding.count(text),
            Self::Exact | Self::Rough => (text.len() as u64 * 10).div_ceil(43),
        }
    }

    /// Tokens of two messages with the chat's overhead.
    fn message_tokens(self, model: &str, messages: &prompts::Messages) -> u64 {
        self.tokens(model, &messages.system) + self.tokens(model, &messages.user) + 11
    }
}

/// An estimate of everything that a command starts, with the interval that its run will print.
#[derive(Clone)]
pub(crate) struct RunEstimate {
    /// Calls, tokens, dollars, minutes of the run.
    estimate: Estimate,
    /// Calls, tokens, dollars, minutes of each control, by memory system.
    controls: Vec<(String, Estimate)>,
    /// How often the run is repeated; 1 for a run alone.
    repeats: u32,
    /// Cells of a matrix; 1 for anything else.
    cells: u32,
    /// The run with its repeats and controls, one after the other.
    total: Estimate,
    /// Expected intervals.
    announcement: Announcement,
    /// Those of further cells of a matrix, where they are others.
    of_other_cells: Vec<Announcement>,
    /// Questions of the sample.
    questions: u64,
    /// Recalls of the memory system that its canaries make beside those of the questions, at most.
    canary_recalls: u64,
    /// The memory system's own calls are metered: they count under the cap, and nobody knows beforehand how many there are.
    is_metered: bool,
    cap_usd: Option<f64>,
    /// Lines about prices that were read long ago.
    old_prices: Vec<String>,
    /// Calls were counted in a part of the sample.
    is_rough: bool,
    /// More of the calls may be stored than was looked for.
    at_most: bool,
    /// Judges that grade a sample, with what that saves in each run; of a matrix those that are the same in all cells.
    samples: Vec<JudgedPart>,
}

impl RunEstimate {
    /// The estimate of a planned run and its controls.
    pub(crate) async fn of_group(app: &App, group: &PlannedGroup, counting: Counting) -> Self {
        let mut all = Self::of_run(app, &group.measured, counting).await;
        for control in &group.controls {
            let estimate = Self::of_run(app, control, counting).await.estimate;
            all.total.followed_by(&estimate);
            all.controls.push((control.spec.system.name.clone(), estimate));
        }
        all
    }

    /// The same of a run that is repeated.
    #[must_use]
    pub(crate) fn repeated(mut self, repeats: u32) -> Self {
        for _ in 1..repeats {
            self.total.followed_by(&self.estimate);
        }
        self.repeats = repeats.max(1);
        self
    }

    /// Adds all that another one is of: the runs of a further cell of a matrix.
    pub(crate) fn and(&mut self, other: &Self) {
        self.total.followed_by(&other.total);
        self.cells += 1;
        self.is_metered |= other.is_metered;
        self.canary_recalls = self.canary_recalls.max(other.canary_recalls);
        self.samples.retain(|sample| other.samples.contains(sample));
        for expected in other.announcements() {
            if self.announcements().all(|known| !says_the_same(known, expected)) {
                self.of_other_cells.push(expected.clone());
            }
        }
        self.old_prices.extend(
            other.old_prices.iter().filter(|line| !self.old_prices.contains(line)).cloned().collect::<Vec<_>>(),
        );
    }

    /// The expected intervals of all cells; one for anything else.
    fn announcements(&self) -> impl Iterator<Item = &Announcement> {
        std::iter::once(&self.announcement).chain(&self.of_other_cells)
    }

    /// Calls of all runs that are expected.
    #[must_use]
    pub(crate) fn calls(&self) -> u64 {
        self.total.calls
    }

    /// Calls or tokens of all runs that are expected.
    #[must_use]
    pub(crate) fn used(&self, unit: UsageUnit) -> u64 {
        match unit {
            UsageUnit::Calls => self.total.calls,
            UsageUnit::Tokens => self.total.prompt_tokens.saturating_add(self.total.completion_tokens),
        }
    }

    /// The estimate of a planned run.
    async fn of_run(app: &App, planned: &PlannedRun, counting: Counting) -> Self {
        let spec = &planned.spec;
        let count = |model: &str, messages: &prompts::Messages| counting.message_tokens(model, messages);
        let count_text = |model: &str, text: &str| counting.tokens(model, text);
        let mut prompts = rehearse(planned, counting.effort(), &count, &count_text).await;
        let answer = || prompts.answer.unwrap_or_else(|| answer_prompt(planned, counting));
        prompts.answer = spec.answerer.is_remote().then(answer);
        let all = Self::of_prompts(app, spec, &prompts, announce(&planned.sample)).await;
        let canary_recalls = match (spec.canaries, canary::possible(&planned.capabilities)) {
            (Some(CanarySpec { facts: 0, .. }), _) | (_, Err(_)) => 0,
            // each is asked for a second time where it is not found
            (Some(CanarySpec { facts, .. }), _) => u64::from(2 * (facts + FOREIGN_FACTS) + WIDE_RECALLS),
            (None, _) => spec.sample.banks.min(CANARY_BANKS.into()) * u64::from(CANARY_RECALLS),
        };
        Self { canary_recalls, is_rough: counting == Counting::Rough, ..all }
    }

    /// The estimate of a run whose prompts were measured; without `answer` none are to be made.
    async fn of_prompts(app: &App, spec: &RunSpec, prompts: &Rehearsal, announcement: Announcement) -> Self {
        let past = SeenCalls::read(app, spec).await;
        let mut input = EstimateInput { questions: spec.sample.n, votes: spec.votes, ..EstimateInput::default() };
        let answered = |prompt| {
            profile(
                app,
                spec,
                &spec.answerer,
                (prompt, ANSWER_LIMIT),
                past.expected(&spec.answerer, Phase::Answer, ANSWER_TOKENS),
            )
        };
        input.answerer = prompts.answer.map(answered);
        input.answered = prompts.answered;
        if spec.scenario == Scenario::Agentic {
            // the last move is to answer: it has nothing to search for
            input.moves = spec.recalls.at_most + 1;
        }
        input.system.extend(prompts.rephrase.map(|prompt| PhaseCalls {
            phase: Phase::Recall,
            calls: spec.sample.n,
            profile: profile(
                app,
                spec,
                &spec.answerer,
                (prompt, ANSWER_LIMIT),
                past.expected(&spec.answerer, Phase::Recall, REPHRASING_TOKENS),
            ),
        }));
        if let (Some(notes), Some(model)) = (prompts.notes, facts::chat_model(&spec.system.name, &spec.system.settings))
        {
            let limit = capabilities::max_tokens_of(&model.params).unwrap_or(facts::MOST_REPLY_TOKENS.into());
            let reply = past.expected(&model, Phase::Retain, NOTES_TOKENS);
            let profile = profile(app, spec, &model, (notes.prompt, limit), reply);
            input.system.push(PhaseCalls { phase: Phase::Retain, calls: notes.calls, profile });
        }
        let judged = |(judge, guess): (&ModelSpec, &JudgeGuess)| {
            let reply = past.expected(judge, Phase::Judge, guess.said);
            profile(app, spec, judge, (judge_prompt(spec, guess), guess.reply), reply)
        };
        input.judges = spec.judges.iter().zip(&prompts.judges).map(judged).collect();
        input.judge_calls = prompts.judge_calls.expected;
        input.most_judge_calls = prompts.judge_calls.most;
        let samples = judged::judged(spec, &mut input);
        input.looked_for.clone_from(&prompts.known.of_judges);
        if let (Some(embeds), Some(model)) =
            (prompts.embeddings, vector::remote_model(&spec.system.name, &spec.system.settings))
        {
            let calls = |phase, calls, prompt| PhaseCalls {
                phase,
                calls,
                profile: embedding(app, spec, &model, prompt, &past),
            };
            let of_phases = [
                calls(Phase::Retain, embeds.bank_calls, embeds.bank),
                calls(Phase::Recall, embeds.searches + probed(spec), embeds.question),
            ];
            input.system.extend(of_phases.into_iter().filter(|phase| phase.calls > 0));
        }
        let estimate = estimate(&input);
        Self {
            total: estimate.clone(),
            estimate,
            controls: Vec::new(),
            repeats: 1,
            cells: 1,
            announcement,
            of_other_cells: Vec::new(),
            questions: spec.sample.n,
            canary_recalls: 0,
            is_metered: spec.limits.meter.is_some(),
            is_rough: false,
            at_most: prompts.known.at_most,
            cap_usd: spec.limits.max_cost.map(PicoUsd::usd),
            old_prices: ages::of_run(app, spec, jiff::Zoned::now().date()),
            samples,
        }
    }

    /// Expected dollars of all runs.
    #[must_use]
    pub(crate) fn expected_usd(&self) -> f64 {
        self.total.expected.usd()
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
            judge_calls: spec.sample.n,
            votes: 1,
            ..EstimateInput::default()
        };
        let estimate = estimate(&input);
        (estimate.expected.usd(), estimate.minutes.max(1.0))
    }
}

/// Whether two samples will say as much of a score and of a difference.
fn says_the_same(a: &Announcement, b: &Announcement) -> bool {
    let said = |of: &Announcement| (of.naive_points, of.clustered_points, of.detectable_points);
    said(a) == said(b)
}

/// Prompt tokens of a judge's call with the reply's schema, and with an answer as long as the answerer may make it.
fn judge_prompt(spec: &RunSpec, JudgeGuess { prompt, schema, .. }: &JudgeGuess) -> TokenGuess {
    let answer_at_most = capabilities::max_tokens_of(&spec.answerer.params).unwrap_or(0);
    TokenGuess {
        low: prompt.low + schema.low,
        expected: prompt.expected + schema.expected,
        worst: prompt.worst + schema.worst + answer_at_most,
    }
}

/// Recalls of the latency probe, with the one that opens connections and that nobody times.
fn probed(spec: &RunSpec) -> u64 {
    match spec.limits.latency_probe.recalls_of(spec.sample.n) {
        0 => 0,
        recalls => recalls + 1,
    }
}
