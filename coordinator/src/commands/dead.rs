//! `dead list|show|requeue|drop`: messages that no worker could read. Tasks among the dead letters need nobody: the coordinator hands
//! them out again by itself.

use bench_queue::{Fate, Queue, Unreadable};
use serde_json::{Value, json};

use crate::{
    app::{App, queue_error},
    cli::{DeadChoice, DeadVerb},
    exit::{CliError, CliResult, Exit},
    out::{self, tables, times},
};

/// Most characters of a header or a body that are shown.
const MOST_SHOWN: usize = 4096;

/// Prints messages that no worker could read; `requeue` and `drop` take them out of the dead letters.
pub(super) async fn run(app: &App, verb: &DeadVerb) -> CliResult {
    let queue = app.open_queue().await?;
    let ended = match queue.has_dead_letters() {
        true => run_on(queue.as_ref(), verb).await,
        false => Err(CliError::usage(format!(
            "{} has no dead letters: they belong to a broker, --queue amqp://…",
            queue.describe()
        ))),
    };
    queue.close().await;
    ended
}

async fn run_on(queue: &dyn Queue, verb: &DeadVerb) -> CliResult {
    let found = queue.unreadable().await.map_err(queue_error)?;
    match verb {
        DeadVerb::List { limit, json } => {
            if *json {
                out::json(&list_json(&found, *limit));
            } else {
                out::result(&list(&found, *limit));
            }
        }
        DeadVerb::Show { number, json } => {
            let message = numbered(&found, *number)?;
            if *json { out::json(&detail_json(*number, message)) } else { out::result(&detail(*number, message)) }
        }
        DeadVerb::Requeue(choice) => settle(queue, &found, choice, Fate::Requeue).await?,
        DeadVerb::Drop(choice) => settle(queue, &found, choice, Fate::Drop).await?,
    }
    Ok(Exit::Done)
}

async fn settle(queue: &dyn Queue, found: &[Unreadable], choice: &DeadChoice, fate: Fate) -> Result<(), CliError> {
    let ids: Vec<String> = match choice.number {
        Some(number) => vec![numbered(found, number)?.id.clone()],
        None => found.iter().map(|message| message.id.clone()).collect(),
    };
    let settled = queue.settle_unreadable(&ids, fate).await.map_err(queue_error)?;
    let done = if fate == Fate::Drop { "dropped" } else { "back in the queues that they came from" };
    out::result(&format!("{settled} messages are {done}, {} are left", found.len().saturating_sub(settled as usize)));
    Ok(())
}

fn numbered(found: &[Unreadable], number: usize) -> Result<&Unreadable, CliError> {
    let message = number.checked_sub(1).and_then(|at| found.get(at));
    message.ok_or_else(|| {
        CliError::usage(match found.len() {
            0 => "there are no unreadable messages".to_owned(),
            count => format!("there is no message {number}: `bench-coord dead list` numbers them from 1 to {count}"),
        })
    })
}

fn list(found: &[Unreadable], limit: usize) -> String {
    let Some(oldest) = found.first() else { return "no unreadable messages".to_owned() };
    let mut table = tables::table(["N", "found", "queue", "bytes", "why"]);
    for (at, message) in found.iter().enumerate().take(limit) {
        table.add_row([
            (at + 1).to_string(),
            times::local(message.at_us / 1000),
            safe(message.from.as_deref().unwrap_or("-")),
            message.body.len().to_string(),
            safe(&message.why),
        ]);
    }
    let more = found.len().saturating_sub(limit);
    let more = if more > 0 { format!("\n… and {more} more (--limit)") } else { String::new() };
    format!(
        "{} unreadable messages, the oldest of {}\n{}{more}",
        found.len(),
        times::local(oldest.at_us / 1000),
        tables::render(&table)
    )
}

fn list_json(found: &[Unreadable], limit: usize) -> Value {
    let row = |(at, message): (usize, &Unreadable)| {
        json!({
            "number": at + 1, "found": times::rfc3339(message.at_us / 1000), "queue": message.from,
            "bytes": message.body.len(), "why": message.why,
        })
    };
    json!({
        "count": found.len(),
        "oldest": found.first().map(|oldest| times::rfc3339(oldest.at_us / 1000)),
        "messages": found.iter().enumerate().take(limit).map(row).collect::<Vec<_>>(),
    })
}

fn detail(number: usize, message: &Unreadable) -> String {
    let mut lines = vec![
        format!("message {number}, found {}: {}", times::local(message.at_us / 1000), safe(&message.why)),
        format!("queue: {}", safe(message.from.as_deref().unwrap_or("-"))),
    ];
    lines.extend(message.headers.iter().map(|(name, value)| format!("{}: {}", safe(name), safe(value))));
    lines.push(format!("body, {} bytes: {}", message.body.len(), safe(&String::from_utf8_lossy(&message.body))));
    lines.join("\n")
}

fn detail_json(number: usize, message: &Unreadable) -> Value {
    let headers: serde_json::Map<String, Value> =
        message.headers.iter().map(|(name, value)| (safe(name), json!(safe(value)))).collect();
    json!({
        "number": number, "found": times::rfc3339(message.at_us / 1000), "queue": message.from, "why": message.why,
        "headers": headers, "bytes": message.body.len(), "body": safe(&String::from_utf8_lossy(&message.body)),
    })
}

/// A foreign text on one line of a terminal: nothing in it is obeyed, and there is an end to it.
fn safe(text: &str) -> String {
    let mut safe = String::new();
    for (at, char) in text.chars().enumerate() {
        if at == MOST_SHOWN {
            safe.push('…');
            break;
        }
        // what is printed may not move a cursor, nor turn the direction of writing
        if bench_proto::text::acts(char) {
            safe.extend(char.escape_default());
        } else {
            safe.push(char);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &[u8]) -> Unreadable {
        Unreadable {
            id: "1".into(),
            at_us: 1_700_000_000_000_000,
            why: "message body is not a task".into(),
            from: Some("bench.t1.default.question".into()),
            headers: vec![("traceparent".into(), "00-\u{1b}[2J".into())],
            body: body.to_vec(),
        }
    }

    #[test]
    fn nothing_foreign_reaches_the_terminal() {
        let shown = detail(3, &message("\u{1b}]0;owned\u{7}\r\nline\u{202e}x".as_bytes()));
        assert!(shown.contains(r"\u{1b}]0;owned\u{7}\r\nline\u{202e}x") && shown.contains(r"00-\u{1b}[2J"), "{shown}");
        assert_eq!(shown.lines().count(), 4);
        let long = detail(1, &message(&[b'x'; 100_000]));
        assert!(long.len() < MOST_SHOWN + 400 && long.ends_with('…'));
    }

    #[test]
    fn lists_are_numbered_from_the_oldest() {
        let found = vec![message(b"a"), message(b"bb")];
        let text = list(&found, 1);
        assert!(
            text.starts_with("2 unreadable messages, the oldest of 20") && text.ends_with("… and 1 more (--limit)"),
            "{text}"
        );
        assert_eq!(list(&[], 20), "no unreadable messages");
        let json = list_json(&found, 20);
        assert_eq!(
            (&json["count"], &json["messages"][1]["number"], &json["messages"][1]["bytes"]),
            (&json!(2), &json!(2), &json!(2))
        );
        assert_eq!(json["oldest"], "2023-11-14T22:13:20Z");
        assert!(numbered(&found, 0).is_err() && numbered(&found, 3).is_err() && numbered(&found, 2).is_ok());
    }
}
