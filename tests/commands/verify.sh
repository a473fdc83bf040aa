#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc verify: data sets in order, sizes bound from them, tolerances, failures of every kind.
source "$(dirname "$0")/tap.sh"

status 0 "good data" "$burncc" verify scores.onnx
sed 's/.*data=//' out >order
printf 'test_data_set_0\ntest_data_set_2\ntest_data_set_10\n' | cmp -s - order
result $? "data sets in the order of their numbers"
[ "$(grep -c '^pass max_abs=[^ ]* max_rel=[^ ]* ' out)" = 3 ]
result $? "a pass line for each"
status 0 "one data set" "$burncc" verify scores.onnx --data test_data_set_2
status 0 "portable" "$burncc" verify scores.onnx --target portable
status 0 "json" "$burncc" verify scores.onnx --json
python3 -c 'import json; assert all(json.loads(l)["pass"] for l in open("out"))'
result $? "each line is JSON"

status 1 "wrong data" "$burncc" verify wrong/scores.onnx
[ "$(cut -d' ' -f1 out | tr '\n' ' ')" = "FAIL pass FAIL " ]
result $? "wrong, within tolerance.txt, unreadable"
says '^FAIL scores element 0: .*max_abs='
status 0 "wide tolerance" "$burncc" verify wrong/scores.onnx --data wrong/test_data_set_0 --rtol 0.1
status 1 "narrow tolerance" "$burncc" verify wrong/scores.onnx --data wrong/test_data_set_1 --rtol 0
status 4 "no data" "$burncc" verify pair.onnx --data tmp
status 0 "shape from an input's value" "$burncc" verify reshape/reshape.onnx
says '^pass max_abs=0 max_rel=0 data=test_data_set_0$'
status 0 "size without a bound" "$burncc" verify expand/expand.onnx
says '^pass max_abs=0 max_rel=0 data=test_data_set_0$'
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
CC=false status 1 "a compiler that fails" "$burncc" verify scores.onnx
says "rejects the generated code"

# A compiler that puts the code in $EVIL in the place of the model's: whatever it does is one line.
cat >evil-cc <<'END'
#!/bin/sh
for word; do case $word in *.c) source=$word ;; esac; done
{
    sed '$d' "$source"
    cat <<CODE
#include <stdlib.h>
static int evil(void *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)
{
    volatile char *in = inputs[0].data, *out = outputs[0].data, *work = workspace;
    (void)weights, (void)in, (void)out, (void)work;
    $EVIL;
    return 0;
}
static burn_model copy;
__attribute__((constructor)) static void replace(void) { copy = scores_model; copy.run = evil; }
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
evil ';' 'scores element 0: nan'

printf '#!/bin/sh\nsleep 2\n' >slow-cc                   # interrupted while $CC runs: nothing is left in $TMPDIR
chmod +x slow-cc
CC=./slow-cc "$burncc" verify scores.onnx >out 2>err &
child=$!
for _ in $(seq 100); do [ -z "$(ls "$TMPDIR")" ] || break; sleep 0.05; done
kill -TERM $child
wait $child
[ $? = 143 ]
result $? "SIGTERM ends it"
finish
