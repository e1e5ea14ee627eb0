//! What is around a process of a system: where it works, what it sees of the environment, and where its log goes.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
};

use bench_settings::private;
use tokio::process::{Child, Command};

use crate::adapter::{
    AdapterContext, managed,
    spec::AdapterSpec,
    variables::{Values, fill},
};

/// What is around the processes of a system in a run.
pub(in super::super) struct Surroundings {
    /// What they see besides what every system does.
    env: BTreeMap<String, String>,
    /// The run's folder for the system.
    pub(in super::super) home: PathBuf,
    /// Where they work, unless where this process does.
    folder: Option<PathBuf>,
    /// File that their stderr goes to.
    pub(in super::super) log: PathBuf,
    values: Values,
    /// The archive of filled banks that they begin with.
    filled: Option<PathBuf>,
    /// Folders that have been made for one process alone.
    folders: AtomicU64,
}

impl Surroundings {
    /// Those of a system in a run.
    ///
    /// # Errors
    /// A variable that is named and not set.
    pub(in super::super) fn new(spec: &AdapterSpec, context: &AdapterContext) -> Result<Self, String> {
        let values = Values { given: context.given.of_bank(None), ..Values::default() };
        let own = spec.env.iter().map(|(name, value)| Ok::<_, String>((name.clone(), fill(value, &values)?)));
        let mut env = context.given.usual(None);
        env.extend(own.collect::<Result<Vec<_>, _>>()?);
        let home = managed::folder_of(context, &spec.name);
        Ok(Self {
            env,
            log: managed::log_path(&home),
            folder: context.apart.then(|| home.join("data")),
            home,
            values,
            filled: context.filled.clone(),
            folders: AtomicU64::new(0),
        })
    }

    /// The words of a command, with what is filled into them.
    ///
    /// # Errors
    /// As [`Surroundings::new`].
    pub(in super::super) fn words(&self, command: &[String]) -> Result<Vec<String>, String> {
        command.iter().map(|word| fill(word, &self.values)).collect()
    }

    /// A folder for what a process stores: the same one for all of them, or one that no other has had.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(in super::super) fn folder_for(&self, alone: bool) -> io::Result<PathBuf> {
        managed::own_folder(&self.home)?;
        let mut folder = self.home.join("data");
        if alone {
            let number = self.folders.fetch_add(1, Ordering::Relaxed);
            folder = folder.join(format!("{}-{number}", std::process::id()));
        } else if let Some(archive) = &self.filled {
            managed::put_in_place(archive, &self.home, &self.home)?;
        }
        private::create_folder(&folder)?;
        Ok(folder)
    }

    /// Starts a program that leads a group of its own, with pipes to ask it over. `dir` is what stands for `{dir}` in its variables.
    ///
    /// # Errors
    /// Why its folder, its log or itself cannot be made.
    pub(in super::super) fn spawn(&self, mut command: Command, dir: Option<&Path>) -> io::Result<Child> {
        if let Some(folder) = self.log.parent() {
            managed::own_folder(folder)?;
        }
        if let Some(folder) = &self.folder {
            private::create_folder(folder)?;
        }
        let log = private::append(&self.log)?;
        match &self.folder {
            Some(folder) => drop(command.env_clear().current_dir(folder).env("HOME", folder)),
            // commands name files of the folder that they are typed in, and their programs may lie in the user's home
            None => drop(command.env_clear().envs(std::env::var_os("HOME").map(|home| ("HOME", home)))),
        }
        let env =
            self.env.iter().map(|(name, value)| (name, dir.map_or_else(|| value.clone(), |dir| in_folder(value, dir))));
        command
            .envs(managed::passed_on())
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

/// A text with the folder in the place of `{dir}`.
pub(in super::super) fn in_folder(text: &str, dir: &Path) -> String {
    text.replace("{dir}", &dir.display().to_string())
}
