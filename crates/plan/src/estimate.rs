//! Calls, tokens, dollars and minutes before paying. Numbers in, numbers out; where they come from is the caller's.

use bench_proto::{call::Phase, money::PicoUsd};

/// Worst-case prompts are reserved with this many percent on top, because counts differ between tokenizers (P10).
const PROMPT_RESERVE_PERCENT: u128 = 105;

/// Price of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenPrice {
    /// Pico-dollars per prompt token.
    pub input: PicoUsd,
    /// The least that one may cost: read from the provider's cache, where it caches by itself.
    pub lowest_input: PicoUsd,
    /// Pico-dollars per completion token.
    pub output: PicoUsd,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenGuess {
    /// If things go well.
    pub low: u64,
    /// On average.
    pub expected: u64,
    /// Never more: the longest prompt, the output limit that is sent.
    pub worst: u64,
}

/// What calling a model costs and how fast it may go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProfile {
    /// Name of the account: phases that share one share its limits.
    pub account: String,
    /// Prompt tokens per call.
    pub prompt_tokens: TokenGuess,
    /// Completion tokens per call.
    pub completion_tokens: TokenGuess,
    /// Price per token; zero for models that cost nothing.
    pub price: TokenPrice,
    /// Requests per minute of the account, when known.
    pub rpm: Option<u64>,
    /// Tokens per minute of the account, when known.
    pub tpm: Option<u64>,
    /// The provider counts the output limit against `tpm`, not the tokens that came.
    pub tpm_counts_max_output: bool,
    /// Milliseconds per call.
    pub latency_ms: f64,
    /// Calls in flight at once, all workers together.
    pub concurrency: u32,
}

/// Calls of one model in one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseCalls {
    /// The phase that pays.
    pub phase: Phase,
    /// Its calls, without retries.
    pub calls: u64,
    /// Each of them.
    pub profile: CallProfile,
}

/// What is known of the calls of a judge whose answers are there: the call store was asked for them, one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookedFor {
    /// Calls that were found: they are not paid again.
    pub stored: u64,
    /// Calls that were not found, and those that were not looked for: so many are left at least.
    pub left: u64,
    /// The same at worst.
    pub most_left: u64,
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EstimateInput {
    /// Questions of the sample.
    pub questions: u64,
    /// Questions that are answered, where the others have their answers; all of them without it.
    pub answered: Option<u64>,
    /// Model calls that the memory system makes by itself, when they are known.
    pub system: Vec<PhaseCalls>,
    /// The answerer; `None` when answering calls no model.
    pub answerer: Option<CallProfile>,
    /// Calls of the answerer for a question, where it may be called several times; one at least.
    pub moves: u32,
    /// The judges, each giving `votes` votes on every question.
    pub judges: Vec<CallProfile>,
    /// Questions that each judge grades, by its place; all of them where it says nothing.
    pub judged: Vec<Option<u64>>,
    /// Calls of one vote on every question: as many as there are questions, where a vote is one call.
    pub judge_calls: u64,
    /// The same at worst, where it is more: answers that are not there yet decide how many calls some votes are.
    pub most_judge_calls: u64,
    /// What is known of the calls of each judge, by its place; nothing where it is missing.
    pub looked_for: Vec<LookedFor>,
    /// Votes per judge.
    pub votes: u32,
    /// Expected share of calls that are paid twice (a reply that does not pass its parser), such as 0.02.
    pub repeat_share: f64,
}

/// What one phase is expected to call, cost and take.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PhaseEstimate {
    /// The phase that calls.
    pub phase: Phase,
    /// Calls, without retries.
    pub calls: u64,
    /// Calls when every question needs as many as it may make.
    pub most_calls: u64,
    /// Expected prompt tokens.
    pub prompt_tokens: u64,
    /// Expected completion tokens.
    pub completion_tokens: u64,
    /// Every call once with the low token counts, prompts at their lowest price.
    pub low: PicoUsd,
    /// Average token counts, repeats included.
    pub expected: PicoUsd,
    /// As many calls as there can be, each once at its reservation: longest prompt and 5 %, full output. Retries come on top; only the cap
    /// bounds those.
    pub worst: PicoUsd,
    /// Minutes if nothing else ran: the slowest of latency over concurrency, requests per minute, tokens per minute.
    pub minutes: f64,
}

// The totals have the names of the fields of `PhaseEstimate`: `estimate --json` shows both, in this order.
/// Estimate of a run.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// By phase, in the order retain, recall, answer, judge; only those that call models.
    pub phases: Vec<PhaseEstimate>,
    /// Calls of all phases, without retries.
    pub calls: u64,
    /// See [`PhaseEstimate::most_calls`].
    pub most_calls: u64,
    /// Calls that are stored, and counted nowhere else.
    pub stored_calls: u64,
    /// Expected prompt tokens.
    pub prompt_tokens: u64,
    /// Expected completion tokens.
    pub completion_tokens: u64,
    /// See [`PhaseEstimate::low`].
    pub low: PicoUsd,
    /// See [`PhaseEstimate::expected`].
    pub expected: PicoUsd,
    /// See [`PhaseEstimate::worst`].
    pub worst: PicoUsd,
    /// Minutes when the phases overlap as far as shared accounts let them: the larger of the slowest phase and the
    /// busiest account.
    pub minutes: f64,
    /// Minutes when no two phases overlap.
    pub minutes_at_most: f64,
}

impl Estimate {
    /// Adds what begins when this has ended: another run of the same command.
    pub fn followed_by(&mut self, next: &Self) {
        self.minutes += next.minutes;
        self.minutes_at_most += next.minutes_at_most;
        self.stored_calls = self.stored_calls.saturating_add(next.stored_calls);
        for phase in &next.phases {
            self.calls = self.calls.saturating_add(phase.calls);
            self.most_calls = self.most_calls.saturating_add(phase.most_calls);
            self.prompt_tokens = self.prompt_tokens.saturating_add(phase.prompt_tokens);
            self.completion_tokens = self.completion_tokens.saturating_add(phase.completion_tokens);
            self.low = self.low.saturating_add(phase.low);
            self.expected = self.expected.saturating_add(phase.expected);
            self.worst = self.worst.saturating_add(phase.worst);
            match self.phases.iter_mut().find(|of| of.phase == phase.phase) {
                Some(of) => {
                    add(of, phase);
                    of.minutes += phase.minutes;
                }
                None => self.phases.push(*phase),
            }
        }
        self.phases.sort_by_key(|phase| phase.phase);
    }
}

/// Adds calls, tokens and dollars of a phase.
fn add(to: &mut PhaseEstimate, part: &PhaseEstimate) {
    to.calls = to.calls.saturating_add(part.calls);
    to.most_calls = to.most_calls.saturating_add(part.most_calls);
    to.prompt_tokens = to.prompt_tokens.saturating_add(part.prompt_tokens);
    to.completion_tokens = to.completion_tokens.saturating_add(part.completion_tokens);
    to.low = to.low.saturating_add(part.low);
    to.expected = to.expected.saturating_add(part.expected);
    to.worst = to.worst.saturating_add(part.worst);
}

/// A phase, its calls (those that are expected, and the most), and each of them.
type Part<'a> = (Phase, (u64, u64), &'a CallProfile);

/// Calls about a part of the questions, of those about all.
fn part_of_questions(calls: u64, part: Option<u64>, all: u64) -> u64 {
    let Some(part) = part.filter(|part| *part < all) else { return calls };
    u64::try_from((u128::from(calls) * u128::from(part)).div_ceil(u128::from(all.max(1)))).unwrap_or(u64::MAX)
}

/// Adds it up.
#[must_use]
pub fn estimate(input: &EstimateInput) -> Estimate {
    let answers = input.answered.unwrap_or(input.questions).saturating_mul(u64::from(input.moves.max(1)));
    let answer = input.answerer.iter().map(|profile| (Phase::Answer, answers, profile));
    let of_votes = |calls: u64| calls.saturating_mul(u64::from(input.votes.max(1)));
    let judge_calls = of_votes(input.judge_calls);
    let most_judge_calls = of_votes(input.most_judge_calls).max(judge_calls);
    let part = |at: usize, calls| part_of_questions(calls, input.judged.get(at).copied().flatten(), input.questions);
    let of_judge = |(at, profile)| {
        let LookedFor { stored, left, most_left } = input.looked_for.get(at).copied().unwrap_or_default();
        // the number of calls may be a guess; what was found is none, and neither is what was not
        let calls = part(at, judge_calls).saturating_sub(stored).max(left);
        let most = part(at, most_judge_calls).saturating_sub(stored).max(most_left).max(calls);
        (Phase::Judge, (calls, most), profile)
    };
    let judge = input.judges.iter().enumerate().map(of_judge);
    let system = input.system.iter().map(|calls| (calls.phase, calls.calls, &calls.profile));
    let others = system.chain(answer).map(|(phase, calls, profile)| (phase, (calls, calls), profile));
    let mut parts: Vec<Part<'_>> = others.chain(judge).filter(|(_, (_, most), _)| *most > 0).collect();
    parts.sort_by_key(|(phase, ..)| *phase);

    let found = input.judges.iter().zip(&input.looked_for).map(|(_, looked_for)| looked_for.stored);
    let stored_calls = found.fold(0, u64::saturating_add);
    let mut result = Estimate { stored_calls, ..Estimate::default() };
    for (phase, calls, profile) in &parts {
        add_phase(&mut result, price(*phase, *calls, profile, input.repeat_share));
    }
    let slowest = result.phases.iter().map(|phase| phase.minutes).fold(0.0, f64::max);
    result.minutes = slowest.max(busiest_account_minutes(&parts));
    result.minutes_at_most = result.phases.iter().map(|phase| phase.minutes).sum::<f64>().max(result.minutes);
    result
}

/// `calls`: those that are expected, and the most.
fn price(phase: Phase, (calls, most_calls): (u64, u64), profile: &CallProfile, repeat_share: f64) -> PhaseEstimate {
    let (prompt, completion) = (profile.prompt_tokens, profile.completion_tokens);
    let repeat_permille = (repeat_share.clamp(0.0, 10.0) * 1000.0).round() as u128;
    let cost_at = |calls: u64, input: PicoUsd, prompt: u128, completion: u128| {
        let tokens = |n: u128, price: PicoUsd| n.saturating_mul(price.0.max(0).unsigned_abs().into());
        tokens(prompt, input).saturating_add(tokens(completion, profile.price.output)).saturating_mul(calls.into())
    };
    let cost = |calls: u64, prompt: u128, completion: u128| cost_at(calls, profile.price.input, prompt, completion);
    let expected = cost(calls, prompt.expected.into(), completion.expected.into());
    let reserved = (u128::from(prompt.worst) * PROMPT_RESERVE_PERCENT).div_ceil(100);
    PhaseEstimate {
        phase,
        calls,
        most_calls,
        prompt_tokens: calls.saturating_mul(prompt.expected),
        completion_tokens: calls.saturating_mul(completion.expected),
        low: pico(cost_at(
            calls,
            profile.price.lowest_input.min(profile.price.input),
            prompt.low.into(),
            completion.low.into(),
        )),
        expected: pico(expected.saturating_mul(1000 + repeat_permille) / 1000),
        worst: pico(cost(most_calls, reserved, completion.worst.into())),
        minutes: latency_minutes(calls, profile).max(pace_minutes(calls, profile)),
    }
}

/// Sums stick at the end of the range: an absurd estimate stays absurd.
fn pico(amount: u128) -> PicoUsd {
    PicoUsd(i64::try_from(amount).unwrap_or(i64::MAX))
}

fn latency_minutes(calls: u64, profile: &CallProfile) -> f64 {
    calls as f64 * profile.latency_ms / f64::from(profile.concurrency.max(1)) / 60_000.0
}

/// Minutes that the account's limits alone take.
fn pace_minutes(calls: u64, profile: &CallProfile) -> f64 {
    let output = if profile.tpm_counts_max_output {
        profile.completion_tokens.worst
    } else {
        profile.completion_tokens.expected
    };
    let tokens = calls as f64 * profile.prompt_tokens.expected.saturating_add(output) as f64;
    let per_minute = |amount: f64, limit: Option<u64>| limit.map_or(0.0, |limit| amount / limit.max(1) as f64);
    per_minute(calls as f64, profile.rpm).max(per_minute(tokens, profile.tpm))
}

/// Requests and tokens of one account pass one after the other, whichever phase they are of.
fn busiest_account_minutes(parts: &[Part<'_>]) -> f64 {
    let of = |account: &str| {
        parts
            .iter()
            .filter(|(.., p)| p.account == account)
            .map(|(_, (calls, _), profile)| pace_minutes(*calls, profile))
            .sum::<f64>()
    };
    parts.iter().map(|(.., profile)| of(&profile.account)).fold(0.0, f64::max)
}

/// Several models of one phase (two judges) are one line; they work side by side.
fn add_phase(result: &mut Estimate, part: PhaseEstimate) {
    result.calls = result.calls.saturating_add(part.calls);
    result.most_calls = result.most_calls.saturating_add(part.most_calls);
    result.prompt_tokens = result.prompt_tokens.saturating_add(part.prompt_tokens);
    result.completion_tokens = result.completion_tokens.saturating_add(part.completion_tokens);
    result.low = result.low.saturating_add(part.low);
    result.expected = result.expected.saturating_add(part.expected);
    result.worst = result.worst.saturating_add(part.worst);
    match result.phases.last_mut() {
        Some(last) if last.phase == part.phase => {
            add(last, &part);
            last.minutes = last.minutes.max(part.minutes);
        }
        _ => result.phases.push(part),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// $0.15 and $0.60 per million tokens.
    fn small_model() -> CallProfile {
        CallProfile {
            account: "openai".into(),
            prompt_tokens: TokenGuess { low: 800, expected: 1000, worst: 2000 },
            completion_tokens: TokenGuess { low: 10, expected: 50, worst: 500 },
            price: TokenPrice { input: PicoUsd(150_000), lowest_input: PicoUsd(150_000), output: PicoUsd(600_000) },
            rpm: Some(500),
            tpm: None,
            tpm_counts_max_output: false,
            latency_ms: 1200.0,
            concurrency: 16,
        }
    }

    #[test]
    fn a_fair_run_with_answerer_and_judge_is_priced_to_the_pico_dollar() {
        let input = EstimateInput {
            questions: 200,
            answerer: Some(small_model()),
            judges: vec![small_model()],
            judge_calls: 200,
            votes: 3,
            ..EstimateInput::default()
        };
        let result = estimate(&input);
        assert_eq!((result.calls, result.prompt_tokens, result.completion_tokens), (800, 800_000, 40_000));
        assert_eq!(result.expected, PicoUsd(800 * (1000 * 150_000 + 50 * 600_000)));
        assert_eq!(result.low, PicoUsd(800 * (800 * 150_000 + 10 * 600_000)));
        assert_eq!(result.worst, PicoUsd(800 * (2100 * 150_000 + 500 * 600_000)));
        assert_eq!(result.expected.to_string(), "$0.1440");
        let phases: Vec<(Phase, u64)> = result.phases.iter().map(|phase| (phase.phase, phase.calls)).collect();
        assert_eq!(phases, [(Phase::Answer, 200), (Phase::Judge, 600)]);
        // 800 requests of one account at 500 a minute
        assert!((result.minutes - 1.6).abs() < 1e-9, "{}", result.minutes);
    }

    #[test]
    fn a_judge_of_a_sample_is_paid_for_its_questions_alone() {
        let judges = vec![small_model(), small_model()];
        let input = EstimateInput {
            questions: 200,
            judges,
            judged: vec![None, Some(50)],
            judge_calls: 400,
            most_judge_calls: 800,
            votes: 1,
            ..EstimateInput::default()
        };
        let result = estimate(&input);
        assert_eq!((result.calls, result.most_calls), (500, 1_000));
        let of_all = estimate(&EstimateInput { judged: vec![None, Some(200)], ..input });
        assert_eq!((of_all.calls, of_all.most_calls), (800, 1_600));
        assert!((result.minutes - 1.0).abs() < 1e-9, "{}", result.minutes);
    }

    #[test]
    fn questions_that_keep_their_answers_are_judged_all_the_same() {
        let input = EstimateInput {
            questions: 10,
            answered: Some(2),
            answerer: Some(small_model()),
            judges: vec![small_model(), small_model()],
            judged: vec![None, Some(5)],
            judge_calls: 10,
            votes: 1,
            ..EstimateInput::default()
        };
        let calls = |input: &EstimateInput| estimate(input).phases.iter().map(|phase| phase.calls).collect::<Vec<_>>();
        assert_eq!(calls(&input), [2, 15]);
        // eight kept answers, the judgements of which are stored
        let stored = |stored| LookedFor { stored, ..LookedFor::default() };
        assert_eq!(calls(&EstimateInput { looked_for: vec![stored(8), stored(4)], ..input }), [2, 3]);
    }

    #[test]
    fn a_model_that_searches_by_itself_is_called_for_each_of_its_moves() {
        let input =
            EstimateInput { questions: 10, answerer: Some(small_model()), moves: 6, ..EstimateInput::default() };
        let result = estimate(&input);
        assert_eq!((result.calls, result.expected), (60, PicoUsd(60 * (1000 * 150_000 + 50 * 600_000))));
    }

    #[test]
    fn votes_of_several_calls_are_counted_by_their_calls() {
        let judges = vec![small_model(), small_model()];
        let input = EstimateInput { questions: 400, judges, judge_calls: 1051, votes: 3, ..EstimateInput::default() };
        let result = estimate(&input);
        assert_eq!((result.calls, result.expected), (2 * 3 * 1051, PicoUsd(6306 * (1000 * 150_000 + 50 * 600_000))));
    }

    #[test]
    fn the_worst_case_has_the_most_calls_that_votes_can_be() {
        let judges = vec![small_model()];
        let input = EstimateInput {
            questions: 20,
            judges,
            judge_calls: 30,
            most_judge_calls: 4000,
            votes: 1,
            ..EstimateInput::default()
        };
        let result = estimate(&input);
        assert_eq!((result.calls, result.most_calls, result.phases[0].most_calls), (30, 4000, 4000));
        assert_eq!(result.expected, PicoUsd(30 * (1000 * 150_000 + 50 * 600_000)));
        assert_eq!(result.worst, PicoUsd(4000 * (2100 * 150_000 + 500 * 600_000)));
    }

    #[test]
    fn judgements_that_are_stored_are_not_paid_again() {
        let looked_for = |stored, left, most_left| LookedFor { stored, left, most_left };
        let input = EstimateInput {
            questions: 200,
            judges: vec![small_model(), small_model()],
            judge_calls: 200,
            looked_for: vec![looked_for(600, 0, 0), looked_for(150, 450, 450)],
            votes: 3,
            ..EstimateInput::default()
        };
        let result = estimate(&input);
        assert_eq!((result.calls, result.stored_calls), (450, 750), "all of one, a quarter of the other");
        assert_eq!(result.worst, PicoUsd(450 * (2100 * 150_000 + 500 * 600_000)));
        let all = estimate(&EstimateInput { looked_for: vec![looked_for(600, 0, 0); 2], ..input.clone() });
        assert_eq!((all.calls, all.stored_calls, all.worst), (0, 1_200, PicoUsd::ZERO));
        let none = estimate(&EstimateInput { looked_for: vec![looked_for(0, 600, 600)], ..input });
        assert_eq!((none.calls, none.stored_calls), (1_200, 0));
    }

    #[test]
    fn what_was_found_of_some_calls_says_nothing_about_others() {
        let of = |judge_calls, most_judge_calls, looked_for| {
            let result = estimate(&EstimateInput {
                questions: 1986,
                judges: vec![small_model()],
                judge_calls,
                most_judge_calls,
                looked_for: vec![looked_for],
                votes: 1,
                ..EstimateInput::default()
            });
            (result.calls, result.most_calls, result.stored_calls, result.worst > PicoUsd::ZERO)
        };
        let first_banks = LookedFor { stored: 24, left: 1962, most_left: 1962 };
        assert_eq!(of(1986, 1986, first_banks), (1962, 1962, 24, true), "judged for its first banks only");
        // the number of calls is taken from a part of the sample that has fewer of them
        assert_eq!(of(1000, 1000, LookedFor { stored: 1000, left: 986, most_left: 986 }), (986, 986, 1000, true));
        // the first calls of all votes are stored; whether those that rest on them are is not known
        let first_calls = LookedFor { stored: 1986, left: 0, most_left: 5958 };
        assert_eq!(of(1986, 1986, first_calls), (0, 5958, 1986, true));
    }

    #[test]
    fn prompts_may_come_from_the_providers_cache() {
        let price = TokenPrice { lowest_input: PicoUsd(75_000), ..small_model().price };
        let profile = CallProfile { price, ..small_model() };
        let input = EstimateInput { questions: 10, answerer: Some(profile), ..EstimateInput::default() };
        let result = estimate(&input);
        assert_eq!(result.low, PicoUsd(10 * (800 * 75_000 + 10 * 600_000)));
        assert_eq!(result.expected, PicoUsd(10 * (1000 * 150_000 + 50 * 600_000)), "and nobody can count on it");
    }

    #[test]
    fn without_limits_latency_and_slots_decide_and_repeats_cost() {
        let profile = CallProfile { rpm: None, ..small_model() };
        let input =
            EstimateInput { questions: 200, answerer: Some(profile), repeat_share: 0.02, ..EstimateInput::default() };
        let result = estimate(&input);
        assert!((result.minutes - 200.0 * 1.2 / 16.0 / 60.0).abs() < 1e-12);
        assert_eq!(result.expected.0, 200 * 180_000_000 * 102 / 100);
    }

    #[test]
    fn token_limits_count_what_the_provider_counts() {
        let profile = CallProfile {
            tpm: Some(100_000),
            tpm_counts_max_output: true,
            rpm: None,
            latency_ms: 0.0,
            ..small_model()
        };
        let input = EstimateInput { questions: 100, answerer: Some(profile), ..EstimateInput::default() };
        assert!((estimate(&input).minutes - 1.5).abs() < 1e-12, "100 calls of 1,500 counted tokens");
    }

    #[test]
    fn p41_what_follows_is_added_to_what_a_command_costs() {
        let judged = EstimateInput {
            questions: 10,
            judges: vec![small_model()],
            judge_calls: 10,
            votes: 1,
            ..EstimateInput::default()
        };
        let both = EstimateInput { answerer: Some(small_model()), ..judged.clone() };
        let (measured, control) = (estimate(&judged), estimate(&both));
        let mut all = measured.clone();
        all.followed_by(&control);
        assert_eq!((all.calls, all.prompt_tokens, all.completion_tokens), (30, 30_000, 1_500));
        assert_eq!(all.worst, measured.worst.saturating_add(control.worst));
        assert!((all.minutes - measured.minutes - control.minutes).abs() < 1e-9);
        let phases: Vec<_> = all.phases.iter().map(|phase| (phase.phase, phase.calls)).collect();
        assert_eq!(phases, [(Phase::Answer, 10), (Phase::Judge, 20)]);
        let mut alone = measured.clone();
        alone.followed_by(&Estimate::default());
        assert_eq!(alone, measured);
    }

    #[test]
    fn nothing_to_call_costs_nothing() {
        assert_eq!(estimate(&EstimateInput { questions: 1986, ..EstimateInput::default() }), Estimate::default());
    }

    proptest! {
        #[test]
        fn low_is_at_most_expected_is_at_most_worst_and_nothing_overflows(
            questions in any::<u64>(), votes in 1_u32..9, judges_account in "openai|other",
            (low, more, most) in (0_u64..1000, 0_u64..1000, 0_u64..100_000),
            (input_price, output_price) in (0_i64..10_000_000_000, 0_i64..10_000_000_000),
        ) {
            let guess = TokenGuess { low, expected: low + more, worst: low + more + most };
            let price = TokenPrice {
                input: PicoUsd(input_price),
                lowest_input: PicoUsd(input_price / 4),
                output: PicoUsd(output_price),
            };
            let profile = CallProfile { prompt_tokens: guess, completion_tokens: guess, price, ..small_model() };
            let judge = CallProfile { account: judges_account, ..profile.clone() };
            let result = estimate(&EstimateInput {
                questions, answerer: Some(profile), judges: vec![judge.clone(), judge], judge_calls: questions, votes,
                ..EstimateInput::default()
            });
            prop_assert!(PicoUsd::ZERO <= result.low && result.low <= result.expected && result.expected <= result.worst);
            prop_assert!(result.minutes.is_finite() && result.minutes <= result.minutes_at_most);
        }
    }
}
