//! Files that are gone when the test is.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use quell::data::Table;

/// A file in the folder for temporary ones.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Writes a file whose name ends with `name`.
    pub(crate) fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let file = FILES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("quell-{}-{file}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn table(&self) -> Table {
        Table::open(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
