//! The threads of one call: a pool of its own that ends with it, or just the calling thread.
//!
//! Work is cut into pieces that depend on the data only, and results come back in the order of the pieces, so
//! nothing that is computed from them depends on the number of threads.

use compflow_api::Result;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Who does the work.
pub struct Workers(Option<ThreadPool>);

impl Workers {
    /// The calling thread.
    pub fn alone() -> Self {
        Self(None)
    }

    /// This many threads; the calling one alone if the system does not grant them.
    pub fn new(threads: usize) -> Result<Self> {
        if threads <= 1 {
            return Ok(Self::alone());
        }
        Ok(Self(ThreadPoolBuilder::new().num_threads(threads).build().ok()))
    }

    /// Runs `work` as one of the threads, which makes every [`map`](Self::map) in it start sooner.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.0 {
            None => work(),
            Some(pool) => pool.install(work),
        }
    }

    /// The results of `work` on each of `pieces`, in their order; or an error of one of them.
    pub fn map<P: Send, T: Send>(
        &self,
        pieces: impl IntoIterator<Item = P>,
        work: impl Fn(P) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        match &self.0 {
            None => pieces.into_iter().map(work).collect(),
            Some(pool) => {
                let pieces: Vec<P> = pieces.into_iter().collect();
                pool.install(|| pieces.into_par_iter().map(work).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::Error;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_pieces() {
        for threads in [0, 1, 3] {
            let workers = Workers::new(threads).unwrap();
            let squares = workers.map(0..100, |at| Ok(at * at)).unwrap();
            assert_eq!(squares, (0..100).map(|at| at * at).collect::<Vec<i32>>());
            let failed = workers.map(0..100, |at| if at == 50 { Err(Error::Cancelled) } else { Ok(at) });
            assert_eq!(failed, Err(Error::Cancelled));
        }
    }
}
