//! `estimate`: calls, tokens, dollars, minutes and the interval to expect, before paying.

use bench_plan::{Announcement, CallProfile, Estimate, EstimateInput, TokenGuess, TokenPrice, announce, estimate};
use bench_proto::spec::{ModelSpec, RunSpec};
use bench_worker::{
    answerer::answer_prompt as answer_prompt_of,
    models::{capabilities, prices, tokens::Encoding},
    prompts,
};
use serde_json::json;

use crate::{
    app::App,
    cli::SubmitArgs,
    exit::{CliResult, Exit},
    out,
    planning::{PlannedRun, plan_run},
};

/// Milliseconds of a call to a hosted model, when nothing better is known.
const TYPICAL_LATENCY_MS: f64 = 1500.0;
/// Calls in flight that a hosted model's limits let through on average.
const TYPICAL_CONCURRENCY: u32 = 32;
/// Completion tokens of a short answer and of a reasoned verdict: (low, expected).
const ANSWER_TOKENS: (u64, u64) = (4, 20);
const VERDICT_TOKENS: (u64, u64) = (20, 60);
/// Expected share of calls that are paid twice.
const REPEAT_SHARE: f64 = 0.01;
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
    fn tokens(self, model: &str, text: &str) -> u64 {
        let encoding = Encoding::of(model);
        match self {
            Self::Exact if encoding.is_exact() => encoding.count(text),
            Self::Exact | Self::Rough => (text.len() as u64 * 10).div_ceil(43),
        }
    }

    /// Tokens of two messages with the chat's overhead.
    fn of_messages(self, model: &str, messages: &prompts::Messages) -> u64 {
        self.tokens(model, &messages.system) + self.tokens(model, &messages.user) + 8
    }
}

/// An estimate with the interval that the run will print.
pub(crate) struct RunEstimate {
    /// Calls, tokens, dollars, minutes.
    pub estimate: Estimate,
    /// Expected intervals.
    pub announcement: Announcement,
    questions: u64,
    cap_usd: Option<f64>,
}

/// Runs the verb.
pub(crate) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    let planned = plan_run(app, args, false).await?;
    RunEstimate::of(&planned, Counting::Exact).print(args.output.json)
}

impl RunEstimate {
    /// The estimate of a planned run.
    #[must_use]
    pub(crate) fn of(planned: &PlannedRun, counting: Counting) -> Self {
        let spec = &planned.spec;
        let mut input = EstimateInput {
            questions: spec.sample.n,
            votes: spec.votes,
            repeat_share: REPEAT_SHARE,
            ..EstimateInput::default()
        };
        if spec.answerer.is_remote() {
            input.answerer = Some(profile(spec, &spec.answerer, answer_prompt(planned, counting), ANSWER_TOKENS));
        }
        input.judges = spec
            .judges
            .iter()
            .map(|judge| profile(spec, judge, judge_prompt(judge, counting), VERDICT_TOKENS))
            .collect();
        Self {
            estimate: estimate(&input),
            announcement: announce(&planned.sample),
            questions: spec.sample.n,
            cap_usd: spec.limits.max_cost.map(bench_proto::money::PicoUsd::usd),
        }
    }

    /// Expected dollars.
    #[must_use]
    pub(crate) fn expected_usd(&self) -> f64 {
        self.estimate.expected.usd()
    }

    /// One or two lines for the start of a run.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let interval = format!("expected 95 % interval {}", half_width(&self.announcement));
        if self.estimate.calls == 0 {
            return interval;
        }
        format!(
            "estimate: {} calls, {} prompt and {} completion tokens, {} (worst {}){}, {}; {interval}",
            self.estimate.calls,
            self.estimate.prompt_tokens,
            self.estimate.completion_tokens,
            self.estimate.expected,
            self.estimate.worst,
            self.cap_usd.map(|cap| format!(", cap ${cap:.2}")).unwrap_or_default(),
            crate::progress::duration(self.estimate.minutes * 60.0)
        )
    }

    /// Prints it.
    ///
    /// # Errors
    /// Never; the type is the verbs'.
    pub(crate) fn print(&self, as_json: bool) -> CliResult {
        if as_json {
            let e = &self.estimate;
            let phases: Vec<_> = e
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
            out::json(&json!({
                "questions": self.questions,
                "calls": e.calls,
                "prompt_tokens": e.prompt_tokens,
                "completion_tokens": e.completion_tokens,
                "usd": {"low": e.low.usd(), "expected": e.expected.usd(), "worst": e.worst.usd()},
                "usd_cap": self.cap_usd,
                "minutes": e.minutes,
                "phases": phases,
                "interval": self.announcement,
            }));
        } else {
            let mut lines = vec![format!("{} questions", self.questions)];
            for p in &self.estimate.phases {
                lines.push(format!(
                    "  {:<7} {} calls, {} prompt and {} completion tokens, {} to {}, expected {}",
                    p.phase.name(),
                    p.calls,
                    p.prompt_tokens,
                    p.completion_tokens,
                    p.low,
                    p.worst,
                    p.expected
                ));
            }
            if self.estimate.calls == 0 {
                lines.push("  no model calls: free".to_owned());
            }
            lines.push(format!("  about {}", crate::progress::duration(self.estimate.minutes * 60.0)));
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
        let price = prices::price_of(MODEL, &spec.limits.prices);
        let price = price.map_or_else(TokenPrice::default, |p| TokenPrice { input: p.input, output: p.output });
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

fn half_width(a: &Announcement) -> String {
    match a.clustered_points {
        Some((narrow, wide)) => {
            format!("± {narrow:.1} to {wide:.1} points for conversations like these (± {:.1} naive)", a.naive_points)
        }
        None => format!("± {:.1} points naive; fewer than three banks give no clustered interval", a.naive_points),
    }
}

fn profile(spec: &RunSpec, model: &ModelSpec, prompt: TokenGuess, (low, expected): (u64, u64)) -> CallProfile {
    let price = prices::price_of(&model.name, &spec.limits.prices);
    let output_limit = capabilities::max_tokens_of(&model.params).unwrap_or(256);
    CallProfile {
        account: model.account.clone(),
        prompt_tokens: prompt,
        completion_tokens: TokenGuess { low, expected, worst: output_limit },
        price: price.map_or_else(TokenPrice::default, |p| TokenPrice { input: p.input, output: p.output }),
        rpm: spec.limits.max_rpm,
        tpm: spec.limits.max_tpm,
        tpm_counts_max_output: true,
        latency_ms: TYPICAL_LATENCY_MS,
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
    let empty = counting.of_messages(model, &answer_prompt_of(&question, &[], &content));
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

/// Prompt tokens of a judgement: the prompt around a question, a short gold and a short answer.
fn judge_prompt(judge: &ModelSpec, counting: Counting) -> TokenGuess {
    let question = bench_proto::dataset::Question {
        question_id: String::new(),
        index: 0,
        category: "single-hop".to_owned(),
        text: "What did the two of them plan to do together on the first weekend of the month?".to_owned(),
        ask_after: 0,
        choices: Vec::new(),
        time_text: None,
    };
    let gold = bench_proto::dataset::Gold::Text("a walk along the river with the dogs".to_owned());
    let messages = prompts::judge::judge_messages(&prompts::judge::JudgeInput {
        category: &question.category,
        question: &question.text,
        asked_at: None,
        gold: Some(&gold),
        answer: "they wanted to walk along the river",
    });
    let expected = counting.of_messages(&judge.name, &messages)
        + counting.tokens(&judge.name, &prompts::verdict::schema().to_string());
    TokenGuess { low: expected * 9 / 10, expected, worst: expected + 400 }
}
