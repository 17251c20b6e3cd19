//! Prints a page as PDF with an installed browser of the Chromium family.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::refusal::Refusal;

/// The variable that names the browser.
const VARIABLE: &str = "QUELL_BROWSER";
/// Names of browsers that can print without a window.
const NAMES: [&str; 7] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave-browser",
];
/// A browser that takes longer than this has a problem of its own.
const PATIENCE: Duration = Duration::from_mins(2);

/// The browser that the variable names, or the first one in the search path.
fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        let path = PathBuf::from(&named);
        if path.is_file() {
            return Ok(path);
        }
        let sentence = format!("{VARIABLE} is {}, expected the program of a browser", path.display());
        return Err(Refusal::new(sentence, "give the full path of Chromium or Chrome").into());
    }
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|all| std::env::split_paths(&all).collect()).unwrap_or_default();
    let programs = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = programs.into_iter().find(|program| program.is_file());
    found.ok_or_else(|| {
        let sentence = "no browser was found that prints PDF, expected Chromium or Chrome";
        let hint = "install Chromium, or give its path in QUELL_BROWSER; or write --format html, and print it \
                    from any browser";
        Refusal::new(sentence, hint).into()
    })
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("quell-pdf-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in a folder for temporary files is not worth an error.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Prints an HTML page as PDF.
pub(crate) fn pdf(page: &str) -> Result<Vec<u8>> {
    let browser = find()?;
    let scratch = Scratch::new()?;
    let (html, pdf) = (scratch.0.join("report.html"), scratch.0.join("report.pdf"));
    fs::write(&html, page).with_context(|| format!("cannot write {}", html.display()))?;
    let mut command = Command::new(&browser);
    command
        .args(["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-quic", "--no-pdf-header-footer"])
        .arg(option("--user-data-dir=", &scratch.0.join("profile")))
        .arg(option("--print-to-pdf=", &pdf))
        .arg(option("file://", &html))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if is_owned_by_root(&scratch.0) {
        // Chromium does not start its sandbox as root. The page is Quell's own, and has no script.
        command.arg("--no-sandbox");
    }
    run(command).with_context(|| format!("{} did not print the report", browser.display()))?;
    fs::read(&pdf).map_err(|_| {
        let sentence = format!("{} wrote no PDF", browser.display());
        Refusal::new(sentence, "write --format html, and print it from a browser").into()
    })
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push(path);
    option
}

/// Runs the browser to its end, or ends it.
fn run(mut command: Command) -> Result<()> {
    let mut child = command.spawn()?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("it took longer than {} seconds", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether root made the folder.
#[cfg(unix)]
fn is_owned_by_root(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(folder).is_ok_and(|folder| folder.uid() == 0)
}

#[cfg(not(unix))]
fn is_owned_by_root(_: &Path) -> bool {
    false
}
