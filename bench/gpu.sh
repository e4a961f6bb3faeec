#!/bin/sh
# Builds gradcell, runs the tests that need a GPU, then the GPU benchmarks; writes gpu.json (all
# results) and gpu.txt (a table) into bench/results, or the folder named as first argument.
set -eu
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-bench/results}" && cd "${1:-bench/results}" && pwd)
python=${PYTHON:-python3}
"$python" -m pip install --quiet ".[test]"
status=0
# From another folder, so that the installed package is the one that is tested.
(cd "$out" && "$python" -m pytest -m cuda "$OLDPWD/tests/python/test_cuda_gpu.py" \
  --junitxml="$out/gpu-tests.xml") || status=$?
(cd "$out" && "$python" "$OLDPWD/bench/gpu_bench.py" --tests gpu-tests.xml --json gpu.json) | tee "$out/gpu.txt"
exit $status
