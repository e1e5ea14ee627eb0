//! The run itself: rules of its verdict, where its models were, what it is known by.

use bench_proto::summary::{ServedModel, SpecSummary, Summary};
use serde_json::{Map, Value};

use super::{TEXT_WIDTH, grades_were_brought};
use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, counted, duration, one_line},
    mlflow::plain,
    settings::settings_of,
};

pub(super) fn checks(summary: &Summary) -> Vec<Block> {
    if summary.run.checks.is_empty() {
        return Vec::new();
    }
    let rows =
        summary.run.checks.iter().map(|c| vec![c.rule.clone(), c.state.name().to_owned(), one_line(&c.detail, 200)]);
    vec![heading("Verdict"), table(&["Rule", "Result", "Seen"], rows.collect())]
}

pub(super) fn models(summary: &Summary) -> Vec<Block> {
    let models = summary.models.as_deref().unwrap_or_default();
    if models.is_empty() {
        return Vec::new();
    }
    let rows = models.iter().map(|model| {
        let list = |words: Option<Vec<String>>| match words {
            None => "not known".to_owned(),
            Some(words) if words.is_empty() => NONE.to_owned(),
            Some(words) => words.join(", "),
        };
        let served = |served: &ServedModel| {
            let name = served.model.as_deref().unwrap_or("without a name");
            let fingerprint = served.system_fingerprint.as_ref().map(|of| format!(" ({of})"));
            one_line(&format!("{name}{}", fingerprint.unwrap_or_default()), TEXT_WIDTH)
        };
        let params = model.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        vec![
            model.role.clone(),
            model.model.clone(),
            list(model.servers.clone()),
            list(model.served.as_ref().map(|all| all.iter().map(served).collect())),
            list(Some(params)),
        ]
    });
    let columns = ["Role", "Model", "Server", "As replies name it", "Parameters"];
    vec![heading("Models"), table(&columns, rows.collect())]
}

/// What the run has chosen of its memory system's settings; nothing where there was nothing to choose.
fn settings_of_system(spec: &SpecSummary) -> Option<String> {
    let mut said: Vec<String> =
        settings_of(spec).map(|(name, value)| format!("{name} = {}", one_line(&plain(value), TEXT_WIDTH))).collect();
    let declared = spec.system_settings.get("adapter").and_then(|adapter| adapter.get("settings")?.as_object());
    let is_chosen = |name: &String| spec.system_settings.contains_key(&format!("{}.{name}", spec.system));
    if declared.is_some_and(|declared: &Map<String, Value>| !declared.keys().all(is_chosen)) {
        let which = if said.is_empty() { "all" } else { "all others" };
        said.push(format!("{which} as they are by default"));
    }
    (!said.is_empty()).then(|| said.join(", "))
}

pub(super) fn run(summary: &Summary) -> Vec<Block> {
    let (run, dataset, spec) = (&summary.run, &summary.dataset, &summary.spec);
    let mut rows = vec![
        ("Run", run.id.clone()),
        (
            "Status",
            format!(
                "{}{}",
                run.status,
                if run.resumed_times > 0 {
                    format!(", resumed {}", counted(run.resumed_times, "time"))
                } else {
                    String::new()
                }
            ),
        ),
        ("Wall time", run.wall_seconds.map_or_else(|| NONE.to_owned(), duration)),
        ("Fingerprint", run.fingerprint.clone()),
        ("Result digest", summary.result_digest.clone()),
    ];
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
    let modified = match (dataset.modified, dataset.checksum_unknown) {
        (true, _) => ", modified: not the published file",
        (false, true) => ", whether it is the published file is not known",
        (false, false) => "",
    };
    rows.extend([
        ("Started", dash(&run.started_at)),
        ("Finished", dash(&run.finished_at)),
        ("Version", run.code_version.clone()),
        ("Dataset", format!("{} {}, sha256 {}{modified}", dataset.name, dataset.version, dataset.sha256)),
        ("Methodology", format!("version {}", dataset.methodology)),
        ("Sample signature", dataset.sample.signature.clone()),
        (
            "System",
            match spec.known_top_k() {
                Some(top_k) => format!("{} {}, top-k {top_k}", spec.system, spec.system_version),
                None => format!("{} {}, top-k not said", spec.system, spec.system_version),
            },
        ),
    ]);
    rows.extend(settings_of_system(spec).map(|settings| ("Settings of the system", settings)));
    rows.extend([
        ("Answerer", spec.known_answerer().unwrap_or_else(|| "not said".to_owned())),
        (
            "Judges",
            match spec.judges.is_empty() {
                true if grades_were_brought(summary) => "not said: the grades were brought".to_owned(),
                true => NONE.to_owned(),
                false => spec.judges.join(", "),
            },
        ),
        ("Scorers", spec.scorers.join(", ")),
    ]);
    rows.extend(spec.rubric.iter().map(|rubric| ("Rubric of all questions", rubric.clone())));
    rows.extend(
        summary.top1_score.map(|score| ("Mean score of the best hit", format!("{score:.3} (the system's own scale)"))),
    );
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    vec![heading("Run"), table(&["", "Value"], rows)]
}
