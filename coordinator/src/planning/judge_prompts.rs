//! `--judge-prompts`: a dataset's questions are judged in the words of its authors, which the user has in a file.

use std::path::Path;

use bench_grading::judging::official;
use bench_models::capabilities;
use bench_proto::{profile::Profile, spec::ModelSpec};
use bench_settings::{ModelRole, bounded};
use serde_json::Value;

use crate::{app::App, exit::CliError};

/// Tokens that the authors let their judge reply with.
const MOST_TOKENS: u32 = 10;

/// Puts the prompts of a file into the place of the profile's own.
///
/// # Errors
/// Exit 2: nobody judges, one rubric is for all questions, the file cannot be read, or it is not what the authors wrote.
pub(crate) fn take(path: &Path, profile: &mut Profile, judges: &[ModelSpec]) -> Result<(), CliError> {
    let refused = |why: &dyn std::fmt::Display| CliError::usage(format!("--judge-prompts {}: {why}", path.display()));
    if judges.is_empty() {
        return Err(refused(&"nobody judges; add --judge PROVIDER:MODEL"));
    }
    if let Some(rubric) = &profile.only_rubric {
        return Err(refused(&format!(
            "--rubric {rubric} is for all questions; leave one of the two out (a fork of such a run takes --rubric dataset)"
        )));
    }
    let text = read(path).map_err(|error| refused(&error))?;
    official::take(&text, profile).map_err(|error| refused(&error))
}

/// Gives judges the parameters that the authors' has, where a profile grades in their words; and those of the settings where it did
/// `before` and does no longer: in their few tokens no other reply has room.
///
/// # Errors
/// Exit 2 for parameters in settings that are none.
pub(crate) fn set_params(
    app: &App,
    before: Option<&Profile>,
    profile: &Profile,
    judges: &mut [ModelSpec],
) -> Result<(), CliError> {
    let theirs = official::is_official(profile);
    if !theirs && !before.is_some_and(official::is_official) {
        return Ok(());
    }
    for judge in judges {
        let mut params = app.model_params(ModelRole::Judge, &judge.provider)?;
        if theirs {
            params.insert("temperature".to_owned(), Value::from(0.0));
            params.insert("max_completion_tokens".to_owned(), MOST_TOKENS.into());
        }
        judge.params = capabilities::sent_params(&judge.provider, &judge.name, &params);
    }
    Ok(())
}

/// The file's text, unless it is larger than five prompts can be. What is no file is not opened: a pipe would be waited for.
fn read(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    bounded::text(path, official::MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_cannot_be_taken_is_refused_with_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("writes");
            path
        };
        let mut profile = Profile::implied();
        let of_longmemeval = ["judge-whole", "judge-days", "judge-update", "judge-preference", "judge-missing"];
        for (rules, rubric) in profile.categories.values_mut().zip(of_longmemeval) {
            rules.rubric = Some(rubric.to_owned());
        }
        let judges = [ModelSpec {
            provider: "openai".to_owned(),
            name: "gpt-4o".to_owned(),
            account: String::new(),
            params: BTreeMap::new(),
            prompts: BTreeMap::new(),
            version: 1,
        }];
        let refused = |path: &Path, profile: &Profile, judges: &[ModelSpec]| {
            let (mut changed, name) = (profile.clone(), path.display().to_string());
            let error = take(path, &mut changed, judges).expect_err("is refused").to_string();
            assert_eq!(changed, *profile, "nothing of it was taken");
            error.strip_prefix(&format!("--judge-prompts {name}: ")).expect("names the file").to_owned()
        };
        let other = file("other.json", r#"{"standard": "{question} {answer} {response}"}"#);
        let error = refused(&other, &profile, &judges);
        assert!(error.contains("it has sha256 ") && error.contains("theirs has 3f171ee3"), "{error}");
        assert_eq!(refused(&other, &profile, &[]), "nobody judges; add --judge PROVIDER:MODEL");
        let large = file("large.json", &" ".repeat(70_000));
        assert_eq!(refused(&large, &profile, &judges), "it has more than 64 KiB, and is not read");
        assert!(refused(&folder.path().join("none.json"), &profile, &judges).contains("No such file"));
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs");
        assert!(made.success());
        assert_eq!(refused(&pipe, &profile, &judges), "it is no file", "nobody writes: opening it would never end");
        let only = Profile { only_rubric: Some("judge-graded".to_owned()), ..profile };
        assert_eq!(
            refused(&other, &only, &judges),
            "--rubric judge-graded is for all questions; leave one of the two out (a fork of such a run takes --rubric dataset)"
        );
    }
}
