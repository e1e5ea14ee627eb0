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
    /// What a run may choose of it: the parameters of the class, by their names.
    pub settings: &'static [LibrarySetting],
    file: &'static str,
    class: &'static str,
}

/// A setting of a library, as its class has it: it is listed without a Python that has the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibrarySetting {
    /// Its name, without the library's.
    pub name: &'static str,
    /// What it is when nothing is chosen, as JSON.
    pub default: &'static str,
    /// One line.
    pub about: &'static str,
}

impl LibrarySetting {
    const fn new(name: &'static str, default: &'static str, about: &'static str) -> Self {
        Self { name, default, about }
    }
}

const BASE_URL: LibrarySetting =
    LibrarySetting::new("base_url", "\"https://api.openai.com/v1\"", "OpenAI-compatible server of its models");
const DIMENSIONS: LibrarySetting = LibrarySetting::new("dimensions", "1536", "length of an embedding");
/// The default of all of them that embed.
const EMBEDS: &str = "\"text-embedding-3-small\"";
const MODEL: LibrarySetting = LibrarySetting::new("model", EMBEDS, "embedding model");

/// All of them, in the order of `systems list`.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: "langgraph",
        description: "LangGraph's store in memory, searched by meaning (Python)",
        packages: &["langgraph==1.2.24", "numpy==2.4.6"],
        settings: &[MODEL, DIMENSIONS, BASE_URL],
        file: "langgraph_store.py",
        class: "LangGraphStore",
    },
    Library {
        name: "langmem",
        description: "LangMem: a model extracts memories into LangGraph's store (Python)",
        packages: &["langmem==0.0.30", "langchain-openai==1.7.4", "numpy==2.4.6"],
        settings: &[
            LibrarySetting::new("model", "\"gpt-4o-mini\"", "chat model that extracts memories"),
            LibrarySetting::new("embeddings", EMBEDS, "embedding model"),
            DIMENSIONS,
            BASE_URL,
        ],
        file: "langmem_manager.py",
        class: "LangMem",
    },
    Library {
        name: "llama-index",
        description: "LlamaIndex's memory block over its simple vector store (Python)",
        packages: &["llama-index-core==0.14.25"],
        settings: &[MODEL, BASE_URL],
        file: "llamaindex_memory.py",
        class: "LlamaIndexMemory",
    },
    Library {
        name: "openai-agents",
        description: "a session of the OpenAI Agents SDK: its last items (Python)",
        packages: &["openai-agents==0.24.0"],
        settings: &[],
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
            // what the class says: each parameter with its default, and no other
            let class = text.split_once(&format!("class {}(", library.class));
            let made = class.and_then(|(_, class)| class.split("def __init__(").nth(1)?.split("):\n").next());
            let made = made.expect("is made of something");
            for LibrarySetting { name, default, .. } in library.settings {
                let says = ["str", "int"].map(|kind| format!("{name}: {kind} = {default}"));
                assert!(says.iter().any(|says| made.contains(says)), "{}.{name}: {made}", library.name);
            }
            assert_eq!(made.matches(" = ").count(), library.settings.len(), "{}: {made}", library.name);
        }
    }
}
