//! The listener: it can be closed and opened again on the same port, and takes its connections with it when it closes.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::core::Core;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// Pause after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(20);

/// Listens while no outage refuses connections.
#[derive(Debug)]
pub(crate) struct Doorkeeper {
    core: Arc<Core>,
    address: SocketAddr,
    door: State,
    /// Ends the connections of the open door.
    lines: CancellationToken,
}

#[derive(Debug)]
enum State {
    Open(TcpListener),
    /// Bound, so that nobody else takes the port, but not listening: the system refuses connections.
    Closed(TcpSocket),
    /// On the way from one to the other.
    Between,
}

impl Doorkeeper {
    pub(crate) fn new(core: Arc<Core>, listener: TcpListener, address: SocketAddr) -> Self {
        Self { core, address, door: State::Open(listener), lines: CancellationToken::new() }
    }

    fn close(&mut self) -> io::Result<()> {
        self.lines.cancel();
        self.lines = CancellationToken::new();
        self.door = State::Between;
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        self.door = State::Closed(socket);
        Ok(())
    }

    async fn open(&mut self) -> io::Result<()> {
        self.door = State::Open(match std::mem::replace(&mut self.door, State::Between) {
            State::Open(listener) => listener,
            State::Closed(socket) => socket.listen(BACKLOG)?,
            State::Between => TcpListener::bind(self.address).await?,
        });
        Ok(())
    }
}

impl Listener for Doorkeeper {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        let core = Arc::clone(&self.core);
        loop {
            let changed = core.outages_changed.notified();
            let wanted = core.door();
            let moved = match (&self.door, wanted.closed) {
                (State::Open(_), false) | (State::Closed(_), true) => Ok(()),
                (_, true) => self.close(),
                (_, false) => self.open().await,
            };
            if let Err(e) = moved {
                tracing::debug!("cannot move the door at {}: {e}", self.address);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let due = async {
                match wanted.until {
                    Some(until) => tokio::time::sleep(until.saturating_sub(core.now())).await,
                    None => std::future::pending().await,
                }
            };
            let arrival = async {
                match &self.door {
                    State::Open(listener) => listener.accept().await,
                    State::Closed(_) | State::Between => std::future::pending().await,
                }
            };
            tokio::select! {
                arrived = arrival => match arrived {
                    Ok((stream, address)) => {
                        if let Err(e) = stream.set_nodelay(true) {
                            tracing::debug!("cannot set TCP_NODELAY: {e}");
                        }
                        return (Line::new(stream, &self.lines), address);
                    }
                    Err(e) => {
                        tracing::debug!("cannot accept a connection: {e}");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                () = due => {}
                () = changed => {}
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// A connection that ends with the door.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Line {
    fn new(stream: TcpStream, door: &CancellationToken) -> Self {
        Self { stream, closed: Box::pin(door.clone().cancelled_owned()) }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.closed.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionReset.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
