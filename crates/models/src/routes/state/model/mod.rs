//! Outages and withdrawals of small fleets, in every order of events (P39, P40).
//!
//! Every process is the real [`RouteState`] with the real decisions of `remedy`, the store's row is the real
//! [`Outage`](bench_proto::outage::Outage); the model adds a provider, processes that look at the store, calls and a clock
//! that goes in steps of 2.5 s. A call waits, counts and gives up as `models::caller` does.
//!
//! - `world`: what there is and what can go wrong; `steps`: what can happen; `look`: what a process does when it looks
//! - `search`: all states, and from each of them a way to the end
//! - `scenarios`: small fleets; `mutants`: the same with a rule left out
//!
//! Left out: money but for a probe that is refused, pace, more than one run and one route, the dispatcher's bounds after an
//! outage, how long a task waits that was handed back.

mod look;
mod mutants;
mod scenarios;
mod search;
mod steps;
mod world;
