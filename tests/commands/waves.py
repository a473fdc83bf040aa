# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models of any sizes with an input to run them on, NAME/model.onnx and NAME/x.npy, whose numbers are sums of waves:
write() makes them. As a program, `waves.py NAME BOUND`: is NAME/got/y.npy what NAME/want/y.npy is, with at most this
error relative to the largest element?"""
import array, math, pathlib, struct, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from onnx_wire import FLOAT, graph, model, tensor, value_info

def wave(n, step):
    return [math.sin(step * i) + 0.25 * math.cos(0.37 * step * i) for i in range(n)]

def npy(path, shape, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    magic = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head))
    path.write_bytes(magic + head.encode() + struct.pack(f"<{len(values)}f", *values))

def nest(flat, shape):
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0]
    return [nest(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]

def write(name, nodes, x, out, weights, turned=(), domains=()):
    made = [tensor(w, FLOAT, nest(wave(math.prod(s), 0.7 + 0.1 * i), s)) for i, (w, s) in enumerate(weights.items())]
    made += turned
    root = pathlib.Path(name)
    root.mkdir()
    of_nodes = graph(nodes, [value_info("x", FLOAT, x)], [value_info("y", FLOAT, out)], made)
    (root / "model.onnx").write_bytes(model(of_nodes, domains=domains))
    npy(root / "x.npy", tuple(x), wave(math.prod(x), 0.013))

def read(path):
    data = path.read_bytes()
    return array.array("f", data[10 + data[8] + 256 * data[9]:])

def compare(name, bound):
    want, got = (read(pathlib.Path(name) / side / "y.npy") for side in ("want", "got"))
    assert len(want) == len(got) > 0
    scale = max(map(abs, want))
    error = max(abs(a - b) for a, b in zip(want, got))
    assert error <= bound * scale, (error, scale)

if __name__ == "__main__":
    compare(sys.argv[1], float(sys.argv[2]))
