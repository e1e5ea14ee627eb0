//! The meter over real connections: in front of a server that says what it is told to say, byte by byte, and of the simulator.

#![allow(missing_docs, reason = "tests")]

mod bounds;
mod cuts;
mod faults;
mod ledger;
mod passing;
mod refusals;
mod scripted;
mod simulator;
mod streams;
