//! `config show`: every setting with its value and where that comes from. Keys and passwords are never shown.

use serde::Serialize;

use crate::{
    accounts::{Account, ApiKey},
    origin::Origin,
    schema::Kind,
    view::Settings,
};

/// A line of `config show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownSetting {
    /// Dotted name.
    pub name: String,
    /// Value for people; `not set` when there is none.
    pub value: String,
    /// Where it comes from; empty when there is no value.
    pub origin: String,
}

impl Settings {
    /// The settings that matter most and those that are not at their defaults; all of them with `all`. Accounts' keys
    /// are listed as set or not.
    #[must_use]
    pub fn show(&self, all: bool) -> Vec<ShownSetting> {
        let mut shown = Vec::new();
        for key in &self.schema.keys {
            match self.entries.get(key.name.as_ref()) {
                Some(entry) if all || key.common || entry.origin != Origin::Default => {
                    shown.push(line(&key.name, entry.value.shown(), entry.origin.to_string()));
                }
                None if all || (key.common && key.kind != Kind::Secret) => shown.push(line(&key.name, "not set", "")),
                _ => {}
            }
        }
        let is_listed = |name: &str| self.schema.keys.iter().any(|key| key.name == name);
        for (name, entry) in self.entries.iter().filter(|(name, _)| !is_listed(name)) {
            shown.push(line(name, entry.value.shown(), entry.origin.to_string()));
        }
        shown.extend(self.accounts.values().filter_map(|account| key_line(account, all)));
        shown
    }
}

fn line(name: &str, value: impl Into<String>, origin: impl Into<String>) -> ShownSetting {
    ShownSetting { name: name.to_owned(), value: value.into(), origin: origin.into() }
}

fn key_line(account: &Account, all: bool) -> Option<ShownSetting> {
    let name = format!("accounts.{}.api_key", account.name);
    match &account.key {
        ApiKey::Set(_, origin) => Some(line(&name, "set (hidden)", origin.to_string())),
        ApiKey::Missing(why) => all.then(|| line(&name, "not set", why.as_str())),
        ApiKey::None => all.then(|| line(&name, "none needed", "")),
    }
}

/// The lines in three aligned columns, without trailing blanks.
#[must_use]
pub fn render(shown: &[ShownSetting]) -> String {
    let width =
        |column: fn(&ShownSetting) -> &str| shown.iter().map(|line| column(line).chars().count()).max().unwrap_or(0);
    let (names, values) = (width(|line| &line.name), width(|line| &line.value));
    let lines =
        shown.iter().map(|ShownSetting { name, value, origin }| format!("{name:names$}  {value:values$}  {origin}"));
    lines.map(|line| line.trim_end().to_owned() + "\n").collect()
}
