//! Downloads a dataset into the cache: bounded by the manifest's size, checked by its sha256, there whole or not at all.

use std::{path::Path, time::Duration};

use reqwest::{
    Response, StatusCode, Version,
    header::{ACCEPT_RANGES, CONTENT_RANGE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE, TRANSFER_ENCODING},
};

use crate::{
    DatasetError, Manifest, OnProgress, SourceFile,
    incoming::{Expected, Incoming, Problem},
};

/// No byte for this long is a failure: downloads are small, a hanging one is to be reported.
const SILENCE: Duration = Duration::from_secs(30);

/// How often a download goes on after a cut before it fails; what has arrived stays for the next one.
const MOST_CUTS: u32 = 5;
/// How long it waits before, times the number of cuts so far.
const PAUSE: Duration = Duration::from_millis(200);

/// Downloads a published file to a place, whatever is there already.
///
/// Works with and without a runtime around it: the transfer has a thread and a runtime of its own.
///
/// # Errors
/// When the file cannot be had or is not the published one. At most what the next try can go on with is left behind then.
pub(crate) fn fetch(
    manifest: &Manifest,
    file: &SourceFile,
    path: &Path,
    on_progress: OnProgress<'_>,
) -> Result<(), DatasetError> {
    let url = manifest.url_of(file);
    fetch_from(&url, Expected::of_file(file, &url), path, on_progress)
}

/// Downloads any file to a place; what has arrived of it before a cut is gone on with by the next try. `sha256`: what it must have.
///
/// # Errors
/// When the file cannot be had or is another one.
pub fn download(url: &str, sha256: Option<&str>, path: &Path, on_progress: OnProgress<'_>) -> Result<(), DatasetError> {
    fetch_from(url, Expected { bytes: None, sha256 }, path, on_progress)
}

/// As [`fetch`], from any URL.
fn fetch_from(url: &str, expected: Expected<'_>, path: &Path, on_progress: OnProgress<'_>) -> Result<(), DatasetError> {
    let download = || -> Result<(), Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(transfer(url, expected, path, on_progress))
    };
    let outcome = std::thread::scope(|scope| scope.spawn(download).join());
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(problem)) => Err(problem.at(url, path)),
        Err(_) => Err(DatasetError::Download { url: url.to_owned(), reason: "the transfer panicked".into() }),
    }
}

impl From<reqwest::Error> for Problem {
    fn from(error: reqwest::Error) -> Self {
        // reqwest's own text ends before the cause, which is the part that helps; the URL is in our message already
        let error = error.without_url();
        let mut reason = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            reason.push_str(": ");
            reason.push_str(&inner.to_string());
            cause = inner.source();
        }
        Self::Other(reason.into())
    }
}

/// A client for a file. What was asked for by TLS is not taken from a place without it, wherever a redirect points.
fn client_for(url: &str) -> reqwest::Result<reqwest::Client> {
    let by_tls = url.starts_with("https://");
    reqwest::Client::builder().https_only(by_tls).connect_timeout(SILENCE).read_timeout(SILENCE).build()
}

async fn transfer(url: &str, expected: Expected<'_>, path: &Path, on_progress: OnProgress<'_>) -> Result<(), Problem> {
    let client = client_for(url)?;
    let mut incoming = Incoming::resumed(path, expected)?;
    let total = expected.bytes;
    on_progress(incoming.received(), total);
    let mut cuts = 0;
    loop {
        let received = receive(&client, url, &mut incoming, &|received| on_progress(received, total)).await?;
        // a server may also end a part in good order before the file ends
        if received.is_ok() && incoming.is_complete() != Some(false) {
            return incoming.keep();
        }
        cuts += 1;
        if cuts > MOST_CUTS || incoming.goes_on_from().is_none() {
            // where nothing was cut, what is missing is said by whoever keeps it
            return received.map_err(Problem::from).and_then(|()| incoming.keep());
        }
        tokio::time::sleep(PAUSE * cuts).await;
    }
}

/// One request for what is missing. A connection that ends too early is no end of the download, so it is told apart.
async fn receive(
    client: &reqwest::Client,
    url: &str,
    incoming: &mut Incoming<'_>,
    on_progress: &(dyn Fn(u64) + Sync),
) -> Result<Result<(), reqwest::Error>, Problem> {
    if incoming.is_complete() == Some(true) {
        return Ok(Ok(()));
    }
    let mut request = client.get(url);
    let from = incoming.goes_on_from().map(|(from, tag)| (from, tag.to_owned()));
    if let Some((from, tag)) = &from {
        // another version comes whole, whatever part is asked for
        request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, tag);
    }
    let mut response = match request.send().await {
        Ok(response) => response,
        Err(error) => return Ok(Err(error)),
    };
    let part = Part::from_response(&response);
    let mut total = response.content_length();
    match (response.status(), &from) {
        (StatusCode::PARTIAL_CONTENT, Some((from, _))) if part.as_ref().is_some_and(|part| part.from == *from) => {
            // what is announced of a part is no more than the part
            let of_file = part.and_then(|part| part.total);
            total = of_file.or_else(|| total.map(|rest| rest.saturating_add(*from)));
        }
        (StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
            incoming.restart(None)?;
            return Box::pin(receive(client, url, incoming, on_progress)).await;
        }
        (StatusCode::OK, _) => incoming.restart(tag(&response).as_deref())?,
        (status, _) => return Err(Problem::Other(format!("the server answered {status}").into())),
    }
    if total.is_none() && !incoming.is_known() && !has_end(&response) {
        let reason = "the server tells neither the length of the file nor where it ends, so that half of it would look like the \
                      whole: give its sha256, or take it from another server";
        return Err(Problem::Other(reason.into()));
    }
    incoming.announced(total)?;
    on_progress(incoming.received());
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => incoming.write(&chunk)?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
        on_progress(incoming.received());
    }
}

/// Whether a reply of unknown length has an end of its own, and does not just end where the connection does.
fn has_end(response: &Response) -> bool {
    let coding = response.headers().get(TRANSFER_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    response.version() >= Version::HTTP_2 || coding.to_ascii_lowercase().contains("chunked")
}

/// Which part of a file a reply holds.
struct Part {
    from: u64,
    /// Bytes of the file; none where the server does not tell.
    total: Option<u64>,
}

impl Part {
    /// By its header `bytes 7-17/18`, or `bytes 7-17/*`.
    fn from_response(response: &Response) -> Option<Self> {
        let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
        let (from, rest) = range.strip_prefix("bytes ")?.split_once('-')?;
        let total = rest.split_once('/').and_then(|(_, total)| total.trim().parse().ok());
        Some(Self { from: from.trim().parse().ok()?, total })
    }
}

/// What tells the version of a file exactly: its strong entity tag, else when it was changed last.
fn tag(response: &Response) -> Option<String> {
    let header = |name| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let strong = header(ETAG).filter(|tag| !tag.starts_with("W/"));
    let accepts = header(ACCEPT_RANGES).is_none_or(|accepted| accepted != "none");
    strong.or_else(|| header(LAST_MODIFIED)).filter(|_| accepts)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead, BufReader, Write as _},
        net::TcpListener,
        path::Path,
        sync::Mutex,
        thread::JoinHandle,
    };

    use super::*;
    use crate::checksum;

    const BODY: &[u8] = b"the published file";

    fn published(sha256: &str) -> Expected<'_> {
        Expected { bytes: Some(BODY.len() as u64), sha256: Some(sha256) }
    }

    /// Answers one request with these bytes and closes; returns the URL.
    fn serve(reply: Vec<u8>) -> String {
        serve_all(vec![reply])
    }

    /// Answers one request after the other.
    fn serve_all(replies: Vec<Vec<u8>>) -> String {
        let (listener, url) = listen();
        std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, _) = listener.accept().expect("a client");
                let lines = BufReader::new(stream.try_clone().expect("second handle")).lines();
                for line in lines {
                    if line.expect("request line").is_empty() {
                        break;
                    }
                }
                // a client that refuses the reply may close early
                let _ = stream.write_all(&reply);
            }
        });
        url
    }

    fn reply(status: &str, length: Option<usize>, body: &[u8]) -> Vec<u8> {
        let length = length.map_or(String::new(), |length| format!("content-length: {length}\r\n"));
        let mut reply = format!("HTTP/1.1 {status}\r\n{length}connection: close\r\n\r\n").into_bytes();
        reply.extend_from_slice(body);
        reply
    }

    /// Files by name.
    type Files = Vec<(String, Vec<u8>)>;

    /// Runs a download against a reply: the error's text (if any) and what is in the folder afterwards.
    fn run(reply: Vec<u8>) -> (Result<(), String>, Files) {
        let url = serve(reply);
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("set").join("file.json");
        let outcome = fetch_from(&url, published(&checksum::of_bytes(BODY)), &path, &|_, _| ());
        let folder = fs::read_dir(root.path().join("set"));
        let files = folder.into_iter().flatten().map(|entry| {
            let entry = entry.expect("entry");
            (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("read"))
        });
        (outcome.map_err(|error| error.to_string().replace(&url, "URL")), files.collect())
    }

    #[test]
    fn a_good_file_is_kept_under_its_name_only() {
        let (outcome, files) = run(reply("200 OK", Some(BODY.len()), BODY));
        outcome.expect("download");
        assert_eq!(files, [("file.json".to_owned(), BODY.to_vec())]);
        // without an announced length too
        let (outcome, files) = run(reply("200 OK", None, BODY));
        outcome.expect("download");
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn what_was_asked_for_by_tls_is_taken_from_nowhere_else() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let asked = |of: &str| {
            let plain = serve(reply("200 OK", Some(BODY.len()), BODY));
            let client = client_for(of).expect("a client");
            let status =
                runtime.block_on(async { client.get(plain).send().await.map(|reply| reply.status().as_u16()) });
            status.map_err(|error| error.is_builder())
        };
        assert_eq!(asked("http://mem.example/f"), Ok(200));
        assert_eq!(asked("https://mem.example/f"), Err(true), "it is not asked at all");
    }

    #[test]
    fn nothing_is_kept_of_a_bad_reply() {
        let cases: [(&str, Vec<u8>, &str); 6] = [
            ("404", reply("404 Not Found", Some(4), b"gone"), "the server answered 404 Not Found"),
            ("truncated", reply("200 OK", Some(BODY.len()), &BODY[..7]), "error"),
            ("short", reply("200 OK", Some(7), &BODY[..7]), "only 7 of 18 bytes arrived"),
            ("announced too large", reply("200 OK", Some(19), b"the published file!"), "larger than the published 18"),
            ("too large", reply("200 OK", None, &BODY.repeat(1000)), "larger than the published 18"),
            ("other content", reply("200 OK", Some(18), b"The published file"), "sha256 is "),
        ];
        for (case, reply, expected) in cases {
            let (outcome, files) = run(reply);
            let error = outcome.expect_err(case);
            assert!(error.starts_with("download of URL failed: ") && error.contains(expected), "{case}: {error}");
            assert!(error.contains("--dataset-path"), "{case}: {error}");
            assert_eq!(files, [], "{case}");
        }
    }

    #[test]
    fn an_earlier_file_survives_a_failed_download() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("file.json");
        fs::write(&path, "earlier").expect("write");
        let url = serve(reply("200 OK", Some(18), b"The published file"));
        fetch_from(&url, published(&checksum::of_bytes(BODY)), &path, &|_, _| ()).expect_err("other content");
        assert_eq!(fs::read(&path).expect("read"), b"earlier");
    }

    #[test]
    fn nobody_listening_is_said_with_its_cause() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/file", listener.local_addr().expect("address"));
        drop(listener);
        let root = tempfile::tempdir().expect("temporary folder");
        let error =
            fetch_from(&url, published(""), &root.path().join("f"), &|_, _| ()).expect_err("refused").to_string();
        assert!(error.to_lowercase().contains("connection refused"), "{error}");
    }

    #[test]
    fn progress_grows_to_the_size() {
        let seen = Mutex::new(Vec::new());
        let url = serve(reply("200 OK", Some(BODY.len()), BODY));
        let root = tempfile::tempdir().expect("temporary folder");
        let note = |received, total| seen.lock().expect("no panic inside").push((received, total));
        fetch_from(&url, published(&checksum::of_bytes(BODY)), &root.path().join("f"), &note).expect("download");
        let seen = seen.into_inner().expect("no panic inside");
        assert_eq!((seen[0], seen[seen.len() - 1]), ((0, Some(18)), (18, Some(18))));
        assert!(seen.is_sorted());
    }

    /// A server of one file that knows parts, and cuts each of its replies but the last after so many bytes; the headers that it
    /// was sent.
    fn serve_cut(
        listener: TcpListener,
        body: &'static [u8],
        tag: &'static str,
        cuts: &[usize],
    ) -> JoinHandle<Vec<String>> {
        let cuts = cuts.to_vec();
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            for most in cuts.into_iter().chain([usize::MAX]) {
                let (mut stream, _) = listener.accept().expect("a client");
                let lines = BufReader::new(stream.try_clone().expect("second handle")).lines();
                let request: Vec<String> =
                    lines.map(|line| line.expect("a line")).take_while(|l| !l.is_empty()).collect();
                let header = |name: &str| request.iter().find_map(|line| line.strip_prefix(name));
                let from = header("range: bytes=").and_then(|range| range.trim_end_matches('-').parse::<usize>().ok());
                let from = from.filter(|_| header("if-range: ") == Some(tag));
                let rest = &body[from.unwrap_or(0)..];
                let (status, range) = match from {
                    Some(from) => (
                        "206 Partial Content",
                        format!("content-range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len()),
                    ),
                    None => ("200 OK", String::new()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\netag: {tag}\r\n{range}content-length: {}\r\nconnection: close\r\n\r\n",
                    rest.len()
                );
                stream.write_all(head.as_bytes()).expect("a client");
                stream.write_all(&rest[..rest.len().min(most)]).expect("a client");
                seen.push(header("range: ").unwrap_or("whole").to_owned());
            }
            seen
        })
    }

    fn listen() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/file", listener.local_addr().expect("address"));
        (listener, url)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_download_goes_on_after_cuts() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("f");
        let (listener, url) = listen();
        let server = serve_cut(listener, BODY, "\"v1\"", &[5, 4]);
        fetch_from(&url, published(&checksum::of_bytes(BODY)), &path, &|_, _| ()).expect("download");
        assert_eq!(server.join().expect("served"), ["whole", "bytes=5-", "bytes=9-"]);
        assert_eq!((fs::read(&path).expect("read"), names(root.path())), (BODY.to_vec(), vec!["f".to_owned()]));
    }

    /// A process that ends, or gives up, leaves what has arrived to the next one.
    #[test]
    fn the_next_download_goes_on_where_one_gave_up() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("f");
        let sha256 = checksum::of_bytes(BODY);
        let reply = [b"HTTP/1.1 200 OK\r\netag: \"v1\"\r\ncontent-length: 18\r\nconnection: close\r\n\r\n", &BODY[..7]]
            .concat();
        fetch_from(&serve(reply), published(&sha256), &path, &|_, _| ()).expect_err("nobody answers any more");
        assert_eq!(names(root.path()), ["f.partial", "f.partial.tag"]);
        let (listener, url) = listen();
        let server = serve_cut(listener, BODY, "\"v1\"", &[]);
        let first = Mutex::new(None);
        let note = |received, _| {
            first.lock().expect("no panic inside").get_or_insert(received);
        };
        fetch_from(&url, published(&sha256), &path, &note).expect("download");
        assert_eq!(
            (server.join().expect("served"), *first.lock().expect("no panic inside")),
            (vec!["bytes=7-".to_owned()], Some(7))
        );
        assert_eq!((fs::read(&path).expect("read"), names(root.path())), (BODY.to_vec(), vec!["f".to_owned()]));
    }

    /// Replies that end in good order before the file ends, of a file of which nothing was known.
    #[test]
    fn a_part_that_ends_early_is_no_end_of_the_file() {
        let part = |from: usize, until: usize, total: &str| {
            let range = format!("content-range: bytes {from}-{}/{total}", until - 1);
            let head = format!("206 Partial Content\r\netag: \"v1\"\r\n{range}");
            reply(&head, Some(until - from), &BODY[from..until])
        };
        let fetched = |replies: Vec<Vec<u8>>| {
            let root = tempfile::tempdir().expect("temporary folder");
            let path = root.path().join("f");
            fs::write(root.path().join("f.partial"), &BODY[..5]).expect("write");
            fs::write(root.path().join("f.partial.tag"), "\"v1\"").expect("write");
            let outcome = fetch_from(&serve_all(replies), Expected::default(), &path, &|_, _| ());
            (outcome.map_err(|error| error.to_string()), fs::read(&path).ok())
        };
        let (outcome, file) = fetched(vec![part(5, 9, "18"), part(9, 17, "18"), part(17, 18, "18")]);
        outcome.expect("download");
        assert_eq!(file.as_deref(), Some(BODY), "it goes on where the part ended");
        let (outcome, file) = fetched(vec![part(5, 18, "*")]);
        outcome.expect("download");
        assert_eq!(file.as_deref(), Some(BODY), "where the total is not told, the part is the rest");
        // always the same byte more, never the whole
        let replies = (5..12).map(|from| part(from, from + 1, "18")).collect();
        let (outcome, file) = fetched(replies);
        let error = outcome.expect_err("cut off");
        assert!(error.contains("only 11 of 18 bytes arrived"), "{error}");
        assert_eq!(file, None);
    }

    #[test]
    fn a_size_without_a_checksum_is_held_to() {
        for (body, expected) in [(&BODY[..7], "only 7 of 18 bytes"), (&BODY.repeat(2), "larger than the published 18")]
        {
            let root = tempfile::tempdir().expect("temporary folder");
            let url = serve(reply("200 OK", None, body));
            let known = Expected { bytes: Some(18), sha256: None };
            let error = fetch_from(&url, known, &root.path().join("f"), &|_, _| ()).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(names(root.path()), Vec::<String>::new());
        }
    }

    #[test]
    fn a_file_of_which_nothing_is_known_needs_an_end() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("f");
        let url = serve(reply("200 OK", None, &BODY[..7]));
        let error = download(&url, None, &path, &|_, _| ()).expect_err("it may be half of it").to_string();
        assert!(error.contains("neither the length of the file nor where it ends"), "{error}");
        assert_eq!(names(root.path()), Vec::<String>::new());
        let chunked =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nall\r\n0\r\n\r\n";
        download(&serve(chunked.to_vec()), None, &path, &|_, _| ()).expect("it ends");
        assert_eq!(fs::read(&path).expect("read"), b"all");
    }

    #[test]
    fn a_file_that_changed_starts_anew() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("f");
        fs::write(root.path().join("f.partial"), "another").expect("write");
        fs::write(root.path().join("f.partial.tag"), "\"v0\"").expect("write");
        let (listener, url) = listen();
        let server = serve_cut(listener, BODY, "\"v1\"", &[3]);
        fetch_from(&url, published(&checksum::of_bytes(BODY)), &path, &|_, _| ()).expect("download");
        assert_eq!(server.join().expect("served"), ["bytes=7-", "bytes=3-"]);
        assert_eq!((fs::read(&path).expect("read"), names(root.path())), (BODY.to_vec(), vec!["f".to_owned()]));
    }

    /// A part that is no part of the file under the same tag costs one download, and is gone.
    #[test]
    fn a_wrong_part_is_found_by_the_checksum() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("f");
        fs::write(root.path().join("f.partial"), "another").expect("write");
        fs::write(root.path().join("f.partial.tag"), "\"v1\"").expect("write");
        let (listener, url) = listen();
        let server = serve_cut(listener, BODY, "\"v1\"", &[]);
        let error = fetch_from(&url, published(&checksum::of_bytes(BODY)), &path, &|_, _| ()).expect_err("wrong");
        assert!(error.to_string().contains("sha256 is "), "{error}");
        assert_eq!(server.join().expect("served"), ["bytes=7-"]);
        assert_eq!(names(root.path()), Vec::<String>::new());
    }

    #[test]
    fn who_comes_second_downloads_apart() {
        let root = tempfile::tempdir().expect("temporary folder");
        let path = root.path().join("f");
        let mut first = Incoming::resumed(&path, Expected { bytes: Some(18), sha256: None }).ok().expect("starts");
        first.restart(Some("\"v1\"")).ok().expect("starts");
        first.write(&BODY[..3]).ok().expect("writes");
        let url = serve(reply("200 OK", Some(BODY.len()), BODY));
        fetch_from(&url, published(&checksum::of_bytes(BODY)), &path, &|_, _| ()).expect("download");
        first.write(&BODY[3..]).ok().expect("goes on");
        first.keep().ok().expect("keeps");
        assert_eq!((fs::read(&path).expect("read"), names(root.path())), (BODY.to_vec(), vec!["f".to_owned()]));
    }

    #[tokio::test]
    async fn works_on_a_runtime_thread() {
        let url = serve(reply("200 OK", Some(BODY.len()), BODY));
        let root = tempfile::tempdir().expect("temporary folder");
        fetch_from(&url, published(&checksum::of_bytes(BODY)), &root.path().join("f"), &|_, _| ()).expect("download");
    }
}
