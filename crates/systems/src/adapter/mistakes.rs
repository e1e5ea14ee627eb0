//! What is wrong with an adapter although every field of it can be read: fields that a call does not read, that miss each other, or
//! that belong to another kind of system. Start reading at `check_whole`.

use super::{
    items::rfc3339,
    spec::{AdapterSpec, CallSpec, Permission, ReadyRule},
};

/// Which answers a call may read; anything else in it is a mistake.
const READERS: &[(&str, &[&str])] = &[
    ("open", &["handle"]),
    ("retain", &["stored", "stored_id", "usage"]),
    ("update", &["usage"]),
    ("forget", &["usage"]),
    ("flush", &[]),
    ("consolidate", &["usage"]),
    ("ready.call", &["count"]),
    ("recall", &["hits", "usage"]),
    ("answer", &["text", "pick", "cites", "usage", "events", "last_event"]),
    ("verify", &["count"]),
    ("list", &["hits", "next", "most"]),
    ("statistics", &["numbers"]),
    ("reset", &[]),
    ("export", &[]),
    ("import", &[]),
    ("health", &["version"]),
    ("then", &["usage"]),
];

/// Refuses what a call does not read.
pub(super) fn check_fields(what: &str, spec: &CallSpec) -> Result<(), String> {
    let present = [
        ("handle", spec.handle.is_some()),
        ("stored", spec.stored.is_some()),
        ("stored_id", spec.stored_id.is_some()),
        ("count", spec.count.is_some()),
        ("hits", !spec.hits.is_empty()),
        ("next", spec.next.is_some()),
        ("most", spec.most.is_some()),
        ("text", spec.text.is_some()),
        ("pick", spec.pick.is_some()),
        ("cites", spec.cites.is_some()),
        ("numbers", !spec.numbers.is_empty()),
        ("version", spec.version.is_some()),
        ("events", !spec.events.is_empty()),
        ("last_event", spec.last_event.is_some()),
        ("usage", spec.usage.is_some()),
    ];
    let reads = READERS.iter().find(|(name, _)| what.starts_with(name)).map_or(&[][..], |(_, reads)| reads);
    if let Some((field, _)) = present.iter().find(|(field, there)| *there && !reads.contains(field)) {
        return Err(format!("{what}.{field}: this call does not read it"));
    }
    for (n, step) in spec.then.iter().enumerate() {
        // what an operation reads stands on the operation, and is read of its last response
        check_fields(&format!("then.{n} of {what}"), step)?;
    }
    Ok(())
}

/// What no field can say by itself.
pub(super) fn check_whole(spec: &AdapterSpec) -> Result<(), String> {
    let batches = spec.limits.batch.is_some_and(|batch| batch > 1);
    let mistakes = [
        (spec.code.is_some(), "code: is for systems with `command`"),
        (
            !spec.env.is_empty() && spec.program().is_none(),
            "env: is for systems with `command`; what the runner starts has `start.env`",
        ),
        (
            spec.can.updates || spec.can.withdraws || spec.can.lists || !spec.can.filters.is_empty(),
            "can: `updates`, `withdraws`, `lists` and `filters` are for systems with `command`; over HTTP the file's own \
             `update`, `forget`, `list` and the variables of `recall` say it",
        ),
        (spec.retain.is_none(), "retain is missing: how is something stored?"),
        (
            spec.retain.as_ref().is_some_and(|retain| retain.stored_id.is_some() && retain.stored.is_none()),
            "retain.stored_id: `stored` is missing: in which list of the response do the ids stand?",
        ),
        (
            spec.item.is_none() && batches,
            "limits.batch: more than one item per request needs `item` and {items} in the body",
        ),
        (
            spec.recall.is_none() && spec.recall_also.is_empty() && spec.answer.is_none(),
            "recall is missing: how is something found? (a system that only answers has `answer`)",
        ),
        (
            spec.answer.as_ref().is_some_and(|answer| answer.text.is_none()),
            "answer.text is missing: where is the answer in the response?",
        ),
        (
            spec.verify.as_ref().is_some_and(|verify| verify.count.is_none()),
            "verify.count is missing: where is the number in the response?",
        ),
        (
            spec.undated.as_deref().is_some_and(|time| rfc3339(time).is_none()),
            "undated: give a time, such as 2000-01-01T00:00:00",
        ),
        (spec.limits.max_k == Some(0), "limits.max_k must be at least 1"),
        (spec.limits.batch == Some(0), "limits.batch must be at least 1"),
        (spec.limits.parallel == Some(0), "limits.parallel must be at least 1"),
    ];
    match mistakes.iter().find(|(made, _)| *made) {
        Some((_, mistake)) => Err((*mistake).to_owned()),
        None => {
            check_headers(spec)?;
            check_handing_on(spec)?;
            check_kind(spec)
        }
    }
}

/// A bank that is handed on is the body of one response, and then that of one request.
fn check_handing_on(spec: &AdapterSpec) -> Result<(), String> {
    for (what, call) in [("export", &spec.export), ("import", &spec.import)] {
        let Some(call) = call else { continue };
        if spec.mcp.is_some() {
            return Err(format!("{what}: is for systems over HTTP, for a tool has no body"));
        }
        if !call.then.is_empty() || call.until.is_some() || !call.capture.is_empty() {
            return Err(format!("{what}: is one request, without `then`, `until` and `capture`"));
        }
    }
    let given = |call: &CallSpec| call.body.is_some() || call.text_body.is_some() || !call.multipart.is_empty();
    if spec.import.as_ref().is_some_and(given) {
        return Err(
            "import: its body is what `export` has handed on: leave `body`, `text_body` and `multipart` out".to_owned()
        );
    }
    match spec.export.as_ref().is_some_and(|call| !call.expect.is_empty()) {
        true => Err("export.expect: what is handed on is kept as it is, and not read".to_owned()),
        false => Ok(()),
    }
}

/// Headers that say how a request is sent, and to whom: the client writes them.
const OF_THE_CLIENT: [&str; 5] = ["host", "content-length", "transfer-encoding", "connection", "upgrade"];

fn check_headers(spec: &AdapterSpec) -> Result<(), String> {
    let mut calls = spec.clone();
    let of_calls: Vec<&CallSpec> =
        calls.calls_mut().map(|call| &*call).flat_map(|call| std::iter::once(call).chain(&call.then)).collect();
    let names = spec.headers.keys().chain(of_calls.iter().flat_map(|call| call.headers.keys()));
    match names.into_iter().find(|name| OF_THE_CLIENT.contains(&name.to_ascii_lowercase().as_str())) {
        Some(name) => Err(format!("headers: {name} is written with each request by itself: leave it out")),
        None => Ok(()),
    }
}

/// Tools are called of a server that has them, and requests are sent to one that takes them.
fn check_kind(spec: &AdapterSpec) -> Result<(), String> {
    let mut calls = spec.clone();
    let calls = calls.calls_mut().map(|call| &*call).flat_map(|call| std::iter::once(call).chain(&call.then));
    let Some(mcp) = &spec.mcp else {
        let is_called = |call: &CallSpec| call.tool.is_some() || call.arguments.is_some();
        return if calls.into_iter().any(is_called) {
            Err("tool: is for systems with `mcp`, over HTTP `request` says what is sent".to_owned())
        } else {
            Ok(())
        };
    };
    let is_process = mcp.command.is_some();
    let mistakes = [
        (is_process == mcp.url.is_some(), "mcp: give `command` (a program and its arguments) or `url`"),
        (mcp.command.as_ref().is_some_and(Vec::is_empty), "mcp.command: give a program and its arguments"),
        (spec.url.is_some() || spec.start.is_some(), "url, start: where a server with `mcp` is, `mcp` says itself"),
        (
            is_process && (spec.auth.is_some() || !spec.headers.is_empty()),
            "auth, headers: are for servers over HTTP; a process is given variables by `env`",
        ),
        (
            spec.allow.contains(&Permission::Redirects),
            "allow: redirects are not followed with `mcp`: write the address that the server redirects to",
        ),
    ];
    if let Some((_, mistake)) = mistakes.iter().find(|(made, _)| *made) {
        return Err((*mistake).to_owned());
    }
    for call in calls {
        check_tool(call)?;
    }
    Ok(())
}

/// A call of a tool has nothing of a request.
fn check_tool(call: &CallSpec) -> Result<(), String> {
    let Some(tool) = &call.tool else {
        let request = if call.request.is_empty() { "a call" } else { call.request.as_str() };
        return Err(format!("{request}: a system with `mcp` is asked by `tool: NAME` and `arguments: {{…}}`"));
    };
    let of_requests = [
        ("request", !call.request.is_empty()),
        ("query", !call.query.is_empty()),
        ("headers", !call.headers.is_empty()),
        ("body", call.body.is_some()),
        ("text_body", call.text_body.is_some()),
        ("multipart", !call.multipart.is_empty()),
        ("accept", !call.accept.is_empty()),
        ("events", !call.events.is_empty()),
        ("last_event", call.last_event.is_some()),
    ];
    match of_requests.iter().find(|(_, given)| *given) {
        Some((field, _)) => {
            Err(format!("{field}: belongs to a request, and the tool '{tool}' is called by `arguments`"))
        }
        None if tool.trim().is_empty() => Err("tool: name one".to_owned()),
        None => Ok(()),
    }
}

/// What a system may be called.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let fine = !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.starts_with('-');
    if fine { Ok(()) } else { Err(format!("name '{name}' must be lower-case letters, digits and '-'")) }
}

/// What the rule of readiness lacks.
pub(super) fn check_ready(spec: &AdapterSpec) -> Result<(), String> {
    let ready = &spec.ready;
    let needs_call = !matches!(ready.when, ReadyRule::Returned | ReadyRule::Promised);
    if needs_call && ready.call.is_none() {
        return Err("ready.call is missing: what is asked?".to_owned());
    }
    if !needs_call && ready.call.is_some() {
        return Err("ready.call: this rule asks nothing".to_owned());
    }
    let states = matches!(ready.when, ReadyRule::Status | ReadyRule::EachDone | ReadyRule::AllDone);
    if states && (ready.status.is_none() || ready.done.is_empty()) {
        return Err("ready: give `status` (a path) and `done` (states)".to_owned());
    }
    if ready.when == ReadyRule::Count && ready.call.as_ref().is_some_and(|call| call.count.is_none()) {
        return Err("ready.call.count is missing: where is the number in the response?".to_owned());
    }
    if ready.when == ReadyRule::Stable && ready.status.is_none() == ready.metric.is_none() {
        return Err("ready: give `status` (a path) or `metric` (a name): which value must stay the same?".to_owned());
    }
    if ready.when != ReadyRule::Stable && ready.metric.is_some() {
        return Err("ready.metric: is for `when: stable`".to_owned());
    }
    Ok(())
}
