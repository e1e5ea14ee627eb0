//! Whether a run meters what its memory system calls itself, and how (P34).

use std::collections::BTreeMap;

use bench_meter::Faults;
use bench_proto::{
    metered::{FAULT_SETTING, MeterPlan},
    spec::SystemSpec,
};
use bench_settings::MeterSettings;
use bench_systems::{Capabilities, adapter::given::leads_to_the_meter};

use crate::exit::CliError;

/// Providers whose wire the meter speaks.
const WIRES: [&str; 3] = ["openai", "azure", "anthropic"];

/// The meter of a run; faults that are wanted become a setting of its memory system, so that they are part of the fingerprint.
///
/// # Errors
/// Exit 2 for a memory system without calls of its own, and for what is not of the form that is wanted.
pub(super) fn meter(
    settings: &MeterSettings,
    system: &mut SystemSpec,
    capabilities: &Capabilities,
) -> Result<Option<MeterPlan>, CliError> {
    if !settings.on {
        return match &settings.fault {
            Some(_) => {
                Err(CliError::usage("--meter-fault needs --meter: only what the meter sees can be failed on purpose"))
            }
            None => Ok(None),
        };
    }
    let read = |fault: &String| Faults::parse(fault).map_err(|e| CliError::usage(format!("--meter-fault: {e}")));
    let faults = settings.fault.as_ref().map(read).transpose()?;
    if !capabilities.remote {
        return Err(CliError::usage(format!(
            "--meter: {} is part of this program, and what it calls is counted already; leave --meter out",
            system.name
        )));
    }
    if let Some(faults) = faults {
        system.settings.insert(FAULT_SETTING.to_owned(), faults.to_string().into());
    }
    let accounts = pairs(&settings.accounts, "--meter-account", "openai=NAME")?;
    if let Some(wire) = accounts.keys().find(|wire| !WIRES.contains(&wire.as_str())) {
        return Err(CliError::usage(format!("--meter-account {wire}=…: give one of {}", WIRES.join(", "))));
    }
    let variables = pairs(&settings.variables, "--meter-variable", "MY_LLM_URL={url}/v1")?;
    if let Some((name, text)) = variables.iter().find(|(_, text)| !leads_to_the_meter(text)) {
        return Err(CliError::usage(format!(
            "--meter-variable {name}={text}: give {{url}} with the path that goes behind the meter's address ({{url}}/v1), or {{key}}"
        )));
    }
    Ok(Some(MeterPlan { allow: settings.allow.clone(), accounts, variables }))
}

fn pairs(texts: &[String], flag: &str, such_as: &str) -> Result<BTreeMap<String, String>, CliError> {
    let pair = |text: &String| {
        let found = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        found
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| CliError::usage(format!("{flag} {text}: give it as {such_as}")))
    };
    texts.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(on: bool) -> MeterSettings {
        MeterSettings {
            on,
            listen: "127.0.0.1:0".to_owned(),
            url: None,
            hosts: Vec::new(),
            allow: Vec::new(),
            accounts: vec!["openai = mine".to_owned()],
            variables: vec!["MINE={url}/v1".to_owned()],
            fault: None,
        }
    }

    fn system() -> SystemSpec {
        SystemSpec { name: "mine".to_owned(), version: "1".to_owned(), top_k: 10, settings: BTreeMap::new() }
    }

    fn remote() -> Capabilities {
        Capabilities { remote: true, ..Capabilities::from_items("1") }
    }

    #[test]
    fn a_run_is_metered_where_it_is_wanted_and_its_faults_are_part_of_what_it_is() {
        assert_eq!(meter(&settings(false), &mut system(), &remote()).expect("is planned"), None);
        let mut system = system();
        let faulty = MeterSettings { fault: Some("slow=0.02, 429=0.05".to_owned()), ..settings(true) };
        let plan = meter(&faulty, &mut system, &remote()).expect("is planned").expect("is metered");
        assert_eq!((plan.accounts["openai"].as_str(), plan.variables["MINE"].as_str()), ("mine", "{url}/v1"));
        assert_eq!(system.settings[FAULT_SETTING], "429=0.05,slow=0.02");
    }

    #[test]
    fn what_cannot_be_metered_is_refused_with_what_to_do() {
        let refused = |settings: MeterSettings, capabilities: &Capabilities| {
            meter(&settings, &mut system(), capabilities).expect_err("is refused").to_string()
        };
        assert!(refused(settings(true), &Capabilities::from_items("1")).contains("is counted already"));
        let with = |change: fn(&mut MeterSettings)| {
            let mut settings = settings(true);
            change(&mut settings);
            refused(settings, &remote())
        };
        assert!(with(|of| of.fault = Some("no".to_owned())).contains("429=0.05"));
        assert!(with(|of| of.accounts = vec!["cohere=x".to_owned()]).contains("openai, azure, anthropic"));
        assert!(with(|of| of.accounts = vec!["x".to_owned()]).contains("openai=NAME"));
        assert!(with(|of| of.variables = vec!["MINE=fixed".to_owned()]).contains("{url}"));
        let fault_alone = MeterSettings { fault: Some("429=1".to_owned()), ..settings(false) };
        assert!(refused(fault_alone, &remote()).contains("needs --meter"));
    }
}
