//! What happened or will happen at a time: temporal questions.

/// One thing that happens to a speaker at most once.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: &'static str,
    /// After "I": `took my driving test`.
    pub(crate) past: &'static str,
    /// After "I'm", as a plan; empty when nobody plans it.
    pub(crate) plan: &'static str,
    /// After "When did X", in other words: `sit the driving exam`.
    pub(crate) ask: &'static str,
    /// The same as a noun: `the driving exam`.
    pub(crate) noun: &'static str,
}

/// Says that it happened: `{k}` what, `{v}` when, `{cv}` the same with a capital.
pub(crate) const PAST: &[&str] =
    &["I {k} {v}.", "{cv} I {k}.", "Did I tell you that I {k} {v}?", "So, I {k} {v}, and I'm still talking about it."];

/// Says that it is planned.
pub(crate) const PLANNED: &[&str] =
    &["I'm {k} {v}.", "{cv} I'm {k}.", "It's settled, I'm {k} {v}.", "Wish me luck, {v} I'm {k}."];

/// All events.
pub(crate) const EVENTS: &[Event] = &[
    Event {
        id: "driving-exam",
        past: "took my driving test",
        plan: "taking my driving test",
        ask: "sit the driving exam",
        noun: "the driving exam",
    },
    Event {
        id: "interview-at-the-town-hall",
        past: "had a job interview at the town hall",
        plan: "having a job interview at the town hall",
        ask: "interview for a position at the town hall",
        noun: "the interview at the town hall",
    },
    Event {
        id: "blood-donation",
        past: "donated blood",
        plan: "donating blood",
        ask: "give blood",
        noun: "the blood donation",
    },
    Event {
        id: "eye-exam",
        past: "had my eyes checked",
        plan: "having my eyes checked",
        ask: "go for an eye exam",
        noun: "the eye exam",
    },
    Event {
        id: "mother-s-move",
        past: "moved my mother into her new flat",
        plan: "moving my mother into her new flat",
        ask: "help the mother move house",
        noun: "the mother's move",
    },
    Event {
        id: "housewarming",
        past: "threw a housewarming party",
        plan: "throwing a housewarming party",
        ask: "host a housewarming",
        noun: "the housewarming",
    },
    Event {
        id: "street-barbecue",
        past: "hosted a barbecue for the whole street",
        plan: "hosting a barbecue for the whole street",
        ask: "invite the street to a barbecue",
        noun: "the street barbecue",
    },
    Event {
        id: "class-reunion",
        past: "had a reunion with my old class",
        plan: "having a reunion with my old class",
        ask: "meet the former classmates",
        noun: "the class reunion",
    },
    Event {
        id: "parents-anniversary",
        past: "celebrated my parents' anniversary",
        plan: "celebrating my parents' anniversary",
        ask: "celebrate the anniversary of the parents",
        noun: "the parents' anniversary",
    },
    Event {
        id: "passport-renewal",
        past: "renewed my passport",
        plan: "renewing my passport",
        ask: "get a new passport",
        noun: "the passport renewal",
    },
    Event {
        id: "roof-repair",
        past: "got the roof fixed",
        plan: "getting the roof fixed",
        ask: "have the roof repaired",
        noun: "the roof repair",
    },
    Event {
        id: "installation-of-the-solar-panels",
        past: "had solar panels put up",
        plan: "having solar panels put up",
        ask: "have solar panels installed",
        noun: "the installation of the solar panels",
    },
    Event {
        id: "sale-of-the-couch",
        past: "sold my old sofa",
        plan: "selling my old sofa",
        ask: "sell the couch",
        noun: "the sale of the couch",
    },
    Event {
        id: "painting-of-the-fence",
        past: "painted the fence",
        plan: "painting the fence",
        ask: "give the fence a fresh coat",
        noun: "the painting of the fence",
    },
    Event {
        id: "planting-of-the-cherry-tree",
        past: "planted a cherry tree",
        plan: "planting a cherry tree",
        ask: "put a cherry tree in the ground",
        noun: "the planting of the cherry tree",
    },
    Event {
        id: "adoption-of-the-greyhound",
        past: "adopted a greyhound",
        plan: "adopting a greyhound",
        ask: "take in a greyhound",
        noun: "the adoption of the greyhound",
    },
    Event {
        id: "open-mic-night",
        past: "performed at an open mic night",
        plan: "performing at an open mic night",
        ask: "appear on stage at an open mic",
        noun: "the open mic night",
    },
    Event {
        id: "newspaper-article",
        past: "published an article in the local paper",
        plan: "publishing an article in the local paper",
        ask: "have a piece printed in the local newspaper",
        noun: "the newspaper article",
    },
    Event {
        id: "photo-exhibition",
        past: "opened my photo exhibition",
        plan: "opening my photo exhibition",
        ask: "show the photographs to the public",
        noun: "the photo exhibition",
    },
    Event {
        id: "start-of-the-web-shop",
        past: "launched my online shop",
        plan: "launching my online shop",
        ask: "start selling on the web",
        noun: "the start of the web shop",
    },
    Event {
        id: "appointment-at-the-bank",
        past: "had a meeting with the bank about a mortgage",
        plan: "having a meeting with the bank about a mortgage",
        ask: "talk to the bank about a home loan",
        noun: "the appointment at the bank",
    },
    Event {
        id: "signing-of-the-lease",
        past: "signed the lease for a studio",
        plan: "signing the lease for a studio",
        ask: "rent a studio",
        noun: "the signing of the lease",
    },
    Event {
        id: "start-of-the-physiotherapy",
        past: "started physical therapy",
        plan: "starting physical therapy",
        ask: "begin with physiotherapy",
        noun: "the start of the physiotherapy",
    },
    Event {
        id: "tooth-extraction",
        past: "had a tooth pulled",
        plan: "having a tooth pulled",
        ask: "lose a tooth at the dentist's",
        noun: "the tooth extraction",
    },
    Event {
        id: "knee-operation",
        past: "had minor knee surgery",
        plan: "having minor knee surgery",
        ask: "undergo an operation on the knee",
        noun: "the knee operation",
    },
    Event {
        id: "camping-trip",
        past: "camped by the sea with the kids",
        plan: "camping by the sea with the kids",
        ask: "sleep in a tent on the coast",
        noun: "the camping trip",
    },
    Event {
        id: "whale-watching-tour",
        past: "went on a whale watching tour",
        plan: "going on a whale watching tour",
        ask: "go out to sea to look for whales",
        noun: "the whale watching tour",
    },
    Event {
        id: "night-of-the-shooting-stars",
        past: "watched a meteor shower from the roof",
        plan: "watching a meteor shower from the roof",
        ask: "see the shooting stars",
        noun: "the night of the shooting stars",
    },
    Event {
        id: "overnight-train-ride",
        past: "took the night train to my cousin's",
        plan: "taking the night train to my cousin's",
        ask: "travel overnight by rail",
        noun: "the overnight train ride",
    },
    Event {
        id: "speech-to-the-council",
        past: "spoke at a council meeting",
        plan: "speaking at a council meeting",
        ask: "address the town council",
        noun: "the speech to the council",
    },
    Event {
        id: "demonstration",
        past: "joined a march for cleaner air",
        plan: "joining a march for cleaner air",
        ask: "demonstrate for better air",
        noun: "the demonstration",
    },
    Event {
        id: "riverbank-clean-up",
        past: "cleaned up the riverbank with the neighbours",
        plan: "cleaning up the riverbank with the neighbours",
        ask: "pick up litter along the river",
        noun: "the riverbank clean-up",
    },
    Event {
        id: "school-raffle",
        past: "ran the school raffle",
        plan: "running the school raffle",
        ask: "organise the raffle of the school",
        noun: "the school raffle",
    },
    Event {
        id: "baby-shower",
        past: "held a baby shower for my sister-in-law",
        plan: "holding a baby shower for my sister-in-law",
        ask: "give a baby shower",
        noun: "the baby shower",
    },
    Event {
        id: "cousin-s-graduation",
        past: "went to my cousin's graduation",
        plan: "going to my cousin's graduation",
        ask: "attend the graduation of a cousin",
        noun: "the cousin's graduation",
    },
    Event {
        id: "dinner-with-the-former-boss",
        past: "had dinner with my old boss",
        plan: "having dinner with my old boss",
        ask: "dine with a former boss",
        noun: "the dinner with the former boss",
    },
    Event {
        id: "book-signing",
        past: "met my favourite author at a signing",
        plan: "meeting my favourite author at a signing",
        ask: "get a book signed by a favourite writer",
        noun: "the book signing",
    },
    Event {
        id: "end-of-the-first-aid-course",
        past: "finished my first aid training",
        plan: "finishing my first aid training",
        ask: "complete the first aid course",
        noun: "the end of the first aid course",
    },
    Event {
        id: "vet-visit-with-the-cat",
        past: "took my cat to the vet",
        plan: "taking my cat to the vet",
        ask: "bring the cat to the animal doctor",
        noun: "the vet visit with the cat",
    },
    Event {
        id: "filing-of-the-tax-return",
        past: "handed in my tax return",
        plan: "handing in my tax return",
        ask: "file the taxes",
        noun: "the filing of the tax return",
    },
    Event {
        id: "bike-theft",
        past: "got my bike stolen",
        plan: "",
        ask: "have a bicycle stolen",
        noun: "the bike theft",
    },
    Event {
        id: "lock-out",
        past: "locked myself out of the flat",
        plan: "",
        ask: "get locked out of the apartment",
        noun: "the lock-out",
    },
    Event {
        id: "puncture",
        past: "had a flat tyre on the motorway",
        plan: "",
        ask: "get a puncture on the motorway",
        noun: "the puncture",
    },
    Event { id: "ankle-injury", past: "sprained my ankle", plan: "", ask: "hurt an ankle", noun: "the ankle injury" },
    Event {
        id: "elevator-incident",
        past: "got stuck in a lift",
        plan: "",
        ask: "get trapped in an elevator",
        noun: "the elevator incident",
    },
    Event {
        id: "power-cut",
        past: "had a power cut that lasted all night",
        plan: "",
        ask: "sit in the dark without electricity",
        noun: "the power cut",
    },
    Event {
        id: "find-of-the-wallet",
        past: "found a wallet in the park",
        plan: "",
        ask: "find somebody's wallet",
        noun: "the find of the wallet",
    },
    Event {
        id: "win-of-the-hamper",
        past: "won a hamper in a raffle",
        plan: "",
        ask: "win a hamper",
        noun: "the win of the hamper",
    },
    Event {
        id: "ruined-roast",
        past: "burnt the Sunday roast",
        plan: "",
        ask: "ruin the Sunday roast",
        noun: "the ruined roast",
    },
    Event {
        id: "encounter-with-the-ex",
        past: "bumped into my ex at the market",
        plan: "",
        ask: "run into an ex",
        noun: "the encounter with the ex",
    },
    Event {
        id: "speeding-fine",
        past: "got a speeding ticket",
        plan: "",
        ask: "get fined for driving too fast",
        noun: "the speeding fine",
    },
    Event {
        id: "broken-vase",
        past: "broke my favourite vase",
        plan: "",
        ask: "smash a favourite vase",
        noun: "the broken vase",
    },
];

/// Something that has been going on for a while.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: &'static str,
    /// After "I've been": `keeping bees`.
    pub(crate) doing: &'static str,
    /// After "Since when has X been", in other words.
    pub(crate) ask: &'static str,
}

/// Says for how long: `{k}` what, `{v}` how long.
pub(crate) const ONGOING: &[&str] = &[
    "I've been {k} for {v} now.",
    "Would you believe that I've been {k} for {v} now?",
    "For {v} now I've been {k}, and I don't regret it.",
];

/// All states.
pub(crate) const STATES: &[State] = &[
    State { id: "keeping-bees", doing: "keeping bees", ask: "looking after beehives" },
    State { id: "living-without-a-television", doing: "living without a television", ask: "doing without a TV set" },
    State { id: "writing-a-diary-every-night", doing: "writing a diary every night", ask: "keeping a journal" },
    State { id: "seeing-a-therapist", doing: "seeing a therapist", ask: "going to therapy" },
    State { id: "renting-an-allotment", doing: "renting an allotment", ask: "having an allotment" },
    State {
        id: "singing-in-the-parish-choir",
        doing: "singing in the parish choir",
        ask: "a member of the church choir",
    },
    State { id: "coaching-the-under-tens", doing: "coaching the under-tens", ask: "training the youngest team" },
    State { id: "running-a-small-newsletter", doing: "running a small newsletter", ask: "publishing a newsletter" },
    State { id: "paying-off-my-student-loan", doing: "paying off my student loan", ask: "repaying the student loan" },
    State {
        id: "wearing-contact-lenses",
        doing: "wearing contact lenses",
        ask: "using contact lenses instead of glasses",
    },
    State { id: "working-from-home", doing: "working from home", ask: "doing the job from home" },
    State { id: "restoring-an-old-motorboat", doing: "restoring an old motorboat", ask: "fixing up a motorboat" },
    State { id: "fostering-kittens", doing: "fostering kittens", ask: "taking care of foster kittens" },
    State {
        id: "sharing-a-car-with-the-neighbours",
        doing: "sharing a car with the neighbours",
        ask: "part of a car-sharing group with the neighbours",
    },
    State { id: "mentoring-a-student", doing: "mentoring a student", ask: "a mentor to a student" },
    State {
        id: "baking-for-the-corner-shop",
        doing: "baking for the corner shop",
        ask: "supplying the corner shop with baked goods",
    },
    State { id: "taking-cold-showers", doing: "taking cold showers", ask: "showering cold" },
    State { id: "teaching-evening-classes", doing: "teaching evening classes", ask: "giving lessons in the evening" },
];
