//! A last word of a process that a component ends: which component it was, of which library, and in which cell.
//!
//! A handler of a signal may do next to nothing, so what it would say is written down before every call.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use compflow_engine::plugin::library;

use super::clean::one_line;

/// How many calls are written down at the same time, and how much of each.
const CALLS: usize = 128;
const LENGTH: usize = 512;

/// A call that has not returned.
struct Call {
    /// The thread that calls; 0 if nobody does.
    thread: AtomicI32,
    /// The last of several is the innermost.
    order: AtomicU64,
    length: AtomicUsize,
    text: [AtomicU8; LENGTH],
}

static CALLED: [Call; CALLS] = [const {
    Call {
        thread: AtomicI32::new(0),
        order: AtomicU64::new(0),
        length: AtomicUsize::new(0),
        text: [const { AtomicU8::new(0) }; LENGTH],
    }
}; CALLS];

/// Of the next call.
static ORDER: AtomicU64 = AtomicU64::new(1);

/// From now on a process that crashes, or is ended by somebody else than `main`, says who did it. The exit code of the latter
/// is 1, whatever that somebody wanted.
pub(crate) fn name_culprits() {
    library::on_crash(crashed);
    library::on_exit(exited);
}

/// Whether a run has begun.
static COMPUTING: AtomicBool = AtomicBool::new(false);

/// From now on cells are computed. Before, a component that ends the process is an error of the request like any other: exit
/// code 2.
pub(crate) fn begin() {
    COMPUTING.store(true, Ordering::Relaxed);
}

/// Ends the process if no cell is computed.
fn refuse() {
    if !COMPUTING.load(Ordering::Relaxed) {
        say(b"nothing was computed; leave the component out, or ask whoever made it\n");
        signal_hook::low_level::exit(2);
    }
}

/// Writes down that a component is called, until what is returned is dropped.
pub(crate) fn calling(during: &str, component: &str) -> Box<dyn Send> {
    let text = format!("{component}, during {during}");
    let text = one_line(&text);
    let thread = thread();
    let is_free =
        |call: &&Call| call.thread.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let Some(call) = CALLED.iter().find(is_free) else { return Box::new(()) };
    for (place, byte) in call.text.iter().zip(text.bytes()) {
        place.store(byte, Ordering::Relaxed);
    }
    call.order.store(ORDER.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    call.length.store(text.len().min(LENGTH), Ordering::Release);
    Box::new(Under(call))
}

/// A call under way.
struct Under(&'static Call);

impl Drop for Under {
    fn drop(&mut self) {
        self.0.length.store(0, Ordering::Release);
        self.0.thread.store(0, Ordering::Release);
    }
}

fn thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// The innermost call of this thread.
fn own() -> Option<&'static Call> {
    let thread = thread();
    let own = CALLED
        .iter()
        .filter(|call| call.thread.load(Ordering::Relaxed) == thread && call.length.load(Ordering::Acquire) > 0);
    own.max_by_key(|call| call.order.load(Ordering::Relaxed))
}

/// Says who is called: on this thread, or, if it is a thread that a component has started, on all others.
fn name() {
    let others = CALLED.iter().filter(|call| call.length.load(Ordering::Acquire) > 0);
    match own() {
        Some(call) => say_call(call),
        None if others.clone().next().is_none() => say(b"no component: none was being called\n"),
        None => {
            say(b"a thread that a component has started; being called are\n");
            for call in others {
                say(b"  ");
                say_call(call);
            }
        }
    }
}

fn say_call(call: &Call) {
    let mut text = [0; LENGTH + 1];
    let length = call.length.load(Ordering::Acquire).min(LENGTH);
    for (to, from) in text.iter_mut().zip(&call.text[..length]) {
        *to = from.load(Ordering::Relaxed);
    }
    text[length] = b'\n';
    say(&text[..=length]);
}

/// Writes to stderr without a lock that a crashed thread may hold.
pub(super) fn say(text: &[u8]) {
    let _ = rustix::io::write(std::io::stderr(), text);
}

/// Says who it was, and leaves the rest to what the signal does by default.
extern "C" fn crashed(signal: c_int) {
    say(b"\nerror: crashed by ");
    say(signal_hook::low_level::signal_name(signal).unwrap_or("a signal").as_bytes());
    say(b" in ");
    name();
    refuse();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

/// Nobody but a component calls `exit`: this program ends itself in another way.
extern "C" fn exited() {
    say(b"\nerror: the process was ended by exit() in ");
    name();
    refuse();
    signal_hook::low_level::exit(1);
}
