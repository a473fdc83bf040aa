#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# A model with ImageDecoder in a program of one's own, which links runtime/image.c: sizes, bounds and damaged files.
source "$(dirname "$0")/tap.sh"
python3 "$here/../small/run.py" --only-write small || { echo "Bail out! small/run.py fails"; exit 1; }
model=small/image_decoder/model.onnx
runtime=$here/../../runtime

status 0 "verify" "$burncc" verify $model
[ "$(grep -c '^pass .*[0-9]$' out)" = 3 ]
result $? "all images, nothing is frozen"
status 0 "no bounds" "$burncc" $model -o decode.c --dim bytes=1..100000
says 'note: images of at most 2048 for height; --dim height=1..N gives another bound'
status 0 "bounds" "$burncc" $model -o decode.c --dim bytes=1..100000 --dim height=1..6 --dim width=1..6
silent 'note: images'
cat >main.c <<'END'
#include "decode.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    static decode_workspace ws;
    static uint8_t file[100000], pixels[6 * 6 * 3];
    int64_t shape[3] = { 0, 0, 0 };
    float mean[3];
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f) return 1;
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    int code = decode_run(&ws, (int64_t)n, file, pixels, shape, mean);
    printf("%d: %d x %d x %d, %d\n", code, (int)shape[0], (int)shape[1], (int)shape[2], pixels[0]);
    return 0;
}
END
status 0 "it links" ${CC:-cc} -std=c99 -Wall -Wextra -pedantic -Werror -O1 -I . main.c decode.c "$runtime/image.c" \
    -lm -o decode
printf 'P6 2 1 255\nABCDEF' >good.ppm
printf 'P6 2 2 255\nABCDEF' >short.ppm
printf 'P5 7 1 255\nABCDEFG' >wide.pgm
printf 'P4 8 2\nAB' >bits.pbm
printf 'GIF89a..........' >other.gif
status 0 "an image" ./decode good.ppm
says '^0: 1 x 2 x 3, 67$'
status 0 "another size" ./decode bits.pbm
says '^-5: '
status 0 "too wide" ./decode wide.pgm
says '^-5: '
status 0 "cut short" ./decode short.ppm
says '^-6: '
status 0 "another format" ./decode other.gif
says '^-6: '
finish
