//! Files that lie: an error with a place, never a panic, never an allocation that the file does not pay for.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use crate::made::{Folder, cifar, gzip, idx, jpeg, npy, npy_with, npz, png};
use png::{BitDepth, ColorType};
use proptest::prelude::*;
use quell::{
    Error,
    data::{Dataset, FormatError, Options, open},
};

/// Opens a file or folder in at most 4 MiB.
fn small(path: impl AsRef<std::path::Path>) -> Result<Dataset, Error> {
    let classes = Some(vec!["a".into(), "b".into()]);
    open(path, &Options { memory: Some(4 << 20), classes, ..Options::default() })
}

/// Images, beside the labels of as many records as their header announces, if that is possible.
fn images(content: &[u8]) -> Result<Dataset, Error> {
    let count = content.get(4..8).map_or(0, |side| u32::from_be_bytes(side.try_into().unwrap()));
    let labels = idx(8, &[count], &vec![0; if count < 1000 { count as usize } else { 0 }]);
    let folder =
        Folder::new().with("train-images-idx3-ubyte", content).with("train-labels-idx1-ubyte", labels);
    small(folder.path())
}

fn array(content: &[u8]) -> Result<Dataset, Error> {
    let folder = Folder::new().with("x.npy", content).with("y.npy", npy("<f4", "(2,)", &[0; 8]));
    small(folder.path().join("x.npy"))
}

fn archive(content: &[u8]) -> Result<Dataset, Error> {
    let folder = Folder::new().with("data.npz", content);
    small(folder.path().join("data.npz"))
}

fn picture(content: &[u8]) -> Result<Dataset, Error> {
    let folder = Folder::new().with("a/1.png", content);
    open(folder.path(), &Options { memory: Some(4 << 20), public: true, ..Options::default() })
}

fn batch(content: &[u8]) -> Result<Dataset, Error> {
    let folder = Folder::new().with("data_batch_1.bin", content);
    small(folder.path())
}

fn broken(result: Result<Dataset, Error>) -> String {
    match result {
        Err(Error::Format(FormatError::Broken { found, .. })) => found,
        other => panic!("{other:?}"),
    }
}

/// Deflates zeros: a thousand bytes for each of these.
fn bomb(zeros: usize) -> Vec<u8> {
    gzip(&vec![0; zeros])
}

#[test]
fn idx_headers_that_announce_too_much_are_refused() {
    const MORE: &str = "a header that announces more bytes than the file has";
    let announced = |sides: &[u32]| broken(images(&idx(8, sides, &[0; 8])));
    assert_eq!(announced(&[2, 2, 3]), MORE);
    assert_eq!(announced(&[1 << 31, 1, 1]), MORE);
    assert_eq!(announced(&[1, u32::MAX, u32::MAX]), MORE);
    assert_eq!(announced(&[2, u32::MAX, u32::MAX]), "a header with sides [records, 4294967295, 4294967295]");
    assert_eq!(announced(&[2, 0, 3]), "a header with sides [records, 0, 3]");
    assert_eq!(announced(&[2, 2, 1]), "more bytes");
    assert!(images(&idx(8, &[2, 2, 2], &[0; 8])).is_ok());
    // The numbers of labels lie too.
    let folder = Folder::new().with("train-images-idx3-ubyte", idx(8, &[u32::MAX, 1, 1], &[0; 8]));
    folder.put("train-labels-idx1-ubyte", idx(8, &[u32::MAX], &[0; 8]));
    assert_eq!(broken(small(folder.path())), MORE);
}

#[test]
fn idx_headers_that_are_none_are_refused() {
    let whole = idx(8, &[2, 2, 2], &[0; 8]);
    let with = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        broken(images(&bytes))
    };
    assert_eq!(with(0, 1), "other bytes");
    assert_eq!(with(2, 0x0a), "type 0x0a");
    assert_eq!(with(3, 0), "0 sides");
    assert_eq!(with(3, 200), "200 sides");
    for length in 0..whole.len() {
        let folder = Folder::new()
            .with("train-images-idx3-ubyte", &whole[..length])
            .with("train-labels-idx1-ubyte", idx(8, &[2], &[0; 2]));
        broken(small(folder.path()));
    }
    // Labels of two numbers each are none.
    let folder = Folder::new()
        .with("train-images-idx3-ubyte", &whole)
        .with("train-labels-idx1-ubyte", idx(8, &[2, 2], &[0; 4]));
    assert!(broken(small(folder.path())).contains("sides [records, 2]"));
}

#[test]
fn packed_idx_is_refused_wherever_it_is_cut_or_changed() {
    let whole = gzip(&idx(8, &[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]));
    let opened = |bytes: &[u8]| {
        let folder = Folder::new()
            .with("train-images-idx3-ubyte.gz", bytes)
            .with("train-labels-idx1-ubyte", idx(8, &[2], &[0; 2]));
        small(folder.path())
    };
    assert!(opened(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(opened(&whole[..length]).is_err(), "{length}");
    }
    // The checksum is compared, too.
    let mut changed = whole.clone();
    let place = changed.len() - 8;
    changed[place] ^= 1;
    assert_eq!(broken(opened(&changed)), "damaged compressed data");
}

#[test]
fn records_that_are_not_there_are_not_of_any_size() {
    let opened = |sides: [u32; 2]| {
        let folder = Folder::new().with("train-images-idx3-ubyte", idx(8, &[0, sides[0], sides[1]], &[]));
        folder.put("train-labels-idx1-ubyte", idx(8, &[0], &[]));
        small(folder.path()).map(|data| data.train.width())
    };
    assert_eq!(opened([28, 28]).unwrap(), 784);
    assert!(matches!(opened([0x0800_0001, 0x0803_0607]), Err(Error::Format(FormatError::TooLarge { .. }))));
}

#[test]
fn packed_bombs_are_stopped_by_the_memory_that_is_allowed() {
    let start = Instant::now();
    // 16 MiB of zeros in 16 kB, with a header that is right.
    let sides = [1 << 14, 32, 32];
    let mut bytes = idx(8, &sides, &[]);
    bytes.resize(16 + (1 << 24), 0);
    let folder = Folder::new().with("train-images-idx3-ubyte.gz", gzip(&bytes));
    folder.put("train-labels-idx1-ubyte.gz", gzip(&idx(8, &[1 << 14], &vec![0; 1 << 14])));
    assert!(matches!(small(folder.path()), Err(Error::Format(FormatError::TooLarge { .. }))));
    let folder = Folder::new().with("data_batch_1.bin.gz", bomb(1 << 24));
    assert!(matches!(small(folder.path()), Err(Error::Format(FormatError::TooLarge { .. }))));
    // A header that announces more than can be packed into so few bytes is not even unpacked.
    let folder = Folder::new().with("train-images-idx3-ubyte.gz", gzip(&idx(8, &[1 << 31, 1, 1], &[])));
    folder.put("train-labels-idx1-ubyte.gz", gzip(&idx(8, &[1 << 31], &[])));
    assert!(broken(small(folder.path())).contains("announces more bytes"));
    assert!(start.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_packed_table_of_one_endless_record_takes_bounded_memory_and_no_error() {
    let mut text = b"a,b\n1,2\n\"".to_vec();
    text.resize(1 << 26, b'x');
    let folder = Folder::new().with("table.csv.gz", gzip(&text));
    let table = quell::data::Table::open(folder.path().join("table.csv.gz")).unwrap();
    assert_eq!(table.all().texts("a").unwrap(), [Some("1".to_owned()), None]);
    // A header without an end names no columns either.
    let folder = Folder::new().with("table.csv.gz", gzip(&vec![b','; 1 << 25]));
    assert!(matches!(
        quell::data::Table::open(folder.path().join("table.csv.gz")),
        Err(Error::Format(FormatError::NoTable { .. }))
    ));
}

#[test]
fn cifar_of_another_length_is_refused_at_its_end() {
    let two = [cifar(0, [1, 2, 3]), cifar(1, [1, 2, 3])].concat();
    assert_eq!(batch(&two).unwrap().train.len(), 2);
    for length in [1, 3072, 3074, 6145] {
        assert_eq!(broken(batch(&two[..length])), format!("a record of {} bytes", length % 3073));
    }
    assert_eq!(batch(&[]).unwrap().train.len(), 0);
}

#[test]
fn npy_headers_that_lie_are_refused() {
    let good = npy("<f4", "(2, 1)", &[0; 8]);
    assert!(array(&good).is_ok());
    for length in 0..good.len() {
        assert!(array(&good[..length]).is_err(), "{length}");
    }
    let longer = [good.as_slice(), &[0]].concat();
    assert_eq!(broken(array(&longer)), "more bytes");
    for shape in [
        "(2, 4611686018427387904)",
        "(18446744073709551615, 2)",
        "(2, 99999999999999999999)",
        "(2, -1)",
        "(2, 0)",
        "(2.0, 1)",
        "(2, 1",
        "2, 1",
        "(,)",
        "(2,,1)",
        "(2 1)",
        "()",
        "(2, 2147483648)",
        "(4294967296, 4294967296, 4294967296)",
    ] {
        let error = array(&npy("<f4", shape, &[0; 8])).unwrap_err();
        assert!(
            matches!(error, Error::Format(FormatError::Broken { .. } | FormatError::Counts { .. })),
            "{shape}: {error}"
        );
    }
    let sides = format!("(2, {})", "1, ".repeat(40));
    assert!(matches!(array(&npy("<f4", &sides, &[0; 8])), Err(Error::Format(FormatError::Broken { .. }))));
}

#[test]
fn npy_headers_that_cannot_be_read_are_refused() {
    for header in [
        "",
        "{",
        "{}",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)} x",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 1)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), 'more': 1}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}",
    ] {
        assert!(broken(array(&npy_with(header, &[0; 8]))).contains("cannot be read"), "{header}");
    }
    // Any order, any space, either quote.
    let header = "{ \"shape\":(2,1,) , 'fortran_order' :False,\n\t'descr':'<f4'}";
    assert!(array(&npy_with(header, &[0; 8])).is_ok());
    let mut lying = npy("<f4", "(2, 1)", &[0; 8]);
    lying[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
    assert_eq!(broken(array(&lying)), "a header that announces more bytes than the file has");
    let mut version = npy("<f4", "(2, 1)", &[0; 8]);
    version[6] = 4;
    assert_eq!(broken(array(&version)), "version 4");
    // Version 2 has four bytes for the length.
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)}";
    let two = |length: u32| {
        [b"\x93NUMPY\x02\x00".as_slice(), &length.to_le_bytes(), header.as_bytes(), &[0; 8]].concat()
    };
    assert!(array(&two(header.len() as u32)).is_ok());
    assert_eq!(broken(array(&two(u32::MAX))), "a header of 4294967295 bytes");
}

#[test]
fn archives_that_lie_are_refused() {
    let x = npy("<f4", "(2, 1)", &[0; 8]);
    let y = npy("<f4", "(2,)", &[0; 8]);
    let good = npz(&[("x.npy", x.clone()), ("y.npy", y.clone())]);
    assert!(archive(&good).is_ok());
    for length in 0..good.len() {
        assert!(archive(&good[..length]).is_err(), "{length}");
    }
    // The directory says that x unpacks to 4 GiB: its entry ends with size, size, and lengths of the name and others.
    let entry = good.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let mut lying = good.clone();
    lying[entry + 24..entry + 28].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let _ = archive(&lying);
    // An array in it says so.
    let huge = npz(&[("x.npy", npy("<f4", "(2, 4611686018427387904)", &[0; 8])), ("y.npy", y.clone())]);
    assert!(matches!(archive(&huge), Err(Error::Format(FormatError::Broken { .. }))));
    let bomb = npz(&[("x.npy", npy("|u1", "(2, 8388608)", &vec![0; 1 << 24])), ("y.npy", y.clone())]);
    assert!(matches!(archive(&bomb), Err(Error::Format(FormatError::TooLarge { .. }))));
    let other = npz(&[("x.npy", x), ("y.npy", npy("<f4", "(3,)", &[0; 12]))]);
    let error = archive(&other).unwrap_err();
    assert!(matches!(error, Error::Format(FormatError::Counts { .. })));
    assert!(error.to_string().contains("data.npz/x.npy"), "{error}");
}

#[test]
fn pictures_that_announce_too_much_are_refused() {
    // The size is behind the signature, a length and the name of the chunk; its checksum must be right.
    let sized = |columns: u32, rows: u32| {
        let mut bytes = png(ColorType::Grayscale, BitDepth::Eight, [2, 1], &[1, 2]);
        bytes[16..20].copy_from_slice(&columns.to_be_bytes());
        bytes[20..24].copy_from_slice(&rows.to_be_bytes());
        let mut checksum = flate2::Crc::new();
        checksum.update(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.sum().to_be_bytes());
        bytes
    };
    assert!(picture(&sized(2, 1)).is_ok());
    for (columns, rows) in
        [(1 << 30, 1 << 30), (65_535, 65_535), (4097, 4096), (i32::MAX as u32, 1), (0, 1), (2, u32::MAX)]
    {
        let error = picture(&sized(columns, rows)).unwrap_err();
        assert!(
            matches!(error, Error::Format(FormatError::TooLarge { .. } | FormatError::NoImage { .. })),
            "{columns} by {rows}: {error}"
        );
    }
    // What the decoder itself would take is refused by its size, before there is room for it.
    let error = picture(&sized(4097, 4096)).unwrap_err();
    assert!(matches!(error, Error::Format(FormatError::TooLarge { .. })), "{error}");
    let mut large = jpeg(1, true);
    // Rows and columns are behind the marker, a length and the precision.
    let frame = large.windows(2).position(|bytes| bytes == [0xff, 0xc0]).unwrap();
    large[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    assert!(matches!(
        picture(&large),
        Err(Error::Format(FormatError::TooLarge { .. } | FormatError::NoImage { .. }))
    ));
}

#[test]
fn pictures_are_refused_or_read_wherever_they_are_cut() {
    let whole = png(ColorType::Rgb, BitDepth::Eight, [2, 2], &[7; 12]);
    assert!(picture(&whole).is_ok());
    // What comes after the pixels is a checksum and the mark of the end, which decoders do not need.
    for length in 0..whole.len() {
        let cut = picture(&whole[..length]);
        assert!(cut.is_err() || length > whole.len() - 20, "{length}");
    }
    for whole in [jpeg(1, true), jpeg(3, false)] {
        assert!(picture(&whole).is_ok());
        for length in 0..whole.len() {
            let _ = picture(&whole[..length]);
        }
        assert!(picture(&whole[..whole.len() / 2]).is_err());
    }
}

/// Valid bytes with some of them changed and the end cut off, or any bytes.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = whole.len();
    let changes = prop::collection::vec((0..length, any::<u8>()), 0..4);
    let changed =
        (changes, prop_oneof![3 => Just(length), 1 => 0..length]).prop_map(move |(changes, cut)| {
            let mut bytes = whole.clone();
            for (place, byte) in changes {
                bytes[place] = byte;
            }
            bytes.truncate(cut);
            bytes
        });
    prop_oneof![9 => changed, 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

fn whole_archive() -> Vec<u8> {
    npz(&[("x.npy", npy("<f4", "(2, 1)", &[0; 8])), ("y.npy", npy("<f4", "(2,)", &[0; 8]))])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_bytes_are_data_or_an_error(
        idx_bytes in damaged(idx(8, &[2, 2, 2], &[0; 8])), npy_bytes in damaged(npy("<f4", "(2, 1)", &[0; 8])),
        npz_bytes in damaged(whole_archive()), cifar_bytes in damaged(cifar(1, [1, 2, 3])),
        png_bytes in damaged(png(ColorType::Rgb, BitDepth::Eight, [2, 2], &[7; 12])),
        grey_bytes in damaged(jpeg(1, true)), colour_bytes in damaged(jpeg(3, false)),
    ) {
        let _ = (images(&idx_bytes), array(&npy_bytes), archive(&npz_bytes), batch(&cifar_bytes));
        let _ = (picture(&png_bytes), picture(&grey_bytes), picture(&colour_bytes));
    }
}
