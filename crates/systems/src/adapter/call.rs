//! One call of an adapter, compiled: templates become a request, or the arguments of a tool; a response becomes JSON that was looked
//! at.
//!
//! In come a step's variables and where the server is; out comes what the response held, with the usage that it told, or a
//! failure of a class. Start reading at `Call::compile`, `Call::request` and `Call::read`, in this order of a call's life.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use bench_proto::{
    call::Usage,
    failure::Failure,
    text::not_finite,
    trace::{StepTrace, TRACEPARENT},
};
use reqwest::{
    Method, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use super::{
    handle,
    http::{self, NO_REPLY, Request, Response, SHAPE},
    mcp::{Connected, tools::ToolCall},
    multipart::{self, Part},
    path::Path,
    said::{excerpt, looks_like_a_page},
    spec::{AuthPlace, AuthSpec, CallSpec},
    sse,
    steps::{Steps, Waiting},
    template::{Template, Vars, escape},
    time,
};

/// A call, compiled.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// What it is for, such as `recall`; with the request line the name in messages.
    pub(super) what: String,
    sent: Sent,
    accept: Vec<u16>,
    timeout: Duration,
    expect: Vec<(Path, Value)>,
    message: Option<Path>,
    events: Vec<String>,
    last_event: Option<String>,
    usage: (Option<Path>, Option<Path>),
    /// What is repeated and what follows.
    pub(super) steps: Steps,
    names: BTreeSet<String>,
    /// Variables without which the request would be about another thing, or about everything.
    about: Vec<String>,
}

/// Variables that say what a request is about, wherever they stand in it.
const ABOUT: [&str; 5] = ["bank", "name", "item", "replaces", "replaces_key"];

/// What goes to the system.
#[derive(Debug, Clone)]
enum Sent {
    Request(Requested),
    Tool(ToolCall),
}

/// A request over HTTP.
#[derive(Debug, Clone)]
struct Requested {
    method: Method,
    path: Template,
    query: Vec<(String, Template)>,
    headers: Vec<(HeaderName, Template)>,
    body: Option<Body>,
}

#[derive(Debug, Clone)]
enum Body {
    Json(Template),
    Text(Template),
    Parts(Vec<Part>),
}

/// A response that was read and looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    /// JSON, or the text of a body that is none; `null` when it was empty.
    pub(super) value: Value,
    /// Events, when that is what came.
    pub(super) events: Vec<sse::Event>,
    pub(super) usage: Usage,
    /// What is not done yet, of a call that only looks: nothing behind it was sent.
    pub(super) waiting: Option<Waiting>,
}

/// Where the calls of a system go.
pub(super) enum Connection<'a> {
    Server(ToServer<'a>),
    /// A server whose tools are called, and the step whose trace the call brings along.
    Tools(&'a Connected, Option<&'a StepTrace>),
}

/// What all requests of a system share.
pub(super) struct ToServer<'a> {
    pub(super) client: &'a reqwest::Client,
    pub(super) base: &'a Url,
    pub(super) auth: Option<&'a Secret>,
    pub(super) headers: &'a HeaderMap,
    /// The step whose trace the request brings along.
    pub(super) trace: Option<&'a StepTrace>,
    pub(super) max_bytes: usize,
    pub(super) redirects: bool,
}

/// A secret that goes with every request.
#[derive(Clone)]
pub(super) struct Secret {
    place: AuthPlace,
    name: String,
    value: secrecy::SecretString,
}

impl Secret {
    /// Reads the secret that a file names.
    ///
    /// # Errors
    /// When it is not there, or no header can carry it.
    pub(super) fn read(auth: &AuthSpec) -> Result<Option<Self>, String> {
        let found = match (&auth.env, &auth.file) {
            (Some(name), _) => std::env::var(name).ok().filter(|value| !value.trim().is_empty()),
            (None, Some(path)) => std::fs::read_to_string(path).ok(),
            (None, None) => return Err("auth: name the secret with `env` or `file`".to_owned()),
        };
        let Some(found) = found else {
            if auth.optional {
                return Ok(None);
            }
            return Err(match (&auth.env, &auth.file) {
                (Some(name), _) => {
                    format!("the environment variable {name} is not set: it holds the key of the system")
                }
                (_, file) => format!("{}: the key of the system cannot be read", file.as_deref().unwrap_or_default()),
            });
        };
        let value = format!("{}{}", auth.prefix, found.trim());
        if HeaderValue::from_str(&value).is_err() {
            return Err("the key of the system holds characters that no header can carry".to_owned());
        }
        Ok(Some(Self { place: auth.place, name: auth.name.clone(), value: value.into() }))
    }

    /// Adds it to a request.
    ///
    /// # Errors
    /// When no header of its name can carry it.
    pub(super) fn add(&self, headers: &mut HeaderMap, url: &mut Url) -> Result<(), String> {
        use secrecy::ExposeSecret;
        let secret = self.value.expose_secret();
        let header = |text: &str| {
            let mut value = HeaderValue::from_str(text).map_err(|e| e.to_string())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        };
        match self.place {
            AuthPlace::Header if self.name.eq_ignore_ascii_case("authorization") => {
                drop(headers.insert(AUTHORIZATION, header(secret)?));
            }
            AuthPlace::Header => {
                let name: HeaderName = self.name.parse().map_err(|_| format!("'{}' is no header", self.name))?;
                drop(headers.insert(name, header(secret)?));
            }
            AuthPlace::Cookie => drop(headers.insert(COOKIE, header(&format!("{}={secret}", self.name))?)),
            AuthPlace::Query => drop(url.query_pairs_mut().append_pair(&self.name, secret)),
        }
        Ok(())
    }
}

impl Requested {
    fn compile(what: &str, spec: &CallSpec, known: &[&str]) -> Result<Self, String> {
        let at = |field: &str, error: String| format!("{what}.{field}: {error}");
        let (method, path) = spec
            .request
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(|| at("request", "write a method and a path, such as `POST /search`".to_owned()))?;
        let method = match method {
            "GET" => Method::GET,
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            "DELETE" => Method::DELETE,
            other => return Err(at("request", format!("unknown method '{other}': GET, POST, PUT, PATCH or DELETE"))),
        };
        let path = path.trim();
        if !path.starts_with('/') || path.starts_with("//") {
            return Err(at("request", format!("the path '{path}' must begin with one '/'")));
        }
        let path = Template::text(path, known).map_err(|e| at("request", e))?;
        let pair = |field: &str, key: &str, text: &str| {
            Template::text(text, known).map_err(|e| at(&format!("{field}.{key}"), e))
        };
        let query = spec.query.iter().map(|(key, text)| Ok::<_, String>((key.clone(), pair("query", key, text)?)));
        let headers = spec.headers.iter().map(|(key, text)| {
            let name: HeaderName = key.parse().map_err(|_| at("headers", format!("'{key}' is no header")))?;
            Ok::<_, String>((name, pair("headers", key, text)?))
        });
        let parts = spec.multipart.iter().map(|(name, part)| {
            let file = part.file.as_ref().map(|file| pair("multipart", name, file)).transpose()?;
            Ok::<_, String>(Part { name: name.clone(), file, text: pair("multipart", name, &part.text)? })
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let body = match (&spec.body, &spec.text_body, parts.is_empty()) {
            (None, None, true) => None,
            (Some(body), None, true) => Some(Body::Json(Template::compile(body, known).map_err(|e| at("body", e))?)),
            (None, Some(text), true) => Some(Body::Text(Template::text(text, known).map_err(|e| at("text_body", e))?)),
            (None, None, false) => Some(Body::Parts(parts)),
            _ => return Err(at("body", "give one of `body`, `text_body` and `multipart`".to_owned())),
        };
        Ok(Self {
            method,
            path,
            query: query.collect::<Result<_, _>>()?,
            headers: headers.collect::<Result<_, _>>()?,
            body,
        })
    }

    /// Its variables, and those of its path.
    fn names(&self, names: &mut BTreeSet<String>, in_path: &mut BTreeSet<String>) {
        self.path.names(in_path);
        names.extend(in_path.iter().cloned());
        self.query.iter().for_each(|(_, template)| template.names(names));
        self.headers.iter().for_each(|(_, template)| template.names(names));
        match &self.body {
            Some(Body::Json(template) | Body::Text(template)) => template.names(names),
            Some(Body::Parts(parts)) => parts.iter().for_each(|part| {
                part.file.iter().chain([&part.text]).for_each(|template| template.names(names));
            }),
            None => {}
        }
    }
}

impl Call {
    /// Compiles a call; `known` are its variables.
    ///
    /// # Errors
    /// What is wrong, with the name of the field.
    pub(super) fn compile(what: &str, spec: &CallSpec, known: &[&str], timeout: Duration) -> Result<Self, String> {
        let at = |field: &str, error: String| format!("{what}.{field}: {error}");
        let (name, sent) = match &spec.tool {
            Some(tool) => (format!("tool {tool}"), Sent::Tool(ToolCall::compile(what, tool, spec, known)?)),
            None => (spec.request.clone(), Sent::Request(Requested::compile(what, spec, known)?)),
        };
        let (mut names, mut in_path) = (BTreeSet::new(), BTreeSet::new());
        match &sent {
            Sent::Request(request) => request.names(&mut names, &mut in_path),
            Sent::Tool(tool) => tool.names(&mut names),
        }
        let steps = Steps::compile(what, spec, known, timeout)?;
        let about = names.iter().filter(|name| in_path.contains(*name) || ABOUT.contains(&name.as_str()));
        Ok(Self {
            what: format!("{what} ({name})"),
            about: about.cloned().collect(),
            sent,
            accept: spec.accept.clone(),
            timeout: spec.timeout.as_deref().map_or(Ok(timeout), time::parse).map_err(|e| at("timeout", e))?,
            expect: spec.expect.iter().map(|e| (Path::new(&e.path), e.is.clone())).collect(),
            message: spec.message.as_deref().map(Path::new),
            events: spec.events.clone(),
            last_event: spec.last_event.clone(),
            usage: spec.usage.as_ref().map_or((None, None), |usage| {
                (usage.prompt_tokens.as_deref().map(Path::new), usage.completion_tokens.as_deref().map(Path::new))
            }),
            names: steps.then().iter().flat_map(|step| step.names.iter().cloned()).chain(names).collect(),
            steps,
        })
    }

    /// Whether the request has a variable.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The variables of the request.
    pub(super) fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Longest time of the request, with what is repeated and what follows.
    pub(super) fn timeout(&self) -> Duration {
        self.steps.longest(self.timeout)
    }

    /// The tool that is called, for a server of tools.
    pub(super) fn tool(&self) -> Option<&ToolCall> {
        match &self.sent {
            Sent::Tool(tool) => Some(tool),
            Sent::Request(_) => None,
        }
    }

    /// Whether the request changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        matches!(&self.sent, Sent::Request(request) if request.method == Method::GET)
    }

    fn requested(&self) -> Result<&Requested, Failure> {
        match &self.sent {
            Sent::Request(request) => Ok(request),
            Sent::Tool(_) => Err(self.broken("a tool is called, and no request sent")),
        }
    }

    /// Method and path for these variables.
    pub(super) fn line(&self, vars: &Vars) -> String {
        match &self.sent {
            Sent::Request(request) => format!("{} {}", request.method, request.path.render_text(vars, &escape)),
            Sent::Tool(tool) => format!("tool {}", tool.name),
        }
    }

    /// Refuses what would be about another thing, or about everything.
    fn check_about(&self, vars: &Vars) -> Result<(), Failure> {
        match self.about.iter().find(|name| !handle::names_one(vars.get(name))) {
            Some(name) => {
                Err(self.broken(format!("{{{name}}} names nothing, and the request would be about something else")))
            }
            None => Ok(()),
        }
    }

    /// Where the request goes for these variables: to this one thing below the base URL, or nowhere.
    pub(super) fn url(&self, base: &Url, vars: &Vars) -> Result<Url, Failure> {
        self.check_about(vars)?;
        let request = self.requested()?;
        let path = request.path.render_text(vars, &escape);
        let below = base.as_str().trim_end_matches('/');
        let mut url = Url::parse(&format!("{below}{path}")).map_err(|e| self.broken(e))?;
        let parts = |path: &str| path.split(['?', '#']).next().unwrap_or_default().matches('/').count();
        if parts(url.path()) != parts(base.path().trim_end_matches('/')) + parts(&path) {
            return Err(self.broken(format!("'{path}' leads elsewhere")));
        }
        for (key, template) in &request.query {
            if let Some(value) = template.render(vars) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                url.query_pairs_mut().append_pair(key, &text);
            }
        }
        Ok(url)
    }

    fn broken(&self, error: impl std::fmt::Display) -> Failure {
        Failure::permanent("system_request", format!("{}: {error}", self.what))
    }

    /// The request for these variables.
    pub(super) fn request(&self, connection: &ToServer<'_>, vars: &Vars) -> Result<Request, Failure> {
        let broken = |error: String| self.broken(error);
        let mut url = self.url(connection.base, vars)?;
        let requested = self.requested()?;
        let mut headers = connection.headers.clone();
        let body = match &requested.body {
            None => None,
            Some(Body::Json(template)) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let value = template.render(vars).unwrap_or(Value::Null);
                Some(serde_json::to_vec(&value).map_err(|e| broken(e.to_string()))?)
            }
            Some(Body::Text(template)) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
                Some(template.render_text(vars, &|text| text.to_owned()).into_bytes())
            }
            Some(Body::Parts(parts)) => {
                let (body, kind) = multipart::render(parts, vars);
                headers.insert(CONTENT_TYPE, HeaderValue::from_str(&kind).map_err(|e| broken(e.to_string()))?);
                Some(body)
            }
        };
        for (name, template) in &requested.headers {
            let text = template.render_text(vars, &|text| text.to_owned());
            headers.insert(name.clone(), HeaderValue::from_str(&text).map_err(|e| broken(format!("{name}: {e}")))?);
        }
        // the system's own spans join the trace of the question
        if let Some(traceparent) = connection.trace.and_then(|step| step.next_traceparent().parse().ok()) {
            headers.insert(TRACEPARENT, traceparent);
        }
        if let Some(secret) = connection.auth {
            secret.add(&mut headers, &mut url).map_err(broken)?;
        }
        Ok(Request {
            method: requested.method.clone(),
            url,
            headers,
            body,
            timeout: self.timeout,
            max_bytes: connection.max_bytes,
            redirects: connection.redirects,
        })
    }

    /// Sends the request, or calls the tool, and looks at the response.
    ///
    /// # Errors
    /// What went wrong, with the class that tells whether another try can help.
    pub(super) async fn send(&self, connection: &Connection<'_>, vars: &Vars) -> Result<Read, Failure> {
        match connection {
            Connection::Server(server) => {
                let request = self.request(server, vars)?;
                let response = http::send(server.client, request, &self.what).await;
                response.and_then(|response| self.read(response))
            }
            Connection::Tools(connected, trace) => {
                self.check_about(vars)?;
                let tool = self.tool().ok_or_else(|| self.broken("a request is sent, and no tool called"))?;
                let value = Box::pin(connected.call(&self.what, tool, vars, *trace, self.timeout)).await?;
                self.look_at(value)
            }
        }
    }

    /// Looks at a response.
    pub(super) fn read(&self, response: Response) -> Result<Read, Failure> {
        let status = response.status;
        if !(200..300).contains(&status) && !self.accept.contains(&status) {
            return Err(self.refused(&response));
        }
        // several times as fast as the lossy reading, and nearly all are whole
        let text = match std::str::from_utf8(&response.body) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&response.body),
        };
        if response.is_events() || !self.events.is_empty() {
            return self.read_events(&text, (200..300).contains(&status), response.max_bytes);
        }
        let value: Value = if text.trim().is_empty() {
            Value::Null
        } else {
            http::check_memory(text.as_bytes(), response.max_bytes, &self.what)?;
            match serde_json::from_str(&text) {
                Ok(value) => value,
                Err(_) if looks_like_json(&response) => {
                    return Err(Failure::transient(SHAPE, format!("{}: {}", self.what, no_json(&text))));
                }
                Err(_) if looks_like_a_page(&text) => return Err(self.page(&text)),
                Err(_) => Value::String(text.into_owned()),
            }
        };
        if (200..300).contains(&status) {
            return self.look_at(value);
        }
        let usage = self.usage_of(&value);
        Ok(Read { value, usage, ..Read::default() })
    }

    /// Looks whether a response says what it must.
    pub(super) fn look_at(&self, value: Value) -> Result<Read, Failure> {
        let met = self.expect.is_empty() || self.expect.iter().any(|(path, is)| path.first(&value) == Some(is));
        if !met {
            return Err(self.unexpected(&value));
        }
        let usage = self.usage_of(&value);
        Ok(Read { value, usage, ..Read::default() })
    }

    fn read_events(&self, text: &str, is_success: bool, max_bytes: usize) -> Result<Read, Failure> {
        if looks_like_a_page(text) {
            return Err(self.page(text));
        }
        let events = sse::events(text, http::response_memory(max_bytes));
        let events = events.map_err(|error| http::too_much(error, &self.what))?;
        if let Some(error) = events.iter().find(|event| event.name == "error") {
            return Err(Failure::transient(
                "system_error_event",
                format!("{}: the system sent an error: {}", self.what, excerpt(&error.data.to_string())),
            ));
        }
        if let Some(last) = &self.last_event
            && events.iter().all(|event| event.name != *last)
        {
            return Err(Failure::transient(
                "system_cut_off",
                format!("{}: the stream ended without its '{last}' event", self.what),
            ));
        }
        let fits = |event: &sse::Event| self.expect.iter().any(|(path, is)| path.first(&event.data) == Some(is));
        if is_success && !self.expect.is_empty() && !events.iter().any(fits) {
            return Err(self.unexpected(events.last().map_or(&Value::Null, |last| &last.data)));
        }
        let usage = events.iter().map(|event| self.usage_of(&event.data)).find(|u| *u != Usage::default());
        let kept = |event: &sse::Event| self.events.is_empty() || self.events.contains(&event.name);
        let events = events.into_iter().filter(kept).collect();
        Ok(Read { events, usage: usage.unwrap_or_default(), ..Read::default() })
    }

    fn usage_of(&self, value: &Value) -> Usage {
        let read = |path: &Option<Path>| believed(path.as_ref().and_then(|path| path.count(value).ok()).unwrap_or(0));
        Usage { prompt_tokens: read(&self.usage.0), completion_tokens: read(&self.usage.1), ..Usage::default() }
    }

    fn unexpected(&self, value: &Value) -> Failure {
        let said = self.message.as_ref().and_then(|path| path.string(value));
        let wanted: Vec<String> =
            self.expect.iter().map(|(path, is)| format!("field '{}' must be {is}", path.shown())).collect();
        let said =
            said.map_or_else(|| excerpt(&value.to_string()), |said| format!("the system says: {}", excerpt(&said)));
        Failure::permanent("system_refused", format!("{}: {}; {said}", self.what, wanted.join(" or ")))
    }

    /// What a status that is no success means.
    pub(super) fn refused(&self, response: &Response) -> Failure {
        let text = String::from_utf8_lossy(&response.body);
        let line = format!("{}: status {}: {}", self.what, response.status, excerpt(&text));
        match response.status {
            401 | 403 => Failure::terminal("system_auth", line),
            408 | 425 | 429 | 500..=599 => {
                let mut failure = Failure::transient(format!("system_http_{}", response.status), line);
                failure.retry_after_ms = response.retry_after_ms();
                failure
            }
            status => Failure::permanent(format!("system_http_{status}"), line),
        }
    }

    /// What a page for people means in the place of a response.
    pub(super) fn page(&self, text: &str) -> Failure {
        Failure::transient(NO_REPLY, format!("{}: the response is a page for people: {}", self.what, excerpt(text)))
    }

    /// A failure about the shape of the response to this call.
    pub(super) fn shape(&self, error: impl std::fmt::Display) -> Failure {
        Failure::permanent(SHAPE, format!("{}: {error}", self.what))
    }
}

/// Tokens that a system says it has used in one request: what cannot be true is no count.
pub(super) fn believed(tokens: u64) -> u64 {
    if tokens <= 1_000_000_000 { tokens } else { 0 }
}

fn looks_like_json(response: &Response) -> bool {
    let kind = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.contains("json")
}

/// Why a response cannot be read, with its beginning.
fn no_json(text: &str) -> String {
    let why = not_finite(text).map(|number| format!(" ({number} is not a finite number: send null in its place)"));
    format!("the response is no JSON{}: {}", why.unwrap_or_default(), excerpt(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_that_is_no_number_is_said_so() {
        assert_eq!(
            no_json(r#"{"score": NaN}"#),
            r#"the response is no JSON (NaN is not a finite number: send null in its place): {"score": NaN}"#
        );
        assert_eq!(no_json("{"), "the response is no JSON: {");
    }

    #[test]
    fn a_response_of_many_values_is_refused_before_it_is_read() {
        let body = |pairs: usize| format!("[{}0]", "{\"\":0},".repeat(pairs));
        let parsed =
            crate::adapter::shipped::SHIPPED.iter().filter_map(|(_, text)| crate::adapter::file::parse(text).ok());
        let read = |spec: &crate::adapter::AdapterSpec, body: &str| {
            crate::adapter::replay::read(spec, "retain", 200, "application/json", body.as_bytes())
        };
        let there: Vec<_> = parsed.filter(|spec| !read(spec, "{}").is_err_and(|e| e.code == "adapter")).collect();
        assert!(!there.is_empty());
        for spec in there {
            let failure = read(&spec, &body(400_000)).expect_err("is refused");
            assert_eq!(failure.code, http::TOO_LONG, "{}: {failure}", spec.name);
            assert!(failure.message.contains("at most 256 are given to it: ask for less"), "{failure}");
        }
    }
}
