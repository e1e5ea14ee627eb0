//! Settings that a system declares and a run chooses, by `--set NAME.SETTING=…`: `settings:` of a file, parameters of a class.
//!
//! In come an adapter and the values of a run; out comes the adapter as it would be with these values written into it, so that
//! a file with settings speaks, and has the fingerprint, of one that says the same without any. Start reading at [`take`] (what a
//! person asks for) and at `told` (what a process does with it).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    ADAPTER, literal,
    secrets::Secrets,
    spec::{AdapterSpec, CallSpec, SettingKind, SettingSpec},
    template::escape,
};
use crate::SystemSettings;

/// How a variable begins that is a setting.
const BEGIN: &str = "{setting.";
/// Longest text of a setting, in bytes.
const LONGEST: usize = 4096;

/// The values that a run gives, by their dotted names. A value that is the setting's default is none: a run that names it
/// is the same as one that does not.
///
/// # Errors
/// A setting that the system does not have, with those that it has; a value that it does not take; a value that looks like a key.
pub fn take(adapter: &AdapterSpec, asked: &BTreeMap<String, Value>) -> Result<SystemSettings, String> {
    let mut taken = SystemSettings::new();
    for (name, value) in asked {
        let Some(setting) = adapter.settings.get(name) else {
            return Err(match adapter.settings.is_empty() {
                true => format!("{} has no setting '{name}', it has none", adapter.name),
                false => format!("{} has no setting '{name}', it has {}", adapter.name, known(adapter)),
            });
        };
        let full = format!("{}.{name}", adapter.name);
        let value = typed(setting, value).map_err(|problem| format!("setting {full} {problem}"))?;
        if !is_default(setting, &value) {
            taken.insert(full, value);
        }
    }
    literal::check(&told(adapter.clone(), &taken)?)?;
    Ok(taken)
}

/// Refuses values that a run gives and that hold a secret of this process: what the adapter is given as a key, and what stands in a
/// variable whose name says that it is secret. Whoever types `--set mine.note=$MINE_KEY` would store the key with the run; what stands
/// in the adapter's file is stored anyway.
///
/// # Errors
/// The name of the first one, and how to name the key instead.
pub fn check_secrets(adapter: Option<&AdapterSpec>, values: &SystemSettings) -> Result<(), String> {
    let of_adapter = adapter.map(|adapter| Secrets::from_spec(adapter, None)).unwrap_or_default();
    let of_process = Secrets::from_environment();
    let file = adapter.and_then(|adapter| serde_json::to_string(adapter).ok()).unwrap_or_default();
    let secrets = of_adapter.values().chain(of_process.values()).filter(|secret| !file.contains(secret));
    let secrets: Vec<&str> = secrets.collect();
    match holding(values, &secrets) {
        None => Ok(()),
        Some(name) => Err(format!(
            "{name} holds the value of a key, and it goes with the run into the store, reports and archives: leave it out, and name \
             the key's variable in the adapter's file with `auth: {{env: NAME}}` or ${{env:NAME}}"
        )),
    }
}

/// The name of the first value that holds one of these secrets.
fn holding<'v>(values: &'v SystemSettings, secrets: &[&str]) -> Option<&'v str> {
    let secrets: Vec<&str> = secrets.iter().copied().filter(|secret| literal::is_secret(secret)).collect();
    let holds = |value: &Value| {
        let text = shown(value);
        secrets.iter().any(|secret| text.contains(*secret))
    };
    // what an adapter itself says is looked at where its file is read
    let mut given = values.iter().filter(|(name, _)| name.as_str() != ADAPTER);
    given.find(|(_, value)| holds(value)).map(|(name, _)| name.as_str())
}

/// An adapter as it speaks with the settings of its run.
///
/// # Errors
/// As [`take`], and variables that name no setting.
pub(super) fn told(adapter: AdapterSpec, run: &SystemSettings) -> Result<AdapterSpec, String> {
    filled(adapter, run).map(|(adapter, _)| adapter)
}

/// A file as it speaks with its own settings, when all of them stand somewhere in it.
///
/// # Errors
/// As [`told`], and a setting that is used nowhere.
pub(super) fn checked(adapter: &AdapterSpec) -> Result<AdapterSpec, String> {
    let (filled, used) = filled(adapter.clone(), &SystemSettings::new())?;
    match adapter.settings.keys().find(|name| !used.contains(name.as_str())) {
        Some(name) => Err(format!("settings.{name}: {BEGIN}{name}}} stands nowhere in the file")),
        None => Ok(filled),
    }
}

/// The same, and the settings that stand in it.
fn filled(mut adapter: AdapterSpec, run: &SystemSettings) -> Result<(AdapterSpec, BTreeSet<String>), String> {
    let declared = std::mem::take(&mut adapter.settings);
    let (mut values, mut free, mut chosen) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for (name, setting) in &declared {
        check_setting(name, setting)?;
        let given = run.get(&format!("{}.{name}", adapter.name));
        let value = given.map(|value| typed(setting, value)).transpose();
        let value = value.map_err(|problem| format!("setting {}.{name} {problem}", adapter.name))?;
        if let Some(value) = value.as_ref().filter(|value| !is_default(setting, value)) {
            chosen.insert(name.clone(), value.clone());
        }
        values.insert(name.as_str(), value.or_else(|| setting.default.clone()).unwrap_or(Value::Null));
        if is_free(setting) {
            free.insert(name.as_str());
        }
    }
    let mut fill = Filling { values, free, used: BTreeSet::new() };
    fill.adapter(&mut adapter)?;
    let Some(code) = &mut adapter.code else { return Ok((adapter, fill.used)) };
    // the class is given what differs: its defaults stand in its code
    code.settings = chosen;
    Ok((adapter, declared.into_keys().collect()))
}

/// The texts of any words that a run gives to a class, by the names of its settings. A class reads from them what it likes, the path
/// of a file or a program: whoever allows it allows them by their words.
pub(crate) fn free_texts_of_class<'a>(adapter: &AdapterSpec, run: &'a SystemSettings) -> BTreeMap<String, &'a Value> {
    let free = adapter.settings.iter().filter(|(_, setting)| adapter.code.is_some() && is_free(setting));
    free.filter_map(|(name, _)| Some((name.clone(), run.get(&format!("{}.{name}", adapter.name))?))).collect()
}

/// Whether a setting may be any text.
fn is_free(setting: &SettingSpec) -> bool {
    setting.kind == SettingKind::Text && setting.values.is_empty()
}

/// Whether a value is what the setting has anyway; 1 is 1.0.
fn is_default(setting: &SettingSpec, value: &Value) -> bool {
    setting.default.as_ref().is_some_and(|default| match (default, value) {
        (Value::Number(default), Value::Number(value)) => default == value || default.as_f64() == value.as_f64(),
        _ => default == value,
    })
}

/// Names of an adapter's settings, for people.
fn known(adapter: &AdapterSpec) -> String {
    adapter.settings.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Whether a file's setting makes sense by itself.
fn check_setting(name: &str, setting: &SettingSpec) -> Result<(), String> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("settings.{name}: a name has letters, digits and '_'"));
    }
    if setting.about.trim().is_empty() {
        return Err(format!("settings.{name}.about: say what it does"));
    }
    let of_kind = SettingSpec { values: Vec::new(), ..setting.clone() };
    for value in &setting.values {
        if typed(&of_kind, value).as_ref() != Ok(value) {
            return Err(format!("settings.{name}.values: {value} is none of its type"));
        }
    }
    match &setting.default {
        Some(default) if typed(setting, default).as_ref() != Ok(default) => {
            Err(format!("settings.{name}.default: {default} is no value that it takes"))
        }
        _ => Ok(()),
    }
}

/// A value as the setting takes it.
///
/// # Errors
/// What it takes.
fn typed(setting: &SettingSpec, value: &Value) -> Result<Value, String> {
    let value = match (setting.kind, value) {
        // what is typed on a command line is read as a number where it is one
        (SettingKind::Text, Value::Number(number)) => Value::String(number.to_string()),
        (SettingKind::Text, Value::Bool(flag)) => Value::String(flag.to_string()),
        (_, other) => other.clone(),
    };
    let within = |number: f64| {
        setting.least.is_none_or(|least| number >= least) && setting.most.is_none_or(|most| number <= most)
    };
    let fits = match (setting.kind, &value) {
        (SettingKind::Text, Value::String(text)) => text.len() <= LONGEST && !text.chars().any(char::is_control),
        (SettingKind::Number, Value::Number(number)) => number.as_f64().is_some_and(within),
        (SettingKind::Whole, Value::Number(number)) => {
            (number.is_i64() || number.is_u64()) && number.as_f64().is_some_and(within)
        }
        (SettingKind::Flag, Value::Bool(_)) => true,
        _ => false,
    };
    let listed = setting.values.is_empty() || setting.values.contains(&value);
    if fits && listed { Ok(value) } else { Err(format!("must be {}, not {value}", takes(setting))) }
}

/// What a setting takes, for people.
#[must_use]
pub fn takes(setting: &SettingSpec) -> String {
    if !setting.values.is_empty() {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return setting.values.iter().map(shown).collect::<Vec<_>>().join(", ");
    }
    let kind = match setting.kind {
        SettingKind::Text => "a text",
        SettingKind::Number => "a number",
        SettingKind::Whole => "a whole number",
        SettingKind::Flag => "true or false",
    };
    match (setting.least, setting.most) {
        (None, None) => kind.to_owned(),
        (Some(least), None) => format!("{kind} from {least}"),
        (None, Some(most)) => format!("{kind} up to {most}"),
        (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
    }
}

/// Writes the values of a run into an adapter.
struct Filling<'a> {
    values: BTreeMap<&'a str, Value>,
    /// Settings that may be any text: what a run says there is never a part of what is started.
    free: BTreeSet<&'a str>,
    used: BTreeSet<String>,
}

impl Filling<'_> {
    fn adapter(&mut self, adapter: &mut AdapterSpec) -> Result<(), String> {
        for call in adapter.calls_mut() {
            self.call(call)?;
            for step in &mut call.then {
                self.call(step)?;
            }
        }
        self.template(&mut adapter.item)?;
        self.template(&mut adapter.message)?;
        self.started(adapter)
    }

    fn call(&mut self, call: &mut CallSpec) -> Result<(), String> {
        call.request = self.text(&call.request, &|value| escape(&shown(value)))?;
        let parts = call.multipart.values_mut().flat_map(|part| part.file.iter_mut().chain([&mut part.text]));
        let texts = call.query.values_mut().chain(call.headers.values_mut()).chain(&mut call.text_body);
        for text in texts.chain(parts) {
            *text = self.text(text, &template)?;
        }
        self.template(&mut call.body)?;
        self.template(&mut call.arguments)
    }

    /// What a run chooses of what is started: no free text.
    fn started(&mut self, adapter: &mut AdapterSpec) -> Result<(), String> {
        let of_tools = adapter.mcp.iter_mut().flat_map(|mcp| mcp.command.iter_mut().flatten());
        let words = adapter.command.iter_mut().flatten().chain(of_tools).chain(adapter.env.values_mut());
        let start = adapter.start.iter_mut();
        let started = start.flat_map(|start| {
            let words = start.command.iter_mut().chain(&mut start.check);
            words.chain(start.env.values_mut()).chain(start.files.values_mut())
        });
        for text in words.chain(started) {
            let before = std::mem::take(&mut self.used);
            *text = self.text(text, &shown)?;
            let free = self.used.iter().find(|name| self.free.contains(name.as_str())).cloned();
            self.used.extend(before);
            if let Some(name) = free {
                return Err(format!(
                    "settings.{name}: a part of what is started has to have `values`, or be a number, true or false"
                ));
            }
        }
        Ok(())
    }

    fn template(&mut self, template: &mut Option<Value>) -> Result<(), String> {
        if let Some(value) = template.take() {
            *template = self.value(value)?;
        }
        Ok(())
    }

    /// A template of JSON; nothing where it is a setting that may be missing and is.
    fn value(&mut self, value: Value) -> Result<Option<Value>, String> {
        Ok(match value {
            Value::String(text) => match whole(&text) {
                Some((name, optional)) => match self.named(name)? {
                    Value::Null if optional => None,
                    Value::String(text) => Some(Value::String(braces(&text))),
                    other => Some(other),
                },
                None => Some(Value::String(self.text(&text, &template)?)),
            },
            Value::Array(list) => {
                let mut filled = Vec::with_capacity(list.len());
                for element in list {
                    filled.extend(self.value(element)?);
                }
                Some(Value::Array(filled))
            }
            Value::Object(map) => {
                let mut filled = serde_json::Map::new();
                for (key, value) in map {
                    if let Some(value) = self.value(value)? {
                        filled.insert(key, value);
                    }
                }
                Some(Value::Object(filled))
            }
            other => Some(other),
        })
    }

    /// A text with the values of its settings, each as `write` writes it.
    fn text(&mut self, text: &str, write: &dyn Fn(&Value) -> String) -> Result<String, String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('{') {
            let (before, tail) = rest.split_at(at);
            filled.push_str(before);
            let name = tail.strip_prefix(BEGIN).and_then(|tail| tail.split_once('}')).map(|(name, _)| name);
            let taken = match name {
                Some(name) => {
                    filled.push_str(&write(&self.named(name.trim_end_matches('?'))?));
                    BEGIN.len() + name.len() + 1
                }
                None if tail.starts_with("{{") => 2,
                None => 1,
            };
            if name.is_none() {
                filled.push_str(&tail[..taken]);
            }
            rest = &tail[taken..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn named(&mut self, name: &str) -> Result<Value, String> {
        let Some(value) = self.values.get(name) else {
            let known: Vec<&str> = self.values.keys().copied().collect();
            return Err(format!(
                "{BEGIN}{name}}}: `settings` of the file has no '{name}', it has {}",
                known.join(", ")
            ));
        };
        self.used.insert(name.to_owned());
        Ok(value.clone())
    }
}

/// The name of a text that is one setting alone, and whether it may be missing.
fn whole(text: &str) -> Option<(&str, bool)> {
    let name = text.strip_prefix(BEGIN)?.strip_suffix('}')?;
    let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    (!name.contains(['{', '}'])).then_some((name, optional))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value inside of a template: no brace of it begins a variable.
fn template(value: &Value) -> String {
    braces(&shown(value))
}

fn braces(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::adapter::{file, shipped};

    const FILE: &str = "
name: mine
url: http://127.0.0.1:9
settings:
  mode: {about: how it searches, type: text, default: auto, values: [auto, semantic]}
  depth: {about: candidates, type: whole, least: 1, most: 500}
  note: {about: any words, type: text, default: 'a {b}'}
  deep: {about: thinks twice, type: flag, default: false}
retain: {request: 'POST /add/{setting.note}', body: {text: '{text}', user: '{bank}', note: 'n: {setting.note}'}}
recall:
  request: POST /search
  body: {query: '{query}', mode: '{setting.mode}', depth: '{setting.depth?}', deep: '{setting.deep}', literal: '{{setting.x}}'}
  hits: [{list: results, text: memory, id: id}]
";

    fn mine() -> AdapterSpec {
        file::parse(FILE).expect("reads")
    }

    fn asked(pairs: &[(&str, Value)]) -> Result<SystemSettings, String> {
        take(&mine(), &pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn recalls(run: &SystemSettings) -> Value {
        told(mine(), run).expect("can be told").recall.and_then(|recall| recall.body).expect("has a body")
    }

    #[test]
    fn values_keep_their_types_and_what_has_none_is_not_sent() {
        let plain = recalls(&SystemSettings::new());
        assert_eq!(plain, json!({ "query": "{query}", "mode": "auto", "deep": false, "literal": "{{setting.x}}" }));
        let run = asked(&[("depth", json!(40)), ("deep", json!(true)), ("note", json!(7))]).expect("takes them");
        assert_eq!(recalls(&run)["depth"], 40);
        assert_eq!(run["mine.note"], "7", "a text may be typed as a number");
        let told = told(mine(), &SystemSettings::new()).expect("can be told");
        let retain = told.retain.expect("is there");
        assert_eq!(retain.request, "POST /add/a%20%7Bb%7D", "no part of a path, no variable");
        assert_eq!(retain.body.expect("is there")["note"], "n: a {{b}}");
        assert!(file::compile(&super::told(mine(), &run).expect("can be told")).is_ok());
    }

    #[test]
    fn a_file_that_says_the_same_without_settings_has_the_same_fingerprint() {
        let written = FILE.lines().filter(|line| !line.starts_with("  mode:") && !line.starts_with("  depth:"));
        let written =
            written.filter(|line| !line.starts_with("  note:") && !line.starts_with("  deep:") && *line != "settings:");
        let written = written.collect::<Vec<_>>().join("\n");
        let written = written.replace("/{setting.note}", "/a%20%7Bb%7D").replace("{setting.note}", "a {{b}}");
        let written = written.replace("'{setting.mode}'", "auto").replace("depth: '{setting.depth?}', ", "");
        let written = file::parse(&written.replace("'{setting.deep}'", "false")).expect("reads");
        let print = |run: &SystemSettings| file::fingerprint(&told(mine(), run).expect("can be told"));
        assert_eq!(print(&SystemSettings::new()), file::fingerprint(&written));
        assert_eq!(asked(&[("mode", json!("auto"))]), Ok(SystemSettings::new()), "the default is no choice");
        assert_ne!(print(&asked(&[("mode", json!("semantic"))]).expect("takes it")), file::fingerprint(&written));
    }

    /// A shipped file as it was before it had settings.
    fn before_settings(name: &str, changes: &[(&str, &str)]) -> AdapterSpec {
        let (_, text) = shipped::SHIPPED.iter().find(|(shipped, _)| *shipped == name).expect("is shipped");
        let lines = text.lines().filter(|line| *line != "settings:" && !line.contains(": {about: "));
        let mut text = lines.collect::<Vec<_>>().join("\n");
        for (from, to) in changes {
            assert!(text.contains(from), "{name}: {from}");
            text = text.replace(from, to);
        }
        assert!(!text.contains("{setting."), "{name}: {text}");
        file::parse(&text).expect("reads")
    }

    #[test]
    fn p13_settings_of_shipped_files_have_changed_no_fingerprint_of_who_chooses_nothing() {
        let print = |name: &str| {
            let spec = shipped::find(name).expect("is shipped").expect("reads");
            file::fingerprint(&told(spec, &SystemSettings::new()).expect("can be told"))
        };
        let jeffs_brain = before_settings(
            "jeffs-brain",
            &[
                (r#", candidateK: "{setting.candidateK?}", rerankTopN: "{setting.rerankTopN?}""#, ""),
                ("\n    candidateK: \"{setting.candidateK?}\"\n    rerankTopN: \"{setting.rerankTopN?}\"", ""),
                (r#""{setting.mode}""#, "auto"),
            ],
        );
        assert_eq!(print("jeffs-brain"), file::fingerprint(&jeffs_brain));
        let hindsight = before_settings(
            "hindsight",
            &[(r#""{setting.budget}""#, "high"), (r#""{setting.reflect_budget}""#, "mid")],
        );
        assert_eq!(print("hindsight"), file::fingerprint(&hindsight));
        let all: Vec<String> = shipped::SHIPPED.iter().map(|(name, _)| format!("{name} {}", print(name))).collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn what_a_system_does_not_have_or_take_is_refused() {
        let refused = |name: &str, value: Value| asked(&[(name, value)]).expect_err("is refused");
        insta::assert_snapshot!(refused("modes", json!("auto")), @"mine has no setting 'modes', it has deep, depth, mode, note");
        insta::assert_snapshot!(refused("mode", json!("fast")), @r#"setting mine.mode must be auto, semantic, not "fast""#);
        insta::assert_snapshot!(refused("depth", json!(2.5)), @"setting mine.depth must be a whole number from 1 to 500, not 2.5");
        insta::assert_snapshot!(refused("deep", json!("yes")), @r#"setting mine.deep must be true or false, not "yes""#);
        let key = refused("note", json!(format!("ghp_{}", "a1B2".repeat(9))));
        assert!(key.contains("looks like a key"), "{key}");
        let of = |from: &str, to: &str| {
            let changed = FILE.replace(from, to);
            assert_ne!(changed, FILE);
            checked(&file::parse(&changed).expect("reads")).expect_err("is refused")
        };
        insta::assert_snapshot!(of("{setting.mode}", "{setting.moed}"), @"{setting.moed}: `settings` of the file has no 'moed', it has deep, depth, mode, note");
        insta::assert_snapshot!(of("'{setting.deep}'", "1"), @"settings.deep: {setting.deep} stands nowhere in the file");
        insta::assert_snapshot!(of("default: auto", "default: car"), @r#"settings.mode.default: "car" is no value that it takes"#);
        insta::assert_snapshot!(of("url: http", "start: {command: [x, '{setting.note}']}\nurl: http"), @"settings.note: a part of what is started has to have `values`, or be a number, true or false");
        // the values of a run that somebody else has written are looked at where they are used
        let theirs = SystemSettings::from([("mine.mode".to_owned(), json!("../x"))]);
        insta::assert_snapshot!(told(mine(), &theirs).expect_err("is refused"), @r#"setting mine.mode must be auto, semantic, not "../x""#);
    }

    #[test]
    fn a_value_that_holds_a_secret_is_refused_and_not_shown() {
        let home = tempfile::tempdir().expect("a folder");
        let key = home.path().join("key");
        std::fs::write(&key, "plantedkeyplantedkey12345\n").expect("is written");
        let keyed = FILE.replace("retain:", &format!("auth: {{file: '{}'}}\nretain:", key.display()));
        let adapter = file::parse(&keyed).expect("reads");
        let set = |name: &str, value: &str| SystemSettings::from([(name.to_owned(), json!(value))]);
        for (name, value) in [
            ("mine.note", "plantedkeyplantedkey12345"),
            ("mine.note", "of plantedkeyplantedkey12345!"),
            ("system.url", "http://h/plantedkeyplantedkey12345"),
        ] {
            let refused = check_secrets(Some(&adapter), &set(name, value)).expect_err(value);
            assert!(refused.starts_with(&format!("{name} holds")) && !refused.contains("planted"), "{refused}");
            assert_eq!(check_secrets(None, &set(name, value)), Ok(()), "nobody knows that it is one");
        }
        for fine in [set("mine.note", "plantedkey"), set(ADAPTER, "plantedkeyplantedkey12345")] {
            assert_eq!(check_secrets(Some(&adapter), &fine), Ok(()), "{fine:?}");
        }
        let (tenant, named) = ("0b9f3c1e-7a52-4d08-9e6b-2f41c8d7a935", "/${env:MEM0_API_KEY}/v1");
        let tenants = FILE.replace("127.0.0.1:9", &format!("127.0.0.1:9/{tenant}{named}"));
        let tenants = file::parse(&tenants).expect("reads");
        for fine in [set("mine.note", tenant), set("system.url", &format!("https://other{named}"))] {
            assert_eq!(check_secrets(Some(&tenants), &fine), Ok(()), "it stands in the file: {fine:?}");
        }
        // what people write where no key is needed, and what is short, stands in settings by chance
        let common = ["not-needed", "disabled", "12345678", "short", "/run/secrets/key", "http://127.0.0.1:9"];
        let all = set("mine.note", "not-needed disabled 12345678 short /run/secrets/key http://127.0.0.1:9");
        assert_eq!(holding(&all, &common), None);
        assert_eq!(holding(&all, &["disabled not"]), None);
        assert_eq!(holding(&all, &["needed disabled"]), Some("mine.note"));
    }

    const CLASS: &str = "
name: mine
command: [python3, -m, bench_coord, 'mine.py:Mine']
code: {file: mine.py, class: Mine, files: {mine.py: pass}}
settings:
  top: {about: top of Mine.__init__, type: whole, default: 5}
  scale: {about: scale of Mine.__init__, type: number, default: 1}
  note: {about: note of Mine.__init__, type: text}
";

    #[test]
    fn a_class_is_given_what_differs_from_its_code_and_has_the_fingerprint_of_one_without_settings() {
        let class = || file::parse(CLASS).expect("reads");
        let run = |pairs: &[(&str, Value)]| {
            take(&class(), &pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        };
        let made_with = |run: &SystemSettings| {
            let told = told(class(), run).expect("can be told");
            assert!(told.settings.is_empty());
            (told.code.clone().map(|code| json!(code.settings)).unwrap_or_default(), file::fingerprint(&told))
        };
        let without = CLASS.split("settings:").next().and_then(|text| file::parse(text).ok()).expect("reads");
        let plain = run(&[("top", json!(5)), ("scale", json!(1.0))]).expect("takes them");
        assert_eq!(made_with(&plain), (json!({}), file::fingerprint(&without)));
        let chosen = run(&[("top", json!(8)), ("note", json!("x"))]).expect("takes them");
        let (settings, print) = made_with(&chosen);
        assert_eq!(settings, json!({ "top": 8, "note": "x" }));
        assert_ne!(print, file::fingerprint(&without));
        assert!(run(&[("top", json!("x"))]).is_err() && run(&[("tops", json!(1))]).is_err());
        // a run that somebody else has written says nothing that its adapter does not declare
        let theirs = SystemSettings::from([("mine.cls".to_owned(), json!("x"))]);
        assert_eq!(made_with(&theirs).0, json!({}));
        let brought = CLASS.replace("class: Mine,", "class: Mine, settings: {top: 8},");
        assert!(file::parse(&brought).is_err(), "no adapter brings values along");
    }

    #[test]
    fn a_variable_of_a_class_is_no_free_text_either() {
        let with_env = CLASS.replace("settings:\n", "env: {PATH: '{setting.note}'}\nsettings:\n");
        let refused = told(file::parse(&with_env).expect("reads"), &SystemSettings::new()).expect_err("is refused");
        assert!(refused.starts_with("settings.note: a part of what is started"), "{refused}");
    }
}
