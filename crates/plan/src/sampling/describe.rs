//! What the run spec and the report say about a sample.

use std::collections::BTreeMap;

use bench_proto::{dataset::FilterParts, spec::SampleSpec};
use sha2::Digest as _;

use super::{SAMPLER_VERSION, Sampling};
use crate::request::{Preset, SampleRequest, Sampler};

const NO_ESTIMATE: &str = "not an estimate of the full score";

/// The spec of a sample whose listing is complete.
pub(super) fn spec(sampling: &Sampling) -> SampleSpec {
    let request = &sampling.request;
    let listing = &sampling.listing;
    let by_category: BTreeMap<String, u64> = (0_u32..)
        .zip(&listing.by_category)
        .filter(|(_, n)| **n > 0)
        .map(|(category, n)| (sampling.categories.name(category).to_owned(), *n))
        .collect();
    // the first banks are no sample of all of them, however their own questions were taken
    let by_hand = listing.cut > 0 || sampling.banks_cut > 0 || !request.question_ids.is_empty();
    let strata = if sampling.strata.divide() || sampling.facets.is_active() {
        sampling.strata.list(&listing.by_stratum, &sampling.categories)
    } else {
        Vec::new()
    };
    let complete = if strata.is_empty() {
        by_category.iter().all(|(name, n)| sampling.population.by_category.get(name) == Some(n))
    } else {
        strata.iter().all(|stratum| stratum.n == stratum.population)
    };
    let census = complete && !by_hand;
    SampleSpec {
        preset: preset_name(request),
        sampler: sampler_name(request),
        sampler_version: SAMPLER_VERSION,
        seed: request.seed.clone(),
        n: listing.n,
        banks: sampling.banks.len() as u64,
        notes: notes(sampling, census, &by_category),
        by_category,
        signature: hex::encode(listing.signature.clone().finalize()),
        census,
        stratified: has_quotas(request) && !census && !by_hand,
        strata,
        max_sessions: request.max_sessions,
        own_k: None,
        unfiltered: FilterParts::default(),
        // plain data with text keys: it always serialises
        request: serde_json::to_value(request).unwrap_or_default(),
    }
}

/// The preset in use, also when none was named.
fn preset(request: &SampleRequest) -> Option<Preset> {
    let nothing_chosen = request.per_bank.is_none()
        && request.sample_per_category.is_none()
        && request.sample_total.is_none()
        && request.limit.is_none()
        && request.question_ids.is_empty();
    request.preset.or(nothing_chosen.then_some(Preset::Fair))
}

/// Whether a quota chooses inside the categories.
fn has_quotas(request: &SampleRequest) -> bool {
    let counted = request.per_bank.is_some() || request.sample_per_category.is_some() || request.sample_total.is_some();
    counted || matches!(preset(request), Some(Preset::Quick | Preset::Fair | Preset::Fair2))
}

fn preset_name(request: &SampleRequest) -> String {
    match preset(request) {
        Some(preset) if filters(request).is_empty() => preset.name().to_owned(),
        _ => "custom".to_owned(),
    }
}

fn sampler_name(request: &SampleRequest) -> String {
    let name = match request.limit {
        _ if !request.question_ids.is_empty() => "named",
        Some(_) if !has_quotas(request) => "head",
        _ => request.sampler.name(),
    };
    name.to_owned()
}

/// The filters and counts of a request, as the flags that set them; empty when a preset stands alone.
pub(super) fn filters(request: &SampleRequest) -> String {
    let list = |flag: &str, values: &[String]| (!values.is_empty()).then(|| format!("{flag} {}", values.join(",")));
    let count = |flag: &str, value: Option<u64>| value.map(|value| format!("{flag} {value}"));
    let ids = &request.question_ids;
    let parts = [
        list("--category", &request.categories),
        list("--exclude-category", &request.exclude_categories),
        list("--facet", &request.facets),
        list("--exclude-facet", &request.exclude_facets),
        (!ids.is_empty()).then(|| "--question-id".to_owned()),
        count("--max-banks", request.max_banks),
        count("--max-sessions", request.max_sessions.map(u64::from)),
        count("--per-bank", request.per_bank),
        count("--sample", request.sample_per_category),
        count("--sample-total", request.sample_total),
        count("--limit", request.limit),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether anything but a total chooses questions.
fn filters_but_total(request: &SampleRequest) -> bool {
    !filters(&SampleRequest { sample_total: None, ..request.clone() }).is_empty()
}

fn notes(sampling: &Sampling, census: bool, by_category: &BTreeMap<String, u64>) -> Vec<String> {
    let request = &sampling.request;
    let listing = &sampling.listing;
    let mut notes = sampling.facets.notes();
    if let Some(named) = &sampling.named {
        notes.push(format!("questions named by hand: {NO_ESTIMATE}"));
        if sampling.eligible < named.len() {
            notes.push(format!(
                "{} of the named questions are left out by other filters",
                named.len() - sampling.eligible
            ));
        }
    }
    if listing.cut > 0 {
        let what = if sampler_name(request) == "head" { "head slice" } else { "cut by --limit" };
        notes.push(format!("{what}, the first {} of {} questions: {NO_ESTIMATE}", listing.n, listing.n + listing.cut));
    }
    if let Some(total) = request.sample_total.filter(|total| *total > listing.n) {
        let of = if filters_but_total(request) { "that the other flags leave" } else { "of the dataset" };
        notes.push(format!("--sample-total {total} took all {} questions {of}: there are no more", listing.n));
    }
    if matches!(request.sampler, Sampler::Astrocyte | Sampler::AstrocyteLme) && !census {
        notes.push(format!("questions taken in file order (sampler {}): {NO_ESTIMATE}", request.sampler.name()));
    }
    if let (1.., Some(kept)) = (sampling.banks_cut, request.max_banks) {
        notes.push(format!("the first {kept} of {} banks only: {NO_ESTIMATE}", sampling.population.banks));
    }
    if sampling.sessions_cut
        && let Some(max) = request.max_sessions
    {
        notes
            .push(format!("the first {max} sessions of each bank only: the evidence of some questions may be cut off"));
    }
    let wanted =
        sampling.categories.by_name().into_iter().filter(|&category| sampling.categories.is_wanted(category)).count();
    if by_category.len() < wanted && sampling.named.is_none() {
        notes.push(format!("{} of {wanted} categories have no question in the sample", wanted - by_category.len()));
    }
    notes
}
