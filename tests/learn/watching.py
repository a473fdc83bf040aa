#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run that never was, told to the watchers of runtime/learn as a learner would tell it.

usage: watching.py LIBRARY WATCHERS [--artifacts DIR] [--epochs N] [--batches N] [--pause SECONDS] [--classes N]
WATCHERS: lines, screen, logs, report, with commas between. SIGINT stops the run as a learner's does: after a save, of
which checkpoint.txt in DIR stays. Needs the standard library only."""
import argparse
import ctypes
import math
import pathlib
import random
import signal
import time

FLOAT, INT64 = 1, 7
TRAINING, VALIDATION = 0, 1
SMALLER, NEITHER, LARGER = -1, 0, 1
NOTE, WARNING, ERROR = 0, 1, 2
GO_ON, SAVE, STOP, QUIT = 0, 1, 2, 3
NAN = math.nan
Text, Int, Number, Pointer = ctypes.c_char_p, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p




def structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": fields})


Said = structure("Said", ("text", ctypes.c_char * 480))
Field = structure("Field", ("name", Text), ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("shape", Int * 6),
                  ("bytes", ctypes.c_size_t), ("class_count", ctypes.c_int), ("classes", ctypes.POINTER(Text)))
Observation = structure(
    "Observation", ("items", Int), ("loss", Number), ("learning_rate", Number),
    ("predicted", ctypes.POINTER(ctypes.c_float)), ("rank", ctypes.c_int), ("shape", ctypes.POINTER(Int)),
    ("class_axis", ctypes.c_int), ("classes", ctypes.POINTER(Int)), ("values", ctypes.POINTER(ctypes.c_float)),
    ("predicted_texts", ctypes.POINTER(Text)), ("texts", ctypes.POINTER(Text)))
Batch = structure("Batch", ("epoch", Int), ("number", Int), ("items", Int), ("fields", ctypes.POINTER(Pointer)),
                  ("numbers", ctypes.POINTER(Int)))
Figure = structure("Figure", ("name", Text), ("unit", Text), ("better", ctypes.c_int), ("now", Number),
                   ("mean", Number), ("best", Number), ("best_epoch", Int), ("metric", Pointer))
Progress = structure(
    "Progress", ("split", ctypes.c_int), ("epoch", Int), ("epochs", Int), ("batch", Int), ("batches", Int),
    ("step", Int), ("items", Int), ("skipped", Int), ("seconds", Number), ("seconds_left", Number),
    ("computing", Number), ("figure_count", ctypes.c_int), ("figures", ctypes.POINTER(Figure)))
Task = structure(
    "Task", ("name", Text), ("artifacts", Text), ("epochs", Int), ("parameters", Int), ("train_items", Int),
    ("valid_items", Int), ("batch", Int), ("train", Pointer), ("valid", Pointer), ("setting_count", ctypes.c_int),
    ("settings", ctypes.POINTER(Text * 2)), ("resumed_epoch", Int))
Seen = structure("Seen", ("batch", ctypes.POINTER(Batch)), ("first_item", Int),
                 ("observation", ctypes.POINTER(Observation)))
Outcome = structure("Outcome", ("error", ctypes.c_int), ("reason", Text), ("epochs", Int), ("best_epoch", Int),
                    ("steps", Int), ("seconds", Number))
Tell = ctypes.CFUNCTYPE(None, Pointer, Pointer)
Checkpoint = ctypes.CFUNCTYPE(None, Pointer, Text, Int, ctypes.c_int)
Say = ctypes.CFUNCTYPE(None, Pointer, ctypes.c_int, Text)
Watcher = structure(
    "Watcher", ("own", Pointer), ("begin", Tell), ("batch", Tell), ("seen", Tell), ("epoch", Tell),
    ("checkpoint", Checkpoint), ("say", Say), ("wish", ctypes.CFUNCTYPE(ctypes.c_int, Pointer)), ("finish", Tell),
    ("close", ctypes.CFUNCTYPE(None, Pointer)))


def library(path):
    c = ctypes.CDLL(path)
    c.fopen = ctypes.CDLL(None).fopen
    c.fopen.restype = Pointer
    c.fclose = ctypes.CDLL(None).fclose
    c.fclose.argtypes = [Pointer]
    c.burn_watch_lines.argtypes = [Pointer, ctypes.c_int, ctypes.POINTER(Watcher)]
    c.burn_metric_value.restype = Number
    return c


def log_sum(values):
    return math.log(sum(math.exp(v) for v in values))


class Run:
    """names: of metrics beside the loss, as burn_metric_open takes them. curve: (split, epoch, part of it) gives
    {name: number} of a batch; others are what the metrics say of scores drawn at random."""

    def __init__(self, c, watchers, artifacts=None, epochs=3, batches=4, name="fake", names=("accuracy",), valid=True,
                 classes=3, resumed=0, start=0, curve=None, pause=0, settings=(("optimizer", "sgd"), ("lr", "0.1")),
                 image=(1, 8, 8)):
        self.c, self.watchers, self.epochs, self.batches, self.valid = c, watchers, epochs, batches, valid
        self.classes, self.resumed, self.start, self.pause = classes, resumed, start, pause
        self.curve = curve or (lambda split, epoch, part: {"loss": 2 / (epoch + part + (0.3 if split else 0))})
        self.names, self.image, self.items, self.step = names, image, 5, resumed * batches + start
        self.artifacts = artifacts
        self.random = random.Random(7)
        self.keep, self.best = [], {}
        self.stopped = False
        self.losses = []                      # of the items of the split that was last
        self.metrics = [[self.metric(n) for n in names] for _ in range(2)]
        self.settings = settings
        self.name = name
        self.class_names = classes            # of the data; the model may have room for more
        self.began = time.time()

    def metric(self, text):
        m, message = Pointer(), ctypes.create_string_buffer(2000)
        if self.c.burn_metric_open(text.encode(), ctypes.byref(m), message, len(message)):
            return None                       # its name alone
        return m

    def dataset(self):
        """Images and labels, numbers that no batch has to be of."""
        names = (Text * self.class_names)(*[f"class {i}".encode() for i in range(self.class_names)])
        label = Field(b"label", INT64, 0, (Int * 6)(), 8, self.class_names, ctypes.cast(names, ctypes.POINTER(Text)))
        size = math.prod(self.image)
        image = Field(b"image", FLOAT, len(self.image), (Int * 6)(*self.image), 4 * size, 0, None)
        count = self.items * self.batches
        arrays = (Pointer * 2)(ctypes.cast((ctypes.c_float * (size * count))(), Pointer),
                               ctypes.cast((Int * count)(), Pointer))
        data, fields = Pointer(), (Field * 2)(image, label)
        self.keep += [names, arrays]
        assert not self.c.burn_data_memory(Int(count), 2, fields, arrays, ctypes.byref(data), None)
        return data

    def tell(self, what, *arguments):
        for w in self.watchers:
            function = getattr(w, what)
            if function:
                function(w.own, *arguments)

    def wishes(self):
        return max([w.wish(w.own) if w.wish else GO_ON for w in self.watchers], default=GO_ON)

    def progress(self, split, epoch, batch, numbers, is_end=False):
        figures = (Figure * (len(self.names) + 1))()
        for i, name in enumerate(("loss",) + tuple(self.names)):
            m = self.metrics[split][i - 1] if i else None
            mean = numbers.get(name, self.c.burn_metric_value(m) if m else NAN)
            best, at = self.best.get((split, name), (NAN, 0))
            if is_end and not (mean >= best if i == 0 else mean <= best) and not math.isnan(mean):
                best, at = self.best[split, name] = mean, epoch
            better = SMALLER if not i else NEITHER if name == "learning_rate" else LARGER
            figures[i] = Figure(name.encode(), b"", better, numbers.get(name, NAN), mean, best, at,
                                m if i else None)
        left = (self.epochs - epoch) * self.batches + self.batches - batch
        p = Progress(split, epoch, self.epochs, batch, self.batches, self.step, batch * self.items, 0,
                     time.time() - self.began, left * max(self.pause, 0.001), 0.97, len(figures), figures)
        self.keep_now = figures
        return p

    def batch(self, split, epoch, batch):
        r = self.random
        wanted = [r.randrange(self.classes) for _ in range(self.items)]
        skill = 3 * (epoch - 1 + batch / self.batches) / self.epochs
        scores = [r.gauss(0, 1) + skill * (k == w) for w in wanted for k in range(self.classes)]
        size = math.prod(self.image)
        pixels = [(i % size) / size for i in range(size * self.items)]       # each image the same
        c_scores, c_wanted = (ctypes.c_float * len(scores))(*scores), (Int * len(wanted))(*wanted)
        c_pixels, shape = (ctypes.c_float * len(pixels))(*pixels), (Int * 2)(self.items, self.classes)
        numbers = self.curve(split, epoch, batch / self.batches)
        seen = Observation(self.items, numbers.get("loss", NAN), 0.1, c_scores, 2, shape, 0, c_wanted)
        for m in self.metrics[split]:
            if m:
                self.c.burn_metric_add(m, ctypes.byref(seen))
        self.losses = self.losses if batch > 1 else []
        self.losses += [log_sum(scores[i * self.classes:(i + 1) * self.classes]) - scores[i * self.classes + w]
                        for i, w in enumerate(wanted)]
        if split:
            fields = (Pointer * 2)(ctypes.cast(c_pixels, Pointer), ctypes.cast(c_wanted, Pointer))
            first = (batch - 1) * self.items
            b = Batch(epoch - 1, batch - 1, self.items, fields, (Int * self.items)(*range(first, first + self.items)))
            told = Seen(ctypes.pointer(b), first, ctypes.pointer(seen))
            self.tell("seen", ctypes.byref(told))
        self.step += split == TRAINING
        self.tell("batch", ctypes.byref(self.progress(split, epoch, batch, numbers)))
        time.sleep(self.pause)
        return numbers

    def save(self, epoch):
        if self.artifacts:
            path = pathlib.Path(self.artifacts) / "checkpoint.txt"
            path.write_text(f"{epoch}\n")
            self.tell("checkpoint", str(path).encode(), epoch, 0)

    def go(self):
        data = self.dataset()
        pairs = (Text * 2 * len(self.settings))(*[(Text * 2)(a.encode(), b.encode()) for a, b in self.settings])
        task = Task(self.name.encode(), str(self.artifacts).encode() if self.artifacts else None, self.epochs, 44426,
                    self.items * self.batches, self.items * self.batches if self.valid else 0, self.items, data,
                    data if self.valid else None, len(self.settings), pairs, self.resumed)
        self.tell("begin", ctypes.byref(task))
        reason, epoch, wish, numbers = "epochs done", self.resumed, GO_ON, {}
        while epoch < self.epochs and wish < STOP:
            epoch += 1
            for split in (TRAINING, VALIDATION) if self.valid else (TRAINING,):
                for m in self.metrics[split]:
                    if m:
                        self.c.burn_metric_reset(m)
                first = self.start if split == TRAINING and epoch == self.resumed + 1 else 0
                for batch in range(first + 1, self.batches + 1):
                    numbers = self.batch(split, epoch, batch)
                    wish = max(STOP if self.stopped else GO_ON, self.wishes())
                    if wish == SAVE:
                        self.save(epoch)
                    if wish >= STOP:
                        break
                if wish >= STOP:
                    break
                self.tell("epoch", ctypes.byref(self.progress(split, epoch, self.batches, numbers, True)))
        if wish == STOP:
            reason = "interrupted"
            self.save(epoch)
        elif wish == QUIT:
            reason = "quit"
        self.tell("finish", ctypes.byref(Outcome(0, reason.encode(), epoch, 1, self.step, time.time() - self.began)))
        for w in self.watchers:
            w.close(w.own)
        self.c.burn_data_close(data)


def make(c, names, to=None):
    """The watchers of these names; those behind the first tell it their problems."""
    watchers = (Watcher * len(names))()
    for i, name in enumerate(names):
        at = ctypes.byref(watchers, i * ctypes.sizeof(Watcher))
        tell = ctypes.byref(watchers) if i else None
        if name == "lines":
            error = c.burn_watch_lines(to, 0, ctypes.cast(at, ctypes.POINTER(Watcher)))
        elif name == "quiet":
            error = c.burn_watch_lines(to, 1, ctypes.cast(at, ctypes.POINTER(Watcher)))
        elif name == "screen":
            error = c.burn_watch_screen(ctypes.c_void_p(to), at)
        else:
            error = getattr(c, "burn_watch_" + name)(tell, at)
        assert not error, (name, error)
    return watchers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("watchers")
    parser.add_argument("--artifacts")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.01)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--say", action="store_true", help="a warning at the start")
    a = parser.parse_args()
    c = library(a.library)
    noise = random.Random(1)

    def curve(split, epoch, part):
        x = (epoch - 1 + part) / a.epochs
        loss = 0.05 + 2.2 * math.exp(-5 * x) + (0.12 * x * x if split else 0)
        return {"loss": loss * (1 + 0.08 * noise.gauss(0, 1)),
                "learning_rate": 0.01 * (1 + math.cos(math.pi * x)) / 2}

    run = Run(c, make(c, a.watchers.split(",")), a.artifacts, a.epochs, a.batches, "lenet",
              ("accuracy", "f_beta(beta=2)", "learning_rate"), True, a.classes, curve=curve, pause=a.pause,
              settings=(("optimizer", "adam"), ("lr", "0.01"), ("schedule", "cosine"), ("seed", "42"),
                        ("data", "mnist:data"), ("target", "native")), image=(1, 28, 28))

    def stop(*_):
        run.stopped = True

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    if a.say:
        run.tell("say", WARNING, b"12 images cannot be read")
    run.go()


if __name__ == "__main__":
    main()
