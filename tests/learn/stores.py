#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# Data in databases and files of arrays (runtime/learn/data.h): SQLite, .npz, .safetensors, written here, read there.
#
# usage: stores.py LIBRARY    LIBRARY: runtime/learn as a shared library
#
# In: nothing. Out: TAP. Needs the standard library only.
import ctypes
import pathlib
import sqlite3
import struct
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import record_formats as formats                                                        # noqa: E402
from data import EFORMAT, EINVAL, EIO, FLOAT, INT64, Csv, Data, Dataset, refused, single      # noqa: E402
from tap import Tap                                                                     # noqa: E402

ELIMIT = -5


class Asked(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("shape", ctypes.c_int64 * 6), ("like", ctypes.POINTER(Dataset)),
                ("column_count", ctypes.c_int), ("columns", ctypes.c_void_p)]


class Source(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_char_p)] + [(n, ctypes.POINTER(Dataset)) for n in ("train", "plain", "valid")] + [
        ("in_order", ctypes.c_int64), ("settings", ctypes.c_char * 320)]


def fields(data):
    return [(f.name.decode(), f.dtype, f.shape[:f.rank], f.class_count)
            for f in data.contents.fields[:data.contents.field_count]]


def source(d, text, *shape):
    """The dataset of a source, and its settings."""
    out, asked = Source(), Asked(len(shape), (ctypes.c_int64 * 6)(*shape))
    error = d.c.burn_source_open(text.encode(), ctypes.byref(asked), ctypes.byref(out), ctypes.byref(d.said))
    if error:
        raise ValueError(error, d.said.text.decode())
    return out.train, out.settings.decode()


# ---------------------------------------------------------------- SQLite

def check_tables(tap, d, folder):
    """Without blobs: as a CSV file of the same content."""
    path = folder / "pets.db"
    rows = [("cat", 4.5, 3, 'a "quoted", word'), ("dog", None, 5, "b"), ("cat", 3.25, None, "b"), ("bird", 0.5, 1, "b")]
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE pets (name TEXT, weight REAL, age INTEGER, kind TEXT)")
        db.executemany("INSERT INTO pets VALUES (?, ?, ?, ?)", rows)
    db.close()
    text = "name,weight,age,kind\n" + "".join(",".join(
        "" if x is None else '"' + x.replace('"', '""') + '"' if isinstance(x, str) else str(x) for x in row) + "\n"
        for row in rows)
    (folder / "pets.csv").write_text(text)

    def read(query=None, **how):
        return d.made("burn_data_sqlite", str(path).encode(), query, ctypes.byref(Csv(**how)))
    for how in {}, {"target": b"age"}, {"drop_missing": 1, "scale": 1}, {"ignore": b"name,kind", "target": b"weight"}:
        want = d.made("burn_data_csv", str(folder / "pets.csv").encode(), ctypes.byref(Csv(**how)))
        got = read(**how)
        tap.check(f"sqlite: a table as CSV, {how}", fields(got) == fields(want) and d.items(got) == d.items(want),
                  d.items(got))
    some = read(b"SELECT weight, age * 2 AS twice, name FROM pets WHERE age IS NOT NULL ORDER BY age")
    tap.check("sqlite: a query", [i[0] for i in d.items(some)] == [(0.5, 2.0), (4.5, 6.0), (2.5, 10.0)], d.items(some))
    tap.check("sqlite: a query's classes", [some.contents.fields[1].classes[k] for k in range(3)]
              == [b"bird", b"cat", b"dog"])
    data, settings = source(d, f"{path},target=age")
    tap.check("sqlite: a source", fields(data)[1][0] == "target" and settings == "target=age", (fields(data), settings))
    with sqlite3.connect(path) as db:
        db.execute("CREATE VIEW heavy AS SELECT weight, name FROM pets WHERE weight > 1")
    db.close()
    tap.check("sqlite: a view by its name", len(d.items(source(d, f"sqlite:{path},table=heavy")[0])) == 2)
    tap.check("sqlite: which of two", *refused(lambda: read(), EFORMAT, "pets.db: has 2 tables: heavy, pets"))
    tap.check("sqlite: no such table", *refused(lambda: read(b"cats"), EFORMAT, "no such table: cats"))
    tap.check("sqlite: no query", *refused(lambda: read(b"select nothing at all"), EFORMAT, "pets.db: "))
    tap.check("sqlite: nothing is written", *refused(
        lambda: read(b"WITH x AS (SELECT 1) DELETE FROM pets"), EFORMAT, "readonly"))
    (folder / "no.db").write_bytes(b"no database at all, but long enough to be one" * 20)
    tap.check("sqlite: no database", *refused(
        lambda: d.made("burn_data_sqlite", str(folder / "no.db").encode(), None, None), EFORMAT, "not a database"))
    tap.check("sqlite: no file", *refused(
        lambda: d.made("burn_data_sqlite", str(folder / "none.db").encode(), None, None), EIO, "unable to open"))


def check_blobs(tap, d, folder):
    path = folder / "images.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (pixels BLOB, vector BLOB, label TEXT, weight REAL, number INTEGER)")
        for i in range(3):
            db.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", (
                bytes([i * 50, 255, 0, 51, 102, 204]), struct.pack("<2d", i, -0.5), ["b", "a", "b"][i], i / 4, i - 1))
    db.close()
    read = lambda query: d.made("burn_data_sqlite", str(path).encode(), query, None)     # noqa: E731
    data = read(b'SELECT pixels AS "image:u8[1,2,3]", vector AS "v:f64[2]", label, weight, number FROM t')
    tap.check("sqlite: blobs are tensors", fields(data) == [
        ("image", FLOAT, [1, 2, 3], 0), ("v", FLOAT, [2], 0), ("label", INT64, [], 2), ("weight", FLOAT, [], 0),
        ("number", INT64, [], 0)], fields(data))
    tap.check("sqlite: their content", d.item(data, 1) == (
        tuple(single(x / 255) for x in (50, 255, 0, 51, 102, 204)), (1.0, -0.5), (0,), (0.25,), (0,)), d.item(data, 1))
    tap.check("sqlite: texts are classes", [data.contents.fields[2].classes[k] for k in range(2)] == [b"a", b"b"]
              and [i[2] for i in d.items(data)] == [(1,), (0,), (1,)])
    plain = read(b"SELECT pixels, number FROM t")
    tap.check("sqlite: plain blobs are bytes", fields(plain)[0] == ("pixels", INT64, [6], 0)
              and d.item(plain, 2)[0] == (100, 255, 0, 51, 102, 204), fields(plain))
    for name, query, part in (
            ("size", 'SELECT pixels AS "p:u8[7]" FROM t', 'row 1: "p" has 6 bytes, not 7'),
            ("type", 'SELECT pixels AS "p:x9[6]" FROM t', '"p:x9[6]" is no NAME:TYPE'),
            ("sizes", 'SELECT pixels AS "p:u8[1,a]" FROM t', "is no NAME:TYPE"),
            ("null", "SELECT CASE number WHEN 0 THEN NULL ELSE pixels END AS p FROM t", 'row 2: "p" is of another'),
            ("no row", 'SELECT pixels AS "p:u8[6]" FROM t WHERE number > 9', "has no arrays")):
        tap.check(f"sqlite refuses: {name}", *refused(lambda: read(query.encode()), EFORMAT, part))


# ---------------------------------------------------------------- arrays

def npy(descr, shape, data, fortran=False, version=1):
    head = repr({"descr": descr, "fortran_order": fortran, "shape": tuple(shape)}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(head)) + head + data


def npz(path, packed=False, **arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as z:
        for name, data in arrays.items():
            z.writestr(name + ".npy", data)
    return str(path).encode()


def check_npz(tap, d, folder):
    path, x = folder / "a.npz", struct.pack("<6f", *range(6))
    y, image = struct.pack("<3h", 0, 2, 1), bytes(range(0, 240, 20))
    for packed in False, True:
        npz(path, packed, x=npy("<f4", [3, 2], x), y=npy("<i2", [3], y, version=2), image=npy("|u1", [3, 2, 2], image))
        data = d.made("burn_data_npz", str(path).encode(), None)
        kind = "packed" if packed else "plain"
        tap.check(f"npz: fields, {kind}", fields(data) == [("x", FLOAT, [2], 0), ("y", INT64, [], 3),
                                                           ("image", FLOAT, [2, 2], 0)], fields(data))
        tap.check(f"npz: items, {kind}", d.item(data, 2) == (
            (4.0, 5.0), (1,), tuple(single(v / 255) for v in image[8:])), d.item(data, 2))
    kinds = {"<f8": ("d", 0.5), "<f2": ("e", 0.25), "<i8": ("q", -3), "<i4": ("i", -3), "|i1": ("b", -3),
             "<u2": ("H", 9), "<u4": ("I", 9), "<u8": ("Q", 9), "|b1": ("?", True), "|u1": ("B", 7)}
    npz(path, **{f"k{i}": npy(t, [1], struct.pack("<" + c, v)) for i, (t, (c, v)) in enumerate(kinds.items())})
    tap.check("npz: element types", d.items(d.made("burn_data_npz", str(path).encode(), None))
              == [tuple((v,) for _, v in kinds.values())])
    npz(path, x=npy("<f4", [3, 2], x), y=npy("<i2", [3], y), other=npy("<i2", [2], y[:4]))
    data, settings = source(d, f"{path},fields=y/x")
    tap.check("npz: a source of some fields", [f[0] for f in fields(data)] == ["x", "y"] and settings == "fields=y/x",
              (fields(data), settings))
    tap.check("npz: a model's shape", fields(source(d, f"npz:{path},fields=x", 1, 2, 1)[0])[0][2] == [1, 2, 1])
    tap.check("npz: another shape stays", fields(source(d, f"npz:{path},fields=x", 3)[0])[0][2] == [2])
    read = lambda **a: d.made("burn_data_npz", npz(folder / "bad.npz", **a), None)          # noqa: E731
    whole = npy("<f4", [3, 2], x)
    for name, part, arrays in (
            ("other counts", '"y" has 2 items, "x" has 3', {"x": whole, "y": npy("<i2", [2], y[:4])}),
            ("big-endian", "elements have to be numbers", {"x": npy(">f4", [3, 2], x)}),
            ("objects", "elements have to be numbers", {"x": npy("|O", [1], b"x")}),
            ("a scalar", "first axis has to count items", {"x": npy("<f4", [], x[:4])}),
            ("Fortran order", "numpy.ascontiguousarray", {"x": npy("<f4", [3, 2], x, True)}),
            ("cut short", "takes other bytes", {"x": whole[:-1]}), ("no array", "is no .npy", {"x": b"NUMPY" * 9}),
            ("an endless header", "is no .npy", {"x": whole[:8] + b"\xff\xff" + whole[10:]}),
            ("sizes beyond all bounds", "takes other bytes", {"x": npy("<f4", [1 << 40, 1 << 40], x)}),
            ("nothing", "has no arrays", {})):
        tap.check(f"npz refuses: {name}", *refused(lambda: read(**arrays), EFORMAT, part))
    tap.check("npz refuses: many axes", *refused(lambda: read(x=npy("<f4", [1] * 9, x[:4])), ELIMIT, "7 axes"))
    damaged = bytearray(pathlib.Path(npz(folder / "bad.npz", x=whole).decode()).read_bytes())
    damaged[damaged.index(x[4:]) + 1] ^= 1
    (folder / "bad.npz").write_bytes(damaged)
    tap.check("npz refuses: a damaged entry", *refused(
        lambda: d.made("burn_data_npz", str(folder / "bad.npz").encode(), None), EFORMAT, "CRC"))
    tap.check("npz refuses: no file", *refused(lambda: d.made("burn_data_npz", b"/no.npz", None), EIO, "/no.npz"))


def check_records(tap, d, folder):
    half = struct.pack("<4e", 0.5, 1, -2, 3)
    tensors = [("x", "F16", [2, 2], half), ("y", "I64", [2], struct.pack("<2q", 5, 0))]
    for ending, (_, write, _) in {k: v for k, v in formats.FORMATS.items() if k != ".mpk"}.items():
        path = folder / f"data{ending}"
        path.write_bytes(write(formats.record(tensors)))
        data = d.made("burn_data_record", str(path).encode(), None)
        tap.check(f"arrays of {ending}", fields(data) == [("x", FLOAT, [2], 0), ("y", INT64, [], 6)]
                  and d.items(data) == [((0.5, 1.0), (5,)), ((-2.0, 3.0), (0,))], d.items(data))
    data, _ = source(d, f"{folder}/data.safetensors,fields=y")
    tap.check("safetensors: a source", d.items(data) == [((5,),), ((0,),)])
    tap.check("arrays: choose", *refused(lambda: d.made("burn_data_record", str(path).encode(), b"z"), EFORMAT,
                                         "has no arrays"))


def main():
    tap, d = Tap(), Data(sys.argv[1])
    lacks, why = refused(lambda: d.made("burn_data_sqlite", b"/no.db", None, None), EINVAL, "this build has no")
    with tempfile.TemporaryDirectory(prefix="burncc-stores-") as name:
        folder = pathlib.Path(name)
        if lacks:
            tap.skip("sqlite", why[1])
        else:
            check_tables(tap, d, folder)
            check_blobs(tap, d, folder)
        check_npz(tap, d, folder)
        check_records(tap, d, folder)
    return tap.end()


sys.exit(main())
