//! For tests: a request as its bytes, which is what strict servers judge.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};

/// A server that answers one request with an empty object and hands out the head of what came.
///
/// # Panics
/// When there is no port.
pub async fn hear_one() -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let heard = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
            assert!(socket.read_buf(&mut bytes).await.expect("readable") > 0, "the request ends");
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.expect("writes");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.split_once("\r\n\r\n").map_or(text.clone(), |(head, _)| head.to_owned())
    });
    (address, heard)
}

/// Checks that a head names each header once, and its body's type as JSON.
///
/// # Panics
/// When it does not.
pub fn assert_each_header_once(head: &str) {
    let mut names: Vec<String> =
        head.lines().skip(1).map(|line| line.split_once(':').expect("a header").0.to_ascii_lowercase()).collect();
    names.sort_unstable();
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once, "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
    for name in ["host", "content-length", "content-type"] {
        assert!(once.iter().any(|sent| sent == name), "{name} is missing: {head}");
    }
}
