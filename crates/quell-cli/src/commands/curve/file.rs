//! Image files of curves.

use std::path::Path;

use anyhow::{Context, Result};
use quell_report::plot::Figure;

use crate::refusal::Refusal;

/// Format of an image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Svg,
    Png,
}

impl Kind {
    /// The format that belongs to a file extension.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => {
                let sentence =
                    format!("the output is {}, expected a name that ends in .svg or .png", path.display());
                Err(Refusal::new(sentence, "without --output the curve is drawn in the terminal").into())
            }
        }
    }

    /// Writes a figure to a file.
    pub(crate) fn write(self, figure: &Figure, path: &Path) -> Result<()> {
        let bytes = match self {
            Self::Svg => figure.svg().into_bytes(),
            Self::Png => figure.png()?,
        };
        std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_extension_chooses_the_format() {
        assert_eq!(Kind::of(Path::new("a/b.svg")).unwrap(), Kind::Svg);
        assert_eq!(Kind::of(Path::new("B.PNG")).unwrap(), Kind::Png);
        for path in ["plot", "plot.pdf", "svg", ".png", ""] {
            assert!(Kind::of(Path::new(path)).is_err(), "{path}");
        }
    }
}
