// SPDX-License-Identifier: MIT OR Apache-2.0
// What `burncc quantize` prints. In: a plan that is written, errors. Out: one line, as text or JSON, and with --report
// a row for each layer before it:
//
//   layer   op      as           range  sqnr_db  alone_db
//   conv1   Conv    i8    0 .. 2.3183     38.2      41.0
//   lstm    LSTM    float                                    no integer form
#include "quantizing.h"

#include "build/build.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 7 };

static const char *op_of(const Node *n) {
    return n->loc && n->loc->op && *n->loc->op ? n->loc->op : op_table[n->op].name;
}

static const char *decibel(const Quantizing *z, double db) {
    return isfinite(db) ? arena_printf(z->a, "%.1f", db) : db > 0 ? "exact" : "-";
}

// Why what multiplies weights is no unit.
static const char *const why_float[OP_COUNT] = {
    [OP_Conv] = "weights are computed", [OP_MatMul] = "weights are computed", [OP_ConvTranspose] = "no integer form",
    [OP_RNN] = "no integer form", [OP_GRU] = "no integer form", [OP_LSTM] = "no integer form",
};

static void unit_row(const Quantizing *z, int i, const char *row[COLUMNS]) {
    const Quantizer *q = z->q;
    const QuantUnit *u = &q->units.at[i];
    int at = q->point_of[u->last->out[0]->id];
    const QuantPoint *p = &q->points.at[at], *root = &q->points.at[p->root];
    const char *type = dtype_name(q->how.activations);
    row[2] = u->integer ? type : "float";
    double lo = root->scale * (double)(quant_least(&q->how) - root->zero);
    double hi = root->scale * (double)(quant_most(&q->how) - root->zero);
    if (u->integer) row[3] = arena_printf(z->a, "%.4g .. %.4g", lo, hi);
    if (p->active) row[4] = decibel(z, z->noise[at]);
    if (u->kind == QUANT_WEIGHTED && z->alone && u->integer) row[5] = decibel(z, z->alone[i]);
    if (u->kept) row[6] = u->kept;
    else if (!u->integer) row[6] = "no integers come in";
}

typedef const char *Cells[COLUMNS];

static void print_cells(Text *t, int n, Cells *cells) {
    int width[COLUMNS] = { 0 };
    for (int i = 0; i < n; i++)
        for (int k = 0; k < COLUMNS; k++)
            if ((int)strlen(cells[i][k]) > width[k]) width[k] = (int)strlen(cells[i][k]);
    for (int i = 0; i < n; i++) {
        Text line;
        text_init(&line, t->arena);
        for (int k = 0; k < COLUMNS; k++) {
            bool left = k < 3 || k == 6;
            text_printf(&line, "%s%*s", k ? "  " : "", left ? -width[k] : width[k], cells[i][k]);
        }
        int length = (int)line.n;
        while (length && line.at[length - 1] == ' ') length--;
        text_printf(t, "%.*s\n", length, line.at);
    }
}

// A node that opens a unit, or that one would have looked for here.
static bool has_row(const Quantizer *q, const Node *n) {
    int u = q->unit_of[n->mark];
    return u >= 0 ? q->units.at[u].first == n : why_float[n->op] != NULL;
}

static void print_rows(Text *t, const Quantizing *z) {
    const Quantizer *q = z->q;
    int n = 1;
    for (const Node *m = z->model.graph->first; m; m = m->next) n += has_row(q, m);
    Cells *cells = arena_alloc(z->a, sizeof *cells * (size_t)(n + 1));
    memcpy(cells[0], (Cells){ "layer", "op", "as", "range", "sqnr_db", "alone_db", "" }, sizeof *cells);
    int i = 1;
    for (const Node *m = z->model.graph->first; m; m = m->next) {
        if (!has_row(q, m)) continue;
        int u = q->unit_of[m->mark];
        const char **row = cells[i++];
        for (int k = 0; k < COLUMNS; k++) row[k] = "";
        row[0] = text_name(z->a, u >= 0 ? q->units.at[u].name : node_label(m));
        row[1] = text_name(z->a, op_of(m));
        row[2] = "float";
        if (u >= 0) unit_row(z, u, row);
        else row[6] = why_float[m->op];
    }
    print_cells(t, i, cells);
}

static void figure(Text *t, bool json, const char *name, double v, const char *format) {
    text_printf(t, json ? ",\"%s\":" : " %s=", name);
    if (json) json_number(t, v);
    else text_printf(t, format, v);
}

int quantizing_print_only(Quantizing *z, const QuantStored *s) {
    Text t;
    bool json = z->c->json;
    text_init(&t, z->a);
    text_printf(&t, json ? "{\"tensors\":%d" : "tensors=%d", s->tensors);
    figure(&t, json, "weights_bytes", (double)s->before, "%.0f");
    figure(&t, json, "quantized_bytes", (double)s->after, "%.0f");
    figure(&t, json, "sqnr_db", s->db, "%.1f");
    text_printf(&t, json ? "}\n" : "\n");
    return print_text(&t, 0);
}

int quantizing_print(Quantizing *z, const Measured *m) {
    const Quantizer *q = z->q;
    int layers = 0, floats = 0;
    bool json = z->c->json;
    Text t;
    text_init(&t, z->a);
    for (int i = 0; i < q->units.n; i++) {
        layers += q->units.at[i].kind == QUANT_WEIGHTED;
        floats += q->units.at[i].kind == QUANT_WEIGHTED && !q->units.at[i].integer;
    }
    if (z->c->report && !json) print_rows(&t, z);
    text_printf(&t, json ? "{\"layers\":%d,\"float_layers\":%d" : "layers=%d float_layers=%d", layers, floats);
    figure(&t, json, "weights_bytes", (double)quantizing_bytes(q, true), "%.0f");
    figure(&t, json, "quantized_bytes", (double)quantizing_bytes(q, false), "%.0f");
    figure(&t, json, "sqnr_db", m->db, "%.1f");
    if (m->metric) figure(&t, json, arena_printf(z->a, "float_%s", m->metric), m->floats, "%.6g");
    if (m->metric) figure(&t, json, m->metric, m->whole, "%.6g");
    figure(&t, json, "items", (double)m->items, "%.0f");
    text_printf(&t, json ? "}\n" : "\n");
    return print_text(&t, 0);
}
