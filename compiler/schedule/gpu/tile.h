// SPDX-License-Identifier: MIT OR Apache-2.0
// How a loop kernel is spread over a GPU's threads.
#ifndef BURNCC_TILE_H
#define BURNCC_TILE_H
#include "plan.h"

void gpu_spread(Arena *a, Kernel *k);                   // k->loop, and tiles where they help
void gpu_share(Arena *a, Kernel *k);                    // k->loop of sums that several workgroups share, with scratch
void gpu_scatter(Arena *a, Kernel *k);                  // scatter.c: updates that may meet, by many threads
void gpu_join(Plan *p);                                 // join.c: loop kernels of the same few points become one
void gpu_append(Plan *p);                               // append.c: what is made of a product's elements joins it
void gpu_prepare(Plan *p);                              // prepare.c: products of few rows make norms themselves
void gpu_sort(Kernel *k);                               // sort.c: a called sort, as shaders
// rowwise.c: the kernel's reductions as those of rows, which its first `outer` axes count; by_point: neighbours in
// memory lie in neighbouring rows; shared: several workgroups may share a row; NULL: they are not
const Rowwise *gpu_rowwise(Arena *a, Kernel *k, int outer, bool by_point, bool shared);
bool gpu_windows(Arena *a, const Kernel *k);            // windows.c: a sum over windows whose channels lie last?
void gpu_attention(const Plan *p, Kernel *k);           // attention.c: the holes of its template
bool gpu_queries(const Plan *p, Kernel *k);             // the same of few queries, with scratch; false: it has many
void gpu_gemm(const Plan *p, Kernel *k);                // gemm.c: the holes of a product's template
// matrix.c: the product as a kernel for matrix units too, where its factors have 16 bits
struct ProductShape;
void gpu_units(const Plan *p, Kernel *k, const struct ProductShape *s);
// pieces.c: the same of f32, where that takes less than so many microseconds
void gpu_pieces(const Plan *p, Kernel *k, const struct ProductShape *s, double without);
// may a factor for matrix units be read from this value? f32 is rounded on its way, in training or where it is an input
bool gpu_is_half(const Plan *p, const Value *v);
void gpu_halves(Plan *p);                               // halves.c: --precision, elements of 16 bits
// product.c: a loop kernel as a product, whatever its sizes; NULL: it is none
Kernel *product_of(Arena *a, const Kernel *loop);
void product_turn(Product *p);                          // columns are rows and rows columns
bool gpu_rows(const Plan *p, Kernel *product);          // rows.c: a product of few rows: its holes
void product_lift(Kernel *k);                           // what of its factors' indices the terms do not change: own[]
// blocks.c: a loop kernel that is a product as large as the template wants becomes one, with its holes filled
bool gpu_product(const Plan *p, Kernel *k);
bool gpu_takes_conv(const Node *n);                     // is it, by its sizes, perhaps one?
#endif
