//! What is secret in the address of a server, and texts of that server without it: many repeat the path of a request in an error
//! (`Cannot POST …`, `Invalid URL (POST …)`), and some gateways want a key in the path or in the query.

use std::{borrow::Cow, cmp::Reverse, fmt, iter, slice, sync::Arc};

use url::{Url, form_urlencoded};

use super::{PLAIN_PARAMETERS, SHORTEST_SECRET, is_key, is_like_secret, is_random, secret};

/// How the name of a parameter ends whose value is a secret, whatever that looks like.
pub(super) const SECRETIVE: [&str; 9] =
    ["auth", "credential", "key", "passwd", "password", "secret", "sig", "signature", "token"];

/// As many letters and digits in one are no word and no version.
const OPAQUE: usize = 16;

/// What [`url()`](super::url()) hides of a URL and its server may repeat: values of parameters, parts of the path that are keys,
/// password and user, in each form in which servers write them; the longest first. What is shorter than [`SHORTEST_SECRET`], and
/// the value of a parameter of any name that may be a word (`route=production`), stays: it is in many texts, and replies are
/// searched too.
///
/// ```
/// use bench_proto::redact::secrets_of_url;
/// assert_eq!(secrets_of_url("https://api.example/v1?api-version=2025-01-01&key=abcdefgh1"), ["abcdefgh1"]);
/// ```
#[must_use]
pub fn secrets_of_url(text: &str) -> Vec<String> {
    let Ok(url) = Url::parse(text) else { return Vec::new() };
    let in_path = url.path().split('/').filter(|part| is_key(part) || is_random(part) || is_random(&decoded(part)));
    let in_query = url.query().into_iter().flat_map(|query| query.split('&')).filter_map(secret_value);
    let user = Some(url.username()).filter(|user| url.password().is_none() || is_opaque(user));
    let all = in_path.chain(in_query).chain(url.password()).chain(user);
    longest_first(all.flat_map(forms))
}

/// The value of a parameter, where it is a secret.
fn secret_value(pair: &str) -> Option<&str> {
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    let name = decoded(name).to_ascii_lowercase();
    let is_plain = PLAIN_PARAMETERS.contains(&name.as_str());
    let is_secretive = || SECRETIVE.iter().any(|end| name.ends_with(end));
    (!is_plain && (is_secretive() || is_opaque(&decoded(value)))).then_some(value)
}

/// Whether a text is a key rather than a name: names of models, regions and versions are words and numbers with signs between them.
fn is_opaque(text: &str) -> bool {
    let is_long = |word: &str| word.len() >= OPAQUE && word.bytes().any(|byte| byte.is_ascii_digit());
    is_key(text) || is_random(text) || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_long)
}

/// A part of a URL without its percent signs.
fn decoded(part: &str) -> String {
    // read as a form, in which these mean something
    let part = part.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(part.as_bytes()).map(|(text, _)| text.into_owned()).next().unwrap_or_default()
}

/// A part of a URL as its server may repeat it: as it was sent, decoded, encoded once and twice in the ways of forms and of paths,
/// in either case of the digits; and as writers of JSON have it that put `\` before a slash, or numbers for signs.
fn forms(part: &str) -> Vec<String> {
    let encoded = |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let with_blanks = part.replace('+', " ");
    let plain = [decoded(part), decoded(&with_blanks)];
    let mut all = vec![part.to_owned(), encoded(part)];
    for text in plain {
        let form = encoded(&text);
        all.extend([form.replace('+', "%20"), form, text]);
    }
    let small: Vec<String> = all.iter().map(|text| with_small_digits(text)).collect();
    all.extend(small);
    let in_json = |text: &String| {
        let slashes = text.replace('/', "\\/");
        [slashes, text.replace('+', "\\u002B").replace('&', "\\u0026"), text.replace('+', "\\u002b")]
    };
    let json: Vec<String> = all.iter().flat_map(in_json).collect();
    all.extend(json);
    all
}

/// `%2F` as `%2f`.
fn with_small_digits(text: &str) -> String {
    let mut after = usize::MAX;
    let small = |c: char| {
        after = if c == '%' { 0 } else { after.saturating_add(1) };
        if after == 1 || after == 2 { c.to_ascii_lowercase() } else { c }
    };
    text.chars().map(small).collect()
}

/// One that holds another is looked for before it.
fn longest_first(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = all.filter(|secret| secret.len() >= SHORTEST_SECRET).collect();
    all.sort_unstable_by(|a, b| (Reverse(a.len()), a).cmp(&(Reverse(b.len()), b)));
    all.dedup();
    all
}

/// What an account's server is given and nobody else may read: the key of its header, and [`secrets_of_url`]. Its `Debug` shows
/// none of them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// Of an account with this base URL and key.
    #[must_use]
    pub fn of_account(base_url: &str, key: Option<&str>) -> Self {
        let key = key.map(|key| key.trim().to_owned());
        Self(longest_first(secrets_of_url(base_url).into_iter().chain(key)).into())
    }

    /// Words of the server without them.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        without(text, self)
    }

    /// The text of a reply without them. A key that is a word, as servers without keys are given (`whatever`), is left in it: it
    /// says nothing, and an answer may hold it.
    #[must_use]
    pub fn hide_in_reply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        without(text, self.into_iter().filter(|secret| is_like_secret(secret)))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl<'s> IntoIterator for &'s Secrets {
    type Item = &'s str;
    type IntoIter = iter::Map<slice::Iter<'s, String>, fn(&'s String) -> &'s str>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(String::as_str as fn(&'s String) -> &'s str)
    }
}

/// Words of others without these secrets, see [`secret`].
#[must_use]
pub fn without<'t, 's>(text: &'t str, secrets: impl IntoIterator<Item = &'s str>) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for one in secrets {
        if let Cow::Owned(hidden) = secret(&shown, one) {
            shown = hidden.into();
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IN_PATH: &str = "zQ7kXp20Ld9RtW4m";
    const IN_QUERY: &str = "v8Nc3/Yh+61Ts=";

    #[test]
    fn keys_of_an_address_are_known_and_words_are_none() {
        for (url, known) in [
            ("https://gateway.example/zQ7kXp20Ld9RtW4m/v1", "zQ7kXp20Ld9RtW4m"),
            ("https://gateway.example/sk-secret/v1", "sk-secret"),
            ("https://api.example/v1?key=open-sesame", "open-sesame"),
            ("https://api.example/v1?x-Api-Key=open-sesame", "open-sesame"),
            ("https://api.example/v1?code=zq9open0sesame7value", "zq9open0sesame7value"),
            ("https://api.example/v1?zq9open0sesame7value", "zq9open0sesame7value"),
            ("https://ann:open-sesame@api.example/v1", "open-sesame"),
            ("https://open-sesame@api.example/v1", "open-sesame"),
        ] {
            assert!(secrets_of_url(url).iter().any(|secret| secret == known), "{url}: {:?}", secrets_of_url(url));
        }
        for url in [
            "https://api.example/v1",
            "https://x.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18?api-version=2024-10-21",
            "https://api.example/v1?key=short&token=&region=eu-west-1-zone-a",
            "https://api.example/v1?model=text-embedding-3-small&route=production&user=assistant&beta",
            "https://api.example/models/Qwen2.5-Coder-32B-Instruct-AWQ/v1?code=completion",
            "no address",
            "",
        ] {
            assert!(secrets_of_url(url).is_empty(), "{url}: {:?}", secrets_of_url(url));
        }
    }

    #[test]
    fn an_address_is_repeated_without_its_keys_in_whatever_form() {
        let url = format!("https://gateway.example/{IN_PATH}/v1?key=v8Nc3%2FYh%2B61Ts%3D");
        let secrets = Secrets::of_account(&url, Some(" k3y-of-mine "));
        for said in [
            format!("Cannot POST /{IN_PATH}/v1/chat/completions?key=v8Nc3%2FYh%2B61Ts%3D"),
            format!("Invalid URL (POST /{IN_PATH}/v1?key={IN_QUERY})"),
            "no key v8Nc3%2fYh%2b61Ts%3d, nor v8Nc3%252FYh%252B61Ts%253D".to_owned(),
            r"no key v8Nc3\/Yh+61Ts=, nor v8Nc3/Yh\u002B61Ts=, nor v8Nc3/Yh\u002b61Ts=".to_owned(),
            "wrong key k3y-of-mine".to_owned(),
        ] {
            let shown = secrets.hide(&said);
            assert!(shown.contains("[key]"), "{shown}");
            assert!(!["zQ7k", "v8Nc", "61Ts", "k3y"].iter().any(|part| shown.contains(part)), "{shown}");
        }
        assert!(matches!(secrets.hide("gateway.example/v1 says no"), Cow::Borrowed(_)));
        assert!(!format!("{secrets:?}").contains("zQ7k"));
        let plain = Secrets::of_account("https://api.example/v1", Some("whatever"));
        assert_eq!(plain.hide_in_reply("whatever it is"), "whatever it is");
        assert_eq!(secrets.hide_in_reply("it is k3y-of-mine"), "it is [key]");
    }

    proptest! {
        #[test]
        fn no_generated_key_of_a_query_is_repeated(key in "[ -;=?-~]{8,40}", at in 0_usize..5) {
            let form: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
            let component = form.replace('+', "%20");
            let sent = if at % 2 == 0 { &form } else { &component };
            let secrets = Secrets::of_account(&format!("https://h.example/v1?key={sent}"), None);
            for said in [&key, &form, &component, &with_small_digits(&form), &with_small_digits(&component)] {
                let said = format!("<{said}>");
                let shown = secrets.hide(&said);
                prop_assert_eq!(shown, "<[key]>");
            }
        }

        #[test]
        fn any_address_is_read(given in any::<String>()) {
            let _ = secrets_of_url(&given);
            let _ = secrets_of_url(&format!("https://h/{given}?{given}"));
        }
    }
}
