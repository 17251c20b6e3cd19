//! The messages of an ONNX file, in the wire format of protocol buffers.
//!
//! Only the fields that exported models use are here. The numbers of the fields are those of `onnx.proto`.

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The bytes of the message.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Adds a whole number.
    pub(super) fn number(mut self, field: u64, number: i64) -> Self {
        self.varint(field << 3);
        // A negative number is written as its two's complement.
        self.varint(number as u64);
        self
    }

    /// Adds a float.
    fn float(mut self, field: u64, number: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(number.to_le_bytes());
        self
    }

    /// Adds bytes.
    pub(super) fn data(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Adds a text.
    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.data(field, text.as_bytes())
    }

    /// Adds a message.
    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.data(field, &message.0)
    }
}

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Float = 1,
    Integer = 7,
    Text = 8,
    Double = 11,
}

impl Element {
    /// The number of the type in ONNX.
    pub(super) fn code(self) -> i64 {
        self as i64
    }
}

/// Writes a tensor of numbers, whose bytes are little-endian.
pub(super) fn tensor(name: &str, shape: &[usize], element: Element, bytes: &[u8]) -> Message {
    dims(shape).number(2, element.code()).text(8, name).data(9, bytes)
}

/// Writes a tensor of texts.
pub(super) fn texts(name: &str, shape: &[usize], texts: &[String]) -> Message {
    let start = dims(shape).number(2, Element::Text.code());
    texts.iter().fold(start, |tensor, text| tensor.text(6, text)).text(8, name)
}

fn dims(shape: &[usize]) -> Message {
    shape.iter().fold(Message::default(), |tensor, side| tensor.number(1, *side as i64))
}

/// A setting of a node.
#[derive(Clone, Debug)]
pub(super) enum Attribute {
    Float(f32),
    Integer(i64),
    Integers(Vec<i64>),
}

impl Attribute {
    /// Writes the setting.
    pub(super) fn message(&self, name: &str) -> Message {
        let start = Message::default().text(1, name);
        match self {
            Self::Float(number) => start.float(2, *number).number(20, 1),
            Self::Integer(number) => start.number(3, *number).number(20, 2),
            Self::Integers(numbers) => {
                numbers.iter().fold(start, |message, number| message.number(8, *number)).number(20, 7)
            }
        }
    }
}

/// Writes name, type and shape of an input or output. The first axis is the batch, of any length.
pub(super) fn value(name: &str, element: Element, shape: &[usize]) -> Message {
    let batch = Message::default().message(1, &Message::default().text(2, "batch"));
    let shape = shape
        .iter()
        .fold(batch, |message, side| message.message(1, &Message::default().number(1, *side as i64)));
    let tensor = Message::default().number(1, element.code()).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}
