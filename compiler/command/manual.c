// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc manual: the manual page. In: the tables of options_table.c. Out: roff in the macros of man(7), which man,
// mandoc and groff set. All commands share one page: an option stands there once, with the commands that take it.
#include "config.h"
#include "option.h"

#include <string.h>

// Text as roff takes it: no escapes, no line that begins as a request. Hyphens stay what is typed.
static void put(Text *t, const char *s) {
    for (; *s; s++) {
        bool starts = !t->n || t->at[t->n - 1] == '\n';
        if (starts && (*s == '.' || *s == '\'')) text_printf(t, "\\&");
        if (*s == '\\') text_printf(t, "\\e");
        else if (*s == '-') text_printf(t, "\\-");
        else text_append(t, s, 1);
    }
}

// Filled text: where it was broken for a terminal says nothing.
static void put_filled(Text *t, Arena *a, const char *s) {
    char *line = arena_strdup(a, s);
    for (char *c = line; *c; c++)
        if (*c == '\n') *c = ' ';
    put(t, line);
    text_printf(t, "\n");
}

static void put_literal(Text *t, const char *s) {
    text_printf(t, ".PP\n.nf\n.RS\n");
    put(t, s);
    text_printf(t, ".RE\n.fi\n");
}

static void put_commands(Text *t, Arena *a) {
    text_printf(t, ".SH COMMANDS\n");
    for (int i = 0; commands[i].name; i++) {
        text_printf(t, ".SS ");
        put(t, commands[i].usage);
        text_printf(t, "\n");
        put_filled(t, a, commands[i].summary);
        put_literal(t, commands[i].examples);
    }
}

static void put_options(Text *t, Arena *a) {
    const char *group = "";
    text_printf(t, ".SH OPTIONS\nBehind each stand the commands that take it.\n");
    for (int i = 0; options[i].name; i++) {
        const Option *o = &options[i];
        if (strcmp(group, o->group)) text_printf(t, ".SS %s\n", o->group);
        group = o->group;
        text_printf(t, ".TP\n\\fB");
        if (o->letter) text_printf(t, "\\-%c\\fR, \\fB", o->letter);
        text_printf(t, "\\-\\-");
        put(t, o->name);
        text_printf(t, "\\fR");
        if (o->argument) {
            text_printf(t, " \\fI");
            put(t, o->argument);
            text_printf(t, "\\fR");
        }
        text_printf(t, "\n");
        put_filled(t, a, o->help);
        help_takers(t, o->commands);
    }
}

static void put_facts(Text *t, Arena *a, const char *title, const Fact *facts) {
    text_printf(t, ".SH %s\n", title);
    for (int i = 0; facts[i].name; i++) {
        text_printf(t, ".TP\n\\fB%s\\fR\n", facts[i].name);
        put_filled(t, a, facts[i].text);
    }
}

int command_manual(Arena *a, CommandOptions *c) {
    Text t;
    text_init(&t, a);
    text_printf(&t, ".TH BURNCC 1 \"\" \"burncc " BURNCC_VERSION "\" \"User commands\"\n.SH NAME\n");
    text_printf(&t, "burncc \\- compiles neural networks into C that stands alone\n.SH SYNOPSIS\n.nf\n");
    for (int i = 0; commands[i].name; i++) {
        put(&t, commands[i].usage);
        text_printf(&t, "\n");
    }
    text_printf(&t, ".fi\n.SH DESCRIPTION\n");
    text_printf(&t, "MODEL is an ONNX file, a model described in C, or the text of a graph; its content tells which. "
        "Without a command it is compiled.\n");
    put_commands(&t, a);
    put_options(&t, a);
    text_printf(&t, ".SS Stages of \\-\\-dump\n");
    put_filled(&t, a, dump_names(a, &c->compile));
    put_facts(&t, a, "ENVIRONMENT", environment);
    put_facts(&t, a, "EXIT STATUS", exit_statuses);
    return print_text(&t, EXIT_OK);
}
