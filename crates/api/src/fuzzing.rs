//! Descriptors and schemas that any library may have: for `fuzz/`, and for the tests, which replay what it has found.

use std::ffi::c_void;

use serde_json::Value;

use crate::abi::*;
use crate::{ForeignLibrary, params, presets};

/// Reads the descriptor of a library that is made of the bytes: its sizes, flags, kinds and texts are any, and pointers are
/// null or lead to what they should.
pub fn descriptor(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (size, reserved, name, version) = (input.number(), input.number(), input.text(), input.text());
    let count = input.number() as usize;
    // As many as there are, or more than there can be.
    let claimed = if count % 8 == 7 { MAX_COMPONENTS + count as u64 } else { (count % 8) as u64 };
    let methods: Vec<[usize; 16]> = (0..count % 8).map(|_| input.methods()).collect();
    let components: Vec<RawComponent> = methods.iter().map(|methods| input.component(methods)).collect();
    let pointers: Vec<*const RawComponent> = components.iter().map(std::ptr::from_ref).collect();
    let library =
        RawLibrary { size, reserved, name, version, components: pointers.as_ptr(), component_count: claimed };
    // SAFETY: everything it points to is as long as it says, and lives longer than what is made of it.
    let Ok(library) = (unsafe { ForeignLibrary::from_raw(&library) }) else { return };
    for component in &library.components {
        component.presets();
        component.effective("{}");
    }
}

/// Reads a parameter schema and checks parameters by it: two JSON texts with a zero byte between them.
pub fn schema(bytes: &[u8]) {
    let mut texts = bytes.splitn(2, |byte| *byte == 0);
    let mut next = || serde_json::from_slice::<Value>(texts.next()?).ok();
    let (Some(schema), Some(Value::Object(mut params))) = (next(), next()) else { return };
    if presets::check_references(&schema).is_ok() {
        presets::apply(&schema, &mut params);
        presets::effective(&schema, params.clone());
        params::problems(&schema, &Value::Object(params));
    }
}

/// The rest of an input.
struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn take(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next four bytes, zeros behind the end.
    fn number(&mut self) -> u32 {
        self.take(4).iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    fn text(&mut self) -> RawStr {
        let length = self.number();
        // Nothing, or with a length that cannot be.
        if length > u32::MAX / 2 {
            return RawStr { ptr: std::ptr::null(), len: u64::from(length) << 32 };
        }
        let text = self.take(length as usize);
        RawStr { ptr: text.as_ptr(), len: text.len() as u64 }
    }

    /// Longer than the methods of any kind; which functions there are says a bit each.
    fn methods(&mut self) -> [usize; 16] {
        let (size, reserved, functions) = (self.number(), self.number(), self.number());
        let mut words = [0; 16];
        words[0] = size as usize | (reserved as usize) << 32;
        for (bit, word) in words[1..].iter_mut().enumerate() {
            *word = if functions >> bit & 1 == 1 { create as *const () as usize } else { 0 };
        }
        words
    }

    fn component(&mut self, methods: &[usize; 16]) -> RawComponent {
        let (size, kind, absent) = (self.number(), self.number(), self.number());
        RawComponent {
            size,
            kind,
            flags: u64::from(self.number()) | u64::from(self.number()) << 32,
            name: self.text(),
            summary: self.text(),
            documentation: self.text(),
            schema: self.text(),
            create: (absent & 1 == 0).then_some(create as _),
            destroy: (absent & 2 == 0).then_some(destroy as _),
            methods: if absent & 4 == 0 { methods.as_ptr().cast() } else { std::ptr::null() },
            flags_of: None,
            columns: None,
        }
    }
}

// Their addresses only: nobody calls them.
unsafe extern "C" fn create(_params: RawStr, _host: *const RawHost, _instance: *mut *mut c_void) -> i32 {
    STATUS_ERROR
}
unsafe extern "C" fn destroy(_instance: *mut c_void, _host: *const RawHost) -> i32 {
    STATUS_ERROR
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn descriptors_that_fuzzing_has_found_are_read_or_refused() {
    replay::replay("descriptor", descriptor);
}

#[test]
fn schemas_that_fuzzing_has_found_are_read_or_refused() {
    replay::replay("schema", schema);
}
