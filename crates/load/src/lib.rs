//! Load: operations that begin at their intended starts, whether or not those before them have ended, and what becomes of them.
//!
//! In come rates, a mix and a way to carry out one operation; out come latencies from the intended start, failures by kind, what
//! was not sent, and where the system falls behind. Nothing here knows what a memory system is. Start with `pacer`, the one module
//! that waits; everything else is computed.
//!
//! | module | question |
//! |---|---|
//! | [`pacer`] | when does each operation begin, and how did it end? |
//! | [`arrivals`] | when are operations due? |
//! | [`mix`] | which operation is next? |
//! | [`tally`] | what became of the operations of a step? |
//! | [`histogram`] | how are latencies kept, and added up over processes? |
//! | [`saturation`] | which rates were held, where is the knee? |
//! | [`mod@line`] | how does a latency grow? |
//! | [`queueing`] | what does theory say? |
//! | [`facts`] | what is stored and asked for? |
//! | [`result`] | what is written of a load, and how are several added? |
//! | [`stress`] | what does the suite `stress` store and ask, and what is written of it? |
//! | [`gate`] | is it worse than before? |

pub mod arrivals;
pub mod draws;
pub mod facts;
pub mod gate;
pub mod histogram;
pub mod line;
pub mod mix;
pub mod pacer;
pub mod queueing;
pub mod result;
pub mod saturation;
pub mod stress;
pub mod tally;
