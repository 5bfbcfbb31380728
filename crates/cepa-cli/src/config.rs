//! Settings: the command line over `cepa.toml` in this folder, over the user's own.

use std::{
    ffi::OsStr,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

use cepa::{Error, ErrorKind};
use serde::Deserialize;

use crate::{
    args::Options,
    places::{self, Env},
    visible::one_line,
};

const KEYS: [&str; 7] = ["model", "base_url", "api_key_env", "system_prompt", "max_batches", "root", "db"];
/// More than any settings with a long system prompt.
const MAX_FILE: u64 = 1 << 20;
const MAX_BATCHES: std::ops::RangeInclusive<u32> = 1..=1_000;

/// What a settings file says.
#[derive(Clone, Debug, Default, Deserialize)]
struct File {
    model: Option<String>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    system_prompt: Option<String>,
    max_batches: Option<u32>,
    root: Option<PathBuf>,
    db: Option<PathBuf>,
}

/// A model as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelWish {
    /// `provider/name`.
    pub(crate) model: String,
    pub(crate) base_url: Option<String>,
    /// The variable that holds the key, if not the provider's usual one.
    pub(crate) api_key_env: Option<String>,
    /// Who said so: `--model`, or a file.
    pub(crate) by: String,
}

/// Where conversations are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Db {
    /// In this file.
    File(PathBuf),
    /// Nowhere: nothing says where the user's data is.
    Nowhere,
}

/// Everything that was set.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) model: Option<ModelWish>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) max_batches: Option<u32>,
    pub(crate) conversation: Option<String>,
    /// Who decides, as the audit trail names them.
    pub(crate) actor: String,
    /// The folder of the tools.
    pub(crate) root: PathBuf,
    /// Whether `--root` named it.
    pub(crate) root_is_asked_for: bool,
    pub(crate) db: Db,
    /// Whether the database is the usual one, whose folder may have to be made.
    pub(crate) db_is_default: bool,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
}

impl Settings {
    /// Reads the settings files and puts the command line over them.
    ///
    /// # Errors
    /// `invalid_config`, with the file and what to change in it.
    pub(crate) fn read(options: &Options, here: &Path, env: Env<'_>) -> Result<Self, Error> {
        let user_path = places::user_config(env);
        let project_path = here.join("cepa.toml");
        let user = user_path.as_deref().map(File::read).transpose()?.flatten();
        let is_same = user_path.as_deref().is_some_and(|user| same_file(user, &project_path));
        let project = if is_same { None } else { File::read(&project_path)? };
        let mut files = Vec::new();
        files.extend(project.is_some().then(|| project_path.clone()));
        files.extend(user_path.filter(|_| user.is_some()));
        let user_base = files.last().and_then(|path| path.parent()).unwrap_or(here).to_owned();
        let (project, user) = (project.unwrap_or_default(), user.unwrap_or_default());
        let project_root = project.root.map(|root| below(here, &root, "root")).transpose()?;
        let project_db = project.db.map(|db| below(here, &db, "db")).transpose()?;
        let project_model = Models { model: project.model, base_url: project.base_url, key_env: project.api_key_env };
        let user_model = Models { model: user.model, base_url: user.base_url, key_env: user.api_key_env };

        let root = options.root.clone().or(project_root).or_else(|| Some(user_base.join(user.root?)));
        let db = options.db.clone().or(project_db).or_else(|| Some(user_base.join(user.db?)));
        let db_is_default = db.is_none();
        let conversation = options.conversation.clone().map(|id| id.trim().to_owned());
        if conversation.as_deref() == Some("") {
            return Err(invalid("the conversation's id is blank: give one, or leave --conversation away"));
        }
        let actor = options.actor.clone().map(|name| name.trim().to_owned());
        if actor.as_deref() == Some("") {
            return Err(invalid("the name of who decides is blank: give one, or leave --as away"));
        }
        Ok(Self {
            actor: actor.unwrap_or_else(|| places::user(env).unwrap_or_else(|| "cepa-cli".to_owned())),
            model: wish(options, project_model, user_model)?,
            system_prompt: project.system_prompt.or(user.system_prompt),
            max_batches: project.max_batches.or(user.max_batches),
            conversation,
            root_is_asked_for: options.root.is_some(),
            root: here.join(root.unwrap_or_default()),
            db: db.or_else(|| places::default_db(env)).map_or(Db::Nowhere, |path| Db::File(here.join(path))),
            db_is_default,
            files,
        })
    }
}

/// What a file says about the model.
struct Models {
    model: Option<String>,
    base_url: Option<String>,
    key_env: Option<String>,
}

/// The model that is asked for. An address or a key belongs to the model that it stands beside, and to no other: a key must
/// not go to a server that somebody else named.
fn wish(options: &Options, project: Models, user: Models) -> Result<Option<ModelWish>, Error> {
    for (file, of) in [("cepa.toml here", &project), ("your cepa.toml", &user)] {
        if of.model.is_none() && (of.base_url.is_some() || of.key_env.is_some()) {
            return Err(invalid(format!(
                "{file} has base_url or api_key_env, but no model that they are for: set model"
            )));
        }
    }
    if let Some(url) = project.base_url.as_deref().filter(|url| !is_local(url)) {
        let known = user.base_url.as_deref() == Some(url) || options.base_url.is_some() || options.model.is_some();
        if !known {
            let url = one_line(url, 200);
            return Err(invalid(format!(
                "cepa.toml in this folder would send what you say, and your key, to {url}: if you trust that, repeat it as \
                 --base-url or set it in your own cepa.toml"
            )));
        }
    }
    let (file, by) = if project.model.is_some() { (project, "cepa.toml") } else { (user, "your cepa.toml") };
    match (&options.model, file.model) {
        (Some(model), _) => Ok(Some(ModelWish {
            model: model.trim().to_owned(),
            base_url: options.base_url.clone(),
            api_key_env: None,
            by: "--model".to_owned(),
        })),
        (None, Some(model)) => Ok(Some(ModelWish {
            model: model.trim().to_owned(),
            base_url: options.base_url.clone().or(file.base_url),
            api_key_env: file.key_env,
            by: by.to_owned(),
        })),
        (None, None) if options.base_url.is_some() => {
            Err(invalid("--base-url is the address of which model? add --model PROVIDER/NAME"))
        }
        (None, None) => Ok(None),
    }
}

/// Whether an address is on this machine.
fn is_local(url: &str) -> bool {
    let Some((_, rest)) = url.trim().split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    !authority.contains('@') && matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// A path that a project may name: below its own folder. Whoever wrote it shall not open the rest of the disk.
fn below(here: &Path, path: &Path, key: &str) -> Result<PathBuf, Error> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let inside = || match (here.canonicalize(), here.join(path).canonicalize()) {
        (Ok(here), Ok(path)) => path.starts_with(here),
        // What is not there yet cannot lead elsewhere.
        _ => true,
    };
    if plain && inside() {
        return Ok(here.join(path));
    }
    Err(invalid(format!(
        "cepa.toml in this folder sets {key} to a place outside of it: use --{key}, or set it in your own cepa.toml"
    )))
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl File {
    /// A settings file, if it is there.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let shown = path.display();
        let cannot = |error| invalid(format!("{shown} cannot be read: {error}"));
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => {}
            // Whoever made the folder may have put a pipe there, in which a read waits for ever, or a device without an end.
            Ok(_) => return Err(invalid(format!("{shown} is not a regular file: remove it, or make it one"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(error)),
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(cannot)?;
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(invalid(format!("{shown} is larger than {} KB, which no settings need", MAX_FILE >> 10)));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| invalid(format!("{shown} is not UTF-8 text: save it as such")))?;
        Self::parse(&text).map(Some).map_err(|why| invalid(format!("{shown}{why}")))
    }

    /// The settings, or what is wrong with them, to be put behind the file's name.
    fn parse(text: &str) -> Result<Self, String> {
        let at = |error: &toml::de::Error| {
            let line =
                error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
            let line = line.map_or_else(String::new, |line| format!(", line {line}"));
            format!("{line}: {}", one_line(error.message(), 300))
        };
        let table: toml::Table = toml::from_str(text).map_err(|error| at(&error))?;
        for key in table.keys() {
            if !KEYS.contains(&key.as_str()) {
                let nearest = nearest(key, KEYS.iter().copied());
                let hint =
                    nearest.map_or_else(|| format!("use {}", KEYS.join(", ")), |key| format!("do you mean {key}?"));
                return Err(format!(": there is no setting `{}`: {hint}", one_line(key, 60)));
            }
        }
        let file: Self = toml::from_str(text).map_err(|error| {
            let one = |(key, value): (&String, &toml::Value)| toml::Table::from_iter([(key.clone(), value.clone())]);
            let wrong = table.iter().find(|member| one(*member).try_into::<Self>().is_err());
            let line = at(&error);
            // The line alone does not say it where a value goes over several.
            wrong.map_or_else(|| line.clone(), |(key, _)| line.replacen(": ", &format!(": {key}: "), 1))
        })?;
        if file.max_batches.is_some_and(|batches| !MAX_BATCHES.contains(&batches)) {
            return Err(format!(": max_batches must be {} to {}", MAX_BATCHES.start(), MAX_BATCHES.end()));
        }
        let blank = |value: Option<&OsStr>| value.is_some_and(|value| value.to_string_lossy().trim().is_empty());
        for (key, value) in [
            ("model", file.model.as_deref().map(OsStr::new)),
            ("base_url", file.base_url.as_deref().map(OsStr::new)),
            ("api_key_env", file.api_key_env.as_deref().map(OsStr::new)),
            ("root", file.root.as_deref().map(Path::as_os_str)),
            ("db", file.db.as_deref().map(Path::as_os_str)),
        ] {
            if blank(value) {
                return Err(format!(": {key} is blank: give a value or remove it"));
            }
        }
        Ok(file)
    }
}

/// The word that somebody probably meant.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), known);
    let (distance, known) = known.map(|known| (distance(known), known)).min()?;
    (distance <= known.len().div_ceil(2).min(3)).then_some(known)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message.into())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
