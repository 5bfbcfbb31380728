//! Keys do not reach a command; what a command needs does.

use super::*;

#[test]
fn names_and_values_that_look_like_keys_go() {
    for (name, value) in [
        ("OPENAI_API_KEY", "x"),
        ("anthropic_api_key", "x"),
        ("ANTHROPIC_AUTH_TOKEN", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AZURE_OPENAI_KEY", "x"),
        ("GITHUB_TOKEN", "x"),
        ("GH_PAT", "x"),
        ("CLIENT_SECRET", "x"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PWD_PASSWORD", "x"),
        ("npm_config_//registry.npmjs.org/:_authToken", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "x"),
        ("MYAPIKEY", "x"),
        ("HARMLESS", "sk-proj-abc"),
        ("HARMLESS", "ghp_abc"),
        ("EXTRA_HEADERS", "Authorization: Bearer abc"),
        ("DATABASE_URL", "postgres://me:secret@host/db"),
    ] {
        assert!(is_secret(name, value), "{name}={value}");
    }
    for (name, value) in [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/root-of-me"),
        ("PWD", "/root-of-me"),
        ("LANG", "C.UTF-8"),
        ("SSH_AUTH_SOCK", "/run/agent.sock"),
        ("KEYBOARD_LAYOUT", "de"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MONKEY", "x"),
        ("HTTP_PROXY", "http://proxy:3128"),
        ("REPOSITORY", "https://example.com/a@b:c"),
        ("GIT_SSH_COMMAND", "ssh -o User=me"),
        ("CARGO_HOME", "/opt/cargo"),
    ] {
        assert!(!is_secret(name, value), "{name}={value}");
    }
}
