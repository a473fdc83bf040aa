// SPDX-License-Identifier: MIT OR Apache-2.0
// Namespaces: which value a name stands for. They nest as graphs do.
//
// In: names and values. Out: the value of a name in the innermost namespace that has it. Two values are nobody's: what
// a failed node would have given, whose users are passed over, and what is not there.
#include "import/onnx/names.h"

Value names_poison = { .name = "poison", .type.dtype = DT_F32 };
Value names_absent = { .name = "absent", .type.dtype = DT_F32 };

Value *onnx_absent(void) { return &names_absent; }

void names_init(Import *im, Namespace *s, const Namespace *outer, Graph *g) {
    *s = (Namespace){ .outer = outer, .values = strmap_new(im->arena), .makers = strmap_new(im->arena), .g = g };
    if (!outer) return;
    s->call = outer->call;
    s->opsets = outer->opsets;
    s->n_opsets = outer->n_opsets;
    s->loc = outer->loc;
    s->depth = outer->depth + 1;
}

Value *names_find(const Namespace *s, const char *name) {
    for (; s; s = s->outer) {
        Value *v = strmap_get(s->values, name);
        if (v) return v;
    }
    return NULL;
}

bool names_bind(Namespace *s, const char *name, Value *v, const Loc *loc) {
    if (strmap_get(s->values, name)) {
        diag_error(loc, "\"%s\" is defined twice", name);
        return false;
    }
    strmap_put(s->values, name, v);
    return true;
}
