//! A composer of some library.

use std::mem::ManuallyDrop;

use super::services::call;
use super::{Instance, foreign, required};
use crate::abi::*;
use crate::{Composer, Error, Kind, Result, Services};

foreign! {
    /// A [`Composer`] of some library.
    ForeignComposer, Composer, RawComposerMethods
}

/// A composer that the caller keeps.
///
/// # Safety
/// `raw` is a composer's instance that outlives the result.
pub(crate) unsafe fn borrow_composer(raw: RawInstance) -> Result<ManuallyDrop<ForeignComposer>> {
    // SAFETY: the caller vouches for the instance; it is not ended here.
    let instance = ManuallyDrop::new(unsafe { Instance::from_raw(raw) }?);
    if instance.component.kind != Kind::Composer {
        return Err(Error::new(format!("`{}` was handed over as a composer", instance.component.name)));
    }
    Ok(ManuallyDrop::new(ForeignComposer(ManuallyDrop::into_inner(instance))))
}

impl Composer for ForeignComposer {
    fn as_foreign(&self) -> Option<&ForeignComposer> {
        Some(self)
    }

    fn dim(&self) -> Option<usize> {
        // SAFETY: the instance is alive.
        match unsafe { self.methods().dim?(self.0.raw) } {
            0 => None,
            dim => Some(dim as usize),
        }
    }

    fn compose(&self, dim: usize, left: &[f32], right: &[f32], out: &mut [f32]) -> Result<()> {
        let compose = required(self.methods().compose, "compose")?;
        let rows = require_rows(dim, &[left.len(), right.len(), out.len()])?;
        let (left, right, out) = (left.as_ptr(), right.as_ptr(), out.as_mut_ptr());
        call(&Services::none(), |host| {
            // SAFETY: all three matrices have `rows` rows of `dim`.
            unsafe { compose(self.0.raw, rows, dim as u64, left, right, out, host) }
        })
    }

    fn vjp(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
    ) -> Result<()> {
        let name = self.0.component.name;
        let vjp =
            self.methods().vjp.ok_or_else(|| Error::new(format!("the composer `{name}` has no gradients")))?;
        let lens = [left.len(), right.len(), grad.len(), grad_left.len(), grad_right.len()];
        let rows = require_rows(dim, &lens)?;
        let (left, right, grad) = (left.as_ptr(), right.as_ptr(), grad.as_ptr());
        let (grad_left, grad_right) = (grad_left.as_mut_ptr(), grad_right.as_mut_ptr());
        call(&Services::none(), |host| {
            // SAFETY: all five matrices have `rows` rows of `dim`.
            unsafe { vjp(self.0.raw, rows, dim as u64, left, right, grad, grad_left, grad_right, host) }
        })
    }
}

/// The number of rows that all matrices have.
fn require_rows(dim: usize, lens: &[usize]) -> Result<u64> {
    if dim == 0 || !lens[0].is_multiple_of(dim) || lens.iter().any(|len| *len != lens[0]) {
        return Err(Error::new(format!("matrices of {lens:?} numbers are not equally many rows of {dim}")));
    }
    Ok((lens[0] / dim) as u64)
}

/// What a clusterer on the other side takes a composer as.
pub(super) fn lend_composer(composer: Option<&dyn Composer>) -> Result<Option<RawInstance>> {
    let Some(composer) = composer else { return Ok(None) };
    let foreign = composer
        .as_foreign()
        .ok_or_else(|| Error::new("only a composer that was created as a component can cross to a clusterer"))?;
    Ok(Some(foreign.0.lend()))
}
