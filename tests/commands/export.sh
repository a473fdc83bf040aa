#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# -o model.onnx and model.safetensors: what is written is read again as the same model, with the weights it was given;
# and what goes with it, and what does not.
source "$(dirname "$0")/tap.sh"
source "$here/fc.sh"
python3 "$here/safetensors.py" || { echo "Bail out! safetensors.py fails"; exit 1; }

# y = W x + b with W = [[1, 1.125, 1.25], [1.375, 1.5, 1.625]], b = [0.5, 0.625]
status 0 "a description with weights as ONNX" "$burncc" fc.c --weights good.safetensors -o fc.onnx
status 0 "runs" "$burncc" run fc.onnx --input x=x.txt
says '^  8\.75 11\.5$'
status 0 "its parameters" "$burncc" fc.onnx -o fc.safetensors
status 0 "have PyTorch's names" "$burncc" inspect fc.safetensors
says 'fc\.weight +f32\[2,3\]'
says 'fc\.bias +f32\[2\]'
status 0 "and are given back, every one" "$burncc" run fc.c --input x=x.txt --weights fc.safetensors --strict
says '^  8\.75 11\.5$'
status 0 "new weights for an ONNX model" "$burncc" fc.onnx --weights prefix.safetensors -o tuned.onnx
status 0 "run" "$burncc" run tuned.onnx --input x=x.txt
says '^  8\.75 11\.5$'
status 0 "drawn parameters" "$burncc" fc.c --seed 3 -o drawn.safetensors
status 0 "and the same seed" "$burncc" fc.c --seed 3 -o again.onnx
status 0 "as ONNX" "$burncc" again.onnx -o again.safetensors
cmp -s drawn.safetensors again.safetensors
result $? "are the same bytes"
status 0 "twice" "$burncc" fc.c --seed 3 --name n -o twice.onnx
status 0 "and again" "$burncc" fc.c --seed 3 --name n -o first.onnx
cmp -s twice.onnx first.onnx
result $? "the same input gives the same bytes"

# sizes
status 0 "a size of the running program stays one" "$burncc" scores.onnx -o sizes.onnx
status 0 "inspect" "$burncc" inspect sizes.onnx
says 'batch'
status 0 "--dim gives it" "$burncc" scores.onnx --dim batch=3 -o three.onnx
status 0 "inspect" "$burncc" inspect three.onnx
silent 'batch'
says 'f32\[3,1,2,2\]'
status 2 "a size that there is not" "$burncc" scores.onnx --dim bach=3 -o bach.onnx
status 0 "simplified" "$burncc" convs.onnx --optimized -o convs2.onnx
status 0 "and read" "$burncc" convs2.onnx -o convs2.c

# weights beside the model
status 0 "large weights" "$burncc" large.onnx --embed-limit 4K -o apart.onnx
[ -s apart.onnx.data ]
result $? "are in apart.onnx.data"
status 0 "read from there" "$burncc" apart.onnx -o a.c --name n
status 0 "as from the model" "$burncc" large.onnx -o b.c --name n
for one in a b; do                                      # but for what the files say of themselves
    sed '/_metadata\[\] = {$/,/^};$/d; s/n_run_metadata, /(const char *const *)0, /
         s/from [a-z]*.onnx//; s/[ab]\.[ch]//' $one.c | cat -s >$one.txt
done
cmp -s a.txt b.txt
result $? "the same code"

# versions
status 0 "an older version" "$burncc" convs.onnx --opset 13 -o old.onnx
status 0 "the newest" "$burncc" convs.onnx --opset 28 -o new.onnx
for version in 12 29 x; do
    status 2 "version $version" "$burncc" convs.onnx --opset $version -o no.onnx
    says '--opset wants a version of ONNX.s operators from 13 to 28'
done
cat >shift.txt <<'END'
graph net(%0 x: i32[4]) {
  %1 = BitwiseAnd(%0, %0)
  %2 = ShiftRight(%1, %0)
  return %2 y
}
END
status 1 "what ONNX cannot say" "$burncc" shift.txt -o no.onnx --opset 17
says 'shift.txt:2:8: \(BitwiseAnd\): error: .* needs operator set 18; --opset 18'
says 'shift.txt:3:8: \(ShiftRight\): error: ONNX has no operator for Shr of i32'

# what goes with it
for option in --train --report --check --no-fuse --fast-math '--precision bf16' '--target native' '--threads 2'; do
    # shellcheck disable=SC2086
    status 2 "$option" "$burncc" fc.c -o no.onnx $option
    says "${option%% *} says how code is made, but -o no.onnx is no code"
done
status 2 "--opset without ONNX" "$burncc" fc.c --opset 17 -o no.c
says '--opset and --optimized go with -o model.onnx'
status 2 "--optimized with weights" "$burncc" fc.c --optimized -o no.safetensors
status 2 "another suffix" "$burncc" fc.c -o no.h5
says 'model.c, model.onnx or model.safetensors'
status 4 "no such folder" "$burncc" fc.c -o nowhere/fc.onnx
ln -s /dev/full full.onnx
[ -e /dev/full ] && status 4 "a full disk" "$burncc" fc.c -o full.onnx
absent no.onnx no.c no.safetensors bach.onnx ./*.tmp

# ---------------------------------------------------------------- what a model says of itself
PYTHONPATH=$here/.. python3 - <<'END'
import pathlib
from onnx_wire import blob, integer
said = blob(2, "maker") + blob(3, "7.1") + blob(4, "org.example") + integer(5, 3) + blob(6, "what it does")
said += blob(14, blob(1, "license") + blob(2, "CC-BY-4.0"))
pathlib.Path("said.onnx").write_bytes(pathlib.Path("pair.onnx").read_bytes() + said)
END
status 0 "a model that says who made it" "$burncc" said.onnx -o told.onnx
status 0 "and again" "$burncc" told.onnx -o retold.onnx
"$burncc" retold.onnx -o retold.c 2>/dev/null
sed -n '/_metadata\[\] = {$/,/^};$/p' retold.c >out
says '"license", "CC-BY-4.0"'
says '"original_producer", "maker 7.1"'
says '"producer_name", "burncc"'
says '"domain", "org.example"'
says '"model_version", "3"'
says '"doc_string", "what it does"'

finish
