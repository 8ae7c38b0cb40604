//! Composers that break rules.

use compflow_api::{Component, Composer, Flags, NoParams, Result, Services, register};

use super::{calls, leak};

fn add(left: &[f32], right: &[f32], more: f32, out: &mut [f32]) {
    out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right + more);
}

component!(
    composer Careless,
    "careless",
    "leaves the last number of every batch alone, and has the gradients of something else",
    Flags::HAS_GRADIENTS,
    Ok(Self)
);

impl Composer for Careless {
    fn compose(&self, _dim: usize, left: &[f32], right: &[f32], out: &mut [f32]) -> Result<()> {
        let all = out.len() - 1;
        add(left, right, 0.0, &mut out[..all]);
        Ok(())
    }

    fn vjp(
        &self,
        _: usize,
        _: &[f32],
        _: &[f32],
        grad: &[f32],
        left: &mut [f32],
        right: &mut [f32],
    ) -> Result<()> {
        left.copy_from_slice(grad);
        right.fill(0.0);
        Ok(())
    }
}

component!(composer Erratic, "erratic", "another result every time, and memory is lost");

impl Composer for Erratic {
    fn compose(&self, _dim: usize, left: &[f32], right: &[f32], out: &mut [f32]) -> Result<()> {
        leak();
        add(left, right, calls() as f32, out);
        Ok(())
    }
}

component!(composer Brittle, "brittle", "panics on what is unusual");

impl Composer for Brittle {
    fn compose(&self, dim: usize, left: &[f32], right: &[f32], out: &mut [f32]) -> Result<()> {
        assert!(left.len() > dim, "too few");
        assert!(left.chunks(dim).any(|row| row != &left[..dim]), "the same again");
        assert!(left.iter().all(|value| value.abs() < 1e30), "too much");
        add(left, right, 0.0, out);
        Ok(())
    }
}
