//! What the store has noted of an archive: which of its runs are there, which are in the document of their matrix, and
//! what is to be brought. The notes are events of runs, each with the place that it is about.
//!
//! A matrix is noted run by run: one that has grown is found again by the runs that no document is noted of, and so is
//! one whose writer was cut between the document and its notes. A document that is brought again is there already.

use bench_proto::ids::RunNo;
use bench_report::archive::ArchivePlace;
use bench_store::{Lacking, RunFilter, RunRow, RunState, Runs, Store, StoreError};

use crate::{
    exit::CliError,
    standing::{RESTORED, group::RunsOfGroup},
};

/// Kind of the run event that says where a run is archived.
pub(crate) const ARCHIVED: &str = "archived";
/// Kind of the run event that says where a document of the run's matrix is archived that has this run.
pub(crate) const ARCHIVED_MATRIX: &str = "archived_matrix";

/// How far a matrix is in an archive.
#[derive(Debug)]
pub(crate) struct MatrixNotes {
    /// Its runs that have not ended or are not there: its document waits for them.
    pub(crate) waits_for: Vec<RunRow>,
    /// Its runs that no document there is noted of.
    pub(crate) in_no_document: Vec<RunNo>,
}

impl MatrixNotes {
    /// Reads what is noted.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn read(store: &dyn Runs, place: &ArchivePlace, group: &RunsOfGroup) -> Result<Self, StoreError> {
        let mut notes = Self { waits_for: Vec::new(), in_no_document: Vec::new() };
        for run in &group.runs {
            let events = store.events(run.run_no).await?;
            let is_noted =
                |kind: &str| events.iter().any(|event| event.kind == kind && event.message == place.describe());
            if run.state != RunState::Finished || !is_noted(ARCHIVED) {
                notes.waits_for.push(run.clone());
            }
            if !is_noted(ARCHIVED_MATRIX) {
                notes.in_no_document.push(run.run_no);
            }
        }
        Ok(notes)
    }
}

/// What is to be brought into an archive.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// Runs, oldest first.
    pub(crate) runs: Vec<RunRow>,
    /// Matrices whose document follows once their runs are there.
    pub(crate) matrices: Vec<RunsOfGroup>,
}

impl Due {
    /// Runs that were asked for, and the matrices that they belong to.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn asked(store: &dyn Store, runs: Vec<RunRow>) -> Result<Self, CliError> {
        let matrices = matrices_of(store, &runs).await?;
        Ok(Self { runs, matrices })
    }

    /// Finished runs of this store that are not in this archive, and matrices that have ended and are in no document
    /// there; controls and restored runs are left out.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn missing(store: &dyn Store, place: &ArchivePlace) -> Result<Self, CliError> {
        // asked of the store: however many runs there are, only those come that something is to be done with
        let lacking = |kind: &str| Lacking {
            kind: kind.to_owned(),
            message: place.describe().to_owned(),
            or_kind: RESTORED.to_owned(),
        };
        let of = |kind: &str, cells: bool| RunFilter { lacks: Some(lacking(kind)), cells, ..RunFilter::default() };
        let runs = store.list_runs(&of(ARCHIVED, false)).await?;
        let cells = store.list_runs(&of(ARCHIVED_MATRIX, true)).await?;
        let mut matrices = matrices_of(store, &cells).await?;
        matrices.retain(|group| group.runs.iter().all(|run| run.state == RunState::Finished));
        let mut due = Self { runs, matrices };
        due.runs.sort_by_key(|run| run.run_no);
        Ok(due)
    }
}

/// The matrices that some runs belong to, each once.
async fn matrices_of(store: &dyn Store, runs: &[RunRow]) -> Result<Vec<RunsOfGroup>, CliError> {
    let mut groups: Vec<RunsOfGroup> = Vec::new();
    for run in runs.iter().filter(|run| run.cell().is_some()) {
        let is_known = |group: &RunsOfGroup| group.runs.iter().any(|of| of.run_no == run.run_no);
        if groups.iter().any(is_known) {
            continue;
        }
        groups.extend(RunsOfGroup::around(store, Some(run.clone())).await?);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bench_proto::ids::RunId;
    use bench_store::{
        NewGroup, NewRun,
        conformance::{new_run, store_in},
    };

    use super::*;

    /// A store with a matrix of two cells that have ended, and two archives.
    struct Scene {
        store: Arc<dyn Store>,
        here: ArchivePlace,
        elsewhere: ArchivePlace,
        _folder: tempfile::TempDir,
    }

    impl Scene {
        async fn set() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let place = |name: &str| ArchivePlace::folder(&folder.path().join(name)).expect("can be made");
            let scene = Self {
                store: store_in(folder.path()).await,
                here: place("here"),
                elsewhere: place("elsewhere"),
                _folder: folder,
            };
            for cell in 1..=2 {
                let run = scene.begin(cell).await;
                scene.end(run).await;
            }
            scene
        }

        /// A run of a cell of the matrix `m`.
        async fn begin(&self, cell: u32) -> RunNo {
            let group = Some(NewGroup { id: "m".to_owned(), cap: None });
            let run = NewRun { group, ..new_run(&format!("m-c{cell}-r1")) };
            self.store.create_run(&run).await.expect("is created")
        }

        async fn end(&self, run: RunNo) {
            let ended = self.store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await;
            assert!(ended.expect("is set"));
        }

        async fn note(&self, cell: u32, kind: &str) {
            let id = RunId(format!("m-c{cell}-r1"));
            let run = self.store.run_by_id(&id).await.expect("is read").expect("is there");
            self.store.add_event(run.run_no, kind, self.here.describe()).await.expect("is noted");
        }

        /// Ids of the runs and matrices that are missing in an archive.
        async fn missing(&self, place: &ArchivePlace) -> (Vec<String>, Vec<String>) {
            let due = Due::missing(self.store.as_ref(), place).await.expect("is read");
            let runs = due.runs.iter().map(|run| run.run_id.to_string()).collect();
            (runs, due.matrices.iter().map(|group| group.id.to_string()).collect())
        }

        /// How many runs the document waits for, and how many are in none.
        async fn notes(&self) -> (usize, usize) {
            let group = RunsOfGroup::of_id(self.store.as_ref(), &RunId("m".to_owned())).await.expect("is read");
            let notes = MatrixNotes::read(self.store.as_ref(), &self.here, &group.expect("is there")).await;
            let notes = notes.expect("is read");
            (notes.waits_for.len(), notes.in_no_document.len())
        }
    }

    fn ids<const N: usize>(ids: [&str; N]) -> Vec<String> {
        ids.map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn a_run_is_missing_however_many_there_are_that_are_newer() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let place = ArchivePlace::folder(&folder.path().join("here")).expect("can be made");
        let ended = async |id: &str, kind: &str| {
            let run = store.create_run(&new_run(id)).await.expect("is created");
            let set = store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await;
            assert!(set.expect("is set"));
            store.add_event(run, kind, place.describe()).await.expect("is noted");
        };
        ended("oldest", "noted").await;
        ended("restored", RESTORED).await;
        for newer in 0..201 {
            ended(&format!("newer-{newer}"), ARCHIVED).await;
        }
        let _ = store.create_run(&new_run("open")).await.expect("is created");
        let due = Due::missing(store.as_ref(), &place).await.expect("is read");
        let found: Vec<String> = due.runs.iter().map(|run| run.run_id.to_string()).collect();
        assert_eq!((found, due.matrices.len()), (ids(["oldest"]), 0));
    }

    #[tokio::test]
    async fn a_matrix_is_found_again_until_its_document_is_noted_of_every_run() {
        let scene = Scene::set().await;
        let both = ids(["m-c1-r1", "m-c2-r1"]);
        assert_eq!(scene.missing(&scene.here).await, (both.clone(), ids(["m"])));
        for cell in [1, 2] {
            scene.note(cell, ARCHIVED).await;
        }
        // whoever archived the runs was gone before it wrote the document
        assert_eq!(scene.missing(&scene.here).await, (vec![], ids(["m"])));
        scene.note(1, ARCHIVED_MATRIX).await;
        assert_eq!(scene.missing(&scene.here).await, (vec![], ids(["m"])), "it was cut among the notes");
        scene.note(2, ARCHIVED_MATRIX).await;
        assert_eq!(scene.missing(&scene.here).await, (vec![], vec![]));
        assert_eq!(scene.missing(&scene.elsewhere).await, (both, ids(["m"])), "that is another archive");
    }

    #[tokio::test]
    async fn a_matrix_that_grows_is_found_when_all_of_it_has_ended() {
        let scene = Scene::set().await;
        for (cell, kind) in [(1, ARCHIVED), (2, ARCHIVED), (1, ARCHIVED_MATRIX), (2, ARCHIVED_MATRIX)] {
            scene.note(cell, kind).await;
        }
        let further = scene.begin(3).await;
        assert_eq!(scene.missing(&scene.here).await, (vec![], vec![]), "it has not ended");
        scene.end(further).await;
        assert_eq!(scene.missing(&scene.here).await, (ids(["m-c3-r1"]), ids(["m"])));
    }

    #[tokio::test]
    async fn a_document_waits_until_every_run_is_there() {
        let scene = Scene::set().await;
        assert_eq!(scene.notes().await, (2, 2));
        scene.note(1, ARCHIVED).await;
        assert_eq!(scene.notes().await, (1, 2));
        scene.note(2, ARCHIVED).await;
        assert_eq!(scene.notes().await, (0, 2));
        scene.note(1, ARCHIVED_MATRIX).await;
        assert_eq!(scene.notes().await, (0, 1));
        let _ = scene.begin(3).await;
        scene.note(3, ARCHIVED).await;
        assert_eq!(scene.notes().await, (1, 2), "it may go on, whatever is noted of it");
    }
}
