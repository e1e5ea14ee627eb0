//! What two sides have in common that was paid or made once. A mean has what any one of its runs has.

use std::collections::BTreeMap;

use bench_proto::{
    metered::Stage,
    spec::{RunSpec, TakenOver},
    summary::Summary,
};

use super::Side;

/// How a note ends that says what two sides have in common.
pub const NOT_INDEPENDENT: &str = ": their noise is not independent";

/// A run behind a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Public id.
    pub id: String,
    /// Runs of one lineage share paid answers.
    pub lineage: String,
    /// Made elsewhere.
    pub imported: bool,
    /// Whose recalls and answers it has.
    pub taken_over: TakenOver,
    /// Its judges said nothing that was not stored; false where none was asked.
    pub judged_from_store: bool,
    /// Other runs whose stored replies it used.
    pub calls_of: Vec<String>,
}

impl Member {
    /// The run of these settings and this summary.
    #[must_use]
    pub fn new(spec: &RunSpec, summary: &Summary, lineage: String, imported: bool) -> Self {
        let (run, judge) = (&summary.run, &summary.usage.judge);
        Self {
            id: run.id.clone(),
            lineage,
            imported,
            taken_over: spec.taken_over.clone(),
            judged_from_store: judge.calls == 0 && judge.cached_calls > 0,
            calls_of: run.calls_of.clone(),
        }
    }
}

/// What makes two runs meet.
type Keys = for<'m> fn(&'m Member) -> Vec<&'m str>;
/// A run of the first side, one of the second, and the key that both have.
type Met<'m> = (&'m Member, &'m Member, &'m str);

fn id(run: &Member) -> Vec<&str> {
    vec![run.id.as_str()]
}

/// Whose answers and recalls it has.
fn answers(run: &Member) -> Vec<&str> {
    run.taken_over.with_sources(&run.id, &run.lineage)
}

fn calls_of(run: &Member) -> Vec<&str> {
    run.calls_of.iter().map(String::as_str).collect()
}

/// The first run of one side that has a key of a run of the other.
fn meet<'m>(of_a: &'m [Member], of_b: &'m [Member], (keys_of_a, keys_of_b): (Keys, Keys)) -> Option<Met<'m>> {
    let mut known: BTreeMap<&str, &Member> = BTreeMap::new();
    for run in of_b {
        for key in keys_of_b(run) {
            known.entry(key).or_insert(run);
        }
    }
    of_a.iter().find_map(|run| {
        let met = keys_of_a(run).into_iter().find_map(|key| known.get(key).map(|other| (*other, key)));
        met.map(|(other, key)| (run, other, key))
    })
}

/// Ids of a run of either side; of a mean with the side that it is a part of.
fn names(a: &Side<'_>, b: &Side<'_>, (of_a, of_b): (&Member, &Member)) -> (String, String) {
    let name = |side: &Side<'_>, run: &Member, which: &str| match side.is_one_run() {
        true => run.id.clone(),
        false => format!("{} (one run of the {which})", run.id),
    };
    (name(a, of_a, "first"), name(b, of_b, "second"))
}

/// Whether two summaries are of one run, wherever they were read: another store may have another run of this id.
fn is_one(a: &Summary, b: &Summary) -> bool {
    let same_begin = a.run.started_at.is_some() && a.run.started_at == b.run.started_at;
    a.run.id == b.run.id && (same_begin || a.result_digest == b.result_digest)
}

/// Why the noise of two sides is not independent, when it is not: runs of both have answers in common that were paid once (P9).
pub(super) fn paid(a: &Side<'_>, b: &Side<'_>) -> Option<String> {
    let found = |keys_of_a: Keys, keys_of_b: Keys| meet(a.members, b.members, (keys_of_a, keys_of_b));
    let named = |met: Met<'_>| names(a, b, (met.0, met.1));
    let single = a.is_one_run() && b.is_one_run();
    let why = if single && is_one(a.summary, b.summary) {
        format!("both sides are run {}", a.summary.run.id)
    } else if let Some((run, ..)) = found(id, id).filter(|_| !single) {
        format!("run {} is a part of both sides", run.id)
    } else if let Some(met) = found(answers, answers).filter(|(run, other, _)| run.id != other.id) {
        // two runs of one id that are not one lie in two stores
        match (single, named(met)) {
            (true, _) => "the runs share paid answers (one was made from the other)".to_owned(),
            (false, (x, y)) => {
                format!("{x} and {y} share paid answers (one was made from the other, or both from one)")
            }
        }
    } else if let Some(met) = found(calls_of, id) {
        let (user, maker) = named(met);
        format!("{user} used stored answers of {maker} (--cache shared)")
    } else if let Some(met) = found(id, calls_of) {
        let (maker, user) = named(met);
        format!("{user} used stored answers of {maker} (--cache shared)")
    } else {
        let met = found(calls_of, calls_of)?;
        match (single, named(met)) {
            (true, _) => format!("both runs used stored answers of {} (--cache shared)", met.2),
            (false, (x, y)) => format!("{x} and {y} used stored answers of {} (--cache shared)", met.2),
        }
    };
    Some(format!("{why}{NOT_INDEPENDENT}"))
}

/// That dollars of one side alone hold what filling its banks took, the other having asked banks that were filled before.
pub(super) fn filling(a: &Side<'_>, b: &Side<'_>) -> Option<String> {
    // what is no figure of questions is that of the first run of a mean
    let asks_filled = |side: &Side<'_>| {
        let taken_over = side.members.first().map(|run| &run.taken_over);
        taken_over.is_some_and(|taken| taken.asks_filled_banks() || taken.recalls_of.is_some())
    };
    let (filler, other) = match (has_filling(a.summary), has_filling(b.summary)) {
        (true, false) if asks_filled(b) => ("first", "second"),
        (false, true) if asks_filled(a) => ("second", "first"),
        _ => return None,
    };
    Some(format!(
        "the dollars of the {filler} run hold what filling its banks took, those of the {other} do not: it asks banks that were filled \
         before"
    ))
}

/// Whether filling banks took models.
fn has_filling(summary: &Summary) -> bool {
    let usage = &summary.usage;
    let mut own = std::iter::once(&usage.retain).chain(&usage.consolidate);
    own.any(|used| used.calls > 0 || used.cached_calls > 0)
        || summary.metered.as_ref().is_some_and(|metered| metered.usd_list_of(&Stage::FILLING) > 0.0)
}

/// That two sides have from one run all that a scorer looks at, or all that a judge has said.
pub(super) struct Copied {
    /// The run that made it.
    pub(super) of: String,
    /// What a reader has to know.
    pub(super) note: String,
}

/// Whether the same judges grade both sides, as often, by the same rubrics and the same reading of golds.
fn grade_alike(a: &RunSpec, b: &RunSpec) -> bool {
    (&a.judges, a.votes, &a.judging) == (&b.judges, b.votes, &b.judging) && a.dataset.profile == b.dataset.profile
}

/// What scorers look at, and the run that made it, where a run of either side has the same because one took it over. A judge that
/// grades again measures anew, unless it is the same one and made no call: that is asked of each side.
pub(super) fn copied(a: &Side<'_>, b: &Side<'_>, metric: &str) -> Option<Copied> {
    let sides = [a, b];
    let is_judged = sides.iter().any(|side| side.spec.judge_metrics().iter().any(|name| name == metric));
    if is_judged && !grade_alike(a.spec, b.spec) {
        return None;
    }
    let of_recalls = sides.iter().any(|side| side.spec.grades_recalls(metric));
    let (what, taken): (_, fn(&TakenOver) -> &Option<String>) = match (of_recalls, is_judged) {
        (true, false) => ("recalls", |taken| &taken.recalls_of),
        (false, false) => ("answers", |taken| &taken.answers_of),
        (_, true) => ("answers and judgements", |taken| &taken.answers_of),
    };
    // the run that answered, or a fork whose judges said nothing else
    let has_of_source = |run: &Member| run.taken_over.answers_of.is_none() || run.judged_from_store;
    let is_copy = |x: &Member, y: &Member| {
        let [of_x, of_y] = [x, y].map(|run| taken(&run.taken_over).as_deref());
        let took_over = of_x.is_some() || of_y.is_some();
        let judged_once = !is_judged || (has_of_source(x) && has_of_source(y));
        took_over && judged_once && !x.imported && !y.imported && of_x.unwrap_or(&x.id) == of_y.unwrap_or(&y.id)
    };
    let (x, y) = a.members.iter().find_map(|x| b.members.iter().find(|y| is_copy(x, y)).map(|y| (x, y)))?;
    let of = taken(&x.taken_over).clone().unwrap_or_else(|| x.id.clone());
    let who = match a.is_one_run() && b.is_one_run() {
        true => "both runs".to_owned(),
        false => {
            let (x, y) = names(a, b, (x, y));
            format!("{x} and {y} both")
        }
    };
    let note =
        format!("{who} have the {what} of {of}: by '{metric}' nothing was measured anew, equal figures are a copy");
    Some(Copied { of, note })
}
