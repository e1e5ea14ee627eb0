//! Whether a request is meant for a meter on loopback: a page of somebody else can make a browser of this machine ask here by a name of
//! its own (DNS rebinding). `Host` and `Origin` give it away.

use bench_proto::address::{host_of, names_this_machine};
use http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
};

/// Whether all names that a request gives for this server, and for the page that it comes from, are of this machine or are listed.
pub(crate) fn is_meant(headers: &HeaderMap, uri: &Uri, listed: &[String]) -> bool {
    let is_known = |authority: &str| is_ours(authority, listed);
    let is_page = |origin: &str| origin.split_once("://").is_some_and(|(_, authority)| is_known(authority));
    let all = |name, is_good: &dyn Fn(&str) -> bool| {
        headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(is_good))
    };
    let target = uri.authority().is_none_or(|authority| is_ours(authority.as_str(), listed));
    headers.contains_key(HOST) && target && all(HOST, &is_known) && all(ORIGIN, &is_page)
}

fn is_ours(authority: &str, listed: &[String]) -> bool {
    names_this_machine(authority) || listed.iter().any(|host| host.eq_ignore_ascii_case(host_of(authority)))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn meant(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).expect("a value"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).expect("a value"));
        }
        is_meant(&headers, &Uri::from_static("/m/r/v1/models"), &["host.docker.internal".to_owned()])
    }

    #[test]
    fn listed_names_and_those_of_this_machine_are_meant() {
        for ours in ["localhost:8620", "[::1]:8620", "host.docker.internal:1"] {
            assert!(meant(ours, None), "{ours}");
            assert!(meant(ours, Some(&format!("http://{ours}"))), "{ours}");
        }
        for theirs in ["", "evil.example", "localhost.evil.example", "host.docker.internal.evil.example:1"] {
            assert!(!meant(theirs, None), "{theirs}");
            assert!(!meant("localhost", Some(&format!("https://{theirs}"))), "{theirs}");
        }
        assert!(!meant("localhost", Some("null")));
        assert!(!is_meant(&HeaderMap::new(), &Uri::from_static("/"), &[]));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        assert!(!is_meant(&headers, &Uri::from_static("http://evil.example/m"), &[]));
    }
}
