#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The generic descriptor of a model: what it tells, which tensors it refuses with which code, before and behind the run;
# and that a program which takes the typed function alone has nothing of it.
source "$(dirname "$0")/tap.sh"
cc=${CC:-cc}
digits=$here/../../models/digits
flags="-std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -O1"

drive() { # name
    status 0 "$1: builds with its header alone" $cc $flags -I. -include $1.h "-DMODEL=$1_model" \
        "$here/descriptor.c" $1.c -lm -o drive
    status 0 "$1: runs" ./drive
}

# Metadata is appended to the file: messages of protobuf are merged that way.
python3 - "$here/.." "$digits/digits.onnx" <<'END_PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
from onnx_wire import blob, integer
entry = lambda k, v: blob(14, blob(1, k) + blob(2, v))
data = open(sys.argv[2], "rb").read() + blob(4, b"org.example") + integer(5, 7) + blob(6, b'reads "digits"\n')
data += entry(b"license", b"MIT") + entry(b"long", b"x" * 4096) + entry(b"empty", b"")
open("told.onnx", "wb").write(data)
END_PYTHON
status 0 "a model with metadata" "$burncc" told.onnx -o told.c --quiet
drive told
says '^model told version 1 parts 0 workspace 1 weights 0$'
says '^input image type 1 bytes 3136 dims 1 1 28 28$'
says '^output logits type 1 bytes 40 dims 1 10$'
says '^metadata producer_name=make_digits$'
says '^metadata domain=org.example$'
says '^metadata model_version=7$'
says '^metadata doc_string=reads "digits"$'
says '^metadata license=MIT$'
silent '^metadata (long|empty)='
for answer in "good: no error" "type: a tensor of another element type than the model's" \
    "rank: a tensor of another rank or of other dimensions than the model's" "nothing said: no error" \
    "shape: a tensor of another rank or of other dimensions than the model's" "short: a bad argument: .*"; do
    says "^$answer\$"
done

status 0 "sizes of the run" "$burncc" "$digits/digits_batch.onnx" -o batch.c --dim batch=2..9 --threads 3 --quiet
drive batch
says '^model batch version 1 parts 3 '
says '^input image type 1 bytes 28224 dims batch<=9 1 28 28$'
says '^output logits type 1 bytes 360 dims batch<=9 10$'
says '^size batch 2\.\.9$'
says '^told: no error 2$'
says '^least: no error$'
says '^has: 2$'
says '^told: more than .* a stated bound allows$'
says '^beyond: more than .* a stated bound allows$'

# A file of weights: compared with what the code was made for, and only at a boundary of 64.
cat >weights.c <<'END'
#include "apart.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static float image[784], logits[10];
    static apart_workspace work;
    const burn_tensor in = {.data = image, .bytes = sizeof image}, out = {.data = logits, .bytes = sizeof logits};
    const size_t n = apart_model.weights_bytes;
    unsigned char *block = calloc(n + 128, 1), *w = block + 64 - (size_t)block % 64;
    FILE *f = fopen("apart.bin", "rb");
    if (!block || !f || n != APART_WEIGHTS_BYTES || fread(w, 1, n, f) != n || getc(f) != EOF) return 9;
    fclose(f);
    if (apart_model.weights_check(w, n)) return 1;
    if (apart_model.weights_check(w, n - 64) != BURN_EINVAL) return 2;
    if (apart_model.run(NULL, &work, w, &in, &out)) return 3;
    if (apart_model.run(NULL, &work, w + 16, &in, &out) != BURN_EINVAL) return 4;
    w[n - 1] ^= 1;
    if (apart_model.weights_check(w, n) != BURN_EFORMAT) return 5;
    free(block);
    return 0;
}
END
status 0 "weights in a file" "$burncc" "$digits/digits.onnx" -o apart.c --embed-limit 100 --quiet
status 0 "a program that loads them" $cc $flags -I. weights.c apart.c -lm -o apart
status 0 "its weights and others" ./apart

# What nobody calls the linker drops: names, shapes, checks, and the function over tensors.
cat >typed.c <<'END'
#include "told.h"
static told_workspace workspace;
static float image[784], logits[10];
int main(void) { return told_run(&workspace, image, logits); }
END
status 0 "a program of the typed function" $cc $flags -ffunction-sections -fdata-sections -I. typed.c told.c -lm \
    -Wl,--gc-sections -o typed
nm typed >names
! grep -E 'told_(model|run_(inputs|outputs|metadata|generic))|burn_' names >out
result $? "nothing of the descriptor is in it"
! strings -a typed 2>err | grep -E 'make_digits|org.example' >out
result $? "nor its texts"
finish
