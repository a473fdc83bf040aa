# SPDX-License-Identifier: MIT OR Apache-2.0
"""Is ONNX Runtime's result on a model of bytes the same on every machine?

In: a model. Out: what makes it not so, or None. Processors without dot products of bytes (VNNI) multiply unsigned by
signed bytes in pairs whose sum saturates in 16 bits: 2 * 255 * 64 fits, 2 * 255 * 65 does not. So of the second factor
of a product, where it is signed, all elements must be constants of -64..64, as quantizers write them with
reduce_range; unsigned ones are widened first. A signed first factor becomes an unsigned one."""
import numpy as np
from onnx import numpy_helper

LEAST, MOST = -64, 64
# operator: its second factors, and a zero point of their type; -1: none
FACTORS = {
    "MatMulInteger": ((1, ), 3), "ConvInteger": ((1, ), 3), "QLinearMatMul": ((3, ), 5), "QLinearConv": ((3, ), 5),
    "QGemm": ((3, ), 5), "MatMulIntegerToFloat": ((1, ), 5), "DynamicQuantizeMatMul": ((1, ), 3), "QAttention":
    ((1, ), 7), "DynamicQuantizeLSTM": ((1, 2), -1)
}


def saturates(model, feeds):
    """feeds: inputs of the graph, which count as constants where they are given."""
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer} | feeds
    for node in model.graph.node:
        factors, zero = FACTORS.get(node.op_type, ((), -1))
        for f in factors:
            values = known.get(node.input[f])
            at_zero = known.get(node.input[zero]) if 0 <= zero < len(node.input) else None
            if values is None and at_zero is not None and at_zero.dtype == np.int8:
                return f"{node.op_type}: the second factor is computed, in int8"
            if values is not None and values.dtype == np.int8 and (values.min() < LEAST or values.max() > MOST):
                return f"{node.op_type}: the second factor has elements of {values.min()}..{values.max()}"
    return None
