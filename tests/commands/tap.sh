# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by the tests of this folder and of generated/. In: $1, the burncc to test. Out: TAP on standard output, a
# scratch folder in $work with the files of models.py, and three functions:
#
#   status N WHAT COMMAND...     the command ends with status N; its output is in $work/out and $work/err
#   says TEXT, silent TEXT       the last command's output holds, or does not hold, this extended regular expression
set -u
burncc=$(realpath "${1:-${BURNCC:-build/burncc}}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/models.py" "$work" || { echo "Bail out! models.py fails"; exit 1; }
export TMPDIR=$work/tmp BURNCC_CFLAGS=${BURNCC_CFLAGS:--O1}
mkdir "$TMPDIR"
cd "$work" || exit 1

count=0 failures=0
result() { # 0 or 1, then what
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        sed 's/^/# out: /' out | head -20
        sed 's/^/# err: /' err | head -20
        failures=$((failures + 1))
    fi
}
status() {
    local want=$1 what=$2 got=0
    shift 2
    "$@" >out 2>err || got=$?
    [ "$got" = "$want" ]
    result $? "$what: status $want$([ "$got" = "$want" ] || echo ", not $got")"
}
says() {
    cat out err | grep -Eq -- "$1"
    result $? "says $1"
}
silent() {
    ! cat out err | grep -Eq -- "$1"
    result $? "does not say $1"
}
absent() { # no such files
    local found=0
    for file in "$@"; do [ ! -e "$file" ] || found=1; done
    result $found "there is no $*"
}
wants_gpu() { # or the test is skipped
    "$burncc" verify scores.onnx --data test_data_set_0 --target vulkan >out 2>err
    if grep -Eq 'no Vulkan device|built without' out err; then
        echo "1..0 # SKIP $(grep -Eoh 'no Vulkan device|built without [a-zA-Z]*' out err | head -1)"
        exit 0
    fi
}
finish() {
    absent "$TMPDIR"/*
    echo "1..$count"
    [ $failures = 0 ]
}
