//! What a process sends over a network, and how well it is protected there. Pure: nobody is asked.

use std::net::IpAddr;

use bench_proto::redact;

/// A way over which secrets or results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// What goes there: `store`, `account openai`.
    pub what: String,
    /// How it is spoken there: `postgres`, `amqp`, `http`.
    pub scheme: String,
    /// Host, without port.
    pub host: String,
    /// How it is protected.
    pub protection: Protection,
}

/// How a way is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Encrypted, and the other end proves who it is.
    Verified,
    /// Encrypted, for whoever answers.
    Unverified,
    /// Not encrypted, or not when the other end would rather not.
    Plain,
}

impl Way {
    /// A way to a URL of which only the scheme says whether it is encrypted; `None` for one without a host.
    #[must_use]
    pub fn of_url(what: &str, url: &str, plain: &str) -> Option<Self> {
        let (scheme, host) = redact::scheme_and_host(url)?;
        let protection = if scheme == plain { Protection::Plain } else { Protection::Verified };
        Some(Self { what: what.to_owned(), scheme, host, protection })
    }

    /// Refuses to send to a URL over a way that is neither encrypted nor near nor in the setting `allow_plaintext`. `plain` is the
    /// scheme that is not encrypted.
    ///
    /// # Errors
    /// What is wrong with it and what to do, without what is secret in the URL.
    pub fn check_url(what: &str, url: &str, plain: &str, allowed: &[String]) -> Result<(), String> {
        let refusal = Self::of_url(what, url, plain).and_then(|way| way.refusal(allowed));
        refusal.map_or(Ok(()), Err)
    }

    /// Whether the other end is on this machine, or in a network of its own by its name: a service of a compose file or of a cluster.
    #[must_use]
    pub fn is_near(&self) -> bool {
        let host = self.host.trim_end_matches('.');
        match host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => {
                let ends = [".svc", ".internal", ".localhost"].iter().any(|end| host.ends_with(end));
                !host.contains('.') || ends || host.contains(".svc.")
            }
        }
    }

    /// What is wrong with a way that is neither encrypted nor near nor in the setting `allow_plaintext`, and is used nevertheless.
    #[must_use]
    pub fn complaint(&self, allowed: &[String]) -> Option<String> {
        self.told(allowed, "the next release refuses it")
    }

    /// The same of a way that is not used.
    fn refusal(&self, allowed: &[String]) -> Option<String> {
        self.told(allowed, "it is refused")
    }

    fn told(&self, allowed: &[String], consequence: &str) -> Option<String> {
        let Self { what, scheme, host, protection } = self;
        let said = |allowed: &String| allowed.eq_ignore_ascii_case(host) || allowed == "*";
        if *protection != Protection::Plain || self.is_near() || allowed.iter().any(said) {
            return None;
        }
        Some(format!(
            "{what}: what goes to {host} is not encrypted: {}; {consequence}, unless allow_plaintext = [\"{host}\"] \
             (BENCH_ALLOW_PLAINTEXT={host}) says that this is meant",
            match scheme.as_str() {
                "postgres" => "write ?sslmode=verify-full into its URL",
                "amqp" => "use amqps://",
                _ => "use https://",
            }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complains(url: &str) -> bool {
        Way::of_url("queue", url, "amqp").is_some_and(|way| way.complaint(&["by.agreement".to_owned()]).is_some())
    }

    #[test]
    fn plain_transport_is_told_of_beyond_networks_of_ones_own() {
        for far in [
            "amqp://u:p@mq.example.com/v",
            "AMQP://u:p@mq.example.com:5672",
            "amqp://10.0.0.7/v",
            "amqp://u:p@[2001:db8::1]:5672/v",
            "amqp://mq.svcs.example/v",
            "amqp://u:p@localhost@mq.example.com/v",
            "amqp://internal.example.com",
        ] {
            assert!(complains(far), "{far}");
        }
        for fine in [
            "amqps://mq.example.com/v",
            "amqp://127.0.0.1/v",
            "amqp://[::1]:5672/v",
            "amqp://[::ffff:127.0.0.1]/v",
            "amqp://localhost:5672",
            "amqp://u:p@rabbitmq/bench",
            "amqp://mq.queues.svc:5672/v",
            "amqp://mq.queues.svc.cluster.local/v",
            "amqp://mq.corp.internal",
            "amqp://By.Agreement/v",
            "memory:",
        ] {
            assert!(!complains(fine), "{fine}");
        }
    }

    #[test]
    fn a_host_in_numbers_is_no_name_without_a_dot() {
        let complaint = |url: &str| Way::of_url("account openai", url, "http").and_then(|way| way.complaint(&[]));
        for far in ["http://134744072/v1", "http://0x08080808/v1", "http://8.526344:80"] {
            assert!(complaint(far).is_some_and(|said| said.contains("goes to 8.8.8.8 is")), "{far}");
        }
        assert!(complains("amqp://u:p@134744072/v"));
        assert_eq!(complaint("http://2130706433/v1"), None, "this machine");
    }

    #[test]
    fn the_advice_is_for_what_is_spoken_there() {
        let said = |scheme: &str| {
            let (what, host) = ("system pgvector".to_owned(), "db.example.com".to_owned());
            let way = Way { what, scheme: scheme.to_owned(), host, protection: Protection::Plain };
            way.complaint(&[]).expect("is plain")
        };
        for (scheme, advice) in [("postgres", "?sslmode=verify-full"), ("amqp", "amqps://"), ("http", "https://")] {
            assert!(said(scheme).contains(advice), "{}", said(scheme));
        }
    }

    #[test]
    fn what_is_not_used_is_refused_now() {
        let way = Way::of_url("--mlflow", "http://mlflow.example.com:5000", "http").expect("a way");
        let refusal = way.refusal(&[]).expect("is plain");
        assert!(refusal.contains("it is refused, unless") && !refusal.contains("next release"), "{refusal}");
        assert!(way.complaint(&[]).is_some_and(|said| said.contains("the next release refuses it, unless")));
        let check = |url: &str, allowed: &[String]| Way::check_url("--mlflow", url, "http", allowed);
        assert_eq!(check("http://u:secret@mlflow.example.com:5000", &[]), Err(refusal));
        assert_eq!(check("https://mlflow.example.com", &[]), Ok(()));
        assert_eq!(check("http://mlflow.example.com", &["mlflow.example.com".to_owned()]), Ok(()));
        assert_eq!(check("no URL", &[]), Ok(()), "whoever asks there finds out");
    }

    #[test]
    fn complaints_name_the_setting_and_no_password() {
        let way = Way::of_url("account openai", "http://u:secret@api.example.com/v1", "http").expect("a way");
        let said = way.complaint(&[]).expect("is plain");
        assert!(
            said.contains("api.example.com") && said.contains("allow_plaintext") && !said.contains("secret"),
            "{said}"
        );
        assert_eq!(way.complaint(&["*".to_owned()]), None);
        let unverified = Way { protection: Protection::Unverified, ..way };
        assert_eq!(unverified.complaint(&[]), None, "`doctor` tells of it");
    }
}
