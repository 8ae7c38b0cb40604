//! What the components of these tests have in common.

use compflow_api::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the test components can be told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    pub(crate) mode: String,
}

impl Default for Params {
    fn default() -> Self {
        Self { mode: "fine".to_owned() }
    }
}

impl Params {
    pub(crate) fn act(&self) -> Result<()> {
        match self.mode.as_str() {
            "fail" => Err(Error::new("cannot")),
            "panic" => panic!("did not"),
            "cancel" => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

macro_rules! component {
    ($name:ident, $text:literal, $flags:expr) => {
        pub(crate) struct $name(pub(crate) Params);

        impl Component for $name {
            const NAME: &'static str = $text;
            const SUMMARY: &'static str = "for tests";
            const FLAGS: Flags = $flags;
            type Params = Params;

            fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
                if params.mode == "refuse" {
                    return Err(Error::parameter("mode", "cannot be `refuse`"));
                }
                Ok(Self(params))
            }
        }
    };
}

pub(crate) fn make<T: TryFrom<Instance, Error = Error>>(registration: &Registration, mode: &str) -> Result<T> {
    let component = registration.component()?;
    let params = serde_json::json!({ "mode": mode }).to_string();
    T::try_from(component.create(&params, &Services::none())?)
}
