"""What the engine says meanwhile: lines for `logging`, and how far it is for tqdm, where that is installed."""

from __future__ import annotations

import logging

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
        if not self._verbose:
            return
        if self._bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._verbose = False
                return
            self._bar = tqdm(total=total, desc=self._what, leave=False)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """The work has ended."""
        if self._bar is not None:
            self._bar.close()
