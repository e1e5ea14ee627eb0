//! Tables of what can happen: what was, what happens, what is then. What no line names is refused and changes nothing.

/// One line of a table of states `S` and events `E`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<S, E> {
    /// State before; `None` where nothing was there.
    pub from: Option<S>,
    /// What happens.
    pub event: E,
    /// State after.
    pub to: S,
}

/// The state after `event` in `from`, or `None` when it is refused.
pub fn after<S: Copy + PartialEq, E: PartialEq>(table: &[Line<S, E>], from: Option<S>, event: E) -> Option<S> {
    table.iter().find(|line| line.from == from && line.event == event).map(|line| line.to)
}

/// The states in which `event` is legal.
pub fn states_from<S: Copy, E: PartialEq>(table: &[Line<S, E>], event: E) -> impl Iterator<Item = S> {
    table.iter().filter(move |line| line.event == event).filter_map(|line| line.from)
}
