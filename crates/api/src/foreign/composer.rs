//! A composer of some library.

use std::mem::ManuallyDrop;

use super::services::call;
use super::{Instance, foreign, required};
use crate::abi::*;
use crate::raw::lend_sets;
use crate::{Composer, Embeddings, Error, Flags, Result, Services, Sets};

foreign! {
    /// A [`Composer`] of some library.
    ForeignComposer, Composer, RawComposerMethods
}

/// A composer that the caller keeps.
///
/// # Safety
/// `raw` is a composer's instance that outlives the result.
pub(crate) unsafe fn borrow_composer(raw: RawInstance) -> Result<ManuallyDrop<ForeignComposer>> {
    // SAFETY: the caller vouches for the instance; it is not ended here, whatever comes of it.
    let instance = ManuallyDrop::new(unsafe { Instance::from_raw(raw) }?);
    let methods = ForeignComposer::methods_of(&instance)?;
    Ok(ManuallyDrop::new(ForeignComposer { instance: ManuallyDrop::into_inner(instance), methods }))
}

impl Composer for ForeignComposer {
    fn as_foreign(&self) -> Option<&ForeignComposer> {
        Some(self)
    }

    fn dim(&self) -> Option<usize> {
        self.try_dim().unwrap_or_default()
    }

    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()> {
        let compose = required(self.methods.compose, "compose")?;
        let rows = require_rows(dim, &[left.len(), right.len(), out.len()])?;
        // What is not written is not taken for a result.
        out.fill(f32::NAN);
        let (left, right, out) = (left.as_ptr(), right.as_ptr(), out.as_mut_ptr());
        call(services, |host| {
            // SAFETY: all three matrices have `rows` rows of `dim`.
            unsafe { compose(self.instance.raw, rows, dim as u64, left, right, out, host) }
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
        services: &Services<'_>,
    ) -> Result<()> {
        let vjp = self.methods.vjp.ok_or_else(|| self.without_gradients())?;
        let lens = [left.len(), right.len(), grad.len(), grad_left.len(), grad_right.len()];
        let rows = require_rows(dim, &lens)?;
        grad_left.fill(f32::NAN);
        grad_right.fill(f32::NAN);
        let (left, right, grad) = (left.as_ptr(), right.as_ptr(), grad.as_ptr());
        let (to_left, to_right) = (grad_left.as_mut_ptr(), grad_right.as_mut_ptr());
        call(services, |host| {
            // SAFETY: all five matrices have `rows` rows of `dim`.
            unsafe { vjp(self.instance.raw, rows, dim as u64, left, right, grad, to_left, to_right, host) }
        })
    }

    fn is_associative(&self) -> bool {
        self.instance.component.flags.contains(Flags::IS_ASSOCIATIVE)
    }

    fn composes_sets(&self) -> bool {
        self.instance.component.flags.contains(Flags::COMPOSES_SETS)
    }

    fn sets(&self, rows: Embeddings<'_>, sets: &Sets, out: &mut [f32], services: &Services<'_>) -> Result<()> {
        let compose_sets = required(self.methods.compose_sets, "compose_sets")?;
        require_sets(rows, sets, out.len())?;
        out.fill(f32::NAN);
        let (len, dim, sets) = (rows.len() as u64, rows.dim() as u64, lend_sets(sets));
        let (vectors, out) = (rows.values().as_ptr(), out.as_mut_ptr());
        call(services, |host| {
            // SAFETY: `out` has a row per set, and every set has rows of `vectors`.
            unsafe { compose_sets(self.instance.raw, len, dim, vectors, &sets, out, host) }
        })
    }

    fn sets_vjp(
        &self,
        rows: Embeddings<'_>,
        sets: &Sets,
        grad: &[f32],
        grad_rows: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()> {
        let vjp = self.methods.compose_sets_vjp.ok_or_else(|| self.without_gradients())?;
        require_sets(rows, sets, grad.len())?;
        require_rows(rows.dim(), &[rows.values().len(), grad_rows.len()])?;
        grad_rows.fill(f32::NAN);
        let (len, dim, sets) = (rows.len() as u64, rows.dim() as u64, lend_sets(sets));
        let (vectors, grad, grad_rows) = (rows.values().as_ptr(), grad.as_ptr(), grad_rows.as_mut_ptr());
        call(services, |host| {
            // SAFETY: `grad` has a row per set, `grad_rows` one per vector, and every set has rows of `vectors`.
            unsafe { vjp(self.instance.raw, len, dim, vectors, &sets, grad, grad_rows, host) }
        })
    }
}

impl ForeignComposer {
    /// The only dimension it works for, if it is not made for all.
    ///
    /// # Errors
    /// If it fails to say.
    pub fn try_dim(&self) -> Result<Option<usize>> {
        let Some(dim_of) = self.methods.dim else { return Ok(None) };
        let mut dim = 0;
        call(&Services::none(), |host| {
            // SAFETY: the instance is alive.
            unsafe { dim_of(self.instance.raw, host, &mut dim) }
        })?;
        Ok(Some(dim as usize).filter(|dim| *dim > 0))
    }

    fn without_gradients(&self) -> Error {
        Error::new(format!("the composer `{}` has no gradients", self.instance.component.name))
    }
}

/// The number of rows that all matrices have.
fn require_rows(dim: usize, lens: &[usize]) -> Result<u64> {
    if dim == 0 || !lens[0].is_multiple_of(dim) || lens.iter().any(|len| *len != lens[0]) {
        return Err(Error::new(format!("matrices of {lens:?} numbers are not equally many rows of {dim}")));
    }
    Ok((lens[0] / dim) as u64)
}

/// Whether the sets are of these rows, none of them empty, and `numbers` is a row for each.
fn require_sets(rows: Embeddings<'_>, sets: &Sets, numbers: usize) -> Result<()> {
    if numbers != sets.len() * rows.dim() {
        return Err(Error::new(format!("{numbers} numbers are not {} rows of {}", sets.len(), rows.dim())));
    }
    if sets.iter().any(|set| set.last().is_none_or(|&last| last as usize >= rows.len())) {
        return Err(Error::new(format!("a set is empty or names a row that {} rows do not have", rows.len())));
    }
    Ok(())
}

/// What a clusterer on the other side takes a composer as.
pub(super) fn lend_composer(composer: Option<&dyn Composer>) -> Result<Option<RawInstance>> {
    let Some(composer) = composer else { return Ok(None) };
    let foreign = composer
        .as_foreign()
        .ok_or_else(|| Error::new("only a composer that was created as a component can cross to a clusterer"))?;
    Ok(Some(foreign.instance.lend()))
}
