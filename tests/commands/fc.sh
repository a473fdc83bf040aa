# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced behind tap.sh by the tests of files of weights: a layer to give them to, fc.c with fc.weight [2, 3] and
# fc.bias [2], and run OPTION..., which runs it on x.txt.
cat >fc.c <<'END'
#include <burncc/model.h>
MODEL(fc) { output("y", linear(input("x", F32, 1, 3), "fc", 2)); }
END
echo '1 2 4' >x.txt
run() { "$burncc" run fc.c --input x=x.txt "$@"; }
