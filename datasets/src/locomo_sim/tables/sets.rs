//! Things of one kind that a speaker mentions one by one over several sessions: multi-hop questions.

use super::words::Pool;

/// One kind of list.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) id: &'static str,
    /// What the things are, in the plural: `cities visited`.
    pub(crate) noun: &'static str,
    pub(crate) value: Pool,
    pub(crate) says: &'static [&'static str],
    /// Asks for the whole list.
    pub(crate) asks: &'static [&'static str],
    /// Asks for their number.
    pub(crate) count: &'static str,
    /// Asks for what the two speakers have in common.
    pub(crate) both: &'static str,
}

/// All kinds.
pub(crate) const SETS: &[Set] = &[
    Set {
        id: "cities",
        noun: "cities visited",
        value: Pool::City,
        says: &[
            "I'm just back from {v}, what a trip.",
            "We took the train to {v} for a long weekend.",
            "My feet still hurt from walking all over {v}.",
        ],
        asks: &[
            "Which cities has {n} travelled to?",
            "What cities did {n} visit over the course of the conversations?",
        ],
        count: "How many cities has {n} been to on trips?",
        both: "Which city have both {n} and {o} visited?",
    },
    Set {
        id: "books",
        noun: "books read",
        value: Pool::Book,
        says: &[
            "I finished \"{v}\" at two in the morning.",
            "I can't stop thinking about the ending of the novel \"{v}\".",
            "My book of the month was \"{v}\".",
        ],
        asks: &[
            "Which books has {n} read?",
            "What are the titles of the novels {n} talked about?",
        ],
        count: "How many books has {n} read?",
        both: "Which book did both {n} and {o} read?",
    },
    Set {
        id: "films",
        noun: "films seen",
        value: Pool::Film,
        says: &[
            "We saw \"{v}\" at the cinema.",
            "I watched the film \"{v}\" and laughed the whole time.",
            "Movie night was \"{v}\" at our place.",
        ],
        asks: &[
            "Which films has {n} watched?",
            "What movies did {n} mention having seen?",
        ],
        count: "How many films has {n} watched?",
        both: "Which film have both {n} and {o} seen?",
    },
    Set {
        id: "instruments",
        noun: "instruments played",
        value: Pool::Instrument,
        says: &[
            "I can get a proper tune out of the {v} now.",
            "My {v} practice drives the neighbours mad.",
            "I started playing the {v}.",
        ],
        asks: &[
            "Which instruments does {n} play?",
            "What musical instruments has {n} taken up?",
        ],
        count: "How many instruments does {n} play?",
        both: "Which instrument do both {n} and {o} play?",
    },
    Set {
        id: "potluck",
        noun: "dishes brought to potlucks",
        value: Pool::Dish,
        says: &[
            "My contribution to the potluck was a plate of {v}.",
            "I brought {v} to the potluck and nothing was left.",
            "Everyone at the potluck wanted the recipe for my {v}.",
        ],
        asks: &[
            "What has {n} brought to potlucks?",
            "Which dishes did {n} contribute to potlucks?",
        ],
        count: "How many different dishes has {n} brought to potlucks?",
        both: "Which dish have both {n} and {o} brought to a potluck?",
    },
    Set {
        id: "languages",
        noun: "languages learned",
        value: Pool::Language,
        says: &[
            "I signed up for beginner's {v}.",
            "My {v} is good enough to order soup now.",
            "I'm trying to learn some {v}.",
        ],
        asks: &[
            "Which languages has {n} been learning?",
            "What languages does {n} practise?",
        ],
        count: "How many languages has {n} been learning?",
        both: "Which language are both {n} and {o} learning?",
    },
    Set {
        id: "games",
        noun: "board games played",
        value: Pool::Board,
        says: &[
            "Game night was all about \"{v}\".",
            "I won a round of the board game \"{v}\".",
            "We stayed up far too late over \"{v}\", best board game ever.",
        ],
        asks: &["Which board games has {n} played?", "What did {n} play at game nights?"],
        count: "How many different board games has {n} played?",
        both: "Which board game have both {n} and {o} played?",
    },
    Set {
        id: "sports",
        noun: "sports tried",
        value: Pool::Sport,
        says: &[
            "I tried {v} for the first time and ache everywhere.",
            "A friend dragged me along to {v}, and I loved it.",
            "I had a trial lesson in {v}.",
        ],
        asks: &["Which sports has {n} tried?", "What kinds of sport did {n} give a go?"],
        count: "How many sports has {n} tried?",
        both: "Which sport have both {n} and {o} tried?",
    },
    Set {
        id: "crafts",
        noun: "crafts tried",
        value: Pool::Craft,
        says: &[
            "My table is covered in {v} supplies.",
            "I've got into {v}, it's so calming.",
            "My first go at {v} went better than expected.",
        ],
        asks: &["Which crafts has {n} taken up?", "What handicrafts does {n} do?"],
        count: "How many crafts has {n} taken up?",
        both: "Which craft do both {n} and {o} do?",
    },
    Set {
        id: "bands",
        noun: "bands seen live",
        value: Pool::Band,
        says: &[
            "I saw {v} live and lost my voice.",
            "The {v} concert was worth every penny.",
            "Front row at {v}, can you believe it?",
        ],
        asks: &["Which bands has {n} seen live?", "Whose concerts did {n} go to?"],
        count: "How many bands has {n} seen live?",
        both: "Which band have both {n} and {o} seen in concert?",
    },
    Set {
        id: "museums",
        noun: "museums visited",
        value: Pool::Museum,
        says: &[
            "I spent a rainy afternoon in the {v}.",
            "The {v} has a wonderful new wing, I was there.",
            "I got lost in the {v} and missed my bus.",
        ],
        asks: &["Which museums has {n} been to?", "What museums did {n} visit?"],
        count: "How many museums has {n} been to?",
        both: "Which museum have both {n} and {o} been to?",
    },
    Set {
        id: "lakes",
        noun: "lakes swum in",
        value: Pool::Lake,
        says: &[
            "I took a dip in {v}, freezing but great.",
            "We swam all the way across {v}.",
            "The water of {v} was perfect for a swim.",
        ],
        asks: &["In which lakes has {n} swum?", "Where did {n} go for a swim outdoors?"],
        count: "In how many lakes has {n} swum?",
        both: "In which lake have both {n} and {o} swum?",
    },
    Set {
        id: "causes",
        noun: "places of voluntary work",
        value: Pool::Cause,
        says: &[
            "I gave them a hand at the {v}, and they need many more.",
            "I did a volunteer shift with the {v}.",
            "The {v} was glad about every helper, so I stayed all day.",
        ],
        asks: &["Where has {n} volunteered?", "Which organisations did {n} help out?"],
        count: "For how many organisations has {n} volunteered?",
        both: "For which organisation have both {n} and {o} volunteered?",
    },
    Set {
        id: "courses",
        noun: "online courses taken",
        value: Pool::Course,
        says: &[
            "I enrolled in an online course on {v}.",
            "My online course about {v} is harder than it looked.",
            "I got the certificate of my online course in {v}.",
        ],
        asks: &[
            "Which online courses has {n} taken?",
            "What topics did {n} study online?",
        ],
        count: "How many online courses has {n} taken?",
        both: "Which subject did both {n} and {o} take as an online course?",
    },
    Set {
        id: "guests",
        noun: "house guests",
        value: Pool::Person,
        says: &[
            "{v} stayed in our guest room for a few days.",
            "We had {v} over as a house guest, it was a full house.",
            "The sofa bed is free again, {v} has gone home.",
        ],
        asks: &[
            "Who has stayed with {n} as a guest?",
            "Which people did {n} put up at home?",
        ],
        count: "How many house guests has {n} had?",
        both: "Who has been a house guest of both {n} and {o}?",
    },
    Set {
        id: "plays",
        noun: "plays seen",
        value: Pool::Play,
        says: &[
            "We had tickets for the play \"{v}\".",
            "The theatre did \"{v}\", and I'd go again.",
            "I was at the opening night of \"{v}\".",
        ],
        asks: &["Which plays has {n} seen?", "What did {n} see at the theatre?"],
        count: "How many plays has {n} seen?",
        both: "Which play have both {n} and {o} seen?",
    },
    Set {
        id: "dances",
        noun: "dances learned",
        value: Pool::Dance,
        says: &[
            "We practised {v} until our shoes smoked.",
            "I know the basic steps of {v} now.",
            "My dance partner talked me into {v}.",
        ],
        asks: &[
            "Which dances has {n} learned?",
            "What styles of dance did {n} practise?",
        ],
        count: "How many dances has {n} learned?",
        both: "Which dance have both {n} and {o} learned?",
    },
    Set {
        id: "birds",
        noun: "birds on the list",
        value: Pool::Bird,
        says: &[
            "I added {av} to my bird list!",
            "Up at dawn with binoculars, and there it was, {av}.",
            "The guide showed me my first {v}.",
        ],
        asks: &["Which birds are on {n}'s list?", "What birds has {n} watched?"],
        count: "How many birds has {n} put on the list?",
        both: "Which bird is on the lists of both {n} and {o}?",
    },
    Set {
        id: "teas",
        noun: "teas tried",
        value: Pool::Tea,
        says: &[
            "I brewed a pot of {v} tea, quite special.",
            "The tea of the week is {v}.",
            "Someone at the tea shop talked me into {v}.",
        ],
        asks: &["Which teas has {n} tried?", "What kinds of tea did {n} drink?"],
        count: "How many kinds of tea has {n} tried?",
        both: "Which tea have both {n} and {o} tried?",
    },
    Set {
        id: "jams",
        noun: "jams made",
        value: Pool::Jam,
        says: &[
            "There are twelve jars of {v} jam on my shelf.",
            "The kitchen smells of {v} jam.",
            "My {v} jam set on the first try.",
        ],
        asks: &["Which kinds of jam has {n} made?", "What flavours of jam did {n} cook?"],
        count: "How many kinds of jam has {n} made?",
        both: "Which jam have both {n} and {o} made?",
    },
    Set {
        id: "postcards",
        noun: "countries that sent postcards",
        value: Pool::Country,
        says: &[
            "The postman brought a card all the way from {v}.",
            "A postcard from {v} is on my fridge now.",
            "My mailbox had a postcard from {v} in it.",
        ],
        asks: &[
            "From which countries has {n} received postcards?",
            "Where did {n}'s postcards come from?",
        ],
        count: "From how many countries has {n} received postcards?",
        both: "From which country have both {n} and {o} received a postcard?",
    },
    Set {
        id: "paintings",
        noun: "motifs painted",
        value: Pool::Scene,
        says: &[
            "My latest canvas shows {v}.",
            "I painted {v}, three layers of oil.",
            "Finished another picture, this time {v}.",
        ],
        asks: &["What motifs has {n} painted?", "What do {n}'s paintings show?"],
        count: "How many pictures has {n} painted?",
        both: "Which motif have both {n} and {o} painted?",
    },
];
