//! Whose record each row is, in a file of its own.

use std::{fs::File, io::Read, path::Path};

use super::{idx, memory::Memory, npy, split::Tag, stream::Stream};
use crate::Error;

/// Reads the user of every row: integers in an NPY or IDX file, or a text file with one line for each row.
///
/// An empty line names nobody. A user is the same person whether a number or its digits name them.
pub(super) fn read(path: &Path, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let mut first = Vec::new();
    File::open(path).map_err(failed)?.take(6).read_to_end(&mut first).map_err(failed)?;
    match first.as_slice() {
        b"\x93NUMPY" => npy::array(Stream::open(path)?)?.users(memory),
        [0, 0, 0x08..=0x0e, 1..=8, ..] => idx::array(path)?.users(memory),
        _ => lines(path, memory),
    }
}

fn lines(path: &Path, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
    let mut stream = Stream::open(path)?;
    let mut text = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        memory.take(count as u64, path)?;
        text.extend_from_slice(&chunk[..count]);
    }
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut users = Vec::new();
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        memory.take(16, path)?;
        users.push((!line.is_empty()).then(|| Tag::of_user(line)));
    }
    Ok(users)
}
