//! The network side of adapters: one request, no retries, TLS by default, bounded in time and size. Redirects and addresses
//! of private networks are refused unless the file allows them; loopback is allowed where the URL says so.

use std::{
    mem,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::spec::AdapterSpec;
use bench_proto::{
    address::is_public,
    failure::{Failure, LONGEST_RETRY_AFTER},
    json_bound::{self, TooMuchMemory},
    redact,
};
use reqwest::{
    Method, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER},
    redirect,
};

/// Code of a failure before anything was sent: the system is not there.
pub const UNREACHABLE: &str = "system_unreachable";
/// Code of a page for people where a reply was expected: something before the system answers in its place.
pub const NO_REPLY: &str = "system_no_reply";
/// Code of a response that is longer than may be, or takes more memory.
pub(super) const TOO_LONG: &str = "system_response_too_long";
/// Code of a response that is not what the file says.
pub(super) const SHAPE: &str = "system_shape";

/// Longest response in bytes when nothing is said.
const RESPONSE_BYTES: usize = 8 << 20;
/// The same whatever a file says: files come with runs from anywhere, and memory is this machine's.
const MOST_RESPONSE_BYTES: usize = 64 << 20;

/// Bytes that a response may take in memory for each byte that it may have: texts and lists of numbers take less, many small objects more.
const MEMORY_TIMES: u64 = 32;

/// What can be done about a response that is not read.
pub(super) const ASK_FOR_LESS: &str = "ask for less (a smaller k or page), leave vectors out of it, or raise limits.response_bytes in the file (up to 64 MiB)";

/// Longest response of a system, in bytes.
pub(super) fn response_bytes(spec: &AdapterSpec) -> usize {
    spec.limits.response_bytes.map_or(RESPONSE_BYTES, |bytes| bytes as usize).min(MOST_RESPONSE_BYTES)
}

/// Bytes that a response of at most so many bytes may take in memory. A file that says fewer than are usual bounds its bytes alone.
pub(super) fn response_memory(max_bytes: usize) -> u64 {
    (max_bytes.max(RESPONSE_BYTES) as u64).saturating_mul(MEMORY_TIMES)
}

/// Refuses a response that takes more memory than it may: a short one may take a hundred times its length.
pub(super) fn check_memory(body: &[u8], max_bytes: usize, what: &str) -> Result<(), Failure> {
    json_bound::check_memory(body, response_memory(max_bytes)).map_err(|error| too_much(error, what))
}

/// A response that takes more memory than it may.
pub(super) fn too_much(error: TooMuchMemory, what: &str) -> Failure {
    Failure::permanent(TOO_LONG, format!("{what}: the response is not read: {error}: {ASK_FOR_LESS}"))
}

/// A response of more bytes than it may have.
pub(super) fn too_long(max_bytes: usize) -> Failure {
    Failure::permanent(TOO_LONG, format!("the response is longer than {max_bytes} bytes: {ASK_FOR_LESS}"))
}

/// Clients of the process: one that keeps out of private networks, one that may enter them.
#[derive(Clone, Default)]
pub struct SystemHttp(Arc<[OnceLock<Result<reqwest::Client, String>>; 2]>);

impl SystemHttp {
    pub(super) fn client(&self, private: bool) -> Result<reqwest::Client, Failure> {
        let client = self.0[usize::from(private)].get_or_init(|| build(private).map_err(|e| e.to_string()));
        client.clone().map_err(|e| Failure::terminal("http_client", format!("cannot set up HTTP: {e}")))
    }
}

fn build(private: bool) -> reqwest::Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        .http1_only()
        // servers of every kind are on the other side: some close idle connections after 5 s
        .pool_idle_timeout(Duration::from_secs(4))
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .user_agent(concat!("bench-coord/", env!("CARGO_PKG_VERSION")));
    if private { builder.build() } else { builder.dns_resolver(Arc::new(PublicOnly)).build() }
}

/// Resolves names to public addresses only; `localhost` is this machine.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(
                    |address| if host == "localhost" { address.ip().is_loopback() } else { is_public(address.ip()) },
                )
                .collect();
            if allowed.is_empty() {
                return Err(format!("its address {PRIVATE}").into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

const PRIVATE: &str = "is in a private network: write `allow: [private_addresses]` into the adapter when that is meant";

/// Checks what a base URL may be before anything is sent. `written` is how it stands in the file: what was filled in may be a
/// secret, whatever it was meant to be, and stands in no message.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_url(
    text: &str,
    written: &str,
    private: bool,
    has_key: bool,
    plain_text_key: bool,
) -> Result<Url, String> {
    let shown = || if text == written { redact::url(text) } else { written.into() };
    let url = Url::parse(text).map_err(|e| format!("url: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("url '{}' must begin with http:// or https://", shown()));
    }
    if !url.username().is_empty() || url.password().is_some() || redact::is_misread(text) {
        return Err("url must not hold a password: name the secret under `auth`".to_owned());
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let ip: Option<IpAddr> = host.parse().ok();
    let local = host == "localhost" || ip.is_some_and(|ip| ip.is_loopback());
    if let Some(ip) = ip
        && !local
        && !private
        && !is_public(ip)
    {
        return Err(format!("{} {PRIVATE}", if text == written { host.as_str() } else { written }));
    }
    if has_key && url.scheme() == "http" && !local && !plain_text_key {
        return Err(format!(
            "a key would go to {} without TLS: use https://, or write `allow: [plain_text_key]` into the adapter",
            if text == written { host.as_str() } else { written }
        ));
    }
    Ok(url)
}

/// A request, ready to be sent.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    pub(super) timeout: Duration,
    pub(super) max_bytes: usize,
    pub(super) redirects: bool,
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// How many bytes it might have had.
    pub(super) max_bytes: usize,
}

impl Response {
    /// Whether it holds server-sent events.
    pub(super) fn is_events(&self) -> bool {
        let kind = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        kind.starts_with("text/event-stream")
    }

    /// Milliseconds of its `Retry-After`, when it gives seconds, as far as they are believed.
    pub(super) fn retry_after_ms(&self) -> Option<u64> {
        let seconds: u64 = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Some(seconds.min(LONGEST_RETRY_AFTER.as_secs()) * 1000)
    }
}

/// Most redirects that are followed.
const MAX_REDIRECTS: usize = 3;

/// Sends a request once and reads its response; `what` names it in messages.
pub(super) async fn send(client: &reqwest::Client, request: Request, what: &str) -> Result<Response, Failure> {
    let (timeout, bounded) = (request.timeout, exchange(client, request, what));
    match tokio::time::timeout(timeout, bounded).await {
        Ok(result) => result,
        Err(_) => Err(Failure::transient(
            "system_timeout",
            format!("{what}: no complete response within {}", super::time::show(timeout)),
        )),
    }
}

async fn exchange(client: &reqwest::Client, request: Request, what: &str) -> Result<Response, Failure> {
    let max_bytes = request.max_bytes;
    read_whole(answered(client, request, what).await?, max_bytes, what).await
}

/// Sends a request; its response has a body that is still to be read.
pub(super) async fn answered(
    client: &reqwest::Client,
    request: Request,
    what: &str,
) -> Result<reqwest::Response, Failure> {
    let Request { mut method, mut url, mut headers, mut body, redirects, .. } = request;
    for _ in 0..=MAX_REDIRECTS {
        let mut sent = reqwest::Request::new(method.clone(), url.clone());
        // copied only where it may be sent again
        let (with, carried) =
            if redirects { (headers.clone(), body.clone()) } else { (mem::take(&mut headers), body.take()) };
        *sent.headers_mut() = with;
        *sent.body_mut() = carried.map(Into::into);
        let response = client.execute(sent).await.map_err(|error| network(&error, what))?;
        let status = response.status();
        if status.is_redirection() && status.as_u16() != 304 {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default().to_owned();
            let shown = redact::text(&to);
            if !redirects {
                return Err(Failure::permanent(
                    "system_redirect",
                    format!(
                        "{what}: redirected to '{shown}': use that address, or write `allow: [redirects]` into the adapter"
                    ),
                ));
            }
            let next = url.join(&to).ok().filter(|next| next.origin() == url.origin()).ok_or_else(|| {
                Failure::permanent("system_redirect", format!("{what}: redirected to another server: '{shown}'"))
            })?;
            url = next;
            if status.as_u16() == 303 {
                (method, body) = (Method::GET, None);
            }
            continue;
        }
        return Ok(response);
    }
    Err(Failure::permanent("system_redirect", format!("{what}: more than {MAX_REDIRECTS} redirects")))
}

/// Reads all of a response.
pub(super) async fn read_whole(response: reqwest::Response, max_bytes: usize, what: &str) -> Result<Response, Failure> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = read_body(response, max_bytes, what).await?;
    Ok(Response { status, headers, body, max_bytes })
}

async fn read_body(mut response: reqwest::Response, max_bytes: usize, what: &str) -> Result<Vec<u8>, Failure> {
    let too_long = || {
        let failure = too_long(max_bytes);
        Failure { message: format!("{what}: {}", failure.message), ..failure }
    };
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| network(&error, what))? {
        if body.len() + chunk.len() > max_bytes {
            return Err(too_long());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What a failure on the way means.
pub(super) fn network(error: &reqwest::Error, what: &str) -> Failure {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let cause = cause.to_string();
    if cause.contains(PRIVATE) {
        return Failure::permanent("system_address", format!("{what}: {cause}"));
    }
    if error.is_connect() {
        // the path and what follows may hold what was filled in
        let to = error.url().map(|url| format!(" to {}", url.origin().ascii_serialization())).unwrap_or_default();
        return Failure::transient(UNREACHABLE, format!("{what}: cannot connect{to}: {cause}"));
    }
    if error.is_timeout() {
        return Failure::transient("system_timeout", format!("{what}: {cause}"));
    }
    Failure::transient("system_connection", format!("{what}: the connection broke: {cause}"))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use bench_testkit::raw_request::{assert_each_header_once, hear_one};

    #[test]
    fn private_networks_need_a_word_in_the_file() {
        let check = |url: &str| check_url(url, url, false, false, false).map(|url| url.to_string());
        for fine in ["http://127.0.0.1:8321/", "http://localhost:1/", "https://api.example.org/", "http://[::1]:1/"] {
            assert_eq!(check(fine).as_deref(), Ok(fine));
        }
        for private in [
            "http://10.0.0.1",
            "http://192.168.1.1",
            "http://169.254.169.254",
            "http://[fd00::1]",
            "http://[::ffff:10.0.0.1]",
            "http://0.0.0.0",
            "http://100.64.0.1",
            "http://198.18.0.1",
            "http://[64:ff9b::10.0.0.1]",
        ] {
            assert!(check(private).is_err_and(|e| e.contains("private_addresses")), "{private}");
            assert!(check_url(private, private, true, false, false).is_ok(), "{private}");
        }
        for wrong in ["file:///etc/passwd", "ftp://x", "http://", "nonsense", "http://user:pass@localhost"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_filled_into_a_url_is_in_no_message() {
        for (filled, written) in [
            ("sqlite:opensesame1234", "sqlite:${env:K}"),
            ("file:/opensesame1234", "file:/${env:K}"),
            ("opensesame1234://x", "${env:K}://x"),
            ("opensesame1234", "${env:K}"),
            ("http://opensesame1234.example", "http://${env:K}.example"),
            ("http://u:opensesame1234@a.example", "http://u:${env:K}@a.example"),
        ] {
            let error = check_url(filled, written, false, true, false).expect_err("is refused");
            assert!(!error.contains("opensesame"), "{error}");
        }
    }

    #[tokio::test]
    async fn each_header_is_sent_once() {
        let (address, heard) = hear_one().await;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(reqwest::header::AUTHORIZATION, HeaderValue::from_static("Bearer k"));
        let request = Request {
            method: Method::POST,
            url: Url::parse(&format!("http://{address}/search")).expect("a URL"),
            headers,
            body: Some(b"{}".to_vec()),
            timeout: Duration::from_secs(5),
            max_bytes: 100,
            redirects: false,
        };
        let client = SystemHttp::default().client(true).expect("a client");
        send(&client, request, "search").await.expect("a response");
        assert_each_header_once(&heard.await.expect("no panic"));
    }

    #[tokio::test]
    async fn who_cannot_be_reached_is_named_without_what_was_filled_in() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let request = Request {
            method: Method::POST,
            url: Url::parse(&format!("http://{closed}/banks/opensesame?key=opensesame")).expect("a URL"),
            headers: HeaderMap::new(),
            body: None,
            timeout: Duration::from_secs(5),
            max_bytes: 100,
            redirects: false,
        };
        let client = SystemHttp::default().client(true).expect("a client");
        let failure = send(&client, request, "retain").await.expect_err("nobody listens");
        let said = &failure.message;
        assert_eq!(failure.code, UNREACHABLE);
        assert!(said.starts_with(&format!("retain: cannot connect to http://{closed}: ")), "{said}");
        assert!(!said.contains("opensesame"), "{said}");
    }

    #[test]
    fn a_file_chooses_no_response_that_fills_the_memory() {
        let of =
            |limits: &str| response_bytes(&super::super::file::parse(&format!("name: mine\n{limits}")).expect("reads"));
        assert_eq!(of(""), 8 << 20);
        assert_eq!(of("limits: {response_bytes: 4096}"), 4096);
        assert_eq!(of("limits: {response_bytes: 4294967295}"), 64 << 20);
    }

    #[test]
    fn replies_with_vectors_are_read_and_many_small_objects_are_not() {
        let vectors = format!("[{}0]", "-0.1234567,".repeat(614_400));
        let objects = |bytes: usize| format!("[{}0]", "{\"\":0},".repeat(bytes / 7));
        assert!(vectors.len() > 6 << 20 && vectors.len() < RESPONSE_BYTES);
        for max_bytes in [4_096, RESPONSE_BYTES, MOST_RESPONSE_BYTES] {
            assert!(check_memory(vectors.as_bytes(), max_bytes, "recall").is_ok(), "{max_bytes}");
        }
        let bomb = objects(RESPONSE_BYTES - 2);
        let refused = check_memory(bomb.as_bytes(), RESPONSE_BYTES, "recall").expect_err("is refused");
        assert_eq!(refused.code, TOO_LONG);
        let said = &refused.message;
        assert!(said.starts_with("recall: ") && said.contains("at most 256 are given to it"), "{said}");
        assert!(said.contains("a smaller k") && said.contains("limits.response_bytes"), "{said}");
        // more is given to it where the file says so
        assert!(check_memory(bomb.as_bytes(), 5 * RESPONSE_BYTES, "recall").is_ok());
    }

    #[test]
    fn a_key_needs_tls_outside_this_machine() {
        let check = |url: &str, plain_text_key| check_url(url, url, false, true, plain_text_key);
        assert!(check("http://api.example.org", false).is_err_and(|e| e.contains("without TLS")));
        assert!(check("http://api.example.org", true).is_ok());
        assert!(check("https://api.example.org", false).is_ok());
        assert!(check("http://127.0.0.1:9", false).is_ok());
    }
}
