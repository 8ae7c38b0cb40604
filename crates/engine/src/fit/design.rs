//! g by ridge regression, in closed form.
//!
//! W₁, W₂ and β enter g linearly. A union of a and b is a row of features f = [a+b | (a∘b)/s | t], and of the target y: the
//! mean of the union's examples, since with squared errors nothing else of them matters. a and b are the means of the examples
//! that have these labels alone; s makes the two blocks equally long, and t is as long as a column of the first. In a space that
//! normalises, y has the direction of the mean of the normalised examples and the length of the mean as they are. Then
//!
//! ```text
//! min_V Σ_u w_u ‖V·f_u - (y_u - c·(a+b)_u)‖² + λ‖V‖²,    c = Σ w (a+b)·y / Σ w ‖a+b‖²
//! ```
//!
//! shrinks towards the scaled sum, which λ = ∞ is. Of three and more, G(c) = 1/|c| Σ_l g(G(c∖l), l), so the features are
//! the mean over l of those of the pair (G(c∖l), l); where c∖l occurs, the mean of its examples stands for G(c∖l), and where it
//! does not, what g predicts. That keeps the problem linear.
//!
//! An example of a union tells about g until the mean is known better than g can be: w = 1/(τ² + σ²/n), where σ² is the
//! variance within unions and τ² what the scaled sum misses beyond it. If examples have weights, means and variances are
//! weighted, and n is (Σw)²/Σw².
//!
//! A column that has the same value in all examples says nothing about unions, and a large one would settle c: it is no feature, and
//! g returns its value.
//!
//! Cost: with u unions and q = 2p + 1 features one factorisation of a matrix of min(u, q) rows per λ.

use compflow_api::{Composer, Embeddings, Services, Sets, compose_sets};
use ndarray::{Array1, Array2, ArrayView1, Axis, s};

use super::bilinear::Bilinear;
use super::labelled::{Group, Labelled, squared};
use super::linear;
use crate::error::{Error, Result};

/// How often g is fitted again to unions whose subsets do not occur, and with which λ.
const ROUNDS: usize = 3;
const FIRST_LAMBDA: f64 = 0.1;

/// Features and targets of all unions.
#[derive(Debug)]
pub(super) struct Design {
    /// Rows are multiplied by √w.
    features: Array2<f64>,
    targets: Array2<f64>,
    /// w, their mean being 1.
    pub(super) weights: Vec<f64>,
    /// s and t.
    product_scale: f64,
    constant: f64,
    /// The mean of the diagonal of FᵀF: λ is counted in it.
    unit: f64,
    /// Columns with the same value in all examples.
    constants: Vec<(usize, f32)>,
}

impl Design {
    /// Of the unions of `labelled`, in its order.
    ///
    /// # Errors
    /// If all means are zero.
    pub(super) fn new(labelled: &Labelled) -> Result<Self> {
        let unions = labelled.unions();
        let complete = unions.iter().all(|&(group, set)| {
            let group = &labelled.groups[group];
            shorter(&group.sets[set].members).all(|(subset, _)| group.find(&subset).is_some())
        });
        let sum = Bilinear::scaled_sum(1.0, labelled.dim);
        let mut design = Self::with(labelled, &unions, &sum)?;
        let every: Vec<usize> = (0..unions.len()).collect();
        for _ in 0..if complete { 0 } else { ROUNDS } {
            let g = design.fit(&every).solve(FIRST_LAMBDA)?;
            design = Self::with(labelled, &unions, &g)?;
        }
        design.weigh(labelled, &unions)?;
        Ok(design)
    }

    /// With `g` for the subsets that do not occur; all unions count the same.
    fn with(labelled: &Labelled, unions: &[(usize, usize)], g: &Bilinear) -> Result<Self> {
        let p = labelled.dim;
        let constants = labelled.constants();
        let varying = p - constants.len();
        let mut features = Array2::zeros((unions.len(), 2 * p + 1));
        let mut targets = Array2::zeros((unions.len(), p));
        for (at, &(group, set)) in unions.iter().enumerate() {
            let (group, mut row) = (&labelled.groups[group], features.row_mut(at));
            let set = &group.sets[set];
            // A pair is the same whichever comes last.
            let terms = if set.members.len() == 2 { 1 } else { set.members.len() };
            for (subset, last) in shorter(&set.members).take(terms) {
                let before = composed(group, &subset, g, p)?;
                for (at, (before, last)) in before.iter().zip(&group.sets[last as usize].mean).enumerate() {
                    row[at] += (before + last) / terms as f64;
                    row[p + at] += before * last / terms as f64;
                }
            }
            targets.row_mut(at).assign(&target(&set.mean, &set.point, labelled));
        }
        for &(at, _) in &constants {
            features.column_mut(at).fill(0.0);
            features.column_mut(p + at).fill(0.0);
            targets.column_mut(at).fill(0.0);
        }
        let square = |block: ndarray::ArrayView2<'_, f64>| block.iter().map(|value| value * value).sum::<f64>();
        let (sums, products) = (square(features.slice(s![.., ..p])), square(features.slice(s![.., p..2 * p])));
        if sums == 0.0 {
            return Err(Error::request(
                "the means of all labels are zero or cancel out, so nothing can be composed from them",
            ));
        }
        let product_scale = if products > 0.0 { (products / sums).sqrt() } else { 1.0 };
        let constant = (sums / (unions.len() * varying) as f64).sqrt();
        features.slice_mut(s![.., p..2 * p]).mapv_inplace(|value| value / product_scale);
        features.column_mut(2 * p).fill(constant);
        let unit = square(features.view()) / (2 * varying + 1) as f64;
        let weights = vec![1.0; unions.len()];
        Ok(Self { features, targets, weights, product_scale, constant, unit, constants })
    }

    /// c·(a + b), but for columns that are constant.
    pub(super) fn scaled_sum(&self, c: f64) -> Bilinear {
        let mut g = Bilinear::scaled_sum(c, self.targets.ncols());
        for &(at, value) in &self.constants {
            g.weights[[at, at]] = 0.0;
            g.bias[at] = value;
        }
        g
    }

    /// Weighs unions by how well their means are known.
    fn weigh(&mut self, labelled: &Labelled, unions: &[(usize, usize)]) -> Result<()> {
        let Some(spread) = labelled.spread(super::labelled::LabelSet::is_union) else { return Ok(()) };
        let every: Vec<usize> = (0..unions.len()).collect();
        let sum = self.fit(&every).solve(f64::INFINITY)?;
        let mut missed = 0.0;
        for &(group, set) in unions {
            let (group, set) = (&labelled.groups[group], &labelled.groups[group].sets[set]);
            let mut predicted = predict(&sum, group, &Sets::from_iter([&set.members]), labelled.dim)?;
            labelled.space.enter(&mut predicted, labelled.dim);
            missed += squared(&predicted, &set.point) - spread / set.count;
        }
        let missed = (missed / unions.len() as f64).max(0.0);
        let weight =
            |&(group, set): &(usize, usize)| 1.0 / (missed + spread / labelled.groups[group].sets[set].count);
        let weights: Vec<f64> = unions.iter().map(weight).collect();
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        self.weights = weights.iter().map(|weight| weight / mean).collect();
        for (at, weight) in self.weights.iter().enumerate() {
            self.features.row_mut(at).mapv_inplace(|value| value * weight.sqrt());
            self.targets.row_mut(at).mapv_inplace(|value| value * weight.sqrt());
        }
        let columns = self.features.ncols() - 2 * self.constants.len();
        self.unit = self.features.iter().map(|value| value * value).sum::<f64>() / columns as f64;
        Ok(())
    }

    /// What is needed of these unions to fit g with any λ.
    pub(super) fn fit(&self, unions: &[usize]) -> Ridge<'_> {
        let p = self.targets.ncols();
        let features = self.features.select(Axis(0), unions);
        let mut rest = self.targets.select(Axis(0), unions);
        let sums = features.slice(s![.., ..p]);
        let dot = |a: ndarray::ArrayView2<'_, f64>, b: ndarray::ArrayView2<'_, f64>| (&a * &b).sum();
        let length = dot(sums, sums);
        let scale = if length > 0.0 { dot(sums, rest.view()) / length } else { 0.0 };
        rest.scaled_add(-scale, &sums);
        let wide = features.nrows() < features.ncols();
        let (gram, right) = match wide {
            true => (features.dot(&features.t()), rest),
            false => (features.t().dot(&features), features.t().dot(&rest)),
        };
        Ridge { design: self, features: wide.then_some(features), gram, right, scale }
    }
}

/// The normal equations of some unions. With fewer unions than features, those of the dual problem: V = Fᵀ(FFᵀ + λ)⁻¹R.
#[derive(Debug)]
pub(super) struct Ridge<'a> {
    design: &'a Design,
    /// Needed by the dual problem only.
    features: Option<Array2<f64>>,
    gram: Array2<f64>,
    right: Array2<f64>,
    /// c.
    pub(super) scale: f64,
}

impl Ridge<'_> {
    /// g with a λ that is relative to the mean of the diagonal of FᵀF over all unions, so that it means the same however many of
    /// them are left out.
    ///
    /// # Errors
    /// If λ is so small that rounding errors are larger.
    pub(super) fn solve(&self, lambda: f64) -> Result<Bilinear> {
        let p = self.right.ncols();
        let mut g = self.design.scaled_sum(self.scale);
        if lambda == f64::INFINITY {
            return Ok(g);
        }
        let mut gram = self.gram.clone();
        gram.diag_mut().mapv_inplace(|value| value + lambda * self.design.unit);
        let solved = linear::solve(gram, self.right.clone()).ok_or_else(|| {
            Error::run(format!("the composer cannot be fitted with a λ of {lambda}: it is too small"))
        })?;
        let solved = self.features.as_ref().map_or_else(|| solved.clone(), |features| features.t().dot(&solved));
        for ((output, feature), weight) in g.weights.indexed_iter_mut() {
            let scale = if feature < p { 1.0 } else { self.design.product_scale };
            *weight += (solved[[feature, output]] / scale) as f32;
        }
        for (bias, value) in g.bias.iter_mut().zip(solved.row(2 * p)) {
            *bias += (value * self.design.constant) as f32;
        }
        match g.weights.iter().chain(&g.bias).all(|value| value.is_finite()) {
            true => Ok(g),
            false => {
                Err(Error::run("the embeddings are so large or so small that weights exceed 32 bits; scale them"))
            }
        }
    }
}

/// A set without one of its members, for every member.
fn shorter(members: &[u32]) -> impl Iterator<Item = (Vec<u32>, u32)> + '_ {
    (0..members.len()).map(|at| ([&members[..at], &members[at + 1..]].concat(), members[at]))
}

/// Where a set lies: the mean of its examples, or what g predicts.
fn composed(group: &Group, members: &[u32], g: &dyn Composer, dim: usize) -> Result<Vec<f64>> {
    if let Some(set) = group.find(members) {
        return Ok(set.mean.clone());
    }
    let predicted = predict(g, group, &Sets::from_iter([members]), dim)?;
    Ok(predicted.into_iter().map(f64::from).collect())
}

/// What g makes of the means of labels, as it is.
pub(super) fn predict(g: &dyn Composer, group: &Group, sets: &Sets, dim: usize) -> Result<Vec<f32>> {
    let composed = compose_sets(g, Embeddings::new(&group.singles, dim), sets, &Services::none());
    // Numbers that are finite themselves may leave the range of 32 bits when they are composed.
    Ok(composed.map_err(|error| error.help("scale embeddings whose numbers are very large"))?)
}

fn target(mean: &[f64], point: &[f64], labelled: &Labelled) -> Array1<f64> {
    let norm = |vector: &[f64]| vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    let length = norm(point);
    if labelled.space.normalize == compflow_api::Normalize::None || length == 0.0 {
        return Array1::from(mean.to_vec());
    }
    let scale = norm(mean) / length;
    ArrayView1::from(point).mapv(|value| value * scale)
}
