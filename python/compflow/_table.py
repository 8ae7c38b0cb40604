"""Tables: Arrow inside, so that pandas, Polars, pyarrow and DuckDB take them without a copy."""

from __future__ import annotations

from html import escape


class Table:
    """A table. `polars.DataFrame(table)`, `pyarrow.table(table)` and `pandas.DataFrame.from_arrow(table)` take it."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self._table.column_names

    def to_dict(self) -> dict[str, list]:
        """The columns as lists."""
        return self._table.to_dict()

    def __getitem__(self, name: str) -> list:
        if name not in self.column_names:
            raise KeyError(f"there is no column {name!r}; there are {', '.join(self.column_names)}")
        return self.to_dict()[name]

    def to_pandas(self):
        """A pandas data frame."""
        import pandas

        return pandas.DataFrame(self.to_dict(), columns=self.column_names)

    def to_polars(self):
        """A Polars data frame."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"Table of {len(self)} rows: {', '.join(self.column_names)}"

    def _repr_html_(self) -> str:
        columns = self.to_dict()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = list(zip(*columns.values()))
        body = "".join("<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>" for row in rows[:20])
        more = f"<p>{len(rows) - 20} more rows</p>" if len(rows) > 20 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def shown(cell) -> str:
    """A value for people."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    if isinstance(cell, list):
        text = ", ".join(shown(item) for item in cell[:6])
        return f"[{text}{', …' if len(cell) > 6 else ''}]"
    return str(cell)
