//! Renders a figure with characters: Braille dots for curves, letters to tell curves apart.

use super::{Figure, ticks::Frame};

/// Columns of the plot; with labels the figure fits into 80 columns.
const COLUMNS: usize = 66;
const ROWS: usize = 20;

const MARKERS: [char; 6] = ['o', 'x', '+', '#', '*', '%'];

/// Renders the figure as lines that end in a newline.
pub(super) fn draw(figure: &Figure) -> String {
    let (x, y) = figure.frames();
    let mut sheet = Sheet { dots: vec![0; COLUMNS * ROWS], letters: vec![None; COLUMNS * ROWS] };
    for (number, series) in figure.series.iter().enumerate() {
        let places = series.points.iter().map(|point| {
            let value = Some(point.at(series.claim)).filter(|v| v.is_finite())?;
            Some((x.place(point.x)?, y.place(value)?))
        });
        sheet.curve(&places.collect::<Vec<_>>(), number);
    }
    let mut lines = vec![figure.title.clone(), wrapped(&figure.subtitle)];
    lines.extend(
        figure
            .series
            .iter()
            .zip(MARKERS.iter().cycle())
            // One curve needs no name besides the title.
            .filter(|_| figure.series.len() > 1)
            .map(|(series, marker)| format!("  {marker} {}", series.name)),
    );
    lines.extend([String::new(), figure.y.label.clone()]);
    frame(&mut lines, &sheet, &x, &y);
    let width = margin(&y) + 1 + COLUMNS;
    lines.push(format!("{:>width$}", figure.x.label));
    lines.join("\n") + "\n"
}

/// Wraps a sentence at its commas.
fn wrapped(sentence: &str) -> String {
    let mut lines = vec![String::new()];
    for part in sentence.split_inclusive(", ") {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + part.trim_end().chars().count() > 78 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(part);
        }
    }
    lines.iter().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// Number of columns left of the axis.
fn margin(y: &Frame) -> usize {
    y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0) + 1
}

fn frame(lines: &mut Vec<String>, sheet: &Sheet, x: &Frame, y: &Frame) {
    let margin = margin(y);
    let row_of = |place: f64| ((1.0 - place) * (ROWS - 1) as f64).round() as usize;
    for row in 0..ROWS {
        let tick = y.ticks.iter().find(|(value, _)| y.place(*value).map(row_of) == Some(row));
        let label = tick.map_or("", |(_, label)| label);
        let line: String = (0..COLUMNS).map(|column| sheet.cell(column, row)).collect();
        let axis = if tick.is_some() { '┤' } else { '│' };
        lines.push(format!("{label:>margin$}{axis}{line}").trim_end().to_owned());
    }
    let (mut marks, mut labels) = (vec!['─'; COLUMNS], vec![' '; COLUMNS + 8]);
    let mut first_free = 0;
    for (value, label) in &x.ticks {
        let Some(place) = x.place(*value) else { continue };
        let column = (place * (COLUMNS - 1) as f64).round() as usize;
        marks[column] = '┬';
        let count = label.chars().count();
        let start = column.saturating_sub(count / 2);
        // Skip a label that would touch its neighbour.
        if start >= first_free && start + count <= labels.len() {
            for (at, c) in label.chars().enumerate() {
                labels[start + at] = c;
            }
            first_free = start + count + 1;
        }
    }
    let indent = " ".repeat(margin);
    lines.push(format!("{indent}└{}", marks.iter().collect::<String>()));
    lines.push(format!("{indent} {}", labels.iter().collect::<String>()).trim_end().to_owned());
}

struct Sheet {
    /// Bits of Braille patterns.
    dots: Vec<u8>,
    letters: Vec<Option<char>>,
}

impl Sheet {
    fn curve(&mut self, places: &[Option<(f64, f64)>], number: usize) {
        let dot = |(x, y): (f64, f64)| (x * (2 * COLUMNS - 1) as f64, (1.0 - y) * (4 * ROWS - 1) as f64);
        let mut next = 4 + 5 * number;
        for pair in places.windows(2) {
            let (Some(from), Some(to)) = (pair[0].map(dot), pair[1].map(dot)) else { continue };
            let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().max(1.0) as usize;
            for step in 0..=steps {
                let t = step as f64 / steps as f64;
                let (x, y) = (
                    (from.0 + t * (to.0 - from.0)).round() as usize,
                    (from.1 + t * (to.1 - from.1)).round() as usize,
                );
                let cell = y / 4 * COLUMNS + x / 2;
                self.dots[cell] |= bit(x % 2, y % 4);
                if x / 2 >= next {
                    self.letters[cell] = Some(MARKERS[number % MARKERS.len()]);
                    next = x / 2 + 16;
                }
            }
        }
    }

    fn cell(&self, column: usize, row: usize) -> char {
        let at = row * COLUMNS + column;
        match (self.letters[at], self.dots[at]) {
            (Some(letter), _) => letter,
            (None, 0) => ' ',
            (None, dots) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
        }
    }
}

/// The bit of a dot in a Braille pattern. Unicode numbers the fourth row after the first three.
fn bit(x: usize, y: usize) -> u8 {
    1 << [[0, 1, 2, 6], [3, 4, 5, 7]][x][y]
}
