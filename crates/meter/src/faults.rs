//! Faults on purpose: how a memory system stands a bad provider. Which requests meet one is drawn from a seed, the request and how often
//! it has come before, never from time or order, so that equal runs meet equal faults and a repeat may pass.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use bench_proto::ids::Sha256Hash;

/// A fault that a request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It is answered with this status, and not sent.
    Status(u16),
    /// It is sent later.
    Slow,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Slow => f.write_str("slow"),
        }
    }
}

/// Why a description of faults means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; faults are written as 429=0.05,500=0.01,slow=0.02")]
pub struct FaultsError(String);

/// Which faults are made, each with its share of requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    statuses: Vec<(u16, f64)>,
    slow: f64,
}

impl Faults {
    /// Reads `429=0.05,500=0.01,slow=0.02`: statuses from 400 to 599, and `slow`, with shares from 0 to 1. Shares of statuses are of all
    /// requests and add up to 1 at most; a request that is slow may meet a status too. An empty text is no fault.
    ///
    /// # Errors
    /// What is not of this form.
    pub fn parse(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        let mut seen = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let refuse = |why: &str| Err(FaultsError(format!("'{part}' {why}")));
            let Some((name, share)) = part.split_once('=') else { return refuse("has no share") };
            let (name, share) = (name.trim(), share.trim().parse::<f64>().unwrap_or(f64::NAN));
            if !(0.0..=1.0).contains(&share) {
                return refuse("has no share between 0 and 1");
            }
            if seen.contains(&name) {
                return refuse("is there twice");
            }
            seen.push(name);
            match name.parse::<u16>() {
                _ if name == "slow" => faults.slow = share,
                Ok(status) if (400..600).contains(&status) => faults.statuses.push((status, share)),
                _ => return refuse("is neither a status from 400 to 599 nor slow"),
            }
        }
        // one draw decides, whatever order they were written in
        faults.statuses.sort_by_key(|(status, _)| *status);
        let sum: f64 = faults.statuses.iter().map(|(_, share)| share).sum();
        if sum > 1.0 + 1e-9 {
            return Err(FaultsError(format!("the shares of statuses add up to {sum}, which is more than 1")));
        }
        Ok(faults)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slow <= 0.0 && self.statuses.iter().all(|(_, share)| *share <= 0.0)
    }

    /// What a request meets: whether it is slow, and the status that it is answered with. `occurrence` counts equal requests from 0.
    #[must_use]
    pub fn draw(&self, seed: u64, request: &Sha256Hash, occurrence: u32) -> (bool, Option<FaultKind>) {
        if self.is_empty() {
            return (false, None);
        }
        let drawn = Sha256Hash::of_bytes(format!("{seed}/{}/{occurrence}", request.hex()).as_bytes()).hex();
        let (first, rest) = drawn.split_at(drawn.len().min(13));
        let slow = share(rest.get(..13).unwrap_or(rest)) < self.slow;
        let mut left = share(first);
        let status = self.statuses.iter().find(|(_, share)| {
            let met = left < *share;
            left -= share;
            met
        });
        (slow, status.map(|(status, _)| FaultKind::Status(*status)))
    }
}

impl fmt::Display for Faults {
    /// The same whatever order they were written in: part of fingerprints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses = self.statuses.iter().map(|(status, share)| format!("{status}={share}"));
        let slow = (self.slow > 0.0).then(|| format!("slow={}", self.slow));
        f.write_str(&statuses.chain(slow).collect::<Vec<_>>().join(","))
    }
}

/// 52 bits of hexadecimal digits as a number below 1.
fn share(digits: &str) -> f64 {
    const OF: f64 = (1_u64 << 52) as f64;
    u64::from_str_radix(digits, 16).map_or(1.0, |bits| bits as f64 / OF)
}

/// Requests whose repeats are counted, at most; beyond it counting begins anew, and a request may meet its first fault a second time.
const MOST_COUNTED: usize = 1 << 18;

/// How often each request has come.
#[derive(Debug, Default)]
pub(crate) struct Occurrences(Mutex<HashMap<[u8; 16], u32>>);

impl Occurrences {
    /// How often it came before this time.
    pub(crate) fn next(&self, request: &Sha256Hash) -> u32 {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_COUNTED {
            seen.clear();
        }
        let mut short = [0_u8; 16];
        short.iter_mut().zip(request.0).for_each(|(to, from)| *to = from);
        let count = seen.entry(short).or_insert(0);
        let before = *count;
        *count = count.saturating_add(1);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_and_said_again() {
        for (text, said) in [
            ("", ""),
            ("429=0.05,500=0.01,slow=0.02", "429=0.05,500=0.01,slow=0.02"),
            (" slow = 0.5 , 503=1 ", "503=1,slow=0.5"),
            ("500=0.5,429=0.5", "429=0.5,500=0.5"),
        ] {
            assert_eq!(Faults::parse(text).expect(text).to_string(), said);
        }
        for bad in [
            "429",
            "429=",
            "429=2",
            "429=-0.1",
            "429=nan",
            "200=0.1",
            "600=0.1",
            "quick=0.1",
            "429=0.1,429=0.1",
            "429=0.6,500=0.6",
        ] {
            let error = Faults::parse(bad).expect_err(bad).to_string();
            assert!(error.contains("429=0.05,500=0.01,slow=0.02"), "{error}");
        }
    }

    #[test]
    fn draws_have_their_shares_and_depend_on_nothing_else() {
        let faults = Faults::parse("429=0.2,500=0.1,slow=0.3").expect("good");
        let request = |n: u32| Sha256Hash::of_bytes(&n.to_le_bytes());
        let drawn: Vec<_> = (0..10_000).map(|n| faults.draw(7, &request(n), 0)).collect();
        let share = |wanted: fn(&(bool, Option<FaultKind>)) -> bool| {
            drawn.iter().filter(|one| wanted(one)).count() as f64 / 10_000.0
        };
        assert!((share(|one| one.1 == Some(FaultKind::Status(429))) - 0.2).abs() < 0.02);
        assert!((share(|one| one.1 == Some(FaultKind::Status(500))) - 0.1).abs() < 0.02);
        assert!((share(|one| one.0) - 0.3).abs() < 0.02);
        let both = share(|one| one.0 && one.1.is_some());
        assert!((both - 0.09).abs() < 0.02, "one does not lead to the other: {both}");
        for n in 0..100 {
            assert_eq!(faults.draw(7, &request(n), 0), drawn[n as usize]);
        }
        let again = (0..10_000).filter(|n| faults.draw(7, &request(*n), 1) != drawn[*n as usize]).count();
        let other = (0..10_000).filter(|n| faults.draw(8, &request(*n), 0) != drawn[*n as usize]).count();
        assert!(again > 3000 && other > 3000, "{again} {other}");
        assert_eq!(Faults::default().draw(7, &request(1), 0), (false, None));
    }

    #[test]
    fn repeats_are_counted_for_each_request() {
        let seen = Occurrences::default();
        let (one, two) = (Sha256Hash::of_bytes(b"1"), Sha256Hash::of_bytes(b"2"));
        assert_eq!([seen.next(&one), seen.next(&one), seen.next(&two), seen.next(&one)], [0, 1, 0, 2]);
    }
}
