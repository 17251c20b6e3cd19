//! Formats dates and times as text, year first, so that text order is chronological order.

/// Formats days since 1970-01-01 as `2024-02-29`, in the proleptic Gregorian calendar.
///
/// Returns `None` for a year that does not have four digits.
pub(in crate::data) fn date(days: i64) -> Option<String> {
    // If a year begins in March, its leap day is its last day. 400 years have 146097 days.
    // (H. Hinnant, chrono-Compatible Low-Level Date Algorithms)
    let days = days.checked_add(719_468)?;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (0..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Formats units since midnight as `23:59:59.5`.
///
/// A second has `per_second` units, a power of ten.
pub(in crate::data) fn time(units: i64, per_second: i64) -> Option<String> {
    let (seconds, fraction) = (units.div_euclid(per_second), units.rem_euclid(per_second));
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if !(0..=86_400).contains(&seconds) {
        return None;
    }
    if fraction == 0 {
        return Some(text);
    }
    let digits = per_second.ilog10() as usize;
    let fraction = format!("{fraction:0digits$}");
    // A shorter fraction sorts before a longer one that begins with it, as it should.
    Some(format!("{text}.{}", fraction.trim_end_matches('0')))
}

/// Formats units since 1970-01-01 00:00:00 as `2024-02-29 23:59:59.5`.
pub(in crate::data) fn timestamp(units: i64, per_second: i64) -> Option<String> {
    let per_day = 86_400 * per_second;
    let (day, rest) = (units.div_euclid(per_day), units.rem_euclid(per_day));
    Some(format!("{} {}", date(day)?, time(rest, per_second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(date(0).as_deref(), Some("1970-01-01"));
        assert_eq!(date(-1).as_deref(), Some("1969-12-31"));
        assert_eq!(date(11_016).as_deref(), Some("2000-02-29"));
        assert_eq!(date(19_782).as_deref(), Some("2024-02-29"));
        assert_eq!(date(19_783).as_deref(), Some("2024-03-01"));
        assert_eq!(date(-25_508).as_deref(), Some("1900-03-01"));
        assert_eq!(date(2_932_896).as_deref(), Some("9999-12-31"));
        assert_eq!(date(2_932_897), None);
        assert_eq!(date(-719_528).as_deref(), Some("0000-01-01"));
        assert_eq!(date(-719_529), None);
        assert_eq!((date(i64::MAX), date(i64::MIN)), (None, None));
    }

    #[test]
    fn the_order_of_timestamps_is_the_order_of_their_texts() {
        let moments = [
            -1_000_001,
            -1,
            0,
            1,
            100_000,
            120_000,
            999_999,
            1_000_000,
            86_400_000_000,
            1_709_251_199_000_000,
        ];
        let texts: Vec<_> = moments.iter().map(|units| timestamp(*units, 1_000_000)).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!(texts[0].as_deref(), Some("1969-12-31 23:59:58.999999"));
        assert_eq!(texts[5].as_deref(), Some("1970-01-01 00:00:00.12"));
        assert_eq!(texts[9].as_deref(), Some("2024-02-29 23:59:59"));
        assert_eq!((timestamp(i64::MAX, 1000), timestamp(i64::MIN, 1000)), (None, None));
    }
}
