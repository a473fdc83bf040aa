// SPDX-License-Identifier: MIT OR Apache-2.0
// Operations that find an unknown number of things: Positions (of true elements), Unique (rows), Suppress (boxes that
// overlap better ones).
//
// Each gives lists as long as they can get, of which only the first part counts, and that number as i64[1]. Importers
// make it a measured size and cut the lists; so no type depends on its own node's result. NonZero and Compress are
// gathers of positions, Unique's values a gather of rows. Compiled by schedule/call.c: what is found first decides
// where everything after it goes, so no element can be computed by itself.
#include "common.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

static const Type one_number = { .dtype = DT_I64, .rank = 1, .dim = { 1 } };

// ---------------------------------------------------------------- Positions
bool shape_positions(Node *n) {
    const Type *t = &n->in[0]->type;
    if (t->dtype != DT_BOOL || t->rank != 1) {
        diag_error(n->loc, "wants a list of bools, not %s", value_type_text(n->in[0]));
        return false;
    }
    n->out[0]->type = type_make(DT_I64, 1, t->dim);
    n->out[1]->type = one_number;
    return true;
}

bool eval_positions(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    int64_t found = 0;
    for (int64_t i = 0, size = type_count(&in[0]->type); i < size; i++)
        if (tensor_get_i(in[0], i)) tensor_set_i(out[0], found++, i);
    tensor_set_i(out[1], 0, found);
    return true;
}

// ---------------------------------------------------------------- Unique
bool shape_unique(Node *n) {
    const Type *t = &n->in[0]->type;
    if (t->rank != 2 || dtype_class(t->dtype) == CLASS_COMPLEX) {
        diag_error(n->loc, "wants rows of elements that can be put in order, not %s", value_type_text(n->in[0]));
        return false;
    }
    for (int i = 0; i < 3; i++) n->out[i]->type = type_make(DT_I64, 1, t->dim);
    n->out[3]->type = one_number;
    return true;
}

// Row a of t against row b: below, at or above 0.
static int rows_compare(const Tensor *t, int64_t a, int64_t b) {
    int64_t m = t->type.dim[1];
    for (int64_t i = 0; i < m; i++) {
        if (t->type.dtype == DT_STRING) {
            const char *const *s = t->data;
            int order = strcmp(s[a * m + i], s[b * m + i]);
            if (order) return order;
            continue;
        }
        Scalar x = element_get(t, a * m + i), y = element_get(t, b * m + i);
        if (element_less(t->type.dtype, x, y)) return -1;
        if (element_less(t->type.dtype, y, x)) return 1;
    }
    return 0;
}

typedef struct Row { const Tensor *of; int64_t at; } Row;

static int by_row(const void *x, const void *y) {
    const Row *a = x, *b = y;
    int order = rows_compare(a->of, a->at, b->at);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

// Rows in order, equal ones from the first: each run is a group. Unless `sorted`, groups go by their first rows.
bool eval_unique(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t rows = in[0]->type.dim[0], found = 0;
    Row *row = scratch_new((size_t)rows, sizeof *row);
    int64_t *first = scratch_new((size_t)rows, sizeof *first), *place = scratch_new((size_t)rows, sizeof *place);
    for (int64_t i = 0; i < rows; i++) row[i] = (Row){ in[0], i };
    qsort(row, (size_t)rows, sizeof *row, by_row);
    for (int64_t i = 0, head = 0; i < rows; i++) {
        if (i && rows_compare(in[0], row[head].at, row[i].at)) head = i;
        first[row[i].at] = row[head].at;                // of its group
        if (head == i) place[row[i].at] = found++;
    }
    if (!node_int(n, "sorted", 1))
        for (int64_t i = 0, next = 0; i < rows; i++)
            if (first[i] == i) place[i] = next++;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = place[first[i]];
        tensor_set_i(out[0], at, first[i]);
        tensor_set_i(out[1], i, at);
        tensor_set_i(out[2], at, tensor_get_i(out[2], at) + 1);
    }
    tensor_set_i(out[3], 0, found);
    free(row);
    free(first);
    free(place);
    return true;
}

// ---------------------------------------------------------------- Suppress
bool shape_suppress(Node *n) {
    const Type *boxes = &n->in[0]->type, *scores = &n->in[1]->type;
    const int64_t *most;
    bool fits = boxes->dtype == DT_F32 && scores->dtype == DT_F32 && boxes->rank == 3 && scores->rank == 3
        && boxes->dim[2] == 4;
    fits = fits && dims_agree(n, boxes->dim[0], scores->dim[0]) && dims_agree(n, boxes->dim[1], scores->dim[2]);
    for (int i = 2; i < 5; i++)
        fits = fits && n->in[i]->type.rank == 0 && n->in[i]->type.dtype == (i == 2 ? DT_I64 : DT_F32);
    if (!fits) {
        diag_error(n->loc, "wants boxes f32[batch,boxes,4] and scores f32[batch,classes,boxes], not %s and %s",
            value_type_text(n->in[0]), value_type_text(n->in[1]));
        return false;
    }
    if (!op_ints(n, "sizes", 1, &most)) return false;
    Graph *g = n->graph;
    if (dim_upper(g, scores->dim[2]) > UINT32_MAX) {
        diag_error(n->loc, "wants fewer than 2^32 boxes, not %s", value_type_text(n->in[1]));
        return false;
    }
    n->out[0]->type = type_make(
        DT_I64, 2, (Dim[]){ dim_mul(g, dim_mul(g, scores->dim[0], scores->dim[1]), most[0]), 3 });
    n->out[1]->type = one_number;
    return true;
}

typedef struct Box { float low[2], high[2]; } Box;

static Box box_at(const float *b, bool centered) {
    Box r;
    for (int i = 0; i < 2; i++) {
        float from = centered ? b[i] - b[2 + i] / 2 : b[i], to = centered ? b[i] + b[2 + i] / 2 : b[2 + i];
        r.low[i] = from < to ? from : to;
        r.high[i] = from < to ? to : from;
    }
    return r;
}

static bool overlap(Box a, Box b, float limit) {
    float shared = 1, x = 1, y = 1;
    for (int i = 0; i < 2; i++) {
        float from = a.low[i] > b.low[i] ? a.low[i] : b.low[i], to = a.high[i] < b.high[i] ? a.high[i] : b.high[i];
        if (!(from < to)) return false;
        shared *= to - from;
        x *= a.high[i] - a.low[i];
        y *= b.high[i] - b.low[i];
    }
    float all = x + y - shared;
    return x > 0 && y > 0 && all > 0 && shared / all > limit;
}

bool eval_suppress(const Node *n, Tensor *const *in, Tensor *const *out) {
    bool centered = node_int(n, "centered", 0) != 0;
    int count;
    int64_t boxes = in[0]->type.dim[1], classes = in[1]->type.dim[1], room = node_ints(n, "sizes", &count)[0],
            asked = tensor_get_i(in[2], 0), found = 0;
    float limit = ((const float *)in[3]->data)[0], least = ((const float *)in[4]->data)[0];
    bool *taken = scratch_new((size_t)boxes, sizeof *taken);
    for (int64_t line = 0; line < in[1]->type.dim[0] * classes; line++) {
        const float *score = (const float *)in[1]->data + line * boxes,
                    *box = (const float *)in[0]->data + line / classes * boxes * 4;
        int64_t before = found;
        memset(taken, 0, (size_t)boxes);
        while (found - before < asked && found - before < room) {
            int64_t best = -1;
            for (int64_t i = 0; i < boxes; i++)
                if (!taken[i] && score[i] > least && (best < 0 || score[i] > score[best])) best = i;
            if (best < 0) break;
            taken[best] = true;
            bool apart = true;
            for (int64_t k = before; k < found && apart; k++)
                apart = !overlap(box_at(box + tensor_get_i(out[0], 3 * k + 2) * 4, centered),
                    box_at(box + best * 4, centered), limit);
            if (!apart) continue;
            tensor_set_i(out[0], 3 * found, line / classes);
            tensor_set_i(out[0], 3 * found + 1, line % classes);
            tensor_set_i(out[0], 3 * found++ + 2, best);
        }
    }
    tensor_set_i(out[1], 0, found);
    free(taken);
    return true;
}
