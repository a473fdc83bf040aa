#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes files of PyTorch's formats and .npz into the current folder, without PyTorch: good_*, which all hold
fc.weight = [[1, 1.125, 1.25], [1.375, 1.5, 1.625]] and fc.bias = [0.5, 0.625], and bad_* and cut_*, which lie.

The idea: Call and Stored stand for what PyTorch's pickler writes; Pickler's reducer_override and persistent_id spell
them, so a hostile file is a good one with other arguments."""
import collections
import io
import pickle
import struct
import sys
import tarfile
import types
import zipfile

W = struct.pack("<6f", *[1 + i / 8 for i in range(6)])
B = struct.pack("<2f", 0.5, 0.625)
MAGIC = 0x1950a86a20f9469cfc6c


def name(module, attribute):
    """Something that is pickled as the GLOBAL module.attribute."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(module))
    if not hasattr(sys.modules[module], attribute):
        made = type(attribute, (), {"__module__": module})
        setattr(sys.modules[module], attribute, made)
    return getattr(sys.modules[module], attribute)


class Call:
    """A call of a name, which nobody may make."""

    def __init__(self, module, attribute, *args, state=None):
        self.parts = (name(module, attribute), args, state)


class Stored:
    """A persistent id."""

    def __init__(self, *args):
        self.id = args[0] if len(args) == 1 else args


class Pickler(pickle.Pickler):
    def reducer_override(self, obj):
        return obj.parts[:2 if obj.parts[2] is None else 3] if isinstance(obj, Call) else NotImplemented

    def persistent_id(self, obj):
        return obj.id if isinstance(obj, Stored) else None


def pickled(obj, protocol=2):
    out = io.BytesIO()
    Pickler(out, protocol).dump(obj)
    return out.getvalue()


def storage(key, count, kind="FloatStorage", view=()):
    return Stored("storage", name("torch", kind), key, "cpu", count, *view)


def tensor(where, shape, stride=None, offset=0, call="_rebuild_tensor_v2", more=()):
    if stride is None:
        stride = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            stride[i] = stride[i + 1] * shape[i + 1]
    hooks = (False, collections.OrderedDict()) if call != "_rebuild_tensor" else ()
    return Call("torch._utils", call, where, offset, tuple(shape), tuple(stride), *hooks, *more)


def good(weight=None, bias=None):
    return collections.OrderedDict([("fc.weight", weight or tensor(storage("0", 6), [2, 3])),
                                    ("fc.bias", bias or tensor(storage("1", 2), [2]))])


def zipped(path, obj, storages=(W, B), folder="archive/", more=(), compression=zipfile.ZIP_STORED):
    data = obj if isinstance(obj, bytes) else pickled(obj)
    with zipfile.ZipFile(path, "w", compression) as z:
        z.writestr(folder + "data.pkl", data)
        for i, content in enumerate(storages):
            z.writestr(f"{folder}data/{i}", content)
        for entry, content in more:
            z.writestr(entry, content)


def legacy(path, obj, keys=("0", "1"), storages=(W, B), counts=None, magic=MAGIC, version=1001, little=True, size=4):
    with open(path, "wb") as f:
        f.write(pickled(magic) + pickled(version) + pickled({"protocol_version": version, "little_endian": little}))
        f.write(obj if isinstance(obj, bytes) else pickled(obj))
        f.write(pickled(list(keys)))
        for i, content in enumerate(storages):
            f.write(struct.pack("<q", counts[i] if counts else len(content) // size) + content)


def tarred(path, counts=(6, 2), shapes=((2, 3), (2,)), strides=((3, 1), (1,)), views=(), of=("10", "11"), rank=None):
    kind = name("torch", "FloatStorage")
    storages = pickled(2)
    for key, content, count in zip(("10", "11"), (W, B), counts):
        storages += pickled((key, "cpu", kind)) + struct.pack("<q", count) + content
    storages += pickled(list(views))
    tensors = pickled(2)
    for key, where, shape, stride in zip((20, 21), of, shapes, strides):
        n = rank or len(shape)
        tensors += pickled((key, where, name("torch", "FloatTensor"))) + struct.pack("<ii", n, 0)
        tensors += struct.pack(f"<{2 * len(shape)}q", *shape, *stride) + struct.pack("<q", 0)
    objects = pickled(collections.OrderedDict([("fc.weight", Stored("20")), ("fc.bias", Stored("21"))]))
    with tarfile.open(path, "w") as t:
        for part, content in (("sys_info", pickled({})), ("storages", storages), ("tensors", tensors),
                              ("pickle", objects)):
            info = tarfile.TarInfo(part)
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))


def npy(descr, shape, content, fortran=False):
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head) + 1) + head + b"\n" + content


def archive(path, entries, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as z:
        for entry, content in entries:
            z.writestr(entry, content)


class Module:
    """Pickled as an instance of a class of this name with these attributes."""

    def __new__(cls, module, attribute, **attributes):
        obj = object.__new__(name(module, attribute))
        obj.__dict__.update(attributes)
        return obj


def write_good():
    weight, bias = good().values()
    zipped("good_zip.pt", good())
    zipped("good_nameless_folder.pt", good(), folder="")
    zipped("good_order.pt", good(), more=[("archive/byteorder", "little"), ("archive/version", "3")])
    zipped("good_protocol4.pt", pickled(good(), 4))
    zipped("good_turned.pt", good(tensor(storage("0", 6), [2, 3], [1, 2])),
           [struct.pack("<6f", 1, 1.375, 1.125, 1.5, 1.25, 1.625), B])
    zipped("good_shared.pt", good(tensor(storage("0", 8), [2, 3], offset=2), tensor(storage("0", 8), [2])), [B + W])
    zipped("good_parameter.pt", good(Call("torch._utils", "_rebuild_parameter", weight, True, {})))
    zipped("good_subclass.pt", good(Call(
        "torch._tensor", "_rebuild_from_type_v2", name("torch._utils", "_rebuild_tensor_v2"), name("mine", "Tensor"),
        weight.parts[1], {})))
    zipped("good_v3.pt", good(tensor(storage("0", 24, "UntypedStorage"), [2, 3], call="_rebuild_tensor_v3",
                                     more=(name("torch", "float32"),))))
    zipped("good_old_call.pt", good(tensor(storage("0", 6), [2, 3], call="_rebuild_tensor")))
    zipped("good_size.pt", good(Call("torch._utils", "_rebuild_tensor_v2", storage("0", 6), 0,
                                     Call("torch", "Size", (2, 3)), (3, 1), False, {})))
    zipped("good_nested.pt", {"fc": {"weight": weight, "bias": bias}})
    zipped("good_key.pt", {"epoch": 3, "model_state_dict": good(), "optimizer": {"state": {0: {"exp_avg": bias}}},
                           "args": Module("argparse", "Namespace", lr=0.1)})
    zipped("good_only_key.pt", {"epoch": 3, "odd": good(), "lr": 1e-3, "when": Call("datetime", "date", b"abcd"),
                                "best": Call("numpy.core.multiarray", "scalar", Call("numpy", "dtype", "f8"), b"8")})
    zipped("good_module.pt", Module("mine", "Net", training=True, _parameters={}, _modules=collections.OrderedDict(
        fc=Module("torch.nn.modules.linear", "Linear", _parameters=collections.OrderedDict(weight=weight, bias=bias),
                  _buffers={}, in_features=3))))
    zipped("good_script.pt", Module("__torch__.mine", "Net", training=False, fc=Module(
        "__torch__.torch.nn", "Linear", weight=weight, bias=bias)), more=[("archive/constants.pkl", pickled(()))])
    legacy("good_legacy.pt", good())
    legacy("good_legacy4.pt", pickled(good(), 4))
    legacy("good_legacy_view.pt", good(tensor(storage("0", 8, view=(("9", 2, 6),)), [2, 3]),
                                       tensor(storage("0", 8, view=(("8", 0, 2),)), [2])), ["0"], [B + W])
    tarred("good_tar.pt")
    tarred("good_tar_view.pt", views=[("12", "10", 0, 6)], of=("12", "11"))
    columns = struct.pack("<6f", 1, 1.375, 1.125, 1.5, 1.25, 1.625)
    arrays = [("fc.weight.npy", npy("<f4", (2, 3), W)), ("fc.bias.npy", npy("<f4", (2,), B))]
    archive("good_arrays.npz", arrays)
    archive("good_small.npz", arrays, zipfile.ZIP_DEFLATED)
    archive("good_columns.npz", [("fc.weight.npy", npy("<f4", (2, 3), columns, True)), arrays[1]])


def write_types():
    kinds = {"DoubleStorage": "<2d", "HalfStorage": "<2e", "LongStorage": "<2q", "IntStorage": "<2i",
             "ShortStorage": "<2h", "CharStorage": "<2b", "ByteStorage": "<2B", "BoolStorage": "<2B"}
    obj = {k[:-7].lower(): tensor(storage(str(i), 2, k), [2]) for i, k in enumerate(kinds)}
    content = [struct.pack(f, 0, 1) for f in kinds.values()]
    for kind, data in (("BFloat16Storage", b"\0\0\x80\x3f"), ("ComplexFloatStorage", struct.pack("<4f", 0, 1, 2, 3)),
                       ("ComplexDoubleStorage", struct.pack("<4d", 0, 1, 2, 3))):
        obj[kind[:-7].lower()] = tensor(storage(str(len(content)), 2, kind), [2])
        content.append(data)
    for dtype in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"):
        size = {"float8_e4m3fn": 1, "float8_e5m2": 1, "uint16": 2, "uint32": 4, "uint64": 8}[dtype]
        obj[dtype] = tensor(storage(str(len(content)), 2 * size, "UntypedStorage"), [2], call="_rebuild_tensor_v3",
                            more=(name("torch", dtype),))
        content.append(bytes(2 * size))
    zipped("types.pt", obj, content)


def hostile_pickles():
    """Programs of opcodes that a good file does not have."""
    for module, function, text in (("os", "system", "touch hacked"), ("posix", "system", "touch hacked"),
                                   ("subprocess", "check_output", "touch"), ("torch", "load", "good_zip.pt"),
                                   ("__builtin__", "eval", "open('hacked', 'w').close()"),
                                   ("builtins", "exec", "open('hacked', 'w')"), ("runpy", "run_path", "torch.py")):
        yield f"{module}_{function}", (b"\x80\x02c" + f"{module}\n{function}\n".encode() + b"X" +
                                       struct.pack("<I", len(text)) + text.encode() + b"\x85R.")
    yield "stack_global", b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0ctouch hacked\x85R."
    yield "getattr", b"\x80\x02c__builtin__\ngetattr\nX\1\0\0\0aX\1\0\0\0b\x86R."
    yield "inst", b"(S'touch hacked'\nios\nsystem\n."
    yield "obj", b"(cos\nsystem\nX\x0c\0\0\0touch hackedo."
    yield "extension", b"\x80\x02\x82\x01."
    yield "buffer", b"\x80\x05\x97."
    yield "unknown_opcode", b"\x80\x02\xff."
    yield "empty_stack", b"\x80\x02."
    yield "no_mark", b"\x80\x02t."
    yield "mark_as_value", b"\x80\x02}(X\1\0\0\0as."
    yield "odd_items", b"\x80\x02}(X\1\0\0\0au."
    yield "items_of_number", b"\x80\x02K\1(K\1K\2u."
    yield "append_to_dict", b"\x80\x02}K\1a."
    yield "huge_text", b"\x80\x02X\xff\xff\xff\xffabc."
    yield "huge_text8", b"\x80\x04\x8d" + b"\xff" * 8 + b"abc."
    yield "huge_long", b"\x80\x02\x8b\xff\xff\xff\x7f."
    yield "huge_memo", b"\x80\x02Nr\xff\xff\xff\xff."
    yield "memo_absent", b"\x80\x02h\x07."
    yield "itself", b"\x80\x02}q\0X\1\0\0\0ah\0s."
    yield "deep", b"\x80\x02" + b"]" * 5000 + b"a" * 4999 + b"."
    yield "doubling", b"\x80\x02]q\0" + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1])
                                             for i in range(60)) + b"."
    yield "ways", (b"\x80\x02" + pickled(good()["fc.bias"])[2:-1] + b"q\0" + b"".join(
        b"}(U\1ah\0U\1bh\0uq\0" for _ in range(60)) + b"}(" + b"".join(b"U\4%04dh\0" % i for i in range(2000)) + b"u.")
    yield "copies", (b"\x80\x02](" + b"N" * 2000 + b"eq\0" + b"ccollections\ndeque\nh\0\x85R0" * 2000 + b"h\0.")
    yield "nothing", b"\x80\x02N."
    yield "no_stop", b"\x80\x02}"
    yield "no_bytes", b""


def hostile_tensors():
    """Tensors that a good file does not have, in place of the weight."""
    one = storage("0", 6)
    yield "too_long", tensor(one, [2, 4])
    yield "offset", tensor(one, [2, 3], offset=1)
    yield "negative_offset", tensor(one, [2, 3], offset=-1)
    yield "huge_offset", tensor(one, [2, 3], offset=2 ** 62)
    yield "huge_size", tensor(one, [2 ** 31, 2 ** 31, 2 ** 31], [0, 0, 0])
    yield "wide_zero_stride", tensor(one, [2 ** 30, 3], [0, 1])
    yield "wrapping_stride", tensor(one, [2, 3], [2 ** 63 - 1, 2 ** 63 - 1])
    yield "negative_size", tensor(one, [-2, -3])
    yield "negative_stride", tensor(one, [2, 3], [-3, 1], offset=5)
    yield "ranks", tensor(one, [2, 3], [1])
    yield "nine_dims", tensor(one, [1] * 9)
    yield "big_integer", tensor(one, [2 ** 70, 1], [1, 1])
    yield "text_size", tensor(one, ["2", 3], [3, 1])
    yield "storage_short", tensor(storage("0", 7), [2, 3])
    yield "storage_huge", tensor(storage("0", 2 ** 62), [2, 3])
    yield "storage_negative", tensor(storage("0", -6), [2, 3])
    yield "storage_absent", tensor(storage("77", 6), [2, 3])
    yield "storage_escape", tensor(storage("../data.pkl", 6), [2, 3])
    yield "storage_type", tensor(storage("0", 6, "QInt8Storage"), [2, 3])
    yield "storage_number", tensor(5, [2, 3])
    yield "view_beyond", tensor(storage("0", 6, view=(("9", 1, 6),)), [2, 3])
    yield "view_wraps", tensor(storage("0", 6, view=(("9", 2 ** 63 - 1, 6),)), [2, 3])
    yield "no_arguments", Call("torch._utils", "_rebuild_tensor_v2")
    yield "parameter_of_none", Call("torch._utils", "_rebuild_parameter", None, True, {})
    yield "quantized", tensor(one, [2, 3], call="_rebuild_qtensor")
    yield "sparse", Call("torch._utils", "_rebuild_sparse_tensor", 1, (one,))
    yield "subclass_calls", Call("torch._tensor", "_rebuild_from_type_v2", name("subprocess", "Opener"), 1, ("a",), {})
    yield "v3_type", tensor(one, [2, 3], call="_rebuild_tensor_v3", more=(name("torch", "float31"),))


def write_bad():
    zipped("several.pt", {"model": good(), "ema": good()})
    for what, program in hostile_pickles():
        zipped(f"bad_{what}.pt", program)
        legacy(f"bad_legacy_{what}.pt", program)
    for what, weight in hostile_tensors():
        zipped(f"bad_{what}.pt", good(weight))
        legacy(f"bad_legacy_{what}.pt", good(weight))
    zipped("bad_twice.pt", b"\x80\x02}(" + 2 * (b"X\1\0\0\0a" + pickled(good()["fc.bias"])[2:-1]) + b"u.")
    zipped("bad_zero_in_name.pt", {"a\0b": good()["fc.bias"]})
    zipped("bad_many_copies.pt", {str(i): tensor(storage("0", 6), [2 ** 20, 6], [0, 1]) for i in range(40)})
    zipped("bad_order.pt", good(), more=[("archive/byteorder", "big")])
    zipped("bad_two.pt", good(), more=[("other/data.pkl", pickled({}))])
    zipped("bad_entry_twice.pt", good(), more=[("archive/data/0", W)])
    zipped("bad_bomb.pt", good(), more=[(f"archive/data/{i}", bytes(100 << 20)) for i in (7,)],
           compression=zipfile.ZIP_DEFLATED)
    zipped("bad_no_tensors.pt", {"lr": 0.1})
    archive("bad_other.zip.pt", [("a.txt", b"abc")])
    damaged = bytearray(open("good_zip.pt", "rb").read())
    damaged[damaged.index(W)] ^= 1
    open("bad_checksum.pt", "wb").write(damaged)
    legacy("bad_legacy_magic.pt", good(), magic=MAGIC + 1)
    legacy("bad_legacy_version.pt", good(), version=1002)
    legacy("bad_legacy_order.pt", good(), little=False)
    legacy("bad_legacy_count.pt", good(), counts=[7, 1 << 40])
    legacy("bad_legacy_negative.pt", good(), counts=[-6, 2])
    legacy("bad_legacy_key_twice.pt", good(), keys=["0", "0"])
    legacy("bad_legacy_key_unknown.pt", good(), keys=["0", "5"])
    tarred("bad_tar_count.pt", counts=(1 << 61, 2))
    tarred("bad_tar_shape.pt", shapes=((2, 4), (2,)))
    tarred("bad_tar_huge.pt", shapes=((1 << 62, 1 << 62), (2,)))
    tarred("bad_tar_rank.pt", rank=1 << 30)
    tarred("bad_tar_storage.pt", of=("10", "33"))
    tarred("bad_tar_view.pt", views=[("12", "10", 1, 6)], of=("12", "11"))
    arrays = [("fc.weight.npy", npy("<f4", (2, 3), W))]
    archive("bad_array_short.npz", [("a.npy", npy("<f4", (2, 4), W))])
    archive("bad_array_huge.npz", [("a.npy", npy("<f4", (2 ** 31 - 1,) * 3, W))])
    archive("bad_array_type.npz", [("a.npy", npy("|O", (2,), W))])
    archive("bad_array_header.npz", [("a.npy", b"\x93NUMPY\1\0\xff\xff{}")])
    archive("bad_array_empty.npz", [("a.npy", b"")])
    archive("bad_array_twice.npz", arrays + arrays)
    archive("bad_bomb.npz", [("a.npy", npy("<f4", (25 << 20,), bytes(100 << 20)))], zipfile.ZIP_DEFLATED)


def write_cuts():
    for source, least in (("good_zip.pt", 4), ("good_legacy.pt", 4), ("good_small.npz", 4)):
        data = open(source, "rb").read()
        for cut in range(least, len(data)):
            open(f"cut_{source[5:]}.{cut}", "wb").write(data[:cut])


if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore")     # of zipfile, about entries that are there twice
    write_good()
    write_types()
    write_bad()
    write_cuts()
