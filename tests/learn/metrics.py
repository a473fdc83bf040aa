#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every metric of runtime/learn/metrics.def beside a computation of its own in Python, over random batches.
#
# usage: metrics.py LIBRARY    LIBRARY: the metrics as a shared library
#
# In: nothing. Out: TAP. The computations here take the plain way, in double: pairs for areas under curves, whole
# tables for distances, windows one by one. Where scikit-learn is there, it is asked as well.
import collections
import ctypes
import math
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import Tap, skip_all   # noqa: E402

try:
    import numpy as np
except ImportError:
    sys.exit(skip_all("numpy is not installed"))

EINVAL, ERANGE = -1, -8


class Observation(ctypes.Structure):
    _fields_ = [("items", ctypes.c_int64), ("loss", ctypes.c_double), ("learning_rate", ctypes.c_double),
                ("predicted", ctypes.POINTER(ctypes.c_float)), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("class_axis", ctypes.c_int),
                ("classes", ctypes.POINTER(ctypes.c_int64)), ("values", ctypes.POINTER(ctypes.c_float)),
                ("predicted_texts", ctypes.POINTER(ctypes.c_char_p)), ("texts", ctypes.POINTER(ctypes.c_char_p))]


Begin = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))
Add = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Observation))
End = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Value = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class Kind(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("unit", ctypes.c_char_p), ("parameters", ctypes.c_char_p),
                ("better", ctypes.c_int), ("begin", Begin), ("add", Add), ("end", End), ("value", Value)]


class Metrics:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.burn_metric_value.restype = ctypes.c_double
        self.c.burn_metric_text.restype = ctypes.c_char_p
        self.c.burn_metric_kinds.restype = ctypes.POINTER(Kind)
        self.c.burn_metric_confusion.restype = ctypes.POINTER(ctypes.c_int64)

    def open(self, text):
        m, message = ctypes.c_void_p(), ctypes.create_string_buffer(4000)
        error = self.c.burn_metric_open(text.encode(), ctypes.byref(m), message, len(message))
        return m if not error else (error, message.value.decode())

    def kinds(self):
        count = ctypes.c_int()
        kinds = self.c.burn_metric_kinds(ctypes.byref(count))
        return [kinds[i] for i in range(count.value)]

    def value(self, m):
        return self.c.burn_metric_value(m)

    def add(self, m, **parts):
        seen, keep = observation(**parts)
        return self.c.burn_metric_add(m, ctypes.byref(seen))

    def of(self, text, batches):
        """The metric's number over batches, each the parts of an observation."""
        m = self.open(text)
        assert not isinstance(m, tuple), m
        for parts in batches:
            error = self.add(m, **parts)
            assert error == 0, (text, error)
        number = self.value(m)
        self.c.burn_metric_close(m)
        return number


def array(numbers, kind):
    return np.ascontiguousarray(numbers, dtype=kind)


def observation(predicted=None, classes=None, values=None, said=None, wanted=None, axis=0, loss=0.0, rate=0.0,
                items=None):
    seen, keep = Observation(), []

    def pointer(numbers, kind, to):
        keep.append(array(numbers, kind))
        return keep[-1].ctypes.data_as(ctypes.POINTER(to))

    def texts(of):
        keep.append((ctypes.c_char_p * len(of))(*[t.encode() for t in of]))
        return ctypes.cast(keep[-1], ctypes.POINTER(ctypes.c_char_p))

    if predicted is not None:
        seen.predicted = pointer(predicted, np.float32, ctypes.c_float)
        seen.shape = pointer(np.shape(predicted), np.int64, ctypes.c_int64)
        seen.rank, seen.items, seen.class_axis = np.ndim(predicted), len(predicted), axis
    if classes is not None:
        seen.classes = pointer(classes, np.int64, ctypes.c_int64)
    if values is not None:
        seen.values = pointer(values, np.float32, ctypes.c_float)
    if said is not None:
        seen.predicted_texts, seen.texts, seen.items = texts(said), texts(wanted), len(said)
    if items is not None:
        seen.items = items
    seen.loss, seen.learning_rate = loss, rate
    return seen, keep


# ---- the same numbers, the plain way

def ratio(name, tp, fp, fn, beta):
    over = {"precision": tp + fp, "recall": tp + fn, "f_beta": (1 + beta**2) * tp + beta**2 * fn + fp,
            "dice": 2 * tp + fp + fn, "iou": tp + fp + fn}[name]
    part = {"f_beta": (1 + beta**2) * tp, "dice": 2 * tp}.get(name, tp)
    return part / over if over else 0.0


def averaged(name, said, wanted, average, beta=1.0):
    """said, wanted: [places, classes], 0 or 1."""
    tp, fp, fn = (said & wanted).sum(0), (said & ~wanted).sum(0), (~said & wanted).sum(0)
    if average == "micro":
        return ratio(name, tp.sum(), fp.sum(), fn.sum(), beta)
    there = tp + fp + fn > 0
    each = np.array([ratio(name, *n, beta) for n in zip(tp, fp, fn)])
    weights = (tp + fn) if average == "weighted" else there
    return float((each * weights).sum() / weights.sum())


def one_hot(classes, count):
    return np.arange(count) == np.asarray(classes)[..., None]


def roc_pairs(score, wanted):
    on, off = score[wanted], score[~wanted]
    return np.mean([(a > b) + 0.5 * (a == b) for a in on for b in off]) if len(on) and len(off) else math.nan


def average_precision(score, wanted):
    total, recall = 0.0, 0.0
    for cut in sorted(set(score), reverse=True):
        above = score >= cut
        now = (wanted & above).sum() / wanted.sum()
        total += (now - recall) * (wanted & above).sum() / above.sum()
        recall = now
    return total


def distance(a, b):
    table = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
    return table[len(a)][len(b)]


def subsequence(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = (table[i - 1][j - 1] + 1 if a[i - 1] == b[j - 1] else
                           max(table[i - 1][j], table[i][j - 1]))
    return table[len(a)][len(b)]


def bleu(said, wanted, order):
    logs = 0.0
    for n in range(1, order + 1):
        hits = grams = 0
        for a, b in zip(said, wanted):
            x, y = (collections.Counter(tuple(t[i:i + n]) for i in range(len(t) - n + 1)) for t in (a, b))
            hits, grams = hits + sum((x & y).values()), grams + sum(x.values())
        if not hits:
            return 0.0
        logs += math.log(hits / grams) / order
    lengths = [sum(map(len, t)) for t in (said, wanted)]
    return math.exp(logs + min(0, 1 - lengths[1] / lengths[0]))


def similarity(x, y, most):
    d = np.arange(11) - 5
    g = np.exp(-d * d / 4.5)
    g = np.outer(g, g) / np.outer(g, g).sum()
    all_windows = []
    for i in range(x.shape[0] - 10):
        for j in range(x.shape[1] - 10):
            a, b = x[i:i + 11, j:j + 11], y[i:i + 11, j:j + 11]
            ma, mb = (g * a).sum(), (g * b).sum()
            va, vb, c = (g * (a - ma)**2).sum(), (g * (b - mb)**2).sum(), (g * (a - ma) * (b - mb)).sum()
            all_windows.append((2 * ma * mb + (0.01 * most)**2) * (2 * c + (0.03 * most)**2) /
                               ((ma**2 + mb**2 + (0.01 * most)**2) * (va + vb + (0.03 * most)**2)))
    return np.mean(all_windows)


def over_scales(x, y):
    """MS-SSIM of an image, channels first, by moments about the means of all windows at once."""
    g = np.exp(-(np.arange(11) - 5)**2 / 4.5)
    g, product = np.outer(g, g) / g.sum()**2, 1

    def mean(v):
        return (np.lib.stride_tricks.sliding_window_view(v, (11, 11), (1, 2)) * g).sum((-1, -2))

    for scale, power in enumerate((0.0448, 0.2856, 0.3001, 0.2363, 0.1333)):
        mx, my = mean(x), mean(y)
        part = (2 * (mean(x * y) - mx * my) + 0.0009) / (mean(x * x) - mx**2 + mean(y * y) - my**2 + 0.0009)
        if scale == 4:
            part *= (2 * mx * my + 0.0001) / (mx**2 + my**2 + 0.0001)
        product *= max(0, part.mean())**power
        x, y = (v[:, :v.shape[1] // 2 * 2, :v.shape[2] // 2 * 2].reshape(
            len(v), v.shape[1] // 2, 2, v.shape[2] // 2, 2).mean((2, 4)) for v in (x, y))
    return product


class Checks:
    def __init__(self, tap, metrics):
        self.tap, self.m, self.seen = tap, metrics, set()

    def near(self, text, batches, wanted, tolerance=1e-9):
        self.seen.add(text.split("(")[0])
        got = self.m.of(text, batches)
        self.tap.check(f"{text}", abs(got - wanted) <= tolerance * max(1, abs(wanted)), f"is {got}, wanted {wanted}")


def split(parts, at):
    """Two batches of one, so that what is counted is counted over batches."""
    def side(part, cut):
        return {k: v[cut] if isinstance(v, (list, np.ndarray)) else v for k, v in part.items()}
    return [side(parts, slice(0, at)), side(parts, slice(at, None))]


def check_classes(t, rng):
    for shape, axis in (((40, 5), 0), ((6, 4, 3, 5), 1)):
        score = rng.normal(size=shape).round(1).astype(np.float32)       # ties
        last = np.moveaxis(score, axis if axis else -1, -1)
        count = last.shape[-1]
        wanted = rng.integers(0, count - 1, size=last.shape[:-1])         # the last class is said, never wanted
        wanted.flat[::7] = -1
        batches = split({"predicted": score, "classes": wanted, "axis": axis}, len(score) // 3)
        use = wanted >= 0
        said, want = one_hot(last[use].argmax(-1), count), one_hot(wanted[use], count)
        for name in ("precision", "recall", "f_beta", "dice", "iou"):
            for average in ("micro", "macro", "weighted"):
                t.near(f"{name}(average={average})", batches, averaged(name, said, want, average))
        t.near("f_beta(beta=2)", batches, averaged("f_beta", said, want, "macro", 2.0))
        t.near("accuracy", batches, (said & want).any(-1).mean())
        t.near("accuracy(macro)", batches, averaged("recall", said, want, "macro"))
        t.near("hamming", batches, (said & want).any(-1).mean())
        order = np.argsort(-last[use], axis=-1, kind="stable")
        t.near("top_k(2)", batches, np.mean([w in o[:2] for w, o in zip(wanted[use], order)]))
        x = last[use].astype(float)
        logs = np.log(np.exp(x).sum(-1)) - np.take_along_axis(x, wanted[use][:, None], -1)[:, 0]
        t.near("perplexity", batches, np.exp(logs.mean()))
        areas = [(roc_pairs(x[:, c], want[:, c]), average_precision(x[:, c], want[:, c]), want[:, c].sum())
                 for c in range(count - 1)]
        t.near("auroc", batches, np.mean([a[0] for a in areas]))
        t.near("auroc(weighted)", batches, np.average([a[0] for a in areas], weights=[a[2] for a in areas]))
        t.near("auc_pr", batches, np.mean([a[1] for a in areas]))
        t.near("auc_pr(micro)", batches, average_precision(x.ravel(), want.ravel()))
    pair = rng.normal(size=(30, 2)).astype(np.float32)
    wanted = rng.integers(0, 2, size=30)
    lead = (pair[:, 1] - pair[:, 0]).astype(np.float32)
    t.near("auroc", [{"predicted": pair, "classes": wanted}], roc_pairs(lead, wanted == 1))


def check_labels(t, rng):
    score = rng.random(size=(50, 4)).astype(np.float32)
    wanted = rng.integers(0, 2, size=(50, 4)).astype(np.float32)
    batches = split({"predicted": score, "values": wanted}, 20)
    for cut in (0.5, 0.25):
        said, want = score > cut, wanted > 0
        for name in ("precision", "recall", "f_beta", "dice", "iou"):
            for average in ("micro", "macro", "weighted"):
                t.near(f"{name}({average},threshold={cut})", batches, averaged(name, said, want, average))
        t.near(f"accuracy(threshold={cut})", batches, (said == want).all(-1).mean())
        t.near(f"hamming(threshold={cut})", batches, (said == want).mean())
    t.near("auroc", batches, np.mean([roc_pairs(score[:, c], wanted[:, c] > 0) for c in range(4)]))
    t.near("auc_pr", batches, np.mean([average_precision(score[:, c], wanted[:, c] > 0) for c in range(4)]))


def check_values(t, rng):
    said, wanted = (rng.normal(size=(20, 3)).astype(np.float32) for _ in range(2))
    batches, d = split({"predicted": said, "values": wanted}, 7), said.astype(float) - wanted
    t.near("mse", batches, (d * d).mean())
    t.near("rmse", batches, math.sqrt((d * d).mean()))
    t.near("mae", batches, abs(d).mean())
    t.near("r2", batches, 1 - (d * d).sum() / (wanted.size * wanted.astype(float).var()))
    images = [rng.random(size=(3, 2, 14, 16)).astype(np.float32) for _ in range(2)]
    for most in (1, 255):
        x, y = ((most * i).astype(np.float32) for i in images)
        batches = split({"predicted": x, "values": y}, 1)
        squares = ((x.astype(float) - y)**2).mean((1, 2, 3))
        t.near(f"psnr(range={most})", batches, np.mean(10 * np.log10(most**2 / squares)))
        t.near(f"ssim({most})", batches, np.mean([similarity(x[n, c].astype(float), y[n, c].astype(float), most)
                                                 for n in range(3) for c in range(2)]))
    x = rng.random(size=(2, 2, 176, 181)).astype(np.float32)
    y = (0.7 * x + 0.3 * rng.random(size=x.shape)).astype(np.float32)
    t.near("ms_ssim", split({"predicted": x, "values": y}, 1), np.mean([over_scales(*i) for i in zip(
        x.astype(float), y.astype(float))]), 1e-6)
    t.near("loss", [{"items": 3, "loss": 2.0}, {"items": 1, "loss": 6.0}], 3.0)
    t.near("learning_rate", [{"items": 1, "rate": 0.5}, {"items": 1, "rate": 0.25}], 0.25)


def check_texts(t, rng):
    words = ["ein", "zwei", "drei", "vier", "fünf", "日本", "語"]
    draw = random.Random(3)
    said = [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(25)]
    wanted = [" ".join(w for w in s.split() if draw.random() < 0.8) + draw.choice(["", " zwei", "  drei vier"])
              for s in said]
    batches = split({"said": said, "wanted": wanted}, 11)
    a, b = [s.split() for s in said], [s.split() for s in wanted]
    t.near("cer", batches, sum(map(distance, said, wanted)) / sum(map(len, wanted)))
    t.near("wer", batches, sum(map(distance, a, b)) / sum(map(len, b)))
    t.near("rouge_l", batches, np.mean([2 * subsequence(x, y) / (len(x) + len(y)) if x + y else 1
                                       for x, y in zip(a, b)]))
    for order in (1, 2, 4):
        t.near(f"bleu({order})", batches, bleu(a, b, order))


def check_machine(t, tap, metrics):
    speed, cpu = metrics.open("iteration_speed"), metrics.open("cpu_use")
    start, spent, items = time.monotonic(), time.process_time(), 0
    while time.monotonic() - start < 0.3:
        items += 5
        metrics.add(speed, items=5)
        metrics.add(cpu, items=5)
        time.sleep(0.01)
    wall = time.monotonic() - start
    tap.check("iteration_speed", 0.8 < metrics.value(speed) / (items / wall) < 1.25, metrics.value(speed))
    used = 100 * (time.process_time() - spent) / wall
    tap.check("cpu_use", abs(metrics.value(cpu) - used) < 10, f"{metrics.value(cpu)}, wanted {used}")
    now = metrics.of("cpu_memory", [{"items": 1}])
    pages = float(open("/proc/self/statm").read().split()[1]) if os.path.exists("/proc/self/statm") else math.nan
    size = pages * os.sysconf("SC_PAGESIZE") / 2**20
    tap.check("cpu_memory", abs(now / size - 1) < 0.1 or math.isnan(now) and math.isnan(size), f"{now}, wanted {size}")
    for name in ("cpu_temperature", "gpu_use", "gpu_memory", "gpu_temperature"):
        number = metrics.of(name, [{"items": 1}])
        tap.check(name, math.isnan(number) or -50 < number < 1e6, number)
    t.seen |= {"iteration_speed", "cpu_use", "cpu_memory", "cpu_temperature", "gpu_use", "gpu_memory",
               "gpu_temperature"}


def check_mistakes(tap, metrics):
    for text, part in (("acuracy", "there is no metric 'acuracy'; there are loss"), ("accuracy(beta=2)", "takes no"),
                       ("top_k(x)", "is no number"), ("top_k(1", "does not end"), ("loss(1)", "no parameters"),
                       ("top_k(1,2,3)", "takes no"), ("top_k(1)x", "does not end"), ("", "there is no metric")):
        error, message = metrics.open(text) if isinstance(metrics.open(text), tuple) else (0, "")
        tap.check(f"refuses {text!r}", error == EINVAL and part in message, f"{error}: {message}")
    score, wanted = np.zeros((2, 3)), np.array([0, 3])
    for name in ("accuracy", "top_k", "perplexity", "auroc"):
        m = metrics.open(name)
        tap.check(f"{name} of nothing is no number", math.isnan(metrics.value(m)))
        tap.check(f"{name} refuses class 3 of 3", metrics.add(m, predicted=score, classes=wanted) == ERANGE)
        tap.check(f"{name} is as before", math.isnan(metrics.value(m)))
        tap.check(f"{name} refuses no targets", metrics.add(m, predicted=score) == EINVAL)
        metrics.add(m, predicted=score, classes=[0, 1])
        metrics.c.burn_metric_reset(m)
        tap.check(f"{name} starts again", math.isnan(metrics.value(m)))
        metrics.c.burn_metric_close(m)
    m = metrics.open("accuracy")
    metrics.add(m, predicted=score, classes=[0, 1])
    tap.check("classes stay as many", metrics.add(m, predicted=np.zeros((2, 4)), classes=[0, 1]) == EINVAL)
    n = ctypes.c_int64()
    matrix = metrics.c.burn_metric_confusion(m, ctypes.byref(n))
    tap.check("confusion matrix", n.value == 3 and matrix[:9] == [1, 0, 0, 1, 0, 0, 0, 0, 0], matrix[:9])
    m = metrics.open("f_beta(beta=2)")
    text = metrics.c.burn_metric_text(m).decode()
    tap.check("text has every parameter", text == "f_beta(average=macro,ignore=-1,threshold=0.5,beta=2)", text)


def check_own(tap, metrics):
    """A kind of the caller's own: the largest score."""
    states = {}

    def begin(parameters):
        key = len(states) + 1
        states[key] = parameters[0]
        return key

    def add(state, seen):
        one = seen.contents
        states[state] = max([states[state]] + one.predicted[:one.items])
        return 0

    kind = Kind(b"largest", b"", b"least=2", 1, Begin(begin), Add(add), End(lambda state: None),
                Value(lambda state: states[state]))
    m = ctypes.c_void_p()
    tap.check("own kind opens", metrics.c.burn_metric_of(ctypes.byref(kind), None, ctypes.byref(m)) == 0)
    first = metrics.value(m)
    metrics.add(m, predicted=[1.0, 5.0, 3.0])
    tap.check("own kind", (first, metrics.value(m)) == (2.0, 5.0), (first, metrics.value(m)))


def check_sklearn(t, rng):
    from sklearn import metrics as sk
    score, wanted = rng.normal(size=(300, 6)).astype(np.float32), rng.integers(0, 6, size=300)
    said, batches = score.argmax(1), [{"predicted": score, "classes": wanted}]
    for average in ("micro", "macro", "weighted"):
        t.near(f"precision({average})", batches, sk.precision_score(wanted, said, average=average))
        t.near(f"f_beta({average},beta=0.5)", batches, sk.fbeta_score(wanted, said, beta=0.5, average=average))
        t.near(f"iou({average})", batches, sk.jaccard_score(wanted, said, average=average))
    hot = one_hot(wanted, 6)
    t.near("auroc", batches, sk.roc_auc_score(hot, score))
    t.near("auc_pr", batches, sk.average_precision_score(hot, score))
    t.near("top_k(3)", batches, sk.top_k_accuracy_score(wanted, score, k=3))
    t.near("accuracy(macro)", batches, sk.balanced_accuracy_score(wanted, said))


def main():
    tap, metrics, rng = Tap(), Metrics(sys.argv[1]), np.random.default_rng(5)
    t = Checks(tap, metrics)
    check_classes(t, rng)
    check_labels(t, rng)
    check_values(t, rng)
    check_texts(t, rng)
    check_machine(t, tap, metrics)
    check_mistakes(tap, metrics)
    check_own(tap, metrics)
    try:
        check_sklearn(t, rng)
    except ImportError:
        tap.skip("beside scikit-learn", "it is not there")
    missing = {k.name.decode() for k in metrics.kinds()} - t.seen
    tap.check("every row is checked", not missing, missing)
    return tap.end()


sys.exit(main())
