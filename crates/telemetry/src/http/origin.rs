//! Whether a request is meant for this machine. A page of somebody else can make a browser of this machine ask a listener on loopback,
//! by a name of its own that leads to 127.0.0.1 (DNS rebinding): the names in `Host` and `Origin` give it away.

use std::net::IpAddr;

use axum::http::{
    HeaderName, Request,
    header::{HOST, ORIGIN},
};

/// Whether every name that a request gives for this server, and for the page that it comes from, is one of this machine.
pub(super) fn is_of_this_machine<B>(request: &Request<B>) -> bool {
    let all = |name: HeaderName, is_good: fn(&str) -> bool| {
        request.headers().get_all(name).iter().all(|value| value.to_str().is_ok_and(is_good))
    };
    let named = request.headers().contains_key(HOST);
    let target = request.uri().authority().is_none_or(|authority| is_this_machine(authority.as_str()));
    named && target && all(HOST, is_this_machine) && all(ORIGIN, is_page_of_this_machine)
}

/// `scheme://host[:port]`; `null` is a page that hides where it comes from.
fn is_page_of_this_machine(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, authority)| is_this_machine(authority))
}

/// `host[:port]` where the host is `localhost` or an address of loopback.
fn is_this_machine(authority: &str) -> bool {
    let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) && (host.ends_with(']') || !host.contains(':')) => host,
        _ => authority,
    };
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    name == "localhost"
        || name.ends_with(".localhost")
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_are_told_from_others() {
        for ours in [
            "localhost",
            "LOCALHOST:8620",
            "localhost.",
            "x.localhost:1",
            "127.0.0.1:8620",
            "127.9.9.9",
            "[::1]:8620",
            "[::1]",
        ] {
            assert!(is_this_machine(ours), "{ours}");
            assert!(is_page_of_this_machine(&format!("http://{ours}")), "{ours}");
        }
        for theirs in [
            "",
            "evil.example",
            "evil.example:8620",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8620",
            "notlocalhost",
            "10.0.0.1:8620",
            "0.0.0.0:8620",
            "[::]:8620",
            "user@localhost",
        ] {
            assert!(!is_this_machine(theirs), "{theirs}");
            assert!(!is_page_of_this_machine(&format!("https://{theirs}")), "{theirs}");
        }
        assert!(!is_page_of_this_machine("null"));
    }
}
