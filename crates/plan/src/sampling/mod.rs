//! Takes the sample while the dataset's outlines stream by.
//!
//! What is decided inside one bank (`fair`, `full`, `--per-bank`, `--limit`, `--question-id`) is hashed into the
//! signature at once and costs four bytes a question; what is decided over the whole dataset (`quick`, `--sample`,
//! `--sample-total`) keeps its candidates, whose number the request bounds (`go-lcg` alone keeps them all).

mod candidates;
mod describe;
mod facets;
mod names;
mod order;
mod quick;
mod shares;
mod strata;
#[cfg(test)]
mod tests;
mod total;

use std::borrow::Borrow;

use bench_proto::{dataset::BankOutline, ids::TaskKey};
use sha2::{Digest as _, Sha256};

use crate::{
    error::SampleError,
    request::{Preset, SampleRequest, Sampler},
    sample::{Population, Sample, SampledBank},
};
use candidates::{Candidate, First};
use facets::FacetFilter;
use names::{Categories, Named};
use order::{Order, OrderKey};
use quick::Quick;
use shares::Shares;
use strata::Strata;
use total::Total;

/// Version of the samplers: raised whenever a request would choose other questions or list them otherwise. Not raised when `--limit` and
/// the samplers of others began to go by the order of files that a loader hides: those had chosen what their report did not say, and all
/// other samples, which the number stands for too, are as they were.
pub const SAMPLER_VERSION: u32 = 1;

/// How the questions are chosen, step 4 of [`SampleRequest`].
#[derive(Debug)]
enum Selection {
    /// Everything that the filters leave.
    All,
    /// A number of questions per bank, spread over its categories.
    PerBank(u64),
    /// See [`quick`].
    Quick(Quick),
    /// See [`shares`].
    Shares(Shares),
    /// A number of questions per category of the dataset, by category number.
    PerCategory(u64, Vec<First>),
    /// A number of questions over the whole dataset.
    Total(Total),
}

impl Selection {
    /// The facets that divide categories into strata: a rule of another harness knows its own groups alone.
    fn strata<'a>(&self, request: &'a SampleRequest) -> &'a [String] {
        match self {
            Self::Total(total) if total.is_nested() => &request.sizes.strata,
            _ => &[],
        }
    }
}

/// A sample in the making: push every bank in file order, then finish.
#[derive(Debug)]
pub struct Sampling {
    request: SampleRequest,
    selection: Selection,
    order: Order,
    named: Option<Named>,
    categories: Categories,
    facets: FacetFilter,
    strata: Strata,
    population: Population,
    /// Banks kept so far; those without a chosen question are dropped at the end.
    banks: Vec<SampledBank>,
    /// Questions that the filters (steps 1 to 3) left.
    eligible: u64,
    /// Banks that only `max_banks` dropped.
    banks_cut: u64,
    /// Some bank was shortened by `max_sessions`.
    sessions_cut: bool,
    listing: Listing,
    /// Scratch: places by category number, kept to spare allocations.
    cells: Vec<Vec<OrderKey>>,
}

/// What is chosen so far.
#[derive(Debug, Default)]
struct Listing {
    signature: Sha256,
    by_category: Vec<u64>,
    by_stratum: Vec<u64>,
    n: u64,
    /// Questions that `--limit` cut off.
    cut: u64,
}

impl Listing {
    /// Adds the next question unless the limit is reached.
    fn add(&mut self, limit: Option<u64>, category: u32, stratum: u32, id: &str) -> bool {
        if limit.is_some_and(|limit| self.n >= limit) {
            self.cut += 1;
            return false;
        }
        if self.n > 0 {
            self.signature.update("\n");
        }
        self.signature.update(id);
        self.n += 1;
        for (counts, number) in [(&mut self.by_category, category), (&mut self.by_stratum, stratum)] {
            if counts.len() <= number as usize {
                counts.resize(number as usize + 1, 0);
            }
            counts[number as usize] += 1;
        }
        true
    }
}

/// Takes a sample of outlines in file order.
///
/// # Errors
/// See [`SampleError`].
pub fn sample<I>(outlines: I, request: SampleRequest) -> Result<Sample, SampleError>
where
    I: IntoIterator,
    I::Item: Borrow<BankOutline>,
{
    let mut sampling = Sampling::new(request)?;
    for outline in outlines {
        sampling.push(outline.borrow())?;
    }
    sampling.finish()
}

impl Sampling {
    /// Checks a request.
    ///
    /// # Errors
    /// When a count is 0, when two selections are given, when a seed would have no effect, or when a facet has no value.
    pub fn new(request: SampleRequest) -> Result<Self, SampleError> {
        let selection = selection(&request)?;
        Ok(Self {
            order: Order::new(request.sampler, request.seed.as_deref()),
            named: Named::new(&request.question_ids),
            facets: FacetFilter::new(&request)?,
            strata: Strata::new(selection.strata(&request)),
            selection,
            categories: Categories::default(),
            population: Population::default(),
            banks: Vec::new(),
            eligible: 0,
            banks_cut: 0,
            sessions_cut: false,
            listing: Listing::default(),
            cells: Vec::new(),
            request,
        })
    }

    /// Looks at the next bank of the file.
    ///
    /// # Errors
    /// When the dataset has more banks, or the bank more questions, than task keys can number, or facets make too many strata.
    pub fn push(&mut self, outline: &BankOutline) -> Result<(), SampleError> {
        let file_index = self.check_size(outline)?;
        self.population.banks += 1;
        self.population.entries += u64::from(outline.sessions());
        self.population.turns += u64::from(outline.turns);
        self.population.questions += outline.questions.len() as u64;

        let mut categories = self.sort_into_cells(file_index, outline)?;
        if categories.is_empty() {
            return Ok(());
        }
        if self.request.max_banks.is_some_and(|max| self.banks.len() as u64 >= max) {
            self.banks_cut += 1;
            categories.iter().for_each(|&category| self.cells[category as usize].clear());
            return Ok(());
        }
        categories.sort_unstable_by_key(|&category| self.categories.name(category));
        self.eligible += categories.iter().map(|&category| self.cells[category as usize].len() as u64).sum::<u64>();
        let questions = self.choose(outline, &categories);
        self.add_bank(file_index, outline, questions);
        Ok(())
    }

    fn check_size(&self, outline: &BankOutline) -> Result<u32, SampleError> {
        let too_large = |what: String, limit| Err(SampleError::TooLarge { what, limit });
        if outline.questions.len() > TaskKey::MAX_INDEX as usize {
            let what = format!("bank {} has {} questions", outline.bank_id, outline.questions.len());
            return too_large(what, TaskKey::MAX_INDEX);
        }
        match u32::try_from(self.population.banks) {
            Ok(file_index) if file_index < TaskKey::MAX_BANKS => Ok(file_index),
            _ => too_large(format!("the dataset has more than {} banks", TaskKey::MAX_BANKS), TaskKey::MAX_BANKS),
        }
    }

    /// Steps 1 and 2: puts what the filters leave into `cells`, in file order; returns the categories that occur.
    fn sort_into_cells(&mut self, file_index: u32, outline: &BankOutline) -> Result<Vec<u32>, SampleError> {
        let mut occurring = Vec::new();
        for (index, question) in (0_u32..).zip(&outline.questions) {
            let category = self.categories.count(&question.category, &self.request);
            let named = self.named.as_mut().is_none_or(|named| named.cross_off(&question.question_id));
            if !self.facets.admits(&question.facets) {
                continue;
            }
            let stratum = self.strata.count(category, question)?;
            if !named || !self.categories.is_wanted(category) {
                continue;
            }
            while self.cells.len() <= category as usize {
                self.cells.push(Vec::new());
            }
            let cell = &mut self.cells[category as usize];
            if cell.is_empty() {
                occurring.push(category);
            }
            cell.push(self.order.place((file_index, index), stratum, question));
        }
        Ok(occurring)
    }

    /// Step 4 for one bank, and step 5 where it can be done at once. Empties the cells.
    fn choose(&mut self, outline: &BankOutline, categories: &[u32]) -> Vec<u32> {
        let id = |index: u32| outline.questions[index as usize].question_id.as_str();
        let limit = self.request.limit;
        if let (Selection::All, Some(limit)) = (&self.selection, limit) {
            self.cut_to_head(limit.saturating_sub(self.listing.n), categories);
        }
        let mut chosen = Vec::new();
        for &category in categories {
            let cell = &mut self.cells[category as usize];
            let size = cell.len();
            match &mut self.selection {
                selection @ (Selection::All | Selection::PerBank(_)) => {
                    match selection {
                        Selection::PerBank(per_bank) => keep_first(cell, quota(*per_bank, categories.len())),
                        _ => cell.sort_unstable(),
                    }
                    chosen.extend(
                        cell.iter()
                            .filter(|p| self.listing.add(limit, category, p.stratum, id(p.index)))
                            .map(|p| p.index),
                    );
                }
                Selection::Quick(quick) => {
                    keep_first(cell, quota(u64::from(self.request.sizes.fair_per_bank), categories.len()));
                    quick.offer(category, size, cell, id);
                }
                Selection::Shares(shares) => {
                    cell.sort_unstable();
                    shares.offer(category, cell, id);
                }
                Selection::PerCategory(count, firsts) => {
                    while firsts.len() <= category as usize {
                        firsts.push(First::new(usize::try_from(*count).unwrap_or(usize::MAX)));
                    }
                    cell.iter().for_each(|place| firsts[category as usize].offer(*place, category, id(place.index)));
                }
                Selection::Total(total) => {
                    cell.iter().for_each(|place| total.offer(*place, category, id(place.index)));
                }
            }
            cell.clear();
        }
        chosen
    }

    /// Keeps the first `room` questions of the bank in file order: a limit on everything is a slice of the file, not of
    /// the listing.
    fn cut_to_head(&mut self, room: u64, categories: &[u32]) {
        let mut places: Vec<u32> = categories
            .iter()
            .flat_map(|&category| self.cells[category as usize].iter().map(|place| place.file_place))
            .collect();
        places.sort_unstable();
        let kept = usize::try_from(room).unwrap_or(usize::MAX);
        let Some(&end) = places.get(kept) else { return };
        for &category in categories {
            let cell = &mut self.cells[category as usize];
            let before = cell.len();
            cell.retain(|place| place.file_place < end);
            self.listing.cut += (before - cell.len()) as u64;
        }
    }

    fn add_bank(&mut self, file_index: u32, outline: &BankOutline, questions: Vec<u32>) {
        let all = outline.sessions();
        let kept = self.request.max_sessions.map_or(all, |max| all.min(max));
        self.sessions_cut |= kept < all;
        // parts and turns of sessions that are cut off are not known here: their share is
        let share = |of: u32| (u64::from(of) * u64::from(kept)).div_ceil(u64::from(all.max(1))) as u32;
        let (entries, turns) =
            if kept < all { (share(outline.entries), share(outline.turns)) } else { (outline.entries, outline.turns) };
        self.banks.push(SampledBank { file_index, bank_id: outline.bank_id.clone(), entries, turns, questions });
    }

    /// The sample of what was pushed.
    ///
    /// # Errors
    /// When a named category or question does not exist, or when nothing is left.
    pub fn finish(mut self) -> Result<Sample, SampleError> {
        if self.population.questions == 0 {
            return Err(SampleError::NoQuestions);
        }
        self.categories.check(&self.request)?;
        self.facets.check()?;
        self.named.as_ref().map_or(Ok(()), Named::check)?;
        if self.eligible == 0 {
            return Err(SampleError::Empty {
                filters: describe::filters(&self.request),
                questions: self.population.questions,
            });
        }
        let by_name = self.categories.by_name();
        let candidates = match std::mem::replace(&mut self.selection, Selection::All) {
            Selection::Quick(quick) => quick.choose(&by_name),
            Selection::Shares(shares) => shares.choose(),
            Selection::PerCategory(_, firsts) => firsts.into_iter().flat_map(First::into_sorted).collect(),
            Selection::Total(total) => total.choose(&self.categories, &self.strata),
            Selection::All | Selection::PerBank(_) => Vec::new(),
        };
        self.list(candidates);
        self.banks.retain(|bank| !bank.questions.is_empty());
        self.population.by_category = self.categories.population();
        let spec = describe::spec(&self);
        Ok(Sample { banks: self.banks, spec, population: self.population })
    }

    /// Lists questions that were chosen over the whole dataset.
    fn list(&mut self, mut candidates: Vec<Candidate>) {
        candidates.sort_unstable_by(|a, b| {
            let key = |c: &Candidate| (c.place.file_index, c.category);
            let categories = &self.categories;
            a.place.file_index.cmp(&b.place.file_index).then_with(|| {
                if key(a) == key(b) {
                    a.place.cmp(&b.place)
                } else {
                    categories.name(a.category).cmp(categories.name(b.category))
                }
            })
        });
        // banks are in file order and so are the candidates
        let mut banks = self.banks.iter_mut().peekable();
        for candidate in candidates {
            while banks.next_if(|bank| bank.file_index < candidate.place.file_index).is_some() {}
            if let Some(bank) = banks.peek_mut()
                && self.listing.add(self.request.limit, candidate.category, candidate.place.stratum, &candidate.id)
            {
                bank.questions.push(candidate.place.index);
            }
        }
    }
}

/// `max(1, ceil(per_bank / categories))`: what each category of a bank may give.
fn quota(per_bank: u64, categories: usize) -> usize {
    usize::try_from(per_bank.div_ceil(categories.max(1) as u64).max(1)).unwrap_or(usize::MAX)
}

/// Sorts the first `count` places to the front and drops the others.
fn keep_first(cell: &mut Vec<OrderKey>, count: usize) {
    if count < cell.len() {
        cell.select_nth_unstable(count);
        cell.truncate(count);
    }
    cell.sort_unstable();
}

/// Step 4 of [`SampleRequest`]: which selection a request means.
fn selection(request: &SampleRequest) -> Result<Selection, SampleError> {
    let counts = [
        ("--limit", request.limit),
        ("--sample", request.sample_per_category),
        ("--sample-total", request.sample_total),
        ("--per-bank", request.per_bank),
        ("--max-banks", request.max_banks),
        ("--max-sessions", request.max_sessions.map(u64::from)),
    ];
    if let Some((flag, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
        return Err(SampleError::Zero { flag });
    }
    let sampler = request.sampler;
    if sampler.is_of_totals() && request.sample_total.is_none() {
        return Err(SampleError::NeedsTotal { sampler: sampler.name() });
    }
    let seed = match (&request.seed, sampler) {
        (Some(_), Sampler::Astrocyte | Sampler::AstrocyteLme) => {
            return Err(SampleError::SeedWithoutEffect { sampler: sampler.name() });
        }
        (Some(seed), Sampler::GoLcg) => seed.parse().map_err(|_| SampleError::SeedOfGoLcg { seed: seed.clone() })?,
        (_, Sampler::Hash) | (None, _) => 0,
    };
    let given = [
        ("--preset", request.preset.is_some()),
        ("--per-bank", request.per_bank.is_some()),
        ("--sample", request.sample_per_category.is_some()),
        ("--sample-total", request.sample_total.is_some()),
        ("--question-id", !request.question_ids.is_empty()),
    ];
    let mut given = given.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag);
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        return Err(SampleError::Conflict { first, second });
    }
    if request.sample_total.is_some() && request.limit.is_some() {
        return Err(SampleError::Conflict { first: "--sample-total", second: "--limit" });
    }
    if let Some(total) = request.sample_total {
        return Ok(Selection::Total(Total::new(total, sampler, seed)));
    }
    let sizes = &request.sizes;
    // a part of `fair` also where a profile says otherwise
    let over_all = |size: u32| Selection::Total(Total::new(u64::from(size.max(1)), sampler, seed));
    let fair = || match sizes.fair {
        Some(fair) => over_all(fair),
        None => Selection::PerBank(u64::from(sizes.fair_per_bank)),
    };
    let quick = || match sizes.fair {
        Some(fair) => over_all(sizes.quick.min(fair)),
        None => Selection::Quick(Quick::new(sizes.quick as usize)),
    };
    Ok(match (request.preset, request.per_bank, request.sample_per_category) {
        (_, Some(per_bank), _) => Selection::PerBank(per_bank),
        (_, _, Some(count)) => Selection::PerCategory(count, Vec::new()),
        (Some(Preset::Quick), ..) => quick(),
        (Some(Preset::Fair), ..) => fair(),
        // of a whole dataset `fair` is by shares already
        (Some(Preset::Fair2), ..) => match sizes.fair {
            Some(fair) => over_all(fair),
            None => Selection::Shares(Shares::new(u64::from(sizes.fair_per_bank))),
        },
        (Some(Preset::Full), ..) => Selection::All,
        (None, ..) if request.limit.is_some() || !request.question_ids.is_empty() => Selection::All,
        (None, ..) => fair(),
    })
}
