//! What can be wrong with a sample request.

use bench_proto::nearest::did_you_mean;

/// Why no sample could be taken. Every message says what to do next; all of them are bad input (exit code 2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// A count of nothing.
    #[error("{flag} must be at least 1; leave it out to ask for all")]
    Zero {
        /// The flag that was given, such as `--sample`.
        flag: &'static str,
    },
    /// Two selections at once.
    #[error("{first} and {second} both choose the questions: give one of them")]
    Conflict {
        /// One flag.
        first: &'static str,
        /// The flag that cannot go together with the first.
        second: &'static str,
    },
    /// A seed that nothing reads.
    #[error("--seed has no effect on --sampler {sampler}, which takes questions in file order: leave one of them out")]
    SeedWithoutEffect {
        /// Name of the sampler.
        sampler: &'static str,
    },
    /// A seed that the sampler cannot use.
    #[error("--seed {seed}: --sampler go-lcg takes a whole number from 0 to 18446744073709551615")]
    SeedOfGoLcg {
        /// What was given.
        seed: String,
    },
    /// A sampler that only knows how to fill a total.
    #[error("--sampler {sampler} chooses a number of questions over the whole dataset: give it with --sample-total N")]
    NeedsTotal {
        /// Name of the sampler.
        sampler: &'static str,
    },
    /// No such category.
    #[error("unknown category '{name}'{}; this dataset has {}", hint(.nearest), .known.join(", "))]
    UnknownCategory {
        /// What was asked for.
        name: String,
        /// Nearest names, best first.
        nearest: Vec<String>,
        /// All categories of the dataset.
        known: Vec<String>,
    },
    /// A facet that is not written as it must be.
    #[error("{flag} {given}: a facet is written NAME=VALUE, such as {flag} abstention=yes")]
    FacetForm {
        /// The flag that was given, such as `--sample`.
        flag: &'static str,
        /// What was given.
        given: String,
    },
    /// No question has such a facet.
    #[error("no question has the facet '{given}'{}; {}", hint(.nearest), facets(.known))]
    UnknownFacet {
        /// What was asked for.
        given: String,
        /// Nearest ones, best first.
        nearest: Vec<String>,
        /// Facets of the dataset, as many as a line holds.
        known: Vec<String>,
    },
    /// More strata than a sample can be spread over.
    #[error(
        "the facets {facets} of the dataset's profile make more than {limit} strata: leave those with many values out of its \
         presets"
    )]
    TooManyStrata {
        /// Names of the facets that a sample is spread over.
        facets: String,
        /// Most strata of a sample.
        limit: usize,
    },
    /// No such question.
    #[error(
        "unknown question id '{id}'{}{}; `bench-coord datasets show NAME --questions` lists the ids",
        hint(.nearest),
        more(*.others)
    )]
    UnknownQuestion {
        /// The first unknown id.
        id: String,
        /// Near ids, best first; looked for among the first ids of the dataset only.
        nearest: Vec<String>,
        /// Number of further unknown ids.
        others: usize,
    },
    /// No look before the last question.
    #[error(
        "a sample of {n} questions cannot stop early: it takes at least {fewest}, in two banks or more where banks are asked in \
         the middle of their stream"
    )]
    NoRounds {
        /// Questions of the sample.
        n: u64,
        /// Fewest questions of a run that can.
        fewest: u64,
    },
    /// The filters leave nothing to ask.
    #[error("no question is left by {filters}: widen them (the dataset has {questions} questions)")]
    Empty {
        /// The filters in use, as flags.
        filters: String,
        /// Questions in the dataset.
        questions: u64,
    },
    /// The dataset has no questions at all.
    #[error("the dataset has no questions")]
    NoQuestions,
    /// More than the task keys can number.
    #[error("{what}: at most {limit} fit into one run; take a part with --max-banks or split the dataset")]
    TooLarge {
        /// What there is too much of.
        what: String,
        /// Most of it that one run can number.
        limit: u32,
    },
}

fn hint(nearest: &[String]) -> String {
    did_you_mean(nearest).map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn facets(known: &[String]) -> String {
    if known.is_empty() {
        "its questions have none".to_owned()
    } else {
        format!("this dataset has {}", known.join(", "))
    }
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(", and {count} more") }
}
