#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plans where memory or code is the price: targets without an operating system, --ram, --optimize size.

usage: run.py BURNCC [--cc CC]
Models of this checkout are compiled both for speed and for memory, and run here under the sanitizers in a workspace of
exactly its size: results of all plans for memory of a target are the same bits, those of the plan for speed near.
Budgets are kept, row by row where that helps, or nothing is written and what takes the memory is named. Needs the
standard library only. Prints TAP."""
import argparse, os, pathlib, random, re, struct, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent)]
from tap import run_checks      # noqa: E402

MAIN = """#include "m.h"
#include <stdio.h>
#include <stdlib.h>

static float in[%(inputs)d], out[%(outputs)d];

int main(void)
{
    unsigned seed = 1;
    m_workspace *work = malloc(sizeof *work);
    for (int i = 0; i < %(inputs)d; i++) {
        seed = seed * 1664525 + 1013904223;
        in[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    if (!work || m_run(work, in, out)) return 1;
    fwrite(out, sizeof *out, %(outputs)d, stdout);
    free(work);
    return 0;
}
"""
SAME = """#include <burncc/model.h>
MODEL(same)
{
    Tensor x = relu(conv2d(input("image", F32, 1, 3, 19, 15), "first", 16, 3, .padding = 1));
    for (int i = 0; i < 4; i++) {
        x = relu(conv2d(x, named("depth%d", i), 16, 3 + i % 2 * 2, .padding = 1 + i % 2, .groups = 16));
        x = relu(conv2d(x, named("points%d", i), 16, 1));
    }
    x = relu(conv2d(x, "window", 16, 3, .padding = 1));
    output("y", linear(flatten(conv2d(x, "last", 2, 3, .stride = 3), 1), "all", 2));
}
"""
MODELS = {
    "digits": [ROOT / "models/digits/digits.onnx"],
    "shapes": [HERE / "shapes.c"],
}
MOBILENET = [ROOT / "models/mobilenet_v2.c", "--set", "size=64", "--set", "width=0.1", "--set", "classes=5"]
THREE = """#include <burncc/model.h>
MODEL(three)
{
    Tensor x = input("x", F32, 1, 8, 16, 16);
    for (int i = 0; i < 3; i++) x = relu(conv2d(x, named("%d", i), 8, 3, .padding = 1));
    output("y", x);
}
"""
CHAIN = """#include <burncc/model.h>
MODEL(chain)
{
    Tensor x = relu(conv2d(input("image", F32, 1, 3, 19, 15), "first", 9, 3, .padding = 1));
    x = relu(conv2d(x, "depthwise", 9, 3, .padding = 1, .groups = 9));
    x = relu(conv2d(x, "points", 7, 1));
    x = relu(conv2d(x, "window", 7, 3, .padding = 1));
    x = relu(conv2d(x, "wide", 14, 1));
    x = relu(conv2d(x, "dilated", 14, 5, .padding = 4, .dilation = 2, .groups = 14));
    output("y", linear(flatten(conv2d(x, "narrow", 2, 2, .stride = 3), 1), "last", 2));
}
"""
FEW = """#include <burncc/model.h>
MODEL(few)
{
    output("y", softmax(input("x", F32, 3, 12), 1));
}
"""
# a result that the kernel behind it does not read, though both have one size
BLOCK = """#include <burncc/model.h>
MODEL(block)
{
    Tensor x = relu(conv2d(input("image", F32, 1, 3, 19, 15), "first", 8, 3, .padding = 1));
    Tensor y = relu(conv2d(x, "half", 16, 3, .padding = 1, .stride = 2));
    x = relu(add(conv2d(y, "again", 16, 3, .padding = 1), conv2d(x, "shortcut", 16, 1, .stride = 2)));
    output("y", linear(flatten(x, 1), "all", 2));
}
"""
TEXTS = {"chain": CHAIN, "same": SAME, "block": BLOCK}
WAYS = {"a target without an operating system": ["--target", "cortex-m4"],
        "--ram": ["--target", "portable", "--ram", "64M"],
        "--optimize size": ["--target", "portable", "--optimize", "size"],
        "--optimize size, any vectors": ["--optimize", "size"]}


def compiled(args, folder, model, options):
    return subprocess.run([args.burncc, *map(str, model), "-o", str(folder / "m.c"), "--embed-limit", "64M", "--force",
                           *options], capture_output=True, text=True)


def ends(header, name):
    """Floats of an argument of m_run."""
    sizes = re.search(rf"{name}\w*\[([\d*]+)\][,)]", header[header.index("int m_run("):])[1]
    return eval(sizes)


def results(args, folder, model, options):
    """The outputs, and bytes of the workspace."""
    made = compiled(args, folder, model, options)
    if made.returncode:
        raise subprocess.CalledProcessError(made.returncode, "burncc", stderr=made.stderr)
    header = (folder / "m.h").read_text()
    names = re.search(r"int m_run\(m_workspace \*ws, const float (\w+)\[[\d*]+\], float (\w+)\[", header)
    (folder / "main.c").write_text(MAIN % {"inputs": ends(header, names[1]), "outputs": ends(header, names[2])})
    flags = "-std=c99 -O1 -ffp-contract=off -Wall -Wextra -Wconversion -Werror -fsanitize=address,undefined"
    subprocess.run([args.cc, *flags.split(), "-fno-sanitize-recover=all", "-I", folder, folder / "main.c",
                    folder / "m.c", "-lm", "-o", folder / "m"], check=True, capture_output=True, text=True)
    out = subprocess.run([folder / "m"], check=True, capture_output=True).stdout
    return out, int(re.search(r"bytes\[(\d+)\]", header)[1])


def inside(args, model):
    """--io-in-workspace: the same bits, in a workspace that has room for inputs and outputs, too."""
    def check(folder):
        options = ["--target", "cortex-m4"]
        want, apart = results(args, folder, model, options)
        header = (folder / "m.h").read_text()
        names = re.search(r"int m_run\(m_workspace \*ws, const float (\w+)\[[\d*]+\], float (\w+)\[", header)
        sizes = {"inputs": ends(header, names[1]), "outputs": ends(header, names[2])}
        made = compiled(args, folder, model, [*options, "--io-in-workspace"])
        if made.returncode:
            return False, made.stderr
        places = ("memcpy(M_%s(work), in, sizeof in);\n    if (m_run(work)) return 1;\n"
                  "    memcpy(out, M_%s(work), sizeof out);")
        main = (MAIN % sizes).replace("if (!work || m_run(work, in, out)) return 1;",
                                      places % (names[1].upper(), names[2].upper()))
        (folder / "main.c").write_text("#include <string.h>\n" + main)
        flags = "-std=c99 -O1 -ffp-contract=off -Wall -Wextra -Werror -fsanitize=address,undefined"
        subprocess.run([args.cc, *flags.split(), "-fno-sanitize-recover=all", "-I", folder, folder / "main.c",
                        folder / "m.c", "-lm", "-o", folder / "m"], check=True, capture_output=True, text=True)
        got = subprocess.run([folder / "m"], check=True, capture_output=True).stdout
        bytes_ = int(re.search(r"bytes\[(\d+)\]", (folder / "m.h").read_text())[1])
        most = apart + 4 * (sizes["inputs"] + sizes["outputs"])
        return got == want and bytes_ < most, f"{bytes_} bytes of {most}"
    return check


def regions(args, model, banks, more=()):
    """--region: the same bits, each part of the workspace in memory of exactly its size and no larger than its
    region."""
    def check(folder):
        options = ["--target", "cortex-m4", *more]
        want, whole = results(args, folder, model, options)
        header = (folder / "m.h").read_text()
        names = re.search(r"int m_run\(m_workspace \*ws, const float (\w+)\[[\d*]+\], float (\w+)\[", header)
        sizes = {"inputs": ends(header, names[1]), "outputs": ends(header, names[2])}
        given = {name: size * whole // 100 for name, size in banks.items()}
        made = compiled(args, folder, model,
                        options + [f"--region={name}:{size}" for name, size in given.items()] + ["--report"])
        if made.returncode:
            return False, made.stderr
        header = (folder / "m.h").read_text()
        parts = {n: int(b) for b, n in re.findall(r"bytes\[(\d+)\];\n} m_workspace_(\w+);", header)}
        body = "".join(f"    parts.{name} = malloc(sizeof *parts.{name});\n" for name in parts)
        frees = "".join(f"    free(parts.{name});\n" for name in parts)
        main = (MAIN % sizes).replace("    m_workspace *work = malloc(sizeof *work);\n",
                                      f"    m_workspace parts, *const work = &parts;\n{body}")
        main = main.replace("    free(work);\n", frees)
        if main.count("parts.") != 3 * len(parts):
            return False, "the program is another"
        (folder / "main.c").write_text(main)
        flags = "-std=c99 -O1 -ffp-contract=off -Wall -Wextra -Werror -fsanitize=address,undefined"
        subprocess.run([args.cc, *flags.split(), "-fno-sanitize-recover=all", "-I", folder, folder / "main.c",
                        folder / "m.c", "-lm", "-o", folder / "m"], check=True, capture_output=True, text=True)
        got = subprocess.run([folder / "m"], check=True, capture_output=True).stdout
        said = {n: int(b) for n, b in re.findall(r"region (\w+) \d+ bytes: workspace (\d+),", made.stdout)}
        fits = all(parts[name] <= given[name] for name in parts) and said == {**dict.fromkeys(given, 0), **parts}
        return got == want and fits and len(parts) > 1, f"{parts} of {whole}"
    return check


def regions_refused(args):
    """What is too small is named; what makes no sense is told."""
    def check(folder):
        cases = [
            (["--region", "a:3K", "--region", "b:3K"], 3, r"--region: b has 3072 bytes, not the \d+ .*of k0_conv1"),
            (["--region", "a:64K", "--region", "w:8K=weights"], 3, r"no region has room for 31372 bytes .* of k4_fc"),
            (["--region", "a:64K", "--region", "a:64K"], 2, "--region a is given twice"),
            (["--region", "a:64K", "--region", "b:1K=code", "--region", "c:1K=code"], 2, "code lies in one region"),
            (["--region", "a"], 2, "--region wants a name"),
            (["--region", "a:64K=stack"], 2, "--region wants a name"),
            (["--region", "a:64K", "--target", "generic"], 2, "--region is for --target portable"),
        ]
        for options, code, text in cases:
            made = compiled(args, folder, MODELS["digits"], ["--target", "cortex-m4", *options])
            if made.returncode != code or not re.search(text, made.stderr, re.S) or (folder / "m.c").exists():
                return False, f"{options}: {made.returncode} {made.stderr}"
        return True, f"{len(cases)} cases"
    return check


def few_terms(args):
    """Sums of a few terms are loops where code is to be small, and come to the same bits."""
    def check(folder):
        (folder / "few.c").write_text(FEW)
        seen = []
        for options in ([], ["--optimize", "size"]):
            out, _ = results(args, folder, [folder / "few.c"], ["--target", "portable", *options])
            seen.append((out, (folder / "m.c").read_text().count("burn_exp_f32(")))
        (want, many), (got, few) = seen
        return want == got and few + 10 < many, f"{few} calls of a function where {many} were"
    return check


def no_places(args):
    def check(folder):
        made = compiled(args, folder, MODELS["digits"], ["--target", "generic", "--io-in-workspace"])
        return made.returncode == 2 and "--io-in-workspace is for" in made.stderr, made.stderr
    return check


def near(a, b):
    x, y = (struct.unpack(f"{len(v) // 4}f", v) for v in (a, b))
    return len(x) == len(y) and all(abs(p - q) <= 2e-5 * max(1, max(map(abs, y))) for p, q in zip(x, y))


def same_bits(args, model):
    def check(folder):
        speed, takes = results(args, folder, model, ["--target", "portable"])
        seen, said = None, []
        for way, options in WAYS.items():
            out, bytes_ = results(args, folder, model, options)
            fused = "cortex-m4" in options              # asks for multiply-adds of one rounding
            seen = seen if fused else seen or out
            said.append(str(bytes_))
            if (out != seen and not fused) or not near(out, speed):
                return False, f"{way}: other results"
        return True, f"workspaces of {', '.join(said)} bytes, for speed {takes}"
    return check


def quantized(args, folder, name, *options):
    """The model on integers, its ranges from noise."""
    described, size = [*MODELS["shapes"], "--set", "batch=1", "--set", "classes=2"], (19, 15)
    if name == "mobilenet":
        described, size = [*MOBILENET[:-1], "classes=2"], (64, 64)
    if name in TEXTS:
        described = [folder / f"{name}.c"]
        described[0].write_text(TEXTS[name])
    for label in range(2):
        where = folder / "noise" / str(label)
        where.mkdir(parents=True, exist_ok=True)
        noise = random.Random(label).randbytes(3 * size[0] * size[1])
        (where / "a.ppm").write_bytes(b"P6 %d %d 255\n" % (size[1], size[0]) + noise)
    subprocess.run([args.burncc, *map(str, described), "-o", str(folder / "plain.onnx")], check=True,
                   capture_output=True)
    data = f"images:{folder / 'noise'},size={size[0]}x{size[1]}"
    subprocess.run([args.burncc, "quantize", folder / "plain.onnx", "--data", data, "-o", str(folder / "q.onnx"),
                    *options], check=True, capture_output=True, text=True)
    return [folder / "q.onnx"]


def integers(args, name, *options):
    """Results of integers lie over their inputs, too: the bits of a plan for speed, where none does."""
    def check(folder):
        model = quantized(args, folder, name, *options)
        want, apart = results(args, folder, model, ["--target", "generic"])
        got, over = results(args, folder, model, ["--target", "cortex-m4"])
        plan = subprocess.run([args.burncc, *model, "--target", "cortex-m4", "-o", folder / "m.c", "-f", "--dump",
                               "schedule"], check=True, capture_output=True, text=True).stdout
        bare = re.search(r"\] = acc ", plan)            # sums that are not bytes again
        return got == want and over < apart and not bare, f"{over} bytes of {apart}{', sums are stored' * bool(bare)}"
    return check


def both_ways(args, *options):
    """Of layers of one size every second one goes from its end to its beginning: no more than a result, the rows that
    a window reaches back and what is beside them, and the bits of a plan without. options: of quantized(), or none."""
    def check(folder):
        (folder / "same.c").write_text(SAME)
        model = quantized(args, folder, "same", *options[1:]) if options else [folder / "same.c"]
        one_way = ["--target", "generic"] if options else ["--target", "portable", "--optimize", "size"]
        want, _ = results(args, folder, model, one_way)
        got, bytes_ = results(args, folder, model, ["--target", "portable", "--ram", "64M"] if not options else
                              ["--target", "cortex-m4"])
        text = (folder / "m.c").read_text()
        size = (2 if "int16" in options else 1 if options else 4) * 16 * 15
        ways = "row >= first_row" in text or "y >= 0" in text
        return got == want and ways and bytes_ <= (19 + 4) * size + 256, f"{bytes_} bytes, a result has {19 * size}"
    return check


def over_inputs(args):
    """Results lie over the inputs of their kernels: less than an input and its result together."""
    def check(folder):
        (folder / "three.c").write_text(THREE)
        _, bytes_ = results(args, folder, [folder / "three.c"], WAYS["--ram"])
        return bytes_ < 3 * 16 * 16 * 8 * 4 // 2, f"{bytes_} bytes of two times 8192"
    return check


def budgets(args, model, shares, met=False):
    """At shares in percent of the plan: the same bits in what was asked for, or what is said to be the least
    will do, unless they are to be met. model: how it is given to burncc, or the arguments of quantized()."""
    def check(folder):
        options = ["--target", "cortex-m4", "--ram"]
        given = quantized(args, folder, *model) if isinstance(model, tuple) else model
        want, plan = results(args, folder, given, [*options, "64M"])
        said = []
        for percent in shares:
            ram = plan * percent // 100
            made = compiled(args, folder, given, [*options, str(ram)])
            least = re.search(r"needs a workspace of (\d+) bytes", made.stderr)
            if made.returncode and (met or not (made.returncode == 3 and least)):
                return False, made.stderr
            out, bytes_ = results(args, folder, given, [*options, least[1] if least else str(ram)])
            said.append(f"{percent} %: {bytes_}{' at least' if least else ''}")
            if out != want or bytes_ > (int(least[1]) if least else ram):
                return False, f"{percent} %: {'other results' if out != want else f'{bytes_} bytes'}"
        return True, f"of {plan} bytes {', '.join(said)}"
    return check


def refused(args):
    def check(folder):
        made = compiled(args, folder, MODELS["digits"], ["--target", "cortex-m4", "--ram", "4K"])
        says = re.search(r"--ram: m needs a workspace of (\d+) bytes, not 4096\n.* of k0_conv1", made.stderr, re.S)
        if made.returncode != 3 or not says or (folder / "m.c").exists():
            return False, made.stderr
        least = says[1]
        exact = compiled(args, folder, MODELS["digits"], ["--target", "cortex-m4", "--ram", least])
        less = compiled(args, folder, MODELS["digits"], ["--target", "cortex-m4", "--ram", str(int(least) - 1)])
        return exact.returncode == 0 and less.returncode == 3, f"{least} bytes will do, one less will not"
    return check


def constants(args):
    def check(folder):
        options = ["--target", "portable", "--embed-limit", "64M", "--flash"]
        made = compiled(args, folder, MODELS["digits"], [*options, "1K"])
        says = re.search(r"--flash: the constants of m take (\d+) bytes, not 1024\n.* of k4_fc", made.stderr, re.S)
        if made.returncode != 3 or not says or (folder / "m.c").exists():
            return False, made.stderr
        exact = compiled(args, folder, MODELS["digits"], [*options, says[1]])
        arrays = re.findall(r"static const (?:float|int\w*) m_run_w\d+\[(\d+)\]", (folder / "m.c").read_text())
        less = compiled(args, folder, MODELS["digits"], [*options, str(int(says[1]) - 1)])
        floats = 4 * sum(map(int, arrays))
        return (exact.returncode, less.returncode, floats) == (0, 3, int(says[1])), f"{says[1]} bytes, arrays {floats}"
    return check


def main():
    p = argparse.ArgumentParser()
    p.add_argument("burncc")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    args = p.parse_args()
    checks = [(name, same_bits(args, model)) for name, model in MODELS.items()]
    checks += [(f"{name}, ends in the workspace", inside(args, model)) for name, model in MODELS.items()]
    checks.append(("regions", regions(args, MODELS["digits"], {"fast": 40, "slow": 90})))
    checks.append(("three regions", regions(args, MODELS["shapes"], {"a": 30, "b": 40, "c": 70})))
    checks.append(("regions and strips", regions(args, MOBILENET, {"a": 20, "b": 35})))
    checks.append(("regions that are too small", regions_refused(args)))
    checks.append(("sums of a few terms", few_terms(args)))
    checks.append(("ends in the workspace of other targets", no_places(args)))
    checks.append(("shapes within budgets", budgets(args, MODELS["shapes"], (75, 25))))
    checks.append(("residual blocks within a budget", budgets(args, MOBILENET, (50,))))
    checks.append(("pooling within budgets", budgets(args, MODELS["digits"], (75, 50, 25))))
    for what, options in (("bytes", ()), ("16 bits", ("--activations", "int16"))):
        for name in "chain", "block", "mobilenet":
            checks.append((f"{what} within budgets, {name}", budgets(args, (name, *options), (75, 50, 25))))
    # a block whose shortcut and first layer read one value takes 86 % where strips are chains
    checks.append(("branches go in strips together", budgets(args, ("block",), (75,), met=True)))
    checks.append(("results over inputs", over_inputs(args)))
    for what, options in (("bytes", ()), ("16 bits", ("--activations", "int16"))):
        checks.append((f"{what} both ways", both_ways(args, "integers", *options)))
        checks.append((f"results of {what} over inputs", integers(args, "chain", *options)))
        checks.append((f"results of {what} over inputs, every shape", integers(args, "shapes", *options)))
    checks.append(("floats both ways", both_ways(args)))
    checks.append(("a budget that is passed", refused(args)))
    checks.append(("constants past a budget", constants(args)))
    return run_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
