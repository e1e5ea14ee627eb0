//! How the figures of a run are read: which metric heads them, what each metric means, and who answered.

use super::{ModelSpec, OwnK, RunSpec, ScorerSpec};
use crate::{
    canary::Fact,
    facts::{JudgePlan, judge_metric, part_of_judge},
    metric::Scale,
    outage::RouteKey,
    scenario::{AnsweredBy, RecallPlan, Scenario},
    task::{FILLED_TASK_MESSAGE, NEWEST_TASK_MESSAGE},
};

impl RunSpec {
    /// The version that messages of the run must have, so that builds that would do something else with it put them back (P12); 0
    /// where any will do.
    #[must_use]
    pub fn task_message_version(&self) -> u32 {
        if self.stop.is_some() || !self.judging.samples.is_empty() {
            NEWEST_TASK_MESSAGE
        } else if self.taken_over.asks_filled_banks() {
            FILLED_TASK_MESSAGE
        } else {
            0
        }
    }

    /// The routes of its judges; those that need no server have none.
    #[must_use]
    pub fn judge_routes(&self) -> Vec<RouteKey> {
        self.judges.iter().filter_map(ModelSpec::chat_route).collect()
    }

    /// Metric names of the judges: `judge`, `judge-2`, …
    #[must_use]
    pub fn judge_plan(&self) -> JudgePlan {
        JudgePlan {
            metrics: (0..self.judges.len()).map(judge_metric).collect(),
            votes: self.votes.max(1),
            samples: self.judging.samples.clone(),
        }
    }

    /// Names of everything that its judges measure: of each the grade, and behind it its further metrics.
    #[must_use]
    pub fn judge_metrics(&self) -> Vec<String> {
        let of_judge = |judge: String| {
            let parts = self.judging.metrics.iter().map(|part| part_of_judge(&judge, &part.name)).collect::<Vec<_>>();
            std::iter::once(judge).chain(parts)
        };
        self.judge_plan().metrics.into_iter().flat_map(of_judge).collect()
    }

    /// The metric that heads the report: the one that was named, else the first judge's, else the first scorer's.
    #[must_use]
    pub fn headline_metric(&self) -> String {
        if let Some(named) = &self.headline {
            return named.clone();
        }
        self.judge_plan()
            .metrics
            .into_iter()
            .next()
            .or_else(|| self.scorers.first()?.metric_names().next().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Whether a metric grades what was recalled, so that no answer is to blame for a low score.
    #[must_use]
    pub fn grades_recalls(&self, metric: &str) -> bool {
        !self.scenario.answers()
            || self.scorers.iter().any(|scorer| scorer.of_recalls && scorer.metric_names().any(|name| name == metric))
    }

    /// The metric that a mistake of the answer key bears on: the one that heads the report unless it grades recalls, else the first
    /// judge's, else the first scorer's of answers. None where nothing is answered, and where the answers are planted: of those it is
    /// known by the published key alone whether they are right.
    #[must_use]
    pub fn metric_by_answer_key(&self) -> Option<String> {
        if !self.scenario.answers() || self.dataset.planted.is_some() {
            return None;
        }
        let of_scorers = self.scorers.iter().flat_map(ScorerSpec::metric_names).map(str::to_owned);
        let all = std::iter::once(self.headline_metric()).chain(self.judge_plan().metrics).chain(of_scorers);
        all.into_iter().find(|metric| !metric.is_empty() && !self.grades_recalls(metric))
    }

    /// The metric by which controls show whether the headline's grades depend on memory: the first one of the scorer that gives
    /// the headline. Others of its metrics need not rise with the evidence: who recalls nothing drifts nowhere.
    #[must_use]
    pub fn control_metric(&self) -> String {
        let headline = self.headline_metric();
        let mut scorers = self.scorers.iter();
        let first = scorers.find(|scorer| scorer.metric_names().any(|name| name == headline));
        first.and_then(|scorer| scorer.metric_names().next()).map_or(headline, str::to_owned)
    }

    /// The fewest hits that a recall of the run asks for, and the most.
    #[must_use]
    pub fn hits_asked_for(&self) -> (u32, u32) {
        let top_k = self.system.top_k;
        match self.sample.own_k {
            None => (top_k, top_k),
            Some(OwnK { smallest, largest, all: true }) => (smallest, largest),
            Some(OwnK { smallest, largest, all: false }) => (smallest.min(top_k), largest.max(top_k)),
        }
    }

    /// The facts of its own that a bank of the run holds (P45); none without canaries.
    #[must_use]
    pub fn facts_in(&self, bank_no: u32, bank_id: &str) -> Vec<Fact> {
        let Some(canaries) = self.canaries else { return Vec::new() };
        canaries.facts_in(&self.dataset.sha256, self.sample.banks, bank_no, bank_id)
    }

    /// How many facts of a neighbour a bank is asked for, and how many recalls in it must bring as many hits as are
    /// asked for.
    #[must_use]
    pub fn canary_recalls(&self, bank_no: u32) -> (u32, u32) {
        self.canaries.map_or((0, 0), |canaries| canaries.recalls(self.sample.banks, bank_no))
    }

    /// Whether facts are stored in its banks.
    #[must_use]
    pub fn plants_canaries(&self) -> bool {
        self.canaries.is_some_and(|canaries| canaries.facts > 0)
    }

    /// Whether its banks end with a segment that retains and asks nothing of the dataset: canaries are asked for in it, and what the
    /// bank holds.
    #[must_use]
    pub fn closes_banks(&self) -> bool {
        self.plants_canaries() || self.lists
    }

    /// Who answers, for people: the scenario where nobody does.
    #[must_use]
    pub fn who_answers(&self) -> String {
        if self.scenario.answers() { self.answerer.display() } else { self.scenario.name().to_owned() }
    }

    /// Whose the answers of a run of the scenario reflect are; `None` in other scenarios.
    #[must_use]
    pub fn answered_by(&self) -> Option<AnsweredBy> {
        let by = if self.answerer.provider == "system" { AnsweredBy::Native } else { AnsweredBy::Fallback };
        (self.scenario == Scenario::Reflect).then_some(by)
    }

    /// What has to be known to read the figures of a run whose questions are not plainly recalled for and answered.
    #[must_use]
    pub fn reading_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let RecallPlan { rephrased, at_most } = self.recalls;
        if self.scenario == Scenario::Agentic {
            notes.push(format!(
                "a model searched by itself, at most {at_most} times a question: figures of retrieval are of the union of all \
                 hits in the order of first sight, times of recall and answer are sums over its moves"
            ));
        }
        if rephrased > 0 {
            notes.push(format!(
                "each question was searched for in its own words and in {rephrased} others: figures of retrieval are of the \
                 lists joined by reciprocal rank, times of recall are sums"
            ));
        }
        match self.answered_by() {
            Some(AnsweredBy::Native) => notes.push(
                "answers are native: the memory system's own; what was recalled beside them is not what they rest on".to_owned(),
            ),
            Some(AnsweredBy::Fallback) => notes.push(
                "answers are fallback: the memory system has none of its own, an answerer gave them from what it recalled"
                    .to_owned(),
            ),
            None => {}
        }
        notes.extend(self.judged_without_a_rubric());
        notes
    }

    /// Of a judge whose rubric was named: what its dataset expects of some questions was made for deterministic scorers.
    fn judged_without_a_rubric(&self) -> Option<String> {
        let profile = &self.dataset.profile;
        if self.judges.is_empty() || profile.only_rubric.is_none() || !profile.by_question.is_empty() {
            return None;
        }
        let has_none = |name: &&String| profile.categories.get(*name).is_some_and(|rules| rules.rubric.is_none());
        let names: Vec<&str> = self.sample.by_category.keys().filter(has_none).map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the dataset has no rubric for questions of {}: the judge is shown what deterministic scorers expect of them, such \
                 as letters or ids",
                names.join(", ")
            )
        })
    }

    /// How the scores of a metric are read: as its scorer says, or the rubric of the judges that give it; plainly for grades of
    /// judges and imported ones.
    #[must_use]
    pub fn metric(&self, name: &str) -> Scale {
        let mut described = self.scorers.iter().flat_map(|scorer| &scorer.metrics);
        let of_judge = |judge: &String| name.strip_prefix(judge.as_str())?.strip_prefix('.');
        let described = described.find(|metric| metric.name == name).or_else(|| {
            let part = self.judge_plan().metrics.iter().find_map(|judge| of_judge(judge).map(str::to_owned))?;
            self.judging.metrics.iter().find(|metric| metric.name == part)
        });
        described.map_or(Scale::PLAIN, |metric| metric.scale)
    }
}
