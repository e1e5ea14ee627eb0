//! Whole-system tests: the real binaries, real files, real signals.

mod archive;
mod archive_parts;
mod arrows;
mod bad_input;
mod calls;
mod chain;
mod cluster;
mod dashboards;
mod datasets;
mod embeddings;
mod forks;
mod full_disk;
mod kill;
mod local_runs;
mod models;
mod money;
mod page;
mod planted_key;
mod reach;
mod readme;
mod reference;
mod results;
mod sight;
mod strict_servers;
mod systems;
