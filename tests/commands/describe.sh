#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Models described in C: what becomes of them, their settings, and what a mistake in one says.
source "$(dirname "$0")/tap.sh"
models=$here/../../models

body() { # lines of a MODEL on standard input; the first of them is line 4
    { printf '#include <burncc/model.h>\n\nMODEL(m) {\n'; cat; printf '}\n'; } >m.c
}

# ---- a model from nothing
status 0 "a description" "$burncc" "$models/lenet.c" -o lenet.c
grep -q 'conv1' lenet.h || grep -q 'conv1' lenet.c
result $? "layers' names stand in the C"
status 0 "inspect" "$burncc" inspect "$models/lenet.c"
says '^format +a description in C$'
says '^inputs +image: f32\[batch,1,28,28\]$'
says '^parameters +61.71 k'
status 0 "a setting" "$burncc" inspect "$models/lenet.c" --set classes=47
says 'logits: f32\[batch,47\]'
# ---- settings are saved beside the result, and --config takes them again
body <<'END'
    int64_t widths[2] = { 5, 6 };
    config_list("widths", 2, widths);
    Tensor x = input("x", F32, 1, config("input.features", 4)), y = linear(x, "a", widths[1]);
    const char *name = config("name", "a \"y\"");
    double scale = config("scale", 1.0 / 3);
    output(name, mul(y, scale * config("times", 1)));
END
status 0 "settings" "$burncc" m.c -o saved.c --set scale=0.1 --set input.features=7 --set 'widths=8,9'
cat >want <<'END'
{
    "widths": [8, 9],
    "input.features": 7,
    "name": "a \"y\"",
    "scale": 0.1,
    "times": 1
}
END
cmp -s saved.config.json want
result $? "they stand beside the result"
mkdir again
status 0 "their file" "$burncc" m.c -o again/saved.c --config saved.config.json
cmp -s saved.c again/saved.c && cmp -s saved.config.json again/saved.config.json
result $? "gives the same model and the same file"
status 2 "a setting that there is not" "$burncc" m.c -o none.c --set color=1
status 4 "no place for them" "$burncc" m.c -o /nonexistent/none.c
[ ! -e none.c ] && [ ! -e none.config.json ]
result $? "nothing is written"
status 0 "without -o" env -C again "$burncc" ../m.c --name other
[ ! -e again/other.config.json ] && [ ! -e again/m.config.json ]
result $? "nothing is saved"
for option in --set=a=1 --config=saved.config.json --seed=1; do
    status 2 "$option of an ONNX model" "$burncc" scores.onnx -o none.c "$option"
    says "scores.onnx: error: ${option%%=*} is for models described in C; this is ONNX"
done
body <<'END'
    output("y", relu(input("x", F32, 4)));
    exit(0);
END
status 1 "an exit without a fault" "$burncc" m.c -o none.c
says '^m.c:4.*: error: the description ended behind this call, by exit\(0\)'

printf '0.5 %.0s' $(seq 784) >image.txt
status 0 "run" "$burncc" run "$models/lenet.c" --input image=image.txt --output first
status 0 "run again" "$burncc" run "$models/lenet.c" --input image=image.txt --output second
cmp -s first/logits.npy second/logits.npy
result $? "the same seed begins the same"
status 0 "another seed" "$burncc" run "$models/lenet.c" --input image=image.txt --output third --seed 1
! cmp -s first/logits.npy third/logits.npy
result $? "another seed begins otherwise"
status 0 "train" "$burncc" "$models/lenet.c" -o train.c --train --optimizer adam --dim batch=1..8
grep -q 'conv1_weight' train.h
result $? "parameters are fields"
# what C compilers take for the file goes with the products in it, and with the functions around them
status 0 "a deep network" "$burncc" "$models/mobilenet_v2.c" -o one.c --train
status 0 "on two threads" "$burncc" "$models/mobilenet_v2.c" -o two.c --train --threads 2
one=$(grep -c '^BURN_KERNEL static' one.c) two=$(grep -c '^BURN_KERNEL static' two.c)
[ "$one" -gt 0 ] && [ $((5 * two)) -le $((6 * one)) ]
result $? "parts multiply no products: $two, $one on one thread"
tasks=$(grep -c '_part(void \*argument, int worker, int part)$' two.c)
calls=$(grep -c '^    two_[a-z0-9_A-Z]*_parts(threads, ' two.c)
[ "$tasks" -gt 0 ] && [ $((6 * tasks)) -le "$calls" ]
result $? "calls share what hands parts out: $tasks for $calls"
status 0 "dump" "$burncc" "$models/lenet.c" --dump import
mv out lenet.txt
status 0 "the text of it" "$burncc" lenet.txt -o text.c --name lenet
sed 's/lenet.txt/lenet.c/; s/text\.h/lenet.h/' text.c >text2.c
"$burncc" "$models/lenet.c" -o lenet.c --name lenet 2>/dev/null
sed "s#$models/##" lenet.c | cmp -s - text2.c
result $? "the same code"
status 0 "resnet" "$burncc" inspect "$models/resnet.c" --set depth=50 --set size=64
says '^parameters +25.61 M'
status 2 "a setting that there is not" "$burncc" inspect "$models/lenet.c" --set clases=3
says '--set clases: the model has no such setting; it has classes$'

body <<END
int64_t depths[2] = { 1, 1 };
config_list("depths", 2, depths);
Tensor x = input("x", F32, config("vision.size", 2), config("width", 3));
output("y", mul(full(F32, config("rate", 0.5), depths[0], depths[1], 1, 1), config("square", 0) ? square(x) : x));
output("z", strcmp(config("act", "relu"), "gelu") ? relu(x) : gelu(x));
END
echo '{ "width": 4, "vision": { "size": 8 }, "depths": [3, 5], "rate": 2.5, "act": "gelu", "square": true, "more": [{}],
"none": null }' >config.json
status 0 "a configuration" "$burncc" m.c --config config.json --dump import
says '%4: f32\[3,5,8,4\]'
says 'Gelu'
says 'Square'
status 0 "--set wins over it" "$burncc" m.c --config config.json --set width=9 --dump import
says '%4: f32\[3,5,8,9\]'
echo '{ "width": "wide" }' >config.json
status 1 "a word for a number" "$burncc" m.c --config config.json -o m_out.c
says '^m.c:6:.*config.json: width=wide: a number is wanted, such as 3$'
printf '{\n"width": 3' >config.json
status 1 "no JSON" "$burncc" m.c --config config.json -o m_out.c
says '^config.json:2.*no JSON'
echo '[1]' >config.json
status 1 "no object" "$burncc" m.c --config config.json -o m_out.c
says '^config.json: error: a configuration is an object of JSON'
status 4 "no file" "$burncc" m.c --config none.json -o m_out.c

# ---- mistakes: one line each, at the place, and nothing is written
mistake() { # WHAT PLACE TEXT: the only diagnostic
    local what=$1 place=$2 text=$3
    rm -f m_out.c
    status 1 "$what" "$burncc" m.c -o m_out.c
    says "^m\.c:$place: .*error: $text"
    [ "$(grep -c 'error:' err)" = 1 ]
    result $? "one diagnostic"
    [ ! -e m_out.c ]
    result $? "nothing written"
}
x='Tensor x = input("x", F32, 2, 3, 8, 8);'

# Calls, each wrong by itself, in one description: CALL | TEXT, of which every line has its own diagnostic.
all_wrong() {
    { printf '%s\nTensor row = input("row", F32, 5), ids = input("ids", I64, 4);\n' "$x"; cat rows |
        sed 's/ *| .*//; s/^/(void)(/; s/$/);/'; } | body
    status 1 "mistakes" "$burncc" m.c -o m_out.c
    local line=6
    while IFS= read -r row; do
        says "^m\.c:$line:[0-9]+: .*error: ${row##* | }"
        line=$((line + 1))
    done <rows
    [ "$(grep -c 'error:' err)" = "$(wc -l <rows)" ]
    result $? "a diagnostic each"
}
cat >rows <<'END'
squeeze(x, 1) | axis 1 of f32\[2,3,8,8\] has not the size 1
squeeze(x, 0, 0) | axis 0 is named twice
unsqueeze(x, 0, 0) | there is no place 0 between the axes of
movedim(x, 4, 0) | there is no axis 4 in
chunk(x, 0, 1, 0) | axis 1 of f32\[2,3,8,8\] has no part 0 of 0
split(x, 2, 1, 2) | axis 1 of f32\[2,3,8,8\] has no part 2 of 2 elements each
split_sizes(x, 1, 0, 1, 1) | the sizes add up to 2
split_sizes(x, 1, 2, 1, 2) | there is no part 2 of 2
slice_scatter(x, row, 1, 0, 1, 1) | f32\[5\] does not fit in f32\[2,3,8,8\]
slice_scatter(x, x, 1, 0, 2, 1) | .* has not the sizes of the part
slice_scatter(x, 1, 1, 0, 2, 0) | the step is 0
select_scatter(x, 1, 1, 3) | there is no element 3 in axis 1
unfold_axis(x, 1, 4, 1) | axis 1 of f32\[2,3,8,8\] has no parts of 4 every 1
tile(x, 0) | a tensor is repeated 0 times
repeat_interleave(x, 0, 1) | a tensor is repeated 0 times
arange_step(F32, 0, 1, -1) | from 0 to 1 in steps of -1 there are no numbers
tril_mask(-3, 4, 0) | the number of rows is -3
meshgrid(2, row, row) | there is no grid 2 of 2
meshgrid(0, row, x) | f32\[2,3,8,8\] is no list
cartesian_prod(row, ids) | f32\[5\] and i64\[4\] are of two types
hann_window(0) | a window of 0 numbers
rand(I64, 3) | wants floats, such as F32; whole numbers: randint
randint(I64, 3, 3, 4) | there is nothing to draw from 3, 3
bernoulli(ids) | wants probabilities, not i64\[4\]
multinomial(row, 3) | wants rows of probabilities
vector_norm(x, NAN, 1) | the order is not a number
vector_norm(x, 2, 1, 1) | axis 1 is named twice
normalize(x, 2, 4) | there is no axis 4
cdist(x, row, 2) | wants rows of floats, not f32\[2,3,8,8\] and f32\[5\]
median(x, 4).values | there is no axis 4
geglu(x, 1) | axis 1 of f32\[2,3,8,8\] has no halves
gradient(sum(x), ids) | only floats have gradients, not f32\[\] by i64\[4\]
take(x, row) | the indices are f32\[5\], not integers
index_fill(x, 1, x, 0) | the indices are a list, not
nms(x, row, 0.5).values | wants boxes \[n, 4\] and scores \[n\]
masked_select(row, gt(x, 0)).values | a mask bool\[2,3,8,8\] does not fit f32\[5\]
stft(x, 16) | wants \[batch, samples\], not f32\[2,3,8,8\]
stft(unsqueeze(row, 0), 16) | f32\[1,5\] is too short to be reflected by 8
stft(unsqueeze(row, 0), 4, 5) | frames of 4 every 5
stft(unsqueeze(row, 0), 4, .window = row) | the window is a list of up to 4 numbers, not f32\[5\]
istft(x, 16) | wants \[batch, bins, frames, 2\]
fft(x, 1, 0) | wants pairs along the last axis
dot(x, row) | wants two lists
trace(row) | f32\[5\] is no matrix
det(narrow(x, 2, 0, 3)) | wants square matrices
cov(ids) | i64\[4\] is no matrix
cov(stack(0, ids, ids)) | wants floats, not i64\[2,4\]
gram_matrix(row) | wants \[batch, channels, ...\]
deform_conv2d(x, x, "dc", 4, 3) | wants offsets \[batch, 18 \* groups
local_response_norm(row, 3) | wants \[batch, channels, ...\] and a size
quantize(ids, 1, 0, I8, 0) | turns floats into integers, not i64\[4\] into i8
dequantize(x, 1, 0, 0) | turns integers into floats
interpolate(x, .scale = 2, .mode = "area") | there is no mode "area"
embedding(ids, "e", 10, 4, .padding_idx = 10) | there is no row 10 of 10
multi_margin_loss(x, ids) | wants scores \[batch, classes\] and a list
cross_entropy(x, ids, .label_smoothing = 2) | a label smoothing of 2
mse_loss(x, x, .reduction = "median") | there is no reduction "median"
ctc_loss(x, ids, ids, ids) | wants log-probabilities
elu(x, row) | alpha is a number, not a tensor
END
all_wrong

body <<END
$x
output("y", linear(x, "fc", 10, .share = "emb.weight"));
END
mistake "a parameter to share that there is not" 5:13 'there is no parameter "emb.weight" yet'
body <<END
$x
output("y", conv2d(conv2d(x, "a", 4, 3), "a", 4, 3));
END
mistake "a name twice" 5:13 'there is a parameter "a.weight" already'
body <<END
$x
Tensor y = conv2d(x, "a", 4, 3);
shared() output("y", conv2d(x, "a", 5, 3));
END
mistake "a shared parameter of another shape" 6:22 'the shared "a.weight" is f32\[4,3,3,3\], here f32\[5,3,3,3\]'
body <<END
$x
output("y", split_heads(flatten(x, 2), 7));
END
mistake "features that are no heads" 5:13 'f32\[2,3,64\] cannot be split into 7 heads'
body <<END
$x
output("y", conv2d(x, "a", 4, 3, .groups = 2));
END
mistake "groups that do not fit" 5:13 '3 channels into 4 in 2 groups'
body <<END
$x
output("y", conv2d(x, "a", 4, 9));
END
mistake "a kernel larger than the image" 5:13 ''
body <<END
$x
output("y", conv1d(x, "a", 4, 3));
END
mistake "an image for a sequence" 5:13 'wants \[batch, channels, length\], not f32\[2,3,8,8\]'
body <<END
$x
output("y", linear(x, "fc"));
END
mistake "no features" 5:13 'wants a number of features'
body <<END
$x
output("y", conv2d(x, "a", 4));
END
mistake "no kernel" 5:13 'wants a kernel'
body <<END
$x
Tensor y = reshape(x, 2, -1, 7);
output("y", relu(y));
END
mistake "a shape that does not hold the elements" 5:12 'f32\[2,3,8,8\] has 384 elements'
body <<END
$x
output("y", permute(x, 0, 1, 2));
END
mistake "too few axes" 5:13 '3 axes are named, f32\[2,3,8,8\] has 4'
body <<END
$x
output("y", softmax(x, 4));
END
mistake "an axis that there is not" 5:13 'there is no axis 4 in f32\[2,3,8,8\]'
body <<END
$x
output("y", matmul(x, input("w", F32, 7, 8)));
END
mistake "factors that do not fit" 5:13 ''
body <<END
$x
output("y", add(x, input("z", F32, 5)));
END
mistake "shapes that do not broadcast" 5:13 ''
body <<END
$x
output("y", cat(1, x, input("z", F32, 2, 3, 8, 9)));
END
mistake "parts of other sizes" 5:13 ''
body <<END
Tensor x = input("x", F32, symbol("n"), 3);
output("y", linear(x, "fc", dim(x, 0)));
END
mistake "a symbol for a number" 5:13 'the number of features is the symbol n'
body <<END
Tensor x = input("x", F32, symbol("n"), 3);
output("y", reshape(x, 3 * dim(x, 0)));
END
mistake "C's operators on a symbol" 5:13 "a size was computed from a symbol by C's operators; use dim_add"
body <<END
$x
output("y", embedding(x, "emb", 10, 4));
END
mistake "floats for rows" 5:13 'wants integers that number rows, not f32\[2,3,8,8\]'
body <<END
$x
output("y", x);
input("x", F32, 1);
END
mistake "an input twice" 6:1 'there is an input "x" already'
body <<END
$x
output("y", multi_head_attention(flatten(x, 2), "attn", 7));
END
mistake "heads that do not fit" 5:13 '64 features in 7 heads'
body <<END
$x
output("y", batch_norm(x));
END
sed -i 's/batch_norm(x)/batch_norm(x, "")/' m.c
mistake "no name" 5:13 'a layer needs a name'
body <<END
$x
scope("block") fail("width %d is odd", 3);
output("y", x);
END
mistake "a mistake of its own" 5:16 'width 3 is odd'

body <<END
$x
output("y", scatter_reduce(x, 1, input("i", I64, 2, 3, 8, 8), x, "mean"));
END
mistake "a reduction that there is not" 5:13 'there is no reduction "mean"; there are sum, prod, amin, amax'
body <<END
$x
output("y", nll_loss(x, x));
END
mistake "classes that are floats" 5:13 'wants scores .* not f32\[2,3,8,8\] and f32\[2,3,8,8\]'
body <<END
$x
output("y", transformer_decoder_layer(flatten(x, 2), "layer", 4));
END
mistake "a decoder without an encoder" 5:13 'wants what the encoder gave: .memory = x'
body <<END
$x
output("y", conv2d(x, "a", 4, 3, .padding_mode = "zero"));
END
mistake "a padding mode that there is not" 5:13 'there is no padding mode "zero"'

body <<END
$x
relu(x);
END
status 1 "no output" "$burncc" m.c -o m_out.c
says '^m.c: error: the model has no output'
body <<END
$x
output("a", conv2d(x, "a", 4, 99));
output("b", softmax(x, 9));
output("c", relu(softmax(x, 8)));
END
status 1 "three mistakes" "$burncc" m.c -o m_out.c
[ "$(grep -c '^m\.c:[567]:.*error:' err)" = 3 ]
result $? "all are told at once"
body <<END
$x
relu(x);
abort();
END
status 1 "a crash" "$burncc" m.c -o m_out.c
says '^m.c:5: \(relu\): error: the description ended by signal 6'
body <<END
$x
for (;;) x = relu(x);
END
status 3 "a loop that never ends" "$burncc" m.c -o m_out.c
says '^m.c:5.*\(relu\): error: the description makes more than 500000 values'
body <<END
$x
exit(7);
END
status 1 "an exit" "$burncc" m.c -o m_out.c
says 'the description ended with exit status 7'
body <<END
$x
output("y", rellu(x));
END
status 1 "a name that there is not" "$burncc" m.c -o m_out.c
says "the C compiler '.*' does not take this description"
printf '#include <burncc/model.h>\n' >m.c
status 1 "no model" "$burncc" m.c -o m_out.c
says 'a description has one MODEL'
body <<<"$x"
CC=/nonexistent status 4 "no compiler" "$burncc" m.c -o m_out.c
says "cannot run the C compiler '/nonexistent', which a description needs; set CC"
[ -z "$(ls "$TMPDIR")" ]
result $? "no temporary files stay"
finish
