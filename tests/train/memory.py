#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory of training: NAME_train_step does what gradients and update do, bit by bit, and needs no gradients' struct;
and both do so in the least workspace that --train-memory gets them to. Loops run again without being asked for.

usage: memory.py BURNCC [--case NAME]... [--cc CC] [--target T]
The models are those of owned.py and four that are described in C. A program that is written here runs both ways for
three steps and compares loss, parameters and state. Needs the standard library only. Prints TAP."""
import argparse, json, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import owned        # noqa: E402

MAIN = """#include "m.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static m_gradients_workspace work;
static m_train_step_workspace both;
static m_params params, grads, one;
static m_state state, own;
%(arrays)s
static double constants[%(constants)d / 8 + 8];

int main(void)
{
    float loss[1], loss_of_step[1];
    FILE *file = fopen("m.bin", "rb");
    const void *weights = (const void *)(((uintptr_t)constants + 63) / 64 * 64);
    if (file && (!fread((void *)(uintptr_t)weights, 1, %(constants)d + 1, file) || fclose(file))) return 6;
    if (%(init)s) return 5;
    memcpy(&one, &params, sizeof one);
    for (int step = 1; step <= 3; step++) {
%(fill)s
        if (m_gradients(%(gradients)s)) return 2;
        if (m_update(%(update)s)) return 3;
        if (m_train_step(%(train_step)s)) return 4;
        if (memcmp(loss, loss_of_step, sizeof loss)) return puts("loss differs"), 1;
        if (memcmp(&state, &own, sizeof own)) return puts("state differs"), 1;
        if (memcmp(&params, &one, %(params)s)) return puts("parameters differ"), 1;
    }
    unsigned long long sum = 0;
    for (size_t i = 0; i < %(params)s; i++) sum = sum * 1099511628211u + ((const unsigned char *)&params)[i];
    printf("%%llx\\n", sum);
    int step = 4;
    (void)step;
%(spoil)s
    if (m_gradients(%(gradients)s) != -9) return 0; /* BURN_ENAN */
    if (m_train_step(%(train_step)s) != -9) return puts("a loss that is no number passes"), 1;
    if (memcmp(&state, &own, sizeof own)) return puts("state changes without a loss"), 1;
    if (memcmp(&params, &one, %(params)s)) return puts("parameters change without a loss"), 1;
    return 0;
}
"""
# of 64 layers: the run functions come in stretches, with the check of the loss in one of them
DESCRIBED = {"mlp": "--set layers=64 --set width=32 --set features=16 --dim batch=64".split(),
             "lenet": "--dim batch=8".split(),
             "mobilenet_v2": "--set width=0.35 --set size=96 --set classes=10 --frozen-norm --no-dropout "
                             r"--train-only features\.1[67]\.,classifier".split(),
             "bert": "--set layers=6 --set width=64 --set heads=2 --set inner=256 --set vocabulary=50 "
                     "--set positions=64 --dim batch=4 --dim length=32".split(),
             "gpt2": "--set layers=1 --set width=32 --set heads=2 --set vocabulary=2000 --set positions=16 "
                     "--dim batch=2 --dim length=16".split()}
ENOUGH = {"mlp": 60000, "mobilenet_v2": 256 << 10, "bert": 480128,
          # logits of 256,000 bytes, while the table's gradient, as many again, is never there as a whole
          "gpt2": 360000}   # bytes that have to do
# one value made again takes more with it than the search has room for
CROWDED = ("--set layers=12 --set width=64 --set heads=2 --set vocabulary=4096 --set positions=64 --dim batch=2 "
           "--dim length=64 --optimizer adam --train-memory 4M").split()
SPARED = {"bert": 0.95}     # without a budget: this part of what a budget that keeps everything takes has to do
START, APART = "(m_params_init(&params), 0)", 'm_params_load(&params, "m.safetensors")'
NUMBERS = {"learning_rate": "0.01f", "beta1": "0.9f", "beta2": "0.999f", "epsilon": "1e-8f", "weight_decay": "0.01f",
           "momentum": "0.9f", "alpha": "0.99f", "step": "step"}


def parameters(header, function):
    """What the function is given: type, name, and the elements of arrays."""
    text = re.search(rf"^int {function}\((.*?)\);", header, re.M | re.S).group(1)
    for one in re.split(r",\s*", text):
        yield re.match(r"(?:const )?(\w+) ?(\*?)(\w+)(?:\[([^\]]*)\])?$", one).groups()


def arguments(header, function, own):
    structs = {"ws": "&both" if function == "m_train_step" else "&work", "grads": "&grads",
               "params": "&one" if own else "&params", "state": "&own" if own else "&state",
               "loss": "loss_of_step" if own else "loss"}
    given = []
    for kind, pointer, name, elements in parameters(header, function):
        if name == "weights":
            given.append(name)
        elif name in structs:
            given.append(structs[name])
        elif elements:
            given.append("in_" + name)
        else:
            given.append("(float)step" if name == "step" and kind == "float" else NUMBERS[name])
    return ", ".join(given)


def inputs(header):
    """Arrays of the data, what fills them anew for each step, and what makes a loss that is no number."""
    arrays, fill, spoil = [], [], []
    for kind, _, name, elements in parameters(header, "m_gradients"):
        if not elements or name == "loss":
            continue
        count = f"(int)(sizeof in_{name} / sizeof *in_{name})"
        arrays.append(f"static {kind} in_{name}[{elements}];")
        if kind == "float":
            spoil.append(f"    for (int i = 0; i < {count}; i++) in_{name}[i] = NAN;")
        value = f"(float)((i * 7919 + step * 104729) % 2003) / 1001.5f - 1.0f" if kind == "float" else "(i + step) % 2"
        fill.append(f"        for (int i = 0; i < {count}; i++) in_{name}[i] = {value};")
    return "\n".join(arrays), "\n".join(fill), "\n".join(spoil)


def program(header, constants):
    arrays, fill, spoil = inputs(header)
    # the count of batches is no parameter
    count = re.search(r"float (\w+)\[1\];[^\n]*\n} m_params;", header)
    batches = count and "batches" in count.group(1)
    return MAIN % {
        "constants": constants, "init": START if "m_params_init" in header else APART,
        "arrays": arrays, "fill": fill, "spoil": spoil, "gradients": arguments(header, "m_gradients", False),
        "update": arguments(header, "m_update", False), "train_step": arguments(header, "m_train_step", True),
        "params": f"offsetof(m_params, {count.group(1)})" if batches else "sizeof params"}


def compiled(args, tmp, model, options):
    """What burncc says where it fails."""
    command = [args.burncc, model, "--train", "--quiet", "--target", args.target, *options, "-o", f"{tmp}/m.c"]
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stderr or f"exit {done.returncode}") if done.returncode else ""


def run(args, tmp):
    c = os.path.join(tmp, "m.c")
    constants = os.path.join(tmp, "m.bin")
    main_c = program(open(f"{tmp}/m.h").read(), os.path.getsize(constants) if os.path.exists(constants) else 0)
    open(os.path.join(tmp, "main.c"), "w").write(main_c)
    flags = "-std=c99 -O2 -Wall -Wextra -Wconversion -Wshadow -Werror -pedantic".split()
    subprocess.run([args.cc, *flags, "-I", tmp, os.path.join(tmp, "main.c"), c, "-lm", "-o", os.path.join(tmp, "both")],
                   check=True)
    done = subprocess.run([os.path.join(tmp, "both")], capture_output=True, text=True, cwd=tmp)
    return done.returncode == 0, done.stdout.strip() or f"exit {done.returncode}"


def workspaces(tmp):
    text = open(os.path.join(tmp, "m.h")).read()
    return max(int(n) for n in re.findall(r"bytes\[(\d+)\];\n} m_(?:gradients|train_step)_workspace;", text))


def least(args, tmp, model, options):
    """Compiled for the least memory that burncc says will do: None, or what is wrong."""
    budget = 1
    for _ in range(8):              # smaller kernels for less memory need less, so it may be more than it says
        says = compiled(args, tmp, model, [*options, "--train-memory", str(budget)])
        if not says:
            return None if workspaces(tmp) <= budget + 63 else f"{workspaces(tmp)} bytes, not {budget}"
        needs = re.search(r"needs a workspace of (\d+) bytes", says)
        if not needs or int(needs.group(1)) <= budget:
            return says
        budget = int(needs.group(1))
    return "what it says does not do"


def compare(args, tmp, model, options, enough):
    """Unlimited, then in little memory: what is wrong, or None; how much less."""
    wrong = compiled(args, tmp, model, options)
    if wrong:
        return wrong, 0
    if "layers=64" in options and "m_train_step_stretch2(" not in open(os.path.join(tmp, "m.c")).read():
        return "no stretches", 0
    before, (ok, free) = workspaces(tmp), run(args, tmp)
    wrong = free if not ok else least(args, tmp, model, options)
    if wrong:
        return wrong, 0
    ok, little = run(args, tmp)
    if enough and workspaces(tmp) > enough:
        return f"{workspaces(tmp)} bytes, not {enough}", 0
    return (None if little == free else f"{little} in little memory, not {free}"), 1 - workspaces(tmp) / before


def one_example(args, tmp):
    """One example at a time on a microcontroller: the gradient of the digits' last layer, an outer product, is nowhere
    as a whole, and all that learning takes is within 64 KB: what is wrong, or None; bytes."""
    digits = os.path.join(HERE, "..", "..", "models", "digits", "digits.onnx")
    wrong = compiled(args, tmp, digits, ["--train-last", "1", "--optimizer", "sgd", "--target", "cortex-m4"])
    if wrong:
        return wrong, 0
    header = open(os.path.join(tmp, "m.h")).read()
    struct = re.search(r"typedef struct m_params {\n(.*?)\n}", header, re.S).group(1)
    bytes_ = 4 * sum(int(n) for n in re.findall(r"float \w+\[(\d+)\];", struct)) + workspaces(tmp)
    ok, said = run(args, tmp)
    return None if ok and bytes_ <= 64 << 10 else f"{said}, {bytes_} bytes", bytes_


def spared(args, tmp, model, options, part):
    """What costs little is computed again without being asked for: what is wrong, or None."""
    wrong = compiled(args, tmp, model, options)
    if wrong:
        return wrong
    little, (_, with_little) = workspaces(tmp), run(args, tmp)
    wrong = compiled(args, tmp, model, [*options, "--train-memory", "1G"])
    if wrong:
        return wrong
    ok, with_all = run(args, tmp)
    if not ok or with_little != with_all:
        return f"{with_little}, but {with_all} where all is kept"
    return None if little <= part * workspaces(tmp) else f"{little} bytes, and {workspaces(tmp)} where all is kept"


def cases(args, folder):
    for name in owned.write_all(folder):
        where = os.path.join(folder, name)
        case = json.load(open(os.path.join(where, "case.json")))
        if not args.case or name in args.case:
            yield name, os.path.join(where, "model.onnx"), ["--loss", case["loss"], *case.get("options", [])]
    models = os.path.join(HERE, "..", "..", "models")
    for name, options in DESCRIBED.items():
        if not args.case or name in args.case:
            yield name + ".c", os.path.join(models, name + ".c"), options


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("burncc"), p.add_argument("--case", action="append")
    p.add_argument("--cc", default=os.environ.get("CC", "cc")), p.add_argument("--target", default="generic")
    args = p.parse_args()
    count = bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name, model, options in cases(args, tmp):
            for optimizer in ("sgd", "adam"):
                count += 1
                wrong, less = compare(args, tmp, model, [*options, "--optimizer", optimizer],
                                      ENOUGH.get(name.split(".")[0]))
                bad += wrong is not None
                line = f"{count} - {name} {optimizer}: one step is both, and in {100 * less:.0f} % less memory"
                print(f"not ok {line}: {wrong}" if wrong else f"ok {line}", flush=True)
        for name, part in SPARED.items():
            if args.case and name not in args.case:
                continue
            count += 1
            model = os.path.join(HERE, "..", "..", "models", name + ".c")
            wrong = spared(args, tmp, model, [*DESCRIBED[name], "--optimizer", "adam"], part)
            bad += wrong is not None
            line = f"{count} - {name}: what costs little is computed again"
            print(f"not ok {line}: {wrong}" if wrong else f"ok {line}", flush=True)
        if not args.case or "crowded" in args.case:
            count += 1
            wrong = compiled(args, tmp, os.path.join(HERE, "..", "..", "models", "gpt2.c"), CROWDED)
            bad += wrong != ""
            line = f"{count} - crowded: no value takes more with it than there is room for"
            print(f"not ok {line}: {wrong}" if wrong else f"ok {line}", flush=True)
        if not args.case or "one_example" in args.case:
            count += 1
            wrong, bytes_ = one_example(args, tmp)
            bad += wrong is not None
            line = f"{count} - one example: one step is both, in {bytes_} bytes"
            print(f"not ok {line}: {wrong}" if wrong else f"ok {line}", flush=True)
    print(f"1..{count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
