//! Signals of whoever operates a process: the first asks it to come to an end, the second not to wait for anything.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Ctrl-C and SIGTERM, as two tokens that are cancelled one after the other.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    /// Cancelled by the first signal: finish what is in flight, stop resumable.
    pub stop: CancellationToken,
    /// Cancelled by the second signal: stop now.
    pub now: CancellationToken,
}

impl Interrupts {
    /// Listens until the process ends; needs a runtime.
    ///
    /// # Errors
    /// When the process cannot receive signals.
    pub fn listen() -> io::Result<Self> {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let interrupts = Self::default();
        let listener = interrupts.clone();
        tokio::spawn(async move {
            while next(&mut interrupt, &mut terminate).await.is_some() {
                let token = if listener.stop.is_cancelled() { &listener.now } else { &listener.stop };
                token.cancel();
            }
        });
        Ok(interrupts)
    }
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> Option<()> {
    tokio::select! {
        signal = interrupt.recv() => signal,
        signal = terminate.recv() => signal,
    }
}
