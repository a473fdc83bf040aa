# SPDX-License-Identifier: MIT OR Apache-2.0
"""What parameters begin as: the distributions of PyTorch's initialisers and of its layers' defaults, by their moments
and bounds. Of n draws a mean is within 5 deviations / sqrt(n)."""
import math

import numpy as np
from case import Case

ROWS, COLUMNS = 200, 300                                # a weight [out, in]
DRAWS = ROWS * COLUMNS


def uniform(bound):
    def of(x):
        far = np.abs(x).max()
        return far <= bound * (1 + 1e-6) and far > 0.999 * bound and moments(x, 0, bound / math.sqrt(3))
    return of


def normal(mean, deviation):
    return lambda x: moments(x, mean, deviation) and np.abs(x - mean).max() > 3.5 * deviation


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


ALL = [initials]
