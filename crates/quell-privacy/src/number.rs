//! Formatting of numbers for people, rounded so that statements stay true.

/// The direction in which a number is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// For numbers that must not be understated: upper bounds, noise.
    Up,
    /// For numbers that must not be overstated: lower bounds, sampling rates.
    Down,
}

/// Formats a number with `digits` significant digits, rounded in the given direction.
///
/// The number that is read back is never on the other side of `value`.
#[must_use]
pub fn format_rounded(value: f64, digits: usize, toward: Toward) -> String {
    if value.is_nan() {
        return "undefined".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "-∞" }.into();
    }
    if value == 0.0 {
        return "0".into();
    }
    if value < 0.0 {
        let mirrored = if toward == Toward::Up { Toward::Down } else { Toward::Up };
        return format!("-{}", format_rounded(-value, digits, mirrored));
    }
    let nearest = format!("{value:.*e}", digits - 1);
    let back: f64 = nearest.parse().unwrap_or(value);
    let (mantissa, exponent) = nearest.split_once('e').unwrap_or((&nearest, "0"));
    let mut mantissa: u64 = mantissa.replace('.', "").parse().unwrap_or(0);
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    let top = 10_u64.pow(digits as u32);
    match toward {
        Toward::Up if back < value => mantissa += 1,
        Toward::Down if back > value => mantissa -= 1,
        _ => {}
    }
    if mantissa == top {
        (mantissa, exponent) = (top / 10, exponent + 1);
    } else if mantissa < top / 10 {
        (mantissa, exponent) = (top - 1, exponent - 1);
    }
    spell(&mantissa.to_string(), exponent)
}

/// Formats d₁.d₂d₃… · 10^exponent, as a plain decimal if that is short.
fn spell(digits: &str, exponent: i32) -> String {
    let places = digits.len() as i32 - 1 - exponent;
    match exponent {
        -4..=-1 => format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..=6 if places <= 0 => format!("{digits}{}", "0".repeat(-places as usize)),
        0..=6 => {
            let (whole, fraction) = digits.split_at(digits.len() - places as usize);
            format!("{whole}.{fraction}")
        }
        _ if digits.len() == 1 => format!("{digits}e{exponent}"),
        _ => format!("{}.{}e{exponent}", &digits[..1], &digits[1..]),
    }
}

/// Formats at most six digits, for texts in which the exact number does not matter.
#[must_use]
pub fn format_brief(value: f64) -> String {
    format_exact(format!("{value:.5e}").parse().unwrap_or(value))
}

/// Formats a number with all its digits, with an exponent if that is shorter.
#[must_use]
pub fn format_exact(value: f64) -> String {
    let (plain, scientific) = (format!("{value}"), format!("{value:e}"));
    if plain.len() <= scientific.len() + 1 { plain } else { scientific }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_to_the_asked_side() {
        for (value, up, down) in [
            (5.193_397_3, "5.194", "5.193"),
            (5.193, "5.193", "5.193"),
            (0.999_96, "1.000", "0.9999"),
            (9.999_1, "10.00", "9.999"),
            (10.000_1, "10.01", "10.00"),
            (0.012_345_6, "0.01235", "0.01234"),
            (1.234_567e-7, "1.235e-7", "1.234e-7"),
            (12_341.2, "12350", "12340"),
            (1.000_01e300, "1.001e300", "1.000e300"),
            (f64::MIN_POSITIVE, "2.226e-308", "2.225e-308"),
            (0.1, "0.1000", "0.1000"),
            (0.0, "0", "0"),
            (-5.193_4, "-5.193", "-5.194"),
            (f64::INFINITY, "∞", "∞"),
        ] {
            assert_eq!(format_rounded(value, 4, Toward::Up), up, "{value} up");
            assert_eq!(format_rounded(value, 4, Toward::Down), down, "{value} down");
        }
    }

    #[test]
    fn a_rounded_number_reads_back_on_the_right_side_and_close() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            // Any bit pattern that is a positive normal number.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(state >> 1);
            if !value.is_normal() {
                continue;
            }
            let digits = 1 + (state % 6) as usize;
            let read = |toward| format_rounded(value, digits, toward).parse::<f64>().unwrap();
            let (up, down) = (read(Toward::Up), read(Toward::Down));
            assert!(down <= value && value <= up, "{down} ≤ {value} ≤ {up}");
            assert!(
                up == f64::INFINITY || up - down <= 1.1 * value * 10_f64.powi(1 - digits as i32),
                "{down} … {up}"
            );
        }
    }

    #[test]
    fn given_numbers_look_as_people_write_them() {
        for (value, text) in
            [(1e-5, "1e-5"), (0.01, "0.01"), (1.1, "1.1"), (1e6, "1e6"), (100.0, "100"), (2.5e-7, "2.5e-7")]
        {
            assert_eq!(format_exact(value), text);
        }
    }
}
