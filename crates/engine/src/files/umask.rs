//! Who may do what with new files is the user's decision, by the umask of the process. A component can change that; so it is
//! looked at before any library is opened, and put back before something is written.

use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::process::umask;

static OWN: OnceLock<Mode> = OnceLock::new();

/// Remembers what it is now, the first time.
pub(crate) fn remember() {
    OWN.get_or_init(|| {
        // It can only be seen by setting it; for that moment nobody gets more rights.
        let own = umask(Mode::RWXG | Mode::RWXO);
        umask(own);
        own
    });
}

/// Makes it again what it was: before every file and every folder that is made.
pub(crate) fn restore() {
    if let Some(own) = OWN.get() {
        umask(*own);
    }
}
