# SPDX-License-Identifier: MIT OR Apache-2.0
"""The peers: for each how it is found, and how its process is started on a model.

`find` says where a peer is, fetching it first unless offline, or raises Missing, which says why it cannot take part;
`command` makes the process that speaks the words of worker.h. Each Python package has an environment of its own, so
that its versions and its memory are its own affair."""
import importlib.util
import pathlib
import shutil
import subprocess
import sys

import fetch
import libraries
import ours
from fetch import Missing
from workers import Failed

HERE = pathlib.Path(__file__).resolve().parent


def python_with(options, name, module, packages):
    """An interpreter that can import `module`."""
    if importlib.util.find_spec(module.split(".")[0]):
        return pathlib.Path(sys.executable)
    if options.offline:
        raise Missing(f"python cannot import {module}")
    return fetch.environment(options.cache, name, packages)


def version_in(python, package):
    return fetch.call([python, "-c", f"from importlib.metadata import version; print(version('{package}'))"]).strip()


class Peer:
    one_thread = False

    def environment(self, folder):
        """What its process has in its environment besides the usual."""
        return {"BENCH_SCRATCH": str(folder)}


class OnnxRuntime(Peer):
    """From its Python package, driven through the C library inside (ort.c)."""
    name, title = "ort", "ONNX Runtime"

    def find(self, options):
        python = python_with(options, self.name, "onnxruntime", ["onnxruntime", "numpy"])
        self.version = version_in(python, "onnxruntime")
        spec = "import importlib.util as u; print(u.find_spec('onnxruntime').submodule_search_locations[0])"
        found = sorted(pathlib.Path(fetch.call([python, "-c", spec]).strip()).glob("capi/libonnxruntime.so*"))
        if not found:
            raise Missing("its package has no libonnxruntime.so")
        self.library, self.program = found[0], ours.helper("ort", options.cache, ["-ldl"])

    def command(self, model, folder, threads):
        return [self.program, self.library, model.path, folder, threads]


class Package(Peer):
    """A Python package; worker.py drives it."""
    def __init__(self, name, title, module, packages):
        self.name, self.title, self.module, self.packages = name, title, module, packages

    def find(self, options):
        self.python = python_with(options, self.name, self.module, self.packages)
        self.version = version_in(self.python, self.packages[0].split("[")[0])

    def command(self, model, folder, threads):
        return [self.python, HERE / "worker.py", self.name, model.path, folder, threads]


class Generated(Peer):
    """C from another compiler, built with the flags that suit it best, one thread."""
    flags = ["-std=gnu11", "-O3", "-march=native", "-ffast-math", "-w"]
    one_thread = True

    def command(self, model, folder, threads):
        own = folder / self.name
        own.mkdir(exist_ok=True)
        source = self.generate(model, own)
        text = source.read_text(errors="replace")
        self.write_entry(model, own, text)
        ours.call([*ours.compiler(), *self.flags, "-c", source, "-o", own / "net.o"], "the C compiler")
        ours.call([
            *ours.compiler(), "-O2", "-w", "-I", own, HERE / "generated.c", own / "net.o", "-o", own / "program", "-lm"
        ], "linking")
        return [own / "program", folder, own / "net.bin"]

    def write_entry(self, model, own, text):
        loads = f"_Bool {self.entry}_load(const char *path);" if f"_Bool {self.entry}_load(" in text else ""
        arguments = [f"in[{i}]" for i in range(len(model.inputs))] + [f"out[{i}]" for i in range(len(model.outputs))]
        (own / "entry.h").write_text(
            f"void {self.entry}();\n{loads}\n#define CALL(in, out) {self.entry}({', '.join(arguments)})\n"
            f"#define LOAD(path) {f'!{self.entry}_load(path)' if loads else '0'}\n")


class Emx(Generated):
    name, title, entry = "emx", "emx-onnx-cgen", "net"

    def find(self, options):
        self.python = python_with(options, self.name, "emx_onnx_cgen", ["emx-onnx-cgen"])
        self.version = version_in(self.python, "emx-onnx-cgen")

    def generate(self, model, own):
        ours.call([self.python.parent / "emx-onnx-cgen", "compile", "--model-name", "net", model.path, own / "net.c"],
                  self.title)
        return own / "net.c"


class Onnx2c(Generated):
    """From the path, or built from its repository (cmake, protobuf)."""
    name, title, entry = "onnx2c", "onnx2c", "entry"
    source = "https://github.com/kraiskil/onnx2c"

    def find(self, options):
        here, built = shutil.which("onnx2c"), options.cache / "onnx2c" / "build" / "onnx2c"
        if not here and not built.exists():
            if options.offline:
                raise Missing("no onnx2c on the path")
            if not shutil.which("cmake"):
                raise Missing("no onnx2c on the path, and no cmake to build it")
            tree = options.cache / "onnx2c"
            if not tree.exists():
                fetch.say(f"fetching {self.source}")
                fetch.call(["git", "clone", "--quiet", "--recursive", "--depth", "1", self.source, tree])
            fetch.call(["cmake", "-S", tree, "-B", tree / "build", "-DCMAKE_BUILD_TYPE=Release"])
            fetch.call(["cmake", "--build", tree / "build", "--target", "onnx2c"])
        self.program, self.version = here or built, "from the path" if here else "from its repository"

    def generate(self, model, own):
        with open(own / "net.c", "w") as out:
            try:
                p = subprocess.run([self.program, model.path], stdout=out, stderr=subprocess.PIPE, text=True,
                                   timeout=600)
            except subprocess.TimeoutExpired:
                raise Failed("onnx2c: no end within 600 s") from None
        if p.returncode:
            raise Failed(f"onnx2c: {fetch.last_line(p.stderr)}")
        return own / "net.c"


def others():
    return [Package("openvino", "OpenVINO", "openvino", ["openvino", "numpy"]),
            Package("tvm", "TVM", "tvm", ["apache-tvm", "numpy", "onnx"]),
            Package("iree", "IREE", "iree", ["iree-base-compiler[onnx]", "iree-base-runtime", "numpy"]),
            Package("tract", "tract", "tract", ["tract", "numpy"]),
            Emx(), Onnx2c(), *libraries.all_of_them()]


def find(options):
    """The peers of --peers that can be had, and a line for each that cannot."""
    known = {peer.name: peer for peer in [OnnxRuntime(), *others()]}
    here = []
    for name in known if options.peers == ["all"] else options.peers:
        if name not in known:
            raise SystemExit(f"scripts/bench: no peer '{name}'; there are {', '.join(known)}, and all")
        try:
            known[name].find(options)
            fetch.say(f"{known[name].title} {known[name].version}")
            here.append(known[name])
        except (Missing, Failed) as why:
            fetch.say(f"without {known[name].title}: {why}")
    return here
