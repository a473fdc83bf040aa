# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a model to a shared object: burncc, then $CC. In: the model's path and options of the command line. Out: a
Model. A result lies in a folder of the cache that its inputs name: the model's content, the options, both compilers.
Files that the model refers to (--depfile lists them) are compared when it is found again."""
import functools
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from .model import Model

HERE = pathlib.Path(__file__).resolve().parent
SHIM = """#include "model.c"
#include "burn.h"
const burn_model *burncc_descriptor(void);
const char *burncc_error(int code);
const burn_model *burncc_descriptor(void) { return &model_model; }
const char *burncc_error(int code) { return burn_strerror(code); }
"""
POOL = """#include "threads.h"
void *burncc_pool(int threads);
static burn_threads pool;
void *burncc_pool(int threads) { return burn_threads_open(&pool, threads, 0) ? NULL : &pool; }
"""


class CompileError(Exception):
    """What burncc or the C compiler says of the model."""


def compiler():
    """The path of burncc: $BURNCC, the one of this package, or one on PATH."""
    given = os.environ.get("BURNCC") or str(HERE / "bin" / "burncc")
    path = given if os.environ.get("BURNCC") or os.path.exists(given) else shutil.which("burncc")
    if not path:
        raise CompileError("there is no burncc: set BURNCC to its path")
    return path


def runtime():
    inside = HERE / "runtime"
    return inside if inside.is_dir() else HERE.parent.parent / "runtime"


def words_of(options):
    """precision="bf16", fast_math=True, dim={"batch": "1..8"}, weights=["a", "b"] as words of a command line."""
    words = []
    for name, value in sorted(options.items()):
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        each = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else (
            value if isinstance(value, (list, tuple)) else [value])
        for one in each:
            words += [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return words


def machine_flags(target):
    if target in ("generic", "native"):
        return ["-march=native"]
    return [f"-march={target}"] if target.startswith("x86-64-") and "," not in target else []


def call(command, what):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    except OSError as e:
        raise CompileError(f"{what}: {command[0]}: {e.strerror}") from e
    if done.returncode:
        raise CompileError(done.stderr.strip() or f"{what} ends with status {done.returncode}")
    return done.stdout


@functools.lru_cache(maxsize=None)
def identity(path, changed):
    """What a compiler says it is."""
    return call([*shlex.split(path), "--version"], "the version")


def sum_of(path):
    with open(path, "rb") as f:
        digest = hashlib.sha256()
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sources_of(depfile):
    """The files behind the colon of the first make rule, whose blanks stand behind a backslash."""
    rule = depfile.read_text().replace("\\\n", " ").splitlines()[0]
    names = rule.split(": ", 1)[1].replace("\\ ", "\0").split()
    return sorted({n.replace("\0", " ").replace("\\#", "#").replace("$$", "$") for n in names})


def cache_folder(given):
    if given:
        return pathlib.Path(given)
    base = os.environ.get("BURNCC_CACHE")
    return pathlib.Path(base) if base else pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "burncc"


def is_there(folder):
    try:
        known = json.loads((folder / "sources.json").read_text())
        return all(sum_of(name) == digest for name, digest in known.items())
    except (OSError, ValueError):
        return False


def build(folder, model, options, words, cc):
    target, threads = options["target"], int(str(options.get("threads") or 1).split(":")[0])
    call([compiler(), model, "-o", folder / "model.c", "--name", "model", "--depfile", folder / "model.d", "--quiet",
          *words], "burncc")
    (folder / "shim.c").write_text(SHIM + (POOL if threads > 1 else ""))
    more = [runtime() / "threads.c", "-pthread"] if threads > 1 else []
    relaxed = [] if options.get("fast_math") else ["-ffp-contract=off"]
    call([*cc, "-std=gnu11", "-O3", *machine_flags(target), *relaxed, "-w", "-fPIC", "-shared", "-I", folder, "-I",
          runtime(), "-o", folder / "model.so", folder / "shim.c", *more, "-lm"], "the C compiler")
    sources = {os.path.abspath(name): sum_of(name) for name in sources_of(folder / "model.d")}
    (folder / "sources.json").write_text(json.dumps(sources))


def compile(model, *, target="native", cache=None, **options):
    """The model as a callable over NumPy arrays. Options are burncc's: dim={"batch": "1..8"}, threads=4,
    precision="bf16", weights="net.safetensors", fast_math=True, ... `cache`: a folder, else $BURNCC_CACHE, else burncc
    in the user's cache folder."""
    model = os.path.abspath(os.fspath(model))
    options = {"target": target, **options}
    words, cc = words_of(options), shlex.split(os.environ.get("CC") or "cc")
    path = compiler()
    try:
        content = sum_of(model)
        named = [content, *words, identity(path, os.stat(path).st_mtime_ns), identity(shlex.join(cc), 0),
                 machine(target)]
    except OSError as e:
        raise CompileError(f"{e.filename}: {e.strerror}") from e
    key = hashlib.sha256("\0".join(named).encode()).hexdigest()[:32]
    base = cache_folder(cache)
    folder = base / key
    if not is_there(folder):
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base, prefix="new-") as made:
            new = pathlib.Path(made) / key
            new.mkdir()
            build(new, model, options, words, cc)
            shutil.rmtree(folder, ignore_errors=True)
            try:
                new.rename(folder)
            except OSError:                             # another process was first
                if not is_there(folder):
                    raise
    return Model(folder / "model.so", folder / "model.bin", int(str(options.get("threads") or 1).split(":")[0]))


def machine(target):
    """What code for this machine depends on, where the cache lies on several."""
    if target not in ("generic", "native"):
        return ""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return os.uname().machine
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), os.uname().machine)
