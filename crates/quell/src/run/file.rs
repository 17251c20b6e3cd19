//! Writes files completely or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

use crate::Error;

/// Who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Anyone whom the operating system permits, as for any new file.
    Everyone,
    /// The owner only, from the creation of the file on.
    Owner,
}

/// Writes a file completely: to a temporary file first, which is then renamed.
/// When this function returns, the file survives a power cut.
pub(super) fn write(folder: &Path, name: &str, bytes: &[u8], access: Access) -> Result<(), Error> {
    let (path, beside) = (folder.join(name), folder.join(format!(".{name}.new")));
    let failed = |error: std::io::Error| Error::unwritable(&path, &error);
    // A draft of a killed process keeps its mode and may be a link, so the draft is always a new file.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = create(&beside, access).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&beside, &path).map_err(failed)?;
    // The folder stores the name of the file, so the folder must be synchronised too.
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Writes a file completely unless it exists; returns whether it was written.
/// When this function returns, the file survives a power cut.
pub(super) fn write_new(folder: &Path, name: &str, bytes: &[u8]) -> Result<bool, Error> {
    let (path, draft) = (folder.join(name), format!(".{name}.{}", std::process::id()));
    let failed = |error: std::io::Error| Error::unwritable(&path, &error);
    write(folder, &draft, bytes, Access::Everyone)?;
    // Unlike a rename, a hard link does not replace an existing file.
    let linked = fs::hard_link(folder.join(&draft), &path);
    fs::remove_file(folder.join(&draft)).map_err(failed)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
        linked => linked.map_err(failed)?,
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(true)
}

fn create(path: &Path, access: Access) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if access == Access::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let _ = access;
    options.open(path)
}

/// Creates a folder for the owner only, or restricts an existing folder to the owner.
pub(super) fn create_owned(path: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::unwritable(path, &error);
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => return other.map_err(failed),
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let found = fs::symlink_metadata(path).map_err(failed)?;
        if !found.is_dir() {
            return Err(failed(std::io::ErrorKind::NotADirectory.into()));
        }
        if found.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
    }
    Ok(())
}
