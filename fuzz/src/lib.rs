//! What the targets share: files in memory, and everything that is asked of data that was opened.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use quell::data::{Options, Split, Table, open};

/// The most that records may take: far below the limit of the fuzzer, so that it notices what was not counted.
const MEMORY: u64 = 64 << 20;

/// Writes a file into this process's folder, which `run` chooses and removes.
pub fn put(name: &str, bytes: &[u8]) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let place = std::env::var_os("QUELL_FUZZ_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
        place.join(std::process::id().to_string())
    });
    let path = folder.join(name);
    if std::fs::write(&path, bytes).is_err() {
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder can be made");
        std::fs::write(&path, bytes).expect("the file can be written");
    }
    path
}

/// Opens data and gathers every record; an error must have words.
pub fn learn(path: &Path, options: &Options) {
    let options = Options { memory: Some(MEMORY), split: Some(Split { share: 0.5 }), ..options.clone() };
    match open(path, &options) {
        Ok(data) => {
            let _ = format!("{data:?}");
            for part in [Some(&data.train), data.test.as_ref()].into_iter().flatten() {
                let mut row = vec![0.0; part.width()];
                for index in 0..part.len() {
                    part.gather(index, &mut row);
                    assert!(row.iter().all(|value| value.is_finite()));
                    assert!(part.label(index).is_some() != part.number(index).is_some());
                }
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && error.hint().is_none_or(|hint| !hint.to_string().is_empty()));
        }
    }
}

/// Options with some classes.
pub fn classes(count: usize) -> Options {
    Options { classes: Some((0..count).map(|class| class.to_string()).collect()), ..Options::default() }
}

/// Reads the first columns of a table in every way.
pub fn ask(path: &Path) {
    let Ok(table) = Table::open(path) else { return };
    let all = table.all();
    let _ = all.count();
    for column in table.columns().iter().take(4) {
        let _ = (all.numbers(&column.name), all.texts(&column.name));
    }
}

/// The first byte of an input, and the rest.
pub fn split(input: &[u8]) -> (u8, &[u8]) {
    input.split_first().map_or((0, input), |(first, rest)| (*first, rest))
}
