use std::{collections::BTreeMap, fs, path::Path};

use bench_aggregate::compare::DEFAULT_STATS_SEED;
use bench_proto::{
    counting::{CountingSpec, CountingSummary},
    digest::ResultDigest,
    facts::{Outcome, QuestionFacts, QuestionIdentity},
    ids::TaskKey,
    spec::ScorerSpec,
    started_again::ENDED_WITH,
    stop::{Look, LookOutcome, Looks, StopGoal, StopRule},
    summary::{Interval, SpecSummary, Summary, Verdict},
};
use bench_report::{
    archive::{
        ArchivePlace, IndexEntry,
        fetch::list,
        push::{PlainFile, push},
    },
    site::{BoardRow, Site},
};

use super::{Wanted, make};
use crate::{
    archive::bundle::{BUNDLE_VERSION, RunBundle},
    exit::{CliError, Exit},
};

const BANKS: u32 = 10;
const OF_BANK: u32 = 20;
const NEWER: &str = "2026-11-21T10:00:00Z";

/// A run as it will be archived.
struct Run {
    bundle: RunBundle,
    summary: Summary,
    facts: Vec<QuestionFacts>,
}

impl Run {
    /// A run that passes the questions for which `passes` says so, of (bank, question).
    fn new(id: &str, system: &str, passes: impl Fn(u32, u32) -> bool) -> Self {
        let mut spec: bench_proto::spec::RunSpec =
            serde_json::from_str(include_str!("../../../../proto/golden/run_spec.v1.json")).expect("a spec");
        (spec.system.name, spec.judges) = (system.to_owned(), Vec::new());
        spec.scorers = vec![ScorerSpec { name: "locomo-f1".to_owned(), version: 1, ..ScorerSpec::default() }];
        (spec.sample.n, spec.sample.stratified, spec.sample.census) = (200, false, true);
        let mut summary: Summary =
            serde_json::from_str(include_str!("../../../../proto/golden/report.v4.json")).expect("a report");
        let mut facts = Vec::new();
        for (bank, question) in (0..BANKS).flat_map(|bank| (0..OF_BANK).map(move |question| (bank, question))) {
            let identity = QuestionIdentity {
                task: TaskKey::question(bank, question),
                question_id: format!("b{bank:02}:q{question:02}"),
                bank_id: format!("b{bank:02}"),
                category: "single-hop".to_owned(),
                facets: BTreeMap::new(),
            };
            let scores = vec![("locomo-f1".to_owned(), f64::from(u8::from(passes(bank, question))))];
            facts.push(QuestionFacts { scores, ..QuestionFacts::without_steps(identity, Outcome::Scored) });
        }
        let value = facts.iter().map(|of| of.scores[0].1).sum::<f64>() / facts.len() as f64;
        summary.run.id = id.to_owned();
        (summary.run.verdict, summary.run.reasons) = (Verdict::Valid, Vec::new());
        summary.run.finished_at = Some("2026-11-20T10:00:00Z".to_owned());
        (summary.headline.metric, summary.headline.value) = ("locomo-f1".to_owned(), Some(value));
        summary.headline.ci95 = Some(Interval { low: value - 0.05, high: value + 0.05, method: "t".to_owned() });
        (summary.headline.n, summary.outcomes.not_run) = (facts.len() as u64, 0);
        let bundle = RunBundle {
            bundle_version: BUNDLE_VERSION,
            run_id: id.to_owned(),
            name: None,
            tags: Vec::new(),
            user: "somebody".to_owned(),
            spec,
            looks: None,
            imported: false,
            code_version: "1".to_owned(),
            created_ms: 0,
            finished_ms: None,
            events: Vec::new(),
        };
        Self { bundle, summary, facts }
    }

    fn at(mut self, finished: &str) -> Self {
        self.summary.run.finished_at = Some(finished.to_owned());
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Makes its parts fit together, as an honest run's do.
    fn honest(mut self) -> Self {
        let spec = &self.bundle.spec;
        self.summary.spec = SpecSummary::from(spec);
        self.summary.dataset = spec.into();
        self.summary.run.fingerprint = spec.fingerprint().hex();
        let mut digest = ResultDigest::default();
        for of in &self.facts {
            digest.push(&of.question_id, of.outcome, of.scores.iter().map(|(metric, score)| (metric.as_str(), *score)));
        }
        self.summary.result_digest = digest.finish();
        self
    }

    async fn push(&self, place: &ArchivePlace) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, content: String| {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("is written");
            PlainFile { name: name.to_owned(), path }
        };
        let line = |facts: &QuestionFacts| format!("{}\n", serde_json::json!({ "facts": facts, "texts": [] }));
        let files = vec![
            file("run.json", serde_json::to_string(&self.bundle).expect("JSON")),
            file("report.json", serde_json::to_string(&self.summary).expect("JSON")),
            file("results.jsonl", self.facts.iter().map(line).collect()),
        ];
        // an index says what its author wants: what no index may say is tried elsewhere
        let told = IndexEntry::of_run(&self.bundle.spec, &self.summary);
        let entry = IndexEntry { value: told.value.map(|value| value.min(1.0)), ..told };
        push(place, &entry, &files).await.expect("is pushed");
    }
}

/// An archive with runs, and a folder for its pages.
struct Archive {
    place: ArchivePlace,
    folder: tempfile::TempDir,
}

impl Archive {
    async fn of(runs: impl IntoIterator<Item = Run>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = ArchivePlace::folder(&folder.path().join("archive")).expect("a place");
        for run in runs {
            run.push(&place).await;
        }
        Self { place, folder }
    }

    async fn pages(&self, name: &str) -> Result<Site, CliError> {
        let wanted = Wanted { published: true, seed: DEFAULT_STATS_SEED };
        make(&self.place, &self.folder.path().join(name), wanted).await
    }

    fn file(&self, page: &str) -> String {
        fs::read_to_string(self.folder.path().join("site").join(page)).expect("the page is there")
    }
}

/// All files below a folder with what they hold.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, content)| (format!("{name}/{below}"), content)));
        } else {
            found.insert(name, fs::read(&path).expect("readable"));
        }
    }
    found
}

/// (run, rank, whether it has none for a reason) of each row of a table.
fn ranked(rows: &[BoardRow]) -> Vec<(&str, Option<usize>, bool)> {
    rows.iter().map(|row| (row.run.as_str(), row.rank, row.unranked.is_some())).collect()
}

/// Passes so many of twenty, in each bank others.
fn passing(of_twenty: u32) -> impl Fn(u32, u32) -> bool {
    move |bank, question| (question * 7 + bank * 3) % 20 < of_twenty
}

#[tokio::test]
async fn results_that_are_not_told_apart_share_a_rank() {
    let almost = |bank: u32, question: u32| passing(14)(bank, question) != (bank == 4 && question == 2);
    let archive = Archive::of([
        Run::new("good", "bm25", passing(14)).honest(),
        Run::new("alike", "vector", almost).honest(),
        Run::new("bad", "random", passing(5)).honest(),
    ])
    .await;
    let site = archive.pages("site").await.expect("is made");
    assert_eq!((site.datasets.len(), site.left_out.len()), (1, 0), "{:?}", site.left_out);
    let table = &site.datasets[0].tables[0];
    let first = if table.rows[0].run == "good" { ["good", "alike"] } else { ["alike", "good"] };
    assert_eq!(ranked(&table.rows), [(first[0], Some(1), false), (first[1], Some(1), false), ("bad", Some(3), false)]);
    assert_eq!(table.rows[0].not_told_apart, [first[1]]);
    assert!(table.rows[2].not_told_apart.is_empty());
    let worst = table.pairs.iter().find(|pair| (pair.a.as_str(), pair.b.as_str()) == ("bad", "good")).expect("a pair");
    assert!(worst.difference.is_some_and(|points| (points - 0.45).abs() < 1e-9), "{worst:?}");
    assert!(worst.p_holm.is_some_and(|p| p < 0.05) && table.pairs.len() == 3, "{worst:?}");
    let page = archive.file(&worst.page);
    assert!(page.contains("BETTER") && page.contains("b00:q"), "the flips are named: {page}");

    // again, and elsewhere: the same bytes
    let _ = archive.pages("site").await.expect("is renewed");
    let _ = archive.pages("other").await.expect("is made");
    let (one, other) = (files(&archive.folder.path().join("site")), files(&archive.folder.path().join("other")));
    assert_eq!(one.len(), 1 + 1 + 1 + 3 + 3, "{:?}", one.keys());
    assert_eq!(one, other);
    for row in &table.rows {
        assert!(one.contains_key(&row.page), "{}", row.page);
    }
}

#[tokio::test]
async fn a_table_of_the_same_models_with_another_parameter_names_the_parameter() {
    let seeded = |run: &mut Run| {
        run.bundle.spec.answerer.params.insert("seed".to_owned(), 4711.into());
    };
    let other = |run: &mut Run| {
        seeded(run);
        run.bundle.spec.answerer.name = "gpt-5".to_owned();
    };
    let archive = Archive::of([
        Run::new("plain", "bm25", passing(12)).honest(),
        Run::new("plain-too", "random", passing(3)).honest(),
        Run::new("seeded", "bm25", passing(11)).with(seeded).honest(),
        Run::new("other", "bm25", passing(10)).with(other).honest(),
    ])
    .await;
    let site = archive.pages("site").await.expect("is made");
    let tables = &site.datasets[0].tables;
    let mut differs: Vec<&[String]> = tables[1..].iter().map(|table| &table.differs_in[..]).collect();
    differs.sort();
    assert_eq!(differs, [["answerer".to_owned()], ["seed of the answerer".to_owned()]]);
}

#[tokio::test]
async fn a_table_of_answers_from_elsewhere_says_nothing_that_they_do_not_say() {
    let theirs = |run: &mut Run| {
        run.bundle.imported = true;
        let spec = &mut run.bundle.spec;
        spec.system.version = "imported".to_owned();
        (spec.answerer.provider, spec.answerer.name) = ("none".to_owned(), String::new());
        spec.headline = Some("theirs".to_owned());
        run.summary.headline.metric = "theirs".to_owned();
        run.facts.iter_mut().for_each(|of| of.scores[0].0 = "theirs".to_owned());
    };
    let archive = Archive::of([Run::new("theirs", "best", passing(12)).with(theirs).honest()]).await;
    let site = archive.pages("site").await.expect("is made");
    let tables = &site.datasets[0].tables;
    assert_eq!((&tables[0].answerer, tables[0].top_k, tables[0].grades_brought), (&None, None, true));
}

#[tokio::test]
async fn the_newest_valid_run_of_the_same_settings_is_shown_and_what_nobody_checked_has_no_rank() {
    let one_more = |bank: u32, question: u32| passing(6)(bank, question) || (bank, question) == (2, 1);
    let invalid = |run: &mut Run| {
        (run.summary.run.verdict, run.summary.run.reasons) = (Verdict::Invalid, vec!["a check failed".to_owned()]);
    };
    let archive = Archive::of([
        Run::new("old", "bm25", passing(5)).at("2026-11-01T00:00:00Z").honest(),
        Run::new("new", "bm25", passing(6))
            .at("2026-11-02T00:00:00Z")
            .with(|run| run.bundle.spec.system.version = "4".to_owned())
            .honest(),
        Run::new("newest", "bm25", passing(7)).at("2026-11-03T00:00:00Z").with(invalid).honest(),
        Run::new("other", "bm25", one_more)
            .with(|run| {
                run.bundle.spec.system.settings.insert("bm25.b".to_owned(), 0.9.into());
            })
            .honest(),
        Run::new("theirs", "best", passing(19)).with(|run| run.bundle.imported = true).honest(),
        Run::new("told", "oracle", passing(20)).honest(),
        Run::new("failed", "broken", passing(18)).with(invalid).honest(),
        Run::new("again", "lucky", passing(17)).with(|run| run.bundle.spec.taken_over.answered_again = 1).honest(),
        Run::new("more", "vector", passing(9)).with(|run| run.bundle.spec.system.top_k = 20).honest(),
        Run::new("answered", "vector", passing(9))
            .with(|run| run.bundle.spec.answerer.name = "gpt-5".to_owned())
            .honest(),
    ])
    .await;
    let site = archive.pages("site").await.expect("is made");
    assert!(site.left_out.is_empty(), "{:?}", site.left_out);
    let tables = &site.datasets[0].tables;
    assert_eq!(
        ranked(&tables[0].rows),
        [
            ("other", Some(1), false),
            ("new", Some(1), false),
            ("told", None, true),
            ("theirs", None, true),
            ("failed", None, true),
            ("again", None, true)
        ]
    );
    let rows = &tables[0].rows;
    assert_eq!((rows[0].variant.as_deref(), rows[1].variant.as_deref()), (Some("bm25.b=0.9"), Some("bm25.b=0.4")));
    let why = |at: usize| rows[at].unranked.as_ref().map(|of| of.why.as_str()).expect("says why");
    assert!(why(3).contains("made elsewhere") && why(4).contains("INVALID: a check failed"), "{rows:?}");
    assert!(why(5).contains("answered again") && why(2).contains("told where the evidence is"), "{rows:?}");
    let differs: Vec<&[String]> = tables[1..].iter().map(|table| &table.differs_in[..]).collect();
    assert_eq!(tables.len(), 3, "{tables:?}");
    for word in ["number of hits", "answerer"] {
        assert!(differs.iter().any(|differs| *differs == [word.to_owned()]), "{word}: {differs:?}");
    }
    let pair = tables[0].pairs.iter().find(|pair| pair.b == "other" && pair.a == "theirs").expect("has a page");
    assert!(!pair.ranked && pair.p_holm.is_none(), "{pair:?}");
    assert!(archive.file(&pair.page).contains("unverified: answers or grades were made elsewhere"));
}

/// A run with a rule to stop by, over a dataset of four plain questions for each one about time.
fn may_stop(run: &mut Run) {
    run.bundle.spec.dataset.population = BTreeMap::from([("single-hop".to_owned(), 160), ("temporal".to_owned(), 40)]);
    run.bundle.spec.stop = Some(StopRule { goal: StopGoal::Interval { half_width: 0.03 }, looks: vec![100, 200] });
    run.bundle.looks = Some(Looks::default());
    run.facts.iter_mut().filter(|of| of.task.index() < 4).for_each(|of| of.category = "temporal".to_owned());
}

/// The run after a look at half of its questions, among them all about time.
fn stopped(run: &mut Run) {
    may_stop(run);
    run.facts.retain(|of| of.task.index() < 10);
    let look = Look {
        asked: 100,
        banks: BANKS.into(),
        used: 100,
        estimate: Some(0.6),
        low: Some(0.57),
        high: Some(0.63),
        clustered: None,
        outcome: LookOutcome::Narrow,
        by_category: BTreeMap::from([("single-hop".to_owned(), 60), ("temporal".to_owned(), 40)]),
        by_stratum: Vec::new(),
    };
    run.bundle.looks = Some(Looks { made: vec![look], ..Looks::default() });
}

#[tokio::test]
async fn a_run_that_stopped_early_is_compared_by_the_sample_that_it_asked() {
    let archive = Archive::of([
        Run::new("whole", "bm25", |_, question| question < 4).with(may_stop).honest(),
        Run::new("early", "vector", |_, question| question >= 4).with(stopped).honest(),
    ])
    .await;
    let site = archive.pages("site").await.expect("is made");
    let pairs = &site.datasets[0].tables[0].pairs;
    assert!(site.left_out.is_empty() && pairs.len() == 1, "{:?} {pairs:?}", site.left_out);
    // four fifths of the dataset are plain questions, and three fifths of what both were asked
    let found = pairs[0].difference.expect("has one").abs();
    assert!((found - 0.6).abs() < 1e-9, "{found}");
}

#[tokio::test]
async fn what_does_not_fit_together_is_left_out_and_named_and_nothing_of_it_is_markup() {
    let nasty = "\"><img src=x onerror=alert(1)>";
    let archive = Archive::of([
        Run::new("honest", nasty, passing(9))
            .with(|run| {
                run.bundle.spec.dataset.name = "Strange@1".to_owned();
                run.bundle.spec.sample.preset = nasty.to_owned();
                run.bundle.spec.answerer.name = nasty.to_owned();
                run.summary.run.name = Some(nasty.to_owned());
            })
            .honest(),
        Run::new("other", "bm25", passing(9)).honest(),
        Run::new("forged", "bm25", passing(9)).at(NEWER).honest().with(|run| run.facts[0].scores[0].1 = 0.25),
        Run::new("beyond", "bm25", passing(9)).at(NEWER).with(|run| run.facts[0].scores[0].1 = 7.0).honest(),
        Run::new("above", "bm25", passing(9)).at(NEWER).with(|run| run.summary.headline.value = Some(1.7)).honest(),
        Run::new("changed", "bm25", passing(9)).honest().with(|run| run.summary.run.fingerprint = "f".repeat(64)),
        Run::new("long", "bm25", passing(9)).with(|run| run.bundle.spec.dataset.name = "x".repeat(150)).honest(),
        Run::new("bomb", "bm25", passing(9))
            .with(|run| {
                let list = serde_json::Value::from(vec![0; 200_000]);
                run.bundle.spec.dataset.settings.insert("list".to_owned(), list);
            })
            .honest(),
    ])
    .await;
    let site = archive.pages("site").await.expect("is made");
    let left_out = |id: &str, why: &str| {
        let line = site.left_out.iter().find(|line| line.starts_with(&format!("run {id} is left out")));
        assert!(line.is_some_and(|line| line.contains(why)), "{id}: {:?}", site.left_out);
    };
    left_out("changed", "different runs, datasets or fingerprints");
    left_out("long", "more than 80 bytes");
    left_out("bomb", "values, at most 200000 are read");
    left_out("forged", "its digest is not that of its results.jsonl");
    left_out("beyond", "a score of it is beyond 0 and 1");
    left_out("above", "its score or its interval is beyond 0 and 1");
    // damaged ones hide no sound one that stands in their place
    let shown: Vec<&str> = site
        .datasets
        .iter()
        .flat_map(|of| &of.tables)
        .flat_map(|table| &table.rows)
        .map(|row| row.run.as_str())
        .collect();
    assert_eq!((site.left_out.len(), shown), (6, vec!["honest", "other"]), "{:?}", site.left_out);
    for (name, content) in files(&archive.folder.path().join("site")) {
        let is_page = name.ends_with(".html");
        assert!(!is_page || !String::from_utf8_lossy(&content).contains("<img"), "markup in {name}");
    }
    assert!(archive.file("index.html").contains("&lt;img"));
}

#[tokio::test]
async fn a_table_that_is_counted_as_others_do_has_their_figure_beside_our_score() {
    let counted = |run: &mut Run| {
        let counting = CountingSpec { name: "theirs".to_owned(), version: 1, ..CountingSpec::default() };
        run.bundle.spec.counting = Some(counting.clone());
        run.summary.counting = Some(CountingSummary {
            counting,
            value: Some(0.875),
            sd: None,
            runs: 1,
            n: 200,
            failed: 0,
            left_out: 0,
            by_category: Vec::new(),
        });
    };
    let archive = Archive::of([Run::new("counted", "bm25", passing(10)).with(counted).honest()]).await;
    let site = archive.pages("site").await.expect("is made");
    let table = &site.datasets[0].tables[0];
    assert_eq!(table.counted_as.as_deref(), Some("theirs"));
    assert_eq!((table.rows[0].score, table.rows[0].counted_value), (Some(0.5), Some(0.875)));
    let page = archive.file(&site.datasets[0].page);
    assert!(page.contains("As theirs") && page.contains("87.50 %") && page.contains("by our own rules"), "{page}");
}

#[tokio::test]
async fn nothing_that_may_quote_a_text_stands_on_a_page() {
    const SECRET: &str = "the ferry to Kinsale leaves at nine";
    let quoting = |run: &mut Run| {
        run.bundle.spec.dataset.notes = vec![SECRET.to_owned()];
        run.summary.warnings = vec![format!("a process was started again{ENDED_WITH}KeyError: {SECRET}")];
        if let Some(probe) = &mut run.summary.latency_probe {
            probe.failure = Some(format!("timeout: {SECRET}"));
        }
    };
    let archive = Archive::of([
        Run::new("one", "bm25", passing(10)).with(quoting).honest(),
        Run::new("other", "vector", passing(9)).with(quoting).honest(),
    ])
    .await;
    let site = archive.pages("site").await.expect("is made");
    assert_eq!(site.datasets[0].tables[0].rows.len(), 2);
    for (name, content) in files(&archive.folder.path().join("site")) {
        assert!(!String::from_utf8_lossy(&content).contains("Kinsale"), "{name}");
    }
}

#[tokio::test]
async fn of_a_run_that_the_index_has_twice_neither_is_shown() {
    let archive =
        Archive::of([Run::new("twice", "bm25", passing(9)).honest(), Run::new("other", "vector", passing(9)).honest()])
            .await;
    let listed = list(&archive.place).await.expect("is listed").entries;
    let first = listed.into_iter().find(|entry| entry.run_id == "twice").expect("is there");
    let second = IndexEntry { finished_at: Some(NEWER.to_owned()), ..first };
    let bytes = serde_json::to_vec(&second).expect("JSON");
    archive.place.create(&second.object(), bytes.into()).await.expect("is written");
    let site = archive.pages("site").await.expect("is made");
    let shown: Vec<&str> = site.datasets[0].tables[0].rows.iter().map(|row| row.run.as_str()).collect();
    assert_eq!((shown, site.left_out.len()), (vec!["other"], 1), "{:?}", site.left_out);
    let why = "run twice is left out: the archive has several runs of the id 'twice' (index/";
    assert!(site.left_out[0].starts_with(why), "{:?}", site.left_out);
}

#[tokio::test]
async fn an_archive_of_nothing_that_can_be_shown_makes_no_folder() {
    let refused = |archive: &Archive, outcome: Result<Site, CliError>| {
        assert!(!archive.folder.path().join("site").exists());
        let error = outcome.expect_err("is refused");
        (error.exit, error.message)
    };
    let archive = Archive::of([]).await;
    let (exit, why) = refused(&archive, archive.pages("site").await);
    assert!(exit == Exit::Usage && why.contains("holds no run") && why.contains("archive push"), "{why}");
    let forged = Run::new("forged", "bm25", passing(9)).honest().with(|run| run.facts[0].scores[0].1 = 0.25);
    let archive = Archive::of([forged]).await;
    let (exit, why) = refused(&archive, archive.pages("site").await);
    assert!(exit == Exit::Invalid && why.contains("its digest is not that of its results.jsonl"), "{why}");
}
