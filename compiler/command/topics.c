// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc help TOPIC: what belongs to one matter, from the tables that parsing reads.
//
// In: a word: a topic, a command, an option. Out: text. The idea: a topic is a sentence or two, names of options, and
// the chapter that has the rest; what an option does is said in options_table.c and nowhere else.
#include "option.h"

#include <string.h>

typedef struct Topic {
    const char *name, *title, *about;
    const char *options;                                // their names; a colon and the name of a group
    const char *chapter;                                // of the book
    void (*more)(Text *t, Arena *a, const Options *o);  // NULL: no more
} Topic;

static void more_targets(Text *t, Arena *a, const Options *o) {
    (void)a, (void)o;
    text_printf(t, "\n");
    help_targets(t);
}

static void more_sources(Text *t, Arena *a, const Options *o) {
    (void)a, (void)o;
    help_sources(t);
}

static void more_facts(Text *t, Arena *a, const Options *o) {
    (void)a, (void)o;
    help_facts(t, "Environment", environment);
    help_facts(t, "Exit status", exit_statuses);
}

static const Topic topics[] = {
    { "targets", "what the code is for",
        "Which processor, GPU or C compiler the code is for; one file may have several.",
        "target threads records blas", "docs/targets.md", more_targets },
    { "shapes", "sizes that inputs have",
        "A dimension with a name compiles for one size, or for all within bounds, which the run is told; one "
        "that an ONNX file has fixed can be\ngiven another size, or a name.",
        "dim shape sequence absent freeze", "docs/shapes.md", NULL },
    { "weights", "where parameters come from, and go",
        "Parameters come with an ONNX file, or from PyTorch's files by their names; large ones go to a file "
        "beside the code.",
        "weights weights-key map strict seed embed-limit replace-head lora lora-on", "docs/weights.md", NULL },
    { "precision", "which bits come out",
        "Arithmetic is strict IEEE, the same bits on any number of threads, unless one of these says "
        "otherwise.",
        "precision fast-math blas", "docs/numbers.md", NULL },
    { "memory", "less of it",
        "A program's memory is one workspace, known when it is compiled; these make it, or the code, smaller.",
        "optimize ram flash stack train-memory embed-limit string-bytes", "docs/embedding.md", NULL },
    { "threads", "a run on several processors",
        "A run goes in parts, on threads that the program gives it.", "threads", "docs/threads.md", NULL },
    { "train", "code that learns",
        "--train writes C that learns: loss and gradients, an optimizer's step, parameters as a struct. `burncc "
        "fit` does all of it\nfrom data.",
        ":Training freeze replace-head lora lora-on weights seed precision", "docs/training.md", NULL },
    { "fit", "learning from data in one command",
        "burncc fit learns from data in one command; burncc predict, evaluate and report use what it leaves.",
        ":Learning", "docs/fit.md", more_sources },
    { "gpu", "programs for Vulkan",
        "--target vulkan writes SPIR-V, and C that runs it through Vulkan. BURN_VK_DEVICE picks the GPU, "
        "BURN_VK_CACHE names a folder for what its driver makes of the kernels.",
        "target precision", "docs/vulkan.md", NULL },
    { "firmware", "without an operating system",
        "Generated C needs no operating system, no allocation and few functions of the C library; targets "
        "for microcontrollers name\nthe compiler's flags.",
        "target io optimize ram flash stack embed-limit runner", "docs/firmware.md", more_targets },
    { "export", "models and parameters for other tools",
        "-o model.onnx and -o model.safetensors write the model, or its parameters, for other tools.",
        "output opset optimized weights embed-limit", "docs/export.md", NULL },
    { "languages", "models called from Python, C++, JavaScript, Rust",
        "Models called from Python, C++, JavaScript and Rust.", "package", "docs/languages.md", NULL },
    { "look", "what became of a model",
        "What became of a model: a page, graphs, where a run's time goes, each stage as text.",
        "html dot stage profile report dump", "docs/look.md", help_stages },
    { "tuning", "what is fastest on this machine",
        "What is fastest on this machine is measured once, kept as records, and used from then on.",
        "records seconds", "docs/tuning.md", NULL },
    { "environment", "variables, and what commands return",
        "Variables that are asked for, and what commands return.", "", "docs/commands.md", more_facts },
};

static const Topic *topic_find(const char *name) {
    for (size_t i = 0; i < COUNT(topics); i++)
        if (!strcmp(topics[i].name, name)) return &topics[i];
    return NULL;
}

const char *topic_names(Arena *a) {
    Text t;
    text_init(&t, a);
    for (size_t i = 0; i < COUNT(topics); i++) text_printf(&t, "%s%s", i ? " " : "", topics[i].name);
    return t.at;
}

static const Option *option_find(const char *name, size_t n) {
    for (int i = 0; options[i].name; i++)
        if (strlen(options[i].name) == n && !strncmp(options[i].name, name, n)) return &options[i];
    return NULL;
}

static void print_topic(Text *t, Arena *a, const Options *o, const Topic *topic) {
    const char *at = topic->options;
    text_printf(t, "%s\n\n", topic->about);
    for (size_t n; *at; at += n + strspn(at + n, " ")) {
        n = strcspn(at, " ");
        if (*at == ':') {
            for (int i = 0; options[i].name; i++)
                if (strlen(options[i].group) == n - 1 && !strncmp(at + 1, options[i].group, n - 1))
                    help_option(t, &options[i]);
            continue;
        }
        const Option *option = option_find(at, n);
        if (!option) bug("topic %s names no option: %s", topic->name, at);
        help_option(t, option);
    }
    if (topic->more) topic->more(t, a, o);
    text_printf(t, "\nMore: %s\n", topic->chapter);
}

static void print_topics(Text *t) {
    text_printf(t, "burncc help TOPIC tells more of one of these, of a command or of an option.\n\nTopics:\n");
    for (size_t i = 0; i < COUNT(topics); i++)
        text_printf(t, "  %-14s %s\n", topics[i].name, topics[i].title);
    text_printf(t, "\nCommands:\n");
    for (int i = 0; commands[i].name; i++) text_printf(t, "  %s\n", commands[i].usage);
    text_printf(t, "\nburncc --help has all that compiling takes.\n");
}

int command_help(Arena *a, CommandOptions *c) {
    const char *word = c->topic;
    const Topic *topic = word ? topic_find(word) : NULL;
    Text t;
    text_init(&t, a);
    if (!word) print_topics(&t);
    else if (topic) print_topic(&t, a, &c->compile, topic);
    for (int i = 0; word && !t.n && commands[i].name; i++)
        if (!strcmp(commands[i].name, word)) help_command(&t, a, &c->compile, &commands[i]);
    const Option *option = word && !t.n ? option_find(word, strlen(word)) : NULL;
    if (option) {
        help_option(&t, option);
        help_takers(&t, option->commands);
    }
    if (t.n) return print_text(&t, EXIT_OK);
    usage_error("no topic, command or option is called '%s'; the topics are %s", c->topic, topic_names(a));
    return diag_status();
}
