//! Work on a thread of its own, so that Python goes on meanwhile and Ctrl-C is heard.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use compflow_engine::{Cancel, Observer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::raised;
use crate::watch::Watch;

/// Between two looks for signals.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long work may take to notice that it is no longer wanted, before it is left behind.
const GRACE: Duration = Duration::from_millis(700);
/// How long the interpreter waits for work when it ends.
const LAST: Duration = Duration::from_secs(2);

/// The tokens of all work that somebody waits for.
static UNDER_WAY: Mutex<Vec<Cancel>> = Mutex::new(Vec::new());
/// Whether the interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Threads of ours that are calling into Python.
static CALLING: AtomicUsize = AtomicUsize::new(0);

/// Calls into Python from a thread of the engine's; `None` if the interpreter is about to end, or has.
pub(crate) fn call<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // Counted before the look, so that whoever waits for the end either sees the call or has it refused.
    CALLING.fetch_add(1, Ordering::SeqCst);
    let called = if ENDING.load(Ordering::SeqCst) { None } else { Python::try_attach(call) };
    CALLING.fetch_sub(1, Ordering::SeqCst);
    called
}

/// Does some work that is told an observer and a token. Other Python threads go on; a signal whose handler raises stops the work.
///
/// # Errors
/// What the work says, or what a signal handler raised.
pub(crate) fn work<T: Send + 'static>(
    py: Python<'_>,
    watch: &Arc<Watch>,
    listener: Option<&Py<PyAny>>,
    work: impl FnOnce(&Arc<dyn Observer>, &Cancel) -> compflow_engine::Result<T> + Send + 'static,
) -> PyResult<T> {
    if ENDING.load(Ordering::Relaxed) {
        return Err(PyRuntimeError::new_err("the interpreter is about to end"));
    }
    let cancel = Cancel::new();
    let under_way = UnderWay::new(&cancel);
    let (observer, token): (Arc<dyn Observer>, _) = (watch.clone(), cancel.clone());
    let (sender, mut receiver) = sync_channel(1);
    std::thread::Builder::new().name("compflow".to_owned()).spawn(move || {
        // Nobody is there to take what comes too late.
        sender.send(work(&observer, &token)).unwrap_or_default();
    })?;
    let mut stopped: Option<(PyErr, Instant)> = None;
    let found = loop {
        // It cannot be shared with a closure without Python, only handed to it.
        let (back, received) = py.detach(move || {
            let received = receiver.recv_timeout(INTERVAL);
            (receiver, received)
        });
        receiver = back;
        match received {
            Ok(found) => break Some(found),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("compflow itself panicked; please report this"));
            }
            Err(RecvTimeoutError::Timeout) if stopped.is_none() => {
                if let Err(error) = py.check_signals().and_then(|()| watch.tell(py, listener)) {
                    cancel.request();
                    stopped = Some((error, Instant::now()));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stopped.as_ref().is_some_and(|(_, since)| since.elapsed() > GRACE) {
            break None;
        }
    };
    drop(under_way);
    if let Some((error, _)) = stopped {
        return Err(error);
    }
    watch.tell(py, listener)?;
    match found {
        Some(Ok(found)) => Ok(found),
        Some(Err(compflow_engine::Error::Interrupted)) if ENDING.load(Ordering::Relaxed) => {
            Err(PyRuntimeError::new_err("stopped, as the interpreter ends"))
        }
        Some(Err(error)) => Err(raised(error)),
        None => Err(PyRuntimeError::new_err("stopped")),
    }
}

/// Remembers a token while somebody waits for its work.
struct UnderWay(Cancel);

impl UnderWay {
    fn new(cancel: &Cancel) -> Self {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).push(cancel.clone());
        Self(cancel.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|known| known.is(&self.0)) {
            all.swap_remove(at);
        }
    }
}

/// Stops all work and waits for its end, and for all calls into Python: called when the interpreter is about to end, after which no thread may call into it.
#[pyfunction]
pub(crate) fn stop_all(py: Python<'_>) {
    ENDING.store(true, Ordering::SeqCst);
    let left = || {
        let all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|cancel| {
            cancel.request();
        });
        all.len() + CALLING.load(Ordering::SeqCst)
    };
    let start = Instant::now();
    py.detach(|| {
        while left() > 0 && start.elapsed() < LAST {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
