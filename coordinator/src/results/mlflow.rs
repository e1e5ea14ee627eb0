//! A result is sent to an MLflow tracking server, over its REST interface 2.0.
//!
//! A result is one run of the server, found again by its tags: sent twice it is there once, and what was cut is gone on with.

use std::time::Duration;

use bench_proto::{redact, text::one_line};
use bench_report::mlflow::{DIGEST_TAG, RUN_TAG, Record};
use bench_settings::Way;
use reqwest::{Client, Method, Request, StatusCode, Url, header::AUTHORIZATION};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    app::App,
    exit::{CliError, Exit},
};

/// Longest time for one request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest reply that is read, in bytes.
const MOST_BYTES: usize = 4 << 20;
/// Most params and metrics of one request, by the interface.
const MOST_PARAMS: usize = 100;
const MOST_METRICS: usize = 1_000;
/// Longest reason of a refusal that is shown, and longest code of one, in characters.
const MOST_SHOWN: usize = 300;
const LONGEST_CODE: usize = 80;
/// What a server calls something that is not there, and something that is there already.
const NOT_THERE: &str = "RESOURCE_DOES_NOT_EXIST";
const THERE_ALREADY: &str = "RESOURCE_ALREADY_EXISTS";

/// Where a result is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// By which the server knows the experiment: digits in a text.
    pub(crate) experiment_id: String,
    /// Id of the server's run.
    pub(crate) run_id: String,
    /// Whether it was there before, whole.
    pub(crate) was_there: bool,
}

/// A tracking server.
pub(crate) struct Server {
    client: Client,
    base: Url,
    secret: Option<Secret>,
}

/// How a request says who sends it.
enum Secret {
    Token(String),
    Password(String, String),
}

/// The answer of the server to a request that it refused.
struct Refused {
    status: StatusCode,
    code: String,
    message: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorReply {
    error_code: String,
    message: String,
}

impl Server {
    /// A server by its URL; who asks is said by `MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_USERNAME` and
    /// `MLFLOW_TRACKING_PASSWORD`.
    ///
    /// # Errors
    /// Exit 2 for what is no URL of a server, holds a password, or is not encrypted and should be.
    pub(crate) fn at(app: &App, url: &str) -> Result<Self, CliError> {
        let wrong = |why: &str| CliError::usage(format!("--mlflow {why}"));
        let mut base =
            Url::parse(url).map_err(|e| wrong("takes the URL of a tracking server: https://HOST").because(e))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("takes the URL of a tracking server: https://HOST"));
        }
        if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
            return Err(wrong(
                "takes no user, password or parameters in its URL: set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and \
                 MLFLOW_TRACKING_PASSWORD",
            ));
        }
        Way::check_url("--mlflow", url, "http", &app.settings().allow_plaintext).map_err(CliError::usage)?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        // a redirection must lead nobody to the token, nor off the encrypted way
        let client = Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
        let client = client.https_only(base.scheme() == "https").build().map_err(CliError::infrastructure_of)?;
        Ok(Self { client, base, secret: Secret::of_environment() })
    }

    /// Brings a result into an experiment.
    ///
    /// # Errors
    /// Exit 2 for what the server refuses, 4 when it is away.
    pub(crate) async fn keep(&self, experiment: &str, record: &Record) -> Result<Kept, CliError> {
        let experiment_id = self.experiment(experiment).await?;
        let run_id = match self.find(&experiment_id, record).await? {
            Some((run_id, true)) => return Ok(Kept { experiment_id, run_id, was_there: true }),
            Some((run_id, false)) => run_id,
            None => self.create(&experiment_id, record).await?,
        };
        let at = milliseconds(record.finished_at.as_deref());
        for params in record.params.chunks(MOST_PARAMS) {
            let params: Vec<Value> = params.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
            self.ask(Method::POST, "runs/log-batch", json!({"run_id": run_id, "params": params})).await?.done()?;
        }
        for metrics in record.metrics.chunks(MOST_METRICS) {
            let one = |(key, value): &(String, f64)| json!({"key": key, "value": value, "timestamp": at, "step": 0});
            let metrics: Vec<Value> = metrics.iter().map(one).collect();
            self.ask(Method::POST, "runs/log-batch", json!({"run_id": run_id, "metrics": metrics})).await?.done()?;
        }
        // last: a run that has ended is whole
        let status = if record.verdict == bench_proto::summary::Verdict::Valid { "FINISHED" } else { "FAILED" };
        let ended = json!({"run_id": run_id, "status": status, "end_time": at});
        self.ask(Method::POST, "runs/update", ended).await?.done()?;
        Ok(Kept { experiment_id, run_id, was_there: false })
    }

    /// The page of a kept result.
    pub(crate) fn page(&self, kept: &Kept) -> String {
        format!("{}#/experiments/{}/runs/{}", self.base, kept.experiment_id, kept.run_id)
    }

    /// The id of an experiment; it is made when it is not there.
    async fn experiment(&self, name: &str) -> Result<String, CliError> {
        if let Some(id) = self.experiment_named(name).await? {
            return Ok(id);
        }
        match self.ask(Method::POST, "experiments/create", json!({"name": name})).await?.0 {
            Ok(made) => text_at(&made, "/experiment_id"),
            // somebody else has made it meanwhile
            Err(refused) if refused.code == THERE_ALREADY => {
                let found = self.experiment_named(name).await?;
                found.ok_or_else(|| CliError::usage(format!(
                    "--mlflow-experiment {name}: an experiment of this name was deleted on the server; restore it there, or name another"
                )))
            }
            Err(refused) => Err(refused.into()),
        }
    }

    async fn experiment_named(&self, name: &str) -> Result<Option<String>, CliError> {
        match self.ask(Method::GET, "experiments/get-by-name", json!({"experiment_name": name})).await?.0 {
            Ok(found) if found.pointer("/experiment/lifecycle_stage") == Some(&json!("deleted")) => Ok(None),
            Ok(found) => text_at(&found, "/experiment/experiment_id").map(Some),
            Err(refused) if refused.code == NOT_THERE => Ok(None),
            Err(refused) => Err(refused.into()),
        }
    }

    /// The run of a result, and whether it is whole.
    async fn find(&self, experiment_id: &str, record: &Record) -> Result<Option<(String, bool)>, CliError> {
        let of = |name: &str| record.tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.as_str());
        let (Some(run), Some(digest)) = (of(RUN_TAG), of(DIGEST_TAG)) else { return Ok(None) };
        // ids of runs and digests hold no quotes
        let filter = format!("tags.`{RUN_TAG}` = '{run}' and tags.`{DIGEST_TAG}` = '{digest}'");
        let search = json!({"experiment_ids": [experiment_id], "filter": filter, "max_results": 1});
        let found = self.ask(Method::POST, "runs/search", search).await?.done()?;
        let Some(run) = found.pointer("/runs/0") else { return Ok(None) };
        let has_ended = matches!(run.pointer("/info/status").and_then(Value::as_str), Some("FINISHED" | "FAILED"));
        Ok(Some((text_at(run, "/info/run_id")?, has_ended)))
    }

    async fn create(&self, experiment_id: &str, record: &Record) -> Result<String, CliError> {
        let tags: Vec<Value> = record.tags.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        let run = json!({
            "experiment_id": experiment_id, "run_name": record.run_name, "tags": tags,
            "start_time": milliseconds(record.started_at.as_deref()),
        });
        text_at(&self.ask(Method::POST, "runs/create", run).await?.done()?, "/run/info/run_id")
    }

    /// A request and its reply. Only what the server understood, and refused, is no error of the way.
    async fn ask(&self, method: Method, path: &str, what: Value) -> Result<Reply, CliError> {
        // the URL of a person may hold more than others should see: errors do not repeat it
        let away = |e: reqwest::Error| {
            let e = e.without_url();
            let causes = std::iter::successors(std::error::Error::source(&e), |cause| cause.source());
            let why = causes.last().map_or_else(|| e.to_string(), ToString::to_string);
            CliError::infrastructure(format!("the MLflow server does not answer: {why}; try again")).because(e)
        };
        let mut url = self.base.join(&format!("api/2.0/mlflow/{path}")).map_err(CliError::usage_of)?;
        let request = match &what {
            Value::Object(fields) if method == Method::GET => {
                let texts = fields.iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
                url.query_pairs_mut().extend_pairs(texts);
                self.client.request(method, url)
            }
            body => {
                let request = self.client.request(method, url).header("content-type", "application/json");
                request.body(body.to_string())
            }
        };
        let request = match &self.secret {
            Some(Secret::Token(token)) => request.bearer_auth(token),
            Some(Secret::Password(user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        };
        let request = request.build().map_err(away)?;
        let secrets = self.secrets(&request);
        let mut response = self.client.execute(request).await.map_err(away)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(away)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MOST_BYTES {
                return Err(CliError::infrastructure("the MLflow server sends a reply that does not end"));
            }
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(CliError::infrastructure(format!("the MLflow server answers {status}; try again")));
        }
        if status.is_success() {
            let no_json = "what answers there is no MLflow server: its reply is no JSON; check the URL after --mlflow";
            return serde_json::from_slice(&bytes)
                .map(|reply| Reply(Ok(reply)))
                .map_err(|e| CliError::usage(no_json).because(e));
        }
        Ok(Reply(Err(Refused::read(status, &bytes, &secrets))))
    }

    /// What a request says of who asks: a token or password as it was given, and as it is sent.
    fn secrets(&self, request: &Request) -> Vec<String> {
        let sent = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let sent = sent.and_then(|value| value.split_whitespace().last()).map(str::to_owned);
        let given = self.secret.as_ref().map(|secret| match secret {
            Secret::Token(secret) | Secret::Password(_, secret) => secret.clone(),
        });
        given.into_iter().chain(sent).collect()
    }
}

/// What came back.
struct Reply(Result<Value, Refused>);

impl Reply {
    fn done(self) -> Result<Value, CliError> {
        self.0.map_err(CliError::from)
    }
}

impl Secret {
    fn of_environment() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match variable("MLFLOW_TRACKING_TOKEN") {
            Some(token) => Some(Self::Token(token)),
            None => variable("MLFLOW_TRACKING_USERNAME")
                .map(|user| Self::Password(user, variable("MLFLOW_TRACKING_PASSWORD").unwrap_or_default())),
        }
    }
}

impl Refused {
    /// What a server says of a refusal, without what it was sent to know who asks.
    fn read(status: StatusCode, reply: &[u8], secrets: &[String]) -> Self {
        let told: ErrorReply = serde_json::from_slice(reply).unwrap_or_default();
        let shown = |words: &str, most: usize| {
            let words = one_line(words).into_owned();
            let words = secrets.iter().fold(words, |words, secret| redact::secret(&words, secret).into_owned());
            words.chars().take(most).collect::<String>()
        };
        Self { status, code: shown(&told.error_code, LONGEST_CODE), message: shown(&told.message, MOST_SHOWN) }
    }
}

impl From<Refused> for CliError {
    fn from(refused: Refused) -> Self {
        let Refused { status, code, message } = refused;
        let advice = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                "set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, for one who may write there"
            }
            StatusCode::NOT_FOUND => "check the URL after --mlflow: the interface is expected at URL/api/2.0/mlflow",
            _ if status.is_redirection() => "check the URL after --mlflow: the server leads elsewhere",
            _ => "nothing else was sent",
        };
        let told = [code, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        Self::new(Exit::Usage, format!("the MLflow server refuses ({status}) {told}: {advice}"))
    }
}

/// A text in a reply.
fn text_at(reply: &Value, pointer: &str) -> Result<String, CliError> {
    let text = reply.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| {
        CliError::usage(format!(
            "what answers there is no MLflow server: its reply has no {pointer}; check the URL after --mlflow"
        ))
    })
}

/// Milliseconds since 1970 of a time; 0 where there is none.
fn milliseconds(at: Option<&str>) -> i64 {
    at.and_then(|at| at.parse::<jiff::Timestamp>().ok()).map_or(0, |at| at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_short_and_repeats_no_secret() {
        let secrets = ["secret-token".to_owned(), "dXNlcjpzZWNyZXQ=".to_owned()];
        let long = "x".repeat(2_000);
        let reply = json!({
            "error_code": format!("BAD_secret-token\n{long}"),
            "message": format!("not Bearer secret-token, nor Basic dXNlcjpzZWNyZXQ=\n{long}"),
        });
        let refused = Refused::read(StatusCode::FORBIDDEN, reply.to_string().as_bytes(), &secrets);
        let said = CliError::from(refused).message;
        assert!(said.starts_with("the MLflow server refuses (403 Forbidden) BAD_[key] xxx"), "{said}");
        assert!(said.contains(": not Bearer [key], nor Basic [key] xxx") && said.len() < 700, "{said}");
    }

    #[test]
    fn a_password_is_hidden_as_it_is_sent_too() {
        let url = Url::parse("http://127.0.0.1/").expect("a URL");
        let secret = Secret::Password("user".to_owned(), "opensesame".to_owned());
        let server = Server { client: Client::new(), base: url.clone(), secret: Some(secret) };
        let request = server.client.get(url).basic_auth("user", Some("opensesame")).build().expect("a request");
        assert_eq!(server.secrets(&request), ["opensesame", "dXNlcjpvcGVuc2VzYW1l"]);
    }
}
