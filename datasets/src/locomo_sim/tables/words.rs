//! Word lists, and the pools of values that are drawn or put together from them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

use serde::Deserialize;

use crate::locomo_sim::rng::Rng;

/// A list of words.
pub(crate) type List = LazyLock<Vec<&'static str>>;

/// All lists, by their names in small letters.
static LISTS: LazyLock<BTreeMap<&'static str, Vec<&'static str>>> =
    LazyLock::new(|| super::read(include_str!("words.toml")));

macro_rules! lists {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) static $name: List =
            LazyLock::new(|| LISTS.get(stringify!($name).to_lowercase().as_str()).cloned().unwrap_or_default());)*
    };
}

lists! {
    FIRST_NAMES, SURNAMES, PET_NAMES, CITIES, COUNTRIES, ADJECTIVES, NOUNS, ANIMALS, BIRDS, PLANTS, SHADES, COLOURS,
    MATERIALS, OBJECTS, BELONGINGS, KNITS, JOBS, SUBJECTS, SKILLS, INGREDIENTS, VEGETABLES, DISHES, FRUITS, TASTES,
    CAKES, TEAS, INSTRUMENTS, LANGUAGES, SPORTS, CRAFTS, DANCES, COLLECTIBLES, WONDERS, TALKS, CLASSES, CAUSES, SCENES,
    SHOP_WORDS, FIRMS, VENUES, VEHICLES, TRAVEL, CLUBS, HAIR, TIMES,
}

/// A list by its name; empty when there is none.
pub(crate) fn list(name: &str) -> &'static [&'static str] {
    LISTS.get(name).map_or(&[], Vec::as_slice)
}

/// Where the value of a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Pool {
    Animal,
    Belonging,
    Band,
    Bird,
    Board,
    Book,
    Cafe,
    Cake,
    Car,
    Cause,
    City,
    Class,
    Collectible,
    Colour,
    Company,
    Count,
    Country,
    Course,
    Craft,
    Dance,
    Dish,
    Film,
    Hair,
    Ingredient,
    Instrument,
    Jam,
    Job,
    Knit,
    Lake,
    Language,
    Money,
    Museum,
    Object,
    Person,
    Pet,
    Plant,
    Play,
    Podcast,
    Scene,
    Skill,
    Song,
    Sport,
    Street,
    Subject,
    Talk,
    Tea,
    Teacher,
    Team,
    Time,
    Travel,
    Venue,
    Wonder,
}

impl Pool {
    /// One value, as it comes.
    fn raw(self, rng: &mut Rng) -> String {
        let one = |list: &List, rng: &mut Rng| rng.word(list).to_owned();
        let two = |first: &List, between: &str, second: &List, rng: &mut Rng| {
            format!("{}{between}{}", rng.pick(first), rng.pick(second))
        };
        match self {
            Self::Animal => one(&ANIMALS, rng),
            Self::Belonging => two(&COLOURS, " ", &BELONGINGS, rng),
            Self::Band => format!("{} and the {}s", rng.word(&SURNAMES), rng.word(&NOUNS)),
            Self::Bird => one(&BIRDS, rng),
            Self::Board => two(&NOUNS, " and ", &NOUNS, rng),
            Self::Book => format!("The {} {}", rng.word(&ADJECTIVES), rng.word(&NOUNS)),
            Self::Cafe => format!("Cafe {} {}", rng.word(&ADJECTIVES), rng.word(&NOUNS)),
            Self::Cake => format!("{} cake with {}", rng.word(&CAKES), rng.word(&FRUITS)),
            Self::Car => two(&COLOURS, " ", &VEHICLES, rng),
            Self::Cause => two(&SHOP_WORDS, " ", &CAUSES, rng),
            Self::City => one(&CITIES, rng),
            Self::Class => one(&CLASSES, rng),
            Self::Collectible => one(&COLLECTIBLES, rng),
            Self::Colour => two(&SHADES, " ", &COLOURS, rng),
            Self::Company => two(&SHOP_WORDS, " ", &FIRMS, rng),
            Self::Count => rng.between(11, 97).to_string(),
            Self::Country => one(&COUNTRIES, rng),
            Self::Course => one(&SUBJECTS, rng),
            Self::Craft => one(&CRAFTS, rng),
            Self::Dance => one(&DANCES, rng),
            Self::Dish => two(&VEGETABLES, " ", &DISHES, rng),
            Self::Film => format!("{} in the {}", rng.word(&NOUNS), rng.word(&NOUNS)),
            Self::Hair => one(&HAIR, rng),
            Self::Ingredient => one(&INGREDIENTS, rng),
            Self::Instrument => one(&INSTRUMENTS, rng),
            Self::Jam => two(&FRUITS, " and ", &TASTES, rng),
            Self::Job => one(&JOBS, rng),
            Self::Knit => two(&COLOURS, " ", &KNITS, rng),
            Self::Lake => format!("Lake {}", rng.word(&SURNAMES)),
            Self::Language => one(&LANGUAGES, rng),
            Self::Money => format!("${}", rng.between(41, 989)),
            Self::Museum => format!("{} {} Museum", rng.word(&SHOP_WORDS), rng.word(&NOUNS)),
            Self::Object => two(&MATERIALS, " ", &OBJECTS, rng),
            Self::Person => one(&FIRST_NAMES, rng),
            Self::Pet => one(&PET_NAMES, rng),
            Self::Plant => one(&PLANTS, rng),
            Self::Play => format!("A {} for the {}", rng.word(&NOUNS), rng.word(&NOUNS)),
            Self::Podcast => format!("{} {} Hour", rng.word(&ADJECTIVES), rng.word(&NOUNS)),
            Self::Scene => one(&SCENES, rng),
            Self::Skill => one(&SKILLS, rng),
            Self::Song => format!("My {} {}", rng.word(&ADJECTIVES), rng.word(&NOUNS)),
            Self::Sport => one(&SPORTS, rng),
            Self::Street => format!("{} Street", rng.word(&SURNAMES)),
            Self::Subject => one(&SUBJECTS, rng),
            Self::Talk => one(&TALKS, rng),
            Self::Tea => one(&TEAS, rng),
            Self::Teacher => format!("{} {}", if rng.chance(50) { "Mr" } else { "Ms" }, rng.word(&SURNAMES)),
            Self::Team => two(&SHOP_WORDS, " ", &CLUBS, rng),
            Self::Time => one(&TIMES, rng),
            Self::Travel => one(&TRAVEL, rng),
            Self::Venue => one(&VENUES, rng),
            Self::Wonder => one(&WONDERS, rng),
        }
    }

    /// One value that the bank does not have yet; nothing when the pool is used up.
    pub(crate) fn draw(self, rng: &mut Rng, used: &mut HashSet<String>) -> Option<String> {
        for _ in 0..200 {
            let value = self.raw(rng);
            if used.insert(value.to_lowercase()) {
                return Some(value);
            }
        }
        None
    }
}

/// The value with its article: `an otter`, `a kestrel`, `a ukulele`.
pub(crate) fn with_article(value: &str) -> String {
    let vowel = value.starts_with(|c: char| "aeiouAEIOU".contains(c));
    let sounds_like_you = ["euph", "uku", "uni"].iter().any(|start| value.starts_with(start));
    format!("{} {value}", if vowel && !sounds_like_you { "an" } else { "a" })
}
