//! What systems see beside texts tells nothing: neither the ids of entries and questions, nor the order in which is asked.

use std::collections::BTreeMap;

use bench_proto::dataset::{ABSTENTION, Bank, Gold, GoldRecord, Question, StreamEntry};

use crate::{conformance::at_hand, generator::rng::Rng};

/// Orders drawn by chance, to which that of a dataset is compared.
const DRAWN: usize = 200;
/// Standard deviations that an order may be away from chance.
const MOST: f64 = 5.0;

/// Datasets whose questions keep the order and the ids that everybody else sends, so that runs can be compared: LoCoMo has
/// its adversarial questions last. What is made in its form does as it does.
const AS_PUBLISHED: [&str; 2] = ["locomo", "locomo-sim"];

/// What somebody may want to guess: the category, and what is expected.
fn labels(question: &Question, gold: &GoldRecord) -> [String; 2] {
    let expected = match &gold.gold {
        Gold::Choice(letter) => letter.clone(),
        other if other.is_unanswerable() || other.expects_nothing() => "nothing".to_owned(),
        _ => gold.facets.get(ABSTENTION).cloned().unwrap_or_default(),
    };
    [question.category.clone(), expected]
}

/// Neighbours that are alike, in all groups together.
fn alike(groups: &[Vec<&str>]) -> f64 {
    groups.iter().flat_map(|group| group.windows(2)).filter(|pair| pair[0] == pair[1]).count() as f64
}

/// How many standard deviations more neighbours are alike than in orders by chance.
fn excess(groups: &[Vec<&str>], rng: &mut Rng) -> f64 {
    let mut drawn = groups.to_vec();
    let counts: Vec<f64> = (0..DRAWN)
        .map(|_| {
            drawn.iter_mut().for_each(|group| rng.shuffle(group));
            alike(&drawn)
        })
        .collect();
    let mean = counts.iter().sum::<f64>() / DRAWN as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / DRAWN as f64;
    // of few questions one pair more is no sign
    (alike(groups) - mean) / variance.sqrt().max(0.5)
}

/// Labels of one kind in the order of the questions, those that are asked at the same point together; where every bank asks
/// one question, those of all banks in the order of their ids.
fn in_order(banks: &[Bank], which: usize) -> Vec<Vec<String>> {
    let mut groups: BTreeMap<(String, u32), Vec<String>> = BTreeMap::new();
    let mut banks: Vec<&Bank> = banks.iter().collect();
    banks.sort_by(|a, b| a.content.bank_id.cmp(&b.content.bank_id));
    let single = banks.iter().all(|bank| bank.questions.len() == 1);
    for bank in banks {
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let point = if single { (String::new(), 0) } else { (bank.content.bank_id.clone(), question.ask_after) };
            let [category, expected] = labels(question, gold);
            groups.entry(point).or_default().push(if which == 0 { category } else { expected });
        }
    }
    groups.into_values().collect()
}

#[test]
fn neither_position_nor_shown_id_tells_category_or_gold() {
    let mut looked_at = 0;
    for dataset in at_hand() {
        let name = dataset.manifest().name.clone();
        let banks: Vec<Bank> = (0..dataset.bank_count()).map(|bank| dataset.bank(bank).expect("a bank")).collect();
        for bank in &banks {
            for question in &bank.questions {
                let (shown, bank_id) = (question.shown_id(), &bank.content.bank_id);
                let rest = shown.strip_prefix(bank_id.as_str()).unwrap_or_else(|| panic!("{name}: {shown}"));
                assert!(rest.chars().all(|c| c == ':' || c.is_ascii_digit()), "{name}: {shown} says more than a place");
            }
        }
        if AS_PUBLISHED.contains(&name.as_str()) {
            continue;
        }
        looked_at += 1;
        let mut rng = Rng::new(&["order", &name]);
        for (which, what) in ["categories", "golds"].into_iter().enumerate() {
            let groups = in_order(&banks, which);
            let groups: Vec<Vec<&str>> =
                groups.iter().map(|group| group.iter().map(String::as_str).collect()).collect();
            let excess = excess(&groups, &mut rng);
            assert!(excess < MOST, "{name}: {what} of neighbours are alike, {excess:.1} deviations above chance");
        }
    }
    assert!(looked_at >= 8, "{looked_at}: those of this project are always at hand");
}

/// The test above finds what it looks for: the same questions in the order of their kinds.
#[test]
fn an_order_by_kinds_is_found() {
    let groups: Vec<Vec<&str>> = (0..3).map(|_| ["a", "a", "b", "b", "c", "c", "d", "d"].to_vec()).collect();
    assert!(excess(&groups, &mut Rng::new(&["kinds"])) > MOST);
    let last: Vec<Vec<&str>> = vec![["no", "yes"].map(|value| vec![value; 20]).concat()];
    assert!(excess(&last, &mut Rng::new(&["last"])) > MOST);
}

/// An id without its numbers; hashes count as numbers.
fn form(id: &str) -> String {
    let is_hash = |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = id.split_inclusive([':', '-', '/']).map(|part| {
        let bare = part.trim_end_matches([':', '-', '/']);
        if is_hash(bare) { part.replace(bare, "#") } else { part.to_owned() }
    });
    let mut form = String::new();
    for c in parts.collect::<String>().chars() {
        match c {
            '0'..='9' if form.ends_with('#') => {}
            '0'..='9' => form.push('#'),
            c => form.push(c),
        }
    }
    form
}

/// Ids of evidence look as all others of their kind do: `answer_…` beside `S1` would not.
#[test]
fn ids_of_one_kind_have_one_form() {
    assert_eq!(["S12:3", "M7", "answer_ab", "0123456789abcdef-2"].map(form), ["S#:#", "M#", "answer_ab", "#-#"]);
    for dataset in at_hand() {
        let name = &dataset.manifest().name;
        let mut forms: BTreeMap<&str, String> = BTreeMap::new();
        let mut look = |kind: &'static str, id: &str| {
            let known = forms.entry(kind).or_insert_with(|| form(id));
            assert_eq!(*known, form(id), "{name}: the id {id} of a {kind}");
        };
        for number in 0..dataset.bank_count().min(50) {
            for entry in dataset.bank(number).expect("a bank").content.entries {
                match entry {
                    StreamEntry::Session(session) => {
                        look("session", &session.id);
                        session.turns.iter().for_each(|turn| look("turn", &turn.id));
                    }
                    StreamEntry::Memory(memory) => look("memory", &memory.id),
                    StreamEntry::Update { memory, .. } => {
                        memory.iter().for_each(|memory| look("memory", &memory.id));
                    }
                }
            }
        }
    }
}
