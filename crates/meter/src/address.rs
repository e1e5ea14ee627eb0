//! What the path of a request says: whose it is, and which of a provider's operations it asks for.
//!
//! `/m/<run>[/<bank>/<generation>]/` and then a provider's own path, with or without `v1`, or Azure's with a deployment. What is not in
//! this list is nowhere: a request whose use cannot be read is not forwarded.

/// Which of a provider's operations a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's completions of a text.
    Completions,
    /// OpenAI's embeddings.
    Embeddings,
    /// Anthropic's messages.
    Messages,
    /// The list of models, or one of them: costs nothing.
    Models,
    /// Anthropic's count of the tokens of a message: costs nothing.
    CountTokens,
}

impl Operation {
    /// Its path behind a base URL that ends with `/v1`.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Responses => "responses",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::Models => "models",
            Self::CountTokens => "messages/count_tokens",
        }
    }

    /// Whether a provider asks money for it.
    #[must_use]
    pub const fn costs(self) -> bool {
        !matches!(self, Self::Models | Self::CountTokens)
    }

    /// Whether it is one of Anthropic's own.
    pub(crate) const fn is_anthropic(self) -> bool {
        matches!(self, Self::Messages | Self::CountTokens)
    }
}

/// Whose request it is, by its path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Name or id of the run.
    pub run: String,
    /// The bank that is worked on, where the base URL names one.
    pub bank: Option<String>,
    /// The generation of that bank.
    pub generation: Option<u32>,
}

/// A path that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: Address,
    pub(crate) operation: Operation,
    /// The provider's path behind `/v1`, as it arrived.
    pub(crate) suffix: String,
    /// The deployment of one of Azure's paths.
    pub(crate) deployment: Option<String>,
}

/// Reads a path; `None` when nothing is there.
pub(crate) fn read(path: &str) -> Option<Target> {
    let segments: Vec<&str> = path.strip_prefix("/m/")?.split('/').collect();
    let (run, rest) = segments.split_first()?;
    let run = decoded(run)?;
    // a bank's name may be a word of a provider's paths: the number behind it tells
    if let [bank, generation, inner @ ..] = rest
        && let Ok(generation) = generation.parse::<u32>()
        && let Some(path) = Path::read(inner)
    {
        let address = Address { run, bank: Some(decoded(bank)?), generation: Some(generation) };
        return Some(path.at(address));
    }
    Some(Path::read(rest)?.at(Address { run, bank: None, generation: None }))
}

/// Whose request it is that asks for something that is nowhere, where its path says so much.
pub(crate) fn of_nowhere(path: &str) -> Option<Address> {
    let run = decoded(path.strip_prefix("/m/")?.split('/').next()?)?;
    Some(Address { run, bank: None, generation: None })
}

/// A provider's own path.
struct Path {
    operation: Operation,
    suffix: String,
    deployment: Option<String>,
}

impl Path {
    fn at(self, address: Address) -> Target {
        Target { address, operation: self.operation, suffix: self.suffix, deployment: self.deployment }
    }

    fn read(segments: &[&str]) -> Option<Self> {
        if let ["openai", "deployments", deployment, rest @ ..] = segments {
            let operation = operation(rest).filter(|of| of.costs() && !of.is_anthropic())?;
            let deployment = Some(decoded(deployment)?);
            return Some(Self { operation, suffix: operation.path().to_owned(), deployment });
        }
        let rest = segments.strip_prefix(&["openai"]).unwrap_or(segments);
        let rest = rest.strip_prefix(&["v1"]).unwrap_or(rest);
        Some(Self { operation: operation(rest)?, suffix: rest.join("/"), deployment: None })
    }
}

fn operation(segments: &[&str]) -> Option<Operation> {
    Some(match segments {
        ["chat", "completions"] => Operation::Chat,
        ["responses"] => Operation::Responses,
        ["completions"] => Operation::Completions,
        ["embeddings"] => Operation::Embeddings,
        ["messages"] => Operation::Messages,
        ["messages", "count_tokens"] => Operation::CountTokens,
        ["models"] => Operation::Models,
        // names of models have slashes, and none of their parts leads elsewhere
        ["models", name @ ..] if name.iter().all(|part| decoded(part).is_some()) => Operation::Models,
        _ => return None,
    })
}

/// A segment without its percent signs; `None` where it is empty, no text, or leads to another folder.
fn decoded(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(16 * high + low).ok()?);
    }
    let text = String::from_utf8(bytes).ok()?;
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    text.split(['/', '\\']).all(is_name).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> (Operation, Option<String>, Option<u32>, String, Option<String>) {
        let target = read(path).expect(path);
        assert_eq!(target.address.run, "r1", "{path}");
        (target.operation, target.address.bank, target.address.generation, target.suffix, target.deployment)
    }

    #[test]
    fn paths_of_all_providers_are_read_with_and_without_a_bank() {
        for (path, operation) in [
            ("chat/completions", Operation::Chat),
            ("responses", Operation::Responses),
            ("completions", Operation::Completions),
            ("embeddings", Operation::Embeddings),
            ("messages", Operation::Messages),
            ("messages/count_tokens", Operation::CountTokens),
            ("models", Operation::Models),
            ("models/org/name", Operation::Models),
        ] {
            for version in ["", "v1/", "openai/v1/"] {
                let plain = (operation, None, None, path.to_owned(), None);
                assert_eq!(at(&format!("/m/r1/{version}{path}")), plain);
                let banked = (operation, Some("conv 26".to_owned()), Some(3), path.to_owned(), None);
                assert_eq!(at(&format!("/m/r1/conv%2026/3/{version}{path}")), banked);
            }
        }
        for (path, operation) in [("chat/completions", Operation::Chat), ("embeddings", Operation::Embeddings)] {
            let azure = (operation, None, None, path.to_owned(), Some("gpt-4o".to_owned()));
            assert_eq!(at(&format!("/m/r1/openai/deployments/gpt-4o/{path}")), azure);
        }
    }

    #[test]
    fn a_bank_may_have_the_name_of_an_operation() {
        let banked = (Operation::Chat, Some("models".to_owned()), Some(0), "chat/completions".to_owned(), None);
        assert_eq!(at("/m/r1/models/0/v1/chat/completions"), banked);
        assert_eq!(at("/m/r1/models/0"), (Operation::Models, None, None, "models/0".to_owned(), None));
        assert_eq!(at("/m/r1/v1/1/v1/models").1.as_deref(), Some("v1"));
    }

    #[test]
    fn everything_else_is_nowhere() {
        for path in [
            "",
            "/",
            "/v1/chat/completions",
            "/m",
            "/m/",
            "/m/r1",
            "/m/r1/",
            "/m//v1/chat/completions",
            "/m/r1/v1",
            "/m/r1/v2/chat/completions",
            "/m/r1/v1/chat/completions/",
            "/m/r1/v1/chat/completions/x",
            "/m/r1/v1/files",
            "/m/r1/v1/images/generations",
            "/m/r1/v1/responses/resp_1",
            "/m/r1/v1/models/../files",
            "/m/r1/v1/models/%2e%2E/files",
            "/m/r1/v1/models/a%2F..%2Ffiles",
            "/m/r1/bank/v1/chat/completions",
            "/m/r1/bank/-1/v1/chat/completions",
            "/m/r1/bank/4294967296/v1/chat/completions",
            "/m/../v1/chat/completions",
            "/m/r%0a/v1/chat/completions",
            "/m/r%/v1/chat/completions",
            "/m/r%zz/v1/chat/completions",
            "/m/r%ff/v1/chat/completions",
            "/m/r1/openai/deployments/x/models",
            "/m/r1/openai/deployments/x/messages",
            "/m/r1/openai/deployments//chat/completions",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
        let run = |path: &str| of_nowhere(path).map(|address| address.run);
        assert_eq!(run("/m/r%201/v1/files").as_deref(), Some("r 1"));
        for path in ["/v1/files", "/m/", "/m/../v1/files", "/m//v1/files"] {
            assert_eq!(run(path), None, "{path}");
        }
    }
}
