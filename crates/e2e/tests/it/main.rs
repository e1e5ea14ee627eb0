//! Whole-system tests: the real binaries, real files, real signals.

mod arrows;
mod bad_input;
mod cluster;
mod full_disk;
mod kill;
mod local_runs;
mod models;
mod money;
mod readme;
mod reference;
mod systems;
