// SPDX-License-Identifier: MIT OR Apache-2.0
// From the tree of a regular expression to the smallest deterministic automaton over bytes of UTF-8.
//
//   tree -- compile --> nondeterministic states -- subsets --> deterministic states -- merge --> fewest states
//
// A code point's range becomes sequences of byte ranges. Assertions look at what came before, which is part of a
// deterministic state, and at what comes next, which the byte being read tells. Strings are matched as a whole, so
// there are no priorities: greedy and lazy are one.
#include "build/regex.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NFA = 20000, MAX_PARTS = 1000000, MAX_DFA = 10000, MAX_WORK = 200000000 };
static const char too_large[] = "its automaton is too large; count less in {}, or split the pattern";

typedef enum NfaKind { NFA_BYTE, NFA_SPLIT, NFA_ASSERT, NFA_MATCH } NfaKind;
typedef struct NfaState { NfaKind kind; uint8_t lo, hi; RegexAssert assertion; int next, other; } NfaState;

// What stands on one side of a place between two bytes.
typedef enum Side { SIDE_EDGE, SIDE_WORD, SIDE_LINE, SIDE_OTHER, SIDES } Side;
static Side side_of(int byte) {
    bool word = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || byte == '_'
        || (byte >= 'a' && byte <= 'z');
    return word ? SIDE_WORD : byte == '\n' ? SIDE_LINE : SIDE_OTHER;
}

typedef struct DfaState { const int *core; int n; Side before; bool accepts; } DfaState;    // core: ascending
// The byte and match states that a deterministic state can be in; n -1: not known yet.
typedef struct Closed { int n; int *at; } Closed;
typedef struct Maker {
    Arena *arena;
    VEC(NfaState) nfa;
    int start, n_classes;
    bool asserts, failed;
    uint8_t class_of[256], example[256];                // of a byte; a byte of each class
    VEC(DfaState) dfa;
    VEC(int) next;
    // deterministic states by contents, open addressing; 0: empty, else number + 1
    int *table; size_t mask;
    int *stack, *touched; bool *seen;
    Closed closed[SIDES];                               // of the state that is looked at, by what comes next
    int64_t work;
} Maker;

// ---------------------------------------------------------------- tree to nondeterministic states
// From the end of the pattern to its beginning.

static int add(Maker *m, NfaState s) {
    if (m->nfa.n >= MAX_NFA) {
        m->failed = true;
        return 0;
    }
    VEC_PUSH(m->arena, m->nfa, s);
    return m->nfa.n - 1;
}

static int split(Maker *m, int a, int b) { return add(m, (NfaState){ .kind = NFA_SPLIT, .next = a, .other = b }); }

static int utf8_bytes(uint32_t c, uint8_t *out) {
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    return n;
}

// lo..hi whose encodings differ in trailing bytes that take all values: one range per byte.
static int byte_ranges(Maker *m, uint32_t lo, uint32_t hi, int next) {
    uint8_t from[4], to[4];
    int n = utf8_bytes(lo, from);
    utf8_bytes(hi, to);
    for (int i = n - 1; i >= 0; i--)
        next = add(m, (NfaState){ .kind = NFA_BYTE, .lo = from[i], .hi = to[i], .next = next });
    return next;
}

// Cuts lo..hi where the length of the encoding changes and where trailing bytes do not take all values.
static int code_range(Maker *m, uint32_t lo, uint32_t hi, int next) {
    static const uint32_t last[] = { 0x7f, 0x7ff, 0xffff, 0x10ffff };
    int start = -1;
    while (lo <= hi && !m->failed) {
        uint32_t end = hi;
        for (int i = 0; i < 4; i++)
            if (lo <= last[i]) {
                if (end > last[i]) end = last[i];
                break;
            }
        for (int bits = 6; bits <= 18 && lo > 0x7f; bits += 6) {
            uint32_t mask = (UINT32_C(1) << bits) - 1;
            if ((lo & ~mask) == (end & ~mask)) break;
            if (lo & mask) end = lo | mask;
            else if ((end & mask) != mask) end = (end & ~mask) - 1;
        }
        int one = byte_ranges(m, lo, end, next);
        start = start < 0 ? one : split(m, start, one);
        lo = end + 1;
    }
    return start;
}

// A state from which `re` leads to `next`. The tree is as deep as the parser allows on its right sides; left sides
// are walked in a loop.
static int compile(Maker *m, const Regex *re, int next) {
    if (++m->work > MAX_PARTS) m->failed = true;
    while (re->kind == RE_CAT && !m->failed) {
        next = compile(m, re->b, next);
        re = re->a;
    }
    if (m->failed) return 0;
    switch (re->kind) {
    case RE_SET: {
        int start = -1;
        for (int i = 0; i < re->set.n; i++) {
            int one = code_range(m, re->set.at[i].lo, re->set.at[i].hi, next);
            start = start < 0 ? one : split(m, start, one);
        }
        // the empty set: no byte
        return start < 0 ? add(m, (NfaState){ .kind = NFA_BYTE, .lo = 1, .hi = 0, .next = next }) : start;
    }
    case RE_ALT: {
        int start = -1;
        for (; re->kind == RE_ALT && !m->failed; re = re->a) {
            int one = compile(m, re->b, next);
            start = start < 0 ? one : split(m, start, one);
        }
        return m->failed ? 0 : split(m, compile(m, re, next), start);
    }
    case RE_REPEAT: {
        if (re->max < 0) {
            int loop = split(m, 0, next), body = compile(m, re->a, loop);
            m->nfa.at[loop].next = body;
            next = loop;
        }
        for (int i = re->max; i > re->min && !m->failed; i--) next = split(m, compile(m, re->a, next), next);
        for (int i = 0; i < re->min && !m->failed; i++) next = compile(m, re->a, next);
        return next;
    }
    case RE_ASSERT:
        m->asserts = true;
        return add(m, (NfaState){ .kind = NFA_ASSERT, .assertion = re->assertion, .next = next });
    default: return next;
    }
}

// ---------------------------------------------------------------- bytes that no state tells apart
static void make_classes(Maker *m) {
    bool cut[257] = { false };
    for (int i = 0; i < m->nfa.n; i++) {
        const NfaState *s = &m->nfa.at[i];
        if (s->kind != NFA_BYTE || s->lo > s->hi) continue;
        cut[s->lo] = true;
        cut[s->hi + 1] = true;
    }
    for (int b = 1; b < 256 && m->asserts; b++) cut[b] = cut[b] || side_of(b) != side_of(b - 1);
    int n = 0;
    for (int b = 0; b < 256; b++) {
        if (b && cut[b]) n++;
        m->class_of[b] = (uint8_t)n;
        m->example[n] = (uint8_t)b;
    }
    m->n_classes = n + 1;
}

// ---------------------------------------------------------------- subsets
static bool holds(RegexAssert what, Side before, Side after) {
    switch (what) {
    case AT_BEGIN: return before == SIDE_EDGE;
    case AT_END: return after == SIDE_EDGE;
    case AT_LINE_BEGIN: return before == SIDE_EDGE || before == SIDE_LINE;
    case AT_LINE_END: return after == SIDE_EDGE || after == SIDE_LINE;
    case AT_WORD_EDGE: return (before == SIDE_WORD) != (after == SIDE_WORD);
    default: return (before == SIDE_WORD) == (after == SIDE_WORD);
    }
}

static const Closed *close_over(Maker *m, const DfaState *s, Side after) {
    Closed *c = &m->closed[after];
    int n = 0, n_touched = 0;
    if (c->n >= 0) return c;
    c->n = 0;
    for (int i = 0; i < s->n; i++) {
        m->stack[n++] = m->touched[n_touched++] = s->core[i];
        m->seen[s->core[i]] = true;
    }
    while (n) {
        int at = m->stack[--n];
        const NfaState *x = &m->nfa.at[at];
        m->work++;
        if (x->kind == NFA_BYTE || x->kind == NFA_MATCH) {
            c->at[c->n++] = at;
            continue;
        }
        if (x->kind == NFA_ASSERT && !holds(x->assertion, s->before, after)) continue;
        int to[2] = { x->next, x->kind == NFA_SPLIT ? x->other : x->next };
        for (int i = 0; i < 2; i++)
            if (!m->seen[to[i]]) {
                m->seen[to[i]] = true;
                m->stack[n++] = m->touched[n_touched++] = to[i];
            }
    }
    for (int i = 0; i < n_touched; i++) m->seen[m->touched[i]] = false;
    return c;
}

static int by_number(const void *x, const void *y) {
    return (*(const int *)x > *(const int *)y) - (*(const int *)x < *(const int *)y);
}

static size_t hash_core(const int *core, int n, Side before) {
    uint64_t h = (uint64_t)before + 1;
    for (int i = 0; i < n; i++) h = (h ^ (uint64_t)core[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
    return (size_t)h;
}

// Where the state of this core is, or belongs.
static int *dfa_slot(const Maker *m, const int *core, int n, Side before) {
    for (size_t at = hash_core(core, n, before) & m->mask;; at = (at + 1) & m->mask) {
        const DfaState *s = m->table[at] ? &m->dfa.at[m->table[at] - 1] : NULL;
        if (!s || (s->n == n && s->before == before && (!n || !memcmp(s->core, core, sizeof *core * (size_t)n))))
            return &m->table[at];
    }
}

static void table_grow(Maker *m) {
    m->mask = m->mask ? 2 * m->mask + 1 : 63;
    m->table = NEW_ARRAY(m->arena, int, m->mask + 1);
    for (int i = 0; i < m->dfa.n; i++)
        *dfa_slot(m, m->dfa.at[i].core, m->dfa.at[i].n, m->dfa.at[i].before) = i + 1;
}

static int dfa_state(Maker *m, int *core, int n, Side before) {
    qsort(core, (size_t)n, sizeof *core, by_number);
    if (2 * (size_t)m->dfa.n >= m->mask) table_grow(m);
    int *slot = dfa_slot(m, core, n, before);
    if (*slot) return *slot - 1;
    if (m->dfa.n >= MAX_DFA) {
        m->failed = true;
        return 0;
    }
    VEC_PUSH(m->arena, m->dfa,
        (DfaState){
            .core = arena_copy(m->arena, core, sizeof *core * (size_t)(n ? n : 1)), .n = n, .before = before });
    *slot = m->dfa.n;
    return m->dfa.n - 1;
}

static void make_subsets(Maker *m) {
    int *core = NEW_ARRAY(m->arena, int, m->nfa.n + 1);
    bool *taken = NEW_ARRAY(m->arena, bool, m->nfa.n + 1);
    core[0] = m->start;
    dfa_state(m, core, 1, SIDE_EDGE);
    for (int i = 0; i < m->dfa.n && !m->failed; i++) {
        for (int side = 0; side < SIDES; side++) m->closed[side].n = -1;
        const Closed *end = close_over(m, &m->dfa.at[i], SIDE_EDGE);
        for (int k = 0; k < end->n; k++) m->dfa.at[i].accepts |= m->nfa.at[end->at[k]].kind == NFA_MATCH;
        for (int c = 0; c < m->n_classes && !m->failed; c++) {
            int byte = m->example[c], n = 0;
            Side side = side_of(byte);
            const Closed *from = m->asserts ? close_over(m, &m->dfa.at[i], side) : end;
            for (int k = 0; k < from->n; k++) {
                const NfaState *s = &m->nfa.at[from->at[k]];
                if (s->kind != NFA_BYTE || byte < s->lo || byte > s->hi || taken[s->next]) continue;
                taken[s->next] = true;
                core[n++] = s->next;
            }
            for (int k = 0; k < n; k++) taken[core[k]] = false;
            m->work += from->n + n;
            if (m->work > MAX_WORK) m->failed = true;
            int to = dfa_state(m, core, n, m->asserts && n ? side : SIDE_EDGE);
            VEC_PUSH(m->arena, m->next, to);
        }
    }
}

// ---------------------------------------------------------------- merging states
// Moore's refinement: those stay apart that some string tells apart.

typedef struct Partition { const Maker *maker; int *group; int n; } Partition;

static bool same_row(const Partition *p, int x, int y) {
    const Maker *m = p->maker;
    if (p->group[x] != p->group[y]) return false;
    for (int c = 0; c < m->n_classes; c++)
        if (p->group[m->next.at[x * m->n_classes + c]] != p->group[m->next.at[y * m->n_classes + c]]) return false;
    return true;
}

static bool refine(Partition *p, int *table, size_t mask, int *fresh) {
    const Maker *m = p->maker;
    int n = 0;
    memset(table, 0, sizeof *table * (mask + 1));
    for (int s = 0; s < m->dfa.n; s++) {
        uint64_t h = (uint64_t)p->group[s] + 1;
        for (int c = 0; c < m->n_classes; c++)
            h = (h ^ (uint64_t)p->group[m->next.at[s * m->n_classes + c]]) * UINT64_C(0x9e3779b97f4a7c15),
            h ^= h >> 29;
        size_t at = (size_t)h & mask;
        while (table[at] && !same_row(p, table[at] - 1, s)) at = (at + 1) & mask;
        if (!table[at]) {
            table[at] = s + 1;
            fresh[s] = n++;
        } else fresh[s] = fresh[table[at] - 1];
    }
    bool finer = n > p->n;
    memcpy(p->group, fresh, sizeof *fresh * (size_t)m->dfa.n);
    p->n = n;
    return finer;
}

static void merge(const Maker *m, Automaton *out) {
    Partition p = { m, NEW_ARRAY(m->arena, int, m->dfa.n), 1 };
    size_t mask = 1;
    while (mask <= 2 * (size_t)m->dfa.n) mask *= 2;
    int *fresh = NEW_ARRAY(m->arena, int, m->dfa.n), *table = NEW_ARRAY(m->arena, int, mask--);
    for (int s = 0; s < m->dfa.n; s++) p.group[s] = m->dfa.at[s].accepts;
    while (refine(&p, table, mask, fresh)) continue;
    int *next = NEW_ARRAY(m->arena, int, p.n * m->n_classes);
    bool *accepts = NEW_ARRAY(m->arena, bool, p.n);
    for (int s = 0; s < m->dfa.n; s++) {                // state 0 is met first, so it stays 0
        accepts[p.group[s]] = m->dfa.at[s].accepts;
        for (int c = 0; c < m->n_classes; c++)
            next[p.group[s] * m->n_classes + c] = p.group[m->next.at[s * m->n_classes + c]];
    }
    *out = (Automaton){ .n_states = p.n, .n_classes = m->n_classes, .next = next, .accepts = accepts };
    memcpy(out->class_of, m->class_of, sizeof out->class_of);
}

const char *automaton_make(Arena *a, const Regex *re, Automaton *out) {
    Maker m = { .arena = a };
    int match = add(&m, (NfaState){ .kind = NFA_MATCH });
    m.start = compile(&m, re, match);
    if (m.failed) return too_large;
    m.stack = NEW_ARRAY(a, int, m.nfa.n + 1);
    for (int side = 0; side < SIDES; side++) m.closed[side].at = NEW_ARRAY(a, int, m.nfa.n + 1);
    m.touched = NEW_ARRAY(a, int, m.nfa.n + 1);
    m.seen = NEW_ARRAY(a, bool, m.nfa.n + 1);
    make_classes(&m);
    make_subsets(&m);
    if (m.failed) return too_large;
    merge(&m, out);
    return NULL;
}
