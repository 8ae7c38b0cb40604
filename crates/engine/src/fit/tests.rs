//! Fitting on made-up unions whose g is known.

use compflow_api::{Composer, Normalize, Services, Sets, Space};
use ndarray::{Array2, s};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bilinear::Bilinear;
use super::classes::classes;
use super::design::{Design, predict};
use super::folds::{Fold, Folds};
use super::judge::{Judge, Judged};
use super::labelled::{Collector, Labelled};
use super::search::{self, Errors};
use crate::cancel::Cancel;
use crate::observer::{Observer, Silent};

/// How made-up data is made.
struct Made {
    dim: usize,
    labels: usize,
    degree: usize,
    examples: usize,
    noise: f32,
    trials: u32,
    /// Whether every trial has the same labels.
    again: bool,
    normalize: Normalize,
    seed: u64,
}

const MADE: Made = Made {
    dim: 4,
    labels: 9,
    degree: 2,
    examples: 5,
    noise: 0.0,
    trials: 1,
    again: false,
    normalize: Normalize::None,
    seed: 5,
};

/// A g with every kind of term.
fn planted(dim: usize) -> Bilinear {
    let mut g = Bilinear::scaled_sum(0.6, dim);
    for ((row, column), weight) in g.weights.indexed_iter_mut() {
        *weight += 0.1 * (((row * 7 + column * 5) % 11) as f32 - 5.0) / 5.0;
    }
    g.bias.iter_mut().enumerate().for_each(|(at, bias)| *bias = 0.2 * (at as f32 - 1.0));
    g
}

/// Labels at random places, and unions where `place` says: the composed vector goes in.
fn made(made: &Made, mut place: impl FnMut(Vec<f32>, &mut ChaCha8Rng) -> Vec<f32>) -> Labelled {
    let mut rng = ChaCha8Rng::seed_from_u64(made.seed);
    let space = Space { normalize: made.normalize, ..Space::default() };
    let mut collector = Collector::new(space);
    let g = planted(made.dim);
    let mut centres: Vec<f32> = Vec::new();
    for trial in 0..made.trials {
        if trial == 0 || !made.again {
            centres = (0..made.labels * made.dim).map(|_| rng.random_range(-2.0..2.0)).collect();
        }
        let rows = compflow_api::Embeddings::new(&centres, made.dim);
        let sets = Sets::all_up_to(made.labels, made.degree);
        let composed = compflow_api::compose_sets(&g, rows, &sets, &Services::none()).unwrap();
        for (set, centre) in sets.iter().zip(composed.chunks_exact(made.dim)) {
            let centre = if set.len() == 1 { centre.to_vec() } else { place(centre.to_vec(), &mut rng) };
            for _ in 0..made.examples {
                let row: Vec<f32> =
                    centre.iter().map(|value| value + made.noise * rng.random_range(-1.0..1.0f32)).collect();
                let names: Vec<String> = set.iter().map(ToString::to_string).collect();
                collector.push((1, trial), &row, 1.0, names.iter().map(String::as_str));
            }
        }
    }
    collector.finish().unwrap()
}

fn true_place(centre: Vec<f32>, _: &mut ChaCha8Rng) -> Vec<f32> {
    centre
}

fn random_place(centre: Vec<f32>, rng: &mut ChaCha8Rng) -> Vec<f32> {
    centre.iter().map(|_| rng.random_range(-2.0..2.0)).collect()
}

fn every(design: &Design) -> Vec<usize> {
    (0..design.weights.len()).collect()
}

/// λ, and how a g fitted with it is judged, beside the scaled sum and the sum.
fn judged(labelled: &Labelled) -> (f64, super::Composed) {
    let (design, folds) = (Design::new(labelled).unwrap(), Folds::new(labelled, 1));
    let progress = Silent.work("");
    let errors = Errors::new(labelled, &design, &folds, 2, &Cancel::new(), &*progress).unwrap();
    let fit = |fold: &Fold| design.fit(&fold.train).solve(errors.lambda_without(fold)).unwrap();
    let fits = folds.folds.iter().map(fit).collect();
    let judge = Judge::new(labelled, &folds, 1);
    let scaled = |fold: &Fold| design.fit(&fold.train).solve(f64::INFINITY).unwrap();
    let scaled = folds.folds.iter().map(scaled).collect();
    let sum = Bilinear::scaled_sum(1.0, labelled.dim);
    let found =
        [Judged::Fitted(fits), Judged::Fitted(scaled), Judged::One(&sum)].map(|g| judge.judge(&g).unwrap());
    let p = judge.exchanged(&found).unwrap().map(|p| p[0]);
    let described = super::describe("g", &found[0], &judge, labelled.spread(super::LabelSet::is_union));
    (search::best(&errors.curve()), super::Composed { p, ..described })
}

#[test]
fn a_planted_g_is_found_again() {
    for degree in [2, 3] {
        let labelled = made(&Made { degree, ..MADE }, true_place);
        let design = Design::new(&labelled).unwrap();
        let (g, planted) = (design.fit(&every(&design)).solve(1e-9).unwrap(), planted(4));
        let off = (&g.weights - &planted.weights)
            .iter()
            .chain((&g.bias - &planted.bias).iter())
            .fold(0.0f32, |a, b| a.max(b.abs()));
        assert!(off < 1e-3, "{degree}: {off}");
    }
}

#[test]
fn an_infinite_lambda_is_the_scaled_sum_and_a_large_one_is_near_it() {
    let labelled = made(&MADE, true_place);
    let design = Design::new(&labelled).unwrap();
    let ridge = design.fit(&every(&design));
    let sum = ridge.solve(f64::INFINITY).unwrap();
    assert_eq!(sum.weights, Bilinear::scaled_sum(ridge.scale, 4).weights);
    let far = ridge.solve(1e9).unwrap();
    assert!((&far.weights - &sum.weights).iter().all(|value| value.abs() < 1e-6));
    // c is that of least squares.
    let (mut product, mut square) = (0.0, 0.0);
    for (group, set) in labelled.unions() {
        let group = &labelled.groups[group];
        let set = &group.sets[set];
        for axis in 0..4 {
            let sum: f64 = set.members.iter().map(|&label| group.sets[label as usize].mean[axis]).sum();
            product += sum * set.mean[axis];
            square += sum * sum;
        }
    }
    assert!((ridge.scale - product / square).abs() < 1e-9);
}

#[test]
fn the_closed_form_is_the_least_of_what_it_minimises() {
    // Once with more unions than features, once with fewer, where the dual problem is solved.
    for labels in [9, 4] {
        let labelled = made(&Made { labels, noise: 0.3, ..MADE }, true_place);
        let design = Design::new(&labelled).unwrap();
        let ridge = design.fit(&every(&design));
        let g = ridge.solve(0.1).unwrap();
        // The same by gradient descent on the weights, which needs no linear algebra.
        let (p, groups) = (4, &labelled.groups);
        let rows: Vec<(Vec<f64>, Vec<f64>, &[f64])> = labelled
            .unions()
            .into_iter()
            .map(|(group, set)| {
                let set = &groups[group].sets[set];
                let mean = |at: usize| &groups[group].sets[set.members[at] as usize].mean;
                let sum = mean(0).iter().zip(mean(1)).map(|(a, b)| a + b).collect();
                (sum, mean(0).iter().zip(mean(1)).map(|(a, b)| a * b).collect(), &set.mean[..])
            })
            .collect();
        let square = |vector: &[f64]| vector.iter().map(|value| value * value).sum::<f64>();
        let sums: f64 = rows.iter().map(|row| square(&row.0)).sum();
        let products: f64 = rows.iter().map(|row| square(&row.1)).sum();
        let (s, t) = ((products / sums).sqrt(), (sums / (rows.len() * p) as f64).sqrt());
        let features: Vec<Vec<f64>> = rows
            .iter()
            .map(|(sum, product, _)| sum.iter().copied().chain(product.iter().map(|v| v / s)).chain([t]).collect())
            .collect();
        let lambda = 0.1 * (2.0 * sums + rows.len() as f64 * t * t) / (2 * p + 1) as f64;
        let mut v = Array2::<f64>::zeros((2 * p + 1, p));
        let step = 0.5 / (2.0 * sums + lambda);
        for _ in 0..60_000 {
            let mut gradient = v.mapv(|value| lambda * value);
            for (feature, (sum, _, target)) in features.iter().zip(&rows) {
                for output in 0..p {
                    let predicted: f64 = feature.iter().enumerate().map(|(at, f)| f * v[[at, output]]).sum();
                    let rest = predicted - (target[output] - ridge.scale * sum[output]);
                    feature.iter().enumerate().for_each(|(at, f)| gradient[[at, output]] += rest * f);
                }
            }
            v.scaled_add(-step, &gradient);
        }
        for output in 0..p {
            for input in 0..p {
                let own = if input == output { ridge.scale } else { 0.0 };
                assert!((f64::from(g.weights[[output, input]]) - own - v[[input, output]]).abs() < 1e-4);
                assert!((f64::from(g.weights[[output, p + input]]) - v[[p + input, output]] / s).abs() < 1e-4);
            }
            assert!((f64::from(g.bias[output]) - v[[2 * p, output]] * t).abs() < 1e-4);
        }
    }
}

#[test]
fn with_far_more_dimensions_than_unions_lambda_carries() {
    let labelled = made(&Made { dim: 40, labels: 5, noise: 0.1, ..MADE }, true_place);
    let design = Design::new(&labelled).unwrap();
    let g = design.fit(&every(&design)).solve(1e-4).unwrap();
    assert!(g.weights.iter().all(|weight| weight.is_finite()));
    assert_eq!(g.weights.slice(s![.., ..40]).dim(), (40, 40));
}

#[test]
fn larger_unions_are_fitted_without_the_smaller_ones() {
    let whole = made(&Made { degree: 3, labels: 7, ..MADE }, true_place);
    let mut groups = whole.groups;
    groups[0].sets.retain(|set| set.members.len() != 2);
    let labelled = Labelled { groups, ..whole };
    let design = Design::new(&labelled).unwrap();
    let g = design.fit(&every(&design)).solve(0.01).unwrap();
    let group = &labelled.groups[0];
    let (mut missed, mut all) = (0.0, 0.0);
    for (_, set) in group.unions() {
        let predicted = predict(&g, group, &Sets::from_iter([&set.members]), 4).unwrap();
        missed += super::labelled::squared(&predicted, &set.point);
        all += super::labelled::squared(&[0.0; 4], &set.point);
    }
    assert!(missed < 0.1 * all, "{missed} of {all}");
}

#[test]
fn composition_is_found_where_it_is_and_not_where_it_is_not() {
    for normalize in [Normalize::None, Normalize::L2] {
        let holds = made(&Made { noise: 0.1, normalize, ..MADE }, true_place);
        let (lambda, there) = judged(&holds);
        assert!(lambda < 1.0, "{lambda}");
        assert!(there.p.unwrap() < 0.01 && there.nearest > 0.8 && there.explained.unwrap() > 0.8, "{there:?}");
        let random = made(&Made { noise: 0.1, normalize, ..MADE }, random_place);
        let (_, none) = judged(&random);
        assert_eq!(super::judgement::holds(&none), Some(false), "{none:?}");
        assert!(none.miss.unwrap() > there.miss.unwrap());
    }
}

/// The coordinate-wise maximum, which goes along with any offset.
struct Largest;

impl Composer for Largest {
    fn compose(
        &self,
        _: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _: &Services<'_>,
    ) -> compflow_api::Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left.max(*right));
        Ok(())
    }
}

#[test]
fn composition_is_found_wherever_the_data_lies() {
    let of = |offset: f32, scale: f32, constant: f32| {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut collector = Collector::new(Space::default());
        let centres: Vec<[f32; 4]> = (0..7).map(|_| [(); 4].map(|()| rng.random_range(-2.0..2.0))).collect();
        for set in Sets::all_up_to(7, 2).iter() {
            for _ in 0..5 {
                let place =
                    |at: usize| set.iter().map(|&label| centres[label as usize][at]).fold(f32::MIN, f32::max);
                let mut row: Vec<f32> =
                    (0..4).map(|at| offset + scale * (place(at) + rng.random_range(-0.1..0.1))).collect();
                row.push(constant);
                let names: Vec<String> = set.iter().map(ToString::to_string).collect();
                collector.push((0, 0), &row, 1.0, names.iter().map(String::as_str));
            }
        }
        let labelled = collector.finish().unwrap();
        let folds = Folds::new(&labelled, 1);
        let judge = Judge::new(&labelled, &folds, 1);
        let found = [judge.judge(&Judged::One(&Largest)).unwrap()];
        let p = judge.exchanged(&found).unwrap().map(|p| p[0]);
        let described = super::describe("max", &found[0], &judge, labelled.spread(super::LabelSet::is_union));
        super::Composed { p, ..described }
    };
    let plain = of(0.0, 1.0, 0.0);
    for (offset, scale, constant) in
        [(1000.0, 1.0, 0.0), (10_000.0, 1.0, 0.0), (0.0, 1.0, 5000.0), (0.0, 1e-25, 0.0)]
    {
        let found = of(offset, scale, constant);
        assert_eq!(super::judgement::holds(&found), Some(true), "{offset} {scale} {constant}: {found:?}");
        let same = |a: f64, b: f64| (a - b).abs() < 0.05;
        assert!(same(found.nearest, plain.nearest), "{offset} {scale} {constant}: {found:?}");
        assert!(same(found.accuracy.unwrap(), plain.accuracy.unwrap()), "{offset} {scale} {constant}: {found:?}");
    }
}

#[test]
fn unions_at_random_places_are_not_believed_in() {
    for (dim, labels) in [(16, 8), (4, 8), (16, 6)] {
        let random = |seed| made(&Made { dim, labels, noise: 0.1, seed, ..MADE }, random_place);
        let believed = |seed: &u64| super::judgement::holds(&judged(&random(*seed)).1) == Some(true);
        let count = (0..200).filter(believed).count();
        assert!(count <= 2, "{count} of 200 with {labels} labels in {dim} dimensions");
    }
}

#[test]
fn unions_that_lie_by_a_member_are_not_believed_in() {
    let labelled = made(&Made { noise: 0.1, dim: 8, ..MADE }, true_place);
    // Every union goes to where its first member is.
    let mut groups = labelled.groups;
    let group = &mut groups[0];
    let places: Vec<_> = group.sets.iter().map(|set| (set.mean.clone(), set.point.clone())).collect();
    for set in group.sets.iter_mut().filter(|set| set.is_union()) {
        (set.mean, set.point) = places[set.members[0] as usize].clone();
    }
    let (_, found) = judged(&Labelled { groups, ..labelled });
    assert!(found.p.unwrap() < 0.05 && found.explained.unwrap() > 0.0, "{found:?}");
    assert_eq!(super::judgement::holds(&found), Some(false), "{found:?}");
}

#[test]
fn labels_that_come_again_in_other_trials_are_known_as_one_class() {
    let apart = Made { labels: 5, trials: 4, noise: 0.2, examples: 6, dim: 8, ..MADE };
    let classes_of = |labelled: &Labelled| classes(labelled).iter().flatten().max().map(|most| most + 1);
    assert_eq!(classes_of(&made(&apart, true_place)), Some(20));
    assert_eq!(classes_of(&made(&Made { again: true, ..apart }, true_place)), Some(5));
}

#[test]
fn what_is_held_out_was_not_seen() {
    let several = made(&Made { labels: 4, trials: 5, noise: 0.2, examples: 6, dim: 8, ..MADE }, true_place);
    let folds = Folds::new(&several, 1);
    assert!(folds.labels_unseen);
    let unions = several.unions();
    let members = |at: usize| {
        let (group, set) = unions[at];
        several.groups[group].sets[set].members.iter().map(move |&label| (group, label)).collect::<Vec<_>>()
    };
    let mut tested = vec![0; unions.len()];
    for fold in &folds.folds {
        for &test in &fold.test {
            tested[test] += 1;
            for &train in &fold.train {
                assert!(members(test).iter().all(|label| !members(train).contains(label)));
            }
        }
    }
    assert!(tested.iter().all(|times| *times == 1));
    // Three labels leave nothing to learn from, so only the union is held out.
    let few = made(&Made { labels: 3, ..MADE }, true_place);
    let folds = Folds::new(&few, 1);
    assert!(!folds.labels_unseen);
    assert!(folds.folds.iter().all(|fold| fold.train.len() == 2 && fold.test.len() == 1));
}

#[test]
fn weights_are_shares_and_what_counts_for_nothing_is_not_there() {
    let collected = |weight: f64, rows: &[(f32, f64)]| {
        let mut collector = Collector::new(Space::default());
        for (name, place) in [("a", 1.0), ("b", 2.0), ("c", 4.0)] {
            collector.push((0, 0), &[place], weight, [name].into_iter());
        }
        rows.iter()
            .for_each(|(row, times)| collector.push((0, 0), &[*row], weight * times, ["a", "b"].into_iter()));
        collector.push((0, 0), &[5.0], weight, ["a", "c"].into_iter());
        collector.finish().unwrap()
    };
    let union = |labelled: &Labelled| {
        let set = labelled.groups[0].find(&[0, 1]).unwrap();
        (set.point.clone(), set.count, labelled.spread(|_| true))
    };
    let plain = union(&collected(1.0, &[(3.0, 1.0), (3.0, 1.0), (6.0, 1.0)]));
    assert_eq!(plain, (vec![4.0], 3.0, Some(3.0)));
    assert_eq!(union(&collected(0.5, &[(3.0, 1.0), (3.0, 1.0), (6.0, 1.0), (99.0, 0.0)])), plain);
    let (point, count, _) = union(&collected(1.0, &[(3.0, 2.0), (6.0, 1.0)]));
    assert_eq!((point, count), (vec![4.0], 1.8));
}

#[test]
fn g_is_what_its_formula_says() {
    let g = planted(4);
    let mut out = [0.0; 4];
    g.compose(4, &[1.0, 2.0, 3.0, 4.0], &[0.5, -1.0, 2.0, 0.0], &mut out, &Services::none()).unwrap();
    let (sum, product) = ([1.5, 1.0, 5.0, 4.0], [0.5, -2.0, 6.0, 0.0]);
    for (row, out) in out.iter().enumerate() {
        let of = |from: usize, x: &[f32]| (0..4).map(|at| g.weights[[row, from + at]] * x[at]).sum::<f32>();
        assert!((out - (of(0, &sum) + of(4, &product) + g.bias[row])).abs() < 1e-5);
    }
}

#[test]
fn the_most_central_example_is_the_one_nearest_to_the_mean() {
    let mut collector = Collector::new(Space::default());
    let rows: [(f32, &[&str]); 7] = [
        (0.0, &["a"]),
        (1.0, &["a"]),
        (10.0, &["a"]),
        (5.0, &["b"]),
        (7.0, &["c"]),
        (6.0, &["a", "b"]),
        (8.0, &["a", "c"]),
    ];
    for (value, labels) in rows {
        collector.push((0, 0), &[value], 1.0, labels.iter().copied());
    }
    let labelled = collector.finish().unwrap();
    let group = &labelled.groups[0];
    let central: Vec<usize> = group.sets.iter().map(|set| group.most_central(set, 1)).collect();
    assert_eq!(central, [1, 3, 4, 5, 6]);
}
