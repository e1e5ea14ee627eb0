//! Embedding models in folders of this machine: loaded once per process, computed on its processors, nothing is downloaded.
//! What computes them is behind the feature `local-embeddings`.

#[cfg(feature = "local-embeddings")]
mod bert;
#[cfg(any(test, feature = "local-embeddings"))]
mod kept;
#[cfg(all(test, feature = "local-embeddings"))]
mod tests;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::embed::Embed;

/// The local models of a process, by folder. Clones share them.
#[derive(Clone, Default)]
pub struct LocalModels(Arc<Mutex<HashMap<PathBuf, LocalModel>>>);

/// A loaded model.
#[derive(Clone)]
pub(crate) struct LocalModel {
    /// Computes embeddings.
    pub(crate) embed: Arc<dyn Embed>,
    /// Beginning of a hash over all files that can change an embedding: part of the run's fingerprint, which the folder is not.
    pub(crate) hash: String,
}

impl LocalModels {
    /// The model of a folder, loaded at its first use.
    ///
    /// # Errors
    /// Which file is missing or not understood; that this build cannot load any.
    pub(crate) fn open(&self, folder: &str) -> Result<LocalModel, String> {
        if folder.is_empty() {
            return Err("vector.folder is missing: where are the files of the local model?".to_owned());
        }
        let folder = Path::new(folder);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(folder) {
            return Ok(model.clone());
        }
        let model = load(folder)?;
        known.insert(folder.to_owned(), model.clone());
        Ok(model)
    }
}

#[cfg(feature = "local-embeddings")]
use bert::load;

#[cfg(not(feature = "local-embeddings"))]
fn load(_folder: &Path) -> Result<LocalModel, String> {
    Err("this build has no local models: build it with `--features local-embeddings`, or let vector.model name a model of an OpenAI-compatible server".to_owned())
}

#[cfg(all(test, not(feature = "local-embeddings")))]
#[test]
fn a_build_without_local_models_says_so() {
    let Err(reason) = LocalModels::default().open("/models/minilm") else { panic!("cannot be") };
    assert!(reason.contains("--features local-embeddings"), "{reason}");
}
