//! What happens to one run, below the verbs: planned and estimated, executed until it is at rest, taken up again, forked.
//!
//! In come a verb's flags and the settings of the process ([`App`](crate::app::App)); out go rows of the store, the files of a
//! report, and the exit code of the verb. Start reading at `commands/submit.rs`, which names the six steps, then [`executor`].
//!
//! | module | question |
//! |---|---|
//! | [`estimate`] | what will it cost, and how exact will it be? |
//! | [`start`] | may it start, and does the person agree? |
//! | [`stopping`] | when may it end before its last question? |
//! | [`takers`] | would anybody run its memory system? |
//! | [`attach`] | what if a run of this id exists already? |
//! | [`execution`] | how does it come to its rest, and what goes with it? |
//! | [`executor`] | who executes it: this process or a cluster? |
//! | [`local`] | how does this process execute it? |
//! | [`probe_turns`] | when is its latency measured, where others run beside it? |
//! | [`client`] | how is it followed while a cluster executes it? |
//! | [`controls`] | which runs go with it, and when do they start? |
//! | [`group`] | how do the repeats of one run, or the cells of a matrix, go together? |
//! | [`by_hand`] | how does a person hold or cancel it? |
//! | [`rest`] | how did it come to rest? |
//! | [`carry_out`] | how is it executed to its rest and its result shown, or left to a cluster? |
//! | [`ending`] | what is said at its rest, and with which exit code? |
//! | [`account_watch`] | does anything go around the meter? |
//! | [`banks_archive`] | how do its banks become a file? |
//! | [`removal`] | how are its banks removed? |
//! | [`deletion`] | may it be deleted, and how? |
//! | [`resume`] | how does it go on after a stop? |
//! | [`taking_up`] | how is it put to work again? |
//! | [`missing_plan`] | who writes the rest of a plan that was cut short? |
//! | [`elsewhere`] | are its models still where they were? |
//! | [`fork`] | how does a new run take over what it has stored? |
//! | [`adopt`] | what is copied of that? |
//! | [`listed`] | what is told of it where it stands beside others? |
//! | [`lines`] | which of them stand together as one? |

pub(crate) mod account_watch;
mod adopt;
pub(crate) mod attach;
pub(crate) mod banks_archive;
pub(crate) mod by_hand;
pub(crate) mod carry_out;
pub(crate) mod client;
pub(crate) mod controls;
pub(crate) mod deletion;
mod elsewhere;
pub(crate) mod ending;
pub(crate) mod estimate;
pub(crate) mod execution;
pub(crate) mod executor;
pub(crate) mod fork;
pub(crate) mod group;
pub(crate) mod lines;
pub(crate) mod listed;
pub(crate) mod local;
pub(crate) mod missing_plan;
pub(crate) mod probe_turns;
pub(crate) mod removal;
mod rest;
pub(crate) mod resume;
pub(crate) mod start;
pub(crate) mod stopping;
pub(crate) mod takers;
pub(crate) mod taking_up;
