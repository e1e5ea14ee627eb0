//! What a memory system's own model calls are booked under (P34): they belong to no task of the run. Their key says of which bank the
//! memory system was working, on what, and what it asked the provider for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{call::Phase, ids::TaskKey, money::PicoUsd};

/// Setting of a memory system that says what the meter fails on purpose: a part of the fingerprint, as all its settings are.
pub const FAULT_SETTING: &str = "meter.fault";

/// What a memory system was doing when it called a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Storing what it was given.
    Retain,
    /// Making something of what it has stored, or getting ready to be searched.
    Consolidate,
    /// Searching.
    Recall,
    /// Answering by itself.
    Answer,
    /// Nothing, or several of these at once: nobody can say which of them the call was for.
    Unattributed,
    /// Being asked what no question of the dataset asks: for canaries, for what it holds, or by the latency probe.
    Check,
}

impl Stage {
    /// All stages, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Retain, Self::Consolidate, Self::Recall, Self::Answer, Self::Unattributed, Self::Check];
    /// What a system does while a bank is filled.
    pub const FILLING: [Self; 2] = [Self::Retain, Self::Consolidate];
    /// What a system does for a question.
    pub const ASKING: [Self; 2] = [Self::Recall, Self::Answer];

    /// The stage's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Retain => "retain",
            Self::Consolidate => "consolidate",
            Self::Recall => "recall",
            Self::Answer => "answer",
            Self::Unattributed => "unattributed",
            Self::Check => "check",
        }
    }

    /// The phase whose cap and turn the call takes. A call that cannot be attributed takes those of filling, which give way to answers.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::Retain | Self::Consolidate | Self::Unattributed => Phase::Retain,
            Self::Recall | Self::Check => Phase::Recall,
            Self::Answer => Phase::Answer,
        }
    }
}

/// What a memory system asks a provider for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's completions of a text.
    Completions,
    /// OpenAI's embeddings.
    Embeddings,
    /// Anthropic's messages.
    Messages,
    /// Whatever costs nothing: lists of models, counts of tokens.
    Free,
}

impl Service {
    /// All services, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Chat, Self::Responses, Self::Completions, Self::Embeddings, Self::Messages, Self::Free];

    /// The service's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::Free => "free",
        }
    }
}

/// Most services that a key can tell apart.
const SERVICES: u32 = 16;

/// What a metered call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeteredKey {
    /// Number of the bank within the run; `None` when it is not known.
    pub bank: Option<u32>,
    /// What the memory system was doing.
    pub stage: Stage,
    /// What it asked for.
    pub service: Service,
}

impl MeteredKey {
    /// The key under which such calls are stored.
    #[must_use]
    pub const fn task(self) -> TaskKey {
        let bank = match self.bank {
            Some(bank) if bank < TaskKey::MAX_BANKS => bank,
            _ => TaskKey::MAX_BANKS,
        };
        TaskKey::metered(bank, self.stage as u32 * SERVICES + self.service as u32)
    }

    /// What a stored key says; `None` for the keys of tasks.
    #[must_use]
    pub fn of_task(task: TaskKey) -> Option<Self> {
        if !task.is_metered() {
            return None;
        }
        let stage = *Stage::ALL.get((task.index() / SERVICES) as usize)?;
        let service = *Service::ALL.get((task.index() % SERVICES) as usize)?;
        let bank = Some(task.bank()).filter(|bank| *bank < TaskKey::MAX_BANKS);
        Some(Self { bank, stage, service })
    }
}

/// How a metered call ended: what its stored record has in place of the reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MeteredEnd {
    /// It was answered; `counted_here`: the provider told no number of tokens, so they were counted.
    Answered {
        /// Whether the tokens are the meter's own count.
        counted_here: bool,
    },
    /// It was answered from the call store, for free.
    Stored,
    /// The provider refused it with this status.
    Refused(u16),
    /// The meter failed it on purpose with this status (`--meter-fault`).
    FailedOnPurpose(u16),
    /// It was cut, or never answered: nobody knows what it cost.
    Cut,
    /// The provider could not be reached: it surely cost nothing.
    NotReached,
}

impl MeteredEnd {
    /// As a stored record has it.
    #[must_use]
    pub fn to_text(self) -> String {
        match self {
            Self::Answered { counted_here: false } => "answered".to_owned(),
            Self::Answered { counted_here: true } => "answered_counted".to_owned(),
            Self::Stored => "stored".to_owned(),
            Self::Refused(status) => format!("refused_{status}"),
            Self::FailedOnPurpose(status) => format!("fault_{status}"),
            Self::Cut => "cut".to_owned(),
            Self::NotReached => "not_reached".to_owned(),
        }
    }

    /// What a stored record says; `None` for texts that no build of this version writes.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let status = |text: &str| text.parse().ok();
        match text {
            "answered" => Some(Self::Answered { counted_here: false }),
            "answered_counted" => Some(Self::Answered { counted_here: true }),
            "stored" => Some(Self::Stored),
            "cut" => Some(Self::Cut),
            "not_reached" => Some(Self::NotReached),
            other => match other.split_once('_') {
                Some(("refused", code)) => status(code).map(Self::Refused),
                Some(("fault", code)) => status(code).map(Self::FailedOnPurpose),
                _ => None,
            },
        }
    }
}

/// Calls of a run's memory system that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeteredCalls {
    /// What they belong to.
    pub key: MeteredKey,
    /// The model, as it names itself.
    pub model: String,
    /// How they ended.
    pub end: MeteredEnd,
    /// Nobody knows what they cost: `cost` is the most.
    pub is_uncertain: bool,
    /// Their number.
    pub calls: u64,
    /// Tokens that were sent.
    pub prompt_tokens: u64,
    /// Tokens that came back.
    pub completion_tokens: u64,
    /// What they cost.
    pub cost: PicoUsd,
    /// Microseconds that they took in all.
    pub duration_us: u64,
    /// What those that were answered from the store had cost when they were made.
    pub saved: PicoUsd,
}

/// How memory systems' own calls are let through. Stored with a run; it changes no score and may differ on resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeterPlan {
    /// Models that may be called; empty: all that have a price, and every one where the run may use unpriced models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Accounts that calls go to, by the provider whose wire they speak (`openai`, `anthropic`); the account of that name where
    /// none is given.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub accounts: std::collections::BTreeMap<String, String>,
    /// Variables of the memory system's environment beside the usual ones: name → text with `{url}` and `{key}`.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub variables: std::collections::BTreeMap<String, String>,
}

impl MeterPlan {
    /// Whether a model is one of a pattern of [`MeterPlan::allow`]: its name, or what begins like it where it ends with `*`.
    #[must_use]
    pub fn is_of(pattern: &str, model: &str) -> bool {
        pattern.strip_suffix('*').map_or(pattern == model, |begin| model.starts_with(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TaskKind;

    #[test]
    fn models_are_allowed_by_name_or_by_what_they_begin_with() {
        let is_of = MeterPlan::is_of;
        assert!(is_of("gpt-4o-mini", "gpt-4o-mini") && !is_of("gpt-4o", "gpt-4o-mini"));
        assert!(is_of("gpt-4o*", "gpt-4o-mini") && is_of("*", "anything") && !is_of("text-*", "gpt-4o"));
    }

    #[test]
    fn p34_keys_say_what_they_are_made_of_and_are_no_tasks() {
        for bank in [None, Some(0), Some(TaskKey::MAX_BANKS - 1)] {
            for stage in Stage::ALL {
                for service in Service::ALL {
                    let key = MeteredKey { bank, stage, service };
                    assert_eq!(MeteredKey::of_task(key.task()), Some(key));
                    assert_eq!(TaskKey::from_wire(key.task().0), None, "no message names it");
                }
            }
        }
        for task in [TaskKey::OVERHEAD, TaskKey::PROBE, TaskKey::retain(3, 1), TaskKey::judge(1, 2, 15, 31)] {
            assert_eq!(MeteredKey::of_task(task), None);
            assert!(task < MeteredKey { bank: Some(0), stage: Stage::Retain, service: Service::Chat }.task());
        }
        assert_eq!(TaskKey::OVERHEAD.kind(), TaskKind::Judge);
    }

    #[test]
    fn ends_are_stored_as_texts_that_are_read_again() {
        let ends = [
            MeteredEnd::Answered { counted_here: false },
            MeteredEnd::Answered { counted_here: true },
            MeteredEnd::Stored,
            MeteredEnd::Refused(429),
            MeteredEnd::FailedOnPurpose(500),
            MeteredEnd::Cut,
            MeteredEnd::NotReached,
        ];
        for end in ends {
            assert_eq!(MeteredEnd::from_text(&end.to_text()), Some(end));
        }
        for other in ["", "stop", "refused_", "refused_x", "fault"] {
            assert_eq!(MeteredEnd::from_text(other), None, "{other}");
        }
    }
}
