//! Draws: numbers that are pure functions of the simulator's seed, a request, a purpose and (for faults) a try.
//!
//! Arrival order, time and concurrency never enter (P17).

use sha2::{Digest, Sha256};

/// Identity of a request: sha256 over its endpoint, model, input, parameters and draw, cut to 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RequestKey(pub(crate) u128);

/// What a request asks for, as far as faults, latencies and outages differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Chat,
    Judge,
    Embedding,
}

impl RequestKind {
    /// Name of the endpoint in the statistics.
    pub(crate) const fn endpoint(self) -> &'static str {
        match self {
            Self::Chat | Self::Judge => "chat",
            Self::Embedding => "embeddings",
        }
    }
}

/// Collects the parts of a request's identity. Parts are length-prefixed, so that they cannot run into each other.
#[derive(Debug)]
pub(crate) struct KeyBuilder(Sha256);

impl KeyBuilder {
    pub(crate) fn new(endpoint: &str) -> Self {
        let mut builder = Self(Sha256::new());
        builder.part(endpoint.as_bytes());
        builder
    }

    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> RequestKey {
        let hash = self.0.finalize();
        let mut half = [0_u8; 16];
        half.copy_from_slice(&hash[..16]);
        RequestKey(u128::from_le_bytes(half))
    }
}

/// What a draw is for: two purposes never share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    Fault = 1,
    ReplyFault,
    Slow,
    LatencyRadius,
    LatencyAngle,
    Answer,
    Verdict,
    Shape,
}

/// 64 bits for (seed, request, purpose, number), where the number is a try or an index within the reply.
pub(crate) fn bits(seed: u64, key: RequestKey, purpose: Purpose, number: u64) -> u64 {
    let mut state = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
    for word in [key.0 as u64, (key.0 >> 64) as u64, purpose as u64, number] {
        state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ word);
    }
    state
}

/// A number in [0, 1) with 53 random bits.
pub(crate) fn unit(seed: u64, key: RequestKey, purpose: Purpose, number: u64) -> f64 {
    to_unit(bits(seed, key, purpose, number))
}

pub(crate) fn to_unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which each input bit flips half of the output.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// FNV-1a followed by [`mix`]: a cheap hash of short words for embeddings, where nobody attacks.
pub(crate) fn word_hash(word: &str, basis: u64) -> u64 {
    let hash = word
        .bytes()
        .fold(basis ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    mix(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_purposes_are_apart() {
        let n = 20_000_u64;
        let mean = (0..n).map(|i| unit(7, RequestKey(u128::from(i)), Purpose::Fault, 0)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.01, "mean of uniform draws is {mean}");
        let key = RequestKey(99);
        assert_ne!(bits(1, key, Purpose::Fault, 0), bits(1, key, Purpose::Slow, 0));
        assert_ne!(bits(1, key, Purpose::Fault, 0), bits(1, key, Purpose::Fault, 1));
        assert_ne!(bits(1, key, Purpose::Fault, 0), bits(2, key, Purpose::Fault, 0));
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        let key = |parts: &[&str]| {
            let mut builder = KeyBuilder::new("chat");
            parts.iter().for_each(|part| builder.part(part.as_bytes()));
            builder.finish()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
