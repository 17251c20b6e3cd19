//! The range of an axis, and the round numbers along it.

use super::Scale;

/// The range and the ticks of an axis.
pub(super) struct Frame {
    scale: Scale,
    low: f64,
    high: f64,
    /// Values and their labels.
    pub(super) ticks: Vec<(f64, String)>,
    /// Values between the ticks of a logarithmic axis, which have no label.
    pub(super) minor: Vec<f64>,
}

/// How closely a range follows the data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// From the first value to the last.
    Tight,
    /// From zero, or from one round number, to another.
    Loose,
    /// From a round number to another, as close as the values allow.
    Close,
}

/// Largest number of intervals between ticks.
const MAX_INTERVALS: f64 = 8.0;

impl Frame {
    /// The axis that contains all finite values, or all positive ones on a logarithmic scale.
    pub(super) fn around(scale: Scale, values: impl Iterator<Item = f64>, fit: Fit) -> Self {
        let visible = values.filter(|v| v.is_finite() && (scale == Scale::Linear || *v > 0.0));
        let (low, high) =
            visible.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        match scale {
            Scale::Linear => Self::linear(low, high, fit),
            Scale::Logarithmic => Self::logarithmic(low, high, fit),
        }
    }

    fn linear(low: f64, high: f64, fit: Fit) -> Self {
        // Axes of positive values start at zero, unless a tight range starts far from zero.
        let low = if low > 0.0 && (fit == Fit::Loose || low < 0.1 * high) { 0.0 } else { low };
        let high = match fit {
            _ if high > low => high,
            Fit::Close => low + 0.1 * low.abs().max(0.01),
            Fit::Tight | Fit::Loose => low + low.abs().max(1.0),
        };
        let step = nice_step((high - low) / MAX_INTERVALS);
        let (low, high) = match fit {
            Fit::Tight => (low, high),
            Fit::Loose | Fit::Close => {
                ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
            }
        };
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let ticks = (first..=last).map(|i| (i as f64 * step, plain(i as f64 * step, decimals))).collect();
        Self { scale: Scale::Linear, low, high, ticks, minor: Vec::new() }
    }

    fn logarithmic(low: f64, high: f64, fit: Fit) -> Self {
        let (low, high) = (low.log10(), high.log10());
        // Ranges below about three decades need ticks between the powers of ten.
        let marks: &[f64] = if high - low < 2.7 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all = || {
            let decades = (low.floor() as i32 - 1)..=(high.ceil() as i32 + 1);
            decades.flat_map(|decade| {
                marks.iter().map(move |mark| (f64::from(decade) + mark.log10(), decade, *mark))
            })
        };
        let (low, high) = match fit {
            Fit::Tight if high > low => (low, high),
            _ => (
                // A value that misses a tick by an invisible amount does not add another decade.
                all().map(|m| m.0).filter(|m| *m <= low + 0.02).fold(low.floor() - 1.0, f64::max),
                all()
                    .map(|m| m.0)
                    .filter(|m| *m >= high - 0.02 && *m > low + 0.02)
                    .fold(high.ceil() + 1.0, f64::min),
            ),
        };
        let decade_step =
            if marks.len() == 1 { ((high - low) / MAX_INTERVALS).ceil().max(1.0) as i32 } else { 1 };
        let visible = all().filter(|(place, decade, _)| {
            (low - 1e-9..=high + 1e-9).contains(place) && decade.rem_euclid(decade_step) == 0
        });
        let short = low > -2.1 && high < 4.1;
        let ticks: Vec<(f64, String)> =
            visible.map(|(place, decade, mark)| (10_f64.powf(place), power(mark, decade, short))).collect();
        // Where ticks skip whole decades, these are the others. Else they are the multiples of each decade.
        let between: &[f64] =
            if decade_step > 1 { &[1.0] } else { &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0] };
        let decades = (low.floor() as i32 - 1)..=(high.ceil() as i32);
        let places =
            decades.flat_map(|decade| between.iter().map(move |mark| f64::from(decade) + mark.log10()));
        let is_free = |place: &f64| ticks.iter().all(|(value, _)| (value.log10() - place).abs() > 1e-9);
        let minor = places
            .filter(|place| (low - 1e-9..=high + 1e-9).contains(place))
            .filter(is_free)
            .map(|place| 10_f64.powf(place))
            .collect();
        Self { scale: Scale::Logarithmic, low, high, ticks, minor }
    }

    /// The first and the last value of a linear axis.
    pub(super) fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Relative position of a value: 0 at the start of the axis, 1 at its end.
    ///
    /// None if the value has no position.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
        };
        let place = (at - self.low) / (self.high - self.low);
        place.is_finite().then_some(place.clamp(0.0, 1.0))
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor =
        [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

/// Formats a number with commas between thousands, or with an exponent if it is long.
fn plain(value: f64, decimals: usize) -> String {
    if value.abs() >= 1e7 || decimals > 5 {
        return quell_privacy::number::format_exact(format!("{value:.3e}").parse().unwrap_or(value));
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) { "-" } else { "" };
    fraction.map_or_else(|| format!("{sign}{grouped}"), |fraction| format!("{sign}{grouped}.{fraction}"))
}

/// Formats mark · 10^decade; without an exponent if `short`.
fn power(mark: f64, decade: i32, short: bool) -> String {
    match decade {
        0 => plain(mark, 0),
        1.. if short => plain(mark * 10_f64.powi(decade), 0),
        ..0 if short => plain(mark * 10_f64.powi(decade), (-decade) as usize),
        _ => {
            let raised: String = decade.to_string().chars().map(superscript).collect();
            if mark == 1.0 { format!("10{raised}") } else { format!("{mark}·10{raised}") }
        }
    }
}

/// The superscript of a digit or a minus sign.
fn superscript(c: char) -> char {
    match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        _ => c.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], fit: Fit) -> String {
        let frame = Frame::around(scale, values.iter().copied(), fit);
        frame.ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_numbers() {
        use Fit::{Loose, Tight};
        use Scale::{Linear, Logarithmic};
        assert_eq!(
            labels(Linear, &[1.0, 40_000.0], Tight),
            "0 5,000 10,000 15,000 20,000 25,000 30,000 35,000 40,000"
        );
        assert_eq!(labels(Linear, &[0.02, 2.03], Loose), "0.0 0.5 1.0 1.5 2.0 2.5");
        assert_eq!(labels(Linear, &[-10.0, 10.0], Tight), "-10 -5 0 5 10");
        assert_eq!(labels(Logarithmic, &[1e-10, 0.3], Loose), "10⁻¹⁰ 10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² 1");
        assert_eq!(labels(Logarithmic, &[1.0, 1000.0], Tight), "1 10 100 1,000");
        assert_eq!(labels(Logarithmic, &[0.3, 7.0], Loose), "0.2 0.5 1 2 5 10");
    }

    #[test]
    fn a_close_axis_fits_the_values() {
        assert_eq!(
            labels(Scale::Linear, &[91.2, 94.9], Fit::Close),
            "91.0 91.5 92.0 92.5 93.0 93.5 94.0 94.5 95.0"
        );
        assert_eq!(labels(Scale::Linear, &[76.0, 84.6], Fit::Close), "76 78 80 82 84 86");
        assert_eq!(
            labels(Scale::Linear, &[99.6, 100.0], Fit::Close),
            "99.60 99.65 99.70 99.75 99.80 99.85 99.90 99.95 100.00"
        );
    }

    #[test]
    fn a_logarithmic_axis_has_minor_ticks_between_its_labels() {
        let minor = |values: &[f64]| {
            Frame::around(Scale::Logarithmic, values.iter().copied(), Fit::Tight).minor.len()
        };
        // Eight in each of three decades; three ticks of a decade are labels where the range is short.
        assert_eq!(minor(&[1.0, 1000.0]), 24);
        assert_eq!(minor(&[1.0, 10.0]), 6);
        // Labels of twelve decades are two decades apart, with one tick between two of them.
        assert_eq!(minor(&[1e-12, 1.0]), 6);
        assert_eq!(Frame::around(Scale::Linear, [1.0, 2.0].into_iter(), Fit::Tight).minor.len(), 0);
    }

    #[test]
    fn every_finite_value_lies_on_the_axis() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [
                vec![],
                vec![0.0],
                vec![5.0],
                vec![1e-300, 1e300],
                vec![f64::NAN, f64::INFINITY, 3.0],
                vec![-1.0, 2.0],
            ] {
                let frame = Frame::around(scale, values.iter().copied(), Fit::Loose);
                assert!(frame.ticks.len() < 60, "{}", frame.ticks.len());
                for value in values.iter().filter(|v| v.is_finite() && (**v > 0.0 || scale == Scale::Linear))
                {
                    assert!(frame.place(*value).is_some(), "{value} of {values:?}");
                }
                assert_eq!(frame.place(f64::INFINITY), None);
            }
        }
    }
}
