//! What is seen while recalls are read and stands in none of their hits: fields of the file that are not there or of another
//! type, hits beyond those that were asked for, ids that are of our own making. Only who listens hears it, and a run does not.

use std::cell::RefCell;

use bench_proto::step::RetrievedHit;

tokio::task_local! {
    static HEARD: RefCell<Heard>;
}

#[derive(Debug, Default)]
struct Heard {
    remarks: Vec<Remark>,
    beyond_k: Option<BeyondK>,
    /// Id and text of hits that came without an id.
    made_up: Vec<(String, String)>,
}

/// What is worth a word about the hits of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// What it is about: of several about the same one is enough.
    pub(crate) about: String,
    /// In words.
    pub(crate) text: String,
}

/// That more hits came than were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BeyondK {
    /// How many there were before the cut.
    pub(crate) came: usize,
    /// The system had been told how many.
    pub(crate) was_told: bool,
}

/// Carries something out, and keeps what is remarked meanwhile for [`take_remarks`] and [`beyond_k`].
pub(crate) async fn listening<F: Future>(to: F) -> F::Output {
    HEARD.scope(RefCell::default(), to).await
}

/// Whether anybody listens.
pub(crate) fn is_listening() -> bool {
    HEARD.try_with(|_| ()).is_ok()
}

/// Says something to who listens.
pub(crate) fn remark(remark: Remark) {
    let _ = HEARD.try_with(|heard| heard.borrow_mut().remarks.push(remark));
}

/// Says that more hits came than were asked for.
pub(crate) fn note_beyond_k(seen: BeyondK) {
    let _ = HEARD.try_with(|heard| heard.borrow_mut().beyond_k = Some(seen));
}

/// Says that a hit came without an id, and has one that was made of its place.
pub(crate) fn note_made_up(hit: &RetrievedHit) {
    let _ = HEARD.try_with(|heard| heard.borrow_mut().made_up.push((hit.id.clone(), hit.text.clone())));
}

/// Whether the id of a hit was made of its place, in the recalls since remarks were taken.
pub(crate) fn is_made_up(hit: &RetrievedHit) -> bool {
    let is_this = |(id, text): &(String, String)| (id, text) == (&hit.id, &hit.text);
    HEARD.try_with(|heard| heard.borrow().made_up.iter().any(is_this)).unwrap_or_default()
}

/// What has been remarked since the last time; forgets all else.
pub(crate) fn take_remarks() -> Vec<Remark> {
    HEARD.try_with(|heard| heard.take().remarks).unwrap_or_default()
}

/// Whether more hits came than were asked for, in the recalls since remarks were taken.
pub(crate) fn beyond_k() -> Option<BeyondK> {
    HEARD.try_with(|heard| heard.borrow().beyond_k).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_said_is_heard_by_who_listens_and_by_nobody_else() {
        let seen = BeyondK { came: 449, was_told: true };
        let said = || Remark { about: "score".to_owned(), text: "a text".to_owned() };
        let speak = async || {
            remark(said());
            note_beyond_k(seen);
        };
        speak().await;
        assert_eq!((is_listening(), beyond_k(), take_remarks()), (false, None, Vec::new()));
        listening(async {
            speak().await;
            assert_eq!((is_listening(), beyond_k()), (true, Some(seen)));
            assert_eq!((take_remarks(), beyond_k(), take_remarks()), (vec![said()], None, Vec::new()));
        })
        .await;
    }
}
