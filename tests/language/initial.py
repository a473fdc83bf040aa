# SPDX-License-Identifier: MIT OR Apache-2.0
"""What parameters begin as: the distributions of PyTorch's initialisers and of its layers' defaults, by their moments
and bounds, and by Kolmogorov and Smirnov. Of n draws a mean is within 5 deviations / sqrt(n), and the share of numbers
below any bound within 1.95 / sqrt(n) of the distribution's (that of one in a thousand)."""
import math

import numpy as np
from case import Case

ROWS, COLUMNS = 200, 300                                # a weight [out, in]
DRAWS = ROWS * COLUMNS


def follows(x, share):
    """share: of the distribution's numbers, those that are below"""
    below, n = share(np.sort(x, axis=None)), x.size
    away = max(np.abs(np.arange(1, n + 1) / n - below).max(), np.abs(np.arange(n) / n - below).max())
    return away < 1.95 / math.sqrt(n)


def uniform(bound):
    def of(x):
        return (np.abs(x).max() <= bound * (1 + 1e-6) and moments(x, 0, bound / math.sqrt(3))
                and follows(x, lambda v: (v / bound + 1) / 2))
    return of


def normal(mean, deviation):
    erf = np.vectorize(math.erf)
    return lambda x: moments(x, mean, deviation) and follows(
        x, lambda v: (1 + erf((v - mean) / deviation / math.sqrt(2))) / 2)


def moments(x, mean, deviation):
    n = x.size
    return abs(x.mean() - mean) < 5 * deviation / math.sqrt(n) and abs(x.std() / deviation - 1) < 5 / math.sqrt(n)


def truncated(x):
    return np.abs(x - 1).max() <= 1 + 1e-6 and moments(x, 1, 0.5 * math.sqrt(0.7737412))


def orthogonal(x):
    return np.abs(x @ x.T - 4 * np.eye(len(x))).max() < 1e-4


def initials():
    c = Case("initials")
    he, glorot = math.sqrt(2 / COLUMNS), math.sqrt(2 / (ROWS + COLUMNS))
    for init, check in (
            ("init_uniform(-0.25, 0.25)", uniform(0.25)), ("init_normal(1, 0.5)", normal(1, 0.5)),
            ("init_truncated_normal(1, 0.5)", truncated), ("init_constant(3)", lambda x: (x == 3).all()),
            ("init_kaiming_uniform(0)", uniform(math.sqrt(3) * he)), ("init_kaiming_normal(0)", normal(0, he)),
            ("init_kaiming_uniform(sqrt(5.0))", uniform(1 / math.sqrt(COLUMNS))),
            ("init_kaiming_normal_fan_out(0)", normal(0, math.sqrt(2 / ROWS))),
            ("init_xavier_uniform(1)", uniform(math.sqrt(3) * glorot)),
            ("init_xavier_normal(2)", normal(0, 2 * glorot)),
            ("init_orthogonal(2)", orthogonal)):
        name = f"p{len(c.outputs)}"
        c.gives(f'parameter("{name}", ({ROWS}, {COLUMNS}), .init = {init})', check)
    return c


def layers():
    """What layers' parameters begin as, by PyTorch's formulas (their reset_parameters)."""
    c = Case("beginnings")
    c.drawn("x", 1, 8, 64)
    c.drawn("image", 1, 24, 9, 9)
    c.given("ids", np.zeros((1, 8), np.int64))
    c.line("Tensor y = NULL, p = NULL;")

    def begins(call, **parameters):
        """parameters: dotted name behind the layer's, _ for a dot -> its sizes, and what it must be"""
        c.line(f"y = {call};")
        layer = call.split('"')[1]
        for name, (sizes, check) in parameters.items():
            full = f"{layer}.{name.replace('__', '.')}"
            variable = full.replace(".", "_")
            c.line(f'Tensor {variable} = NULL; shared() {variable} = parameter("{full}", {sizes});')
            c.gives(variable, check)

    def fan(n):
        return uniform(1 / math.sqrt(n))
    zero, one = (lambda x: (x == 0).all()), (lambda x: (x == 1).all())
    begins('linear(x, "linear", 300)', weight=((300, 64), fan(64)), bias=("(300)", fan(64)))
    begins('conv2d(image, "conv", 48, 5, .groups = 4)', weight=((48, 6, 5, 5), fan(150)), bias=("(48)", fan(150)))
    begins('conv_transpose2d(image, "up", 32, 3)', weight=((24, 32, 3, 3), fan(288)), bias=("(32)", fan(288)))
    begins('deform_conv2d(image, zeros(F32, 1, 18, 7, 7), "deform", 32, 3)', weight=((32, 24, 3, 3), fan(216)))
    begins('embedding(ids, "rows", 500, 40)', weight=((500, 40), normal(0, 1)))
    begins('embedding(ids, "padded", 500, 40, .padding_idx = 7)',
           weight=((500, 40), lambda x: (x[7] == 0).all() and normal(0, 1)(np.delete(x, 7, 0))))
    begins('embedding(ids, "first", 500, 40, .padding_idx = ZERO)',
           weight=((500, 40), lambda x: (x[0] == 0).all() and normal(0, 1)(x[1:])))
    for kind, gates in (("lstm", 4), ("gru", 3), ("rnn", 1)):
        begins(f'{kind}(x, "{kind}", 100, .layers = 2)', weight_ih_l0=((100 * gates, 64), fan(100)),
               weight_hh_l1=((100 * gates, 100), fan(100)), bias_hh_l0=(f"({100 * gates})", fan(100)))
    for call in ('batch_norm(image, "bn")', 'group_norm(image, "gn", 3)', 'instance_norm(image, "in")'):
        begins(call, weight=("(24)", one), bias=("(24)", zero))
    begins('batch_norm(image, "running")', running_mean=("(24)", zero), running_var=("(24)", one))
    begins('layer_norm(x, "ln")', weight=("(64)", one), bias=("(64)", zero))
    begins('multi_head_attention(x, "attn", 4)', in_proj_weight=((192, 64), uniform(math.sqrt(6 / 256))),
           in_proj_bias=("(192)", zero), out_proj__weight=((64, 64), fan(64)), out_proj__bias=("(64)", zero))
    begins('transformer_encoder_layer(x, "t", 4, 200)', linear1__weight=((200, 64), fan(64)),
           linear2__weight=((64, 200), fan(200)), self_attn__in_proj_weight=((192, 64), uniform(math.sqrt(6 / 256))),
           norm1__weight=("(64)", one), norm2__bias=("(64)", zero))
    return c


ALL = [initials, layers]
