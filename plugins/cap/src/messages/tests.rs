use compflow_api::Sets;
use compflow_kernels::testing::propagation;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const PREFERENCE: f64 = -0.8;

/// Random similarities of all examples to all sets, some of them -∞: in f64, and as the kernel has them.
fn random(n: usize, degree: usize, seed: u64) -> (Vec<f64>, Sets, Similarities) {
    let compositions = Sets::all_up_to(n, degree);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = Vec::new();
    for i in 0..n as u32 {
        for c in &mut compositions.iter() {
            values.push(match c {
                [k] if *k == i => PREFERENCE,
                [_] => f64::from(-rng.random::<f32>()),
                _ if c.contains(&i) || rng.random::<f32>() < 0.1 => f64::NEG_INFINITY,
                _ => f64::from(-rng.random::<f32>()),
            });
        }
    }
    let at = |set: &[u32]| compositions.iter().position(|c| c == set).unwrap();
    let similarities =
        Similarities::made_up(n, degree, |row, set| values[row * compositions.len() + at(set)] as f32);
    (values, compositions, similarities)
}

fn assert_near(found: &[f32], expected: impl Iterator<Item = f64>, tolerance: f64, context: &str) {
    let expected: Vec<f64> = expected.collect();
    let size = expected.iter().fold(1.0, |size, value| f64::max(size, value.abs()));
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!((f64::from(*found) - expected).abs() <= tolerance * size, "{context}, {at}: {found} {expected}");
    }
}

#[test]
fn they_are_those_of_the_papers_listing_damped_as_its_authors_do_or_not() {
    for (n, degree, seed) in
        [(2, 2, 0), (7, 1, 1), (6, 2, 2), (9, 2, 3), (20, 2, 4), (5, 3, 5), (9, 3, 6), (10, 3, 7)]
    {
        for damping in [0.0, 0.65, 0.85] {
            let (values, compositions, similarities) = random(n, degree, seed);
            let mut literal = literal::Cap::new(&values, &compositions, n, damping);
            let (preferences, noise) = (vec![PREFERENCE as f32; n], vec![0.0; n]);
            let mut messages = Messages::new(&similarities, &preferences, &noise, damping, Damped::Clipped);
            // The listing carries a constant per row that grows about 50-fold an iteration without damping, and digits go
            // with it.
            for iteration in 0..if damping > 0.0 { 7 } else { 5 } {
                literal.iterate();
                messages.pass(&Workers::alone(), &Services::none()).unwrap();
                let context = format!("n {n}, degree {degree}, damping {damping}, {iteration}");
                let (rho, delta) = messages.all();
                let expected = literal.a.iter().zip(&literal.a_bar).map(|(a, a_bar)| a - a_bar);
                assert_near(&delta, expected, 1e-5, &context);
                let sent = |at: usize| match at / n == at % n {
                    true => literal.h[at % n] - literal.b_bar[at],
                    false => literal.b[at] - literal.b_bar[at],
                };
                assert_near(&rho, (0..n * n).map(sent), 1e-5, &context);
            }
        }
    }
}

#[test]
fn they_are_those_of_plain_loops_damped_or_not_for_any_degree() {
    let cases = [
        (3, 2, 0.5),
        (12, 2, 0.65),
        (25, 2, 0.9),
        (11, 3, 0.65),
        (8, 4, 0.5),
        (7, 5, 0.65),
        (8, 7, 0.8),
        (8, 1, 0.5),
    ];
    for (seed, (n, degree, damping)) in cases.into_iter().enumerate() {
        let (values, compositions, similarities) = random(n, degree, seed as u64);
        let (preferences, noise) = (vec![PREFERENCE as f32; n], vec![0.0; n]);
        let mut messages = Messages::new(&similarities, &preferences, &noise, damping, Damped::Responsibilities);
        for iterations in 1..=30 {
            messages.pass(&Workers::alone(), &Services::none()).unwrap();
            let expected = naive::pass(&values, &compositions, n, damping, iterations);
            let (rho, delta) = messages.all();
            let context = format!("n {n}, degree {degree}, {iterations} iterations");
            assert_near(&rho, expected.responsibilities.into_iter(), 1e-5, &context);
            assert_near(&delta, expected.availabilities.into_iter(), 1e-5, &context);
        }
    }
}

#[test]
fn with_degree_1_they_are_those_of_affinity_propagation() {
    for (n, damping, seed) in [(5, 0.5, 1), (23, 0.65, 2), (40, 0.9, 3)] {
        let (values, _, similarities) = random(n, 1, seed);
        let (preferences, noise) = (vec![PREFERENCE as f32; n], vec![0.0; n]);
        let mut messages = Messages::new(&similarities, &preferences, &noise, damping, Damped::Responsibilities);
        for iterations in 1..=30 {
            messages.pass(&Workers::alone(), &Services::none()).unwrap();
            let expected = propagation::pass(&values, n, damping, iterations);
            let (rho, delta) = messages.all();
            assert_near(&rho, expected.responsibilities.into_iter(), 1e-5, "r");
            assert_near(&delta, expected.availabilities.into_iter(), 1e-5, "a");
        }
    }
}

#[test]
fn choices_are_the_highest_of_all_compositions() {
    for (n, degree, seed) in [(9, 2, 1), (8, 3, 2), (40, 2, 3)] {
        let (values, compositions, similarities) = random(n, degree, seed);
        let (preferences, noise) = (vec![PREFERENCE as f32; n], vec![0.0; n]);
        let mut messages = Messages::new(&similarities, &preferences, &noise, 0.5, Damped::Responsibilities);
        for _ in 0..20 {
            let delta = messages.all().1;
            let (net, _) = messages.pass(&Workers::alone(), &Services::none()).unwrap();
            let mut expected_net = 0.0;
            for (i, choice) in messages.choices.iter().enumerate() {
                let value = |c: usize| {
                    let sum: f64 = compositions[c].iter().map(|&k| f64::from(delta[i * n + k as usize])).sum();
                    values[i * compositions.len() + c] + sum
                };
                let best = (0..compositions.len()).map(value).fold(f64::NEG_INFINITY, f64::max);
                let chosen: Vec<u32> = match choice.segment {
                    SINGLE => vec![choice.first],
                    segment => {
                        let set = similarities.compositions.set(segment as usize, choice.first as usize);
                        set.map(|k| k as u32).collect()
                    }
                };
                let chosen = compositions.iter().position(|c| c == chosen).unwrap();
                assert!(value(chosen) >= best - 1e-5, "{} {best}", value(chosen));
                expected_net += values[i * compositions.len() + chosen];
            }
            assert!((net - expected_net).abs() < 1e-4);
        }
    }
}
