//! Whole-system tests that run the real binaries; they are in `tests/it`.
