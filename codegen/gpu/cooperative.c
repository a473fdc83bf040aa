// SPDX-License-Identifier: MIT OR Apache-2.0
// SPV_NV_cooperative_matrix -> SPV_KHR_cooperative_matrix, word by word.
//
//   %m = OpTypeCooperativeMatrixNV %half %scope %uint_0x10010 %uint_0x30010
//   %x = OpCooperativeMatrixLoadNV %m %pointer %stride %false
//
//   %m = OpTypeCooperativeMatrixKHR %half %scope %uint_16 %uint_16 %use_A
//   %x = OpCooperativeMatrixLoadKHR %m %pointer %row_major %stride
//
// Both extensions say the same but for two things: KHR's types say which factor a matrix is, which the marks of its
// dimensions tell here (cooperative.h), and a layout is a number there; products of bytes say which are signed: all.
// So a compiler and a validator that know NV's alone, which are older, are enough. Numbers are those of the SPIR-V
// registry.
#include "cooperative.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEADER = 5, BOUND = 3,                              // words of the header; the one that all ids are below
    OP_EXTENSION = 10, OP_CAPABILITY = 17, OP_TYPE_INT = 21, OP_TYPE_FLOAT = 22, OP_CONSTANT_TRUE = 41,
    OP_CONSTANT = 43, OP_SPEC_CONSTANT_OP = 52,
    NV_TYPE = 5358, NV_LOAD = 5359, NV_STORE = 5360, NV_MUL_ADD = 5361, NV_LENGTH = 5362,
    KHR_TYPE = 4456, KHR_LOAD = 4457, KHR_STORE = 4458, KHR_MUL_ADD = 4459,
    CAPABILITY_NV = 5357, CAPABILITY_KHR = 6022, CAPABILITY_BF16 = 5116, CAPABILITY_BF16_MATRIX = 5118,
    ENCODING_BF16 = 0,
    ALL_SIGNED = 15,                                    // both factors, what is added, and the result
    MARKS = 0xFFFF0000, MARK_M = 0x10000, MARK_N = 0x20000, MARK_K = 0x30000,
    USE_A = 0, USE_B = 1, USE_SUM = 2, USES = 3,        // as layouts, 0 is by rows, 1 by columns
    MOST_ADDED = 64                                     // words besides one for each instruction
};

typedef struct Id { uint32_t value; bool is_true, is_dim; } Id;

typedef struct Rewriting {
    const SpirvModule *in;
    Id *ids;
    uint32_t bound, uint_type, byte_type;               // byte_type: of signed bytes; 0: there is none
    uint32_t number[USES];                              // ids of the constants 0, 1, 2; 0: not there yet
    uint32_t *out; size_t n;
    bool bf16, bytes;                                   // bytes: of the factors
} Rewriting;

static void put(Rewriting *r, uint32_t opcode, int n, const uint32_t *operands) {
    r->out[r->n++] = (uint32_t)(n + 1) << 16 | opcode;
    memcpy(r->out + r->n, operands, (size_t)n * sizeof *operands);
    r->n += (size_t)n;
}

static void put_extension(Rewriting *r, const char *name) {
    uint32_t text[16] = { 0 };
    memcpy(text, name, strlen(name));
    put(r, OP_EXTENSION, (int)(strlen(name) / 4 + 1), text);
}

static Id *id_of(const Rewriting *r, uint32_t id) { return &r->ids[id < r->bound ? id : 0]; }

// Which factor a matrix is; -1: its dimensions do not say so.
static int use_of(const Rewriting *r, uint32_t rows, uint32_t columns) {
    const uint32_t down = id_of(r, rows)->value & MARKS, across = id_of(r, columns)->value & MARKS;
    return down == MARK_M && across == MARK_K ? USE_A :
           down == MARK_K && across == MARK_N ? USE_B :
           down == MARK_M && across == MARK_N ? USE_SUM : -1;
}

// What ids are, and whether the module can be rewritten.
static bool survey(Rewriting *r) {
    bool matrices = false;
    for (size_t at = HEADER; at < r->in->count;) {
        const uint32_t *op = r->in->words + at;
        const size_t length = op[0] >> 16;
        const uint32_t opcode = op[0] & 0xFFFF;
        if (!length || length > r->in->count - at || opcode == NV_LENGTH) return false;
        if (opcode == OP_SPEC_CONSTANT_OP && length > 3 && op[3] == NV_LENGTH) return false;
        if (opcode == OP_TYPE_INT && length == 4 && op[2] == 32 && op[3] == 0) r->uint_type = op[1];
        if (opcode == OP_TYPE_INT && length == 4 && op[2] == 8 && op[3] == 1) r->byte_type = op[1];
        if (opcode == OP_CONSTANT_TRUE && length == 3) id_of(r, op[2])->is_true = true;
        if (opcode == OP_CONSTANT && length == 4) id_of(r, op[2])->value = op[3];
        if (opcode == NV_TYPE) {
            if (length != 6 || !r->uint_type || use_of(r, op[4], op[5]) < 0) return false;
            id_of(r, op[4])->is_dim = id_of(r, op[5])->is_dim = matrices = true;
            r->bytes = r->bytes || (r->byte_type && op[2] == r->byte_type);
        }
        at += length;
    }
    return matrices;
}

// The constants 0, 1 and 2, in front of the first type that names one.
static void put_numbers(Rewriting *r) {
    if (r->number[0]) return;
    for (uint32_t i = 0; i < USES; i++) {
        r->number[i] = r->out[BOUND]++;
        put(r, OP_CONSTANT, 3, (uint32_t[]){ r->uint_type, r->number[i], i });
    }
}

static uint32_t layout_of(const Rewriting *r, uint32_t by_columns) { return r->number[id_of(r, by_columns)->is_true]; }

static void put_capability(Rewriting *r) {
    put(r, OP_CAPABILITY, 1, (uint32_t[]){ CAPABILITY_KHR });
    if (!r->bf16) return;
    put(r, OP_CAPABILITY, 1, (uint32_t[]){ CAPABILITY_BF16 });
    put(r, OP_CAPABILITY, 1, (uint32_t[]){ CAPABILITY_BF16_MATRIX });
}

static void put_extensions(Rewriting *r) {
    put_extension(r, "SPV_KHR_cooperative_matrix");
    if (r->bf16) put_extension(r, "SPV_KHR_bfloat16");
}

static void put_type(Rewriting *r, const uint32_t *op) {
    put_numbers(r);
    const uint32_t use = r->number[use_of(r, op[4], op[5])];
    put(r, KHR_TYPE, 6, (uint32_t[]){ op[1], op[2], op[3], op[4], op[5], use });
}

// A load or a store: the layout goes before the stride, which is operand `stride`.
static void put_access(Rewriting *r, uint32_t opcode, const uint32_t *op, int length, int stride) {
    const size_t first = r->n;
    put(r, opcode, length - 1, op + 1);
    r->out[first + (size_t)stride] = layout_of(r, op[stride + 1]);
    r->out[first + (size_t)stride + 1] = op[stride];
}

static void put_product(Rewriting *r, const uint32_t *op, int length) {
    uint32_t operands[6] = { 0 };
    memcpy(operands, op + 1, (size_t)(length - 1) * sizeof *operands);
    operands[length - 1] = ALL_SIGNED;
    put(r, KHR_MUL_ADD, r->bytes ? length : length - 1, operands);
}

static void rewrite_op(Rewriting *r, const uint32_t *op, int length) {
    const uint32_t opcode = op[0] & 0xFFFF;
    if (opcode == OP_CAPABILITY && op[1] == CAPABILITY_NV) put_capability(r);
    else if (opcode == OP_EXTENSION && !strcmp((const char *)(op + 1), "SPV_NV_cooperative_matrix")) put_extensions(r);
    else if (opcode == OP_CONSTANT && id_of(r, op[2])->is_dim)
        put(r, OP_CONSTANT, 3, (uint32_t[]){ op[1], op[2], op[3] & ~(uint32_t)MARKS });
    else if (opcode == OP_TYPE_FLOAT && op[2] == 16 && r->bf16)
        put(r, OP_TYPE_FLOAT, 3, (uint32_t[]){ op[1], op[2], ENCODING_BF16 });
    else if (opcode == NV_TYPE) put_type(r, op);
    else if (opcode == NV_LOAD) put_access(r, KHR_LOAD, op, length, 4);
    else if (opcode == NV_STORE) put_access(r, KHR_STORE, op, length, 3);
    else if (opcode == NV_MUL_ADD && length == 6) put_product(r, op, length);
    else put(r, opcode, length - 1, op + 1);
}

bool cooperative_rewrite(SpirvModule *module, bool bf16) {
    if (module->count < HEADER) return false;
    Rewriting r = { .in = module, .bound = module->words[BOUND], .bf16 = bf16 };
    r.ids = calloc((size_t)r.bound + 1, sizeof *r.ids);
    r.out = malloc((2 * module->count + MOST_ADDED) * sizeof *r.out);
    const bool can = r.ids && r.out && survey(&r);
    if (can) {
        memcpy(r.out, module->words, HEADER * sizeof *r.out);
        r.n = HEADER;
        for (size_t at = HEADER; at < module->count; at += module->words[at] >> 16)
            rewrite_op(&r, module->words + at, (int)(module->words[at] >> 16));
        free(module->words);
        module->words = r.out;
        module->count = r.n;
    } else free(r.out);
    free(r.ids);
    return can;
}
