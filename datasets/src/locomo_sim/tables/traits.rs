//! What a speaker is like, and what follows from it by common sense: open-domain questions.

/// One trait. A speaker has at most one of each, and no two contradict each other.
#[derive(Debug)]
pub(crate) struct Trait {
    pub(crate) id: &'static str,
    pub(crate) says: &'static [&'static str],
    pub(crate) probes: &'static [Probe],
}

/// A question that the trait decides.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) yes: bool,
    /// After "Would X".
    pub(crate) ask: &'static str,
    pub(crate) reason: &'static str,
}

const fn yes(ask: &'static str, reason: &'static str) -> Probe {
    Probe { yes: true, ask, reason }
}

const fn no(ask: &'static str, reason: &'static str) -> Probe {
    Probe { yes: false, ask, reason }
}

/// Asks: `{k}` is the probe.
pub(crate) const ASKS: &[&str] =
    &["Would {n} likely {k}?", "Judging by the conversations, would {n} {k}?", "Is it likely that {n} would {k}?"];

/// Pairs of traits that one speaker does not have together.
pub(crate) const CONTRADICTIONS: &[(&str, &str)] = &[("planet", "cars"), ("sleep", "evenings")];

/// All traits.
pub(crate) const TRAITS: &[Trait] = &[
    Trait {
        id: "heights",
        says: &[
            "I get dizzy on anything higher than a kitchen chair.",
            "I'm terrified of heights, I even avoid glass lifts.",
        ],
        probes: &[
            no("enjoy a hot-air balloon ride", "heights frighten {n}"),
            no("book a room on the top floor of a glass tower", "{n} can't stand heights"),
        ],
    },
    Trait {
        id: "spice",
        says: &[
            "If a dish doesn't burn, it isn't done, I put hot sauce on everything.",
            "I order my food extra hot, always.",
        ],
        probes: &[
            yes("enjoy a chilli eating contest", "{n} loves very hot food"),
            yes("like a basket of hot sauces as a gift", "{n} puts hot sauce on everything"),
        ],
    },
    Trait {
        id: "nuts",
        says: &["I carry an adrenaline pen, one peanut could put me in hospital.", "I have a bad peanut allergy."],
        probes: &[
            no("order a satay dish", "satay is made with peanuts and {n} is allergic"),
            no("eat a peanut butter sandwich", "{n} is allergic to peanuts"),
        ],
    },
    Trait {
        id: "diet",
        says: &["I haven't eaten meat since my teens.", "I'm a convinced vegetarian."],
        probes: &[
            no("choose a steakhouse for a birthday dinner", "{n} is a vegetarian"),
            yes("appreciate a restaurant without meat on the menu", "{n} doesn't eat meat"),
        ],
    },
    Trait {
        id: "alcohol",
        says: &["I don't touch alcohol at all.", "I quit drinking for good and feel great."],
        probes: &[
            no("enjoy a tour of whisky distilleries", "{n} doesn't drink alcohol"),
            yes("welcome a menu with many alcohol-free drinks", "{n} stays away from alcohol"),
        ],
    },
    Trait {
        id: "coffee",
        says: &["Nobody should talk to me before my third espresso.", "I run on coffee, five cups a day."],
        probes: &[
            yes("be pleased with a home espresso machine", "{n} drinks a lot of coffee"),
            no("find it easy to give up caffeine", "{n} depends on coffee"),
        ],
    },
    Trait {
        id: "heat",
        says: &["Anything above twenty-five degrees melts me.", "I suffer in the heat, give me snow any day."],
        probes: &[no("enjoy a trek through the desert", "{n} suffers in the heat")],
    },
    Trait {
        id: "flying",
        says: &["I haven't boarded a plane in years, I panic at take-off.", "Planes scare me to death."],
        probes: &[
            no("take a job as a flight attendant", "{n} is afraid of flying"),
            yes("choose the train over a short flight", "{n} is afraid of planes"),
        ],
    },
    Trait {
        id: "horror",
        says: &["I can't sleep for a week after a scary film.", "Horror films are simply too much for me."],
        probes: &[no("go to a haunted house at night", "scary things keep {n} awake")],
    },
    Trait {
        id: "puzzles",
        says: &[
            "Give me a riddle and I won't leave the table until it's solved.",
            "I do three sudokus before breakfast.",
        ],
        probes: &[
            yes("have fun in an escape room", "{n} loves riddles"),
            yes("be glad of a thousand-piece jigsaw", "{n} enjoys puzzles"),
        ],
    },
    Trait {
        id: "space",
        says: &[
            "I know the moons of Jupiter by heart, space is my thing.",
            "I spend every clear night looking at the stars through my lens.",
        ],
        probes: &[
            yes("want to visit an observatory", "{n} is fascinated by space"),
            yes("watch a live rocket launch", "{n} is keen on space"),
        ],
    },
    Trait {
        id: "trains",
        says: &[
            "I can tell locomotives by their sound, I'm that kind of person.",
            "Timetables and railways have always thrilled me.",
        ],
        probes: &[
            yes("enjoy a day at a railway museum", "{n} is a railway enthusiast"),
            yes("choose a journey on a steam train", "{n} loves railways"),
        ],
    },
    Trait {
        id: "planet",
        says: &[
            "I count my carbon footprint to the kilo.",
            "I do everything to keep my waste down, the planet matters to me.",
        ],
        probes: &[
            yes("support a ban on plastic bags", "{n} cares about the environment"),
            yes("enjoy a workshop on living without waste", "{n} tries to protect the climate"),
        ],
    },
    Trait {
        id: "kids",
        says: &[
            "I could spend all day with toddlers, they make me laugh.",
            "Little children are my favourite company.",
        ],
        probes: &[
            yes("volunteer in a kindergarten", "{n} loves being with small children"),
            yes("agree to babysit over a weekend", "{n} enjoys the company of children"),
        ],
    },
    Trait {
        id: "order",
        says: &[
            "I sort my spices by alphabet, I can't help it.",
            "Everything has its place at my home, down to the last spoon.",
        ],
        probes: &[
            yes("do well at organising a messy archive", "{n} is very tidy"),
            no("feel comfortable sharing a room with a messy person", "{n} needs everything in order"),
        ],
    },
    Trait {
        id: "rain",
        says: &["I love walking in the pouring rain.", "Rain makes me happy, the heavier the better."],
        probes: &[yes("move to a place that is known for its wet weather", "{n} loves rain")],
    },
    Trait {
        id: "spiders",
        says: &["I scream when I see a spider, I really do.", "Spiders are the one thing I can't handle."],
        probes: &[
            no("apply for a job in the insect house of a zoo", "{n} is afraid of spiders"),
            no("keep a tarantula as a pet", "{n} is scared of spiders"),
        ],
    },
    Trait {
        id: "fashion",
        says: &[
            "I plan my outfits a week ahead, clothes are my passion.",
            "I can name the designer of any coat on the street.",
        ],
        probes: &[
            yes("like front row seats at a fashion show", "{n} is passionate about clothes"),
            yes("enjoy a job as a stylist", "{n} knows a lot about fashion"),
        ],
    },
    Trait {
        id: "history",
        says: &[
            "I read about the Romans whenever I can.",
            "Old ruins give me goosebumps, I could listen to guides for hours.",
        ],
        probes: &[yes("enjoy a guided tour of an excavation site", "{n} loves ancient history")],
    },
    Trait {
        id: "sweets",
        says: &[
            "I have dessert first, in case I get full.",
            "My sweet tooth is legendary, I hide chocolate all over the house.",
        ],
        probes: &[
            yes("be happy with a visit to a chocolate factory", "{n} loves sweets"),
            no("find it easy to live without sugar", "{n} has a sweet tooth"),
        ],
    },
    Trait {
        id: "competition",
        says: &["I have to win, even at snap against my own nephew.", "I'm far too competitive for friendly matches."],
        probes: &[
            yes("take part in a regional championship", "{n} loves to compete"),
            no("shrug off losing an important match", "{n} hates to lose"),
        ],
    },
    Trait {
        id: "risk",
        says: &["I read the insurance terms before I cross the street.", "I avoid every risk I can see coming."],
        probes: &[
            no("put all savings into a friend's start-up", "{n} avoids risks"),
            no("try parachuting", "{n} is very cautious"),
        ],
    },
    Trait {
        id: "stage",
        says: &["Give me a stage and I won't leave it.", "I feel most alive with a spotlight on me."],
        probes: &[
            yes("audition for a musical", "{n} loves being on stage"),
            yes("enjoy hosting a talent show", "{n} likes the spotlight"),
        ],
    },
    Trait {
        id: "cars",
        says: &[
            "I spend my Sundays under the bonnet, I love engines.",
            "I can hear what's wrong with an engine from across the road.",
        ],
        probes: &[yes("enjoy a visit to a motor show", "{n} loves engines")],
    },
    Trait {
        id: "evenings",
        says: &["I'm asleep by nine, every single night.", "After dinner I'm good for nothing but my bed."],
        probes: &[
            no("enjoy a party that starts at midnight", "{n} goes to bed early"),
            no("be happy with a late shift", "{n} gets tired early in the evening"),
        ],
    },
    Trait {
        id: "dust",
        says: &["One speck of dust and I sneeze for an hour.", "I'm allergic to dust, it's a nuisance."],
        probes: &[
            no("offer to clear out an old attic", "dust makes {n} sneeze"),
            no("enjoy working in a sawmill", "{n} is allergic to dust"),
        ],
    },
    Trait {
        id: "caves",
        says: &["Tight spaces make me panic.", "I'm claustrophobic, I can't stay in narrow rooms."],
        probes: &[
            no("join a tour through a narrow cave", "{n} panics in tight spaces"),
            no("want to travel in a submarine", "{n} is claustrophobic"),
        ],
    },
    Trait {
        id: "orientation",
        says: &["I never need a map, I always know where north is.", "Drop me anywhere and I'll find the way home."],
        probes: &[
            yes("do well in an orienteering race", "{n} has an excellent sense of direction"),
            yes("be a good guide in an unknown forest", "{n} always finds the way"),
        ],
    },
    Trait {
        id: "royals",
        says: &["I follow every royal wedding minute by minute.", "I know the family trees of all the royal houses."],
        probes: &[
            yes("watch a coronation on television", "{n} follows the royals"),
            yes("enjoy a tour of a palace", "{n} is fascinated by royalty"),
        ],
    },
    Trait {
        id: "romance",
        says: &[
            "I cry at every love story, even the silly ones.",
            "Give me a happy ending with a kiss and I'm content.",
        ],
        probes: &[yes("pick a romantic comedy for the evening", "{n} loves love stories")],
    },
    Trait {
        id: "sleep",
        says: &["The slightest movement wakes me up at night.", "I'm a terribly light sleeper."],
        probes: &[
            no("sleep well in a shared dormitory", "{n} is a light sleeper"),
            no("be rested after a night on a coach", "{n} wakes up easily"),
        ],
    },
    Trait {
        id: "weather",
        says: &[
            "I write down wind, clouds and pressure every morning.",
            "I read weather charts the way others read novels.",
        ],
        probes: &[
            yes("like to visit a weather station", "{n} is fascinated by the weather"),
            yes("be glad of a new barometer", "{n} keeps weather records"),
        ],
    },
    Trait {
        id: "butterflies",
        says: &["I can name every butterfly in the region.", "I planted nettles so that the caterpillars have food."],
        probes: &[yes("enjoy a visit to a butterfly house", "{n} loves butterflies")],
    },
    Trait {
        id: "buildings",
        says: &["I photograph concrete facades wherever I go.", "Modern buildings make my heart beat faster."],
        probes: &[yes("join a walking tour of modern architecture", "{n} is enthusiastic about modern buildings")],
    },
    Trait {
        id: "opera",
        says: &["Opera bores me to tears.", "Two minutes of an aria and I'm out of the door."],
        probes: &[no("be pleased with tickets for a five-hour opera", "opera bores {n}")],
    },
    Trait {
        id: "clowns",
        says: &["Clowns creep me out, always have.", "I leave the room when a clown comes in."],
        probes: &[no("enjoy an evening at the circus", "{n} is uneasy around clowns")],
    },
    Trait {
        id: "handed",
        says: &["I'm left-handed and smear everything I write.", "As a left-hander I fight with every can opener."],
        probes: &[yes("find ordinary scissors awkward to use", "{n} is left-handed")],
    },
];
