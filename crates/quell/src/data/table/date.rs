//! Columns of dates: a declared range of days, which becomes numbers.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Error;

/// A column of dates, and the numbers that they become.
///
/// The day is a number: `from` is -1 and `to` is 1. Days beyond are clamped. A cell that is not a date is
/// missing. What follows a date in its cell, such as a time, is not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DateRange {
    /// The first day.
    pub from: Day,
    /// The last day.
    pub to: Day,
    /// Parts of the date that are categories, besides the day as a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<DatePart>,
    /// The order in which the cells have year, month and day.
    #[serde(default, skip_serializing_if = "DateOrder::is_usual")]
    pub order: DateOrder,
}

/// A part of a date that is a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatePart {
    /// The month: twelve categories.
    Month,
    /// The day of the week: seven categories, from Monday.
    Weekday,
}

/// The order of year, month and day in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DateOrder {
    /// Year, month, day: 2024-12-31.
    #[default]
    #[serde(rename = "year-month-day")]
    YearMonthDay,
    /// Day, month, year: 31.12.2024.
    #[serde(rename = "day-month-year")]
    DayMonthYear,
    /// Month, day, year: 12/31/2024.
    #[serde(rename = "month-day-year")]
    MonthDayYear,
}

impl DateOrder {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// A date in this order.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::YearMonthDay => "2024-12-31",
            Self::DayMonthYear => "31.12.2024",
            Self::MonthDayYear => "12/31/2024",
        }
    }

    /// Reads the date at the beginning of a cell, as days since 1 January 1970.
    ///
    /// Points, slashes, minus signs or spaces separate the three numbers. The year has four digits.
    pub(in crate::data) fn day(self, cell: &str) -> Option<Day> {
        let mut numbers = [0_u32; 3];
        let mut rest = cell.trim();
        let year_at = if self == Self::YearMonthDay { 0 } else { 2 };
        for (place, number) in numbers.iter_mut().enumerate() {
            if place > 0 {
                rest = rest.strip_prefix(['-', '/', '.', ' '])?;
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let is_valid = if place == year_at { digits == 4 } else { (1..=2).contains(&digits) };
            *number = rest.get(..digits).filter(|_| is_valid)?.parse().ok()?;
            rest = &rest[digits..];
        }
        let [year, month, day] = match (self, numbers) {
            (Self::YearMonthDay, numbers) => numbers,
            (Self::DayMonthYear, [day, month, year]) | (Self::MonthDayYear, [month, day, year]) => {
                [year, month, day]
            }
        };
        Day::new(year, month, day)
    }
}

impl DatePart {
    /// The names of the categories.
    pub(in crate::data) fn names(self) -> Vec<String> {
        match self {
            Self::Month => (1..=12).map(|month: u8| month.to_string()).collect(),
            Self::Weekday => {
                ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].iter().map(ToString::to_string).collect()
            }
        }
    }

    /// The place of a day among the categories.
    pub(in crate::data) fn index(self, day: Day) -> usize {
        match self {
            Self::Month => day.civil()[1] as usize - 1,
            // 1 January 1970 was a Thursday.
            Self::Weekday => (day.0 + 3).rem_euclid(7) as usize,
        }
    }
}

impl fmt::Display for DatePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Month => "month",
            Self::Weekday => "weekday",
        })
    }
}

/// A day of the Gregorian calendar, counted from 1 January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub struct Day(i32);

/// A day as settings write it: with or without quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Date(toml::value::Datetime),
}

impl Day {
    /// A day of the years 0 to 9999.
    #[must_use]
    pub fn new(year: u32, month: u32, day: u32) -> Option<Self> {
        if year > 9999 || !(1..=12).contains(&month) || day == 0 || day > month_length(year, month) {
            return None;
        }
        // A year begins in March here, so that 29 February is its last day.
        let (year, month) =
            if month > 2 { (year as i32, month as i32 - 3) } else { (year as i32 - 1, month as i32 + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        Some(Self(365 * year + leap_days + (153 * month + 2) / 5 + day as i32 - 1 - 719_468))
    }

    /// Days since 1 January 1970.
    #[must_use]
    pub fn number(self) -> i32 {
        self.0
    }

    /// The day at a number of days since 1 January 1970, rounded and within the years 0 to 9999.
    #[must_use]
    pub fn at(number: f64) -> Self {
        const FIRST: f64 = -719_528.0;
        const LAST: f64 = 2_932_896.0;
        Self(number.round().clamp(FIRST, LAST) as i32)
    }

    /// Year, month and day.
    fn civil(self) -> [i32; 3] {
        let days = self.0 + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        [year + era * 400 + next, month, day]
    }
}

fn month_length(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl FromStr for Day {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let day =
            Some(text).filter(|text| text.trim().len() == 10).and_then(|text| DateOrder::default().day(text));
        day.ok_or_else(|| Error::Setting {
            name: "a day",
            found: crate::error::quoted(text),
            expected: "year, month and day such as \"2024-12-31\"",
        })
    }
}

impl TryFrom<Written> for Day {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self, Error> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Date(date) => date.to_string().parse(),
        }
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day] = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_like_unix_days() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-18", 20_775),
            ("0000-01-01", -719_528),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(text.parse::<Day>().unwrap().number(), number, "{text}");
            assert_eq!(Day::at(f64::from(number)).to_string(), text);
        }
        for wrong in ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-01-32", "24-01-01", ""] {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_day_is_read_back_as_it_is_written() {
        for number in (-719_528..=2_932_896).step_by(11) {
            let day = Day(number);
            assert_eq!(day.to_string().parse::<Day>().unwrap(), day);
        }
    }

    #[test]
    fn cells_are_read_in_the_declared_order() {
        let day = Day::new(2024, 12, 31);
        for (order, cells) in [
            (DateOrder::YearMonthDay, ["2024-12-31", " 2024/12/31 10:00", "2024-12-31T23:59:59Z"]),
            (DateOrder::DayMonthYear, ["31.12.2024", "31/12/2024", "31-12-2024 10:00"]),
            (DateOrder::MonthDayYear, ["12/31/2024", "12-31-2024", "12.31.2024"]),
        ] {
            for cell in cells {
                assert_eq!(order.day(cell), day, "{cell}");
            }
        }
        for cell in ["", "x", "2024", "2024-12", "2024-12-", "31.12.24", "12024-12-31"] {
            assert_eq!(DateOrder::YearMonthDay.day(cell), None, "{cell}");
        }
        assert_eq!(DateOrder::DayMonthYear.day("12/31/2024"), None);
        assert_eq!(DateOrder::DayMonthYear.day("31.12.24"), None);
    }

    #[test]
    fn parts_of_a_date_are_its_month_and_weekday() {
        let day = Day::new(2026, 11, 18).unwrap();
        let named = |part: DatePart| part.names()[part.index(day)].clone();
        assert_eq!([named(DatePart::Month), named(DatePart::Weekday)], ["11", "Wed"]);
    }
}
