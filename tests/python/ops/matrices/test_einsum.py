"""Einstein's sums of any number of operands, beside NumPy's, and the order in which they are contracted."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as gc
from gradcell import Tensor, ops


def drawn(seed: int) -> tuple[str, list[np.ndarray]]:
    """An equation of one to seven operands; letters may repeat within one, and sizes of 1 broadcast."""
    rng = np.random.default_rng(seed)
    size = dict(zip("abcdef", (2, 3, 4, 1, 3, 2), strict=True))
    terms = ["".join(rng.choice([*size], rng.integers(4))) for _ in range(rng.integers(1, 8))]
    letters = sorted(set("".join(terms)))
    result = "".join(rng.permutation([c for c in letters if rng.random() < 0.5]))
    one = [rng.integers(len(terms)) if rng.random() < 0.1 else None for _ in range(2)]
    shapes = [[1 if k in one else size[c] for c in t] for k, t in enumerate(terms)]
    # A letter that is 1 everywhere stays so.
    return f"{','.join(terms)}->{result}", [rng.normal(size=s) for s in shapes]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(200))
def test_any_equation(seed: int) -> None:
    equation, arrays = drawn(seed)
    got = ops.einsum(equation, *map(Tensor, arrays)).asnumpy()
    np.testing.assert_allclose(got, np.einsum(equation, *arrays), 1e-11, 1e-11, err_msg=equation)


@pytest.mark.parametrize(
    "equation", ["eua,eb,abk->euk", "ij,jk,kl,lm->im", "bi,bj,ijk,k->b", "aa,ab,b,c->c"]
)
def test_derivatives(equation: str) -> None:
    rng = np.random.default_rng(0)
    size = {c: 2 + i % 3 for i, c in enumerate(sorted(set(equation) - set(",->")))}
    terms = equation.partition("->")[0].split(",")
    arrays = [rng.normal(size=[size[c] for c in t]) for t in terms]
    check_grads(lambda *xs: ops.einsum(equation, *xs), arrays)


NODE = re.compile(r"^(%\d+) = .*: float64\[([\d, ]+)\]", re.MULTILINE)


@pytest.mark.parametrize(
    ("equation", "shapes", "least"),
    [
        ("eua,eb,abk->euk", [(100, 8, 9), (100, 9), (9, 9, 9)], 100 * 9 * 81 + 100 * 8 * 81),
        ("ij,jk,k->i", [(200, 300), (300, 400), (400,)], 300 * 400 + 200 * 300),
        ("ij,jk,kl->il", [(500, 4), (4, 500), (500, 3)], 4 * 500 * 3 + 500 * 4 * 3),
        ("ij,jk,kl->il", [(3, 500), (500, 4), (4, 500)], 3 * 500 * 4 + 3 * 4 * 500),
    ],
)
def test_the_order_with_the_fewest_multiplications(equation, shapes, least) -> None:
    text = gc.graph_text(
        lambda *xs: ops.einsum(equation, *xs), *(Tensor(np.ones(s)) for s in shapes)
    )
    shape = {k: [int(n) for n in dims.split(",")] for k, dims in NODE.findall(text)}
    products = re.findall(r"(%\d+) = MatMul\((%\d+), ", text)
    assert len(products) == len(shapes) - 1
    assert sum(math.prod(shape[p]) * shape[left][-1] for p, left in products) == least
