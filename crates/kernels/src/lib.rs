//! What the clusterers of this repository share. Plugins never depend on each other: what two of them need stands here.
//!
//! | module | holds |
//! | --- | --- |
//! | [`workers`] | the threads of one call |
//! | [`points`] | examples prepared for distances by products |
//! | [`assign`] | the nearest centre of every example |
//! | [`equals`] | which examples are equal |
//! | [`plusplus`] | seeding by greedy k-means++ |
//! | [`nested`] | what a component says that another one made |
//! | [`preference`] | the parameter of methods that choose exemplars |
//! | [`testing`] | data, plain loops and a watchful host, for tests |

#![deny(unsafe_code)]

pub mod assign;
pub mod equals;
pub mod nested;
pub mod plusplus;
pub mod points;
pub mod preference;
pub mod testing;
pub mod workers;
