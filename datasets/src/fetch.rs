//! Downloads a dataset into the cache: bounded by the manifest's size, checked by its sha256, there whole or not at all.

use std::{path::Path, time::Duration};

use crate::{
    DatasetError, Manifest, OnProgress, SourceFile,
    incoming::{Incoming, Problem},
};

/// No byte for this long is a failure: downloads are small, a hanging one is to be reported.
const SILENCE: Duration = Duration::from_secs(30);

/// Downloads a published file to a place, whatever is there already.
///
/// Works with and without a runtime around it: the transfer has a thread and a runtime of its own.
///
/// # Errors
/// When the file cannot be had or is not the published one. Nothing is left behind then.
pub(crate) fn fetch(
    manifest: &Manifest,
    file: &SourceFile,
    path: &Path,
    on_progress: OnProgress<'_>,
) -> Result<(), DatasetError> {
    fetch_from(&manifest.url_of(file), file.bytes, file.sha256(), path, on_progress)
}

/// As [`fetch`], from any URL.
fn fetch_from(
    url: &str,
    bytes: u64,
    sha256: &str,
    path: &Path,
    on_progress: OnProgress<'_>,
) -> Result<(), DatasetError> {
    let download = || -> Result<(), Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(transfer(url, bytes, sha256, path, on_progress))
    };
    let outcome = std::thread::scope(|scope| scope.spawn(download).join());
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(problem)) => Err(problem.at(url, path)),
        Err(_) => Err(DatasetError::Download { url: url.to_owned(), reason: "the transfer panicked".to_owned() }),
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
        Self::Other(reason)
    }
}

async fn transfer(
    url: &str,
    bytes: u64,
    sha256: &str,
    path: &Path,
    on_progress: OnProgress<'_>,
) -> Result<(), Problem> {
    let client = reqwest::Client::builder().connect_timeout(SILENCE).read_timeout(SILENCE).build()?;
    let mut response = client.get(url).send().await?;
    if !response.status().is_success() {
        return Err(Problem::Other(format!("the server answered {}", response.status())));
    }
    let mut incoming = Incoming::new(path, bytes, Some(sha256))?;
    incoming.announced(response.content_length())?;
    on_progress(0, Some(bytes));
    while let Some(chunk) = response.chunk().await? {
        incoming.write(&chunk)?;
        on_progress(incoming.received(), Some(bytes));
    }
    incoming.keep()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead, BufReader, Write as _},
        net::TcpListener,
        sync::Mutex,
    };

    use super::*;
    use crate::checksum;

    const BODY: &[u8] = b"the published file";

    /// Answers one request with these bytes and closes; returns the URL.
    fn serve(reply: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/file", listener.local_addr().expect("address"));
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let lines = BufReader::new(stream.try_clone().expect("second handle")).lines();
            for line in lines {
                if line.expect("request line").is_empty() {
                    break;
                }
            }
            // a client that refuses the reply may close early
            let _ = stream.write_all(&reply);
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
        let outcome = fetch_from(&url, BODY.len() as u64, &checksum::of_bytes(BODY), &path, &|_, _| ());
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
        fetch_from(&url, 18, &checksum::of_bytes(BODY), &path, &|_, _| ()).expect_err("other content");
        assert_eq!(fs::read(&path).expect("read"), b"earlier");
    }

    #[test]
    fn nobody_listening_is_said_with_its_cause() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/file", listener.local_addr().expect("address"));
        drop(listener);
        let root = tempfile::tempdir().expect("temporary folder");
        let error = fetch_from(&url, 1, "", &root.path().join("f"), &|_, _| ()).expect_err("refused").to_string();
        assert!(error.to_lowercase().contains("connection refused"), "{error}");
    }

    #[test]
    fn progress_grows_to_the_size() {
        let seen = Mutex::new(Vec::new());
        let url = serve(reply("200 OK", Some(BODY.len()), BODY));
        let root = tempfile::tempdir().expect("temporary folder");
        let note = |received, total| seen.lock().expect("no panic inside").push((received, total));
        fetch_from(&url, 18, &checksum::of_bytes(BODY), &root.path().join("f"), &note).expect("download");
        let seen = seen.into_inner().expect("no panic inside");
        assert_eq!((seen[0], seen[seen.len() - 1]), ((0, Some(18)), (18, Some(18))));
        assert!(seen.is_sorted());
    }

    #[tokio::test]
    async fn works_on_a_runtime_thread() {
        let url = serve(reply("200 OK", Some(BODY.len()), BODY));
        let root = tempfile::tempdir().expect("temporary folder");
        fetch_from(&url, 18, &checksum::of_bytes(BODY), &root.path().join("f"), &|_, _| ()).expect("download");
    }
}
