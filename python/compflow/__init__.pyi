"""Clusters, and which of them are unions of others."""

# Written by `python -m compflow._stubs`.

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from . import metrics as metrics
from ._components import clusterer as clusterer, components as components
from ._composers import Bilinear as Bilinear, Function as Function
from ._estimator import Clusterer as Clusterer, ConvergenceWarning as ConvergenceWarning
from ._folders import use_plugins as use_plugins
from ._learning import fit_composer as fit_composer
from ._results import Results as Results, Run as Run, assign as assign, load as load, run as run
from ._selection import Selection as Selection, select_k as select_k
from ._table import Table

__version__: str


class CKM(Clusterer):
    def __init__(
        self,
        n_singletons: int | str | dict[str, Any] | None = ...,
        *,
        restarts: int = ...,
        max_iter: int = ...,
        tol: float = ...,
        optimizer: str = ...,
        lr: float | None = ...,
        steps: int | None = ...,
        init: Any = ...,
        sample: int = ...,
        prune: bool = ...,
        reseed: bool = ...,
        refine: bool = ...,
        stream: bool = ...,
        preset: Any = ...,
        degree: int = ...,
        composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ..., sample_weight: Any = ..., seeds: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ..., sample_weight: Any = ..., seeds: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ..., sample_weight: Any = ..., seeds: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class CGM(Clusterer):
    def __init__(
        self,
        n_singletons: int | str | dict[str, Any] | None = ...,
        *,
        covariance: str = ...,
        shrinkage: Any = ...,
        residual: Any = ...,
        weights: str = ...,
        assignment: str = ...,
        outliers: bool = ...,
        init: Any = ...,
        restarts: int = ...,
        starts: int = ...,
        sample: int = ...,
        max_iter: int = ...,
        tol: float = ...,
        stream: bool = ...,
        degree: int = ...,
        composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ..., sample_weight: Any = ..., seeds: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ..., sample_weight: Any = ..., seeds: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ..., sample_weight: Any = ..., seeds: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class CAP(Clusterer):
    def __init__(
        self,
        *,
        preference: Any = ...,
        damping: float = ...,
        damped: str = ...,
        max_iter: int = ...,
        convergence_iter: int = ...,
        fixed_iterations: bool = ...,
        finish: str = ...,
        subset: int | None = ...,
        extension: str = ...,
        candidates: int | None = ...,
        preset: Any = ...,
        degree: int = ...,
        composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class GCR(Clusterer):
    def __init__(
        self,
        *,
        base: Any = ...,
        threshold: Any = ...,
        method: Any = ...,
        merge: float = ...,
        on_conflict: Any = ...,
        max_maps: int = ...,
        preset: Any = ...,
        degree: int = ...,
        composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ..., seeds: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ..., seeds: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ..., seeds: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    composer: str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class AP(Clusterer):
    def __init__(
        self,
        *,
        preference: Any = ...,
        damping: float = ...,
        max_iter: int = ...,
        convergence_iter: int = ...,
        preset: Any = ...,
        degree: int = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class AC(Clusterer):
    def __init__(
        self,
        n_singletons: int | str | dict[str, Any] | None = ...,
        *,
        linkage: str = ...,
        distance_threshold: Any = ...,
        preset: Any = ...,
        degree: int = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class KMeans(Clusterer):
    def __init__(
        self,
        n_singletons: int | str | dict[str, Any] | None = ...,
        *,
        restarts: int = ...,
        max_iter: int = ...,
        tol: float = ...,
        init: str = ...,
        degree: int = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ..., sample_weight: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ..., sample_weight: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ..., sample_weight: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class FCM(Clusterer):
    def __init__(
        self,
        n_singletons: int | str | dict[str, Any] | None = ...,
        *,
        m: float = ...,
        threshold: Any = ...,
        error: float = ...,
        max_iter: int = ...,
        preset: Any = ...,
        degree: int = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool

class GMM(Clusterer):
    def __init__(
        self,
        n_singletons: int | str | dict[str, Any] | None = ...,
        *,
        variant: str = ...,
        covariance: str = ...,
        reg_covar: float = ...,
        tol: float = ...,
        max_iter: int = ...,
        restarts: int = ...,
        init: str = ...,
        threshold: Any = ...,
        preset: Any = ...,
        degree: int = ...,
        normalize: str | None = ...,
        distance: str = ...,
        random_state: int | np.random.RandomState | np.random.Generator | None = ...,
        threads: int | None = ...,
        verbose: bool = ...,
    ) -> None: ...
    def fit(self, X: Any, y: Any = ..., sample_weight: Any = ...) -> Self: ...
    def fit_predict(self, X: Any, y: Any = ..., sample_weight: Any = ...) -> np.ndarray: ...
    def fit_transform(self, X: Any, y: Any = ..., sample_weight: Any = ...) -> np.ndarray: ...
    labels_: np.ndarray
    sets_: list[tuple[int, ...]]
    label_sets_: list[tuple[int, ...]]
    memberships_: Any
    clusters_: Table
    singletons_: np.ndarray
    distances_: np.ndarray
    converged_: bool
    n_iter_: int
    objective_: float
    trace_: np.ndarray
    params_: dict[str, Any]
    resolved_: dict[str, Any]
    selection_: list[dict[str, Any]]
    names_: list[str]
    degree: int
    normalize: str | None
    distance: str
    random_state: int | np.random.RandomState | np.random.Generator | None
    threads: int | None
    verbose: bool
