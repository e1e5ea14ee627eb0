//! What two sides have in common that was paid or made once.

use bench_proto::{call::Phase, metric::MetricSpec, scenario::Scenario, spec::TakenOver};

use super::*;
use crate::AggregateInput;

/// The summary of a run of this id that has no questions yet.
fn named(id: &str, input: &AggregateInput) -> Summary {
    let mut summary = Aggregator::new(input.clone()).finish(std::iter::empty::<&str>()).summary;
    summary.run.id = id.to_owned();
    summary
}

/// All questions by a metric.
fn facts(metric: &str) -> RunFacts {
    let mut facts = RunFacts::new(metric, 10);
    (0..300).for_each(|i| facts.add(&question(i)));
    facts
}

#[test]
fn figures_of_a_fork_are_a_copy_where_it_has_all_that_they_rest_on() {
    let (input, facts) = (input(300), facts("session-recall@10"));
    let spec = |scenario, judged: bool, taken_over: &TakenOver| {
        let mut spec = RunSpec { scenario, taken_over: taken_over.clone(), ..input.spec.clone() };
        spec.judges.truncate(usize::from(judged));
        spec
    };
    let of_parts = |mut spec: RunSpec| {
        spec.judging.metrics = vec![MetricSpec { name: "hallucination".to_owned(), scale: Scale::lower(0.0) }];
        spec
    };
    let own = TakenOver::default();
    let (recalls, both) = (TakenOver::of_fork(Phase::Answer, "a", &own), TakenOver::of_fork(Phase::Judge, "a", &own));
    let copied = |a: &RunSpec, b: &RunSpec, metric: &str| {
        let sides = [("a", a), ("b", b)].map(|(id, spec)| (spec, named(id, &input)));
        let members = sides.each_ref().map(|(spec, summary)| [Member::new(spec, summary, "a".to_owned(), false)]);
        let side = |at: usize| {
            let (spec, summary): &(&RunSpec, Summary) = &sides[at];
            Side { spec, summary, facts: &facts, members: &members[at] }
        };
        let options = CompareOptions { metric: Some(metric.to_owned()), ..CompareOptions::default() };
        compare(&side(0), &side(1), &options).copied
    };
    let (only, answer) = (Scenario::RetrieveOnly, Scenario::Answer);
    for (a, b, metric, expected) in [
        (spec(only, false, &own), spec(answer, false, &recalls), "session-recall@10", true),
        (spec(only, false, &recalls), spec(answer, false, &recalls), "session-recall@10", true),
        (spec(only, false, &own), spec(only, false, &own), "session-recall@10", false),
        (spec(answer, false, &own), spec(answer, false, &recalls), "locomo-f1", false),
        (spec(answer, false, &own), spec(answer, false, &both), "locomo-f1", true),
        (spec(answer, true, &own), spec(answer, true, &both), "judge", false),
        // what a judge measures beside its grade is measured anew with it
        (of_parts(spec(answer, true, &own)), of_parts(spec(answer, true, &both)), "judge.hallucination", false),
    ] {
        assert_eq!(copied(&a, &b, metric), expected, "{metric} {:?}", b.taken_over);
    }
}

#[test]
fn a_mean_has_in_common_what_one_of_its_runs_has() {
    let (input, facts) = (input(300), facts("locomo-f1"));
    let run = |id: &str, lineage: &str| Member {
        id: id.to_owned(),
        lineage: lineage.to_owned(),
        imported: false,
        taken_over: TakenOver::default(),
        judged_from_store: false,
        calls_of: Vec::new(),
    };
    let (repeats, of_mean) = ([run("rep-r1", "rep-r1"), run("rep-r2", "rep-r2")], named("rep", &input));
    let beside = |other: Member| {
        let summary = named(&other.id, &input);
        let mean = Side { spec: &input.spec, summary: &of_mean, facts: &facts, members: &repeats };
        let alone = [other];
        let single = Side { spec: &input.spec, summary: &summary, facts: &facts, members: &alone };
        let options = CompareOptions { metric: Some("locomo-f1".to_owned()), ..CompareOptions::default() };
        let (there, back) = (compare(&mean, &single, &options), compare(&single, &mean, &options));
        assert_eq!((there.independent, &there.copied_of), (back.independent, &back.copied_of));
        assert_eq!(there.copied, there.copied_of.is_some());
        (there.independent, there.copied_of, there.notes.join("; "))
    };
    let (independent, copied_of, notes) = beside(run("other", "other"));
    assert_eq!((independent, copied_of), (true, None), "{notes}");
    let forked = TakenOver::of_fork(Phase::Judge, "rep-r2", &TakenOver::default());
    let fork = Member { taken_over: forked, ..run("fork", "rep-r2") };
    let shared = Member { calls_of: vec!["rep-r1".to_owned()], ..run("shared", "shared") };
    for (other, of, said) in [
        (run("rep-r1", "rep-r1"), None, "run rep-r1 is a part of both sides"),
        (run("retried", "rep-r2"), None, "rep-r2 (one run of the first) and retried share paid answers"),
        (shared, None, "shared used stored answers of rep-r1 (one run of the first)"),
        (fork.clone(), Some("rep-r2"), "rep-r2 (one run of the first) and fork both have the answers of rep-r2"),
        (Member { imported: true, ..fork }, None, "rep-r2 (one run of the first) and fork share paid answers"),
    ] {
        let (independent, copied_of, notes) = beside(other);
        assert!(!independent && notes.contains(said), "{said}: {notes}");
        assert_eq!(copied_of.as_deref(), of, "{notes}");
    }
}

/// The baseline of `last:K` has the settings of the newest run, whose score is not that of all of them.
#[test]
fn a_mean_does_not_show_the_score_of_the_run_that_lends_its_settings() {
    let (input, facts) = (input(300), facts("judge"));
    let mut newest = named("newest", &input);
    newest.headline.value = Some(0.9);
    let metric = newest.headline.metric.clone();
    let shown = |ids: &[&str]| {
        let member =
            |id: &&str| Member { id: (*id).to_owned(), ..Member::new(&input.spec, &newest, (*id).to_owned(), false) };
        let members: Vec<Member> = ids.iter().map(member).collect();
        let side = Side { spec: &input.spec, summary: &newest, facts: &facts, members: &members };
        let compared = compared_run(&side, &metric);
        (compared.value, compared.ci95)
    };
    assert_eq!(shown(&["newest"]).0, Some(0.9), "a run has its own");
    assert_eq!(shown(&["newest", "older"]), (None, None));
    assert_eq!(shown(&["newer", "older"]).0, Some(0.9), "that of a mean which has a summary of its own");
}

#[test]
fn one_run_on_both_sides_is_named_wherever_it_was_read() {
    let (input, facts) = (input(300), facts("locomo-f1"));
    let told = |begun: Option<&str>, digest: &str| {
        let mut summary = named("a", &input);
        (summary.run.started_at, summary.result_digest) = (begun.map(str::to_owned), digest.to_owned());
        summary
    };
    let (begun, this) = (Some("2026-11-29T01:00:00Z"), told(Some("2026-11-29T01:00:00Z"), "d"));
    let beside = |other: &Summary| {
        let stored = [Member::new(&input.spec, &this, "a".to_owned(), false)];
        // a folder says nothing of a lineage
        let of_folder = [Member::new(&input.spec, other, "folder:a".to_owned(), false)];
        let a = Side { spec: &input.spec, summary: &this, facts: &facts, members: &stored };
        let b = Side { spec: &input.spec, summary: other, facts: &facts, members: &of_folder };
        let options = CompareOptions { metric: Some("locomo-f1".to_owned()), ..CompareOptions::default() };
        let compared = compare(&a, &b, &options);
        (compared.independent, compared.notes.join("; "))
    };
    // before and after a `retry`, and as it is
    for same in [told(begun, "e"), told(None, "d")] {
        let (independent, notes) = beside(&same);
        assert!(!independent && notes.contains("both sides are run a: their noise is not independent"), "{notes}");
    }
    let (independent, notes) = beside(&told(Some("2026-11-28T01:00:00Z"), "e"));
    assert!(independent, "a run of another store that has the id too: {notes}");
}

#[test]
fn dollars_of_which_one_side_alone_holds_the_filling_are_told() {
    let (input, facts) = (input(300), facts("judge"));
    let noted = |own: bool, asks_filled: bool| {
        let mut first = named("a", &input);
        first.usage.retain.calls = u64::from(own);
        let second = named("b", &input);
        let mut spec = input.spec.clone();
        if asks_filled {
            spec.taken_over.banks_of.push("a".to_owned());
        }
        let of_a = [Member::new(&input.spec, &first, "a".to_owned(), false)];
        let of_b = [Member::new(&spec, &second, "b".to_owned(), false)];
        let a = Side { spec: &input.spec, summary: &first, facts: &facts, members: &of_a };
        let b = Side { spec: &spec, summary: &second, facts: &facts, members: &of_b };
        let notes = |a: &Side<'_>, b: &Side<'_>, start: &str| {
            compare(a, b, &CompareOptions::default()).notes.iter().any(|note| note.starts_with(start))
        };
        [notes(&a, &b, "the dollars of the first run hold"), notes(&b, &a, "the dollars of the second run hold")]
    };
    assert_eq!([noted(true, true), noted(true, false), noted(false, true)], [[true; 2], [false; 2], [false; 2]]);
}

/// The lineage of a run that came from an archive may be its own id.
#[test]
fn a_restored_fork_shares_the_answers_of_its_source() {
    let (input, facts) = (input(300), facts("judge"));
    let both = TakenOver::of_fork(Phase::Judge, "a", &TakenOver::default());
    let recalls = TakenOver::of_fork(Phase::Answer, "a", &TakenOver::default());
    let of_lineages = |first: (&str, &str, &TakenOver), second: (&str, &str, &TakenOver)| {
        let sides = [first, second].map(|(id, lineage, taken_over)| {
            let spec = RunSpec { taken_over: taken_over.clone(), ..input.spec.clone() };
            let summary = named(id, &input);
            let members = [Member::new(&spec, &summary, lineage.to_owned(), false)];
            (spec, summary, members)
        });
        let side = |at: usize| {
            let (spec, summary, members) = &sides[at];
            Side { spec, summary, facts: &facts, members }
        };
        compare(&side(0), &side(1), &CompareOptions::default()).independent
    };
    let independent = |first: (&str, &TakenOver), second: (&str, &TakenOver)| {
        of_lineages((first.0, first.0, first.1), (second.0, second.0, second.1))
    };
    let own = TakenOver::default();
    assert!(!independent(("a", &own), ("b", &both)) && !independent(("b", &both), ("a", &own)));
    assert!(!independent(("b", &both), ("c", &recalls)), "both are of one run");
    assert!(independent(("b", &both), ("d", &own)));
    // y was forked from b at its recall, and restored: it took nothing over, and its lineage is b
    let (b, y) = (("b", "a", &both), ("y", "b", &own));
    assert!(!of_lineages(b, y) && !of_lineages(y, b));
}

#[test]
fn what_the_same_judge_said_again_without_a_call_is_a_copy() {
    let (input, facts) = (input(300), facts("judge"));
    let both = TakenOver::of_fork(Phase::Judge, "a", &TakenOver::default());
    let copied = |(calls, cached_calls): (u64, u64), votes: u32| {
        let spec = RunSpec { taken_over: both.clone(), votes, ..input.spec.clone() };
        let (source, mut fork) = (named("a", &input), named("b", &input));
        (fork.usage.judge.calls, fork.usage.judge.cached_calls) = (calls, cached_calls);
        let of_a = [Member::new(&input.spec, &source, "a".to_owned(), false)];
        let of_b = [Member::new(&spec, &fork, "a".to_owned(), false)];
        let a = Side { spec: &input.spec, summary: &source, facts: &facts, members: &of_a };
        let b = Side { spec: &spec, summary: &fork, facts: &facts, members: &of_b };
        let options = CompareOptions { metric: Some("judge".to_owned()), ..CompareOptions::default() };
        let compared = compare(&a, &b, &options);
        assert_eq!(compared.copied, compared.notes.iter().any(|note| note.contains("the answers and judgements of a")));
        compared.copied
    };
    let votes = input.spec.votes;
    assert!(copied((0, 200), votes));
    assert!(!copied((1, 199), votes) && !copied((0, 0), votes), "something was asked, or nothing is known");
    assert!(!copied((0, 200), votes + 2), "more votes are another measurement");
}

/// A run that has taken this over, with so many judgements that were asked for, and so many whose replies were stored.
fn judged_run(input: &AggregateInput, id: &str, taken_over: &TakenOver, judged: (u64, u64)) -> (RunSpec, Summary) {
    let spec = RunSpec { taken_over: taken_over.clone(), ..input.spec.clone() };
    let mut summary = named(id, input);
    (summary.usage.judge.calls, summary.usage.judge.cached_calls) = judged;
    (spec, summary)
}

#[test]
fn each_side_has_to_have_the_judgements_of_the_source_for_a_copy() {
    let (input, facts) = (input(300), facts("judge"));
    let forked = TakenOver::of_fork(Phase::Judge, "s", &TakenOver::default());
    let run = |id: &str, taken_over: &TakenOver, judged: (u64, u64)| judged_run(&input, id, taken_over, judged);
    let copied = |a: &(RunSpec, Summary), b: &(RunSpec, Summary)| {
        let members = [a, b].map(|(spec, summary)| [Member::new(spec, summary, "s".to_owned(), false)]);
        let [first, second] = [(a, &members[0]), (b, &members[1])].map(|((spec, summary), members)| Side {
            spec,
            summary,
            facts: &facts,
            members,
        });
        let options = CompareOptions { metric: Some("judge".to_owned()), ..CompareOptions::default() };
        let [there, back] = [compare(&first, &second, &options), compare(&second, &first, &options)];
        assert_eq!(there.copied, back.copied);
        there.copied
    };
    let source = run("s", &TakenOver::default(), (200, 0));
    let (heard, again) = (run("f1", &forked, (0, 200)), run("f3", &forked, (0, 200)));
    let asked = run("f2", &forked, (200, 0));
    assert!(copied(&heard, &source) && copied(&heard, &again));
    assert!(!copied(&heard, &asked), "the judge of one was asked anew");
    assert!(!copied(&asked, &source));
    let changes: [fn(&mut RunSpec); 3] = [
        |spec| spec.dataset.profile.only_rubric = Some("judge-graded".to_owned()),
        |spec| spec.dataset.profile.by_gold.abstain = Some("judge-other".to_owned()),
        |spec| {
            spec.judging.forms.insert("grade".to_owned(), 1);
        },
    ];
    for change in changes {
        let mut other = heard.clone();
        change(&mut other.0);
        assert!(!copied(&other, &source), "another rubric is another measurement");
    }
}

/// The side of a mean has the summary of one of its runs: what judges said of the others is not in it.
#[test]
fn of_a_mean_each_run_says_itself_whether_its_judges_were_asked_anew() {
    let (input, facts) = (input(300), facts("judge"));
    let forked = TakenOver::of_fork(Phase::Judge, "s", &TakenOver::default());
    let run = |id: &str, taken_over: &TakenOver, judged: (u64, u64)| {
        let (spec, summary) = judged_run(&input, id, taken_over, judged);
        let member = Member::new(&spec, &summary, "s".to_owned(), false);
        (spec, summary, member)
    };
    let source = run("s", &TakenOver::default(), (200, 0));
    let asked = run("f1", &forked, (200, 0));
    let copied_of = |second: (u64, u64)| {
        let members = [asked.2.clone(), run("f2", &forked, second).2];
        let mean = Side { spec: &asked.0, summary: &asked.1, facts: &facts, members: &members };
        let alone = [source.2.clone()];
        let single = Side { spec: &source.0, summary: &source.1, facts: &facts, members: &alone };
        let options = CompareOptions { metric: Some("judge".to_owned()), ..CompareOptions::default() };
        let [there, back] = [compare(&mean, &single, &options), compare(&single, &mean, &options)];
        assert_eq!(there.copied_of, back.copied_of);
        there.copied_of
    };
    assert_eq!(copied_of((0, 200)).as_deref(), Some("s"), "the second heard what was stored");
    assert_eq!(copied_of((200, 0)), None, "both were asked anew");
}
