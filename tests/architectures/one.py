# SPDX-License-Identifier: MIT OR Apache-2.0
"""One architecture: fills the graph's weights, records ONNX Runtime's outputs on drawn inputs, and ends as `burncc verify`.

usage: one.py FILL_WEIGHTS STRIPPED.onnx BURNCC verify OPTIONS...
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
    """Inputs, outputs and a tolerance (1e-4 of the largest element; of the smallest such, when outputs are several) in ONNX's test layout."""
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
    scales = [float(np.abs(o[np.isfinite(o)]).max(initial=0)) for o in map(np.asarray, outputs)]
    (folder / "tolerance.txt").write_text(f"0 {1e-4 * min(scales)}\n")


def main():
    fill, stripped, burncc, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="burncc-architecture-") as tmp:
        model = pathlib.Path(tmp) / "model.onnx"
        subprocess.run([sys.executable, fill, stripped, str(model)], check=True)
        record(str(model), model.parent / "test_data_set_0")
        return subprocess.run([burncc, rest[0], str(model)] + rest[1:]).returncode


if __name__ == "__main__":
    sys.exit(main())
