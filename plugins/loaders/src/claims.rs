//! What a file claims about itself, held against what it can be: decoders believe sizes and nesting that they are told, and a
//! failed allocation or a full stack ends the process, which no error does.

mod headers;
pub(crate) mod ipc;
#[cfg(test)]
mod mutations;
pub(crate) mod npy;
mod pages;
pub(crate) mod parquet;
#[cfg(test)]
mod tests;
mod walk;

use compflow_api::Result;

/// How many times larger than its file something decoded may be, beyond [`ALWAYS`]. Vectors of zeros but for one number
/// shrink to a three-thousandth; crafted files to a millionth.
const MOST_TIMES: u64 = 10_000;
/// Bytes that are decoded whatever their ratio.
const ALWAYS: u64 = 64 << 20;

/// Refuses sizes that neither the bytes they are decoded from nor the memory allow.
fn check_size(what: &str, claimed: u64, from: u64, memory: u64) -> Result<(), String> {
    if claimed > ALWAYS && claimed / MOST_TIMES > from {
        return Err(format!("{what} claims {claimed} bytes, and {from} bytes stand for them"));
    }
    check_memory(what, claimed, memory)
}

/// Refuses sizes that the memory does not allow.
fn check_memory(what: &str, claimed: u64, memory: u64) -> Result<(), String> {
    match claimed > memory {
        true => Err(format!("{what} needs {claimed} bytes, more than the {memory} that may be used")),
        false => Ok(()),
    }
}
