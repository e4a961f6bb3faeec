"""Transforms that choose among others, and those of batches."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, fields, publish
from gradcell.dataset.rows import as_array
from gradcell.dataset.transforms import TensorOperation, _functions_of, _made
from gradcell.dataset.workers import generator


class RandomSelectSubpolicy:
    """Applies one of several policies, drawn at random. A policy is a list of (transform,
    probability): each transform is applied with its probability.

    policy: a list of policies, of which one is drawn for each image.
    """

    def __init__(self, policy: Any) -> None:
        if not isinstance(policy, (list, tuple)) or not policy:
            bad_type("RandomSelectSubpolicy: expected a list of policies")
        self.policy: list[Any] = []
        for one in policy:
            if not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in one):
                bad_type("RandomSelectSubpolicy: a policy is a list of (transform, probability)")
            functions = _functions_of([p[0] for p in one], "RandomSelectSubpolicy", "policy")
            chances = [
                arguments.number(p[1], "RandomSelectSubpolicy", "probability", least=0, most=1)
                for p in one
            ]
            self.policy.append(list(zip(functions, chances, strict=True)))

    def __call__(self, value: Any) -> Any:
        for function, chance in self.policy[generator().integers(len(self.policy))]:
            if generator().random() < chance:
                value = function(value)
        return value


class UniformAugment(fields.Declares):
    """Draws num_ops of the transforms, and applies each with probability 1/2.

    num_ops: how many transforms are drawn.
    """

    transforms: Any = fields.checked(_functions_of)
    count: int = fields.integer(1, alias="num_ops", default=2)

    def __call__(self, value: Any) -> Any:
        for k in generator().choice(len(self.transforms), self.count):
            if generator().random() < 0.5:
                value = self.transforms[k](value)
        return value


class ImageBatchFormat(enum.IntEnum):
    """The places of the channels in a batch of images."""

    NHWC = 0
    NCHW = 1


class _OfBatch(TensorOperation):
    def _checked(self, images: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        images, labels = as_array(images), as_array(labels)
        if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
            self._fail(
                "expected a batch of images and one of labels as vectors (OneHot), got the shapes "
                f"{list(images.shape)} and {list(labels.shape)}"
            )
        return images, labels.astype(np.float32)


class MixUpBatch(_OfBatch):
    """Mixes images and labels with others of their batch, by a share drawn from Beta(alpha, alpha)
    (Zhang et al., ICLR 2018)."""

    alpha: float = fields.number(above=0, default=1.0)

    def __call__(self, *values: Any) -> tuple[np.ndarray, np.ndarray]:
        images, labels = self._checked(*values)
        share = np.float32(generator().beta(self.alpha, self.alpha))
        order = generator().permutation(len(images))
        mixed = [share * v + (1 - share) * v[order] for v in (images.astype(np.float32), labels)]
        return mixed[0], mixed[1]


class CutMixBatch(_OfBatch):
    """Replaces a rectangle of each image by that of another image of its batch, with probability
    prob, and mixes the labels by the areas (Yun et al., ICCV 2019, 6023).

    image_batch_format: an ImageBatchFormat: NHWC or NCHW. alpha: the parameter of the beta
    distribution.
    """

    format: ImageBatchFormat = fields.checked(_made(ImageBatchFormat), alias="image_batch_format")
    alpha: float = fields.number(above=0, default=1.0)
    prob: float = fields.number(least=0, most=1, default=1.0)

    def __call__(self, *values: Any) -> tuple[np.ndarray, np.ndarray]:
        images, labels = self._checked(*values)
        random = generator()
        mixed, order = np.array(images), random.permutation(len(images))
        at = 1 if self.format == ImageBatchFormat.NHWC else 2
        rows, columns = images.shape[at], images.shape[at + 1]
        for i, other in enumerate(order):
            if random.random() >= self.prob:
                continue
            side = np.sqrt(1 - random.beta(self.alpha, self.alpha))
            high, wide = int(rows * side) // 2, int(columns * side) // 2
            y, x = int(random.integers(rows)), int(random.integers(columns))
            box = (slice(max(y - high, 0), y + high), slice(max(x - wide, 0), x + wide))
            place = (*box, slice(None)) if at == 1 else (slice(None), *box)
            mixed[i][place] = images[other][place]
            cut = images[other][place].size / images[i].size
            labels[i] = (1 - cut) * labels[i] + cut * as_array(values[1])[other]
        return mixed, labels


publish(globals())
