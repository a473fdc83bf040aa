# SPDX-License-Identifier: MIT OR Apache-2.0
"""Attributes of drawn tree ensembles: old() for TreeEnsembleRegressor and -Classifier, new() for TreeEnsemble."""
import collections

import numpy as np
from onnx import numpy_helper

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def grow(rng, depth, full, chain):
    """One tree as a list of (node, children or None), numbered by level."""
    nodes, queue, count = [], collections.deque([(0, 0)]), 1
    while queue:
        node, level = queue.popleft()
        if level == depth or (level and not full and rng.random() < 0.3) or (chain and node and node % 2 == 0):
            nodes.append((node, None))
            continue
        nodes.append((node, (count, count + 1)))
        queue.extend(((count, level + 1), (count + 1, level + 1)))
        count += 2
    return nodes


def split(rng, mode):
    return float(np.float32(rng.integers(-2, 3) if mode in ("BRANCH_EQ", "BRANCH_NEQ", 4, 5) else rng.normal()))


def old(seed, count, depth, features, targets, prefix="target", modes=("BRANCH_LEQ", ), missing=False, full=True,
        chain=False, per_leaf=1, positive=False, first=0):
    rng, a = np.random.default_rng(seed), collections.defaultdict(list)
    for tree in range(count):
        for node, children in grow(rng, depth, full, chain):
            mode = str(rng.choice(modes)) if children else "LEAF"
            row = dict(treeids=tree, nodeids=node, featureids=int(rng.integers(features)) if children else 0,
                       values=split(rng, mode) if children else 0.0, modes=mode,
                       truenodeids=children[0] if children else 0, falsenodeids=children[1] if children else 0)
            if missing:
                row["missing_value_tracks_true"] = int(rng.integers(2)) if children else 0
            for k, v in row.items():
                a[f"nodes_{k}"].append(v)
            if children:
                continue
            ids = range(targets) if per_leaf > 1 else [tree % targets]
            for i in ids:
                w = float(np.float32(rng.uniform(0.05, 0.95) / count if positive else rng.normal()))
                for k, v in dict(treeids=tree, nodeids=node, ids=first + i, weights=w).items():
                    a[f"{prefix}_{k}"].append(v)
    return dict(a)


def as_tensors(a, dtype):
    out = {}
    for k, v in a.items():
        if k in ("nodes_values", "target_weights", "class_weights"):
            out[k + "_as_tensor"] = numpy_helper.from_array(np.array(v, dtype), k)
        else:
            out[k] = v
    return out


def new(seed, count, depth, features, targets, dtype, modes=(0,), missing=False, chain=False, positive=False):
    """Inner nodes and leaves are numbered apart. Mode 6: membership in a set."""
    rng, a, members = np.random.default_rng(seed), collections.defaultdict(list), []
    for _ in range(count):
        tree = grow(rng, depth, True, chain)
        inner = {n: len(a["nodes_featureids"]) + i for i, (n, c) in enumerate((n, c) for n, c in tree if c)}
        leaves = {n: len(a["leaf_targetids"]) + i for i, (n, c) in enumerate((n, c) for n, c in tree if not c)}
        a["tree_roots"].append(inner[0])
        for node, children in tree:
            if not children:
                a["leaf_targetids"].append(int(rng.integers(targets)))
                a["leaf_weights"].append(
                    float(np.float32(rng.uniform(0.05, 0.95) / count if positive else rng.normal())))
                continue
            mode = int(rng.choice(list(modes)))
            a["nodes_featureids"].append(int(rng.integers(features)))
            a["nodes_splits"].append(0.0 if mode == 6 else split(rng, mode))
            a["nodes_modes"].append(mode)
            if mode == 6:
                members += [
                    float(v) for v in rng.choice(np.arange(-4, 5), size=int(rng.integers(1, 5)), replace=False)
                ] + [float("nan")]
            if missing:
                a["nodes_missing_value_tracks_true"].append(int(rng.integers(2)))
            for key, child in (("true", children[0]), ("false", children[1])):
                a[f"nodes_{key}nodeids"].append(leaves.get(child, inner.get(child)))
                a[f"nodes_{key}leafs"].append(int(child in leaves))
    out = dict(a)
    out["nodes_modes"] = numpy_helper.from_array(np.array(out["nodes_modes"], np.uint8), "modes")
    for k in ("nodes_splits", "leaf_weights"):
        out[k] = numpy_helper.from_array(np.array(out[k], dtype), k)
    if members:
        out["membership_values"] = numpy_helper.from_array(np.array(members, dtype), "members")
    return out
