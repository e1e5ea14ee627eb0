//! Questions that one turn answers, and further facts of the same kinds that nobody asks for.

use bench_proto::dataset::Gold;

use super::Swap;
use crate::{
    locomo::schema::Category,
    locomo_sim::{
        draft::{Draft, fill},
        tables::{
            pairs,
            singles::{self, Single, key_forms},
            words::with_article,
        },
    },
};

/// Facts beyond the questions: distractors, in percent of the questions.
const UNASKED: usize = 10;

pub(super) fn write(draft: &mut Draft, questions: usize, swaps: &mut Vec<Swap>) -> Option<()> {
    let changed = after_changes(draft, swaps, questions);
    let mut facts: Vec<(usize, &'static Single, &'static str)> = Vec::new();
    for single in &singles::TABLE.singles {
        facts.extend(single.keys.iter().flat_map(|key| [(0, single, *key), (1, single, *key)]));
    }
    draft.rng.shuffle(&mut facts);
    let wanted = questions - changed;
    let mut asked = 0;
    for (who, single, key) in facts {
        if asked >= wanted + questions * UNASKED / 100 {
            break;
        }
        // a pool that is used up is no reason to stop: another kind takes the place
        let Some((value, fact)) = tell(draft, who, single, key) else {
            continue;
        };
        let template = draft.rng.word(&single.asks);
        let key_asked = key_forms(key).1;
        if asked < wanted {
            let text = draft.ask(template, who, &[("k", key_asked)]);
            draft.push(Category::SingleHop, text, value.clone(), vec![fact]);
        }
        asked += 1;
        let claim = (1 - who, single.id, key);
        swaps.push(Swap { claim, template, key: key_asked.to_owned(), value, evidence: vec![fact] });
    }
    (asked >= wanted).then_some(())
}

/// Asks for what some changes led to; returns how many were asked.
fn after_changes(draft: &mut Draft, swaps: &[Swap], questions: usize) -> usize {
    let is_change = |swap: &&Swap| pairs::TABLE.changes.iter().any(|change| change.id == swap.claim.1);
    let mut asked = 0;
    for swap in swaps.iter().filter(is_change) {
        if asked < questions && draft.rng.chance(60) {
            let text = draft.ask(swap.template, 1 - swap.claim.0, &[]);
            draft.push(Category::SingleHop, text, swap.value.clone(), swap.evidence.clone());
            asked += 1;
        }
    }
    asked
}

/// Tells a fact: its value as gold, and where it was told.
fn tell(draft: &mut Draft, who: usize, single: &'static Single, key: &'static str) -> Option<(Gold, usize)> {
    let scene = draft.free_scene(who)?;
    let value = draft.value(single.value)?;
    let with_article = with_article(&value);
    let values = [("v", value.as_str()), ("av", with_article.as_str()), ("k", key_forms(key).0)];
    let said = fill(draft.rng.word(&single.says), &values);
    let caption = single.caption.map(|caption| fill(caption, &values));
    let fact = draft.tell(who, scene, &said, caption)?;
    draft.claim((who, single.id, key));
    Some((gold(&value), fact))
}

/// Plain numbers are numbers, as in LoCoMo.
pub(super) fn gold(value: &str) -> Gold {
    value.parse::<u32>().map_or_else(|_| Gold::Text(value.to_owned()), |number| Gold::Number(number.into()))
}
