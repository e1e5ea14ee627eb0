//! LoCoMo's JSON: what is read of it and what is written.
//!
//! Only conversation and questions are read. Image search words (`query`), image URLs and the side annotations
//! (`observation`, summaries) are passed over: they are not part of what the speakers see.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Number;

/// One object of the file: a conversation with its questions.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) sample_id: String,
    pub(crate) conversation: Conversation,
    pub(crate) qa: Vec<Qa>,
}

/// Speakers, and sessions by number (as text, `session_10` would come before `session_2`).
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) speaker_a: String,
    pub(crate) speaker_b: String,
    pub(crate) sessions: BTreeMap<u32, Vec<RawTurn>>,
    /// May have numbers that have no session.
    pub(crate) dates: BTreeMap<u32, String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RawTurn {
    pub(crate) speaker: String,
    pub(crate) dia_id: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blip_caption: Option<String>,
}

/// One question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Qa {
    pub(crate) question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<Answer>,
    #[serde(default)]
    pub(crate) evidence: Vec<String>,
    pub(crate) category: Category,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adversarial_answer: Option<Answer>,
}

/// Most answers are texts, a few are numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Text(String),
    Number(Number),
}

impl From<Answer> for serde_json::Value {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Text(text) => Self::String(text),
            Answer::Number(number) => Self::Number(number),
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnswerVisitor;
        impl Visitor<'_> for AnswerVisitor {
            type Value = Answer;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or a number")
            }
            fn visit_str<E>(self, text: &str) -> Result<Answer, E> {
                Ok(Answer::Text(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Answer, E> {
                Ok(Answer::Text(text))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Answer, E> {
                Ok(Answer::Number(number.into()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Answer, E> {
                Ok(Answer::Number(number.into()))
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Answer, E> {
                Number::from_f64(number).map(Answer::Number).ok_or_else(|| E::custom("not a finite number"))
            }
        }
        deserializer.deserialize_any(AnswerVisitor)
    }
}

/// What a question asks for. The integers are those of the file; several tools name them wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Category {
    MultiHop = 1,
    Temporal = 2,
    OpenDomain = 3,
    SingleHop = 4,
    Adversarial = 5,
}

impl Category {
    pub(crate) const ALL: [Self; 5] =
        [Self::MultiHop, Self::Temporal, Self::OpenDomain, Self::SingleHop, Self::Adversarial];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MultiHop => "multi-hop",
            Self::Temporal => "temporal",
            Self::OpenDomain => "open-domain",
            Self::SingleHop => "single-hop",
            Self::Adversarial => "adversarial",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }
}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for Category {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|category| *category as u64 == number);
        known.ok_or_else(|| serde::de::Error::custom(format!("category {number} is not one of 1 to 5")))
    }
}

/// A key of the conversation object.
enum Key {
    SpeakerA,
    SpeakerB,
    Session(u32),
    Date(u32),
    Other,
}

impl Key {
    fn read(key: &str) -> Self {
        match key {
            "speaker_a" => Self::SpeakerA,
            "speaker_b" => Self::SpeakerB,
            _ => {
                let Some(rest) = key.strip_prefix("session_") else {
                    return Self::Other;
                };
                match rest.strip_suffix("_date_time") {
                    Some(number) => number.parse().map_or(Self::Other, Self::Date),
                    None => rest.parse().map_or(Self::Other, Self::Session),
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ConversationVisitor;
        impl<'de> Visitor<'de> for ConversationVisitor {
            type Value = Conversation;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with speaker_a, speaker_b, session_<n>, session_<n>_date_time")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Conversation, A::Error> {
                let (mut speaker_a, mut speaker_b) = (None, None);
                let mut conversation = Conversation::default();
                while let Some(key) = map.next_key::<String>()? {
                    match Key::read(&key) {
                        Key::SpeakerA => speaker_a = Some(map.next_value()?),
                        Key::SpeakerB => speaker_b = Some(map.next_value()?),
                        Key::Session(number) => {
                            if conversation.sessions.insert(number, map.next_value()?).is_some() {
                                return Err(serde::de::Error::custom(format!("session {number} is there twice")));
                            }
                        }
                        Key::Date(number) => {
                            conversation.dates.insert(number, map.next_value()?);
                        }
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                conversation.speaker_a = speaker_a.ok_or_else(|| serde::de::Error::missing_field("speaker_a"))?;
                conversation.speaker_b = speaker_b.ok_or_else(|| serde::de::Error::missing_field("speaker_b"))?;
                Ok(conversation)
            }
        }
        deserializer.deserialize_map(ConversationVisitor)
    }
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("speaker_a", &self.speaker_a)?;
        map.serialize_entry("speaker_b", &self.speaker_b)?;
        for (number, turns) in &self.sessions {
            if let Some(date) = self.dates.get(number) {
                map.serialize_entry(&format!("session_{number}_date_time"), date)?;
            }
            map.serialize_entry(&format!("session_{number}"), turns)?;
        }
        map.end()
    }
}
