// SPDX-License-Identifier: MIT OR Apache-2.0
// What a graph or a plan looks like, whatever draws it: boxes, and arrows for the values between them; see picture.c.
#ifndef BURNCC_COMMAND_PICTURE_H
#define BURNCC_COMMAND_PICTURE_H
#include "command.h"

typedef enum BoxKind { BOX_INPUT, BOX_OUTPUT, BOX_NODE, BOX_KERNEL } BoxKind;
typedef struct Box {
    BoxKind kind;
    const char *op, *name;                              // "Conv", "conv1"; of a kernel its kind and name
    VEC(const char *) lines;                            // attributes and constants; of a kernel the nodes behind it
    int inside; const char *body;                       // the box whose body it is part of, -1: none; and which body
    const Kernel *kernel;                               // BOX_KERNEL
} Box;
typedef struct Arrow { int from, to; const char *type, *name; } Arrow;  // the value that goes from box to box
// Boxes in the order in which they are computed; those of bodies follow the box that has them.
typedef struct Picture { const char *title; VEC(Box) boxes; VEC(Arrow) arrows; } Picture;

Picture *picture_graph(Arena *a, const Graph *g, const char *title);
Picture *picture_plan(Arena *a, const Plan *p, const char *title);

// The stages that inspect shows: --stage
typedef enum Stage { STAGE_IMPORT, STAGE_PASSES, STAGE_KERNELS, STAGE_COUNT } Stage;
extern const char *const stage_names[STAGE_COUNT];
int stage_find(const char *name);                       // -1: there is none
typedef struct Pictures { int n; Picture *at[MAX_PROGRAMS]; } Pictures;
// of the graph as imported, which the programs are made of; programs: NULL where the stage is the first
Pictures pictures_of(Arena *a, Stage stage, const Graph *imported, const Programs *programs);

// inspect_dot.c: for Graphviz
void dot_print(Text *out, const char *title, const Pictures *p);

// inspect_html.c: a page; stages: pictures of all; profile: NULL, or of the only program
struct Profile;
void html_print(Text *out, Arena *a, const CommandOptions *c, const Pictures stages[STAGE_COUNT], Programs *programs,
    const struct Profile *profile);
#endif
