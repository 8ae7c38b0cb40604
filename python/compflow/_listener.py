"""What the engine says meanwhile: lines for `logging`, and how far it is for tqdm, where that is installed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

logger = logging.getLogger("compflow")
# Warnings go to `warnings`; lines are for those who ask for them.
logger.addHandler(logging.NullHandler())


class Listener:
    """Hands lines on, and shows a bar if it is to be verbose."""

    def __init__(self, what: str, verbose: bool):
        self.lines: list[tuple[int, str]] = []
        self._what, self._verbose, self._bar = what, verbose, None

    def log(self, level: int, text: str) -> None:
        """A line about something."""
        self.lines.append((level, text))
        logger.log(level, "%s", text)

    def advance(self, done: int, total: int) -> None:
        """So much is done."""
        self._show(self._what, done, total)

    def _show(self, what: str, done: int, total: int) -> None:
        if not self._verbose:
            return
        if self._bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._verbose = False
                return
            self._bar = tqdm(total=total, desc=what, leave=False)
        elif done < self._bar.n:
            # The next piece of work begins.
            self._bar.set_description(what, refresh=False)
            self._bar.reset(total)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """The work has ended."""
        if self._bar is not None:
            self._bar.close()


class Passes(Listener):
    """For work in passes over shards: the bar is of the pass that is under way, and there is a line about each."""

    def __init__(self, what: str, verbose: bool):
        super().__init__(what, verbose)
        self._passes, self._share = 0, 0.0

    def advance(self, done: int, total: int) -> None:
        """So much of all passes is done, at most: how many there will be shows in the end."""
        self._share = done / max(total, 1)

    def begin(self, shards: int) -> Callable[[int], None]:
        """Begins a pass; what is returned is to be told of how many shards the sums have come."""
        self._passes += 1
        name, since = f"{self._what}, pass {self._passes}", time.perf_counter()

        def arrived(count: int) -> None:
            self._show(f"{name} ({self._share:.0%})", count, shards)
            if count == shards:
                self.log(logging.INFO, f"{name}: {shards} shards in {time.perf_counter() - since:.2f} s")

        arrived(0)
        return arrived
