# SPDX-License-Identifier: MIT OR Apache-2.0
"""The peers: for each how it is found, and how its process is started on a model.

A peer's `find` says where it is or, raising Missing, why it cannot take part; `command` is the process that speaks the
words of worker.h. Python packages may live in environments of their own, so that their memory is theirs alone.
"""
import pathlib
import sys

import ours
from workers import Failed


class Missing(Exception):
    """This peer is not here; the text says why."""


class OnnxRuntime:
    """From its Python package, driven through the C library inside (ort.c)."""
    name, title = "ort", "ONNX Runtime"

    def find(self, cache):
        try:
            import onnxruntime
        except ImportError as e:
            raise Missing(f"python cannot import it ({e})") from None
        self.version = onnxruntime.__version__
        found = sorted(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*"))
        if not found:
            raise Missing("its package has no libonnxruntime.so")
        self.library = found[0]
        try:
            self.program = ours.helper("ort", cache, ["-ldl"])
        except Failed as e:
            raise Missing(str(e)) from None

    def command(self, model, folder, threads):
        return [self.program, self.library, model.path, folder, threads]


ALL = [OnnxRuntime]


def find(names, cache):
    """The peers of these names that are here, and a line for each that is not."""
    known = {peer.name: peer for peer in ALL}
    here = []
    for name in names:
        if name not in known:
            raise SystemExit(f"scripts/bench: no peer '{name}'; there are {', '.join(known)}")
        peer = known[name]()
        try:
            peer.find(cache)
            print(f"bench: {peer.title} {peer.version}", file=sys.stderr)
            here.append(peer)
        except Missing as why:
            print(f"bench: without {peer.title}: {why}", file=sys.stderr)
    return here
