//! Where a process has its meter, and the keys by which runs are told apart.

use std::{net::SocketAddr, time::Duration};

use bench_proto::{
    failure::{Failure, code::CANNOT_SERVE},
    ids::{RunId, Sha256Hash},
    redact::{RUN_KEY, RUN_KEY_DIGITS},
};
use bench_settings::Settings;
use uuid::Uuid;

const VARIABLE: &str = "BENCH_METER_SECRET";
const FILE_VARIABLE: &str = "BENCH_METER_SECRET_FILE";
/// Fewest characters of a secret.
const SHORTEST: usize = 16;
/// Longest wait for requests under way at the end of a process that has other work.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Where a process has its meter.
#[derive(Clone)]
pub struct MeterPlace {
    /// Address to listen at.
    pub(crate) listen: String,
    /// Base URL under which memory systems reach it, where that is another one.
    pub(crate) url: Option<String>,
    /// Names by which it may be called on loopback, beside those of this machine.
    pub(crate) hosts: Vec<String>,
    /// Longest wait for requests under way when the process ends.
    pub(crate) longest_end: Duration,
    /// What keys of runs are made of.
    secret: [u8; 32],
    /// Other processes have the same secret.
    shared: bool,
}

impl Default for MeterPlace {
    /// On loopback, with keys that hold as long as the process.
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            url: None,
            hosts: Vec::new(),
            longest_end: LONGEST_END,
            secret: drawn(),
            shared: false,
        }
    }
}

/// The secret of the environment, if there is one.
fn secret() -> Result<Option<String>, Failure> {
    if let Ok(secret) = std::env::var(VARIABLE) {
        return Ok(Some(secret));
    }
    let Ok(path) = std::env::var(FILE_VARIABLE) else { return Ok(None) };
    let unread = |e| Failure::terminal(CANNOT_SERVE, format!("{path} ({FILE_VARIABLE}) cannot be read: {e}"));
    std::fs::read_to_string(&path).map(Some).map_err(unread)
}

fn drawn() -> [u8; 32] {
    let halves = [Uuid::new_v4(), Uuid::new_v4()];
    let mut secret = [0; 32];
    secret[..16].copy_from_slice(halves[0].as_bytes());
    secret[16..].copy_from_slice(halves[1].as_bytes());
    secret
}

impl MeterPlace {
    /// As the settings have it. Keys are the same in all processes that are given the same secret, by BENCH_METER_SECRET or in a file that
    /// BENCH_METER_SECRET_FILE names.
    ///
    /// # Errors
    /// When the secret is too short, or its file cannot be read.
    pub fn of_settings(settings: &Settings) -> Result<Self, Failure> {
        let of = &settings.meter;
        let (listen, url, hosts) = (of.listen.clone(), of.url.clone(), of.hosts.clone());
        let given = secret()?;
        let shared = given.is_some();
        let secret = match given {
            Some(secret) if secret.trim().len() < SHORTEST => {
                let message = format!(
                    "{VARIABLE} has fewer than {SHORTEST} characters: give a drawn one, such as `openssl rand -hex 32`"
                );
                return Err(Failure::terminal(CANNOT_SERVE, message));
            }
            Some(secret) => Sha256Hash::of_bytes(secret.trim().as_bytes()).0,
            None => drawn(),
        };
        Ok(Self { listen, url, hosts, longest_end: LONGEST_END, secret, shared })
    }

    /// Listens at another address than the settings say.
    pub fn listen_at(&mut self, address: &str) {
        address.clone_into(&mut self.listen);
    }

    /// Waits for so long for requests under way when the process ends.
    pub const fn end_within(&mut self, longest: Duration) {
        self.longest_end = longest;
    }

    /// Whether other processes make the same keys.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether it listens at every address of its machine, and the settings do not say by which it is reached.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        let is_every = |at: SocketAddr| at.ip().to_canonical().is_unspecified();
        self.url.is_none() && self.listen.parse().is_ok_and(is_every)
    }

    /// Where memory systems reach it, as far as the settings alone tell; `None` where a process draws address or keys, and where it
    /// [listens everywhere](Self::is_unnamed).
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let is_hidden = self.listen.ends_with(":0") || self.is_unnamed();
        let listened_at = || (!is_hidden).then(|| format!("http://{}", self.listen));
        self.url.clone().or_else(listened_at).filter(|_| self.shared)
    }

    /// The address of a run at a meter.
    #[must_use]
    pub fn address_of(&self, meter: &str, run: &RunId) -> String {
        format!("{}/m/{}", meter.trim_end_matches('/'), run.0)
    }

    /// The key of a run: it opens this run's part of the meter, and no provider.
    #[must_use]
    pub fn key_of(&self, run: &RunId) -> String {
        let inner = Sha256Hash::of_bytes(&[&self.secret[..], run.0.as_bytes()].concat());
        let outer = Sha256Hash::of_bytes(&[&self.secret[..], &inner.0[..]].concat());
        format!("{RUN_KEY}{}", &outer.hex()[..RUN_KEY_DIGITS])
    }

    /// Whether a key is this run's. Hashes are compared, so that the time it takes tells nothing of the key.
    pub(crate) fn is_key_of(&self, run: &RunId, key: &str) -> bool {
        Sha256Hash::of_bytes(key.as_bytes()) == Sha256Hash::of_bytes(self.key_of(run).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_nobody_reaches_is_told_to_nobody() {
        let at = |listen: &str, url: Option<&str>| MeterPlace {
            listen: listen.to_owned(),
            url: url.map(str::to_owned),
            shared: true,
            ..MeterPlace::default()
        };
        for every in ["0.0.0.0:7070", "[::]:7070", "[::ffff:0.0.0.0]:7070"] {
            assert!(at(every, None).is_unnamed() && at(every, None).told().is_none(), "{every}");
            assert_eq!(at(every, Some("http://meter:7070")).told().as_deref(), Some("http://meter:7070"));
        }
        assert_eq!(at("10.0.0.7:7070", None).told().as_deref(), Some("http://10.0.0.7:7070"));
        assert_eq!(at("meter.example:7070", None).told().as_deref(), Some("http://meter.example:7070"));
        assert!(!at("127.0.0.1:0", None).is_unnamed() && at("127.0.0.1:0", None).told().is_none());
    }

    #[test]
    fn p34_a_key_opens_its_run_and_no_other() {
        let place = MeterPlace::default();
        let (mine, other) = (RunId("run-a".to_owned()), RunId("run-b".to_owned()));
        let key = place.key_of(&mine);
        assert!(key.starts_with(RUN_KEY) && key.len() == 43, "{key}");
        assert_eq!(bench_proto::redact::run_keys(&key), "[key]", "it is known where texts are scrubbed");
        assert!(place.is_key_of(&mine, &key) && !place.is_key_of(&other, &key) && !place.is_key_of(&mine, ""));
        assert_ne!(MeterPlace::default().key_of(&mine), key, "another process has another secret");
        assert_eq!(place.address_of("http://127.0.0.1:7/", &mine), "http://127.0.0.1:7/m/run-a");
    }
}
