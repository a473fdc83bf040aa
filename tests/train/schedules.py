#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""NAME_learning_rate of --train --schedule, 50 steps of each schedule, against formulas in double precision and
recorded PyTorch runs.

usage: schedules.py BURNCC [RECORDED]
RECORDED is a JSON file of rates by schedule; without it the formulas here are the only reference. Prints TAP."""
import json, math, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import owned        # noqa: E402

STEPS, BOUND = 50, 2e-6
SCHEDULES = {       # the arguments after step, and the rate of step s
    "constant": ([0.02], lambda s: 0.02),
    "step": ([0.1, 10, 0.5], lambda s: 0.1 * 0.5 ** (s // 10)),
    "linear": ([0.1, 0.1, 1, 20], lambda s: 0.1 * (0.1 + 0.9 * min(s, 20) / 20)),
    "exponential": ([0.1, 0.95], lambda s: 0.1 * 0.95 ** s),
    "cosine": ([0.1, 0, 50], lambda s: 0.05 * (1 + math.cos(math.pi * s / 50))),
    "noam": ([0.1, 64, 10], lambda s: 0.1 * 64 ** -0.5 * min((s + 1) ** -0.5, (s + 1) * 10 ** -1.5)),
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
    print(f"1..{len(SCHEDULES)}")
    return 1 if bad else 0


sys.exit(main())
