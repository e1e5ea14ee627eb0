//! Agreement of graders on the same answers, pass against fail, beyond chance.
//!
//! Several votes: Fleiss' kappa (1971), (P̄ − P̄e) / (1 − P̄e) with P_i = (Σ_j n_ij² − n) / (n (n − 1)) per answer and P̄e = Σ_j p_j².
//! Two judges: Cohen's kappa (1960), (p_o − p_e) / (1 − p_e).
//!
//! Both are 1 − D_o / D_e, the disagreement seen over that by chance. Their standard error is that of the linearised statistic,
//! √(Σ u_i² / (n (n − 1))) with u_i = ((1 − κ) · (D_e's change with answer i) − (d_i − D_o)) / D_e: Gwet 2021, which is
//! Fleiss, Cohen and Everitt 1969 for two judges up to n / (n − 1). Answers are the units: whether graders agree by chance is a
//! question about them, not about the banks. Where all graders agree, the interval reaches as far as answers could be on which
//! they do not, of which so many say nothing.

use std::collections::HashMap;

use bench_proto::{
    ids::TaskKey,
    metric::Scale,
    summary::{Agreement, Interval},
};

use crate::interval::{others, t_quantile};

/// How the votes of judges are read.
const VOTE: Scale = Scale::PLAIN;

/// Votes of judges in few bytes: a judge task's key and whether it passed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Votes(Vec<i64>);

impl Votes {
    pub(crate) fn add(&mut self, task: TaskKey, score: f64) {
        self.0.push(task.0 << 1 | i64::from(VOTE.passes(score)));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Whether none is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The votes on each answer, by the answer's task: their numbers, and whether they passed it.
    pub(crate) fn by_question(&self, judge: usize) -> HashMap<TaskKey, Vec<(u32, bool)>> {
        let mut votes: HashMap<TaskKey, Vec<(u32, bool)>> = HashMap::new();
        for packed in &self.0 {
            let (task, passed) = (TaskKey(packed >> 1), packed & 1 == 1);
            if task.judge_no() as usize == judge {
                votes.entry(task.question_of()).or_default().push((task.vote(), passed));
            }
        }
        votes
    }

    /// The share of an answer's votes that passed it, by the answer's task; nothing for judges of which no votes were added.
    pub(crate) fn shares(&self, judge: usize) -> HashMap<TaskKey, f64> {
        let share =
            |votes: &[(u32, bool)]| votes.iter().filter(|(_, passed)| *passed).count() as f64 / votes.len() as f64;
        self.by_question(judge).into_iter().map(|(task, votes)| (task, share(&votes))).collect()
    }

    /// The agreement of each judge's votes, for judges with several; answers with fewer votes than the most are left out.
    pub(crate) fn agreements(&self, metrics: &[String]) -> Vec<Agreement> {
        let of_judge = |judge: usize| {
            let votes = self.0.iter().map(|packed| (TaskKey(packed >> 1), packed & 1 == 1));
            let mut votes: Vec<(TaskKey, bool)> = votes.filter(|(task, _)| task.judge_no() as usize == judge).collect();
            votes.sort_unstable();
            let answers: Vec<(u32, u32)> = votes
                .chunk_by(|x, y| x.0.question_of() == y.0.question_of())
                .map(|of_answer| (of_answer.iter().filter(|(_, pass)| *pass).count() as u32, of_answer.len() as u32))
                .collect();
            let raters = answers.iter().map(|(_, votes)| *votes).max().unwrap_or(0);
            (raters > 1).then(|| {
                let whole: Vec<u32> = answers.iter().filter(|(_, n)| *n == raters).map(|(passes, _)| *passes).collect();
                fleiss(&format!("{} (votes)", metrics[judge]), raters, &whole)
            })
        };
        (0..metrics.len()).filter_map(of_judge).collect()
    }
}

/// `passes`: for each answer the number of its `raters` grades that passed it.
fn fleiss(between: &str, raters: u32, passes: &[u32]) -> Agreement {
    let (n, items) = (f64::from(raters), passes.len() as f64);
    let pairs = |passes: u32| {
        let (yes, no) = (f64::from(passes), n - f64::from(passes));
        (yes * yes + no * no - n) / (n * (n - 1.0))
    };
    let observed = passes.iter().map(|passes| pairs(*passes)).sum::<f64>() / items;
    let passed: u64 = passes.iter().map(|passes| u64::from(*passes)).sum();
    let share = passed as f64 / (items * n);
    let by_chance = share * share + (1.0 - share) * (1.0 - share);
    let answer = |passes: &u32| Answer {
        times: 1.0,
        disagrees: 1.0 - pairs(*passes),
        by_chance: 2.0 * (1.0 - 2.0 * share) * (f64::from(*passes) / n - share),
    };
    let seen = Seen { raters, n: passes.len() as u64, passed, observed, by_chance };
    agreement(between, "Fleiss", &seen, passes.iter().map(answer))
}

/// Two graders of the same answers: `pairs` of grades.
pub(crate) fn cohen(between: &str, pairs: impl Iterator<Item = (f64, f64)>) -> Option<Agreement> {
    let mut table = [[0_u64; 2]; 2];
    pairs.for_each(|(a, b)| table[usize::from(VOTE.passes(a))][usize::from(VOTE.passes(b))] += 1);
    let n: u64 = table.as_flattened().iter().sum();
    if n == 0 {
        return None;
    }
    let share = |count: u64| count as f64 / n as f64;
    let observed = share(table[0][0] + table[1][1]);
    let (a, b) = (share(table[1][0] + table[1][1]), share(table[0][1] + table[1][1]));
    let by_chance = a * b + (1.0 - a) * (1.0 - b);
    let answer = |(x, y): (usize, usize)| Answer {
        times: table[x][y] as f64,
        disagrees: f64::from(u8::from(x != y)),
        by_chance: (1.0 - 2.0 * b) * (x as f64 - a) + (1.0 - 2.0 * a) * (y as f64 - b),
    };
    let passed = table[1][0] + table[0][1] + 2 * table[1][1];
    let seen = Seen { raters: 2, n, passed, observed, by_chance };
    Some(agreement(between, "Cohen", &seen, [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().map(answer)))
}

/// Sums over all answers.
struct Seen {
    raters: u32,
    n: u64,
    /// Grades that passed.
    passed: u64,
    observed: f64,
    by_chance: f64,
}

/// What answers of one kind bring to the standard error.
struct Answer {
    /// Answers of this kind.
    times: f64,
    /// d_i: share of disagreeing pairs of grades.
    disagrees: f64,
    /// Change of the disagreement by chance.
    by_chance: f64,
}

fn agreement(between: &str, statistic: &str, seen: &Seen, answers: impl Iterator<Item = Answer>) -> Agreement {
    let Seen { raters, n, passed, observed, by_chance } = *seen;
    // every grade the same: chance agrees as often, and nothing beyond it can be seen
    let kappa = (n > 0 && by_chance < 1.0).then(|| (observed - by_chance) / (1.0 - by_chance));
    let interval = |kappa: f64| {
        let part = |answer: Answer| {
            let u = ((1.0 - kappa) * answer.by_chance - (answer.disagrees - (1.0 - observed))) / (1.0 - by_chance);
            answer.times * u * u
        };
        let freedom = n - 1;
        let error = (answers.map(part).sum::<f64>() / (n as f64 * freedom as f64)).sqrt();
        let half = t_quantile(freedom as f64) * error;
        let method = format!("linearised, t, {freedom} df");
        // few answers on which all agree are no proof that they always will: as many leave a share of others open
        let (open, beyond) = (others(n as f64), 1.0 - by_chance);
        let (low, high) = (kappa - open * observed / beyond, kappa + open * (1.0 - observed) / beyond);
        let wide = Interval { low: (kappa - half).max(-1.0), high: (kappa + half).min(1.0), method };
        if wide.low <= low && high.min(1.0) <= wide.high {
            return wide;
        }
        let method = format!("{}, rule of three", wide.method);
        Interval { low: wide.low.min(low).max(-1.0), high: wide.high.max(high).min(1.0), method }
    };
    Agreement {
        between: between.to_owned(),
        raters,
        n,
        agreement: (n > 0).then_some(observed),
        kappa,
        kappa_ci95: kappa.filter(|_| n > 1).map(interval),
        rarer: (n > 0).then(|| passed.min(n * u64::from(raters) - passed)),
        statistic: statistic.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappas_match_statsmodels() {
        // t = np.array([[3, 0], [2, 1], [0, 3], [1, 2], [3, 0], [3, 0], [1, 2]]); inter_rater.fleiss_kappa(t)
        let got = fleiss("judge (votes)", 3, &[3, 2, 0, 1, 3, 3, 1]);
        assert!((got.kappa.expect("has one") - FLEISS).abs() < 1e-12, "{got:?}");
        // inter_rater.cohens_kappa([[20, 5], [10, 15]]).kappa
        let counts = [((0.0, 0.0), 20), ((0.0, 1.0), 5), ((1.0, 0.0), 10), ((1.0, 1.0), 15)];
        let pairs = counts.into_iter().flat_map(|(pair, n)| std::iter::repeat_n(pair, n));
        let got = cohen("judge / judge-2", pairs).expect("has pairs");
        assert!((got.kappa.expect("has one") - 0.4).abs() < 1e-12, "{got:?}");
        assert_eq!((got.agreement, got.rarer), (Some(0.7), Some(45)));
    }

    #[test]
    fn p45_the_intervals_of_kappas_match_statsmodels_and_numpy() {
        let error = |agreement: &Agreement| {
            let ci = agreement.kappa_ci95.as_ref().expect("has one");
            (agreement.kappa.expect("has one") - ci.low) / t_quantile(agreement.n as f64 - 1.0)
        };
        let counts = [((0.0, 0.0), 20), ((0.0, 1.0), 5), ((1.0, 0.0), 10), ((1.0, 1.0), 15)];
        let pairs = counts.into_iter().flat_map(|(pair, n)| std::iter::repeat_n(pair, n));
        let cohen = cohen("judge / judge-2", pairs).expect("has pairs");
        // inter_rater.cohens_kappa([[20, 5], [10, 15]]).std_kappa, which divides by n instead of n - 1
        assert!((error(&cohen) - 0.126_996_062_931_100_33 * (50.0_f64 / 49.0).sqrt()).abs() < 1e-12);
        // the same formula in numpy
        let fleiss = fleiss("judge (votes)", 3, &[3, 2, 0, 1, 3, 3, 1]);
        assert!((error(&fleiss) - 0.262_197_964_103_991_8).abs() < 1e-12, "{fleiss:?}");
        assert_eq!(fleiss.rarer, Some(8));
    }

    const FLEISS: f64 = 0.39423076923076905;

    #[test]
    fn graders_that_always_agree_are_as_sure_as_there_are_answers() {
        let interval = |n: usize| {
            let pairs = [(0.0, 0.0), (1.0, 1.0)].into_iter().flat_map(|pair| std::iter::repeat_n(pair, n / 2));
            let agreement = cohen("judge / judge-2", pairs).expect("has pairs");
            assert_eq!(agreement.kappa, Some(1.0));
            agreement.kappa_ci95.expect("has one")
        };
        // 1 - (1 - scipy.stats.beta.ppf(0.025, 10, 1)) / 0.5: by chance half of the grades agree
        let ten = interval(10);
        assert!((ten.low - 0.383_005_8).abs() < 1e-5 && ten.high == 1.0, "{ten:?}");
        let hundred = interval(100);
        assert!(ten.low < hundred.low && hundred.low < 1.0, "{hundred:?}");
        // of two nothing is known
        assert!(interval(2).low < 0.0);
    }

    #[test]
    fn unanimity_has_no_kappa_and_missing_votes_are_left_out() {
        let mut votes = Votes::default();
        for (index, passes) in [(0, [true, true]), (1, [true, true])] {
            for (vote, pass) in (0..).zip(passes) {
                votes.add(TaskKey::judge(0, index, 0, vote), f64::from(u8::from(pass)));
            }
        }
        votes.add(TaskKey::judge(0, 2, 0, 0), 0.0);
        let all = votes.agreements(&["judge".to_owned()]);
        assert_eq!((all.len(), all[0].n, all[0].raters, all[0].kappa, all[0].agreement), (1, 2, 2, None, Some(1.0)));
        assert!(cohen("x", std::iter::empty()).is_none());
    }
}
