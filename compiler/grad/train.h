// SPDX-License-Identifier: MIT OR Apache-2.0
// Training graphs made from a model; see train.c.
#ifndef BURNCC_TRAIN_H
#define BURNCC_TRAIN_H
#include "loss.h"
#include "options.h"

typedef enum ParameterKind {
    PARAMETER_TRAINED,
    // a running statistic, not trained: its "gradient" is the batch's statistic, and a step leaves `keep` of it
    PARAMETER_RUNNING,
    PARAMETER_BATCHES                                   // of gradients: how many batches they are the sum of; not saved
} ParameterKind;
// name: the model's; field: of the generated struct
typedef struct Parameter {
    const char *name, *field;
    Type type;
    Tensor *initial;
    ParameterKind kind;
    double keep;
    int group;                                          // of Training.groups, from 1; 0: none
} Parameter;
// --group: hyper-parameters that its parameters have for themselves, or the caller's times a factor
typedef struct GroupSetting { const char *name; double number; bool factor; } GroupSetting;
typedef struct Group { const char *text, *what; VEC(GroupSetting) settings; } Group;
// A program's graph, which has its name; roles: of the outputs, which passes may replace
typedef struct TrainGraph { Graph *graph; const char *doc; Role *roles; } TrainGraph;
enum { MAX_TRAIN_GRAPHS = 7 };
// scale.c
typedef struct LossScale { bool used, dynamic; double initial, growth, backoff, interval; } LossScale;
typedef struct Training {
    LossTerms losses;
    const struct OptimizerRow *optimizer; const Spec *optimizer_spec;       // spec: numbers that are given
    const Spec *schedule; const char *schedule_text;    // NULL: none
    const char *schedule_usual;                         // the arguments of learning_rate and their usual values
    bool clip_value, clip_norm;                         // of gradients, by hyper-parameters of these names
    VEC(Group) groups;
    LossScale scale;
    VEC(Parameter) params;
    const char *runs;                                   // field of PARAMETER_BATCHES; NULL: no statistic is running
    bool drops; int64_t seed;                           // does anything drop? Seed of what is dropped
    int n_drops; Value *step;                           // places where; the input with a step's number, or NULL
    const char *input_gradients; bool jvp;              // of options.h
    bool short_of_memory;                               // the target's RAM is what is dear
    VEC(Parameter) state;                               // of the optimizer; zero at the start
    TrainGraph graphs[MAX_TRAIN_GRAPHS];
    int n_graphs;
} Training;

// Makes parameters of the weights of the imported graph; NULL with diagnostics.
Training *train_parameters(Graph *model, const Options *o);
// The loss of the model's first output behind a copy of the model in training mode, in place of its outputs; behind it
// statistics of the batch. NULL with diagnostics.
Graph *train_loss(Training *t, Graph *model, const char *name);
// widen.c: every float of the graph becomes f64, so that it computes in double precision; false with diagnostics: some
// operation takes none.
bool graph_widen(Graph *g);
// Adds the graphs of the programs, whose sizes are the model's; false with diagnostics.
bool train_graphs(Training *t, Graph *model);
// "name=usual ...": the optimizer's hyper-parameters that are arguments; optimizer.c
const char *optimizer_usual(const Training *t, Arena *a);
// Do the parameters' initial values go into a file of their own?
bool train_apart(const Training *t, const Options *o);
// Behind the passes: outputs have their roles again, gradients each a value of its own (parameters may share one).
void train_ends(const TrainGraph *t);
#endif
