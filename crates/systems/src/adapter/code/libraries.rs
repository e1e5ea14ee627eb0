//! Memory libraries of Python that are systems by name: classes that come along with the runner. The library itself is that of the
//! Python that runs the class.

use super::{AdapterSpec, Language, made_of, put};
use crate::{Capabilities, adapter::process};

/// A library of Python that is measured by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// Name, as given to `--system`.
    pub name: &'static str,
    /// One line for `systems list`.
    pub description: &'static str,
    /// The packages that it was tested with, as `pip install` takes them.
    pub packages: &'static [&'static str],
    file: &'static str,
    class: &'static str,
}

/// All of them, in the order of `systems list`.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: "langgraph",
        description: "LangGraph's store in memory, searched by meaning (Python)",
        packages: &["langgraph==1.2.24", "numpy==2.4.6"],
        file: "langgraph_store.py",
        class: "LangGraphStore",
    },
    Library {
        name: "langmem",
        description: "LangMem: a model extracts memories into LangGraph's store (Python)",
        packages: &["langmem==0.0.30", "langchain-openai==1.7.4", "numpy==2.4.6"],
        file: "langmem_manager.py",
        class: "LangMem",
    },
    Library {
        name: "llama-index",
        description: "LlamaIndex's memory block over its simple vector store (Python)",
        packages: &["llama-index-core==0.14.25"],
        file: "llamaindex_memory.py",
        class: "LlamaIndexMemory",
    },
    Library {
        name: "openai-agents",
        description: "a session of the OpenAI Agents SDK: its last items (Python)",
        packages: &["openai-agents==0.24.0"],
        file: "openai_agents_session.py",
        class: "OpenAIAgentsSession",
    },
];

/// The files of [`LIBRARIES`], and what they share.
const FILES: [(&str, &str); 5] = [
    ("langgraph_store.py", include_str!("../../../../../python/systems/langgraph_store.py")),
    ("langmem_manager.py", include_str!("../../../../../python/systems/langmem_manager.py")),
    ("llamaindex_memory.py", include_str!("../../../../../python/systems/llamaindex_memory.py")),
    ("openai_agents_session.py", include_str!("../../../../../python/systems/openai_agents_session.py")),
    ("openai_server.py", include_str!("../../../../../python/systems/openai_server.py")),
];

impl Library {
    /// Its adapter: the class is imported by the Python of this machine.
    ///
    /// # Errors
    /// Packages that this Python does not have, with the line that installs them; no Python.
    pub fn read(&self) -> Result<AdapterSpec, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
        put(folder.path(), FILES).map_err(|e| format!("{}: {e}", folder.path().display()))?;
        let spec = made_of(Language::Python, folder.path(), self.file, self.class).map_err(|error| {
            let is_missing = error.contains("ModuleNotFoundError") || error.contains("PackageNotFoundError");
            match Language::Python.program() {
                Ok(python) if is_missing => format!(
                    "it is a library of Python, which {} does not have: {} -m pip install {}",
                    python.display(),
                    python.display(),
                    self.packages.join(" ")
                ),
                _ => error,
            }
        })?;
        // as it is listed, whatever a class says of itself
        Ok(AdapterSpec { description: self.description.to_owned(), ..spec })
    }

    /// What can be said of it without importing it.
    ///
    /// # Errors
    /// None that a test does not rule out.
    pub fn capabilities(&self) -> Result<Capabilities, String> {
        let spec = serde_json::json!({
            "name": self.name, "command": ["python3"], "can": {"survives_restart": false}, "limits": {"batch": 64},
        });
        process::capabilities(&serde_json::from_value(spec).map_err(|e| e.to_string())?)
    }
}

/// The library of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Library> {
    LIBRARIES.iter().find(|library| library.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_has_its_file_its_name_and_versions() {
        for library in LIBRARIES {
            let (_, text) = FILES.iter().find(|(file, _)| *file == library.file).expect("its file comes along");
            assert!(text.contains(&format!("class {}(bench_coord.System):", library.class)), "{}", library.name);
            assert!(text.contains(&format!("\n    name = \"{}\"\n", library.name)), "{}", library.name);
            assert!(library.packages.iter().all(|package| package.contains("==")), "{}", library.name);
            assert!(!library.capabilities().expect("can be told").lists);
        }
    }
}
