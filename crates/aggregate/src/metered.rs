//! What a memory system spent on models itself: the meter's calls, by what they were for (P34).

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    metered::{MeteredCalls, MeteredEnd, Service, Stage},
    money::PicoUsd,
    summary::{AccountsSpent, MeteredBank, MeteredFigures, MeteredModel, MeteredRefused, MeteredStage, MeteredSummary},
};

/// Dollars of unattributed calls, as a share of an amount that they may belong to, up to which that amount is told.
const MOST_UNATTRIBUTED: f64 = 0.01;

/// Calls for one bank.
#[derive(Default)]
struct OfBank {
    all: MeteredFigures,
    filling: MeteredFigures,
    unattributed: MeteredFigures,
}

impl OfBank {
    fn add(&mut self, of: &MeteredCalls) {
        add(&mut self.all, of);
        match of.key.stage {
            stage if Stage::FILLING.contains(&stage) => add(&mut self.filling, of),
            Stage::Unattributed => add(&mut self.unattributed, of),
            _ => {}
        }
    }

    /// `elsewhere`: dollars of calls of no known bank by which this one may have been filled as well.
    fn told(self, bank: Option<String>, elsewhere: f64) -> MeteredBank {
        let (known, range) = known_or_between(self.filling.usd_list(), self.unattributed.usd_list() + elsewhere);
        let is_bank = bank.is_some();
        MeteredBank {
            bank,
            figures: self.all,
            usd_filling: known.filter(|_| is_bank),
            usd_filling_range: range.filter(|_| is_bank),
        }
    }
}

/// Dollars for something, or the least and the most that they may be, where calls that may be for it too (`beside`) are no trifle.
fn known_or_between(usd: f64, beside: f64) -> (Option<f64>, Option<[f64; 2]>) {
    if beside <= MOST_UNATTRIBUTED * usd { (Some(usd), None) } else { (None, Some([usd, usd + beside])) }
}

/// What the figures are divided by, and how banks are called.
pub(crate) struct Around<'a> {
    /// Turns that the run's banks hold, each bank once.
    pub(crate) turns: u64,
    /// Questions that the memory system was asked.
    pub(crate) questions: u64,
    /// The dataset's id of a bank.
    pub(crate) bank_name: &'a dyn Fn(u32) -> String,
    /// What was failed on purpose.
    pub(crate) faults: Option<String>,
    /// What accounts say was spent meanwhile.
    pub(crate) accounts: Option<AccountsSpent>,
    /// What the meter itself has refused.
    pub(crate) refused: Vec<MeteredRefused>,
    /// Calls that were under way when a process was killed, and the most that they have cost: nothing else is known of them.
    pub(crate) lost: (u64, PicoUsd),
}

/// The figures of a run's metered calls.
pub(crate) fn summary(calls: &[MeteredCalls], around: Around<'_>) -> MeteredSummary {
    let mut total = MeteredFigures::default();
    let mut by_stage: BTreeMap<Stage, MeteredFigures> = BTreeMap::new();
    let mut by_model: BTreeMap<(&str, Service), MeteredFigures> = BTreeMap::new();
    let mut by_bank: BTreeMap<(bool, Option<u32>), OfBank> = BTreeMap::new();
    for of in calls {
        add(&mut total, of);
        add(by_stage.entry(of.key.stage).or_default(), of);
        add(by_model.entry((&of.model, of.key.service)).or_default(), of);
        by_bank.entry((of.key.bank.is_none(), of.key.bank)).or_default().add(of);
    }
    let Around { turns, questions, bank_name, faults, accounts, refused, lost } = around;
    total.failed = refused.iter().fold(total.failed, |sum, of| sum.saturating_add(of.calls));
    total.uncertain = total.uncertain.saturating_add(lost.0);
    total.usd_uncertain += lost.1.usd();
    let dollars = |stages: &[Stage]| {
        stages.iter().filter_map(|stage| by_stage.get(stage)).fold(0.0, |sum, of| sum + of.usd_list())
    };
    let filling = dollars(&Stage::FILLING);
    let asking = dollars(&Stage::ASKING);
    let unattributed = dollars(&[Stage::Unattributed]);
    let per = |usd: f64, times: f64, of: u64| {
        let each = |usd: f64| times * usd / of as f64;
        let (known, range) = known_or_between(usd, unattributed);
        (known.filter(|_| of > 0).map(each), range.filter(|_| of > 0).map(|range| range.map(each)))
    };
    let mut models: Vec<MeteredModel> = by_model
        .into_iter()
        .map(|((model, service), figures)| MeteredModel { model: model.to_owned(), service, figures })
        .collect();
    models.sort_by(|a, b| b.figures.usd.total_cmp(&a.figures.usd).then(b.figures.calls.cmp(&a.figures.calls)));
    let (usd_per_1000_turns, usd_per_1000_turns_range) = per(filling, 1000.0, turns);
    let (usd_per_question, usd_per_question_range) = per(asking, 1.0, questions);
    let by_stage = by_stage.into_iter().map(|(stage, figures)| MeteredStage { stage, figures }).collect();
    let elsewhere = by_bank.get(&(true, None)).map_or(0.0, |of| of.filling.usd_list() + of.unattributed.usd_list());
    let by_bank = by_bank.into_iter().map(|((_, bank), of)| of.told(bank.map(bank_name), elsewhere)).collect();
    MeteredSummary {
        total,
        by_stage,
        by_model: models,
        by_bank,
        turns,
        questions,
        usd_per_1000_turns,
        usd_per_question,
        usd_per_1000_turns_range,
        usd_per_question_range,
        faults,
        refused,
        accounts,
    }
}

/// Calls that questions took, and dollars as if no reply had come from the store: what is stored, checked or not attributed is for none
/// of them.
pub(crate) fn of_questions(metered: &MeteredSummary) -> (u64, f64) {
    let asking = metered.by_stage.iter().filter(|of| Stage::ASKING.contains(&of.stage));
    asking.fold((0, 0.0), |(calls, usd), of| (calls + of.figures.calls, usd + of.figures.usd_list()))
}

/// What readers must know before they believe the figures, one line each. `unpriced` are the models of paid providers that have
/// answered and of which nobody knows what they cost.
pub(crate) fn warnings(metered: &MeteredSummary, unpriced: &BTreeSet<String>) -> Vec<String> {
    let mut warnings = Vec::new();
    let MeteredFigures { calls, counted_here, .. } = metered.total;
    if !metered.total.is_seen() {
        warnings.push(
            "the meter has seen no call: the memory system calls no model, or it does not use the address that it was given"
                .to_owned(),
        );
    }
    warnings.extend(metered.refused.iter().map(MeteredRefused::words));
    let unpriced = unpriced.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    warnings.extend(metered.accounts.as_ref().and_then(|of| of_accounts(of, &unpriced)));
    if let Some(why) = metered.accounts.as_ref().and_then(|of| of.not_watched.as_ref()) {
        warnings.push(format!(
            "what the accounts say was spent is not known for a part of this run, or all of it ({why}): whether the memory system went \
             around the meter then, nobody can say"
        ));
    }
    warnings.extend(metered.faults.as_deref().and_then(|faults| of_faults(faults, &metered.total)));
    if counted_here > 0 {
        warnings.push(format!(
            "the provider told no tokens of {counted_here} of the memory system's {calls} calls: they were counted here, and what \
             they cost is an estimate"
        ));
    }
    let unknown: u64 = metered.by_bank.iter().filter(|of| of.bank.is_none()).map(|of| of.figures.calls).sum();
    if unknown > 0 {
        warnings.push(format!(
            "of {unknown} of the memory system's {calls} calls it is not known which bank they were for"
        ));
    }
    if !unpriced.is_empty() && metered.total.usd > 0.0 {
        warnings.push(format!("the memory system's calls of {unpriced} have no price and count as free"));
    }
    warnings
}

/// What calls have met on purpose. That one was slow is not told of it: it ends as any other.
fn of_faults(faults: &str, total: &MeteredFigures) -> Option<String> {
    let MeteredFigures { failed, failed_on_purpose, .. } = *total;
    if failed_on_purpose > 0 {
        return Some(format!(
            "{failed_on_purpose} of the memory system's {failed} failed calls were failed on purpose ({faults}): its score is one of \
             bad weather"
        ));
    }
    let may_be_slow = faults.contains("slow=") && total.calls + total.stored_calls > 0;
    may_be_slow.then(|| {
        format!("calls of the memory system may have been slowed on purpose ({faults}): its latencies are those of bad weather")
    })
}

/// What it means that accounts say more than was booked. `unpriced` are the models that have answered and have no price: what was paid
/// for them is in no booked dollar.
fn of_accounts(of: &AccountsSpent, unpriced: &str) -> Option<String> {
    let AccountsSpent { accounts, usd, .. } = of;
    let accounts = accounts.join(", ");
    let unseen = Some(of.usd_unseen()).filter(|unseen| *unseen > 0.0)?;
    Some(if unpriced.is_empty() {
        format!(
            "the accounts of this run ({accounts}) say that ${usd:.4} were spent while it was watched, of which ${unseen:.4} are in no \
             call that was seen here: the memory system goes around the meter, or somebody else uses the same key"
        )
    } else {
        format!(
            "the accounts of this run ({accounts}) say that ${usd:.4} were spent while it was watched, which cannot be compared with what \
             was booked: no price is known of {unpriced}; give each with --price MODEL=IN,OUT"
        )
    })
}

fn add(figures: &mut MeteredFigures, of: &MeteredCalls) {
    figures.seconds += of.duration_us as f64 / 1e6;
    if of.is_uncertain {
        figures.uncertain += of.calls;
        figures.usd_uncertain += of.cost.usd();
        return;
    }
    match of.end {
        MeteredEnd::Answered { counted_here } => {
            figures.calls += of.calls;
            figures.counted_here += if counted_here { of.calls } else { 0 };
        }
        MeteredEnd::Stored => figures.stored_calls += of.calls,
        MeteredEnd::FailedOnPurpose(_) => {
            figures.failed += of.calls;
            figures.failed_on_purpose += of.calls;
        }
        MeteredEnd::Refused(_) | MeteredEnd::Cut | MeteredEnd::NotReached => figures.failed += of.calls,
    }
    figures.prompt_tokens = figures.prompt_tokens.saturating_add(of.prompt_tokens);
    figures.completion_tokens = figures.completion_tokens.saturating_add(of.completion_tokens);
    figures.usd += of.cost.usd();
    figures.usd_saved += of.saved.usd();
}

#[cfg(test)]
mod tests {
    use bench_proto::metered::MeteredKey;

    use super::*;

    fn calls(bank: Option<u32>, stage: Stage, end: MeteredEnd, number: u64, usd: &str) -> MeteredCalls {
        MeteredCalls {
            key: MeteredKey { bank, stage, service: Service::Chat },
            model: "gpt-4o-mini".to_owned(),
            end,
            is_uncertain: end == MeteredEnd::Cut,
            calls: number,
            prompt_tokens: 10 * number,
            completion_tokens: number,
            cost: PicoUsd::parse(usd).expect("an amount"),
            duration_us: 500_000 * number,
            saved: PicoUsd::ZERO,
        }
    }

    fn around(bank_name: &dyn Fn(u32) -> String) -> Around<'_> {
        let (refused, lost) = (Vec::new(), (0, PicoUsd::ZERO));
        Around { turns: 2_000, questions: 10, bank_name, faults: None, accounts: None, refused, lost }
    }

    #[test]
    fn filling_is_told_from_asking_and_what_is_uncertain_from_both() {
        let answered = MeteredEnd::Answered { counted_here: false };
        let name = |bank: u32| format!("conv-{bank}");
        let told = summary(
            &[
                calls(Some(0), Stage::Retain, answered, 40, "0.4"),
                calls(Some(0), Stage::Consolidate, answered, 5, "0.2"),
                calls(Some(1), Stage::Recall, MeteredEnd::Answered { counted_here: true }, 10, "0.05"),
                calls(Some(1), Stage::Retain, MeteredEnd::Refused(429), 2, "0"),
                calls(Some(1), Stage::Retain, MeteredEnd::FailedOnPurpose(500), 1, "0"),
                calls(None, Stage::Unattributed, answered, 1, "0.005"),
                calls(Some(1), Stage::Retain, MeteredEnd::Cut, 2, "9"),
            ],
            around(&name),
        );
        let MeteredFigures { calls, failed, uncertain, counted_here, usd, usd_uncertain, .. } = told.total;
        assert_eq!((calls, failed, uncertain, counted_here), (56, 3, 2, 10));
        assert_eq!(told.total.failed_on_purpose, 1);
        assert!((usd - 0.655).abs() < 1e-12 && (usd_uncertain - 9.0).abs() < 1e-12, "{usd} {usd_uncertain}");
        let near = |usd: Option<f64>, wanted: f64| usd.is_some_and(|usd| (usd - wanted).abs() < 1e-12);
        // half a cent may belong to either: nothing beside 60 cents, a tenth of 5
        assert!(near(told.usd_per_1000_turns, 0.6 / 2.0) && told.usd_per_question.is_none(), "{told:?}");
        let banks: Vec<_> = told.by_bank.iter().map(|of| (of.bank.as_deref(), of.figures.calls)).collect();
        assert_eq!(banks, [(Some("conv-0"), 45), (Some("conv-1"), 10), (None, 1)]);
        // the same half cent is nothing beside the first bank's 60, and may be all of the second's
        let filling: Vec<_> = told.by_bank.iter().map(|of| of.usd_filling).collect();
        assert!(near(filling[0], 0.6) && filling[1..] == [None, None], "{filling:?}");
        let warned = warnings(&told, &BTreeSet::new());
        assert!(warned.iter().any(|line| line.contains("counted here")), "{warned:?}");
        assert!(warned.iter().any(|line| line.contains("not known which bank")), "{warned:?}");
    }

    #[test]
    fn what_filling_costs_is_not_told_beside_calls_that_may_be_for_it() {
        let name = |_: u32| String::new();
        let answered = MeteredEnd::Answered { counted_here: false };
        let calls = [
            calls(Some(0), Stage::Retain, answered, 94, "0.94"),
            calls(None, Stage::Unattributed, answered, 5, "0.05"),
        ];
        let told = summary(&calls, around(&name));
        assert_eq!((told.usd_per_1000_turns, told.usd_per_question), (None, None), "{told:?}");
        assert_eq!(told.by_bank.iter().map(|of| of.usd_filling).collect::<Vec<_>>(), [None, None]);
        let is_near = |range: Option<[f64; 2]>, wanted: [f64; 2]| {
            range.is_some_and(|range| range.iter().zip(wanted).all(|(usd, wanted)| (usd - wanted).abs() < 1e-12))
        };
        assert!(
            is_near(told.usd_per_1000_turns_range, [0.47, 0.495]),
            "what filling costs at least, and at most: {told:?}"
        );
        assert!(is_near(told.usd_per_question_range, [0.0, 0.005]), "{told:?}");
        assert!(is_near(told.by_bank[0].usd_filling_range, [0.94, 0.99]), "{told:?}");
        assert_eq!(told.by_bank[1].usd_filling_range, None, "no bank");
    }

    #[test]
    fn p34_calls_of_no_known_bank_are_told_of_where_all_are_such() {
        let answered = MeteredEnd::Answered { counted_here: false };
        let told = summary(&[calls(None, Stage::Unattributed, answered, 3, "0.1")], around(&|_| String::new()));
        let warned = warnings(&told, &BTreeSet::new()).join("\n");
        assert!(warned.contains("of 3 of the memory system's 3 calls it is not known"), "{warned}");
    }

    #[test]
    fn p34_a_meter_that_has_refused_every_call_has_seen_them_and_says_why() {
        let refused = |why: &str, calls| MeteredRefused {
            code: "model_not_found".to_owned(),
            why: why.to_owned(),
            calls,
            at_least: false,
        };
        let refused = vec![refused("my-own-model has no price: submit the run with --price", 50), refused("other", 2)];
        let told = summary(&[], Around { refused, ..around(&|_| String::new()) });
        assert_eq!((told.total.failed, told.total.calls, told.total.is_seen()), (52, 0, true));
        let warned = warnings(&told, &BTreeSet::new());
        assert!(warned.iter().all(|line| !line.contains("has seen no call")), "{warned:?}");
        assert!(warned[0].starts_with("the meter refused 50 calls: my-own-model has no price"), "{warned:?}");
        assert!(warned[1].starts_with("the meter refused 2 calls: other"), "{warned:?}");
    }

    #[test]
    fn p34_calls_that_were_under_way_in_a_killed_process_are_uncertain() {
        let cut = calls(Some(0), Stage::Retain, MeteredEnd::Cut, 2, "0.5");
        let lost = (12, PicoUsd::parse("0.25").expect("an amount"));
        let told = summary(&[cut], Around { lost, ..around(&|_| String::new()) });
        assert_eq!((told.total.uncertain, told.by_stage[0].figures.uncertain), (14, 2));
        assert!((told.total.usd_uncertain - 0.75).abs() < 1e-12, "{told:?}");
    }

    #[test]
    fn p34_faults_that_no_call_has_met_make_no_bad_weather() {
        let warned = |faults: &str, calls: &[MeteredCalls]| {
            let told = summary(calls, Around { faults: Some(faults.to_owned()), ..around(&|_| String::new()) });
            let weather = warnings(&told, &BTreeSet::new()).into_iter().filter(|line| line.contains("bad weather"));
            weather.collect::<Vec<_>>().join("; ")
        };
        let stored = calls(Some(0), Stage::Retain, MeteredEnd::Stored, 110, "0");
        let failed = calls(Some(0), Stage::Retain, MeteredEnd::FailedOnPurpose(429), 1, "0");
        let both = [stored.clone(), failed];
        assert_eq!(warned("429=0.2", std::slice::from_ref(&stored)), "");
        let told =
            "1 of the memory system's 1 failed calls were failed on purpose (429=0.2): its score is one of bad weather";
        assert_eq!(warned("429=0.2", &both), told);
        // nothing tells of a call that it was slow
        let told = "calls of the memory system may have been slowed on purpose (slow=0.5): its latencies are those of bad weather";
        assert_eq!(warned("slow=0.5", &[stored]), told);
        assert_eq!(warned("slow=0.5", &[]), "");
        assert!(warned("429=0.2,slow=0.5", &both).starts_with("1 of the memory system's 1 failed calls"));
    }

    #[test]
    fn what_came_from_the_store_costs_what_it_had_cost() {
        let stored = MeteredCalls {
            saved: PicoUsd::parse("0.2").expect("an amount"),
            ..calls(Some(0), Stage::Retain, MeteredEnd::Stored, 4, "0")
        };
        let told = summary(&[stored], around(&|_| String::new()));
        assert!(told.usd_per_1000_turns.is_some_and(|usd| (usd - 0.1).abs() < 1e-12), "{told:?}");
        let warned = warnings(&told, &BTreeSet::new());
        assert!(told.total.is_seen() && warned.iter().all(|line| !line.contains("has seen no call")));
    }

    #[test]
    fn p34_nobody_is_accused_of_what_models_without_a_price_have_cost() {
        let name = |_: u32| String::new();
        let answered = MeteredEnd::Answered { counted_here: false };
        let warned = |calls: &[MeteredCalls], unpriced: &[&str]| {
            let (accounts, usd) = (vec!["openrouter".to_owned()], 0.5);
            let accounts = AccountsSpent { accounts, usd, usd_booked: 0.01, not_watched: None };
            let unpriced = unpriced.iter().map(|&model| model.to_owned()).collect();
            warnings(&summary(calls, Around { accounts: Some(accounts), ..around(&name) }), &unpriced).join("\n")
        };
        let priced = calls(Some(0), Stage::Retain, answered, 1, "0.01");
        let free = MeteredCalls { model: "house".to_owned(), ..calls(Some(0), Stage::Retain, answered, 9, "0") };
        let told = warned(&[priced.clone(), free.clone()], &["house"]);
        assert!(told.contains("cannot be compared") && told.contains("house; give each with --price"), "{told}");
        assert!(!told.contains("goes around the meter, or"), "{told}");
        // what is known to cost nothing hides nothing
        let told = warned(&[priced, free], &[]);
        assert!(told.contains("goes around the meter, or") && !told.contains("no price"), "{told}");
    }

    #[test]
    fn a_meter_that_has_seen_nothing_says_so() {
        let name = |_: u32| String::new();
        let told = summary(&[], around(&name));
        assert!(told.usd_per_question.is_some_and(|usd| usd == 0.0 && usd.is_sign_positive()), "{told:?}");
        assert!(warnings(&told, &BTreeSet::new())[0].contains("has seen no call"));
        // what prices and rounding make is no finding
        for (usd, usd_booked, unseen) in
            [(1.04, 1.0, 0.0), (0.008, 0.0, 0.0), (1.06, 1.0, 0.06), (0.5, 1.0, 0.0), (0.02, 0.0, 0.02)]
        {
            let accounts =
                AccountsSpent { accounts: vec!["openrouter".to_owned()], usd, usd_booked, not_watched: None };
            assert!((accounts.usd_unseen() - unseen).abs() < 1e-12, "{accounts:?}");
            let told = summary(&[], Around { accounts: Some(accounts), ..around(&name) });
            let warned = warnings(&told, &BTreeSet::new());
            let is_told = warned.iter().any(|line| line.contains("goes around the meter, or somebody else"));
            assert_eq!(is_told, unseen > 0.0, "{usd} of {usd_booked}");
        }
        let none = summary(&[], Around { turns: 0, questions: 0, ..around(&name) });
        assert_eq!((none.usd_per_1000_turns, none.usd_per_question), (None, None));
        assert_eq!(
            (none.usd_per_1000_turns_range, none.usd_per_question_range),
            (None, None),
            "there is nothing to ask of"
        );
    }
}
