#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# `mpirun -n 4 burncc fit`: the files of a run are those of one process that sums as many batches; what is wrong is said
# once; a rank that is killed costs a step, and fewer go on. With every MPI that is here (mpirun, mpirun.mpich).
#
# usage: fit_ranks.sh [BURNCC]      Needs Python's standard library and an MPI; skips without. Prints TAP.
command -v mpirun >/dev/null && command -v mpicc >/dev/null || { echo "1..0 # SKIP no mpirun and mpicc"; exit 0; }
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/tap.sh"
export BURNCC_CFLAGS=-O0 OMPI_MCA_btl_vader_single_copy_mechanism=none     # containers forbid that, loudly
mkdir mpi                                               # Open MPI's sockets lie there, and go later than it
python3 - <<'END'
import random
draw = random.Random(1)
with open("two.csv", "w") as table:
    print("x,y,side", file=table)
    for i in range(200):
        x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
        print(f"{x:.4f},{y:.4f},{'above' if y > x else 'below'}", file=table)
END
cat >table.c <<'END'
#include <burncc/model.h>
MODEL(table)
{
    Tensor x = input("features", F32, symbol("batch"), 2);
    x = relu(linear(x, "fc1", 16));
    output("out", linear(x, "fc2", config("classes", 2)));
}
END
ranks() { # N COMMAND...: of Open MPI, or of MPICH
    local n=$1
    shift
    if [ "$mpi" = mpich ]; then
        MPICC=mpicc.mpich mpirun.mpich -n "$n" "$@"
    else
        TMPDIR=$work/mpi mpirun --allow-run-as-root --oversubscribe --mca odls_base_sigkill_timeout 5 -n "$n" \
            env TMPDIR="$TMPDIR" "$@"
    fi
}
fit() { echo "$burncc" fit table.c --data two.csv --batch 32 --artifacts "$@"; }
same() {
    cmp whole/model.safetensors "$1/model.safetensors"
    result $? "$1: the parameters of one process"
    [ "$(sed 's/ seconds.*//' whole.line)" = "$(sed 's/ seconds.*//' out)" ]
    result $? "$1: its last line"
}

check() { # N...: ranks
    local n last=${!#}
    for n in "$@"; do
        status 0 "$mpi: $n ranks" ranks $n $(fit "$mpi.$n" --dim batch=8 --epochs 6)
        same "$mpi.$n"
    done
    [ -s "$mpi.$last/model.onnx" ] && [ -s "$mpi.$last/model.c" ] && [ -s "$mpi.$last/report.html" ] &&
        [ "$(grep -c '^6,train,loss' "$mpi.$last/history.csv")" = 1 ]
    result $? "one rank writes"
    ranks 2 $(fit "$mpi.wrong" --metrics nonsense -q) >out 2>err
    [ $? != 0 ] && [ "$(grep -c "error: .*nonsense" err)" = 1 ]
    result $? "$mpi: what is wrong is said once"
}

status 0 "one process" $(fit whole --dim batch=8 --epochs 6 -q)
cp out whole.line
mpi=open
mpirun --version 2>&1 | grep -q 'Open MPI' || mpi=other
if [ $mpi = open ]; then
    check 2 4
    status 0 "a batch is cut for the ranks" ranks 2 $(fit cut --epochs 1)
    says "note: 2 ranks compute 16 items each"
    MPICC=nothing ranks 2 $(fit none) >out 2>err
    says "'nothing', which compiles programs for MPI, cannot be run: .*set MPICC"
    # a rank is killed: --resume with fewer ends where an undisturbed run ends
    status 0 "a longer run" $(fit whole --dim batch=8 --epochs 200 -q)
    cp out whole.line
    ranks 4 sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec "$@"' sh $(fit lost --epochs 200 -q) >out 2>err &
    for ((i = 0; i < 600; i++)); do
        [ -s lost/history.csv ] && [ "$(wc -l <lost/history.csv)" -gt 9 ] && break
        sleep 0.05
    done
    kill -KILL "$(cat pid.2)"
    wait $!
    [ $? != 0 ] && ls lost/checkpoint/*.txt >/dev/null && [ ! -e lost/model.onnx ]
    result $? "a rank is killed: a checkpoint, no model"
    says "another rank is lost"
    status 0 "two ranks go on" ranks 2 $(fit lost --epochs 200 -q --resume)
    sed -i 's/best_epoch=\([0-9]*\) .*/best_epoch=\1/' whole.line out   # figures of an epoch before are not told again
    same lost
fi
if command -v mpirun.mpich >/dev/null && command -v mpicc.mpich >/dev/null; then
    mpi=mpich
    status 0 "one process" $(fit whole --dim batch=8 --epochs 6 -q)
    cp out whole.line
    check 2
fi
rm -rf mpi
finish
