//! What goes into and comes out of the store, by subject.

mod banks;
mod money;
mod outages;
mod pace;
mod processes;
mod results;
mod runs;
mod tasks;

pub use self::{banks::*, money::*, outages::*, pace::*, processes::*, results::*, runs::*, tasks::*};
