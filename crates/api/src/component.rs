//! What all components have in common: a kind, a name, parameters.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Services, abi};

/// The four kinds of components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum Kind {
    /// Yields tables of embeddings.
    Loader = abi::KIND_LOADER,
    /// Predicts where a union lies.
    Composer = abi::KIND_COMPOSER,
    /// Finds the groups.
    Clusterer = abi::KIND_CLUSTERER,
    /// Scores groups against the truth.
    Evaluator = abi::KIND_EVALUATOR,
}

impl Kind {
    /// All kinds, in the order in which a pipeline uses them.
    pub const ALL: [Self; 4] = [Self::Loader, Self::Composer, Self::Clusterer, Self::Evaluator];

    /// The kind with this number on the boundary.
    pub fn from_raw(raw: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == raw)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loader => "loader",
            Self::Composer => "composer",
            Self::Clusterer => "clusterer",
            Self::Evaluator => "evaluator",
        })
    }
}

/// What a component needs and what it has, combined with [`and`](Self::and).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub(crate) u64);

impl Flags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// A clusterer that cannot work without a composer if the degree is above 1.
    pub const NEEDS_COMPOSER: Self = Self(abi::NEEDS_COMPOSER);
    /// A clusterer that is given the true sets, or an evaluator that cannot do without them.
    pub const NEEDS_TRUTH: Self = Self(abi::NEEDS_TRUTH);
    /// A clusterer whose composer must be differentiable.
    pub const NEEDS_GRADIENTS: Self = Self(abi::NEEDS_GRADIENTS);
    /// A loader that reads the file named by `path`.
    pub const NEEDS_PATH: Self = Self(abi::NEEDS_PATH);
    /// An evaluator that cannot do without embeddings.
    pub const NEEDS_EMBEDDINGS: Self = Self(abi::NEEDS_EMBEDDINGS);
    /// A clusterer that may assign an example to the empty set, "none of them".
    pub const ASSIGNS_NONE: Self = Self(abi::ASSIGNS_NONE);
    /// A composer that is differentiable: it implements [`Composer::vjp`](crate::Composer::vjp).
    pub const HAS_GRADIENTS: Self = Self(abi::HAS_GRADIENTS);
    /// A composer for which neither order nor grouping matters, but for rounding.
    pub const IS_ASSOCIATIVE: Self = Self(abi::IS_ASSOCIATIVE);
    /// A composer that composes whole sets itself: it implements [`Composer::sets`](crate::Composer::sets).
    pub const COMPOSES_SETS: Self = Self(abi::COMPOSES_SETS);
    /// A clusterer that makes use of weights.
    pub const USES_WEIGHTS: Self = Self(abi::USES_WEIGHTS);
    /// A clusterer that keeps to [known sets](crate::Task::seeds); one without it is not given any.
    pub const USES_SEEDS: Self = Self(abi::USES_SEEDS);
    /// A clusterer that can do without seeing the examples: it implements [`Clusterer::partial`](crate::Clusterer::partial),
    /// and asks [`Rows::reduce`](crate::Rows::reduce) where examples are [elsewhere](crate::Rows::is_elsewhere).
    pub const HAS_PARTIAL: Self = Self(abi::HAS_PARTIAL);

    /// All of them.
    const KNOWN: Self = Self::NEEDS_COMPOSER
        .and(Self::NEEDS_TRUTH)
        .and(Self::NEEDS_GRADIENTS)
        .and(Self::NEEDS_PATH)
        .and(Self::NEEDS_EMBEDDINGS)
        .and(Self::ASSIGNS_NONE)
        .and(Self::HAS_GRADIENTS)
        .and(Self::IS_ASSOCIATIVE)
        .and(Self::COMPOSES_SETS)
        .and(Self::USES_WEIGHTS)
        .and(Self::USES_SEEDS)
        .and(Self::HAS_PARTIAL);

    /// Those that another library declared.
    ///
    /// # Errors
    /// If one of them must be understood and is not.
    pub(crate) fn from_raw(raw: u64) -> Result<Self> {
        let unknown = raw & abi::FLAGS_TO_UNDERSTAND & !Self::KNOWN.0;
        if unknown != 0 {
            return Err(Error::new(format!(
                "has flags {unknown:#x} that this compflow does not understand: it needs a newer one"
            )));
        }
        Ok(Self(raw & Self::KNOWN.0))
    }

    /// Whether all of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a component is named, described and made. One of [`Loader`](crate::Loader), [`Composer`](crate::Composer),
/// [`Clusterer`](crate::Clusterer) and [`Evaluator`](crate::Evaluator) says what it does.
pub trait Component: Send + Sync + Sized + 'static {
    /// The name that pipeline files use: lower case.
    const NAME: &'static str;

    /// One line for lists.
    const SUMMARY: &'static str;

    /// Markdown for `compflow inspect`; if empty, the doc comment of [`Params`](Self::Params) is used.
    const DOCUMENTATION: &'static str = "";

    /// What it needs and what it has.
    const FLAGS: Flags = Flags::NONE;

    /// Its parameters. The type's doc comment is the component's documentation, a field's doc comment describes
    /// the parameter, `#[serde(default)]` makes it optional, `#[schemars(range(min = …, max = …))]` bounds it:
    /// all of that ends up in `compflow inspect`, and all of it has been checked when [`new`](Self::new) is called.
    /// Parameters without a default of their own have a `#[schemars(example = …)]` for the table to paste that
    /// `inspect` ends with. Named sets of values are [presets](crate::presets).
    type Params: DeserializeOwned + JsonSchema;

    /// Makes an instance. Checks what the type of the parameters cannot express; does no work on data.
    ///
    /// # Errors
    /// About a parameter: [`Error::parameter`].
    fn new(params: Self::Params, services: &Services<'_>) -> Result<Self>;

    /// What this instance needs and has, where that depends on the parameters: a wrapper of another component needs what
    /// that needs.
    fn flags(&self) -> Flags {
        Self::FLAGS
    }

    /// For clusterers and evaluators: the further columns of the data that this instance wants, by the names that the
    /// source has for them; `id` for the identifiers. `file`, `start` and `end`, where in a recording an example is, are those
    /// that the pipeline's `columns` name so, if they do.
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }
}

/// For components without parameters.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "")]
pub struct NoParams {}
