// SPDX-License-Identifier: MIT OR Apache-2.0
// Records of `burncc tune`: which algorithm and blocks a template kernel takes on a machine, found by measuring
// (tune.c).
//
// A kernel is known by its signature, a text of its canonical form; a choice is a text too, `winograd t=4 mr=14
// nv=2`, the algorithm and the fields of its tile struct. The planners of templates.c and templates_conv.c ask for a
// record before they ask tiles*.c, and say of every kernel by what signature it goes and what it has become;
// candidates.c lists what else it could be.
#ifndef BURNCC_TUNE_H
#define BURNCC_TUNE_H
#include "plan.h"
#include "tiles.h"

typedef struct Record {
    const char *place;                                  // FILE:LINE, for diagnostics
    const char *machine, *kernel, *choice;
    // of this choice and of the cost model's, when they were measured
    double ms, model_ms;
    bool refused;                                       // does not fit: said once
} Record;
// machine: whose records hold, where the target alone does not say it: a GPU; NULL: the target's
typedef struct Records { VEC(Record) at; StrMap *newest; const char *machine; } Records;

void records_init(Records *r, Arena *a);
// adds a file's; false with diagnostics at its lines
bool records_read(Records *r, Arena *a, const char *path);
void records_add(Records *r, Arena *a, Record one);      // in place of the one that has its machine and kernel
void records_print(const Records *r, Text *out);         // as a file
// NULL when there is none
Record *records_find(const Records *r, Arena *a, const char *machine, const char *kernel);
const char *tune_machine(Arena *a, const Target *t);     // what a record calls it: native:avx512:l1=48K:l2=2M
// Code for Vulkan runs on any GPU, and nobody need have one where it is compiled: the records say whose they are,
// vulkan:NAME. Of several devices' those whose name has this part (any case; NULL, "" or #N: each) hold; false with a
// diagnostic where these are several.
bool records_choose_device(Records *r, Arena *a, const char *part);
const char *tune_device(Arena *a, const char *name);     // what a record calls the GPU of this name

// ---------------------------------------------------------------- choices
// an int or, wide, an int64_t of the tile struct
typedef struct TuneField { const char *name; size_t offset; bool wide; } TuneField;
typedef struct TuneForm { const char *algorithm; int n; TuneField field[10]; } TuneForm;
#define CPU_FORM(name, ...) extern const TuneForm tune_##name;
#define GPU_FORM(name, ...) extern const TuneForm tune_##name;
#include "forms.def"
#undef CPU_FORM
#undef GPU_FORM
#define TUNE_INT(T, f) { #f, offsetof(T, f), false }
#define TUNE_WIDE(T, f) { #f, offsetof(T, f), true }
// what a row of forms.def defines
#define TUNE_FORM(name, ...) \
    const TuneForm tune_##name = { #name, sizeof (TuneField[]){ __VA_ARGS__ } / sizeof(TuneField), { __VA_ARGS__ } };
const char *tune_text(Arena *a, const TuneForm *form, const void *tiles);
// false: of another algorithm, or not all of its fields and no others
bool tune_parse(const TuneForm *form, const char *choice, void *tiles);

typedef VEC(const char *) Choices;
// Each field doubled and halved, where that fits.
void tune_neighbours(Arena *a, const TuneForm *form, const void *tiles, size_t bytes,
    bool (*fits)(const void *shape, const void *tiles), const void *shape, Choices *out);

// forms.c: does a template allow these? n_fixed: the number of columns is a constant
bool gemm_fits(const GemmShape *s, bool n_fixed, const GemmTiles *t);
bool gemv_fits(const GemmShape *s, const GemvTiles *t);
// rows: the most of a tile; even: the file is for machines that halve them, too
bool low_fits(int64_t rows, bool even, const LowTiles *t);
bool direct_fits(const ConvLayout *merged, const ConvTiles *t);
bool taps_fits(const ConvLayout *l, const TapTiles *t);
bool pairs_fits(const ConvLayout *l, const PairTiles *t);
bool winograd_fits(const ConvLayout *l, const WinogradTiles *t);
bool depthwise_fits(const ConvLayout *l, const ConvDwTiles *t);
// templates_attention.c
void attention_candidates(
    Arena *a, const Graph *g, const Kernel *k, const Options *o, const char *best, Choices *out);
// candidates.c: choices to measure a planned kernel with: other algorithms and register tiles, or, with `best`, other
// blocks than it has. Some may not fit.
void template_candidates(Arena *a, const Graph *g, const Kernel *k, const Options *o, const char *best, Choices *out);
// schedule/gpu/choices.c: the same of a GPU's kernel; all of them fit
void gpu_candidates(Arena *a, const Kernel *k, const char *best, Choices *out);

// ---------------------------------------------------------------- for planners
// Gives the kernel its signature; its record for the target, or NULL.
Record *tune_record(Arena *a, Kernel *k, const Options *o, const char *signature);
void tune_refuse(const Kernel *k, Record *r);            // says that the choice does not fit; the cost model's stands
#endif
