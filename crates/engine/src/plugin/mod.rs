//! Libraries and the components in them: finding, trusting, opening, and making them, and answering what they ask for.

pub(crate) mod factory;
pub mod library;
mod registry;
mod rehearsal;
mod scan;
pub(crate) mod services;
pub mod trust;

pub use self::registry::{Entry, Known, LibraryFile, Registry, State};
pub use self::rehearsal::{Rehearsal, rehearse};
#[cfg(any(test, fuzzing))]
pub(crate) use self::scan::Kept;
pub use self::scan::{Answer, Answered, Asked, Content, DescribedComponent, Description, Scan, answered};
