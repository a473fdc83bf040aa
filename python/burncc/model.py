# SPDX-License-Identifier: MIT OR Apache-2.0
"""A compiled model in this process: its descriptor (burn_model of burn.h) by ctypes, arrays by NumPy. ctypes lets other
threads of Python run meanwhile; each run has a workspace of its own."""
import ctypes
import threading
from typing import NamedTuple

import numpy as np

STRING = 8
DTYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 8: object, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 14: np.complex64, 15: np.complex128,
    16: np.uint16,                                      # bfloat16, which NumPy has not
    22: np.int8, 26: np.int8,                           # of 4 and 2 bits, a byte each
}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("dtype", ctypes.c_int), ("rank", ctypes.c_int)]


class _Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t),
                ("least", ctypes.POINTER(ctypes.c_int64)), ("dims", ctypes.POINTER(ctypes.c_char_p))]


class _Size(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("least", ctypes.c_int64), ("most", ctypes.c_int64)]


_Tensors = ctypes.POINTER(_Tensor)
_Check = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_Run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, _Tensors, _Tensors)
_Shapes = ctypes.CFUNCTYPE(ctypes.c_int, _Tensors, _Tensors)


class _Model(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("name", ctypes.c_char_p), ("input_count", ctypes.c_int),
                ("output_count", ctypes.c_int), ("inputs", ctypes.POINTER(_Info)), ("outputs", ctypes.POINTER(_Info)),
                ("workspace_bytes", ctypes.c_size_t), ("weights_bytes", ctypes.c_size_t), ("weights_check", _Check),
                ("parts", ctypes.c_int), ("run", _Run), ("size_count", ctypes.c_int), ("sizes", ctypes.POINTER(_Size)),
                ("shapes", _Shapes), ("metadata", ctypes.POINTER(ctypes.c_char_p))]


class RunError(Exception):
    """A run that failed; `code` is a BURN_E... code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class TensorInfo(NamedTuple):
    """An input or output; `shape` has a name where a size is the caller's or the run's, `most` the largest sizes."""
    name: str
    dtype: object
    shape: tuple
    most: tuple


def _info(raw):
    most = tuple(raw.shape[i] for i in range(raw.rank))
    names = [raw.dims[i] if raw.dims else None for i in range(raw.rank)]
    shape = tuple(n.decode() if n else d for n, d in zip(names, most))
    return TensorInfo(raw.name.decode(), np.dtype(DTYPES.get(raw.dtype, np.uint8)), shape, most)


def _aligned(size):
    block = np.empty(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start:start + size]


class _End:
    """A burn_tensor of a frame, and the memory of its shape."""

    def __init__(self, tensor, info):
        self.tensor, self.is_fixed, self.is_text = tensor, not info.least, info.dtype == STRING
        self.shape = tuple(info.shape[i] for i in range(info.rank))
        self.dims = (ctypes.c_int64 * max(info.rank, 1))(*self.shape)
        tensor.shape = ctypes.cast(self.dims, ctypes.POINTER(ctypes.c_int64))
        tensor.dtype, tensor.rank = info.dtype, info.rank

    def hold(self, array, shape):
        self.tensor.data, self.tensor.bytes = array.__array_interface__["data"][0], array.nbytes
        if shape is not None and not self.is_fixed:
            self.dims[:len(shape)] = shape

    def told(self):
        return self.shape if self.is_fixed else tuple(self.dims[:len(self.shape)])


class _Frame:
    """What one run at a time needs: its workspace, and the tensors that it is given."""

    def __init__(self, raw, inputs, outputs):
        self.work = _aligned(raw.workspace_bytes)
        self.work_at = self.work.ctypes.data
        self.given, self.made = (_Tensor * max(len(inputs), 1))(), (_Tensor * max(len(outputs), 1))()
        self.inputs = [_End(t, i) for t, i in zip(self.given, inputs)]
        self.outputs = [_End(t, o) for t, o in zip(self.made, outputs)]


class Model:
    """Called with arrays in the order of the inputs, or by their names; gives an array, or a tuple of several."""

    def __init__(self, library, weights, threads=1):
        self._library = ctypes.CDLL(str(library))
        self._library.burncc_descriptor.restype = ctypes.POINTER(_Model)
        self._library.burncc_error.restype = ctypes.c_char_p
        self._raw = raw = self._library.burncc_descriptor().contents
        if raw.version < 1:
            raise RunError(-1, f"{library}: a model of version {raw.version}")
        self._in = [raw.inputs[i] for i in range(raw.input_count)]
        self._out = [raw.outputs[i] for i in range(raw.output_count)]
        self.inputs = [_info(i) for i in self._in]
        self.outputs = [_info(o) for o in self._out]
        self.sizes = {raw.sizes[i].name.decode(): range(raw.sizes[i].least, raw.sizes[i].most + 1)
                      for i in range(raw.size_count)}
        self.metadata, at = {}, 0
        while raw.metadata and raw.metadata[at]:
            self.metadata[raw.metadata[at].decode()] = raw.metadata[at + 1].decode()
            at += 2
        self._weights = self._weights_at = self._pool = None
        self._free, self._lock = [], threading.Lock()
        if raw.weights_bytes:
            self._weights = np.memmap(weights, np.uint8, "r")
            self._weights_at = self._weights.ctypes.data
            self._check(raw.weights_check(self._weights_at, self._weights.nbytes), str(weights))
        if threads > 1 and raw.parts:
            self._library.burncc_pool.restype = ctypes.c_void_p
            self._pool = self._library.burncc_pool(min(threads, raw.parts))
            if not self._pool:
                raise RunError(-2, f"cannot start {threads} threads")

    def __call__(self, *args, **named):
        results = self._run(self._bind(args, named))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs):
        """The same of a dictionary, and gives one."""
        return dict(zip([o.name for o in self.outputs], self._run(self._bind((), inputs))))

    def _check(self, code, what):
        if code:
            raise RunError(code, f"{what}: {self._library.burncc_error(code).decode()}")

    def _bind(self, args, named):
        names = [i.name for i in self.inputs]
        if len(args) > len(names):
            raise TypeError(f"{len(args)} inputs for {len(names)}: {', '.join(names)}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise TypeError(f"no input is called '{name}'; there are {', '.join(names)}")
            if name in given:
                raise TypeError(f"input '{name}' is given twice")
            given[name] = value
        missing = [n for n in names if n not in given]
        if missing:
            raise TypeError(f"no value for {', '.join(missing)}")
        return [self._array(info, given[info.name]) for info in self.inputs]

    def _array(self, info, value):
        if not isinstance(value, np.ndarray):
            value = np.asarray(value, info.dtype)
        if info.dtype != object and value.dtype != info.dtype:
            raise TypeError(f"input '{info.name}' is of {value.dtype}, not {info.dtype}")
        wanted = "[" + ", ".join(str(d) for d in info.shape) + "]"
        fits = value.ndim == len(info.shape) and all(
            isinstance(w, str) or w == d for w, d in zip(info.shape, value.shape))
        if not fits:
            raise ValueError(f"input '{info.name}' is of {list(value.shape)}, not {wanted}")
        for name, size, most in zip(info.shape, value.shape, info.most):
            if size > most or (name in self.sizes and size not in self.sizes[name]):
                known = self.sizes.get(name)
                bounds = f"{known[0]}..{known[-1]}" if known else f"at most {most}"
                raise ValueError(f"input '{info.name}': {name} is {size}, and compiled for {bounds}")
        return np.ascontiguousarray(value)

    def _texts(self, arrays):
        """Strings as pointers, and what has to live as long as the call."""
        keep = []
        for i, info in enumerate(self._in):
            if info.dtype == STRING:
                encoded = [str(s).encode() for s in arrays[i].ravel()]
                pointers = (ctypes.c_char_p * max(len(encoded), 1))(*encoded)
                keep += [encoded, pointers]
                arrays[i] = np.frombuffer(pointers, np.uintp)[:len(encoded)].reshape(arrays[i].shape)
        return keep

    def _run(self, arrays):
        keep = self._texts(arrays)
        with self._lock:
            frame = self._free.pop() if self._free else _Frame(self._raw, self._in, self._out)
        try:
            for end, array in zip(frame.inputs, arrays):
                end.hold(array, array.shape)
            if self._raw.shapes:
                self._check(self._raw.shapes(frame.given, frame.made), self._raw.name.decode())
            results = [np.empty(end.told(), np.uintp if end.is_text else info.dtype)
                       for end, info in zip(frame.outputs, self.outputs)]
            for end, result in zip(frame.outputs, results):
                end.hold(result, None)
            self._check(self._raw.run(self._pool, frame.work_at, self._weights_at, frame.given, frame.made),
                        self._raw.name.decode())
            del keep
            return [self._result(o, r, end.told()) for o, r, end in zip(self._out, results, frame.outputs)]
        finally:
            with self._lock:
                self._free.append(frame)

    @staticmethod
    def _result(info, array, shape):
        count = int(np.prod(shape, dtype=np.int64))
        array = array if array.shape == shape else array.ravel()[:count].reshape(shape)
        if info.dtype != STRING:
            return array
        texts = [ctypes.cast(int(p), ctypes.c_char_p).value.decode() for p in array.ravel()]
        return np.array(texts, object).reshape(shape)
