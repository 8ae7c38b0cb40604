//! Tests of the loader `synthetic`, with a maximum of their own as the composer.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use compflow_api::{Host, Instance, Kind, NoParams, Registration};

use super::*;
use crate::testing::{concat, described_with, load_with, sets_of};

struct Max;

impl Component for Max {
    const NAME: &'static str = "max";
    const SUMMARY: &'static str = "";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for Max {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
            *out = left.max(*right);
        }
        Ok(())
    }
}

/// A host that has one composer.
struct WithMax;

impl Host for WithMax {
    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        if (kind, name) == (Kind::Composer, "max") {
            return Registration::composer::<Max>().component()?.create(params, &Services::none());
        }
        Err(Error::new(format!("no {kind} named `{name}`")))
    }
}

const ALL: LoadRequest<'static> =
    LoadRequest { path: None, columns: &[("embedding", "e"), ("truth", "t"), ("trial", "n"), ("id", "i")] };

fn services(seed: u64) -> Services<'static> {
    Services { host: &WithMax, seed, ..Services::none() }
}

fn drawn(params: &str, seed: u64) -> RecordBatch {
    concat(&load_with::<Synthetic>(params, &ALL, &services(seed)).unwrap())
}

fn refused(params: &str) -> String {
    load_with::<Synthetic>(params, &ALL, &services(0)).unwrap_err().to_string()
}

fn values(batch: &RecordBatch) -> &[f32] {
    batch["embedding"].as_fixed_size_list().values().as_primitive::<Float32Type>().values()
}

fn sets(batch: &RecordBatch) -> Sets {
    sets_of(&batch["truth"])
}

#[test]
fn the_same_seed_draws_the_same_data() {
    let data = drawn("{}", 7);
    assert_eq!(data, drawn("{}", 7));
    assert_eq!(data, drawn(r#"{"seed": 7}"#, 8));
    assert_ne!(values(&data), values(&drawn("{}", 8)));
}

#[test]
fn the_data_of_a_seed_never_changes() {
    // Whatever moves these numbers makes published results irreproducible.
    let data = drawn("{}", 0);
    assert_eq!(sets(&data).iter().take(4).collect::<Vec<_>>(), [&[2, 3][..], &[0, 4], &[1, 4], &[4]]);
    assert_eq!(values(&data)[..4], [0.40080243, 0.45948464, 0.80683774, 1.0671182]);
}

#[test]
fn sets_have_equally_many_examples_and_the_first_one_more() {
    let data = drawn(r#"{"n": 32, "k": 4, "degree": 2, "trials": 3}"#, 1);
    assert_eq!(data.num_rows(), 96);
    for trial in 0..3 {
        let trial = data.slice(32 * trial, 32);
        let mut counts = BTreeMap::new();
        for set in sets(&trial).iter() {
            *counts.entry((set.len(), set.to_vec())).or_insert(0) += 1;
        }
        assert!(counts.keys().map(|(_, set)| &set[..]).eq(Sets::all_up_to(4, 2).iter()));
        assert_eq!(counts.into_values().collect::<Vec<_>>(), [4, 4, 3, 3, 3, 3, 3, 3, 3, 3]);
    }
}

#[test]
fn trials_differ_and_rows_are_numbered_within_them() {
    let data = drawn(r#"{"n": 20, "trials": 2}"#, 1);
    let numbers = |name: &str| data[name].as_primitive::<UInt32Type>().values().to_vec();
    assert!(numbers("trial").into_iter().eq((0..40).map(|row| row / 20)));
    assert!(numbers("id").into_iter().eq((0..40).map(|row| row % 20)));
    let (first, second) = values(&data).split_at(20 * 32);
    assert_ne!(first, second);
    assert_ne!(sets(&data.slice(0, 20)), sets(&data.slice(20, 20)));
}

#[test]
fn examples_lie_around_their_composed_prototypes() {
    let data = drawn(r#"{"n": 6000, "dim": 8, "k": 3, "degree": 3, "noise": 0.5}"#, 3);
    let truth = sets(&data);
    let mean = |wanted: &[u32]| {
        let rows: Vec<&[f32]> = truth
            .iter()
            .zip(values(&data).chunks_exact(8))
            .filter(|(set, _)| *set == wanted)
            .map(|(_, row)| row)
            .collect();
        (0..8).map(|at| rows.iter().map(|row| row[at]).sum::<f32>() / rows.len() as f32).collect::<Vec<f32>>()
    };
    let exact = drawn(r#"{"n": 7, "dim": 8, "k": 3, "degree": 3, "noise": 0}"#, 3);
    let singletons: Vec<Vec<f32>> = (0..3).map(|k| mean(&[k])).collect();
    for (set, centre) in sets(&exact).iter().zip(values(&exact).chunks_exact(8)) {
        // 857 examples with σ 0.5: their mean has σ 0.017, and a maximum of three is off by hardly more.
        for at in 0..8 {
            let composed = set.iter().map(|k| singletons[*k as usize][at]).fold(f32::NEG_INFINITY, f32::max);
            assert!((composed - centre[at]).abs() < 0.1, "{set:?}: {composed} {}", centre[at]);
            assert!((mean(set)[at] - centre[at]).abs() < 0.1, "{set:?}");
        }
    }
}

#[test]
fn batches_and_columns_do_not_change_the_data() {
    let params = Params { n: 50, trials: 2, ..Default::default() };
    let loader = Synthetic::new(params, &services(0)).unwrap();
    let read = |request: &LoadRequest<'_>, rows| {
        concat(&loader.stream(request, 5, rows).collect::<Result<Vec<_>, _>>().unwrap())
    };
    let whole = read(&ALL, 1000);
    for rows in [1, 7, 50] {
        assert_eq!(read(&ALL, rows), whole, "{rows}");
    }
    let only = read(&LoadRequest { path: None, columns: &[("embedding", "x")] }, 11);
    assert_eq!(only, whole.project(&[0]).unwrap());
    assert_eq!(read(&LoadRequest { path: None, columns: &[("id", "x")] }, 11), whole.project(&[3]).unwrap());
}

#[test]
fn impossible_parameters_are_refused() {
    assert_eq!(refused(r#"{"n": 14}"#), "`n` = 14 examples are too few for the sets of up to 2 of 5");
    assert_eq!(
        refused(r#"{"k": 1000000000000, "degree": 1000000000000}"#),
        "`n` = 150 examples are too few for the sets of up to 1000000000000 of 1000000000000"
    );
    assert_eq!(refused(r#"{"noise": -1}"#), "`noise` must be a number at least 0.0, found -1");
    let text = refused(r#"{"composer": {"use": "min"}}"#);
    assert_eq!(text, "`composer` `min`: no composer named `min`");
    let text = refused(r#"{"composer": {"params": {"p": 1}}}"#);
    assert_eq!(text, "`composer.params.p` is not a parameter; there are none");
}

#[test]
fn what_will_be_drawn_is_known_and_what_will_not_be_is_refused() {
    let found = described_with::<Synthetic>(r#"{"n": 20, "dim": 3, "trials": 2}"#, &ALL, &services(0)).unwrap();
    assert_eq!((found.rows, found.dim), (Some(40), Some(3)));
    assert_eq!(found.names().unwrap(), COLUMNS);

    let columns = [("embedding", "e"), ("weight", "w"), ("column:height", "height"), ("column:trial", "trial")];
    let request = LoadRequest { path: None, columns: &columns };
    let refused = load_with::<Synthetic>("{}", &request, &services(0)).unwrap_err();
    let there = "which is not in synthetic data; there are `embedding`, `truth`, `trial`, `id`";
    assert_eq!(
        refused.to_string(),
        format!("`weight` names the column `w`, {there}\n`column:height` names the column `height`, {there}")
    );
    assert_eq!(described_with::<Synthetic>("{}", &request, &services(0)).unwrap_err(), refused);
    let request = LoadRequest { path: None, columns: &columns[3..] };
    let found = concat(&load_with::<Synthetic>(r#"{"n": 20, "trials": 2}"#, &request, &services(0)).unwrap());
    let trials = found["column:trial"].as_primitive::<UInt32Type>().values().to_vec();
    assert!(trials.into_iter().eq((0..40).map(|row| row / 20)));
}

#[test]
fn more_data_than_the_memory_holds_is_refused() {
    let services = Services { memory: 1 << 20, ..services(0) };
    let text = load_with::<Synthetic>(r#"{"n": 1000000}"#, &ALL, &services).unwrap_err().to_string();
    assert_eq!(text, "needs 3909 KiB of memory, over the budget of 1024 KiB; lower `n`, `k`, `degree` or `dim`");
}

#[test]
fn there_is_an_example_of_every_set_at_least() {
    let load = |n: usize| {
        let params = format!(r#"{{"n": {n}, "k": 5, "degree": 3}}"#);
        load_with::<Synthetic>(&params, &ALL, &services(0)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(load(25), Ok(()));
    assert_eq!(load(24).unwrap_err(), "`n` = 24 examples are too few for the sets of up to 3 of 5");
}
