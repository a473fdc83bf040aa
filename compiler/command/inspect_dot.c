// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc inspect --dot: pictures in the language of Graphviz. Operators are boxes, kernels boxes with round corners,
// inputs and outputs ellipses; a body is a frame around its boxes, as each program is where there are several.
//
//   digraph "digits" {
//     n0 [label="image\nf32[1,1,28,28]", shape=ellipse]
//     n1 [label="Conv\nconv1"]
//     n0 -> n1 [label="f32[1,1,28,28]"]
//   }
#include "picture.h"

#include <string.h>

// Names may hold any bytes: JSON's escapes of quotes and backslashes are Graphviz's too, but it reads HTML's entities.
static void quoted(Text *out, const char *s) {
    Text json, plain;
    text_init(&json, out->arena);
    text_init(&plain, out->arena);
    for (; *s; s++) {
        if (*s == '&') text_printf(&plain, "&amp;");
        else text_append(&plain, (unsigned char)*s < 0x20 || *s == 0x7f ? "?" : s, 1);
    }
    json_quoted(&json, plain.n ? plain.at : "");
    for (const char *at = json.at; *at; at++) {
        bool unknown = !strncmp(at, "\\ufffd", 6);
        if (unknown) text_printf(out, "&#xfffd;");
        else text_append(out, at, 1);
        if (unknown) at += 5;
        else if (*at == '\\') text_append(out, ++at, 1);
    }
}

// Long lists of nodes and attributes end in how many more there are.
static const char *label(Arena *a, const Box *b) {
    enum { LINES = 8, LETTERS = 60 };
    const bool end = b->kind == BOX_INPUT || b->kind == BOX_OUTPUT;
    const char *both = end ? b->name : arena_printf(a, "%s\n%s", b->op, b->name);
    Text t;
    text_init(&t, a);
    text_printf(&t, "%s", *b->name ? both : b->op);
    for (int i = 0; i < b->lines.n && i < LINES; i++) {
        const char *line = b->lines.at[i];
        size_t n = strlen(line), cut = n > LETTERS ? LETTERS : n;
        while (cut < n && ((unsigned char)line[cut] & 0xc0) == 0x80) cut--;     // between two characters of UTF-8
        text_printf(&t, "\n%.*s%s", (int)cut, line, cut < n ? "..." : "");
    }
    if (b->lines.n > LINES) text_printf(&t, "\nand %d more", b->lines.n - LINES);
    return t.at;
}

// Lines of one label: each is quoted alone, and "\n" put between them.
static void print_label(Text *out, const char *text) {
    Text line;
    text_printf(out, "label=\"");
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        text_init(&line, out->arena);
        quoted(&line, arena_strndup(out->arena, text, (size_t)(end - text)));
        text_append(out, line.at + 1, line.n - 2);
        if (*end) text_printf(out, "\\n");
    }
    text_printf(out, "\"");
}

static void print_box(Text *out, const Box *b, int program, int number) {
    static const char *const looks[] = { [BOX_INPUT] = ", shape=ellipse", [BOX_OUTPUT] = ", shape=ellipse",
        [BOX_NODE] = "", [BOX_KERNEL] = ", style=rounded" };
    text_printf(out, "  p%d_n%d [", program, number);
    print_label(out, label(out->arena, b));
    text_printf(out, "%s]\n", looks[b->kind]);
}

// The boxes of one body, and in frames those of bodies inside it. They stand together, behind the box that has them.
static int print_boxes(Text *out, const Picture *p, int program, int at) {
    const int inside = at < p->boxes.n ? p->boxes.at[at].inside : -1;
    const char *body = at < p->boxes.n ? p->boxes.at[at].body : "";
    while (at < p->boxes.n) {
        const Box *b = &p->boxes.at[at];
        if (b->inside == inside && !strcmp(b->body, body)) {
            print_box(out, b, program, at++);
        } else if (b->inside > inside) {
            const Box *owner = &p->boxes.at[b->inside];
            text_printf(out, "  subgraph cluster_p%d_n%d {\n  ", program, at);
            print_label(out, arena_printf(out->arena, "%s of %s %s", b->body, owner->op, owner->name));
            text_printf(out, "\n");
            at = print_boxes(out, p, program, at);
            text_printf(out, "  }\n");
        } else break;
    }
    return at;
}

void dot_print(Text *out, const char *title, const Pictures *all) {
    text_printf(out, "digraph ");
    quoted(out, title);
    text_printf(out, " {\n  node [shape=box, fontname=\"Helvetica\"]\n  edge [fontname=\"Helvetica\", fontsize=10]\n");
    for (int i = 0; i < all->n; i++) {
        const Picture *p = all->at[i];
        if (all->n > 1) {
            text_printf(out, "  subgraph cluster_p%d {\n  ", i);
            print_label(out, p->title);
            text_printf(out, "\n");
        }
        print_boxes(out, p, i, 0);
        for (int j = 0; j < p->arrows.n; j++) {
            const Arrow *arrow = &p->arrows.at[j];
            text_printf(out, "  p%d_n%d -> p%d_n%d [", i, arrow->from, i, arrow->to);
            print_label(out, arrow->type);
            text_printf(out, "]\n");
        }
        if (all->n > 1) text_printf(out, "  }\n");
    }
    text_printf(out, "}\n");
}
