//! Converts one stored value as the annotation of its column says.

use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type},
    data_type::{ByteArray, FixedLenByteArray, Int96},
    schema::types::ColumnDescriptor,
};

use super::Text;
use crate::data::{Kind, formats::calendar};

/// The meaning of the stored values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Boolean,
    Signed,
    Unsigned,
    Float,
    /// A float of two bytes in IEEE 754.
    Half,
    /// An integer divided by 10 to the power of the scale.
    Decimal {
        scale: i32,
    },
    Text,
    Date,
    Time {
        per_second: i64,
    },
    Timestamp {
        per_second: i64,
    },
    Uuid,
    /// A column that is declared to be always null.
    Nothing,
}

impl Meaning {
    /// Returns the meaning of a column.
    ///
    /// Returns `None` if the column holds neither numbers nor text.
    pub(super) fn of(column: &ColumnDescriptor) -> Option<Self> {
        use ConvertedType as Old;
        use LogicalType as New;
        if column.max_rep_level() > 0 {
            return None;
        }
        let physical = column.physical_type();
        let plain = match physical {
            Type::BOOLEAN => Some(Self::Boolean),
            Type::INT32 | Type::INT64 => Some(Self::Signed),
            Type::FLOAT | Type::DOUBLE => Some(Self::Float),
            Type::INT96 => Some(Self::Timestamp { per_second: 1_000_000_000 }),
            Type::BYTE_ARRAY => Some(Self::Text),
            Type::FIXED_LEN_BYTE_ARRAY => None,
        };
        let decimal =
            || (column.type_precision() <= 38).then(|| Self::Decimal { scale: column.type_scale() });
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(New::Unknown), _) => Some(Self::Nothing),
            (Some(New::Float16), _) => Some(Self::Half),
            (Some(New::Uuid), _) => Some(Self::Uuid),
            (Some(New::Integer(int)), _) => Some(if int.is_signed { Self::Signed } else { Self::Unsigned }),
            (Some(New::Decimal(_)), _) | (None, Old::DECIMAL) => decimal(),
            (Some(New::Date), _) | (None, Old::DATE) => Some(Self::Date),
            (Some(New::Time(time)), _) => Some(Self::Time { per_second: per_second(time.unit) }),
            (Some(New::Timestamp(time)), _) => Some(Self::Timestamp { per_second: per_second(time.unit) }),
            (Some(New::String | New::Enum | New::Json), _) | (None, Old::UTF8 | Old::ENUM | Old::JSON) => {
                Some(Self::Text)
            }
            (None, Old::TIME_MILLIS) => Some(Self::Time { per_second: 1000 }),
            (None, Old::TIME_MICROS) => Some(Self::Time { per_second: 1_000_000 }),
            (None, Old::TIMESTAMP_MILLIS) => Some(Self::Timestamp { per_second: 1000 }),
            (None, Old::TIMESTAMP_MICROS) => Some(Self::Timestamp { per_second: 1_000_000 }),
            (None, Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64) => Some(Self::Unsigned),
            (None, Old::NONE | Old::INT_8 | Old::INT_16 | Old::INT_32 | Old::INT_64) => plain,
            _ => None,
        }
    }

    /// Returns whether numbers of this meaning may have a fraction, by declaration.
    pub(super) fn has_fractions(self) -> bool {
        matches!(self, Self::Float | Self::Half | Self::Decimal { .. })
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Boolean => Kind::Boolean,
            Self::Signed | Self::Unsigned | Self::Float | Self::Half | Self::Decimal { .. } => Kind::Number,
            Self::Text | Self::Date | Self::Time { .. } | Self::Timestamp { .. } | Self::Uuid => Kind::Text,
            Self::Nothing => Kind::Undeclared,
        }
    }
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::MILLIS => 1000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    }
}

/// A stored value. A value that does not fit the meaning is missing, and so is a non-finite number.
pub(super) trait Atom {
    fn number(&self, _: Meaning) -> Option<f64> {
        None
    }

    fn text(&self, _: Meaning) -> Option<Text> {
        None
    }

    /// Returns the bytes that identify a user exactly: the digits of an integer, or else the text.
    fn name(&self, meaning: Meaning) -> Option<Text> {
        self.text(meaning)
    }
}

impl Atom for bool {
    fn number(&self, meaning: Meaning) -> Option<f64> {
        (meaning == Meaning::Boolean).then(|| f64::from(u8::from(*self)))
    }

    fn text(&self, meaning: Meaning) -> Option<Text> {
        (meaning == Meaning::Boolean).then(|| Text::Written(self.to_string()))
    }
}

impl Atom for i32 {
    fn number(&self, meaning: Meaning) -> Option<f64> {
        match meaning {
            Meaning::Unsigned => Some(f64::from(*self as u32)),
            _ => i64::from(*self).number(meaning),
        }
    }

    fn text(&self, meaning: Meaning) -> Option<Text> {
        i64::from(*self).text(meaning)
    }

    fn name(&self, meaning: Meaning) -> Option<Text> {
        match meaning {
            Meaning::Unsigned => Some(Text::Written((*self as u32).to_string())),
            _ => i64::from(*self).name(meaning),
        }
    }
}

impl Atom for i64 {
    /// Rounds to the nearest f64 if the integer has more than 53 bits.
    fn number(&self, meaning: Meaning) -> Option<f64> {
        match meaning {
            Meaning::Signed => Some(*self as f64),
            Meaning::Unsigned => Some(*self as u64 as f64),
            Meaning::Decimal { scale } => decimal(i128::from(*self), scale),
            _ => None,
        }
    }

    fn text(&self, meaning: Meaning) -> Option<Text> {
        let written = match meaning {
            Meaning::Date => calendar::date(*self),
            Meaning::Time { per_second } => calendar::time(*self, per_second),
            Meaning::Timestamp { per_second } => calendar::timestamp(*self, per_second),
            _ => None,
        };
        written.map(Text::Written)
    }

    fn name(&self, meaning: Meaning) -> Option<Text> {
        match meaning {
            Meaning::Signed => Some(Text::Written(self.to_string())),
            Meaning::Unsigned => Some(Text::Written((*self as u64).to_string())),
            _ => self.text(meaning),
        }
    }
}

impl Atom for Int96 {
    /// Reads nanoseconds of the day, followed by the Julian day.
    fn text(&self, meaning: Meaning) -> Option<Text> {
        let &[low, high, day] = self.data() else { return None };
        let nanoseconds = i64::try_from(u64::from(high) << 32 | u64::from(low)).ok()?;
        let date = calendar::date(i64::from(day as i32) - 2_440_588)?;
        matches!(meaning, Meaning::Timestamp { .. })
            .then(|| Some(Text::Written(format!("{date} {}", calendar::time(nanoseconds, 1_000_000_000)?))))?
    }
}

impl Atom for f32 {
    fn number(&self, meaning: Meaning) -> Option<f64> {
        f64::from(*self).number(meaning)
    }
}

impl Atom for f64 {
    fn number(&self, meaning: Meaning) -> Option<f64> {
        (meaning == Meaning::Float && self.is_finite()).then_some(*self)
    }
}

impl Atom for ByteArray {
    fn number(&self, meaning: Meaning) -> Option<f64> {
        from_bytes(bytes(self), meaning)
    }

    fn text(&self, meaning: Meaning) -> Option<Text> {
        (meaning == Meaning::Text).then(|| Text::Stored(self.clone()))
    }
}

impl Atom for FixedLenByteArray {
    fn number(&self, meaning: Meaning) -> Option<f64> {
        from_bytes(bytes(self), meaning)
    }

    fn text(&self, meaning: Meaning) -> Option<Text> {
        match meaning {
            Meaning::Uuid => bytes(self).try_into().ok().map(uuid).map(Text::Written),
            Meaning::Text => Some(Text::Stored(ByteArray::clone(self))),
            _ => None,
        }
    }
}

fn bytes(array: &ByteArray) -> &[u8] {
    array.data()
}

/// Reads a big-endian two's complement integer of at most 16 bytes, or a half float.
fn from_bytes(bytes: &[u8], meaning: Meaning) -> Option<f64> {
    match (meaning, bytes) {
        (Meaning::Decimal { scale }, [first, ..]) if bytes.len() <= 16 => {
            let sign = if *first < 0x80 { 0 } else { -1 };
            decimal(bytes.iter().fold(sign, |value: i128, byte| value << 8 | i128::from(*byte)), scale)
        }
        (Meaning::Half, [low, high]) => half(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

/// Divides by 10 to the power of the scale.
///
/// The result is the f64 nearest to the decimal if both parts are exact: below 2⁵³, and a scale up to 22.
fn decimal(unscaled: i128, scale: i32) -> Option<f64> {
    Some(unscaled as f64 / 10_f64.powi(scale)).filter(|number| number.is_finite())
}

/// Decodes a half float: (-1)ˢ · 2ᵉ⁻²⁵ · (1024 + f), but (-1)ˢ · 2⁻²⁴ · f if e = 0; e = 31 is not finite.
fn half(bits: u16) -> Option<f64> {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        31 => return None,
        0 => fraction * 2_f64.powi(-24),
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    Some(if bits >> 15 == 0 { size } else { -size })
}

/// Formats a UUID as 8-4-4-4-12 hexadecimal digits.
fn uuid(bytes: [u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
