//! What times were measured under (P43): the latency probe, building, and how much was in flight.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    facts::{PhaseTimes, QuestionFacts},
    metered::Stage,
    probe::ProbePart,
    spec::RunSpec,
    step::{StepFacts, StoredStep, Timing},
    summary::{
        BuildSummary, ConcurrencySummary, InFlight, LATENCY_PROBE_VERSION, LatencyProbe, MeteredSummary, Percentiles,
        PhasesSummary, ProbeAtRate, ProbeConditions,
    },
};

use crate::latency::Spread;

/// Operations by how many were in flight, per phase.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flights(BTreeMap<&'static str, BTreeMap<u32, u64>>);

impl Flights {
    fn add(&mut self, phase: &'static str, in_flight: u32) {
        // 0: an earlier build did not note it
        if in_flight > 0 {
            *self.0.entry(phase).or_default().entry(in_flight).or_default() += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        for (phase, counts) in other.0 {
            for (in_flight, n) in counts {
                *self.0.entry(phase).or_default().entry(in_flight).or_default() += n;
            }
        }
    }

    fn in_flight(counts: &BTreeMap<u32, u64>) -> InFlight {
        let half = counts.values().sum::<u64>().div_ceil(2);
        let mut passed = 0;
        let median = counts.iter().find(|(_, n)| {
            passed += **n;
            passed >= half
        });
        InFlight {
            p50: median.map_or(0, |(in_flight, _)| *in_flight),
            max: counts.keys().next_back().copied().unwrap_or(0),
        }
    }
}

/// What belongs to the times of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    flights: Flights,
    /// Microseconds of each build.
    built: Vec<f32>,
    /// Their sum, exact.
    built_us: u64,
    /// Microseconds of each wait for somebody else's build.
    waited: Vec<f32>,
    parts: Vec<ProbePart>,
    /// Why the probe was given up, when it was.
    given_up: Option<String>,
}

impl Conditions {
    fn build(&mut self, build_us: u64, wait_us: u64) {
        if build_us > 0 {
            self.built.push(build_us as f32);
            self.built_us += build_us;
        }
        if wait_us > 0 {
            self.waited.push(wait_us as f32);
        }
    }

    /// Adds a question.
    pub(crate) fn question(&mut self, facts: &QuestionFacts) {
        let PhaseTimes { build_us, build_wait_us, recall_in_flight, answer_in_flight, judge_in_flight, .. } =
            facts.times;
        self.build(build_us.unwrap_or(0), build_wait_us);
        self.flights.add("recall", recall_in_flight);
        self.flights.add("answer", answer_in_flight);
        self.flights.add("judge", judge_in_flight);
    }

    /// Adds a retained entry.
    pub(crate) fn retained(&mut self, timing: &Timing) {
        self.build(timing.build_us, timing.build_wait_us);
        self.flights.add("retain", timing.in_flight);
    }

    /// Adds what is stored of the probe.
    pub(crate) fn probe(&mut self, steps: &[StoredStep]) {
        self.parts.extend(ProbePart::among(steps).cloned());
        self.given_up = steps.iter().find_map(|step| match &step.facts {
            StepFacts::Failed { failure, .. } => Some(failure.to_string()),
            _ => None,
        });
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.flights.merge(other.flights);
        self.built.extend(other.built);
        self.built_us += other.built_us;
        self.waited.extend(other.waited);
        self.parts.extend(other.parts);
        self.given_up = self.given_up.take().or(other.given_up);
    }

    pub(crate) fn concurrency(&self, spec: &RunSpec) -> ConcurrencySummary {
        ConcurrencySummary {
            questions: spec.limits.questions_at_once(),
            in_flight: self.flights.0.iter().map(|(phase, n)| ((*phase).to_owned(), Flights::in_flight(n))).collect(),
        }
    }

    /// Percentiles of builds, and of waits for them.
    pub(crate) fn builds(&self) -> [Option<Percentiles>; 2] {
        [&self.built, &self.waited]
            .map(|times| Spread::from_values(times.iter().copied()).map(|spread| spread.percentiles()))
    }

    pub(crate) fn build_seconds(&self) -> Option<f64> {
        (!self.built.is_empty()).then_some(self.built_us as f64 / 1e6)
    }

    pub(crate) fn phases(&self) -> PhasesSummary {
        let [built, _] = self.builds();
        let seconds = self.build_seconds().unwrap_or(0.0);
        let of = |p: Percentiles| BuildSummary { n: p.n, seconds, p50_ms: p.p50, p95_ms: p.p95, p99_ms: p.p99 };
        PhasesSummary { build: built.map(of) }
    }

    /// The probe, when one was wanted and has left something to say.
    pub(crate) fn latency_probe(&self, spec: &RunSpec, metered: Option<&MeteredSummary>) -> Option<LatencyProbe> {
        if spec.limits.latency_probe.is_off() || (self.parts.is_empty() && self.given_up.is_none()) {
            return None;
        }
        let alone = Pass::from_parts(&self.parts, 0);
        let asked = self.parts.iter().map(|part| part.of).max().unwrap_or(spec.limits.latency_probe.recalls);
        let failure = self.given_up.clone().or_else(|| alone.missing(asked));
        let [p50_ms, p95_ms, p99_ms] = alone.percentiles();
        let at_rates = (1..).zip(&spec.limits.latency_probe.rates);
        let at_rates = at_rates.map(|(pass, rate)| (Pass::from_parts(&self.parts, pass), *rate));
        Some(LatencyProbe {
            version: LATENCY_PROBE_VERSION,
            n: alone.n(),
            p50_ms,
            p95_ms,
            p99_ms,
            failed: alone.failed,
            failure,
            conditions: ProbeConditions { stored_replies: may_be_stored(metered), ..self.conditions(spec, asked) },
            at_rates: at_rates.filter(|(pass, _)| pass.made()).map(|(pass, rate)| pass.at_rate(rate, asked)).collect(),
            curve: alone.curve(),
        })
    }

    fn conditions(&self, spec: &RunSpec, asked: u32) -> ProbeConditions {
        let set = |of: fn(&ProbePart) -> &String| -> Vec<String> {
            let all: BTreeSet<&String> = self.parts.iter().map(of).filter(|text| !text.is_empty()).collect();
            all.into_iter().cloned().collect()
        };
        let sessions: BTreeSet<i64> = self.parts.iter().map(|part| part.timing.session).collect();
        ProbeConditions {
            concurrency: 1,
            recalls: u64::from(asked),
            dataset: spec.dataset.sha256.clone(),
            sample: spec.sample.signature.clone(),
            max_sessions: spec.sample.max_sessions,
            top_k: spec.system.top_k,
            pool: spec.limits.pool.clone(),
            machines: set(|part| &part.machine),
            builds: set(|part| &part.build),
            workers: sessions.len() as u64,
            other_tasks: self.parts.iter().map(|part| part.others).max().unwrap_or(0),
            stored_replies: false,
        }
    }
}

/// Whether calls that the probe may have caused were answered from the call store: none of a check is, but that a call was for one is
/// not always known, and earlier builds answered them.
fn may_be_stored(metered: Option<&MeteredSummary>) -> bool {
    let is_of_probe = |stage| matches!(stage, Stage::Check | Stage::Unattributed);
    metered
        .is_some_and(|metered| metered.by_stage.iter().any(|of| is_of_probe(of.stage) && of.figures.stored_calls > 0))
}

/// All parts of a pass.
struct Pass {
    spread: Option<Spread>,
    n: usize,
    failed: u64,
    in_flight: u32,
    /// Recalls whose questions failed in the run.
    left_out: u32,
    /// What failed last, or why it ended before its time.
    failure: Option<String>,
}

impl Pass {
    fn from_parts(parts: &[ProbePart], pass: u32) -> Self {
        let parts = || parts.iter().filter(move |part| part.pass == pass);
        Self {
            spread: Spread::from_values(parts().flat_map(|part| part.us.iter().map(|us| *us as f32))),
            n: parts().map(|part| part.us.len()).sum(),
            failed: parts().map(|part| u64::from(part.failed)).sum(),
            in_flight: parts().map(|part| part.in_flight).max().unwrap_or(0),
            left_out: parts().map(|part| part.left_out).max().unwrap_or(0),
            failure: parts().filter_map(|part| part.failure.as_ref()).next_back().map(ToString::to_string),
        }
    }

    /// Why fewer recalls than `asked` have a time. Easy questions alone make another figure than all of them.
    fn missing(&self, asked: u32) -> Option<String> {
        if asked > 0 && self.n() >= u64::from(asked) {
            return None;
        }
        self.failure.clone().or_else(|| match self.left_out {
            0 if self.n() < u64::from(asked) => Some(format!("{} of {asked} recalls were made", self.n())),
            0 => None,
            left_out => Some(format!("{left_out} of {asked} questions failed in the run and were not asked again")),
        })
    }

    fn n(&self) -> u64 {
        self.n as u64
    }

    /// Whether it has begun.
    fn made(&self) -> bool {
        self.n > 0 || self.failed > 0
    }

    fn percentiles(&self) -> [Option<f64>; 3] {
        match self.spread.as_ref().map(Spread::percentiles) {
            Some(p) => [p.p50, p.p95, p.p99].map(Some),
            None => [None; 3],
        }
    }

    fn curve(&self) -> Vec<f64> {
        self.spread.as_ref().map(Spread::curve).unwrap_or_default()
    }

    fn at_rate(&self, rate: f64, asked: u32) -> ProbeAtRate {
        let [p50_ms, p95_ms, p99_ms] = self.percentiles();
        let (n, failed, in_flight) = (self.n(), self.failed, self.in_flight);
        let (failure, curve) = (self.missing(asked), self.curve());
        ProbeAtRate { rate, n, p50_ms, p95_ms, p99_ms, failed, failure, in_flight, curve }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        failure::Failure,
        ids::TaskKey,
        probe::ProbePlan,
        step::StepNo,
        summary::{MeteredFigures, MeteredStage},
    };

    use super::*;
    use crate::aggregator::tests::input;

    fn part(pass: u32, first: u32, us: &[u64]) -> ProbePart {
        ProbePart {
            pass,
            first,
            of: 4,
            us: us.to_vec(),
            in_flight: pass + 1,
            machine: "m".into(),
            build: "release".into(),
            ..ProbePart::default()
        }
    }

    fn stored(parts: Vec<ProbePart>) -> Vec<StoredStep> {
        let stored = |part: ProbePart| StoredStep {
            task: TaskKey::PROBE,
            step: ProbePart::step(part.pass, part.first),
            facts: StepFacts::Probed(Box::new(part)),
        };
        parts.into_iter().map(stored).collect()
    }

    fn probed(parts: Vec<ProbePart>, rates: &[f64]) -> Option<LatencyProbe> {
        let mut spec = input(1).spec;
        spec.limits.latency_probe = ProbePlan { recalls: 200, rates: rates.to_vec() };
        let mut conditions = Conditions::default();
        conditions.probe(&stored(parts));
        conditions.latency_probe(&spec, None)
    }

    #[test]
    fn p43_parts_are_one_probe_and_rates_are_apart() {
        let parts = vec![part(0, 0, &[50_000, 52_000]), part(0, 2, &[51_000, 53_000]), part(1, 0, &[90_000])];
        let probe = probed(parts, &[10.0]).expect("was made");
        assert_eq!((probe.n, probe.p50_ms, probe.failed, probe.failure), (4, Some(51.5), 0, None));
        assert_eq!((probe.conditions.recalls, probe.conditions.machines), (4, vec!["m".to_owned()]));
        assert_eq!(
            (probe.at_rates[0].rate, probe.at_rates[0].p50_ms, probe.at_rates[0].in_flight),
            (10.0, Some(90.0), 2)
        );
        assert_eq!(probe.curve.len(), crate::latency::CURVE.len());
        assert_eq!(probed(vec![], &[]), None, "it has not been made yet");
    }

    #[test]
    fn p43_a_probe_that_the_call_store_may_have_answered_says_so() {
        let of = |stage, stored_calls| MeteredSummary {
            by_stage: vec![MeteredStage {
                stage,
                figures: MeteredFigures { stored_calls, ..MeteredFigures::default() },
            }],
            ..MeteredSummary::default()
        };
        assert!(may_be_stored(Some(&of(Stage::Check, 1))) && may_be_stored(Some(&of(Stage::Unattributed, 1))));
        assert!(!may_be_stored(Some(&of(Stage::Recall, 9))), "what questions asked is no part of it");
        assert!(!may_be_stored(Some(&of(Stage::Check, 0))) && !may_be_stored(None));
    }

    #[test]
    fn p43_what_is_missing_says_why() {
        let why = Failure::permanent("not_probed", "a recall changes the system's state");
        let never = probed(vec![ProbePart { failure: Some(why), ..ProbePart::default() }], &[]).expect("says so");
        assert_eq!((never.n, never.p50_ms), (0, None));
        assert!(never.failure.is_some_and(|why| why.contains("changes the system's state")));
        let failing =
            ProbePart { failed: 1, failure: Some(Failure::transient("busy", "503")), ..part(0, 0, &[1, 2, 3]) };
        let some = probed(vec![failing], &[]).expect("was made");
        assert_eq!((some.n, some.failed, some.failure.is_some()), (3, 1, true));
        let mut given_up = Conditions::default();
        let facts = StepFacts::Failed {
            failure: Failure::permanent("panic", "oh"),
            usage: Default::default(),
            timing: Timing::default(),
        };
        given_up.probe(&[StoredStep { task: TaskKey::PROBE, step: StepNo::FAILED, facts }]);
        let mut spec = input(1).spec;
        assert_eq!(given_up.latency_probe(&spec, None), None, "it was not wanted");
        spec.limits.latency_probe.recalls = 200;
        assert!(
            given_up.latency_probe(&spec, None).and_then(|probe| probe.failure).is_some_and(|why| why.contains("oh"))
        );
    }

    /// The slowest questions end as `infra_error`, and what is left is quicker than the whole.
    #[test]
    fn p43_a_probe_of_fewer_questions_is_not_whole() {
        let of = |left_out, us: &[u64]| probed(vec![ProbePart { left_out, ..part(0, 0, us) }], &[]).expect("was made");
        let fewer = of(1, &[1, 2, 3]);
        assert_eq!(fewer.failure.as_deref(), Some("1 of 4 questions failed in the run and were not asked again"));
        // an earlier build did not note it
        assert_eq!(of(0, &[1, 2, 3]).failure.as_deref(), Some("3 of 4 recalls were made"));
        assert_eq!(of(0, &[1, 2, 3, 4]).failure, None);
        let cut = Failure::transient("probe_too_slow", "stopped after 600 s");
        let parts = vec![
            part(0, 0, &[1, 2, 3, 4]),
            ProbePart { failure: Some(cut), ..part(1, 0, &[1, 2]) },
            part(2, 0, &[1, 2, 3, 4]),
        ];
        let at_rates = probed(parts, &[10.0, 20.0]).expect("was made").at_rates;
        assert!(at_rates[0].failure.as_deref().is_some_and(|why| why.contains("stopped after 600 s")), "{at_rates:?}");
        assert_eq!(at_rates[1].failure, None);
    }

    #[test]
    fn p43_in_flight_is_told_by_its_median_and_largest() {
        let mut flights = Flights::default();
        [1, 4, 4, 64, 0].into_iter().for_each(|in_flight| flights.add("recall", in_flight));
        let mut other = Flights::default();
        other.add("recall", 4);
        flights.merge(other);
        assert_eq!(Flights::in_flight(&flights.0["recall"]), InFlight { p50: 4, max: 64 });
    }
}
