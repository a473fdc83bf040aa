#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes the files of weights that weights.sh loads into the current folder: good ones, and ones that lie.
import json
import struct


def floats(count, start):
    return struct.pack(f"<{count}f", *[start + i / 8 for i in range(count)])


def write(name, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(name, "wb") as f:
        f.write(struct.pack("<Q", len(text) if length is None else length) + text + data)


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


W, B = floats(6, 1), floats(2, 0.5)
GOOD = {"fc.weight": entry([2, 3], 0, 24), "fc.bias": entry([2], 24, 32)}
write("good.safetensors", {"__metadata__": {"format": "pt"}, **GOOD}, W + B)
write("prefix.safetensors", {"module." + k: v for k, v in GOOD.items()}, W + B)
write("renamed.safetensors", {"head.0.w": GOOD["fc.weight"], "head.0.b": GOOD["fc.bias"]}, W + B)
write("partial.safetensors", {"fc.weight": GOOD["fc.weight"], "fc.num_batches_tracked": entry([], 24, 32, "I64"),
                              "old.scale": entry([2], 24, 32)}, W + B)
write("shape.safetensors", {**GOOD, "fc.weight": entry([3, 2], 0, 24)}, W + B)
HALF = struct.pack("<6e", *[1 + i / 8 for i in range(6)])
write("half.safetensors", {"fc.weight": entry([2, 3], 0, 12, "F16"), "fc.bias": entry([2], 12, 20)}, HALF + B)
write("part-1.safetensors", {"fc.weight": GOOD["fc.weight"]}, W)
write("part-2.safetensors", {"fc.bias": entry([2], 0, 8)}, B)
with open("model.safetensors.index.json", "w", encoding="utf-8") as f:
    json.dump({"metadata": {}, "weight_map": {"fc.weight": "part-1.safetensors", "fc.bias": "part-2.safetensors"}}, f)
with open("escape.index.json", "w", encoding="utf-8") as f:
    json.dump({"weight_map": {"fc.weight": "../part-1.safetensors"}}, f)

write("bad_length.safetensors", GOOD, W + B, length=1 << 31)
write("bad_json.safetensors", b'{"fc.weight": [}')
write("bad_offset.safetensors", {"fc.weight": entry([2, 3], 16, 40)}, W)
write("bad_order.safetensors", {"fc.weight": entry([2, 3], 24, 0)}, W)
write("bad_size.safetensors", {"fc.weight": entry([2, 4], 0, 24)}, W)
write("bad_huge.safetensors", {"fc.weight": entry([1 << 30, 1 << 30, 1 << 30], 0, 24)}, W)
write("bad_negative.safetensors", {"fc.weight": entry([-2, -3], 0, 24)}, W)
write("bad_type.safetensors", {"fc.weight": entry([2, 3], 0, 24, "F31")}, W)
write("bad_rank.safetensors", {"fc.weight": entry([1] * 9 + [6], 0, 24)}, W)
write("bad_entry.safetensors", {"fc.weight": {"dtype": "F32"}}, W)
write("bad_twice.safetensors", b'{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},'
      b'"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', W)
write("bad_array.safetensors", b'{"a": 3, "b": []}', W)
with open("good.safetensors", "rb") as f:
    DATA = f.read()
for cut in range(0, len(DATA) - 1):
    with open(f"cut_{cut}.safetensors", "wb") as f:
        f.write(DATA[:cut])
