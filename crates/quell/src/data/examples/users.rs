//! Reads a file that names the user of each row or of each image file.

use std::{collections::HashMap, io::Read, path::Path};

use crate::Error;
use crate::data::{
    Table, Use,
    examples::{memory::Memory, split::Tag},
    formats::{idx, npy, stream::Stream},
};

/// Reads the user of every row: integers in an NPY or IDX file, or a text file with one line for each row.
/// Any of them may be compressed with gzip.
///
/// An empty line names no user. A number and its decimal digits name the same user. `rows` decides whether
/// the empty line after the last line end is a row without a user or no row at all.
pub(in crate::data) fn read(path: &Path, rows: usize, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
    let mut first = Vec::new();
    // A damaged file is an error when all of it is read.
    let _ = Stream::open(path)?.into_reader().take(6).read_to_end(&mut first);
    match first.as_slice() {
        b"\x93NUMPY" => npy::array(Stream::open(path)?)?.users(memory),
        [0, 0, 0x08..=0x0e, 1..=8, ..] => idx::array(path)?.users(memory),
        _ => lines(path, rows, memory),
    }
}

/// The users of image files. They are private.
pub(in crate::data) struct UsersOfFiles(HashMap<Vec<u8>, Vec<Tag>>);

/// Reads the users of every image: a table with the columns `file` and `user`.
///
/// A file is named by its folder and its name, with a slash between them: `cat/1.png`. A file may belong to several
/// users, and is an example of each of them. So the rows of one user change nothing for the others.
pub(in crate::data) fn of_files(path: &Path, memory: &Memory) -> Result<UsersOfFiles, Error> {
    let (mut users, mut full) = (HashMap::new(), Ok(()));
    Table::open(path)?.all().scan(&[("file", Use::Name), ("user", Use::Name)], |row| {
        let (Some(file), Some(user)) = (row.name(0), row.name(1).and_then(Tag::of_user)) else { return };
        if full.is_ok() {
            full = memory.take(file.len() as u64 + 64, path);
            let known: &mut Vec<Tag> = users.entry(file.to_vec()).or_default();
            if !known.contains(&user) {
                known.push(user);
            }
        }
    })?;
    full.map(|()| UsersOfFiles(users))
}

impl UsersOfFiles {
    /// Returns the users of an image. None if the table names none.
    pub(in crate::data) fn of(&self, folder: &Path, file: &Path) -> &[Tag] {
        let names = folder.file_name().zip(file.file_name());
        let name =
            names.map(|(folder, file)| [folder.as_encoded_bytes(), b"/", file.as_encoded_bytes()].concat());
        name.and_then(|name| self.0.get(&name)).map_or(&[], Vec::as_slice)
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
