# SPDX-License-Identifier: MIT OR Apache-2.0
"""ONNX files by hand, standard library only: enough to write small models and tensors, and to look into existing ones.

A message is bytes; writers return the bytes of one message, with field numbers of onnx.proto. Wire format: a key
(number * 8 + type) then a varint (type 0), 4 bytes (type 5) or a length and that many bytes (type 2)."""
import struct

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64 = range(1, 14)
PACK = {
    FLOAT: "f", UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", INT32: "i", INT64: "q", BOOL: "?", FLOAT16: "e",
    DOUBLE: "d", UINT32: "I", UINT64: "Q"
}
COMPLEX64, COMPLEX128, BFLOAT16 = 14, 15, 16
FLOAT6E2M3, FLOAT6E3M2 = 27, 28


# ---------------------------------------------------------------- writing
def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(number, value):
    return varint(number << 3) + varint(value)


def blob(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def real(number, value):
    return varint(number << 3 | 5) + struct.pack("<f", value)


def flatten(values):
    """Nested lists to a flat list and its shape."""
    if not isinstance(values, (list, tuple)):
        return [values], []
    shape, flat = [], []
    for v in values:
        inner, shape = flatten(v)
        flat += inner
    return flat, [len(values)] + shape


def six_bits(code, mantissa, bias):
    """The number that a code of 6 bits stands for: sign, exponent, mantissa, without infinities and NaN."""
    exponent, rest = code >> mantissa & (1 << 5 - mantissa) - 1, code & (1 << mantissa) - 1
    value = (rest + (1 << mantissa if exponent else 0)) * 2.0**(max(exponent, 1) - bias - mantissa)
    return -value if code & 32 else value


def pack(dtype, flat):
    if dtype in (COMPLEX64, COMPLEX128):
        return pack(FLOAT if dtype == COMPLEX64 else DOUBLE,
                    [part for v in flat for part in (complex(v).real, complex(v).imag)])
    if dtype in (FLOAT6E2M3, FLOAT6E3M2):  # codes: a stream of bits from the lowest on
        bits = sum(code << 6 * i for i, code in enumerate(flat))
        return bits.to_bytes((6 * len(flat) + 7) // 8, "little")
    if dtype == BFLOAT16:  # the upper halves of floats that have nothing in the lower
        return b"".join(struct.pack("<f", v)[2:] for v in flat)
    return struct.pack(f"<{len(flat)}{PACK[dtype]}", *flat)


def tensor(name, dtype, values, shape=None, external=None, words=False):
    """TensorProto. external: (file name, offset) of data that the caller writes. words: as int32_data."""
    flat, dims = flatten(values)
    dims = dims if shape is None else shape
    out = b"".join(integer(1, d) for d in dims) + integer(2, dtype) + blob(8, name)
    if dtype == STRING:
        return out + b"".join(blob(6, s) for s in flat)
    if external:
        entries = (("location", external[0]), ("offset", str(external[1])), ("length", str(len(pack(dtype, flat)))))
        return out + b"".join(blob(13, blob(1, k) + blob(2, v)) for k, v in entries) + integer(14, 1)
    return out + (blob(5, b"".join(map(varint, flat))) if words else blob(9, pack(dtype, flat)))


def value(name, dtype, values):
    """The data of an input or output: a TensorProto, or for the dtypes ("sequence", d) and ("optional", d) a
    SequenceProto or OptionalProto."""
    if not isinstance(dtype, tuple):
        return tensor(name, dtype, values)
    kind, inner = dtype
    nested = isinstance(inner, tuple)
    if kind == "sequence":
        return blob(1, name) + integer(2, 1) + b"".join(blob(3, value("", inner, v)) for v in values)
    if values is None:
        return blob(1, name) + integer(2, 0)
    return blob(1, name) + integer(2, 3 if nested else 1) + blob(5 if nested else 3, value("", inner, values))


def type_proto(dtype, dims):
    if isinstance(dtype, tuple):
        return blob({"sequence": 4, "optional": 9}[dtype[0]], blob(1, type_proto(dtype[1], dims)))
    if dims is None:
        return blob(1, integer(1, dtype))
    shape = b"".join(blob(1, integer(1, d) if isinstance(d, int) else blob(2, d) if d else b"") for d in dims)
    return blob(1, integer(1, dtype) + blob(2, shape))


def value_info(name, dtype, dims):
    """ValueInfoProto; a dimension is a number, a symbol's name or None; dims None: not even a rank."""
    return blob(1, name) + blob(2, type_proto(dtype, dims))


def attribute(name, value):
    """AttributeProto from a Python value, of a list by its first element; bytes that stand for a TensorProto come as
    ("tensor", bytes), a graph as ("graph", bytes)."""
    out = blob(1, name)
    if isinstance(value, tuple) and value and value[0] in ("tensor", "graph", "ref"):
        kind, what = value
        return out + {"tensor": lambda: blob(5, what) + integer(20, 4), "graph": lambda: blob(6, what) + integer(20, 5),
                      "ref": lambda: blob(21, what) + integer(20, 1)}[kind]()
    if isinstance(value, float):
        return out + real(2, value) + integer(20, 1)
    if isinstance(value, int):
        return out + integer(3, value) + integer(20, 2)
    if isinstance(value, str):
        return out + blob(4, value) + integer(20, 3)
    if value and isinstance(value[0], float):
        return out + b"".join(real(7, v) for v in value) + integer(20, 6)
    if value and isinstance(value[0], str):
        return out + b"".join(blob(9, v) for v in value) + integer(20, 8)
    return out + b"".join(integer(8, v) for v in value) + integer(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    out = b"".join(blob(1, i) for i in inputs) + b"".join(blob(2, o) for o in outputs)
    out += blob(3, f"{op.lower()}_{outputs[0]}") + blob(4, op)
    out += b"".join(blob(5, attribute(k, v)) for k, v in attributes.items())
    return out + (blob(7, domain) if domain else b"")


def graph(nodes, inputs, outputs, initializers=(), name="small"):
    out = b"".join(blob(1, n) for n in nodes) + blob(2, name) + b"".join(blob(5, t) for t in initializers)
    return out + b"".join(blob(11, i) for i in inputs) + b"".join(blob(12, o) for o in outputs)


def function(name, domain, inputs, outputs, nodes, attributes=(), opset=18):
    out = blob(1, name) + b"".join(blob(4, i) for i in inputs) + b"".join(blob(5, o) for o in outputs)
    out += b"".join(blob(6, a) for a in attributes) + b"".join(blob(7, n) for n in nodes)
    return out + blob(9, blob(1, "") + integer(2, opset)) + blob(10, domain)


def model(graph_bytes, opset=18, functions=(), domains=(), ir=8):
    out = integer(1, ir) + blob(7, graph_bytes) + blob(8, blob(1, "") + integer(2, opset))
    versions = [d if isinstance(d, tuple) else (d, 1) for d in domains]
    out += b"".join(blob(8, blob(1, d) + integer(2, v)) for d, v in versions)
    return out + b"".join(blob(25, f) for f in functions)


# ---------------------------------------------------------------- reading
def fields(message):
    """(number, value) pairs: an int for varints, bytes for the rest."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            size = number() if key & 7 == 2 else 4 if key & 7 == 5 else 8
            yield key >> 3, message[at:at + size]
            at += size


def encode(number, value):
    """The field that fields() gave so; none of 4 bytes."""
    return integer(number, value) if isinstance(value, int) else blob(number, value)


def rewrite(message, **changed):
    """The message, its fields fN replaced by what the functions make of them."""
    return b"".join(encode(n, changed.get(f"f{n}", lambda v: v)(v)) for n, v in fields(message))


def model_ops(message):
    """Operator names of the main graph in order, with the domain before a colon when it is not ONNX's own."""
    ops = []
    for number, g in fields(message):
        if number == 7:
            for number, n in fields(g):
                if number == 1:
                    parts = {k: v for k, v in fields(n) if k in (4, 7)}
                    domain = parts.get(7, b"").decode()
                    ops.append((domain + ":" if domain else "") + parts.get(4, b"").decode())
    return ops
