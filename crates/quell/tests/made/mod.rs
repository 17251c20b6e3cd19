//! Temporary folders that are removed after a test, and files of every format, written byte by byte.
#![allow(dead_code, reason = "each test file makes other formats")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use flate2::{Compression, write::GzEncoder};
use quell::{
    Error,
    data::{Dataset, Examples, Options, open},
};

/// A folder in the system's folder for temporary files.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let folder = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("quell-folder-{}-{folder}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file, and folders on the way to it.
    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(name, content);
        self
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn open(&self, name: &str) -> Result<Dataset, Error> {
        open(self.0.join(name), &Options::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn rows(examples: &Examples) -> Vec<Vec<f32>> {
    let mut row = vec![f32::NAN; examples.width()];
    let gathered = (0..examples.len()).map(|index| {
        examples.gather(index, &mut row);
        row.clone()
    });
    gathered.collect()
}

pub(crate) fn labels(examples: &Examples) -> Vec<u32> {
    (0..examples.len()).map(|index| examples.label(index).unwrap()).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn idx(kind: u8, sides: &[u32], numbers: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind, sides.len() as u8];
    for side in sides {
        bytes.extend(side.to_be_bytes());
    }
    bytes.extend(numbers);
    bytes
}

/// `shape` as Python writes it: `(2, 3)` or `(2,)`.
pub(crate) fn npy(kind: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    npy_with(&format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"), numbers)
}

/// Version 1.0 with a header that is padded to 64 bytes.
pub(crate) fn npy_with(header: &str, numbers: &[u8]) -> Vec<u8> {
    let padded = (header.len() + 11).next_multiple_of(64) - 11;
    let header = format!("{header:padded$}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

pub(crate) fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (index, (name, content)) in members.iter().enumerate() {
        // savez stores, savez_compressed deflates.
        let method = if index % 2 == 0 { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// One record of CIFAR-10, all its red pixels, green pixels and blue pixels alike.
pub(crate) fn cifar(label: u8, colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = vec![label];
    for byte in colour {
        bytes.extend([byte; 1024]);
    }
    bytes
}

pub(crate) fn png(
    color: png::ColorType,
    depth: png::BitDepth,
    [columns, rows]: [u32; 2],
    pixels: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, columns, rows);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
    }
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes
}

/// A baseline JPEG of one block: 8 by 8 pixels that are all 128, or 136 if `brighter`.
pub(crate) fn jpeg(components: u8, brighter: bool) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    let mut segment = |marker: u8, content: &[u8]| {
        bytes.extend([0xff, marker]);
        bytes.extend((content.len() as u16 + 2).to_be_bytes());
        bytes.extend(content);
    };
    // Every coefficient is a multiple of 16, and a pixel is 128 + (sum of coefficients) / 8.
    segment(0xdb, &[&[0][..], &[16; 64]].concat());
    let components_of = |each: fn(u8) -> Vec<u8>| (1..=components).flat_map(each).collect::<Vec<u8>>();
    segment(0xc0, &[vec![8, 0, 8, 0, 8, components], components_of(|id| vec![id, 0x11, 0])].concat());
    // Constant coefficients: "0" is no change, "10" a change of three bits. Others: "0" ends the block.
    segment(0xc4, &[0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
    segment(0xc4, &[0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    segment(0xda, &[vec![components], components_of(|id| vec![id, 0]), vec![0, 63, 0]].concat());
    // 10 100 0, or 0 0; then 0 0 for each other component; then ones.
    bytes.push(match (brighter, components) {
        (true, 1) => 0b1010_0011,
        (false, 1) => 0b0011_1111,
        (_, _) => 0b0000_0011,
    });
    bytes.extend([0xff, 0xd9]);
    bytes
}
