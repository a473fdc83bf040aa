// SPDX-License-Identifier: MIT OR Apache-2.0
// oneDNN (its C interface, version 2) as a contestant of scripts/bench, for models that are one convolution of 2-D
// images with constant weights. It chooses the layouts; a run is the kernel alone on tensors that are in them
// already, so this is a yardstick for kernels: in a model the first and last of these also reorder.
//
// usage: onednn ALGORITHM FOLDER N C H W OC KH KW OH OW STRIDE_H STRIDE_W TOP LEFT BOTTOM RIGHT GROUPS BIAS
// ALGORITHM: direct or winograd
#include "worker.h"

#include <dnnl.h>
#if DNNL_VERSION_MAJOR != 2
#error "this is for version 2 of oneDNN"
#endif

enum Size { N, C, H, W, OC, KH, KW, OH, OW, SH, SW, TOP, LEFT, BOTTOM, RIGHT, GROUPS, BIAS, SIZES };

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t kernel;
static dnnl_memory_t source, weights, bias, result;
static Tensor out;

static void check(dnnl_status_t s, const char *what) {
    if (s != dnnl_success) worker_fail("oneDNN", what);
}

static int worker_run(void) {
    dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, source }, { DNNL_ARG_WEIGHTS, weights }, { DNNL_ARG_DST, result },
        { DNNL_ARG_BIAS, bias } };
    return dnnl_primitive_execute(kernel, stream, bias ? 4 : 3, args) != dnnl_success
        || dnnl_stream_wait(stream) != dnnl_success;
}

static void reorder(
    dnnl_memory_t from, const dnnl_memory_desc_t *from_desc, dnnl_memory_t to, const dnnl_memory_desc_t *to_desc) {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    check(dnnl_reorder_primitive_desc_create(&desc, from_desc, engine, to_desc, engine, NULL), "no such reorder");
    check(dnnl_primitive_create(&primitive, desc), "no reorder");
    dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    check(dnnl_primitive_execute(primitive, stream, 2, args), "a reorder failed");
    check(dnnl_stream_wait(stream), "a reorder failed");
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
}

// Plain data as a memory in the layout that the kernel asks for.
static dnnl_memory_t given(void *data, const dnnl_memory_desc_t *plain, const dnnl_memory_desc_t *wanted) {
    dnnl_memory_t from, to;
    check(dnnl_memory_create(&from, plain, engine, data), "no memory");
    check(dnnl_memory_create(&to, wanted, engine, DNNL_MEMORY_ALLOCATE), "no memory");
    reorder(from, plain, to, wanted);
    return to;
}

static dnnl_memory_desc_t described(int rank, const dnnl_dim_t *dims, dnnl_format_tag_t tag) {
    dnnl_memory_desc_t d;
    check(dnnl_memory_desc_init_by_tag(&d, rank, dims, dnnl_f32, tag), "a tensor that it cannot describe");
    return d;
}

static void kernel_make(const char *folder, dnnl_alg_kind_t algorithm, const dnnl_dim_t *s) {
    const dnnl_dim_t in_dims[] = { s[N], s[C], s[H], s[W] }, out_dims[] = { s[N], s[OC], s[OH], s[OW] };
    const dnnl_dim_t w_dims[] = { s[GROUPS], s[OC] / s[GROUPS], s[C] / s[GROUPS], s[KH], s[KW] }, b_dims[] = { s[OC] };
    const int grouped = s[GROUPS] > 1, w_rank = 4 + grouped;
    const dnnl_dim_t *w_used = grouped ? w_dims : w_dims + 1;
    dnnl_memory_desc_t x = described(4, in_dims, dnnl_format_tag_any), y = described(4, out_dims, dnnl_format_tag_any);
    dnnl_memory_desc_t w = described(w_rank, w_used, dnnl_format_tag_any), b = described(1, b_dims, dnnl_a);
    dnnl_convolution_desc_t convolution;
    dnnl_primitive_desc_t desc;
    check(dnnl_convolution_forward_desc_init(&convolution, dnnl_forward_inference, algorithm, &x, &w,
              s[BIAS] ? &b : NULL, &y, &s[SH], &s[TOP], &s[BOTTOM]),
        "a convolution that it cannot describe");
    check(dnnl_primitive_desc_create(&desc, &convolution, NULL, engine, NULL),
        "no kernel of this algorithm for the shape");
    check(dnnl_primitive_create(&kernel, desc), "no kernel");
    const dnnl_memory_desc_t plain_x = described(4, in_dims, dnnl_nchw),
                             plain_w = described(w_rank, w_used, grouped ? dnnl_goihw : dnnl_oihw);
    source = given(worker_load(folder, "in", 0, dnnl_memory_desc_get_size(&plain_x)), &plain_x,
        dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0));
    weights = given(worker_load(folder, "w", 0, dnnl_memory_desc_get_size(&plain_w)), &plain_w,
        dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0));
    if (s[BIAS])
        bias = given(worker_load(folder, "w", 1, (size_t)s[OC] * sizeof(float)), &b,
            dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1));
    check(dnnl_memory_create(
              &result, dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0), engine, DNNL_MEMORY_ALLOCATE),
        "no memory");
}

// The result in the plain layout, for the comparison.
static void result_copy(const dnnl_dim_t *s) {
    const dnnl_dim_t dims[] = { s[N], s[OC], s[OH], s[OW] };
    const dnnl_memory_desc_t plain = described(4, dims, dnnl_nchw), *own;
    dnnl_memory_t to;
    check(dnnl_memory_get_memory_desc(result, &own), "no layout");
    check(dnnl_memory_create(&to, &plain, engine, out.data), "no memory");
    reorder(result, own, to, &plain);
}

int main(int argc, char **argv) {
    dnnl_dim_t sizes[SIZES];
    if (argc != 3 + SIZES) worker_fail(argv[0], "wants ALGORITHM FOLDER and the sizes");
    for (int i = 0; i < SIZES; i++) sizes[i] = atoi(argv[3 + i]);
    int64_t began = worker_now();
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "no engine");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "no stream");
    kernel_make(argv[2], strcmp(argv[1], "winograd") ? dnnl_convolution_direct : dnnl_convolution_winograd, sizes);
    int64_t loaded = worker_now();
    if (worker_run()) worker_fail("oneDNN", "the first run failed");
    int64_t ran = worker_now();
    worker_read_table(argv[2], "wanted.txt", &out, 1);
    out.data = worker_alloc(out.bytes);
    result_copy(sizes);
    return worker_serve(argv[2], &out, 1, began, loaded, ran);
}
