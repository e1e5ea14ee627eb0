//! MemBench's JSON.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{
        Error, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct Trajectory {
    #[serde(deserialize_with = "id")]
    pub(super) tid: String,
    /// Steps, or sessions of steps; [`super::steps`] reads them.
    pub(super) message_list: Vec<Value>,
    /// The question, in published files.
    #[serde(default, rename = "QA")]
    pub(super) qa: Option<Qa>,
    /// The same in files as the generator writes them.
    #[serde(default)]
    pub(super) question_list: Option<Vec<Qa>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Qa {
    pub(super) question: String,
    #[serde(default)]
    pub(super) answer: Option<Value>,
    /// Steps that hold the evidence.
    #[serde(default)]
    pub(super) target_step_id: Value,
    /// By their letters.
    pub(super) choices: BTreeMap<String, Value>,
    pub(super) ground_truth: String,
    #[serde(default)]
    pub(super) time: Option<Value>,
}

/// Numbers or texts.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(D::Error::custom("a number or a text is expected")),
    }
}

/// A file of either layout.
#[derive(Debug, Deserialize)]
pub(super) struct Layout(BTreeMap<String, Part>);

/// What a key of a file holds: trajectories, or such of several scenarios.
#[derive(Debug)]
enum Part {
    Trajectories(Vec<Trajectory>),
    Scenarios(BTreeMap<String, Vec<Trajectory>>),
}

// not untagged, which would forget where in the file something is wrong
impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartVisitor;
        impl<'de> Visitor<'de> for PartVisitor {
            type Value = Part;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of trajectories, or an object of such lists")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Part, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Part::Trajectories)
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Part, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(object)).map(Part::Scenarios)
            }
        }
        deserializer.deserialize_any(PartVisitor)
    }
}

/// Trajectories of one type and scenario.
pub(super) struct Group {
    pub(super) kind: String,
    pub(super) scenario: String,
    /// Where they stand in the file.
    pub(super) field: String,
    pub(super) trajectories: Vec<Trajectory>,
}

impl Layout {
    /// The groups of a file of one type: its keys are scenarios. Else the field at fault and what is wrong with it.
    pub(super) fn of_type(self, kind: &str) -> Result<Vec<Group>, (String, &'static str)> {
        let group = |(scenario, part): (String, Part)| match part {
            Part::Trajectories(trajectories) => {
                Ok(Group { kind: kind.to_owned(), field: scenario.clone(), scenario, trajectories })
            }
            Part::Scenarios(_) => Err((
                scenario,
                "is no list: a file of types and scenarios has a name that ends in LowLevel or HighLevel",
            )),
        };
        self.0.into_iter().map(group).collect()
    }

    /// The groups of a merged file: its keys are types, which hold scenarios or, where they have none, trajectories.
    pub(super) fn merged(self) -> Vec<Group> {
        let groups = |(kind, part): (String, Part)| match part {
            Part::Trajectories(trajectories) => {
                vec![Group { field: kind.clone(), kind, scenario: "none".to_owned(), trajectories }]
            }
            Part::Scenarios(scenarios) => {
                let group = |(scenario, trajectories)| {
                    let field = format!("{kind}.{scenario}");
                    Group { field, kind: kind.clone(), scenario, trajectories }
                };
                scenarios.into_iter().map(group).collect()
            }
        };
        self.0.into_iter().flat_map(groups).collect()
    }
}
