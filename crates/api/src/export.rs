//! The plugin's side of the crossing: from the Rust traits to the tables of functions that a library exports.

mod clusterer;
mod composer;
mod evaluator;
mod loader;
mod rows;
mod services;

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};

use services::with_services;

use crate::abi::*;
use crate::float_env::with_default_floats;
use crate::guard::{Slot, catch, enter, into_raw, remember_panics_instead_of_printing, report};
use crate::raw::{hand_error, lend, text};
use crate::{Clusterer, Component, Composer, Evaluator, Kind, Loader, Result, params};

/// An entry in the library's own list of components, made by [`register!`](crate::register).
#[derive(Debug)]
pub struct Registration {
    describe: fn() -> RawComponent,
}

inventory::collect!(Registration);

/// The datum that [`export_library!`](crate::export_library) exports.
pub const ABI: RawAbi = RawAbi { magic: MAGIC, abi_version: ABI_VERSION, size: size_of::<RawLibrary>() as u32 };

/// What the library exports, built once from its registrations; null if describing them panics, and `sink` takes why.
///
/// # Safety
/// `sink` takes `sink_ctx`.
pub unsafe fn library(
    name: &'static str,
    version: &'static str,
    sink: ErrorFn,
    sink_ctx: *mut c_void,
) -> *const RawLibrary {
    struct Shared(Result<*const RawLibrary>);
    // SAFETY: the descriptor is never written after it was made.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}
    static LIBRARY: OnceLock<Shared> = OnceLock::new();
    let describe = || {
        remember_panics_instead_of_printing();
        let describe_all = || {
            let mut components: Vec<RawComponent> =
                inventory::iter::<Registration>().map(|registration| (registration.describe)()).collect();
            // The linker decides the order of registrations; lists should not depend on it.
            // SAFETY: the names were made from `&'static str`.
            components.sort_by_key(|component| (component.kind, unsafe { text(component.name) }.ok()));
            let components: Vec<*const RawComponent> =
                components.into_iter().map(|component| keep(component) as *const RawComponent).collect();
            let components: &'static [*const RawComponent] = components.leak();
            Ok(keep(RawLibrary {
                size: size_of::<RawLibrary>() as u32,
                reserved: 0,
                name: lend(name),
                version: lend(version),
                components: components.as_ptr(),
                component_count: components.len() as u64,
            }) as *const RawLibrary)
        };
        Shared(catch(describe_all))
    };
    match &LIBRARY.get_or_init(describe).0 {
        Ok(library) => *library,
        Err(error) => {
            // SAFETY: the caller vouches for the sink.
            unsafe { hand_error(error, sink, sink_ctx) };
            std::ptr::null()
        }
    }
}

/// Keeps a value for the life of the process, where tools that look for leaks find it.
fn keep<T>(value: T) -> &'static T {
    #[expect(dead_code, reason = "only looked at by tools")]
    struct Kept(*const c_void);
    // SAFETY: nobody reads through it.
    unsafe impl Send for Kept {}
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let value: &'static T = Box::leak(Box::new(value));
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(Kept(std::ptr::from_ref(value).cast()));
    value
}

/// Exports the components that the crate [registers](crate::register). Stands once in `lib.rs`.
#[macro_export]
macro_rules! export_library {
    () => {
        // A panic must come back as an error, not end the user's process with everybody else's work in it.
        const _: () = assert!(
            cfg!(panic = "unwind"),
            "a compflow plugin must be built with panic = \"unwind\": remove `panic = \"abort\"` from the profile"
        );

        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub static COMPFLOW_ABI: $crate::abi::RawAbi = $crate::export::ABI;

        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn compflow_library(
            sink: $crate::abi::ErrorFn,
            sink_ctx: *mut ::std::ffi::c_void,
        ) -> *const $crate::abi::RawLibrary {
            // SAFETY: the host hands over a sink together with its context.
            unsafe { $crate::export::library(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), sink, sink_ctx) }
        }
    };
}

/// Adds a component to the library: `register!(clusterer KMeans);`, likewise `loader`, `composer` and `evaluator`.
#[macro_export]
macro_rules! register {
    ($kind:ident $component:ty) => {
        $crate::inventory::submit! { $crate::Registration::$kind::<$component>() }
    };
}

fn component<C: Component>(kind: Kind, methods: *const c_void) -> RawComponent {
    let schema = params::schema::<C::Params>();
    let of_params = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    let documentation = if C::DOCUMENTATION.is_empty() { of_params } else { C::DOCUMENTATION };
    RawComponent {
        size: size_of::<RawComponent>() as u32,
        kind: kind as u32,
        flags: C::FLAGS.0,
        name: lend(C::NAME),
        summary: lend(C::SUMMARY),
        documentation: lend(keep(documentation.to_owned())),
        schema: lend(keep(schema.to_string())),
        create: Some(create::<C>),
        destroy: Some(destroy::<C>),
        methods,
        flags_of: Some(flags_of::<C>),
        columns: Some(columns::<C>),
    }
}

impl Registration {
    /// A loader.
    pub const fn loader<C: Component + Loader>() -> Self {
        Self { describe: || component::<C>(Kind::Loader, std::ptr::from_ref(loader::methods::<C>()).cast()) }
    }

    /// A composer.
    pub const fn composer<C: Component + Composer>() -> Self {
        Self { describe: || component::<C>(Kind::Composer, std::ptr::from_ref(composer::methods::<C>()).cast()) }
    }

    /// A clusterer.
    pub const fn clusterer<C: Component + Clusterer>() -> Self {
        Self { describe: || component::<C>(Kind::Clusterer, std::ptr::from_ref(clusterer::methods::<C>()).cast()) }
    }

    /// An evaluator.
    pub const fn evaluator<C: Component + Evaluator>() -> Self {
        Self { describe: || component::<C>(Kind::Evaluator, std::ptr::from_ref(evaluator::methods::<C>()).cast()) }
    }

    /// The descriptor, as a library exports it: for tests of the boundary itself.
    #[doc(hidden)]
    pub fn describe(&self) -> RawComponent {
        (self.describe)()
    }

    /// The component, as a library that exported it would hand it to the host: for tests that cross the boundary
    /// within one process.
    ///
    /// # Errors
    /// If it is not well-formed.
    pub fn component(&self) -> Result<crate::ForeignComponent> {
        // SAFETY: made by this file, and kept.
        unsafe { crate::ForeignComponent::from_raw(keep((self.describe)())) }
    }
}

unsafe extern "C" fn create<C: Component>(
    raw_params: RawStr,
    host: *const RawHost,
    instance: *mut *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawComponent::create` says.
    unsafe {
        let created = with_default_floats(|| {
            catch(|| {
                let params = params::parse::<C::Params>(text(raw_params)?)?;
                let made = with_services(host, |services| C::new(params, services))?;
                *instance = into_raw(made);
                Ok(())
            })
        });
        report(host, created)
    }
}

unsafe extern "C" fn flags_of<C: Component>(instance: *mut c_void, host: *const RawHost, flags: *mut u64) -> i32 {
    // SAFETY: the arguments are as `RawComponent::flags_of` says.
    unsafe {
        enter::<C>(instance, host, |component| {
            flags.write(component.flags().0);
            Ok(())
        })
    }
}

unsafe extern "C" fn columns<C: Component>(
    instance: *mut c_void,
    host: *const RawHost,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawComponent::columns` says.
    unsafe {
        enter::<C>(instance, host, |component| {
            component.columns().iter().for_each(|column| sink(sink_ctx, lend(column)));
            Ok(())
        })
    }
}

unsafe extern "C" fn destroy<C: Component>(instance: *mut c_void, host: *const RawHost) -> i32 {
    // SAFETY: the pointer came from `create` above and is not used again.
    let slot = unsafe { Box::from_raw(instance.cast::<Slot<C>>()) };
    // SAFETY: the caller vouches for `host`.
    unsafe {
        report(
            host,
            catch(|| {
                drop(slot);
                Ok(())
            }),
        )
    }
}
