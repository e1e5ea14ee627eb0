//! Agreement of graders on the same answers, pass against fail, beyond chance.
//!
//! Several votes: Fleiss' kappa (1971), (P̄ − P̄e) / (1 − P̄e) with P_i = (Σ_j n_ij² − n) / (n (n − 1)) per answer and P̄e = Σ_j p_j².
//! Two judges: Cohen's kappa (1960), (p_o − p_e) / (1 − p_e).

use bench_proto::{ids::TaskKey, summary::Agreement};

/// From which grade a vote passes an answer.
const PASS: f64 = 0.5;

/// Votes of judges in few bytes: a judge task's key and whether it passed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Votes(Vec<i64>);

impl Votes {
    pub(crate) fn add(&mut self, task: TaskKey, score: f64) {
        self.0.push(task.0 << 1 | i64::from(score >= PASS));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
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
    let share = passes.iter().map(|passes| f64::from(*passes)).sum::<f64>() / (items * n);
    let by_chance = share * share + (1.0 - share) * (1.0 - share);
    agreement(between, raters, passes.len() as u64, observed, by_chance, "Fleiss")
}

/// Two graders of the same answers: `pairs` of grades.
pub(crate) fn cohen(between: &str, pairs: impl Iterator<Item = (f64, f64)>) -> Option<Agreement> {
    let mut table = [[0_u64; 2]; 2];
    pairs.for_each(|(a, b)| table[usize::from(a >= PASS)][usize::from(b >= PASS)] += 1);
    let n: u64 = table.as_flattened().iter().sum();
    if n == 0 {
        return None;
    }
    let share = |count: u64| count as f64 / n as f64;
    let observed = share(table[0][0] + table[1][1]);
    let (a, b) = (share(table[1][0] + table[1][1]), share(table[0][1] + table[1][1]));
    let by_chance = a * b + (1.0 - a) * (1.0 - b);
    Some(agreement(between, 2, n, observed, by_chance, "Cohen"))
}

fn agreement(between: &str, raters: u32, n: u64, observed: f64, by_chance: f64, statistic: &str) -> Agreement {
    // every grade the same: chance agrees as often, and nothing beyond it can be seen
    let kappa = (n > 0 && by_chance < 1.0).then(|| (observed - by_chance) / (1.0 - by_chance));
    Agreement {
        between: between.to_owned(),
        raters,
        n,
        agreement: (n > 0).then_some(observed),
        kappa,
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
        assert_eq!(got.agreement, Some(0.7));
    }

    const FLEISS: f64 = 0.39423076923076905;

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
