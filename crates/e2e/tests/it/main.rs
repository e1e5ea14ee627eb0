//! Whole-system tests: the real binaries, real files, real signals.

mod arrows;
mod bad_input;
mod cluster;
mod forks;
mod full_disk;
mod kill;
mod local_runs;
mod models;
mod money;
mod readme;
mod reference;
mod results;
mod sight;
mod systems;
