# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole files as ONNX Runtime's own tools write them, from small networks with drawn weights.

In: make.py's folder. Out: files/<name>, a network after one tool: the transformer optimizer, an optimizer level of
ONNX Runtime, or a quantizer. Tools that the interpreter lacks packages for are named and left out."""
import contextlib
import io
import logging
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import exact

STEP = "a step of the output's"
HIDDEN, HEADS, WORDS, PLACES, LENGTH, LAYERS = 32, 4, 60, 16, 9, 2


class Network:
    """Nodes and weights, appended by name."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def constant(self, values, name=None):
        self.count += 1
        name = name or f"w{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def draw(self, *shape, scale=None):
        return self.constant((self.rng.standard_normal(shape) * (scale or 1 / np.sqrt(shape[0]))).astype(np.float32))

    def op(self, op, *inputs, name=None, **attributes):
        self.count += 1
        out = name or f"v{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"n{self.count}", **attributes))
        return out

    def linear(self, x, rows, columns):
        return self.op("Add", self.op("MatMul", x, self.draw(rows, columns)), self.draw(columns, scale=0.1))

    def norm(self, x):
        return self.op("LayerNormalization", x, self.constant(self.rng.uniform(0.5, 1.5, HIDDEN).astype(np.float32)),
                       self.draw(HIDDEN, scale=0.1), axis=-1, epsilon=1e-5)

    def model(self, inputs, outputs):
        def infos(all):
            return [helper.make_tensor_value_info(n, t, s) for n, t, s in all]
        graph = helper.make_graph(self.nodes, "network", infos(inputs), infos(outputs), self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def encoder():
    """As BERT was exported before attention was an operator: the pattern that the optimizers look for."""
    n = Network(1)
    place = n.constant(np.arange(LENGTH, dtype=np.int64)[None])
    x = n.op("Add", n.op("Gather", n.draw(WORDS, HIDDEN, scale=1), "input_ids"),
             n.op("Gather", n.draw(2, HIDDEN, scale=1), "token_type_ids"))
    x = n.norm(n.op("Add", x, n.op("Gather", n.draw(PLACES, HIDDEN, scale=1), place)))
    mask = n.op("Unsqueeze", n.op("Unsqueeze", "attention_mask", n.constant([1])), n.constant([2]))
    mask = n.op("Sub", n.constant(np.float32(1)), n.op("Cast", mask, to=TensorProto.FLOAT))
    mask = n.op("Mul", mask, n.constant(np.float32(-10000)))
    split, join = n.constant([0, 0, HEADS, HIDDEN // HEADS]), n.constant([0, 0, HIDDEN])
    for _ in range(LAYERS):
        q, k, v = (n.op("Transpose", n.op("Reshape", n.linear(x, HIDDEN, HIDDEN), split), perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = n.op("Add", n.op("Div", n.op("MatMul", q, k), n.constant(np.float32(np.sqrt(HIDDEN // HEADS)))), mask)
        y = n.op("Reshape", n.op("Transpose", n.op("MatMul", n.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3]),
                 join)
        x = n.norm(n.op("Add", n.linear(y, HIDDEN, HIDDEN), x))
        y = n.linear(x, HIDDEN, 4 * HIDDEN)
        erf = n.op("Add", n.op("Erf", n.op("Div", y, n.constant(np.float32(np.sqrt(2))))), n.constant(np.float32(1)))
        y = n.op("Mul", n.op("Mul", y, erf), n.constant(np.float32(0.5)))
        x = n.norm(n.op("Add", n.linear(y, 4 * HIDDEN, HIDDEN), x))
    ids = [(name, TensorProto.INT64, [2, LENGTH]) for name in ("input_ids", "token_type_ids", "attention_mask")]
    n.op("Identity", x, name="last")
    return n.model(ids, [("last", TensorProto.FLOAT, [2, LENGTH, HIDDEN])])


def image_net():
    """Convolutions, pools and a classifier: what the static quantizer turns into QLinear operators."""
    n = Network(2)
    x, channels = "image", 3
    for out, stride in ((8, 2), (12, 1), (12, 1)):
        w, b = n.draw(out, channels, 3, 3, scale=1 / np.sqrt(9 * channels)), n.draw(out, scale=0.1)
        y = n.op("LeakyRelu" if out == 8 else "Relu", n.op("Conv", x, w, b, pads=[1, 1, 1, 1], strides=[stride] * 2))
        x = n.op("Add", x, y) if channels == out else y
        channels = out
    x = n.op("Mul", x, n.op("Sigmoid", n.op("GlobalAveragePool", x)))
    x = n.op("Concat", n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]),
             n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    x = n.op("Gemm", n.op("Flatten", x), n.draw(24 * 16, 10), n.draw(10, scale=0.1))
    n.op("Softmax", x, name="last", axis=-1)
    return n.model([("image", TensorProto.FLOAT, [1, 3, 16, 16])], [("last", TensorProto.FLOAT, [1, 10])])


def feeds(model, seed):
    rng = np.random.default_rng(seed)
    out = {}
    for i in model.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        if i.type.tensor_type.elem_type == TensorProto.FLOAT:
            out[i.name] = rng.standard_normal(shape).astype(np.float32)
        elif "mask" in i.name:
            out[i.name] = (np.arange(shape[1]) < np.array([[shape[1]], [shape[1] - 3]])[:shape[0]]).astype(np.int64)
        else:
            out[i.name] = rng.integers(0, 2 if "type" in i.name else WORDS, shape)
    return out


# ---------------------------------------------------------------- the tools: each takes a file and writes another
def transformer_optimizer(source, target, **options):
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions
    chosen = FusionOptions("bert")
    for name, value in options.items():
        setattr(chosen, name, value)
    optimizer.optimize_model(str(source), model_type="bert", num_heads=HEADS, hidden_size=HIDDEN, opt_level=0,
                             optimization_options=chosen).save_model_to_file(str(target))


def runtime_optimizer(source, target, level):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(target)
    options.graph_optimization_level = level
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def dynamic(source, target, **options):
    from onnxruntime.quantization import quantize_dynamic
    quantize_dynamic(str(source), str(target), reduce_range=True, **options)


def static(source, target, **options):
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [feeds(onnx.load(str(source)), s) for s in range(3)]

        def get_next(self):
            return self.left.pop() if self.left else None

    quantize_static(str(source), str(target), Reader(), reduce_range=True, **options)


def few_bits(source, target, bits, symmetric):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    q = MatMulNBitsQuantizer(onnx.load(str(source)), bits=bits, block_size=16, is_symmetric=symmetric)
    q.process()
    onnx.save(q.model.model, str(target))


def few_bits_of_tables(source, target):
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
    config = DefaultWeightOnlyQuantConfig(block_size=16, is_symmetric=False, op_types_to_quantize=("MatMul", "Gather"))
    q = MatMulNBitsQuantizer(onnx.load(str(source)), algo_config=config)
    q.process()
    onnx.save(q.model.model, str(target))


def normal_floats(source, target):
    from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
    q = MatMulBnb4Quantizer(onnx.load(str(source)), MatMulBnb4Quantizer.NF4, 16)
    q.process()
    onnx.save(q.model.model, str(target))


def variants():
    """name, network, tools in order, tolerance relative to the largest output. Statically quantised ones may be one
    step of the output's scale apart, dynamically quantised ones a step or two of their activations': where a value
    lies next to the middle between two integers, the last bit of an exponential decides which it becomes."""
    from onnxruntime import GraphOptimizationLevel as Level
    from onnxruntime.quantization import QuantFormat, QuantType
    fused = (transformer_optimizer, {})
    yield "bert_fused", encoder, [fused], 1e-4
    yield "bert_fused_mask_index", encoder, [(transformer_optimizer, {"use_raw_attention_mask": False})], 1e-4
    yield "bert_multi_head", encoder, [(transformer_optimizer, {"use_multi_head_attention": True})], 1e-4
    yield "bert_fast_gelu", encoder, [(transformer_optimizer, {"enable_gelu_approximation": True})], 1e-4
    for level in ("BASIC", "EXTENDED", "ALL"):
        yield f"bert_{level.lower()}", encoder, [(runtime_optimizer, {"level": getattr(Level,
                                                                                       f"ORT_ENABLE_{level}")})], 1e-4
        if level != "ALL":                              # that one writes layouts for the machine at hand
            yield f"image_{level.lower()}", image_net, [(runtime_optimizer,
                                                         {"level": getattr(Level, f"ORT_ENABLE_{level}")})], 1e-4
    yield "bert_dynamic", encoder, [(dynamic, {})], 2e-2
    yield "bert_dynamic_columns", encoder, [(dynamic, {"per_channel": True, "weight_type": QuantType.QInt8})], 2e-2
    yield "bert_fused_dynamic", encoder, [
        fused, (dynamic, {"extra_options": {"DefaultTensorType": TensorProto.FLOAT}})
    ], 2e-2
    yield "bert_dynamic_extended", encoder, [(dynamic, {}),
                                             (runtime_optimizer, {"level": Level.ORT_ENABLE_EXTENDED})], 2e-2
    for bits in (4, 8):
        for symmetric in (True, False):
            yield f"bert_bits{bits}_{'even' if symmetric else 'zero'}", encoder, [
                (few_bits, {"bits": bits, "symmetric": symmetric})
            ], 1e-4
    yield "bert_bits_tables", encoder, [(few_bits_of_tables, {})], 1e-4
    yield "bert_normal_floats", encoder, [(normal_floats, {})], 1e-4
    for network, name in ((encoder, "bert"), (image_net, "image")):
        for form in ("QDQ", "QOperator"):
            for signed in (True, False):
                options = {
                    "quant_format": getattr(QuantFormat, form), "per_channel": name == "image",
                    "weight_type": QuantType.QInt8, "activation_type": QuantType.QInt8 if signed else QuantType.QUInt8
                }
                if signed:                              # no products of two computed factors: see exact.py
                    options["extra_options"] = {"MatMulConstBOnly": True}
                how = f"{name}_{form.lower()}_{'i8' if signed else 'u8'}"
                yield how, network, [(static, options)], STEP
                for level in ("EXTENDED", "ALL") if form == "QDQ" else ():
                    optimizer = runtime_optimizer, {"level": getattr(Level, f"ORT_ENABLE_{level}")}
                    yield f"{how}_{level.lower()}", network, [(static, options), optimizer], STEP


def step_of(model):
    """The scale of the output's quantisation, if it ends in one."""
    makers = {o: n for n in model.graph.node for o in n.output}
    scales = {i.name: float(numpy_helper.to_array(i)) for i in model.graph.initializer if not i.dims}
    node = makers[model.graph.output[0].name]
    while node.op_type == "Identity":
        node = makers[node.input[0]]
    return scales[node.input[1]] if node.op_type == "DequantizeLinear" else None


def record(model, folder, tolerance):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    fed = feeds(onnx.load(str(model)), 99)
    wrong = exact.saturates(onnx.load(str(model)), {})
    if wrong:
        raise SystemExit(f"{model}: ONNX Runtime's result depends on the machine: {wrong}")
    outputs = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, fed)
    data = folder / "test_data_set_0"
    data.mkdir()
    for kind, arrays in (("input", fed.values()), ("output", outputs)):
        for i, a in enumerate(arrays):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(a)).SerializeToString())
    step = step_of(onnx.load(str(model))) if tolerance == STEP else None
    if step:
        limit = 1.001 * step
    else:                                               # which also a normalisation of floats may come after
        limit = (3e-2 if tolerance == STEP else tolerance) * max(float(np.abs(o).max()) for o in outputs)
    (folder / "tolerance.txt").write_text(f"0 {limit}\n")


def write_all(root, pattern):
    logging.disable(logging.WARNING)                    # the tools tell much
    for name, network, tools, tolerance in variants():
        folder = root / "files" / name
        if not pattern.search(f"files/{name}"):
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        source = folder / "source.onnx"
        onnx.save(network(), source)
        try:
            for i, (tool, options) in enumerate(tools):
                target = folder / f"step{i}.onnx"
                with contextlib.redirect_stdout(io.StringIO()):
                    tool(source, target, **options)
                source = target
        except ImportError as e:
            print(f"files/{name} is left out: {e}", file=sys.stderr)
            shutil.rmtree(folder)
            continue
        source.rename(folder / "model.onnx")
        record(folder / "model.onnx", folder, tolerance)
        for f in [*folder.glob("step*.onnx"), *folder.glob("source*.onnx")]:
            f.unlink()
