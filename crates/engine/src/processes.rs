//! Processes that are started for what libraries do in them, and that end with all that they have started themselves.

use std::io;
use std::process::{Child, Command, ExitStatus};

/// The variable by which a process is known, and what it has started.
const VARIABLE: &str = "COMPFLOW_PROCESS";

/// A process in a group of its own. Dropped, it is ended, with what it has started.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    /// The variable with its value, which no other process has.
    mark: String,
}

impl Process {
    /// # Errors
    /// If the system does not let us.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let (own, thread) = (std::process::id(), std::thread::current().id());
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let value = format!("{own} {thread:?} {since}");
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let child = command.env(VARIABLE, &value).spawn()?;
        Ok(Self { child, mark: format!("{VARIABLE}={value}") })
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it, and what it has started: its group, and what has left that and still has its environment.
    #[cfg(unix)]
    pub(crate) fn kill(&mut self) {
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        #[cfg(target_os = "linux")]
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let environment = |_: &Pid| std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_marked = |id: &Pid| {
                environment(id).split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
            };
            if let Some(id) = id.filter(is_marked) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
    }

    /// Ends it.
    #[cfg(not(unix))]
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}
