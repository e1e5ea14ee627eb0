//! Logs: to standard error, as lines for people or as JSON. Standard output belongs to results.

use std::{
    borrow::Cow,
    io,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bench_proto::text::plain;
use tracing::{Dispatch, Level, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt as _, ParseError, filter_fn},
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    reload,
    util::TryInitError,
};

use crate::github::{logged, logged_json};

/// The filter when nobody says otherwise: a command line tool speaks through its results. `lapin` logs every refusal of a broker
/// as an error of its own, which this project says better.
pub const DEFAULT_FILTER: &str = "warn,lapin=off";

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Human,
    /// One JSON object a line, for collectors.
    Json,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// How lines look.
    pub format: LogFormat,
    /// Which events, in the words of `RUST_LOG` (`warn,bench_worker=debug`); without it `RUST_LOG` itself, then
    /// `default_filter`.
    pub filter: Option<String>,
    /// Which events when nobody says: [`DEFAULT_FILTER`] for a command line, `info` for a service.
    pub default_filter: &'static str,
    /// Colours; the caller knows the terminal and `NO_COLOR`.
    pub color: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { format: LogFormat::Human, filter: None, default_filter: DEFAULT_FILTER, color: false }
    }
}

/// Keeps telemetry alive; dropping it flushes what is buffered. Hold it until the end of `main`.
#[derive(Debug)]
#[must_use = "telemetry ends when the guard is dropped"]
pub struct TelemetryGuard {
    // exporters that must be flushed join here
    _private: (),
}

/// Why logging could not start.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The filter makes no sense.
    #[error("log filter '{filter}': {source}; use RUST_LOG's words, such as warn,bench_worker=debug")]
    Filter {
        /// What the log levels are set to, such as `info,bench_store=debug`.
        filter: String,
        /// What is wrong with the filter.
        source: ParseError,
    },
    /// The format is none.
    #[error("{FORMAT_VARIABLE} '{0}' is no format of logs: use human or json")]
    Format(String),
    /// Logging was not started in this process, so there is nothing to change.
    #[error("logging was not started in this process")]
    NotStarted,
    /// Somebody has set up logging before.
    #[error("logging is set up already")]
    Twice(#[from] TryInitError),
}

impl LogOptions {
    /// What a binary's `-v` and its environment say: -v is info, -vv debug; `BENCH_LOG_FORMAT` is `human` or `json`.
    ///
    /// # Errors
    /// When the format is none.
    pub fn of_process(verbose: u8) -> Result<Self, InitError> {
        let filter = match verbose {
            0 => None,
            1 => Some("info,lapin=off".to_owned()),
            _ => Some("debug,lapin=warn,h2=warn,hyper_util=warn,tonic=warn".to_owned()),
        };
        let format = match std::env::var(FORMAT_VARIABLE).as_deref() {
            Err(_) | Ok("" | "human") => LogFormat::Human,
            Ok("json") => LogFormat::Json,
            Ok(other) => return Err(InitError::Format(other.to_owned())),
        };
        Ok(Self { format, filter, ..Self::default() })
    }
}

/// Variable with the format of logs.
const FORMAT_VARIABLE: &str = "BENCH_LOG_FORMAT";

/// The filter of this process, and the way to change it.
#[derive(Debug)]
struct Filtering {
    handle: reload::Handle<EnvFilter, Registry>,
    text: Mutex<String>,
}

static FILTERING: OnceLock<Filtering> = OnceLock::new();

/// The filter that is in force, in the words of `RUST_LOG`.
#[must_use]
pub fn current_filter() -> String {
    FILTERING.get().map(|f| f.text.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
}

/// Changes the filter of the running process.
///
/// # Errors
/// When it cannot be read; the old one stays.
pub fn set_filter(text: &str) -> Result<(), InitError> {
    let new = filter(text)?;
    let filtering = FILTERING.get().ok_or(InitError::NotStarted)?;
    filtering.handle.reload(new).map_err(|_| InitError::NotStarted)?;
    text.clone_into(&mut filtering.text.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// Starts logging of this process to standard error.
///
/// # Errors
/// When the filter cannot be read, or when logging was started before.
pub fn init(options: &LogOptions) -> Result<TelemetryGuard, InitError> {
    use tracing_subscriber::util::SubscriberInitExt as _;
    let from_environment = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let (dispatch, filtering) = dispatch(options, from_environment.as_deref(), io::stderr)?;
    dispatch.try_init()?;
    MACHINES_READ.store(options.format == LogFormat::Json, Ordering::Relaxed);
    // a second start has failed above
    let _ = FILTERING.set(filtering);
    Ok(TelemetryGuard { _private: () })
}

/// Says why a service ends: a line of its log where a machine reads that, else a line for people.
pub fn last_words(why: &str) {
    if MACHINES_READ.load(Ordering::Relaxed) {
        tracing::error!(code = "ended", "{why}");
    } else {
        use io::Write as _;
        // a closed standard error is no reason to fail
        let _ = writeln!(io::stderr().lock(), "{}", for_people(&format!("error: {why}")));
    }
}

/// Whether the lines of this process are JSON.
static MACHINES_READ: AtomicBool = AtomicBool::new(false);

/// The subscriber that `options` describe.
fn dispatch<W>(options: &LogOptions, rust_log: Option<&str>, writer: W) -> Result<(Dispatch, Filtering), InitError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let text = options.filter.as_deref().or(rust_log).unwrap_or(options.default_filter);
    let (filter, handle) = reload::Layer::new(filter(text)?);
    let lines = fmt::layer().with_writer(writer);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match options.format {
        LogFormat::Human if options.color => Box::new(lines.with_ansi(true).with_target(false)),
        LogFormat::Human => {
            let harmless = lines.map_writer(|writer| Harmless { writer, harmless: for_people });
            Box::new(harmless.with_ansi(false).with_target(false))
        }
        LogFormat::Json => {
            let harmless = lines.map_writer(|writer| Harmless { writer, harmless: logged_json });
            Box::new(harmless.json().flatten_event(true).with_current_span(true))
        }
    };
    // the filter is that of the lines alone: what goes to a collector has its own
    let registry = Registry::default().with(lines.with_filter(filter.and(filter_fn(holds_no_login))));
    let dispatch = Dispatch::new(with_process_spans(registry));
    Ok((dispatch, Filtering { handle, text: Mutex::new(text.to_owned()) }))
}

/// A line for people: what others have put into it neither drives the terminal nor is a command to GitHub's runner.
fn for_people(line: &str) -> Cow<'_, str> {
    match plain(line) {
        Cow::Borrowed(line) => logged(line),
        Cow::Owned(line) => logged(&line).into_owned().into(),
    }
}

/// A writer of lines in which nothing is obeyed that others have put into them.
struct Harmless<W> {
    writer: W,
    /// What is written of a line.
    harmless: fn(&str) -> Cow<'_, str>,
}

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Harmless<W> {
    type Writer = Harmless<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Harmless { writer: self.writer.make_writer(), harmless: self.harmless }
    }
}

impl<W: io::Write> io::Write for Harmless<W> {
    /// Takes a whole line, which is how events are written.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let told = String::from_utf8_lossy(line);
        self.writer.write_all((self.harmless)(&told).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Crates on the way to the broker: at trace they log what they send, and the login is a part of that.
const TELL_LOGINS: [&str; 4] = ["lapin", "amq_protocol", "async_rs", "tcp_stream"];

/// Where URLs and password files of Postgres are read: what is not understood there is logged with its value, at any level. What is
/// said of a file's `path` holds none of its lines.
const TELLS_PASSWORDS: &str = "sqlx_postgres::options";

/// Libraries by which servers of the Model Context Protocol are spoken to: at every level they log addresses with what was filled into
/// them, and whatever a server says, the key that it was sent among it. The adapter tells every failure itself, without keys.
const REPEAT_SERVERS: [&str; 2] = ["rmcp", "sse_stream"];

/// The client below all HTTP: when nothing is wrong it names servers by their addresses, passwords and all.
const TELLS_ADDRESSES: &str = "hyper_util";

/// Whether an event may be logged, whatever the filter says.
fn holds_no_login(event: &Metadata<'_>) -> bool {
    if REPEAT_SERVERS.iter().any(|name| event.target().starts_with(name)) {
        return false;
    }
    if event.target().starts_with(TELLS_ADDRESSES) {
        return *event.level() <= Level::INFO;
    }
    if event.target().starts_with(TELLS_PASSWORDS) {
        return event.fields().field("path").is_some();
    }
    *event.level() != Level::TRACE || !TELL_LOGINS.iter().any(|name| event.target().starts_with(name))
}

#[cfg(feature = "otlp")]
fn with_process_spans<S>(subscriber: S) -> impl Subscriber + Send + Sync
where
    S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
{
    subscriber.with(crate::process::live::layer())
}

#[cfg(not(feature = "otlp"))]
fn with_process_spans<S>(subscriber: S) -> impl Subscriber + Send + Sync
where
    S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
{
    subscriber
}

/// Lines that are kept in memory, for tests.
#[cfg(all(test, feature = "otlp"))]
pub(crate) use tests::capture;

fn filter(text: &str) -> Result<EnvFilter, InitError> {
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::WARN.into());
    builder.parse(text).map_err(|source| InitError::Filter { filter: text.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::github::without_commands;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics while writing").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A subscriber that keeps its lines.
    #[cfg(feature = "otlp")]
    pub(crate) struct Lines {
        pub(crate) dispatch: Dispatch,
        captured: Captured,
    }

    #[cfg(feature = "otlp")]
    impl Lines {
        pub(crate) fn text(&self) -> String {
            let bytes = self.captured.0.lock().expect("no test panics while writing").clone();
            String::from_utf8(bytes).expect("log lines are UTF-8")
        }
    }

    /// Lines for people with a filter.
    #[cfg(feature = "otlp")]
    pub(crate) fn capture(filter: &str) -> Lines {
        let captured = Captured::default();
        let writer = captured.clone();
        let options = LogOptions { filter: Some(filter.to_owned()), ..LogOptions::default() };
        let (dispatch, _) = dispatch(&options, None, move || writer.clone()).expect("a valid filter");
        Lines { dispatch, captured }
    }

    /// What is logged with `options`.
    fn logged(options: &LogOptions, rust_log: Option<&str>) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let (dispatch, _filtering) = dispatch(options, rust_log, move || writer.clone()).expect("a valid filter");
        tracing::dispatcher::with_default(&dispatch, || {
            let _span = tracing::warn_span!("question", question = "conv-26:0").entered();
            tracing::info!("started");
            tracing::warn!(attempt = 2, "retried");
        });
        let bytes = captured.0.lock().expect("no test panics while writing").clone();
        String::from_utf8(bytes).expect("log lines are UTF-8")
    }

    #[test]
    fn warnings_are_the_default_and_lines_carry_their_span() {
        let text = logged(&LogOptions::default(), None);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("WARN question{question=\"conv-26:0\"}: retried attempt=2"), "{text}");
    }

    #[test]
    fn the_option_beats_rust_log_and_rust_log_beats_the_default() {
        let lines = |options: &LogOptions, rust_log| logged(options, rust_log).lines().count();
        assert_eq!(lines(&LogOptions::default(), Some("info")), 2);
        let quiet = LogOptions { filter: Some("error".into()), ..LogOptions::default() };
        assert_eq!(lines(&quiet, Some("info")), 0);
        let service = LogOptions { default_filter: "info", ..LogOptions::default() };
        assert_eq!(lines(&service, None), 2);
    }

    #[test]
    fn words_of_others_do_not_drive_the_terminal() {
        let captured = Captured::default();
        let writer = captured.clone();
        let (dispatch, _) = dispatch(&LogOptions::default(), None, move || writer.clone()).expect("a valid filter");
        tracing::dispatcher::with_default(&dispatch, || tracing::warn!("a\u{1b}[2J \u{202e}b {}", "\u{9b}31m"));
        let line = String::from_utf8(captured.0.lock().expect("no panic").clone()).expect("log lines are UTF-8");
        assert!(!line.trim_end().chars().any(bench_proto::text::acts), "{line:?}");
    }

    /// Says that this process is one that a test has started, to log.
    const LOGS: &str = "BENCH_TEST_LOGS";

    #[test]
    fn words_of_others_are_no_commands_to_the_runner_of_a_workflow() {
        let said = "##[set-env name=x]y\n::error::z";
        if std::env::var_os(LOGS).is_some() {
            let _guard = init(&LogOptions::of_process(0).expect("a format")).expect("is started");
            tracing::warn!("{said}");
            last_words(said);
            return;
        }
        // a process asks once where it is
        let name = "logs::tests::words_of_others_are_no_commands_to_the_runner_of_a_workflow";
        for format in ["human", "json"] {
            let mut command = std::process::Command::new(std::env::current_exe().expect("a program"));
            command.args([name, "--exact", "--nocapture"]).env_remove("RUST_LOG");
            command.env(LOGS, "1").env("GITHUB_ACTIONS", "true").env(FORMAT_VARIABLE, format);
            let done = command.output().expect("runs");
            let log = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && log.matches("set-env").count() == 2, "{format}: {log}");
            assert_eq!(without_commands(&log), log, "{format}");
        }
    }

    #[test]
    fn json_lines_are_flat_objects() {
        let text = logged(&LogOptions { format: LogFormat::Json, ..LogOptions::default() }, None);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with('{') && text.contains(r#""attempt":2"#) && text.contains(r#""message":"retried""#),
            "{text}"
        );
        assert!(text.contains(r#""question":"conv-26:0""#), "{text}");
    }

    #[test]
    fn what_the_broker_is_sent_is_logged_at_no_level() {
        let captured = Captured::default();
        let writer = captured.clone();
        let options = LogOptions { filter: Some("trace,lapin=trace".into()), ..LogOptions::default() };
        let (dispatch, filtering) = dispatch(&options, None, move || writer.clone()).expect("a valid filter");
        tracing::dispatcher::with_default(&dispatch, || {
            for _ in 0..2 {
                tracing::trace!(target: "lapin::io_loop", "a login");
                tracing::trace!(target: "amq_protocol_tcp", "a login");
                tracing::debug!(target: "lapin::channel", "a channel");
                tracing::trace!("everything else");
                // nor after the filter of a running process was changed
                filtering.handle.reload(filter("trace").expect("a filter")).expect("is changed");
            }
        });
        let text = String::from_utf8(captured.0.lock().expect("is free").clone()).expect("lines");
        assert_eq!((text.matches("a login").count(), text.matches("a channel").count()), (0, 2), "{text}");
        assert_eq!(text.matches("everything else").count(), 2, "{text}");
    }

    #[test]
    fn what_a_url_of_postgres_holds_is_logged_at_no_level() {
        for filter in [DEFAULT_FILTER, "trace", "sqlx_postgres=trace"] {
            let captured = Captured::default();
            let writer = captured.clone();
            let options = LogOptions { filter: Some(filter.into()), ..LogOptions::default() };
            let (dispatch, _filtering) = dispatch(&options, None, move || writer.clone()).expect("a valid filter");
            tracing::dispatcher::with_default(&dispatch, || {
                tracing::warn!(target: "sqlx_postgres::options::parse", key = "sslpassword", value = "hunter2", "unknown");
                tracing::warn!(target: "sqlx_postgres::options::pgpass", line = "db:hunter2", "malformed");
                tracing::warn!(target: "sqlx_postgres::options::pgpass", path = "/home/ann/.pgpass", "not strict enough");
                tracing::warn!(target: "sqlx_postgres::connection", "everything else");
            });
            let text = String::from_utf8(captured.0.lock().expect("is free").clone()).expect("lines");
            assert!(!text.contains("hunter2"), "{filter}: {text}");
            assert!(text.contains("not strict enough") && text.contains("everything else"), "{filter}: {text}");
        }
    }

    #[test]
    fn what_a_server_of_tools_says_and_addresses_of_http_are_logged_at_no_level() {
        for filter in
            [DEFAULT_FILTER, "error", "info", "debug", "trace", "rmcp=trace,sse_stream=trace,hyper_util=trace"]
        {
            let captured = Captured::default();
            let writer = captured.clone();
            let options = LogOptions { filter: Some(filter.into()), ..LogOptions::default() };
            let (dispatch, _filtering) = dispatch(&options, None, move || writer.clone()).expect("a valid filter");
            tracing::dispatcher::with_default(&dispatch, || {
                let _span =
                    tracing::error_span!(target: "rmcp::service", "serve", url = "http://h/?k=hunter2").entered();
                tracing::error!(target: "rmcp::transport::worker", "worker quit: http://h/mcp?k=hunter2");
                tracing::warn!(target: "rmcp::service::client", method = "weird/hunter2", "unexpected message");
                tracing::info!(target: "rmcp::service", "hunter2");
                tracing::debug!(target: "rmcp::transport::async_rw", "failed to parse hunter2");
                tracing::trace!(target: "rmcp", "hunter2");
                tracing::warn!(target: "sse_stream::stream", line = "hunter2", "invalid line");
                tracing::debug!(target: "hyper_util::client::legacy::pool", "reuse http://u:hunter2@h");
                tracing::trace!(target: "hyper_util::client::legacy::connect::http", "http://u:hunter2@h");
                tracing::error!(target: "hyper_util::client", "everything else");
            });
            let text = String::from_utf8(captured.0.lock().expect("is free").clone()).expect("lines");
            assert!(!text.contains("hunter2"), "{filter}: {text}");
            assert!(text.contains("everything else"), "{filter}: {text}");
        }
    }

    #[test]
    fn colours_are_a_choice() {
        assert!(!logged(&LogOptions::default(), None).contains('\u{1b}'));
        assert!(logged(&LogOptions { color: true, ..LogOptions::default() }, None).contains('\u{1b}'));
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused_with_an_example() {
        let options = LogOptions { filter: Some("bench=loud".into()), ..LogOptions::default() };
        let error = dispatch(&options, None, io::sink).expect_err("must be refused").to_string();
        assert!(error.starts_with("log filter 'bench=loud': ") && error.contains("such as"), "{error}");
    }
}
