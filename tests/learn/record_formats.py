# SPDX-License-Identifier: MIT OR Apache-2.0
"""The formats of records (runtime/learn/record.h) as the tests know them: readers and writers of their own, which give
tests records of any content, right or wrong. A record is a dict of version, program, precision, tensors and sum; a
tensor is (name, dtype, shape, bytes)."""
import gzip
import json
import math
import struct

MASK = (1 << 64) - 1
NUMBER = {"F32": 1, "U8": 2, "I8": 3, "U16": 4, "I16": 5, "I32": 6, "I64": 7, "BOOL": 9, "F16": 10, "F64": 11,
          "U32": 12, "U64": 13, "BF16": 16, "": 0}
SIZE = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2,
        "U8": 1, "BOOL": 1}
FLOATS = ("F64", "F32", "F16", "BF16")


def mix(total, data):
    for i in range(0, len(data) + 8, 8):
        if i >= len(data):
            break
        total = step(total, int.from_bytes(data[i:i + 8], "little"))
    return step(total, len(data))


def step(total, word):
    total = (total ^ word) * 0x9e3779b97f4a7c15 & MASK
    return total ^ total >> 32


def record_sum(r):
    ints = lambda *x: struct.pack(f"<{len(x)}q", *x)      # noqa: E731
    total = mix(0, ints(r["version"], NUMBER.get(r["precision"], 0), len(r["tensors"])))
    total = mix(total, r["program"].encode())
    for name, dtype, shape, data in r["tensors"]:
        for part in name.encode(), ints(NUMBER.get(dtype, 0), len(shape)), ints(*shape), data:
            total = mix(total, part)
    return total


def record(tensors, **other):
    r = {"version": 1, "program": "net", "precision": "", "tensors": list(tensors)} | other
    return r | {"sum": f"{record_sum(r):016x}"} | {k: other[k] for k in other if k == "sum"}


# ---------------------------------------------------------------- numbers

def bfloat(x):
    """The bits of x as bf16, rounded to even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    if math.isnan(x):
        return bits >> 16 | 0x40
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def value(dtype, raw):
    if dtype == "BF16":
        return struct.unpack("<f", b"\0\0" + raw)[0]
    return struct.unpack("<" + {"F64": "d", "F32": "f", "F16": "e"}[dtype], raw)[0]


def raw(dtype, x):
    if dtype == "BF16":
        return struct.pack("<H", bfloat(x))
    return struct.pack("<" + {"F64": "d", "F32": "f", "F16": "e"}[dtype], x)


# ---------------------------------------------------------------- MessagePack

def mpk(x):
    if x is None:
        return b"\xc0"
    if isinstance(x, bool):
        return b"\xc3" if x else b"\xc2"
    if isinstance(x, int):
        return bytes([x]) if 0 <= x < 128 else b"\xcf" + struct.pack(">Q", x) if x >= 0 else b"\xd3" + \
            struct.pack(">q", x)
    if isinstance(x, str):
        b = x.encode()
        return (bytes([0xa0 | len(b)]) if len(b) < 32 else b"\xd9" + bytes([len(b)])) + b
    if isinstance(x, bytes):
        return b"\xc6" + struct.pack(">I", len(x)) + x
    if isinstance(x, (list, tuple)):
        return (bytes([0x90 | len(x)]) if len(x) < 16 else b"\xdd" + struct.pack(">I", len(x))) + b"".join(map(mpk, x))
    pairs = x.items() if isinstance(x, dict) else x.pairs
    return (bytes([0x80 | len(pairs)]) if len(pairs) < 16 else b"\xdf" + struct.pack(">I", len(pairs))) + b"".join(
        mpk(k) + mpk(v) for k, v in pairs)


class Pairs:
    """A map with keys in this order, also twice."""

    def __init__(self, pairs):
        self.pairs = list(pairs)


def mpk_read(data):
    """MessagePack's first value, and what is behind it."""
    def take(n):
        nonlocal data
        part, data = data[:n], data[n:]
        assert len(part) == n
        return part

    def number(code):
        return struct.unpack(">" + code, take(struct.calcsize(code)))[0]

    def one():
        t = number("B")
        if t < 0x80:
            return t
        if t < 0xc0:
            n = t & (0x1f if t >= 0xa0 else 0xf)
            return take(n).decode() if t >= 0xa0 else [one() for _ in range(n)] if t >= 0x90 else {
                one(): one() for _ in range(n)}
        simple = {0xc0: None, 0xc2: False, 0xc3: True}
        if t in simple:
            return simple[t]
        codes = {0xcc: "B", 0xcd: "H", 0xce: "I", 0xcf: "Q", 0xd0: "b", 0xd1: "h", 0xd2: "i", 0xd3: "q"}
        if t in codes:
            return number(codes[t])
        if t in (0xc4, 0xc5, 0xc6):
            return take(number("BHI"[t - 0xc4]))
        if t in (0xd9, 0xda, 0xdb):
            return take(number("BHI"[t - 0xd9])).decode()
        if t in (0xdc, 0xdd):
            return [one() for _ in range(number("HI"[t - 0xdc]))]
        assert t in (0xde, 0xdf), hex(t)
        return {one(): one() for _ in range(number("HI"[t - 0xde]))}
    return one(), data


def mpk_write(r):
    return mpk({"format": "burncc record", "version": r["version"], "program": r["program"],
                "precision": r["precision"], "sum": r["sum"],
                "tensors": Pairs((n, {"dtype": t, "shape": s, "data": d}) for n, t, s, d in r["tensors"])})


def mpk_decode(data):
    r, rest = mpk_read(data)
    assert r["format"] == "burncc record" and not rest
    return r | {"tensors": [(n, e["dtype"], e["shape"], e["data"]) for n, e in r["tensors"].items()]}


# ---------------------------------------------------------------- the plain binary

def number64(x):
    return struct.pack("<q", x)


def padded(data):
    return data + b"\0" * (-len(data) % 8)


def text(s):
    return number64(len(s.encode())) + padded(s.encode())


def binary_write(r):
    total = int(r["sum"], 16) if r["sum"] != "nan" else 0x7ff8000000000000
    out = b"burnrec\n" + number64(r["version"]) + number64(NUMBER[r["precision"]]) + struct.pack("<Q", total)
    out += number64(len(r["tensors"])) + text(r["program"])
    for name, dtype, shape, data in r["tensors"]:
        out += text(name) + number64(NUMBER.get(dtype, 99)) + number64(len(shape))
        out += b"".join(map(number64, shape)) + number64(len(data))
    return out + b"".join(padded(data) for *_, data in r["tensors"])


def binary_decode(data):
    at = 8
    names = {v: k for k, v in NUMBER.items()}

    def number():
        nonlocal at
        at += 8
        return struct.unpack_from("<Q", data, at - 8)[0]

    def part(n):
        nonlocal at
        at += n + -n % 8
        return data[at - n - -n % 8:][:n]
    assert data[:8] == b"burnrec\n"
    version, precision, total, n = number(), number(), number(), number()
    program, heads = part(number()).decode(), []
    for _ in range(n):
        name, dtype = part(number()).decode(), names[number()]
        heads.append((name, dtype, [number() for _ in range(number())], number()))
    tensors = [(*head[:3], part(head[3])) for head in heads]
    assert at == len(data)
    return {"version": version, "program": program, "precision": names[precision], "sum": f"{total:016x}",
            "tensors": tensors}


# ---------------------------------------------------------------- JSON and safetensors

def numbers(dtype, data):
    for i in range(0, len(data), SIZE.get(dtype, 4)):
        one = data[i:i + SIZE.get(dtype, 4)]
        if dtype in FLOATS:
            x = value(dtype, one)
            yield x if math.isfinite(x) else one[::-1].hex()
        else:
            yield int.from_bytes(one, "little", signed=dtype[0] == "I")


def pairs_json(pairs):
    """An object whose keys may be there twice."""
    return "{" + ", ".join(f"{json.dumps(k)}: {v}" for k, v in pairs) + "}"


def json_write(r):
    tensors = pairs_json((n, json.dumps({"dtype": t, "shape": s, "data": list(numbers(t, d))}))
                         for n, t, s, d in r["tensors"])
    about = {"format": "burncc record", "version": r["version"], "program": r["program"],
             "precision": r["precision"], "sum": r["sum"]}
    return pairs_json([(k, json.dumps(v)) for k, v in about.items()] + [("tensors", tensors)]).encode()


def json_decode(data):
    r = json.loads(data)
    assert r["format"] == "burncc record"
    tensors = []
    for name, e in r["tensors"].items():
        one = SIZE[e["dtype"]]
        raws = [bytes.fromhex(x)[::-1] if isinstance(x, str) else raw(e["dtype"], x) if e["dtype"] in FLOATS else
                x.to_bytes(one, "little", signed=x < 0) for x in e["data"]]
        tensors.append((name, e["dtype"], e["shape"], b"".join(raws)))
    return r | {"tensors": tensors}


def safetensors_write(r, about=None):
    if about is None:
        about = {"burn_record": str(r["version"]), "program": r["program"], "precision": r["precision"],
                 "sum": r["sum"]}
    at, pairs = 0, [("__metadata__", json.dumps(about))]
    for name, dtype, shape, data in r["tensors"]:
        pairs.append((name, json.dumps({"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]})))
        at += len(data)
    head = padded(pairs_json(pairs).encode()).replace(b"\0", b" ")
    return number64(len(head)) + head + b"".join(data for *_, data in r["tensors"])


def safetensors_decode(data):
    n = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + n])
    about = head.pop("__metadata__")
    tensors = [(name, e["dtype"], e["shape"], data[8 + n:][slice(*e["data_offsets"])]) for name, e in head.items()]
    return about | {"version": int(about["burn_record"]), "tensors": tensors}


FORMATS = {".mpk": (1, mpk_write, mpk_decode), ".bin": (2, binary_write, binary_decode),
           ".json": (3, json_write, json_decode), ".safetensors": (4, safetensors_write, safetensors_decode)}


# ---------------------------------------------------------------- Burn's

def named_mpk(item, version="0.16.1"):
    about = {"float": "f32", "int": "i32", "format": "NamedMpkFileRecorder<FullPrecisionSettings>",
             "version": version, "settings": "FullPrecisionSettings"}
    return mpk({"metadata": about, "item": item, "_b": []})


def param(dtype, shape, data):
    return {"id": "0b7sttrbl247u", "param": {"bytes": data, "shape": shape, "dtype": dtype}}


def cbor(x):
    def head(kind, n):
        if n < 24:
            return bytes([kind << 5 | n])
        code = 24 + (n > 0xff) + (n > 0xffff) + (n > 0xffffffff)
        return bytes([kind << 5 | code]) + n.to_bytes(1 << (code - 24), "big")
    if isinstance(x, int):
        return head(0, x) if x >= 0 else head(1, -1 - x)
    if isinstance(x, str):
        return head(3, len(x.encode())) + x.encode()
    if isinstance(x, (list, tuple)):
        return head(4, len(x)) + b"".join(map(cbor, x))
    return head(5, len(x)) + b"".join(cbor(k) + cbor(v) for k, v in x.items())


def burnpack(tensors, aligned=True, version=1):
    body, entries = b"", {}
    for name, dtype, shape, data in tensors:
        body += b"\0" * (-len(body) % 256 if aligned else 0)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)],
                         "param_id": 1 << 60}
        body += data
    meta = cbor({"tensors": entries, "metadata": {"producer": "a test"}})
    head = b"NRUB" + struct.pack("<HI", version, len(meta)) + meta
    return head + b"\0" * (-len(head) % 256 if aligned else 0) + body


def packed(data):
    return gzip.compress(data, 6)
