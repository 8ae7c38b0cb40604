//! What the folder knows about cells, without computing any.

use super::brief::Brief;
use super::cache::Cache;
use super::row::Row;
use super::selection::kept;
use crate::files::plain;
use crate::plan::Plan;
use crate::plan::cell::Cell;

/// The row of a cell that is kept with all scores that can be had.
pub(super) fn recall(plan: &Plan, cache: &Cache, cell: Cell, strict: bool) -> Option<Row> {
    let (cell, selection) = kept(plan, cache, cell)?;
    let mut outcome = cache.load(&cell.key(plan))?;
    if !outcome.is_scored(&plan.setting, cell.trial(plan)) {
        return None;
    }
    let error = outcome.not_converged().filter(|_| strict);
    if error.is_some() {
        outcome.scores.clear();
    }
    let brief = Some(Brief::of(plan, cell, &outcome));
    Some(Row { brief, selection, error, kept: true, ..Row::unfinished(cell) })
}

/// Likewise, but also that of a cell that was tried and failed.
pub(super) fn recall_ended(plan: &Plan, cache: &Cache, cell: Cell, strict: bool) -> Option<Row> {
    recall(plan, cache, cell, strict).or_else(|| {
        let error = Some(cache.failure(&identity(plan, cell))?.error);
        Some(Row { error, ..Row::unfinished(cell) })
    })
}

/// Whether a cell was computed, whatever scores it has.
pub(super) fn is_kept(plan: &Plan, cache: &Cache, cell: Cell) -> bool {
    kept(plan, cache, cell).is_some_and(|(cell, _)| cache.has(&cell.key(plan)))
}

/// What a cell goes by whatever is selected for it.
pub(super) fn identity(plan: &Plan, cell: Cell) -> String {
    Cell { option: 0, ..cell }.key(plan)
}

/// Leaves a note of a failed cell in the folder; takes away that of one which no longer fails.
pub(super) fn note_failure(plan: &Plan, cache: &Cache, cell: Cell, row: &mut Row) {
    match &row.error {
        Some(error) => {
            let noted = cache.note_failure(&identity(plan, cell), &cell.about(plan), error);
            row.lost = noted.err().map(|error| plain(&error));
        }
        None if row.brief.is_some() => cache.forget_failure(&identity(plan, cell)),
        None => {}
    }
}
