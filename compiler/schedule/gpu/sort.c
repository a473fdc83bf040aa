// SPDX-License-Identifier: MIT OR Apache-2.0
// Which sorts run on the GPU, and by which dispatches.
//
// In: a called Sort, of the whole of each line or the first few. Out: the same with the shader's template and scratch
// memory. Lines that fit into a block in shared memory are one dispatch. Of longer ones each block is put in order;
// where few are wanted the first of each block are lines of their own, which are again cut into blocks, until there is
// one: the blocks have order enough, for what is wanted of the line is wanted of its block. Else runs are merged, twice
// as long each time. Waits for no other workgroup, so that it runs on any device.
#include "sort.h"
#include "schedule/schedule.h"
#include "tile.h"

enum { MOST_WORDS = 4096,                               // of a block: 16 KiB of shared memory are everywhere
       LEAST_GROUP = 256 };                             // elements of a workgroup

static int64_t product(const Type *t, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= t->dim[i];
    return n;
}

static bool key_has_code(DType d) {
    switch (d) {
    case DT_F32: case DT_F16: case DT_BF16: case DT_F64: case DT_I8: case DT_I16: case DT_I32: case DT_I64: case DT_U8:
    case DT_U16: case DT_U32: case DT_U64: return true;
    default: return false;
    }
}

static void add_pass(Sorting *s, SortPass p) {
    const SortPass *before = s->n ? &s->pass[s->n - 1] : NULL;
    const int64_t words = s->lines * p.kept * s->words;
    p.from_line = !before;
    for (p.block = 2; p.block < p.length && p.block < s->block;) p.block *= 2;
    p.together = p.block < LEAST_GROUP ? LEAST_GROUP / p.block : 1;
    p.from = before ? before->to : 0;
    // two halves by turns, each as long as the first
    p.to = !before || before->to ? 0 : s->lines * s->pass[0].kept * s->words;
    if (!p.to_result && p.to + words > s->scratch_words) s->scratch_words = p.to + words;
    s->pass[s->n++] = p;
}

static void plan_passes(Sorting *s) {
    const bool few = s->count * 2 <= s->block;
    int64_t length = s->length;
    while (few && length > s->block) {
        const int64_t kept = ceil_div(length, s->block) * s->count;
        add_pass(s, (SortPass){ .length = length, .kept = kept });
        length = kept;
    }
    if (few || length <= s->block) {
        add_pass(s, (SortPass){ .length = length, .to_result = true });
        return;
    }
    add_pass(s, (SortPass){ .length = length, .kept = length });
    for (int64_t run = s->block; run < length; run *= 2)
        add_pass(s,
            (SortPass){ .merges = true, .length = length, .kept = length, .run = run, .to_result = run * 2 >= length });
}

bool sorting_of(const Kernel *k, Sorting *s) {
    const Node *n = k->anchor;
    if (k->kind != KERNEL_CALL || n->op != OP_Sort) return false;
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type;
    if (!type_is_static(x) || !type_is_static(y) || !key_has_code(x->dtype)) return false;
    const int axis = (int)node_int(n, "axis", 0);
    *s = (Sorting){ .lines = product(x, 0, axis) * product(x, axis + 1, x->rank),
        .length = x->dim[axis],
        .inner = product(x, axis + 1, x->rank),
        .count = y->dim[axis],
        .words = dtype_size(x->dtype) == sizeof(int64_t) ? 3 : 2,
        .largest = node_int(n, "largest", 0) != 0,
        .block = 2 };
    if (s->lines * s->length * s->words > INT32_MAX / 2) return false;  // words are counted in ints
    while (s->block * 2 * s->words <= MOST_WORDS) s->block *= 2;
    if (s->lines && s->count) plan_passes(s);
    return true;
}

void gpu_sort(Kernel *k) {
    static const Template shader = { .file = "glsl/sort.comp" };
    Sorting s;
    if (!sorting_of(k, &s)) return;
    k->template = &shader;
    k->holes.n = 0;
    k->scratch_bytes = s.scratch_words * (int64_t)sizeof(uint32_t);
}

bool gpu_calls(const Kernel *k) {
    Sorting s;
    return sorting_of(k, &s);
}
