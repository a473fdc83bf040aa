// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels that are files of templates/: the holes are filled with numbers, sizes, types and calls of inline functions,
// which are what the kernel does to a sum (its epilogue) or to attention's scores, and where a query's keys begin and
// end.
//
//   static inline float net_k3_conv_epilogue(float acc, const float *e_bias, ptrdiff_t i1)
//   {
//       const float t0 = acc + e_bias[i1];
//       return t0 > 0.0f ? t0 : 0.0f;
//   }
//
// In: the kernel with its holes. Out: these functions, then the template's text. The same for templates that are called
// with the operands of one operation and have no epilogue.
#include "c.h"
#include "schedule/cpu/templates.h"

#include <ctype.h>
#include <string.h>

// MIN_HOLE: templates unroll what they have to, and the C compiler sums over few terms.
enum { MIN_HOLE = 5 };
enum { KEY_AXES = 4 };                                  // of a query in attention: b0, b1, b2, m

static bool uses_size(const Expr *e, int symbol, bool *seen) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    if (e->op == E_Size && dim_uses(e->graph, e->extent, symbol)) return true;
    return uses_size(e->a[0], symbol, seen) || uses_size(e->a[1], symbol, seen) || uses_size(e->a[2], symbol, seen);
}

static bool uses_param(const KernelText *t, const Expr *e, const Param *p, bool *seen) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    if (e->op == E_Load && c_param_name(t, e->value) == p->name) return true;
    return uses_param(t, e->a[0], p, seen) || uses_param(t, e->a[1], p, seen) || uses_param(t, e->a[2], p, seen);
}

static void clear_used(KernelText *t) { for (int i = 0; i < t->numbers.n; i++) t->numbers.at[i].used = false; }

// The numbers that what was printed since clear_used() has, as parameters and as arguments.
static void used_numbers(const KernelText *t, Text *params, Text *args) {
    for (int i = 0; i < t->numbers.n; i++) {
        if (!t->numbers.at[i].used) continue;
        text_printf(params, ", ptrdiff_t %s", t->numbers.at[i].name);
        text_printf(args, ", %s", t->numbers.at[i].name);
    }
}

// The end of an inline function's list of parameters and of a call's: what the expression e needs of the kernel.
static void inline_params(
    CFile *g, const KernelText *t, const Expr *e, const char *const *axes, int n_axes, Text *params, Text *call) {
    const Kernel *k = t->kernel;
    for (int i = t->first_shared; i < t->n_params; i++) {
        if (!uses_param(t, e, &t->params[i], NEW_ARRAY(g->arena, bool, expr_count(k->exprs) + 1))) continue;
        text_printf(params, ", const %s *%s", spell_c_storage(t->params[i].value->type.dtype), t->params[i].name);
        text_printf(call, ", %s", t->params[i].name);
    }
    for (int i = 0; i < k->sizes.n; i++)
        if (uses_size(e, k->sizes.at[i], NEW_ARRAY(g->arena, bool, expr_count(k->exprs) + 1))) {
            text_printf(params, ", int64_t %s", c_size(g, k, i));
            text_printf(call, ", %s", c_size(g, k, i));
        }
    for (int i = 0; i < n_axes; i++)
        if (e->axes_used >> i & 1) {
            text_printf(params, ", ptrdiff_t i%d", i);
            text_printf(call, ", %s", axes[i]);
        }
    used_numbers(t, params, call);
    text_printf(call, ")");
}

// A kernel that stores e alone.
static Kernel storing(const Kernel *k, Expr *e, Store *store) {
    *store = (Store){ .value = k->writes.at[0], .index = expr_index(k->exprs, 0), .expr = e };
    Kernel one = *k;
    one.stores.at = store;
    one.stores.n = 1;
    return one;
}

static void return_store(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const KernelText *k = ctx;
    (void)index;
    const char *stored = spell_c_store(k->file->arena, s->value->type.dtype, value);
    text_printf(out, "return %s;", text_bare(k->file->arena, stored));
}

static void return_key(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const KernelText *k = ctx;
    (void)s, (void)index;
    text_printf(out, "return %s;", text_bare(k->file->arena, value));
}

// An expression of the accumulator as an inline function of it and the element's coordinates; returns what goes into
// the hole's text.
static const char *inline_function(
    CFile *g, KernelText *t, const char *suffix, Expr *e, const char *const *axes, int n_axes) {
    const Kernel *k = t->kernel;
    Store store;
    Kernel one = storing(k, e, &store);
    one.n_parallel = n_axes;
    Text call, body;
    clear_used(t);
    if (e->op == E_Acc) return "acc";
    text_init(&call, g->arena);
    text_init(&body, g->arena);
    Dialect d = c_dialect(t);
    d.store = return_store;
    loops_print(g->arena, &body, &one, &d, n_axes, 1);
    text_printf(&call, "%s_%s(acc", t->name, suffix);
    text_printf(&g->c, "static inline %s %s_%s(%s acc", spell_c_storage(store.value->type.dtype), t->name, suffix,
        spell_c.type(k->anchor->out[0]->type.dtype));
    inline_params(g, t, e, axes, n_axes, &g->c, &call);
    text_printf(&g->c, ")\n{\n%s}\n\n", body.at);
    return call.at;
}

// Vectors of sums as a template wants them.
typedef struct VectorForm { LanesForm form; const char *condition, *sums, *result; } VectorForm;

static const VectorForm *vector_form(const Kernel *k) {
    static const VectorForm four = { LANES_FOUR, "defined(BURN_Q8_MVE)", "int32x4_t", "int32x4_t" },
                            pairs = { LANES_PAIRS, "defined(BURN_Q8_MVE)", "burn_q8_pair", "int16x8_t" },
                            many = { LANES_MANY, "defined(BURN_Q8_RVV)", "vint32m4_t", "vint32m4_t" };
    if (template_hole_value(k, "ACROSS")) return &many;
    return k->template == &template_taps_q8 ? &pairs : &four;
}

// The same of a vector of sums, in front of the one of single ones and in its place: the template uses but one of them.
// The text of its hole; NULL: there is no such function.
static const char *vector_function(
    CFile *g, KernelText *t, Expr *e, const char *const *axes, int n_axes, const VectorForm *f) {
    Store store;
    Kernel one = storing(t->kernel, e, &store);
    one.n_parallel = n_axes;
    Text call, params, body;
    clear_used(t);
    text_init(&call, g->arena);
    text_init(&params, g->arena);
    text_init(&body, g->arena);
    Dialect d = c_dialect(t);
    d.address = c_address;
    if (!loops_lanes(g->arena, &body, &one, &d, n_axes, f->form)) return NULL;
    text_printf(&call, "%s_vector(acc%s", t->name, f->form == LANES_MANY ? ", now" : "");
    text_printf(&params, "%s acc%s", f->sums, f->form == LANES_MANY ? ", size_t now" : "");
    inline_params(g, t, e, axes, n_axes, &params, &call);
    text_printf(&g->c, "#if %s\nBURN_INLINE %s %s_vector(%s)\n{\n%s}\n#else\n", f->condition, f->result, t->name,
        params.at, body.at);
    return call.at;
}

// The holes of the sum's epilogue, whose functions are printed.
static int epilogue_holes(CFile *g, KernelText *t, int n, Hole *holes, const char *const *axes, int n_axes) {
    const Kernel *k = t->kernel;
    Expr *stored = k->stores.at[0].expr;
    Hole *vectors = NULL;
    for (int i = 0; i < n; i++)
        if (!strcmp(holes[i].name, "VECTORS") && !strcmp(holes[i].text, "1")) vectors = &holes[i];
    const VectorForm *form = vectors ? vector_form(k) : NULL;
    const char *call = form ? vector_function(g, t, stored, axes, n_axes, form) : NULL;
    if (form) vectors->text = call ? form->condition : "0";
    holes[n++] = (Hole){ "EPILOGUE", k->template->epilogue,
        inline_function(g, t, "epilogue", stored, axes, n_axes) };
    if (call) {
        text_printf(&g->c, "#endif\n\n");
        holes[n++] = (Hole){ "VECTOR_EPILOGUE", k->template->epilogue, call };
    }
    return n;
}

// What a function of the kernel's own needs of EPILOGUE_PARAMS for the expression e, which has just been printed, or
// for a size d, as parameters and as arguments.
static int needed_holes(
    CFile *g, const KernelText *t, const Expr *e, Dim d, const char *params_hole, const char *args_hole, Hole *to) {
    const Kernel *k = t->kernel;
    Text params, args;
    text_init(&params, g->arena);
    text_init(&args, g->arena);
    text_printf(&params, "%s", "");
    text_printf(&args, "%s", "");
    for (int i = t->first_shared; i < t->n_params; i++) {
        const Param *p = &t->params[i];
        if (!uses_param(t, e, p, NEW_ARRAY(g->arena, bool, expr_count(k->exprs) + 1))) continue;
        text_printf(&params, ", const %s *restrict %s", spell_c_storage(p->value->type.dtype), p->name);
        text_printf(&args, ", %s", p->name);
    }
    for (int i = 0; i < k->sizes.n; i++) {
        if (!uses_size(e, k->sizes.at[i], NEW_ARRAY(g->arena, bool, expr_count(k->exprs) + 1))
            && !dim_uses(g->plan->graph, d, k->sizes.at[i]))
            continue;
        text_printf(&params, ", int64_t %s", c_size(g, k, i));
        text_printf(&args, ", %s", c_size(g, k, i));
    }
    used_numbers(t, &params, &args);
    to[0] = (Hole){ params_hole, NULL, params.at };
    to[1] = (Hole){ args_hole, NULL, args.at };
    return 2;
}

// A key of attention as an inline function of a query's coordinates; returns what goes into the hole's text.
static const char *key_function(CFile *g, KernelText *t, const char *suffix, Expr *e, const char *const *axes) {
    const Kernel *k = t->kernel;
    Store store;
    Kernel one = storing(k, e, &store);
    Hole needed[2];
    Text call, body;
    one.n_parallel = KEY_AXES;
    text_init(&call, g->arena);
    text_init(&body, g->arena);
    clear_used(t);
    Dialect d = c_dialect(t);
    d.store = return_key;
    loops_print(g->arena, &body, &one, &d, KEY_AXES, 1);
    needed_holes(g, t, e, 0, "", "", needed);
    text_printf(&call, "%s_%s(%s", t->name, suffix, axes[0]);
    text_printf(&g->c, "static inline int64_t %s_%s(ptrdiff_t i0", t->name, suffix);
    for (int i = 1; i < KEY_AXES; i++) {
        text_printf(&g->c, ", ptrdiff_t i%d", i);
        text_printf(&call, ", %s", axes[i]);
    }
    text_printf(&g->c, "%s)\n{\n    (void)i0, (void)i1, (void)i2, (void)i3;\n%s}\n\n", needed[0].text, body.at);
    text_printf(&call, "%s)", needed[1].text);
    return call.at;
}

// The words of a row of templates.def; their number.
static int words(Arena *a, const char *s, const char **to) {
    int n = 0;
    for (; *s; s += *s == ' ') {
        size_t length = strcspn(s, " ");
        to[n++] = arena_strndup(a, s, length);
        s += length;
    }
    return n;
}

// The first parameters are the template's own: its operands (a convolution's weights first) and its results; then what
// the epilogue loads, under names that no template uses.
static void template_params(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    const bool conv = k->template->params[0] == 'W';
    const char *name[2 * COUNT(k->operand)];
    const int operands = words(g->arena, k->template->params, name) - k->stores.n;
    for (int i = 0; i < operands; i++)
        t->params[i] = (Param){ k->operand[conv ? 1 - i : i], name[i], false, k->operand_at[conv ? 1 - i : i] };
    for (int i = 0; i < k->stores.n; i++)
        t->params[operands + i] = (Param){ k->writes.at[i], name[operands + i], true, k->result_at };
    t->n_params = t->first_shared = operands + k->stores.n;
    t->prefix = "e_";
    for (int i = 0; i < k->loads.n; i++) c_add_param(g, t, k->loads.at[i], false);
}

// An argument, under the hole's name. Equal ones are several: whether they are follows from the sizes alone.
static const char *hole_argument(KernelText *t, const char *name, int64_t value) {
    Arena *a = t->file->arena;
    for (int i = 0; i < t->kernel->sizes.n; i++)
        if (!strcmp(c_size(t->file, t->kernel, i), name)) name = arena_printf(a, "%s_", name);
    VEC_PUSH(a, t->numbers, ((Number){ .value = value, .name = name }));
    t->hole_numbers = t->numbers.n;
    return name;
}

static const char *hole_spelled(CFile *g, KernelText *t, const HoleValue *h) {
    switch (h->kind) {
    case HOLE_NUMBER: return arena_printf(g->arena, "%lld", (long long)h->value);
    case HOLE_SIZE:                                     // any expression, and so an argument
        if (g->numbers && dim_is_const(h->value) && h->value >= MIN_HOLE) return hole_argument(t, h->name, h->value);
        return spell_size_operand(g->arena, g->plan->graph, h->value);
    case HOLE_SHARED:
        return g->numbers ? hole_argument(t, h->name, h->value) : number_text(g->arena, h->value);
    case HOLE_ARGUMENT:
        if (dim_is_const(h->value)) return hole_argument(t, h->name, h->value);
        return spell_size_operand(g->arena, g->plan->graph, h->value);
    case HOLE_ELEMENT: return spell_c_storage((DType)h->value);
    case HOLE_TYPE: return spell_c.type((DType)h->value);
    case HOLE_LOAD: return spell_c_load(g->arena, (DType)h->value, h->params);
    case HOLE_STRING: return arena_printf(g->arena, "\"%s\"", c_string(g->arena, h->text));
    case HOLE_HELPER: return arena_printf(g->arena, "burn_%s_f32(%s)", h->text, h->params);
    case HOLE_OWN: return arena_printf(g->arena, "%s_%s", t->name, h->text);
    default: return h->text;
    }
}

// Of a convolution whose result is a part of a concatenation, the floats from one pixel to the next.
static bool is_part_stride(const Kernel *k, const HoleValue *h) {
    bool conv = k->kind == KERNEL_CONV || k->kind == KERNEL_DEPTHWISE;
    return conv && k->conv.y_pixel != k->conv.oc && !strcmp(h->name, "YC");
}

static int plain_holes(CFile *g, KernelText *t, Hole *to) {
    const Kernel *k = t->kernel;
    for (int i = 0; i < k->holes.n; i++) {
        const HoleValue *h = &k->holes.at[i];
        // in every file: parts of unequal concatenations share a function
        const char *text = is_part_stride(k, h) ? hole_argument(t, h->name, h->value) : hole_spelled(g, t, h);
        to[i] = (Hole){ h->name, h->params, text };
    }
    return k->holes.n;
}

static const char acc_of[] = "acc, b0, b1, b2, m, n";

// A key of attention or its scores, and what the functions that call them need.
static int attention_holes(CFile *g, KernelText *t, const char *const *axes, int n_axes, Hole *to) {
    const Attention *s = &t->kernel->attention;
    int n = 0;
    to[n++] = (Hole){ "SCORE", acc_of, inline_function(g, t, "score", s->score, axes, n_axes) };
    n += needed_holes(g, t, s->score, 0, "SCORE_PARAMS", "SCORE_ARGS", to + n);
    to[n++] = (Hole){ "FIRST", "b0, b1, b2, m", s->first ? key_function(g, t, "first", s->first, axes) : "0" };
    to[n++] = (Hole){ "LAST", "b0, b1, b2, m", s->last ? key_function(g, t, "last", s->last, axes) : "INT64_MAX" };
    if (s->pass) to[n++] = (Hole){ "PASS", acc_of, inline_function(g, t, "pass", s->pass, axes, n_axes) };
    return n;
}

static int backward_holes(CFile *g, KernelText *t, const char *const *axes, int n_axes, Hole *to) {
    const Kernel *k = t->kernel;
    const Attention *s = &k->attention;
    to[0] = (Hole){ "PASSED", acc_of, inline_function(g, t, "passed", s->passed, axes, n_axes) };
    to[1] = (Hole){ "DSCORE", acc_of, inline_function(g, t, "dscore", s->dscore, axes, n_axes) };
    to[2] = (Hole){ "FINISH_K", "acc", inline_function(g, t, "finish_k", k->stores.at[1].expr, axes, n_axes) };
    to[3] = (Hole){ "FINISH_V", "acc", inline_function(g, t, "finish_v", k->stores.at[2].expr, axes, n_axes) };
    return 4;
}

const char *c_find_word(const char *s, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = s; (at = strstr(at, word)); at += n)
        if ((at == s || !(isalnum((unsigned char)at[-1]) || at[-1] == '_')) && !isalnum((unsigned char)at[n])
            && at[n] != '_')
            return at;
    return NULL;
}

bool c_says_word(const char *s, const char *word) { return c_find_word(s, word) != NULL; }

// The numbers that fill holes become elements of an array.
static void take_table(CFile *g, KernelText *t, int n, Hole *holes) {
    t->table = t->kernel->template->over && g->options->small && t->hole_numbers;
    for (int i = 0; t->table && i < n; i++)
        for (int j = 0; j < t->hole_numbers; j++)
            if (!strcmp(holes[i].text, t->numbers.at[j].name))
                holes[i].text = arena_printf(g->arena, "burn_sizes[%d]", j);
}

// Takes back the arguments of holes that this form of the template does not have.
static void drop_unused(CFile *g, KernelText *t, int n, const Hole *holes) {
    Text trial;
    int kept = 0;
    text_init(&trial, g->arena);
    if (t->hole_numbers) template_fill(g->arena, &trial, t->kernel->template->file, n, holes);
    for (int i = 0; i < t->numbers.n; i++)
        if (i >= t->hole_numbers || c_says_word(trial.at, t->numbers.at[i].name))
            t->numbers.at[kept++] = t->numbers.at[i];
    t->hole_numbers -= t->numbers.n - kept;
    t->numbers.n = kept;
}

void c_template_kernel(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    Expr *stored = k->stores.at[0].expr;
    const char *axes[MAX_RANK];
    const int n_axes = words(g->arena, k->template->axes, axes);
    const Dim row = k->kind == KERNEL_GEMM ? k->gemm.c_row : 0;
    Hole holes[MAX_HOLES];
    Text params;
    template_params(g, t);
    int n = plain_holes(g, t, holes);
    const bool backward = k->kind == KERNEL_ATTENTION_GRAD;
    if (k->kind == KERNEL_ATTENTION || backward) n += attention_holes(g, t, axes, n_axes, holes + n);
    if (backward) n += backward_holes(g, t, axes, n_axes, holes + n);
    n = epilogue_holes(g, t, n, holes, axes, n_axes);
    for (int i = 0; i < t->hole_numbers; i++) t->numbers.at[i].used = !strncmp(t->numbers.at[i].name, "CM", 2);
    n += needed_holes(g, t, stored, row, "FINISH_PARAMS", "FINISH_ARGS", holes + n);
    drop_unused(g, t, n, holes);
    take_table(g, t, n, holes);
    text_init(&params, g->arena);
    text_printf(&params, "%s", t->n_params > t->first_shared || k->sizes.n ? ", " : "");
    c_print_params(g, t, &params, t->first_shared);
    holes[n++] = (Hole){ "EPILOGUE_PARAMS", NULL, params.at };
    holes[n++] = (Hole){ "KERNEL", NULL, t->name };
    holes[n++] = (Hole){ "FINISH", NULL, arena_printf(g->arena, "%s_finish", t->name) };
    holes[n++] = (Hole){ "IDENTITY_EPILOGUE", NULL, stored->op == E_Acc ? "1" : "0" };
    template_fill(g->arena, &g->c, k->template->file, n, holes);
}

// The parameters are the operands in the template's own order; what the template calls by a name of its own begins
// with the kernel's.
void c_call_kernel(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    Hole holes[MAX_HOLES];
    Text sizes;
    int n = plain_holes(g, t, holes);
    for (int i = 0; i < k->call.args.n; i++)
        t->params[t->n_params++] = (Param){
            .value = k->call.args.at[i], .name = "", .written = k->call.args.at[i]->def == k->anchor
        };
    t->first_shared = t->n_params;
    text_init(&sizes, g->arena);
    text_printf(&sizes, "%s", "");
    for (int i = 0; i < k->sizes.n; i++) text_printf(&sizes, ", int64_t %s", c_size(g, k, i));
    for (int i = 0; i < t->numbers.n; i++) text_printf(&sizes, ", ptrdiff_t %s", t->numbers.at[i].name);
    holes[n++] = (Hole){ "KERNEL", NULL, t->name };
    holes[n++] = (Hole){ "SIZES", NULL, sizes.at };
    template_fill(g->arena, &g->c, k->template->file, n, holes);
}
