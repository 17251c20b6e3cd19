//! IDX files. First byte: packed or not, images or labels, and of how many records the other file is.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell_fuzz::{classes, learn, put, split};

fuzz_target!(|input: &[u8]| {
    let (first, content) = split(input);
    let (packed, labels, count) = (first & 0x80 != 0, first & 0x40 != 0, first & 0x3f);
    let other = |sides: &[u8]| {
        let mut bytes = vec![0, 0, 8, sides.len() as u8];
        bytes.extend(sides.iter().flat_map(|side| u32::from(*side).to_be_bytes()));
        bytes.resize(bytes.len() + usize::from(count), 1);
        bytes
    };
    let (images, digits) = if labels { (other(&[count, 1, 1]), content.to_vec()) } else { (content.to_vec(), other(&[count])) };
    let ending = |packed: bool| if packed { ".gz" } else { "" };
    let folder = format!("{first:02x}");
    let path = put(&format!("{folder}/train-images-idx3-ubyte{}", ending(packed && !labels)), &images);
    put(&format!("{folder}/train-labels-idx1-ubyte{}", ending(packed && labels)), &digits);
    learn(&path, &classes(5));
});
