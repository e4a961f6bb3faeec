#!/bin/sh
# Ten minutes on a machine with an NVIDIA GPU, without a network:
#
#     sh bench/gpu.sh [OUT [CARRIED]]
#
# Each step has a time limit, none ends the others, and what one writes lies in OUT (bench/results) line by line, or
# after each case, so that a run that is cut off leaves all that it had done. steps.txt says how each step ended.
# CARRIED (OUT/carried) is a folder with wheels: gradcell's for the Python there, and scipy-openblas32's; without
# one of gradcell's the checkout is built. Where gradcell can be imported already, nothing is installed.
#
# GPU_SECONDS (590): all steps together. GPU_STEPS: which ones, in order; "second" is what a second call of ten minutes
# is for. GPU_SCALE (1): of the benchmarks' sizes. PYTHON: the interpreter. PIP_OPTIONS are passed on.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD
out=$(mkdir -p "${1:-bench/results}" && cd "${1:-bench/results}" && pwd) || exit 1
carried=${2:-$out/carried}
python=${PYTHON:-python3}
scale=${GPU_SCALE:-1}
end=$(($(date +%s) + ${GPU_SECONDS:-590}))
suite="-m pytest -p no:cacheprovider -m cuda --import-mode=importlib $root/tests/python/cuda/test_cuda_gpu.py"
export PYTHONUNBUFFERED=1 GRADCELL_TEST_NEEDS_GPU=1
# JAX takes three quarters of the memory at once unless it is told not to.
export XLA_PYTHON_CLIENT_PREALLOCATE=false
: >"$out/steps.txt"

# within SECONDS COMMAND...: ended, and then killed, when its time or that of all steps is over.
within() {
  left=$((end - $(date +%s)))
  limit=$1
  shift
  [ "$left" -gt "$limit" ] || limit=$left
  [ "$limit" -gt 0 ] || return 124
  timeout -k 5 "$limit" "$@"
}

# step NAME: runs the function of that name from OUT, so that the package is not taken from the checkout.
step() {
  began=$(date +%s)
  (cd "$out" && "step_$1") >"$out/$1.txt" 2>&1
  echo "$1: status $?, $(($(date +%s) - began)) s" | tee -a "$out/steps.txt"
}

step_versions() {
  within 10 nvidia-smi
  within 20 "$python" -m pip list
}

step_package() {
  within 20 "$python" -c "import gradcell._core" && return 0
  offline="--no-index --no-deps --find-links $carried"
  # shellcheck disable=SC2086
  within 60 "$python" -m pip install ${PIP_OPTIONS:-} $offline scipy-openblas32
  # shellcheck disable=SC2086
  within 60 "$python" -m pip install ${PIP_OPTIONS:-} $offline gradcell && return 0
  # shellcheck disable=SC2086
  within 300 "$python" -m pip install ${PIP_OPTIONS:-} $offline --no-build-isolation "$root"
}

step_smoke() {
  within 20 "$python" -m gradcell info
  within 60 "$python" "$root/bench/gpu_smoke.py"
}

step_times() {
  within 120 "$python" "$root/bench/gpu_bench.py" --scale "$scale" --repeats 5 --json gpu.json
}

step_compare() {
  within 150 "$python" "$root/bench/gpu_compare.py" --scale "$scale" --rounds 5 \
    --frameworks gradcell jax --json gpu_compare.json
}

step_tests() {
  processes=$("$python" -c "import xdist" 2>/dev/null && echo "-n 12")
  # shellcheck disable=SC2086
  within 120 "$python" $suite ${processes:-} -v --junitxml=gpu-tests.xml
}

step_profile() {
  command -v ncu || return 127
  within 45 ncu --launch-count 40 --set basic --csv "$python" "$root/bench/gpu_bench.py" --scale "$scale" \
    --repeats 1 --cases 8x20 4x64 softmax
}

# Memory tools see the end of a buffer only where buffers do not lie side by side.
step_sanitizer() {
  command -v compute-sanitizer || return 127
  for tool in memcheck racecheck; do
    # shellcheck disable=SC2086
    GRADCELL_CUDA_EXACT_MEMORY=1 within 60 compute-sanitizer --tool "$tool" --target-processes all \
      --error-exitcode 9 "$python" "$root/bench/gpu_bench.py" --scale 0.01 --repeats 1 || return $?
  done
}

step_second() {
  within 400 "$python" "$root/bench/gpu_compare.py" --scale "$scale" --json gpu_compare_all.json
  # shellcheck disable=SC2086
  GRADCELL_TEST_DEVICE=GPU within 180 "$python" -m pytest -p no:cacheprovider --import-mode=importlib \
    "$root/tests/python/reference"
}

for name in ${GPU_STEPS:-versions package smoke times compare tests profile sanitizer}; do
  step "$name"
done
