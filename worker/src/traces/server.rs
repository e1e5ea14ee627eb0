//! Where requests go, as steps store it and traces show it.

use bench_proto::server::ServerAddress;
use reqwest::Url;

/// The server that a URL names.
pub(crate) fn server_of(url: &Url) -> Option<ServerAddress> {
    let name = url.host_str()?.trim_matches(['[', ']']).to_owned();
    Some(ServerAddress { name, port: url.port_or_known_default()? })
}

/// The same for a URL that was checked before.
pub(crate) fn server_of_text(url: &str) -> Option<ServerAddress> {
    server_of(&Url::parse(url).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_its_name_and_port_and_nothing_secret() {
        for (url, shown) in [
            ("https://api.openai.com/v1", "api.openai.com:443"),
            ("http://localhost:8080/v1?api-version=1", "localhost:8080"),
            ("http://[::1]:8888", "[::1]:8888"),
            ("https://someone:secret@memory.example/sk-secret/v1?api_key=secret#secret", "memory.example:443"),
        ] {
            assert_eq!(server_of_text(url).expect("a server").to_string(), shown, "{url}");
        }
        for none in ["", "not a url", "unix:/run/memory.sock", "file:///etc/passwd"] {
            assert_eq!(server_of_text(none), None, "{none}");
        }
    }
}
