//! What each block tells: so many statements, in the order in which they are told.

use super::{
    Edition,
    draft::{Draft, Namesake, Statement, Value},
    shape::{BLOCKS, Block},
    tables::{Attribute, Drawn, Kind, TABLE, kind, push_number},
};
use crate::generator::{fill, rng::Rng};

/// Writes a block.
pub(super) fn write(draft: &mut Draft, block: Block) {
    let told = block.told;
    let compatible = draft.edition == Edition::Compatible;
    let statements = match BLOCKS[block.index] {
        "people" => people(draft, told),
        "projects" => {
            let projects = if compatible { 5 } else { told.div_ceil(5) };
            changing(draft, "project", told, projects, |kind, _| all(kind))
        }
        "technical" => services(draft, told),
        "evolving_story" => ventures(draft, told),
        "numerical" => metrics(draft, told),
        "contradictory" => claims(draft, told),
        "callbacks" => callbacks(draft, told),
        "distractors" => distractors(draft, block.turns),
        "security_logs" => (0..told).map(|index| simple(draft, "event", event_facts(index))).collect(),
        "incidents" => {
            let incidents = if compatible { 7 } else { told.div_ceil(3) };
            changing(draft, "incident", told, incidents, |kind, index| {
                let facts = if index % 7 < 2 { 6 } else { 5 };
                kind.attributes.get(..facts).unwrap_or(&kind.attributes)
            })
        }
        "infrastructure" => (0..told).map(|index| inventory(draft, index)).collect(),
        "problem_solving" => {
            (0..told).map(|index| simple(draft, "ticket", if index % 12 < 2 { 4 } else { 5 })).collect()
        }
        _ => Vec::new(),
    };
    draft.place(block, statements);
    if !compatible {
        notes(draft, block);
    }
}

/// Of ours: a note for every 25 turns of a block, of which half are deleted at the end of the block after the next.
fn notes(draft: &mut Draft, block: Block) {
    let kept = draft.of_kind("note").to_vec();
    for (index, note) in kept.into_iter().enumerate() {
        let &[fact] = draft.facts_of(note) else { continue };
        let is_due = draft.block_of(draft.facts[fact].turn).is_some_and(|told| told + 2 == block.index);
        // of both halves one is deleted and one is kept, in turn
        if is_due && index / 2 % 2 == 1 {
            draft.delete(fact);
        }
    }
    for _ in 0..block.turns.div_ceil(25) {
        let note = simple(draft, "note", 1);
        draft.note(note);
    }
}

fn all(kind: &'static Kind) -> &'static [Attribute] {
    &kind.attributes
}

/// A kind of the table; the tests of this folder rule out that it is missing.
fn known(id: &str) -> &'static Kind {
    static NONE: Kind = Kind {
        id: "",
        category: "",
        name: Drawn::new(""),
        leads: Vec::new(),
        updates: Vec::new(),
        attributes: Vec::new(),
        links: Vec::new(),
    };
    kind(id).unwrap_or(&NONE)
}

static CITIES: Drawn = Drawn::new("{cities}");

/// A name for the next thing of a kind.
fn name(draft: &mut Draft, id: &str) -> String {
    let kind = known(id);
    draft.fresh(|rng| {
        let name = kind.name.draw(rng);
        if id == "topic" { fill(&name, &[("e", &CITIES.draw(rng))]) } else { name }
    })
}

/// The next thing of a kind.
fn next(draft: &mut Draft, id: &str) -> usize {
    let name = name(draft, id);
    draft.begin(known(id), name)
}

/// One thing with its first attributes.
fn simple(draft: &mut Draft, id: &str, facts: usize) -> Statement {
    let entity = next(draft, id);
    draft.introduce(entity, known(id).attributes.iter().take(facts))
}

/// Ours: one person a turn with four of the nine attributes. Compatible: ten people with all of them.
fn people(draft: &mut Draft, told: usize) -> Vec<Statement> {
    let own = draft.edition == Edition::Own;
    let staff = if own { told } else { 10 };
    let mut statements = Vec::with_capacity(told);
    for turn in 0..told {
        let mut merged = Statement::default();
        for _ in turn * staff / told..(turn + 1) * staff / told {
            let entity = next(draft, "person");
            let mut attributes: Vec<&'static Attribute> = known("person").attributes.iter().collect();
            if own {
                draft.rng.shuffle(&mut attributes);
                attributes.truncate(4);
            }
            let statement = draft.introduce(entity, attributes);
            if merged.text.is_empty() {
                merged = statement;
            } else {
                merged.text.push(' ');
                merged.text.push_str(&statement.text);
                merged.facts.end = statement.facts.end;
            }
        }
        statements.push(merged);
    }
    statements
}

/// Introduces things of a kind and replaces some of their values afterwards, several of them more than once.
fn changing(
    draft: &mut Draft,
    id: &str,
    told: usize,
    things: usize,
    attributes: fn(&'static Kind, usize) -> &'static [Attribute],
) -> Vec<Statement> {
    let things = things.min(told);
    let mut statements = Vec::with_capacity(told);
    let mut changes = Vec::new();
    for index in 0..things {
        let entity = next(draft, id);
        let attributes = attributes(known(id), index);
        changes.extend(attributes.iter().filter(|attribute| attribute.changes).map(|attribute| (entity, attribute)));
        statements.push(draft.introduce(entity, attributes));
    }
    updates(draft, changes, told - things, &mut statements);
    statements
}

fn updates(
    draft: &mut Draft,
    mut changes: Vec<(usize, &'static Attribute)>,
    count: usize,
    statements: &mut Vec<Statement>,
) {
    draft.rng.shuffle(&mut changes);
    changes.truncate((count * 4).div_ceil(5));
    for index in 0..count {
        if let Some(&(entity, attribute)) = changes.get(index % changes.len().max(1)) {
            statements.push(draft.update(entity, attribute));
        }
    }
}

/// Services come in pairs with names that are easily mixed up, each told one attribute at a time.
fn services(draft: &mut Draft, told: usize) -> Vec<Statement> {
    let kind = known("service");
    let mut statements = Vec::with_capacity(told);
    let mut pair: Option<(usize, usize)> = None;
    for index in 0..told {
        // a pair is told three attributes: base and twin in turn
        let step = index % 6;
        if step == 0 {
            let half = index / 6 % 2;
            let base = name(draft, "service");
            let twin = format!("{base}-{}", ["eu", "lite", "two", "next"][draft.rng.below(4)]);
            let (base, twin) = (draft.entity(kind, base, half), draft.entity(kind, twin, half));
            draft.entities[base].twin = Some(twin);
            draft.entities[twin].twin = Some(base);
            pair = Some((base, twin));
        }
        let Some((base, twin)) = pair else { break };
        let attribute = &kind.attributes[(index / 6 * 3 + step / 2) % kind.attributes.len()];
        let entity = if step % 2 == 0 { base } else { twin };
        let of_other = draft.history(if step % 2 == 0 { twin } else { base }, attribute);
        let value = draft.value(entity, attribute, &of_other);
        let fact = draft.fact(entity, attribute, value, "");
        statements.push(draft.state(entity, fact..fact + 1));
    }
    statements
}

/// The first half of the statements tells, the second corrects.
fn ventures(draft: &mut Draft, told: usize) -> Vec<Statement> {
    let kind = known("venture");
    let first = told.div_ceil(2);
    let mut statements = Vec::with_capacity(told);
    let mut changes = Vec::new();
    let mut entity = 0;
    for index in 0..first {
        if index % kind.attributes.len() == 0 {
            entity = next(draft, "venture");
        }
        let attribute = &kind.attributes[index % kind.attributes.len()];
        statements.push(draft.introduce(entity, [attribute]));
        changes.push((entity, attribute));
    }
    updates(draft, changes, told - first, &mut statements);
    statements
}

static QUARTERS: Drawn = Drawn::new("{cities}, quarter {1..4} of {2001..2029}");

fn metrics(draft: &mut Draft, told: usize) -> Vec<Statement> {
    let kind = known("metric");
    let mut statements = Vec::with_capacity(told);
    for index in 0..told {
        // neighbours of a half measure the same, so that they can be added up
        let Some(measure) = TABLE.measures.get(index / 4 % TABLE.measures.len().max(1)) else { break };
        let name = draft.fresh(|rng| {
            let mut name = ["the ", measure.name, " of "].concat();
            QUARTERS.draw_to(rng, &mut name);
            name
        });
        let entity = draft.begin(kind, name);
        let number = |rng: &mut Rng| rng.between(measure.low, measure.high);
        let value = number(&mut draft.rng);
        let mut target = number(&mut draft.rng);
        while target == value {
            target = number(&mut draft.rng);
        }
        let values = [value, target].map(|number| {
            let mut marked = String::with_capacity(24);
            marked.push('[');
            push_number(&mut marked, number);
            marked.push_str("] ");
            marked.push_str(measure.unit);
            Value::new(marked)
        });
        let first = draft.facts.len();
        for (attribute, value) in kind.attributes.iter().zip(values) {
            draft.fact(entity, attribute, value, "");
        }
        statements.push(draft.state(entity, first..draft.facts.len()));
    }
    statements
}

/// Three sources on each topic, each with another claim.
fn claims(draft: &mut Draft, told: usize) -> Vec<Statement> {
    let kind = known("topic");
    let (mut entity, mut sources) = (0, Vec::new());
    let mut statements = Vec::with_capacity(told);
    for index in 0..told {
        if index % 3 == 0 {
            entity = next(draft, "topic");
            sources = TABLE.words.get("source").cloned().unwrap_or_default();
            draft.rng.shuffle(&mut sources);
        }
        let (Some(attribute), Some(source)) = (kind.attributes.first(), sources.pop()) else { break };
        let others = draft.history(entity, attribute);
        let value = draft.value(entity, attribute, &others);
        let fact = draft.fact(entity, attribute, value, source);
        statements.push(draft.state(entity, fact..fact + 1));
    }
    statements
}

/// Links between people of earlier; of ours every fourth turn asks to forget something that was said.
fn callbacks(draft: &mut Draft, told: usize) -> Vec<Statement> {
    let kind = known("person");
    let people = draft.of_kind("person");
    let half = |half: usize| people.iter().copied().filter(|person| draft.entities[*person].half == half).collect();
    let halves: [Vec<usize>; 2] = [half(0), half(1)];
    let mut pairs: Vec<(usize, &'static Attribute)> =
        kind.links.iter().flat_map(|link| people.iter().map(move |person| (*person, link))).collect();
    draft.rng.shuffle(&mut pairs);
    let mut statements = Vec::with_capacity(told);
    for index in 0..told {
        if draft.edition == Edition::Own && index % 4 == 0 {
            statements.extend(forget(draft, &statements, index / 4 % 2));
            continue;
        }
        while let Some((person, link)) = pairs.pop() {
            let others = &halves[draft.entities[person].half];
            let other = if others.is_empty() { person } else { *draft.rng.pick(others) };
            if other != person {
                let value = Value::person(&draft.entities[other].name, other);
                let mut text = String::with_capacity(96);
                link.says.fill_with(&mut text, |gap, text| {
                    text.push_str(if gap == "e" { &draft.entities[person].name } else { &value.text });
                });
                let fact = draft.fact(person, link, value, "");
                statements.push(Statement { text, facts: fact..fact + 1, forgets: None });
                break;
            }
        }
    }
    statements
}

/// Asks to forget something that was said of somebody of a half.
fn forget(draft: &mut Draft, so_far: &[Statement], half: usize) -> Option<Statement> {
    let is_free = |draft: &Draft, fact: usize| {
        let told = &draft.facts[fact];
        let entity = &draft.entities[told.entity];
        let is_one = entity.kind.id == "person" && entity.half == half && told.value.names.is_none();
        is_one && !so_far.iter().any(|statement| statement.forgets == Some(fact))
    };
    // a few draws find one; should they not, any will do
    let drawn = (0..64).map(|_| draft.rng.below(draft.facts.len())).collect::<Vec<_>>();
    let fact = drawn.into_iter().chain(0..draft.facts.len()).find(|fact| is_free(draft, *fact))?;
    let label = draft.facts[fact].attribute.label;
    let name = &draft.entities[draft.facts[fact].entity].name;
    let text = format!("Please forget the {label} of {name} that I told you; delete it and do not repeat it.");
    Some(Statement { text, facts: 0..0, forgets: Some(fact) })
}

/// Speaks of others who share a name with somebody of the staff, and of nothing that matters.
fn distractors(draft: &mut Draft, turns: usize) -> Vec<Statement> {
    let of_people = |fact: &usize| {
        let told = &draft.facts[*fact];
        let entity = &draft.entities[told.entity];
        entity.kind.id == "person" && told.value.names.is_none() && !draft.forgotten.contains_key(fact)
    };
    let mut facts: Vec<usize> = (0..draft.facts.len()).filter(of_people).collect();
    draft.rng.shuffle(&mut facts);
    let mut statements = Vec::with_capacity(turns);
    for index in 0..turns {
        let fact = if index % 2 == 0 { facts.pop() } else { None };
        let text = match fact {
            Some(fact) if !TABLE.distractors.namesakes.is_empty() => {
                let (entity, attribute) = (draft.facts[fact].entity, draft.facts[fact].attribute);
                let value = draft.value(entity, attribute, &[fact]);
                let name = &draft.entities[entity].name;
                let mut text = String::with_capacity(128);
                draft.rng.pick(&TABLE.distractors.namesakes).fill_with(&mut text, |gap, text| match gap {
                    "e" => text.push_str(name),
                    _ => attribute.says.fill_with(text, |_, text| text.push_str(&value.text)),
                });
                draft.namesakes.push(Namesake { fact, value });
                text
            }
            _ => draft.fresh(|rng| {
                let trivia = &TABLE.distractors.trivia;
                if trivia.is_empty() { String::new() } else { rng.pick(trivia).draw(rng) }
            }),
        };
        statements.push(Statement { text, ..Statement::default() });
    }
    statements
}

/// Facts of a security event: of 50 events 230, of the first 2, 5, 10 and 30 of them 10, 25, 48 and 141.
fn event_facts(index: usize) -> usize {
    const WITHOUT_SEVERITY: [usize; 20] =
        [6, 8, 11, 14, 17, 19, 22, 25, 28, 31, 33, 35, 37, 38, 40, 42, 43, 45, 47, 48];
    if WITHOUT_SEVERITY.contains(&(index % 50)) { 4 } else { 5 }
}

/// What stands where: of 30 entries 89 facts, of the first 7 and 21 of them 21 and 65.
fn inventory(draft: &mut Draft, index: usize) -> Statement {
    match index % 30 {
        0..8 => simple(draft, "subnet", 3),
        8..11 => simple(draft, "balancer", 3),
        11..14 => simple(draft, "cluster", 4),
        14..20 => simple(draft, "rule", 3),
        20..26 => simple(draft, "record", 2),
        26..28 => simple(draft, "database", 4),
        _ => simple(draft, "database", 3),
    }
}
