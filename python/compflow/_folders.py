"""Where plugins are searched, and the module over the engine that has them."""

from __future__ import annotations

import atexit
import os
import sys
import sysconfig
from pathlib import Path

from . import _engine

_asked: list[Path] = []


def use_plugins(*folders: str | os.PathLike) -> None:
    """Searches these folders for plugins, before all others.

    Libraries are called `libcompflow_*`, as for the command's `--plugins`. Loading a library runs its code.
    """
    for folder in folders:
        path = Path(folder).resolve()
        if not path.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
        _asked.insert(0, path)
    refresh()


def search_path() -> list[Path]:
    """The folders that are searched, the most specific first: as for the command, with what the wheel has brought last."""
    folders = list(_asked)
    for folder in os.environ.get("COMPFLOW_PLUGIN_PATH", "").split(os.pathsep):
        if folder and not Path(folder).is_dir():
            raise FileNotFoundError(f"COMPFLOW_PLUGIN_PATH: there is no folder {folder}")
        if folder:
            folders.append(Path(folder).resolve())
    # The wheel's libraries are in lib/compflow of wherever it was installed: beside the package, or as Python says.
    here = Path(__file__).resolve()
    installed = [parent / "lib" / "compflow" for parent in list(here.parents)[1:5]]
    installed += [Path(sysconfig.get_path("data")) / "lib" / "compflow", Path(sys.prefix) / "lib" / "compflow"]
    folders += [folder for folder in installed if folder.is_dir()]
    return list(dict.fromkeys(folders))


def executable() -> str:
    """The command `compflow` that belongs to this package."""
    name = "compflow.exe" if os.name == "nt" else "compflow"
    candidates = [Path(sysconfig.get_path("scripts")) / name, Path(sys.prefix) / "bin" / name]
    candidates += [folder.parent.parent / "bin" / name for folder in search_path()]
    candidates += [folder / name for folder in search_path()]
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    raise FileNotFoundError("the command `compflow` is not installed beside the package; install the wheel again")


def refresh() -> None:
    """Searches anew."""
    _engine.use_folders([str(folder) for folder in search_path()])


refresh()
# Afterwards no thread may call into Python any more.
atexit.register(_engine.stop_all)
