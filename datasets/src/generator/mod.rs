//! What the generators share: random numbers of their own, and templates.

use serde::Deserialize;

pub(crate) mod rng;
pub(crate) mod settings;

/// Replaces `{name}` by its value, once: braces in a value stay; what is not named stays empty.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() + 24);
    for part in parts(template) {
        text.push_str(match part {
            Part::Text(text) => text,
            Part::Gap(name) => values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value),
        });
    }
    text
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    /// `{name}`, without its braces.
    Gap(&'a str),
}

/// The parts of a template, in order; texts may be empty.
pub(crate) fn parts(template: &str) -> impl Iterator<Item = Part<'_>> {
    template
        .split('{')
        .enumerate()
        .flat_map(|(index, part)| match part.split_once('}') {
            Some((name, text)) if index > 0 => [Some(Part::Gap(name)), Some(Part::Text(text))],
            _ => [None, Some(Part::Text(part))],
        })
        .flatten()
}

/// A template of a table that is filled thousands of times: taken apart once, when the table is read.
#[derive(Debug, Deserialize)]
#[serde(from = "&'static str", bound(deserialize = "'de: 'static"))]
pub(crate) struct Template(Vec<Part<'static>>);

impl From<&'static str> for Template {
    fn from(template: &'static str) -> Self {
        Self(parts(template).filter(|part| *part != Part::Text("")).collect())
    }
}

impl Template {
    /// Adds the template to a text, and for each gap what a function adds for its name.
    pub(crate) fn fill_with(&self, text: &mut String, mut add: impl FnMut(&str, &mut String)) {
        for part in &self.0 {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Gap(name) => add(name, text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_once() {
        assert_eq!(fill("{n} saw {av}, {x}!", &[("n", "Ida"), ("av", "an {n}")]), "Ida saw an {n}, !");
        assert_eq!(fill("plain", &[]), "plain");
    }
}
