//! Cells in processes of their own: a component that crashes, ends its process or never returns costs its own cell.
//!
//! A worker process makes the same plan as the run that has started it, on the data that the run has read and only lends, and
//! then computes one cell after the other exactly as the run itself would. What happens meanwhile, and the cell's row, come
//! back over a socket. When a worker dies, what was under way has failed, and another one takes its place.

#[cfg(not(unix))]
mod elsewhere;
mod frames;
#[cfg(unix)]
mod remote;
#[cfg(unix)]
mod worker;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use compflow_api::{Kind, Level};

#[cfg(not(unix))]
pub(super) use self::elsewhere::Hand;
use self::frames::Setup;
#[cfg(unix)]
pub(super) use self::remote::Hand;
#[cfg(unix)]
pub use self::worker::serve;
use crate::data::snapshot;
use crate::error::{Error, Result};
use crate::files::{human_bytes, plain};
use crate::observer::Observer;
use crate::plan::{Plan, Shares};

/// How cells can be run in processes of their own.
#[derive(Debug, Clone)]
pub struct Isolation {
    /// Starts a worker, which calls [`serve`].
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Folders of libraries whose components run in the process itself, unless it is said otherwise.
    pub trusted: Vec<PathBuf>,
    /// Whether all cells, or none, run in processes of their own, whatever the pipeline says.
    pub isolate: Option<bool>,
    /// How long a cell may take, whatever the pipeline says.
    pub timeout: Option<Duration>,
}

/// What workers are started with.
#[derive(Debug)]
pub(crate) struct Workers {
    isolation: Isolation,
    setup: Setup,
    /// The data that all of them work on.
    data: File,
    timeout: Option<Duration>,
}

impl Workers {
    /// For the cells of a plan, if they are to run in processes of their own: because somebody says so, or how long they may
    /// take, or because a component is of a library that is not trusted.
    ///
    /// # Errors
    /// If there is no room to hand on the data.
    pub(crate) fn wanted(
        plan: &Plan,
        isolation: Option<&Isolation>,
        out: &Path,
        (fresh, strict): (bool, bool),
        observer: &dyn Observer,
    ) -> Result<Option<Self>> {
        let timeout = isolation.and_then(|isolation| isolation.timeout).or(plan.timeout);
        let asked = isolation.and_then(|isolation| isolation.isolate).or(plan.isolate);
        let asked = if timeout.is_some() { Some(true) } else { asked };
        let Some(isolation) = isolation.filter(|_| cfg!(unix)) else {
            if asked == Some(true) {
                let text =
                    "cells run in this process, whatever `isolate` and `timeout` say: it cannot start others";
                observer.log(Level::Warn, "", text);
            }
            return Ok(None);
        };
        if !asked.unwrap_or_else(|| uses_others(plan, &isolation.trusted)) {
            return Ok(None);
        }
        let (data, left) = (plan.data_bytes(), plan.memory());
        if data > left {
            let text = format!(
                "the data, {}, does not fit into memory twice, as worker processes need it",
                human_bytes(data)
            );
            if asked == Some(true) {
                return Err(Error::run(format!("{text}; see --memory")));
            }
            observer.log(Level::Warn, "", &format!("cells run in this process: {text}"));
            return Ok(None);
        }
        let absolute = std::path::absolute(out);
        let datasets = plan.data.iter().map(|data| &data.dataset);
        let data = absolute.and_then(|out| Ok((out, snapshot::write(datasets, &plan.factory.inputs)?)));
        let (out, data) = data.map_err(|error| {
            Error::run(format!("the data cannot be handed on to worker processes: {}", plain(&error)))
        })?;
        let copy = data.metadata().map_or_else(|_| plan.data_bytes(), |about| about.len());
        let setup = Setup {
            pipeline: plan.resolved_elsewhere().to_string(),
            folder: plan.factory.folder.clone(),
            only: plan.only.clone(),
            shares: plan.shares().beside(copy),
            out,
            fresh,
            strict,
        };
        Ok(Some(Self { isolation: isolation.clone(), setup, data, timeout }))
    }

    /// What a cell may use beside the second copy of the data.
    pub(crate) fn shares(&self) -> Shares {
        self.setup.shares
    }
}

/// Whether a component that cells use, or one that such a component has asked for, is of a library elsewhere. Cells use loaders if they
/// read the data again; otherwise these have done their work.
fn uses_others(plan: &Plan, trusted: &[PathBuf]) -> bool {
    let streamed = plan.data.iter().any(|data| data.streamed.is_some());
    let used = plan.factory.used.lock().unwrap_or_else(PoisonError::into_inner);
    let used = used.iter().filter(|(kind, _)| streamed || *kind != Kind::Loader);
    let mut folders = used.filter_map(|(_, at)| plan.factory.registry.libraries[*at].path.parent());
    folders.any(|folder| !trusted.iter().any(|trusted| trusted == folder))
}
