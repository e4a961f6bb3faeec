#!/bin/sh
# Ten minutes on a machine with an NVIDIA GPU, without a network:
#
#     sh bench/gpu.sh [OUT [CARRIED]]
#
# Each step has a time limit, none ends the others, and what one writes lies in OUT (bench/results) line by line, or
# after each case, so that a run that is cut off leaves all that it had done. steps.txt says how each step ended, and
# what was ended early.
# CARRIED (OUT/carried) is a folder with wheels: gradcell's for the Python there, and scipy-openblas32's; without
# one of gradcell's the checkout is built. Where gradcell can be imported already, nothing is installed. In
# CARRIED/plans are plans that need nothing of gradcell to run: python bench/gpu_plans.py CARRIED/plans, on any machine.
# Without them they are written here, once gradcell can be imported.
#
# GPU_ARCHIVE: a file in which all that OUT has, but for what was carried along and plans, is packed again after each
# step: where few files come back from a machine, OUT is elsewhere, and this is one of them.
#
# GPU_SECONDS (590): all steps together. GPU_STEPS: which ones, in order; "second" is what a second call of ten minutes
# is for. GPU_PATIENCE (1): what the limits of steps are multiplied by, on a slow machine. GPU_SCALE (1): of the
# benchmarks' sizes. PYTHON: the interpreter. PIP_OPTIONS are passed on.
set -u
# Seconds that each step may take, in the order in which they run: what tells most comes first. Together 9.5 minutes.
limits="versions=15 replay=60 package=100 smoke=30 tests=70 times=70 compare=75 sanitizer=60 ungrouped=15 tileless=20
 untuned=15 convolutions=10 profile=30"
second="second=580"
cd "$(dirname "$0")/.." || exit 1
root=$PWD
out=$(mkdir -p "${1:-bench/results}" && cd "${1:-bench/results}" && pwd) || exit 1
carried=${2:-$out/carried}
python=${PYTHON:-python3}
scale=${GPU_SCALE:-1}
patience=${GPU_PATIENCE:-1}
end=$(($(date +%s) + ${GPU_SECONDS:-590}))
# -v, and not the usual -q: what has passed is named when the rest is ended.
suite="-m pytest -o addopts= -v -p no:cacheprovider -m cuda --import-mode=importlib $root/tests/python/cuda/test_cuda_gpu.py"
export PYTHONUNBUFFERED=1 GRADCELL_TEST_NEEDS_GPU=1
# JAX takes three quarters of the memory at once unless it is told not to.
export XLA_PYTHON_CLIENT_PREALLOCATE=false
: >"$out/steps.txt"

# within SECONDS COMMAND...: ended, and then killed, when its time, the step's or that of all steps is over.
within() {
  left=$((end - $(date +%s)))
  limit=$(($1 * patience))
  shift
  [ "$left" -gt "$limit" ] || limit=$left
  if [ "$limit" -le 0 ]; then
    echo "  no time left for $*" >>"$out/steps.txt"
    return 124
  fi
  timeout -k 5 "$limit" "$@"
  within=$?
  [ "$within" -ne 124 ] && [ "$within" -ne 137 ] || echo "  ended after $limit s: $*" >>"$out/steps.txt"
  return "$within"
}

# step NAME: runs the function of that name from OUT, so that the package is not taken from the checkout.
step() {
  began=$(date +%s)
  limit=$(echo " $limits $second " | tr '\n' ' ' | sed -n "s/.* $1=\([0-9]*\) .*/\1/p")
  (
    [ $((began + limit * patience)) -gt "$end" ] || end=$((began + limit * patience))
    cd "$out" && "step_$1"
  ) >"$out/$1.txt" 2>&1
  echo "$1: status $?, $(($(date +%s) - began)) s" | tee -a "$out/steps.txt"
  # Whole at any time: what is being packed has another name.
  [ -z "${GPU_ARCHIVE:-}" ] || {
    tar -czf "$GPU_ARCHIVE.part" -C "$out" --exclude=./carried --exclude=./plans . &&
      mv "$GPU_ARCHIVE.part" "$GPU_ARCHIVE"
  }
}

step_versions() {
  within 5 nvidia-smi
  within 10 "$python" -m pip list
}

# have_plans: carried along, or written now; sets $plans.
have_plans() {
  for plans in "$carried/plans" "$out/plans"; do
    [ -d "$plans" ] && return 0
  done
  within 60 "$python" "$root/bench/gpu_plans.py" --scale "$scale" "$out/part" && mv "$out/part" "$plans"
}

# replay LIMIT ARGUMENTS...: plans by themselves, with what is before the interpreter in $under.
replay() {
  limit=$1
  shift
  # shellcheck disable=SC2086
  within "$limit" ${under:-} "$python" "$root/bench/gpu_replay.py" "$plans" --kernels "$out/kernels" "$@"
}

step_replay() {
  have_plans || return $?
  replay 60 --json gpu_replay.json
}

step_package() {
  within 20 "$python" -c "import gradcell._core" && return 0
  offline="--no-index --no-deps --find-links $carried"
  # shellcheck disable=SC2086
  within 20 "$python" -m pip install ${PIP_OPTIONS:-} $offline scipy-openblas32
  # shellcheck disable=SC2086
  within 20 "$python" -m pip install ${PIP_OPTIONS:-} $offline gradcell && return 0
  # shellcheck disable=SC2086
  within 90 "$python" -m pip install ${PIP_OPTIONS:-} $offline --no-build-isolation "$root"
}

step_smoke() {
  within 10 "$python" -m gradcell info
  within 25 "$python" "$root/bench/gpu_smoke.py"
}

step_times() {
  within 70 "$python" "$root/bench/gpu_bench.py" --scale "$scale" --repeats 5 --json gpu.json
}

# Small products as a call of the library each, where the usual ones share launches.
step_ungrouped() {
  within 15 "$python" "$root/bench/gpu_bench.py" --scale "$scale" --repeats 5 --json gpu_no_groups.json --no-groups \
    --cases "small products"
}

# Narrow networks as products and elementwise kernels.
step_tileless() {
  within 20 "$python" "$root/bench/gpu_bench.py" --scale "$scale" --repeats 5 --json gpu_no_tiles.json --no-tiles \
    --cases PINN narrow 8x20 10^6 4x64
}

# Products by the algorithms that cuBLASLt names first, where the usual ones are timed.
step_untuned() {
  GRADCELL_CUDA_TUNE=0 within 15 "$python" "$root/bench/gpu_bench.py" --scale "$scale" --repeats 5 \
    --json gpu_untuned.json --cases product MLP 4x128 LSTM
}

# Convolutions by gradcell's own kernels, where the usual ones are cuDNN's.
step_convolutions() {
  GRADCELL_CUDNN=0 within 10 "$python" "$root/bench/gpu_bench.py" --scale "$scale" --repeats 5 \
    --json gpu_no_cudnn.json --cases convolution
}

step_compare() {
  within 75 "$python" "$root/bench/gpu_compare.py" --scale "$scale" --rounds 5 \
    --frameworks gradcell jax --json gpu_compare.json
}

step_tests() {
  processes=$("$python" -c "import xdist" 2>/dev/null && echo "-n 12")
  # shellcheck disable=SC2086
  within 70 "$python" $suite ${processes:-} --junitxml=gpu-tests.xml
}

# The first kernel of three plans.
step_profile() {
  command -v ncu || return 127
  have_plans || return $?
  status=0
  for name in time-Burgers-nn-Dense-8x20. time-Burgers-nn-Dense-4x64. time-attention-float32.; do
    under="ncu --launch-count 1 --set full --page details"
    replay 10 --repeats 0 --cases "$name" || status=$?
  done
  return "$status"
}

# Forty cases with an allocation for each buffer: memory tools see the end of a buffer only where buffers do not lie
# side by side. Then the engine, in the same way.
step_sanitizer() {
  command -v compute-sanitizer || return 127
  have_plans || return $?
  status=0
  for tool in memcheck racecheck; do
    under="compute-sanitizer --tool $tool --error-exitcode 9"
    replay 20 --repeats 0 --cases check- || status=$?
  done
  # shellcheck disable=SC2086
  GRADCELL_CUDA_EXACT_MEMORY=1 within 20 compute-sanitizer --tool memcheck --error-exitcode 9 \
    "$python" "$root/bench/gpu_smoke.py" || status=$?
  return "$status"
}

step_second() {
  within 400 "$python" "$root/bench/gpu_compare.py" --scale "$scale" --json gpu_compare_all.json
  # shellcheck disable=SC2086
  GRADCELL_TEST_DEVICE=GPU within 180 "$python" -m pytest -p no:cacheprovider --import-mode=importlib \
    "$root/tests/python/reference"
}

for name in ${GPU_STEPS:-$(echo "$limits" | sed 's/=[0-9]*//g')}; do
  step "$name"
done
