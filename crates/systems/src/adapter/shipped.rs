//! The adapters in the binary. To add one: a file in `shipped/`, and a line here.

use super::{AdapterSpec, file};

/// (name, text of the file), in the order of `systems list`.
#[rustfmt::skip]
pub const SHIPPED: &[(&str, &str)] = &[
    ("astrocyte", include_str!("shipped/astrocyte.yaml")),
    ("astrocyte-started", include_str!("shipped/astrocyte-started.yaml")),
    ("jeffs-brain", include_str!("shipped/jeffs-brain.yaml")),
    ("jeffs-brain-go", include_str!("shipped/jeffs-brain-go.yaml")),
    ("jeffs-brain-python", include_str!("shipped/jeffs-brain-python.yaml")),
    ("jeffs-brain-typescript", include_str!("shipped/jeffs-brain-typescript.yaml")),
    ("hebb-mind", include_str!("shipped/hebb-mind.yaml")),
    ("amplihack", include_str!("shipped/amplihack.yaml")),
    ("precisionmembench", include_str!("shipped/precisionmembench.yaml")),
    ("precisionmembench-scoped", include_str!("shipped/precisionmembench-scoped.yaml")),
    ("mem0", include_str!("shipped/mem0.yaml")),
    ("graphiti", include_str!("shipped/graphiti.yaml")),
    ("hindsight", include_str!("shipped/hindsight.yaml")),
    ("supermemory", include_str!("shipped/supermemory.yaml")),
    ("mem0-cloud", include_str!("shipped/mem0-cloud.yaml")),
    ("zep", include_str!("shipped/zep.yaml")),
    ("letta", include_str!("shipped/letta.yaml")),
    ("memmachine", include_str!("shipped/memmachine.yaml")),
    ("evermemos", include_str!("shipped/evermemos.yaml")),
    ("cognee", include_str!("shipped/cognee.yaml")),
    ("mcp-memory", include_str!("shipped/mcp-memory.yaml")),
];

/// The shipped adapter of a name.
///
/// # Errors
/// When the file in the binary is broken, which a test rules out.
#[must_use]
pub fn find(name: &str) -> Option<Result<AdapterSpec, String>> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| file::parse(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_file_compiles_and_has_its_name() {
        for (name, text) in SHIPPED {
            let spec = file::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(spec.name, *name);
            assert!(
                !spec.description.is_empty() && !spec.traps.is_empty() && spec.tested.is_some(),
                "{name}: say what it is, how it was tested and which traps it has"
            );
            super::super::check(&spec).unwrap_or_else(|error| panic!("{name}: {error}"));
            for needed in [&spec.retain, &spec.health] {
                assert!(needed.is_some(), "{name}");
            }
        }
    }

    /// Whoever starts a daemon, and in which language: it is asked the same, so that they can be compared.
    #[test]
    fn what_is_started_is_asked_as_what_somebody_else_has_started() {
        let asked = |name: &str| {
            let mut spec = find(name).expect("is shipped").expect("reads");
            (spec.name, spec.description, spec.tested) = (String::new(), String::new(), None);
            (spec.url, spec.start, spec.auth, spec.version) = (None, None, None, 1);
            spec.traps.clear();
            spec
        };
        for language in ["go", "python", "typescript"] {
            assert_eq!(asked(&format!("jeffs-brain-{language}")), asked("jeffs-brain"), "{language}");
        }
        // the two are compared: the scope of a search is all that tells them apart
        let (plain, mut scoped) = (asked("precisionmembench"), asked("precisionmembench-scoped"));
        let body = scoped.recall.as_mut().and_then(|recall| recall.body.as_mut()).and_then(|body| body.as_object_mut());
        assert!(body.is_some_and(|body| body.remove("scope").is_some()));
        assert_eq!(scoped, plain);
    }
}
