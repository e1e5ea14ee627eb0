//! One suite for all queue backends.
