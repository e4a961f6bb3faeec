"""Training steps on a GPU beside torch.compile (with CUDA graphs) and JAX, taking turns in one run.

    python bench/gpu_compare.py --json gpu_compare.json
    python bench/gpu_compare.py --device cpu --scale 0.01     the same on the CPU, to try it

Each framework has a process of its own; one of them works at a time. A sample is a run of steps of a tenth
of a second that ends with a wait for the last result; where a framework lets us, device events around
the run give the GPU's own time. A peer that is not installed is left out with a note. The numbers of all
are compared: the exit status is 1 where they differ. Cold start: a new process with an empty kernel
cache, from its start to the first step's result.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import inputs

FRAMEWORKS = ("gradcell", "torch", "jax")
#: What gradcell is to take of the best peer's time.
GOALS = {"burgers": 0.5, "mlp": 0.8}
TOLERANCE = {"float32": 2e-3, "tf32": 3e-2, "bfloat16": 6e-2}
SCALE = 2.0**10


@dataclass(frozen=True)
class Work:
    """call: puts a step on the device. wait: until it is done. values: of a result. event: a mark on
    the device's stream, None where there is none; elapsed: milliseconds between two."""

    call: Callable[[], Any]
    wait: Callable[[Any], Any]
    values: Callable[[Any], list[float]]
    event: Callable[[], Any] | None = None
    elapsed: Callable[[Any, Any], float] | None = None


def cases(scale: float) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for depth, width, points in ((8, 20, 10**4), (8, 20, 10**6), (4, 64, 10**4), (4, 128, 10**4)):
        n = max(32, int(points * scale))
        name = f"Burgers {depth}x{width}, {points:,} points"
        found[name] = {"kind": "burgers", "depth": depth, "width": width, "points": n}
    for precision in ("float32", "tf32", "bfloat16"):
        for batch in (32, 256, 2048, 8192):
            n = max(32, int(batch * scale))
            found[f"MLP, batch {batch:,}, {precision}"] = {
                "kind": "mlp", "batch": n, "precision": precision,
            }  # fmt: skip
    return found


# gradcell ----------------------------------------------------------------------------------------


def gradcell_work(device: str, case: dict[str, Any]) -> Work:
    from steps import mindspore_api

    ms = mindspore_api.use("gradcell")
    target = {"cpu": "CPU", "gpu": "GPU"}[device]
    ms.set_context(mode=ms.GRAPH_MODE, device_target=target)
    if case["kind"] == "burgers":
        given = inputs.pinn(case["depth"], case["width"], case["points"], "float32")
        net = mindspore_api.network(given.layers, ms.nn.Tanh, ms.float32)
        loss = mindspore_api.burgers_loss(net, inputs.VISCOSITY)
        step = ms.jit(ms.value_and_grad(loss, None, net.trainable_params()))
        x, t = ms.Tensor(given.x), ms.Tensor(given.t)

        def call() -> Any:
            return step(x, t)[0]
    else:
        data = inputs.mlp(case["batch"])
        if device == "gpu":
            ms.set_context(gpu_config={"matmul_allow_tf32": case["precision"] == "tf32"})
        net = mindspore_api.network(data.layers, ms.nn.ReLU, ms.float32)
        half = case["precision"] == "bfloat16"
        train = ms.amp.build_train_network(
            net,
            ms.nn.Adam(net.trainable_params(), inputs.LEARNING_RATE, eps=inputs.EPSILON),
            ms.nn.CrossEntropyLoss(),
            "O2" if half else "O0",
            cast_model_type=ms.bfloat16 if half else ms.float16,
            loss_scale_manager=ms.amp.DynamicLossScaleManager(SCALE),
        )
        train.set_train()
        images, labels = ms.Tensor(data.images), ms.Tensor(data.labels)

        def call() -> Any:
            result = train(images, labels)
            return result[0] if isinstance(result, tuple) else result

    event = elapsed = None
    if device == "gpu":
        try:
            import cupy

            stream = cupy.cuda.ExternalStream(ms._core.device_stream(0))

            def event() -> Any:
                mark = cupy.cuda.Event()
                mark.record(stream)
                return mark

            elapsed = cupy.cuda.get_elapsed_time
        except ImportError:
            pass
    return Work(call, lambda r: r.asnumpy(), lambda r: [float(r.asnumpy())], event, elapsed)


# PyTorch -----------------------------------------------------------------------------------------


def torch_work(device: str, case: dict[str, Any]) -> Work:
    import torch
    from torch import nn
    from torch.func import grad_and_value

    from steps import torch_steps

    where = torch.device("cuda" if device == "gpu" else "cpu")
    tf32 = case.get("precision") == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    how = {"mode": "reduce-overhead"} if device == "gpu" else {}  # CUDA graphs
    if case["kind"] == "burgers":
        given = inputs.pinn(case["depth"], case["width"], case["points"], "float32")
        net = torch_steps.network(given.layers, nn.Tanh).to(where)
        weights = {name: p.detach() for name, p in net.named_parameters()}
        loss = torch_steps.burgers_loss_of_weights(net)
        compiled = torch.compile(grad_and_value(loss), dynamic=False, **how)
        x, t = (torch.from_numpy(a).to(where) for a in (given.x, given.t))

        def call() -> Any:
            return compiled(weights, x, t)[1]
    else:
        data = inputs.mlp(case["batch"])
        net = torch_steps.network(data.layers, nn.ReLU).to(where)
        images = torch.from_numpy(data.images).to(where)
        labels = torch.from_numpy(data.labels).long().to(where)
        rate, eps = inputs.LEARNING_RATE, inputs.EPSILON
        optimizer = torch.optim.Adam(net.parameters(), lr=rate, eps=eps, fused=True)
        scaler = torch.amp.GradScaler(where.type, init_scale=SCALE)
        half = case["precision"] == "bfloat16"

        def forward(images: Any, labels: Any) -> Any:
            with torch.autocast(where.type, torch.bfloat16, enabled=half):
                return nn.functional.cross_entropy(net(images), labels)

        forward = torch.compile(forward, dynamic=False, **how)

        def call() -> Any:
            optimizer.zero_grad()
            loss = forward(images, labels)
            value = loss.detach().clone()  # the graph's own result is overwritten by its next run
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return value

    event = elapsed = None
    if device == "gpu":

        def event() -> Any:
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
            return mark

        def elapsed(begin: Any, end: Any) -> float:
            return float(begin.elapsed_time(end))

    return Work(call, lambda r: r.item(), lambda r: [float(r.item())], event, elapsed)


# JAX ---------------------------------------------------------------------------------------------


def jax_work(device: str, case: dict[str, Any]) -> Work:
    import jax
    import jax.numpy as jnp

    from steps import jax_steps

    jax.config.update("jax_platforms", "cuda" if device == "gpu" else "cpu")
    precision = case.get("precision", "float32")
    tf32 = precision == "tf32"  # else it would be by default
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if tf32 else "float32")
    if case["kind"] == "burgers":
        given = inputs.pinn(case["depth"], case["width"], case["points"], "float32")
        layers = jax.tree.map(jnp.asarray, given.layers)
        x, t = jnp.asarray(given.x), jnp.asarray(given.t)
        compiled = jax.jit(jax.value_and_grad(jax_steps.burgers_loss))

        def call() -> Any:
            return compiled(layers, x, t)[0]
    else:
        data = inputs.mlp(case["batch"])
        images, labels = jnp.asarray(data.images), jnp.asarray(data.labels)
        if precision == "bfloat16":
            images = images.astype(jnp.bfloat16)

        def scaled(layers: Any, scale: Any, images: Any, labels: Any) -> Any:
            layers = jax.tree.map(lambda p: p.astype(images.dtype), layers)
            logits = jax_steps.dense_stack(layers, images, jax.nn.relu).astype(jnp.float32)
            picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
            return -picked.mean() * scale

        def train(state: Any, images: Any, labels: Any) -> Any:
            """Adam; a step whose gradients overflow is left out, and halves the scale."""
            layers, m, v, count, scale, good = state
            value, g = jax.value_and_grad(scaled)(layers, scale, images, labels)
            g = jax.tree.map(lambda g: g / scale, g)
            finite = jnp.all(jnp.stack([jnp.isfinite(x).all() for x in jax.tree.leaves(g)]))
            later = count + 1
            m2 = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
            v2 = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
            rate = inputs.LEARNING_RATE * jnp.sqrt(1 - 0.999**later) / (1 - 0.9**later)
            layers2 = jax.tree.map(
                lambda p, m, v: p - rate * m / (jnp.sqrt(v) + inputs.EPSILON), layers, m2, v2
            )
            kept = jax.tree.map(
                lambda a, b: jnp.where(finite, a, b),
                (layers2, m2, v2, later), (layers, m, v, count),
            )  # fmt: skip
            good = jnp.where(finite, good + 1, 0)
            grown = jnp.where(good == 2000, scale * 2, scale)
            new = jnp.where(finite, grown, scale / 2)
            return (*kept, new, jnp.where(good == 2000, 0, good)), value / scale

        layers = jax.tree.map(jnp.asarray, data.layers)
        m, v = (jax.tree.map(jnp.zeros_like, layers) for _ in range(2))
        state = (layers, m, v, jnp.float32(0), jnp.float32(SCALE), jnp.int32(0))
        stepped = jax.jit(train, donate_argnums=0)

        def call() -> Any:
            nonlocal state
            state, value = stepped(state, images, labels)
            return value

    return Work(call, jax.block_until_ready, lambda r: [float(r)])


# Processes ---------------------------------------------------------------------------------------


def serve(pipe: Connection, framework: str, device: str) -> None:
    work: Work | None = None
    number = 1
    while True:
        try:
            request, argument = pipe.recv()
        except EOFError:
            return
        try:
            answer: Any = None
            if request == "start":
                answer = str(__import__(framework).__version__)
            elif request == "prepare":
                work = globals()[f"{framework}_work"](device, argument)
                answer = [v for _ in range(3) for v in work.values(work.call())]
                for _ in range(4):  # captures and tuning
                    work.wait(work.call())
                number = 1
                while run(work, number)[0] * number < 0.1 and number < 4096:
                    number *= 2
            else:
                assert work is not None
                answer = run(work, number)
            pipe.send((True, answer))
        except Exception as e:
            pipe.send((False, f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"))


def run(work: Work, number: int) -> tuple[float, float | None]:
    """Seconds a step by the clock, and by device events."""
    marks = [work.event()] if work.event else []
    start = time.perf_counter()
    for _ in range(number):
        result = work.call()
    if work.event:
        marks.append(work.event())
    work.wait(result)
    took = (time.perf_counter() - start) / number
    device = work.elapsed(*marks) * 1e-3 / number if work.elapsed else None
    return took, device


class Contender:
    def __init__(self, framework: str, device: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, framework, device), daemon=True)
        process.start()
        theirs.close()

    def ask(self, request: str, argument: Any = None) -> Any:
        self.pipe.send((request, argument))
        if not self.pipe.poll(600):
            raise RuntimeError("no answer in 600 s")
        ok, answer = self.pipe.recv()
        if not ok:
            raise RuntimeError(answer)
        return answer


COLD = """
import time, sys
start = time.perf_counter()
sys.path.insert(0, sys.argv[1])
import gpu_compare
work = gpu_compare.gradcell_work(sys.argv[2], gpu_compare.cases(float(sys.argv[3]))[sys.argv[4]])
work.wait(work.call())
print(time.perf_counter() - start)
"""


def cold_start(device: str, scale: float, name: str) -> dict[str, float]:
    """Seconds to the first result, with an empty kernel cache and with the one that this made."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", COLD, str(Path(__file__).parent), device, str(scale), name]
        environment = {**os.environ, "GRADCELL_CACHE_DIR": folder}

        def once() -> float:
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-500:])
            return float(done.stdout.split()[-1])

        return {"empty cache": once(), "kernels cached": once()}


def differ(results: dict[str, list[float]], tolerance: float) -> bool:
    first = next(iter(results.values()))
    return any(
        abs(a - b) > tolerance * max(abs(b), 1e-6)
        for values in results.values()
        for a, b in zip(values, first, strict=True)
    )


def written(record: dict[str, Any], file: Path) -> None:
    """Whole at any time, whenever the process is ended."""
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(record, indent=2) + "\n")
    beside.replace(file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write all results to this file")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--scale", type=float, default=1.0, help="of the problems' sizes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cases", nargs="*", default=[], help="parts of the names of cases")
    parser.add_argument("--frameworks", nargs="*", default=list(FRAMEWORKS))
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": platform.machine(), "scale": options.scale, "cases": {}}
    contenders, record["versions"] = {}, {}
    for framework in options.frameworks:
        contender = Contender(framework, options.device)
        try:
            record["versions"][framework] = contender.ask("start")
            contenders[framework] = contender
        except RuntimeError as e:
            print(f"{framework} is left out: {e}")
    wrong = False
    head = ("ms a step", *contenders, "of the best", "goal")
    print(f"{head[0]:34}" + "".join(f"{h:>12}" for h in head[1:]))
    for name, case in cases(options.scale).items():
        if options.cases and not any(part in name for part in options.cases):
            continue
        values, samples = {}, {}
        for framework, contender in contenders.items():
            try:
                values[framework] = contender.ask("prepare", case)
                samples[framework] = []
            except RuntimeError as e:
                print(f"{name}: {framework}: {e}")
                wrong |= framework == "gradcell"
        for _ in range(options.rounds):
            for framework, found in samples.items():
                found.append(contenders[framework].ask("time"))
        different = bool(values) and differ(values, TOLERANCE[case.get("precision", "float32")])
        wrong |= different
        row: dict[str, Any] = {"values": values, "different": different}
        for framework, found in samples.items():
            clock = statistics.median(s[0] for s in found)
            events = [s[1] for s in found if s[1] is not None]
            row[framework] = {
                "ms": clock * 1e3,
                "device_ms": statistics.median(events) * 1e3 if events else None,
                "samples": found,
            }
        peers = [row[f]["ms"] for f in samples if f != "gradcell"]
        if peers and "gradcell" in samples:
            row["ratio"] = row["gradcell"]["ms"] / min(peers)
        row["goal"] = GOALS[case["kind"]]
        record["cases"][name] = row
        cells = [f"{row[f]['ms']:.4f}" if f in row else "-" for f in contenders]
        cells += [f"{row['ratio']:.2f}" if "ratio" in row else "-", f"{row['goal']}"]
        print(
            f"{name:34}" + "".join(f"{c:>12}" for c in cells) + "  differ" * different, flush=True
        )
        if options.json:
            written(record, Path(options.json))
    if "gradcell" in contenders and not options.cases:
        record["cold_start"] = cold_start(options.device, options.scale, next(iter(cases(1.0))))
        print("cold start, s:", {k: round(v, 2) for k, v in record["cold_start"].items()}, "goal 2")
    if options.json:
        written(record, Path(options.json))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
