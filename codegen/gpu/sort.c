// SPDX-License-Identifier: MIT OR Apache-2.0
// A sort as compute shaders, one for each of its passes (schedule/gpu/sort.h): templates/glsl/sort.comp, which orders
// blocks, and merge.comp. In: the passes. Out: a chain of shaders over the line's elements, ranks in scratch memory,
// and the results.
#include "glsl.h"

#include "schedule/gpu/sort.h"

enum { FEW_THREADS = 128, MANY_THREADS = 256, MOST_GROUPS = 65535 };

// Bits of a key whose order as unsigned integers is the keys': of floats -0 is 0, and NaN above all.
static void print_key(Text *out, DType d, bool largest) {
    const char *turned = largest ? "~" : "";
    const bool sign = dtype_class(d) == CLASS_INT;
    if (d == DT_F64)
        text_printf(out,
            "uvec2 key_of(const double x) {\n"
            "    const uvec2 bits = unpackDouble2x32(x);\n"
            "    const uint size = bits.y & 0x7fffffffu;\n"
            "    uvec2 code = uvec2(bits.y, bits.x);\n"
            "    if ((size | bits.x) == 0u) code = uvec2(0u);\n"
            "    if (size > 0x7ff00000u || (size == 0x7ff00000u && bits.x != 0u)) code = uvec2(0x7ff80000u, 0u);\n"
            "    return %s((code.x >> 31) != 0u ? ~code : code ^ uvec2(0x80000000u, 0u));\n}\n", turned);
    else if (dtype_is_float(d))
        text_printf(out,
            "uint key_of(const float x) {\n"
            "    const uint bits = floatBitsToUint(x), size = bits & 0x7fffffffu;\n"
            "    const uint code = size == 0u ? 0u : size > 0x7f800000u ? 0x7fc00000u : bits;\n"
            "    return %s((code >> 31) != 0u ? ~code : code ^ 0x80000000u);\n}\n", turned);
    else if (dtype_size(d) == sizeof(int64_t))
        text_printf(out,
            "uvec2 key_of(const %s x) {\n"
            "    return %s(uvec2(uint(uint64_t(x) >> 32), uint(uint64_t(x))) ^ uvec2(%s, 0u));\n}\n",
            spell_glsl.type(d), turned, sign ? "0x80000000u" : "0u");
    else
        text_printf(out, "uint key_of(const %s x) { return %s(uint(x) ^ %s); }\n", spell_glsl.type(d), turned,
            sign ? "0x80000000u" : "0u");
}

// void finish(line, i, at): the i-th of a line is the element that was at `at`
static void print_finish(Printing *p, Text *out, const Sorting *s) {
    const Kernel *k = p->kernel;
    const Node *n = k->anchor;
    const int inner = (int)s->inner;
    text_printf(out,
        "void finish(const int line, const int i, const int at) {\n"
        "    const int from = (line / %d * %lld + at) * %d + line %% %d;\n"
        "    const int to = (line / %d * %lld + i) * %d + line %% %d;\n",
        inner, (long long)s->length, inner, inner, inner, (long long)s->count, inner, inner);
    for (int i = 0; i < k->writes.n; i++) {
        Value *v = k->writes.at[i];
        const char *to = glsl_element(p, v, "to", true);
        if (v == n->out[0]) text_printf(out, "    %s = %s;\n", to, glsl_element(p, n->in[0], "from", false));
        else text_printf(out, "    %s = int64_t(at);\n", to);
    }
    text_printf(out, "}\n\n");
}

// lines / inner is the line's outer place, lines % inner its inner one
static void print_load(Printing *p, Text *out, const Sorting *s) {
    Value *x = p->kernel->anchor->in[0];
    const DType d = layout_element(p->layout, x);
    const char *at = arena_printf(p->arena, "(line / %d * %lld + i) * %d + line %% %d", (int)s->inner,
        (long long)s->length, (int)s->inner, (int)s->inner);
    print_key(out, d, s->largest);
    text_printf(out, "%s key_at(const int line, const int i) {\n    return key_of(%s);\n}\n\n",
        s->words == 3 ? "uvec2" : "uint", glsl_load_text(p->arena, d, glsl_element(p, x, at, false)));
}

static void choose_groups(Shader *out, int64_t groups) {
    out->groups[0] = (uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS);
    out->groups[1] = (uint32_t)((groups + MOST_GROUPS - 1) / MOST_GROUPS);
    out->groups[2] = 1;
}

static void print_pass(Printing *p, const Sorting *s, const SortPass *pass, Shader *out) {
    Arena *a = p->arena;
    const int threads = pass->block >= 2 * MANY_THREADS ? MANY_THREADS : FEW_THREADS;
    const int64_t blocks = s->lines * ((pass->length + pass->block - 1) / pass->block),
                  per_group = pass->merges ? threads : pass->together,
                  groups = ((pass->merges ? s->lines * pass->length : blocks) + per_group - 1) / per_group;
    const bool whole = pass->kept == pass->length;      // blocks are runs, of which all is kept
    Text body;
    text_init(&body, a);
    if (pass->from_line) print_load(p, &body, s);
    if (pass->to_result) print_finish(p, &body, s);
    const Hole holes[] = { { "LINES", NULL, number_text(a, s->lines) },
        { "LENGTH", NULL, number_text(a, pass->length) },
        { "BLOCK", NULL, number_text(a, pass->block) }, { "TOGETHER", NULL, number_text(a, pass->together) },
        { "KEEP", NULL, number_text(a, whole && !pass->to_result ? pass->block : s->count) },
        { "KEPT", NULL, number_text(a, pass->kept) }, { "RUN", NULL, number_text(a, pass->run) },
        { "COUNT", NULL, number_text(a, s->count) }, { "THREADS", NULL, number_text(a, threads) },
        { "GROUPS", NULL, number_text(a, groups) }, { "WORDS", NULL, number_text(a, s->words) },
        { "FROM_LINE", NULL, pass->from_line ? "1" : "0" }, { "TO_RESULT", NULL, pass->to_result ? "1" : "0" },
        { "KEY_AT", "line, i", "key_at(line, i)" },
        { "FROM", "i", arena_printf(a, "scratch[scratch_at + %lld + (i)]", (long long)pass->from) },
        { "TO", "i", arena_printf(a, "scratch[scratch_at + %lld + (i)]", (long long)pass->to) },
        { "FINISH", "line, i, at", "finish(line, i, at)" } };
    template_fill(a, &body, pass->merges ? "glsl/merge.comp" : "glsl/sort.comp", COUNT(holes), holes);
    glsl_shader(p, "",
        s->n > 1 ? "layout(set = 0, binding = 0, std430) buffer Scratch { uint scratch[]; };\n" : "", body.at, out);
    out->points = s->lines * pass->length;
    choose_groups(out, groups);
}

void glsl_sort(Printing *p, Shader *out) {
    Sorting s;
    sorting_of(p->kernel, &s);
    for (int i = 0; i < s.n; i++) {
        Printing of_pass = *p;
        if (i) out = out->then = NEW(p->arena, Shader);
        print_pass(&of_pass, &s, &s.pass[i], out);
    }
}
