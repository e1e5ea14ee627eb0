//! Archives of filled banks on this machine: a file becomes one (`banks import`, `fetch`), and lies here under a name, by which runs ask
//! what it holds (`submit --banks-from`). How a run's banks become such a file is in `runs::banks_archive`.
//!
//! | module | question |
//! |---|---|
//! | [`import`] | how does a file become banks of this machine, and what is refused of it? |
//! | [`imported`] | which archives lie here, and what do they hold? |
//! | [`by_calls`] | how does a server hand banks on and take them in, where nobody can copy its folder? |
//! | [`files`] | which files are there, and what do they hold to the last byte? |

pub(crate) mod by_calls;
pub(crate) mod files;
pub(crate) mod import;
pub(crate) mod imported;
