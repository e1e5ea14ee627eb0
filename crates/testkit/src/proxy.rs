//! A TCP proxy that breaks connections on request: delay, cut, black hole, for each direction apart, and refuses new ones in
//! several ways; changed while it runs.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinHandle,
    time::Instant,
};

/// Data under way in one direction of a connection is held in so many parts of at most 16 KiB.
const PARTS: usize = 64;

/// What happens to data of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Way {
    /// Each part arrives this much later; the order stays.
    pub delay: Duration,
    /// Nothing arrives, and nothing is said about it. What was sent meanwhile arrives when this ends, as after a lost route.
    pub black_hole: bool,
}

/// What the proxy does now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// From the client to the server.
    pub to_server: Way,
    /// From the server to the client.
    pub to_client: Way,
    /// What new connections meet; open ones stay as they are.
    pub door: Door,
}

/// What a new connection meets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Door {
    /// It is carried to the server.
    #[default]
    Open,
    /// It is refused by the system: nobody listens. The port stays taken.
    Refusing,
    /// It is accepted and closed at once, as by a load balancer without a server behind it.
    Closing,
    /// It is accepted, and nothing is ever said.
    Silent,
    /// The first bytes are answered with [`GARBAGE`] and the connection is closed: no TLS is possible.
    Garbage,
}

/// What a [`Door::Garbage`] says: neither TLS nor HTTP.
pub const GARBAGE: &[u8] = b"\x00no such service\r\n";

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

impl Faults {
    /// Nothing arrives in either direction.
    #[must_use]
    pub fn black_hole() -> Self {
        let way = Way { black_hole: true, ..Way::default() };
        Self { to_server: way, to_client: way, ..Self::default() }
    }

    /// New connections meet this.
    #[must_use]
    pub fn door(door: Door) -> Self {
        Self { door, ..Self::default() }
    }

    /// Half of `round_trip` is added in each direction.
    #[must_use]
    pub fn delay(round_trip: Duration) -> Self {
        let way = Way { delay: round_trip / 2, ..Way::default() };
        Self { to_server: way, to_client: way, ..Self::default() }
    }
}

/// A running proxy; it ends, with all connections, when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    /// Raised by [`Proxy::cut`]: connections of an older number end.
    cuts: watch::Sender<u64>,
    counts: Arc<Counts>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    to_server: AtomicU64,
    to_client: AtomicU64,
}

impl Proxy {
    /// Starts a proxy on a free port of 127.0.0.1 for the server at `server`.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let faults = watch::Sender::new(Faults::default());
        let cuts = watch::Sender::new(0);
        let counts = Arc::new(Counts::default());
        let accepting = tokio::spawn(accept(listener, server, faults.clone(), cuts.clone(), Arc::clone(&counts)));
        Ok(Self { address, faults, cuts, counts, accepting })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces what is done, for open connections too. A door that opens or closes does so a moment later.
    pub fn set(&self, faults: Faults) {
        self.faults.send_replace(faults);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.set(Faults::default());
    }

    /// Resets all open connections; new ones are accepted.
    pub fn cut(&self) {
        self.cuts.send_modify(|number| *number += 1);
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// Bytes delivered so far: to the server, to clients.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.counts.to_server.load(Ordering::Relaxed), self.counts.to_client.load(Ordering::Relaxed))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    faults: watch::Sender<Faults>,
    cuts: watch::Sender<u64>,
    counts: Arc<Counts>,
) {
    let mut changes = faults.subscribe();
    let mut listener = Some(listener);
    loop {
        let door = changes.borrow_and_update().door;
        if door == Door::Refusing {
            let Some(address) = listener.take().and_then(|listener| listener.local_addr().ok()) else { return };
            // bound, so that nobody else takes the port, but not listening
            let Some(closed) = bound(address).await else { return };
            if changes.wait_for(|faults| faults.door != Door::Refusing).await.is_err() {
                return;
            }
            listener = closed.listen(BACKLOG).ok();
            continue;
        }
        let Some(open) = &listener else { return };
        let accepted = tokio::select! {
            accepted = open.accept() => accepted,
            _ = changes.changed() => continue,
        };
        let Ok((client, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        counts.accepted.fetch_add(1, Ordering::Relaxed);
        // it may have changed while this one came
        match faults.borrow().door {
            Door::Open | Door::Refusing => {
                tokio::spawn(serve(client, server, faults.subscribe(), cuts.subscribe(), Arc::clone(&counts)));
            }
            Door::Closing => drop(client),
            door @ (Door::Silent | Door::Garbage) => {
                tokio::spawn(meet(client, door, cuts.subscribe()));
            }
        }
    }
}

async fn bound(address: SocketAddr) -> Option<TcpSocket> {
    for _ in 0..100 {
        let socket = TcpSocket::new_v4().ok()?;
        socket.set_reuseaddr(true).ok()?;
        if socket.bind(address).is_ok() {
            return Some(socket);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

/// Keeps a connection that is carried nowhere, until its client leaves or it is cut.
async fn meet(mut client: TcpStream, door: Door, mut cuts: watch::Receiver<u64>) {
    let listen = async {
        let mut heard = vec![0; 16 << 10];
        while client.read(&mut heard).await? > 0 {
            if door == Door::Garbage {
                client.write_all(GARBAGE).await?;
                return client.shutdown().await;
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        _ = listen => {}
        _ = cuts.changed() => {}
    }
}

/// Carries one connection until either side ends it or it is cut.
async fn serve(
    client: TcpStream,
    server: SocketAddr,
    faults: watch::Receiver<Faults>,
    mut cuts: watch::Receiver<u64>,
    counts: Arc<Counts>,
) {
    let carry = async {
        let server = TcpStream::connect(server).await?;
        // a reset, as of a peer that is gone, is what an end by the proxy looks like
        let (client, server) = (prepared(client)?, prepared(server)?);
        let (client_read, client_write) = client.into_split();
        let (server_read, server_write) = server.into_split();
        let up = carry_way(client_read, server_write, faults.clone(), |faults| faults.to_server, &counts.to_server);
        let down = carry_way(server_read, client_write, faults, |faults| faults.to_client, &counts.to_client);
        // one side's end is passed on; the connection is over when both have ended, or one has failed
        tokio::try_join!(up, down)?;
        io::Result::Ok(())
    };
    tokio::select! {
        _ = carry => {}
        _ = cuts.changed() => {}
    }
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn carry_way(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut faults: watch::Receiver<Faults>,
    way: fn(&Faults) -> Way,
    delivered: &AtomicU64,
) -> io::Result<()> {
    // reading goes on while earlier parts wait out their delay: a delay is no loss of bandwidth
    let (sender, mut parts) = mpsc::channel::<(Instant, Vec<u8>)>(PARTS);
    let reading = async {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = from.read(&mut buffer).await?;
            if count == 0 || sender.send((Instant::now(), buffer[..count].to_vec())).await.is_err() {
                break;
            }
        }
        drop(sender);
        io::Result::Ok(())
    };
    let writing = async {
        while let Some((arrived, part)) = parts.recv().await {
            loop {
                let now = way(&faults.borrow_and_update());
                let due = if now.black_hole { None } else { Some(arrived + now.delay) };
                if due.is_some_and(|due| due <= Instant::now()) {
                    break;
                }
                // until the part is due, or the faults change; in a black hole only the latter
                tokio::select! {
                    () = async { match due { Some(due) => tokio::time::sleep_until(due).await, None => std::future::pending().await } } => {}
                    changed = faults.changed() => if changed.is_err() { return Ok(()) },
                }
            }
            to.write_all(&part).await?;
            delivered.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
        to.shutdown().await
    };
    tokio::try_join!(reading, writing)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("listens");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn start() -> (Proxy, TcpStream) {
        let proxy = Proxy::start(echo().await).await.expect("starts");
        let client = TcpStream::connect(proxy.address()).await.expect("connects");
        (proxy, client)
    }

    async fn echoes(client: &mut TcpStream, text: &[u8]) -> io::Result<()> {
        client.write_all(text).await?;
        let mut back = vec![0; text.len()];
        client.read_exact(&mut back).await?;
        assert_eq!(back, text);
        Ok(())
    }

    async fn is_silent(client: &mut TcpStream) -> bool {
        tokio::time::timeout(Duration::from_millis(100), client.read_u8()).await.is_err()
    }

    #[tokio::test]
    async fn data_passes_unchanged_in_both_directions() {
        let (proxy, mut client) = start().await;
        let large: Vec<u8> = (0..3_000_000_u32).map(|n| n as u8).collect();
        let (mut read, mut write) = client.split();
        let mut back = vec![0; large.len()];
        let (wrote, got) = tokio::join!(write.write_all(&large), read.read_exact(&mut back));
        wrote.expect("writes");
        got.expect("reads");
        assert_eq!(back, large);
        assert_eq!((proxy.accepted(), proxy.bytes()), (1, (3_000_000, 3_000_000)));
        client.shutdown().await.expect("ends");
        assert_eq!(client.read(&mut [0]).await.expect("reads"), 0, "the end is passed on");
    }

    #[tokio::test]
    async fn delays_add_up_to_the_round_trip() {
        let (proxy, mut client) = start().await;
        echoes(&mut client, b"warm").await.expect("echoes");
        proxy.set(Faults::delay(Duration::from_millis(100)));
        let started = Instant::now();
        echoes(&mut client, b"late").await.expect("echoes");
        assert!(started.elapsed() >= Duration::from_millis(100));
        proxy.set(Faults::delay(Duration::from_secs(100)));
        client.write_all(b"stuck").await.expect("writes");
        assert!(is_silent(&mut client).await);
        proxy.heal();
        let mut back = [0; 5];
        client.read_exact(&mut back).await.expect("healing lets waiting data go");
    }

    #[tokio::test]
    async fn a_black_hole_swallows_one_direction_without_a_word() {
        let (proxy, mut client) = start().await;
        proxy.set(Faults { to_client: Way { black_hole: true, ..Way::default() }, ..Faults::default() });
        client.write_all(b"heard").await.expect("writes");
        assert!(is_silent(&mut client).await);
        let heard = async {
            while proxy.bytes().0 < 5 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), heard).await.expect("the server has heard it");
        assert_eq!(proxy.bytes(), (5, 0));
        proxy.set(Faults::black_hole());
        client.write_all(b"unheard").await.expect("writes");
        assert!(is_silent(&mut client).await);
        assert_eq!(proxy.bytes(), (5, 0));
        proxy.heal();
        let mut back = [0; 12];
        client.read_exact(&mut back).await.expect("reads");
        assert_eq!(&back, b"heardunheard");
    }

    #[tokio::test]
    async fn cuts_end_open_connections_and_refusals_new_ones() {
        let (proxy, mut client) = start().await;
        echoes(&mut client, b"before").await.expect("echoes");
        proxy.cut();
        assert!(echoes(&mut client, b"after").await.is_err());
        let mut next = TcpStream::connect(proxy.address()).await.expect("connects");
        echoes(&mut next, b"again").await.expect("echoes");
        proxy.set(Faults::door(Door::Closing));
        echoes(&mut next, b"open ones stay").await.expect("echoes");
        let mut closed = TcpStream::connect(proxy.address()).await.expect("is accepted first");
        assert!(echoes(&mut closed, b"x").await.is_err());
        let address = proxy.address();
        drop(proxy);
        assert!(echoes(&mut next, b"gone").await.is_err());
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn a_door_refuses_keeps_silent_or_says_nonsense_and_opens_again() {
        let (proxy, mut open) = start().await;
        echoes(&mut open, b"before").await.expect("echoes");
        proxy.set(Faults::door(Door::Refusing));
        // a connection of the moment of closing may be reset
        let refused = async || {
            TcpStream::connect(proxy.address()).await.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
        };
        while !refused().await {
            tokio::task::yield_now().await;
        }
        echoes(&mut open, b"open ones stay").await.expect("echoes");
        proxy.set(Faults::door(Door::Silent));
        let mut silent = loop {
            if let Ok(client) = TcpStream::connect(proxy.address()).await {
                break client;
            }
            tokio::task::yield_now().await;
        };
        silent.write_all(b"anybody?").await.expect("writes");
        assert!(is_silent(&mut silent).await);
        proxy.set(Faults::door(Door::Garbage));
        let mut garbled = TcpStream::connect(proxy.address()).await.expect("connects");
        garbled.write_all(&[0x16, 3, 1]).await.expect("writes");
        let mut said = Vec::new();
        garbled.read_to_end(&mut said).await.expect("reads to the end");
        assert_eq!(said, GARBAGE);
        proxy.heal();
        let mut healed = TcpStream::connect(proxy.address()).await.expect("connects");
        echoes(&mut healed, b"after").await.expect("echoes");
    }
}
