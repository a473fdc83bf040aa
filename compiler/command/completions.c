// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc completions SHELL: what lets bash, zsh or fish complete commands, options and what options are one of. In: the
// tables of options_table.c. Out: a script of that shell, which knows all of it and asks burncc for nothing. Where
// an argument has no list of values, and for the model, shells offer files.
#include "option.h"

#include <string.h>

typedef struct Script { Text out; Arena *arena; const Options *options; } Script;
typedef struct Shell { const char *name; void (*write)(Script *s); } Shell;

static void write_bash(Script *s), write_zsh(Script *s), write_fish(Script *s);
static const Shell shells[] = { { "bash", write_bash }, { "zsh", write_zsh }, { "fish", write_fish } };
enum { SHELLS = COUNT(shells) };

// The lists that all three need: names with one space between.
static const char *shell_names(const Script *s) {
    Text t;
    text_init(&t, s->arena);
    for (int i = 0; i < SHELLS; i++) text_printf(&t, "%s%s", i ? " " : "", shells[i].name);
    return t.at;
}

static const char *command_names(const Script *s, unsigned bits, const char *between) {
    Text t;
    text_init(&t, s->arena);
    for (int i = 0; commands[i].name; i++)
        if (commands[i].bit & bits) text_printf(&t, "%s%s", t.n ? between : "", commands[i].name);
    return t.n ? t.at : "";
}

static const char *value_names(const Script *s, const Option *o) {
    static const char between[] = " ,";
    const char *values = option_values(s->arena, s->options, o);
    if (!values) return NULL;
    Text t;
    text_init(&t, s->arena);
    for (const char *v = values + strspn(values, between); *v;) {
        size_t n = strcspn(v, between);
        text_printf(&t, "%s%.*s", t.n ? " " : "", (int)n, v);
        v += n;
        v += strspn(v, between);
    }
    return t.at;
}

// The first clause of what a command does.
static const char *command_about(const Script *s, const Command *c) {
    return arena_strndup(s->arena, c->summary, strcspn(c->summary, ".:\n"));
}

// Between single quotes of bash and zsh; `marked`: characters that get a backslash.
static void put_quoted(Text *t, const char *text, const char *marked) {
    for (; *text; text++) {
        if (strchr(marked, *text)) text_printf(t, "\\");
        text_printf(t, *text == '\'' ? "'\\''" : "%c", *text);
    }
}

// ---------------------------------------------------------------- bash

static void bash_options(Script *s) {
    Text *t = &s->out;
    text_printf(t, "    case $before in\n");
    Text others;
    text_init(&others, s->arena);
    for (int i = 0; options[i].name; i++) {
        const Option *o = &options[i];
        const char *values = o->argument ? value_names(s, o) : NULL;
        if (values) text_printf(t, "    --%s) words='%s' ;;\n", o->name, values);
        else if (o->letter && o->argument) text_printf(&others, "-%c | ", o->letter);
        if (o->argument && !values) text_printf(&others, "--%s | ", o->name);
    }
    text_printf(t, "    %.*s) ;;\n", (int)others.n - 3, others.at);
    text_printf(t, "    *)\n        case $command/$word in\n");
    for (int i = 0; commands[i].name; i++) {
        text_printf(t, "        %s/-*) words='", commands[i].name);
        for (int k = 0, n = 0; options[k].name; k++)
            if (options[k].commands & commands[i].bit) text_printf(t, "%s--%s", n++ ? " " : "", options[k].name);
        text_printf(t, "' ;;\n");
    }
    text_printf(t, "        completions/*) words='%s' ;;\n        help/*) words='%s' ;;\n        esac\n"
        "        ;;\n    esac\n", shell_names(s), topic_names(s->arena));
}

static void write_bash(Script *s) {
    Text *t = &s->out;
    const char *names = command_names(s, EVERY, " ");
    text_printf(t,
        "# What bash completes of burncc; `burncc completions bash` wrote it.\n_burncc() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=compile words=\n"
        "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n        case ${COMP_WORDS[1]} in\n"
        "        %s) command=${COMP_WORDS[1]} ;;\n        esac\n    fi\n",
        command_names(s, EVERY, " | "));
    bash_options(s);
    text_printf(t,
        "    mapfile -t COMPREPLY < <(\n        compgen -W \"$words\" -- \"$word\"\n"
        "        [ \"$COMP_CWORD\" -gt 1 ] || { compgen -W '%s' -- \"$word\"; compgen -f -- \"$word\"; }\n    )\n}\n"
        "complete -o filenames -o default -F _burncc burncc\n",
        names);
}

// ---------------------------------------------------------------- zsh

static void zsh_option(Script *s, const Option *o) {
    Text *t = &s->out;
    const char *values = o->argument ? value_names(s, o) : NULL;
    text_printf(t, "            '*'");
    if (o->letter) text_printf(t, "{-%c,--%s}", o->letter, o->name);
    else text_printf(t, "--%s", o->name);
    text_printf(t, "'[");
    put_quoted(t, o->help, "[]\\:");
    text_printf(t, "]");
    if (o->argument) {
        text_printf(t, ":");
        put_quoted(t, o->argument, "[]\\:");
    }
    if (values) text_printf(t, ":(%s)", values);
    else if (o->argument) text_printf(t, ":_files");
    text_printf(t, "'\n");
}

static void write_zsh(Script *s) {
    Text *t = &s->out;
    text_printf(t,
        "#compdef burncc\n# What zsh completes of burncc; `burncc completions zsh` wrote it.\n_burncc() {\n"
        "    local command=compile first=\n    local -a commands options\n    commands=(\n");
    for (int i = 0; commands[i].name; i++) {
        text_printf(t, "        '%s:", commands[i].name);
        put_quoted(t, command_about(s, &commands[i]), "\\");
        text_printf(t, "'\n");
    }
    text_printf(t,
        "    )\n    (( CURRENT == 2 )) && first=1\n    case $first${words[2]} in\n    %s)\n"
        "        command=${words[2]}\n        shift words\n        (( CURRENT-- ))\n        ;;\n    esac\n"
        "    case $command in\n",
        command_names(s, EVERY, " | "));
    for (int i = 0; commands[i].name; i++) {
        text_printf(t, "    %s)\n        options=(\n", commands[i].name);
        for (int k = 0; options[k].name; k++)
            if (options[k].commands & commands[i].bit) zsh_option(s, &options[k]);
        if (commands[i].bit == COMPLETIONS) text_printf(t, "            '1:shell:(%s)'\n", shell_names(s));
        else if (commands[i].bit == HELP)
            text_printf(t, "            '1:topic:(%s)'\n", topic_names(s->arena));
        else if (commands[i].bit & MODELS) text_printf(t, "            '1:model:_files'\n");
        text_printf(t, "        )\n        ;;\n");
    }
    text_printf(t,
        "    esac\n    [[ -z $first ]] || _describe -t commands command commands\n    _arguments -s $options\n}\n"
        "_burncc \"$@\"\n");
}

// ---------------------------------------------------------------- fish

static void fish_quoted(Text *t, const char *text) {
    text_printf(t, "'");
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') text_printf(t, "\\");
        text_append(t, text, 1);
    }
    text_printf(t, "'");
}

static void fish_option(Script *s, const Option *o) {
    Text *t = &s->out;
    const char *values = o->argument ? value_names(s, o) : NULL;
    const char *others = command_names(s, ~o->commands, " ");
    text_printf(t, "complete -c burncc");
    if (!(o->commands & COMPILE))
        text_printf(t, " -n '__fish_seen_subcommand_from %s'", command_names(s, o->commands, " "));
    else if (*others) text_printf(t, " -n 'not __fish_seen_subcommand_from %s'", others);
    if (o->letter) text_printf(t, " -s %c", o->letter);
    text_printf(t, " -l %s", o->name);
    if (values) text_printf(t, " -x -a '%s'", values);
    else if (o->argument) text_printf(t, " -r");
    text_printf(t, " -d ");
    fish_quoted(t, o->help);
    text_printf(t, "\n");
}

static void write_fish(Script *s) {
    Text *t = &s->out;
    const char *names = command_names(s, EVERY, " ");
    text_printf(t, "# What fish completes of burncc; `burncc completions fish` wrote it.\n");
    for (int i = 0; commands[i].name; i++) {
        text_printf(
            t, "complete -c burncc -n 'not __fish_seen_subcommand_from %s' -a %s -d ", names, commands[i].name);
        fish_quoted(t, command_about(s, &commands[i]));
        text_printf(t, "\n");
    }
    text_printf(
        t, "complete -c burncc -n '__fish_seen_subcommand_from completions' -f -a '%s'\n", shell_names(s));
    text_printf(
        t, "complete -c burncc -n '__fish_seen_subcommand_from help' -f -a '%s'\n", topic_names(s->arena));
    for (int i = 0; options[i].name; i++) fish_option(s, &options[i]);
}

int command_completions(Arena *a, CommandOptions *c) {
    Script s = { .arena = a, .options = &c->compile };
    text_init(&s.out, a);
    for (int i = 0; i < SHELLS; i++) {
        if (strcmp(shells[i].name, c->shell)) continue;
        shells[i].write(&s);
        return print_text(&s.out, EXIT_OK);
    }
    usage_error("there are completions for %s, not for '%s'", shell_names(&s), c->shell);
    return diag_status();
}
