//! Why a system may not run here, and the lines that would allow it.

use std::fmt;

use super::SystemHash;

/// Something that a system does and nobody has allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// A command line that is run.
    Command(String),
    /// A container image.
    Image(String),
    /// A variable that is read.
    Variable(String),
    /// A file that is read.
    File(String),
    /// A folder in which a built-in system would keep what it stores.
    Folder(String),
    /// A host and port that is neither public nor asked by TLS; one that variables name, as it is written.
    Host(String),
    /// A secret and where it goes, `NAME@host:port`.
    Secret(String),
    /// Something that only the adapter as a whole can be allowed to do.
    Whole(String),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(line) => write!(f, "runs {line}"),
            Self::Image(image) => write!(f, "starts the container {image}"),
            Self::Variable(name) => write!(f, "reads the variable {name}"),
            Self::File(path) => write!(f, "reads the file {path}"),
            Self::Folder(path) => write!(f, "keeps its banks in {path}"),
            Self::Host(host) => write!(f, "asks {host}"),
            Self::Secret(pair) => {
                let (secret, host) = pair.rsplit_once('@').unwrap_or((pair, ""));
                write!(f, "sends the secret {secret} to {host}")
            }
            Self::Whole(what) => f.write_str(what),
        }
    }
}

/// Why a system may not run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the memory system.
    pub system: String,
    /// Its hash; absent when its adapter cannot be read.
    pub hash: Option<SystemHash>,
    /// What it does that is not allowed.
    pub lacks: Vec<Lack>,
    /// Its hash is listed already.
    known: bool,
    /// It was pointed elsewhere than its file says: the hash does not cover that.
    moved: bool,
}

impl Refusal {
    pub(super) fn new(system: &str, hash: SystemHash, known: bool, moved: bool, lacks: Vec<Lack>) -> Self {
        Self { system: system.to_owned(), hash: Some(hash), lacks, known, moved }
    }

    /// Of a rehearsal: a folder is allowed by itself, all else by the hash of its settings.
    pub(super) fn of_rehearsal(system: &str, hash: SystemHash, lacks: Vec<Lack>) -> Self {
        let known = lacks.iter().all(|lack| matches!(lack, Lack::Folder(_)));
        Self::new(system, hash, known, false, lacks)
    }

    pub(super) fn unreadable(why: String) -> Self {
        let lacks = vec![Lack::Whole(format!("cannot be read: {why}"))];
        Self { system: "of the run".to_owned(), hash: None, lacks, known: false, moved: false }
    }

    /// Of an adapter as a whole: [`Refusal::lines`] are those that allow it.
    #[must_use]
    pub fn of_all(system: &str, hash: SystemHash) -> Self {
        Self::new(system, hash, false, false, Vec::new())
    }

    /// What it does that is not allowed, without how to allow it.
    #[must_use]
    pub fn reason(&self) -> String {
        let does: Vec<String> = self.lacks.iter().map(ToString::to_string).collect();
        format!("memory system {} is not allowed here: it {}", self.system, does.join(", "))
    }

    /// Settings of section `[allow]` that would allow it, with what to add to each.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, Vec<String>)> {
        // a server that a variable names is shown by that name, and is no value of a setting
        let of = |pick: fn(&Lack) -> Option<&String>| {
            let values = self.lacks.iter().filter_map(pick).filter(|value| !value.contains("${"));
            values.cloned().collect::<Vec<_>>()
        };
        let hash = self.hash.filter(|_| !self.known).map(SystemHash::hex);
        let mut settings = vec![("systems", hash.into_iter().collect::<Vec<_>>())];
        if self.moved {
            settings.push(("variables", of(|lack| if let Lack::Variable(name) = lack { Some(name) } else { None })));
            settings.push(("hosts", of(|lack| if let Lack::Host(host) = lack { Some(host) } else { None })));
            settings.push(("secrets", of(|lack| if let Lack::Secret(pair) = lack { Some(pair) } else { None })));
        }
        settings.push(("files", of(|lack| if let Lack::Folder(path) = lack { Some(path) } else { None })));
        settings.retain(|(_, values)| !values.is_empty());
        settings
    }

    /// The lines that would allow it: of settings, of the chart, of the environment.
    #[must_use]
    pub fn lines(&self) -> String {
        let settings = self.settings();
        let listed = |values: &[String]| values.iter().map(|v| format!("\"{v}\"")).collect::<Vec<_>>().join(", ");
        let each = |write: &dyn Fn(&str, &[String]) -> String, between: &str| {
            settings.iter().map(|(name, values)| write(name, values)).collect::<Vec<_>>().join(between)
        };
        let file = each(&|name, values| format!("{name} = [{}]", listed(values)), "\n               ");
        let chart = each(&|name, values| format!("{name}: [{}]", listed(values)), ", ");
        let env = each(&|name, values| format!("BENCH_ALLOW_{}={}", name.to_uppercase(), values.join(",")), " ");
        format!(
            "  settings     [allow]\n               {file}\n  chart        worker: {{allow: {{{chart}}}}}\n  environment  {env}"
        )
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())?;
        let allow: Vec<String> =
            self.settings().iter().map(|(name, values)| format!("allow.{name}={}", values.join(","))).collect();
        if allow.is_empty() { Ok(()) } else { write!(f, "; what would allow it: {}", allow.join(" and ")) }
    }
}
