//! The folder that the file tools may touch. Every path goes through [`Root`]; nothing here follows a link, `..` or an
//! absolute path out of it, and nothing waits for a pipe or a device.

use std::{
    fs::File,
    io,
    path::{Component, Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, FileType, Metadata, OpenOptions},
};
use cepa::{Error, ErrorKind, ToolError, ToolFailure};

use super::text::{show_path, size, unescape};

/// An open folder: the confinement is the kernel's (`openat2` with `RESOLVE_BENEATH` on Linux, one component at a time
/// elsewhere), so a link that is swapped in during a call does not help either.
#[derive(Debug)]
pub(super) struct Root {
    dir: Dir,
    path: PathBuf,
}

/// A regular file that was opened for reading, with what it was at that moment.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) metadata: Metadata,
    /// The path as the model should read it.
    pub(super) shown: String,
}

impl Root {
    /// Opens the folder; everything later is relative to this handle, also when the folder is moved.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let unusable = |error: io::Error| {
            let text = format!("cannot use {} as the root of the file tools: {error}", path.display());
            Error::new(ErrorKind::InvalidConfig, text).with_source(error)
        };
        let path = path.canonicalize().map_err(unusable)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(unusable)?;
        Ok(Self { dir, path })
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Where the folder was when it was opened: the shell starts there.
    #[cfg(unix)]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A path as a model wrote it, relative to the root. An absolute path is taken if it names a place below the root
    /// by its text (models copy them from error messages); where it really leads is checked when it is opened.
    pub(super) fn relative(&self, given: &str) -> Result<PathBuf, ToolError> {
        if given.contains('\0') {
            return Err(refused("a path cannot contain a NUL character"));
        }
        let path = match unescape(given) {
            Some(bytes) if !self.exists(Path::new(given)) => path_from_bytes(bytes, given)?,
            _ => PathBuf::from(given),
        };
        let path = if path.is_absolute() {
            let inside = path.strip_prefix(&self.path).map_err(|_| outside(&path))?;
            inside.to_path_buf()
        } else {
            path
        };
        let mut tidy = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(_) | Component::ParentDir => tidy.push(part),
                Component::Prefix(_) | Component::RootDir => return Err(outside(&path)),
            }
        }
        if tidy.as_os_str().is_empty() {
            tidy.push(".");
        }
        Ok(tidy)
    }

    fn exists(&self, path: &Path) -> bool {
        self.dir.symlink_metadata(path).is_ok()
    }

    /// Opens a regular file for reading. Anything else (folder, pipe, device, socket) is refused before it is opened,
    /// and again after, in case it was swapped in between.
    pub(super) fn open_file(&self, given: &str) -> Result<OpenFile, ToolError> {
        let path = self.relative(given)?;
        let shown = show_path(&path);
        open_file_in(&self.dir, &path, &shown)
    }

    /// Opens a folder for listing.
    pub(super) fn open_dir(&self, path: &Path) -> Result<Dir, ToolError> {
        let failed = |error| io_error("open", &show_path(path), error);
        let metadata = self.dir.metadata(path).map_err(failed)?;
        if !metadata.is_dir() {
            let kind = kind_of(metadata.file_type());
            return Err(refused(format!("{} is a {kind}, not a folder", show_path(path))));
        }
        self.dir.open_dir(path).map_err(failed)
    }
}

/// Opens `path`, which may not leave `dir`, as a regular file for reading.
pub(super) fn open_file_in(dir: &Dir, path: &Path, shown: &str) -> Result<OpenFile, ToolError> {
    let failed = |error| io_error("read", shown, error);
    let metadata = dir.metadata(path).map_err(failed)?;
    expect_file(&metadata, shown)?;
    let mut options = OpenOptions::new();
    options.read(true);
    without_waiting(&mut options);
    let file = dir.open_with(path, &options).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    expect_file(&metadata, shown)?;
    let file = file.into_std();
    refuse_process_files(&file, shown)?;
    Ok(OpenFile { file, metadata, shown: shown.to_owned() })
}

pub(super) fn expect_file(metadata: &Metadata, shown: &str) -> Result<(), ToolError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(refused(format!("{shown} is a folder; use list_files to see what is in it")))
    } else {
        Err(refused(format!("{shown} is a {}, not a regular file; it is not opened", kind_of(kind))))
    }
}

/// Opening a pipe must not wait for its other end, and a terminal must not become ours.
pub(super) fn without_waiting(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// With the root at `/`, `proc` is inside it; `proc/self/environ` holds the very keys that tools must not see.
#[cfg(target_os = "linux")]
fn refuse_process_files(file: &File, shown: &str) -> Result<(), ToolError> {
    match rustix::fs::fstatfs(file) {
        Ok(system) if system.f_type == rustix::fs::PROC_SUPER_MAGIC => {
            Err(refused(format!("{shown} belongs to the system's process information; it is not opened")))
        }
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_process_files(_: &File, _: &str) -> Result<(), ToolError> {
    Ok(())
}

#[cfg(unix)]
fn path_from_bytes(bytes: Vec<u8>, given: &str) -> Result<PathBuf, ToolError> {
    use std::os::unix::ffi::OsStringExt;
    if bytes.contains(&0) {
        return Err(refused(format!("{given} would contain a NUL character")));
    }
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: Vec<u8>, given: &str) -> Result<PathBuf, ToolError> {
    let name = String::from_utf8(bytes).map_err(|_| refused(format!("no such file: {given}")))?;
    Ok(name.into())
}

/// What a thing in a folder is, in one word.
pub(super) fn kind_of(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use cap_std::fs::FileTypeExt;
        if kind.is_fifo() {
            return "named pipe";
        }
        if kind.is_socket() {
            return "socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "device";
        }
    }
    if kind.is_file() {
        "file"
    } else if kind.is_dir() {
        "folder"
    } else if kind.is_symlink() {
        "symbolic link"
    } else {
        "special file"
    }
}

/// A call that cannot be done as asked: the model is told and can try another way.
pub(super) fn refused(message: impl Into<String>) -> ToolError {
    ToolError::semantic(message)
}

/// A file that is more than a tool takes into memory.
pub(super) fn too_large(shown: &str, bytes: u64, limit: u64, instead: &str) -> ToolError {
    refused(format!("{shown} is {} (the limit is {}); {instead}", size(bytes), size(limit)))
}

fn outside(path: &Path) -> ToolError {
    refused(format!(
        "{} is outside the folder that the file tools may use; give a path relative to it",
        show_path(path)
    ))
}

/// What went wrong with a file, in words that say what to do next.
pub(super) fn io_error(doing: &str, shown: &str, error: io::Error) -> ToolError {
    // cap-std reports a path that would leave the root as a permission error that no system call made.
    let escaped = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    if escaped {
        return outside(Path::new(shown));
    }
    let mut failure = ToolFailure::Semantic;
    let told = match error.kind() {
        io::ErrorKind::NotFound => format!("no such file or folder: {shown}; list_files shows what is there"),
        io::ErrorKind::PermissionDenied => format!("no permission to {doing} {shown}"),
        io::ErrorKind::NotADirectory => format!("cannot {doing} {shown}: a part of the path is a file, not a folder"),
        io::ErrorKind::InvalidFilename => format!("cannot {doing} {shown}: the name is too long or not allowed"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure = ToolFailure::Environment;
            format!("cannot {doing} {shown}: the disk is full ({error}); nothing was changed")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            failure = ToolFailure::Environment;
            format!("cannot {doing} {shown}: the file system is mounted read-only")
        }
        _ => format!("cannot {doing} {shown}: {error}"),
    };
    ToolError { failure, message: told }
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
