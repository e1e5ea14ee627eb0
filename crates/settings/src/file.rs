//! A configuration file as a flat list of settings with their places.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    error::Problem,
    origin::FilePosition,
    schema::Schema,
    value::{Value, found},
};

/// The settings of a file.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Settings outside of profiles.
    pub(crate) base: Vec<Assignment>,
    /// Profiles by name, in file order.
    pub(crate) profiles: Vec<(String, Vec<Assignment>)>,
}

/// `key = value` somewhere in a file.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) place: FilePosition,
}

/// Reads a file; everything that is wrong with it goes to `problems`. Profiles that are not in use are checked too.
pub(crate) fn read(path: &str, text: &str, schema: &Schema, problems: &mut Vec<Problem>) -> File {
    let mut file = File::default();
    let document = match DeTable::parse(text) {
        Ok(document) => document.into_inner(),
        Err(error) => {
            let place = FilePosition::at_byte(path, text, error.span().map_or(0, |span| span.start));
            problems.push(Problem::Syntax { place, message: error.message().into() });
            return file;
        }
    };
    let mut reader = SettingsReader { path, text, schema, problems };
    for (name, item) in in_file_order(&document) {
        match item.get_ref().as_table() {
            Some(profiles) if name.get_ref() == "profile" => reader.profiles(profiles, &mut file.profiles),
            _ => reader.item(name.get_ref().to_string(), name, item, &mut file.base),
        }
    }
    file
}

type Name<'a> = Spanned<std::borrow::Cow<'a, str>>;
type Item<'a> = Spanned<DeValue<'a>>;

/// The parser sorts by name; problems are read from top to bottom.
fn in_file_order<'t, 'a>(table: &'t DeTable<'a>) -> Vec<(&'t Name<'a>, &'t Item<'a>)> {
    let mut items: Vec<_> = table.iter().collect();
    items.sort_by_key(|(name, _)| name.span().start);
    items
}

struct SettingsReader<'r> {
    path: &'r str,
    text: &'r str,
    schema: &'r Schema,
    problems: &'r mut Vec<Problem>,
}

impl SettingsReader<'_> {
    fn profiles(&mut self, profiles: &DeTable<'_>, into: &mut Vec<(String, Vec<Assignment>)>) {
        for (name, table) in in_file_order(profiles) {
            let mut assignments = Vec::new();
            match table.get_ref().as_table() {
                Some(table) => self.table("", table, &mut assignments),
                None => self.unknown(format!("profile.{}", name.get_ref()), name),
            }
            into.push((name.get_ref().to_string(), assignments));
        }
    }

    fn table(&mut self, path: &str, table: &DeTable<'_>, into: &mut Vec<Assignment>) {
        for (name, item) in in_file_order(table) {
            let key = if path.is_empty() { name.get_ref().to_string() } else { format!("{path}.{}", name.get_ref()) };
            self.item(key, name, item, into);
        }
    }

    fn item(&mut self, key: String, name: &Name<'_>, item: &Item<'_>, into: &mut Vec<Assignment>) {
        let place = self.place(item.span().start);
        if key == "api_key" || key.ends_with(".api_key") {
            self.problems.push(Problem::SecretInTheOpen { place: self.place(name.span().start).to_string(), key });
            return;
        }
        match (item.get_ref(), self.schema.find(&key)) {
            (DeValue::Table(table), _) if self.schema.is_section(&key) => self.table(&key, table, into),
            (value, Some(kind)) => match Value::from_toml(kind, value) {
                Some(value) => into.push(Assignment { key, value, place }),
                None => self.problems.push(Problem::BadValue {
                    place: place.to_string(),
                    key,
                    found: found(kind, value),
                    expected: kind.expected(value.as_str()),
                }),
            },
            (_, None) => self.unknown(key, name),
        }
    }

    fn unknown(&mut self, key: String, name: &Name<'_>) {
        let place = self.place(name.span().start).to_string();
        let nearest = self.schema.nearest(&key);
        self.problems.push(Problem::UnknownKey { place, key, nearest });
    }

    fn place(&self, byte: usize) -> FilePosition {
        FilePosition::at_byte(self.path, self.text, byte)
    }
}
