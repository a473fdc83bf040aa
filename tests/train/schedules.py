#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""NAME_learning_rate of --train --schedule, 50 steps of each schedule, against formulas in double precision and
recorded PyTorch runs; combinations of them.

usage: schedules.py BURNCC [RECORDED]
RECORDED is a JSON file of rates by schedule; without it the formulas here are the only reference. Prints TAP."""
import json, math, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import owned        # noqa: E402

STEPS, BOUND = 50, 1e-6


def half_wave(start, end, share):
    return end + (start - end) * 0.5 * (1 + math.cos(math.pi * share))


def line(start, end, share):
    return start + (end - start) * share


def one_cycle(s, between=half_wave, rate=0.1, steps=50, warmup=0.3, start=25, end=1e4):
    top, low = warmup * steps - 1, rate / start
    if s <= top:
        return between(low, rate, s / top)
    return between(rate, low / end, (min(s, steps - 1) - top) / (steps - 1 - top))


def cosine(s, rate=0.1, steps=50):
    return half_wave(rate, 0, min(s / steps, 1))


def linear(s, rate=0.1, steps=20):
    return rate * line(0.1, 1, min(s / steps, 1))


SCHEDULES = {       # the arguments after step, and the rate of step s
    "constant": ([0.02], lambda s: 0.02),
    "step": ([0.1, 10, 0.5], lambda s: 0.1 * 0.5 ** (s // 10)),
    "linear": ([0.1, 0.1, 1, 20], linear),
    "exponential": ([0.1, 0.95], lambda s: 0.1 * 0.95 ** s),
    "cosine": ([0.1, 0, 50], cosine),
    "noam": ([0.1, 64, 10], lambda s: 0.1 * 64 ** -0.5 * min((s + 1) ** -0.5, (s + 1) * 10 ** -1.5)),
    "one_cycle": ([0.1, 50, 0.3, 25, 1e4], one_cycle),
    "one_cycle(steps=40, warmup=0.25)": ([0.2, 10, 100],
                                         lambda s: one_cycle(s, half_wave, 0.2, 40, 0.25, 10, 100)),
    "one_cycle_linear": ([0.1, 50, 0.3, 25, 1e4], lambda s: one_cycle(s, line)),
    "cosine(learning_rate=0.1, steps=50)": ([0], cosine),
    "product(linear, exponential(gamma=0.95))": ([0.1, 0.1, 1, 20], lambda s: linear(s) * 0.95 ** s),
    "product(constant(learning_rate=0.5), constant(learning_rate=0.25))": ([], lambda s: 0.125),
    "mean(cosine, linear, constant)": ([0.1, 0, 50, 0.1, 1, 20], lambda s: (cosine(s) + linear(s) + 0.1) / 3),
    "sum(cosine, exponential(learning_rate=0.01))": ([0.1, 0, 50, 0.95], lambda s: cosine(s) + 0.01 * 0.95 ** s),
    "sequential(linear(start=0.1, end=1, steps=10), cosine(least=0); 10)":
        ([0.1, 40], lambda s: linear(s, 0.1, 10) if s < 10 else cosine(s - 10, 0.1, 40)),
    "sequential(constant(learning_rate=0.3), product(linear, step), cosine, cosine; 7, 20, 41)":
        ([0.1, 0.1, 1, 20, 4, 0.5, 0, 50, 0.05, 10], lambda s:
         0.3 if s < 7 else linear(s - 7) * 0.5 ** ((s - 7) // 4) if s < 20 else
         cosine(s - 20) if s < 41 else 0.05 + cosine(s - 41, 0.05, 10)),
}
REFUSED = {
    "cosinus": "no schedule is called 'cosinus'",
    "cosine(gamma=1)": "has the parameters learning_rate=0.1 least=0 steps=50",
    "cosine(steps=many)": "no number: many",
    "cosine(0.1)": "has the parameters",
    "cosine(steps=5": "cannot be read",
    "sequential(cosine, linear)": "wants a step between",
    "sequential(cosine, linear, linear; 9, 8)": "milestones grow: 8",
    "mean(cosine; 8)": "wants schedules alone in mean",
    "product()": "wants schedules alone in product",
}
MAIN = """#include "m.h"
#include <stdio.h>
int main(void) {
    for (int i = 0; i < %d; i++) {
        float rate[1];
        if (m_learning_rate((float)i%s, rate)) return 1;
        printf("%%.9g\\n", (double)rate[0]);
    }
    return 0;
}
"""


def rates(burncc, name, arguments):
    with tempfile.TemporaryDirectory() as tmp:
        owned.write(owned.Mlp(), tmp)
        c, main, program = (os.path.join(tmp, f) for f in ("m.c", "main.c", "m"))
        model = os.path.join(tmp, "model.onnx")
        subprocess.run([burncc, "-q", model, "--train", "--schedule", name, "-o", c], check=True)
        open(main, "w").write(MAIN % (STEPS, "".join(f", {float(v)}f" for v in arguments)))
        subprocess.run([os.environ.get("CC", "cc"), "-std=c99", "-O1", main, c, "-lm", "-o", program], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        return [float(v) for v in out.split()]


def refused(burncc, text, reason):
    with tempfile.TemporaryDirectory() as tmp:
        owned.write(owned.Mlp(), tmp)
        done = subprocess.run([burncc, "-q", os.path.join(tmp, "model.onnx"), "--train", "--schedule", text, "-o",
                               os.path.join(tmp, "m.c")], capture_output=True, text=True)
        return done.returncode == 2 and reason in done.stderr, f"exit {done.returncode}, {done.stderr.strip()}"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    recorded = json.load(open(sys.argv[2])) if len(sys.argv) > 2 and os.path.isfile(sys.argv[2]) else {}
    bad = 0
    for i, (name, (arguments, formula)) in enumerate(SCHEDULES.items(), 1):
        references = [[formula(s) for s in range(STEPS)]] + ([recorded[name]] if name in recorded else [])
        try:
            got = rates(sys.argv[1], name, arguments)
            worst = max(abs(g - w) / max(want) for want in references for g, w in zip(got, want, strict=True))
            text, ok = f"max_rel={worst:.2e} over {len(references)} references", worst <= BOUND
        except (subprocess.CalledProcessError, ValueError) as e:
            text, ok = f"{type(e).__name__}: {e}", False
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {i} - {name}: {text}", flush=True)
    for i, (name, reason) in enumerate(REFUSED.items(), len(SCHEDULES) + 1):
        ok, text = refused(sys.argv[1], name, reason)
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {i} - {name} is refused: {text}", flush=True)
    print(f"1..{len(SCHEDULES) + len(REFUSED)}")
    return 1 if bad else 0


sys.exit(main())
