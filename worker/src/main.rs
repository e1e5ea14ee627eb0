//! `bench-worker`: takes tasks from the queue until stopped.

fn main() {}
