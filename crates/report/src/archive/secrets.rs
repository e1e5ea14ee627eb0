//! What an account of an object store holds that nothing may show: services repeat it in what they say of a request that they refuse.

use std::{fmt, sync::Arc};

use bench_proto::{redact, text};

use super::ArchiveError;

/// Options of the library whose values are secrets, by all of their names. Ids of keys, names, endpoints and paths are none.
const NAMES: [&str; 16] = [
    "aws_secret_access_key",
    "aws_session_token",
    "aws_sse_customer_key_base64",
    "aws_token",
    "azure_client_secret",
    "azure_fabric_session_token",
    "azure_storage_access_key",
    "azure_storage_account_key",
    "azure_storage_client_secret",
    "azure_storage_encryption_key",
    "azure_storage_master_key",
    "azure_storage_sas_key",
    "azure_storage_sas_token",
    "azure_storage_token",
    "google_bearer_token",
    "google_service_account_key",
];

/// The secrets of an account.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<[String]>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Of variables by their names in small letters.
    pub(super) fn from_account(variables: &[(String, String)]) -> Self {
        let values =
            variables.iter().filter(|(name, _)| NAMES.contains(&name.as_str())).flat_map(|(_, value)| forms(value));
        let mut all: Vec<String> = values.collect();
        // the longest first: what a part leaves of the whole says where it stood
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all.into())
    }

    /// What a store said, as it may be shown.
    pub(super) fn told(&self, error: &object_store::Error) -> ArchiveError {
        ArchiveError::Store(self.hidden(&said(error)))
    }

    /// Words of a store or of its library without these secrets.
    pub(super) fn hidden(&self, words: &str) -> String {
        let own = self.0.iter().fold(words.to_owned(), |words, secret| redact::secret(&words, secret).into_owned());
        // first those that are known: a URL in which one stands is then shown with its place
        text::one_line(&redact::signed(&redact::words(&own))).into_owned()
    }
}

/// A secret, and the parts of it that are one by themselves: the signature of a SAS, as it is sent and as it is meant, and the private
/// key of a service account.
fn forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut forms = vec![value.to_owned()];
    for pair in value.trim_start_matches('?').split('&').filter(|pair| pair.starts_with("sig=")) {
        forms.push(pair["sig=".len()..].to_owned());
        forms.extend(url::form_urlencoded::parse(pair.as_bytes()).map(|(_, meant)| meant.into_owned()));
    }
    if let Ok(account) = serde_json::from_str::<serde_json::Value>(value)
        && let Some(key) = account["private_key"].as_str()
    {
        forms.push(key.to_owned());
        forms.extend(key.lines().map(str::to_owned));
    }
    forms.retain(|form| form.len() >= redact::SHORTEST_SECRET && !form.starts_with("-----"));
    forms
}

/// An error with its causes. They repeat each other; the innermost is among them.
fn said(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use object_store::{aws::AmazonS3ConfigKey, azure::AzureConfigKey, gcp::GoogleConfigKey};

    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Secrets::from_account(&variables.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn every_name_of_a_secret_is_one_to_the_library() {
        for name in NAMES {
            let is_known = name.parse::<AmazonS3ConfigKey>().is_ok()
                || name.parse::<AzureConfigKey>().is_ok()
                || name.parse::<GoogleConfigKey>().is_ok();
            assert!(is_known, "{name}");
        }
    }

    #[test]
    fn secrets_alone_are_hidden_and_not_what_is_named_like_one() {
        for name in NAMES {
            let told = secrets(&[(name, "plantedvalue")]).hidden("no such thing: plantedvalue");
            assert_eq!(told, "no such thing: [key]", "{name}");
        }
        for name in [
            "aws_access_key_id",
            "aws_container_authorization_token_file",
            "aws_secret_name",
            "aws_sse_bucket_key_enabled",
            "aws_sse_kms_key_id",
            "aws_web_identity_token_file",
            "azure_fabric_token_service_url",
            "azure_federated_token_file",
            "azure_keyvault_name",
            "azure_keyvault_url",
            "azure_storage_account_name",
            "google_service_account_path",
        ] {
            let told = secrets(&[(name, "openvalue")]).hidden("no such thing: openvalue");
            assert_eq!(told, "no such thing: openvalue", "{name}");
        }
    }

    #[test]
    fn what_a_store_repeats_of_its_account_is_not_shown() {
        let account = secrets(&[
            ("azure_storage_sas_token", "?sv=2022-11-02&sp=rw&sig=plantedSig%2Babc%3D"),
            ("aws_session_token", "plantedsession0123"),
            (
                "google_service_account_key",
                r#"{"private_key": "-----BEGIN KEY-----\nplantedline0123\n-----END KEY-----\n"}"#,
            ),
            ("aws_region", "eu-central-1"),
            ("aws_web_identity_token_file", "/var/run/token"),
        ]);
        let body = "<Error><Message>Signature plantedSig+abc= did not match</Message><Q>?sp=rw&amp;sig=plantedSig%2Babc%3D</Q>\
                    <Token-0>plantedsession0123</Token-0></Error>\u{1b}[2J of eu-central-1, /var/run/token, plantedline0123";
        let error = || object_store::Error::Generic { store: "X", source: body.into() };
        let told = account.told(&error()).to_string();
        assert!(!told.contains("planted") && !told.contains('\u{1b}'), "{told}");
        assert!(told.contains("did not match") && told.contains("eu-central-1, /var/run/token"), "{told}");
        assert!(!format!("{account:?}").contains("planted"));
        // who knows no account hides what is known by its name
        let told = Secrets::default().told(&error()).to_string();
        assert!(told.contains("sig=***") && !told.contains('\u{1b}'), "{told}");
    }
}
