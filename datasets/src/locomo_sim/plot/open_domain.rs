//! Questions that common sense answers from what a speaker told about themselves.

use bench_proto::dataset::Gold;

use crate::{
    locomo::schema::Category,
    locomo_sim::{
        draft::{Draft, fill},
        tables::traits::{self, Trait},
    },
};

pub(super) fn write(draft: &mut Draft, questions: usize) -> Option<()> {
    for _ in 0..questions {
        let who = draft.speaker();
        let told = new_trait(draft, who)?;
        let scene = draft.free_scene(who)?;
        let said = draft.rng.word(&told.says);
        let fact = draft.tell(who, scene, said, None)?;

        let probe = draft.rng.pick(&told.probes);
        let template = draft.rng.word(&traits::TABLE.asks);
        let text = draft.ask(template, who, &[("k", probe.ask)]);
        let reason = fill(probe.reason, &[("n", &draft.names[who])]);
        let (likely, plain) = if probe.yes { ("Likely yes", "Yes") } else { ("Likely no", "No") };
        let gold = match draft.rng.below(4) {
            0 | 1 => format!("{likely}; because {reason}"),
            2 => likely.to_owned(),
            _ => format!("{plain}, since {reason}"),
        };
        draft.push(Category::OpenDomain, text, Gold::Text(gold), vec![fact]);
    }
    Some(())
}

/// A trait that the speaker does not have yet and that goes with the others.
fn new_trait(draft: &mut Draft, who: usize) -> Option<&'static Trait> {
    for _ in 0..1000 {
        let found = draft.rng.pick(&traits::TABLE.traits);
        let clashes = traits::TABLE.contradictions.iter().any(|(a, b)| {
            (*a == found.id && draft.claims.contains(&(who, "trait", *b)))
                || (*b == found.id && draft.claims.contains(&(who, "trait", *a)))
        });
        if !clashes && draft.claim((who, "trait", found.id)) {
            return Some(found);
        }
    }
    None
}
