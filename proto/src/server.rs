//! Where a server is that a step has called.

use std::fmt;

use serde::{Deserialize, Serialize};

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
}
