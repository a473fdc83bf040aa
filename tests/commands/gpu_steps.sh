#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --target vulkan where a program is more than one list of kernels: sizes that the run is told, several functions with a
# state, training. Each beside the same for generic; in memory of any kind, from two threads, and what is refused. Skips
# where no Vulkan device is.
source "$(dirname "$0")/tap.sh"
runtime=$here/../../runtime
warnings="-std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror"

for part in vulkan vulkan_steps; do ${CC:-cc} -O1 -c "$runtime/$part.c" -o $part.o || exit 1; done
cat >probe.c <<'END'
#include "burn.h"
int main(void) { return burn_gpu_memory(1) ? 0 : 1; }
END
"$burncc" scores.onnx --target vulkan -o scores.c >out 2>err
${CC:-cc} -I "$runtime" probe.c vulkan.o vulkan_steps.o -lvulkan -pthread -o probe
if grep -q 'built without' err || ! ./probe; then
    echo "1..0 # SKIP no Vulkan device"
    exit 0
fi

link() { ${CC:-cc} -O1 -I . -I "$runtime" "$@" vulkan.o vulkan_steps.o -lvulkan -pthread -lm; }
made() { # OPTIONS: net.c and net.h of the description given
    status 0 "code: $*" "$burncc" -q "$@" -o net.c
    ${CC:-cc} -O1 $warnings -I . -c net.c -o net.o >out 2>err
    result $? "C99 without warnings"
}
close() { # WHAT A B [WITHIN]: the same words, numbers within 1e-5, or that, of the largest
    python3 - "$2" "$3" "${4:-1e-5}" >out 2>err <<'END'
import sys
within = float(sys.argv.pop())
a, b = (open(p).read().split() for p in sys.argv[1:])
assert len(a) == len(b) > 0, (a, b)
scale = max(abs(float(x)) for x in a)
worst = max(abs(float(x) - float(y)) for x, y in zip(a, b))
print(worst / scale)
assert worst <= within * scale, (worst, scale)
END
    result $? "$1: $(cat out)"
}

cat >model.c <<'END'
#include <burncc/model.h>
MODEL(net)
{
    Dim batch = symbol("batch");
    Tensor x = input("x", F32, batch, 1, 8, 8);
    x = dropout(relu(conv2d(x, "conv", 4, 3, .padding = 1)), 0.25);
    x = relu(linear(flatten(x, 1), "fc", 17));
    output("scores", linear(x, "out", 5));
}
END

# ---- sizes that the run is told: every batch, those outside, null pointers
cat >sizes.c <<'END'
#include "net.h"
#include <math.h>
#include <stdio.h>
int main(void)
{
    static net_workspace ws;
    static float x[9 * 64], y[9 * 5];
    for (int i = 0; i < 9 * 64; i++) x[i] = sinf(0.7f * (float)i);
    for (int turn = 0; turn < 40; turn++) { // each twice, for commands of the last few calls are kept, and all again
        const int batch = turn / 2 % 10;
        x[0] = (float)turn;
        const int code = net_run(&ws, batch, x, y);
        printf("%d", code);
        for (int i = 0; !code && i < 5 * batch; i++) printf(" %.9g", (double)y[i]);
        printf("\n");
    }
    return net_run(NULL, 1, x, y) == BURN_EINVAL && net_run(&ws, 1, NULL, y) == BURN_EINVAL ? 0 : 1;
}
END
for options in "--target generic" "--target vulkan" "--target vulkan --no-fuse" "--target vulkan --fast-math"; do
    made model.c $options --dim batch=1..8
    link sizes.c net.o -o sizes >out 2>err && ./sizes >"sizes $options.txt" 2>err
    result $? "runs at every size: $options"
    close "the same numbers: $options" "sizes --target generic.txt" "sizes $options.txt"
done

# ---- what the driver makes of kernels is kept in a folder, written once: by the variable, and by a call
cat >kept.c <<'END'
#include "net.h"
#include <burn.h>
#include <string.h>
int main(int argc, char **argv)
{
    static net_workspace ws;
    static float x[64], y[5];
    if (argc > 1 && (burn_gpu_cache("nowhere") != BURN_EIO || !strstr(burn_gpu_error(), "nowhere"))) return 2;
    if (argc > 1 && burn_gpu_cache(argv[1])) return 3;
    const int code = net_run(&ws, 1, x, y);
    burn_gpu_close();
    return code;
}
END
mkdir by_variable by_call
link kept.c net.o -o kept >out 2>err && BURN_VK_CACHE=by_variable ./kept
result $? "keeps kernels where the variable says"
was=$(stat -c '%i %s' by_variable/burn-*.vkcache)
BURN_VK_CACHE=by_variable ./kept
[ $? = 0 ] && [ "$was" ] && [ "$(stat -c '%i %s' by_variable/*)" = "$was" ]
result $? "finds them there, and has nothing to write: $was"
./kept by_call
[ $? = 0 ] && [ "$(stat -c %s by_call/burn-*.vkcache)" = "${was#* }" ]
result $? "keeps them where a call says"

# a size of the run that no kernel has: of the input there is less than there might be
cat >ends.txt <<'END'
graph net(%0 x: f32[n,300], %1 y: f32[7]) {
  dim n 1..40000
  %3 = Neg(%1)
  return %3 minus
}
END
cat >ends.c <<'END'
#include "net.h"
int main(void)
{
    static net_workspace ws;
    static float x[2 * 300], y[7] = { 0, 1, 2, 3, 4, 5, 6 }, minus[7];
    const int code = net_run(&ws, 2, x, y, minus);
    return code ? code : minus[6] == -6 ? 0 : 1;
}
END
made ends.txt --target vulkan
link ends.c net.o -o ends >out 2>err && ./ends >out 2>&1
result $? "takes what there is of an input: $(head -3 err)"

# ---- what --report says of the device's memory is what a call takes
cat >usage.c <<'END'
#include "net.h"
#include <burn.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef OWN
#define memory burn_gpu_memory
#else
#define memory malloc
#endif
int main(void)
{
    size_t now, most;
    static float x[8 * 64], y[8 * 5];
#ifdef LEARNS
    static int64_t target[8];
    net_gradients_workspace *ws = memory(sizeof *ws);
    net_params *params = calloc(1, sizeof *params), *grads = calloc(1, sizeof *grads);
    const int code = net_gradients(ws, 8, x, params, target, 1, y, grads);
#else
    net_workspace *ws = memory(sizeof *ws);
    const int code = net_run(ws, 8, x, y);
#endif
#ifdef OWN
    burn_gpu_memory_free(ws);
#endif
    burn_gpu_usage(&now, &most);
    printf("%zu %zu\n", now, most);
    return code;
}
END
used() { # FUNCTION OPTIONS: constants stay, and what the function's line says is theirs besides
    status 0 "memory of net_$1" "$burncc" -q model.c --target vulkan --dim batch=1..8 --report -o net.c "${@:2}"
    cp out report.txt
    constants=$(sed -n 's/^device memory.*: \([0-9]*\) bytes of constants and counters.*/\1/p' report.txt)
    call=$(sed -n "s/^  net_$1: \([0-9]*\),.*/\1/p" report.txt)
    ${CC:-cc} -O1 -I . -c net.c -o net.o && link $defines usage.c net.o -o usage >out 2>err && ./usage >out 2>err
    [ "$(cat out)" = "$constants $((constants + call))" ]
    result $? "is what it takes: $constants + $call, $(cat out err)"
}
defines= used run
defines=-DOWN used run # a workspace of the device's memory is the one that is used
defines=-DLEARNS used gradients --train
defines="-DLEARNS -DOWN" used gradients --train

status 1 "times of its kernels" "$burncc" bench model.c --dim batch=1..4 --target vulkan --profile
says 'control on the host'

# ---- several functions over a state: tokens step by step, with a cache that stays on the device, and at once
small="--set layers=1 --set width=32 --set heads=4 --set kv_heads=2 --set inner=64 --set vocabulary=96"
llama="$here/../../models/llama.c --target vulkan --dim length=1..32"
status 0 "steps" "$burncc" -q $llama -o step.c --set cache=32 $small
status 0 "at once" "$burncc" -q $llama -o whole.c --dim batch=1 $small
link -DVOCABULARY=96 "$here/functions.c" step.c whole.c -o compare >out 2>err && ./compare >out 2>&1
result $? "16 tokens step by step are those of the whole sequence: $(cat out)"
cat >two.c <<'END'
#include <burncc/model.h>
MODEL(two) {
    function("a") output("y", conv2d(input("x", F32, 1, 512, 4, 4), "ca", 32, 3, .padding = 1));
    function("b") output("z", conv2d(input("u", F32, 1, 256, 4, 4), "cb", 16, 3, .padding = 1));
}
END
# of few pixels and many terms: shares, which are counted, run after run
cat >rounds.c <<'END'
#include "net.h"
#include <math.h>
#include <stdio.h>
int main(void)
{
    static net_workspace ws;
    static float x[512 * 16], y[32 * 16], z[16 * 16];
    int code = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 512 * 16; i++) x[i] = sinf(0.7f * (float)(i + round));
        code = code ? code : net_a(&ws, x, y);
        code = code ? code : net_b(&ws, x + round, z);
        for (int i = 0; i < 32 * 16; i++) printf("%.9g ", (double)y[i]);
        for (int i = 0; i < 16 * 16; i++) printf("%.9g ", (double)z[i]);
    }
    return code ? 1 : 0;
}
END
for target in generic vulkan; do
    made two.c --target $target --seed 3
    link rounds.c net.o -o rounds >out 2>err && ./rounds >"rounds $target.txt" 2>err
    result $? "convolutions of several functions: $target"
done
close "the same numbers" "rounds generic.txt" "rounds vulkan.txt"
[ "$(grep -c '_words\[' net.c) $(grep -c 'gpu->counters(gpu, 1)' net.c)" = "2 2" ]
result $? "they are the GPU's, in shares"

# ---- training: losses and parameters of generic's, by both ways of a step; structs in any memory; two threads at once
cat >train.c <<'END'
#include "net.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef GPU
#include <burn.h>
#include <pthread.h>
#else
#define burn_gpu_memory(bytes) calloc(1, bytes)
#endif
enum { BATCH = 3, ROWS = 4 };
typedef struct Run { net_params *params, *grads; net_state *state; float losses[8]; int code; } Run;
static float x[BATCH * 64];
static int64_t target[BATCH] = { 4, 0, 2 };

static void *run(void *argument)
{
    Run *r = argument;
    net_train_step_workspace *step = malloc(sizeof *step);
    net_gradients_workspace *work = malloc(sizeof *work);
    net_params_init(r->params);
    for (int i = 0; i < 8; i++) {
        int code;
        if (i % 2)
            code = net_train_step(step, BATCH, x, r->params, target, i + 1, 0.01f, 0.9f, 0.999f, 1e-3f, 0, r->state,
                &r->losses[i]);
        else {
            code = net_gradients(work, BATCH, x, r->params, target, i + 1, &r->losses[i], r->grads);
            if (!code) code = net_update(0.01f, 0.9f, 0.999f, 1e-3f, 0, (float)(i + 1), r->params, r->grads, r->state);
        }
        r->code = r->code ? r->code : code;
    }
    free(step);
    free(work);
    return NULL;
}

static Run fresh(void *(*memory)(size_t))
{
    Run r = { memory(sizeof(net_params)), memory(sizeof(net_params)), memory(sizeof(net_state)), { 0 }, 0 };
    if (!r.params || !r.grads || !r.state) exit(3);
    return r;
}
static void *own(size_t bytes) { return burn_gpu_memory(bytes); }
static void *host(size_t bytes) { return calloc(1, bytes); }

int main(void)
{
    for (int i = 0; i < BATCH * 64; i++) x[i] = sinf(0.7f * (float)i);
    Run r[2] = { fresh(own), fresh(host) };
#ifdef GPU
    pthread_t other;
    pthread_create(&other, NULL, run, &r[1]);
    run(&r[0]);
    pthread_join(other, NULL);
    if (burn_gpu_memory((size_t)1 << 45) || !strstr(burn_gpu_error(), "no room for")) return 2;
#else
    run(&r[0]);
    run(&r[1]);
#endif
    if (r[0].code || r[1].code || memcmp(r[0].params, r[1].params, sizeof(net_params))) return 1;
    for (int i = 0; i < 8; i++) printf("%.9g\n", (double)r[0].losses[i]);
    const float *p = (const float *)(const void *)r[0].params;
    for (size_t i = 0; i < sizeof(net_params) / sizeof *p; i += 7) printf("%.9g\n", (double)p[i]);
#ifdef GPU
    burn_gpu_memory_free(r[0].params);
    burn_gpu_close();
    r[0] = fresh(own);                                  // opens it again
    run(&r[0]);
    if (r[0].code || memcmp(r[0].params, r[1].params, sizeof(net_params))) return 4;
    burn_gpu_close();
#endif
    return 0;
}
END
for options in "--target generic" "--target vulkan" "--target vulkan --train-memory 22K"; do
    made model.c --train --optimizer adam --dim batch=1..4 $options
    gpu=-DGPU
    [ "$options" = "--target generic" ] && gpu=-DC
    link $gpu train.c net.o -o train >out 2>err && ./train >"train $options.txt" 2>err
    result $? "learns: $options"
    close "the same losses and weights: $options" "train --target generic.txt" "train $options.txt"
    [ $gpu = -DGPU ] || continue
    BURN_VK_STAGING=1 ./train >staged.txt 2>err && cmp -s staged.txt "train $options.txt"
    result $? "and where what goes back is staged"
done
# in 16 bits between kernels, over weights of 32: a step that goes either way moves a weight by at most the rate. Of
# convolutions the channels lie last then, forward and back: with strides, of one point, depthwise, before a pool.
# But for that nothing in it has a kink, beside which a rounding takes another way: with ReLU for SiLU, steps in f32 of
# inputs that differ by 0.2 % end 0.004 to 0.054 apart (six tries; bf16 0.032, f16 0.037), and with SiLU 0.002 to 0.005
cat >maps.c <<'END'
#include <burncc/model.h>
MODEL(net)
{
    Tensor x = input("x", F32, symbol("batch"), 1, 8, 8);
    x = silu(batch_norm(conv2d(x, "a", 16, 3, .padding = 1, .bias = NO), "an"));
    Tensor y = silu(conv2d(x, "b", 16, 3, .padding = 1, .stride = 2));
    y = conv2d(y, "c", 16, 3, .padding = 1, .groups = 16);
    x = silu(add(conv2d(x, "d", 16, 1, .stride = 2), max_pool2d(y, 3, .stride = 1, .padding = 1)));
    x = silu(conv2d(x, "e", 24, 2));
    output("scores", linear(flatten(adaptive_avg_pool2d(x, 1), 1), "out", 5));
}
END
sed 's/(step, BATCH, /(step, /; s/(work, BATCH, /(work, /' train.c >model_static.c
sed 's/target, i + 1, \(.*\), r->state/target, \1, (float)(i + 1), r->state/; s/target, i + 1, /target, /' \
    model_static.c >maps_static.c
for net in model maps; do
    made $net.c --train --optimizer adam --dim batch=3 --target generic
    link -DC ${net}_static.c net.o -o train >out 2>err && ./train >"$net generic.txt" 2>err
    result $? "$net learns: generic $(head -3 err)"
    for precision in bf16 f16; do
        made $net.c --train --optimizer adam --dim batch=3 --target vulkan --precision $precision --loss-scale none
        link -DGPU ${net}_static.c net.o -o train >out 2>err && ./train >"$net $precision.txt" 2>err
        result $? "$net learns in $precision: $(head -3 err)"
        close "about the same losses and weights of $net in $precision" "$net generic.txt" "$net $precision.txt" 0.02
    done
done
# ---- two devices: each a thread's own, with parameters of its own; gradients are summed on the host
cat >devices.c <<'END'
#include "net.h"
#include <burn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { BATCH = 3, NUMBERS = sizeof(net_params) / sizeof(float) };
typedef struct Part { const char *device; int code; float loss; net_params *sum; net_params grads; } Part;
static float x[2][BATCH * 64];
static int64_t target[2][BATCH] = { { 4, 0, 2 }, { 1, 3, 0 } };
static pthread_barrier_t meeting;
static Part parts[2];

static void *learn(void *argument)
{
    Part *p = argument;
    const int me = (int)(p - parts);
    size_t now, most;
    p->code = burn_gpu_use(p->device);
    if (p->code) return puts(burn_gpu_error()), NULL;
    net_params *params = burn_gpu_memory(sizeof *params), *grads = burn_gpu_memory(sizeof *grads);
    net_state *state = burn_gpu_memory(sizeof *state);
    net_gradients_workspace *work = burn_gpu_memory(sizeof *work);
    net_params_init(params);
    for (int step = 0; step < 4; step++) {
        p->code = p->code ? p->code : net_gradients(work, x[me], params, target[me], &p->loss, grads);
        p->code = p->code ? p->code : burn_gpu_copy(&p->grads, grads, sizeof *grads);
        pthread_barrier_wait(&meeting);
        net_params sum = parts[0].grads;
        for (int i = 0; i < NUMBERS; i++)
            ((float *)(void *)&sum)[i] = 0.5f * (((float *)(void *)&sum)[i] + ((float *)(void *)&parts[1].grads)[i]);
        pthread_barrier_wait(&meeting);
        p->code = p->code ? p->code : burn_gpu_copy(grads, &sum, sizeof sum);
        p->code = p->code ? p->code :
            net_update(0.01f, 0.9f, 0.999f, 1e-3f, 0, (float)(step + 1), params, grads, state);
    }
    if (!p->code) p->code = burn_gpu_copy(p->sum, params, sizeof *params);
    burn_gpu_usage(&now, &most);
    if (now < 3 * sizeof *params) p->code = 9;
    burn_gpu_memory_free(grads);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 2 * BATCH * 64; i++) (&x[0][0])[i] = sinf(0.7f * (float)i);
    pthread_barrier_init(&meeting, NULL, 2);
    if (burn_gpu_use("no such device") != BURN_ENODEV || !strstr(burn_gpu_error(), "no such device")) return 1;
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        parts[i] = (Part){ .device = i ? "#0" : NULL, .sum = malloc(sizeof(net_params)) };
        pthread_create(&thread[i], NULL, learn, &parts[i]);
    }
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    if (parts[0].code || parts[1].code) return 2;
    if (memcmp(parts[0].sum, parts[1].sum, sizeof(net_params))) return 3;
    for (int i = 0; i < 2; i++) printf("%.9g ", (double)parts[i].loss);
    for (int i = 0; i < NUMBERS; i += 7) printf("%.9g ", (double)((float *)(void *)parts[0].sum)[i]);
    if (burn_gpu_use("#0")) return 4;
    burn_gpu_close();
    return burn_gpu_use(NULL) ? 5 : (burn_gpu_close(), 0);
}
END
cat >alone.h <<'END'
/* the same by any target, with the host's memory */
#include <stdlib.h>
#include <string.h>
#define BURN_ENODEV -7
#define burn_gpu_use(device) ((device) != NULL && strlen(device) > 2 ? BURN_ENODEV : 0)
#define burn_gpu_memory(bytes) calloc(1, bytes)
#define burn_gpu_memory_free(memory) free(memory)
#define burn_gpu_copy(to, from, bytes) (memcpy(to, from, bytes), 0)
#define burn_gpu_usage(now, most) (*(now) = *(most) = (size_t)1 << 40)
#define burn_gpu_error() "no such device"
#define burn_gpu_close() ((void)0)
END
sed 's/<burn.h>/"alone.h"/' devices.c >alone.c
made maps.c --train --optimizer adam --dim batch=3 --target generic
link alone.c net.o -o devices >out 2>err && ./devices >"devices generic.txt" 2>err
result $? "two threads, without a device: $(head -3 err)"
made maps.c --train --optimizer adam --dim batch=3 --target vulkan
link devices.c net.o -o devices >out 2>err && ./devices >"devices vulkan.txt" 2>err
result $? "two threads with a device each: $(head -3 err)"
close "the same losses and weights by two devices" "devices generic.txt" "devices vulkan.txt"

# products of widths that are multiples of four, and not: what is wide in the forward pass lies across in the backward
cat >wide.c <<'END'
#include <burncc/model.h>
MODEL(net)
{
    Tensor x = input("x", F32, symbol("batch"), 68);
    x = relu(linear(x, "a", 132));
    x = relu(linear(x, "b", 97));
    output("scores", linear(x, "c", 72));
}
END
for target in generic vulkan; do
    status 0 "wide: $target" "$burncc" verify wide.c --train --gradients --loss cross_entropy --optimizer sgd \
        --dim batch=64 --target $target
done

# logits of more than a team keeps in registers: their logarithms lie over them, as their gradients do; what is
# normalized is made again by who reads it, of what is stored in front
cat >norms.c <<'END'
#include <burncc/model.h>
MODEL(net)
{
    Tensor x = linear(input("x", F32, symbol("batch"), 24), "a", 128);
    x = add(x, linear(layer_norm(x, "an"), "b", 128));
    output("scores", linear(layer_norm(x, "bn"), "out", 17001));
}
END
status 0 "long rows, norms" "$burncc" verify norms.c --train --gradients --loss cross_entropy --optimizer sgd \
    --dim batch=4 --target vulkan
status 0 "their memory" "$burncc" -q norms.c --train --dim batch=512 --target vulkan --report -o net.c
work=$(sed -n 's/^  net_gradients: .* a workspace of \([0-9]*\);.*/\1/p' out)
kept=$(grep -c '^k[0-9]*_[ab]n .* Mul$' out)
[ "$work" -lt $((512 * 17001 * 4 * 3 / 2)) ] && [ "$kept" = 0 ]
result $? "logits once, and nothing that is only multiplied is stored: $work, $kept"

# what costs little is made again where that saves memory, unasked: the same bits, and less of it
cat >again.c <<'END'
#include <burncc/model.h>
MODEL(net)
{
    Tensor x = input("x", F32, symbol("batch"), 3, 32, 32);
    x = relu(batch_norm(conv2d(x, "a", 16, 3, .padding = 1), "an"));
    x = relu(batch_norm(conv2d(x, "b", 16, 3, .padding = 1), "bn"));
    x = relu(batch_norm(conv2d(x, "c", 16, 3, .padding = 1), "cn"));
    output("scores", linear(flatten(x, 1), "out", 5));
}
END
cat >bits.c <<'END'
#include "net.h"
#include <math.h>
#include <stdio.h>
static net_gradients_workspace work;
static net_params params, grads;
int main(void)
{
    static float x[4 * 3 * 32 * 32], loss;
    int64_t target[4] = { 0, 4, 2, 1 };
    unsigned long long sum = 0;
    for (int i = 0; i < 4 * 3 * 32 * 32; i++) x[i] = sinf(0.7f * (float)i);
    net_params_init(&params);
    const int code = net_gradients(&work, x, &params, target, &loss, &grads);
    for (size_t i = 0; i < sizeof grads; i++) sum = sum * 1099511628211u + ((const unsigned char *)&grads)[i];
    printf("%.9g %llx\n", (double)loss, sum);
    return code;
}
END
for memory in 1G ""; do
    status 0 "workspace of ${memory:-what is spared}" "$burncc" -q again.c --train --dim batch=4 --precision bf16 \
        --target vulkan --report ${memory:+--train-memory $memory} -o net.c
    again=$(grep -c ', again$' out)
    all=$work work=$(sed -n 's/^  net_gradients: .* a workspace of \([0-9]*\);.*/\1/p' out)
    ${CC:-cc} -O1 -I . -c net.c -o net.o && link bits.c net.o -o bits >out 2>err && ./bits >"bits$memory.txt" 2>err
    result $? "computes gradients: $(cat "bits$memory.txt")"
done
[ "$again" -gt 0 ] && [ "$work" -lt "$all" ] && cmp bits.txt bits1G.txt
result $? "$again kernels run again, $work bytes for $all, and the gradients are the same"

# what a loop gives has no place yet when products are chosen
status 0 "a recurrent net of many images" "$burncc" -q "$here/../../models/gru_classifier.c" --train --dim batch=16 \
    --target vulkan -o gru.c

# ---- memory beyond what a kernel sees of a buffer, where that is 128 MiB; the time of each kernel
cat >far.c <<'END'
#include "net.h"
#include <burn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static float x[64], seen;
static int64_t target[1] = { 4 };
static int kernels;
static void watch(void *context, const char *name, double ms)
{
    if (context != &kernels || strncmp(name, "net_", 4) || !(ms >= 0)) exit(9);
    kernels++;
}
static int once(const net_params *p, net_params *g)
{
    static net_gradients_workspace work;
    return net_gradients(&work, x, p, target, 1, &seen, g);
}
int main(void)
{
    const size_t most = (size_t)200 << 20;
    net_params *p = burn_gpu_memory(sizeof *p), *g = burn_gpu_memory(sizeof *g);
    for (int i = 0; i < 64; i++) x[i] = sinf(0.7f * (float)i);
    net_params_init(p);
    if (once(p, g)) return 1;
    const float loss = seen;
    unsigned char *filler = burn_gpu_memory(most);
    net_params *q = burn_gpu_memory(sizeof *q), *h = burn_gpu_memory(sizeof *h);
    if (!filler || !q || !h) return 2;
    burn_gpu_memory_free(g); /* what the call takes goes behind the filler, but for this */
    net_params_init(q);
    unsigned char *low = burn_gpu_memory(sizeof *g);
    if (once(q, h) || memcmp(&seen, &loss, sizeof loss)) return 3;
    const int code = once(p, h); /* from one end to the other */
    if (code != BURN_ELIMIT && code) return 4;
    if (code && !strstr(burn_gpu_error(), "reaches over")) return 5;
    if (burn_gpu_watch(watch, &kernels) || once(q, h) || kernels < 5 || memcmp(&seen, &loss, sizeof loss)) return 6;
    const int was = kernels;
    if (burn_gpu_watch(NULL, NULL) || once(q, h) || kernels != was) return 7;
    printf("%d kernels\n", kernels);
    burn_gpu_memory_free(low);
    burn_gpu_close();
    return 0;
}
END
made model.c --train --optimizer adam --dim batch=1 --target vulkan
link far.c net.o -o far >out 2>err && ./far >out 2>err
result $? "memory of more than a kernel sees, kernels that are watched: $(cat out)"
status 0 "a profile of training" "$burncc" bench model.c --train --dim batch=2 --target vulkan --profile --seconds 0.3
grep -q '^program gradients' out && grep -q '^program update' out && grep -q '^k0_.*conv.* [0-9.]* %' out
result $? "names the kernels of both parts"
finish
