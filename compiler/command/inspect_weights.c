// SPDX-License-Identifier: MIT OR Apache-2.0
// `burncc inspect` of a file of weights: its tensors, a line each.
//
// In: a path, and with --output a folder for the tensors as .npy files. Out: names, types, the least and largest
// element; with --json also a checksum of the bytes (FNV-1a), so that files can be compared.
#include "command.h"

#include "import/weights/weights.h"

#include <inttypes.h>
#include <math.h>

bool weights_file(const char *path) {
    File f;
    if (!file_map(&f, path)) return false;
    bool claimed = weights_claimed(&f);
    file_unmap(&f);
    return claimed;
}

static uint64_t checksum(const Tensor *t) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    const uint8_t *at = t->data, *end = at + type_bytes(&t->type);
    for (; at < end; at++) sum = (sum ^ *at) * UINT64_C(0x100000001b3);
    return sum;
}

typedef struct Span { double least, most; bool numbers; } Span;

static Span span_of(const Tensor *t) {
    DClass c = dtype_class(t->type.dtype);
    Span s = { INFINITY, -INFINITY, c != CLASS_COMPLEX && c != CLASS_STRING && type_count(&t->type) > 0 };
    for (int64_t i = 0, n = s.numbers ? type_count(&t->type) : 0; i < n; i++) {
        double v = tensor_get_f(t, i);
        s.least = fmin(s.least, v);
        s.most = fmax(s.most, v);
    }
    return s;
}

static void for_people(Text *out, Arena *a, const Graph *g, const Weights *w) {
    int64_t elements = 0, bytes = 0;
    for (int i = 0; i < w->at.n; i++) {
        const Tensor *t = w->at.at[i].tensor;
        Span s = span_of(t);
        text_printf(out, "%-48s %-24s", text_name(a, w->at.at[i].name), type_text(a, g, &t->type));
        if (s.numbers) text_printf(out, " %.6g .. %.6g", s.least, s.most);
        text_printf(out, "\n");
        elements += type_count(&t->type);
        bytes += type_bytes(&t->type);
    }
    text_printf(out, "%d tensors of %s, %s elements, %s\n", w->at.n, w->format, text_count(a, (double)elements),
        text_bytes(a, bytes));
}

static void for_machines(Text *out, Arena *a, const Graph *g, const Weights *w) {
    text_printf(out, "{\"file\":");
    json_quoted(out, w->file);
    text_printf(out, ",\"format\":");
    json_quoted(out, w->format);
    text_printf(out, ",\"tensors\":[");
    for (int i = 0; i < w->at.n; i++) {
        const Tensor *t = w->at.at[i].tensor;
        Span s = span_of(t);
        text_printf(out, "%s{\"name\":", i ? "," : "");
        json_quoted(out, w->at.at[i].name);
        text_printf(out, ",");
        json_type(out, a, g, &t->type);
        text_printf(out, ",\"fnv1a\":\"%016" PRIx64 "\"", checksum(t));
        if (s.numbers) {
            text_printf(out, ",\"min\":");
            json_number(out, s.least);
            text_printf(out, ",\"max\":");
            json_number(out, s.most);
        }
        text_printf(out, "}");
    }
    text_printf(out, "]}\n");
}

int inspect_weights(Arena *a, const CommandOptions *c) {
    Weights *w = weights_open(a, c->compile.model, c->compile.weights_key ? c->compile.weights_key : "");
    if (!w) return diag_status();
    const Graph *g = graph_new(a, "weights", c->compile.model);
    Text t;
    text_init(&t, a);
    if (c->json) for_machines(&t, a, g, w);
    else for_people(&t, a, g, w);
    bool ok = true;
    for (int i = 0; i < w->at.n && c->compile.output && ok; i++)
        ok = tensor_write(a, c->compile.output, w->at.at[i].name, w->at.at[i].tensor);
    weights_close(w);
    if (!ok) return diag_status();
    return print_text(&t, diag_status());
}
