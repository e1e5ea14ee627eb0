//! What hits are: whether they carry the ids that were stored, and whether as many come as are asked for.

use bench_proto::{
    dataset::{BankContent, Memory, StreamEntry},
    step::{HitLevel, PlacedBy, RetrievedHit},
};

use super::{Checks, Seen, bank_of, cannot, claims, pass, said};
use crate::BankRef;

/// Most hits that are asked for: a check stores so many memories and half as many more.
const MOST_ASKED: u32 = 200;
/// What they are searched by: all of them say it.
const SEARCHED: &str = "crate boat house holds marbles";
/// Memories that did not come and are looked for by their own words.
const LOOKED_FOR: usize = 5;

/// Hits that are asked for.
fn asked(top_k: u32) -> u32 {
    top_k.clamp(1, MOST_ASKED)
}

/// A bank with more memories that say nearly the same than a run asks for.
pub(super) fn bank(name: &str, top_k: u32) -> BankRef {
    let k = asked(top_k);
    let memory = |number: u32| {
        StreamEntry::Memory(Memory {
            id: format!("c{number}"),
            text: format!("Crate {number} in the boat house holds marbles, {} of them.", 1000 + 37 * number),
            time: Some("2023-05-01T10:00:00".to_owned()),
            ..Memory::default()
        })
    };
    let entries = (1..=k + k / 2 + 5).map(memory).collect();
    bank_of(name, BankContent { bank_id: "grey".to_owned(), speakers: Vec::new(), entries })
}

/// The texts of a bank's memories.
fn texts(bank: &BankRef) -> Vec<&str> {
    let text = super::entries(bank).iter().filter_map(|entry| match entry {
        StreamEntry::Memory(memory) => Some(memory.text.as_str()),
        StreamEntry::Session(_) | StreamEntry::Update { .. } => None,
    });
    text.collect()
}

/// Whether a stored text is among hits, word for word.
fn came(hits: &[RetrievedHit], text: &str) -> bool {
    hits.iter().any(|hit| hit.text.contains(text))
}

impl Checks<'_> {
    pub(super) async fn ids(&self) -> Seen {
        if !self.system.capabilities().recalls {
            return self.does_not_search();
        }
        let hits = self.recall(&self.red, "the password of the boat house", 10).await?.hits;
        let Some(hit) = hits.iter().find(|hit| hit.text.contains("marmalade")) else {
            return Err("a stored fact was not found".to_owned());
        };
        let of_turn = hit.id == "D1:4";
        match hit.placed_by {
            Some(PlacedBy::Text) | None if hit.level.is_some() && self.told.names_ids => Err(
                "the file says where the id of a hit stands, and what stands there was never stored: hits are told by their \
                 text alone; `id` has to lead to the \"{id}\" that was sent"
                    .to_owned(),
            ),
            Some(PlacedBy::Text) => self.unclaimed(
                "hits carry no id of ours: they are told by their text, as long as nothing of it is changed",
                claims::IDS,
            ),
            _ if of_turn => pass("a hit carries the id of its turn: retrieval is measured by turn and by session"),
            _ if hit.session_id == "D1" && hit.level != Some(HitLevel::Unknown) => {
                pass("a hit carries its session: retrieval is measured by session")
            }
            _ => self.unclaimed("hits carry no id of ours: retrieval metrics do not exist for it", claims::IDS),
        }
    }

    /// As many hits as a run asks for, and more, of a bank that has them.
    pub(super) async fn as_many_as_asked(&mut self) -> Seen {
        let can = self.system.capabilities();
        if !can.recalls {
            return self.does_not_search();
        }
        if can.ignores_k || can.token_budget {
            return cannot("it is not asked for a number of hits");
        }
        if !can.banks {
            return cannot("it has one memory for everything, which holds other things too");
        }
        let (stored, max_k) = (super::entries(&self.grey).len() as u32, can.max_k.unwrap_or(u32::MAX));
        let k = asked(self.told.top_k).min(max_k);
        let handle = self.system.open_bank(&self.grey).await.map_err(|f| said(&f))?;
        self.grey.handle = Some(handle);
        self.fill(&self.grey).await?;
        let at_k = self.recall(&self.grey, SEARCHED, k).await?.hits;
        let more = stored.min(max_k);
        let at_more = self.recall(&self.grey, SEARCHED, more).await?.hits;
        if (at_k.len() as u32) < k || (at_more.len() as u32) < more {
            return self.fewer_than_asked((k, at_k.as_slice()), (more, at_more.as_slice())).await;
        }
        let beyond = if self.told.top_k.min(max_k) > k {
            format!("; a run asks for {}, which is more than a check stores", self.told.top_k)
        } else {
            String::new()
        };
        pass(format!("{k} and {more} hits were asked for, and as many came{beyond}"))
    }

    /// What it means that fewer hits came than were asked for: k ends them only where the others can be found.
    async fn fewer_than_asked(
        &self,
        (k, at_k): (u32, &[RetrievedHit]),
        (more, at_more): (u32, &[RetrievedHit]),
    ) -> Seen {
        let stored = texts(&self.grey);
        let (got, got_more, all) = (at_k.len() as u32, at_more.len() as u32, stored.len());
        let counted = self.system.verify(&self.grey, all as u32).await.map_err(|f| said(&f))?;
        if let Some(counted) = counted.filter(|counted| counted.found < counted.expected) {
            return Err(format!(
                "{} of {} stored memories are there: as long as some are lost, whether k ends what comes cannot be told",
                counted.found, counted.expected
            ));
        }
        if got_more == 0 {
            return cannot(format!(
                "none of {all} memories that all fit came: how many it gives at most cannot be told"
            ));
        }
        let is_stored = |hit: &RetrievedHit| stored.iter().any(|text| hit.text.contains(text));
        if self.system.capabilities().derived || !at_more.iter().all(is_stored) {
            return cannot(format!(
                "{k} and {more} hits were asked for, {got} and {got_more} came: it holds what it has made of {all} memories, and \
                 how many there are of it is not known"
            ));
        }
        if counted.is_none()
            && let Some(lost) = self.lost(&stored, at_more).await?
        {
            return Err(lost);
        }
        if got < k && got_more == got {
            return Err(format!(
                "k is clipped: {k} and {more} hits were asked for and {got} came both times, of {all} memories that all fit"
            ));
        }
        if got < k {
            return cannot(format!(
                "{k} hits were asked for and {got} came, of {all} memories that all fit: whether k ends it cannot be told"
            ));
        }
        pass(format!(
            "{k} hits were asked for and came; of {more} {got_more} came: `limits: {{max_k: {got_more}}}` says so"
        ))
    }

    /// How many of the memories that did not come are not found by their own words either, where some are not.
    async fn lost(&self, stored: &[&str], hits: &[RetrievedHit]) -> Result<Option<String>, String> {
        let k = 10.min(self.system.capabilities().max_k.unwrap_or(10));
        let absent: Vec<&str> = stored.iter().copied().filter(|text| !came(hits, text)).collect();
        let (mut looked_for, mut lost) = (0, 0);
        for text in absent.iter().step_by(absent.len().div_ceil(LOOKED_FOR).max(1)) {
            looked_for += 1;
            lost += usize::from(!came(&self.recall(&self.grey, text, k).await?.hits, text));
        }
        Ok((lost > 0).then(|| {
            format!(
                "{} of {} stored memories did not come, and of {looked_for} that were looked for by their own words {lost} are not \
                 there: as long as some are lost, whether k ends what comes cannot be told",
                absent.len(),
                stored.len()
            )
        }))
    }
}
