"""What cannot build gradcell hears in one sentence what to install, before anything is compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CMAKE = shutil.which("cmake")

pytestmark = pytest.mark.skipif(CMAKE is None, reason="needs CMake")


def said(*arguments: str, **environment: str) -> tuple[bool, str]:
    """Whether CMake ended well, and what it wrote, as one line."""
    done = subprocess.run(
        [CMAKE or "", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | environment,
    )  # fmt: skip
    return done.returncode == 0, " ".join(done.stdout.split())


def script(file: str, **values: object) -> tuple[bool, str]:
    defined = [f"-D{name}={value}" for name, value in values.items()]
    return said(*defined, "-P", str(ROOT / "packaging" / file))


@pytest.mark.parametrize(
    "system, processor, supported",
    [
        ("Linux", "x86_64", True),
        ("Linux", "aarch64", True),
        ("Darwin", "arm64", True),
        ("Windows", "AMD64", True),
        ("Windows", "ARM64", False),
        ("Linux", "riscv64", False),
        ("FreeBSD", "x86_64", False),
        ("Darwin", "x86_64;arm64", False),  # both at once
    ],
)
def test_a_platform_is_supported_or_named(system: str, processor: str, supported: bool) -> None:
    values = {"CMAKE_SYSTEM_NAME": system, "CMAKE_SYSTEM_PROCESSOR": processor}
    good, text = script("platform.cmake", GRADCELL_CHECK="platform", **values)
    assert good is supported
    assert supported or f"and not on {system} with {processor}" in text


def test_a_mac_may_build_for_the_other_processor() -> None:
    values = {"CMAKE_SYSTEM_NAME": "Darwin", "CMAKE_SYSTEM_PROCESSOR": "arm64"}
    good, _ = script(
        "platform.cmake", GRADCELL_CHECK="platform", CMAKE_OSX_ARCHITECTURES="x86_64", **values
    )
    assert good


@pytest.mark.parametrize(
    "compiler, version, wrong",
    [
        ("GNU", "12.2", ""),
        ("GNU", "11.4", "gradcell needs GNU 12 or newer, and c++ is 11.4"),
        ("Clang", "22.1", ""),
        ("Clang", "17.0", "gradcell needs Clang 18 or newer"),
        ("AppleClang", "16.0", "a newer Xcode"),
        ("MSVC", "19.4", "gradcell needs GCC or Clang, whose vector types"),
    ],
)
def test_a_compiler_is_good_or_what_to_install_is_said(
    compiler: str, version: str, wrong: str
) -> None:
    good, text = script(
        "platform.cmake", GRADCELL_CHECK="compiler", CMAKE_CXX_COMPILER="c++",
        CMAKE_CXX_COMPILER_ID=compiler, CMAKE_CXX_COMPILER_VERSION=version,
    )  # fmt: skip
    assert good is (not wrong)
    assert wrong in text
    assert not wrong or "install" in text


def test_without_a_compiler_the_build_ends_at_once(tmp_path: Path) -> None:
    good, text = said("-S", str(ROOT), "-B", str(tmp_path), CXX=str(tmp_path / "none"))
    assert not good
    assert "there is no C++ compiler: apt install g++" in text


def test_an_unknown_system_is_named_before_a_compiler_is_looked_for(tmp_path: Path) -> None:
    other = ("-DCMAKE_SYSTEM_NAME=Haiku", "-DCMAKE_SYSTEM_PROCESSOR=x86_64")
    good, text = said("-S", str(ROOT), "-B", str(tmp_path), *other, CXX=str(tmp_path / "none"))
    assert not good
    assert "and not on Haiku with x86_64: use one of those." in text
    assert "compiler" not in text


@pytest.mark.parametrize("memory, compilers", [(1024, 1), (4096, 2), (8192, 5), (65536, 44)])
def test_as_many_compilers_as_memory_allows(tmp_path: Path, memory: int, compilers: int) -> None:
    shown = tmp_path / "shown.cmake"
    jobs = (ROOT / "packaging" / "jobs.cmake").as_posix()
    shown.write_text(f'include({jobs})\nmessage("compilers: ${{GRADCELL_COMPILERS}}")\n')
    good, text = said(f"-DGRADCELL_MEMORY_MIB={memory}", "-P", str(shown))
    assert good
    assert text == f"compilers: {compilers}"
