"""SciPy and scikit-learn compute with tensors by gradcell.array_api, and derivatives go through them: values
beside those of NumPy's arrays, gradients beside finite differences."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor

_RNG = np.random.default_rng(0)
LINE = np.linspace(0.2, 0.9, 6) + 0.05 * _RNG.normal(size=6)
POINTS = _RNG.normal(size=(8, 3))
TARGETS = POINTS @ np.array([1.0, 2.0, -1.0]) + 0.1 * _RNG.normal(size=8)
OTHERS = _RNG.normal(size=(5, 3))

#: What SciPy computes of x, which derivatives go through. f: scipy.
OF_SCIPY = """
    f.stats.gmean(x)                          f.stats.hmean(x)
    f.stats.pmean(x, 3)                       f.stats.moment(x, 3)
    f.stats.skew(x)                           f.stats.kurtosis(x)
    f.stats.zscore(x)                         f.stats.variation(x)
    f.stats.sem(x)                            f.stats.circmean(x)
    f.stats.quantile(x, 0.3)                  f.stats.lmoment(x, order=2)
    f.special.logsumexp(x)                    f.special.softmax(x)
    f.special.log_softmax(x)                  f.special.xlogy(x, x + 1)
    f.integrate.trapezoid(x)                  f.integrate.cumulative_trapezoid(x)
    f.signal.oaconvolve(x, x)                 f.signal.fftconvolve(x, x)
    f.signal.resample(x, 7)                   f.cluster.vq.whiten(x[:, None] * x)
    f.spatial.transform.Rotation.from_euler('x', x[0]).as_matrix()
""".strip()

#: What scikit-learn computes of x and of y, the others. f: sklearn.
OF_SKLEARN = """
    f.preprocessing.MinMaxScaler().fit_transform(x)
    f.preprocessing.MaxAbsScaler().fit_transform(x)
    f.preprocessing.normalize(x, norm='l1')
    f.preprocessing.KernelCenterer().fit_transform(x @ x.T)
    f.preprocessing.PolynomialFeatures(2).fit_transform(x)
    f.decomposition.PCA(2, svd_solver='full').fit(x).explained_variance_
    f.decomposition.PCA(2, svd_solver='covariance_eigh').fit_transform(x) ** 2
    f.linear_model.Ridge(solver='svd').fit(x, t).coef_
    f.linear_model.Ridge(solver='svd').fit(x, t).predict(y)
    f.metrics.pairwise.euclidean_distances(x, y)
    f.metrics.pairwise.cosine_similarity(x, y)
    f.metrics.pairwise.polynomial_kernel(x, y)
    f.metrics.pairwise.rbf_kernel(x, y)
    f.metrics.pairwise.sigmoid_kernel(x, y)
    f.metrics.pairwise.laplacian_kernel(x, y)
    f.metrics.pairwise.manhattan_distances(x, y)
    f.metrics.pairwise.paired_cosine_distances(x[:5], y)
""".strip()


def _lines(text: str) -> list[str]:
    return [
        call for line in text.splitlines() for call in line.strip().split("   ") if call.strip()
    ]


def _checked(library: Any, text: str, x: np.ndarray) -> None:
    """A call with tensors is the same as with arrays, and its gradient is that of differences."""

    def value(x: Any, of: Callable[[Any], Any]) -> Any:
        return eval(text, {"f": library, "x": x, "y": of(OTHERS), "t": of(TARGETS)})

    def total(x: Tensor) -> Tensor:
        return (value(x, Tensor) * weights).sum()

    got, want = value(Tensor(x), Tensor), np.asarray(value(x, np.asarray))
    assert isinstance(got, Tensor), type(got)
    np.testing.assert_allclose(got.asnumpy(), want, 1e-12, 1e-12, err_msg=text)
    weights = Tensor(np.cos(np.arange(want.size)).reshape(want.shape))
    slope = gc.grad(total)(Tensor(x)).asnumpy()
    step = 1e-5 * np.sin(1 + np.arange(x.size)).reshape(x.shape)
    ends = (np.sum(np.asarray(value(x + s, np.asarray)) * weights.asnumpy()) for s in (step, -step))
    difference = np.subtract(*ends) / 2
    np.testing.assert_allclose(np.sum(slope * step), difference, 1e-6, 1e-11, err_msg=text)
    assert np.any(slope != 0), text


def _of_scipy() -> None:
    import scipy.cluster
    import scipy.integrate
    import scipy.signal
    import scipy.spatial.transform
    import scipy.special
    import scipy.stats

    for text in _lines(OF_SCIPY):
        _checked(scipy, text, LINE)


def _of_sklearn() -> None:
    import sklearn.decomposition
    import sklearn.linear_model
    import sklearn.metrics.pairwise
    import sklearn.preprocessing

    sklearn.set_config(array_api_dispatch=True)
    for text in _lines(OF_SKLEARN):
        _checked(sklearn, text, POINTS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_libraries_compute_with_tensors(library: str) -> None:
    """In a process of its own: SciPy asks for SCIPY_ARRAY_API when it is imported."""
    # Earlier versions compute some of these with NumPy's arrays alone.
    pytest.importorskip(library, {"scipy": "1.17", "sklearn": "1.8"}[library])
    run = [sys.executable, "-W", "ignore", __file__, library]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= 12


if __name__ == "__main__":
    {"scipy": _of_scipy, "sklearn": _of_sklearn}[sys.argv[1]]()
    print(len(_lines({"scipy": OF_SCIPY, "sklearn": OF_SKLEARN}[sys.argv[1]])), "functions")
