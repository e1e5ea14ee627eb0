//! Reading ahead in order: a few threads make the pages of the next things while those of the first are taken.

use std::{
    num::NonZero,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use crate::exit::CliError;

/// Most threads that read; a store has few connections for readers.
const MOST_THREADS: usize = 2;
/// Pages of each thread that wait to be taken.
const WAITING: usize = 2;

/// What a thread has to say about its next thing.
enum Said<P> {
    Page(P),
    /// The last page was made, or the next one could not be.
    End(Result<(), CliError>),
}

/// Makes the pages of all `things` with `make` and hands them to `take`, things and pages in their order, until `take` wants no
/// more or something fails. `make` is told by its `give` when nothing more is wanted. Must not be called on a thread that
/// serves others: it waits.
///
/// # Errors
/// The first one of `make`, in the order of the things, or that of `take`.
pub(super) fn in_order<T: Sync, P: Send>(
    things: &[T],
    make: impl Fn(&T, &mut dyn FnMut(P) -> bool) -> Result<(), CliError> + Sync,
    mut take: impl FnMut(P) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.clamp(1, MOST_THREADS).min(things.len().max(1));
    let stopped = || CliError::infrastructure("reading the results stopped");
    thread::scope(|scope| {
        // every thread has its own things, one in turn
        let said: Vec<Receiver<Said<P>>> = (0..threads)
            .map(|first| {
                let (sender, receiver) = sync_channel(WAITING);
                let make = &make;
                scope.spawn(move || {
                    for thing in things.iter().skip(first).step_by(threads) {
                        if !say(thing, make, &sender) {
                            return;
                        }
                    }
                });
                receiver
            })
            .collect();
        for thing in 0..things.len() {
            loop {
                match said[thing % threads].recv().map_err(|_| stopped())? {
                    Said::Page(page) => {
                        if !take(page)? {
                            // the threads find that nobody listens
                            return Ok(());
                        }
                    }
                    Said::End(result) => {
                        result?;
                        break;
                    }
                }
            }
        }
        Ok(())
    })
}

/// Says everything about a thing; whether somebody still listens.
fn say<T, P>(
    thing: &T,
    make: &impl Fn(&T, &mut dyn FnMut(P) -> bool) -> Result<(), CliError>,
    sender: &SyncSender<Said<P>>,
) -> bool {
    let made = make(thing, &mut |page| sender.send(Said::Page(page)).is_ok());
    sender.send(Said::End(made)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Things that have so many pages.
    const THINGS: [usize; 7] = [3, 0, 1, 40, 2, 0, 5];

    fn make(thing: &usize, give: &mut dyn FnMut(usize) -> bool) -> Result<(), CliError> {
        for page in 0..*thing {
            if !give(100 * thing + page) {
                break;
            }
        }
        Ok(())
    }

    fn all() -> Vec<usize> {
        THINGS.iter().flat_map(|thing| (0..*thing).map(move |page| 100 * thing + page)).collect()
    }

    #[test]
    fn pages_come_in_order_and_few_are_made_ahead() {
        let (made, most) = (AtomicUsize::new(0), THINGS.len().min(MOST_THREADS) * (WAITING + 1));
        let counted = |thing: &usize, give: &mut dyn FnMut(usize) -> bool| {
            make(thing, &mut |page| {
                made.fetch_add(1, Ordering::SeqCst);
                give(page)
            })
        };
        let mut taken = Vec::new();
        let take = |page| {
            let ahead = made.load(Ordering::SeqCst) - taken.len();
            assert!(ahead <= most + 1, "{ahead} pages were made and not taken");
            taken.push(page);
            Ok(true)
        };
        in_order(&THINGS, counted, take).expect("nothing fails");
        assert_eq!(taken, all());
    }

    #[test]
    fn whoever_has_enough_ends_it_and_a_failure_comes_in_its_turn() {
        for enough in [1, 4, 20] {
            let mut taken = Vec::new();
            let take = |page| {
                taken.push(page);
                Ok(taken.len() < enough)
            };
            in_order(&THINGS, make, take).expect("nothing fails");
            assert_eq!(taken, all()[..enough]);
        }
        let mut taken = 0;
        let failing = |thing: &usize, give: &mut dyn FnMut(usize) -> bool| match thing {
            40 => Err(CliError::usage("cannot")),
            thing => make(thing, give),
        };
        let failed = in_order(&THINGS, failing, |_| {
            taken += 1;
            Ok(true)
        });
        assert!(failed.is_err() && taken == 4, "what comes before was taken");
        assert!(in_order(&THINGS, make, |_| Err(CliError::usage("the disk is full"))).is_err());
        in_order(&[], make, |_| Ok(true)).expect("nothing is nothing");
    }
}
