//! Embeds a small public dataset for trials: 1797 handwritten digits of 8 by 8 pixels.
//!
//! Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
//! Repository, CC BY 4.0. The copy is scikit-learn's. NOTICE has the details.

use std::io::Read;

use flate2::read::GzDecoder;

use crate::Error;
use crate::data::{Dataset, Examples, Split, Targets};

/// One digit on each line: 64 pixels from 0 to 16, then the label.
static LINES: &[u8] = include_bytes!("../../../data/digits.csv.gz");

const SIDE: usize = 8;
const DARKEST: u8 = 16;

/// Returns the embedded digits, about a fifth of them in the test part.
///
/// [`Split`] chooses the test part. Both parts are public.
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
    // The assignment of records to the two parts is public too.
    let (train, test) = (train.renumbered(), Some(test.renumbered()));
    Ok(Dataset { name: "digits".into(), train, test, test_is_public: true })
}
