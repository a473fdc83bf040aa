#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# The datasets and the loader of runtime/learn/data.h: files written here, read there.
#
# usage: data.py LIBRARY    LIBRARY: runtime/learn as a shared library
#
# In: nothing. Out: TAP. Needs the standard library only.
import cmath
import collections
import csv
import ctypes
import gzip
import math
import pathlib
import random
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import Tap     # noqa: E402

FLOAT, UINT8, INT32, INT64 = 1, 2, 6, 7
ELEMENT = {FLOAT: "f", UINT8: "B", INT32: "i", INT64: "q"}
EINVAL, ENOMEM, EIO, EFORMAT, ERANGE = -1, -2, -3, -6, -8


class Said(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 480)]


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.c_int64 * 6), ("bytes", ctypes.c_size_t), ("class_count", ctypes.c_int),
                ("classes", ctypes.POINTER(ctypes.c_char_p))]


class Dataset(ctypes.Structure):
    pass


Get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Dataset), ctypes.c_int64, ctypes.c_uint64,
                       ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Said))
Dataset._fields_ = [("count", ctypes.c_int64), ("field_count", ctypes.c_int), ("fields", Field * 16), ("get", Get),
                    ("end", ctypes.c_void_p), ("path", ctypes.c_void_p), ("own", ctypes.c_void_p),
                    ("holds", ctypes.c_int)]
Map = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p),
                       ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Said))


class Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("is_target", ctypes.c_int), ("mean", ctypes.c_double),
                ("scale", ctypes.c_double), ("word_count", ctypes.c_int), ("words", ctypes.POINTER(ctypes.c_char_p))]


class Csv(ctypes.Structure):
    _fields_ = [("separator", ctypes.c_char), ("no_header", ctypes.c_int), ("target", ctypes.c_char_p),
                ("ignore", ctypes.c_char_p), ("drop_missing", ctypes.c_int), ("scale", ctypes.c_int),
                ("classify", ctypes.c_int), ("like", ctypes.POINTER(Dataset)), ("column_count", ctypes.c_int),
                ("columns", ctypes.POINTER(Column))]


class Images(ctypes.Structure):
    _fields_ = [("height", ctypes.c_int64), ("width", ctypes.c_int64), ("gray", ctypes.c_int), ("fit", ctypes.c_int),
                ("mean", ctypes.c_float * 3), ("deviation", ctypes.c_float * 3), ("flip", ctypes.c_int),
                ("least_area", ctypes.c_double), ("jitter", ctypes.c_double), ("like", ctypes.POINTER(Dataset))]


class Sounds(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("rate", "samples", "window", "hop", "mels")] + [
        ("like", ctypes.POINTER(Dataset))]


class Text(ctypes.Structure):
    _fields_ = [("tokens", ctypes.c_int), ("length", ctypes.c_int64), ("step", ctypes.c_int64),
                ("like", ctypes.POINTER(Dataset)), ("tokenizer", ctypes.c_char_p)]


class Loading(ctypes.Structure):
    _fields_ = [("batch", ctypes.c_int64), ("shuffle", ctypes.c_int), ("seed", ctypes.c_uint64),
                ("workers", ctypes.c_int), ("ahead", ctypes.c_int), ("drop_last", ctypes.c_int),
                ("skip_bad", ctypes.c_int), ("shard", ctypes.c_int), ("shards", ctypes.c_int)]


class Batch(ctypes.Structure):
    _fields_ = [("epoch", ctypes.c_int64), ("number", ctypes.c_int64), ("items", ctypes.c_int64),
                ("fields", ctypes.POINTER(ctypes.c_void_p)), ("numbers", ctypes.POINTER(ctypes.c_int64))]


class Data:
    """The library's calls; what fails raises ValueError(code, message)."""

    def __init__(self, path):
        self.c, self.said = ctypes.CDLL(path), Said()
        self.c.burn_field_of.restype = Field
        self.c.burn_data_path.restype = ctypes.c_char_p
        self.c.burn_loader_batches.restype = ctypes.c_int64
        self.c.burn_loader_skipped.restype = ctypes.c_int64

    def made(self, call, *args, out=1):
        to = [ctypes.POINTER(Dataset)() for _ in range(out)]
        error = getattr(self.c, call)(*args, *map(ctypes.byref, to), ctypes.byref(self.said))
        if error:
            raise ValueError(error, self.said.text.decode())
        return to[0] if out == 1 else to

    def field(self, name, dtype, *shape, classes=0):
        f = self.c.burn_field_of(name.encode(), dtype, len(shape), (ctypes.c_int64 * len(shape))(*shape))
        f.class_count = classes
        return f

    def item(self, data, i, seed=0):
        """Item i as a tuple of tuples."""
        fields = [data.contents.fields[f] for f in range(data.contents.field_count)]
        rooms = [ctypes.create_string_buffer(f.bytes) for f in fields]
        to = (ctypes.c_void_p * len(rooms))(*[ctypes.addressof(r) for r in rooms])
        error = self.c.burn_data_get(data, ctypes.c_int64(i), ctypes.c_uint64(seed), to, ctypes.byref(self.said))
        if error:
            raise ValueError(error, self.said.text.decode())
        return tuple(unpack(f.dtype, r.raw) for f, r in zip(fields, rooms))

    def items(self, data):
        return [self.item(data, i) for i in range(data.contents.count)]

    def numbers(self, n):
        """A dataset whose item i is (i,)."""
        field, values = (Field * 1)(self.field("n", INT64)), (ctypes.c_int64 * n)(*range(n))
        arrays = (ctypes.c_void_p * 1)(ctypes.addressof(values))
        data = self.made("burn_data_memory", ctypes.c_int64(n), 1, field, arrays)
        data.keeps = field, values
        return data

    def firsts(self, data):
        return [item[0][0] for item in self.items(data)]


def unpack(dtype, raw):
    return struct.unpack(f"<{len(raw) // struct.calcsize(ELEMENT[dtype])}{ELEMENT[dtype]}", raw)


def refused(call, code, part):
    try:
        call()
    except ValueError as e:
        return e.args[0] == code and part in e.args[1], e.args
    return False, "nothing was said"


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def check_files(tap, d, folder):
    draw = random.Random(1)
    pixels, labels = draw.randbytes(7 * 5 * 4), bytes(draw.randrange(10) for _ in range(6)) + b"\x09"
    images = struct.pack(">HBBIII", 0, 8, 3, 7, 5, 4) + pixels
    names = struct.pack(">HBBI", 0, 8, 1, 7) + labels
    for ending, pack in (("", bytes), (".gz", gzip.compress)):
        (folder / f"i{ending}").write_bytes(pack(images))
        (folder / f"l{ending}").write_bytes(pack(names))
        data = d.made("burn_data_idx", str(folder / f"i{ending}").encode(), str(folder / f"l{ending}").encode())
        wanted = [(tuple(single(p / 255) for p in pixels[20 * i:20 * i + 20]), (labels[i],)) for i in range(7)]
        tap.check(f"idx{ending}", d.items(data) == wanted)
        field = data.contents.fields[1]
        tap.check(f"idx{ending} has 10 classes", field.class_count == 10, field.class_count)
        d.c.burn_data_close(data)
    for name, raw, part in (("short", images[:-1], "has 139 bytes of 140"), ("rank", names, "of rank 3"),
                            ("empty", b"", "of rank 3"), ("packed", gzip.compress(images)[:-9], "packed"),
                            ("huge", struct.pack(">HBBIII", 0, 8, 3, *[2**32 - 1] * 3), "rank 3")):
        (folder / name).write_bytes(raw)
        tap.check(f"idx refuses a file: {name}",
                  *refused(lambda: d.made("burn_data_idx", str(folder / name).encode(), None), EIO, part))
    tap.check("idx refuses what is not there",
              *refused(lambda: d.made("burn_data_idx", b"/no/file", None), EIO, "/no/file: cannot be opened"))
    (folder / "less").write_bytes(struct.pack(">HBBI", 0, 8, 1, 6) + labels[:6])
    tap.check("idx refuses other labels", *refused(
        lambda: d.made("burn_data_idx", str(folder / "i").encode(), str(folder / "less").encode()), EFORMAT,
        "6 labels"))
    for classes, heads in ((10, [(3,), (9,)]), (100, [(19, 99), (0, 7)])):
        rows = [draw.randbytes(3072) for _ in heads]
        (folder / "c").write_bytes(b"".join(bytes(h) + r for h, r in zip(heads, rows)))
        paths = (ctypes.c_char_p * 2)(*[str(folder / "c").encode()] * 2)
        data = d.made("burn_data_cifar", classes, 2, paths)
        wanted = [(tuple(single(p / 255) for p in r), *[(n,) for n in reversed(h)]) for h, r in zip(heads, rows)] * 2
        tap.check(f"cifar-{classes}", d.items(data) == wanted)
        (folder / "c").write_bytes(bytes(heads[0]) + rows[0] + bytes(len(heads[0]) - 1) + bytes([classes]) + rows[1])
        tap.check(f"cifar-{classes} refuses a class", *refused(
            lambda: d.made("burn_data_cifar", classes, 1, paths), EFORMAT, "row 1 is none"))


TABLE = '''name,size,"colour, kind",weight,kind
a,1.5,red,2,cat
b,,"deep ""blue""",4,dog

c,2.5,red,,cat
d,3.5, red ,9,ant
'''


def check_csv(tap, d, folder):
    path = folder / "t.csv"

    def read(text, file=path, **how):
        file.write_text(text)
        options = Csv(**{k: v.encode() if isinstance(v, str) else v for k, v in how.items()})
        return d.made("burn_data_csv", str(file).encode(), ctypes.byref(options))

    data = read(TABLE, ignore="name")
    target = data.contents.fields[1]
    names = [target.classes[k] for k in range(target.class_count)]
    tap.check("csv: classes in order", names == [b"ant", b"cat", b"dog"], names)
    rows = [((1.5, 0, 1, 2), (1,)), ((2.5, 1, 0, 4), (2,)), ((2.5, 0, 1, 5), (1,)), ((3.5, 0, 1, 9), (0,))]
    tap.check("csv: numbers, words, means for what is missing", d.items(data) == rows, d.items(data))
    whole = d.items(read(TABLE, file=folder / "u", ignore="name", drop_missing=1))
    tap.check("csv: without rows that lack a value", whole == [((1.5, 1, 2), (1,)), ((3.5, 1, 9), (0,))], whole)
    scaled = [item[0][0] for item in d.items(read(TABLE, file=folder / "u", ignore="name", scale=1))]
    tap.check("csv: mean 0, variance 1", abs(sum(scaled)) < 1e-6 and abs(sum(x * x for x in scaled) / 3 - 1) < 1e-6,
              scaled)
    later = read("name,size,\"colour, kind\",weight,kind\ne,7,green,1,dog\n", file=folder / "u", ignore="name",
                 like=data)
    tap.check("csv: like another", d.items(later) == [((7, 0, 0, 1), (2,))], d.items(later))
    columns = (Column * 9)()
    count = d.c.burn_csv_columns(data, 9, columns)
    found = [(c.name, c.is_target, c.word_count) for c in columns[:count]]
    tap.check("csv: its columns", [c[1:] for c in found] == [(0, 0), (0, 2), (0, 0), (1, 3)], found)
    by_name = {"column_count": count, "columns": columns}
    later = read("kind,weight,extra,\"colour, kind\",size\ndog,1,?,green,7\n", file=folder / "u", **by_name)
    tap.check("csv: columns by name", d.items(later) == [((7, 0, 0, 1), (2,))], d.items(later))
    later = read("weight,\"colour, kind\",size\n1,green,7\n", file=folder / "u", **by_name)
    tap.check("csv: without what is predicted", d.items(later) == [((7, 0, 0, 1),)], d.items(later))
    tap.check("csv refuses: a column that lacks", *refused(
        lambda: read("kind,size\ndog,7\n", file=folder / "u", **by_name), EFORMAT, "has no column 'colour, kind'"))
    numbers = read("1;2;10\n3;4;9\n5;6;10\n", file=folder / "u", no_header=1)
    rows = [((1, 2), (10,)), ((3, 4), (9,)), ((5, 6), (10,))]
    tap.check("csv: without a header, of semicolons", d.items(numbers) == rows)
    numbers = read("1;2;10\n3;4;9\n5;6;10\n", file=folder / "u", no_header=1, classify=1, target="2")
    tap.check("csv: numbers as classes", [i[1] for i in d.items(numbers)] == [(1,), (0,), (1,)])
    for text, how, code, part in (
            ("a,b\n1,2\n3\n", {}, EFORMAT, "line 3 has 1 cells, the first one 2"), ("", {}, EFORMAT, "is empty"),
            ("a,b\n1,2\n", {"target": "c"}, EINVAL, "no column 'c' to predict; the first is 'a', the last 'b'"),
            (TABLE.replace("dog", "cow"), {"like": data, "ignore": "name"}, EFORMAT,
             "line 3, column 'kind': 'cow' is no class"),
            (TABLE.replace("2.5", "big"), {"like": data, "ignore": "name"}, EFORMAT, "'big' is no number"),
            (TABLE.replace("size", "mass"), {"like": data, "ignore": "name"}, EFORMAT, "column 1 is 'mass'"),
            ("a,b\n", {"like": data}, EFORMAT, "has 2 columns, the table before 5")):
        tap.check(f"csv refuses: {part}", *refused(lambda: read(text, file=folder / "u", **how), code, part))
    draw = random.Random(4)
    some = ["x", 'say "hi"', "a,b", "two\nlines", "", "é"]
    cells = [[draw.choice(some) for _ in range(3)] + [str(draw.randrange(3))] for _ in range(200)]
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([["p", "q", "r", "y"]] + cells)
    words = [sorted({row[c] for row in cells}, key=str.encode) for c in range(3)]
    wanted = [(tuple(float(w == row[c]) for c in range(3) for w in words[c]), (float(row[3]),)) for row in cells]
    tap.check("csv: as Python's csv writes it", d.items(d.made("burn_data_csv", str(path).encode(), None)) == wanted)


def resampled(row, start, length, n):
    """n numbers of a stretch of a row, by triangles."""
    scale, out = length / n, []
    for k in range(n):
        centre, wide = start + (k + 0.5) * scale, max(scale, 1)
        weights = [max(0, 1 - abs(i + 0.5 - centre) / wide) for i in range(len(row))]
        out.append(sum(w * x for w, x in zip(weights, row)) / sum(weights))
    return out


def resized(image, h, w, part):
    """[h][w] of the part (top, left, height, width) of an image of lists."""
    rows = [resampled(row, part[1], part[3], w) for row in image]
    columns = [resampled([row[x] for row in rows], part[0], part[2], h) for x in range(w)]
    return [columns[x][y] for y in range(h) for x in range(w)]


def near(a, b, tolerance=1e-6):
    return len(a) == len(b) and all(abs(x - y) <= tolerance for x, y in zip(a, b))


def check_folder(tap, d, folder):
    draw, images = random.Random(2), {}
    for name, (h, w) in {"b/1.ppm": (6, 9), "a/2.ppm": (9, 6), "a/1.ppm": (4, 4), "c/x.ppm": (6, 9)}.items():
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = draw.randbytes(3 * h * w)
        path.write_bytes(f"P6 {w} {h} 255\n".encode() + raw)
        images[name] = [[[raw[3 * (y * w + x) + c] / 255 for x in range(w)] for y in range(h)] for c in range(3)]
    (folder / "tree" / "a" / ".hidden").write_bytes(b"x")

    def read(where="tree", **how):
        return d.made("burn_data_images", str(folder / where).encode(), ctypes.byref(Images(**how)))

    data = read(height=5, width=7)
    field = data.contents.fields[1]
    order = ["a/1.ppm", "a/2.ppm", "b/1.ppm", "c/x.ppm"]
    tap.check("images: folders are classes", [field.classes[k] for k in range(field.class_count)] == [b"a", b"b", b"c"]
              and [i[1] for i in d.items(data)] == [(0,), (0,), (1,), (2,)])
    whole = [[p for c in images[n] for p in resized(c, 5, 7, (0, 0, len(c), len(c[0])))] for n in order]
    tap.check("images: stretched", all(near(i[0], w) for i, w in zip(d.items(data), whole)))
    crops = {"a/1.ppm": (0.5, 0, 3, 4), "a/2.ppm": (2.25, 0, 4.5, 6), "b/1.ppm": (0, 0.5, 6, 8)}
    small = read(height=3, width=4, fit=1)
    wanted = [[p for c in images[n] for p in resized(c, 3, 4, crops[n])] for n in order[:3]]
    tap.check("images: their middle", all(near(i[0], w) for i, w in zip(d.items(small), wanted)))
    plain = read(height=6, width=9, mean=(0.5, 0.25, 0), deviation=(2, 0, 0.5))
    wanted = [(x - m) / s for c, m, s in zip(images["b/1.ppm"], (0.5, 0.25, 0), (2, 1, 0.5)) for row in c for x in row]
    tap.check("images: mean and deviation", near(d.item(plain, 2)[0], wanted))
    gray = d.item(read(gray=1), 0)[0]
    wanted = [0.299 * r + 0.587 * g + 0.114 * b for rows in zip(*images["a/1.ppm"]) for r, g, b in zip(*rows)]
    tap.check("images: gray, of the first one's size", near(gray, wanted, 0.5 / 255 + 1e-6))
    flipped = read(height=5, width=7, flip=1)
    mirrored = [x for k in range(0, len(whole[1]), 7) for x in reversed(whole[1][k:k + 7])]
    seen = [near(d.item(flipped, 1, s)[0], mirrored) - near(d.item(flipped, 1, s)[0], whole[1]) for s in range(200)]
    tap.check("images: half are mirrored", set(seen) == {1, -1} and 70 < seen.count(1) < 130, seen.count(1))
    drawn = read(height=5, width=7, flip=1, least_area=0.3, jitter=0.4)
    same = [d.item(drawn, 2, s)[0] for s in (1, 1, 2)]
    inside = all(0 <= x <= 1 for s in range(20) for x in d.item(drawn, 2, s)[0])
    tap.check("images: what is drawn follows from the seed", same[0] == same[1] != same[2] and inside)
    means = [sum(x) / len(x) for x in (d.item(read(height=5, width=7, jitter=0.4), 2, s)[0] for s in range(100))]
    middle = sum(whole[2]) / len(whole[2])
    about = abs(sum(means) / 100 - middle) < 0.06 and max(means) - min(means) > 0.2
    tap.check("images: jitter is about the image", about, (middle, min(means), max(means)))
    (folder / "other" / "c").mkdir(parents=True)
    (folder / "other" / "c" / "1.ppm").write_bytes((folder / "tree" / "c" / "x.ppm").read_bytes())
    tap.check("images: like another", [i[1] for i in d.items(read("other", height=5, width=7, like=data))] == [(2,)])
    tap.check("images: one file", len(d.item(read("other/c/1.ppm", height=5, width=7), 0)) == 1)
    tap.check("images: without classes", len(d.item(read("other/c", height=5, width=7), 0)) == 1)
    backward = d.made("burn_data_select", data, ctypes.c_int64(2), (ctypes.c_int64 * 2)(3, 0))
    tap.check("images: their files", d.c.burn_data_path(backward, ctypes.c_int64(1)).decode().endswith("tree/a/1.ppm"))
    (folder / "other" / "c" / "0.png").write_bytes(b"\x89PNG no")
    tap.check("images: a bad one is named", *refused(
        lambda: d.item(read("other", height=5, width=7), 0), EFORMAT, "other/c/0.png: is no image that can be decoded"))
    (folder / "other" / "z").mkdir()
    for where, how, code, part in (("none", {}, EIO, "is no folder"), ("other/z", {}, EFORMAT, "has no files"),
                                   ("other", {"like": data}, EFORMAT, "'z' is no class of the folder before")):
        tap.check(f"images refuses: {part}", *refused(lambda: read(where, **how), code, part))


def wav(rate, channels, kind, frames, extensible=False):
    """kind: bits of integers, or "f"; frames: tuples of channels."""
    bits = 32 if kind == "f" else kind
    code = 3 if kind == "f" else 1
    head = struct.pack("<HHIIHH", 0xfffe if extensible else code, channels, rate, rate * channels * bits // 8,
                       channels * bits // 8, bits)
    if extensible:
        head += struct.pack("<HHIH14s", 22, bits, 0, code, b"")
    raw = b"".join(struct.pack("<f", x) if kind == "f" else
                   bytes([round(x * 127) + 128]) if bits == 8 else
                   round(x * (2**(bits - 1) - 1)).to_bytes(bits // 8, "little", signed=True)
                   for frame in frames for x in frame)
    chunks = b"fmt " + struct.pack("<I", len(head)) + head + b"note\1\0\0\0x\0"
    chunks += b"data" + struct.pack("<I", len(raw)) + raw
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def check_sounds(tap, d, folder):
    draw = random.Random(8)
    noise = [draw.uniform(-0.9, 0.9) for _ in range(300)]
    for k, kind in enumerate((8, 16, 24, 32, "f")):
        path = folder / "sounds" / f"k{k}" / "a.wav"
        path.parent.mkdir(parents=True)
        path.write_bytes(wav(8000, 2, kind, [(x, -0.5 * x) for x in noise], extensible=kind in (24, "f")))

    def read(where="sounds", **how):
        return d.made("burn_data_sounds", str(folder / where).encode(), ctypes.byref(Sounds(**how)))

    sounds = d.items(read())
    for i, tolerance in enumerate((1 / 128, 1e-4, 1e-6, 1e-7, 1e-7)):
        tap.check(f"sounds: kind {i}", sounds[i][1] == (i,) and near(sounds[i][0], [x / 4 for x in noise], tolerance))
    longer, shorter = d.item(read(samples=310), 4)[0], d.item(read(samples=100), 4)[0]
    tap.check("sounds: padded and cut", longer == sounds[4][0] + (0,) * 10 and shorter == sounds[4][0][:100])
    tone = folder / "tone" / "t.wav"
    tone.parent.mkdir()
    for rate, to in ((8000, 16000), (16000, 8000), (11025, 16000)):
        tone.write_bytes(wav(rate, 1, "f", [(math.sin(2 * math.pi * 440 * i / rate),) for i in range(2000)]))
        got = d.item(read("tone", rate=to), 0)[0]
        wanted = [math.sin(2 * math.pi * 440 * i / to) for i in range(len(got))]
        error = max(abs(a - b) for a, b in list(zip(got, wanted))[50:-50])
        tap.check(f"sounds: {rate} to {to}", error < 1e-3 and abs(len(got) - 2000 * to / rate) < 1, error)
    n, hop, mels, rate = 64, 24, 5, 8000
    mel = read(window=n, hop=hop, mels=mels)
    tap.check("sounds: shape of spectra", list(mel.contents.fields[0].shape[:2]) == [5, 10])
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * i / n) for i in range(n)]
    frames = [[abs(sum(hann[i] * sounds[4][0][t * hop + i] * cmath.exp(-2j * math.pi * b * i / n) for i in range(n)))**2
               for b in range(n // 2 + 1)] for t in range(10)]
    scale = [700 * (10**(2595 * math.log10(1 + rate / 2 / 700) * m / (mels + 1) / 2595) - 1) for m in range(mels + 2)]
    wanted = [math.log(sum(max(0, min((b * rate / n - scale[m]) / (scale[m + 1] - scale[m]),
                                      (scale[m + 2] - b * rate / n) / (scale[m + 2] - scale[m + 1]))) * p
                           for b, p in enumerate(frames[t]))) for m in range(mels) for t in range(10)]
    tap.check("sounds: log-mel", near(d.item(mel, 4)[0], wanted, 1e-4))
    good = tone.read_bytes()
    for name, raw in (("no RIFF", b"ID3" + good), ("a chunk too long", good[:16] + b"\xff" * 4 + good[20:]),
                      ("12 bits", good[:34] + b"\x0c\0" + good[36:]), ("empty", b""), ("no data", good[:40])):
        tone.write_bytes(raw)
        tap.check(f"sounds refuses a file: {name}",
                  *refused(lambda: read("tone"), EFORMAT, "tone/t.wav: is no WAV file"))
    tap.check("sounds refuses windows that do not fit",
              *refused(lambda: read(window=400, hop=10, mels=4), EINVAL, "a window of 400 samples, every 10, of 300"))


def check_text(tap, d, folder):
    text = "Ein Tag, zwei Tage; fünf\nJahre! Ein Jahr"
    (folder / "text").write_text(text)

    def read(tokens, length, file="text", **how):
        return d.made("burn_data_text", str(folder / file).encode(), ctypes.byref(Text(tokens, length, **how)))

    def names(data):
        return [data.contents.fields[0].classes[k].decode() for k in range(data.contents.fields[0].class_count)]

    raw = tuple(text.encode())
    tap.check("text: bytes", d.items(read(0, 10)) == [(raw[i:i + 10], raw[i + 1:i + 11]) for i in (0, 10, 20, 30)])
    tap.check("text: as many as fit", [len(d.items(read(0, n))) for n in (41, 40, 21, 20)] == [0, 1, 1, 2])
    characters = read(1, 4, step=1)
    letters = names(characters)
    tap.check("text: code points", letters == sorted(set(text), key=str.encode), letters)
    back = "".join(letters[i[0][0]] for i in d.items(characters))
    tap.check("text: one further each", back == text[:-4] and letters[d.item(characters, 3)[1][3]] == text[7], back)
    words = read(2, 3)
    wanted = ["", "\n", " ", "!", ",", ";", "Ein", "Jahr", "Jahre", "Tag", "Tage", "fünf", "zwei"]
    tap.check("text: words", names(words) == wanted and d.item(words, 0) == ((6, 2, 9), (2, 9, 4)), names(words))
    (folder / "more").write_text("Ein neues Jahr!")
    later = read(2, 5, file="more", like=words)
    tap.check("text: like another", d.items(later) == [((6, 2, 0, 2, 7), (2, 0, 2, 7, 3))], d.items(later))
    (folder / "zero").write_bytes(b"ab\0c")
    tap.check("text refuses zeros", *refused(lambda: read(1, 1, file="zero"), EFORMAT, "byte 2 is 0"))
    tap.check("text refuses other tokens", *refused(lambda: read(1, 1, like=words), EINVAL, "no text of such tokens"))


def check_transforms(tap, d):
    n = ctypes.c_int64
    ten = d.numbers(10)
    some = d.made("burn_data_select", ten, n(3), (n * 3)(7, 7, 0))
    tap.check("select", d.firsts(some) == [7, 7, 0])
    tap.check("select refuses", *refused(lambda: d.made("burn_data_select", ten, n(1), (n * 1)(10)), ERANGE,
              "no item 10"))
    orders = [d.firsts(d.made("burn_data_shuffle", ten, ctypes.c_uint64(s))) for s in (1, 1, 2)]
    tap.check("shuffle", orders[0] == orders[1] != orders[2] and sorted(orders[0]) == list(range(10)), orders)
    firsts = collections.Counter(d.firsts(d.made("burn_data_shuffle", ten, ctypes.c_uint64(s)))[0] for s in range(2000))
    tap.check("shuffle is fair", all(120 < firsts[i] < 290 for i in range(10)), firsts)
    tap.check("part", d.firsts(d.made("burn_data_part", ten, n(3), n(4))) == [3, 4, 5, 6])
    tap.check("part refuses", *refused(lambda: d.made("burn_data_part", ten, n(8), n(3)), ERANGE, "8 to 10"))
    a, b = d.made("burn_data_split", ten, ctypes.c_double(0.3), ctypes.c_uint64(5), out=2)
    tap.check("split", len(d.firsts(a)) == 3 and sorted(d.firsts(a) + d.firsts(b)) == list(range(10)))
    weights = (ctypes.c_double * 10)(*[0, 1, 2, 3, 4, 0, 0, 0, 0, 0])

    def sample(count, w, replace, seed=1):
        return d.firsts(d.made("burn_data_sample", ten, n(count), w, replace, ctypes.c_uint64(seed)))

    drawn = collections.Counter(sample(20000, weights, 1))
    tap.check("sample by weight",
              all(abs(drawn[i] / 2000 - i) < 0.2 for i in range(5)) and sum(drawn.values()) == 20000, drawn)
    tap.check("sample without replacement", sorted(sample(10, None, 0)) == list(range(10)))
    tap.check("sample of those with a weight", sorted(sample(4, weights, 0)) == [1, 2, 3, 4])
    tap.check("sample refuses", *refused(lambda: sample(5, weights, 0), ERANGE, "4 items can be drawn, 5 are wanted"))
    joined = d.made("burn_data_join", 3, (ctypes.POINTER(Dataset) * 3)(a, some, b))
    tap.check("join", d.firsts(joined) == d.firsts(a) + [7, 7, 0] + d.firsts(b))
    windows = d.made("burn_data_windows", ten, n(4), n(3))
    tap.check("windows", [i[0] for i in d.items(windows)] == [(0, 1, 2, 3), (3, 4, 5, 6), (6, 7, 8, 9)])
    pairs = d.made("burn_data_windows", windows, n(2), n(1))
    tap.check("windows of windows", d.items(pairs)[1] == ((3, 4, 5, 6, 6, 7, 8,
              9),) and list(pairs.contents.fields[0].shape[:3]) == [2, 4, 0])

    def double(context, seed, source, to, said):
        value = ctypes.cast(source[0], ctypes.POINTER(n))[0]
        if value == 4:
            said.contents.text = b"four is bad"
            return EFORMAT
        ctypes.cast(to[0], ctypes.POINTER(ctypes.c_float))[0] = 2 * value + 0.5
        return 0

    keep = Map(double), (Field * 1)(d.field("twice", FLOAT))
    twice = d.made("burn_data_map", ten, 1, keep[1], keep[0], None)
    tap.check("map", [d.item(twice, i)[0][0] for i in (0, 3, 9)] == [0.5, 6.5, 18.5])
    tap.check("map refuses", *refused(lambda: d.item(twice, 4), EFORMAT, "four is bad"))
    fields = (Field * 2)(d.field("x", FLOAT, 30), d.field("y", INT64, classes=4))
    fake = d.made("burn_data_fake", n(400), 2, fields, ctypes.c_uint64(3))
    numbers = [x for item in d.items(fake) for x in item[0]]
    mean, square = sum(numbers) / len(numbers), sum(x * x for x in numbers) / len(numbers)
    tap.check("fake: mean 0, variance 1", abs(mean) < 0.03 and abs(square - 1) < 0.05, (mean, square))
    tap.check("fake: four classes", {i[1][0] for i in d.items(fake)} == {0, 1, 2, 3} and d.items(fake) == d.items(fake))
    return ten, twice, keep


def check_loader(tap, d, ten, twice):
    def batches(data, epochs=2, seek=None, stop=None, **how):
        loader, batch, seen = ctypes.c_void_p(), Batch(), []
        options = Loading(**how)
        error = d.c.burn_loader_open(data, ctypes.byref(options), ctypes.byref(loader), ctypes.byref(d.said))
        if error:
            raise ValueError(error, d.said.text.decode())
        if seek:
            d.c.burn_loader_seek(loader, ctypes.c_int64(seek[0]), ctypes.c_int64(seek[1]))
        ends = seek[0] if seek else 0
        try:
            while ends < epochs and stop != len(seen):
                more = d.c.burn_loader_next(loader, ctypes.byref(batch), ctypes.byref(d.said))
                if more < 0:
                    raise ValueError(more, d.said.text.decode())
                ends += not more
                dtype = data.contents.fields[0].dtype
                size = data.contents.fields[0].bytes * options.batch
                if more:
                    values = unpack(dtype, ctypes.string_at(batch.fields[0], size))
                    seen.append((batch.epoch, batch.number, batch.items, values))
            return seen, d.c.burn_loader_skipped(loader)
        finally:
            d.c.burn_loader_close(loader)

    tap.check("loader: in order, the last one smaller", batches(ten, epochs=1, batch=4)[0] == [
        (0, 0, 4, (0, 1, 2, 3)), (0, 1, 4, (4, 5, 6, 7)), (0, 2, 2, (8, 9, 0, 0))])
    tap.check("loader: without the last one", [b[3] for b in batches(ten, epochs=1, batch=4, drop_last=1)[0]] == [
        (0, 1, 2, 3), (4, 5, 6, 7)])
    many = d.numbers(1000)
    one = batches(many, epochs=3, batch=7, shuffle=1, seed=9)[0]
    by_epoch = [[x for b in one if b[0] == e for x in b[3][:b[2]]] for e in range(3)]
    tap.check("loader: each epoch has all, in another order", all(sorted(e) == list(range(1000)) for e in by_epoch)
              and by_epoch[0] != by_epoch[1] != by_epoch[2])
    for workers in (1, 2, 4):
        for ahead in (0, 1):
            tap.check(f"loader: the same with {workers} workers, {ahead} ahead",
                      batches(many, epochs=3, batch=7, shuffle=1, seed=9, workers=workers, ahead=ahead)[0] == one)
    for workers in (0, 2):
        tap.check(f"loader: from the middle, {workers} workers", batches(
            many, epochs=3, batch=7, shuffle=1, seed=9, workers=workers, seek=(1, 100))[0] == one[143 + 100:])
        tap.check(f"loader: closed early, {workers} workers",
                  len(batches(many, batch=7, workers=workers, stop=5)[0]) == 5)
        seen, skipped = batches(twice, epochs=1, batch=4, workers=workers, skip_bad=1)
        tap.check(f"loader: skips bad items, {workers} workers", skipped == 1 and [b[2] for b in seen] == [4, 3, 2]
                  and seen[1][3] == (10.5, 12.5, 14.5, 0), (skipped, seen))
        tap.check(f"loader: says what is bad, {workers} workers", *refused(
            lambda: batches(twice, epochs=1, batch=4, workers=workers), EFORMAT, "four is bad"))
    for name, seek, first, rounds in (("", None, 0, 36), (", from the middle", (1, 6), 143 + 6, 35)):
        shards = [batches(many, epochs=2 if seek else 1, batch=7, shuffle=1, seed=9, shard=k, shards=4, seek=seek)[0]
                  for k in range(4)]
        turns = [b for s in zip(*shards) for b in s]
        tap.check(f"loader: shards take turns{name}", [b[3] for b in turns if b[2]] == [b[3] for b in one[
            first:143 * (2 if seek else 1)]] and all(len(s) == rounds for s in shards))
    tap.check("loader refuses a batch that is never full",
              *refused(lambda: batches(ten, batch=11, drop_last=1), EINVAL, "10 items are less than a batch of 11"))
    tap.check("loader refuses no batch", *refused(lambda: batches(ten, batch=0), EINVAL, "at least one item"))


def main():
    tap, d = Tap(), Data(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="burncc-data-") as folder:
        check_files(tap, d, pathlib.Path(folder))
        check_csv(tap, d, pathlib.Path(folder))
        check_folder(tap, d, pathlib.Path(folder))
        check_sounds(tap, d, pathlib.Path(folder))
        check_text(tap, d, pathlib.Path(folder))
    ten, twice, keep = check_transforms(tap, d)
    check_loader(tap, d, ten, twice)
    tap.check("item numbers are checked", *refused(lambda: d.item(ten, 10), ERANGE,
              "there is no item 10; there are 10"))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
