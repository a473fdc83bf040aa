#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Several functions in one description, and what is kept between runs: tokens that are generated one by one with a
# cache are those of the whole sequence, parts are written in place, and what a mistake says.
source "$(dirname "$0")/tap.sh"
root=$here/../..
cc=${CC:-cc}
build() { $cc -std=c99 -Wall -Wextra -Werror -O1 -march=native -I . "$@" -lm; }
body() { # lines of a MODEL on standard input; the first of them is line 4
    { printf '#include <burncc/model.h>\n\nMODEL(m) {\n'; cat; printf '}\n'; } >m.c
}
mistake() { # WHAT LINE:COLUMN TEXT; the body is on standard input
    body
    status 1 "$1" "$burncc" m.c -o m_out.c
    says "^m\.c:$2:.*error: .*$3"
    [ "$(grep -c 'error:' err)" = 1 ] && [ ! -e m_out.c ]
    result $? "$1: one line, nothing written"
}

# ---- a cache against the whole sequence
generates() { # MODEL VOCABULARY SETTINGS...
    local model=$1 vocabulary=$2 target
    shift 2
    for target in native portable; do
        status 0 "$model, $target" "$burncc" "$root/models/$model.c" -o step.c --target $target --dim length=1..32 \
            --set cache=32 "$@"
        status 0 "the whole" "$burncc" "$root/models/$model.c" -o whole.c --target $target --dim length=1..32 \
            --dim batch=1 "$@"
        build -DVOCABULARY="$vocabulary" "$here/functions.c" step.c whole.c -o compare >out 2>err && ./compare >out 2>&1
        result $? "$model, $target: 16 tokens step by step are those of the whole sequence: $(cat out)"
    done
}
generates llama 96 --set layers=2 --set width=64 --set heads=4 --set kv_heads=2 --set inner=128 --set vocabulary=96
generates gpt2 96 --set layers=2 --set width=64 --set heads=4 --set vocabulary=96 --set positions=32
! sed -n '/^int step_step/,/^}/p' step.c | grep -q memcpy
result $? "no cache is copied"
grep -q 'attn_k + 16 \* n_past_size, ' step.c
result $? "a step writes its own rows"
status 0 "a large one" "$burncc" "$root/models/llama.c" -o big.c --target native --dim length=1..32 --set cache=32 \
    --set layers=1 --set width=64 --set heads=4 --set kv_heads=2 --set inner=96 --set vocabulary=96 --embed-limit 0
grep -q 'big_step(big_workspace \*ws, const void \*weights, ' big.h && [ -s big.bin ]
result $? "its weights are one file"

status 0 "an example" "$burncc" "$root/models/llama.c" -o lm.c --dim length=1..64 --set cache=64 --set layers=2 \
    --set width=64 --set heads=4 --set kv_heads=2 --set inner=128 --set vocabulary=96
build "$root/examples/generate/generate.c" lm.c -o generate >out 2>err && ./generate 16 3 14 15 >out 2>err
result $? "generates"
[ "$(wc -w <out)" = 16 ]
result $? "sixteen tokens"

# ---- --function
body <<'END'
    function("twice") {
        Tensor x = input("x", F32, 2), h = state("sum", F32, 2);
        output("y", mul(x, 2));
        state_set(h, add(h, x));
    }
    function("read") output("y", add(input("x", F32, 2), parameter("w", (2), .init = init_constant(3))));
END
echo '1 2' >x.txt
echo '10 20' >sum.txt
status 2 "none is chosen" "$burncc" run m.c --input x=x.txt
says 'm.c: error: the model has the functions twice, read; choose one with --function'
status 2 "one that there is not" "$burncc" run m.c --function red --input x=x.txt
says 'm.c: error: --function red: the model has the functions twice, read'
status 2 "of a model without" "$burncc" run "$root/models/lenet.c" --function red
says 'lenet.c: error: --function red: the model has no functions'
status 0 "one" "$burncc" run m.c --function read --input x=x.txt
says '^  4 5$'
status 0 "a state that begins as zero" "$burncc" run m.c --function twice --input x=x.txt
says '^  2 4$'
says '^  1 2$'
status 0 "and as a file" "$burncc" run m.c --function twice --input x=x.txt --input sum=sum.txt
says '^  11 22$'
status 0 "bench" "$burncc" bench m.c --function twice --seconds 0.01
says 'median_ms='
status 0 "bench where an input says how much there is" "$burncc" bench "$root/models/gpt2.c" --function step \
    --set cache=8 --set layers=1 --set width=16 --set heads=2 --set vocabulary=30 --set positions=8 --seconds 0.01
says 'median_ms='
status 2 "tune" "$burncc" tune m.c --seconds 0.1
says 'tune: the model has several functions; choose one with --function'
status 0 "inspect" "$burncc" inspect m.c
says '^function +twice$'
says '^function +read$'
says '^inputs +x: f32\[2\]$'
status 1 "train" "$burncc" m.c -o t.c --train
says 'm.c: error: --train wants a model of one function without a state; --function NAME chooses one of several'

# ---- a state that is read as it was, and one that another takes over: no place is written too early
body <<'END'
    Tensor x = input("x", F32, 3), a = state("a", F32, 3), b = state("b", F32, 3);
    output("y", add(x, flip(b, 0)));
    state_set(a, add(flip(a, 0), x));
    state_set(b, a);
END
printf '1 2 3' >a.txt
printf '10 20 30' >b.txt
printf '0 0 100' >x.txt
status 0 "old values" "$burncc" run m.c --input x=x.txt --input a=a.txt --input b=b.txt
says '^  30 20 110$'
says '^  3 2 101$'
says '^  1 2 3$'

# ---- mistakes
mistake "a function without an output" 4:5 'function "f" has no output: output\("name", x\)' <<'END'
    function("f") relu(input("x", F32, 2));
END
mistake "two of one name" 5:5 'there is a function "f" already' <<'END'
    function("f") output("y", relu(input("x", F32, 2)));
    function("f") output("y", relu(input("x", F32, 2)));
END
mistake "a name that C has not" 4:5 'a function is called like one of C, not "a-b"' <<'END'
    function("a-b") output("y", relu(input("x", F32, 2)));
END
mistake "one inside another" 5:9 'a function stands in no other, here in "f"' <<'END'
    function("f") { output("y", relu(input("x", F32, 2)));
        function("g") output("z", relu(input("z", F32, 2))); }
END
mistake "an input outside" 5:17 'an input of a model with functions stands inside one of them' <<'END'
    function("f") output("y", relu(input("x", F32, 2)));
    Tensor z =  input("z", F32, 2); (void)z;
END
mistake "inputs before" 5:5 'the model has inputs and outputs outside of functions; they stand inside' <<'END'
    Tensor z = input("z", F32, 2);
    function("f") output("y", relu(z));
END
mistake "a tensor of another function" 6:31 'uses a tensor of function "f"' <<'END'
    Tensor x;
    function("f") output("y", relu(x = input("x", F32, 2)));
    function("g") output("y", neg(x));
END
mistake "a state that is never set" 5:16 'state "s" is never set: state_set\(x, to\)' <<'END'
    output("y", relu(input("x", F32, 2)));
    Tensor s = state("s", F32, 2); (void)s;
END
mistake "a state that is none" 5:5 'wants what state\(\) gave, and its new value' <<'END'
    Tensor x = input("x", F32, 2);
    state_set(x, relu(x)); output("y", x);
END
mistake "of another shape" 5:5 '"s" is f32\[2\] and becomes no f32\[2,1\]' <<'END'
    Tensor x = input("x", F32, 2, 1), s = state("s", F32, 2);
    state_set(s, x); output("y", x);
END
mistake "of another shape elsewhere" 5:47 '"s" is f32\[2\] in another function, here f32\[3\]' <<'END'
    function("f") { Tensor s = state("s", F32, 2); output("y", state_set(s, relu(s))); }
    function("g") { Tensor /*          */ s = state("s", F32, 3); output("y", state_set(s, relu(s))); }
END
mistake "set twice" 6:5 '"s" is set already' <<'END'
    Tensor x = input("x", F32, 2), s = state("s", F32, 2);
    state_set(s, x);
    state_set(s, x); output("y", x);
END
mistake "a state that grows" 4:16 'its sizes must be numbers, not f32\[n\]' <<'END'
    Tensor s = state("s", F32, symbol("n")); output("y", input("x", F32, 2)); (void)s;
END
mistake "no room" 5:17 'axis 0 of .*f32\[4\].* does not surely have 1 elements from p_size on; bound the sizes' <<'END'
    Dim p = size_of(input("p", I64), 0, 4);
    output("y", cached(input("x", F32, 1), "c", 0, 4, p));
END
finish
