# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the runners of conformance, models, architectures and small share.

In: a list of cases, each a `burncc verify` command. Out: a state for each, a comparison with a checked-in status
file, a summary. A case is a process of its own with a time limit, so that nothing it does can take the run down.
States:

  pass         exit status 0
  differs      the code ran, an output was wrong
  unsupported  a diagnostic and exit status 1..5, no wrong result
  crash        a signal, a sanitizer's report, an internal error, C that does not compile, generated code that dies
  hang         no end within the limit

With --sanitize the generated code is built with AddressSanitizer and UndefinedBehaviorSanitizer. burncc itself loads
it, so it runs with the C compiler's runtime preloaded (CC: without); buffers end where the data ends, to the byte."""
import argparse
import atexit
import collections
import concurrent.futures
import fcntl
import functools
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STATES = ("pass", "differs", "unsupported", "crash", "hang")
BROKEN = re.compile(
    r"AddressSanitizer|LeakSanitizer|runtime error:|burncc: bug at|rejects the generated code|cannot load the "
    r"compiled model"
    r"|FAIL (crashed|wrote outside|the child process|run returned)")
# a GPU that is too small for it
DEVICE_LIMIT = re.compile(r"FAIL run returned (?:-5: (?=.* has \d+ at most)|-2: (?=no room for \d+ bytes in a buffer))"
                          r"(.* (?:at most|of \d+))")
LATE = re.compile(r"FAIL no end after")
NOTE = re.compile(r" (frozen|note)=(.+)")
SANITIZE = "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
UNBUILT = re.compile(r"FAIL (not built: |the (model|recorded data) )")

Case = collections.namedtuple("Case", "name family command")
Result = collections.namedtuple("Result", "name family state reason seconds")


def arguments(description, **defaults):
    """The options that every runner has."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--burncc", default=os.environ.get("BURNCC", str(ROOT / "build" / "burncc")),
                   help="the compiler under test")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"), help="C compiler for the generated code")
    p.add_argument("--cflags", default=os.environ.get("BURNCC_CFLAGS", defaults.get("cflags", "-O1")), help="its flags")
    p.add_argument("--sanitize", action="store_true",
                   help="generated code under AddressSanitizer and UndefinedBehaviorSanitizer")
    p.add_argument("--target", default="generic", help="burncc target")
    p.add_argument("--filter", default="", help="regular expression on the names")
    p.add_argument("--jobs", type=int, default=defaults.get("jobs", 2), help="cases at once")
    p.add_argument("--timeout", type=int, default=defaults.get("timeout", 60), help="seconds per case")
    p.add_argument("--cache", default=str(ROOT / "build" / "test-data"), help="where archives are unpacked")
    p.add_argument("--check", action="store_true",
                   help="exit 1 when a case is worse than status.txt says, crashes or hangs")
    p.add_argument("--bless", action="store_true", help="rewrite status.txt from this run")
    p.add_argument("--show", default="", metavar="STATE", help="print what each case of this state said")
    p.add_argument("--long", action="store_true", help="skip unless BURNCC_TEST_ALL is set")
    p.add_argument("--tap", action="store_true", help="print the Test Anything Protocol, a line a case, for meson")
    return p


def parse(p):
    args = p.parse_args()
    if args.long and not os.environ.get("BURNCC_TEST_ALL"):
        skip_all(args, "takes long; set BURNCC_TEST_ALL=1")
    return args


def shared(name):
    """Data kept beside the repository, or where BURNCC_TEST_DATA says."""
    return pathlib.Path(os.environ.get("BURNCC_TEST_DATA", ROOT.parent / "shared")) / name


def unpack(archive, cache):
    """Unpacks once, though several runs may want it; a marker names the archive's size and time, so a new one
    replaces the old."""
    into = pathlib.Path(cache) / archive.name.split(".tar")[0]
    stat = archive.stat()
    stamp = f"{stat.st_size} {int(stat.st_mtime)}\n"
    marker = into / ".unpacked"
    into.mkdir(parents=True, exist_ok=True)
    with open(into / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists() or marker.read_text() != stamp:
            with tarfile.open(archive) as tar:
                tar.extractall(into, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(into)
            marker.write_text(stamp)
    return into


def add_python(p):
    p.add_argument("--python", default=sys.executable, help="an interpreter with numpy, onnx and onnxruntime")


def require_reference(args):
    """Skips everything where the interpreter that --python names has nothing to compare with."""
    try:
        found = subprocess.run([args.python, "-c", "import numpy, onnx, onnxruntime"],
                               capture_output=True).returncode == 0
    except OSError:
        found = False
    if not found:
        skip_all(args, f"{args.python} lacks numpy, onnx or onnxruntime; name another with --python")


def node_tests(args):
    """The folder of ONNX's node tests, unpacked; skips everything where --archives has none."""
    found = sorted(args.archives.glob("onnx-*-node.tar.xz"))
    if not found:
        skip_all(args, f"no onnx-*-node.tar.xz in {args.archives}")
    return next(unpack(found[-1], args.cache).glob("**/test_abs/model.onnx")).parent.parent


def made_cases(root, args):
    """The models that a make.py wrote as root/FAMILY/CASE, each to be verified on the data beside it."""
    cases = []
    for model in sorted(root.glob("*/*/model.onnx")):
        name = str(model.parent.relative_to(root))
        cases.append(
            Case(name,
                 name.split("/")[0],
                 [args.burncc, "verify", str(model), "--target", args.target, "--quiet"]))
    return cases


def has_blas(cc):
    """Can this C compiler build what --blas openblas asks for?"""
    call = "cblas_sgemv(CblasRowMajor, CblasNoTrans, 1, 1, 1, &x, 1, &x, 1, 0, &x, 1);"
    text = f"#include <cblas.h>\nint main(void) {{ float x = 1; {call} return 0; }}\n"
    with tempfile.TemporaryDirectory() as folder:
        command = [*shlex.split(cc), "-x", "c", "-", "-o", f"{folder}/probe", "-lopenblas"]
        return subprocess.run(command, input=text, text=True, capture_output=True).returncode == 0


def vulkan_lacks(made, versions):
    """Why programs for --target vulkan do not run: the first of the steps that failed, with what it said."""
    for what, step in made:
        if step.returncode:
            said = " ".join(step.stderr.split())[:400]
            return f"{what} (exit {step.returncode}): {said or 'said nothing'}"
    return "burncc is built without glslang" if "glslang none" in versions else ""


@functools.lru_cache
def vulkan_runtime(burncc, cc):
    """What programs for --target vulkan link, compiled once, and why they do not run, or nothing where they do."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="burn-vulkan-"))
    atexit.register(shutil.rmtree, folder)
    (folder / "probe.c").write_text(f'#include "{ROOT}/runtime/burn.h"\n#include <stdio.h>\n'
                                    "int main(void) { burn_vk *vk; const int code = burn_vk_open(&vk, NULL);\n"
                                    "if (code) fprintf(stderr, \"%s\\n\", burn_vk_last_error(NULL));\n"
                                    "return code != BURN_OK; }\n")
    made, linked = [], []

    def step(what, *command):
        if not made or not made[-1][1].returncode:
            made.append((what, subprocess.run(command, capture_output=True, text=True, errors="replace")))

    for name in ("vulkan", "vulkan_steps"):
        linked.append(str(folder / f"{name}.o"))
        step(f"runtime/{name}.c does not compile", *shlex.split(cc), "-std=gnu11", "-O2", "-c",
             ROOT / "runtime" / f"{name}.c", "-o", linked[-1])
    linked += ["-lvulkan", "-pthread"]
    step("nothing links with -lvulkan", *shlex.split(cc), folder / "probe.c", *linked, "-o", folder / "probe")
    step("there is no Vulkan device", folder / "probe")
    versions = subprocess.run([burncc, "--version", "--verbose"], capture_output=True, text=True).stdout
    return linked, vulkan_lacks(made, versions)


NO_BLAS = "OpenBLAS and its cblas.h are not here (libopenblas-dev)"


def share(cases):
    """One in BURNCC_TEST_SHARE of each family (scripts/test sets it, unless --full or --all), at least one, and of
    families that hold the same models others each."""
    one_in, families = int(os.environ.get("BURNCC_TEST_SHARE", "1")), {}
    for case in cases:
        families.setdefault(case.family, []).append(case)
    return [c for n, of_it in enumerate(families.values()) for c in of_it[n % min(one_in, len(of_it))::one_in]]


def skip_all(args, reason):
    """Nothing to test here: not a failure."""
    print(f"1..0 # SKIP {reason}" if args.tap else f"skipped: {reason}\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def first_reason(text):
    """The first diagnostic without file and node, so that equal causes read equal."""
    for line in text.splitlines():
        for mark in ("bug at ", "error: ", "FAIL", "ERROR: AddressSanitizer", "runtime error"):
            at = line.find(mark)
            if at >= 0:
                op = re.search(r"\((\w+)\): error: ", line)
                reason = line[at:].removeprefix("error: ")
                return (f"{op[1]}: " if op else "") + " ".join(reason.split())[:160]
    lines = [l for l in text.splitlines() if l.strip()]
    return " ".join(lines[-1].split())[:160] if lines else "said nothing"


def environment(args):
    """What a case runs in: the C compiler, its flags, and the sanitizers' runtime."""
    env = dict(os.environ, CC=args.cc, BURNCC_CFLAGS=args.cflags, LC_ALL="C")
    if args.sanitize:
        clang = "clang" in subprocess.run([*args.cc.split(), "--version"], capture_output=True, text=True).stdout
        names = [f"libclang_rt.asan-{os.uname().machine}.so"] if clang else ["libasan.so", "libubsan.so"]
        found = [
            subprocess.run([*args.cc.split(), f"-print-file-name={n}"], capture_output=True, text=True).stdout.strip()
            for n in names
        ]
        env["BURNCC_CFLAGS"] += f" {SANITIZE}" + (" -shared-libasan" if clang else "")
        env["CC"] = f"env -u LD_PRELOAD {args.cc}"
        env["LD_PRELOAD"] = " ".join(os.path.realpath(f) for f in found)
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    return env


def run_case(case, env, timeout):
    begin = time.monotonic()
    p = subprocess.Popen(case.command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = p.communicate(timeout=timeout)
        rc = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        rc = None
    out, err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    text = err + out
    if rc is None:
        state, reason = "hang", f"no end within {timeout} s"
    elif DEVICE_LIMIT.search(text):
        state, reason = "unsupported", DEVICE_LIMIT.search(text)[1]
    elif rc < 0 or rc > 5 or BROKEN.search(text):
        state, reason = "crash", f"status {rc}: " + first_reason(text)
    elif rc == 0:
        note = NOTE.search(out)  # frozen: a shape depends on these inputs, so they were made constants
        state, reason = "pass", note[2] if note and note[1] == "note" else f"with constant {note[2]}" if note else ""
    elif LATE.search(text):
        state, reason = "hang", first_reason(text)
    elif re.search(r"^FAIL ", UNBUILT.sub("", out), re.M):
        state, reason = "differs", first_reason(UNBUILT.sub("", out))
    else:
        state, reason = "unsupported", first_reason(err or out)
    return Result(case.name, case.family, state, reason, time.monotonic() - begin), text


def status_read(path):
    states = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                name, state, *_ = line.split(" ", 2)
                states[name] = state
    return states


def status_write(path, results, heading):
    lines = [f"# {heading}"]
    lines += [f"{r.name} {r.state} {r.reason}".rstrip() for r in sorted(results, key=lambda r: r.name)]
    path.write_text("\n".join(lines) + "\n")


def table(results):
    """One line a family, most cases first."""
    families = collections.defaultdict(collections.Counter)
    for r in results:
        families[r.family][r.state] += 1
    width = max([len(f) for f in families] + [6])
    print(f"{'family':{width}}" + "".join(f"{s:>12}" for s in STATES))
    rows = sorted(families.items(), key=lambda kv: (-sum(kv[1].values()), kv[0]))
    total = sum((c for _, c in rows), collections.Counter())
    for name, counts in rows + [("total", total)]:
        print(f"{name:{width}}" + "".join(f"{counts[s] or '-':>12}" for s in STATES))


def run_all(cases, args):
    """Results in the order in which they come; what the states of --show said is printed."""
    env = environment(args)
    with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
        futures = [pool.submit(run_case, c, env, args.timeout) for c in cases]
        for n, future in enumerate(concurrent.futures.as_completed(futures), 1):
            result, text = future.result()
            if result.state in args.show.split(","):
                print(f"---- {result.name}: {result.state}\n{text.rstrip()}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{n}/{len(cases)} ", end="", file=sys.stderr, flush=True)
            yield result


def bless(args, results, status, heading):
    """Writes status.txt; cases that a filter left out keep their lines."""
    ran = {r.name for r in results}
    kept = []
    for line in status.read_text().splitlines() if args.partial and status.exists() else []:
        name, state, reason = (line + "  ").split(" ", 2)
        if not line.startswith("#") and name not in ran:
            kept.append(Result(name, "", state, reason.strip(), 0))
    status_write(status, results + kept, heading)


def print_tap(results, known, worse):
    print(f"1..{len(results)}")
    for n, r in enumerate(sorted(results), 1):
        if r.state == "pass":
            print(f"ok {n} {r.name}")
        elif r in worse or r.name not in known:
            print(f"not ok {n} {r.name} {r.state}: {r.reason}")
        else:
            print(f"ok {n} {r.name} # SKIP {r.state}: {r.reason}")


def run(cases, args, status=None, heading=""):
    """Runs the cases, prints the summary, returns the exit status. `status`: path of the checked-in states."""
    whole = len(cases)
    cases = [c for c in cases if re.search(args.filter, c.name)] if args.filter else share(cases)
    args.partial = len(cases) < whole or getattr(args, "short", False)
    if not pathlib.Path(args.burncc).exists():
        print(f"{args.burncc} is missing: build it first, or name another with --burncc", file=sys.stderr)
        return 2
    begin = time.monotonic()
    results = list(run_all(cases, args))
    known = status_read(status) if status else {}
    worse, better = [], []
    for r in sorted(results):
        was = known.get(r.name)
        if r.state in ("crash", "hang") or (r.state != "pass" and was == "pass") or (r.state == "differs"
                                                                                     and was == "unsupported"):
            worse.append(r)
        elif was and was != "pass" and r.state == "pass":
            better.append(r)
    if args.bless and status:
        bless(args, results, status, heading)
    if args.tap:
        print_tap(results, known, worse)
        return 0
    table(results)
    for r in worse:
        print(f"worse: {r.name}: {known.get(r.name, 'new')} -> {r.state}: {r.reason}")
    if better:
        print(f"{len(better)} better than status.txt says (--bless writes it): " + " ".join(r.name for r in better[:8]))
    passed = sum(r.state == "pass" for r in results)
    skipped = sum(r.state == known.get(r.name) == "unsupported" for r in results)
    failed = len(results) - passed - skipped
    sanitized = ", sanitized" if args.sanitize else ""
    print(f"{time.monotonic() - begin:.0f} s, {args.target}, {args.cc} {args.cflags}{sanitized}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if (failed if not status else worse and args.check) else 0


def architectures(text):
    """For suites over the stripped networks of an archive: their arguments, the folder of the unpacked networks, and
    the script that draws their weights. Skips all without them."""
    p = arguments(text, cflags="", jobs=1, timeout=600)
    p.add_argument("--archive", type=pathlib.Path, default=shared("architectures") / "architectures.tar.xz")
    add_python(p)
    args = parse(p)
    fill = args.archive.parent / "fill_weights.py"
    if not args.archive.exists() or not fill.exists():
        skip_all(args, f"no {args.archive.name} and fill_weights.py in {args.archive.parent}")
    require_reference(args)
    return args, unpack(args.archive, args.cache), fill
