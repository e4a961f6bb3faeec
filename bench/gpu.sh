#!/bin/sh
# Builds gradcell, runs the tests that need a GPU, these again under compute-sanitizer where it is
# installed, then the GPU benchmarks, beside JAX and torch.compile where these are; writes all
# results (gpu.json, gpu_compare.json) and tables (gpu.txt, gpu_compare.txt, sanitizer.txt) into
# bench/results, or the folder named as first argument. Needs Python, a C++20 compiler and an
# NVIDIA driver; the extra that suits the driver brings the rest. PIP_OPTIONS are passed on, for
# instance "--no-index --no-deps --no-build-isolation" where all is there.
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
suite="-m pytest -p no:cacheprovider -m cuda $root/tests/python/cuda/test_cuda_gpu.py"
# shellcheck disable=SC2086
GRADCELL_TEST_NEEDS_GPU=1 "$python" $suite --junitxml=gpu-tests.xml || status=$?
if command -v compute-sanitizer > sanitizer.txt; then
  # shellcheck disable=SC2086
  GRADCELL_TEST_NEEDS_GPU=1 compute-sanitizer --target-processes all --error-exitcode 9 \
    "$python" $suite >> sanitizer.txt 2>&1 || status=$?
else
  echo "compute-sanitizer was not found: memory accesses were not checked" | tee sanitizer.txt
fi
tail -n 3 sanitizer.txt
"$python" "$root/bench/gpu_bench.py" --tests gpu-tests.xml --json gpu.json > gpu.txt || status=$?
cat gpu.txt
"$python" "$root/bench/gpu_compare.py" --json gpu_compare.json > gpu_compare.txt || status=$?
cat gpu_compare.txt
exit $status
