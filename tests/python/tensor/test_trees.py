"""Every kind of container through everything that takes trees of tensors apart: its type and attributes
stay, in both modes, and numbers are those of the same program on a plain tuple.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import typing
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, nn, ops
from gradcell.base import tree
from gradcell.ops import ForiLoop, InsertGradientOf, Scan, WhileLoop

X, Y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0])


class Pair(typing.NamedTuple):
    a: Tensor
    b: Tensor


class OddPair(Pair):
    """A named tuple whose constructor takes something else."""

    def __new__(cls, both):
        return super().__new__(cls, *both)


class TupleWith(tuple):
    tag: str


class ListWith(list):
    def __init__(self, items=(), tag="plain"):
        super().__init__(items)
        self.tag = tag


class DictWith(dict):
    tag: str


class Attributes(dict):
    """Its keys are its attributes."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


class Both(dict):
    """Keeps each item as an attribute too."""

    def __init__(self, **items):
        super().__init__()
        for key, item in items.items():
            self[key] = item

    def __setitem__(self, key, item):
        super().__setitem__(key, item)
        self.__dict__[key] = item


@dataclasses.dataclass
class Data:
    a: Tensor
    b: Tensor
    scale: float = 1.0
    tag: str = "none"
    later: typing.Any = dataclasses.field(init=False, repr=False)

    @functools.cached_property
    def total(self):
        return self.a + self.b


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Tensor
    b: Tensor
    tag: str = "none"


@dataclasses.dataclass(slots=True)
class Slots:
    a: Tensor
    b: Tensor
    tag: str = "none"


class Heir(Data):
    extra = 3


class Registered:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag


tree.register(Registered, lambda r: [r.a, r.b], lambda r, items: Registered(*items, r.tag))


def tagged(made):
    made.tag = "kept"
    return made


def data(a, b, kind=Data):
    return kind(a, b, tag="kept")


KINDS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"a": a, "b": b},
    "NamedTuple": Pair,
    "odd NamedTuple": lambda a, b: OddPair((a, b)),
    "tuple subclass": lambda a, b: tagged(TupleWith((a, b))),
    "list subclass": lambda a, b: ListWith((a, b), "kept"),
    "dict subclass": lambda a, b: tagged(DictWith(a=a, b=b)),
    "OrderedDict": lambda a, b: OrderedDict(a=a, b=b),
    "defaultdict": lambda a, b: defaultdict(list, a=a, b=b),
    "Attributes": lambda a, b: Attributes(a=a, b=b),
    "Both": lambda a, b: Both(a=a, b=b),
    "mutable tuple": lambda a, b: gc.mutable((a, b)),
    "mutable list": lambda a, b: gc.mutable([a, b]),
    "mutable dict": lambda a, b: gc.mutable({"a": a, "b": b}),
    "dataclass": data,
    "dataclass by inheritance": lambda a, b: data(a, b, Heir),
    "frozen dataclass": lambda a, b: Frozen(a, b, "kept"),
    "dataclass with slots": lambda a, b: Slots(a, b, "kept"),
    "registered": lambda a, b: Registered(a, b, "kept"),
    "nested": lambda a, b: [OrderedDict(a=Pair(a, b)), None, "text"],
}


def pair_of(box):
    """The two tensors; from attributes where there are some."""
    if isinstance(box, list) and isinstance(box[0], OrderedDict):
        return tuple(box[0]["a"])
    if hasattr(box, "a"):
        if isinstance(box, dict):
            assert box["a"] is box.a
        return box.a, box.b
    return (box["a"], box["b"]) if isinstance(box, dict) else tuple(box)


def check(like, got, a, b):
    """got is a container as `like`, with these numbers."""
    assert type(got) is type(like)
    assert getattr(got, "tag", None) == getattr(like, "tag", None)
    assert getattr(got, "default_factory", None) is getattr(like, "default_factory", None)
    assert not isinstance(got, Data) or "total" not in vars(got)
    if isinstance(got, list) and isinstance(got[0], OrderedDict):
        assert type(got[0]["a"]) is Pair and got[1:] == [None, "text"]
    for found, wanted in zip(pair_of(got), (a, b), strict=True):
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-12)


def product(box):
    a, b = pair_of(box)
    return (a * a * b).sum()


def make(name):
    made = KINDS[name](Tensor(X), Tensor(Y))
    getattr(made, "total", None)  # it is computed and kept
    return made


# Each takes the maker of a container, and the container; what it returns is checked against (kind, a, b).


def through_jit(make, box):
    @gc.jit
    def f(given):
        a, b = pair_of(given)
        return make(a * b, a + b)

    f(make(Tensor(Y), Tensor(X)))
    return f(box), X * Y, X + Y


def argument_of_jit(make, box):
    return gc.jit(lambda given: given)(box), X, Y


def gradient(make, box):
    return gc.grad(product)(box), 2 * X * Y, X * X


def gradient_in_graph(make, box):
    return gc.jit(gc.grad(product))(box), 2 * X * Y, X * X


def value_and_gradient(make, box):
    return gc.value_and_grad(product)(box)[1], 2 * X * Y, X * X


def auxiliary(make, box):
    def f(x):
        return x.sum(), make(x * 2, x * 3)

    (_, aux), _ = gc.value_and_grad(f, has_aux=True)(Tensor(X))
    return aux, 2 * X, 3 * X


def gradient_of_all(make, box):
    found = ops.GradOperation(get_all=True)(lambda x, given: product(given) * x.sum())
    got = found(Tensor(np.ones(1)), box)
    if len(got) == 1:  # only what is mutable counts as an argument to differentiate by
        return None
    return got[1], 2 * X * Y, X * X


def mapped(make, box):
    def f(given):
        a, b = pair_of(given)
        return make(a * b, b - a)

    return gc.vmap(f, in_axes=(axes_of(box, 0),), out_axes=axes_of(box, 0))(box), X * Y, Y - X


def axes_of(box, axis):
    """A tree of axes: strings and None have none."""
    return tree.map_all(lambda v: axis if isinstance(v, Tensor) else None, box)


def moved(make, box):
    def f(x):
        return make(x * x, x * 3)

    value, tangent = gc.jvp(f, Tensor(X), Tensor(Y))
    check(box, value, X * X, 3 * X)
    return tangent, 2 * X * Y, 3 * Y


def pulled(make, box):
    def f(x):
        return make(x * x, x * 3)

    value, pull = gc.vjp(f, Tensor(X))
    check(box, value, X * X, 3 * X)
    (found,) = pull(make(Tensor(Y), Tensor(X)))
    np.testing.assert_allclose(found.asnumpy(), 2 * X * Y + 3 * X)
    return value, X * X, 3 * X


def jacobian(make, box):
    found = gc.jacrev(lambda x: make(x.sum() * x[0], (x * x).sum()))(Tensor(X))
    by_first = np.full(3, X[0]) + np.array([X.sum(), 0, 0])
    if isinstance(found, tuple) and type(box) is list:  # a list becomes a tuple
        found = list(found)
    return found, by_first, 2 * X


def custom_reverse(make, box):
    @gc.custom_vjp
    def f(given):
        a, b = pair_of(given)
        return make(a * a * b, b)

    def fwd(given):
        return f.fun(given), given

    def bwd(kept, dout):
        (a, b), (da, db) = pair_of(kept), pair_of(dout)
        assert type(kept) is type(dout) is type(box)
        return (make(2 * a * b * da, a * a * da + db),)

    f.defvjp(fwd, bwd)
    return gc.grad(lambda given: pair_of(f(given))[0].sum())(box), 2 * X * Y, X * X


def custom_forward(make, box):
    @gc.custom_jvp
    def f(given):
        a, b = pair_of(given)
        return make(a * a * b, b)

    @f.defjvp
    def rule(primals, tangents):
        (a, b), (da, db) = pair_of(primals[0]), pair_of(tangents[0])
        assert type(primals[0]) is type(tangents[0]) is type(box)
        return f.fun(primals[0]), make(2 * a * b * da + a * a * db, db)

    return gc.grad(lambda given: pair_of(f(given))[0].sum())(box), 2 * X * Y, X * X


def watched(make, box):
    with gc.watch(box) as given:
        return gc.gradients(product(given), given), 2 * X * Y, X * X


def carried(make, box):
    def step(i, given):
        a, b = pair_of(given)
        return make(a + b, b)

    return ForiLoop()(0, 2, step, box, unroll=False), X + 2 * Y, Y


def carried_unrolled(make, box):
    def step(i, given):
        a, b = pair_of(given)
        return make(a + b, b)

    return ForiLoop()(0, 2, step, box), X + 2 * Y, Y


def scanned(make, box):
    def step(carry, given):
        a, b = pair_of(given)
        return carry, make(a * 2, b * 3)

    _, ys = Scan()(step, Tensor(0.0), [box, box], unroll=False)
    return ys[1], 2 * X, 3 * Y


def looped(make, box):
    def step(given):
        a, b = pair_of(given)
        return make(a * 2, b)

    return WhileLoop()(lambda g: pair_of(g)[0].max() < 8, step, box), 2 * X, Y


def recomputed(make, box):
    class Net(nn.Cell):
        def construct(self, given):
            a, b = pair_of(given)
            return make(a * a * b, b)

    net = Net()
    net.recompute()
    return gc.grad(lambda given: pair_of(net(given))[0].sum())(box), 2 * X * Y, X * X


def inserted(make, box):
    def double(d):
        a, b = pair_of(d)
        assert type(d) is type(box)
        return make(a * 2, b * 3)

    insert = InsertGradientOf(double)
    return gc.grad(lambda given: product(insert(given)))(box), 4 * X * Y, 3 * X * X


def own_bprop(make, box):
    class Net(nn.Cell):
        def construct(self, given):
            a, b = pair_of(given)
            return make(a * a * b, b)

        def bprop(self, given, out, dout):
            assert type(given) is type(out) is type(dout) is type(box)
            a, b = pair_of(given)
            return (make(a, b),)

    net = Net()
    return gc.grad(lambda given: pair_of(net(given))[0].sum())(box), X, Y


def in_float16(make, box):
    class Net(nn.Cell):
        def construct(self, given):
            assert type(given) is type(box)
            assert pair_of(given)[0].dtype == gc.float16
            return given

    net = Net()
    net.to_float(gc.float16)
    return net(box), X, Y


def scaled(make, box):
    return gc.amp.StaticLossScaler(4.0).scale(box), 4 * X, 4 * Y


def batch_of_model(make, box):
    from gradcell.train.data import as_tensor

    def arrays(t):
        return t.asnumpy()

    if type(box) is list and not isinstance(box[0], Tensor):
        return None  # a text is no batch
    if "dataclass" in str(type(box)) or isinstance(box, (Data, Frozen, Slots, Registered)):
        return None
    return as_tensor(tree.map_leaves(arrays, box)), X, Y


TRANSFORMS = [
    through_jit, argument_of_jit, gradient, gradient_in_graph, value_and_gradient, auxiliary, gradient_of_all,
    mapped, moved, pulled, jacobian, custom_reverse, custom_forward, watched, carried, carried_unrolled,
    scanned, looped, recomputed, inserted, own_bprop, in_float16, scaled, batch_of_model,
]  # fmt: skip
#: Gradients by a container, which lack the mark of what is mutable: it says how an argument is compiled.
_GRADIENTS = {
    gradient, gradient_in_graph, value_and_gradient, gradient_of_all, custom_reverse, custom_forward,
    recomputed, inserted, own_bprop,
}  # fmt: skip
#: Where texts and None among the leaves have no meaning: loops carry tensors.
_ONLY_TENSORS = {carried, scanned}


@pytest.mark.one_in(4)
@pytest.mark.filterwarnings("ignore:.*kept a tensor:RuntimeWarning")  # the circles of Attributes
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.__name__)
def test_containers_stay_what_they_are(transform, mode):
    checked = 0
    for name, kind in KINDS.items():
        box = make(name)
        if transform in _ONLY_TENSORS and has_text(box):
            continue
        try:
            found = transform(kind, box)
            if found is None:
                continue
            got, a, b = found
            marked = transform in _GRADIENTS and hasattr(box, "__ms_mutable__")
            check(type(box).__mro__[1](box) if marked else box, got, a, b)
        except Exception as error:
            raise AssertionError(f"with the container {name!r}: {error}") from error
        checked += 1
    assert checked >= (3 if transform is gradient_of_all else 9)


def has_text(box):
    found = []
    tree.map_all(found.append, box)
    return any(isinstance(leaf, str) for leaf in found)


@dataclasses.dataclass
class Settings:
    rate: float
    names: list


def test_an_object_without_tensors_is_passed_as_it_is(mode):
    settings, seen = Settings(2.0, ["a"]), []

    def f(x, s):
        seen.append(s)
        return x * s.rate

    np.testing.assert_array_equal(gc.jit(f)(Tensor(X), settings).asnumpy(), 2 * X)
    gc.grad(lambda x, s: f(x, s).sum())(Tensor(X), settings)
    assert all(s is settings for s in seen)


@pytest.mark.parametrize(
    "name", ["list subclass", "dict subclass", "dataclass", "frozen dataclass"]
)
def test_attributes_are_part_of_what_jit_compiles_for(name):
    calls = []

    @gc.jit
    def f(box):
        calls.append(box.tag)
        a, _ = pair_of(box)
        return a * len(box.tag)

    box, other = make(name), make(name)
    object.__setattr__(other, "tag", "another")
    for given, factor in ((box, 4), (other, 7), (box, 4), (make(name), 4)):
        np.testing.assert_array_equal(f(given).asnumpy(), factor * X)
    assert calls == ["kept", "another"]


def test_the_function_of_a_defaultdict_is_part_of_what_jit_compiles_for():
    @gc.jit
    def f(box):
        return box["a"] + box["missing"]

    for default in (lambda: 1.0, lambda: 2.0):
        box = defaultdict(default, a=Tensor(X))
        np.testing.assert_array_equal(f(box).asnumpy(), X + default())


def test_another_tensor_in_an_object_is_not_traced_again():
    calls = []

    @gc.jit
    def f(box):
        calls.append(1)
        return sum(pair_of(box))

    kinds = [n for n in KINDS if n != "Attributes"]
    for name in kinds:
        box = KINDS[name](Tensor(Y), Tensor(X))
        for given in (box, make(name)):
            np.testing.assert_array_equal(f(given).asnumpy(), X + Y)
    assert len(calls) == len(kinds)


@pytest.mark.parametrize(
    "box",
    [
        collections.UserDict(a=Tensor(X)),
        collections.deque([Tensor(X)]),
        {Tensor(X)},
        iter([Tensor(X)]),
        type("Bag", (), {"a": Tensor(X)})(),
    ],
    ids=lambda b: type(b).__name__,
)
def test_what_is_no_container_cannot_be_differentiated_by(box, mode):
    with pytest.raises(TypeError, match=f"argument 0: it is not a Tensor but {type(box).__name__}"):
        gc.grad(lambda b: Tensor(1.0))(box)


class Unique(dict):
    def __copy__(self):
        raise RuntimeError("there is one only")


def test_what_cannot_be_copied_is_refused():
    with pytest.raises(
        TypeError, match=r"a Unique with other tensors.*there is one only.*test_trees.py"
    ):
        gc.jit(lambda box: box["a"])(Unique(a=Tensor(X)))


def test_what_contains_itself_is_refused():
    box = Settings(1.0, [])
    box.names.append(box)
    for call in (
        lambda: gc.jit(lambda b: 1.0)(box),
        lambda: gc.grad(lambda x, b: x)(Tensor(1.0), box),
    ):
        with pytest.raises(ValueError, match=r"a \w+ that contains itself"):
            call()


def test_dicts_fit_by_their_keys(mode):
    """A cotangent, a tangent, a gradient or a carry in a dict of another order is taken by its keys, of
    other keys refused."""
    x = Tensor(X)

    def f(x):
        return {"a": x * x, "b": x * 3}

    turned = {"b": Tensor(Y), "a": Tensor(X)}
    wanted = 2 * X * X + 3 * Y
    wrong = {"b": Tensor(Y), "c": Tensor(X)}

    def by_hook(d):
        return gc.grad(lambda v: sum(f_of(v)))(x)

    def f_of(v):
        out = InsertGradientOf(lambda _: given)(f(v))
        return out["a"].sum(), out["b"].sum()

    def by_gradients(d):
        with gc.watch(x) as v:
            return gc.gradients(f(v), v, d)

    def by_tangent(d):
        g = gc.custom_jvp(f)
        g.defjvp(lambda xs, ts: (f(xs[0]), {k: t * ts[0] for k, t in d.items()}))
        value, moved = gc.jvp(g, x, Tensor(np.ones(3)))
        return moved["a"] * 2 + moved["b"] * 3 * Tensor(Y) / Tensor(Y) * 1.0 + 0 * value["a"]

    def by_carry(d):
        last = ForiLoop()(0, 1, lambda i, c: d, {"a": x * 0, "b": x * 0}, unroll=False)
        return 2 * x * last["a"] + 3 * last["b"]

    for through in (
        lambda d: gc.vjp(f, x)[1](d)[0],
        lambda d: gc.grad(f, sens_param=True)(x, d),
        by_hook,
        by_gradients,
        by_carry,
    ):
        given = turned
        np.testing.assert_allclose(through(given).asnumpy(), wanted, rtol=1e-12)
        given = wrong
        with pytest.raises(ValueError, match="keys"):
            through(given)
    np.testing.assert_allclose(by_tangent(turned).asnumpy(), 2 * X + 3 * Y, rtol=1e-12)
    with pytest.raises(ValueError, match="keys"):
        by_tangent(wrong)


@pytest.mark.parametrize("container", [list, dict])
def test_a_container_may_change_while_it_is_walked(container: type) -> None:
    given = [Tensor(float(i)) for i in range(50)]
    held: typing.Any = list(given) if container is list else dict(enumerate(given))

    def emptied(t: Tensor) -> float:
        held.clear()
        return float(t) + 1.0

    made = tree.map_leaves(emptied, held)
    assert list(made if container is list else made.values()) == [i + 1.0 for i in range(50)]
