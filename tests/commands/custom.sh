#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Operations that a description brings along: kernels in C and GLSL, formulas and gradients, beside the same made of the
# language's own operations; and what mistakes in them say.
source "$(dirname "$0")/tap.sh"

# Two custom operations with two results, sizes, numbers, shares and nested gradients; with own=0 the same without them.
cat >own.c <<'END'
#include <burncc/model.h>

KERNEL(recur_c, (const float *a, const float *b, float *h, float *last, int64_t n, float scale, int64_t from,
    int64_t to),
{
    for (int64_t row = from; row < to; row++) {     // "a } in a string"
        float state = 0;
        for (int64_t t = row * n; t < (row + 1) * n; t++) h[t] = state = a[t] * state + scale * b[t];
        last[row] = state;
    }
})

GLSL(recur_glsl, (a, b, h, last, n, scale),
{
    float state = 0.0;
    for (int t = point * n; t < (point + 1) * n; t++) h[t] = state = a[t] * state + scale * b[t];
    last[point] = state;
})

static void recur_shape(const Tensor *x) { result_like(x[0]); result(F32, dim(x[0], 0)); }
static void recur_gradient(const Tensor *x, const Tensor *y, const Tensor *dy, Tensor *dx);

static Tensor recur(Tensor a, Tensor b, double scale, Tensor *y)
{
    return custom("recur", (a, b), .kernel = recur_c, .glsl = recur_glsl, .shape = recur_shape,
        .gradient = recur_gradient, .sizes = SIZES(dim(a, 1)), .numbers = NUMBERS(scale), .points = dim(a, 0),
        .results = y);
}

static void recur_gradient(const Tensor *x, const Tensor *y, const Tensor *dy, Tensor *dx)
{
    Tensor at_end = pad(unsqueeze(dy[1], 1), .pads = { dim(x[0], 1) - 1, 0 }), unused[2];
    Tensor back = flip(recur(roll(flip(x[0], 1), 1, 1), flip(add(dy[0], at_end), 1), 1, unused), 1);
    dx[0] = mul(back, pad(y[0], .pads = { 1, -1 }));
    dx[1] = mul(back, 0.5);
}

static Tensor recur_plain(Tensor a, Tensor b, double scale, Tensor *y)
{
    Tensor h[5];
    for (int t = 0; t < 5; t++) {
        h[t] = mul(select(b, 1, t), scale);
        if (t) h[t] = add(h[t], mul(select(a, 1, t), h[t - 1]));
    }
    y[1] = h[4];
    return y[0] = stack_list(1, 5, h);
}

static void bent_formula(const Tensor *x, Tensor *y) { y[0] = mul(x[0], sigmoid(mul(x[0], 1.5))); }
static void steep_gradient(const Tensor *x, const Tensor *y, const Tensor *dy, Tensor *dx)
{
    (void)y;
    dx[0] = mul(dy[0], where(gt(x[0], 0), 1, 0.25));
}
static void steep_formula(const Tensor *x, Tensor *y) { y[0] = maximum(x[0], mul(x[0], 0.25)); }

MODEL(own)
{
    Tensor y[2], x = input("x", F32, symbol("batch"), 5), h = linear(x, "a", 5), own = NULL;
    if (config("own", 1)) {
        h = custom("bent", (h), .formula = bent_formula);
        h = custom("steep", (h), .formula = steep_formula, .gradient = steep_gradient);
        own = recur(elementwise("1 / (1 + exp(-y * x))", x, 0.5), h, 0.5, y);
    } else {
        h = leaky_relu(mul(h, sigmoid(mul(h, 1.5))), 0.25);
        own = recur_plain(sigmoid(mul(x, 0.5)), h, 0.5, y);
    }
    output("y", add(linear(own, "b", 3), unsqueeze(y[1], 1)));
}
END

cat >same.py <<'END'
import math, struct, sys
def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<H", data[8:10])[0]
    return [x for x, in struct.iter_unpack("<f", data[10 + n:])]
a, b = read(sys.argv[1]), read(sys.argv[2])
assert len(a) == len(b) and len(a) == int(sys.argv[3]), (len(a), len(b))
most = max(map(abs, a))
worst = max(abs(x - y) for x, y in zip(a, b))
assert 0.01 < most and worst <= 2e-6 * most, (worst, most)
END
python3 - <<'END'
import math
open("x.txt", "w").write(" ".join(f"{math.sin(0.7 * i):.6f}" for i in range(7 * 5)))
END
same() { # FOLDER: its outputs are those of plain/
    python3 same.py plain/y.npy "$1/y.npy" 35 >out 2>err
    result $? "the same numbers: $1"
}
own() { # FOLDER OPTIONS: runs it on 7 rows
    local to=$1
    shift
    status 0 "run $*" "$burncc" run own.c --input x=x.txt --output "$to" "$@"
}
sed -i 's/linear(own, "b", 3)/own/' own.c
own plain --set own=0 --dim batch=7
for target in portable generic native; do
    own "on-$target" --dim batch=7 --target $target
    same "on-$target"
done
own shared --dim batch=7 --threads 4:0
same shared
status 0 "in parts" "$burncc" own.c -o own_parts.c --dim batch=7 --threads 3:0
grep -Eq '_own\(p0, p1, p2, p3, 5, 0.5, 7 \* part / [0-9]+, 7 \* \(part \+ 1\) / ' own_parts.c
result $? "the kernel goes in parts"
status 0 "a size that the run is told" "$burncc" own.c -o own_sizes.c --dim batch=1..8
grep -Eq '_own\(p0, p1, p2, p3, 5, 0.5, 0, n_batch\)' own_sizes.c
result $? "is one of the kernel's"
grep -q '"a } in a string"' own_sizes.c
result $? "the kernel stands as it was written"
[ "$(grep -c '_own(const' own_sizes.c)" = 1 ]
result $? "what has no kernel is a formula"
own sizes --dim batch=7..9
same sizes
own fixed --dim batch=7 --no-fuse
same fixed
"$burncc" own.c --dump import >own.txt 2>err
status 0 "its text" "$burncc" own.txt -o again.c --dim batch=1..8 --name own_sizes
sed 's/own.txt/own.c/; s/again\.h/own_sizes.h/' again.c | cmp -s - own_sizes.c
result $? "is the same program"
for cc in gcc clang; do
    command -v $cc >/dev/null || continue
    status 0 "$cc takes it" $cc -std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -c own_sizes.c -o own.o
done
if "$burncc" own.c -o own_gpu.c --target vulkan --dim batch=7 >out 2>err; then
    result 0 "shaders"
    own gpu --dim batch=7 --target vulkan
    if grep -q 'no Vulkan device' err; then
        count=$((count - 1)) failures=$((failures - 1))
    else
        same gpu
        own gpu_sizes --dim batch=1..8 --target vulkan
        same gpu_sizes
    fi
fi

# ---- the evaluator has the formulas
cat >formula.c <<'END'
#include <burncc/model.h>

KERNEL(twice, (const float *x, float *y), { for (int i = 0; i < 4; i++) y[i] = 2 * x[i]; })

static void formula(const Tensor *x, Tensor *y) { y[0] = mul(x[0], config("factor", 2)); }

MODEL(m) { output("y", custom("twice", (input("x", F32, 4)), .kernel = twice, .formula = formula)); }
END
python3 - "$here/.." <<'END'
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from onnx_wire import FLOAT, tensor
data = pathlib.Path("data/test_data_set_0")
data.mkdir(parents=True)
(data / "input_0.pb").write_bytes(tensor("x", FLOAT, [1.0, 2.0, 3.0, 4.0]))
(data / "output_0.pb").write_bytes(tensor("y", FLOAT, [2.0, 4.0, 6.0, 8.0]))
END
status 0 "verify" "$burncc" verify formula.c --data data --trace
status 0 "a formula that is another" "$burncc" verify formula.c --data data --trace --set factor=3
says 'node line 7 "twice" \(custom\) is wrong alone: element 3: 8, evaluator.s 12'

# ---- ONNX has the formulas
status 0 "export" "$burncc" formula.c -o formula.onnx
status 0 "what was exported" "$burncc" verify formula.onnx --data data
status 1 "a kernel alone" "$burncc" own.c -o own.onnx
says '"recur" \(custom\): error: it has no formula, and nothing else can be said of it here; give it .formula$'
absent own.onnx

# ---- training: gradients are those of the language's own operations
train() { # NAME OPTIONS
    local name=$1
    shift
    status 0 "train $name" "$burncc" own.c -o "$name.c" --train --loss mse --dim batch=7 --name net "$@"
    sed -i "s/\"net.h\"/\"$name.h\"/" "$name.c"
    cat >drive.c <<END
#include <math.h>
#include <stdio.h>
#include "$name.h"
int main(void) {
    static net_gradients_workspace ws;
    static net_params params, grads;
    static float x[35], target[35], loss[1];
    for (int i = 0; i < 35; i++) {
        x[i] = sinf(0.7f * (float)i);
        target[i] = cosf((float)i);
    }
    for (int i = 0; i < 25; i++) params.a_weight[i] = sinf((float)i);
    int bad = net_gradients(&ws, x, &params, target, loss, &grads);
    printf("%d %.4f", bad, loss[0]);
    for (int i = 0; i < 25; i++) printf(" %.4f", grads.a_weight[i] + 10);
    for (int i = 0; i < 5; i++) printf(" %.4f", grads.a_bias[i] + 10);
    printf("\n");
    return bad;
}
END
    status 0 "build $name" ${CC:-cc} -O1 drive.c "$name.c" -o "$name" -lm
    ./"$name" >"$name.out"
}
train with
train without --set own=0
cmp -s with.out without.out && [ "$(tr ' ' '\n' <with.out | sort -u | wc -l)" -gt 20 ]
result $? "the same gradients"
grep -q '_own(p0' with.c
result $? "by the kernel"

# ---- mistakes
cat >kernels.h <<'END'
KERNEL(twice, (const float *x, float *y, int64_t n), { for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i]; })
static void bad_gradient(const Tensor *x, const Tensor *y, const Tensor *dy, Tensor *dx) {
    (void)x, (void)y;
    dx[0] = sum(dy[0], 1);
}
static void makes(const Tensor *x, Tensor *y) { y[0] = linear(x[0], "fc", 3); }
static Tensor other;
static void sees(const Tensor *x, Tensor *y) { y[0] = add(x[0], other); }
static void huge(const Tensor *x) { (void)x; result(F32, 1 << 20, 1 << 20, 1 << 10); }
static void another(const Tensor *x) { (void)x; result(F32, 4); }
static void same(const Tensor *x, Tensor *y) { y[0] = relu(x[0]); }
static void none(const Tensor *x) { (void)x; }
END
mistake() { # WHAT CALL TEXT OPTIONS: the only diagnostic, at the call on line 7
    local what=$1 call=$2 text=$3
    shift 3
    printf '%s\n' '#include <burncc/model.h>' '#include "kernels.h"' 'GLSL(wrong, (x, y, n), {' \
        '    y[point] = oops(x[point]); })' 'MODEL(m) {' 'Tensor x = input("x", F32, 2, 3); other = relu(x);' \
        "output(\"y\", $call);" '}' >m.c
    rm -f m_out.c
    status "${want:-1}" "$what" "$burncc" m.c -o m_out.c "$@"
    says "^m\.c:${line:-7}.*error: $text"
    [ "$(grep -c 'error:' err)" = 1 ] && [ ! -e m_out.c ]
    result $? "one diagnostic, nothing written"
}
mistake "an expression that ends early" 'elementwise("x +", x)' '"x \+": expected a value'
mistake "a name that there is not" 'elementwise("x + z", x, 1)' '"x \+ z": unknown name z'
mistake "nothing to compute" 'custom("t", (x))' 'it computes nothing: it wants .kernel, .glsl or .formula'
mistake "too many inputs" 'custom("t", (x, x), .kernel = twice, .sizes = SIZES(6))' \
    'the kernel in C takes 3 parameters, here are 4: 2 inputs, 1 results, 1 sizes, 0 numbers$'
mistake "no size" 'custom("t", (x), .kernel = twice)' 'the kernel in C takes 3 parameters, here are 2'
mistake "points that it does not take" 'custom("t", (x), .kernel = twice, .sizes = SIZES(6), .points = 2)' \
    'the kernel in C takes 3 parameters, here are 5: .*, and from which point to which$'
mistake "other elements" 'custom("t", (cast(x, I64)), .kernel = twice, .sizes = SIZES(6))' \
    "the kernel's parameter 0, .const float \*x., should be .const int64_t \*x.$"
mistake "a number for a size" 'custom("t", (x), .kernel = twice, .numbers = NUMBERS(6))' \
    "the kernel's parameter 2, .int64_t n., should be .double n., or a float$"
mistake "a gradient of another shape" 'custom("t", (x), .kernel = twice, .sizes = SIZES(6), .gradient = bad_gradient)' \
    'the gradient by input 0 is f32\[2\], it should be f32\[2,3\]'
mistake "a formula of another shape" \
    'custom("t", (x), .kernel = twice, .sizes = SIZES(6), .shape = another, .formula = same)' \
    "the formula's result 0 is f32\[2,3\], it should be f32\[4\]"
mistake "a tensor from around it" 'custom("t", (x), .formula = sees)' 'a formula uses a tensor that it is not given'
mistake "no result" 'custom("t", (x), .kernel = twice, .sizes = SIZES(6), .shape = none)' 'its function .shape says no'
want=3 mistake "a huge result" 'custom("t", (x), .kernel = twice, .sizes = SIZES(6), .shape = huge)' \
    'output 0 is too large: f32\[1048576,1048576,1024\]'
mistake "no gradient" 'custom("t", (linear(x, "a", 4)), .kernel = twice, .sizes = SIZES(8))' \
    'it has no gradient: give it .gradient, or a .formula' --train
mistake "no kernel for this target" 'custom("t", (x), .kernel = twice, .sizes = SIZES(6))' \
    'it has neither a kernel in GLSL nor a formula' --target vulkan
mistake "no kernel in C" 'custom("t", (x), .glsl = wrong, .sizes = SIZES(6))' \
    'it has neither a kernel in C nor a formula'
if "$burncc" formula.c -o gpu.c --target vulkan >out 2>err; then
    line=4 mistake "GLSL that does not compile" 'custom("t", (x), .glsl = wrong, .sizes = SIZES(6), .points = 6)' \
        "its kernel in GLSL: 'oops' : no matching overloaded function found" --target vulkan
fi
sed -i 's/custom(.*));/custom("t", (x), .formula = makes));/' m.c
status 1 "a parameter in a formula" "$burncc" m.c -o m_out.c
says '^(\./)?kernels.h:6:56: "fc" \(linear\): error: a formula makes no parameter; give it as an input$'
cat >m.c <<'END'
#include <burncc/model.h>
KERNEL(bad, (const float *x, float *y), {
    y[0] = x[0] +
        z;
})
MODEL(m) { output("y", custom("t", (input("x", F32, 1)), .kernel = bad)); }
END
status 1 "C that does not compile" "$burncc" m.c -o m_out.c
says "^m.c:4:9: error: .*z"
finish
