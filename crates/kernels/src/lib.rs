//! What the clusterers of this repository share. Plugins never depend on each other: what two of them need stands here.
//!
//! | module | holds |
//! | --- | --- |
//! | [`workers`] | the threads of one call |
//! | [`frame`] | how data are shifted and scaled before distances are taken by products |
//! | [`points`] | all examples so prepared |
//! | [`products`] | distances by products, in f32: the one inner loop that all comparisons with centres share |
//! | [`assign`] | the nearest centre of every example, and sums by centre |
//! | [`pairs`] | distances with every digit, in f64: of one pair, and of all |
//! | [`cholesky`] | the factor of Mahalanobis distances |
//! | [`counting`] | how many sets there are |
//! | [`weights`] | how much examples count |
//! | [`known`] | sets that are known beforehand |
//! | [`told`] | both of these, of all examples or of a batch |
//! | [`equals`] | which examples are equal |
//! | [`plusplus`] | seeding by greedy k-means++ |
//! | [`source`] | examples batch by batch, from memory or read anew, and a sample of them |
//! | [`elsewhere`] | passes over examples that are not here |
//! | [`lonely`] | which examples have no others near them |
//! | [`spares`] | the nearest composition of every example, and the nearest without one of its singletons |
//! | [`starts`] | where singletons begin |
//! | [`objective`] | the sum of squared distances as a function of the singletons, and its gradient |
//! | [`lbfgs`] | its descent |
//! | [`nested`] | what a component says that another one made |
//! | [`preference`] | the parameter of methods that choose exemplars |
//! | [`testing`] | data, plain loops and a watchful host, for tests |
//!
//! # Why not faer or a general matrix product
//!
//! Distances are products, and libraries multiply matrices faster than any loop here would. But a product of n examples
//! with k centres is n·k numbers that nobody wants: only the nearest centre is, or the best of a row. A matrix library
//! writes all of them to memory, to be read again for the comparison, which for p = 32 takes about as long as the
//! products. The loop in [`products`] hands its registers on to the comparison instead. It also adds up in the order of
//! the dimensions on every processor and for every number of rows, which no library promises, and on which it rests that
//! results are the same to the last bit for any number of threads and however a stream is cut. Shapes are small, too: a
//! few centres of some dozen dimensions, where packing and planning cost as much as the work. Where a whole product *is*
//! wanted (the trials of [`plusplus`], sums of weighted examples), it is that of `ndarray`, without a further dependency.

#![deny(unsafe_code)]

pub mod assign;
pub mod cholesky;
pub mod counting;
pub mod elsewhere;
pub mod equals;
pub mod frame;
pub mod known;
pub mod lbfgs;
pub mod lonely;
pub mod nested;
pub mod objective;
pub mod pairs;
pub mod plusplus;
pub mod points;
pub mod preference;
pub mod products;
pub mod source;
pub mod spares;
pub mod starts;
pub mod testing;
pub mod told;
pub mod weights;
pub mod workers;
