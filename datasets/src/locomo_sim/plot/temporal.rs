//! Questions for a date or a duration that the speaker gave relative to the day of the session.

use bench_proto::dataset::Gold;
use jiff::civil::Date;

use super::Swap;
use crate::{
    locomo::schema::Category,
    locomo_sim::{
        calendar::{Moment, When, day_text, month_text, months_before, number_word},
        draft::{Draft, fill},
        tables::events::{self, Event},
    },
};

const CATEGORY: Category = Category::Temporal;

/// Shares of the kinds of questions in percent; past events are the rest.
const INTERVAL: usize = 12;
const ORDER: usize = 6;
const SINCE: usize = 12;
const PLAN: usize = 18;

/// A past event with its exact day.
struct Dated {
    who: usize,
    event: &'static Event,
    day: Date,
    fact: usize,
}

pub(super) fn write(draft: &mut Draft, questions: usize, swaps: &mut Vec<Swap>) -> Option<()> {
    let share = |percent: usize| questions * percent / 100;
    let (intervals, orders, since, plans) = (share(INTERVAL), share(ORDER), share(SINCE), share(PLAN));
    let past = questions.checked_sub(intervals + orders + since + plans)?;

    let mut dated = Vec::new();
    for index in 0..past {
        // both speakers need a few exact days, for the questions between two events
        let exact = index < 8;
        past_event(draft, if exact { Some(index % 2) } else { None }, &mut dated, swaps)?;
    }
    for _ in 0..plans {
        planned_event(draft, swaps)?;
    }
    for _ in 0..since {
        ongoing(draft)?;
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for first in 0..dated.len() {
        for second in 0..dated.len() {
            let (a, b) = (&dated[first], &dated[second]);
            if a.who == b.who && a.day < b.day {
                pairs.push((first, second));
            }
        }
    }
    draft.rng.shuffle(&mut pairs);
    for (index, (first, second)) in pairs.into_iter().enumerate().take(intervals + orders) {
        between(draft, &dated[first], &dated[second], index < intervals);
    }
    // should there be too few pairs, further events take their place
    while draft.asked.iter().filter(|asked| asked.category == CATEGORY).count() < questions {
        past_event(draft, None, &mut dated, swaps)?;
    }
    Some(())
}

/// An event that neither happens twice to a speaker.
fn new_event(draft: &mut Draft, who: usize, planned: bool) -> Option<&'static Event> {
    for _ in 0..1000 {
        let event = draft.rng.pick(&events::TABLE.events);
        if (!planned || !event.plan.is_empty()) && draft.claim((who, "event", event.id)) {
            return Some(event);
        }
    }
    None
}

/// `exact_for`: this speaker, on an exact day.
fn past_event(
    draft: &mut Draft,
    exact_for: Option<usize>,
    dated: &mut Vec<Dated>,
    swaps: &mut Vec<Swap>,
) -> Option<()> {
    let who = exact_for.unwrap_or_else(|| draft.speaker());
    let event = new_event(draft, who, false)?;
    let scene = draft.free_scene(who)?;
    let told = draft.day(scene);
    let when =
        if exact_for.is_some() { When::past_day(&mut draft.rng, told) } else { When::past(&mut draft.rng, told) };
    let fact = tell(draft, who, scene, &events::TABLE.past, event.past, &when.phrase())?;
    if let Moment::Day(day) = when.moment(told) {
        dated.push(Dated { who, event, day, fact });
    }
    let told = Told { who, event, moment: when.moment(told), fact };
    ask(draft, "When did {n} {k}?", told, swaps);
    Some(())
}

fn planned_event(draft: &mut Draft, swaps: &mut Vec<Swap>) -> Option<()> {
    let who = draft.speaker();
    let event = new_event(draft, who, true)?;
    let scene = draft.free_scene(who)?;
    let told = draft.day(scene);
    let when = When::future(&mut draft.rng, told);
    let fact = tell(draft, who, scene, &events::TABLE.planned, event.plan, &when.phrase())?;
    let told = Told { who, event, moment: when.moment(told), fact };
    ask(draft, "When is {n} going to {k}?", told, swaps);
    Some(())
}

fn tell(
    draft: &mut Draft,
    who: usize,
    scene: usize,
    templates: &[&'static str],
    what: &str,
    when: &str,
) -> Option<usize> {
    let mut capital = when.to_owned();
    if let Some(first) = capital.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let said = fill(draft.rng.word(templates), &[("k", what), ("v", when), ("cv", &capital)]);
    draft.tell(who, scene, &said, None)
}

/// An event that a speaker has told of.
struct Told {
    who: usize,
    event: &'static Event,
    /// When it happened, or will.
    moment: Moment,
    /// The turn that tells it.
    fact: usize,
}

fn ask(draft: &mut Draft, template: &'static str, told: Told, swaps: &mut Vec<Swap>) {
    let Told { who, event, moment, fact } = told;
    let text = draft.ask(template, who, &[("k", event.ask)]);
    let gold = gold(moment);
    draft.push(CATEGORY, text, gold.clone(), vec![fact]);
    let claim = (1 - who, "event", event.id);
    swaps.push(Swap { claim, template, key: event.ask.to_owned(), value: gold, evidence: vec![fact] });
}

/// A moment as LoCoMo writes it; years are numbers, as there.
fn gold(moment: Moment) -> Gold {
    Gold::Text(match moment {
        Moment::Day(day) => day_text(day),
        Moment::WeekBefore(day) => format!("The week before {}", day_text(day)),
        Moment::WeekendBefore(day) => format!("The weekend before {}", day_text(day)),
        Moment::Month(day) => month_text(day),
        Moment::Year(year) => return Gold::Number(year.into()),
    })
}

/// Something that has been going on for a number of years or months.
fn ongoing(draft: &mut Draft) -> Option<()> {
    let (who, state) = loop {
        let (who, state) = (draft.speaker(), draft.rng.pick(&events::TABLE.states));
        if draft.claim((who, "state", state.id)) {
            break (who, state);
        }
    };
    let scene = draft.free_scene(who)?;
    let told = draft.day(scene);
    let count = draft.rng.between(2, 11) as i64;
    let years = draft.rng.chance(60);
    let span = format!("{} {}", number_word(count), if years { "years" } else { "months" });
    let fact = tell(draft, who, scene, &events::TABLE.ongoing, state.doing, &span)?;
    let (template, gold) = if years {
        ("Since which year has {n} been {k}?", Gold::Number((i64::from(told.year()) - count).into()))
    } else {
        ("Since which month has {n} been {k}?", Gold::Text(month_text(months_before(told, count))))
    };
    let text = draft.ask(template, who, &[("k", state.ask)]);
    draft.push(CATEGORY, text, gold, vec![fact]);
    Some(())
}

/// How long between two events, or which came first.
fn between(draft: &mut Draft, first: &Dated, second: &Dated, interval: bool) {
    let (mut one, mut two) = (first.event.noun, second.event.noun);
    if draft.rng.chance(50) {
        std::mem::swap(&mut one, &mut two);
    }
    let (template, gold) = if interval {
        let days = first.day.duration_until(second.day).as_hours() / 24;
        let unit = if days == 1 { "day" } else { "days" };
        ("For {n}, how many days lie between {k} and {v}?", format!("{days} {unit}"))
    } else {
        ("Which came first for {n}, {k} or {v}?", first.event.noun.to_owned())
    };
    let text = draft.ask(template, first.who, &[("k", one), ("v", two)]);
    draft.push(CATEGORY, text, Gold::Text(gold), vec![first.fact, second.fact]);
}
