#[path = "../../../../docs/row.rs"]
mod page;

use std::path::PathBuf;

use compflow_api::{Embeddings, ForeignComposer, Registration, Sets, compose_sets, compose_sets_vjp};
use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

use self::page::row;
use super::*;
use crate::gradients::{self, numbers};

const P: usize = 6;

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A safetensors file in a folder of its own.
fn file(tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.safetensors");
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, data)| (*name, TensorView::new(*dtype, shape.to_vec(), data).unwrap()));
    std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    (folder, path)
}

fn weights(salt: u64) -> Vec<u8> {
    bytes(&numbers(P * P, salt))
}

fn bias(salt: u64) -> Vec<u8> {
    bytes(&numbers(P, salt))
}

fn complete() -> (TempDir, PathBuf) {
    file(&[
        ("linear1.weight", Dtype::F32, &[P, P], weights(11)),
        ("linear1.bias", Dtype::F32, &[P], bias(12)),
        ("linear2.weight", Dtype::F32, &[P, P], weights(13)),
        ("linear2.bias", Dtype::F32, &[P], bias(14)),
    ])
}

fn open(path: &std::path::Path) -> Result<Bilinear> {
    Bilinear::new(Params { weights: path.to_str().unwrap().to_owned() }, &Services::none())
}

fn refused(tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) -> String {
    let (_folder, path) = file(tensors);
    open(&path).unwrap_err().to_string()
}

/// Loops as the formula is written.
fn naive(left: &[f64], right: &[f64]) -> Vec<f64> {
    let [linear1, linear2] = [11, 13].map(|salt| numbers(P * P, salt));
    let [bias1, bias2] = [12, 14].map(|salt| numbers(P, salt));
    let mut out = vec![0.0; P];
    for row in 0..P {
        out[row] = 2.0 * f64::from(bias1[row]) + f64::from(bias2[row]);
        for column in 0..P {
            let (w1, w2) = (f64::from(linear1[row * P + column]), f64::from(linear2[row * P + column]));
            out[row] += w1 * left[column] + w1 * right[column] + w2 * left[column] * right[column];
        }
    }
    out
}

#[test]
fn composes_and_pulls_back_as_the_formula_says() {
    let (_folder, path) = complete();
    gradients::check(&open(&path).unwrap(), P, naive);
}

#[test]
fn the_batch_does_not_change_the_result() {
    let (_folder, path) = complete();
    let bilinear = open(&path).unwrap();
    let rows = 2 * BATCH + 3;
    let [left, right, grad] = [1, 2, 3].map(|salt| numbers(rows * P, salt));
    let run = |from: usize, to: usize| {
        let at = from * P..to * P;
        let mut out = vec![0.0; at.len()];
        let (mut grad_left, mut grad_right) = (out.clone(), out.clone());
        bilinear.compose(P, &left[at.clone()], &right[at.clone()], &mut out, &Services::none()).unwrap();
        bilinear
            .vjp(
                P,
                &left[at.clone()],
                &right[at.clone()],
                &grad[at],
                &mut grad_left,
                &mut grad_right,
                &Services::none(),
            )
            .unwrap();
        (out, grad_left, grad_right)
    };
    let whole = run(0, rows);
    for row in [0, 1, BATCH - 1, BATCH, rows - 1] {
        let (at, alone) = (row * P..(row + 1) * P, run(row, row + 1));
        assert_eq!(whole.0[at.clone()], alone.0);
        assert_eq!(whole.1[at.clone()], alone.1);
        assert_eq!(whole.2[at], alone.2);
    }
}

#[test]
fn nothing_composes_to_nothing() {
    let (_folder, path) = complete();
    let bilinear = open(&path).unwrap();
    bilinear.compose(P, &[], &[], &mut [], &Services::none()).unwrap();
    bilinear.vjp(P, &[], &[], &[], &mut [], &mut [], &Services::none()).unwrap();
}

#[test]
fn biases_may_be_missing() {
    let tensors = [
        ("linear1.weight", Dtype::F32, &[1, 1][..], bytes(&[2.0])),
        ("linear2.weight", Dtype::F32, &[1, 1][..], bytes(&[10.0])),
    ];
    let mut out = [0.0];
    let (_folder, path) = file(&tensors);
    open(&path).unwrap().compose(1, &[3.0], &[5.0], &mut out, &Services::none()).unwrap();
    assert_eq!(out, [2.0 * 3.0 + 2.0 * 5.0 + 10.0 * 15.0]);
}

#[test]
fn other_number_types_are_converted() {
    let types = [
        (Dtype::F64, (-1.5f64).to_le_bytes().to_vec()),
        (Dtype::F16, f16::from_f32(-1.5).to_le_bytes().to_vec()),
        (Dtype::BF16, bf16::from_f32(-1.5).to_le_bytes().to_vec()),
    ];
    for (dtype, data) in types {
        let (_folder, path) =
            file(&[("linear1.weight", dtype, &[1, 1], data.clone()), ("linear2.weight", dtype, &[1, 1], data)]);
        let mut out = [0.0];
        open(&path).unwrap().compose(1, &[1.0], &[2.0], &mut out, &Services::none()).unwrap();
        assert_eq!(out, [-1.5 * 3.0 - 1.5 * 2.0], "{dtype:?}");
    }
}

#[test]
fn a_file_that_does_not_do_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let missing = open(&folder.path().join("none.safetensors")).unwrap_err().to_string();
    assert!(
        missing.starts_with("`weights` cannot be used: ") && missing.contains("none.safetensors: "),
        "{missing}"
    );
    let text = folder.path().join("text");
    std::fs::write(&text, "not weights at all").unwrap();
    let text = open(&text).unwrap_err().to_string();
    assert!(text.contains("is not a safetensors file: "), "{text}");
}

#[test]
fn tensors_that_do_not_do_are_named() {
    assert_eq!(refused(&[]), "`weights` cannot be used: has no tensor `linear1.weight`; there are none");
    assert_eq!(
        refused(&[
            ("linear1.weight", Dtype::F32, &[P, P], weights(1)),
            ("linear2.wieght", Dtype::F32, &[P, P], weights(1)),
        ]),
        "`weights` cannot be used: has no tensor `linear2.weight`; there are `linear1.weight`, `linear2.wieght`"
    );
    assert_eq!(
        refused(&[("linear1.weight", Dtype::F32, &[P * P], weights(1))]),
        "`weights` cannot be used: tensor `linear1.weight` must be square, found the shape [36]"
    );
    assert_eq!(
        refused(&[
            ("linear1.weight", Dtype::F32, &[P, P], weights(1)),
            ("linear2.weight", Dtype::F32, &[P, P], weights(1)),
            ("linear2.bias", Dtype::F32, &[1], bytes(&[0.0])),
        ]),
        "`weights` cannot be used: tensor `linear2.bias` must have the shape [6], found [1]"
    );
    assert_eq!(
        refused(&[("linear1.weight", Dtype::F32, &[1, 1], bytes(&[f32::NAN]))]),
        "`weights` cannot be used: tensor `linear1.weight` has the value NaN at 0"
    );
    assert_eq!(
        refused(&[("linear1.weight", Dtype::F64, &[1, 1], 1e300f64.to_le_bytes().to_vec())]),
        "`weights` cannot be used: tensor `linear1.weight` has the value inf at 0"
    );
    assert_eq!(
        refused(&[("linear1.weight", Dtype::U8, &[1, 1], vec![1])]),
        "`weights` cannot be used: tensor `linear1.weight` must be F32, F64, F16 or BF16, found U8"
    );
}

#[test]
fn another_dimension_is_an_error() {
    let (_folder, path) = complete();
    let bilinear = open(&path).unwrap();
    let text = "the composer's weights are for embeddings of length 6, found 2";
    let composed = bilinear.compose(2, &[0.0; 6], &[0.0; 6], &mut [0.0; 6], &Services::none());
    assert_eq!(composed.unwrap_err().to_string(), text);
    let pulled = bilinear.vjp(2, &[0.0; 2], &[0.0; 2], &[0.0; 2], &mut [0.0; 2], &mut [0.0; 2], &Services::none());
    assert_eq!(pulled.unwrap_err().to_string(), text);
}

#[test]
fn works_across_the_boundary() {
    let (_folder, path) = complete();
    let component = Registration::composer::<Bilinear>().component().unwrap();
    let params = format!(r#"{{"weights": {:?}}}"#, path.to_str().unwrap());
    let foreign = component.create(&params, &Services::none()).unwrap();
    let (foreign, direct) = (ForeignComposer::try_from(foreign).unwrap(), open(&path).unwrap());
    assert_eq!(foreign.dim(), Some(P));
    let (rows, sets) = (numbers(5 * P, 1), Sets::all_up_to(5, 3));
    let rows = Embeddings::new(&rows, P);
    assert_eq!(
        compose_sets(&foreign, rows, &sets, &Services::none()).unwrap(),
        compose_sets(&direct, rows, &sets, &Services::none()).unwrap()
    );
    let grad = numbers(sets.len() * P, 2);
    assert_eq!(
        compose_sets_vjp(&foreign, rows, &sets, &grad, &Services::none()).unwrap(),
        compose_sets_vjp(&direct, rows, &sets, &grad, &Services::none()).unwrap()
    );
    let refused = component.create("{}", &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "`weights` is missing");
}

#[test]
fn weights_that_are_cut_off_are_refused() {
    let (_folder, path) = complete();
    let content = std::fs::read(&path).unwrap();
    let mut tried = 0;
    for cut in 0..50 {
        std::fs::write(&path, &content[..cut * content.len() / 50]).unwrap();
        let text = open(&path).unwrap_err().to_string();
        assert!(text.contains("is not a safetensors file"), "{cut}: {text}");
        tried += 1;
    }
    assert_eq!(row("weights that are cut off, refused"), [tried, tried, 0, 0]);
    std::fs::write(&path, &content).unwrap();
    assert!(open(&path).is_ok());
}
