//! How much memory the data takes that is being read, so that it is refused before it takes more than there is.

use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::files::human_bytes;

/// Bytes of a value beside its letters: where it was read to, in its trial, and in what finds out which values are the same.
pub(super) const VALUE: u64 = 32;
/// Bytes of a distinct label: its name, its number, and what finds them.
pub(super) const NAME: u64 = 160;
/// Bytes of a trial, its hashes and its lists, without what they hold.
pub(super) const TRIAL: u64 = 3 << 9;

/// What is held, by what it is of.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How much may be.
    most: u64,
    parts: Vec<(String, u64)>,
}

impl Held {
    /// Nothing yet, of which there may be so many bytes.
    pub(super) fn of_at_most(most: u64) -> Self {
        Self { most, parts: Vec::new() }
    }

    /// How much there may be.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    pub(super) fn add(&mut self, of: &str, bytes: u64) {
        match self.parts.iter_mut().find(|(known, _)| known == of) {
            Some((_, held)) => *held = held.saturating_add(bytes),
            None => self.parts.push((of.to_owned(), bytes)),
        }
    }

    /// All of it.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Refuses what is more than may be. `upto` says where in the data that is.
    ///
    /// # Errors
    /// Naming what takes most of it.
    pub(super) fn check(&self, upto: impl FnOnce() -> String) -> Result<()> {
        let (bytes, most) = (self.bytes(), human_bytes(self.most));
        match self.parts.iter().max_by_key(|(_, bytes)| *bytes) {
            Some((largest, _)) if bytes > self.most => {
                let text = format!("{} takes more than the memory budget of {most}", upto());
                let help = format!("a run may use more with --memory; most of it is for {largest}");
                Err(Error::fault(Cause::Memory, text).help(help))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused_by_what_takes_most_of_it() {
        let mut held = Held::of_at_most(1 << 20);
        held.add("the rows", 1 << 18);
        held.add("the trials", 1 << 18);
        held.add("the trials", 1 << 19);
        assert!(held.check(|| "all".to_owned()).is_ok());
        held.add("the rows", 1);
        let error = held.check(|| "row 7: what is read up to here".to_owned()).unwrap_err();
        let text = "row 7: what is read up to here takes more than the memory budget of 1.00 MiB";
        assert!(error.to_string().starts_with(text), "{error}");
        assert!(error.to_string().contains("most of it is for the trials"), "{error}");
    }
}
