//! Who shares a rank, and what each pair says: paired comparisons of all results of a table, corrected over all pairs of the dataset.

use bench_aggregate::compare::{CompareOptions, Side, compare, correct_over_pairs, in_view_of_all, ranks};
use bench_proto::{
    comparison::{Comparison, Word},
    metric::Better,
    summary::{ProbeConditions, Summary},
};
use bench_report::{
    archive::ArchivePlace,
    grades_were_brought,
    site::{self, Beside, Board, BoardPair, BoardRow, SiteDataset, Unranked, names},
};

use super::{
    Wanted,
    choosing::{Contestant, Draft, same_settings, tables, variant},
    reading::{self, ArchivedRun, ReadRun, unless_left_out},
};
use crate::{exit::CliError, results::published::among_others};

/// Questions of a table that are held at once.
const MOST_QUESTIONS: usize = 10_000_000;

/// The page of a dataset with what the pages of its pairs and runs are made of.
pub(super) struct Boards {
    pub(super) dataset: SiteDataset,
    held: Vec<Held>,
}

/// What a table is made of, beside the table itself.
struct Held {
    /// The reports of its runs, in the order of the rows.
    summaries: Vec<Summary>,
    /// Comparisons of each row with each other one.
    pairs: Vec<Compared>,
}

/// A comparison of two rows of a table.
struct Compared {
    /// Row of the first run, which stands below.
    a: usize,
    /// Row of the second.
    b: usize,
    /// Whether both have a rank.
    ranked: bool,
    comparison: Comparison,
}

impl Boards {
    /// Reads the runs of a dataset, and holds those against each other that may be; nothing where none of them can be read.
    ///
    /// # Errors
    /// What the archive meets.
    pub(super) async fn of_dataset(
        place: &ArchivePlace,
        name: &str,
        runs: Vec<ArchivedRun>,
        wanted: Wanted,
        left_out: &mut Vec<String>,
    ) -> Result<Option<Self>, CliError> {
        let archived_runs = runs.len() as u64;
        let (mut boards, mut held) = (Vec::new(), Vec::new());
        for Draft { contestants, differs_in } in tables(runs, left_out) {
            let read = read_all(place, contestants, left_out).await?;
            let Some(first) = read.first() else { continue };
            let mut board = board_of(first, differs_in);
            let read = in_order(read, board.better);
            board.rows = rows_of(&read);
            held.push(Held {
                pairs: compared(&read, &board.rows, wanted.seed),
                summaries: read.into_iter().map(|read| read.summary).collect(),
            });
            boards.push(board);
        }
        let of_ranked = held.iter_mut().flat_map(|held| &mut held.pairs).filter(|pair| pair.ranked);
        correct_over_pairs(of_ranked.map(|pair| &mut pair.comparison));
        for (board, held) in boards.iter_mut().zip(&held) {
            board.pairs = held.pairs.iter().map(|pair| pair_of(&board.rows, pair)).collect();
            set_ranks(board, &held.pairs);
        }
        let first = held.first().and_then(|held| held.summaries.first()).filter(|_| wanted.published);
        let published = first.map(|first| among_others(first).results).unwrap_or_default();
        let dataset = SiteDataset {
            name: name.to_owned(),
            page: names::of_dataset(name),
            archived_runs,
            tables: boards,
            published: published.into_iter().filter(|row| !row.is_this_run).collect(),
        };
        Ok((!dataset.tables.is_empty()).then_some(Self { dataset, held }))
    }

    /// Hands over each page below that of the dataset: its place, and the page.
    ///
    /// # Errors
    /// What `write` meets.
    pub(super) fn each_page(&self, mut write: impl FnMut(&str, &str) -> Result<(), CliError>) -> Result<(), CliError> {
        for (board, held) in self.dataset.tables.iter().zip(&self.held) {
            for (row, summary) in board.rows.iter().zip(&held.summaries) {
                write(&row.page, &site::run(summary, &self.dataset, row).map_err(CliError::infrastructure_of)?)?;
            }
            for (pair, compared) in board.pairs.iter().zip(&held.pairs) {
                let (a, b) = (&board.rows[compared.a], &board.rows[compared.b]);
                let beside = Beside { dataset: &self.dataset, pair, a, b };
                write(&pair.page, &site::pair(&compared.comparison, beside).map_err(CliError::infrastructure_of)?)?;
            }
        }
        Ok(())
    }
}

/// Reads of each contestant of a table the first run that is sound, with its questions by the metric of the first of all.
async fn read_all(
    place: &ArchivePlace,
    contestants: Vec<Contestant>,
    left_out: &mut Vec<String>,
) -> Result<Vec<ReadRun>, CliError> {
    let mut by: Option<(String, u32)> = None;
    let (mut all, mut questions) = (Vec::with_capacity(contestants.len()), 0);
    for contestant in contestants {
        let (runs, same) = contestant.into_runs();
        for run in runs {
            let id = run.entry.run_id.clone();
            let spec = &run.bundle.spec;
            let (metric, top_k) = by.get_or_insert_with(|| (spec.headline_metric(), spec.system.top_k));
            let read = reading::read(place, run, (metric.as_str(), *top_k)).await;
            let Some(mut read) = unless_left_out(&id, read, left_out)? else { continue };
            read.same_settings = same_settings(&read.run.entry, &same);
            questions += read.questions;
            if questions > MOST_QUESTIONS && !all.is_empty() {
                left_out
                    .push(format!("run {id} is left out: its table would have more than {MOST_QUESTIONS} questions"));
                questions -= read.questions;
            } else {
                all.push(read);
            }
            break;
        }
    }
    Ok(all)
}

fn board_of(first: &ReadRun, differs_in: Vec<String>) -> Board {
    let (spec, summary) = (&first.run.bundle.spec, &first.summary);
    let metric = spec.headline_metric();
    Board {
        preset: summary.dataset.sample.preset.clone(),
        questions: summary.dataset.sample.n,
        answerer: summary.spec.known_answerer(),
        judges: summary.spec.judges.clone(),
        grades_brought: grades_were_brought(summary),
        counted_as: spec.counting.as_ref().map(|counting| counting.name.clone()),
        top_k: summary.spec.known_top_k(),
        better: spec.metric(&metric).better,
        metric,
        differs_in,
        rows: Vec::new(),
        pairs: Vec::new(),
    }
}

/// Results that have a rank by their score, then controls and what is not verified by theirs; of equal ones the newer first.
fn in_order(mut read: Vec<ReadRun>, better: Better) -> Vec<ReadRun> {
    let key = |read: &ReadRun| {
        let score = read.summary.headline.value;
        let lower = score.map_or(f64::INFINITY, |score| if better == Better::Lower { score } else { -score });
        (read.run.unranked().map(|of| of.mark), lower)
    };
    read.sort_by(|x, y| {
        let ((x_last, x_lower), (y_last, y_lower)) = (key(x), key(y));
        let newer = |read: &ReadRun| (read.summary.run.finished_at.clone(), read.summary.run.id.clone());
        x_last.cmp(&y_last).then(x_lower.total_cmp(&y_lower)).then_with(|| newer(y).cmp(&newer(x)))
    });
    read
}

fn unranked(read: &ReadRun) -> Option<Unranked> {
    let mut of = read.run.unranked()?;
    if !read.summary.run.reasons.is_empty() {
        of.why = format!("{}: {}", of.why, read.summary.run.reasons.join("; "));
    }
    Some(of)
}

fn rows_of(read: &[ReadRun]) -> Vec<BoardRow> {
    let runs: Vec<&ArchivedRun> = read.iter().map(|read| &read.run).collect();
    let mut probes: Option<&ProbeConditions> = None;
    let mut rows = Vec::with_capacity(read.len());
    for read in read {
        let ReadRun { run, summary, .. } = read;
        let probe = summary.latency_probe.as_ref();
        let conditions = probe.filter(|probe| probe.p50_ms.is_some()).map(|probe| &probe.conditions);
        // the first that has one says what the others are held to
        probes = probes.or(conditions);
        let differs = probes.zip(conditions).and_then(|(first, own)| first.differs(own));
        let told = differs.map(|differs| format!("not held against that of the first: {differs}"));
        rows.push(BoardRow {
            rank: None,
            run: summary.run.id.clone(),
            page: names::of_run(&summary.run.id),
            archived_as: run.entry.folder.clone(),
            system: summary.spec.system.clone(),
            variant: variant(run, &runs),
            system_version: summary.spec.system_version.clone(),
            score: summary.headline.value,
            ci95: summary.headline.ci95.clone(),
            counted_value: summary.counting.as_ref().and_then(|counted| counted.value),
            questions: summary.headline.n,
            // what the memory system spent itself is a part of what its score costs
            usd: summary.usage.usd_list_with(summary.metered.as_ref()),
            // nobody has told what results made elsewhere have cost
            usd_incomplete: summary.usage.is_incomplete() || run.bundle.imported,
            probe_p50_ms: probe.and_then(|probe| probe.p50_ms),
            probe_note: told.or_else(|| probe.and_then(|probe| probe.failure.clone())),
            finished_at: summary.run.finished_at.clone(),
            verdict: summary.run.verdict,
            result_digest: summary.result_digest.clone(),
            unranked: unranked(read),
            not_told_apart: Vec::new(),
            same_settings: read.same_settings.clone(),
        });
    }
    rows
}

/// All pairs of a table, each row with those below it.
fn compared(read: &[ReadRun], rows: &[BoardRow], seed: u64) -> Vec<Compared> {
    let options = CompareOptions { seed, ..CompareOptions::default() };
    let sides: Vec<Side<'_>> = read.iter().map(side).collect();
    let mut pairs = Vec::new();
    for (b, (second, above)) in sides.iter().zip(rows).enumerate() {
        for (a, (first, below)) in sides.iter().zip(rows).enumerate().skip(b + 1) {
            let ranked = above.unranked.is_none() && below.unranked.is_none();
            pairs.push(Compared { a, b, ranked, comparison: compare(first, second, &options) });
        }
    }
    pairs
}

fn side(read: &ReadRun) -> Side<'_> {
    Side { spec: &read.run.bundle.spec, summary: &read.summary, facts: &read.facts, members: &read.members }
}

fn pair_of(rows: &[BoardRow], pair: &Compared) -> BoardPair {
    let (a, b, found) = (&rows[pair.a].run, &rows[pair.b].run, &pair.comparison);
    BoardPair {
        page: names::of_pair(a, b),
        a: a.clone(),
        b: b.clone(),
        difference: found.paired.difference,
        ci95: found.paired.ci95.clone(),
        p_holm: found.paired.p_holm,
        verdict: if pair.ranked { in_view_of_all(found.verdict, found.paired.p_holm) } else { found.verdict },
        ranked: pair.ranked,
        reasons: found.reasons.clone(),
    }
}

/// Gives results their ranks, and says of each whom it is not told apart from.
fn set_ranks(board: &mut Board, pairs: &[Compared]) {
    let ranked = board.rows.iter().take_while(|row| row.unranked.is_none()).count();
    let mut apart = vec![vec![false; ranked]; ranked];
    for (pair, told) in pairs.iter().zip(&board.pairs).filter(|(pair, _)| pair.ranked) {
        let is_told = told.reasons.is_empty() && matches!(told.verdict, Word::Better | Word::Worse);
        apart[pair.a][pair.b] = is_told;
        apart[pair.b][pair.a] = is_told;
    }
    let ids: Vec<String> = board.rows.iter().take(ranked).map(|row| row.run.clone()).collect();
    let all = ranks(ranked, |a, b| apart[a][b]);
    for ((at, row), rank) in board.rows.iter_mut().enumerate().zip(all) {
        row.rank = Some(rank);
        let near = ids.iter().zip(&apart[at]).enumerate().filter(|(other, (_, apart))| *other != at && !**apart);
        row.not_told_apart = near.map(|(_, (id, _))| id.clone()).collect();
    }
}
