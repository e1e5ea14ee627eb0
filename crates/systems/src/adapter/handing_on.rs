//! What a server hands on of a bank, and takes in of one: a response whose body goes into a file, and a request whose body comes out of
//! one. Neither is ever held in memory as a whole. Start reading at `Call::download` and `Call::upload`.

use std::{io, path::Path};

use bench_proto::failure::Failure;
use bench_settings::private;
use reqwest::{
    Body, Response, Version,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING},
};
use serde_json::Value;
use tokio::{fs::File, io::AsyncWriteExt as _};

use super::{
    call::{Call, ToServer},
    http::{self, Request},
    said::{excerpt, looks_like_a_page},
    template::Vars,
    time,
};

/// Bytes of a refusal that are read, and most that a body has which may be one.
const REFUSAL: usize = 64 * 1024;
/// Bytes of a body in which a page for people is known.
const BEGINNING: usize = 1024;

impl Call {
    /// Sends the request, and writes the body of its response into a new file of at most `most` bytes; how many it has. What fails
    /// leaves no file.
    ///
    /// # Errors
    /// What the system or the disk says.
    pub(super) async fn download(
        &self,
        server: &ToServer<'_>,
        vars: &Vars,
        (to, most): (&Path, u64),
    ) -> Result<u64, Failure> {
        let made = private::options().create_new(true).write(true).open(to).map_err(|e| self.disk(to, &e))?;
        let written = self.in_time(self.write(server, vars, (File::from_std(made), to, most))).await;
        if written.is_err() {
            // half of a bank is none
            let _ = tokio::fs::remove_file(to).await;
        }
        written
    }

    async fn write(
        &self,
        server: &ToServer<'_>,
        vars: &Vars,
        (mut file, to, most): (File, &Path, u64),
    ) -> Result<u64, Failure> {
        let request = self.request(server, vars)?;
        let mut response = http::answered(server.client, request, &self.what).await?;
        if !response.status().is_success() {
            return Err(self.refused(&http::read_whole(response, REFUSAL, &self.what).await?));
        }
        let (is_html, has_end) = (is_html(response.headers()), tells_its_end(&response));
        let (mut bytes, mut small) = (0, Vec::<u8>::new());
        while let Some(piece) = response.chunk().await.map_err(|e| http::network(&e, &self.what))? {
            if bytes == 0 {
                let begins = String::from_utf8_lossy(&piece[..piece.len().min(BEGINNING)]);
                // whatever stands before a server answers in its place
                if is_html || looks_like_a_page(&begins) {
                    return Err(self.page(&begins));
                }
            }
            bytes += piece.len() as u64;
            if bytes > most {
                let message = format!("{}: more than {most} bytes are handed on of one bank", self.what);
                return Err(Failure::permanent(http::TOO_LONG, message));
            }
            if bytes <= REFUSAL as u64 {
                small.extend_from_slice(&piece);
            }
            file.write_all(&piece).await.map_err(|e| self.disk(to, &e))?;
        }
        file.flush().await.map_err(|e| self.disk(to, &e))?;
        if bytes == 0 {
            return Err(self.shape("the response is empty: nothing is handed on"));
        }
        if bytes <= REFUSAL as u64 && tells_an_error(&small) {
            let said = excerpt(&String::from_utf8_lossy(&small));
            let message = format!("{}: the response is an error, and no bank: {said}", self.what);
            return Err(Failure::permanent("system_refused", message));
        }
        if !has_end {
            let why = "the response has neither Content-Length nor Transfer-Encoding: chunked, so that half of a bank would look \
                       like a whole one: let the server send one of them";
            return Err(self.shape(why));
        }
        Ok(bytes)
    }

    /// Sends the request with a file for its body, and looks at the response.
    ///
    /// # Errors
    /// What the system or the disk says.
    pub(super) async fn upload(&self, server: &ToServer<'_>, vars: &Vars, from: &Path) -> Result<(), Failure> {
        let file = File::open(from).await.map_err(|e| self.disk(from, &e))?;
        let bytes = file.metadata().await.map_err(|e| self.disk(from, &e))?.len();
        let Request { method, url, mut headers, max_bytes, .. } = self.request(server, vars)?;
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/octet-stream"));
        // many servers take no body of unknown length
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        let request = server.client.request(method, url).headers(headers).body(Body::from(file));
        let sent = async {
            let response = request.send().await.map_err(|e| http::network(&e, &self.what))?;
            http::read_whole(response, max_bytes, &self.what).await
        };
        self.read(self.in_time(sent).await?).map(drop)
    }

    async fn in_time<T>(&self, sent: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let most = self.timeout();
        tokio::time::timeout(most, sent).await.unwrap_or_else(|_| {
            let message = format!("{}: not done within {}: give it a longer `timeout`", self.what, time::show(most));
            Err(Failure::transient("system_timeout", message))
        })
    }

    fn disk(&self, path: &Path, error: &io::Error) -> Failure {
        Failure::permanent("system_request", format!("{}: {}: {error}", self.what, path.display()))
    }
}

fn is_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/html")
}

/// Whether a body that is cut off is told from a whole one: with neither a length nor an end of its own it ends where the connection
/// does.
fn tells_its_end(response: &Response) -> bool {
    let coding = response.headers().get(TRANSFER_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    response.version() >= Version::HTTP_2
        || response.content_length().is_some()
        || coding.to_ascii_lowercase().contains("chunked")
}

/// Whether a body is the JSON by which a server says with status 200 that it failed.
fn tells_an_error(body: &[u8]) -> bool {
    let read: Option<Value> = serde_json::from_slice(body).ok();
    read.is_some_and(|read| read.get("error").is_some_and(|error| !error.is_null()))
}
