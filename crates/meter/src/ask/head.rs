//! The members of a body that matter, where they stand in its text: one look at all of its names finds them, and refuses what may not
//! be passed on.

use std::fmt;

use bench_models::members::each_member;
use serde_json::value::RawValue;

use super::names::{self, Unlisted};
use crate::refusal::Rejection;

/// Most members and types of items that are not listed and are held, for its account may let them through; and bytes of the longest
/// name of one.
const MOST_UNLISTED: usize = 16;
const LONGEST_UNLISTED: usize = 64;

/// A value where it stands, `null` too; none where it is not said.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// Makes [`Head`], with a field for each member, and the list of their names.
macro_rules! head {
    ($($member:ident),+ $(,)?) => {
        /// The members of a body that matter here. Each may be there once: readers of JSON differ in which of two they believe.
        #[derive(Debug, Default)]
        pub(super) struct Head<'a> {
            $(pub(super) $member: Raw<'a>,)+
            /// Members, and types of items, that pass only where the operator of the account lets them through, each once.
            pub(super) unlisted: Vec<Unlisted>,
        }

        /// Names of these members, as bodies have them.
        pub(super) const HEAD: &[&str] = &[$(stringify!($member)),+];

        impl<'a> Head<'a> {
            /// Where the value of a member belongs, if it matters.
            fn place(&mut self, name: &str) -> Option<&mut Raw<'a>> {
                $(if name == stringify!($member) {
                    return Some(&mut self.$member);
                })+
                None
            }
        }
    };
}

head!(
    model,
    stream,
    stream_options,
    max_tokens,
    max_completion_tokens,
    max_output_tokens,
    n,
    best_of,
    temperature,
    service_tier,
    background,
    previous_response_id,
    conversation,
    prompt,
    tools,
    functions,
    thinking_budget,
    input,
    instructions,
    messages,
    system,
);

impl<'a> Head<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// What is no JSON object, says one of these members twice, or may not be passed on because of a name.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Rejection> {
        let no_object = |why: &dyn fmt::Display| {
            Rejection::unreadable(None, format!("the body is no JSON object that can be read: {why}"))
        };
        let (mut head, mut refused) = (Self::default(), None);
        let members = each_member(body, |name, value| {
            if refused.is_some() {
                return;
            }
            refused = match names::check(name, value) {
                Ok(unlisted) => unlisted.and_then(|unlisted| head.note(unlisted).err()),
                Err(rejection) => Some(rejection),
            };
            if let Some(place) = head.place(name)
                && place.replace(value).is_some()
            {
                refused = refused.take().or_else(|| Some(no_object(&format!("{name} stands twice"))));
            }
        });
        members.map_err(|error| no_object(&error).quoting(error.classify()))?;
        refused.map_or(Ok(head), Err)
    }

    /// What holds messages, items and parts, with its name.
    pub(super) fn conversations(&self) -> impl Iterator<Item = (&'static str, &'a RawValue)> + use<'a> {
        let held = [
            ("input", self.input),
            ("instructions", self.instructions),
            ("messages", self.messages),
            ("system", self.system),
        ];
        held.into_iter().filter_map(|(name, said)| Some((name, said?)))
    }

    /// Keeps a member for whoever knows its account, unless there are too many for that.
    pub(super) fn note(&mut self, unlisted: Unlisted) -> Result<(), Rejection> {
        if self.unlisted.contains(&unlisted) {
            return Ok(());
        }
        if unlisted.name.len() > LONGEST_UNLISTED {
            return Err(Rejection::unlisted(&unlisted.name, unlisted.instead, "NAME"));
        }
        if let Some(first) = self.unlisted.first().filter(|_| self.unlisted.len() >= MOST_UNLISTED) {
            return Err(Rejection::too_many_unlisted(&first.name, MOST_UNLISTED));
        }
        self.unlisted.push(unlisted);
        Ok(())
    }
}
