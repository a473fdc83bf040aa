# SPDX-License-Identifier: MIT OR Apache-2.0
"""Libraries of kernels as peers, for models that are one matrix product (OpenBLAS) or one 2-D convolution (oneDNN).

They come from the system or from unpacked Debian packages. The weights are written beside the inputs: w_0.bin,
w_1.bin (the bias); the sizes go onto the command line."""
import os
import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

import fetch
import ours
from fetch import Missing
from workers import Declined


def find_library(options, name, packages, pattern="usr/lib/**"):
    """The file `name` of the system, or of Debian packages that are fetched; and the folders in which its own needs
    lie."""
    found = sorted(pathlib.Path("/").glob(f"{pattern}/{name}"))
    if found:
        return found[0], []
    if options.offline:
        raise Missing(f"{name} is not installed")
    roots = [fetch.debian(options.cache, package) for package in packages]
    found = sorted(path for root in roots for path in root.glob(f"{pattern}/{name}"))
    if not found:
        raise Missing(f"{packages[0]} has no {name}")
    return found[0], sorted({str(path.parent) for root in roots for path in root.glob("usr/lib/**/*.so*")})


def single_node(model, operators):
    """The one node of a model, its attributes and its weights as arrays (input number: array)."""
    if len(model.nodes) != 1 or model.nodes[0] not in operators:
        raise Declined("no kernel for this model")
    graph = onnx.load(str(model.path)).graph
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    node = graph.node[0]
    weights = {n: constants[name] for n, name in enumerate(node.input) if name in constants}
    if 0 in weights or 1 not in weights or weights[1].dtype != np.float32:
        raise Declined("no kernel for this model")
    return node, {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}, weights


class Library:
    one_thread = False

    def environment(self, folder):
        path = ":".join([*self.folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
        return {"LD_LIBRARY_PATH": path} if path else {}

    def write_weights(self, folder, weights):
        for n, array in enumerate(weights):
            np.ascontiguousarray(array).tofile(folder / f"w_{n}.bin")


class OpenBlas(Library):
    name, title = "openblas", "OpenBLAS"

    def find(self, options):
        self.library, self.folders = find_library(options, "libopenblas.so.0",
                                                  ["libopenblas0-pthread", "libgfortran5", "libquadmath0"])
        self.program = ours.helper("openblas", options.cache, ["-ldl"])
        self.version = self.library.resolve().name

    def command(self, model, folder, threads):
        node, attributes, weights = single_node(model, ("MatMul", "Gemm"))
        transposed, bias = int(attributes.get("transB", 0)), weights.get(2)
        n, k = weights[1].shape[::1 if transposed else -1]
        plain = not attributes.get("transA", 0) and attributes.get("alpha", 1) == 1 and attributes.get("beta", 1) == 1
        if not plain or weights[1].ndim != 2 or (bias is not None and bias.shape != (n,)):
            raise Declined("no kernel for this model")
        m = int(np.prod(model.inputs[0].shape)) // k
        self.write_weights(folder, [weights[1]] + ([bias] if bias is not None else []))
        return [self.program, self.library, folder, threads, m, n, k, transposed, int(bias is not None)]


class OneDnn(Library):
    """One algorithm of its convolutions; in its own layouts, without the reorders that lead there."""
    def __init__(self, algorithm):
        self.algorithm = algorithm
        self.name, self.title = f"onednn-{algorithm}", f"oneDNN {algorithm}"

    def find(self, options):
        packages = ["libdnnl-dev", "libdnnl2", "ocl-icd-libopencl1"]
        header, _ = find_library(options, "dnnl.h", packages, "usr/include")
        library, self.folders = find_library(options, "libdnnl.so.2", packages[1:])
        self.program = ours.helper(
            "onednn", options.cache,
            ["-isystem", header.parent, library, "-Wl,--unresolved-symbols=ignore-in-shared-libs"])
        self.version = library.resolve().name.partition(".so.")[2]

    def environment(self, folder):
        return {**super().environment(folder), "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(self.threads)}

    def command(self, model, folder, threads):
        self.threads = threads
        node, attributes, weights = single_node(model, ("Conv",))
        shape, bias = weights[1].shape, weights.get(2)
        if len(shape) != 4 or any(d != 1 for d in attributes.get("dilations", [1])) or attributes.get(
                "auto_pad", b"NOTSET") != b"NOTSET":
            raise Declined("no kernel for this model")
        if self.algorithm == "winograd" and (shape[2:] != (3, 3) or attributes.get("strides", [1, 1]) != [1, 1]
                                             or attributes.get("group", 1) > 1):
            raise Declined("no kernel for this model")
        n, c, h, w = model.inputs[0].shape
        top, left, bottom, right = attributes.get("pads", [0] * 4)
        stride = attributes.get("strides", [1, 1])
        high, wide = (h + top + bottom - shape[2]) // stride[0] + 1, (w + left + right - shape[3]) // stride[1] + 1
        self.write_weights(folder, [weights[1]] + ([bias] if bias is not None else []))
        return [
            self.program, self.algorithm, folder, n, c, h, w, shape[0], shape[2], shape[3], high, wide, *stride, top,
            left, bottom, right,
            attributes.get("group", 1),
            int(bias is not None)
        ]


def all_of_them():
    return [OpenBlas(), OneDnn("direct"), OneDnn("winograd")]
