//! What a run and its workers say to one another.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use compflow_api::Level;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plan::Shares;
use crate::plan::cell::Cell;
use crate::run::row::Row;

/// The first thing that a worker is told: what is run, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The pipeline with everything laid over it, as JSON.
    pub(super) pipeline: String,
    /// Paths in it are relative to this folder.
    pub(super) folder: PathBuf,
    pub(super) only: Vec<String>,
    pub(super) shares: Shares,
    /// The results folder.
    pub(super) out: PathBuf,
    pub(super) fresh: bool,
    pub(super) strict: bool,
}

/// What a worker is told to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Compute {
        /// Of all orders to this worker, which one: its answer has the same number.
        number: u64,
        cell: Cell,
        /// The cell's key in the plan of the run: the worker's must be the same.
        key: String,
    },
    /// There is room for what the cell needs.
    GoOn,
}

/// What a worker tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// It has made its plan.
    Ready,
    /// It cannot, and why.
    Unable(String),
    Log(u32, String, String),
    Error(String, String),
    /// A piece of work of this number has begun.
    Work(u64, String),
    Advanced(u64, u64, u64),
    WorkEnded(u64),
    /// A component is called, under this number.
    Calling(u64, String),
    Returned(u64),
    /// A cell needs so many bytes, more than its share, and waits.
    Needs(u64, String),
    /// What became of the cell of this order. The worker is spent if it must not compute another.
    Ended {
        number: u64,
        row: Box<Row>,
        spent: bool,
    },
}

/// Levels as numbers.
pub(super) fn number(level: Level) -> u32 {
    level as u32
}

/// The level of a number.
pub(super) fn level(number: u32) -> Level {
    [Level::Debug, Level::Info].into_iter().find(|level| *level as u32 == number).unwrap_or(Level::Warn)
}

/// Exit code of a worker that cannot say what it does any more.
pub(super) const SPEECHLESS: i32 = 99;

/// What everything begins with that is said: a component may write into whatever it finds open.
const MARK: [u8; 8] = *b"compflow";
/// Bytes that nothing takes that is said.
const MOST: u64 = 1 << 32;

/// Writes something with its length before it.
///
/// # Errors
/// If nobody reads it any more.
pub(super) fn write<T: Serialize>(mut out: impl Write, value: &T) -> io::Result<()> {
    let payload = postcard::to_stdvec(value).map_err(io::Error::other)?;
    let mut frame = MARK.to_vec();
    frame.extend((payload.len() as u64).to_le_bytes());
    frame.extend(payload);
    out.write_all(&frame)
}

/// Reads what [`write`] has written.
///
/// # Errors
/// If there is nothing more, or it is something else.
pub(super) fn read<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let (mut mark, mut length) = ([0; MARK.len()], [0; size_of::<u64>()]);
    from.read_exact(&mut mark)?;
    // Whoever waited for as much as something claims that nobody has written would wait for ever.
    if mark != MARK {
        return Err(io::ErrorKind::InvalidData.into());
    }
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut payload = Vec::new();
    // No more room is made than what comes takes.
    if from.take(length).read_to_end(&mut payload)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&payload).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_arrives_and_half_of_it_does_not() {
        let mut bytes = Vec::new();
        write(&mut bytes, &Told::Log(number(Level::Info), "a".to_owned(), "b".to_owned())).unwrap();
        write(&mut bytes, &Told::Ready).unwrap();
        let mut from = &bytes[..];
        assert!(
            matches!(read(&mut from).unwrap(), Told::Log(1, about, text) if (&about[..], &text[..]) == ("a", "b"))
        );
        assert!(matches!(read(&mut from).unwrap(), Told::Ready));
        assert!(read::<Told>(&mut from).is_err());
        assert!(read::<Told>(&bytes[..10]).is_err());
        let endless = |start: &[u8]| io::Cursor::new(start.to_vec()).chain(io::repeat(0xff));
        assert!(read::<Told>(endless(&[0xff; 8])).is_err(), "what nobody has said");
        assert!(read::<Told>(endless(&MARK)).is_err(), "a length that nothing has");
        assert_eq!(
            [Level::Debug, Level::Info, Level::Warn].map(number).map(level),
            [Level::Debug, Level::Info, Level::Warn]
        );
    }
}
