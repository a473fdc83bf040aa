# SPDX-License-Identifier: MIT OR Apache-2.0
"""A test's model with names instead of numbers in its inputs' shapes, so that it compiles for sizes at run time.

In: an ONNX model. Out: the model and the bounds of its dimensions. The sizes of the first input get names (n3 for 3),
and with them the same sizes of the others, since they mostly are one dimension; what only others have, such as the
size of a filter, stays, and so do sizes of 1, which broadcast. Shapes of outputs and of values between, which repeat
the numbers, are left out."""
from onnx_wire import blob, encode, fields, rewrite


def symbolic(model):
    bounds = {}

    def first(message):
        size = dict(fields(message)).get(1, 1)
        if size != 1:
            bounds[f"n{size}"] = (min(1, size), 2 * size + 1)
        return other(message)

    def other(message):
        name = f"n{dict(fields(message)).get(1)}"
        return blob(2, name) if name in bounds else message

    def with_dimensions(message, change):
        return rewrite(
            message,
            f2=lambda t: rewrite(t, f1=lambda tensor: rewrite(tensor, f2=lambda shape: rewrite(shape, f1=change))))

    def graph(message):
        constants = {dict(fields(v)).get(8) for n, v in fields(message) if n == 5}
        inputs = [name for name in (dict(fields(v))[1] for n, v in fields(message) if n == 11) if name not in constants]
        kept = b"".join(encode(n, v) for n, v in fields(message) if n != 13)
        for change, names in ((first, inputs[:1]), (other, inputs[1:])):
            kept = rewrite(kept, f11=lambda v: with_dimensions(v, change) if dict(fields(v))[1] in names else v)
        return rewrite(kept, f12=lambda v: with_dimensions(v, lambda _: b""))
    return rewrite(model, f7=graph), bounds
