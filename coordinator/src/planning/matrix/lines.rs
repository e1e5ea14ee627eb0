//! Which line of a matrix file does a message mean? The file's text is searched for what the message names: the parsers keep no places.

use super::{Cell, Matrix, SETTINGS};

impl Matrix {
    /// The line that a message about a cell means. A setting's key is the surest sign, the first one before those that may have been
    /// meant; then a name with its value. A system's name alone may stand in any message.
    pub(super) fn line_about(&self, cell: &Cell, message: &str) -> Option<usize> {
        let said = |text: &str| !text.is_empty() && holds(message, text);
        let settings = self.settings_of(cell).filter(|setting| said(key_of(setting)));
        if let Some(setting) = settings.min_by_key(|setting| place_of(message, key_of(setting))) {
            return self.line_of(setting).or_else(|| self.line_of(key_of(setting)));
        }
        let flags = named_values(&self.file.flags);
        let axis = |is: &dyn Fn(&str, &str) -> bool| {
            let (axis, value) = cell.values.iter().find(|(axis, value)| is(axis, value))?;
            self.line_of_value(axis, value)
        };
        let flag = |is: &dyn Fn(&str, &str) -> bool| {
            let (name, value) = flags.iter().find(|(name, value)| is(name, value))?;
            self.line_of_flag(name, value)
        };
        axis(&|axis, value| said(axis) && said(value))
            .or_else(|| flag(&|name, value| said(name) && said(value)))
            .or_else(|| axis(&|_, value| said(value)))
            .or_else(|| flag(&|_, value| said(value)))
            .or_else(|| axis(&|axis, _| said(axis)))
            .or_else(|| flag(&|name, _| said(name)))
    }

    /// The `key=value` of a cell: those that its value of the axis `settings` stands for, then those among the flags of all cells.
    fn settings_of<'a>(&'a self, cell: &Cell) -> impl Iterator<Item = &'a str> {
        let named = cell.values.get(SETTINGS).and_then(|name| self.file.settings.get(name));
        let named = named.into_iter().flatten().map(String::as_str);
        named.chain(named_values(&self.file.flags).into_iter().filter(|(name, _)| *name == "set").map(|(_, set)| set))
    }

    /// The line of a flag's value among the flags of all cells, else that of the flag.
    fn line_of_flag(&self, name: &str, value: &str) -> Option<usize> {
        let lines = || self.text.lines().enumerate();
        let begin = self.line_of("flags")? - 1;
        let (from, _) = lines().skip(begin).find(|(_, line)| holds(line, &format!("--{name}")))?;
        let of_value = lines().skip(from).find(|(_, line)| !value.is_empty() && holds(line, value));
        Some(of_value.map_or(from, |(at, _)| at) + 1)
    }

    /// The first line that holds a text.
    pub(super) fn line_of(&self, text: &str) -> Option<usize> {
        self.text.lines().position(|line| holds(line, text)).map(|at| at + 1)
    }

    /// The line of an axis' value: the first that holds it from the axis on, else that of the axis.
    pub(super) fn line_of_value(&self, axis: &str, value: &str) -> Option<usize> {
        let from = self.line_of(axis)?;
        let mut lines = self.text.lines().enumerate().skip(from - 1);
        lines.find(|(_, line)| holds(line, value)).map(|(at, _)| at + 1).or(Some(from))
    }
}

/// Flags by their names without dashes, each with its value, which is empty where there is none.
fn named_values(flags: &[String]) -> Vec<(&str, &str)> {
    let mut named: Vec<(&str, &str)> = Vec::new();
    let mut lacks_value = false;
    for word in flags {
        if let Some(flag) = word.strip_prefix("--") {
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            lacks_value = !flag.contains('=');
            named.push((name, value));
        } else if let Some((_, value)) = named.last_mut().filter(|_| lacks_value) {
            *value = word;
            lacks_value = false;
        }
    }
    named
}

/// The key of `key=value`.
fn key_of(setting: &str) -> &str {
    setting.split('=').next().unwrap_or(setting)
}

/// Whether a text has a word, with nothing that could belong to it on either side.
fn holds(text: &str, word: &str) -> bool {
    place_of(text, word).is_some()
}

/// Where a text has a word so.
fn place_of(text: &str, word: &str) -> Option<usize> {
    let belongs = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_' || c == '.');
    let mut places = text.match_indices(word).map(|(at, _)| at);
    places.find(|&at| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        // a flag's dashes are no part of its name, and a sentence ends with a dot
        let before = before.filter(|c| *c != '-');
        !belongs(before) && !belongs(after.filter(|c| *c != '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::CliError;

    fn read(text: &str) -> Result<Matrix, CliError> {
        Matrix::read("m.toml", text.to_owned())
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, wanted) in [
            ("[axes]\nsystem = [\n", "m.toml:"),
            ("[axes]\nsystem = []\n", "m.toml:2: axis system has no value"),
            ("[axes]\nsystem = ['a', 'a']\n", "m.toml:2: axis system has the value a twice"),
            ("[axes]\n\nmax-cost = ['1']\n", "m.toml:3: max-cost is no axis"),
            ("colour = 1\n[axes]\nsystem = ['a']\n", "m.toml:1: unknown field `colour`"),
            ("[axes]\nsettings = ['x']\n", "m.toml:2: settings 'x' are not among"),
            ("flags = ['--yes']\n[axes]\nsystem = ['a']\n", "m.toml:1: --yes is no flag of a cell"),
            ("[axes]\nsystem = ['a']\n[[exclude]]\nsystem = 'b'\n", "m.toml:4: system = b is a value of no axis"),
            ("[axes]\nsystem = ['a']\n[[exclude]]\nsystem = 'a'\n", "m.toml:3: every cell is excluded"),
            ("repeats = 0\n[axes]\nsystem = ['a']\n", "m.toml:1: repeats: 1 to 1000"),
            ("name = 'a@2'\n[axes]\nsystem = ['a']\n", "m.toml:1: name: `a@2` is number 2, counted from the newest"),
            ("name = 'latest'\n[axes]\nsystem = ['a']\n", "m.toml:1: name: `latest` is the run that was created last"),
            (
                "[axes]\nsystem = ['a']\n[[include]]\nsytem = 'b'\n",
                "m.toml:4: sytem = b: there is no axis sytem; the axes are system",
            ),
            ("form = 'grid'\n[axes]\nsystem = ['a']\n[baseline]\nsystem = 'a'\n", "m.toml:1: a grid has no baseline"),
            (
                "[axes]\nsystem = ['a', 'b']\ntop-k = [5]\n[[exclude]]\nsystem = 'b'\n[[exclude]]\nsystem = 'b'\n",
                "m.toml:4: the exclusion of system = b leaves out no cell",
            ),
            (
                "flags = ['--stop-when', 'ci<=8pt']\n[axes]\nsystem = ['a']\n",
                "m.toml:1: --stop-when is no flag of a cell: a matrix cannot have it",
            ),
            (
                "flags = ['--repeats=2']\n[axes]\nsystem = ['a']\n",
                "m.toml:1: --repeats=2 is no flag of a cell: give it to `matrix`, or as a key of the file",
            ),
            ("[axes]\nstop-when = ['ci<=8pt']\n", "m.toml:2: stop-when is no axis: a matrix cannot have it"),
            ("flags = ['--max-cost=3']\n[axes]\nsystem = ['a']\n", "m.toml:1: --max-cost=3 is no flag of a cell"),
            (
                "flags = ['--floor', '0.5']\n[axes]\nsystem = ['a']\n",
                "m.toml:1: --floor is no flag of a cell: give it to `matrix`",
            ),
            (
                "flags = ['--worker-timeout=9']\n[axes]\nsystem = ['a']\n",
                "m.toml:1: --worker-timeout=9 is no flag of a cell: give it to `matrix`",
            ),
            ("[axes]\nfloor = [0.5, 0.6]\n", "m.toml:2: floor is no axis: it is of the whole matrix"),
            (
                "[axes]\nseed = [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24]\ntop-k = [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24]\n",
                "m.toml:1: more than 500 cells",
            ),
            ("axes = {}\n", "m.toml:1: a matrix needs an axis"),
        ] {
            let Err(error) = read(text) else { panic!("{text} is read") };
            assert!(error.message.starts_with(wanted), "{}", error.message);
        }
        let matrix = read("[axes]\ntop-k = [5]\nsystem = ['a', 'bem25']\n").unwrap_or_else(|e| panic!("{}", e.message));
        let error = matrix.of_cell(&matrix.cells[1], CliError::usage("unknown memory system 'bem25'"));
        assert_eq!(error.message, "m.toml:3: cell 2 (system = bem25, top-k = 5): unknown memory system 'bem25'");
    }

    #[test]
    fn mistakes_in_flags_and_settings_have_the_line_that_they_stand_in() {
        let toml = "flags = ['--dataset', 'locomo-sim', '--cache=oof',\n  '--set', 'bm25.k8=1',\n  '--preset', 'qick']\n\n\
                    [axes]\nsystem = ['bm25', 'none']\nsettings = ['soft']\n\n[settings]\nsoft = ['bm25.k9=0.9']\n";
        let yaml = "flags: [--dataset, locomo-smi]\naxes:\n  system: [bm25]\n  settings: [plain, soft]\n\n\
                    settings:\n  plain: []\n  soft:\n    - bm25.k1=1.2\n    - bm25.k9=0.9\n";
        let read =
            |path: &str, text: &str| Matrix::read(path, text.to_owned()).unwrap_or_else(|e| panic!("{}", e.message));
        let (toml, yaml) = (read("m.toml", toml), read("m.yaml", yaml));
        for (matrix, number, said, wanted) in [
            (&toml, 0, "--preset: run.preset is \"qick\", expected one of quick, fair", "m.toml:3: cell 1 "),
            (&toml, 0, "--cache: run.cache is \"oof\", expected one of read, off", "m.toml:1: cell 1 "),
            (&toml, 0, "--set bm25.k8: unknown key bm25.k8, did you mean bm25.k1?", "m.toml:2: cell 1 "),
            (&toml, 1, "--set: unknown key bm25.k9, did you mean bm25.k1?", "m.toml:10: cell 2 "),
            (&toml, 1, "unknown memory system 'none'", "m.toml:6: cell 2 "),
            (&toml, 0, "nothing that stands there", "m.toml:5: cell 1 "),
            (&yaml, 0, "unknown dataset 'locomo-smi'", "m.yaml:1: cell 1 "),
            (&yaml, 1, "--set: unknown key bm25.k9, did you mean bm25.k1?", "m.yaml:10: cell 2 "),
            (&yaml, 1, "bm25.k1 is too large", "m.yaml:9: cell 2 "),
        ] {
            let error = matrix.of_cell(&matrix.cells[number], CliError::usage(said));
            assert!(error.message.starts_with(wanted), "'{wanted}': {}", error.message);
        }
    }
}
