#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc verify: data sets in order, sizes bound from them, tolerances, failures of every kind.
source "$(dirname "$0")/tap.sh"

status 0 "good data" "$burncc" verify scores.onnx
sed 's/.*data=//' out >order
printf 'test_data_set_0\ntest_data_set_2\ntest_data_set_10\n' | cmp -s - order
result $? "data sets in the order of their numbers"
[ "$(grep -c '^pass max_abs=[^ ]* max_rel=[^ ]* ulp=[^ ]* ' out)" = 3 ]
result $? "a pass line for each"
status 0 "one data set" "$burncc" verify scores.onnx --data test_data_set_2
status 0 "portable" "$burncc" verify scores.onnx --target portable
status 0 "json" "$burncc" verify scores.onnx --json
python3 -c 'import json; assert all(json.loads(l)["pass"] for l in open("out"))'
result $? "each line is JSON"

status 1 "wrong data" "$burncc" verify wrong/scores.onnx
[ "$(cut -d' ' -f1 out | tr '\n' ' ')" = "FAIL pass FAIL " ]
result $? "wrong, within tolerance.txt, unreadable"
says '^FAIL scores element [0-4] .0,[0-4].: [^ ]*, recorded [^ ]*; [0-4] .*; [0-4] .* .5 of 5 differ, max_abs=.* ulp='
status 0 "wide tolerance" "$burncc" verify wrong/scores.onnx --data wrong/test_data_set_0 --rtol 0.1
status 1 "narrow tolerance" "$burncc" verify wrong/scores.onnx --data wrong/test_data_set_1 --rtol 0
for type in f32 f64 f16 bf16 i32; do
    status 1 "$type: an element near zero" "$burncc" verify near/$type/model.onnx
    [ "$(cut -d' ' -f1 out | tr '\n' ' ')" = "pass FAIL " ]
    result $? "$type: within what is usual, and beyond"
done
status 1 "near zero" "$burncc" verify near/f32/model.onnx --data near/f32/test_data_set_0 --ulp 4
says '^FAIL y element 0 .0,0.: 0, recorded 8 .1 of 2 differ, max_abs=8 max_rel=1 ulp=64. '
status 1 "near zero" "$burncc" verify near/f32/model.onnx --data near/f32/test_data_set_0 --atol 1e-3
status 0 "near zero" "$burncc" verify near/f32/model.onnx --data near/f32/test_data_set_0 --atol 1e-3 --ulp 128
says '^pass max_abs=8 max_rel=1 ulp=64 '
status 0 "products of bfloat16" "$burncc" verify near/f32/model.onnx --data near/f32/test_data_set_1 --precision bf16
status 4 "no data" "$burncc" verify pair.onnx --data tmp
status 0 "shape from an input's value" "$burncc" verify reshape/reshape.onnx
says '^pass max_abs=0 max_rel=0 ulp=0 data=test_data_set_0$'
status 0 "size without a bound" "$burncc" verify expand/expand.onnx
says '^pass max_abs=0 max_rel=0 ulp=0 data=test_data_set_0$'
status 1 "unknown operators" "$burncc" verify unknown.onnx --data test_data_set_0

status 0 "a runner" "$burncc" verify scores.onnx --runner env
[ "$(grep -c '^pass ' out)" = 3 ]
result $? "a pass line for each, through a runner"
status 1 "a runner that fails" "$burncc" verify scores.onnx --runner false --data test_data_set_0
says '^FAIL the runner ended with status 1 '
status 1 "a runner that says something else" "$burncc" verify scores.onnx --runner echo --data test_data_set_0
says '^FAIL the runner.s output is not'
status 1 "a runner that is not there" "$burncc" verify scores.onnx --runner ./no-such-runner --data test_data_set_0
says "^FAIL cannot run the runner './no-such-runner'"
status 2 "no way to run it" "$burncc" verify scores.onnx --target wasm-simd128 --data test_data_set_0
says 'wasm32 code cannot be loaded here'

CC=no-such-compiler status 4 "no compiler" "$burncc" verify scores.onnx
says "cannot run the C compiler 'no-such-compiler'"
says "^FAIL not built: cannot run the C compiler 'no-such-compiler'; set CC data=test_data_set_0$"
for cc in false true; do
    CC=$cc status 4 "CC=$cc" "$burncc" verify scores.onnx
    says "^FAIL not built: the C compiler '$cc' compiles not even a file that includes <stdint.h>"
done
BURNCC_CFLAGS=-Dfloat=+ status 1 "a compiler that rejects the model's code" "$burncc" verify scores.onnx
says "^FAIL not built: the C compiler '$(set -- ${CC:-cc}; echo "$1")' rejects the generated code"
TMPDIR=/nowhere status 4 "no place for temporary files" "$burncc" verify scores.onnx
says '^FAIL not built: cannot make a temporary folder in /nowhere: No such file or directory'
for room in 40k 250k; do                                # for the generated C; for what $CC makes of it
    full='mount -t tmpfs -o size=$0 none disk && TMPDIR=$PWD/disk exec "$@"'
    mkdir -p disk
    if unshare -rm mount -t tmpfs none disk 2>err; then
        status 4 "a disk of $room" unshare -rm sh -c "$full" $room "$burncc" bench large.onnx --embed-limit 1M
        says 'error: .*(No space left on device|the disk of the temporary folder is full)'
    else
        echo "ok $((count += 1)) # SKIP no right to mount a small disk"
    fi
done

# A compiler that puts the code in $EVIL in the place of the model's: whatever it does is one line.
cat >evil-cc <<'END'
#!/bin/sh
for word; do case $word in *.c) source=$word ;; esac; done
{
    sed '$d' "$source"
    cat <<CODE
#include <stdlib.h>
static int evil(const struct burn_threads *threads, void *workspace, const void *weights, const burn_tensor *inputs,
    const burn_tensor *outputs)
{
    volatile char *in = inputs[0].data, *out = outputs[0].data, *work = workspace;
    (void)threads, (void)weights, (void)in, (void)out, (void)work;
    $EVIL;
    return 0;
}
static burn_model copy;
__attribute__((constructor)) static void replace(void) { copy = ${MODEL:-scores}_model; copy.run = evil; }
const burn_model *const burncc_model = &copy;
CODE
} >"$source.new"
mv "$source.new" "$source"
exec cc "$@"
END
chmod +x evil-cc
evil() { # code, what the line says
    EVIL=$1 CC=./evil-cc status 1 "$1" "$burncc" verify scores.onnx --data test_data_set_0 --timeout 1
    says "^FAIL $2"
}
evil 'for (;;) { }' 'no end after 1 s'
evil '*(volatile char *)0 = 1' 'crashed: '
evil 'abort()' 'crashed: '
evil 'exit(0)' 'the child process ended early'
evil 'return -4' 'run returned -4'
evil 'out[outputs[0].bytes] = 1' "wrote outside output 'scores'"
evil 'in[-1] = 1' "wrote outside input 'image'"
evil 'work[-1] = 1' 'wrote outside the workspace'
evil 'out[outputs[0].bytes + 128] = 1' 'crashed: '
evil ';' 'scores element 0 .0,0.: nan'

# Each node's values, of ONNX and of text; the code of one node made wrong; a record that is wrong.
status 0 "a trace" "$burncc" verify layers/layers.onnx --trace
[ "$(grep -Ec '^ +[0-5]  (MatMul|Relu)  +(matmul|relu)_[a-z0-9]+ +f32.1,4. ( +0){2} +- ( +0){2}$' out)" = 6 ]
result $? "a line a node"
says '^first bad: none, and the model passes$'
"$burncc" layers/layers.onnx --dump import | sed 's/;.*//' >layers/layers.txt
status 0 "a trace of text" "$burncc" verify layers/layers.txt --trace
says '^ *line [0-9]+  MatMul +p1 +f32.1,4. '
EVIL='int code = layers_model.run(threads, workspace, weights, inputs, outputs)'
EVIL+='; if (layers_model.output_count > 1) ((float *)outputs[3].data)[1] += 1; return code'
EVIL=$EVIL MODEL=layers CC=./evil-cc status 0 "a node that is wrong" "$burncc" verify layers/layers.onnx --trace
says '^first bad: node 2 "matmul_p1" .MatMul. is wrong alone: element 1 .0,1.: [-0-9.]*, evaluator.s [-0-9.]* .1 of 4 '
says '^ +2  MatMul .*  bad$'
EVIL=$EVIL MODEL=layers CC=./evil-cc status 0 "the same" "$burncc" verify layers/layers.onnx --trace --json
python3 -c 'import json; t = json.load(open("out"))["trace"]; assert [r["alone"]["pass"] for r in t].index(False) == 2'
result $? "its JSON has the rows"
EVIL='int code = layers_model.run(threads, workspace, weights, inputs, outputs)'
EVIL+='; ((float *)outputs[0].data)[1] += 1; return code'
EVIL=$EVIL MODEL=layers CC=./evil-cc status 1 "no node is wrong" "$burncc" verify layers/layers.onnx --trace
says '^first bad: none, so it is what becomes of several nodes'
status 1 "a wrong record" "$burncc" verify wrong/scores.onnx --data wrong/test_data_set_0 --trace
says '^first bad: none, but the evaluator differs from the record too: scores element '
status 0 "a trace through a runner" "$burncc" verify layers/layers.onnx --trace --runner env

mkdir -p bare && cp layers/layers.onnx bare/           # nothing is recorded beside it
status 4 "without records" "$burncc" verify bare/layers.onnx
silent '--golden'
status 4 "without records, elsewhere" "$burncc" verify bare/layers.onnx --runner env
says 'say where with --data DIR, or compare this machine.s bits alone, for inputs that are drawn, with --golden$'
status 0 "bits of this machine" "$burncc" verify bare/layers.onnx --runner env --golden
says '^pass max_abs=0 max_rel=0 ulp=0 data=drawn$'
cat >odd-cc <<'END'
#!/bin/sh
for word; do case $word in *.c) code=${word%/*}/layers.c ;; esac; done
sed -i '/const float .* = {$/,/}/s/[0-9]\.[0-9]/3.25/' "$code"
exec cc "$@"
END
chmod +x odd-cc
CC=./odd-cc status 1 "other bits" "$burncc" verify bare/layers.onnx --runner env --golden
says '^FAIL .* element [0-9] .*, here [-0-9.]* .*data=drawn$'
status 4 "a trace of nothing" "$burncc" verify bare/layers.onnx --runner env --golden --trace

# interrupted while $CC runs, however long that takes: nothing is left in $TMPDIR
printf '#!/bin/sh\necho $$ >slow-pid && mv slow-pid slow-runs\nexec sleep 600\n' >slow-cc
chmod +x slow-cc
CC=./slow-cc "$burncc" verify scores.onnx >out 2>err &
child=$!
while [ ! -e slow-runs ] && kill -0 $child 2>/dev/null; do sleep 0.05; done
kill -TERM $child
wait $child
ended=$?
kill "$(cat slow-runs)"
[ $ended = 143 ]
result $? "SIGTERM ends it"
finish
