//! A matrix file to its cells: every combination of the axes' values, less what is excluded, and what is included besides. Pure.
//!
//! An axis is a flag of `submit` with several values, so that whatever a run can be told, a matrix can vary. Each cell is the flags
//! of one `submit`.
//!
//! | module | question |
//! |---|---|
//! | this one | which cells has the file? |
//! | [`lines`] | which line of it does a message mean? |

mod lines;

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{reason::Reason, redact, weight};
use serde::Deserialize;

use crate::{cli::MOST_REPEATS, exit::CliError, standing::naming::check_name};

/// What a matrix file may become when its aliases are written out, in bytes.
const MOST_WEIGHT: usize = 16 << 20;

/// Most cells of a matrix.
const MOST_CELLS: usize = 500;
/// Flags that are no property of a cell: of the whole matrix, or of the command.
const NOT_OF_A_CELL: [&str; 23] = [
    "run-id",
    "name",
    "tag",
    "repeats",
    "epochs",
    "max-cost",
    "cost-limit",
    "detach",
    "dry-run",
    "yes",
    "json",
    "display",
    "output-dir",
    "floor",
    "worker-timeout",
    "fork",
    "from",
    "controls",
    "stop-when",
    "store",
    "queue",
    "config",
    "profile",
];
/// Those of them that only a run of its own can have: a matrix has none of them.
const OF_SINGLE_RUNS: [&str; 4] = ["fork", "from", "controls", "stop-when"];
/// Those of them that are keys of the file too.
const KEYS: [&str; 2] = ["name", "repeats"];
/// The axis whose values are names for several settings each.
const SETTINGS: &str = "settings";

/// What the file of `matrix` says: axes with their values, and what holds for all cells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatrixFile {
    /// Name of the group.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Flags of `submit` for all cells.
    #[serde(default)]
    flags: Vec<String>,
    /// How often each cell is run.
    #[serde(default)]
    pub(crate) repeats: Option<u32>,
    /// Which combinations there are; without it all of them, and with `baseline` an ablation.
    #[serde(default)]
    form: Option<Form>,
    /// The cell that an ablation starts from: axis → value. An axis that it does not name has its first value.
    #[serde(default)]
    baseline: BTreeMap<String, Value>,
    /// Flag of `submit`, without its dashes → values.
    axes: BTreeMap<String, Vec<Value>>,
    /// Combinations that are left out: those that have all of these values, of a list any one.
    #[serde(default)]
    exclude: Vec<BTreeMap<String, Excluded>>,
    /// Combinations besides; an axis that one does not name has its first value.
    #[serde(default)]
    include: Vec<BTreeMap<String, Value>>,
    /// Values of the axis `settings`: a name → `key=value`, as `--set` takes them.
    #[serde(default)]
    settings: BTreeMap<String, Vec<String>>,
}

/// Which combinations there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// Each value of an axis with each of all others.
    Grid,
    /// The baseline, and each other value of an axis with the baseline's values of all other axes.
    Ablation,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a value is one text, one number, true or false")]
enum Value {
    Flag(bool),
    Whole(i64),
    Real(f64),
    Text(String),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Whole(whole) => whole.to_string(),
            Self::Real(real) => real.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// What an exclusion says of an axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "an exclusion says of an axis one value, or a list of values: a text, a number, true or false"
)]
enum Excluded {
    One(Value),
    AnyOf(Vec<Value>),
}

impl Excluded {
    fn values(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::AnyOf(values) => values,
        }
    }

    fn text(&self) -> String {
        self.values().iter().map(Value::text).collect::<Vec<_>>().join(" or ")
    }
}

/// A cell: one value of each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Counted from 1, in the order of the file.
    pub(crate) number: u32,
    /// Axis → value.
    pub(crate) values: BTreeMap<String, String>,
    /// The flags of its `submit`.
    pub(crate) flags: Vec<String>,
}

impl Cell {
    /// `cell 3 (system = bm25, top-k = 5)`.
    pub(crate) fn label(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        format!("cell {} ({})", self.number, values.join(", "))
    }
}

/// A matrix file with its text, for errors that name a line.
pub(crate) struct Matrix {
    path: String,
    text: String,
    pub(crate) file: MatrixFile,
    pub(crate) cells: Vec<Cell>,
}

impl Matrix {
    /// Reads a file by its ending, TOML or YAML, and makes its cells.
    ///
    /// # Errors
    /// Exit 2 with the file, the line and what is wrong there.
    pub(crate) fn read(path: &str, text: String) -> Result<Self, CliError> {
        let yaml = path.ends_with(".yaml") || path.ends_with(".yml");
        let file: MatrixFile = match yaml {
            true => weight::check_nesting(text.as_bytes())
                .and_then(|()| weight::check(serde_norway::Deserializer::from_str(&text), MOST_WEIGHT))
                .and_then(|()| serde_norway::from_str(&text))
                .map_err(|e| error_at(path, e.location().map(|l| l.line()), &e.to_string()).because(e))?,
            false => toml::from_str(&text).map_err(|e| {
                let line = e.span().map(|span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
                // without the lines of the file that the parser shows: they may hold a secret
                error_at(path, line, e.message()).because(Reason::from(e.message()))
            })?,
        };
        let mut matrix = Self { path: path.to_owned(), text, file, cells: Vec::new() };
        matrix.check()?;
        // as `--name` is taken
        matrix.file.name = matrix.file.name.map(|name| name.trim().to_owned());
        matrix.cells = matrix.expand()?;
        Ok(matrix)
    }

    /// A grid of axes that stand in no file; `name` is what has them.
    ///
    /// # Errors
    /// Exit 2 with what is wrong.
    pub(crate) fn of_axes(name: &str, axes: Vec<(String, Vec<String>)>) -> Result<Self, CliError> {
        let values = |values: Vec<String>| values.into_iter().map(Value::Text).collect();
        let file = MatrixFile {
            name: None,
            flags: Vec::new(),
            repeats: None,
            form: Some(Form::Grid),
            baseline: BTreeMap::new(),
            axes: axes.into_iter().map(|(axis, of)| (axis, values(of))).collect(),
            exclude: Vec::new(),
            include: Vec::new(),
            settings: BTreeMap::new(),
        };
        let mut matrix = Self { path: name.to_owned(), text: String::new(), file, cells: Vec::new() };
        matrix.check()?;
        matrix.cells = matrix.expand()?;
        Ok(matrix)
    }

    /// An error of a cell, with the line of what it is about where that can be told: a setting, a flag or a value of an axis.
    pub(crate) fn of_cell(&self, cell: &Cell, error: CliError) -> CliError {
        let line = self.line_about(cell, &error.message).or_else(|| self.line_of("axes"));
        // planning redacts what it says itself, and gives advice such as `use https://`, which would be hidden here
        let message = format!("{}: {}: {}", place(&self.path, line), redact::words(&cell.label()), error.message);
        error.saying(message)
    }

    fn error(&self, about: &str, why: &str) -> CliError {
        error_at(&self.path, self.line_of(about), why)
    }

    fn error_of(&self, (axis, value): (&str, &str), why: &str) -> CliError {
        error_at(&self.path, self.line_of_value(axis, value).or_else(|| self.line_of(value)), why)
    }

    /// Refuses what makes no cells.
    fn check(&self) -> Result<(), CliError> {
        let MatrixFile { name, axes, baseline, repeats, flags, form, .. } = &self.file;
        if let Some(why) = name.as_deref().and_then(|name| check_name(name).err()) {
            return Err(self.error("name", &format!("name: {why}")));
        }
        if axes.is_empty() {
            return Err(self.error("axes", "a matrix needs an axis, such as system = [\"bm25\", \"none\"]"));
        }
        if repeats.is_some_and(|n| n == 0 || i64::from(n) > MOST_REPEATS) {
            return Err(self.error("repeats", &format!("repeats: 1 to {MOST_REPEATS}")));
        }
        if *form == Some(Form::Grid) && !baseline.is_empty() {
            return Err(self.error("form", "a grid has no baseline: leave one of the two out"));
        }
        if let Some((flag, name)) = flags.iter().find_map(|flag| of_all(flag).map(|name| (flag, name))) {
            return Err(self.error(flag, &format!("{flag} is no flag of a cell: {}", instead_of(name))));
        }
        axes.iter().try_for_each(|(axis, values)| self.check_axis(axis, values))?;
        self.check_named()
    }

    /// Refuses an axis that no cell can have, and values that are not there or are there twice.
    fn check_axis(&self, axis: &str, values: &[Value]) -> Result<(), CliError> {
        if OF_SINGLE_RUNS.contains(&axis) {
            return Err(self.error(axis, &format!("{axis} is no axis: {}", instead_of(axis))));
        }
        if NOT_OF_A_CELL.contains(&axis) {
            return Err(self.error(axis, &format!("{axis} is no axis: it is of the whole matrix, not of a cell")));
        }
        if values.is_empty() {
            return Err(self.error(axis, &format!("axis {axis} has no value")));
        }
        let mut seen = BTreeSet::new();
        for value in values.iter().chain(self.file.baseline.get(axis).filter(|value| !values.contains(value))) {
            let text = value.text();
            if axis == SETTINGS && !self.file.settings.contains_key(&text) {
                return Err(self.error_of((axis, &text), &format!("settings '{text}' are not among [settings]")));
            }
            if !seen.insert(text.clone()) {
                return Err(self.error_of((axis, &text), &format!("axis {axis} has the value {text} twice")));
            }
        }
        Ok(())
    }

    /// Refuses a baseline, exclusions and inclusions of axes that are not there, and exclusions of values that are not there.
    fn check_named(&self) -> Result<(), CliError> {
        let MatrixFile { axes, baseline, exclude, include, settings, .. } = &self.file;
        let excluded: Vec<(&String, &Value)> = exclude
            .iter()
            .flatten()
            .flat_map(|(axis, of)| of.values().iter().map(move |value| (axis, value)))
            .collect();
        for (axis, value) in [baseline].into_iter().chain(include).flatten().chain(excluded.iter().copied()) {
            if !axes.contains_key(axis) {
                let (value, known) = (value.text(), axes.keys().cloned().collect::<Vec<_>>().join(", "));
                let why = format!("{axis} = {value}: there is no axis {axis}; the axes are {known}");
                return Err(self.error_of((axis, &value), &why));
            }
        }
        for (axis, value) in include.iter().flatten() {
            let text = value.text();
            if axis == SETTINGS && !settings.contains_key(&text) {
                return Err(self.error_of((axis, &text), &format!("settings '{text}' are not among [settings]")));
            }
        }
        for (axis, value) in excluded {
            let known =
                axes.get(axis).is_some_and(|values| values.contains(value)) || baseline.get(axis) == Some(value);
            if !known {
                let value = value.text();
                return Err(self.error_of((axis, &value), &format!("{axis} = {value} is a value of no axis")));
            }
        }
        Ok(())
    }

    /// The combinations: those of the axes, less what is excluded, and what is included besides.
    fn expand<'a>(&'a self) -> Result<Vec<Cell>, CliError> {
        let MatrixFile { axes, baseline, exclude, include, form, .. } = &self.file;
        let first: Combination<'a> = axes
            .iter()
            .filter_map(|(axis, values)| Some((axis.as_str(), baseline.get(axis).or_else(|| values.first())?)))
            .collect();
        let mut all = match form {
            Some(Form::Ablation) => self.ablation(&first),
            None if !baseline.is_empty() => self.ablation(&first),
            Some(Form::Grid) | None => self.grid()?,
        };
        for named in exclude {
            let before = all.len();
            let is_of = |cell: &Combination<'_>, (axis, of): (&String, &Excluded)| {
                cell.get(axis.as_str()).is_some_and(|&own| of.values().contains(own))
            };
            all.retain(|cell| !named.iter().all(|of| is_of(cell, of)));
            if all.len() == before {
                let named: Vec<String> = named.iter().map(|(axis, of)| format!("{axis} = {}", of.text())).collect();
                let why = format!("the exclusion of {} leaves out no cell", named.join(", "));
                return Err(self.error("exclude", &why));
            }
        }
        for named in include {
            let mut cell = first.clone();
            cell.extend(named.iter().map(|(axis, value)| (axis.as_str(), value)));
            if !all.contains(&cell) {
                all.push(cell);
            }
        }
        if all.is_empty() {
            return Err(self.error("exclude", "every cell is excluded"));
        }
        if all.len() > MOST_CELLS {
            return Err(self.too_many());
        }
        Ok((1..).zip(&all).map(|(number, cell)| self.cell(number, cell)).collect())
    }

    /// Every combination; the values of the last axis change fastest.
    fn grid(&self) -> Result<Vec<Combination<'_>>, CliError> {
        let mut all = vec![Combination::new()];
        for (axis, values) in &self.file.axes {
            if all.len().saturating_mul(values.len()) > MOST_CELLS {
                return Err(self.too_many());
            }
            all = all.iter().flat_map(|cell| values.iter().map(|value| with(cell, axis, value))).collect();
        }
        Ok(all)
    }

    /// The first cell, and those that differ from it in one value.
    fn ablation<'a>(&'a self, first: &Combination<'a>) -> Vec<Combination<'a>> {
        let changes = self.file.axes.iter().flat_map(|(axis, values)| values.iter().map(move |value| (axis, value)));
        let changed = changes.map(|(axis, value)| with(first, axis, value)).filter(|cell| cell != first);
        std::iter::once(first.clone()).chain(changed).collect()
    }

    fn too_many(&self) -> CliError {
        self.error("axes", &format!("more than {MOST_CELLS} cells: take fewer values, or `exclude` some of them"))
    }

    fn cell(&self, number: u32, values: &Combination<'_>) -> Cell {
        let mut flags = self.file.flags.clone();
        for (axis, value) in values {
            match (*axis, value) {
                (SETTINGS, name) => {
                    let set = self.file.settings.get(&name.text()).into_iter().flatten();
                    flags.extend(set.flat_map(|setting| ["--set".to_owned(), setting.clone()]));
                }
                (axis, Value::Flag(true)) => flags.push(format!("--{axis}")),
                (_, Value::Flag(false)) => {}
                // one word, so that a value that begins with a dash stays a value
                (axis, value) => flags.push(format!("--{axis}={}", value.text())),
            }
        }
        let values = values.iter().map(|(axis, value)| ((*axis).to_owned(), value.text())).collect();
        Cell { number, values, flags }
    }
}

/// A file, and the line in it where that is known.
fn place(path: &str, line: Option<usize>) -> String {
    line.map_or_else(|| path.to_owned(), |line| format!("{path}:{line}"))
}

/// What is wrong at a line of a file. It repeats what stands there, and an address in that may hold a password.
fn error_at(path: &str, line: Option<usize>, why: &str) -> CliError {
    CliError::usage(format!("{}: {}", place(path, line), redact::words(why)))
}

/// Axis → value.
type Combination<'a> = BTreeMap<&'a str, &'a Value>;

/// A combination with another value of one axis.
fn with<'a>(cell: &Combination<'a>, axis: &'a str, value: &'a Value) -> Combination<'a> {
    let mut cell = cell.clone();
    cell.insert(axis, value);
    cell
}

/// The name of a flag, given with or without its value, that is no property of a cell.
fn of_all(flag: &str) -> Option<&str> {
    let rest = flag.strip_prefix("--")?;
    let name = rest.split('=').next().unwrap_or(rest);
    NOT_OF_A_CELL.contains(&name).then_some(name)
}

/// Where a flag belongs that is no property of a cell.
fn instead_of(name: &str) -> &'static str {
    if OF_SINGLE_RUNS.contains(&name) {
        "a matrix cannot have it, only a `submit` of one run can; leave it out"
    } else if KEYS.contains(&name) {
        "give it to `matrix`, or as a key of the file"
    } else {
        "give it to `matrix`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Matrix, CliError> {
        Matrix::read("m.toml", text.to_owned())
    }

    fn labels(text: &str) -> Vec<String> {
        read(text).unwrap_or_else(|e| panic!("{}", e.message)).cells.iter().map(Cell::label).collect()
    }

    #[test]
    fn a_text_that_is_named_once_does_not_stand_for_a_million() {
        let aliases = "*a, ".repeat(30_000);
        let text = format!("flags: [&a '{}']\naxes: {{system: [{aliases}bm25]}}\n", "x".repeat(1_000));
        let refused = Matrix::read("m.yaml", text).err().map(|error| error.message).unwrap_or_default();
        assert!(refused.contains("without aliases"), "{refused}");
    }

    #[test]
    fn brackets_within_brackets_hold_no_processor() {
        let refused = Matrix::read("m.yaml", format!("axes: {}", "[".repeat(1 << 20))).err();
        let refused = refused.map(|error| error.message).unwrap_or_default();
        assert!(refused.contains("write it flatter"), "{refused}");
    }

    #[test]
    fn a_grid_has_every_combination_less_exclusions_and_with_inclusions() {
        let text = r#"
            flags = ["--preset", "quick"]
            [axes]
            system = ["bm25", "none"]
            top-k = [5, 10]
            [[exclude]]
            system = "none"
            top-k = 5
            [[include]]
            system = "random"
        "#;
        assert_eq!(
            labels(text),
            [
                "cell 1 (system = bm25, top-k = 5)",
                "cell 2 (system = bm25, top-k = 10)",
                "cell 3 (system = none, top-k = 10)",
                "cell 4 (system = random, top-k = 5)"
            ]
        );
        let flags = &read(text).unwrap_or_else(|e| panic!("{}", e.message)).cells[1].flags;
        assert_eq!(*flags, ["--preset", "quick", "--system=bm25", "--top-k=10"]);
    }

    #[test]
    fn an_exclusion_takes_a_list_of_values_and_what_it_does_not_take_is_said() {
        let text = "[axes]\nsystem = ['bm25', 'none', 'random']\ntop-k = [5, 10]\n[[exclude]]\nsystem = ['bm25', 'random']\ntop-k = 5\n";
        assert_eq!(
            labels(text),
            [
                "cell 1 (system = bm25, top-k = 10)",
                "cell 2 (system = none, top-k = 5)",
                "cell 3 (system = none, top-k = 10)",
                "cell 4 (system = random, top-k = 10)"
            ]
        );
        for (wrong, said) in [
            ("[[exclude]]\nsystem = ['none', 'nobody']\n", "system = nobody is a value of no axis"),
            ("[[exclude]]\nsystem = {a = 1}\n", "one value, or a list of values"),
            ("[[include]]\nsystem = ['none']\n", "a value is one text, one number, true or false"),
        ] {
            let refused = read(&format!("[axes]\nsystem = ['bm25', 'none']\n{wrong}")).err();
            let refused = refused.map(|error| error.message).unwrap_or_default();
            assert!(refused.contains(said) && !refused.contains("untagged"), "{refused}");
        }
    }

    #[test]
    fn an_ablation_changes_one_thing_at_a_time() {
        let text = "form = 'ablation'\n[axes]\nsystem = ['bm25', 'none']\ntop-k = [5, 10, 20]\n";
        assert_eq!(
            labels(text),
            [
                "cell 1 (system = bm25, top-k = 5)",
                "cell 2 (system = none, top-k = 5)",
                "cell 3 (system = bm25, top-k = 10)",
                "cell 4 (system = bm25, top-k = 20)"
            ]
        );
    }

    #[test]
    fn an_ablation_starts_from_its_baseline() {
        let text = "[axes]\nsystem = ['none', 'random']\ntop-k = [5, 10]\n[baseline]\nsystem = 'bm25'\ntop-k = 10\n";
        assert_eq!(
            labels(text),
            [
                "cell 1 (system = bm25, top-k = 10)",
                "cell 2 (system = none, top-k = 10)",
                "cell 3 (system = random, top-k = 10)",
                "cell 4 (system = bm25, top-k = 5)"
            ]
        );
    }

    #[test]
    fn settings_have_names_and_yaml_is_read_too() {
        let text = "axes:\n  settings: [plain, soft]\n  no-canaries: [true]\nsettings:\n  plain: []\n  soft: [bm25.k1=0.9, bm25.b=0.5]\n";
        let matrix = Matrix::read("m.yaml", text.to_owned()).unwrap_or_else(|e| panic!("{}", e.message));
        let flags: Vec<String> = matrix.cells.iter().map(|cell| cell.flags.join(" ")).collect();
        assert_eq!(flags, ["--no-canaries", "--no-canaries --set bm25.k1=0.9 --set bm25.b=0.5"]);
    }

    #[test]
    fn a_mistake_in_a_cell_is_told_without_the_password_of_an_address() {
        let matrix = read("[axes]\nsystem = ['bm25', 'http://u:s3cret@mem.example/v1']\n").expect("is read");
        let error = matrix.of_cell(&matrix.cells[1], CliError::usage("no such file")).message;
        assert!(error.contains("(system = http://***@mem.example/v1): no such file"), "{error}");
        let yaml = "flags: ['--store=postgres://u:s3cret@db/x']\naxes: {system: [bm25]}\n";
        let refused = Matrix::read("m.yaml", yaml.to_owned()).err().map(|error| error.message);
        let said = "m.yaml:1: --store=postgres://u:***@db/x is no flag of a cell: give it to `matrix`";
        assert_eq!(refused.as_deref(), Some(said));
        for (text, said) in [
            ("[axes]\nsystem = ['http://u:s3cret@h', 'http://u:s3cret@h']\n", "has the value http://***@h/ twice"),
            (
                "[axes]\nsystem = ['a']\n[[exclude]]\nsystem = 'http://u:s3cret@h'\n",
                "system = http://***@h/ is a value",
            ),
            ("[axes]\nsettings = ['http://u:s3cret@h']\n", "settings 'http://***@h/' are not among"),
            ("repeats = 'http://u:s3cret@h'\n[axes]\nsystem = ['a']\n", "invalid type: string \"http://***@h/\""),
        ] {
            let refused = read(text).err().map(|error| error.message).unwrap_or_default();
            assert!(refused.contains(said) && !refused.contains("s3cret"), "{refused}");
        }
    }
}
