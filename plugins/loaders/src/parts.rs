//! Reading a table that comes in parts, several parts at once, as one stream in order.
//!
//! Worker `w` of `t` decodes the parts w, w + t, w + 2t, … ahead of the consumer, as far as its channel has room. So
//! the stream does not depend on the number of threads, and the memory does not depend on the size of the table.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, SchemaRef};
use compflow_api::{Batches, Error, Result};

use crate::source::until_failure;

/// Batches that a worker may be ahead of the consumer.
const READ_AHEAD: usize = 4;

/// The batches of one part.
pub(crate) type Part = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// A table in parts that can be read independently, in any thread.
pub(crate) trait Parts: Send + Sync + 'static {
    /// How many.
    fn count(&self) -> usize;

    /// Starts reading one.
    fn open(&self, part: usize) -> Result<Part, ArrowError>;
}

/// Part after part. With several threads it is decoded by that many workers, since the consumer mostly waits for
/// them; dropping the stream ends them. Ends after the first error.
pub(crate) fn stream(parts: impl Parts, schema: SchemaRef, threads: usize) -> Result<Batches> {
    let batches: Part = if threads > 1 && parts.count() > 0 {
        Box::new(Workers::start(parts, threads)?)
    } else {
        Box::new((0..parts.count()).flat_map(move |part| open(&parts, part)))
    };
    Ok(Box::new(RecordBatchIterator::new(until_failure(batches), schema)))
}

fn open(parts: &impl Parts, part: usize) -> Part {
    parts.open(part).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
}

/// A batch, or the end of a part.
type Message = Option<Result<RecordBatch, ArrowError>>;

struct Worker {
    messages: Receiver<Message>,
    thread: JoinHandle<()>,
}

/// The consumer's end: takes turns with the workers as they took turns with the parts.
struct Workers {
    workers: Vec<Worker>,
    /// The part being received.
    part: usize,
    parts: usize,
}

impl Workers {
    fn start(parts: impl Parts, threads: usize) -> Result<Self> {
        let parts = Arc::new(parts);
        let mut started = Self { workers: vec![], part: 0, parts: parts.count() };
        let count = threads.min(started.parts);
        for first in 0..count {
            let (sender, messages) = sync_channel(READ_AHEAD);
            let parts = parts.clone();
            let thread = std::thread::Builder::new()
                .name(format!("loader {first}"))
                .spawn(move || work(&*parts, first, count, &sender))
                .map_err(|error| Error::new(format!("cannot start a thread: {error}")))?;
            started.workers.push(Worker { messages, thread });
        }
        Ok(started)
    }
}

/// Sends the worker's parts until they are sent, one fails, or nobody listens any more.
fn work(parts: &impl Parts, first: usize, step: usize, sender: &SyncSender<Message>) {
    for part in (first..parts.count()).step_by(step) {
        for batch in open(parts, part) {
            let failed = batch.is_err();
            if sender.send(Some(batch)).is_err() || failed {
                return;
            }
        }
        if sender.send(None).is_err() {
            return;
        }
    }
}

impl Iterator for Workers {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.part < self.parts {
            let turn = self.part % self.workers.len();
            match self.workers[turn].messages.recv() {
                Ok(Some(batch)) => return Some(batch),
                Ok(None) => self.part += 1,
                Err(_) => {
                    // It ended before its parts did. If by a panic, that goes on here, where it becomes an error.
                    self.part = self.parts;
                    if let Err(panic) = self.workers.swap_remove(turn).thread.join() {
                        resume_unwind(panic);
                    }
                }
            }
        }
        None
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Without receivers, the workers' next message fails and ends them.
        let threads: Vec<JoinHandle<()>> = self.workers.drain(..).map(|worker| worker.thread).collect();
        for thread in threads {
            // A panic after the last wanted batch concerns nobody.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;
    use arrow_array::{ArrayRef, UInt32Array};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    /// `counts[i]` batches in part i, each of one row with a running number.
    struct Numbers {
        counts: Vec<u32>,
        /// The part that does not work, and whether it panics.
        fault: Option<(usize, bool)>,
        /// Held as long as anybody holds the parts.
        alive: Arc<()>,
    }

    impl Parts for Numbers {
        fn count(&self) -> usize {
            self.counts.len()
        }

        fn open(&self, part: usize) -> Result<Part, ArrowError> {
            match self.fault {
                Some((at, true)) if at == part => panic!("part {part} is cursed"),
                Some((at, false)) if at == part => return Err(ArrowError::ComputeError(format!("part {part}"))),
                _ => {}
            }
            let before: u32 = self.counts[..part].iter().sum();
            let numbers = before..before + self.counts[part];
            let alive = self.alive.clone();
            Ok(Box::new(numbers.map(move |number| {
                assert!(Arc::strong_count(&alive) > 0);
                let column = Arc::new(UInt32Array::from(vec![number])) as ArrayRef;
                RecordBatch::try_from_iter([("number", column)])
            })))
        }
    }

    fn numbers(counts: &[u32], fault: Option<(usize, bool)>, threads: usize) -> (Batches, Arc<()>) {
        let alive = Arc::new(());
        let schema = Arc::new(Schema::new(vec![Field::new("number", DataType::UInt32, false)]));
        let parts = Numbers { counts: counts.to_vec(), fault, alive: alive.clone() };
        (stream(parts, schema, threads).unwrap(), alive)
    }

    fn number(batch: &RecordBatch) -> u32 {
        batch.column(0).as_primitive::<UInt32Type>().value(0)
    }

    #[test]
    fn any_number_of_threads_gives_the_same_stream() {
        for counts in [&[3, 0, 20, 1, 1, 0, 7][..], &[], &[0], &[100]] {
            for threads in [1, 2, 3, 16] {
                let (batches, _) = numbers(counts, None, threads);
                let found: Vec<u32> = batches.map(|batch| number(&batch.unwrap())).collect();
                assert_eq!(found, (0..counts.iter().sum()).collect::<Vec<u32>>(), "{threads}");
            }
        }
    }

    #[test]
    fn the_stream_ends_with_the_first_error() {
        for threads in [1, 2, 4] {
            let (batches, _) = numbers(&[2, 2, 2, 2], Some((2, false)), threads);
            let found: Vec<_> = batches.collect();
            assert_eq!(found.len(), 5, "{threads}");
            assert!(found[4].as_ref().unwrap_err().to_string().ends_with("part 2"));
        }
    }

    #[test]
    fn a_panic_of_a_worker_arrives_at_the_consumer() {
        let (mut batches, alive) = numbers(&[2, 2, 2], Some((1, true)), 2);
        assert!(batches.next().unwrap().is_ok() && batches.next().unwrap().is_ok());
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batches.next().is_none()));
        assert_eq!(caught.unwrap_err().downcast_ref::<String>().unwrap(), "part 1 is cursed");
        assert!(batches.next().is_none());
        drop(batches);
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn dropping_the_stream_ends_the_threads() {
        for read in [0, 1, 5] {
            let (mut batches, alive) = numbers(&[1000, 1000, 1000], None, 3);
            for _ in 0..read {
                batches.next().unwrap().unwrap();
            }
            assert!(Arc::strong_count(&alive) > 1);
            drop(batches);
            assert_eq!(Arc::strong_count(&alive), 1);
        }
    }
}
