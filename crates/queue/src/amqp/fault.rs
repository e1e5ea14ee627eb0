//! What an error of the broker means, and what to do about it.

use lapin::{Error, ErrorKind};

use crate::QueueError;

/// What was being done when an error came.
#[derive(Debug, Clone, Copy)]
pub(super) enum Doing<'a> {
    /// Opening the connection.
    Connecting,
    /// Creating or changing what is named.
    Declaring(&'a str),
    /// Publishing into, consuming from or counting a queue.
    Using(&'a str),
}

/// AMQP reply codes.
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;

/// Turns a broker's error into one that says whether it may pass, and what to do when not. `place` is the URL without password.
pub(super) fn classify(place: &str, doing: Doing<'_>, error: &Error) -> QueueError {
    match sorted(place, doing, error) {
        QueueError::Unavailable(why) => QueueError::Unavailable(why.because(error)),
        QueueError::Setup(why) => QueueError::Setup(why.because(error)),
        QueueError::Refused(why) => QueueError::Refused(why.because(error)),
        QueueError::Closed => QueueError::Closed,
    }
}

fn sorted(place: &str, doing: Doing<'_>, error: &Error) -> QueueError {
    let ErrorKind::ProtocolError(refusal) = error.kind() else {
        return match (doing, error.kind()) {
            (Doing::Connecting, ErrorKind::InvalidProtocolVersion(_) | ErrorKind::ParsingError(_)) => {
                QueueError::Refused(format!(
                    "{place} does not speak AMQP 0-9-1 ({error}): is it RabbitMQ's port (5672, TLS 5671)?"
                ).into())
            }
            (Doing::Connecting, _) if speaks_of_certificates(error) => QueueError::Refused(format!(
                "no trust between this machine and {place} ({error}): name the broker's authority in the queue URL with ?cacertfile=<pem>, and &certfile=<pem>&keyfile=<pem> when it asks who you are"
            ).into()),
            _ => QueueError::Unavailable(format!("{place}: {error}").into()),
        };
    };
    let text = refusal.get_message().to_string();
    match (doing, refusal.get_id()) {
        (Doing::Connecting, ACCESS_REFUSED) => {
            QueueError::Refused(format!("{place} refuses the login: check user and password in the queue URL").into())
        }
        (Doing::Connecting, NOT_ALLOWED) if text.contains("not found") => QueueError::Refused(format!(
            "{place}: the virtual host does not exist: create it (rabbitmqctl add_vhost) or correct the queue URL"
        ).into()),
        (Doing::Connecting, NOT_ALLOWED) => QueueError::Refused(format!(
            "{place}: the user may not use the virtual host: grant it (rabbitmqctl set_permissions) or correct the queue URL"
        ).into()),
        // a queue whose node is down is also "not found", with another text: that passes
        (Doing::Using(queue), NOT_FOUND) if text.contains("no queue") => QueueError::Setup(not_declared(place, queue).into()),
        (Doing::Declaring(name), PRECONDITION_FAILED) if text.contains("inequivalent") => QueueError::Setup(format!(
            "{name} exists at {place} with other arguments ({text}): delete it when it is empty, then run bench-coord migrate"
        ).into()),
        (Doing::Declaring(name), ACCESS_REFUSED) => QueueError::Setup(format!(
            "the user may not configure {name} at {place}: run bench-coord migrate as a user with configure permission"
        ).into()),
        (Doing::Using(queue), ACCESS_REFUSED) => QueueError::Setup(format!(
            "the user may not use {queue} at {place}: grant read permission on bench.* and write permission on amq.default and bench.*"
        ).into()),
        _ => QueueError::Unavailable(format!("{place}: {text}").into()),
    }
}

/// TLS failed over a certificate: the library gives words only.
fn speaks_of_certificates(error: &Error) -> bool {
    error.to_string().to_lowercase().contains("certificate")
}

/// What to say about a queue that is not there.
pub(super) fn not_declared(place: &str, queue: &str) -> String {
    format!("queue {queue} is not declared at {place}: run bench-coord migrate")
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use lapin::protocol::AMQPError;

    fn refusal(id: u16, text: &str) -> Error {
        ErrorKind::ProtocolError(AMQPError::from_id(id, text.into()).expect("a known code")).into()
    }

    #[test]
    fn errors_say_what_to_do_or_that_they_pass() {
        let setup = [
            (
                Doing::Connecting,
                403,
                "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.",
                "check user and password",
            ),
            (Doing::Connecting, 530, "NOT_ALLOWED - vhost nowhere not found", "does not exist"),
            (
                Doing::Connecting,
                530,
                "NOT_ALLOWED - access to vhost 'other' refused for user 'guest'",
                "set_permissions",
            ),
            (
                Doing::Using("bench.t1.default.judge"),
                404,
                "NOT_FOUND - no queue 'bench.t1.default.judge' in vhost '/'",
                "run bench-coord migrate",
            ),
            (
                Doing::Declaring("q"),
                406,
                "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q'",
                "other arguments",
            ),
            (
                Doing::Declaring("q"),
                403,
                "ACCESS_REFUSED - configure access to queue 'q' refused",
                "configure permission",
            ),
        ];
        for (doing, id, text, expected) in setup {
            match (doing, classify("amqp://guest@host:5672/", doing, &refusal(id, text))) {
                (Doing::Connecting, QueueError::Refused(message))
                | (Doing::Declaring(_) | Doing::Using(_), QueueError::Setup(message)) => {
                    assert!(message.contains(expected), "{message}");
                    assert!(message.source().is_some_and(|cause| cause.to_string().contains(text)), "{message:?}");
                }
                (_, other) => panic!("{text}: {other:?}"),
            }
        }
        let passing = [
            (Doing::Using("q"), 404, "NOT_FOUND - queue 'q' in vhost '/' process is stopped by supervisor"),
            (Doing::Using("q"), 320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"),
            (Doing::Connecting, 541, "INTERNAL_ERROR"),
        ];
        for (doing, id, text) in passing {
            assert!(matches!(classify("p", doing, &refusal(id, text)), QueueError::Unavailable(_)), "{text}");
        }
    }
}
