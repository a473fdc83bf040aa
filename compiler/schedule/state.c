// SPDX-License-Identifier: MIT OR Apache-2.0
// States: inputs that lie with the caller and that a run updates, as outputs of the same role and name say.
//
// In: the graph and who uses its values. Out: which of them are updated where they lie. The idea: a state of which
// parts are replaced, and that nobody reads as it was, is one piece of memory all the way: its values are other names
// of the input's bytes, so a run writes the parts and copies nothing. Another new value is stored over the old one by
// its kernel if the old one is read no later and element by element (state_in_place), else run.c copies it there last.
#include "schedule.h"

void state_homes(Plan *p, const ConcatUsers *users) {
    const Graph *g = p->graph;
    for (int i = 0; i < g->outputs.n && !p->parent; i++) {
        Value *v = g->outputs.at[i], *state = field_input(g, ROLE_STATE, g->output_names.at[i]);
        while (state && v != state && v->def && v->def->op == OP_SliceScatter && users[v->def->in[0]->id].n == 1)
            v = v->def->in[0];
        if (!state || v != state) continue;
        for (v = g->outputs.at[i]; v != state; v = v->def->in[0]) buffer_within(p, v, state, 0);
    }
}

bool state_in_place(const Plan *p, const Value *from, const Value *to) {
    Buffer *old = plan_value(p, from).buffer;
    int64_t at;
    bool written = false;
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        bool writes = false;
        for (int j = 0; j < k->writes.n; j++) writes = writes || k->writes.at[j] == to;
        for (int j = 0; j < k->reads.n && (written || writes); j++) {
            Value *v = k->reads.at[j];
            Buffer *b = plan_value(p, v).buffer;
            if (b && buffer_owner(b, &at) == old && !(!written && v == from && kernel_in_place(p->arena, k, v)))
                return false;
        }
        written = written || writes;
    }
    return true;
}
