// SPDX-License-Identifier: MIT OR Apache-2.0
// Writes .safetensors: a header of JSON behind its length in eight bytes, and the tensors one after the other.
//
// In: names and tensors, or a graph whose parameters they are. Out: the file, under a temporary name until all of it is
// there. Parameters are those that --weights gives tensors to, so what is written is what can be read back.
#include "export/safetensors.h"

#include "import/weights/weights.h"

enum { UNIT = 8 };                                      // bytes that the header's length takes and is a multiple of

const char *safetensors_name(Arena *a, const char *s) {
    Text t;
    text_init(&t, a);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') text_printf(&t, "\\%c", c);
        else if (c < 32) text_printf(&t, "\\u%04x", c);
        else text_append(&t, s, 1);
    }
    return t.n ? t.at : "";
}

const char *safetensors_shape(Arena *a, const Type *t) {
    Text s;
    text_init(&s, a);
    for (int i = 0; i < t->rank; i++) text_printf(&s, "%s%lld", i ? "," : "[", (long long)t->dim[i]);
    text_printf(&s, t->rank ? "]" : "[]");
    return s.at;
}

static bool write_all(OutFile *f, const Text *head, int n, const SafeTensor *tensors) {
    uint8_t length[UNIT];
    for (int i = 0; i < UNIT; i++) length[i] = (uint8_t)((uint64_t)head->n >> (8 * i));
    bool ok = out_write(f, length, sizeof length) && out_write(f, head->at, head->n);
    for (int i = 0; i < n && ok; i++)
        ok = out_write(f, tensors[i].tensor->data, (size_t)type_bytes(&tensors[i].tensor->type));
    return ok;
}

// Other programs say there what they are.
const OutMark safetensors_mark = { "\"__metadata__\"", false };

OutFile *safetensors_write(Arena *a, const char *path, int n, const SafeTensor *tensors) {
    Text head;
    int64_t at = 0;
    text_init(&head, a);
    for (int i = 0; i < n; i++) {
        const Type *t = &tensors[i].tensor->type;
        int64_t end = at + type_bytes(t);
        text_printf(&head, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%lld,%lld]}", i ? "," : "{",
            safetensors_name(a, tensors[i].name), safetensors_dtype(t->dtype), safetensors_shape(a, t), (long long)at,
            (long long)end);
        at = end;
    }
    text_printf(&head, n ? "}" : "{}");
    while (head.n % UNIT) text_append(&head, " ", 1);
    OutFile *f = out_replace(a, path, safetensors_mark);
    if (!f || write_all(f, &head, n, tensors)) return f;
    out_abandon(f);
    return NULL;
}

bool export_safetensors(Arena *a, const Options *o, const Graph *g) {
    const Parameters p = weights_parameters(a, g);
    SafeTensor *tensors = NEW_ARRAY(a, SafeTensor, p.at.n + 1);
    Loc file = { .file = g->file, .node = -1 };
    int errors = diag_errors();
    for (int i = 0; i < p.at.n; i++) {
        const Value *v = p.at.at[i];
        tensors[i] = (SafeTensor){ v->name, v->data };
        if (!safetensors_dtype(v->type.dtype))
            diag_error(&file, "parameter \"%s\" is %s, which .safetensors has no name for", v->name,
                dtype_name(v->type.dtype));
    }
    if (diag_errors() != errors) return false;
    OutFile *f = safetensors_write(a, o->output, p.at.n, tensors);
    return f && out_commit(f);
}
