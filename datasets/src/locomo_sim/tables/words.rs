//! Word lists, and the pools of values that are drawn or put together from them.

use std::{collections::HashSet, sync::LazyLock};

use crate::locomo_sim::rng::Rng;

/// A list that is written as one text, entries separated by a comma.
pub(crate) type List = LazyLock<Vec<&'static str>>;

macro_rules! lists {
    ($($name:ident = $text:expr;)*) => {
        $(pub(crate) static $name: List = LazyLock::new(|| $text.split(',').map(str::trim).collect());)*
    };
}

lists! {
    FIRST_NAMES = "Abel, Ada, Adele, Agnes, Ahmed, Aisha, Alba, Alma, Amara, Amos, Anders, Anika, Ansel, Anton, Aram,
        Ariel, Arlo, Asha, Astrid, Axel, Basil, Beata, Benno, Bertil, Bianca, Bjorn, Blanca, Boris, Bram, Bruna,
        Callum, Camila, Carina, Carmen, Cedric, Celia, Chiara, Ciaran, Clara, Cleo, Conrad, Cora, Cyrus, Dafna,
        Dagmar, Dario, Deepa, Delia, Desmond, Dina, Dora, Doyle, Edgar, Edith, Efua, Elias, Elif, Elsa, Emeka, Enid,
        Enzo, Erica, Esben, Esra, Ethel, Ewan, Fabian, Farah, Felix, Fergus, Fiona, Flora, Freya, Gaia, Gemma, Gideon,
        Gita, Goran, Greta, Gustav, Hana, Hanif, Harriet, Hector, Heidi, Helga, Hiro, Hugo, Ida, Ilse, Imani, Imre,
        Ines, Ingrid, Iris, Isaac, Ismael, Ivana, Ivo, Jana, Jarek, Jasper, Joanne, Jorge, Judit, Julius, Kaito,
        Kamala, Karim, Katja, Keiko, Kemal, Kerstin, Kofi, Lars, Layla, Leandro, Leif, Lena, Leona, Levi, Lidia,
        Lilah, Linus, Lorenz, Lotte, Lucia, Ludo, Luz, Mabel, Magnus, Malik, Mara, Marcel, Margot, Marisol, Marta,
        Mateo, Maud, Mehmet, Mila, Milan, Minna, Mirko, Moira, Monika, Nadia, Naomi, Nasrin, Nelson, Nico, Nils, Nina,
        Noor, Nora, Odette, Olaf, Olga, Omar, Oona, Orla, Oscar, Otis, Paloma, Pascal, Paula, Pedro, Petra, Pia,
        Piotr, Priya, Quentin, Rafael, Ragna, Ramona, Rashid, Renata, Rhea, Rita, Roman, Rosa, Rowan, Ruben, Runa,
        Ruth, Sabine, Salma, Samir, Sanna, Saskia, Selma, Sergio, Shirin, Sigrid, Silas, Simone, Soren, Stella, Sunil,
        Svea, Tariq, Tessa, Theo, Thora, Tilda, Tobias, Tomas, Tova, Ulla, Uma, Ursula, Vera, Viggo, Vikram, Viola,
        Wanda, Wilma, Xenia, Yara, Yasmin, Yusuf, Yvette, Zadie, Zara, Zeno, Zita, Zora";
    SURNAMES = "Abbott, Almeida, Barlow, Bergmann, Castell, Corrigan, Dahl, Delgado, Eklund, Farrow, Fonseca, Garnett,
        Grimaldi, Haldane, Hoffer, Ibsen, Jansson, Kessler, Kowal, Lagrange, Lindqvist, Marchetti, Moreau, Nakata,
        Novak, Okafor, Ostrander, Pellegrin, Quigley, Rasmussen, Rosario, Saldana, Sandoval, Thorne, Ueda, Valente,
        Vinter, Whitlock, Yilmaz, Zeller";
    PET_NAMES = "Biscuit, Pickle, Waffles, Marble, Pepper, Noodle, Mochi, Tofu, Clover, Pebble, Ziggy, Olive, Sprout,
        Button, Domino, Figaro, Gizmo, Hazelnut, Inky, Jellybean, Kiwi, Lentil, Muffin, Nimbus, Oreo, Pancake, Quill,
        Radish, Saffron, Truffle, Umbra, Velvet, Widget, Yoyo, Zephyr, Acorn, Bramble, Cricket, Dumpling, Ember,
        Fudge, Ginger, Hiccup, Icicle, Juniper, Kettle, Lollipop, Maple, Nutmeg, Orbit, Pudding, Quark, Ribbon, Socks,
        Thimble";
    CITIES = "Aarhus, Antwerp, Athens, Auckland, Basel, Bergen, Bilbao, Bogota, Bologna, Bratislava, Brisbane, Bruges,
        Budapest, Cardiff, Cartagena, Casablanca, Chicago, Copenhagen, Cork, Cusco, Dakar, Delft, Denver, Dresden,
        Dubrovnik, Dundee, Edinburgh, Florence, Galway, Gdansk, Geneva, Ghent, Granada, Graz, Halifax, Hamburg, Hanoi,
        Havana, Helsinki, Innsbruck, Istanbul, Jaipur, Kyoto, Lausanne, Leipzig, Lima, Lisbon, Ljubljana, Lucerne,
        Lyon, Madrid, Malaga, Marrakesh, Melbourne, Montreal, Nairobi, Naples, Nashville, Osaka, Oslo, Palermo, Porto,
        Prague, Quebec, Quito, Reykjavik, Riga, Rotterdam, Salzburg, Santiago, Sapporo, Sarajevo, Savannah, Seattle,
        Seville, Sofia, Split, Stockholm, Taipei, Tallinn, Tbilisi, Toledo, Toulouse, Trieste, Turin, Utrecht,
        Valencia, Vancouver, Verona, Vienna, Vilnius, Warsaw, Wellington, York, Zagreb, Zurich";
    COUNTRIES = "Argentina, Australia, Bhutan, Bolivia, Botswana, Brazil, Canada, Chile, Colombia, Costa Rica,
        Croatia, Cyprus, Egypt, Estonia, Ethiopia, Fiji, Finland, Georgia, Ghana, Greece, Guatemala, Iceland, India,
        Indonesia, Jordan, Kenya, Laos, Madagascar, Malta, Mexico, Mongolia, Morocco, Namibia, Nepal, Panama, Peru,
        Romania, Samoa, Scotland, Senegal, Sri Lanka, Tanzania, Thailand, Tunisia, Turkey, Uruguay, Vietnam, Wales,
        Zambia";
    ADJECTIVES = "Amber, Ancient, Bitter, Blind, Borrowed, Brass, Broken, Burning, Careful, Copper, Crooked, Distant,
        Drifting, Empty, Fading, Fallen, Feathered, Forgotten, Frozen, Gentle, Gilded, Hidden, Hollow, Hungry, Idle,
        Iron, Ivory, Last, Lonely, Lost, Marble, Midnight, Narrow, Northern, Paper, Patient, Quiet, Restless, Rusty,
        Salted, Scarlet, Secret, Silent, Silver, Sleeping, Slow, Southern, Stolen, Stubborn, Sunken, Tangled, Tender,
        Thirsty, Twisted, Unfinished, Velvet, Wandering, Wicked, Winter, Wooden";
    NOUNS = "Anchor, Archive, Atlas, Bakery, Balcony, Bell, Bridge, Candle, Carousel, Cartographer, Cathedral,
        Clockmaker, Compass, Courier, Dancer, Detour, Diary, Engine, Feather, Ferry, Fountain, Garden, Ghost, Glacier,
        Harbour, Horizon, Inventor, Island, Kite, Ladder, Lantern, Letter, Lighthouse, Locksmith, Map, Meadow, Mirror,
        Monsoon, Mountain, Observatory, Orchard, Painter, Passenger, Piano, Puppet, Quarry, Raven, River, Shadow,
        Signal, Staircase, Stranger, Summer, Tailor, Theatre, Thread, Tunnel, Umbrella, Valley, Violin, Voyage, Window";
    ANIMALS = "badger, beaver, chameleon, dormouse, ferret, fox, gecko, hare, hedgehog, heron, iguana, jackdaw,
        kingfisher, lizard, lynx, marten, mole, newt, otter, owl, polecat, porcupine, raccoon, red squirrel,
        salamander, seal, shrew, skunk, stag, stoat, tree frog, turtle, weasel, wild boar, woodpecker";
    BIRDS = "avocet, bee-eater, bittern, bullfinch, buzzard, chaffinch, cormorant, crossbill, curlew, dipper, dunlin,
        firecrest, goldcrest, goshawk, grebe, hoopoe, jackdaw, kestrel, lapwing, linnet, merlin, nightjar, nuthatch,
        osprey, pipit, plover, redstart, ruff, sandpiper, shrike, siskin, skylark, starling, stonechat, tern,
        treecreeper, turnstone, wagtail, waxwing, whimbrel, wryneck, yellowhammer";
    PLANTS = "agave, alder, aloe, anemone, aster, azalea, begonia, bluebell, calathea, camellia, clematis, columbine,
        cornflower, crocus, cyclamen, dahlia, delphinium, edelweiss, foxglove, freesia, fuchsia, gardenia, gentian,
        geranium, gladiolus, heather, hellebore, hibiscus, hyacinth, hydrangea, iris, jasmine, lavender, lilac, lupin,
        magnolia, marigold, myrtle, narcissus, oleander, orchid, peony, petunia, primrose, rosemary, snapdragon,
        sweet pea, thistle, verbena, wisteria, yarrow, zinnia";
    SHADES = "bright, dark, dusty, faded, muted, pale, soft, warm";
    COLOURS = "amber, apricot, aubergine, burgundy, charcoal, coral, cream, crimson, emerald, grey, indigo,
        lemon yellow, lilac, mint green, moss green, mustard, navy blue, ochre, olive, orange, peach, petrol blue,
        plum, rose, rust red, sage green, sand, scarlet, sky blue, teal, terracotta, turquoise, violet";
    MATERIALS = "antique, bamboo, brass, ceramic, copper, cork, enamel, felt, glass, hand-carved, hand-painted, iron,
        lacquered, leather, linen, marble, mother-of-pearl, oak, pewter, porcelain, rattan, silver, slate, striped,
        tin, velvet, vintage, walnut, wicker, woven";
    OBJECTS = "backgammon set, barometer, biscuit tin, bookend, bell jar, bracelet, brooch, butter dish, candlestick,
        chess set, clock, coat rack, compass, cushion, doorstop, dressing gown, figurine, footstool, fruit basket,
        hand mirror, hourglass, jewellery box, jug, key rack, lantern, letter opener, lampshade, magnifying glass,
        music box, necklace, paperweight, pepper mill, photo album, picture frame, pocket watch, salad bowl,
        serving tray, sewing box, suitcase, tablecloth, tea caddy, teapot, telescope, thimble, toast rack, toolbox,
        typewriter, umbrella stand, vase, wall hook, watering can, weather vane";
    BELONGINGS = "beanie, belt, camera strap, glove case, headphone case, lunch box, notebook, passport holder,
        pencil case, phone case, purse, rain jacket, reading glasses case, rucksack, scarf, sketchbook, sun hat,
        thermos flask, tote bag, umbrella, wallet, water bottle";
    KNITS = "baby blanket, bobble hat, cardigan, cushion cover, hand puppet, mobile, patchwork quilt, pot holder,
        rag doll, scarf, shawl, soft toy elephant, table runner, tea cosy, wall hanging";
    JOBS = "accountant, acupuncturist, air traffic controller, archaeologist, archivist, baker, barber, beekeeper,
        bookbinder, botanist, bricklayer, brewer, butcher, carpenter, cartographer, chemist, court clerk,
        dental hygienist, dietitian, draughtsman, editor, electrician, estate agent, event planner, ferry captain,
        firefighter, fisheries officer, florist, forester, game designer, geologist, glassblower, goldsmith,
        graphic designer, harbour pilot, insurance broker, interpreter, jeweller, journalist, landscape gardener,
        lathe operator, locksmith, marine biologist, meteorologist, miller, museum guide, notary, nurse, optician,
        paramedic, pastry chef, pharmacist, pipe fitter, plumber, potter, private tutor, radio presenter, roofer,
        sailing instructor, set designer, ski instructor, social worker, sound engineer, speech therapist, surveyor,
        tailor, tattoo artist, tax adviser, tour guide, train driver, translator, upholsterer, urban planner,
        ventilation engineer, watchmaker, web developer, welder, zookeeper";
    SUBJECTS = "aerospace engineering, agronomy, anthropology, applied statistics, archaeology, architecture,
        art history, astronomy, biochemistry, botany, civil engineering, classical philology, comparative literature,
        criminology, economics, film studies, forestry, geography, geophysics, graphic design, hydrology,
        industrial design, international law, linguistics, logistics, marine biology, materials science,
        mechanical engineering, musicology, nutrition science, oceanography, pharmacy, philosophy, political science,
        psychology, religious studies, sociology, theology, urban planning, zoology";
    SKILLS = "bake sourdough, braid hair, change a tyre, do card tricks, do long division in the head,
        drive a tractor, fly a kite, fold paper cranes, fix a zip, juggle, make fire without matches,
        mend a bicycle tube, milk a goat, mix concrete, open a lock with a pin, pick mushrooms, prune roses,
        read a sea chart, ride a unicycle, roll sushi, row a boat, sew buttons, sharpen knives, skim stones,
        splice rope, split firewood, start a campfire, tie a bow tie, tie fishing knots, tile a wall, track animals,
        type without looking, wrap presents neatly, whistle with two fingers, write backwards";
    INGREDIENTS = "apple juice, balsamic vinegar, brown butter, burnt sugar, cardamom, celery salt, cinnamon,
        coconut milk, coffee grounds, dark chocolate, dried apricots, fennel seeds, grated beetroot, ground cloves,
        honey, horseradish, lemon zest, maple syrup, miso, mustard seeds, nutmeg, orange peel, paprika, pear puree,
        pickled ginger, pomegranate syrup, rose water, saffron, smoked salt, soy sauce, star anise, sumac, tamarind,
        toasted oats, vanilla, white pepper, yoghurt, za'atar";
    VEGETABLES = "artichoke, asparagus, aubergine, beetroot, black bean, broad bean, broccoli, butternut, carrot,
        cauliflower, celeriac, chard, chickpea, courgette, fennel, kale, kohlrabi, leek, lentil, mushroom, okra,
        parsnip, pea, potato, pumpkin, red cabbage, red pepper, spinach, sweetcorn, turnip";
    DISHES = "bake, burger, casserole, chowder, curry, dumplings, fritters, gnocchi, goulash, gratin, moussaka,
        noodle soup, paella, pancakes, pasties, pie, pilaf, quiche, ragout, ravioli, risotto, salad, skewers, souffle,
        strudel, stir-fry, tacos, tart, terrine, wraps";
    FRUITS = "apricot, blackberry, blackcurrant, blueberry, cherry, cranberry, damson, elderberry, fig, gooseberry,
        grapefruit, greengage, kumquat, loganberry, mango, mulberry, nectarine, peach, pear, pineapple, plum, quince,
        raspberry, redcurrant, rhubarb, rosehip, sloe, strawberry, tangerine, yuzu";
    TASTES = "almond, bay leaf, black pepper, cardamom, chilli, cinnamon, clove, ginger, lavender, lemon balm, lime,
        mint, rose, rosemary, sage, thyme, vanilla";
    CAKES = "carrot, chestnut, chocolate, coffee, hazelnut, honey, lemon, marble, orange, pistachio, poppy seed,
        red velvet, sponge, walnut";
    TEAS = "bergamot, buckwheat, chamomile, chrysanthemum, dandelion, darjeeling, genmaicha, ginger, ginseng,
        hibiscus, hojicha, jasmine, lapsang, lemon verbena, lime blossom, linden, matcha, nettle, oolong, peppermint,
        pu-erh, rooibos, rosehip, sencha, spearmint, turmeric, white peony, yerba mate";
    INSTRUMENTS = "accordion, autoharp, bagpipes, balalaika, banjo, bassoon, bongos, cello, clarinet, cornet,
        didgeridoo, double bass, dulcimer, euphonium, fiddle, flugelhorn, glockenspiel, hammered zither, harmonica,
        harp, kalimba, lute, lyre, mandolin, marimba, oboe, ocarina, pan flute, recorder, saxophone, sitar,
        steel drum, theremin, trombone, tuba, ukulele, vibraphone, viola, xylophone";
    LANGUAGES = "Albanian, Arabic, Armenian, Basque, Bengali, Breton, Bulgarian, Cantonese, Catalan, Czech, Danish,
        Dutch, Esperanto, Estonian, Farsi, Finnish, Gaelic, Georgian, Greek, Hebrew, Hindi, Hungarian, Icelandic,
        Japanese, Korean, Latvian, Lithuanian, Maltese, Mandarin, Maori, Norwegian, Polish, Portuguese, Quechua,
        Romanian, Slovene, Swahili, Swedish, Tamil, Thai, Turkish, Ukrainian, Urdu, Vietnamese, Welsh";
    SPORTS = "archery, badminton, bowls, boxing, canoeing, croquet, curling, dodgeball, fencing, floorball,
        frisbee golf, futsal, gymnastics, handball, hockey, judo, karate, kayaking, kickboxing, korfball, lacrosse,
        minigolf, netball, padel, pickleball, roller derby, rounders, rowing, rugby, skateboarding, softball,
        speed skating, squash, table tennis, taekwondo, trampolining, triathlon, volleyball, water polo, wrestling";
    CRAFTS = "basket weaving, batik, beading, blacksmithing, bookbinding, calligraphy, candle making, crochet,
        embroidery, enamelling, felting, flower pressing, glass etching, jewellery making, kite building, lace making,
        leatherwork, linocut, macrame, marquetry, mosaic, origami, paper marbling, pyrography, quilting, rug hooking,
        screen printing, silk dyeing, soap making, stained glass, tie-dye, upholstery, whittling, wire sculpture,
        woodturning";
    DANCES = "Argentine tango, bachata, ballroom foxtrot, bharatanatyam, bolero, bossa nova, breakdance, cha-cha,
        charleston, clog dance, contra dance, cumbia, fandango, flamenco, forro, hula, jive, kizomba, lambada,
        lindy hop, mambo, mazurka, merengue, paso doble, polka, quickstep, rumba, salsa, samba, square dance, swing,
        tap, Viennese waltz, zouk";
    COLLECTIBLES = "beer mats, bottle openers, bus tickets, buttons, comic books, corkscrews, egg cups, enamel signs,
        fridge magnets, hotel keys, inkwells, marbles, matchboxes, minerals, model trains, old maps, old radios,
        opera programmes, paper bags, pocket knives, porcelain owls, postcards, sea shells, snow globes, spoons,
        stamps, sugar packets, tape measures, thimbles, vinyl records, walking sticks, wine corks";
    WONDERS = "Angel Falls, Ayers Rock, Fingal's Cave, Hang Son Doong, Lake Baikal, Mount Fuji, Mount Roraima,
        the Atacama Desert, the Azores, the Bay of Fundy, the Blue Hole of Belize, the Cliffs of Moher, the Dead Sea,
        the Dolomites, the Faroe Islands, the Galapagos, the Giant's Causeway, the Gobi Desert, the Grand Canyon,
        the Great Barrier Reef, the Iguazu Falls, the Lofoten Islands, the Matterhorn, the Namib dunes,
        the Northern Lights, the Okavango Delta, the Pantanal, the Plitvice Lakes, the Salar de Uyuni, the Serengeti,
        the Torres del Paine, the Victoria Falls";
    TALKS = "ancient bridges, bat conservation, beehive design, bicycle safety, bird migration, chess history,
        cloud shapes, coral bleaching, deep sea fish, desert plants, early cinema, folk tales, food waste, fungi,
        glacier caves, hand signals, knots, lichens, lighthouse keepers, local rivers, lost alphabets, map making,
        medieval cooking, meteorites, moss gardens, night trains, old windmills, paper theatre, public clocks,
        rain gauges, shadow puppets, slow travel, solar ovens, sundials, tidal power, tree rings, urban foxes,
        volcanoes, water clocks, weather lore";
    CLASSES = "a beatboxing class, a bird drawing class, a bread baking class, a birdsong class,
        a circus skills class, a coding class, a comedy writing class, a debating class, a first responder class,
        a flower arranging class, a gospel singing class, a herb lore class, an improv theatre class,
        a life drawing class, a meditation class, a memoir writing class, a photo editing class, a pilates class,
        a poetry class, a public speaking class, a self-defence class, a stargazing class, a stretching class,
        a tai chi class, a watercolour class";
    CAUSES = "animal shelter, beach cleaning crew, blood donor service, book bus, community garden, community kitchen,
        elder care home, food bank, hedgehog rescue, homework club, hospice choir, language cafe, lifeboat station,
        mountain rescue post, neighbourhood workshop, night shelter, refugee centre, repair cafe, river watch,
        scout camp, swap shop, toy library, trail maintenance team, visitor farm, wildlife hospital, youth orchestra";
    SCENES = "a bowl of lemons, a busy station, a field of poppies, a fishing harbour, a foggy bridge,
        a half-open door, a herd of goats, a lighthouse at dusk, a market stall, a pile of books, a rainy window,
        a row of beach huts, a row of poplars, a sleeping cat, a snowy roof, a stormy sea, a stack of teacups,
        a sunflower, a tram in the rain, a waterfall, a wheat field, a windmill, an abandoned factory, an empty bench,
        an old barn, an orchard in bloom";
    SHOP_WORDS = "Alder, Beacon, Bramley, Calder, Castleford, Dunmore, Elmwood, Fairbank, Glenmore, Hartwell,
        Ironbridge, Kestrel, Lakeview, Larkhill, Merrow, Northgate, Oakridge, Pinewood, Quayside, Redfern, Silverdale,
        Stonehaven, Thornbury, Underhill, Westbrook, Willowmere, Wren, Yarrow";
    FIRMS = "Analytics, Bakery, Bicycles, Books, Bottling, Ceramics, Chemicals, Construction, Furniture,
        Garden Centre, Gears, Insurance, Logistics, Optics, Paper Mill, Press, Printing, Shipping, Software, Textiles,
        Timber, Toys";
    VENUES = "birdwatching tour, bookshop reading, bus stop, cooking course, dog park, film club, first aid class,
        fish market, flat viewing, garden party, hardware store, hospital waiting room, house concert, ice rink,
        laundrette, neighbourhood meeting, passport office, petrol station, pub quiz, queue for the ferry, wax museum,
        sheepdog trial, ski lift, speed dating night, street festival, water park, theatre cloakroom,
        train platform, vegetable market, book fair";
    VEHICLES = "camper van, convertible, coupe, electric hatchback, estate car, fastback, hybrid limousine, jeep,
        microcar, minivan, pickup, roadster, saloon, three-wheeler";
    TRAVEL = "by cable car, by cargo bike, by city bus, by ferry, by folding bike, by kick scooter, by metro,
        by moped, by motorbike, by rowing boat, by shared taxi, by skateboard, by suburban train, by tram,
        by water taxi, on foot, on roller skates";
    CLUBS = "Albion, Arrows, Bears, Comets, Falcons, Giants, Lions, Pirates, Rangers, Rovers, Sharks, Stars, Tigers,
        Town, United, Wanderers";
    HAIR = "auburn, bleached blond, bright pink, chestnut brown, copper red, dark blue, deep purple, emerald green,
        honey blond, jet black, platinum blond, silver grey, strawberry blond, turquoise";
    TIMES = "4:40, 4:50, 5:05, 5:10, 5:20, 5:25, 5:40, 5:50, 6:05, 6:10, 6:20, 6:35, 6:40, 6:50, 7:05, 7:10, 7:20,
        7:25, 7:35, 7:40, 7:50, 8:05, 8:10, 8:20";
}

/// Where the value of a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
