# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python package: models compiled and called over NumPy arrays, the cache, what wrong arrays are told. In: burncc.
With BURNCC_TEST_ALL also `pip install .` in a fresh virtual environment, which needs no network. Out: TAP."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "models/digits"
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]
try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP Python has no NumPy")
    sys.exit(0)
import burncc
from onnx_wire import graph, model, node, value_info


def image():
    pixels = np.frombuffer((DIGITS / "images/7.pgm").read_bytes()[-784:], np.uint8)
    return pixels.astype(np.float32).reshape(1, 1, 28, 28) / 255


def fails(error, text, call):
    try:
        call()
    except error as e:
        assert text in str(e), f"{e} does not say {text}"
        return
    raise AssertionError(f"does not fail: {text}")


def write_models(folder):
    ends = [value_info("a", 1, [2, 3]), value_info("w", 1, [3, 2]), value_info("b", 1, [2])]
    nodes = [node("MatMul", ["a", "w"], ["p"]), node("Add", ["p", "b"], ["y"]), node("Neg", ["y"], ["z"])]
    outs = [value_info("y", 1, [2, 2]), value_info("z", 1, [2, 2])]
    (folder / "several.onnx").write_bytes(model(graph(nodes, ends, outs)))
    split = [node("StringConcat", ["s", "t"], ["u"])]
    texts = [value_info("s", 8, [3]), value_info("t", 8, [3])]
    (folder / "texts.onnx").write_bytes(model(graph(split, texts, [value_info("u", 8, [3])]), opset=20))
    found = [node("NonZero", ["x"], ["at"])]
    (folder / "found.onnx").write_bytes(
        model(graph(found, [value_info("x", 1, [4])], [value_info("at", 7, [1, None])])))


def one_model(folder):
    digits = burncc.compile(DIGITS / "digits.onnx")
    assert digits(image()).argmax() == 7 and digits(image=image()).shape == (1, 10)
    assert digits.run({"image": image()})["logits"].dtype == np.float32
    assert digits.metadata["producer_name"] == "make_digits"
    assert digits.inputs[0] == ("image", np.float32, (1, 1, 28, 28), (1, 1, 28, 28)), digits.inputs
    fails(ValueError, "input 'image' is of [1, 28, 28], not [1, 1, 28, 28]", lambda: digits(image()[0]))
    fails(TypeError, "input 'image' is of float64, not float32", lambda: digits(image().astype(np.float64)))
    fails(TypeError, "no input is called 'picture'; there are image", lambda: digits(picture=image()))
    fails(TypeError, "no value for image", digits)


def several_ends(folder):
    several = burncc.compile(folder / "several.onnx", target="generic")
    y, z = several([[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1], [1, 1]], b=[10, 20])
    assert (y == [[14, 25], [20, 31]]).all() and (z == -y).all()
    turned = np.asfortranarray(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    assert (several(turned, [[1, 0], [0, 1], [1, 1]], [10, 20])[0] == y).all()


def any_batch_on_threads(folder):
    batch = burncc.compile(DIGITS / "digits_batch.onnx", dim={"batch": "1..8"}, threads="2:0")
    assert batch.sizes == {"batch": range(1, 9)} and batch.inputs[0].shape[0] == "batch"
    for n in (1, 5, 8):
        assert (batch(np.repeat(image(), n, 0)).argmax(1) == 7).all()
    fails(ValueError, "batch is 9, and compiled for 1..8", lambda: batch(np.repeat(image(), 9, 0)))
    answers = [None] * 4

    def work(i):
        answers[i] = batch(np.repeat(image(), i + 1, 0)).argmax(1)
    threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((a == 7).all() and len(a) == i + 1 for i, a in enumerate(answers))


def sizes_found_and_strings(folder):
    found = burncc.compile(folder / "found.onnx")
    assert found([0, 5, 0, 7]).tolist() == [[1, 3]] and found([0, 0, 0, 0]).shape == (1, 0)
    texts = burncc.compile(folder / "texts.onnx")
    assert texts(np.array(["a", "", "ß"], object), ["b", "c", "d"]).tolist() == ["ab", "c", "ßd"]


def weights_in_a_file(folder):
    apart = burncc.compile(DIGITS / "digits.onnx", embed_limit=0)
    assert apart(image()).argmax() == 7
    path, = pathlib.Path(os.environ["BURNCC_CACHE"]).glob("*/model.bin")
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    fails(burncc.RunError, "a file is not what it should be",
          lambda: burncc.Model(path.with_name("model.so"), path))
    path.write_bytes(bytes(data[:100]))
    fails(burncc.RunError, "a bad argument", lambda: burncc.Model(path.with_name("model.so"), path))


def cached(folder):
    kept = pathlib.Path(os.environ["BURNCC_CACHE"])
    before = {p: p.stat().st_mtime_ns for p in kept.glob("*/model.so")}
    burncc.compile(DIGITS / "digits.onnx")
    assert {p: p.stat().st_mtime_ns for p in kept.glob("*/model.so")} == before
    burncc.compile(DIGITS / "digits.onnx", fast_math=True)
    assert len(list(kept.glob("*/model.so"))) == len(before) + 1 and not list(kept.glob("new-*"))


def mistakes(folder):
    fails(burncc.CompileError, "none.onnx: No such file", lambda: burncc.compile(folder / "none.onnx"))
    (folder / "bad.onnx").write_bytes(b"no model")
    fails(burncc.CompileError, "bad.onnx: ", lambda: burncc.compile(folder / "bad.onnx"))
    fails(burncc.CompileError, "--precison", lambda: burncc.compile(DIGITS / "digits.onnx", precison="bf16"))


def a_command(folder):
    said = subprocess.run([sys.executable, "-m", "burncc", "--version"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert said.stdout.startswith("burncc ") and not said.returncode, said


def installed(folder):
    """`pip install .` in an environment of its own; $BURNCC spares building the compiler again."""
    venv.create(folder / "venv", with_pip=True, system_site_packages=True)
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", ROOT], check=True)
    clean = {k: v for k, v in os.environ.items() if k not in ("BURNCC", "PYTHONPATH")}
    text = ("import burncc, numpy as np, sys; assert 'venv' in burncc.__file__ and 'venv' in burncc.compiler();"
            f"m = burncc.compile({str(DIGITS / 'digits_batch.onnx')!r}, threads='2:0', dim=dict(batch='1..2'));"
            "print(m(np.zeros((2, 1, 28, 28), np.float32)).shape)")
    said = subprocess.run([python, "-c", text], capture_output=True, text=True, env=clean, cwd=folder, check=True)
    assert said.stdout == "(2, 10)\n", said
    said = subprocess.run([folder / "venv/bin/burncc", "--version"], capture_output=True, text=True, env=clean,
                          check=True)
    assert said.stdout.startswith("burncc ")


TESTS = [one_model, several_ends, any_batch_on_threads, sizes_found_and_strings, weights_in_a_file, cached, mistakes,
         a_command]


def main():
    os.environ["BURNCC"] = os.path.abspath(sys.argv[1])
    tests = TESTS + ([installed] if os.environ.get("BURNCC_TEST_ALL") else [])
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BURNCC_CACHE"] = folder + "/cache"
        write_models(pathlib.Path(folder))
        for i, test in enumerate(tests, 1):
            try:
                test(pathlib.Path(folder))
                print(f"ok {i} - {test.__name__.replace('_', ' ')}")
            except Exception as e:
                bad += 1
                print(f"not ok {i} - {test.__name__.replace('_', ' ')}")
                print(f"# {type(e).__name__}: {e}".replace("\n", "\n# "))
    print(f"1..{len(tests)}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
