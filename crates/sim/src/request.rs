//! Reads requests: checks them as OpenAI does, and derives the identity that replies and faults depend on.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    draw::{KeyBuilder, RequestKey},
    error::ApiError,
    schema::Schema,
};

/// Top level of a request body: sorted, values unread.
pub(crate) type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// A chat message, as far as the simulator reads it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) role: Cow<'a, str>,
    pub(crate) text: Cow<'a, str>,
}

/// What form the reply must have.
#[derive(Debug, PartialEq)]
pub(crate) enum ReplyForm {
    Text,
    /// JSON mode without a schema.
    JsonObject,
    JsonSchema(Box<Schema>),
}

/// A checked chat request.
#[derive(Debug)]
pub(crate) struct ChatRequest<'a> {
    pub(crate) model: Cow<'a, str>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) form: ReplyForm,
    pub(crate) max_output: Option<u64>,
    pub(crate) choices: u64,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// The schema that the reply must follow, as it stands in the body: it is part of the prompt that is paid.
    pub(crate) schema_text: Option<&'a str>,
    /// The tool that the reply calls, with what the reply's form gives it.
    pub(crate) tool: Option<String>,
    /// The prompt is to be written into a cache (Anthropic).
    pub(crate) writes_cache: bool,
    pub(crate) key: RequestKey,
}

impl<'a> ChatRequest<'a> {
    /// Reads a body. The draw is the header `x-bench-draw`, else the parameter `seed`, else 0; streaming and who asks do not
    /// change the identity, every other parameter does.
    pub(crate) fn parse(body: &'a [u8], draw_header: Option<&str>) -> Result<Self, ApiError> {
        let fields = read_fields(body)?;
        let model = model(&fields)?;
        let messages: Vec<Message<'a>> = match fields.get("messages") {
            None => return Err(ApiError::missing("messages")),
            Some(raw) => serde_json::from_str(raw.get()).map_err(|e| wrong_messages(&e))?,
        };
        if messages.is_empty() {
            return Err(ApiError::invalid(
                Some("empty_array"),
                Some("messages"),
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            ));
        }
        range(&fields, "temperature", 2.0)?;
        range(&fields, "top_p", 1.0)?;
        let max_output = positive(&fields, "max_completion_tokens")?.or(positive(&fields, "max_tokens")?);
        let choices = positive(&fields, "n")?.unwrap_or(1);
        if choices > 128 {
            return Err(ApiError::invalid(
                Some("integer_above_max_value"),
                Some("n"),
                "Invalid 'n': expected a value <= 128.",
            ));
        }
        let stream = field(&fields, "stream", "a boolean")?.unwrap_or(false);
        let options: Option<StreamOptions> = field(&fields, "stream_options", "an object")?;
        let has_result = messages.last().is_some_and(|message| message.role == "tool");
        let (form, schema_text, tool) = match called_tool(&fields, has_result)? {
            Some(tool) => (ReplyForm::JsonSchema(tool.schema), Some(tool.text), Some(tool.name)),
            None => (reply_form(&fields)?, schema_text(&fields), None),
        };

        let mut key = KeyBuilder::new("chat");
        key.part(model.as_bytes());
        for message in &messages {
            key.part(message.role.as_bytes());
            key.part(message.text.as_bytes());
        }
        parameters(&mut key, &fields, &["model", "messages", "stream", "stream_options", "seed"]);
        key.part(&draw(&fields, draw_header)?.to_le_bytes());
        Ok(Self {
            model,
            messages,
            form,
            max_output,
            choices,
            stream,
            include_usage: options.is_some_and(|options| options.include_usage),
            schema_text,
            tool,
            writes_cache: false,
            key: key.finish(),
        })
    }

    /// The text that an answer is taken from.
    pub(crate) fn last_user_text(&self) -> &str {
        let user = self.messages.iter().rev().find(|message| message.role == "user");
        user.or(self.messages.last()).map_or("", |message| &message.text)
    }
}

/// A checked embeddings request.
#[derive(Debug)]
pub(crate) struct EmbeddingRequest<'a> {
    pub(crate) model: Cow<'a, str>,
    pub(crate) inputs: Vec<Cow<'a, str>>,
    pub(crate) dimensions: Option<usize>,
    pub(crate) base64: bool,
    pub(crate) key: RequestKey,
}

impl<'a> EmbeddingRequest<'a> {
    /// Reads a body; see [`ChatRequest::parse`].
    pub(crate) fn parse(body: &'a [u8], draw_header: Option<&str>) -> Result<Self, ApiError> {
        let fields = read_fields(body)?;
        let model = model(&fields)?;
        let raw = fields.get("input").ok_or_else(|| ApiError::missing("input"))?;
        let input: Input<'a> = serde_json::from_str(raw.get())
            .map_err(|_| ApiError::wrong_type("input", "a string, an array of strings, or an array of token arrays"))?;
        let inputs = input.into_texts();
        if inputs.is_empty() || inputs.len() > 2048 || inputs.iter().any(|text| text.is_empty()) {
            return Err(ApiError::invalid(
                None,
                Some("input"),
                "'$.input' is invalid: expected 1 to 2048 inputs that are not empty.",
            ));
        }
        let dimensions = positive(&fields, "dimensions")?;
        if dimensions.is_some_and(|dimensions| dimensions > 8192) {
            return Err(ApiError::invalid(
                Some("integer_above_max_value"),
                Some("dimensions"),
                "Invalid 'dimensions': expected a value <= 8192.",
            ));
        }
        let base64 = match field::<Cow<'_, str>>(&fields, "encoding_format", "a string")?.as_deref() {
            None | Some("float") => false,
            Some("base64") => true,
            Some(other) => {
                let message = format!("Invalid value: '{other}'. Supported values are: 'float' and 'base64'.");
                return Err(ApiError::invalid(Some("invalid_value"), Some("encoding_format"), message));
            }
        };
        let mut key = KeyBuilder::new("embeddings");
        key.part(model.as_bytes());
        inputs.iter().for_each(|text| key.part(text.as_bytes()));
        parameters(&mut key, &fields, &["model", "input", "seed"]);
        key.part(&draw(&fields, draw_header)?.to_le_bytes());
        Ok(Self {
            model,
            inputs,
            dimensions: dimensions.map(|dimensions| dimensions as usize),
            base64,
            key: key.finish(),
        })
    }
}

pub(crate) fn read_fields(body: &[u8]) -> Result<Fields<'_>, ApiError> {
    serde_json::from_slice(body).map_err(|e| {
        let message = format!("We could not parse the JSON body of your request: expected a JSON object ({e}).");
        ApiError::invalid(None, None, message)
    })
}

pub(crate) fn model<'a>(fields: &Fields<'a>) -> Result<Cow<'a, str>, ApiError> {
    let raw = fields.get("model").ok_or_else(|| ApiError::invalid(None, None, "you must provide a model parameter"))?;
    serde_json::from_str::<Text<'a>>(raw.get())
        .map(|text| text.0)
        .map_err(|_| ApiError::wrong_type("model", "a string"))
}

/// An optional field; `null` is the same as absent.
pub(crate) fn field<T: DeserializeOwned>(
    fields: &Fields<'_>,
    name: &str,
    expected: &str,
) -> Result<Option<T>, ApiError> {
    match fields.get(name) {
        None => Ok(None),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| ApiError::wrong_type(name, expected)),
    }
}

pub(crate) fn positive(fields: &Fields<'_>, name: &str) -> Result<Option<u64>, ApiError> {
    match field::<i64>(fields, name, "an integer")? {
        Some(value) if value < 1 => {
            let message = format!(
                "Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {value} instead."
            );
            Err(ApiError::invalid(Some("integer_below_min_value"), Some(name), message))
        }
        value => Ok(value.map(|value| value as u64)),
    }
}

pub(crate) fn range(fields: &Fields<'_>, name: &str, max: f64) -> Result<(), ApiError> {
    match field::<f64>(fields, name, "a decimal")? {
        Some(value) if !(0.0..=max).contains(&value) => {
            let (code, bound) = if value < 0.0 {
                ("decimal_below_min_value", ">= 0")
            } else {
                ("decimal_above_max_value", "no larger value")
            };
            let message = format!("Invalid '{name}': {value} is outside of 0 to {max}. Expected {bound}.");
            Err(ApiError::invalid(Some(code), Some(name), message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn draw(fields: &Fields<'_>, header: Option<&str>) -> Result<i64, ApiError> {
    match header {
        Some(text) => text.trim().parse().map_err(|_| ApiError::wrong_type("x-bench-draw", "an integer")),
        None => Ok(field(fields, "seed", "an integer")?.unwrap_or(0)),
    }
}

/// Parameters that tell the provider who asks or how to account for it: they change no reply.
const WITHOUT_INFLUENCE: [&str; 6] =
    ["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"];

/// Adds all parameters except `skip`, in order of their names; `null` is the same as absent.
pub(crate) fn parameters(key: &mut KeyBuilder, fields: &Fields<'_>, skip: &[&str]) {
    for (name, raw) in fields {
        let counts = !skip.contains(&name.as_ref()) && !WITHOUT_INFLUENCE.contains(&name.as_ref());
        if counts && raw.get() != "null" {
            key.part(name.as_bytes());
            key.part(raw.get().as_bytes());
        }
    }
}

fn wrong_messages(e: &serde_json::Error) -> ApiError {
    ApiError::wrong_type("messages", &format!("an array of messages with role and content ({e})"))
}

/// A function that the reply calls.
struct CalledTool<'a> {
    name: String,
    schema: Box<Schema>,
    text: &'a str,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    parameters: &'a RawValue,
}

/// The function that the reply calls: the one that is named, else the first. A simulated model that may choose has no better
/// idea; once it has a result it answers. With `none` there is none.
fn called_tool<'a>(fields: &Fields<'a>, has_result: bool) -> Result<Option<CalledTool<'a>>, ApiError> {
    let choice: Option<serde_json::Value> = field(fields, "tool_choice", "a string or an object")?;
    let named = choice.as_ref().and_then(|choice| choice.pointer("/function/name")?.as_str());
    let may = match &choice {
        None => !has_result,
        Some(choice) => choice != "none" && (choice != "auto" || !has_result),
    };
    let Some(raw) = fields.get("tools").filter(|_| may) else { return Ok(None) };
    let raw: &'a RawValue = raw;
    let refuse = |message: String| ApiError::invalid(None, Some("tools"), message);
    let tools: Vec<Tool<'a>> = serde_json::from_str(raw.get()).map_err(|e| refuse(format!("Invalid 'tools': {e}")))?;
    let tool = tools.into_iter().find(|tool| named.is_none_or(|named| named == tool.function.name));
    let Function { name, parameters } =
        tool.ok_or_else(|| refuse("Invalid 'tool_choice': no such function in 'tools'".to_owned()))?.function;
    let text = parameters.get();
    let schema = serde_json::from_str(text).map_err(|e| refuse(format!("Invalid 'tools': parameters: {e}")))?;
    Ok(Some(CalledTool { name, schema, text }))
}

fn reply_form(fields: &Fields<'_>) -> Result<ReplyForm, ApiError> {
    let Some(format) = field::<ResponseFormat>(fields, "response_format", "an object")? else {
        return Ok(ReplyForm::Text);
    };
    match (format.kind.as_str(), format.json_schema) {
        ("text", _) => Ok(ReplyForm::Text),
        ("json_object", _) => Ok(ReplyForm::JsonObject),
        ("json_schema", Some(JsonSchema { schema: Some(schema) })) => Ok(ReplyForm::JsonSchema(schema)),
        ("json_schema", _) => Err(ApiError::missing("response_format.json_schema.schema")),
        (other, _) => {
            let message =
                format!("Invalid value: '{other}'. Supported values are: 'json_object', 'json_schema', and 'text'.");
            Err(ApiError::invalid(Some("invalid_value"), Some("response_format.type"), message))
        }
    }
}

/// The text of `response_format.json_schema.schema`; the form was checked before.
fn schema_text<'a>(fields: &Fields<'a>) -> Option<&'a str> {
    #[derive(Deserialize)]
    struct Format<'a> {
        #[serde(borrow)]
        json_schema: Option<Of<'a>>,
    }
    #[derive(Deserialize)]
    struct Of<'a> {
        #[serde(borrow)]
        schema: Option<&'a RawValue>,
    }
    let raw: &'a RawValue = fields.get("response_format")?;
    let format: Format<'a> = serde_json::from_str(raw.get()).ok()?;
    Some(format.json_schema?.schema?.get())
}

#[derive(Deserialize)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<JsonSchema>,
}

#[derive(Deserialize)]
struct JsonSchema {
    schema: Option<Box<Schema>>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// A string that is borrowed when it holds no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Message<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            role: Cow<'a, str>,
            #[serde(borrow)]
            content: Option<Content<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Content<'a> {
            Text(#[serde(borrow)] Text<'a>),
            Parts(#[serde(borrow)] Vec<Part<'a>>),
        }
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow)]
            text: Option<Cow<'a, str>>,
        }
        let raw = Raw::deserialize(deserializer)?;
        let text = match raw.content {
            None => Cow::Borrowed(""),
            Some(Content::Text(text)) => text.0,
            Some(Content::Parts(parts)) => {
                parts.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n").into()
            }
        };
        Ok(Self { role: raw.role, text })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input<'a> {
    One(#[serde(borrow)] Text<'a>),
    Many(#[serde(borrow)] Vec<Text<'a>>),
    Tokens(Vec<u32>),
    ManyTokens(Vec<Vec<u32>>),
}

impl<'a> Input<'a> {
    fn into_texts(self) -> Vec<Cow<'a, str>> {
        // token numbers stand for words of their own: the simulator has no need to decode them
        let words = |tokens: &Vec<u32>| {
            Cow::Owned(tokens.iter().map(|token| format!("t{token}")).collect::<Vec<_>>().join(" "))
        };
        match self {
            Self::One(text) => vec![text.0],
            Self::Many(texts) => texts.into_iter().map(|text| text.0).collect(),
            Self::Tokens(tokens) => vec![words(&tokens)],
            Self::ManyTokens(many) => many.iter().map(words).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(body: &str, draw: Option<&str>) -> RequestKey {
        ChatRequest::parse(body.as_bytes(), draw).expect("a good request").key
    }

    #[test]
    fn identity_is_model_messages_parameters_and_draw() {
        let base = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0}"#;
        let same = [
            r#"{ "temperature": 0, "messages":[{"content":"hi","role":"user"}], "model":"m" }"#,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"temperature":0,"n":null,"user":"run-7"}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"h\u0069"}],"temperature":0,"stream":true,"stream_options":{"include_usage":true}}"#,
        ];
        for body in same {
            assert_eq!(key(base, None), key(body, None), "{body}");
        }
        let different = [
            r#"{"model":"n","messages":[{"role":"user","content":"hi"}],"temperature":0}"#,
            r#"{"model":"m","messages":[{"role":"system","content":"hi"}],"temperature":0}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":1}"#,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0,"seed":1}"#,
        ];
        for body in different {
            assert_ne!(key(base, None), key(body, None), "{body}");
        }
        assert_eq!(key(base, Some("1")), key(different[3], None), "header and parameter are the same draw");
        assert_eq!(key(different[3], Some("0")), key(base, None), "the header wins");
    }

    #[test]
    fn malformed_requests_name_the_parameter() {
        let cases = [
            ("", None, None),
            ("[]", None, None),
            ("{}", None, None),
            (r#"{"model":1,"messages":[]}"#, Some("model"), Some("invalid_type")),
            (r#"{"model":"m"}"#, Some("messages"), Some("missing_required_parameter")),
            (r#"{"model":"m","messages":[]}"#, Some("messages"), Some("empty_array")),
            (r#"{"model":"m","messages":"hi"}"#, Some("messages"), Some("invalid_type")),
            (r#"{"model":"m","messages":[{"content":"x"}]}"#, Some("messages"), Some("invalid_type")),
            (
                r#"{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":3}"#,
                Some("temperature"),
                Some("decimal_above_max_value"),
            ),
            (
                r#"{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":0}"#,
                Some("max_tokens"),
                Some("integer_below_min_value"),
            ),
            (
                r#"{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema"}}"#,
                Some("response_format.json_schema.schema"),
                Some("missing_required_parameter"),
            ),
        ];
        for (body, param, code) in cases {
            let error = ChatRequest::parse(body.as_bytes(), None).expect_err(body);
            assert_eq!((error.status.as_u16(), error.param.as_deref(), error.code), (400, param, code), "{body}");
        }
        for body in [r#"{"model":"m","input":""}"#, r#"{"model":"m","input":[]}"#, r#"{"model":"m","input":{}}"#] {
            assert_eq!(EmbeddingRequest::parse(body.as_bytes(), None).expect_err(body).param.as_deref(), Some("input"));
        }
    }

    #[test]
    fn all_input_forms_of_embeddings_are_read() {
        for (body, count) in [
            (r#"{"model":"m","input":"a b"}"#, 1),
            (r#"{"model":"m","input":["a","b"]}"#, 2),
            (r#"{"model":"m","input":[1,2,3]}"#, 1),
            (r#"{"model":"m","input":[[1,2],[3]],"dimensions":8,"encoding_format":"base64"}"#, 2),
        ] {
            assert_eq!(EmbeddingRequest::parse(body.as_bytes(), None).expect(body).inputs.len(), count);
        }
    }
}
