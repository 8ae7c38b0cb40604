"""Builds the wheel: first the workspace, whose command and plugins go along, then maturin.

`pip install .` and `pip wheel .` come here. The plugins are opened when they are needed, not linked, so they are data of the
wheel: they end up in lib/compflow, where the command and the package look for them.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (what a build backend has)
    build_sdist,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
#: Where maturin looks for what goes along; see pyproject.toml.
DATA = ROOT / "target" / "wheel"


def collect() -> None:
    """Builds the command and the plugins, and puts them where maturin looks."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--release", "--workspace"], cwd=ROOT, check=True)
    shutil.rmtree(DATA, ignore_errors=True)
    scripts, libraries = DATA / "scripts", DATA / "data" / "lib" / "compflow"
    scripts.mkdir(parents=True)
    libraries.mkdir(parents=True)
    shutil.copy2(target / "release" / "compflow", scripts)
    for plugin in (target / "release").glob("libcompflow_*.so"):
        shutil.copy2(plugin, libraries)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What is said of the wheel; maturin wants the folder to be there."""
    DATA.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel."""
    collect()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Likewise, with the package where it is."""
    collect()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


get_requires_for_build_editable = maturin.get_requires_for_build_editable
