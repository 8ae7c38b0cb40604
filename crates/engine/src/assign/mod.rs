//! New examples and the clusters of a finished run.
//!
//! An [`Assigner`] is made from one cell of a results folder: the sets that an example may be given to, and a point of the
//! space for each. It takes batches, holds no state, and may be used from any number of threads; [`assign_files`] does
//! that for files of any size.
//!
//! | the cell has | sets | points |
//! | --- | --- | --- |
//! | densities | those that have one | the likeliest: offset - ½‖F(x - u)‖² |
//! | centroids or exemplars | its clusters | its own centroids, or its composed exemplars |
//! | neither | its clusters | the mean of their members, in the space |
//!
//! A method that composes is also asked for unions that nobody had seen: all sets of up to the degree are composed of what
//! it says its singletons are, or of their exemplars.

mod assigner;
mod candidates;
mod cell;
mod detach;
mod likeliest;
mod nearest;
mod novel;
mod origin;
mod stream;
pub(crate) mod table;

pub use self::assigner::{AssignOptions, Assigned, Assigner, Basis};
pub use self::cell::{Cell, CellRequest};
pub(crate) use self::detach::self_contained;
pub(crate) use self::origin::{Examples, Origin};
pub use self::stream::{NewData, Tally, assign_files};
