//! The caller's side of the crossing: from a library's tables of functions to the Rust traits.

mod clusterer;
mod composer;
mod evaluator;
mod loader;
mod rows;
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
use crate::raw::{collect_texts, lend, read_sized, require_reserved, slice, text};
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
    /// Components that a newer compflow would understand, and why this one does not.
    pub refused: Vec<Error>,
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
        // SAFETY: the caller vouches for a descriptor of this ABI version.
        unsafe {
            let raw = read_sized(raw)?;
            require_reserved("the library's descriptor", raw.reserved)?;
            if raw.component_count > MAX_COMPONENTS {
                return Err(Error::new(format!(
                    "the library claims {} components, more than {MAX_COMPONENTS}",
                    raw.component_count
                )));
            }
            let components = slice(raw.components, raw.component_count)
                .map_err(|error| error.context("the library's list of components"))?;
            let mut library = Self {
                name: text(raw.name)?.to_owned(),
                version: text(raw.version)?.to_owned(),
                components: Vec::new(),
                refused: Vec::new(),
            };
            for &component in components {
                match ForeignComponent::beyond_this_version(component)? {
                    Some(reason) => library.refused.push(reason),
                    None => library.components.push(ForeignComponent::from_raw(component)?),
                }
            }
            for (at, component) in library.components.iter().enumerate() {
                let same =
                    |earlier: &ForeignComponent| (earlier.kind, earlier.name) == (component.kind, component.name);
                if library.components[..at].iter().any(same) {
                    return Err(Error::new(format!("the library has two components: {component:?}")));
                }
            }
            for ForeignComponent { kind, name, schema, .. } in &library.components {
                let about = |error: Error| error.context(format!("the parameter schema of {kind} `{name}`"));
                let schema: serde_json::Value = serde_json::from_str::<serde_json::Map<_, _>>(schema)
                    .map_err(|error| about(error.into()))?
                    .into();
                presets::check_references(&schema).map_err(about)?;
            }
            Ok(library)
        }
    }
}

/// A component of some library: what it is and how to make one.
#[derive(Clone, Copy)]
pub struct ForeignComponent {
    /// Where the library has its descriptor.
    pointer: *const RawComponent,
    /// A copy of it, with what an older library does not have absent.
    raw: RawComponent,
    flags: Flags,
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
    /// Why a component is one for a newer compflow, if so.
    ///
    /// # Safety
    /// As for [`from_raw`](Self::from_raw).
    unsafe fn beyond_this_version(pointer: *const RawComponent) -> Result<Option<Error>> {
        // SAFETY: the caller vouches for the pointer, and its texts live as long as the descriptor.
        let (raw, name) = unsafe {
            let raw = read_sized(pointer)?;
            (raw, text(raw.name)?)
        };
        let Some(kind) = Kind::from_raw(raw.kind) else {
            return Ok(Some(Error::new(format!("component `{name}` is of the unknown kind {}", raw.kind))));
        };
        Ok(Flags::from_raw(raw.flags).err().map(|error| error.context(format!("{kind} `{name}`"))))
    }

    /// # Safety
    /// `pointer` is null or a descriptor that lives as long as the process.
    pub(crate) unsafe fn from_raw(pointer: *const RawComponent) -> Result<Self> {
        // SAFETY: the caller vouches for the pointer.
        let raw = unsafe { read_sized(pointer) }?;
        // SAFETY: the texts live as long as the descriptor.
        let (name, summary, documentation, schema) =
            unsafe { (text(raw.name)?, text(raw.summary)?, text(raw.documentation)?, text(raw.schema)?) };
        let kind = Kind::from_raw(raw.kind)
            .ok_or_else(|| Error::new(format!("component `{name}` is of the unknown kind {}", raw.kind)))?;
        if name.is_empty() {
            return Err(Error::new(format!("a {kind} has no name")));
        }
        let about = |error: Error| error.context(format!("{kind} `{name}`"));
        let flags = Flags::from_raw(raw.flags).map_err(about)?;
        if raw.methods.is_null() || raw.create.is_none() || raw.destroy.is_none() {
            return Err(Error::new(format!("{kind} `{name}` lacks a function")));
        }
        // SAFETY: the methods are of the type that the kind says, and live as long as the descriptor.
        unsafe {
            let reserved = match kind {
                Kind::Loader => read_sized::<RawLoaderMethods>(raw.methods.cast()).map(|methods| methods.reserved),
                Kind::Composer => {
                    read_sized::<RawComposerMethods>(raw.methods.cast()).map(|methods| methods.reserved)
                }
                Kind::Clusterer => {
                    read_sized::<RawClustererMethods>(raw.methods.cast()).map(|methods| methods.reserved)
                }
                Kind::Evaluator => {
                    read_sized::<RawEvaluatorMethods>(raw.methods.cast()).map(|methods| methods.reserved)
                }
            };
            require_reserved("its methods", reserved.map_err(about)?).map_err(about)?;
            if kind == Kind::Composer {
                let methods = read_sized::<RawComposerMethods>(raw.methods.cast()).map_err(about)?;
                let (gradients, sets) =
                    (flags.contains(Flags::HAS_GRADIENTS), flags.contains(Flags::COMPOSES_SETS));
                for (what, declared, there) in [
                    ("vjp", gradients, methods.vjp.is_some()),
                    ("compose_sets", sets, methods.compose_sets.is_some()),
                    ("compose_sets_vjp", sets && gradients, methods.compose_sets_vjp.is_some()),
                ] {
                    if declared != there {
                        let text = if there {
                            "has the function, and its flags do not say so"
                        } else {
                            "lacks the function"
                        };
                        return Err(about(Error::new(format!("`{what}`: {text}"))));
                    }
                }
            }
        }
        Ok(Self { pointer, raw, flags, kind, name, summary, documentation, schema })
    }

    /// What all its instances need and have; see [`Instance::flags`].
    pub fn flags(&self) -> Flags {
        self.flags
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
        if instance.is_null() {
            return Err(Error::new("returned no instance, and no error"));
        }
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
        if raw.instance.is_null() {
            return Err(Error::new(format!("{} `{}`: there is no instance", component.kind, component.name)));
        }
        Ok(Self { raw: raw.instance, component })
    }

    /// Likewise, of an instance that is handed over: one that cannot be used is ended.
    ///
    /// # Safety
    /// As for [`from_raw`](Self::from_raw).
    pub(crate) unsafe fn take(raw: RawInstance) -> Result<Self> {
        // SAFETY: passed on to the caller.
        let taken = unsafe { Self::from_raw(raw) };
        if taken.is_err() && !raw.instance.is_null() {
            // SAFETY: whatever else is wrong with a descriptor, it is null or as long as it says.
            if let Ok(RawComponent { destroy: Some(destroy), .. }) = unsafe { read_sized(raw.component) } {
                // SAFETY: nobody else ends it. What goes wrong has nobody to be told to: it is refused already.
                let _ = call(&Services::none(), |host| unsafe { destroy(raw.instance, host) });
            }
        }
        taken
    }

    /// What it is an instance of.
    pub fn component(&self) -> &ForeignComponent {
        &self.component
    }

    /// What it needs and has, which its parameters may decide.
    ///
    /// # Errors
    /// If it fails to say, or needs something that is not understood.
    pub fn flags(&self) -> Result<Flags> {
        let Some(flags_of) = self.component.raw.flags_of else { return Ok(self.component.flags) };
        let mut flags = 0;
        call(&Services::none(), |host| {
            // SAFETY: the instance is alive.
            unsafe { flags_of(self.raw, host, &mut flags) }
        })?;
        Flags::from_raw(flags)
    }

    /// The further columns of the data that it wants.
    ///
    /// # Errors
    /// If it fails to say.
    pub fn columns(&self) -> Result<Vec<String>> {
        let Some(columns) = self.component.raw.columns else { return Ok(Vec::new()) };
        let mut names: Vec<String> = Vec::new();
        let sink = std::ptr::from_mut(&mut names).cast();
        call(&Services::none(), |host| {
            // SAFETY: the instance is alive, and the sink is as `collect_texts` expects.
            unsafe { columns(self.raw, host, collect_texts, sink) }
        })?;
        Ok(names)
    }

    /// Hands the instance to the other side of the boundary, which ends it.
    fn into_raw(self) -> RawInstance {
        ManuallyDrop::new(self).lend()
    }

    fn lend(&self) -> RawInstance {
        RawInstance { instance: self.raw, component: self.component.pointer }
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
        pub struct $name {
            instance: $crate::foreign::Instance,
            methods: $methods,
        }

        // SAFETY: method tables are never written, and their functions may be called from any thread.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl TryFrom<$crate::foreign::Instance> for $name {
            type Error = $crate::Error;

            fn try_from(instance: $crate::foreign::Instance) -> $crate::Result<Self> {
                let methods = Self::methods_of(&instance)?;
                Ok(Self { instance, methods })
            }
        }

        impl $name {
            /// What it is an instance of.
            pub fn component(&self) -> &$crate::ForeignComponent {
                self.instance.component()
            }

            /// What it needs and has; see [`Instance::flags`](crate::Instance::flags).
            ///
            /// # Errors
            /// If it fails to say.
            pub fn flags(&self) -> $crate::Result<$crate::Flags> {
                self.instance.flags()
            }

            /// The further columns that it wants; see [`Instance::columns`](crate::Instance::columns).
            ///
            /// # Errors
            /// If it fails to say.
            pub fn columns(&self) -> $crate::Result<Vec<String>> {
                self.instance.columns()
            }

            /// Ends the instance; see [`Instance::close`](crate::Instance::close).
            ///
            /// # Errors
            /// If the component failed or panicked while it was being ended.
            pub fn close(self) -> $crate::Result<()> {
                self.instance.close()
            }

            fn methods_of(instance: &$crate::foreign::Instance) -> $crate::Result<$methods> {
                let $crate::ForeignComponent { name, kind, raw, .. } = instance.component;
                if kind != $crate::Kind::$kind {
                    return Err($crate::Error::new(format!("`{name}` is a {kind}, not a {}", $crate::Kind::$kind)));
                }
                // SAFETY: the kind says what the methods are, and they live as long as the process.
                unsafe { $crate::raw::read_sized(raw.methods.cast()) }
            }
        }
    };
}
use foreign;
