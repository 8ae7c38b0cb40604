//! The extension module `compflow._engine`: the engine as the Python package uses it.
//!
//! Pipelines come as JSON, matrices as NumPy arrays or Arrow streams that are not copied, results go back as NumPy arrays and
//! Arrow streams. Work is done on a thread of its own (`work`) while the caller's looks for Ctrl-C. Data in memory is a
//! loader (`memory`) and a Python function a composer (`function`), so that everything goes the way that pipelines go.
//! All unsafe code is in `lend`.

mod assigner;
mod data;
mod error;
mod fitted;
mod function;
mod labels;
mod learn;
mod lend;
mod memory;
mod registry;
mod run;
mod scores;
mod shards;
mod table;
mod watch;
mod work;

/// The module.
#[pyo3::pymodule]
mod _engine {
    #[pymodule_export]
    use crate::assigner::{Assigner, open_run};
    #[pymodule_export]
    use crate::data::Data;
    #[pymodule_export]
    use crate::fitted::{Fitted, fit};
    #[pymodule_export]
    use crate::function::Function;
    #[pymodule_export]
    use crate::learn::learn_composer;
    #[pymodule_export]
    use crate::registry::{components, use_folders};
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::scores::{score, sets_of_arrow};
    #[pymodule_export]
    use crate::shards::{
        shard_assign, shard_assigner, shard_facts, shard_files, shard_fit, shard_kit, shard_layout, shard_loader,
        shard_partial, shard_seed,
    };
    #[pymodule_export]
    use crate::table::{Table, read_table};
    #[pymodule_export]
    use crate::work::stop_all;

    /// The version of compflow.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
