//! Scenarios over many processes: coordinator and workers as they run in production, with a PostgreSQL and a RabbitMQ of
//! their own.
//!
//! | module | question |
//! |---|---|
//! | `services`, `fleet` | which servers and processes take part? |
//! | `ledger`, `cpu` | how far is a run, and what have its processes used? |
//! | `yardstick` | what would the least take that could do the same? |
//! | `overhead`, `scaling` | what does the product add to the services, and what do four workers add to one? |
//! | `checkpoints` | what does a checkpoint cost beside a plain insert? |
//! | `million`, `first_answer` | how does a very large run go, and how soon does a run begin? |
//! | `money` | how well is a provider's allowance used? |

mod checkpoints;
pub(crate) mod cpu;
mod first_answer;
mod fleet;
mod ledger;
mod million;
mod money;
mod overhead;
mod scaling;
mod services;
pub(crate) mod yardstick;

pub(crate) use self::{
    checkpoints::checkpoints,
    first_answer::first_answer,
    fleet::{Fleet, Workers},
    million::million,
    money::{LATENCY_MS, RPM, Used, money},
    overhead::overhead,
    scaling::{Scaling, scaling},
    services::Services,
};

/// Questions of one generated conversation, on average.
pub(crate) const QUESTIONS_PER_CONVERSATION: f64 = 198.6;

/// Generated conversations that bring about so many questions.
pub(crate) fn conversations(questions: u32) -> u32 {
    (f64::from(questions) / QUESTIONS_PER_CONVERSATION).ceil().max(1.0) as u32
}
