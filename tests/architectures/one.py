# SPDX-License-Identifier: MIT OR Apache-2.0
"""One architecture: fills the graph's weights, records ONNX Runtime's outputs on drawn inputs, and ends as `burncc
verify`.

usage: one.py FILL_WEIGHTS STRIPPED.onnx BURNCC verify OPTIONS...
What a detector finds comes in the order of its scores. Where scores are equal up to rounding, that order is not told
by the model, so then the
rows (box, score, label) are compared as a set.
Filled models are large (up to half a gigabyte) and quick to make, so they lie in a temporary folder that goes again.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
INTS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


def draw(rng, info):
    shape = [d if isinstance(d, int) else 1 for d in info.shape]
    if info.type in FLOATS:
        return rng.standard_normal(shape).astype(FLOATS[info.type])
    if info.type == "tensor(bool)":
        return np.ones(shape, bool)
    ones = "mask" in info.name or "type" in info.name
    return (np.ones(shape) if ones else rng.integers(0, 100, shape)).astype(INTS[info.type])


def record(model, folder):
    """Inputs, outputs and a tolerance (1e-4 of the largest element; of the smallest such, when outputs are several)
    in ONNX's test layout."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(7)
    feeds = {i.name: draw(rng, i) for i in session.get_inputs()}
    outputs = session.run(None, feeds)
    folder.mkdir()
    for kind, arrays in (("input", feeds.values()), ("output", outputs)):
        for i, a in enumerate(arrays):
            (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(a)).SerializeToString())
    scales = [scale_of(o) for o in map(np.asarray, outputs)]
    (folder / "tolerance.txt").write_text(f"0 {1e-4 * min(scales)}\n")


def scale_of(output):
    """The size of its largest element."""
    return float(np.abs(output[np.isfinite(output)]).max(initial=0))


def same_findings(want, got):
    """Are the outputs' rows the same, each found once, within 1e-4 of each output's largest element (one tolerance for
    all, as verify has it, would be less than an ULP of boxes in pixels where scores are small)? The largest
    difference of each output, or None."""
    if any(w.shape != g.shape or w.ndim < 1 or len(w) != len(want[0]) for w, g in zip(want, got)):
        return None
    left, worst = list(range(len(want[0]))), [0.0] * len(want)
    bounds = [0 if w.dtype.kind in "iu" else 1e-4 * scale_of(w) for w in want]
    for i in range(len(want[0])):
        for j in left:
            differ = [float(np.abs(w[i] - g[j]).max(initial=0)) for w, g in zip(want, got)]
            if all(d <= bound for d, bound in zip(differ, bounds)):
                left.remove(j)
                worst = [max(pair) for pair in zip(worst, differ)]
                break
        else:
            return None
    return worst


def verify_findings(burncc, model, options):
    """The same model once more by `burncc run`, its outputs compared without regard to the order of rows."""
    folder = model.parent / "test_data_set_0"
    signature = onnx.load(str(model)).graph
    weights = {w.name for w in signature.initializer}
    inputs = [i.name for i in signature.input if i.name not in weights]
    given = [x for i, name in enumerate(inputs) for x in ("--input", f"{name}={folder}/input_{i}.pb")]
    subprocess.run([burncc, "run", str(model), "--output", str(model.parent)] + given + options, check=True,
                   stdout=subprocess.DEVNULL)
    got = [np.load(model.parent / f"{o.name}.npy") for o in signature.output]
    want = [
        numpy_helper.to_array(onnx.TensorProto.FromString((folder / f"output_{i}.pb").read_bytes()))
        for i in range(len(got))
    ]
    worst = same_findings(want, got)
    if worst is None:
        return 1
    print(f"pass max_abs={max(worst):.3g} data=test_data_set_0 note=equal scores change places")
    return 0


def main():
    fill, stripped, burncc, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="burncc-architecture-") as tmp:
        model = pathlib.Path(tmp) / "model.onnx"
        subprocess.run([sys.executable, fill, stripped, str(model)], check=True)
        record(str(model), model.parent / "test_data_set_0")
        found = subprocess.run([burncc, rest[0], str(model)] + rest[1:], stdout=subprocess.PIPE, text=True)
        if found.returncode and "ssd" in stripped and verify_findings(burncc, model, rest[1:]) == 0:
            return 0
        print(found.stdout, end="")
        return found.returncode


if __name__ == "__main__":
    sys.exit(main())
