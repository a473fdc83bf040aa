// SPDX-License-Identifier: MIT OR Apache-2.0
// --help of burncc and of each command, and --target list, from the tables.
#include "option.h"
#include "runtime/learn/source.h"

#include <string.h>

void help_option(Text *t, const Option *option) {
    char left[64], letter[8] = "    ";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
        option->argument ? option->argument : "");
    text_printf(t, "  %-26s %s\n", left, option->help);
}

static void help_options(Text *t, unsigned bit) {
    const char *group = "";
    for (int i = 0; options[i].name; i++) {
        const Option *option = &options[i];
        if (!(option->commands & bit)) continue;
        if (strcmp(option->group, group)) text_printf(t, "\n%s:\n", option->group);
        group = option->group;
        help_option(t, option);
    }
}

void help_takers(Text *t, unsigned takers) {
    int n = 0;
    bool all = true;
    for (int i = 0; commands[i].name; i++) all &= (takers & commands[i].bit) != 0;
    for (int i = 0; commands[i].name && !all; i++)
        if (takers & commands[i].bit) text_printf(t, "%s%s", n++ ? ", " : "(", commands[i].name);
    text_printf(t, all ? "" : ")\n");
}

void help_stages(Text *t, Arena *a, const Options *o) {
    text_printf(t, "\nStages of --dump: %s.\n", dump_names(a, o));
}

void help_facts(Text *t, const char *title, const Fact *facts) {
    text_printf(t, "\n%s:\n", title);
    for (int i = 0; facts[i].name; i++) text_printf(t, "  %-26s %s\n", facts[i].name, facts[i].text);
}

void help_general(Text *t, Arena *a, const Options *o) {
    text_printf(t, "burncc: compiles neural networks into C that stands alone\n\nUsage:\n");
    for (int i = 0; commands[i].name; i++) text_printf(t, "  %s\n", commands[i].usage);
    text_printf(t, "\n`burncc COMMAND --help` tells more about one, `burncc help TOPIC` of a matter such as targets, "
        "shapes, weights, train. Compiling is the default command:\n");
    help_options(t, COMPILE);
    help_stages(t, a, o);
    text_printf(t, "\nExamples:\n%s  burncc verify lenet.onnx\n  burncc bench lenet.onnx --target native\n",
        commands[0].examples);
    help_facts(t, "Environment", environment);
    help_facts(t, "Exit status", exit_statuses);
}

void help_command(Text *t, Arena *a, const Options *o, const Command *c) {
    text_printf(t, "Usage: %s\n\n%s\n", c->usage, c->summary);
    help_options(t, c->bit);
    if (c->bit & (COMPILE | INSPECT)) help_stages(t, a, o);
    if (c->bit & (FIT | APPLIES | QUANTIZE)) help_sources(t);
    text_printf(t, "\nExamples:\n%s", c->examples);
}

void help_sources(Text *t) {
    burn_source_help kind;
    text_printf(t,
        "\nData: KIND:PATH,OPTION=VALUE,OPTION ..., or a path that says itself what it is. KIND is one of\n");
    for (int i = 0; burn_source_kind(i, &kind); i++) {
        char left[64];
        snprintf(left, sizeof left, "%s:%s", kind.name, kind.path);
        text_printf(t, "  %-18s %s\n", left, kind.what);
        if (*kind.options) text_printf(t, "  %-18s   %s\n", "", kind.options);
    }
    text_printf(t, "Sizes that are left open are those of the model's input.\n");
}

void help_targets(Text *t) {
    text_printf(t, "  %-14s %-24s %s\n", "--target", "compile with", "");
    for (int i = 0; target_at(i); i++) {
        const Target *one = target_at(i);
        const char *flags = one->flags ? one->flags : "";
        if (strlen(flags) <= 24) text_printf(t, "  %-14s %-24s %s\n", one->name, flags, one->about);
        else text_printf(t, "  %-14s %s\n  %-14s %-24s %s\n", one->name, flags, "", "", one->about);
    }
    text_printf(t,
        "\nSeveral of x86-64's, such as --target x86-64-v2,x86-64-v3,x86-64-v4, are one file for -O3, which finds "
        "out at run time\n"
        "what the processor has. Without FMA (x86-64-v2) and with it results may differ in the last bits.\n");
}
