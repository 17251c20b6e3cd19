//! Small pictures of what a model of images learned: centres of clusters, means and directions.

use quell::{features::Pca, learner::unsupervised::Clusters, run::Model};

/// A picture of red, green and blue pixels, row after row.
pub(crate) struct Picture {
    pub(crate) caption: String,
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// The most pictures of a section.
const MOST: usize = 50;
/// The smallest side of a picture. Shorter shapes are no images.
const SMALLEST: usize = 4;

impl Picture {
    /// The picture as a PNG file.
    pub(crate) fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(file)
    }
}

/// Channels, rows and columns of the model's records, if they are images as they were read.
fn image(model: &Model, width: usize) -> Option<[usize; 3]> {
    match model.shape[..] {
        [channels @ (1 | 3), rows, columns]
            if rows.min(columns) >= SMALLEST
                && channels * rows * columns == width
                && model.configuration.computed_features().is_raw() =>
        {
            Some([channels, rows, columns])
        }
        _ => None,
    }
}

/// A picture of numbers between `low` and `high`, with channels last.
fn grey_or_colour(
    [channels, height, width]: [usize; 3],
    numbers: &[f32],
    range: [f32; 2],
    caption: String,
) -> Picture {
    let [low, high] = range;
    let level = |number: f32| {
        let share = if high > low { (number - low) / (high - low) } else { 0.5 };
        (255.0 * share.clamp(0.0, 1.0)).round() as u8
    };
    let pixels = numbers.chunks_exact(channels).flat_map(|pixel| match *pixel {
        [red, green, blue] => [level(red), level(green), level(blue)],
        _ => [level(pixel[0]); 3],
    });
    Picture { caption, width, height, pixels: pixels.collect() }
}

/// A picture of weights: blue for positive ones, orange for negative ones, white for zero.
fn signed([channels, height, width]: [usize; 3], weights: &[f32], caption: String) -> Picture {
    const POSITIVE: [f32; 3] = [0.0, 114.0, 178.0];
    const NEGATIVE: [f32; 3] = [213.0, 94.0, 0.0];
    let sums: Vec<f32> = weights.chunks_exact(channels).map(|pixel| pixel.iter().sum()).collect();
    let largest = sums.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let pixels = sums.iter().flat_map(|sum| {
        let (ink, share) = (if *sum < 0.0 { NEGATIVE } else { POSITIVE }, (sum.abs() / largest).min(1.0));
        ink.map(|ink| (255.0 + share * (ink - 255.0)).round() as u8)
    });
    Picture { caption, width, height, pixels: pixels.collect() }
}

/// The smallest and the largest number.
fn ends(numbers: &[f32]) -> [f32; 2] {
    let numbers = numbers.iter().filter(|x| x.is_finite());
    numbers.fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], x| [low.min(*x), high.max(*x)])
}

/// The centres of clusters, if the records are images.
pub(crate) fn of_centres(model: &Model, clusters: &Clusters) -> Vec<Picture> {
    let Some(shape) = image(model, clusters.width) else { return Vec::new() };
    let range = ends(&clusters.centres);
    let centres = clusters.centres.chunks_exact(clusters.width).take(MOST).enumerate();
    centres
        .map(|(number, centre)| grey_or_colour(shape, centre, range, format!("cluster {}", number + 1)))
        .collect()
}

/// The mean and the directions, if the records are images.
pub(crate) fn of_directions(model: &Model, pca: &Pca) -> Vec<Picture> {
    let Some(shape) = image(model, pca.mean.len()) else { return Vec::new() };
    let mean = grey_or_colour(shape, &pca.mean, ends(&pca.mean), "mean".into());
    let directions = pca.components.chunks_exact(pca.mean.len()).take(MOST).enumerate();
    let pictures =
        directions.map(|(number, weights)| signed(shape, weights, format!("direction {}", number + 1)));
    std::iter::once(mean).chain(pictures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_levels_of_grey_and_weights_two_colours() {
        let grey = grey_or_colour([1, 1, 3], &[0.0, 0.5, 2.0], [0.0, 1.0], "a".into());
        assert_eq!(grey.pixels, [0, 0, 0, 128, 128, 128, 255, 255, 255]);
        let colour = grey_or_colour([3, 1, 1], &[0.0, 1.0, 0.5], [0.0, 1.0], "a".into());
        assert_eq!(colour.pixels, [0, 255, 128]);
        let weights = signed([1, 1, 3], &[-2.0, 0.0, 2.0], "a".into());
        assert_eq!(weights.pixels, [213, 94, 0, 255, 255, 255, 0, 114, 178]);
        assert!(weights.png().unwrap().starts_with(b"\x89PNG"));
    }
}
