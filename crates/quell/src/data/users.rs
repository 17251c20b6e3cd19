//! Whose record each row is, in a file of its own.

use std::{fs::File, io::Read, path::Path};

use super::{idx, memory::Memory, npy, split::Tag, stream::Stream};
use crate::Error;

/// Reads the user of every row: integers in an NPY or IDX file, or a text file with one line for each row.
///
/// An empty line names nobody. A user is the same person whether a number or its digits name them. `rows` tells apart whether
/// what stands behind the last line end is the last user, who is nobody, or nothing.
pub(super) fn read(path: &Path, rows: usize, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let mut first = Vec::new();
    File::open(path).map_err(failed)?.take(6).read_to_end(&mut first).map_err(failed)?;
    match first.as_slice() {
        b"\x93NUMPY" => npy::array(Stream::open(path)?)?.users(memory),
        [0, 0, 0x08..=0x0e, 1..=8, ..] => idx::array(path)?.users(memory),
        _ => lines(path, rows, memory),
    }
}

fn lines(path: &Path, rows: usize, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
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
    let mut users = Vec::new();
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        memory.take(size_of::<Option<Tag>>() as u64, path)?;
        users.push(Tag::of_user(line));
    }
    if users.len() == rows + 1 && (text.is_empty() || text.ends_with(b"\n")) {
        users.pop();
    }
    Ok(users)
}
