//! Libraries and the components in them: finding, trusting, opening, and making them, and answering what they ask for.

pub(crate) mod factory;
pub mod library;
mod registry;
pub(crate) mod services;
pub mod trust;

pub use self::registry::{Entry, LibraryFile, Registry, State};
