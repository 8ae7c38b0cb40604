//! `plugin_name`: a composer for compflow.

#![deny(unsafe_code)]

use compflow_api::{Component, Composer, Flags, Result, Services, export_library, register};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

export_library!();

/// `g(a, b) = scale · (a + b)`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// What sums are multiplied with.
    #[schemars(range(min = 0.0, max = 10.0))]
    scale: f32,
}

impl Default for Params {
    fn default() -> Self {
        Self { scale: 0.5 }
    }
}

struct PluginType(Params);
register!(composer PluginType);

impl Component for PluginType {
    const NAME: &'static str = "plugin_name";
    const SUMMARY: &'static str = "a multiple of the sum";
    const FLAGS: Flags = Flags::HAS_GRADIENTS; // leave out together with `vjp` if there are none
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Composer for PluginType {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
            *out = self.0.scale * (left + right);
        }
        Ok(())
    }

    fn vjp(
        &self,
        _dim: usize,
        _left: &[f32],
        _right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((grad, left), right) in grad.iter().zip(grad_left).zip(grad_right) {
            *left = self.0.scale * grad;
            *right = self.0.scale * grad;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{ForeignComposer, Registration};

    use super::*;

    /// As the host would use it, across the boundary.
    #[test]
    fn pairs_are_composed() {
        let component = Registration::composer::<PluginType>().component().unwrap();
        let made = component.create(r#"{"scale": 2.0}"#, &Services::none()).unwrap();
        let composer = ForeignComposer::try_from(made).unwrap();
        let mut out = [0.0; 4];
        let (left, right) = ([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0]);
        composer.compose(2, &left, &right, &mut out, &Services::none()).unwrap();
        assert_eq!(out, [2.0, 6.0, 6.0, 10.0]);
        let (mut to_left, mut to_right) = ([0.0; 2], [0.0; 2]);
        let grad = [1.0, -1.0];
        composer.vjp(2, &left[..2], &right[..2], &grad, &mut to_left, &mut to_right, &Services::none()).unwrap();
        assert_eq!((to_left, to_right), ([2.0, -2.0], [2.0, -2.0]));
    }
}
