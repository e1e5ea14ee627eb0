//! What a system makes of memories that are replaced and withdrawn, and of questions that may be answered from some memories only.

use bench_proto::{
    dataset::{BankContent, Filter, FilterParts, Memory, StreamEntry},
    step::RetrievedHit,
};

use super::{Checks, Seen, bank_of, claims, has, pass, said};
use crate::{BankRef, RecallQuery};

/// What the lockers held at first, and hold in the end.
const REPLACED: (&str, &str) = ("trombone", "mandolin");
const WITHDRAWN: &str = "harpoon";
const KEPT: &str = "sextant";
/// Users of the two memories that stay.
const USERS: [&str; 2] = ["ann", "bo"];
/// What asks for all of them.
const LOCKERS: &str = "What does each locker in the boat house hold?";
/// Between the times of the two memories that stay.
const BETWEEN: &str = "2023-05-15T00:00:00";

fn locker(id: &str, whose: &str, holds: &str) -> Memory {
    let text = format!("The locker of {whose} in the boat house holds a {holds}.");
    let words = |word: &str| vec![word.to_owned()];
    let (user, tag, scope, time) = match whose {
        "Perpetua" => ("ann", "attic", "house", "2023-05-01T10:00:00"),
        _ => ("bo", "cellar", "garden", "2023-06-01T10:00:00"),
    };
    Memory {
        id: id.to_owned(),
        text,
        time: Some(time.to_owned()),
        tags: words(tag),
        user: Some(user.to_owned()),
        scopes: words(scope),
        ..Memory::default()
    }
}

/// A bank in which one memory is replaced, one withdrawn, and one stays.
pub(super) fn bank(name: &str) -> BankRef {
    let update = |replaces: &str, memory| StreamEntry::Update { replaces: replaces.to_owned(), memory };
    let entries = vec![
        StreamEntry::Memory(locker("g1", "Perpetua", REPLACED.0)),
        StreamEntry::Memory(locker("g2", "Ignatz", WITHDRAWN)),
        StreamEntry::Memory(locker("g3", "Leocadia", KEPT)),
        update("g1", Some(locker("g4", "Perpetua", REPLACED.1))),
        update("g2", None),
    ];
    bank_of(name, BankContent { bank_id: "green".to_owned(), speakers: Vec::new(), entries })
}

impl Checks<'_> {
    /// Stores the bank, where anything of it can be looked at.
    pub(super) async fn store_green(&mut self) -> Seen {
        let can = self.system.capabilities();
        if !can.recalls || !can.banks || !(can.updates || can.withdraws || !can.filters.is_empty()) {
            return self.unclaimed("it replaces and removes nothing by itself, and has no filters", claims::CHANGES);
        }
        let handle = self.system.open_bank(&self.green).await.map_err(|f| said(&f))?;
        self.green.handle = Some(handle);
        let ready = self.fill(&self.green).await?;
        pass(format!("stored 3 memories, replaced one and withdrew one; {ready}"))
    }

    /// What was replaced is gone, and what replaces it is there.
    pub(super) async fn updates(&self) -> Seen {
        if self.green.handle.is_none() || !self.system.capabilities().updates {
            return self.unclaimed("what replaces a memory is stored beside it", claims::UPDATE);
        }
        let hits = self.recall(&self.green, "What does the locker of Perpetua hold?", 10).await?.hits;
        match (has(&hits, REPLACED.0), has(&hits, REPLACED.1)) {
            (false, true) => pass("a memory was replaced: the new one is found, the old one is gone"),
            (true, true) => Err("a memory that was replaced is still found, beside the new one".to_owned()),
            (true, false) => Err("a memory that was replaced is still found, and not the new one".to_owned()),
            (false, false) => Err("what replaced a memory is not found".to_owned()),
        }
    }

    /// What was withdrawn is gone.
    pub(super) async fn withdrawals(&self) -> Seen {
        if self.green.handle.is_none() || !self.system.capabilities().withdraws {
            return self.unclaimed("what is withdrawn stays", claims::FORGET);
        }
        let hits = self.recall(&self.green, "What does the locker of Ignatz hold?", 10).await?.hits;
        if has(&hits, WITHDRAWN) {
            return Err("a memory that was withdrawn is still found".to_owned());
        }
        pass("a memory was withdrawn: it is gone")
    }

    /// Each filter lets through what it should and nothing else.
    pub(super) async fn filters(&self) -> Seen {
        let can = self.system.capabilities().filters;
        if self.green.handle.is_none() || can.is_empty() {
            return self.unclaimed(
                "a question is answered from all memories: samples with filters are refused",
                claims::FILTERS,
            );
        }
        let text = |text: &str| Some(text.to_owned());
        let of_bo = [
            Filter { tags: vec!["cellar".to_owned()], ..Filter::default() },
            Filter { user: text("bo"), ..Filter::default() },
            Filter { scopes: vec!["garden".to_owned()], ..Filter::default() },
            Filter { scopes: vec!["nowhere".to_owned(), "garden".to_owned()], ..Filter::default() },
            Filter { from: text(BETWEEN), ..Filter::default() },
        ];
        let of_ann = Filter { until: text(BETWEEN), ..Filter::default() };
        let everything = Filter::default();
        let mut users: &[&str] = &[];
        let mut all = self.lockers(&everything, users).await?;
        if can.user && all.is_empty() {
            // where users are apart nothing is found without one: each of them searches
            users = &USERS;
            all = self.lockers(&everything, users).await?;
        }
        if !has(&all, KEPT) || !has(&all, REPLACED.1) {
            return Err("without a filter not all is found that is stored: what filters do cannot be seen".to_owned());
        }
        let mut seen = FilterParts::default();
        let cases = of_bo.iter().map(|filter| (filter, KEPT, REPLACED.1)).chain([(&of_ann, REPLACED.1, KEPT)]);
        for (filter, admitted, other) in cases.filter(|(filter, ..)| filter.parts().without(can).is_empty()) {
            let hits = self.lockers(filter, users).await?;
            let names = filter.parts().names().join(" and ");
            if has(&hits, other) {
                return Err(match has(&hits, admitted) {
                    true => {
                        format!("a filter does nothing: a search with one ({names}) found what it does not let through")
                    }
                    false => {
                        format!("a search with a filter ({names}) found what it does not let through, and nothing else")
                    }
                });
            }
            if !has(&hits, admitted) {
                return Err(format!("a search with a filter ({names}) did not find what it lets through"));
            }
            seen = seen.or(filter.parts());
        }
        self.answers_until(&of_ann).await?;
        pass(format!("searches were held to some memories: {}", seen.names().join(", ")))
    }

    /// What is found for all lockers with a filter: by one search, or by one of each of these users where the filter names none.
    async fn lockers(&self, filter: &Filter, users: &[&str]) -> Result<Vec<RetrievedHit>, String> {
        let of_user = |user: &&str| Filter { user: Some((*user).to_owned()), ..filter.clone() };
        let filters: Vec<Filter> = match filter.user.is_some() || users.is_empty() {
            true => vec![filter.clone()],
            false => users.iter().map(of_user).collect(),
        };
        let mut hits = Vec::new();
        for filter in &filters {
            let query = RecallQuery {
                question_id: "check",
                text: LOCKERS,
                k: 10,
                visible_entries: u32::MAX,
                filter,
                ..RecallQuery::default()
            };
            hits.extend(self.system.recall(&self.green, &query).await.map_err(|f| said(&f))?.hits);
        }
        Ok(hits)
    }

    /// An answer of the system's own that is held to what was known by a time tells nothing of what came after it.
    async fn answers_until(&self, until: &Filter) -> Result<(), String> {
        if !self.system.capabilities().answers || !self.system.capabilities().answer_filters.until {
            return Ok(());
        }
        let query = RecallQuery {
            question_id: "check",
            text: LOCKERS,
            k: 10,
            visible_entries: u32::MAX,
            filter: until,
            ..RecallQuery::default()
        };
        match self.system.answer(&self.green, &query).await {
            Ok(answer) if answer.text.to_lowercase().contains(KEPT) => {
                Err("an answer that is held to what was known by a time (until) tells of what came after it".to_owned())
            }
            Ok(_) => Ok(()),
            Err(failure) => Err(said(&failure)),
        }
    }
}
