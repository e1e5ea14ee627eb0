//! Questions without an answer: a fact of one speaker asked of the other, or something that neither ever mentioned.

use bench_proto::dataset::Gold;

use super::{Swap, single_hop};
use crate::{
    locomo::schema::Category,
    locomo_sim::{
        draft::{Asked, Draft},
        tables::singles::{self, Single, key_forms},
    },
};

/// Share of questions for something that neither mentioned, in percent.
const NEVER_SAID: usize = 25;

pub(super) fn write(draft: &mut Draft, questions: usize, mut swaps: Vec<Swap>) -> Option<()> {
    swaps.retain(|swap| !draft.claims.contains(&swap.claim));
    draft.rng.shuffle(&mut swaps);
    swaps.truncate(questions - questions * NEVER_SAID / 100);
    let mut open = questions - swaps.len();
    for Swap { claim, template, key, value, evidence } in swaps {
        let text = draft.ask(template, claim.0, &[("k", &key)]);
        let unsaid = Some((value, claim));
        draft.asked.push(Asked { category: Category::Adversarial, text, gold: Gold::Abstain, evidence, unsaid });
    }

    let mut unknown: Vec<(usize, &'static Single, &'static str)> = Vec::new();
    for single in &singles::TABLE.singles {
        let nobody = single.keys.iter().filter(|key| {
            !draft.claims.contains(&(0, single.id, **key)) && !draft.claims.contains(&(1, single.id, **key))
        });
        unknown.extend(nobody.map(|key| (0, single, *key)));
    }
    draft.rng.shuffle(&mut unknown);
    for (_, single, key) in unknown {
        if open == 0 {
            break;
        }
        let Some(wrong) = draft.value(single.value) else {
            continue;
        };
        let who = draft.rng.below(2);
        let template = draft.rng.word(&single.asks);
        draft.asked.push(Asked {
            category: Category::Adversarial,
            text: draft.ask(template, who, &[("k", key_forms(key).1)]),
            gold: Gold::Abstain,
            evidence: Vec::new(),
            unsaid: Some((single_hop::gold(&wrong), (who, single.id, key))),
        });
        open -= 1;
    }
    (open == 0).then_some(())
}
