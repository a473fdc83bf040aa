# SPDX-License-Identifier: MIT OR Apache-2.0
"""NumPy's files of arrays, standard library only."""
import ast
import struct

DTYPES = {"f32": ("<f4", "f"), "f64": ("<f8", "d"), "i64": ("<i8", "q"), "i32": ("<i4", "i"), "u8": ("|u1", "B"),
    "i8": ("|i1", "b"), "u32": ("<u4", "I"), "u64": ("<u8", "Q")}
TYPE_OF = {descr: code for descr, code in DTYPES.values()}


def write_npy(path, dtype, shape, values):
    descr, code = DTYPES[dtype]
    head = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def read_npy(path):
    """Shape and elements; of a type that is not listed, bytes."""
    data = path.read_bytes()
    size, = struct.unpack_from("<H", data, 8)
    head = ast.literal_eval(data[10:10 + size].decode().strip())
    code = TYPE_OF.get(head["descr"], "B")
    body = data[10 + size:]
    return head["shape"], struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body)
