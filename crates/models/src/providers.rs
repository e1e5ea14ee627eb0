//! The providers, by name: who sends requests, and who is paid.

/// A registered provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Name, the part before the colon.
    pub name: &'static str,
    /// One line for people who read this table.
    pub description: &'static str,
    /// Sends requests: has models and an account.
    pub remote: bool,
    /// Somebody is paid for its models, so that a price has to be known. Nobody is for those of this machine.
    pub paid: bool,
}

/// Provider of models that are simulated: whoever runs them starts the simulator.
pub const FAKE: &str = "fake";

/// All providers: one line each.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openai",
        description: "any OpenAI-compatible server (OPENAI_BASE_URL, OPENAI_API_KEY)",
        remote: true,
        paid: true,
    },
    Provider {
        name: "anthropic",
        description: "Anthropic's messages API (ANTHROPIC_API_KEY)",
        remote: true,
        paid: true,
    },
    Provider {
        name: "azure",
        description: "a deployment of Azure OpenAI (AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY)",
        remote: true,
        paid: true,
    },
    Provider {
        name: "ollama",
        description: "a model of the Ollama of this machine, port 11434; no key, no price",
        remote: true,
        paid: false,
    },
    Provider {
        name: FAKE,
        description: "a simulated model, started for the run: for rehearsals; no key, no price, no network",
        remote: true,
        paid: false,
    },
    Provider {
        name: "extractive",
        description: "picks a sentence of the context; no key, no network",
        remote: false,
        paid: false,
    },
    Provider {
        name: "system",
        description: "the memory system answers by itself (reflect, ask)",
        remote: false,
        paid: false,
    },
    Provider { name: "none", description: "no model: retrieval only", remote: false, paid: false },
];

/// Whether somebody is paid for the models of a provider, by its name. One that no build knows is taken as paid.
#[must_use]
pub fn is_paid(provider: &str) -> bool {
    PROVIDERS.iter().find(|known| known.name == provider).is_none_or(|known| known.paid)
}
