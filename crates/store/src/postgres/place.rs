//! Where a Postgres store is: what its URL says, without the password, and whether anybody answers there.

use std::{fmt, str::FromStr as _, time::Duration};

use bench_proto::redact;
use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{StoreError, StoreResult};

/// Longest wait for the answer to a probe.
const PROBE: Duration = Duration::from_secs(2);
/// The question whether the server speaks TLS: the one that is answered without a login.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// Parameter of the URL that says that a pooler is in between.
const POOLER_FLAG: &str = "pgbouncer";

/// Why a URL with an `@` behind the host is refused.
const MISREAD: &str = "in a user or password the characters / ? # @ are written %2F %3F %23 %40";

/// A database on a server. Shown without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    user: String,
    host: String,
    port: u16,
    socket: Option<String>,
    database: String,
}

/// What a URL asks for.
pub(super) struct Wanted {
    pub(super) place: Destination,
    pub(super) options: PgConnectOptions,
    /// The URL says that a pooler in transaction mode is in between.
    pub(super) pooled: bool,
    /// Parameters of the URL that nobody reads, as they may be shown.
    pub(super) unread: Option<String>,
}

/// Reads a URL.
pub(super) fn parse(url: &str) -> StoreResult<Wanted> {
    // never the URL itself: it may hold a password
    let refuse = |why: &dyn fmt::Display| {
        StoreError::Open(
            format!("the store's URL cannot be read ({why}): write postgres://<user>@<host>:<port>/<database>").into(),
        )
    };
    if redact::is_misread(url) {
        return Err(refuse(&MISREAD));
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    if !["postgres://", "postgresql://"].iter().any(|start| base.starts_with(start)) {
        return Err(refuse(&"// is missing"));
    }
    let (flags, rest): (Vec<&str>, Vec<&str>) =
        query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| pair.split('=').next() == Some(POOLER_FLAG));
    let pooled = match flags.last().map(|flag| flag.split_once('=').map_or("true", |(_, value)| value)) {
        None | Some("false" | "0") => false,
        Some("true" | "1") => true,
        Some(_) => return Err(refuse(&"pgbouncer is true or false")),
    };
    let options = PgConnectOptions::from_str(&format!("{base}?{}", rest.join("&"))).map_err(|e| refuse(&e))?;
    let place = Destination {
        user: options.get_username().to_owned(),
        host: options.get_host().to_owned(),
        port: options.get_port(),
        socket: options.get_socket().map(|folder| folder.display().to_string()),
        database: options.get_database().unwrap_or(options.get_username()).to_owned(),
    };
    Ok(Wanted { place, options, pooled, unread: redact::unread_of_postgres(url) })
}

impl Destination {
    /// Name of the database.
    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Its host, unless it is reached by a socket of this machine.
    pub(super) fn remote_host(&self) -> Option<&str> {
        (self.socket.is_none() && !self.host.starts_with('/')).then_some(self.host.as_str())
    }

    /// Whether a server answers there now. A local socket needs no asking: the machine itself says when the other end is gone.
    pub(super) async fn answers(&self) -> bool {
        if self.remote_host().is_none() {
            return true;
        }
        let ask = async {
            let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            stream.write_all(&SSL_REQUEST).await?;
            stream.read_u8().await
        };
        matches!(timeout(PROBE, ask).await, Ok(Ok(_)))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, host, port, socket, database } = self;
        match socket {
            None => write!(f, "postgres://{user}@{host}:{port}/{database}"),
            Some(folder) => write!(f, "postgres://{user}@/{database}?host={folder}&port={port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        parse(url).map_or_else(|e| e.to_string(), |wanted| format!("{} {}", wanted.place, wanted.pooled))
    }

    #[test]
    fn only_what_insists_on_encryption_has_it() {
        let way = |rest: &str| {
            let way = super::super::transport(&format!("postgres://ann:secret@DB.example:6432/bench{rest}"));
            way.map(|way| (way.host, way.encrypted, way.verified))
        };
        let is = |encrypted, verified| Some(("db.example".to_owned(), encrypted, verified));
        for (mode, wanted) in [
            ("?sslmode=disable", is(false, false)),
            ("?sslmode=allow", is(false, false)),
            ("?sslmode=prefer", is(false, false)),
            ("?sslmode=require", is(true, false)),
            ("?sslmode=verify-ca", is(true, false)),
            ("?pgbouncer=true&sslmode=verify-full", is(true, true)),
            ("?host=/run/postgresql", None),
        ] {
            assert_eq!(way(mode), wanted, "{mode}");
        }
    }

    #[test]
    fn parameters_that_nobody_reads_are_told_of_without_their_values() {
        let unread = |query: &str| parse(&format!("postgres://ann@db/b{query}")).ok().and_then(|wanted| wanted.unread);
        assert_eq!(unread("?pgbouncer=true&sslmode=require"), None);
        assert_eq!(unread("?pgbouncer=true&sslpassword=secret&a").as_deref(), Some("sslpassword, parameter 3"));
    }

    #[test]
    fn urls_are_shown_without_passwords() {
        assert_eq!(shown("postgres://ann:secret@db:6432/bench"), "postgres://ann@db:6432/bench false");
        assert_eq!(shown("postgresql://ann@db:1/b?pgbouncer=true"), "postgres://ann@db:1/b true");
        assert_eq!(
            shown("postgres://ann@db:1/b?sslmode=verify-full&pgbouncer=false&password=secret"),
            "postgres://ann@db:1/b false"
        );
        assert_eq!(shown("postgres://ann@localhost:7/b?host=/run/pg"), "postgres://ann@/b?host=/run/pg&port=7 false");
        for wrong in [
            "postgres:secret",
            "postgres://u:secret@h:port/b",
            "postgres://u:12/secret@h/b",
            "postgres://u:12?secret@h/b",
            "postgres://u:secret@h/b?pgbouncer=secret",
            "postgres://u:secret@h/b?sslmode=no",
        ] {
            let message = shown(wrong);
            assert!(message.contains("cannot be read") && !message.contains("secret"), "{message}");
        }
    }
}
