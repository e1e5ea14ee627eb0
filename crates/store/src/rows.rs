//! What goes into and comes out of the store, by subject: plain data of the traits (`traits`), which says nothing of a database.
//!
//! | file | subject |
//! |---|---|
//! | `runs` | runs and what they are created with, their groups, counters and events: start reading here |
//! | `banks` | the banks of a plan, and the items that hold their data |
//! | `tasks` | tasks on their way: ready, claimed, given back, adopted, repeated |
//! | `results` | what a commit did, calls and facts that are read again |
//! | `money` | what is asked for under caps, and what became of it |
//! | `pace`, `outages` | what processes tell each other of routes: send slots, and times in which nobody gets through |
//! | `processes` | worker sessions, leaders, and a store that went back in time |

mod banks;
mod money;
mod outages;
mod pace;
mod processes;
mod results;
mod runs;
mod tasks;

pub use self::{banks::*, money::*, outages::*, pace::*, processes::*, results::*, runs::*, tasks::*};
