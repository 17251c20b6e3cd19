//! Reads NPY, the format of NumPy.
//!
//! A file is a magic word, a version, the length of a header, the header (a Python dictionary with type,
//! order and shape) and the numbers. Little-endian numbers in C order are read. Nothing that would have to be
//! executed is read.

use crate::Error;
use crate::data::formats::{
    array::{Array, Numbers, Stored},
    stream::Stream,
};

/// The longest header. NumPy's own headers have 118 bytes, or slightly more for many dimensions.
const LONGEST_HEADER: u32 = 1 << 16;

/// The limit on the number of dimensions: that of NumPy 1.
const MOST_SIDES: usize = 32;

/// The most characters of a text: the name of a class or a user.
const LONGEST_TEXT: usize = 1 << 10;

/// Opens an array.
pub(in crate::data) fn array(mut stream: Stream<'_>) -> Result<Array<'_>, Error> {
    if stream.array("the magic word of an NPY file")? != *b"\x93NUMPY" {
        return Err(stream.broken("other bytes", "the magic word that an NPY file begins with"));
    }
    let [major, _] = stream.array("a version")?;
    let length = match major {
        1 => u32::from(u16::from_le_bytes(stream.array("the length of the header")?)),
        2 | 3 => u32::from_le_bytes(stream.array("the length of the header")?),
        _ => return Err(stream.broken(format!("version {major}"), "version 1, 2 or 3")),
    };
    if length > LONGEST_HEADER {
        return Err(stream.broken(format!("a header of {length} bytes"), format!("at most {LONGEST_HEADER}")));
    }
    let mut text = Vec::new();
    stream.chunks(u64::from(length), 1, |chunk| text.extend_from_slice(chunk))?;
    let Some(header) = Parser(&text).header() else {
        return Err(stream
            .broken("a header that cannot be read", "a dictionary of 'descr', 'fortran_order' and 'shape'"));
    };
    let Some(stored) = stored(header.kind) else {
        let found = format!("type {}", crate::error::quoted(&String::from_utf8_lossy(header.kind)));
        return Err(stream.broken(
            found,
            "little-endian f4, f8, u1, u2, u4, u8, i1, i2, i4, i8 or b1, or text of 1 to 1024 characters",
        ));
    };
    if header.fortran_order && header.sides.len() > 1 {
        return Err(stream.broken("Fortran order", "C order, as numpy.ascontiguousarray makes it"));
    }
    Ok(Array { stream, stored, sides: header.sides })
}

/// Returns how numbers of a type are stored, or `None` for an unsupported type.
fn stored(kind: &[u8]) -> Option<Stored> {
    let (numbers, size) = match kind {
        b"<f4" => (Numbers::Float, 4),
        b"<f8" => (Numbers::Float, 8),
        b"|u1" | b"<u1" => (Numbers::Unsigned, 1),
        b"<u2" => (Numbers::Unsigned, 2),
        b"<u4" => (Numbers::Unsigned, 4),
        b"<u8" => (Numbers::Unsigned, 8),
        b"|i1" | b"<i1" => (Numbers::Signed, 1),
        b"<i2" => (Numbers::Signed, 2),
        b"<i4" => (Numbers::Signed, 4),
        b"<i8" => (Numbers::Signed, 8),
        b"|b1" => (Numbers::Boolean, 1),
        [b'|', b'S', length @ ..] => (Numbers::Bytes, text_length(length)?),
        [b'<', b'U', length @ ..] => (Numbers::Characters, 4 * text_length(length)?),
        _ => return None,
    };
    Some(Stored { numbers, size, big_endian: false })
}

/// Parses the number of characters of a text.
fn text_length(digits: &[u8]) -> Option<usize> {
    let length = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (1..=LONGEST_TEXT).contains(&length).then_some(length)
}

/// The entries of a header.
struct Header<'a> {
    kind: &'a [u8],
    fortran_order: bool,
    sides: Vec<u64>,
}

/// The rest of a header that is being parsed.
struct Parser<'a>(&'a [u8]);

impl<'a> Parser<'a> {
    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, with its entries in any order.
    fn header(mut self) -> Option<Header<'a>> {
        let (mut kind, mut order, mut sides) = (None, None, None);
        self.sign(b'{')?;
        while self.sign(b'}').is_none() {
            let key = self.word()?;
            self.sign(b':')?;
            let fresh = match key {
                b"descr" => kind.replace(self.word()?).is_none(),
                b"fortran_order" => order.replace(self.truth()?).is_none(),
                b"shape" => sides.replace(self.sides()?).is_none(),
                _ => false,
            };
            if !fresh || (self.sign(b',').is_none() && self.peek() != Some(b'}')) {
                return None;
            }
        }
        let nothing_follows = self.peek().is_none();
        nothing_follows.then_some(Header { kind: kind?, fortran_order: order?, sides: sides? })
    }

    /// Returns the next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        (self.peek()? == sign).then(|| self.0 = &self.0[1..])
    }

    /// Parses a quoted word.
    fn word(&mut self) -> Option<&'a [u8]> {
        let quote = self.peek().filter(|quote| matches!(quote, b'\'' | b'"'))?;
        let rest = &self.0[1..];
        let end = rest.iter().position(|byte| *byte == quote)?;
        self.0 = &rest[end + 1..];
        Some(&rest[..end])
    }

    fn truth(&mut self) -> Option<bool> {
        self.peek()?;
        for (text, truth) in [(b"True".as_slice(), true), (b"False", false)] {
            if let Some(rest) = self.0.strip_prefix(text) {
                self.0 = rest;
                return Some(truth);
            }
        }
        None
    }

    /// Parses `()`, `(3,)` or `(3, 4)`.
    fn sides(&mut self) -> Option<Vec<u64>> {
        let mut sides = Vec::new();
        self.sign(b'(')?;
        while self.sign(b')').is_none() {
            self.peek()?;
            let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (number, rest) = self.0.split_at(digits);
            sides.push(std::str::from_utf8(number).ok()?.parse().ok()?);
            self.0 = rest;
            if sides.len() > MOST_SIDES || (self.sign(b',').is_none() && self.peek() != Some(b')')) {
                return None;
            }
        }
        Some(sides)
    }
}
