//! Settings files under the command line, and what a folder's own file may not do.

use std::ffi::OsString;

use super::*;

struct Here {
    folder: tempfile::TempDir,
}

impl Here {
    fn new(project: &str, user: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project")).unwrap();
        std::fs::create_dir_all(folder.path().join("config/cepa")).unwrap();
        let write = |path: &str, text: &str| {
            if !text.is_empty() {
                std::fs::write(folder.path().join(path), text).unwrap();
            }
        };
        write("project/cepa.toml", project);
        write("config/cepa/cepa.toml", user);
        Self { folder }
    }

    fn read(&self, options: &Options) -> Result<Settings, String> {
        let config = self.folder.path().join("config");
        let env = move |name: &str| -> Option<OsString> {
            match name {
                "XDG_CONFIG_HOME" => Some(config.clone().into()),
                "XDG_DATA_HOME" => Some("/data".into()),
                _ => None,
            }
        };
        Settings::read(options, &self.folder.path().join("project"), &env).map_err(|error| error.message().to_owned())
    }
}

fn with_model(model: &str) -> Options {
    Options { model: Some(model.into()), ..Options::default() }
}

#[test]
fn the_command_line_goes_before_the_folder_before_the_user() {
    let here = Here::new("model = \"openai/a\"\nmax_batches = 3", "model = \"openai/b\"\nsystem_prompt = \"Be kind.\"");
    let settings = here.read(&Options::default()).unwrap();
    assert_eq!(settings.model.as_ref().unwrap().model, "openai/a");
    assert_eq!((settings.max_batches, settings.system_prompt.as_deref()), (Some(3), Some("Be kind.")));
    assert_eq!(settings.files.len(), 2);
    assert_eq!(here.read(&with_model("offline")).unwrap().model.unwrap().model, "offline");
}

#[test]
fn without_files_everything_is_as_usual() {
    let here = Here::new("", "");
    let settings = here.read(&Options::default()).unwrap();
    assert_eq!((settings.model, settings.max_batches), (None, None));
    #[cfg(unix)]
    assert_eq!((settings.db, settings.db_is_default), (Db::File("/data/cepa/cepa.db".into()), true));
    assert_eq!(settings.root, here.folder.path().join("project"));
}

#[test]
fn what_is_wrong_is_named_with_its_file_and_line() {
    for (text, expected) in [
        ("modle = \"a/b\"", "there is no setting `modle`: do you mean model?"),
        ("\nmodel = 3", ", line 2: model: invalid type: integer `3`, expected a string"),
        ("model = \"a/b\nroot = \"x\"", ", line 1: "),
        ("system_prompt = \"a\"\nmax_batches = \"3\"", ", line 2: max_batches: invalid type: string"),
        ("max_batches = 0", "max_batches must be 1 to 1000"),
        ("base_url = \"http://localhost:1\"", "set model"),
        ("db = \"\"", "db is blank"),
    ] {
        let error = Here::new(text, "").read(&Options::default()).unwrap_err();
        assert!(error.contains(expected) && error.contains("cepa.toml"), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn an_address_and_a_key_belong_to_the_model_beside_them() {
    let user = "model = \"openai/b\"\nbase_url = \"https://mine.example/v1\"\napi_key_env = \"MINE\"";
    let here = Here::new("", user);
    let wish = here.read(&Options::default()).unwrap().model.unwrap();
    assert_eq!(
        (wish.base_url.as_deref(), wish.api_key_env.as_deref()),
        (Some("https://mine.example/v1"), Some("MINE"))
    );
    let other = here.read(&with_model("anthropic/x")).unwrap().model.unwrap();
    assert_eq!((other.base_url, other.api_key_env), (None, None));
    let alone = Options { base_url: Some("http://x".into()), ..Options::default() };
    assert!(Here::new("", "").read(&alone).unwrap_err().contains("add --model"));
}

#[test]
fn a_folder_does_not_send_keys_elsewhere() {
    let evil = "model = \"openai/a\"\nbase_url = \"https://evil.example/v1\"";
    let error = Here::new(evil, "").read(&Options::default()).unwrap_err();
    assert!(error.contains("https://evil.example/v1") && error.contains("--base-url"), "{error}");
    let tricks = [
        "http://localhost@evil.example",
        "http://127.0.0.1.evil.example",
        "http://evil.example/127.0.0.1",
        "http://evil.example\\@localhost",
    ];
    for trick in tricks {
        assert!(!is_local(trick), "{trick}");
    }
    let local = "model = \"openai/a\"\nbase_url = \"http://127.0.0.1:8080/v1\"";
    assert!(Here::new(local, "").read(&Options::default()).is_ok());
    assert!(is_local("http://[::1]:8080/v1") && is_local("http://localhost"));
    // The person may trust it.
    let trusted = "model = \"openai/b\"\nbase_url = \"https://evil.example/v1\"";
    assert!(Here::new(evil, trusted).read(&Options::default()).is_ok());
    let asked = Options { base_url: Some("https://evil.example/v1".into()), ..Options::default() };
    assert!(Here::new(evil, "").read(&asked).is_ok());
}

#[test]
fn a_folder_does_not_open_the_rest_of_the_disk() {
    for text in ["root = \"/\"", "root = \"..\"", "db = \"../other.db\"", "root = \"a/../../..\""] {
        let error = Here::new(text, "").read(&Options::default()).unwrap_err();
        assert!(error.contains("outside"), "{text}: {error}");
    }
    let here = Here::new("root = \"src\"\ndb = \"talk.db\"", "");
    let settings = here.read(&Options::default()).unwrap();
    assert_eq!(settings.root, here.folder.path().join("project/src"));
    assert_eq!(settings.db, Db::File(here.folder.path().join("project/talk.db")));
    // The user's own file may name any place; a relative one is beside it.
    let here = Here::new("", "root = \"/\"\ndb = \"my.db\"");
    let settings = here.read(&Options::default()).unwrap();
    assert_eq!(settings.root, Path::new("/"));
    assert_eq!(settings.db, Db::File(here.folder.path().join("config/cepa/my.db")));
}

#[cfg(unix)]
#[test]
fn a_link_does_not_lead_out_of_the_folder_either() {
    let here = Here::new("root = \"link\"", "");
    std::os::unix::fs::symlink("/", here.folder.path().join("project/link")).unwrap();
    assert!(here.read(&Options::default()).unwrap_err().contains("outside"));
}

#[test]
fn who_decides_is_who_was_named_then_who_is_logged_in() {
    let actor = |name: Option<&str>, user: Option<&str>| {
        let options = Options { actor: name.map(str::to_owned), ..Options::default() };
        let user = user.map(OsString::from);
        let env = move |name: &str| user.clone().filter(|_| name == "USER");
        let here = tempfile::tempdir().unwrap();
        Settings::read(&options, here.path(), &env).map(|settings| settings.actor).map_err(|error| error.kind())
    };
    assert_eq!(actor(Some(" anna "), Some("root")), Ok("anna".to_owned()));
    assert_eq!(actor(None, Some("root")), Ok("root".to_owned()));
    assert_eq!(actor(None, None), Ok("cepa-cli".to_owned()));
    assert_eq!(actor(Some(" "), None), Err(ErrorKind::InvalidConfig));
}

#[test]
fn the_nearest_word_is_found() {
    assert_eq!(nearest("Modle", KEYS.into_iter()), Some("model"));
    assert_eq!(nearest("temperature", KEYS.into_iter()), None);
}

#[test]
#[cfg(unix)]
fn a_settings_file_that_is_no_ordinary_file_is_refused_and_not_waited_for() {
    let here = Here::new("", "");
    let path = here.folder.path().join("project/cepa.toml");
    let refused = |what: &str| {
        let told = here.read(&Options::default()).unwrap_err();
        assert!(told.contains("cepa.toml is") && told.contains(what), "{told}");
    };
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    refused("not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    refused("not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("not a regular file");
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "#".repeat(2 << 20)).unwrap();
    refused("larger than");
}
