// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc inspect --html: a page to look at a model with. In: the graph as imported, its programs and, with --profile,
// times. Out: one file that asks nothing of a network: templates/look/, with all that there is to know as JSON inside.
//
// Names come from strangers. They are strings of JSON in which no `<` stands, so that none ends the element that they
// are in; what the page's script then makes of them is text and never markup.
#include "picture.h"
#include "profile.h"

#include "codegen/codegen.h"

#include <string.h>

typedef struct Page {
    Text *json;
    Arena *arena;
    const Programs *programs;
    const Profile *profile;                             // of the only program; NULL: none
    Listing code;
} Page;

static void comma(const Page *p, int i) {
    if (i) text_append(p->json, ",\n", 2);
}

static void put_string(const Page *p, const char *key, const char *text) {
    text_printf(p->json, "\"%s\":", key);
    json_quoted(p->json, text ? text : "");
}

// ---------------------------------------------------------------- pictures

static void put_box(const Page *p, const Box *b, int program) {
    static const char *const kinds[] = { [BOX_INPUT] = "input", [BOX_OUTPUT] = "output", [BOX_NODE] = "node",
        [BOX_KERNEL] = "kernel" };
    text_printf(p->json, "{\"kind\":\"%s\",\"inside\":%d,\"kernel\":%d,\"program\":%d,", kinds[b->kind], b->inside,
        b->kernel ? b->kernel->number : -1, program);
    put_string(p, "op", b->op);
    text_append(p->json, ",", 1);
    put_string(p, "name", b->name);
    text_append(p->json, ",", 1);
    put_string(p, "body", b->body);
    text_printf(p->json, ",\"lines\":[");
    for (int i = 0; i < b->lines.n; i++) {
        if (i) text_append(p->json, ",", 1);
        json_quoted(p->json, b->lines.at[i]);
    }
    text_printf(p->json, "]}");
}

static void put_picture(const Page *p, const Picture *picture, Stage stage, int program) {
    text_printf(p->json, "{\"stage\":\"%s\",", stage_names[stage]);
    put_string(p, "title", picture->title);
    text_printf(p->json, ",\"boxes\":[");
    for (int i = 0; i < picture->boxes.n; i++) {
        comma(p, i);
        put_box(p, &picture->boxes.at[i], program);
    }
    text_printf(p->json, "],\"arrows\":[");
    for (int i = 0; i < picture->arrows.n; i++) {
        const Arrow *a = &picture->arrows.at[i];
        comma(p, i);
        text_printf(p->json, "{\"from\":%d,\"to\":%d,", a->from, a->to);
        put_string(p, "type", a->type);
        text_append(p->json, ",", 1);
        put_string(p, "name", a->name);
        text_append(p->json, "}", 1);
    }
    text_printf(p->json, "]}");
}

// ---------------------------------------------------------------- plans

static int code_of(const Page *p, const Kernel *k) {
    const char *name = codegen_function(k);
    for (int i = 0; name && i < p->code.n; i++)
        if (!strcmp(p->code.at[i].name, name)) return i;
    return -1;
}

static void put_kernel(const Page *p, const Kernel *k) {
    comma(p, k->number);
    text_printf(p->json, "{\"name\":\"%s\",\"kind\":\"%s\",\"flops\":%.17g,\"bytes\":%lld,\"code\":%d,\"nodes\":[",
        k->name, kernel_kind(k), k->flops, (long long)k->traffic, code_of(p, k));
    for (int i = 0; i < k->nodes.n; i++) {
        const Node *n = k->nodes.at[i];
        text_printf(p->json, "%s[\"%s\",", i ? "," : "", op_table[n->op].name);
        json_quoted(p->json, n->loc && n->loc->name ? n->loc->name : "");
        text_append(p->json, "]", 1);
    }
    text_printf(p->json, "]");
    if (p->profile) text_printf(p->json, ",\"ms\":%.6g", p->profile->at[k->number].ms);
    text_append(p->json, "}", 1);
}

// In the order of their numbers: a kernel before those of its bodies.
static void put_kernels(const Page *p, const Plan *plan) {
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        if (plan_ran(plan, i)) continue;
        put_kernel(p, k);
        for (int j = 0; j < kernel_bodies(k); j++) put_kernels(p, k->region.bodies[j]);
    }
}

static void put_type(const Page *p, const Buffer *b) {
    put_string(p, "name", b->value ? b->value->name : NULL);
    text_append(p->json, ",", 1);
    put_string(p, "type", b->value ? type_text(p->arena, b->value->graph, &b->value->type) : "");
    text_printf(p->json, ",\"bytes\":%lld", (long long)b->bytes);
}

static void put_buffers(const Page *p, const Plan *plan, Place place) {
    for (int i = 0, n = 0; i < plan->buffers.n; i++) {
        const Buffer *b = plan->buffers.at[i];
        if (b->place != place) continue;
        comma(p, n++);
        text_append(p->json, "{", 1);
        put_type(p, b);
        if (place == PLACE_WEIGHT) text_append(p->json, ",", 1);
        if (place == PLACE_WEIGHT) put_string(p, "layout", b->layout);
        else {
            text_printf(p->json, ",\"offset\":%lld,\"first\":%d,\"last\":%d,\"gaps\":[", (long long)b->offset, b->first,
                b->last);
            for (int j = 0; j < b->gaps.n; j++)
                text_printf(p->json, "%s[%d,%d]", j ? "," : "", b->gaps.at[j].first, b->gaps.at[j].last);
            text_append(p->json, "]", 1);
        }
        text_append(p->json, "}", 1);
    }
}

static void put_program(const Page *p, const Program *one) {
    const Plan *plan = one->plan;
    text_append(p->json, "{", 1);
    put_string(p, "name", one->name);
    text_printf(p->json, ",\"workspace\":%lld,\"live\":%lld,\"weight_bytes\":%lld,\"kernels\":[",
        (long long)plan->work_bytes, (long long)plan->live_bytes, (long long)plan->weight_bytes);
    put_kernels(p, plan);
    text_printf(p->json, "],\"steps\":[");
    for (int i = 0; i < plan->kernels.n; i++) text_printf(p->json, "%s%d", i ? "," : "", plan->kernels.at[i]->number);
    text_printf(p->json, "],\"buffers\":[");
    put_buffers(p, plan, PLACE_WORK);
    text_printf(p->json, "],\"weights\":[");
    put_buffers(p, plan, PLACE_WEIGHT);
    text_printf(p->json, "]}");
}

// ---------------------------------------------------------------- the page

static void put_times(const Page *p) {
    if (!p->profile) {
        text_printf(p->json, "\"limits\":null,");
        return;
    }
    text_printf(p->json, "\"median_ms\":%.6g,\"limits\":{\"gflops\":%.6g,\"gbytes\":%.6g},",
        p->profile->plain.median_ms, p->profile->limits.gflops, p->profile->limits.gbytes);
}

static void put_data(const Page *p, const CommandOptions *c, const Pictures *stages) {
    text_append(p->json, "{", 1);
    put_string(p, "model", c->compile.model);
    text_append(p->json, ",", 1);
    put_string(p, "target", c->compile.target);
    text_append(p->json, ",", 1);
    put_times(p);
    text_printf(p->json, "\"code\":[");
    for (int i = 0; i < p->code.n; i++) {
        comma(p, i);
        text_append(p->json, "{", 1);
        put_string(p, "name", p->code.at[i].name);
        text_append(p->json, ",", 1);
        put_string(p, "text", p->code.at[i].text);
        text_append(p->json, "}", 1);
    }
    text_printf(p->json, "],\n\"pictures\":[");
    for (int s = 0, n = 0; s < STAGE_COUNT; s++)
        for (int i = 0; i < stages[s].n; i++) {
            comma(p, n++);
            put_picture(p, stages[s].at[i], (Stage)s, i);
        }
    text_printf(p->json, "],\n\"programs\":[");
    for (int i = 0; i < p->programs->n; i++) {
        comma(p, i);
        put_program(p, &p->programs->at[i]);
    }
    text_printf(p->json, "]}");
}

// `<` stands in JSON's strings alone.
static void put_without_tags(Text *out, const Text *json) {
    for (const char *at = json->at, *end; *at; at = end) {
        end = at + strcspn(at, "<");
        text_append(out, at, (size_t)(end - at));
        if (*end == '<') text_printf(out, "\\u003c");
        end += *end == '<';
    }
}

// The skeleton, with a file of templates/look/ or the data in the place of each @WORD@.
static void put_page(Text *out, const Text *json) {
    static const char *const scripts[] = { "look/layout.js", "look/graph.js", "look/charts.js", "look/look.js" };
    for (const char *at = template_text("look/page.html"), *end; *at; at = end) {
        end = strchr(at, '\n') + 1;
        if (!strncmp(at, "@STYLE@", 7)) text_printf(out, "%s", template_text("look/look.css"));
        else if (!strncmp(at, "@DATA@", 6)) put_without_tags(out, json);
        else if (!strncmp(at, "@SCRIPT@", 8))
            for (size_t i = 0; i < COUNT(scripts); i++) text_printf(out, "%s", template_text(scripts[i]));
        else text_append(out, at, (size_t)(end - at));
    }
}

void html_print(Text *out, Arena *a, const CommandOptions *c, const Pictures stages[STAGE_COUNT], Programs *programs,
    const Profile *profile) {
    Text json;
    text_init(&json, a);
    Page p = { .json = &json, .arena = a, .programs = programs, .profile = profile };
    if (c->compile.machine.backend->source)
        codegen_listing(a, &c->compile, programs->n, programs->at, programs->training, &p.code);
    put_data(&p, c, stages);
    put_page(out, &json);
}
