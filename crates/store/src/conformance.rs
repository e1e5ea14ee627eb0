//! One suite for all store backends.
