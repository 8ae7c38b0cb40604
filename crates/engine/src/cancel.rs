//! A token with which work that is no longer wanted is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Says whether work is still wanted. Clones are the same token.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicU32>);

impl Cancel {
    /// A token of work that is wanted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the end of the work. Returns how often that was asked for before.
    pub fn request(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the work is no longer wanted.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Whether both are the same token.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Non-zero once the work is no longer wanted: what components look at.
    pub(crate) fn flag(&self) -> &AtomicU32 {
        &self.0
    }
}
