//! Reads one image: PNG or JPEG, grey or colour, as planes of red, green and blue bytes.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read},
    path::Path,
};

use png::{BitDepth, ColorType, DecodingError, Transformations};
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use crate::{Error, data::FormatError};

/// The most bytes of one image, compressed or not: 4096 by 4096 grey pixels.
///
/// A header that announces more is refused.
const LARGEST: usize = 1 << 24;

/// The shape of an image (channels, rows, columns) and one byte for each value.
pub(in crate::data) struct Image {
    pub(in crate::data) shape: [usize; 3],
    pub(in crate::data) planes: Vec<u8>,
}

/// Reads an image, and checks its shape if one is expected.
pub(in crate::data) fn read(path: &Path, expected: Option<[usize; 3]>) -> Result<Image, Error> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(LARGEST as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > LARGEST {
        return Err(FormatError::TooLarge { path: path.to_owned(), limit: LARGEST as u64 }.into());
    }
    match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => png(path, &bytes, expected),
        [0xff, 0xd8, ..] => jpeg(path, &bytes, expected),
        _ => Err(FormatError::NoImage { path: path.to_owned(), found: "neither PNG nor JPEG" }.into()),
    }
}

/// Decodes a PNG. Alpha is dropped, palettes are resolved, and 16 bits become 8.
fn png(path: &Path, bytes: &[u8], expected: Option<[usize; 3]>) -> Result<Image, Error> {
    let broken =
        |_: DecodingError| FormatError::NoImage { path: path.to_owned(), found: "a PNG that is damaged" };
    let mut decoder =
        png::Decoder::new_with_limits(BufReader::new(Cursor::new(bytes)), png::Limits { bytes: LARGEST });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(broken)?;
    let (color, depth) = reader.output_color_type();
    let (stored, channels) = match color {
        ColorType::Grayscale => (1, 1),
        ColorType::GrayscaleAlpha => (2, 1),
        ColorType::Rgb => (3, 3),
        ColorType::Rgba => (4, 3),
        ColorType::Indexed => {
            return Err(FormatError::NoImage { path: path.to_owned(), found: "a PNG that is damaged" }.into());
        }
    };
    let (columns, rows) = reader.info().size();
    let shape = checked(path, [channels, rows as usize, columns as usize], expected)?;
    let size = reader.output_buffer_size().filter(|size| *size <= 2 * LARGEST && depth == BitDepth::Eight);
    let mut pixels =
        vec![0; size.ok_or_else(|| FormatError::TooLarge { path: path.to_owned(), limit: LARGEST as u64 })?];
    reader.next_frame(&mut pixels).map_err(broken)?;
    Ok(planes(shape, &pixels, stored))
}

fn jpeg(path: &Path, bytes: &[u8], expected: Option<[usize; 3]>) -> Result<Image, Error> {
    let broken = || FormatError::NoImage { path: path.to_owned(), found: "a JPEG that is damaged" }.into();
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), DecoderOptions::new_safe());
    decoder.decode_headers().map_err(|_| broken())?;
    let channels = if decoder.input_colorspace().ok_or_else(broken)? == ColorSpace::Luma { 1 } else { 3 };
    let (columns, rows) = decoder.dimensions().ok_or_else(broken)?;
    let shape = checked(path, [channels, rows, columns], expected)?;
    let color = if channels == 1 { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(DecoderOptions::new_safe().jpeg_set_out_colorspace(color));
    let pixels = decoder.decode().map_err(|_| broken())?;
    if pixels.len() != shape.iter().product::<usize>() {
        return Err(broken());
    }
    Ok(planes(shape, &pixels, channels))
}

/// Returns whether an image may have this shape.
pub(in crate::data) fn fits(shape: [usize; 3]) -> bool {
    let bytes = shape.iter().try_fold(1_usize, |bytes, side| bytes.checked_mul(*side));
    bytes.is_some_and(|bytes| (1..=LARGEST).contains(&bytes))
}

/// Checks a shape before anything is decoded.
fn checked(path: &Path, shape: [usize; 3], expected: Option<[usize; 3]>) -> Result<[usize; 3], Error> {
    match expected {
        Some(expected) if expected != shape => {
            Err(FormatError::Shape { path: path.to_owned(), found: shape, expected }.into())
        }
        _ if fits(shape) => Ok(shape),
        _ => Err(FormatError::TooLarge { path: path.to_owned(), limit: LARGEST as u64 }.into()),
    }
}

/// Converts pixels to planes. The first bytes of each pixel are the channels.
fn planes(shape: [usize; 3], pixels: &[u8], stored: usize) -> Image {
    let planes = (0..shape[0]).flat_map(|channel| pixels.iter().skip(channel).step_by(stored).copied());
    Image { shape, planes: planes.take(shape.iter().product()).collect() }
}
