#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds kernels_bench and runs it.  usage: run.sh BUILD_DIR [check|time [PART]]
# With OpenBLAS installed, matrix products are timed beside it. $CC (cc), $CFLAGS (-O3 -march=native): how kernels are
# compiled; $TARGET: LANES,REGISTERS,UNFUSED,L1,L2 (empty: the generic target).
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
out=${1:?usage: run.sh BUILD_DIR [check|time [PART]]}
shift
mkdir -p "$out"
for t in gemm gemv conv conv_taps conv_dw conv_planes winograd; do
    sed '1,/^\/\/ end holes/d' "$root/templates/c/$t.c" >"$out/$t.inc"
done
warn="-Wall -Wextra -Wconversion -Wshadow -pedantic"
tiles=
for t in tiles tiles_conv tiles_cost tiles_taps tiles_planes tiles_winograd; do
    tiles="$tiles $root/compiler/schedule/cpu/$t.c"
done
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -O1 $warn "$here/gen.c" $tiles -o "$out/gen"
"$out/gen" $TARGET >"$out/cases_c.h" 2>"$out/tiles.txt"
blas=
if pkg-config --exists openblas 2>/dev/null; then blas="-DHAVE_OPENBLAS $(pkg-config --cflags --libs openblas)"; fi
# shellcheck disable=SC2086
${CC:-cc} -std=c99 ${CFLAGS:--O3 -march=native} $warn -I"$out" -I"$root/templates/c" "$here/kernels_bench.c" \
    "$root/compiler/schedule/cpu/pack.c" $tiles $blas -lm -o "$out/kernels_bench"
OPENBLAS_NUM_THREADS=1 "$out/kernels_bench" "$@"
