//! Where a server is that a step has called.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// Name and port of a server as its URL gives them (OpenTelemetry's `server.address` and `server.port`), and nothing else of the URL:
/// user, path and query may hold keys. Stored as `[name, port]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(String, u16)", into = "(String, u16)")]
pub struct ServerAddress {
    /// Domain name or IP address, an IPv6 address without brackets.
    pub name: String,
    /// Port; the scheme's own where the URL names none.
    pub port: u16,
}

impl ServerAddress {
    /// The server that a URL names; `None` for one without a host, or without a port that its scheme knows.
    #[must_use]
    pub fn named_by(url: &Url) -> Option<Self> {
        let name = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some(Self { name, port: url.port_or_known_default()? })
    }

    /// Host and port that the text of a URL names.
    #[must_use]
    pub fn named_in(url: &str) -> Option<Self> {
        Self::named_by(&Url::parse(url).ok()?)
    }
}

impl From<(String, u16)> for ServerAddress {
    fn from((name, port): (String, u16)) -> Self {
        Self { name, port }
    }
}

impl From<ServerAddress> for (String, u16) {
    fn from(server: ServerAddress) -> Self {
        (server.name, server.port)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_stored_as_a_pair_and_shown_as_in_urls() {
        for (name, shown) in
            [("api.openai.com", "api.openai.com:443"), ("10.0.0.3", "10.0.0.3:443"), ("::1", "[::1]:443")]
        {
            let server = ServerAddress { name: name.into(), port: 443 };
            let stored = serde_json::to_string(&server).expect("serialises");
            assert_eq!(stored, format!("[\"{name}\",443]"));
            assert_eq!(serde_json::from_str::<ServerAddress>(&stored).expect("is read"), server);
            assert_eq!(server.to_string(), shown);
        }
    }

    #[test]
    fn a_server_is_its_name_and_port_and_nothing_secret() {
        for (url, shown) in [
            ("https://api.openai.com/v1", "api.openai.com:443"),
            ("http://localhost:8080/v1?api-version=1", "localhost:8080"),
            ("http://[::1]:8888", "[::1]:8888"),
            ("https://someone:secret@memory.example/sk-secret/v1?api_key=secret#secret", "memory.example:443"),
        ] {
            assert_eq!(ServerAddress::named_in(url).expect("a server").to_string(), shown, "{url}");
        }
        for none in ["", "not a url", "unix:/run/memory.sock", "file:///etc/passwd"] {
            assert_eq!(ServerAddress::named_in(none), None, "{none}");
        }
    }
}
