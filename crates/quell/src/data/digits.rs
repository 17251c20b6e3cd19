//! Handwritten digits that come with the library: 1797 images of 8 by 8 pixels. They are public, and here to try things on.
//!
//! E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, CC BY 4.0; the
//! copy is scikit-learn's. NOTICE has the particulars.

use std::io::Read;

use flate2::read::GzDecoder;

use super::{Dataset, Examples, Split, Targets};
use crate::Error;

/// 64 pixels from 0 to 16, then the digit, on each line.
static LINES: &[u8] = include_bytes!("../../data/digits.csv.gz");

const SIDE: usize = 8;
const DARKEST: u8 = 16;

/// The embedded digits, with about a fifth of them to test on, chosen by [`Split`]. Both parts are public.
///
/// ```
/// let digits = quell::data::digits()?;
/// assert_eq!(digits.train.shape(), [1, 8, 8]);
/// assert_eq!(digits.train.classes().map(<[String]>::len), Some(10));
/// # Ok::<(), quell::Error>(())
/// ```
pub fn digits() -> Result<Dataset, Error> {
    let mut text = String::new();
    GzDecoder::new(LINES).read_to_string(&mut text).map_err(|error| Error::io("digits".as_ref(), &error))?;
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers = line.split(',').filter_map(|number| number.parse::<u8>().ok());
        pixels.extend(numbers.clone().take(SIDE * SIDE));
        labels.extend(numbers.skip(SIDE * SIDE).map(u32::from));
    }
    let names = (0..10).map(|digit| digit.to_string()).collect();
    let all = Examples::bytes(&[1, SIDE, SIDE], pixels, DARKEST, Targets::Classes { labels, names })?;
    let (train, test) = all.split(Split { share: 0.2 })?;
    // Which of them train is public, too.
    let (train, test) = (train.renumbered(), Some(test.renumbered()));
    Ok(Dataset { name: "digits".into(), train, test, test_is_public: true })
}
