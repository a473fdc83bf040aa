#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Threads: the pool of runtime/threads.c, with futexes and without, silent under the thread sanitizer where the compiler has it.
source "$(dirname "$0")/../commands/tap.sh"
tests=$here/..
runtime=$tests/../runtime
compilers=
for cc in gcc clang; do command -v $cc >/dev/null && compilers="${compilers:+$compilers }$cc"; done
[ -n "$compilers" ] || compilers=${CC:-cc}
sanitizer=
echo 'int main(void) { return 0; }' >empty.c
for cc in $compilers; do
    $cc -fsanitize=thread empty.c -o empty 2>err && ./empty && { sanitizer=$cc; break; }
done

warnings="-std=c11 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror"
pool() { # compiler, flags...
    status 0 "pool, $*" "$@" -g $warnings -I"$runtime" "$tests/threads/pool.c" "$runtime/threads.c" -pthread -o pool
    status 0 "pool runs, $*" ./pool
}
for cc in $compilers; do
    for kind in "" -DBURN_THREADS_NO_FUTEX; do pool $cc -O2 $kind; done
done
for kind in "" -DBURN_THREADS_NO_FUTEX; do [ -z "$sanitizer" ] || pool $sanitizer -O1 -fsanitize=thread $kind; done
finish
