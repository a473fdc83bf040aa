# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes models of one operator of ai.onnx.ml each, with drawn attributes and inputs and the outputs of ONNX Runtime,
in ONNX's test layout.

usage: make.py DIR [REGEX]
ONNX Runtime leaves the standard in a few places, which the cases go around: regressors of one target and SVMRegressor
pass over post_transform, and
TreeEnsemble exchanges SOFTMAX and LOGISTIC (the transform is computed here, from its outputs without one); tree
ensembles for two classes with
weights for both give label 1 wherever the second score is positive (onnx.reference is asked); PROBIT of two classes
writes half of its output; an SVMClassifier of two classes without
support vectors gives the second label wherever a score is positive (again onnx.reference is asked). PROBIT loses
digits next to 0.
"""
import pathlib
import re
import shutil
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import trees

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
CASES = {}


def case(name, op, inputs, outputs=1, version=1, own_transform=False, onnx_reference=False, **attributes):
    """outputs: their number. own_transform: that of post_transform is computed here."""
    assert f"{op}/{name}" not in CASES, f"{op}/{name}"
    attributes = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    probit = attributes.get("post_transform") in ("PROBIT", 4)
    CASES[f"{op}/{name}"] = (op, [np.asarray(a) for a in inputs], outputs, version, (1e-3, 2e-4) if probit else
                             (1e-4, 1e-5), own_transform, onnx_reference, attributes)


def transformed(x, how):
    """One of TRANSFORMS over the rows of x."""
    if how == "LOGISTIC":
        return 1 / (1 + np.exp(-x))
    if how in ("SOFTMAX", "SOFTMAX_ZERO"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        if how == "SOFTMAX_ZERO":
            e = np.where(np.abs(x) > 1e-7, e, 0)
        return e / e.sum(axis=1, keepdims=True)
    if how == "PROBIT":
        p = 2 * x.astype(np.float64) - 1
        log = np.log1p(-p * p)
        v = 2 / (np.pi * 0.147) + log / 2
        return np.sqrt(2) * np.sign(p) * np.sqrt(np.sqrt(v * v - log / 0.147) - v)
    return x


def normal(seed, *shape, dtype=np.float32, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)


def integers(seed, *shape, low=-5, high=6, dtype=np.int64):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


# ---------------------------------------------------------------- features
def features():
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        tag = np.dtype(dtype).name
        x = normal(1, 4, 5, scale=3).astype(dtype)
        case(f"{tag}", "ArrayFeatureExtractor", [x, np.array([3, 0, 3], np.int64)])
        case(f"row_{tag}", "ArrayFeatureExtractor", [x[0], np.array([[1, 4]], np.int64)])
        case(f"cube_{tag}", "ArrayFeatureExtractor",
             [normal(2, 2, 3, 4, scale=3).astype(dtype),
              np.array([2], np.int64)])
        case(f"columns_{tag}", "Scaler", [x], offset=normal(3, 5), scale=normal(4, 5))
        case(f"one_{tag}", "Scaler", [x], offset=[0.5], scale=[2.0])
        case(f"vector_{tag}", "Scaler", [x[0]], offset=normal(3, 5), scale=normal(4, 5))
        for norm in ("MAX", "L1", "L2"):
            case(f"{norm}_{tag}", "Normalizer", [x], norm=norm)
        case(f"vector_{tag}", "Normalizer", [x[1]], norm="L2")
        case(f"negative_{tag}", "Normalizer", [-np.abs(x) - np.array(1, dtype)], norm="MAX")
        case(f"zeros_{tag}", "Normalizer", [x * np.array([[1], [0], [1], [0]], dtype)], norm="L1")
        case(f"zeros_max_{tag}", "Normalizer", [x * np.array([[1], [0], [1], [0]], dtype)], norm="MAX")
        case(f"zeros_l2_{tag}", "Normalizer", [x * np.array([[1], [0], [1], [0]], dtype)], norm="L2")
    case("float", "Binarizer", [normal(5, 3, 4)], threshold=0.25)
    case("default", "Binarizer", [normal(6, 3, 4)])
    x = normal(7, 5, 3)
    x[1, 2] = x[4, 0] = 7
    case("float", "Imputer", [x], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=7.0)
    case("float_one", "Imputer", [x], imputed_value_floats=[1.5], replaced_value_float=7.0)
    case("nan", "Imputer", [np.where(x == 7, np.float32(np.nan), x)], imputed_value_floats=[1.0, 2.0, 3.0],
         replaced_value_float=float("nan"))
    case("int64", "Imputer", [integers(8, 5, 3)], imputed_value_int64s=[10, 20, 30], replaced_value_int64=2)
    case("int64_one", "Imputer", [integers(9, 5, 3)], imputed_value_int64s=[10], replaced_value_int64=0)
    case("mixed", "FeatureVectorizer", [normal(10, 4, 3), normal(11, 4, 2)], inputdimensions=[3, 2])
    case("cut", "FeatureVectorizer", [normal(10, 4, 3), normal(11, 4, 2), normal(12, 4, 1)], inputdimensions=[2, 4, 1])
    for dtype in (np.int64, np.int32, np.float64):
        case(
            np.dtype(dtype).name, "FeatureVectorizer",
            [integers(13, 4, 3).astype(dtype), integers(14, 4, 2).astype(dtype)], inputdimensions=[3, 2])
        if dtype is not np.int32:
            case(
                np.dtype(dtype).name, "OneHotEncoder", [integers(15, 4, 2).astype(dtype)], cats_int64s=[-3, 0, 2, 4],
                zeros=1)
    case("vector", "OneHotEncoder", [integers(16, 6)], cats_int64s=[1, 5, -2], zeros=1)


# ---------------------------------------------------------------- linear models and support vectors
def linear():
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        tag, x = np.dtype(dtype).name, normal(20, 7, 4, scale=2).astype(dtype)
        case(f"three_{tag}", "LinearClassifier", [x], 2, coefficients=normal(21, 12), intercepts=normal(22, 3),
             classlabels_ints=[4, -1, 7])
        if dtype is np.float32:
            case(tag, "LinearRegressor", [x], coefficients=normal(23, 4), intercepts=[0.5])
    x = normal(24, 7, 4)
    for how in TRANSFORMS:
        scale = 0.1 if how == "PROBIT" else 1.0
        shift = 0.5 if how == "PROBIT" else 0.0
        for labels in (2, 3, 5):
            case(f"{labels}_{how}", "LinearClassifier", [x], 2,
                 coefficients=normal(25 + labels, 4 * labels,
                                     scale=scale), intercepts=normal(35, labels, scale=scale) + shift,
                 classlabels_ints=list(range(labels)), post_transform=how)
        if how != "PROBIT":
            case(f"one_row_{how}", "LinearClassifier", [x], 2, coefficients=normal(26, 4), intercepts=[0.1],
                 classlabels_ints=[3, 8], post_transform=how)
        case(f"multi_{how}", "LinearClassifier", [x], 2, coefficients=normal(28, 12, scale=scale),
             intercepts=normal(35, 3, scale=scale) + shift, classlabels_ints=[0, 1,
                                                                              2], multi_class=1, post_transform=how)
        for targets in (1, 3):
            case(f"{targets}_{how}", "LinearRegressor", [x], coefficients=normal(29, 4 * targets, scale=scale),
                 intercepts=normal(30, targets, scale=scale) + shift, targets=targets, post_transform=how,
                 own_transform=targets == 1)
    case("strings", "LinearClassifier", [x], 2, coefficients=normal(31, 12), intercepts=[0.0, 0.0, 0.0],
         classlabels_strings=["a", "b", "c"])
    case("no_intercepts", "LinearRegressor", [x], coefficients=normal(32, 8), targets=2)


def machines():
    x = normal(40, 9, 3)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        params = [0.4, 0.2, 3.0] if kernel != "POLY" else [0.4, 1.2, 2.0]
        for how in TRANSFORMS:
            case(f"{kernel}_{how}", "SVMRegressor", [x * np.float32(0.1)], kernel_type=kernel, kernel_params=params,
                 coefficients=normal(41, 5, scale=0.1), support_vectors=normal(42, 15), rho=[0.5], n_supports=5,
                 post_transform=how, own_transform=True)
        case(f"{kernel}_one_class", "SVMRegressor", [x], kernel_type=kernel, kernel_params=params,
             coefficients=normal(43, 5), support_vectors=normal(42, 15), rho=[0.1], n_supports=5, one_class=1)
        for classes, per_class in ((2, [2, 3]), (3, [2, 1, 3]), (4, [1, 2, 2, 3])):
            v, pairs = sum(per_class), classes * (classes - 1) // 2
            common = dict(kernel_type=kernel, kernel_params=params, coefficients=normal(44, (classes - 1) * v),
                          support_vectors=normal(45, v * 3), rho=normal(46, pairs, scale=0.3),
                          vectors_per_class=per_class, classlabels_ints=[10 * i + 1 for i in range(classes)])
            chance = dict(prob_a=-np.abs(normal(47, pairs)) - 0.5, prob_b=normal(48, pairs, scale=0.2))
            for how in TRANSFORMS if kernel == "RBF" else ("NONE",):
                if how != "PROBIT":
                    case(f"{kernel}_{classes}_{how}", "SVMClassifier", [x], 2, post_transform=how, **common)
                case(f"{kernel}_{classes}_{how}_chance", "SVMClassifier", [x], 2, post_transform=how, **common,
                     **chance)
    case("linear", "SVMRegressor", [x], kernel_params=[0.0, 0.0, 0.0], coefficients=normal(49, 3), rho=[0.25])
    positive = dict(kernel_type="RBF", kernel_params=[0.4, 0, 0], coefficients=np.abs(normal(44, 5)),
                    support_vectors=normal(45, 15), vectors_per_class=[2, 3])
    case("positive", "SVMClassifier", [x], 2, rho=[-0.9], classlabels_ints=[5, 6], **positive)
    case("strings", "SVMClassifier", [x], 2, rho=[-0.9], classlabels_strings=["u", "v"], **positive)
    for classes in (2, 3):
        for how in TRANSFORMS[:4]:
            case(f"liblinear_{classes}_{how}", "SVMClassifier", [x], 2, kernel_params=[0.0, 0.0, 0.0],
                 coefficients=normal(50, 3 * classes), rho=[0.2], classlabels_ints=list(range(3, 3 + classes)),
                 post_transform=how, onnx_reference=classes == 2)
    v, classes = 24, 12
    case("many", "SVMClassifier", [x], 2, kernel_type="RBF", kernel_params=[0.5, 0, 0],
         coefficients=normal(51, (classes - 1) * v), support_vectors=normal(52, v * 3), rho=normal(53, 66, scale=0.3),
         vectors_per_class=[2] * classes, classlabels_ints=list(range(classes)), prob_a=-np.abs(normal(54, 66)) - 0.5,
         prob_b=normal(55, 66, scale=0.2))


# ---------------------------------------------------------------- trees
LEQ = ("BRANCH_LEQ",)
ALL_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def forests():
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        tag, x = np.dtype(dtype).name, normal(60, 11, 5, scale=2).astype(dtype)
        if dtype in (np.float32, np.float64):
            case(tag, "TreeEnsembleRegressor", [x], **trees.old(1, 4, 3, 5, 2), n_targets=2)
        case(tag, "TreeEnsembleClassifier", [x], 2, **trees.old(2, 6, 3, 5, 3, "class"), classlabels_int64s=[7, 3, 5])
    x = normal(61, 11, 5)
    holes = np.where(normal(62, 11, 5) > 0.5, np.float32(np.nan), x)
    for mode in ALL_MODES:
        case(mode, "TreeEnsembleRegressor", [np.round(x)], **trees.old(3, 4, 4, 5, 2, modes=(mode,)), n_targets=2)
        case(f"{mode}_missing", "TreeEnsembleRegressor", [np.round(holes)],
             **trees.old(4, 4, 4, 5, 2, modes=(mode, ), missing=True), n_targets=2)
        case(f"{mode}_nan", "TreeEnsembleRegressor", [np.round(holes)], **trees.old(4, 4, 4, 5, 2, modes=(mode, )),
             n_targets=2)
    case("modes", "TreeEnsembleRegressor", [np.round(holes)], **trees.old(5, 6, 5, 5, 2, modes=ALL_MODES,
                                                                          missing=True), n_targets=2)
    case("deep", "TreeEnsembleRegressor", [x], **trees.old(6, 3, 40, 5, 2, chain=True), n_targets=2)
    case("stump", "TreeEnsembleRegressor", [x], **trees.old(6, 3, 1, 5, 1), n_targets=1)
    case("leaf", "TreeEnsembleRegressor", [x], **trees.old(6, 2, 0, 5, 1), n_targets=1)
    case("uneven", "TreeEnsembleRegressor", [x], **trees.old(7, 8, 6, 5, 1, full=False), n_targets=1)
    case("large", "TreeEnsembleRegressor", [x], **trees.old(8, 60, 6, 5, 1), n_targets=1)
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        for targets in (1, 3):
            case(f"{aggregate}_{targets}", "TreeEnsembleRegressor", [x], **trees.old(9, 6, 3, 5, targets),
                 n_targets=targets, aggregate_function=aggregate, base_values=normal(63, targets))
            case(f"{aggregate}_{targets}_dense", "TreeEnsembleRegressor", [x],
                 **trees.old(9, 6, 3, 5, targets, per_leaf=targets), n_targets=targets, aggregate_function=aggregate)
    for how in TRANSFORMS:
        probit = how == "PROBIT"
        for targets in (1, 2):
            case(f"{how}_{targets}", "TreeEnsembleRegressor", [x], **trees.old(10, 5, 3, 5, targets, positive=probit),
                 n_targets=targets, post_transform=how, own_transform=targets == 1)
        for classes in (2, 3, 5):
            kinds = [("one", 1)] if classes == 2 else []
            for kind, ids in kinds + [("each", classes), ("dense", -classes)]:
                labels = list(range(4, 4 + classes)) if classes > 2 or ids == 1 else [0, 1]
                for positive in (False, True):
                    if probit and (not positive or ids == 1):
                        continue
                    attributes = trees.old(11, 6, 3, 5, abs(ids), "class", positive=positive,
                                           per_leaf=classes if ids < 0 else 1)
                    tag = f"{classes}_{kind}_{how}" + ("_positive" if positive else "")
                    case(tag, "TreeEnsembleClassifier", [x], 2, **attributes, classlabels_int64s=labels,
                         post_transform=how, onnx_reference=labels == [0, 1])
                    if how in ("NONE", "LOGISTIC") and labels != [0, 1]:
                        case(tag + "_base", "TreeEnsembleClassifier", [x], 2, **attributes, classlabels_int64s=labels,
                             post_transform=how, base_values=normal(64, classes, scale=0.2))
    case("second_only", "TreeEnsembleClassifier", [x], 2, **trees.old(11, 6, 3, 5, 1, "class", first=1),
         classlabels_int64s=[4, 5])
    case("strings", "TreeEnsembleClassifier", [x], 2, **trees.old(11, 6, 3, 5, 3, "class"),
         classlabels_strings=["x", "y", "z"])
    for dtype in (np.float32, np.float64):
        tag, value = np.dtype(dtype).name, x.astype(dtype)
        case(f"tensors_{tag}", "TreeEnsembleRegressor", [value], version=3,
             **trees.as_tensors(trees.old(12, 5, 4, 5, 2), dtype), n_targets=2)
        case(f"tensors_{tag}", "TreeEnsembleClassifier", [value], 2, version=3,
             **trees.as_tensors(trees.old(12, 6, 4, 5, 3, "class"), dtype), classlabels_int64s=[0, 1, 2])
        for aggregate in range(4):
            case(f"{tag}_{aggregate}", "TreeEnsemble", [value], version=5, **trees.new(13, 5, 4, 5, 2, dtype),
                 n_targets=2, aggregate_function=aggregate)
        for transform in range(5):
            case(f"{tag}_transform_{transform}", "TreeEnsemble", [value], version=5,
                 **trees.new(14, 5, 3, 5, 2, dtype, positive=transform == 4), n_targets=2, post_transform=transform,
                 own_transform=True)
        case(f"{tag}_modes", "TreeEnsemble", [np.round(holes).astype(dtype)], version=5,
             **trees.new(15, 6, 5, 5, 3, dtype, modes=range(6), missing=True), n_targets=3)
        case(f"{tag}_members", "TreeEnsemble", [np.round(x * 2).astype(dtype)], version=5,
             **trees.new(16, 6, 5, 5, 3, dtype, modes=range(7)), n_targets=3)
    case("deep", "TreeEnsemble", [x], version=5, **trees.new(17, 2, 30, 5, 1, np.float32, chain=True), n_targets=1)


# ---------------------------------------------------------------- writing
def build(op, inputs, outputs, version, attributes):
    node = helper.make_node(op, [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(outputs)], domain=ML,
                            **attributes)
    feeds = [numpy_helper.from_array(a, n) for n, a in zip(node.input, inputs)]
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in feeds],
                              [onnx.ValueInfoProto(name=n) for n in node.output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                   helper.make_opsetid(ML, version)], ir_version=8)


def outputs_of(model, inputs, onnx_reference):
    feeds = {f"x{i}": a for i, a in enumerate(inputs)}
    if onnx_reference:
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"]).run(None, feeds)


def write(folder, op, inputs, outputs, version, tolerance, own_transform, onnx_reference, attributes):
    model = build(op, inputs, outputs, version, attributes)
    if own_transform:
        how = attributes["post_transform"]
        plain = {k: v for k, v in attributes.items() if k != "post_transform"}
        results = outputs_of(build(op, inputs, outputs, version, plain), inputs, onnx_reference)
        results[-1] = transformed(results[-1],
                                  TRANSFORMS[how] if isinstance(how, int) else how).astype(results[-1].dtype)
    else:
        results = outputs_of(model, inputs, onnx_reference)
    for value, info in zip(model.graph.output, results):
        kind = TensorProto.STRING if info.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(info.dtype)
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, info.shape))
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, arrays in (("input", inputs), ("output", results)):
        for i, a in enumerate(arrays):
            (data / f"{kind}_{i}.pb").write_bytes(
                numpy_helper.from_array(np.asarray(a), f"{'x' if kind == 'input' else 'y'}{i}").SerializeToString())
    (folder / "tolerance.txt").write_text("{} {}\n".format(*tolerance))


def main():
    root, wanted = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    for family in (features, linear, machines, forests):
        family()
    shutil.rmtree(root, ignore_errors=True)
    for name, c in CASES.items():
        if re.search(wanted, name):
            write(root / name, *c)


if __name__ == "__main__":
    main()
