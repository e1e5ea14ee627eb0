//! What the generators share: random numbers of their own, and templates.

pub(crate) mod rng;
pub(crate) mod settings;

/// Replaces `{name}` by its value; what is not named stays empty.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    fill_with(template, |name, text| {
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            text.push_str(value);
        }
    })
}

/// Replaces `{name}` by what a function adds for it, once: braces in what it adds stay.
pub(crate) fn fill_with(template: &str, mut add: impl FnMut(&str, &mut String)) -> String {
    let mut text = String::with_capacity(template.len() + 24);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        add(name, &mut text);
        rest = after;
    }
    text.push_str(rest);
    text
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
