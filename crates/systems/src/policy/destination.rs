//! Where the URL of an adapter leads, found out without a secret: what is filled in before that is known would be told in messages
//! and asked of name servers.

use bench_proto::policy::SystemPolicy;
use reqwest::Url;

use super::{Lack, View};
use crate::adapter::variables::{Piece, pieces};

/// Where requests go.
pub(super) struct Destination<'t> {
    /// The server; absent where variables say it that are not known here.
    pub(super) server: Option<Server>,
    /// Variables that are sent there: they stand behind the host.
    pub(super) sent: Vec<&'t str>,
}

pub(super) struct Server {
    /// Its URL, up to the first variable that is sent.
    pub(super) url: Url,
    /// Host, and with its port: a listed host is one of the two.
    names: [String; 2],
    /// Host and port as they may be shown.
    pub(super) shown: String,
}

impl Server {
    /// Whether something that is listed means it.
    pub(super) fn is(&self, listed: &str) -> bool {
        self.names.iter().any(|name| name == listed)
    }
}

impl<'t> Destination<'t> {
    /// Of a URL as it is written. `None` where it leads nowhere: whoever builds the system says what is wrong with it.
    ///
    /// # Errors
    /// Variables that would say where it leads and are not listed: nothing is filled in.
    pub(super) fn read(text: &'t str, policy: &SystemPolicy, view: View) -> Result<Option<Self>, Vec<Lack>> {
        let Ok(pieces) = pieces(text) else { return Ok(None) };
        let is_listed = |name: &str| policy.variables.iter().any(|listed| listed == name);
        let lack = |name: &str| Lack::Variable(name.to_owned());
        let (mut filled, mut written, mut known) = (String::new(), String::new(), true);
        let (mut sent, mut lacks) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Variable(name, _) if names_a_host(&filled) => sent.push(name),
                _ if !sent.is_empty() => {}
                Piece::Plain(plain) => {
                    filled.push_str(plain);
                    written.push_str(plain);
                }
                Piece::Variable(name, _) => {
                    written.push_str(&format!("${{env:{name}}}"));
                    if !is_listed(name) {
                        lacks.push(lack(name));
                    }
                    match (view, lacks.is_empty()) {
                        (View::Here, true) => match piece.value() {
                            Ok(value) => filled.push_str(&value),
                            Err(_) => return Ok(None),
                        },
                        // anything that would stand there, so that what is behind it is known to be behind it
                        _ => {
                            known = false;
                            filled.push_str(if filled.is_empty() { "http://unknown" } else { "unknown" });
                        }
                    }
                }
            }
        }
        if !lacks.is_empty() {
            return Err(lacks);
        }
        if !known {
            return Ok(Some(Self { server: None, sent }));
        }
        let url = Url::parse(&filled).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let Some((url, host)) = url.and_then(|url| Some((url.clone(), url.host_str()?.to_ascii_lowercase()))) else {
            let unlisted: Vec<Lack> = sent.into_iter().filter(|name| !is_listed(name)).map(lack).collect();
            return if unlisted.is_empty() { Ok(None) } else { Err(unlisted) };
        };
        let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let shown = if filled == written { with_port.clone() } else { written };
        Ok(Some(Self { server: Some(Server { url, names: [host, with_port], shown }), sent }))
    }
}

/// Whether the host of a URL has ended: whatever follows is a part of its path, query or fragment.
fn names_a_host(beginning: &str) -> bool {
    let Some((_, behind)) = beginning.split_once("://") else { return false };
    behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && behind.contains(['/', '?', '#'])
}
