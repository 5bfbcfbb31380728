//! Where things are kept: the user's configuration and data folders.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

/// The variables that say where things are, so that tests can say it too.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables of this process; an empty one counts as none.
pub(crate) fn process_env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Who is logged in, as the system's variables say.
pub(crate) fn user(env: Env<'_>) -> Option<String> {
    let name = |variable| Some(env(variable)?.to_string_lossy().trim().to_owned()).filter(|name| !name.is_empty());
    ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(name)
}

/// The user's settings file, whether it is there or not. `None` if nothing says where it would be.
pub(crate) fn user_config(env: Env<'_>) -> Option<PathBuf> {
    Some(folder(env, "XDG_CONFIG_HOME", ".config", "APPDATA")?.join("cepa").join("cepa.toml"))
}

/// The database that is used if no other is named.
pub(crate) fn default_db(env: Env<'_>) -> Option<PathBuf> {
    Some(folder(env, "XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("cepa").join("cepa.db"))
}

/// <https://specifications.freedesktop.org/basedir-spec/latest/>: a path that is not absolute is to be ignored.
fn folder(env: Env<'_>, xdg: &str, below_home: &str, windows: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let fallback = || if cfg!(windows) { absolute(windows) } else { None };
    absolute(xdg).or_else(fallback).or_else(|| Some(absolute("HOME")?.join(below_home)))
}

/// Makes the folder of a file, for this user only. Folders that are there stay as they are.
pub(crate) fn make_private_folder_of(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn db(vars: &[(&str, &str)]) -> Option<PathBuf> {
        let vars: Vec<(String, String)> = vars.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        default_db(&move |name| vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.into()))
    }

    #[cfg(unix)]
    #[test]
    fn the_database_is_in_the_data_folder() {
        assert_eq!(db(&[("HOME", "/h")]), Some("/h/.local/share/cepa/cepa.db".into()));
        assert_eq!(db(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), Some("/d/cepa/cepa.db".into()));
        assert_eq!(db(&[("HOME", "/h"), ("XDG_DATA_HOME", "d")]), Some("/h/.local/share/cepa/cepa.db".into()));
        assert_eq!(db(&[]), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_new_folder_is_for_this_user_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/cepa.db");
        make_private_folder_of(&file).unwrap();
        make_private_folder_of(&file).unwrap();
        let mode = |path: &str| std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a"), mode("a/b")), (0o700, 0o700));
    }
}
