//! Facts that only two turns of different sessions give together: who somebody is and what they do; what was before a change.

use super::words::Pool;

/// Something that is said of a third person by name only; who that person is was said elsewhere.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) id: &'static str,
    pub(crate) value: Pool,
    /// `{k}` is the person's name.
    pub(crate) says: &'static [&'static str],
    /// `{k}` is the relation.
    pub(crate) asks: &'static [&'static str],
}

/// Relations that introduce a person.
pub(crate) const RELATIONS: &[&str] = &[
    "best friend",
    "cousin",
    "mentor",
    "running partner",
    "choir friend",
    "business partner",
    "eldest sibling",
    "youngest sibling",
    "old schoolmate",
    "study partner",
    "former boss",
    "in-law from the north",
];

/// Introduces a person: `{k}` relation, `{v}` name.
pub(crate) const INTRODUCTIONS: &[&str] = &[
    "I don't think you have met my {k} {v} yet.",
    "My {k} {v} sends greetings, we were on the phone for ages.",
    "{v}, my {k}, was here for dinner.",
];

/// All kinds.
pub(crate) const BRIDGES: &[Bridge] = &[
    Bridge {
        id: "bridge-job",
        value: Pool::Job,
        says: &["{k} has started to work as {av}, imagine that.", "{k} is {av} these days and loves it."],
        asks: &["What does {n}'s {k} do for a living?", "Which profession does the {k} of {n} have?"],
    },
    Bridge {
        id: "bridge-city",
        value: Pool::City,
        says: &["{k} has settled in {v} for good.", "{k} lives in {v} now, with a view of the rooftops."],
        asks: &["In which city does {n}'s {k} live?", "Where has the {k} of {n} settled?"],
    },
    Bridge {
        id: "bridge-pet",
        value: Pool::Pet,
        says: &["{k} got a puppy called {v}.", "{k} walks the new dog, {v}, three times a day."],
        asks: &["What is the dog of {n}'s {k} called?"],
    },
    Bridge {
        id: "bridge-studies",
        value: Pool::Subject,
        says: &["{k} went back to university for {v}.", "{k} is writing a thesis in {v}."],
        asks: &["What does {n}'s {k} study?", "Which subject did the {k} of {n} choose at university?"],
    },
];

/// Something that changes once.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) id: &'static str,
    pub(crate) value: Pool,
    pub(crate) before: &'static [&'static str],
    /// `{v}` is the new value; the old one is not named.
    pub(crate) after: &'static [&'static str],
    /// Asks for the old value; `{k}` is the new one, `{ak}` with its article.
    pub(crate) asks_before: &'static [&'static str],
    /// Asks for the new value, in words that the change alone answers.
    pub(crate) asks_after: &'static [&'static str],
}

/// All kinds.
pub(crate) const CHANGES: &[Change] = &[
    Change {
        id: "job",
        value: Pool::Job,
        before: &["I work as {av} at the moment.", "Being {av} has its days, you know."],
        after: &["Big news, I quit and I'm {av} now!", "I've changed careers, from today you may call me {av}."],
        asks_before: &["What was {n}'s job before becoming {ak}?", "Which profession did {n} give up to become {ak}?"],
        asks_after: &["Which new profession did {n} switch to?", "What did {n} become after changing careers?"],
    },
    Change {
        id: "home",
        value: Pool::City,
        before: &["Our flat here in {v} is getting too small.", "I do like living in {v}, mostly."],
        after: &["The boxes are unpacked, {v} is home now!", "We've moved, my new address is in {v}."],
        asks_before: &["In which city did {n} live before moving to {k}?"],
        asks_after: &["To which city did {n} move?"],
    },
    Change {
        id: "car",
        value: Pool::Car,
        before: &["My {v} needs new tyres again.", "I drive {av}, it's nothing special."],
        after: &["I traded in the old car, and now there's {av} in the yard.", "I've bought a new car, {av}!"],
        asks_before: &["What car did {n} drive before getting the {k}?"],
        asks_after: &["Which car did {n} get as a replacement?"],
    },
    Change {
        id: "commute",
        value: Pool::Travel,
        before: &["I get to work {v}, rain or shine.", "My way to work is {v}, half an hour."],
        after: &["I've switched, now I go to work {v}.", "New habit: I travel to work {v} from now on."],
        asks_before: &["How did {n} get to work before going {k}?"],
        asks_after: &["What new way of getting to work did {n} switch to?"],
    },
    Change {
        id: "hair",
        value: Pool::Hair,
        before: &["My hair is {v} at the moment, in case you wonder.", "Everyone stares at my {v} hair."],
        after: &["I dyed my hair again, it's {v} now!", "Fresh from the salon with {v} hair!"],
        asks_before: &["What colour was {n}'s hair before it was {k}?"],
        asks_after: &["Into which colour did {n} dye the hair?"],
    },
    Change {
        id: "alarm",
        value: Pool::Time,
        before: &["My alarm goes off at {v} every working day.", "I get up at {v}, it's just how the shifts are."],
        after: &["New schedule, I've moved my alarm to {v}.", "I've reset my alarm, it rings at {v} now."],
        asks_before: &["At what time did {n} get up before moving the alarm to {k}?"],
        asks_after: &["To what time did {n} move the alarm?"],
    },
    Change {
        id: "own-band",
        value: Pool::Band,
        before: &["Our little band is called {v} for now.", "I play in a band, we are {v}."],
        after: &["We've renamed our band, we are {v} now.", "The band has a new name, {v}."],
        asks_before: &["What was the name of {n}'s own band before it became {k}?"],
        asks_after: &["What is the new name of {n}'s own band?"],
    },
    Change {
        id: "employer",
        value: Pool::Company,
        before: &[
            "The canteen at {v} is the best part of my working day.",
            "I'm still with {v}, same desk, same chair.",
        ],
        after: &["I've signed with {v}, goodbye old desk!", "From now on {v} pays my salary."],
        asks_before: &["For which company did {n} work before joining {k}?"],
        asks_after: &["Which company did {n} join as a new employer?"],
    },
    Change {
        id: "gym",
        value: Pool::Street,
        before: &["My gym is the one on {v}.", "I work out in the basement on {v}."],
        after: &["I've cancelled my old gym and go to the one on {v} now.", "New gym for me, the bright one on {v}."],
        asks_before: &["On which street was {n}'s gym before the one on {k}?"],
        asks_after: &["On which street is the gym that {n} changed to?"],
    },
    Change {
        id: "flatmate",
        value: Pool::Person,
        before: &["I share the flat with {v}, who never does the dishes.", "{v} and I split the rent."],
        after: &["My flatmate moved out, and {v} took the room.", "I share the flat with somebody new now, {v}."],
        asks_before: &["With whom did {n} share the flat before {k}?"],
        asks_after: &["Who became {n}'s new flatmate?"],
    },
];
