//! Weights: an example that counts twice is as good as two.

use compflow_api::Error;

use super::*;

/// Planted examples with weights 1, 2 and 0 by turns, the same with each repeated as often, and where those come from.
fn repeated(planted: &Planted) -> (Vec<f32>, Vec<f32>, Vec<usize>) {
    let weights: Vec<f32> = (0..planted.truth.len()).map(|row| [1.0, 2.0, 0.0][row / 7 % 3]).collect();
    let rows: Vec<usize> =
        (0..weights.len()).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
    let values =
        rows.iter().flat_map(|row| &planted.values[row * planted.dim..][..planted.dim]).copied().collect();
    (weights, values, rows)
}

fn assert_same(weighted: &Clustering, repeated: &Clustering, rows: &[usize]) {
    let chosen: Sets = rows.iter().map(|&row| &weighted.assignments[row]).collect();
    assert_eq!(cri(&chosen, &repeated.assignments), 1.0);
    let (a, b) = (weighted.diagnostics.objective, repeated.diagnostics.objective);
    assert!((a - b).abs() < 1e-5 * b, "{a} {b}");
}

/// Each third of the first dimension, from -3 to 3, is a cluster.
struct Thirds;

impl Clusterer for Thirds {
    fn cluster(&self, task: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
        // What it is given are the weights of the examples that it is given.
        assert!(task.weights.is_none_or(|weights| weights.len() == task.embeddings.len()));
        let third = |row: &[f32]| [(row[0] / 2.0 + 1.5).clamp(0.0, 2.0) as u32];
        let assignments: Sets = task.embeddings.rows().map(third).collect();
        Ok(Clustering { assignments, clusters: Sets::singletons(&[0, 1, 2]), ..Clustering::default() })
    }
}

#[test]
fn from_the_same_start_a_weight_of_two_is_the_example_twice() {
    for (seed, g) in [(1, Plain::Sum), (2, Plain::Max), (3, Plain::bilinear(3, 5))] {
        let planted = plant(g, 3, 2, 3, 40, 1.5, seed);
        let (weights, values, rows) = repeated(&planted);
        let ckm = Ckm { params: Params { restarts: 1, ..params(3) }, initial: Some(Box::new(Thirds)) };
        for normalize in [Normalize::None, Normalize::L2] {
            let task = planted.task(normalize);
            let weighted = ckm.cluster(&Task { weights: Some(&weights), ..task }, &Services::none()).unwrap();
            let task = Task { embeddings: Embeddings::new(&values, 3), ..task };
            let repeated = ckm.cluster(&task, &Services::none()).unwrap();
            assert_same(&weighted, &repeated, &rows);
        }
    }
}

#[test]
fn whole_searches_find_the_same() {
    for (seed, g) in [(1, Plain::Sum), (3, Plain::bilinear(8, 5))] {
        let planted = plant(g, 5, 2, 8, 21, 0.1, seed);
        let (weights, values, rows) = repeated(&planted);
        let task = planted.task(Normalize::None);
        let weighted = Task { weights: Some(&weights), ..task };
        let found = cluster(&weighted, Params::new(5), &Services::none()).unwrap();
        let task = Task { embeddings: Embeddings::new(&values, 8), ..task };
        assert_same(&found, &cluster(&task, Params::new(5), &Services::none()).unwrap(), &rows);
        // Those that do not count are labelled all the same.
        assert_eq!(cri(&found.assignments, &planted.truth), 1.0);
        // Nor do batches matter.
        let ckm = Ckm::new(Params { stream: true, ..Params::new(5) }, &Services::none()).unwrap();
        assert_eq!(ckm.cluster_stream(&weighted.stream(), &Services::none()).unwrap(), found);
    }
}

#[test]
fn what_does_not_count_moves_nothing() {
    let mut planted = plant(Plain::Sum, 3, 2, 4, 30, 0.1, 2);
    let mut weights = vec![1.0; planted.truth.len()];
    let without = planted.cluster(Params::new(3), &Services::none()).unwrap();
    let counting = planted.values.len();
    weights.resize(weights.len() + 20, 0.0);
    for far in [1.0, 1e6, 1e25] {
        // Far away, where a start or a singleton without examples would go first.
        planted.values.truncate(counting);
        planted.values.extend([90.0 * far, -70.0 * far, 80.0 * far, 60.0 * far].repeat(20));
        let task = Task { weights: Some(&weights), ..planted.task(Normalize::None) };
        let found = cluster(&task, Params::new(3), &Services::none()).unwrap();
        let (a, b) = (found.diagnostics.objective, without.diagnostics.objective);
        assert!((a - b).abs() < 1e-4 * b, "{far}: {a} {b}");
        assert_eq!(found.assignments.len(), weights.len());
    }
}

#[test]
fn weights_that_cannot_be_are_refused() {
    let planted = plant(Plain::Sum, 3, 2, 4, 10, 0.1, 2);
    let refused = |weights: &[f32]| {
        let task = Task { weights: Some(weights), ..planted.task(Normalize::None) };
        cluster(&task, Params::new(3), &Services::none()).unwrap_err()
    };
    assert_eq!(refused(&[0.0; 60]).to_string(), "all weights are 0, so there is nothing to cluster");
    assert!(matches!(refused(&[f32::NAN; 60]), Error::Failed(_)));
    let mut two = [0.0; 60];
    two[..2].fill(1.0);
    assert_eq!(refused(&two).to_string(), "`k` = 3 is more than the 2 examples whose weight is not 0");
}
