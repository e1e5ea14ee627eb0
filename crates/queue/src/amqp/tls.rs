//! TLS of `amqps:` URLs. The machine's certificate authorities are trusted; the URL may name another one and a client
//! certificate, by the parameters that RabbitMQ's own clients use: `cacertfile`, `certfile`, `keyfile` (PEM files).

use lapin::tcp::{OwnedIdentity, OwnedTLSConfig};
use url::Url;

use crate::QueueError;

/// Largest certificate or key file that is read.
const LARGEST_FILE: u64 = 1 << 20;

/// Reads what the URL says about TLS.
pub(super) fn config(url: &str) -> Result<OwnedTLSConfig, QueueError> {
    // a URL that cannot be read is refused elsewhere, in words that do not hold its password
    let Ok(url) = Url::parse(url) else { return Ok(OwnedTLSConfig::default()) };
    let named = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, path)| path.into_owned());
    let (authority, certificate, key) = (named("cacertfile"), named("certfile"), named("keyfile"));
    if url.scheme() != "amqps" && (authority.is_some() || certificate.is_some() || key.is_some()) {
        return Err(QueueError::Setup("the queue URL names certificates, but is not encrypted: use amqps://".into()));
    }
    let cert_chain = match authority {
        Some(path) => Some(String::from_utf8(read("cacertfile", &path)?).map_err(|_| not_pem("cacertfile", &path))?),
        None => None,
    };
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => {
            Some(OwnedIdentity::PKCS8 { pem: read("certfile", &certificate)?, key: read("keyfile", &key)? })
        }
        (None, None) => None,
        _ => return Err(QueueError::Setup("the queue URL names certfile or keyfile alone: both are needed".into())),
    };
    Ok(OwnedTLSConfig { identity, cert_chain })
}

fn read(parameter: &str, path: &str) -> Result<Vec<u8>, QueueError> {
    let failed = |e: std::io::Error| QueueError::Setup(format!("{parameter} {path} of the queue URL: {e}").into());
    if std::fs::metadata(path).map_err(failed)?.len() > LARGEST_FILE {
        return Err(QueueError::Setup(format!("{parameter} {path} of the queue URL is larger than 1 MB").into()));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    if bytes.windows(11).any(|part| part == b"-----BEGIN ") { Ok(bytes) } else { Err(not_pem(parameter, path)) }
}

fn not_pem(parameter: &str, path: &str) -> QueueError {
    QueueError::Setup(format!("{parameter} {path} of the queue URL is no PEM file").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_in_the_url_and_checked_at_once() {
        let refused = |url: &str| config(url).expect_err("is refused").to_string();
        assert_eq!(config("amqps://u:p@h/v").expect("is fine"), OwnedTLSConfig::default());
        assert!(refused("amqps://u:secret@h/v?cacertfile=/nowhere/ca.pem").starts_with("cacertfile /nowhere/ca.pem"));
        assert!(refused("amqps://u:secret@h/v?certfile=/etc/hostname").contains("both are needed"));
        assert!(refused("amqps://u:secret@h/v?cacertfile=/etc/hostname").contains("no PEM file"));
        assert!(refused("amqp://u:secret@h/v?cacertfile=/x").contains("use amqps://"));
        assert!(!refused("amqps://u:secret@h/v?cacertfile=/nowhere").contains("secret"));
    }
}
