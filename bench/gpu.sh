#!/bin/sh
# Builds gradcell, runs the tests that need a GPU, then the GPU benchmarks; writes gpu.json (all
# results) and gpu.txt (a table) into bench/results, or the folder named as first argument. Needs
# Python, a C++20 compiler and an NVIDIA driver; the extra that suits the driver brings the rest.
# PIP_OPTIONS are passed on, for instance "--no-index --no-deps --no-build-isolation" where all is
# there.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$(mkdir -p "${1:-bench/results}" && cd "${1:-bench/results}" && pwd)
python=${PYTHON:-python3}
cuda=$("$python" -c '
import ctypes
version = ctypes.c_int()
ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
print(12 if version.value < 13000 else 13)')
# shellcheck disable=SC2086
"$python" -m pip install --quiet ${PIP_OPTIONS:-} ".[test,cuda$cuda]"
status=0
# From another folder, so that the installed package is the one that is tested.
cd "$out"
"$python" -m gradcell info  # which libraries were taken, by the driver's version
GRADCELL_TEST_NEEDS_GPU=1 "$python" -m pytest -m cuda "$root/tests/python/test_cuda_gpu.py" --junitxml=gpu-tests.xml || status=$?
"$python" "$root/bench/gpu_bench.py" --tests gpu-tests.xml --json gpu.json > gpu.txt || status=$?
cat gpu.txt
exit $status
