# SPDX-License-Identifier: MIT OR Apache-2.0
"""A peer that is a Python package as a contestant: speaks the words of worker.h, under the Python that has the package.

usage: worker.py PEER MODEL FOLDER THREADS
Each peer is a function: it loads the model for so many threads and returns (run, outputs): run() is one inference on
the
inputs given, outputs() its results in the model's order. All compute in 32-bit floats where they can be told to.
"""
import os
import pathlib
import sys
import time

import numpy as np

DTYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64
}
UNIT_NS, MOST = 20000, 4096
# The whole process: a package may compute in another thread than ours.
clock = time.process_time_ns if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter_ns


def openvino(model, inputs, threads):
    import openvino as ov
    core = ov.Core()
    proto = core.read_model(model)
    proto.reshape({i: list(a.shape) for i, a in enumerate(inputs.values())})
    compiled = core.compile_model(
        proto, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False
        })
    request = compiled.create_infer_request()
    for i, a in enumerate(inputs.values()):
        request.set_input_tensor(i, ov.Tensor(a, shared_memory=True))
    return request.infer, lambda: [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]


def tract(model, inputs, threads):
    import tract as package
    if threads > 1:
        raise SystemExit("it computes on one thread")
    loaded = package.onnx().load(model)
    for i, a in enumerate(inputs.values()):
        loaded.set_input_fact(
            i,
            f"{','.join(map(str, a.shape))}{',' if a.shape else ''}{a.dtype.kind.replace('b', 'bool')}"
            f"{8 * a.itemsize if a.dtype.kind != 'b' else ''}"
        )
    ready = loaded.into_model().into_runnable()
    arrays, results = list(inputs.values()), []

    def run():
        results[:] = ready.run(arrays)
    return run, lambda: [r.to_numpy() for r in results]


def iree(model, inputs, threads):
    import iree.compiler.tools.import_onnx.__main__ as importer
    from iree import compiler, runtime
    mlir = pathlib.Path(os.environ["BENCH_SCRATCH"]) / "iree.mlir"
    importer.main(importer.parse_arguments([model, "-o", str(mlir)]))
    program = compiler.compile_file(str(mlir), target_backends=["llvm-cpu"], input_type="onnx",
                                    extra_args=["--iree-llvmcpu-target-cpu=host"])
    config = runtime.Config("local-sync" if threads == 1 else "local-task")
    module = runtime.load_vm_flatbuffer(program, driver="local-sync" if threads == 1 else "local-task")
    function = next(
        getattr(module, name) for name in module.vm_module.function_names
        if not name.startswith("__") and not name.endswith("$async"))
    arrays = [runtime.asdevicearray(config.device, a) for a in inputs.values()]
    results = []

    def run():
        found = function(*arrays)
        results[:] = found if isinstance(found, (list, tuple)) else [found]
    return run, lambda: [r.to_host() for r in results]


def tvm(model, inputs, threads):
    import onnx
    import tvm as package
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    os.environ["TVM_NUM_THREADS"] = str(threads)
    proto = onnx.load(model)
    module = from_onnx(proto, shape_dict={n: list(a.shape) for n, a in inputs.items()})
    cpu = package.target.codegen.llvm_get_system_cpu()
    target = package.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    with target:
        module = relax.get_pipeline("zero")(module)
        program = relax.build(module, target)
    machine = relax.VirtualMachine(program, package.cpu())
    arrays, results = [package.runtime.tensor(a) for a in inputs.values()], []

    def run():
        found = machine["main"](*arrays)
        results[:] = [found] if hasattr(found, "numpy") else list(found)
    return run, lambda: [r.numpy() for r in results]


def read_table(path):
    """(dtype, shape, name) of each line."""
    found = []
    for line in path.read_text().splitlines():
        words = line.split(" ")
        rank = int(words[2])
        found.append((int(words[0]), [int(w) for w in words[3:3 + rank]], " ".join(words[3 + rank:])))
    return found


def write(folder, names, arrays):
    lines = []
    numbers = {np.dtype(t): n for n, t in DTYPES.items()}
    for i, (name, a) in enumerate(zip(names, arrays)):
        a = np.ascontiguousarray(a)
        a.tofile(folder / f"out_{i}.bin")
        lines.append(" ".join(map(str, [numbers[a.dtype], a.nbytes, a.ndim, *a.shape, name])) + "\n")
    (folder / "outputs.txt").write_text("".join(lines))


def sample(run, runs):
    begin = clock()
    for _ in range(runs):
        run()
    return (clock() - begin) // runs


def slice_times(run, seconds):
    begin, runs = time.monotonic(), 1
    while sample(run, runs) * runs < UNIT_NS and runs < UNIT_NS:
        runs *= 2
    while time.monotonic() - begin < seconds / 8:
        sample(run, runs)
    times = [sample(run, runs)]
    while len(times) < MOST and time.monotonic() - begin < seconds:
        times.append(sample(run, runs))
    return times


def peak_kib():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))


def main():
    peer, model, folder, threads = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                       # what packages print is no answer
    inputs = {name: np.fromfile(folder / f"in_{i}.bin", DTYPES[dtype]).reshape(shape)
              for i, (dtype, shape, name) in enumerate(read_table(folder / "inputs.txt"))}
    names = [name for _, _, name in read_table(folder / "wanted.txt")]
    began = time.perf_counter_ns()
    run, outputs = {"openvino": openvino, "tract": tract, "iree": iree, "tvm": tvm}[peer](model, inputs, threads)
    loaded = time.perf_counter_ns()
    run()
    print("ready", loaded - began, time.perf_counter_ns() - loaded, file=out, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "slice":
            print("times", *slice_times(run, float(words[1])), file=out, flush=True)
        elif words[0] == "memory":
            print("memory", peak_kib(), file=out, flush=True)
        else:
            write(folder, names, outputs())
            print("done", file=out, flush=True)


if __name__ == "__main__":
    main()
