#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# Records (runtime/learn/record.h): each format at each precision, read and written here by other code; what is damaged
# is refused, and changes nothing; the files of Burn, made here and by Burn itself; those of generated code.
#
# usage: records.py LIBRARY BURNCC    LIBRARY: runtime/learn as a shared library
#
# In: burn/, small files that Burn wrote. Out: TAP. Needs the standard library only, and a C compiler.
import ctypes
import gzip
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import record_formats as formats     # noqa: E402
from data import refused             # noqa: E402
from tap import Tap                  # noqa: E402

EINVAL, ENOMEM, EIO, EFORMAT, ERANGE = -1, -2, -3, -6, -8
PRECISION = {"": 0, "F32": 1, "F16": 10, "F64": 11, "BF16": 16}
POINTER = ctypes.c_void_p


class Said(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 480)]


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t), ("least", POINTER),
                ("dims", POINTER)]


class Part(ctypes.Structure):
    _fields_ = [("tensor", Info), ("offset", ctypes.c_size_t), ("role", ctypes.c_int)]


class Training(ctypes.Structure):
    """burn_training, as far as records read it."""
    _fields_ = [("version", ctypes.c_int)] + [(n, ctypes.c_char_p) for n in ("name", "loss", "optimizer", "schedule")] \
        + [(n, ctypes.c_size_t) for n in ("params_bytes", "state_bytes", "weights_bytes")] \
        + [("param_count", ctypes.c_int), ("state_count", ctypes.c_int), ("params", ctypes.POINTER(Part)),
           ("state", ctypes.POINTER(Part))]


class Held(ctypes.Structure):
    _fields_ = [("training", ctypes.POINTER(Training)), ("params", POINTER), ("state", POINTER), ("step", POINTER),
                ("more_count", ctypes.c_int), ("more", ctypes.POINTER(Info)), ("more_data", ctypes.POINTER(POINTER)),
                ("passes_over", ctypes.c_int)]


class Recording(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int), ("gzip", ctypes.c_int), ("precision", ctypes.c_int)]


class Recorded(ctypes.Structure):
    _fields_ = [("tensor", Info), ("data", POINTER)]


class Record(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("version", ctypes.c_int), ("program", ctypes.c_char_p),
                ("precision", ctypes.c_int), ("of_burn", ctypes.c_int),
                ("count", ctypes.c_int), ("tensors", ctypes.POINTER(Recorded))]


def info(name, dtype, shape):
    count = math.prod(shape) * formats.SIZE[dtype]
    return Info(name.encode(), formats.NUMBER[dtype], len(shape), (ctypes.c_int64 * max(len(shape), 1))(*shape), count)


class Net:
    """Tensors in structs, as training code describes them: (name, dtype, shape) of parameters and of the state."""

    def __init__(self, params, state):
        self.names = [(n, t, s) for n, t, s in params] + [("optimizer." + n, t, s) for n, t, s in state]
        self.params, self.state = self.parts(params), self.parts(state)
        self.training = Training(1, b"net", b"", b"adam", None, self.room(params), self.room(state), 0, len(params),
                                 len(state), self.params, self.state)

    @staticmethod
    def parts(tensors):
        at, parts = 0, []
        for name, dtype, shape in tensors:
            parts.append(Part(info(name, dtype, shape), at, 0))
            at += parts[-1].tensor.bytes + -parts[-1].tensor.bytes % 8
        return (Part * len(parts))(*parts)

    @staticmethod
    def room(tensors):
        return sum((b := math.prod(s) * formats.SIZE[t]) + -b % 8 for _, t, s in tensors)

    def kept(self, tensors=None):
        return Kept(self, tensors)


class Kept:
    """Memory for a Net: what tensors say, or bytes of 0xee."""

    def __init__(self, net, tensors=None, passes_over=0):
        self.net = net
        self.params = ctypes.create_string_buffer(b"\xee" * net.training.params_bytes)
        self.state = ctypes.create_string_buffer(b"\xee" * net.training.state_bytes)
        self.step = ctypes.c_int64(-1)
        self.held = Held(ctypes.pointer(net.training), ctypes.addressof(self.params), ctypes.addressof(self.state),
                         ctypes.addressof(self.step), 0, None, None, passes_over)
        self.held.keeper = self
        for place, (_, _, _, data) in zip(self.places(), tensors or []):
            ctypes.memmove(place, data, len(data))

    def places(self):
        return [ctypes.addressof(b) + p.offset for b, parts in ((self.params, self.net.params),
                                                                (self.state, self.net.state)) for p in parts] + \
            [ctypes.addressof(self.step)]

    def tensors(self):
        all_ = self.net.names + [("optimizer.step", "I64", [])]
        return [(n, t, list(s), ctypes.string_at(at, math.prod(s) * formats.SIZE[t]))
                for (n, t, s), at in zip(all_, self.places())]


class Library:
    def __init__(self, path, tap):
        self.c, self.said = ctypes.CDLL(path), Said()
        self.c.burn_record_claims.restype = ctypes.c_char_p
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [POINTER]
        self.formats = {}                                 # those that this build has
        for ending, rows in formats.FORMATS.items():
            try:
                self.write(small_net().kept(), ending, "")
                self.formats[ending] = rows
            except ValueError as e:
                tap.skip(f"records in {ending}", e.args[1])

    def call(self, name, *args):
        self.said.text = b""
        error = getattr(self.c, name)(*args, ctypes.byref(self.said))
        if error:
            raise ValueError(error, self.said.text.decode())

    def write(self, kept, ending, precision, gz=0):
        data, count = POINTER(), ctypes.c_size_t()
        how = Recording(formats.FORMATS[ending][0], gz, PRECISION[precision])
        self.call("burn_record_write", ctypes.byref(how), ctypes.byref(kept.held), ctypes.byref(data),
                  ctypes.byref(count))
        out = ctypes.string_at(data, count.value)
        self.free(data)
        return out

    def read(self, data, kept=None):
        """Gives it to kept; what it is: (format, version, program, precision, tensors)."""
        record = ctypes.POINTER(Record)()
        room = ctypes.create_string_buffer(data, max(len(data), 1))       # malloc's, so that valgrind sees its end
        self.call("burn_record_read", room, ctypes.c_size_t(len(data)), ctypes.byref(record))
        try:
            if kept:
                self.call("burn_record_give", record, ctypes.byref(kept.held))
            return seen(record.contents)
        finally:
            self.c.burn_record_close(record)


def seen(r):
    types = {v: k for k, v in formats.NUMBER.items()}
    tensors = []
    for i in range(r.count):
        t = r.tensors[i].tensor
        data = ctypes.string_at(r.tensors[i].data, t.bytes)
        tensors.append((t.name.decode(), types[t.dtype], t.shape[:t.rank], data))
    return r.format.decode(), r.version, r.program.decode(), types[r.precision], tensors


def small_net():
    return Net([("conv.weight", "F32", [3, 2, 2]), ("quote\"\\ and ü", "F32", [5]), ("count", "I64", [2]),
                ("none", "F32", [0, 3]), ("deep", "F64", [3])], [("m.conv.weight", "F32", [3, 2, 2]), ("t", "F32", [])])


def fill(net, draw):
    """Tensors for a net, with all that is odd among floats. Large numbers fit in f16."""
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, 6e-8, -2.0 ** -24, 65504.0, 1 + 2 ** -11, 1 + 3 * 2 ** -11,
           2.0 ** -14, 1e-30, 1 + 2 ** -8]
    tensors = []
    for name, dtype, shape in net.names + [("optimizer.step", "I64", [])]:
        n = math.prod(shape)
        data = b"".join(formats.raw(dtype, draw.choice(odd) if draw.random() < 0.4 else draw.gauss(0, 1))
                        for _ in range(n)) if dtype in formats.FLOATS else draw.randbytes(8 * n)
        tensors.append((name, dtype, list(shape), data))
    return tensors


def become(tensors, precision):
    """The tensors with floats of that precision, by Python."""
    if not precision:
        return tensors
    out = []
    for name, dtype, shape, data in tensors:
        one = formats.SIZE[dtype]
        if dtype in formats.FLOATS and dtype != precision:
            data = b"".join(formats.raw(precision, formats.value(dtype, data[i:i + one]))
                            for i in range(0, len(data), one))
            dtype = precision
        out.append((name, dtype, shape, data))
    return out


def same(a, b):
    """Equal tensors; NaNs of other bits too, where a precision was changed."""
    if [t[:3] for t in a] != [t[:3] for t in b]:
        return False
    for (_, dtype, _, x), (*_, y) in zip(a, b):
        one = formats.SIZE[dtype]
        for i in range(0, len(x), one):
            p, q = x[i:i + one], y[i:i + one]
            if p != q and not (dtype in formats.FLOATS and math.isnan(formats.value(dtype, p))
                               and math.isnan(formats.value(dtype, q))):
                return False
    return True


def check_round(tap, lib, folder):
    draw = random.Random(1)
    net = small_net()
    for ending, (_, write, decode) in lib.formats.items():
        for precision in PRECISION:
            tensors = fill(net, draw)
            kept, wanted = net.kept(tensors), become(tensors, precision)
            data = lib.write(kept, ending, precision)
            r = decode(data)
            name = f"{ending}, {precision or 'as it is'}"
            tap.check(f"{name}: read by other code", same(r["tensors"], wanted), (r["tensors"], wanted))
            tap.check(f"{name}: version, program, precision, checksum", (r["version"], r["program"], r["precision"])
                      == (1, "net", precision) and r["sum"] == f"{formats.record_sum(r):016x}", r)
            back = [become(t, d) for t, d in zip([[t] for t in wanted], [t[1] if t[1] in formats.FLOATS else ""
                                                                         for t in tensors])]
            back = [t[0] for t in back]
            new = net.kept()
            about = lib.read(data, new)
            tap.check(f"{name}: comes back", same(new.tensors(), back), (new.tensors(), back))
            exact = [t for t in tensors if not precision or t[1] == precision]
            tap.check(f"{name}: with the same bits", [t for t in new.tensors() if t[0] in {e[0] for e in exact}]
                      == exact and about[1:4] == (1, "net", precision), about)
            again = net.kept()
            lib.read(write(formats.record(wanted, precision=precision)), again)
            tap.check(f"{name}: written by other code", again.tensors() == new.tensors())
            path = folder / f"net{ending}.gz"
            lib.call("burn_record_save", os.fsencode(path), ctypes.byref(
                Recording(formats.FORMATS[ending][0], 1, PRECISION[precision])), ctypes.byref(kept.held))
            file = net.kept()
            lib.call("burn_record_load", os.fsencode(path), ctypes.byref(file.held))
            tap.check(f"{name}: a file in gzip", gzip.decompress(path.read_bytes()) == data
                      and file.tensors() == new.tensors())


def damages(tensors):
    """What else a record may be: (name, part of the message, the record)."""
    first, rest = tensors[0], tensors[1:]
    name, dtype, shape, data = first
    turned = [shape[1], shape[0], *shape[2:]]
    return [
        ("version", "version 2; this library reads 1", formats.record(tensors, version=2)),
        ("a tensor is missing", f'tensor "{name}": it is not there', formats.record(rest)),
        ("shape", "it is F32[2,3,2], and F32[3,2,2] is wanted", formats.record([(name, dtype, turned, data)] + rest)),
        ("rank", "it is F32[12], and F32[3,2,2] is wanted", formats.record([(name, dtype, [12], data)] + rest)),
        ("type", "it is I32[3,2,2], and F32", formats.record([(name, "I32", shape, data)] + rest)),
        ("unknown type", "element type is not known", formats.record([(name, "F7", shape, data)] + rest)),
        ("surplus", 'tensor "more": nothing wants it', formats.record(tensors + [("more", "F32", [1], b"\0" * 4)])),
        ("twice", "", formats.record(tensors + [first])),
        ("checksum", "checksum is not that of its content", formats.record(tensors, sum="0123456789abcdef")),
        ("a checksum that is none", "checksum", formats.record(tensors, sum="nan")),
        ("data that is too short", "", formats.record([(name, dtype, shape, data[:-4])] + rest)),
        ("a size below zero", "", formats.record([(name, dtype, [-3, -2, 2], data)] + rest)),
        ("sizes beyond all bounds", "", formats.record([(name, dtype, [1 << 62, 1 << 62, 12], data)] + rest)),
        ("too many dimensions", "", formats.record([(name, dtype, shape + [1] * 30, data)] + rest)),
    ]


def check_damage(tap, lib):
    draw = random.Random(2)
    net = small_net()
    tensors = [(n, t, s, bytes(b % 120 for b in d)) for n, t, s, d in fill(net, draw)]      # no NaN of many bits
    untouched = net.kept().tensors()
    for ending, (_, write, _) in lib.formats.items():
        for name, part, r in damages(tensors):
            kept = net.kept()
            ok, why = refused(lambda: lib.read(write(r), kept), EFORMAT, part)
            tap.check(f"{ending} refuses: {name}", ok and kept.tensors() == untouched, why)
        whole = write(formats.record(tensors))
        for name, data in (("", whole), (", gzip", formats.packed(whole))):
            cuts = sorted({draw.randrange(len(data)) for _ in range(60)} | {0, 1, 7, 8, len(data) - 1})
            bad = [n for n in cuts if not refused(lambda: lib.read(data[:n], net.kept()), EFORMAT, "")[0]]
            tap.check(f"{ending}{name} refuses: cut short", not bad, bad)
            flips, wrong = [draw.randrange(len(data) * 8) for _ in range(300)], []
            for bit in flips:
                flipped, kept = bytearray(data), net.kept()
                flipped[bit // 8] ^= 1 << bit % 8
                try:
                    lib.read(bytes(flipped), kept)
                    wrong += [bit] if kept.tensors() != tensors else []
                except ValueError as e:
                    wrong += [] if e.args[0] in (EFORMAT, ENOMEM) and kept.tensors() == untouched else [(bit, e.args)]
            tap.check(f"{ending}{name}: no bit that flips changes a number unseen", not wrong, wrong[:5])
            tap.check(f"{ending}{name} refuses: something behind its end",
                      refused(lambda: lib.read(data + b"\0" * 8, net.kept()), EFORMAT, "")[0])
    tap.check("refuses what is no record", *refused(lambda: lib.read(b"RIFF" * 20), EFORMAT, "this is no record"))
    tap.check("refuses nothing at all", *refused(lambda: lib.read(b""), EFORMAT, "this is no record"))


def check_part(tap, lib):
    """Less than all of it, other tensors, and numbers that are too large."""
    net = small_net()
    tensors = fill(net, random.Random(3))
    whole = lib.write(net.kept(tensors), ".bin", "")
    kept = net.kept()
    kept.held.state = kept.held.step = None
    tap.check("a record of all is none of the parameters", *refused(
        lambda: lib.read(whole, kept), EFORMAT, 'tensor "optimizer.m.conv.weight": nothing wants it'))
    kept.held.passes_over = 1
    lib.read(whole, kept)
    tap.check("but it can be one", kept.tensors()[:5] == tensors[:5] and kept.step.value == -1)
    numbers = (ctypes.c_double * 3)(0.5, -2, 1e300)
    more, data = (Info * 1)(info("learner.best", "F64", [3])), (POINTER * 1)(ctypes.addressof(numbers))
    alone = Held(None, None, None, None, 1, more, data, 0)
    keeper = type("", (), {"held": alone})
    small = lib.write(keeper, ".bin", "")
    numbers[:] = (0, 0, 0)
    lib.read(small, keeper)
    tap.check("tensors of the caller's own", list(numbers) == [0.5, -2, 1e300])
    tap.check("too large for a precision", *refused(lambda: lib.write(keeper, ".bin", "F32"), ERANGE,
              'tensor "learner.best": element 2, 1e+300, is too large for F32'))
    as_f32 = Held(None, None, None, None, 1, (Info * 1)(info("learner.best", "F32", [3])), data, 0)
    tap.check("too large for who loads it", *refused(
        lambda: lib.read(small, type("", (), {"held": as_f32})), EFORMAT, "a number is too large"))


def check_files(tap, lib, folder):
    net = small_net()
    kept = net.kept(fill(net, random.Random(4)))
    save = lambda path: lib.call("burn_record_save", os.fsencode(path), None, ctypes.byref(kept.held))   # noqa: E731
    load = lambda path: lib.call("burn_record_load", os.fsencode(path), ctypes.byref(net.kept().held))   # noqa: E731
    for ending in [e + z for e in lib.formats for z in ("", ".gz")]:
        save(folder / f"net{ending}")
        load(folder / f"net{ending}")
    tap.check("endings say the format", {p.name for p in folder.glob("net.*")} == {
        f"net{e}{z}" for e in lib.formats for z in ("", ".gz")})
    tap.check("and gzip is gzip", (folder / "net.bin.gz").read_bytes()[:2] == b"\x1f\x8b")
    tap.check("an ending that is none", *refused(lambda: save(folder / "net.pt"), EINVAL, "says no format of records"))
    tap.check("a folder that is none", *refused(lambda: save(folder / "no" / "net.bin"), EIO, "No such file"))
    tap.check("a file that is not there", *refused(lambda: load(folder / "no.mpk"), EIO, "no.mpk: No such file"))
    tap.check("a folder instead of a file", *refused(lambda: load(folder), EIO, "it is no file"))
    (folder / "bad.bin").write_bytes((folder / "net.bin").read_bytes()[:-8])
    tap.check("a message begins with the file", *refused(lambda: load(folder / "bad.bin"), EFORMAT, "bad.bin: tensor "))
    before = (folder / "net.bin").read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, old[1]))
    full = refused(lambda: save(folder / "net.bin"), EIO, "File too large")
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    tap.check("a disk that is full leaves the file as it was", full[0] and (folder / "net.bin").read_bytes() == before
              and not (folder / "net.bin.tmp").exists(), full[1])


def f(*x):
    return struct.pack(f"<{len(x)}f", *x)


def check_named_mpk(tap, lib):
    """Modules by hand, and a file of Burn's own."""
    linear = {"weight": formats.param("F32", [2, 1], f(1, 2)), "bias": formats.param("F16", [1], b"\0\x3c")}
    net = {"layers": [linear, {"weight": formats.param("F32", [1], list(f(-3))), "bias": None}], "scale": None,
           "stride": [None, 3], "name": "x", "mask": formats.param("Bool", [1], b"\1")}
    wanted = [("layers.0.weight", "F32", [2, 1], f(1, 2)), ("layers.0.bias", "F16", [1], b"\0\x3c"),
              ("layers.1.weight", "F32", [1], f(-3))]
    del net["mask"]
    about = lib.read(formats.named_mpk(net))
    tap.check("NamedMpk: tensors under dotted names", about == ("Burn's NamedMpk", 0, "", "", wanted), about)
    tap.check("NamedMpk in gzip", lib.read(formats.packed(formats.named_mpk(net))) == about)
    bad = net | {"layers": [{"weight": formats.param("F32", [2, 2], f(1, 2))}]}
    tap.check("NamedMpk refuses: shape", *refused(lambda: lib.read(formats.named_mpk(bad)), EFORMAT,
              'tensor "layers.0.weight": its data has 8 bytes, its type and shape take 16'))
    deep = {}
    for _ in range(100):
        deep = {"a": deep}
    tap.check("NamedMpk refuses: nested too deeply",
              *refused(lambda: lib.read(formats.named_mpk(deep)), ENOMEM, "nested too deeply"))
    tap.check("NamedMpk refuses: no item", *refused(lambda: lib.read(formats.mpk({"metadata": {}})), EFORMAT, "item"))
    record = lib.read((HERE / "burn" / "net.mpk").read_bytes())
    found = {n: (t, s, d) for n, t, s, d in record[4]}
    tap.check("a file of Burn 0.16: a module's tensors", list(found) == [
        "conv.weight", "conv.bias", "norm.gamma", "norm.beta", "norm.running_mean", "norm.running_var",
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "table.weight"], list(found))
    tap.check("and their content", found["layers.0.weight"] == ("F32", [2, 3], f(1, 2, 3, 4, 5, 6))
              and found["norm.running_var"] == ("F32", [2], f(1, 1)), found)


def check_burnpack(tap, lib):
    """The same for burnpack."""
    tensors = [("fc.bias", "F32", [3], f(-1, 0.5, 7)), ("fc.weight", "F64", [1], struct.pack("<d", 3)),
               ("n", "I64", [], struct.pack("<q", 5))]
    for aligned in True, False:
        about = lib.read(formats.burnpack(tensors, aligned))
        tap.check(f"burnpack, {'aligned' if aligned else 'of the first kind'}",
                  about == ("burnpack", 1, "", "", tensors), about)
    data = formats.burnpack(tensors)
    quantized = [("q", {"QFloat": "x"}, [1], b"\0")]
    for name, part, bad in (("version", "version 2", formats.burnpack(tensors, version=2)),
                            ("cut short", "does not end", data[:-1]), ("a surplus", "does not end", data + b"\0"),
                            ("its head alone", "ends in its metadata", data[:20]),
                            ("quantized", "type is not known", formats.burnpack(quantized)),
                            ("shape", "its type and shape take", formats.burnpack([("a", "F32", [3], b"\0" * 8)])),
                            ("metadata", "metadata is damaged", data[:10] + b"\xff" + data[11:]),
                            ("no shape", "dimensions", formats.burnpack([("a", "F32", "3", b"\0" * 4)]))):
        tap.check(f"burnpack refuses: {name}", *refused(lambda: lib.read(bad), EFORMAT, part))

    record = lib.read((HERE / "burn" / "small.bpk").read_bytes())
    tap.check("a file of burn-pack 0.22", record[4] == [
        ("fc.bias", "F32", [3], f(-1, 0.5, 7)), ("fc.weight", "F32", [2, 3], f(1, 2, 3, 4, 5, 6)),
        ("mask", "BOOL", [2], b"\1\0"), ("steps", "I64", [], struct.pack("<q", 5))], record)


def check_generated(tap, lib, burncc, folder):
    """The real descriptor, and the files that generated code writes and reads."""
    digits = HERE.parent.parent / "models" / "digits" / "digits.onnx"
    cc = os.environ.get("CC", "cc").split()
    subprocess.run([burncc, digits, "--train", "--optimizer", "adam", "--quiet", "-o", folder / "net.c"], check=True)
    subprocess.run([*cc, "-O0", "-w", "-shared", "-fPIC", "net.c", "-lm", "-o", "net.so"], check=True, cwd=folder)
    c = ctypes.CDLL(str(folder / "net.so"))
    training = Training.in_dll(c, "net_training")
    draw = random.Random(5)

    def kept(filled):
        params, state = (ctypes.create_string_buffer(n) for n in (training.params_bytes, training.state_bytes))
        if filled:
            for room in params, state:
                floats = struct.pack(f"<{len(room) // 4}f", *(draw.gauss(0, 1) for _ in range(len(room) // 4)))
                ctypes.memmove(room, floats, len(floats))
        step = ctypes.c_int64(77 if filled else 0)
        places = (ctypes.addressof(x) for x in (params, state, step))
        return params, state, step, Held(ctypes.pointer(training), *places)

    def content(k):
        """All but the count of batches, which means nothing in parameters."""
        return [room.raw[p.offset:p.offset + p.tensor.bytes] for room, parts, n in (
            (k[0], training.params, training.param_count), (k[1], training.state, training.state_count))
            for p in parts[:n] if p.role != 2] + [k[2].value]
    full, path = kept(True), os.fsencode(folder / "full.safetensors")
    for ending in lib.formats:
        other, to = kept(False), os.fsencode(folder / f"full{ending}")
        lib.call("burn_record_save", to, None, ctypes.byref(full[3]))
        lib.call("burn_record_load", to, ctypes.byref(other[3]))
        tap.check(f"a program's own descriptor, {ending}", content(other) == content(full))
    other = kept(False)
    tap.check("generated code reads a record", c.net_checkpoint_load(*map(ctypes.byref, other[:3]), path) == 0
              and content(other) == content(full))
    full = kept(True)
    c.net_checkpoint_save(ctypes.byref(full[0]), ctypes.byref(full[1]), ctypes.c_int64(77), path)
    lib.call("burn_record_load", path, ctypes.byref(other[3]))
    tap.check("a record is read that generated code wrote", content(other) == content(full))
    data = bytearray((folder / "full.safetensors").read_bytes())
    data[-5] ^= 4
    tap.check("with its checksum", *refused(lambda: lib.read(bytes(data)), EFORMAT, "it is damaged"))


def main():
    tap = Tap()
    lib = Library(sys.argv[1], tap)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="burncc-records-"))
    try:
        check_round(tap, lib, folder)
        check_damage(tap, lib)
        check_part(tap, lib)
        check_files(tap, lib, folder)
        for name, check, begin in (("NamedMpk", check_named_mpk, formats.named_mpk({})),
                                   ("burnpack", check_burnpack, formats.burnpack([]))):
            lacks, why = refused(lambda: lib.read(begin), EINVAL, "this build has no")
            tap.skip(name, why[1]) if lacks else check(tap, lib)
        check_generated(tap, lib, sys.argv[2], folder)
    finally:
        shutil.rmtree(folder)
    return tap.end()


sys.exit(main())
