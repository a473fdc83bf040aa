// SPDX-License-Identifier: MIT OR Apache-2.0
// What is planned for values: a table of the plan by their numbers, so that one graph can be planned more than once.
#include "schedule.h"

#include <string.h>

ValuePlan plan_value(const Plan *p, const Value *v) {
    return v->id < p->values->n ? p->values->at[v->id] : (ValuePlan){ 0 };
}

static ValuePlan *value_entry(const Plan *p, const Value *v) {
    ValuePlans *all = p->values;
    if (v->id >= all->n) {                              // for all values that there are by now
        int n = graph_root(p->graph)->value_count;
        ValuePlan *at = NEW_ARRAY(p->arena, ValuePlan, n);
        if (all->n) memcpy(at, all->at, sizeof *at * (size_t)all->n);
        all->at = at;
        all->n = n;
    }
    return &all->at[v->id];
}

void plan_set_buffer(const Plan *p, const Value *v, Buffer *b) { value_entry(p, v)->buffer = b; }

void plan_set_home(const Plan *p, const Value *v, Value *home, Dim at) {
    ValuePlan *entry = value_entry(p, v);
    entry->home = home;
    entry->home_at = at;
}
