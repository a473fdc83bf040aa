// SPDX-License-Identifier: MIT OR Apache-2.0
// Run functions whose kernels run on a GPU: what stands around the run function that run.c prints.
//
//   static int lenet_run_steps(burn_gpu_call *burn_gpu, lenet_workspace *ws, const float image[1*1*28*28], ...)
//   {
//       ...                                             as everywhere, but kernels take burn_gpu
//   }
//
//   int lenet_run(lenet_workspace *ws, const float image[1*1*28*28], float logits[1*10])
//   {
//       burn_gpu_call *burn_gpu;
//       const int burn_code = burn_gpu_begin(&burn_gpu);
//       if (burn_code) return burn_code;
//       return burn_gpu->end(burn_gpu, lenet_run_steps(burn_gpu, burn_gpu->room(burn_gpu, ws, sizeof *ws),
//           burn_gpu->in(burn_gpu, image, 3136), burn_gpu->out(burn_gpu, logits, 40)));
//   }
//
// The user's signature is that of the function without a GPU: its pointers become such that the GPU sees what is there.
#include "run.h"

static const char *cast_text(const CFile *g, const Value *v) {
    if (!c_in_struct(v)) return spell_c_storage(v->type.dtype);
    return arena_printf(g->arena, "%s_%s", g->model, c_struct_type(v->role));
}

// A size that the run finds out is at its bound: the caller's room has it.
static const char *bytes_text(const CFile *g, const Graph *gr, const Value *v, const char *name) {
    if (c_in_struct(v)) return arena_printf(g->arena, "sizeof *%s", name);
    const char *bytes = c_is_measured(gr, &v->type) ? c_most_bytes(g->arena, gr, &v->type) :
                                                      c_bytes(g->arena, gr, &v->type);
    return type_is_static(&v->type) ? bytes : arena_printf(g->arena, "(size_t)(%s)", bytes);
}

static void print_ends(const CFile *g, Text *out, const Signature *s, bool outputs) {
    const Graph *gr = s->graph;
    for (int i = 0; i < (outputs ? gr->outputs.n : gr->inputs.n); i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        const char *name = (outputs ? &s->outs : &s->in)->name[i], *how = outputs ? "out" : "in";
        if (c_in_struct(v)) {
            if (c_struct_seen(gr, i, outputs, v->role)) continue;
            name = c_struct_param(v->role);
            how = c_struct_written(gr, v->role) ? "both" : "in";
        }
        if (v->role == ROLE_VALUE) text_printf(out, ", %s", name);
        else
            text_printf(out, ",\n        (%s *)burn_gpu->%s(burn_gpu, %s, %s)", cast_text(g, v), how, name,
                bytes_text(g, gr, v, name));
        if (outputs && c_is_measured(gr, &v->type)) text_printf(out, ", %s_shape", name);
    }
}

void c_steps_begin(CFile *g, const Signature *s) {
    text_printf(&g->c, "static int %s_steps(burn_gpu_call *burn_gpu, ", s->program->name);
    if (s->program->plan->strings) text_printf(&g->c, "unsigned char *burn_pool_at, ");
    c_signature_parameters(g, &g->c, s, true);
    text_printf(&g->c, ")");
}

void c_steps_constants(CFile *g) {
    const char *from = arena_printf(g->arena, "%s_constants", g->model);
    if (g->external) from = arena_printf(g->arena, "(const unsigned char *)weights + %d", WEIGHTS_HEADER);
    text_printf(&g->c,
        "    const unsigned char *const constants = burn_gpu->constants(burn_gpu, %s, %lld, UINT64_C(0x%llx));\n"
        "    if (!constants) return -2; /* BURN_ENOMEM */\n",
        from, (long long)g->weight_bytes,
        (unsigned long long)(g->external ? g->sum : weights_sum(g->n, g->programs)));
}

void c_steps_end(CFile *g, const Signature *s) {
    const Program *p = s->program;
    c_signature_print(g, &g->c, s, p->name);
    text_printf(&g->c, "\n{\n    burn_gpu_call *burn_gpu;\n");
    for (int i = 0; i < s->sizes.n; i++) {
        text_printf(&g->c, "    ");
        c_bounds_print(&g->c, c_symbol(s->graph, s->sizes.at[i]));
    }
    text_printf(&g->c,
        "    const int burn_code = burn_gpu_begin(&burn_gpu);\n    if (burn_code) return burn_code;\n"
        "    return burn_gpu->end(burn_gpu, %s_steps(burn_gpu", p->name);
    if (p->plan->strings) text_printf(&g->c, ", ws ? ws->bytes : 0");
    if (c_has_workspace(p))
        text_printf(&g->c, ",\n        (%s_workspace *)burn_gpu->room(burn_gpu, ws, sizeof *ws)", p->name_of_workspace);
    if (c_takes_weights(g, p)) text_printf(&g->c, ", weights");
    for (int i = 0; i < s->sizes.n; i++)
        text_printf(&g->c, ", %s", spell_symbol(g->arena, c_symbol(s->graph, s->sizes.at[i])));
    print_ends(g, &g->c, s, false);
    print_ends(g, &g->c, s, true);
    text_printf(&g->c, "));\n}\n\n");
}
