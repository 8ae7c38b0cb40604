//! Conversions between the boundary's types and Rust's, used by both directions of the crossing.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::path::PathBuf;

use crate::abi::*;
use crate::arrow::{ArrowArray, ArrowSchema, Build, Table, View};
use crate::{
    Clustering, Code, Densities, Diagnostics, Distance, Error, Normalize, Partial, Problem, Result, Sets,
    Singletons, Space,
};

/// A structure that begins with its size and grows at the end.
///
/// # Safety
/// It begins with a `u32` that says how long it is, is `repr(C)`, and all zeroes are valid for everything behind `LEAST`.
pub(crate) unsafe trait Grows: Copy {
    /// What it is called in errors.
    const NAME: &'static str;
    /// Its size as first released; a shorter one is truncated.
    const LEAST: usize;
    /// Where each field ends that was appended since.
    const ENDS: &'static [usize];
}

macro_rules! grows {
    ($($name:ident $what:literal $least:literal [$($appended:ident),*])*) => {$(
        // SAFETY: `abi` declares it so.
        unsafe impl Grows for $name {
            const NAME: &'static str = $what;
            const LEAST: usize = $least;
            const ENDS: &'static [usize] = &[$(std::mem::offset_of!($name, $appended)),*];
        }
        const _: () = assert!(size_of::<$name>() >= $least && (size_of::<$name>() == $least || !<$name as Grows>::ENDS.is_empty()));
    )*};
}

grows! {
    RawLibrary "the library's descriptor" 56 []
    RawComponent "a component's descriptor" 120 []
    RawHost "the table of services" 96 [content]
    RawError "an error" 56 []
    RawLoadRequest "the load request" 40 []
    RawLoaderMethods "the methods of a loader" 24 []
    RawComposerMethods "the methods of a composer" 48 []
    RawTask "the task" 96 [seeds, reduce]
    RawClustererMethods "the methods of a clusterer" 32 [partial, partial_of]
    RawPartial "what examples add up to" 56 []
    RawBatch "a batch" 56 []
    RawShape "the shape of a task" 24 []
    RawMetric "a metric" 48 []
    RawEvaluation "the evaluation" 96 []
    RawEvaluatorMethods "the methods of an evaluator" 24 []
}

/// Copies a structure that begins with its size. Fields that were appended after the other side's release are zero
/// here, which is to say absent.
///
/// # Errors
/// If it is null, truncated, or ends inside a field.
///
/// # Safety
/// `ptr` is null or points to one of at least the length that it says.
pub(crate) unsafe fn read_sized<T: Grows>(ptr: *const T) -> Result<T> {
    if ptr.is_null() {
        return Err(Error::new(format!("{} is null", T::NAME)));
    }
    // SAFETY: the caller vouches for the size, which comes first.
    let size = unsafe { ptr.cast::<u32>().read_unaligned() } as usize;
    if size < T::LEAST {
        return Err(Error::new(format!("{} is truncated: {size} bytes, at least {} expected", T::NAME, T::LEAST)));
    }
    if size < size_of::<T>() && size != T::LEAST && !T::ENDS.contains(&size) {
        return Err(Error::new(format!("{} ends inside a field: {size} bytes", T::NAME)));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller vouches for as many bytes, and zeroes are valid for the rest.
    unsafe {
        ptr.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size.min(size_of::<T>()));
        Ok(copy.assume_init())
    }
}

/// Refuses a reserved field that says something.
pub(crate) fn require_reserved(what: &str, reserved: u32) -> Result<()> {
    match reserved {
        0 => Ok(()),
        other => Err(Error::new(format!("a reserved field of {what} is {other}, not 0"))),
    }
}

/// Lends a text to the other side.
pub(crate) fn lend(text: &str) -> RawStr {
    RawStr { ptr: text.as_ptr(), len: text.len() as u64 }
}

/// Lends a text that may be absent.
pub(crate) fn lend_optional(text: Option<&str>) -> RawStr {
    text.map_or(RawStr { ptr: std::ptr::null(), len: 0 }, lend)
}

/// Reads a borrowed text that may be absent.
///
/// # Safety
/// `raw` points to `len` bytes for at least `'a`, or is null.
pub(crate) unsafe fn optional_text<'a>(raw: RawStr) -> Result<Option<&'a str>> {
    if raw.ptr.is_null() && raw.len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the bytes.
    let bytes = unsafe { slice(raw.ptr, raw.len) }?;
    std::str::from_utf8(bytes).map(Some).map_err(|_| Error::new("a text is not UTF-8"))
}

/// Reads a borrowed text; null is empty.
///
/// # Safety
/// As for [`optional_text`].
pub(crate) unsafe fn text<'a>(raw: RawStr) -> Result<&'a str> {
    // SAFETY: passed on to the caller.
    Ok(unsafe { optional_text(raw) }?.unwrap_or_default())
}

/// Reads a borrowed text for people, whatever is wrong with it.
///
/// # Safety
/// As for [`optional_text`].
pub(crate) unsafe fn lossy(raw: RawStr) -> String {
    // SAFETY: passed on to the caller.
    unsafe { slice(raw.ptr, raw.len) }
        .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// How many bytes of a text that is shown are: one of hundreds of megabytes is a mistake.
const MOST_SHOWN: usize = 1 << 14;

/// Likewise, of a text that is only ever shown; one that is too long is cut.
///
/// # Safety
/// As for [`optional_text`].
pub(crate) unsafe fn for_people(raw: RawStr) -> String {
    // SAFETY: passed on to the caller.
    let Ok(bytes) = (unsafe { slice(raw.ptr, raw.len) }) else { return String::new() };
    let (shown, more) = bytes.split_at(bytes.len().min(MOST_SHOWN));
    let text = String::from_utf8_lossy(shown);
    match more.len() {
        0 => text.into_owned(),
        // The last character may have been cut in two.
        more => format!("{}… ({more} further bytes were left out)", text.trim_end_matches('\u{fffd}')),
    }
}

/// How many bytes `len` values take, if there can be as many.
fn require_memory<T>(ptr: *const T, len: u64) -> Result<usize> {
    let bytes = len.checked_mul(size_of::<T>() as u64).filter(|bytes| *bytes <= isize::MAX as u64);
    if bytes.is_none() {
        return Err(Error::new(format!("{len} values are more than memory can hold")));
    }
    if ptr.is_null() || !ptr.is_aligned() {
        let what = if ptr.is_null() { "null" } else { "unaligned" };
        return Err(Error::new(format!("a pointer to {len} values is {what}")));
    }
    Ok(len as usize)
}

/// Views borrowed memory.
///
/// # Errors
/// If the pointer or the length cannot be right.
///
/// # Safety
/// `ptr` is null or points to `len` initialised values for at least `'a`, or `len` is 0.
pub(crate) unsafe fn slice<'a, T>(ptr: *const T, len: u64) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    let len = require_memory(ptr, len)?;
    // SAFETY: the caller vouches for the memory.
    Ok(unsafe { std::slice::from_raw_parts(ptr, len) })
}

/// Views borrowed memory for writing.
///
/// # Errors
/// As for [`slice`].
///
/// # Safety
/// As for [`slice`], and nobody else uses the memory meanwhile.
pub(crate) unsafe fn slice_mut<'a, T>(ptr: *mut T, len: u64) -> Result<&'a mut [T]> {
    if len == 0 {
        return Ok(&mut []);
    }
    let len = require_memory(ptr, len)?;
    // SAFETY: the caller vouches for the memory.
    Ok(unsafe { std::slice::from_raw_parts_mut(ptr, len) })
}

/// How many numbers a matrix has.
///
/// # Errors
/// If there cannot be as many.
pub(crate) fn area(rows: u64, dim: u64) -> Result<u64> {
    rows.checked_mul(dim).ok_or_else(|| Error::new(format!("{rows} rows of {dim} are more than memory can hold")))
}

/// Appends a text to the `String` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `String` that nobody else uses meanwhile; `raw` is valid for the call.
pub(crate) unsafe extern "C" fn collect_text(sink_ctx: *mut c_void, raw: RawStr) {
    // SAFETY: the caller vouches for both.
    unsafe { (*sink_ctx.cast::<String>()).push_str(&lossy(raw)) };
}

/// A file that was handed over, if one was.
pub(crate) type File = Option<Result<(PathBuf, Vec<u8>)>>;

/// Copies a file to the [`File`] behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a [`File`] that nobody else uses meanwhile; `path` and `content` are valid for the call.
pub(crate) unsafe extern "C" fn collect_file(
    sink_ctx: *mut c_void,
    path: RawStr,
    content: *const u8,
    content_len: u64,
) {
    // SAFETY: the caller vouches for all of them.
    unsafe {
        let copied = slice(content, content_len).map(|content| (lossy(path).into(), content.to_vec()));
        *sink_ctx.cast::<File>() = Some(copied);
    }
}

/// Appends a text to the `Vec` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `Vec<String>` that nobody else uses meanwhile; `raw` is valid for the call.
pub(crate) unsafe extern "C" fn collect_texts(sink_ctx: *mut c_void, raw: RawStr) {
    // SAFETY: the caller vouches for both.
    unsafe { (*sink_ctx.cast::<Vec<String>>()).push(lossy(raw)) };
}

/// Copies a problem.
///
/// # Safety
/// `raw` is null or valid for the call.
pub(crate) unsafe fn copy_problem(raw: *const RawError) -> Problem {
    // SAFETY: the caller vouches for the structure and its texts.
    unsafe {
        match read_sized(raw) {
            Ok(raw) => Problem {
                code: Code::from_raw(raw.code),
                parameter: Some(lossy(raw.parameter)).filter(|path| !path.is_empty()),
                text: for_people(raw.text),
                help: Some(for_people(raw.help)).filter(|help| !help.is_empty()),
            },
            Err(error) => Problem { code: Code::Internal, parameter: None, text: error.to_string(), help: None },
        }
    }
}

/// Appends a problem to the `Vec` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `Vec<Problem>` that nobody else uses meanwhile; `raw` is valid for the call.
pub unsafe extern "C" fn collect_problem(sink_ctx: *mut c_void, raw: *const RawError) {
    // SAFETY: the caller vouches for both.
    unsafe { (*sink_ctx.cast::<Vec<Problem>>()).push(copy_problem(raw)) };
}

/// Hands an error to a sink; returns the status that goes with it.
///
/// # Safety
/// `sink` takes `sink_ctx`.
pub(crate) unsafe fn hand_error(error: &Error, sink: ErrorFn, sink_ctx: *mut c_void) -> i32 {
    if *error == Error::Cancelled {
        let raw = RawError {
            size: size_of::<RawError>() as u32,
            code: ERROR_CANCELLED,
            parameter: lend_optional(None),
            text: lend("cancelled"),
            help: lend_optional(None),
        };
        // SAFETY: the caller vouches for the sink; the problem is lent for the call.
        unsafe { sink(sink_ctx, &raw) };
        return STATUS_CANCELLED;
    }
    for Problem { code, parameter, text, help } in error.problems() {
        let raw = RawError {
            size: size_of::<RawError>() as u32,
            code: *code as u32,
            parameter: lend_optional(parameter.as_deref()),
            text: lend(text),
            help: lend_optional(help.as_deref()),
        };
        // SAFETY: the caller vouches for the sink; the problem is lent for the call.
        unsafe { sink(sink_ctx, &raw) };
    }
    STATUS_ERROR
}

/// What a status stands for, with the problems that were collected.
pub(crate) fn status_result(status: i32, problems: Vec<Problem>) -> Result<()> {
    match status {
        STATUS_OK if problems.is_empty() => Ok(()),
        STATUS_CANCELLED => Err(Error::Cancelled),
        status if problems.is_empty() => {
            Err(Error::new(format!("failed with status {status} without saying why")))
        }
        _ => Err(Error::Failed(problems)),
    }
}

/// Lends what examples add up to to the other side.
pub(crate) fn lend_partial(partial: &Partial) -> RawPartial {
    RawPartial {
        size: size_of::<RawPartial>() as u32,
        reserved: 0,
        sums: partial.sums.as_ptr(),
        sums_len: partial.sums.len() as u64,
        largest: partial.largest.as_ptr(),
        largest_len: partial.largest.len() as u64,
        rows: partial.rows.as_ptr(),
        rows_len: partial.rows.len() as u64,
    }
}

/// Puts what examples add up to into the `Option` behind `sink_ctx`; what cannot be read is an error there.
///
/// # Safety
/// `sink_ctx` points to an `Option<Result<Partial>>` that nobody else uses meanwhile; `raw` is valid for the call.
pub(crate) unsafe extern "C" fn collect_partial(sink_ctx: *mut c_void, raw: *const RawPartial) {
    // SAFETY: the caller vouches for both.
    unsafe {
        let copied = read_sized(raw).and_then(|raw| {
            Ok(Partial {
                sums: slice(raw.sums, raw.sums_len)?.to_vec(),
                largest: slice(raw.largest, raw.largest_len)?.to_vec(),
                rows: slice(raw.rows, raw.rows_len)?.to_vec(),
            })
        });
        *sink_ctx.cast::<Option<Result<Partial>>>() = Some(copied);
    }
}

/// Lends sets to the other side.
pub(crate) fn lend_sets(sets: &Sets) -> RawSets {
    RawSets { len: sets.len() as u64, offsets: sets.offsets().as_ptr(), values: sets.values().as_ptr() }
}

/// Views borrowed sets.
///
/// # Errors
/// If they are none.
///
/// # Safety
/// `raw` is valid, and outlives the result, which is handed on by shared reference only.
pub(crate) unsafe fn borrow_sets(raw: &RawSets) -> Result<Sets> {
    let count = raw.len.checked_add(1).ok_or_else(|| Error::new("more sets than memory can hold"))?;
    // SAFETY: the caller vouches for the offsets, and for as many values as the last of them says.
    unsafe {
        let offsets = slice(raw.offsets, count)?;
        let values = slice(raw.values, offsets[offsets.len() - 1])?;
        Sets::borrowed(offsets, values)
    }
}

/// The space that two numbers stand for.
///
/// # Errors
/// If they are not known here.
pub(crate) fn space(normalize: u32, distance: u32) -> Result<Space> {
    Ok(Space {
        normalize: match normalize {
            NORMALIZE_NONE => Normalize::None,
            NORMALIZE_L2 => Normalize::L2,
            other => return Err(Error::new(format!("normalisation {other} is not known here"))),
        },
        distance: match distance {
            DISTANCE_SQEUCLIDEAN => Distance::SqEuclidean,
            DISTANCE_EUCLIDEAN => Distance::Euclidean,
            other => return Err(Error::new(format!("distance {other} is not known here"))),
        },
    })
}

/// Further columns as a table to lend; `None` if there are none.
pub(crate) fn lend_columns(columns: &Table) -> Result<Option<RawTable>> {
    if columns.is_empty() {
        return Ok(None);
    }
    let built = columns.iter().try_fold(Build::default(), |build, (name, column)| build.column(name, column));
    built?.finish(0).map(Some)
}

/// Copies the further columns that came with a call.
///
/// # Safety
/// `raw` is null or a table that is valid for the call.
pub(crate) unsafe fn copy_columns(raw: *const RawTable, rows: u64) -> Result<Table> {
    // SAFETY: the caller vouches for the table.
    let Some(table) = (unsafe { raw.as_ref() }) else { return Ok(Table::new()) };
    // SAFETY: as above.
    let view = unsafe { View::new(table, u64::MAX) }?;
    if view.rows() as u64 != rows {
        return Err(Error::new(format!("further columns have {} rows for {rows} examples", view.rows())));
    }
    let mut columns = Table::new();
    for name in view.names() {
        if let Some(column) = view.column(name)? {
            columns.push((name.to_owned(), column));
        }
    }
    Ok(columns)
}

impl RawTable {
    /// No table; what a callee overwrites.
    pub(crate) fn empty() -> Self {
        Self { array: ArrowArray::empty(), schema: ArrowSchema::empty() }
    }

    /// Reads a table that another library made.
    ///
    /// # Errors
    /// If it is not well-formed, or whatever `read` says; the text names the table.
    fn read<R>(&self, what: &str, budget: u64, read: impl FnOnce(&View<'_>) -> Result<R>) -> Result<R> {
        // SAFETY: a table on the boundary follows the Arrow C data interface.
        let view = unsafe { View::new(self, budget) };
        view.and_then(|view| read(&view)).map_err(|error| error.context(format!("the table `{what}`")))
    }

    /// Likewise, for a table that may be left out.
    fn read_optional<R: Default>(
        &self,
        what: &str,
        budget: u64,
        read: impl FnOnce(&View<'_>) -> Result<R>,
    ) -> Result<R> {
        if self.array.is_released() { Ok(R::default()) } else { self.read(what, budget, read) }
    }
}

/// A column that must be there.
fn required<T>(name: &str, column: Result<Option<T>>) -> Result<T> {
    column?.ok_or_else(|| Error::new(format!("has no column `{name}`")))
}

impl RawClustering {
    /// What a callee overwrites.
    pub(crate) fn empty() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            converged: 0,
            iterations: 0,
            objective: f64::NAN,
            assignments: RawTable::empty(),
            clusters: RawTable::empty(),
            trace: RawTable::empty(),
            scalars: RawTable::empty(),
            resolved: RawTable::empty(),
            singletons: RawTable::empty(),
            densities: RawTable::empty(),
            factors: RawTable::empty(),
        }
    }

    /// Takes over a clustering of `rows` examples that another library made, `budget` being the bytes it was allowed.
    pub(crate) fn take(self, rows: usize, budget: u64) -> Result<Clustering> {
        // Nothing of a table that cannot be one of these examples is read.
        if !self.assignments.array.is_released() && self.assignments.array.length != rows as i64 {
            let found = self.assignments.array.length;
            return Err(Error::new(format!("{found} assignments were returned for {rows} examples")));
        }
        let (assignments, memberships, extra) = self.assignments.read("assignments", budget, |table| {
            let mut extra = Table::new();
            for name in table.names().filter(|name| !["clusters", "memberships"].contains(name)) {
                extra.push((name.to_owned(), required(name, table.column(name))?));
            }
            let memberships = table.vectors("memberships")?.unwrap_or_default();
            Ok((required("clusters", table.sets("clusters"))?, memberships, extra))
        })?;
        let (clusters, exemplars, centroids) = self.clusters.read("clusters", budget, |table| {
            let (exemplars, centroids) = (table.lists("exemplars")?, table.vectors("centroid")?);
            let clusters = required("clusters", table.sets("clusters"))?;
            Ok((clusters, exemplars.unwrap_or_default(), centroids.unwrap_or_default()))
        })?;
        let trace =
            self.trace.read_optional("trace", budget, |table| required("objective", table.floats("objective")))?;
        let scalars = self.scalars.read_optional("scalars", budget, |table| {
            let (names, values) =
                (required("name", table.texts("name"))?, required("value", table.floats("value"))?);
            Ok(names.into_iter().zip(values).collect())
        })?;
        let resolved = self.resolved.read_optional("resolved", budget, |table| {
            let (names, values) =
                (required("name", table.texts("name"))?, required("value", table.texts("value"))?);
            Ok(names.into_iter().zip(values).collect())
        })?;
        let singletons = self.singletons.read_optional("singletons", budget, |table| {
            let numbers = required("singleton", table.numbers("singleton"))?;
            Ok(Singletons { numbers, vectors: required("vector", table.vectors("vector"))? })
        })?;
        let mut densities = self.densities.read_optional("densities", budget, |table| {
            Ok(Densities {
                sets: required("clusters", table.sets("clusters"))?,
                centres: required("centre", table.vectors("centre"))?,
                offsets: required("offset", table.floats("offset"))?,
                factor_of: required("factor", table.numbers("factor"))?,
                factors: Vec::new(),
            })
        })?;
        densities.factors =
            self.factors.read_optional("factors", budget, |table| required("factor", table.vectors("factor")))?;
        Ok(Clustering {
            assignments,
            clusters,
            exemplars,
            centroids,
            memberships,
            extra,
            singletons,
            densities,
            scalars,
            resolved,
            diagnostics: Diagnostics {
                iterations: self.iterations,
                converged: self.converged != 0,
                objective: self.objective,
                trace,
            },
        })
    }
}

/// A clustering as it crosses. `dim` is the length of an example.
impl TryFrom<Clustering> for RawClustering {
    type Error = Error;

    fn try_from(clustering: Clustering) -> Result<Self> {
        let (rows, clusters) = (clustering.assignments.len(), clustering.clusters.len());
        let width = |values: usize, rows: usize| values.checked_div(rows).unwrap_or(0).max(1);
        let mut assignments = Build::default().sets("clusters", &clustering.assignments)?;
        if !clustering.memberships.is_empty() {
            let of_one = width(clustering.memberships.len(), rows);
            assignments = assignments.vectors("memberships", of_one, clustering.memberships)?;
        }
        for (name, column) in &clustering.extra {
            assignments = assignments.column(name, column)?;
        }
        let mut described = Build::default().sets("clusters", &clustering.clusters)?;
        if !clustering.exemplars.is_empty() {
            let mut offsets = vec![0];
            offsets.extend(clustering.exemplars.iter().scan(0, |end, rows| {
                *end += rows.len() as u64;
                Some(*end)
            }));
            described = described.lists("exemplars", &offsets, clustering.exemplars.concat())?;
        }
        if !clustering.centroids.is_empty() {
            let dim = width(clustering.centroids.len(), clusters);
            described = described.vectors("centroid", dim, clustering.centroids)?;
        }
        let Diagnostics { iterations, converged, objective, trace } = clustering.diagnostics;
        let (names, values): (Vec<String>, Vec<f64>) = clustering.scalars.into_iter().unzip();
        let scalars = Build::default().texts("name", names.iter().map(String::as_str))?.floats("value", values)?;
        let resolved = Build::default()
            .texts("name", clustering.resolved.iter().map(|(name, _)| name.as_str()))?
            .texts("value", clustering.resolved.iter().map(|(_, value)| value.as_str()))?;
        let Singletons { numbers, vectors } = clustering.singletons;
        let singletons = match numbers.len() {
            0 => RawTable::empty(),
            count => {
                let dim = width(vectors.len(), count);
                Build::default().numbers("singleton", numbers)?.vectors("vector", dim, vectors)?.finish(0)?
            }
        };
        let Densities { sets, centres, offsets, factor_of, factors } = clustering.densities;
        let (densities, factors) = match sets.len() {
            0 => (RawTable::empty(), RawTable::empty()),
            count => {
                let dim = width(centres.len(), count);
                let densities = Build::default()
                    .sets("clusters", &sets)?
                    .vectors("centre", dim, centres)?
                    .floats("offset", offsets)?
                    .numbers("factor", factor_of)?;
                let factors = Build::default().vectors("factor", Densities::factor_len(dim), factors)?;
                (densities.finish(0)?, factors.finish(0)?)
            }
        };
        Ok(Self {
            size: size_of::<Self>() as u32,
            converged: converged.into(),
            iterations,
            objective,
            assignments: assignments.finish(rows)?,
            clusters: described.finish(clusters)?,
            trace: Build::default().floats("objective", trace)?.finish(0)?,
            scalars: scalars.finish(0)?,
            resolved: resolved.finish(0)?,
            singletons,
            densities,
            factors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_null_truncated_or_cut_is_refused() {
        let refused = |words: &[u64]| {
            let ptr = if words.is_empty() { std::ptr::null() } else { words.as_ptr() };
            // SAFETY: as long as its size says, or refused because of that size.
            unsafe { read_sized::<RawError>(ptr.cast()) }.unwrap_err().to_string()
        };
        assert_eq!(refused(&[]), "an error is null");
        assert_eq!(refused(&[55, 0, 0, 0, 0, 0, 0]), "an error is truncated: 55 bytes, at least 56 expected");
    }

    #[test]
    fn a_text_that_is_shown_is_cut_where_nobody_reads_on() {
        let shown = |text: &str| unsafe {
            // SAFETY: the text outlives the call.
            for_people(lend(text))
        };
        assert_eq!(shown("short"), "short");
        let long = shown(&"ä".repeat(MOST_SHOWN));
        assert!(long.ends_with("ä… (16384 further bytes were left out)"), "{}", &long[long.len() - 60..]);
        let odd = shown(&format!("a{}", "ä".repeat(MOST_SHOWN)));
        assert!(odd.ends_with("ä… (16385 further bytes were left out)"), "{}", &odd[odd.len() - 60..]);
    }

    /// A structure that has grown twice.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    struct Grown {
        size: u32,
        first: u32,
        second: RawStr,
        third: u64,
    }

    // SAFETY: it begins with its size.
    unsafe impl Grows for Grown {
        const NAME: &'static str = "a test";
        const LEAST: usize = 8;
        const ENDS: &'static [usize] = &[24, 32];
    }

    #[test]
    fn what_an_older_release_does_not_have_is_absent_and_half_a_field_is_refused() {
        let read = |size: u64| {
            let words = [size | 7 << 32, words_ptr(), 3, 9];
            // SAFETY: 32 bytes.
            unsafe { read_sized::<Grown>(words.as_ptr().cast()) }
        };
        let old = read(8).unwrap();
        assert!(old.first == 7 && old.second.ptr.is_null() && old.third == 0);
        assert_eq!((read(24).unwrap().second.len, read(24).unwrap().third), (3, 0));
        assert_eq!((read(32).unwrap().third, read(96).unwrap().third), (9, 9));
        for cut in [9, 16, 23, 25] {
            assert_eq!(read(cut).unwrap_err().to_string(), format!("a test ends inside a field: {cut} bytes"));
        }
    }

    fn words_ptr() -> u64 {
        "abc".as_ptr() as u64
    }

    #[test]
    fn slices_that_cannot_be_are_refused() {
        // SAFETY: refused before anything is read.
        unsafe {
            let null = slice(std::ptr::null::<f32>(), 3).unwrap_err();
            assert_eq!(null.to_string(), "a pointer to 3 values is null");
            assert!(slice(std::ptr::null::<f32>(), 0).unwrap().is_empty());
            let odd = slice(std::ptr::without_provenance::<f32>(2), 3).unwrap_err();
            assert_eq!(odd.to_string(), "a pointer to 3 values is unaligned");
            assert!(slice(std::ptr::without_provenance::<f32>(16), u64::MAX / 4).is_err());
        }
        assert!(area(1 << 40, 1 << 40).is_err());
    }
}
