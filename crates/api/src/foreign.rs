//! The caller's side of the crossing: from a library's tables of functions to the Rust traits.

mod clusterer;
mod composer;
mod evaluator;
mod loader;
mod services;

use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;

pub use clusterer::{ForeignClusterer, IMPOSSIBLE};
pub use composer::ForeignComposer;
pub(crate) use composer::borrow_composer;
pub use evaluator::ForeignEvaluator;
pub use loader::ForeignLoader;
use services::call;

use crate::abi::*;
use crate::raw::{lend, read_sized, slice, text};
use crate::{Error, Flags, Kind, Preset, Result, Services, presets};

/// What a library offers, after its descriptor has been read and found well-formed.
#[derive(Debug)]
pub struct ForeignLibrary {
    /// Name for people.
    pub name: String,
    /// Version for people.
    pub version: String,
    /// Its components.
    pub components: Vec<ForeignComponent>,
}

impl ForeignLibrary {
    /// Reads a descriptor.
    ///
    /// # Errors
    /// If a part of it is missing or malformed.
    ///
    /// # Safety
    /// `raw` was returned by the entry function of a library that stays loaded and whose [`RawAbi`] has been checked.
    pub unsafe fn from_raw(raw: *const RawLibrary) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::new("the library failed to describe its components"));
        }
        // SAFETY: the caller vouches for a descriptor of this ABI version, whose `size` comes first.
        let size = unsafe { (*raw).size };
        if size < MIN_LIBRARY_SIZE {
            return Err(Error::new(format!(
                "the library's descriptor is truncated: {size} bytes, at least {MIN_LIBRARY_SIZE} expected"
            )));
        }
        // SAFETY: `size` covers all fields of the first release, and these are among them.
        unsafe {
            if (*raw).components.is_null() {
                return Err(Error::new("the library's list of components is null"));
            }
            let components = slice((*raw).components, (*raw).component_count);
            let library = Self {
                name: text((*raw).name)?.to_owned(),
                version: text((*raw).version)?.to_owned(),
                components: components
                    .iter()
                    .map(|&component| ForeignComponent::from_raw(component))
                    .collect::<Result<_>>()?,
            };
            for ForeignComponent { kind, name, schema, .. } in &library.components {
                serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(schema)
                    .map_err(|error| Error::new(format!("the parameter schema of {kind} `{name}`: {error}")))?;
            }
            Ok(library)
        }
    }
}

/// A component of some library: what it is and how to make one.
#[derive(Clone, Copy)]
pub struct ForeignComponent {
    raw: &'static RawComponent,
    /// What it does.
    pub kind: Kind,
    /// The name that pipeline files use.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Markdown; may be empty.
    pub documentation: &'static str,
    /// JSON Schema of the parameters.
    pub schema: &'static str,
}

// SAFETY: descriptors are never written, and their functions may be called from any thread.
unsafe impl Send for ForeignComponent {}
// SAFETY: as above.
unsafe impl Sync for ForeignComponent {}

impl fmt::Debug for ForeignComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}

impl ForeignComponent {
    /// # Safety
    /// `raw` is null or a descriptor that lives as long as the process.
    pub(crate) unsafe fn from_raw(raw: *const RawComponent) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::new("a component's descriptor is null"));
        }
        // SAFETY: the caller vouches for the pointer; every version of a descriptor begins with its size.
        let size = unsafe { raw.cast::<u32>().read() };
        if size < MIN_COMPONENT_SIZE {
            return Err(Error::new(format!(
                "a component's descriptor is truncated: {size} bytes, at least {MIN_COMPONENT_SIZE} expected"
            )));
        }
        // SAFETY: the descriptor is long enough for all that is looked at.
        let raw: &'static RawComponent = unsafe { &*raw };
        // SAFETY: the texts live as long as the descriptor.
        let (name, summary, documentation, schema) =
            unsafe { (text(raw.name)?, text(raw.summary)?, text(raw.documentation)?, text(raw.schema)?) };
        let kind = Kind::from_raw(raw.kind)
            .ok_or_else(|| Error::new(format!("component `{name}` is of the unknown kind {}", raw.kind)))?;
        if name.is_empty() {
            return Err(Error::new(format!("a {kind} has no name")));
        }
        if raw.methods.is_null() || raw.create.is_none() || raw.destroy.is_none() {
            return Err(Error::new(format!("{kind} `{name}` lacks a function")));
        }
        let least = match kind {
            Kind::Loader => 16,
            Kind::Composer => 32,
            Kind::Clusterer | Kind::Evaluator => 24,
        };
        // SAFETY: every table of methods begins with its size.
        let size = unsafe { raw.methods.cast::<u32>().read() };
        if size < least {
            return Err(Error::new(format!(
                "the methods of {kind} `{name}` are truncated: {size} bytes, at least {least} expected"
            )));
        }
        Ok(Self { raw, kind, name, summary, documentation, schema })
    }

    /// What it needs and what it has.
    pub fn flags(&self) -> Flags {
        Flags(self.raw.flags)
    }

    /// The presets that its parameters offer.
    pub fn presets(&self) -> Vec<Preset> {
        presets::presets(&self.parsed_schema())
    }

    /// Parameters, a JSON object, with those that were left out at what the preset says, else at their defaults.
    pub fn effective(&self, params: &str) -> String {
        let given = serde_json::from_str(params).unwrap_or_default();
        serde_json::Value::Object(presets::effective(&self.parsed_schema(), given)).to_string()
    }

    fn parsed_schema(&self) -> serde_json::Value {
        serde_json::from_str(self.schema).unwrap_or_default()
    }

    /// Makes an instance from parameters, a JSON object.
    ///
    /// # Errors
    /// If the component refuses them; one line per problem.
    pub fn create(&self, params: &str, services: &Services<'_>) -> Result<Instance> {
        let mut instance = std::ptr::null_mut();
        let create = required(self.raw.create, "create")?;
        call(services, |host| {
            // SAFETY: the arguments are as `RawComponent::create` says.
            unsafe { create(lend(params), host, &mut instance) }
        })?;
        Ok(Instance { raw: instance, component: *self })
    }
}

/// An instance of any kind, ended on drop. Turned into the trait of its kind by `try_from`.
#[derive(Debug)]
pub struct Instance {
    raw: *mut c_void,
    component: ForeignComponent,
}

// SAFETY: the functions of an instance may be called from any thread, and from several at once.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// # Safety
    /// `raw` is an instance that nobody else will end.
    pub(crate) unsafe fn from_raw(raw: RawInstance) -> Result<Self> {
        // SAFETY: the component of an instance lives as long as the process.
        let component = unsafe { ForeignComponent::from_raw(raw.component) }?;
        Ok(Self { raw: raw.instance, component })
    }

    /// What it is an instance of.
    pub fn component(&self) -> &ForeignComponent {
        &self.component
    }

    /// Hands the instance to the other side of the boundary, which ends it.
    fn into_raw(self) -> RawInstance {
        ManuallyDrop::new(self).lend()
    }

    fn lend(&self) -> RawInstance {
        RawInstance { instance: self.raw, component: self.component.raw }
    }

    fn destroy(&mut self) -> Result<()> {
        let destroy = required(self.component.raw.destroy, "destroy")?;
        call(&Services::none(), |host| {
            // SAFETY: called once, by `close` or by `drop`.
            unsafe { destroy(self.raw, host) }
        })
    }

    /// Ends the instance; says if that went wrong, which a drop does not.
    ///
    /// # Errors
    /// If the component failed or panicked while it was being ended. It is gone all the same.
    pub fn close(self) -> Result<()> {
        ManuallyDrop::new(self).destroy()
    }

    /// # Safety
    /// `M` is the methods' type of the component's kind.
    unsafe fn methods<M>(&self) -> M {
        // SAFETY: `methods` is not null (checked by `from_raw`) and of the type that the kind says.
        unsafe { read_sized(self.component.raw.methods.cast()) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.destroy();
    }
}

/// A function that a table must have.
fn required<F>(function: Option<F>, name: &str) -> Result<F> {
    function.ok_or_else(|| Error::new(format!("the component lacks the function `{name}`")))
}

/// A kind of component: the wrapper of an instance, made by `try_from`.
macro_rules! foreign {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $methods:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($crate::foreign::Instance);

        impl TryFrom<$crate::foreign::Instance> for $name {
            type Error = $crate::Error;

            fn try_from(instance: $crate::foreign::Instance) -> $crate::Result<Self> {
                // The descriptor's own word: it decides what its methods are.
                if instance.component.raw.kind == $crate::Kind::$kind as u32 {
                    return Ok(Self(instance));
                }
                let $crate::ForeignComponent { name, kind, .. } = instance.component;
                Err($crate::Error::new(format!("`{name}` is a {kind}, not a {}", $crate::Kind::$kind)))
            }
        }

        impl $name {
            /// What it is an instance of.
            pub fn component(&self) -> &$crate::ForeignComponent {
                self.0.component()
            }

            /// Ends the instance; see [`Instance::close`](crate::Instance::close).
            ///
            /// # Errors
            /// If the component failed or panicked while it was being ended.
            pub fn close(self) -> $crate::Result<()> {
                self.0.close()
            }

            fn methods(&self) -> $methods {
                // SAFETY: `try_from` has checked the kind.
                unsafe { self.0.methods() }
            }
        }
    };
}
use foreign;
