"""What the CUDA engine takes for granted of libraries that it opens at run time, against their own headers:
signatures, values, structs, and symbols. The headers come with NVIDIA's wheels, in whatever version is
installed; what is not there is skipped.

    pip install nvidia-cuda-{runtime,crt,cccl,nvrtc} nvidia-cublas nvidia-{nccl,cudnn}-cu13
"""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

CSRC = pathlib.Path(__file__).resolve().parents[3] / "csrc"
CUDA = CSRC / "cuda" / "run"

#: By header: the file whose functions it declares, its library, and values by our names and theirs.
HEADERS = {
    "cuda.h": (
        "driver.h",
        None,  # comes with the driver
        """
        driver.cpp kOutOfMemory CUDA_ERROR_OUT_OF_MEMORY
        device.cpp kNonBlocking CU_STREAM_NON_BLOCKING
        driver.h kNoTiming CU_EVENT_DISABLE_TIMING
        device.cpp kMajorOf CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        device.cpp kMinorOf CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
        device.cpp kImplicitCapture CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        device.cpp kSharedOf CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        device.cpp kMultiprocessorsOf CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        engine.cpp kSharedLimit CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        engine.cpp kThreadLocal CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        engine.cpp kActive CU_STREAM_CAPTURE_STATUS_ACTIVE
        ../../runtime/exchange.cpp kDeviceOrdinal CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        """,
    ),
    "nvrtc.h": ("nvrtc.cpp", "libnvrtc.so.*", ""),
    "cublasLt.h": (
        "cublaslt.cpp",
        "libcublasLt.so.*",
        """
        cublaslt.cpp kReal32 CUDA_R_32F
        cublaslt.cpp kReal64 CUDA_R_64F
        cublaslt.cpp kReal16 CUDA_R_16F
        cublaslt.cpp kRealBrain16 CUDA_R_16BF
        cublaslt.cpp kCompute32 CUBLAS_COMPUTE_32F
        cublaslt.cpp kCompute64 CUBLAS_COMPUTE_64F
        cublaslt.cpp kComputeTf32 CUBLAS_COMPUTE_32F_FAST_TF32
        cublaslt.cpp kTransposeA CUBLASLT_MATMUL_DESC_TRANSA
        cublaslt.cpp kTransposeB CUBLASLT_MATMUL_DESC_TRANSB
        cublaslt.cpp kEpilogue CUBLASLT_MATMUL_DESC_EPILOGUE
        cublaslt.cpp kBiasPointer CUBLASLT_MATMUL_DESC_BIAS_POINTER
        cublaslt.cpp kEpilogueBias CUBLASLT_EPILOGUE_BIAS
        cublaslt.cpp kBatchCount CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
        cublaslt.cpp kBatchStride CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
        cublaslt.cpp kMaxWorkspace CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
        cublaslt.cpp kMinAlignmentA CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES
        """,
    ),
    "nccl.h": (
        "nccl.cpp",
        "libnccl.so.2",
        """
        nccl.cpp kInt8 ncclInt8
        nccl.cpp kUint8 ncclUint8
        nccl.cpp kInt32 ncclInt32
        nccl.cpp kInt64 ncclInt64
        nccl.cpp kFloat16 ncclFloat16
        nccl.cpp kFloat32 ncclFloat32
        nccl.cpp kFloat64 ncclFloat64
        nccl.cpp kBrainFloat16 ncclBfloat16
        """,
    ),
    "cudnn.h": (
        "cudnn.cpp",
        "libcudnn.so.*",
        """
        cudnn.cpp kDataFloat CUDNN_DATA_FLOAT
        cudnn.cpp kDataHalf CUDNN_DATA_HALF
        cudnn.cpp kDataBrainHalf CUDNN_DATA_BFLOAT16
        cudnn.cpp kChannelsSecond CUDNN_TENSOR_NCHW
        cudnn.cpp kChannelsLast CUDNN_TENSOR_NHWC
        cudnn.cpp kAnyMath CUDNN_DEFAULT_MATH
        cudnn.cpp kTensorMath CUDNN_TENSOR_OP_MATH
        cudnn.cpp kHalvedMath CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
        cudnn.cpp kFmaMath CUDNN_FMA_MATH
        cudnn.cpp kDeterministic CUDNN_DETERMINISTIC
        cudnn.cpp kCrossCorrelation CUDNN_CROSS_CORRELATION
        """,
    ),
}

#: More that has to hold, by header.
MORE = {
    "cuda.h": """
using Theirs = CUDA_KERNEL_NODE_PARAMS_v2;
static_assert(sizeof(KernelNode) == sizeof(Theirs));
static_assert(offsetof(KernelNode, grid_x) == offsetof(Theirs, gridDimX));
static_assert(offsetof(KernelNode, block_x) == offsetof(Theirs, blockDimX));
static_assert(offsetof(KernelNode, shared_bytes) == offsetof(Theirs, sharedMemBytes));
static_assert(offsetof(KernelNode, parameters) == offsetof(Theirs, kernelParams));
static_assert(offsetof(KernelNode, context) == offsetof(Theirs, ctx));
static_assert(CUDA_ERROR_ECC_UNCORRECTABLE == 214 && CUDA_ERROR_NVLINK_UNCORRECTABLE == 220);
static_assert(CUDA_ERROR_ILLEGAL_ADDRESS == 700 && CUDA_ERROR_LAUNCH_TIMEOUT == 702);
static_assert(CUDA_ERROR_ASSERT == 710 && CUDA_ERROR_HARDWARE_STACK_ERROR == 714);
static_assert(CUDA_ERROR_ILLEGAL_INSTRUCTION == 715 && CUDA_ERROR_MISALIGNED_ADDRESS == 716);
static_assert(CUDA_ERROR_INVALID_ADDRESS_SPACE == 717 && CUDA_ERROR_INVALID_PC == 718);
static_assert(CUDA_ERROR_LAUNCH_FAILED == 719 && CUDA_ERROR_TENSOR_MEMORY_LEAK == 721);
static_assert(CUDA_ERROR_CONTAINED == 226 && CUDA_ERROR_EXTERNAL_DEVICE == 911);
static_assert(CUDA_ERROR_MPS_CLIENT_TERMINATED == 810);
""",
    "nvrtc.h": "",
    "cublasLt.h": """
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(Heuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1);
""",
    "nccl.h": """
static_assert(int(ncclSum) == int(gradcell::Combine::Sum));
static_assert(int(ncclProd) == int(gradcell::Combine::Product));
static_assert(int(ncclMax) == int(gradcell::Combine::Max));
static_assert(int(ncclMin) == int(gradcell::Combine::Min));
""",
    "cudnn.h": """
template <class Theirs>
constexpr bool same =
    sizeof(AlgorithmFound) == sizeof(Theirs) &&
    offsetof(AlgorithmFound, status) == offsetof(Theirs, status) &&
    offsetof(AlgorithmFound, memory) == offsetof(Theirs, memory) &&
    offsetof(AlgorithmFound, determinism) == offsetof(Theirs, determinism) &&
    offsetof(AlgorithmFound, math) == offsetof(Theirs, mathType);
static_assert(same<cudnnConvolutionFwdAlgoPerf_t> && same<cudnnConvolutionBwdDataAlgoPerf_t> &&
              same<cudnnConvolutionBwdFilterAlgoPerf_t>);
""",
}

#: What signatures and the lines above name, in the engine's own file.
DECLARED = {
    "cublasLt.h": [r"struct Algorithm \{.*?\n\};", r"struct Heuristic \{.*?\n\};"],
    "cudnn.h": [r"struct AlgorithmFound \{.*?\n\};", r"using Search = .*?;", r"using Run = .*?;"],
}

PREFIX = """
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/run/driver.h"
#include "ir/spec.h"
#define __CUDA_API_VERSION_INTERNAL  // declares earlier versions of functions too
#include <HEADER>

using gradcell::cuda::DevicePointer, gradcell::cuda::StreamHandle, gradcell::cuda::EventHandle;
using gradcell::cuda::KernelNode;
using Program = void*;
using NcclId = std::array<char, 128>;

/// How a parameter is passed: as a pointer, as an integer, a number or bytes of some size.
template <class T>
constexpr size_t passed() {
  if constexpr (std::is_void_v<T>) return 0;
  else if constexpr (std::is_pointer_v<T>) return 1;
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return 100 + sizeof(T);
  else if constexpr (std::is_floating_point_v<T>) return 200 + sizeof(T);
  else return 1000 + sizeof(T);
}
template <class F>
struct Abi;
template <class R, class... A>
struct Abi<R(A...)> {
  static constexpr std::array<size_t, 1 + sizeof...(A)> value{passed<R>(), passed<A>()...};
};
template <class R, class... A>
struct Abi<R(A...) noexcept> : Abi<R(A...)> {};
"""


def packages() -> list[pathlib.Path]:
    spec = importlib.util.find_spec("nvidia")
    return [pathlib.Path(f) for f in (spec and spec.submodule_search_locations) or ()]


def installed(pattern: str) -> list[pathlib.Path]:
    return sorted(p for folder in packages() for p in folder.glob(f"*/{pattern}"))


def functions(header: str) -> list[tuple[str, str]]:
    """(signature, symbol) of all that the engine calls."""
    text = (CUDA / HEADERS[header][0]).read_text()
    name = r'library_?,\s*"(\w+)"(?:,\s*kMayLack)?\}'
    found = re.findall(rf"Function<([^;{{}}]*)>\s+\w+\{{\s*{name}", text)
    assert len(found) == len(re.findall(name, text)) > 10
    return found


@pytest.mark.parametrize("header", HEADERS)
def test_headers(header: str, tmp_path: pathlib.Path) -> None:
    cxx = shutil.which("g++")
    found = installed(f"include/{header}")
    if not cxx or not found:
        pytest.skip(f"no {header}: see the top of this file" if cxx else "no g++")
    text = PREFIX.replace("HEADER", header)
    source = (CUDA / HEADERS[header][0]).read_text()
    for pattern in DECLARED.get(header, ()):
        declared = re.search(pattern, source, re.S)
        assert declared, pattern
        text += declared[0] + "\n"
    for signature, symbol in functions(header):
        text += f"static_assert(Abi<{signature}>::value == Abi<decltype({symbol})>::value);\n"
    for line in HEADERS[header][2].strip().splitlines():
        file, ours, theirs = line.split()
        value = re.search(rf"\b{ours} = (\d+)", (CUDA / file).read_text())
        assert value, line
        text += f"static_assert({value[1]} == {theirs});\n"
    (tmp_path / "headers.cpp").write_text(text + MORE[header])
    for place in found:
        # CUDA 13's packages share a folder. CUDA 12's have one each; NCCL's and cuDNN's suit both.
        ours = place.parts[-3]
        all_of = installed("include/cuda_runtime.h")
        of_both = ours in ("nccl", "cudnn")
        newer = ours == "cu13" or (of_both and any(p.parts[-3] == "cu13" for p in all_of))
        named = {"cu13"} if newer else {"cuda_runtime", "cuda_nvcc", "cuda_cccl"}
        folders = [CSRC, place.parent]
        for pattern in ("cuda_runtime.h", "crt", "nv", "cccl"):
            others = (p for p in installed(f"include/{pattern}") if p.parts[-3] in named)
            folders += [p if pattern == "cccl" else p.parent for p in others]
        done = subprocess.run(
            [cxx, "-std=c++20", "-fsyntax-only", *(f"-I{f}" for f in folders), "headers.cpp"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        missing = re.search("fatal error: (.*): No such file", done.stderr)
        if missing:
            pytest.skip(f"{place} includes {missing[1]}: see the top of this file")
        assert done.returncode == 0, f"{place}\n{done.stderr[:4000]}"


def test_errors_after_which_all_work_fails_are_fatal() -> None:
    """Those of which cuda.h says that further work returns the same error, or that the process must be
    terminated."""
    headers = installed("include/cuda.h")
    if not headers:
        pytest.skip("no cuda.h: see the top of this file")
    found = re.search(r"kFatal\[\] = \{([\d,\s]+)\}", (CUDA / "driver.cpp").read_text())
    assert found
    ours = {int(n) for n in found[1].split(",")}
    for header in headers:
        comments = re.findall(
            r"/\*\*(.*?)\*/\s*(CUDA_ERROR_\w+)\s*=\s*(\d+)", header.read_text(), re.S
        )
        theirs = {
            int(number)
            for text, _, number in comments
            if re.search(
                r"(will|must)[\s*]+(return|be)[\s*]+(the[\s*]+same[\s*]+error|terminated)", text
            )
        }
        assert theirs and theirs <= ours, (header, theirs - ours)


@pytest.mark.parametrize("header", [h for h in HEADERS if HEADERS[h][1]])
def test_symbols(header: str) -> None:
    """The libraries that are installed have every function that is looked up."""
    libraries = installed(f"lib/{HEADERS[header][1]}")
    nm = shutil.which("nm")
    if not nm or not libraries:
        pytest.skip(f"no {HEADERS[header][1]}" if nm else "no nm")
    for library in libraries:
        if ".alt." in library.name or "builtins" in library.name:
            continue
        table = subprocess.run([nm, "-D", str(library)], capture_output=True, text=True).stdout
        exported = set(re.findall(r" [TWi] (\w+)", table))
        missing = [symbol for _, symbol in functions(header) if symbol not in exported]
        assert not missing, f"{library}: {missing}"
