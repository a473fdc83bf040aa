# SPDX-License-Identifier: MIT OR Apache-2.0
"""One model of the zoo against its ONNX twin with the same parameters.

usage: twin.py FILL_WEIGHTS STRIPPED.onnx MODEL.c BURNCC TARGET [--set NAME=VALUE]...

The twin's weights are drawn once. Exporters rename initialisers, transpose them, leave out what is zero, and fold batch
norms into convolutions; what stays is the order in which layers use them. So the layers of both are matched by kind
and shape in that order, the parameters are written to a .safetensors under the description's names (PyTorch's), and
`burncc run --strict` loads it. A batch norm that was folded becomes one that only adds the convolution's bias. Both
outputs, and that of burncc for the ONNX file, must agree with ONNX Runtime's within 1e-4 of its largest element."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

BOUND = 1e-4
EPSILON = 1e-5      # of every batch norm that the exporters folded here
Layer = collections.namedtuple("Layer", "weight bias rest")


# ---------------------------------------------------------------- the twin


def constants(graph):
    """Arrays by name, under the names of their copies (Identity) and of Constant nodes too."""
    found = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    for n in graph.node:
        if n.op_type == "Identity" and n.input[0] in found:
            found[n.output[0]] = found[n.input[0]]
        if n.op_type == "Constant" and n.attribute[0].name == "value":
            found[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
    return found


def added(graph, name, known):
    """The vector that the next node adds to this tensor, or None."""
    for n in graph.node:
        if n.op_type == "Add" and name in n.input:
            other = [known[i] for i in n.input if i in known]
            if other and other[0].ndim == 1 and other[0].size > 1:
                return other[0]
    return None


def layer_of(graph, n, known):
    """The parameters that a node uses, a linear layer's as PyTorch keeps them, [out, in]; None: it uses none."""
    given = [known.get(i) for i in n.input]
    vectors = [a for a in given if a is not None and a.dtype.kind == "f" and a.ndim == 1 and a.size > 1]
    arrays = [a for a in given if a is not None and a.dtype.kind == "f" and a.ndim > 1]
    if n.op_type == "BatchNormalization":
        return Layer(given[1], given[2], given[3:5])
    if n.op_type in ("Conv", "LayerNormalization"):
        return Layer(given[1], given[2] if len(given) > 2 else None, None)
    if n.op_type == "Gemm":
        turned = any(a.name == "transB" and a.i for a in n.attribute)
        return Layer(given[1] if turned else given[1].T, given[2] if len(given) > 2 else None, None)
    if n.op_type == "MatMul" and given[1] is not None:
        return Layer(given[1].T, added(graph, n.output[0], known), None)
    if n.op_type == "Mul" and vectors:
        return Layer(vectors[0], added(graph, n.output[0], known), None)
    if n.op_type in ("Gather", "Add", "Concat") and arrays:
        return Layer(arrays[0], None, None)
    return None


def layers(graph):
    """Queues of layers in the order of use: by the weight's shape, batch norms on their own."""
    known, queues = constants(graph), collections.defaultdict(collections.deque)
    for n in graph.node:
        layer = layer_of(graph, n, known)
        if layer:
            queues[layer.rest is not None, layer.weight.shape].append(layer)
    return queues


# ---------------------------------------------------------------- the description


def parameters(burncc, model, settings):
    """Names and shapes in the order of the description."""
    text = subprocess.run([burncc, model, "--dump", "import"] + settings, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    found = re.finditer(r"^  %\d+ (\S+) = const (?:trainable )?f32\[([\d,]*)\]", text, re.M)
    return {m[1]: tuple(int(d) for d in m[2].split(",")) for m in found}


def groups(shapes):
    """Parameters of one layer: {"weight": name, "bias": name, ...} in order; one on its own is a "weight"."""
    found = {}
    for name in shapes:
        m = re.fullmatch(r"(.*?)[._]?(weight|bias|running_mean|running_var)", name)
        found.setdefault(m[1] if m else name, {})[m[2] if m else "weight"] = name
    return found.values()


def match(shapes, queues, keep):
    """The description's parameters; keep: those whose linear layers PyTorch keeps as [in, out]."""
    filled, folded = {}, None
    for names in groups(shapes):
        weight = names["weight"]
        shape = shapes[weight]
        if "running_var" in names and (folded is not None or not queues[True, shape]):
            rest = (np.zeros(shape), np.full(shape, 1 - EPSILON))
            layer = Layer(np.ones(shape), folded, rest)
        else:
            turned = re.search(keep, weight) and len(shape) == 2
            queue = queues["running_var" in names, shape[::-1] if turned else shape]
            if not queue:
                raise SystemExit(f"the twin has no layer for {weight} {shape}")
            layer = queue.popleft()
            layer = layer._replace(weight=layer.weight.T if turned else layer.weight)
        folded = layer.bias if "bias" not in names else None
        filled[weight] = layer.weight
        if "bias" in names:
            filled[names["bias"]] = np.zeros(shapes[names["bias"]]) if layer.bias is None else layer.bias
        if "running_var" in names:
            filled[names["running_mean"]], filled[names["running_var"]] = layer.rest
    return filled


def write_safetensors(path, arrays):
    header, offset = {}, 0
    arrays = {name: np.ascontiguousarray(a, np.float32) for name, a in arrays.items()}
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for a in arrays.values():
            f.write(a.tobytes())


# ---------------------------------------------------------------- both


def draw(rng, info):
    shape = [d if isinstance(d, int) else 1 for d in info.shape]
    if info.type == "tensor(float)":
        return rng.standard_normal(shape).astype(np.float32)
    if "mask" in info.name:
        mask = np.ones(shape, np.int64)
        mask[..., 3 * shape[-1] // 4:] = 0
        return mask
    return rng.integers(0, 100, shape)


def turns_of_positions(model):
    """Tables of cosines and sines are computed, not drawn: [1, 1, length, size], the cosines' mean is the larger."""
    for t in model.graph.initializer:
        if t.doc_string.startswith("fill") and len(t.dims) == 4 and t.dims[:2] == [1, 1]:
            length, size = t.dims[2:]
            angle = np.arange(length)[:, None] * 10000.0**(-2.0 * (np.arange(size) % (size // 2)) / size)
            table = (np.cos if float(t.doc_string.split()[2]) > 0.3 else np.sin)(angle)
            t.raw_data, t.doc_string = table.astype(np.float32).tobytes(), ""
    return model


def outputs(burncc, model, folder, options):
    """The first output of `burncc run`."""
    folder.mkdir()
    said = subprocess.run([burncc, "run", str(model), "--output", str(folder), "--quiet"] + options, check=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    if "warning:" in said:      # what the ONNX file does not need to be told
        raise SystemExit(said)
    return np.load(next(folder.glob("*.npy")))


def main():
    fill, stripped, description, burncc, target, *settings = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="burncc-zoo-") as tmp:
        tmp = pathlib.Path(tmp)
        model, weights = tmp / "model.onnx", tmp / "weights.safetensors"
        onnx.save(turns_of_positions(onnx.load(stripped)), tmp / "stripped.onnx")
        subprocess.run([sys.executable, fill, str(tmp / "stripped.onnx"), str(model)], check=True)
        shapes = parameters(burncc, description, settings)
        keep = r"\.c_(attn|proj|fc)\." if description.endswith("gpt2.c") else "$^"
        write_safetensors(weights, match(shapes, layers(onnx.load(str(model)).graph), keep))
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        rng, given, feeds = np.random.default_rng(7), [], {}
        for i in session.get_inputs():
            feeds[i.name] = draw(rng, i)
            np.save(tmp / f"{i.name}.npy", feeds[i.name])
            given += ["--input", f"{i.name}={tmp / i.name}.npy"]
        want = session.run(None, feeds)[0]
        given += ["--target", target]
        twin = outputs(burncc, model, tmp / "twin", given)
        got = outputs(burncc, description, tmp / "own",
                      given + ["--weights", str(weights), "--strict"] + settings)
    largest = float(np.abs(want).max())
    differ = [float(np.abs(x - want).max()) / largest if x.shape == want.shape else np.inf for x in (got, twin)]
    verdict = "pass" if max(differ) <= BOUND else "FAIL"
    print(f"{verdict} {differ[0]:.1e} of the largest, {largest:.3g}, from ONNX Runtime; the ONNX file by burncc "
          f"{differ[1]:.1e}")
    return verdict != "pass"


if __name__ == "__main__":
    sys.exit(main())
