//! The models: centres of clusters, and directions of components.

use rayon::prelude::*;

use crate::{
    Error,
    data::Examples,
    features::Pca,
    learner::{
        Evaluation, Prediction, Predictor,
        loss::Target,
        predictor::{Fitted, hash_numbers},
        supervised::gather,
        tensors::{Tensor, TensorFile, damaged},
    },
};

/// The centres of clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// Number of features.
    pub width: usize,
    /// The centres, one after the other, on the scale of the features.
    pub centres: Vec<f32>,
    /// The noisy number of records (or users) of each cluster, if it was released.
    pub sizes: Option<Vec<f64>>,
    /// Standard deviation of the noise in a size.
    pub size_noise: f64,
}

/// Directions of large variance.
#[derive(Clone, Debug, PartialEq)]
pub struct Components {
    /// The mean and the directions.
    pub pca: Pca,
    /// The released variances along all directions that were computed, largest first.
    ///
    /// They are those of records that were shortened to a released length, with noise.
    pub spectrum: Vec<f64>,
    /// The largest variance that noise alone would show.
    pub noise: f64,
}

/// Maps each example, in the order of the examples.
fn each<T: Send>(examples: &Examples, make: impl Fn(&[f32]) -> T + Sync) -> Vec<T> {
    let one = |record| {
        let mut example = vec![0.0; examples.width()];
        // As in training: images with channels last.
        gather(examples, record, &mut example);
        make(&example)
    };
    (0..examples.len()).into_par_iter().map(one).collect()
}

/// The squared distance between two points.
fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
}

impl Clusters {
    /// Number of clusters.
    #[must_use]
    pub fn count(&self) -> usize {
        self.centres.len() / self.width.max(1)
    }

    /// The nearest centre of an example, and the squared distance to it; `None` if it is not a number.
    fn nearest(&self, example: &[f32]) -> Option<(u32, f64)> {
        let centres = self.centres.chunks_exact(self.width).enumerate();
        let distances = centres.map(|(number, centre)| (number as u32, squared_distance(example, centre)));
        distances.filter(|(_, distance)| distance.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The cluster of each example; `None` where a feature is not a number.
    #[must_use]
    pub fn assignments(&self, examples: &Examples) -> Vec<Option<u32>> {
        each(examples, |example| self.nearest(example).map(|(cluster, _)| cluster))
    }

    /// The squared distance of each example to each centre.
    #[must_use]
    pub fn distances(&self, examples: &Examples) -> Vec<Vec<f32>> {
        each(examples, |example| {
            self.centres
                .chunks_exact(self.width)
                .map(|centre| squared_distance(example, centre) as f32)
                .collect()
        })
    }

    /// The mean squared distance to the nearest centre. The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        let distances = each(examples, |example| self.nearest(example).map_or(f64::NAN, |(_, d)| d));
        let count = distances.len();
        Evaluation::Clusters {
            // The sum of nothing is -0.
            inertia: (0.0 + distances.iter().sum::<f64>()) / count.max(1) as f64,
            count: count as u64,
        }
    }
}

impl Components {
    /// Number of components.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pca.variances.len()
    }

    /// The coordinates of each example along the components.
    #[must_use]
    pub fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        each(examples, |example| self.project(example))
    }

    fn project(&self, example: &[f32]) -> Vec<f32> {
        let directions = self.pca.components.chunks_exact(self.pca.mean.len().max(1));
        let along = |direction: &[f32]| {
            let terms = example.iter().zip(&self.pca.mean).zip(direction);
            terms.map(|((x, mean), q)| (f64::from(*x) - f64::from(*mean)) * f64::from(*q)).sum::<f64>() as f32
        };
        directions.map(along).collect()
    }

    /// The share of the variance about the mean of the examples that the components explain.
    ///
    /// The result is exact, not private.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        let variance = |rows: &[Vec<f32>]| -> f64 {
            let width = rows.first().map_or(0, Vec::len);
            (0..width)
                .map(|column| {
                    let mean = rows.iter().map(|row| f64::from(row[column])).sum::<f64>() / rows.len() as f64;
                    rows.iter().map(|row| (f64::from(row[column]) - mean).powi(2)).sum::<f64>()
                })
                .sum()
        };
        let all = variance(&each(examples, <[f32]>::to_vec));
        let explained = if all == 0.0 { 1.0 } else { variance(&self.scores(examples)) / all };
        Evaluation::Components { explained, count: examples.len() as u64 }
    }
}

impl Fitted for Clusters {
    fn weights(&self) -> &[f32] {
        &self.centres
    }

    fn tensors(&self) -> Vec<(String, Tensor)> {
        let mut tensors = vec![
            (CENTRES.into(), Tensor::shaped(&self.centres, vec![self.count(), self.width])),
            (NOISE.into(), Tensor::double(&[self.size_noise])),
        ];
        tensors.extend(self.sizes.as_ref().map(|sizes| (SIZES.into(), Tensor::double(sizes))));
        tensors
    }

    fn measure(&self) -> &'static str {
        "inertia"
    }

    fn evaluate(&self, examples: &Examples) -> Evaluation {
        self.evaluate(examples)
    }

    fn columns(&self) -> Vec<String> {
        vec!["cluster".into()]
    }

    fn targets(&self, examples: &Examples) -> Vec<Option<Target>> {
        self.assignments(examples).into_iter().map(|nearest| nearest.map(Target::Class)).collect()
    }

    fn predict(
        &self,
        examples: &Examples,
        _: &dyn Fn(Target) -> Option<Prediction>,
    ) -> Vec<Option<Prediction>> {
        let assigned = self.assignments(examples).into_iter();
        assigned.map(|nearest| nearest.map(|cluster| Prediction::Cluster(cluster + 1))).collect()
    }

    fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        self.distances(examples)
    }
}

impl Fitted for Components {
    fn weights(&self) -> &[f32] {
        &self.pca.components
    }

    fn tensors(&self) -> Vec<(String, Tensor)> {
        let Pca { mean, components, variances } = &self.pca;
        vec![
            (MEAN.into(), Tensor::single(mean)),
            (COMPONENTS.into(), Tensor::shaped(components, vec![self.count(), mean.len()])),
            (VARIANCES.into(), Tensor::double(variances)),
            (SPECTRUM.into(), Tensor::double(&self.spectrum)),
            (NOISE.into(), Tensor::double(&[self.noise])),
        ]
    }

    fn hash(&self, update: &mut dyn FnMut(&[u8])) {
        hash_numbers(self.pca.components.iter().chain(&self.pca.mean), update);
    }

    fn measure(&self) -> &'static str {
        "explained variance"
    }

    fn evaluate(&self, examples: &Examples) -> Evaluation {
        self.evaluate(examples)
    }

    fn columns(&self) -> Vec<String> {
        (1..=self.count()).map(|number| format!("component_{number}")).collect()
    }

    fn predict(
        &self,
        examples: &Examples,
        _: &dyn Fn(Target) -> Option<Prediction>,
    ) -> Vec<Option<Prediction>> {
        let is_finite = |scores: &Vec<f32>| scores.iter().all(|score| score.is_finite());
        let scores = self.scores(examples).into_iter();
        scores.map(|scores| Some(scores).filter(is_finite).map(Prediction::Coordinates)).collect()
    }

    fn scores(&self, examples: &Examples) -> Vec<Vec<f32>> {
        self.scores(examples)
    }
}

/// Names of the tensors in a model file.
const CENTRES: &str = "centres";
const SIZES: &str = "sizes";
const MEAN: &str = "mean";
const COMPONENTS: &str = "components";
const VARIANCES: &str = "variances";
const SPECTRUM: &str = "spectrum";
const NOISE: &str = "noise";

/// Reads a model of `width` features from the bytes of a model file.
pub(crate) fn restore(bytes: &[u8], width: usize) -> Result<Predictor, Error> {
    let file = TensorFile::of_model(bytes)?;
    let rows = |name: &str| {
        let values = file.single(name)?;
        let fits = !values.is_empty() && values.len().is_multiple_of(width.max(1));
        if fits { Ok(values) } else { Err(damaged(name)) }
    };
    let noise = file.double(NOISE)?.first().copied().ok_or_else(|| damaged(NOISE))?;
    if file.has(CENTRES) {
        let sizes = file.has(SIZES).then(|| file.double(SIZES)).transpose()?;
        let clusters = Clusters { width, centres: rows(CENTRES)?, sizes, size_noise: noise };
        if clusters.sizes.as_ref().is_some_and(|sizes| sizes.len() != clusters.count()) {
            return Err(damaged(SIZES));
        }
        return Ok(Predictor::Clusters(clusters));
    }
    let pca =
        Pca { mean: file.single(MEAN)?, components: rows(COMPONENTS)?, variances: file.double(VARIANCES)? };
    if pca.mean.len() != width || pca.variances.len() * width != pca.components.len() {
        return Err(damaged(COMPONENTS));
    }
    Ok(Predictor::Components(Components { pca, spectrum: file.double(SPECTRUM)?, noise }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{Schema, Targets},
        learner::{Method, PublicFacts, Subject, glm, naive_bayes},
        network::Architecture,
    };

    #[test]
    fn images_with_channels_are_measured_as_they_are_trained_on() {
        // Two images of three channels and two pixels, channels first.
        let values = vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.1, -0.2, -0.3, -0.4, -0.5, -0.6];
        let examples = Examples::numbers(&[3, 1, 2], values, Targets::Numbers(vec![0.0; 2])).unwrap();
        // The first image, channels last.
        let centres = vec![0.1, 0.3, 0.5, 0.2, 0.4, 0.6];
        let clusters = Clusters { width: 6, centres, sizes: None, size_noise: 0.0 };
        let distances = clusters.distances(&examples);
        assert!(distances[0][0] < 1e-12 && distances[1][0] > 1.0, "{distances:?}");
    }

    #[test]
    fn a_schema_of_other_features_is_refused_before_anything_is_paid() {
        let text = "[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n[[column]]\nname = 'a'\nbounds = [0, 1]\n";
        let schema = Schema::parse(text).unwrap();
        let facts = PublicFacts { records: Some(10), classes: Some(2) };
        let subject = Subject { shape: &[2], are_features: false, facts, schema: Some(&schema) };
        let mut recipe = naive_bayes::Recipe::default();
        recipe.privacy.epsilon = Some(1.0);
        let mut linear = glm::Recipe { privacy: recipe.privacy, ..glm::Recipe::default() };
        let refusals = [
            naive_bayes::NaiveBayes::plan(&mut recipe, &mut Architecture::default(), &subject).err(),
            glm::Glm::plan(&mut linear, &mut Architecture::default(), &subject).err(),
        ];
        for refusal in refusals {
            let refusal = refusal.unwrap().to_string();
            assert!(refusal.starts_with("the schema is of other features"), "{refusal}");
        }
    }
}
