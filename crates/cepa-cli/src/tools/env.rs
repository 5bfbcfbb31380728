//! Which environment variables a command gets to see: none that looks like a key.

use std::ffi::OsString;

/// A name with one of these words in it, apart from others by `_`, holds a secret.
const WORDS: [&str; 16] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "PW",
    "CREDENTIAL",
    "CREDENTIALS",
    "PAT",
    "AUTHORIZATION",
];
/// So does a name that ends like this, whatever is before.
const ENDINGS: [&str; 5] = ["APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"];
/// So does a value that begins like this: the marks of well-known services.
const VALUES: [&str; 8] = ["sk-", "sk_", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "AKIA"];

/// The variables without those that look like keys, tokens, passwords.
pub(super) fn kept_environment(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    all.filter(|(name, value)| !is_secret(&name.to_string_lossy(), &value.to_string_lossy())).collect()
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    words().any(|word| WORDS.contains(&word))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || VALUES.iter().any(|start| value.starts_with(start))
        || value.to_ascii_lowercase().contains("bearer ")
        || has_password(value)
}

/// `postgres://user:password@host/…`
fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
