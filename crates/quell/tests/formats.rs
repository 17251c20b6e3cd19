//! What each format holds is what is learned from.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::made::{Folder, cifar, gzip, idx, jpeg, labels, npy, npy_with, npz, png, rows};
use png::{BitDepth, ColorType};
use quell::{
    Error,
    data::{FormatError, Options, Scaling, Schema, Split, TableError, open},
    run::Source,
};

/// Three images of two by two pixels, and their labels.
fn idx_pair() -> (Vec<u8>, Vec<u8>) {
    (idx(8, &[3, 2, 2], &[0, 51, 102, 153, 204, 255, 0, 0, 255, 255, 255, 255]), idx(8, &[3], &[7, 0, 9]))
}

fn classes(names: &[&str]) -> Options {
    Options { classes: Some(names.iter().map(|name| (*name).to_owned()).collect()), ..Options::default() }
}

/// Everyone may know all of it.
const PUBLIC: Options = Options {
    schema: None,
    classes: None,
    shape: None,
    ignore_label: false,
    public: true,
    public_test: false,
    scaling: None,
    split: None,
    users: None,
    memory: None,
};

/// The part to test on is as private as the rest, whatever it is called, until somebody says that it is public.
fn test_is_public_if_declared(path: &std::path::Path, options: &Options) {
    let declared = Options { public_test: true, ..options.clone() };
    assert_eq!(
        [options, &declared].map(|options| open(path, options).unwrap().test_is_public),
        [false, true]
    );
}

fn little<const N: usize>(numbers: &[[u8; N]]) -> Vec<u8> {
    numbers.concat()
}

#[test]
fn idx_images_are_bytes_over_255() {
    let (images, digits) = idx_pair();
    let folder =
        Folder::new().with("train-images-idx3-ubyte", images).with("train-labels-idx1-ubyte", digits);
    let data = folder.open("").unwrap();
    assert_eq!((data.train.shape(), labels(&data.train)), ([1, 2, 2].as_slice(), vec![7, 0, 9]));
    assert_eq!(rows(&data.train)[0], [0_u8, 51, 102, 153].map(|byte| f32::from(byte) * (1.0 / 255.0)));
    assert_eq!(data.train.classes().unwrap()[7], "7");
    assert!(data.test.is_none() && !data.test_is_public);
}

#[test]
fn packed_idx_is_idx_and_its_test_part_is_private_unless_declared() {
    let (images, digits) = idx_pair();
    let folder = Folder::new()
        .with("train-images-idx3-ubyte.gz", gzip(&images))
        .with("train-labels-idx1-ubyte.gz", gzip(&digits))
        .with("t10k-images-idx3-ubyte.gz", gzip(&idx(8, &[1, 2, 2], &[1, 2, 3, 4])))
        .with("t10k-labels-idx1-ubyte", idx(8, &[1], &[3]));
    for name in ["", "train-images-idx3-ubyte.gz"] {
        let data = folder.open(name).unwrap();
        assert_eq!(labels(&data.train), [7, 0, 9]);
        assert_eq!(labels(data.test.as_ref().unwrap()), [3]);
        test_is_public_if_declared(&folder.path().join(name), &Options::default());
    }
    let name = folder.open("").unwrap().name;
    assert_eq!(name, folder.path().file_name().unwrap().to_str().unwrap());
}

#[test]
fn idx_of_the_size_of_mnist_is_read() {
    let pixels: Vec<u8> = (0..60_000 * 784).map(|place| (place / 784 % 251) as u8).collect();
    let digits: Vec<u8> = (0..60_000).map(|record| (record % 10) as u8).collect();
    let folder = Folder::new()
        .with("train-images.idx3-ubyte", idx(8, &[60_000, 28, 28], &pixels))
        .with("train-labels.idx1-ubyte.gz", gzip(&idx(8, &[60_000], &digits)));
    let train = folder.open("").unwrap().train;
    assert_eq!((train.len(), train.shape(), train.label(59_999)), (60_000, [1, 28, 28].as_slice(), Some(9)));
    let mut row = vec![0.0; 784];
    train.gather(59_999, &mut row);
    assert!(row.iter().all(|pixel| *pixel == (59_999 % 251) as f32 * (1.0 / 255.0)));
}

#[test]
fn idx_of_any_type_is_read_big_endian() {
    let read = |kind: u8, numbers: &[u8], count: u32| {
        let folder = Folder::new().with("train-images-idx2", idx(kind, &[count, 1], numbers));
        let folder = folder.with("train-labels-idx2", idx(8, &[count], &vec![0; count as usize]));
        rows(&folder.open("").unwrap().train).concat()
    };
    assert_eq!(read(0x09, &[0xff, 5], 2), [-1.0, 5.0]);
    assert_eq!(read(0x0b, &[0xff, 0xfe, 1, 0], 2), [-2.0, 256.0]);
    assert_eq!(read(0x0c, &[0xff, 0xff, 0xff, 0xfd], 1), [-3.0]);
    assert_eq!(read(0x0d, &1.5_f32.to_be_bytes(), 1), [1.5]);
    assert_eq!(read(0x0e, &(-0.25_f64).to_be_bytes(), 1), [-0.25]);
    assert_eq!(read(0x0d, &f32::NAN.to_be_bytes(), 1), [0.0]);
}

#[test]
fn idx_labels_beyond_the_classes_leave_their_records_out() {
    let (images, digits) = idx_pair();
    let folder =
        Folder::new().with("train-images-idx3-ubyte", images).with("train-labels-idx1-ubyte", digits);
    let data = open(folder.path(), &classes(&["a", "b", "c", "d", "e", "f", "g", "h"])).unwrap();
    assert_eq!(labels(&data.train), [7, 0]);
    assert_eq!(rows(&data.train)[1], [204_u8, 255, 0, 0].map(|byte| f32::from(byte) * (1.0 / 255.0)));
}

#[test]
fn users_come_from_a_file_of_their_own() {
    let (images, digits) = idx_pair();
    let folder =
        Folder::new().with("train-images-idx3-ubyte", images).with("train-labels-idx1-ubyte", digits);
    let users = folder.put("writers", idx(0x0c, &[3], &[0, 0, 1, 0, 0, 0, 0, 7, 0, 0, 1, 0]));
    let options = Options { users: Some(users), ..Options::default() };
    assert_eq!(open(folder.path(), &options).unwrap().train.users(), Some([0, 1, 0].as_slice()));
    let few = Options { users: Some(folder.put("few", idx(0x0c, &[2], &[0; 8]))), ..Options::default() };
    assert!(matches!(open(folder.path(), &few), Err(Error::Format(FormatError::Counts { .. }))));
    let floats =
        Options { users: Some(folder.put("floats", idx(0x0d, &[3], &[0; 12]))), ..Options::default() };
    assert!(matches!(open(folder.path(), &floats), Err(Error::Format(FormatError::Broken { .. }))));
}

#[test]
fn users_in_a_file_go_with_the_rows_of_every_format_that_has_rows() {
    let (images, digits) = idx_pair();
    let idx_files =
        Folder::new().with("train-images-idx3-ubyte", images).with("train-labels-idx1-ubyte", digits);
    let features = npy("<f4", "(3, 1)", &little(&[1_f32, 2.0, 3.0].map(f32::to_le_bytes)));
    // The second record has no class, and is left out with its user.
    let targets = npy("<i8", "(3,)", &little(&[0_i64, 9, 1].map(i64::to_le_bytes)));
    let archive = npz(&[("x.npy", features.clone()), ("y.npy", targets.clone())]);
    let arrays = Folder::new().with("x.npy", features).with("y.npy", targets).with("both.npz", archive);
    let cifar_file =
        Folder::new().with("data.bin", [cifar(0, [0; 3]), cifar(77, [1; 3]), cifar(1, [2; 3])].concat());
    let schema = Schema::parse(
        "[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'x'\nbounds = [0, 9]\n",
    )
    .unwrap();
    let table = Folder::new().with("table.csv", "x,y\n1,a\n2,?\n3,b\n");
    let text = arrays.put("users.txt", "ada\nbob\nada\n");
    let numbers =
        arrays.put("numbers.npy", npy("<i4", "(3,)", &little(&[7_i32, 8, 7].map(i32::to_le_bytes))));
    for users in [text, numbers] {
        let options = |schema| Options {
            users: Some(users.clone()),
            classes: Some(vec!["a".into(), "b".into()]),
            schema,
            ..Options::default()
        };
        for (path, schema) in [
            (arrays.path().join("x.npy"), None),
            (arrays.path().join("both.npz"), None),
            (cifar_file.path().join("data.bin"), None),
            (table.path().join("table.csv"), Some(schema.clone())),
        ] {
            let train = open(&path, &options(schema)).unwrap().train;
            assert_eq!(
                (train.users(), train.user_count()),
                (Some([0, 0].as_slice()), Some(1)),
                "{}",
                path.display()
            );
            assert_eq!((train.row_count(), train.row(0), train.row(1)), (3, 0, 2), "{}", path.display());
        }
        let digits = open(idx_files.path(), &Options { users: Some(users.clone()), ..Options::default() })
            .unwrap()
            .train;
        assert_eq!(digits.user_count(), Some(2));
    }
    // Whoever is named by an empty line is nobody.
    let some = Options { users: Some(arrays.put("some.txt", "ada\n \n\n")), ..Options::default() };
    let known = open(idx_files.path(), &some).unwrap().train;
    assert_eq!((known.len(), known.user_count(), known.row_count()), (1, Some(1), 3));
    // Where it is said already, or lines name no images, a file is refused.
    let twice =
        "user = 'u'\n[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'x'\nbounds = [0, 9]\n";
    let twice = Options { schema: Some(Schema::parse(twice).unwrap()), ..some.clone() };
    let path = table.put("people.csv", "u,x,y\np,1,a\nq,2,?\np,3,b\n");
    assert!(matches!(open(path, &twice), Err(Error::Setting { name: "users", .. })));
    let pictures = Folder::new().with("a/1.png", png(ColorType::Grayscale, BitDepth::Eight, [2, 1], &[0, 1]));
    let declared = Options { classes: Some(vec!["a".into()]), shape: Some([1, 1, 2]), ..some };
    assert!(matches!(open(pictures.path(), &declared), Err(Error::Table(TableError::NoColumn { .. }))));
}

#[test]
fn users_of_images_are_named_by_their_files() {
    let picture = |dark: u8| png(ColorType::Grayscale, BitDepth::Eight, [1, 1], &[dark]);
    let pictures = Folder::new()
        .with("train/a/1.png", picture(1))
        .with("train/a/2.png", picture(2))
        .with("train/b/1.png", picture(3))
        .with("train/b/2.png", picture(4))
        .with("test/b/1.png", picture(5));
    let table = Folder::new();
    let users =
        table.put("users.csv", "user,file,more\nann,b/1.png,x\nbob,a/2.png,\n ann ,a/1.png,\nbob,c/9.png,\n");
    let options = Options {
        classes: Some(vec!["a".into(), "b".into()]),
        shape: Some([1, 1, 1]),
        users: Some(users),
        ..Options::default()
    };
    let data = open(pictures.path(), &options).unwrap();
    // Nobody's image is left out, and an image that is not there adds nobody.
    assert_eq!((labels(&data.train), data.train.users()), (vec![0, 0, 1], Some([0, 1, 0].as_slice())));
    assert_eq!((data.test.as_ref().unwrap().len(), data.test.unwrap().users()), (1, None));
}

/// The rows of one user change nothing for the others, even if they claim all images.
#[test]
fn an_image_of_several_users_is_an_example_of_each() {
    let pictures = Folder::new();
    for name in ["a/1.png", "a/2.png", "b/1.png"] {
        let image = png(png::ColorType::Grayscale, png::BitDepth::Eight, [1, 1], &[7]);
        pictures.put(name, image);
    }
    let read = |table: &str| {
        let place = Folder::new();
        let users = place.put("users.csv", format!("user,file\n{table}"));
        let options = Options {
            classes: Some(vec!["a".into(), "b".into()]),
            shape: Some([1, 1, 1]),
            users: Some(users),
            ..Options::default()
        };
        let train = open(pictures.path(), &options).unwrap().train;
        // The labels of each user, whatever their order.
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); train.user_count().unwrap()];
        let of = train.users().unwrap().to_vec();
        labels(&train).into_iter().zip(of).for_each(|(label, user)| all[user as usize].push(label));
        all.sort();
        all
    };
    let others = "ann,a/1.png\nbob,a/2.png\nann,b/1.png\n";
    let greedy = "eve,a/1.png\neve,a/2.png\neve,b/1.png\neve,b/1.png\n";
    assert_eq!(read(others), [vec![0], vec![0, 1]]);
    assert_eq!(read(&format!("{greedy}{others}")), [vec![0], vec![0, 0, 1], vec![0, 1]]);
}

#[test]
fn people_whose_names_are_not_utf8_are_as_many_users() {
    let folder = Folder::new().with(
        "table.csv",
        b"u,y,x\nM\xfcller,a\nM\xf6ller,b\nM\xe4ller,b\n\xff,a\n,a\n \t ,b\nM\xfcller,b\n",
    );
    folder.put(
        "table.tsv",
        b"u\ty\tx\nM\xfcller\ta\nM\xf6ller\tb\nM\xe4ller\tb\n\xff\ta\n\ta\n\tb\nM\xfcller\tb\n",
    );
    let schema =
        "user = 'u'\n[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'x'\nbounds = [0, 1]\n";
    let options = Options { schema: Some(Schema::parse(schema).unwrap()), ..Options::default() };
    for name in ["table.csv", "table.tsv"] {
        let train = open(folder.path().join(name), &options).unwrap().train;
        assert_eq!((train.user_count(), train.len(), train.row_count()), (Some(4), 5, 7), "{name}");
    }
    // The digits of an integer are its name, however many there are.
    let digits: Vec<String> =
        (0..40).map(|id| format!("{},a\n", 1_800_000_000_000_000_000_u64 + id)).collect();
    folder.put("table.csv", format!("u,y,x\n{}", digits.concat()));
    assert_eq!(open(folder.path().join("table.csv"), &options).unwrap().train.user_count(), Some(40));
}

#[test]
fn a_user_that_is_emptied_leaves_their_record_out_wherever_it_stands() {
    let read = |rows: usize, users: &str| {
        let features = npy("<f4", &format!("({rows}, 1)"), &vec![0; 4 * rows]);
        let labels = npy("<f4", &format!("({rows},)"), &vec![0; 4 * rows]);
        let folder = Folder::new().with("x.npy", features).with("y.npy", labels);
        let users = folder.put("users.txt", users);
        open(folder.path(), &Options { users: Some(users), ..Options::default() })
            .map(|data| data.train.len())
    };
    // Lines that are ended, and lines that are joined.
    for end in ["", "\n"] {
        for (names, known) in [
            (["a", "b", "c"], 3),
            (["a", "b", ""], 2),
            (["", "b", "c"], 2),
            (["a", "", ""], 1),
            (["", "", ""], 0),
        ] {
            assert_eq!(read(3, &(names.join("\n") + end)), Ok(known), "{names:?} {end:?}");
            assert_eq!(read(3, &(names.join("\r\n") + end)), Ok(known), "{names:?} {end:?}");
        }
        assert_eq!((read(1, end), read(1, &format!("a{end}"))), (Ok(0), Ok(1)));
    }
    assert_eq!(read(0, ""), Ok(0));
    assert!(matches!(read(3, "a"), Err(Error::Format(FormatError::Counts { .. }))));
    assert!(matches!(read(3, "a\nb\nc\nd\n"), Err(Error::Format(FormatError::Counts { .. }))));
    assert!(matches!(read(3, "a\nb\nc\n\n"), Err(Error::Format(FormatError::Counts { .. }))));
}

#[test]
fn no_error_tells_how_many_records_there_are() {
    // What is wrong with files of so many records, by what is said about them.
    let refused = |records: usize| {
        let some = |kind: &str, sides: &str, bytes: usize| {
            npy(kind, &format!("({records}, {sides})"), &vec![0; bytes])
        };
        let x = some("<f4", "2", 8 * records);
        let y = npy("<i8", &format!("({records},)"), &vec![0; 8 * records]);
        let archive = |x: &[u8], y: &[u8]| npz(&[("x.npy", x.to_vec()), ("y.npy", y.to_vec())]);
        let folder = Folder::new();
        let mut said = Vec::new();
        let mut pair = |x: Vec<u8>, y: Vec<u8>| {
            folder.put("x.npy", &x);
            folder.put("y.npy", &y);
            folder.put("both.npz", archive(&x, &y));
            said.extend(
                ["x.npy", "both.npz"]
                    .map(|name| open(folder.path().join(name), &classes(&["a", "b"])).unwrap_err()),
            );
        };
        pair(x.clone(), some("<i8", "3", 24 * records));
        pair(some("<f4", "0", 0), y.clone());
        pair(x[..x.len() - 4].to_vec(), y.clone());
        pair([x.clone(), vec![0]].concat(), y.clone());
        pair(x.clone(), y[..y.len() - 8].to_vec());
        pair(x.clone(), [y.clone(), vec![0]].concat());
        pair(x.clone(), npy("<i8", &format!("({},)", records - 1), &vec![0; 8 * records - 8]));
        folder.put("x.npy", &x);
        folder.put("y.npy", &y);
        for users in [
            npy("<i8", "(3,)", &[0; 24]),
            npy("<f8", &format!("({records},)"), &vec![0; 8 * records]),
            b"a\nb\n".to_vec(),
        ] {
            let options = Options { users: Some(folder.put("users", users)), ..classes(&["a", "b"]) };
            said.push(open(folder.path().join("x.npy"), &options).unwrap_err());
        }
        let pictures =
            Folder::new().with("data.bin", [cifar(1, [0; 3]).repeat(records), vec![0; 7]].concat());
        said.push(pictures.open("data.bin").unwrap_err());
        pictures.put("train-images-idx3-ubyte", idx(8, &[records as u32, 2, 2], &vec![0; 4 * records - 1]));
        pictures.put("train-labels-idx1-ubyte", idx(8, &[records as u32], &vec![0; records]));
        said.push(pictures.open("train-images-idx3-ubyte").unwrap_err());
        let mut shown = Vec::new();
        for error in said {
            let text = format!("{error} {error:?} {}", error.hint().unwrap());
            shown.push(
                text.replace(folder.path().to_str().unwrap(), "")
                    .replace(pictures.path().to_str().unwrap(), ""),
            );
        }
        shown
    };
    let (some, more) = (refused(1234), refused(1235));
    assert_eq!(some, more);
    assert!(some[0].contains("3]"), "sides other than the first are public: {}", some[0]);
}

#[test]
fn images_without_labels_are_refused() {
    let (images, digits) = idx_pair();
    let folder = Folder::new().with("train-images-idx3-ubyte", &images);
    assert!(matches!(folder.open(""), Err(Error::Format(FormatError::NoLabels { .. }))));
    folder.put("train-labels-idx1-ubyte", idx(8, &[2], &[1, 2]));
    let error = folder.open("").unwrap_err();
    assert!(matches!(error, Error::Format(FormatError::Counts { .. })));
    assert!(
        error.to_string().contains("have different numbers of records")
            && !error.to_string().contains("3 records"),
        "{error}"
    );
    folder.put("train-labels-idx1-ubyte", &digits);
    assert!(folder.open("train-images-idx3-ubyte").is_ok());
    // Labels are not images.
    assert!(matches!(
        folder.open("train-labels-idx1-ubyte"),
        Err(Error::Format(FormatError::NoLabels { .. }))
    ));
}

#[test]
fn cifar_records_are_a_label_and_three_planes() {
    let folder = Folder::new()
        .with("data_batch_2.bin", cifar(3, [0, 255, 51]))
        .with("data_batch_1.bin.gz", gzip(&[cifar(9, [1, 2, 3]), cifar(10, [4, 5, 6])].concat()))
        .with("test_batch.bin", [cifar(0, [255, 0, 0]), cifar(1, [0, 0, 0])].concat())
        .with("batches.meta.txt", "whatever");
    let data = folder.open("").unwrap();
    // There is no class 10.
    assert_eq!((labels(&data.train), data.train.shape()), (vec![9, 3], [3, 32, 32].as_slice()));
    assert_eq!(labels(data.test.as_ref().unwrap()), [0, 1]);
    test_is_public_if_declared(folder.path(), &Options::default());
    assert_eq!(data.train.classes().unwrap()[3], "cat");
    let second = &rows(&data.train)[1];
    assert_eq!(
        [second[0], second[1023], second[1024], second[2047], second[2048]],
        [0.0, 0.0, 1.0, 1.0, 51.0 * (1.0 / 255.0)]
    );
    let alone = folder.open("data_batch_2.bin").unwrap();
    assert_eq!((labels(&alone.train), alone.test.is_none()), (vec![3], true));
}

#[test]
fn scaling_and_split_are_for_every_format() {
    let records: Vec<u8> = (0..200).flat_map(|record| cifar(record % 10, [record, 255, 0])).collect();
    let folder = Folder::new().with("train.bin", records);
    let scaling = Scaling { mean: vec![0.0, 1.0, 0.5], deviation: vec![1.0, 1.0, 0.25] };
    let options = Options { scaling: Some(scaling), split: Some(Split { share: 0.3 }), ..Options::default() };
    let data = open(folder.path(), &options).unwrap();
    let test = data.test.unwrap();
    assert_eq!(data.train.len() + test.len(), 200);
    assert!(!test.is_empty() && !data.train.is_empty() && !data.test_is_public);
    for row in rows(&data.train).iter().chain(&rows(&test)) {
        assert_eq!([row[1024], row[2048]], [0.0, -2.0]);
    }
}

#[test]
fn arrays_of_numpy_are_found_by_their_names() {
    let x = npy("<f4", "(2, 3)", &little(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes)));
    let y = npy("<i8", "(2,)", &little(&[1_i64, 0].map(i64::to_le_bytes)));
    for (features, target) in [
        ("x", "y"),
        ("X", "y"),
        ("features", "labels"),
        ("data", "target"),
        ("arr_0", "arr_1"),
        ("x_train", "y_train"),
    ] {
        let archive = npz(&[(&format!("{features}.npy"), x.clone()), (&format!("{target}.npy"), y.clone())]);
        let folder = Folder::new().with("some.npz", archive);
        let files = Folder::new().with(&format!("{features}.npy"), &x).with(&format!("{target}.npy"), &y);
        let paths = [
            folder.path().join("some.npz"),
            files.path().to_owned(),
            files.path().join(format!("{features}.npy")),
        ];
        for path in paths {
            let train = open(&path, &classes(&["no", "yes"])).unwrap().train;
            assert_eq!((train.shape(), labels(&train)), ([3].as_slice(), vec![1, 0]));
            assert_eq!(rows(&train), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
            let error = open(&path, &Options::default()).unwrap_err();
            assert!(matches!(error, Error::Format(FormatError::NoClasses { .. })), "{error}");
        }
    }
    let folder = Folder::new().with("other.npz", npz(&[("weights.npy", x.clone())])).with("x.npy", &x);
    assert!(matches!(folder.open("other.npz"), Err(Error::Format(FormatError::NoLabels { .. }))));
    assert!(matches!(folder.open("x.npy"), Err(Error::Format(FormatError::NoLabels { .. }))));
}

#[test]
fn an_archive_may_hold_both_parts_and_users() {
    let x = |first: u8| npy("|u1", "(2, 1, 2)", &[first, 0, 0, 255]);
    let y = npy("|b1", "(2, 1)", &[1, 0]);
    let users = npy("<u8", "(2,)", &little(&[u64::MAX, u64::MAX - 1].map(u64::to_le_bytes)));
    let archive = npz(&[
        ("train_images.npy", x(255)),
        ("train_labels.npy", y.clone()),
        ("train_users.npy", users),
        ("test_images.npy", x(51)),
        ("test_labels.npy", y),
    ]);
    let folder = Folder::new().with("both.npz", archive);
    let data = folder.open("both.npz").unwrap();
    assert_eq!(
        (data.train.shape(), data.train.classes().unwrap()),
        ([1, 1, 2].as_slice(), ["false".to_owned(), "true".to_owned()].as_slice())
    );
    assert_eq!((rows(&data.train), labels(&data.train)), (vec![vec![1.0, 0.0], vec![0.0, 1.0]], vec![1, 0]));
    assert_eq!(data.train.user_count(), Some(2));
    let test = data.test.unwrap();
    assert_eq!((rows(&test)[0][0], test.users()), (51.0 * (1.0 / 255.0), None));
    test_is_public_if_declared(&folder.path().join("both.npz"), &Options::default());
}

#[test]
fn every_type_of_numpy_is_read_or_refused_by_name() {
    let read = |kind: &str, shape: &str, numbers: &[u8]| {
        let folder = Folder::new()
            .with("x.npy", npy(kind, shape, numbers))
            .with("y.npy", npy("<f8", "(1,)", &0.5_f64.to_le_bytes()));
        folder.open("x.npy").map(|data| (rows(&data.train).concat(), data.train.number(0)))
    };
    assert_eq!(read("<f8", "(1, 1)", &(-2.5_f64).to_le_bytes()).unwrap(), (vec![-2.5], Some(0.5)));
    assert_eq!(read("|i1", "(1,)", &[0x80]).unwrap().0, [-128.0]);
    assert_eq!(read("<i2", "(1, 1)", &(-300_i16).to_le_bytes()).unwrap().0, [-300.0]);
    assert_eq!(read("<u2", "(1, 1)", &65_535_u16.to_le_bytes()).unwrap().0, [65_535.0]);
    assert_eq!(read("<i4", "(1, 1)", &(-7_i32).to_le_bytes()).unwrap().0, [-7.0]);
    assert_eq!(read("<u4", "(1, 1)", &u32::MAX.to_le_bytes()).unwrap().0, [4_294_967_296.0]);
    assert_eq!(read("<i8", "(1, 1)", &(-9_i64).to_le_bytes()).unwrap().0, [-9.0]);
    assert_eq!(read("|b1", "(1, 2)", &[0, 1]).unwrap().0, [0.0, 1.0]);
    assert_eq!(
        read("<f8", "(1, 2)", &little(&[1e300, f64::NAN].map(f64::to_le_bytes))).unwrap().0,
        [0.0, 0.0]
    );
    for kind in [">f4", "<f2", "|O", "<U5", "|S3", "<c8", "<M8[ns]", "", "[('a', '<f4')]"] {
        let error = read(kind, "(1, 1)", &[0; 64]).unwrap_err();
        assert!(matches!(&error, Error::Format(FormatError::Broken { .. })), "{kind}: {error}");
    }
}

#[test]
fn fortran_order_is_refused_unless_it_is_c_order() {
    let header = |shape: &str| format!("{{'descr': '|u1', 'fortran_order': True, 'shape': {shape}}}");
    let y = npy("<f8", "(2,)", &[0; 16]);
    let folder = Folder::new().with("x.npy", npy_with(&header("(2, 2)"), &[1, 2, 3, 4])).with("y.npy", &y);
    assert!(folder.open("x.npy").unwrap_err().to_string().contains("Fortran order"));
    let folder = Folder::new().with("x.npy", npy_with(&header("(2,)"), &[0, 255])).with("y.npy", &y);
    assert_eq!(rows(&folder.open("x.npy").unwrap().train), [[0.0], [1.0]]);
}

#[test]
fn channels_that_come_last_are_put_first() {
    let pixels: Vec<u8> = (0..2 * 12).collect();
    let folder = Folder::new()
        .with("x.npy", npy("|u1", "(2, 2, 2, 3)", &pixels))
        .with("y.npy", npy("<f4", "(2,)", &[0; 8]));
    let train = folder.open("x.npy").unwrap().train;
    assert_eq!(train.shape(), [3, 2, 2]);
    let bytes: Vec<f32> = rows(&train)[1].iter().map(|pixel| (pixel * 255.0).round()).collect();
    assert_eq!(bytes, [12.0, 15.0, 18.0, 21.0, 13.0, 16.0, 19.0, 22.0, 14.0, 17.0, 20.0, 23.0]);
    let floats = little(&[1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes));
    let folder = Folder::new()
        .with("x.npy", npy("<f4", "(1, 2, 2, 1)", &floats))
        .with("y.npy", npy("<f4", "(1,)", &[0; 4]));
    assert_eq!(folder.open("x.npy").unwrap().train.shape(), [1, 2, 2]);
    // Already first.
    let folder = Folder::new()
        .with("x.npy", npy("|u1", "(1, 3, 2, 3)", &pixels[..18]))
        .with("y.npy", npy("<f4", "(1,)", &[0; 4]));
    let train = folder.open("x.npy").unwrap().train;
    assert_eq!((train.shape(), (rows(&train)[0][1] * 255.0).round()), ([3, 2, 3].as_slice(), 1.0));
}

#[test]
fn pictures_are_classed_by_their_folders() {
    let grey = |pixels: &[u8]| png(ColorType::Grayscale, BitDepth::Eight, [2, 1], pixels);
    let folder = Folder::new()
        .with("dog/b.PNG", grey(&[255, 0]))
        .with("dog/a.png", grey(&[0, 255]))
        .with(
            "cat/1.png",
            png(ColorType::GrayscaleAlpha, BitDepth::Sixteen, [2, 1], &[255, 255, 9, 9, 0, 0, 9, 9]),
        )
        .with("cat/notes.txt", "not a picture")
        .with(".hidden/x.png", "not looked at")
        .with("empty/notes.txt", "no picture");
    let data = open(folder.path(), &PUBLIC).unwrap();
    assert_eq!(data.train.classes().unwrap(), ["cat", "dog", "empty"]);
    assert_eq!((data.train.shape(), labels(&data.train)), ([1, 1, 2].as_slice(), vec![0, 1, 1]));
    assert_eq!(rows(&data.train), [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]);
    let public = |names: &[&str]| Options { public: true, ..classes(names) };
    assert!(
        matches!(open(folder.path(), &public(&["cat", "dog"])), Err(Error::Format(FormatError::NoClass { name, .. })) if name == "empty")
    );
    assert_eq!(
        labels(&open(folder.path(), &public(&["dog", "empty", "owl", "cat"])).unwrap().train),
        [3, 0, 0]
    );
}

#[test]
fn nothing_is_read_off_private_pictures_and_nothing_is_said_about_them() {
    let grey = |pixels: &[u8]| png(ColorType::Grayscale, BitDepth::Eight, [2, 1], pixels);
    let folder = Folder::new()
        .with("cat/1.png", grey(&[1, 2]))
        .with("dog/1.png", grey(&[3, 4]))
        .with("dog/2.png", grey(&[5, 6]));
    assert!(matches!(
        folder.open(""),
        Err(Error::Format(FormatError::Undeclared { what: "classes of the images", .. }))
    ));
    let refused = open(folder.path(), &classes(&["cat", "dog"]));
    assert!(matches!(
        refused,
        Err(Error::Format(FormatError::Undeclared { what: "shape of the images", .. }))
    ));
    let declared = Options { shape: Some([1, 1, 2]), ..classes(&["cat", "dog"]) };
    let read = || open(folder.path(), &declared).unwrap().train;
    assert_eq!((labels(&read()), read().row_count(), read().has_places()), (vec![0, 1, 1], 3, false));
    // Whatever is wrong with a picture, it is a row that nothing is learned from.
    let colour = png(ColorType::Rgb, BitDepth::Eight, [2, 1], &[1, 2, 3, 4, 5, 6]);
    let small = png(ColorType::Grayscale, BitDepth::Eight, [1, 1], &[7]);
    for wrong in [b"no picture".to_vec(), Vec::new(), grey(&[1, 2])[..40].to_vec(), small, colour] {
        folder.put("dog/1.png", wrong);
        assert_eq!((labels(&read()), read().row_count()), (vec![0, 1], 3));
    }
    folder.put("owl/1.png", grey(&[1, 2]));
    assert_eq!((labels(&read()), read().row_count()), (vec![0, 1], 4));
    let odd = Options { shape: Some([2, 1, 2]), ..declared };
    assert!(matches!(open(folder.path(), &odd), Err(Error::Setting { name: "shape", .. })));
}

#[test]
fn pictures_in_colour_become_planes() {
    let rgb = png(ColorType::Rgb, BitDepth::Eight, [2, 1], &[1, 2, 3, 4, 5, 6]);
    let rgba = png(ColorType::Rgba, BitDepth::Eight, [2, 1], &[1, 2, 3, 0, 4, 5, 6, 255]);
    let indexed = png(ColorType::Indexed, BitDepth::One, [2, 1], &[0b0100_0000]);
    let folder = Folder::new().with("a/1.png", rgb).with("a/2.png", rgba).with("a/3.png", indexed);
    let train = open(folder.path(), &PUBLIC).unwrap().train;
    let bytes = |row: &Vec<f32>| row.iter().map(|pixel| (pixel * 255.0).round() as u8).collect::<Vec<u8>>();
    let pictures: Vec<Vec<u8>> = rows(&train).iter().map(bytes).collect();
    assert_eq!(train.shape(), [3, 1, 2]);
    assert_eq!(pictures, [[1, 4, 2, 5, 3, 6], [1, 4, 2, 5, 3, 6], [10, 40, 20, 50, 30, 60]]);
}

#[test]
fn jpeg_is_read_in_grey_and_colour() {
    let folder = Folder::new().with("a/1.jpg", jpeg(1, false)).with("a/2.jpeg", jpeg(1, true));
    let train = open(folder.path(), &PUBLIC).unwrap().train;
    assert_eq!(train.shape(), [1, 8, 8]);
    let pictures = rows(&train);
    assert!(pictures[0].iter().all(|pixel| *pixel == 128.0 * (1.0 / 255.0)), "{:?}", pictures[0]);
    assert!(pictures[1].iter().all(|pixel| *pixel == 136.0 * (1.0 / 255.0)), "{:?}", pictures[1]);
    let colour = open(Folder::new().with("a/1.jpg", jpeg(3, false)).path(), &PUBLIC).unwrap().train;
    assert_eq!(colour.shape(), [3, 8, 8]);
    assert!(rows(&colour)[0].iter().all(|pixel| *pixel == 128.0 * (1.0 / 255.0)));
}

#[test]
fn public_pictures_of_another_size_or_colour_are_refused() {
    let grey = |size: [u32; 2]| {
        png(ColorType::Grayscale, BitDepth::Eight, size, &vec![0; (size[0] * size[1]) as usize])
    };
    let folder = Folder::new().with("a/1.png", grey([8, 8])).with("a/2.png", grey([8, 9]));
    let error = open(folder.path(), &PUBLIC).unwrap_err();
    assert!(error.to_string().ends_with(
        "2.png has 8 by 9 pixels in grey, expected 8 by 8 pixels in grey like the images before it"
    ));
    let folder = Folder::new().with("a/1.png", grey([8, 8])).with("b/2.jpg", jpeg(3, false));
    assert!(matches!(
        open(folder.path(), &PUBLIC),
        Err(Error::Format(FormatError::Shape { found: [3, 8, 8], expected: [1, 8, 8], .. }))
    ));
    assert!(matches!(folder.open("a/1.png"), Err(Error::Format(FormatError::SingleImage { .. }))));
    let folder = Folder::new().with("a/1.png", "no picture");
    assert!(matches!(open(folder.path(), &PUBLIC), Err(Error::Format(FormatError::NoImage { .. }))));
    assert!(matches!(
        open(Folder::new().with("a/x.txt", "").path(), &PUBLIC),
        Err(Error::Format(FormatError::Unrecognised { .. }))
    ));
}

#[test]
fn folders_train_and_test_are_parts() {
    let grey = |pixel: u8| png(ColorType::Grayscale, BitDepth::Eight, [1, 1], &[pixel]);
    let folder = Folder::new()
        .with("train/b/1.png", grey(0))
        .with("train/a/1.png", grey(255))
        .with("test/b/1.png", grey(51));
    // If the part to test on is public, its folders are the classes, unless others are declared.
    let public = Options { public_test: true, ..Options::default() };
    assert!(matches!(folder.open(""), Err(Error::Format(FormatError::Undeclared { .. }))));
    assert_eq!(labels(&open(folder.path(), &public).unwrap().train), [0]);
    let declared = Options { shape: Some([1, 1, 1]), ..classes(&["a", "b"]) };
    let data = open(folder.path(), &declared).unwrap();
    assert_eq!((labels(&data.train), labels(data.test.as_ref().unwrap())), (vec![0, 1], vec![1]));
    test_is_public_if_declared(folder.path(), &declared);
    // A private picture of another class is a record without one, and nothing is said about it.
    folder.put("test/c/1.png", grey(1));
    assert_eq!(labels(open(folder.path(), &declared).unwrap().test.as_ref().unwrap()), [1]);
    let public = Options { public_test: true, ..declared };
    assert!(
        matches!(open(folder.path(), &public), Err(Error::Format(FormatError::NoClass { name, .. })) if name == "c")
    );
}

#[test]
fn one_dataset_has_one_ledger_whichever_way_it_is_opened() {
    let name = |path: &str| Source { path: Some(path.into()), ..Source::default() }.name();
    for (path, expected) in [
        ("people.csv", "people"),
        ("people.csv.gz", "people"),
        ("people.CSV.GZ", "people"),
        ("a/people.tsv.gz", "people"),
        ("people.parquet", "people"),
        ("people.2024.csv.gz", "people.2024"),
        ("people.gz", "people"),
        ("pictures", "pictures"),
        // A folder and a file in it are one dataset.
        ("mnist", "mnist"),
        ("mnist/train-images-idx3-ubyte", "mnist"),
        ("mnist/train-images.idx3-ubyte.gz", "mnist"),
        ("cifar/data_batch_1.bin", "cifar"),
        ("arrays/x.npy", "arrays"),
        ("arrays.v2/x.npy", "arrays"),
        ("both.npz", "both"),
        ("idx.csv", "idx"),
    ] {
        assert_eq!(name(path), expected, "{path}");
    }
    let here = std::env::current_dir().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!([name("."), name("x.npy")], [here.clone(), here]);
}

#[test]
fn what_is_no_data_is_not_recognised() {
    let folder = Folder::new().with("notes.txt", "hello").with("empty", "");
    for name in ["", "notes.txt", "empty"] {
        assert!(matches!(folder.open(name), Err(Error::Format(FormatError::Unrecognised { .. }))), "{name}");
    }
    assert!(matches!(folder.open("nothing"), Err(Error::Absent { .. })));
}

#[test]
fn memory_is_a_setting() {
    let (images, digits) = idx_pair();
    let folder =
        Folder::new().with("train-images-idx3-ubyte", images).with("train-labels-idx1-ubyte", digits);
    let allowed = |memory: u64| open(folder.path(), &Options { memory: Some(memory), ..Options::default() });
    assert!(allowed(12 + 3 * 4).is_ok());
    assert!(matches!(allowed(12 + 3 * 4 - 1), Err(Error::Format(FormatError::TooLarge { limit: 23, .. }))));
}

#[test]
fn records_that_are_trained_on_are_not_public_records_to_test_on() {
    let folder = Folder::new()
        .with("data/data_batch_1.bin", cifar(3, [0, 255, 51]))
        .with("data/test_batch.bin", cifar(0, [1, 2, 3]));
    folder.put("other/data_batch_1.bin", cifar(3, [0, 255, 51]));
    let at = |name: &str| folder.path().join(name);
    let opened = |data: &str, test: &str| {
        quell::run::Source { path: Some(at(data)), test: Some(at(test)), ..Default::default() }.open()
    };
    for (data, test) in [
        ("data", "data"),
        ("data", "data/data_batch_1.bin"),
        ("data/data_batch_1.bin", "data/../data/data_batch_1.bin"),
    ] {
        assert!(matches!(opened(data, test), Err(Error::Setting { name: "test", .. })), "{data} {test}");
    }
    for (data, test) in [
        ("data", "data/test_batch.bin"),
        ("data", "other"),
        ("data/data_batch_1.bin", "other/data_batch_1.bin"),
    ] {
        assert!(opened(data, test).unwrap().test_is_public, "{data} {test}");
    }
}

/// A table of so many rows, numbered from a first one on.
fn numbered(from: usize, rows: usize) -> String {
    let rows: Vec<String> = (from..from + rows).map(|row| format!("{row},{}", ["a", "b"][row % 2])).collect();
    format!("x,y\n{}\n", rows.join("\n"))
}

#[test]
fn a_file_to_test_on_is_tested_on_whole_also_where_the_schema_splits_the_data() {
    let folder = Folder::new().with("people.csv", numbered(0, 200)).with("others.csv", numbered(500, 200));
    let schema = r#"
[label]
column = "y"
classes = ["a", "b"]
[test]
share = 0.3
[[column]]
name = "x"
bounds = [0, 1000]
"#;
    let [path, test] = ["people.csv", "others.csv"].map(|name| Some(folder.path().join(name)));
    let schema = Some(quell::data::Schema::parse(schema).unwrap());
    let opened = quell::run::Source { path, test, schema, ..Default::default() }.open().unwrap();
    assert_eq!(opened.test.unwrap().len(), 200);
    assert!(opened.train.len() < 170, "a share of the data stays out of training");
}

#[test]
fn whatever_shares_a_file_with_the_data_is_not_public() {
    let table = numbered(0, 20);
    let folder = Folder::new()
        .with("people.csv", &table)
        .with("people.csv.gz", gzip(table.as_bytes()))
        .with("pictures/train/cat/1.png", vec![0])
        .with("pictures/test/cat/1.png", vec![0]);
    let at = |name: &str| folder.path().join(name);
    std::fs::hard_link(at("people.csv"), at("linked.csv")).unwrap();
    let schema = |test: &str| {
        let text = format!(
            "[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n{test}\n[[column]]\nname = 'x'\nbounds = [0, 99]\n"
        );
        Some(quell::data::Schema::parse(&text).unwrap())
    };
    let refused = |data: &str, test: Option<&str>, schema| {
        let source =
            quell::run::Source { path: Some(at(data)), test: test.map(at), schema, ..Default::default() };
        matches!(source.open(), Err(Error::Setting { name: "test", .. }))
    };
    for test in ["people.csv.gz", "linked.csv", "."] {
        assert!(refused("people.csv", Some(test), schema("")), "{test}");
    }
    assert!(refused("pictures/train", Some("pictures"), None));
    for file in ["people.csv", "people.csv.gz", "linked.csv"] {
        assert!(
            refused("people.csv", None, schema(&format!("[test]\nfile = '{file}'\npublic = true"))),
            "{file}"
        );
    }
    let declared = quell::run::Source {
        path: Some(at("people.csv")),
        schema: schema("[test]\nshare = 0.5"),
        public_test: true,
        ..Default::default()
    };
    assert!(
        matches!(declared.open(), Err(Error::Setting { name: "test", .. })),
        "a share of private records is private"
    );
    for folder in ["pictures", "pictures/train", "pictures/test"] {
        assert_eq!(quell::data::name_of(&at(folder)).as_deref(), Some("pictures"), "{folder}");
    }
}

#[test]
fn every_file_in_a_private_folder_counts_whatever_it_is() {
    let picture = png(ColorType::Grayscale, BitDepth::Eight, [2, 2], &[7; 4]);
    let count = |files: &[&str]| {
        let folder = files.iter().fold(Folder::new().with("here", ""), |folder, file| {
            folder.with(
                &format!("data/{file}"),
                if file.ends_with("gif") { b"GIF89a" } else { picture.as_slice() },
            )
        });
        let options = Options {
            classes: Some(vec!["cat".into(), "dog".into()]),
            shape: Some([1, 2, 2]),
            ..Options::default()
        };
        std::fs::create_dir_all(folder.path().join("data")).unwrap();
        let train = quell::data::open(folder.path().join("data"), &options).unwrap().train;
        (train.len(), train.row_count())
    };
    assert_eq!(count(&["cat/1.png", "cat/2.png", "dog/1.png"]), (3, 3));
    // What is no picture any more, or lies in a folder that is no class, is a record that nothing is learned from.
    assert_eq!(count(&["cat/1.png", "cat/2.gif", "dog/1.png"]), (2, 3));
    assert_eq!(count(&["cat/1.png", "cow/2.png", "dog/1.png"]), (2, 3));
    // The last picture may go.
    assert_eq!(count(&["cat/1.png"]), (1, 1));
    assert_eq!(count(&[]), (0, 0));
}
