//! Whether a request is meant for this machine. A page of somebody else can make a browser of this machine ask a listener on loopback,
//! by a name of its own that leads to 127.0.0.1 (DNS rebinding): the names in `Host` and `Origin` give it away.

use axum::http::{
    HeaderName, Request,
    header::{HOST, ORIGIN},
};
use bench_proto::address::{is_page_of_this_machine, names_this_machine};

/// Whether every name that a request gives for this server, and for the page that it comes from, is one of this machine.
pub(super) fn is_of_this_machine<B>(request: &Request<B>) -> bool {
    let all = |name: HeaderName, is_good: fn(&str) -> bool| {
        request.headers().get_all(name).iter().all(|value| value.to_str().is_ok_and(is_good))
    };
    let named = request.headers().contains_key(HOST);
    let target = request.uri().authority().is_none_or(|authority| names_this_machine(authority.as_str()));
    named && target && all(HOST, names_this_machine) && all(ORIGIN, is_page_of_this_machine)
}
