//! Ids of traces and spans, derived from names: whoever knows the names knows the ids, without talking.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::RunId;

/// Header that carries a [`TraceContext`], in messages and in HTTP requests (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";

/// Id of a trace, as 16 bytes. Shown as 32 lower-case hexadecimal characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub [u8; 16]);

impl TraceId {
    /// The trace of a question, see [`crate::ids::trace_id`].
    #[must_use]
    pub fn of_question(run: &RunId, question_id: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [run.0.as_str(), "\n", question_id] {
            hash.update(part.as_bytes());
        }
        let hash: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(bytes)
    }

    /// The trace of a run itself: its submission and what was retained for it. No question has an empty id.
    #[must_use]
    pub fn of_run(run: &RunId) -> Self {
        Self::of_question(run, "")
    }

    /// Reads 32 hexadecimal characters.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// A number in [0, 1) that is as good as drawn at random: the base rate keeps what lies below it.
    #[must_use]
    pub fn lot(&self) -> f64 {
        let high = self.0[8..].iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        // the upper 53 bits are a double exactly
        (high >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Id of a span, as 8 bytes. Shown as 16 lower-case hexadecimal characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub [u8; 8]);

impl SpanId {
    /// The span with this path in a trace: the first 8 bytes of sha256(trace id, path).
    #[must_use]
    pub fn derive(trace: &TraceId, path: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(trace.0);
        hash.update(path.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash[..8]);
        Self(bytes)
    }

    /// Reads 16 hexadecimal characters.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 8];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        (bytes != [0; 8]).then_some(Self(bytes))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What travels with messages and requests: whose child the receiver's spans are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The tree that the header's reader is to add its spans to.
    pub trace: TraceId,
    /// The sender's span.
    pub span: SpanId,
    /// Whether receivers are asked to record: the base-rate decision, which is all that is known beforehand (P20).
    pub sampled: bool,
}

impl TraceContext {
    /// The header's value: `00-<trace>-<span>-<flags>`.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }

    /// Reads a header; `None` for anything that is no context, as the standard wants it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hexadecimal = |text: &str| text.len() == 2 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !hexadecimal(version)
            || version == "ff"
            || !hexadecimal(flags)
            || (version == "00" && parts.next().is_some())
        {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(Self { trace: TraceId::from_hex(trace)?, span: SpanId::from_hex(span)?, sampled: flags & 1 == 1 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::trace_id;

    #[test]
    fn p20_ids_depend_on_names_alone() {
        let run = RunId("r".into());
        let trace = TraceId::of_question(&run, "conv-26:0");
        assert_eq!(trace.to_string(), trace_id(&run, "conv-26:0"));
        assert_eq!(trace.to_string().len(), 32);
        assert_ne!(trace, TraceId::of_run(&run));
        assert_eq!(SpanId::derive(&trace, "recall"), SpanId::derive(&trace, "recall"));
        assert_ne!(SpanId::derive(&trace, "recall"), SpanId::derive(&trace, "answer"));
    }

    #[test]
    fn contexts_are_read_as_the_standard_wants_it() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = TraceContext::parse(good).expect("is one");
        assert!(context.sampled);
        assert_eq!(context.traceparent(), good);
        assert!(
            TraceContext::parse("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later").is_some()
        );
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-xx",
            "00-0af7-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(trace in 1_u128.., span in 1_u64.., sampled: bool) {
            let context = TraceContext { trace: TraceId(trace.to_be_bytes()), span: SpanId(span.to_be_bytes()), sampled };
            prop_assert_eq!(TraceContext::parse(&context.traceparent()), Some(context));
            prop_assert!((0.0..1.0).contains(&context.trace.lot()));
        }

        #[test]
        fn any_text_is_survived(text: String) {
            let _ = TraceContext::parse(&text);
        }
    }
}
