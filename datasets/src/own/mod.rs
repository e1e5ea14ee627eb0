//! Datasets of users: a file that is named by its path, or that lies in the datasets folder. What form it has is told by the
//! file itself; a new form is one file here and one line in [`FORMS`].
//!
//! The coordinator reads such a file as any other dataset; workers never do. A run that is resumed finds it again by its path
//! and its checksum.

mod banks;
mod question_set;
mod suite;
#[cfg(test)]
mod tests;
mod unread;

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{BufReader, Read as _},
    path::{Path, PathBuf},
};

use bench_proto::profile::Profile;
use serde::de::{DeserializeOwned, IgnoredAny};

pub(crate) use self::banks::write;
use crate::{
    About, Dataset, DatasetError, Manifest, OpenOptions, SourceFile, broken, checksum,
    lines::{Line, Lines},
    notes::Notes,
    packed::{self, Packing},
    place::{self, Place},
    sets::{Problem, Said},
    shown_path,
};

/// A form of users' files.
struct Form {
    /// Whether a file has it, by the ending of its name and the keys of its first line, where that is an object in JSON.
    is_it: fn(ending: &str, keys: Option<&Keys>) -> bool,
    /// Reads it.
    open: fn(&OwnFile) -> Result<Box<dyn Dataset>, DatasetError>,
}

/// Keys of an object.
type Keys = BTreeMap<String, IgnoredAny>;

/// Whether a name is that of a dataset which is no file of a user's: no file may take it.
pub(crate) type IsTaken = fn(&str) -> bool;

/// All forms: one line each; the first that a file has counts.
const FORMS: &[Form] = &[
    Form { is_it: banks::is_it, open: banks::open },
    Form { is_it: question_set::is_it, open: question_set::open },
    Form { is_it: suite::is_it, open: suite::open },
];

/// Most characters of a dataset's name.
const MOST_NAME: usize = 100;

/// Endings of files that can be named without their path, in the order in which they are looked for.
const ENDINGS: &[&str] = &["jsonl", "yaml", "yml"];

/// A user's file.
#[derive(Debug, Clone)]
struct OwnFile {
    /// Where it lies, unpacked.
    path: PathBuf,
    /// The path as it was named, for errors and reports.
    shown: PathBuf,
    /// Its name without folder and ending, as names of datasets are written.
    name: String,
    bytes: u64,
    sha256: String,
    /// A second file that belongs to it.
    beside: Option<Box<OwnFile>>,
    is_taken: IsTaken,
}

/// The file that a name stands for when it is not taken: a path, or a file of that name in the datasets folder.
pub(crate) fn find(name: &str, options: &OpenOptions, is_taken: IsTaken) -> Option<PathBuf> {
    if is_taken(name) {
        return None;
    }
    // a run that is resumed has name and path
    if let Some(path) = &options.path {
        return has_ending(&path.to_string_lossy()).then(|| path.clone());
    }
    if name.contains(['/', '\\']) || has_ending(name) {
        return Some(PathBuf::from(name));
    }
    let folder = options.datasets_dir.as_deref()?;
    is_word(name).then_some(())?;
    let plain = ENDINGS.iter().map(|ending| folder.join(format!("{name}.{ending}"))).find(|path| path.is_file());
    // an ending in capitals is found where the name has none as it should be
    let is_named = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    plain.or_else(|| in_folder(options, is_taken).into_iter().find(is_named))
}

/// Whether a path ends as those of users' files do.
fn has_ending(path: &str) -> bool {
    let ending = Path::new(unpacked_name(path)).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(is_known)
}

/// Whether an ending is one of those that users' files have, in whatever letters: some programs write `MINE.JSONL`.
fn is_known(ending: &str) -> bool {
    ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

/// A name without the ending of what is packed.
fn unpacked_name(name: &str) -> &str {
    match name.len().checked_sub(".gz".len()).and_then(|at| name.split_at_checked(at)) {
        Some((plain, ending)) if ending.eq_ignore_ascii_case(".gz") => plain,
        _ => name,
    }
}

/// Files in the datasets folder that can be named without their path.
pub(crate) fn in_folder(options: &OpenOptions, is_taken: IsTaken) -> Vec<PathBuf> {
    let Some(entries) = options.datasets_dir.as_ref().and_then(|folder| folder.read_dir().ok()) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    let is_own = |path: &Path| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        path.is_file() && is_known(ending) && is_word(stem) && !stem.ends_with(".memories") && !is_taken(stem)
    };
    files.retain(|path| is_own(path));
    files.sort();
    files
}

/// Opens a user's file.
///
/// # Errors
/// A file that is not there, has no known form, or is broken: with its place.
pub(crate) fn open(path: &Path, options: &OpenOptions, is_taken: IsTaken) -> Result<Box<dyn Dataset>, DatasetError> {
    let kind = path.metadata().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => DatasetError::NotFound(format!(
            "{} does not exist; give the path of a dataset of your own, or a name that `bench-coord datasets list` shows",
            shown_path(path)
        )),
        _ => DatasetError::io(path, source),
    })?;
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let plain_name = unpacked_name(file_name);
    let (stem, ending) = plain_name.rsplit_once('.').unwrap_or((plain_name, ""));
    if !kind.is_file() {
        return Err(DatasetError::NotFound(format!(
            "{} is no file; a dataset of your own is one file ({})",
            path.display(),
            ENDINGS.join(", ")
        )));
    }
    if let Some(key) = options.settings.keys().next() {
        return Err(DatasetError::Setting(format!("{} has no setting '{key}'; remove it", path.display())));
    }
    let (unpacked, bytes, sha256) = unpacked(path, options)?;
    let shown = std::path::absolute(path).map_err(|source| DatasetError::io(path, source))?;
    let file = OwnFile { path: unpacked, shown, name: word(stem), bytes, sha256, beside: None, is_taken };
    file.check_encoding()?;
    let (keys, ending) = (file.keys()?, ending.to_ascii_lowercase());
    let form = FORMS.iter().find(|form| (form.is_it)(&ending, keys.as_ref())).ok_or_else(|| {
        let known = "a suite (YAML), a set of questions (JSON lines with question and expected_substrings or reference_answer), \
                     or banks as `bench-coord datasets generate NAME --format jsonl --output FILE` writes them";
        file.broken(("line 1".to_owned(), format!("is of no form that is known: {known}; docs/DATASETS.md shows them")))
    })?;
    (form.open)(&file)
}

/// Where a file lies unpacked, its size and its sha256.
fn unpacked(path: &Path, options: &OpenOptions) -> Result<(PathBuf, u64, String), DatasetError> {
    let at = |path: &Path| Ok(Place::File(path.to_owned()));
    let file = SourceFile::default();
    let hashed = match Packing::by_name(&path.to_string_lossy()) {
        Some(Packing::Gzip) => packed::content(path, Packing::Gzip, 0, &file, options, at)?.hashed,
        _ => place::hash(&file, &at(path)?)?,
    };
    let path = hashed.inside.into_iter().next().map_or_else(|| path.to_owned(), |file| file.path);
    Ok((path, hashed.bytes, hashed.sha256))
}

impl OwnFile {
    /// A file that lies beside another one and belongs to it.
    fn plain(path: &Path, of: &Self) -> Result<Self, DatasetError> {
        let (bytes, sha256) = checksum::of_file(path)?;
        let file = Self { path: path.to_owned(), shown: path.to_owned(), bytes, sha256, beside: None, ..of.clone() };
        file.check_encoding()?;
        Ok(file)
    }

    /// Refuses what is in UTF-16 or UTF-32, which editors write on some systems, by its first bytes: a mark, or zeros beside
    /// characters that have none in UTF-8.
    fn check_encoding(&self) -> Result<(), DatasetError> {
        let io = |source| DatasetError::io(&self.shown, source);
        let mut first = Vec::new();
        File::open(&self.path).map_err(io)?.take(4).read_to_end(&mut first).map_err(io)?;
        if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) || first.contains(&0) {
            let problem = "is in UTF-16 or UTF-32, and only UTF-8 is read; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)";
            return Err(self.broken(("file".to_owned(), problem.to_owned())));
        }
        Ok(())
    }

    /// Its lines that say something.
    fn lines(&self) -> Result<Lines<BufReader<File>>, DatasetError> {
        Ok(Lines::open(&self.path, &self.shown)?.with_remarks())
    }

    /// A line as JSON.
    fn json<T: DeserializeOwned>(&self, line: &Line) -> Result<T, DatasetError> {
        line.json(&self.shown.display().to_string())
    }

    fn broken(&self, (place, problem): Problem) -> DatasetError {
        broken::broken(&self.shown.display().to_string(), place, problem)
    }

    /// The keys of the first line that says something, where it is meant as an object; none of them where it is a broken one,
    /// which its reader tells.
    fn keys(&self) -> Result<Option<Keys>, DatasetError> {
        let Some(first) = self.lines()?.next().transpose()? else { return Ok(None) };
        let is_object = first.text.trim_start().starts_with('{');
        Ok(is_object.then(|| serde_json::from_str(&first.text).unwrap_or_default()))
    }

    /// What a manifest says of it: its content, unpacked.
    fn source(&self) -> SourceFile {
        let name = self.shown.file_name().unwrap_or_default().to_string_lossy();
        SourceFile {
            path: unpacked_name(&name).to_owned(),
            sha256s: vec![self.sha256.clone()],
            bytes: self.bytes,
            ..SourceFile::default()
        }
    }

    /// What is known of the dataset that was read from the file.
    fn about(
        &self,
        said: Said,
        loader_version: u32,
        profile: Profile,
        counted: Counted,
        notes: Notes,
    ) -> Result<About, DatasetError> {
        let name = said.name.unwrap_or_else(|| self.name.clone());
        let refused = |problem: String| self.broken(("name".to_owned(), problem));
        if !is_word(&name) {
            return Err(refused(format!(
                "'{name}' is no name: it has 1 to {MOST_NAME} of the characters a-z, 0-9, '-', '_' and '.', and begins with no '.'"
            )));
        }
        if (self.is_taken)(&name) {
            return Err(refused(format!(
                "'{name}' is the name of another dataset; rename the file, or give a name in it"
            )));
        }
        let abstention_phrases = said.abstention_phrases.unwrap_or_default();
        if abstention_phrases.iter().any(|phrase| phrase.trim().is_empty()) {
            let problem = "hold an empty one, which is in every answer; take it away".to_owned();
            return Err(self.broken(("abstention_phrases".to_owned(), problem)));
        }
        let shown = self.shown.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let all: Vec<&Self> = [self].into_iter().chain(self.beside.as_deref()).collect();
        let sha256 = match all.as_slice() {
            [one] => one.sha256.clone(),
            several => {
                let sha256s: Vec<&str> = several.iter().map(|file| file.sha256.as_str()).collect();
                checksum::of_bytes(sha256s.join("\n").as_bytes())
            }
        };
        let manifest = Manifest {
            description: said.description.unwrap_or_else(|| format!("a dataset of your own ({shown})")),
            version: said.version.unwrap_or_else(|| "1".to_owned()),
            licence: said.licence.unwrap_or_else(|| "not stated".to_owned()),
            source: said.source.unwrap_or(shown),
            files: all.iter().map(|file| file.source()).collect(),
            categories: counted.categories,
            banks: counted.banks,
            sessions: Some(counted.sessions),
            turns: Some(counted.turns),
            // answers are looked at in lower case
            abstention_phrases: abstention_phrases.iter().map(|phrase| phrase.to_lowercase()).collect(),
            scorers: said.scorers.unwrap_or_default(),
            loader_version,
            section: String::new(),
            settings: Vec::new(),
            name,
        };
        Ok(About {
            manifest,
            profile,
            sha256,
            modified: false,
            checksum_unknown: false,
            settings: BTreeMap::new(),
            notes: notes.lines(),
            path: Some(self.shown.clone()),
        })
    }
}

/// What a dataset holds.
#[derive(Debug, Default)]
struct Counted {
    categories: Vec<(String, u64)>,
    /// Where each category stands among them.
    numbers: HashMap<String, usize>,
    banks: u64,
    sessions: u64,
    turns: u64,
}

impl Counted {
    /// Adds a bank.
    fn add(&mut self, outline: &bench_proto::dataset::BankOutline) {
        self.banks += 1;
        self.sessions += u64::from(outline.sessions());
        self.turns += u64::from(outline.turns);
        for question in &outline.questions {
            let known = self.numbers.get(&question.category).and_then(|number| self.categories.get_mut(*number));
            match known {
                Some((_, count)) => *count += 1,
                None => {
                    self.numbers.insert(question.category.clone(), self.categories.len());
                    self.categories.push((question.category.clone(), 1));
                }
            }
        }
    }
}

/// Whether a text can be the name of a dataset: it stands in reports and names folders.
fn is_word(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= MOST_NAME && !name.starts_with('.') && name.bytes().all(allowed)
}

/// A text as a name.
fn word(text: &str) -> String {
    let plain = |c: char| {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.') { c } else { '-' }
    };
    let name: String = text.trim_start_matches('.').chars().take(MOST_NAME).map(plain).collect();
    if name.trim_matches('-').is_empty() { "own".to_owned() } else { name }
}
