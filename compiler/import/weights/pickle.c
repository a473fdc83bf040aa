// SPDX-License-Identifier: MIT OR Apache-2.0
// A reader of pickles that executes nothing (the opcodes: Python's pickletools, protocols 0 to 5).
//
// In: bytes, untrusted. Out: a tree of Py, or a diagnostic. The idea: two fixed lists, of opcodes and of names that may
// be called. An instance of an unknown class is an object without meaning; a call of a name outside the list, which
// would run code in Python, is a diagnostic. Every opcode takes its byte of the file, so stack, memo and memory grow
// no faster than the file.
#include "import/weights/pickle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Arena *a;
    const char *path;
    const uint8_t *at, *end;
    VEC(Py *) stack;
    VEC(Py *) memo;
    size_t most;                                        // entries of the memo, and what calls may copy
    PyList *stored;
    size_t copied;
    Py *result;
    bool failed;
} Reader;

static void fail(Reader *r, const char *what, const char *name) {
    Loc file = { .file = r->path, .node = -1 };
    if (!r->failed) diag_error(&file, "its pickle %s%s", what, name);
    r->failed = true;
}

// ---------------------------------------------------------------- bytes

static const uint8_t *take(Reader *r, uint64_t n) {
    if (n > (uint64_t)(r->end - r->at)) {
        fail(r, "is cut short", "");
        return NULL;
    }
    const uint8_t *at = r->at;
    r->at += n;
    return at;
}

static uint64_t take_number(Reader *r, int bytes) {
    const uint8_t *at = take(r, (uint64_t)bytes);
    uint64_t v = 0;
    for (int i = bytes - 1; at && i >= 0; i--) v = v << 8 | at[i];
    return v;
}

static char *take_line(Reader *r) {
    const uint8_t *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const uint8_t *at = take(r, newline ? (uint64_t)(newline - r->at) + 1 : UINT64_MAX);
    return at ? arena_strndup(r->a, (const char *)at, (size_t)(newline - at)) : NULL;
}

// ---------------------------------------------------------------- the stack

static Py *push(Reader *r, PyKind kind) {
    Py *p = arena_copy(r->a, &(Py){ .kind = kind }, sizeof *p);
    VEC_PUSH(r->a, r->stack, p);
    return p;
}

static Py *pop(Reader *r) {
    if (r->stack.n && r->stack.at[r->stack.n - 1]->kind != PY_MARK) return r->stack.at[--r->stack.n];
    fail(r, "takes what is not on its stack", "");
    return NULL;
}

static Py *top(Reader *r) {
    Py *p = pop(r);
    if (p) r->stack.n++;
    return p;
}

// Where the values above the last mark begin, which is taken off; -1: there is none.
static int unmark(Reader *r) {
    int i = r->stack.n;
    while (--i >= 0)
        if (r->stack.at[i]->kind == PY_MARK) break;
    if (i < 0) fail(r, "takes what is not on its stack", "");
    else memmove(r->stack.at + i, r->stack.at + i + 1, sizeof *r->stack.at * (size_t)(r->stack.n-- - i - 1));
    return i;
}

static void add(Reader *r, Py *to, Py *item) { VEC_PUSH(r->a, to->at, item); }

// ---------------------------------------------------------------- values: a function of the table per kind of opcode

static void make(Reader *r, int kind) { push(r, (PyKind)kind); }
static void make_bool(Reader *r, int value) { push(r, PY_BOOL)->i = value; }
static void skip(Reader *r, int bytes) { take(r, (uint64_t)bytes); }
static void make_uint(Reader *r, int bytes) { push(r, PY_INT)->i = (int64_t)take_number(r, bytes); }
static void make_int32(Reader *r, int bytes) { push(r, PY_INT)->i = (int32_t)take_number(r, bytes); }

static void make_line(Reader *r, int kind) {
    char *s = take_line(r), *end = NULL;
    Py *p = push(r, (PyKind)kind);
    if (!s) return;
    p->s = s;
    p->n = strlen(s);
    if (kind != PY_INT) return;
    errno = 0;
    p->i = strtoll(s, &end, 10);
    if (end == s || errno) fail(r, "has a number that is none, or too large: ", s);
    if (!strcmp(s, "00") || !strcmp(s, "01")) p->kind = PY_BOOL;
}

static void make_long(Reader *r, int bytes) {
    uint64_t n = take_number(r, bytes);
    const uint8_t *at = take(r, n);
    if (!at) return;
    Py *p = push(r, n > 8 ? PY_LONG : PY_INT);
    p->s = arena_strndup(r->a, (const char *)at, n);
    p->n = n;
    uint64_t v = n && n <= 8 && at[n - 1] >> 7 ? UINT64_MAX : 0;        // two's complement
    for (uint64_t i = n; n <= 8 && i-- > 0;) v = v << 8 | at[i];
    p->i = (int64_t)v;
}

static void make_float(Reader *r, int bytes) { if (take(r, (uint64_t)bytes)) push(r, PY_FLOAT); }

static void make_string(Reader *r, int bytes) {
    uint64_t n = take_number(r, bytes);
    const uint8_t *at = take(r, n);
    if (!at) return;
    Py *p = push(r, PY_STRING);
    p->s = arena_strndup(r->a, (const char *)at, n);
    p->n = n;
}

static void make_marked(Reader *r, int kind) {
    int from = unmark(r);
    if (from < 0) return;
    Py *p = arena_copy(r->a, &(Py){ .kind = (PyKind)kind }, sizeof *p);
    for (int i = from; i < r->stack.n; i++) add(r, p, r->stack.at[i]);
    r->stack.n = from;
    VEC_PUSH(r->a, r->stack, p);
    if (kind == PY_DICT && p->at.n % 2) fail(r, "has a key without a value", "");
}

static void make_tuple(Reader *r, int n) {
    Py *item[3] = { 0 };
    for (int i = n - 1; i >= 0; i--) item[i] = pop(r);
    Py *p = push(r, PY_TUPLE);
    for (int i = 0; i < n && !r->failed; i++) add(r, p, item[i]);
}

static void drop(Reader *r, int marked) {
    int from = marked ? unmark(r) : r->stack.n - 1;
    if (from >= 0) r->stack.n = from;
    else fail(r, "takes what is not on its stack", "");
}

static void repeat(Reader *r, int unused) {
    (void)unused;
    Py *p = top(r);
    if (p) VEC_PUSH(r->a, r->stack, p);
}

// ---------------------------------------------------------------- filling

static void add_pairs(Reader *r, Py *to, int from) {
    if ((r->stack.n - from) % 2) fail(r, "has a key without a value", "");
    else if (to->kind != PY_DICT && to->kind != PY_OBJECT) fail(r, "sets an item of what has none", "");
    else for (int i = from; i < r->stack.n; i++) add(r, to, r->stack.at[i]);
    r->stack.n = from;
}

static void add_items(Reader *r, Py *to, int from) {
    if (to->kind != PY_LIST && to->kind != PY_OBJECT) fail(r, "appends to what is no list", "");
    for (int i = from; i < r->stack.n && to->kind == PY_LIST; i++) add(r, to, r->stack.at[i]);
    r->stack.n = from;
}

// What lies above the last mark, or `items` of it, goes into what lies below.
static void fill(Reader *r, int items, void (*put)(Reader *, Py *, int)) {
    int from = items ? r->stack.n - items : unmark(r);
    bool there = from >= 1;
    for (int i = from - 1; there && i < r->stack.n; i++) there = r->stack.at[i]->kind != PY_MARK;
    if (there) put(r, r->stack.at[from - 1], from);
    else fail(r, "takes what is not on its stack", "");
}
static void set_items(Reader *r, int items) { fill(r, items, add_pairs); }
static void append(Reader *r, int items) { fill(r, items, add_items); }

// ---------------------------------------------------------------- the memo

static void remember_at(Reader *r, uint64_t index) {
    Py *p = top(r);
    if (index > r->most) fail(r, "remembers more than it has", "");
    while (!r->failed && (uint64_t)r->memo.n <= index) VEC_PUSH(r->a, r->memo, NULL);
    if (!r->failed) r->memo.at[index] = p;
}

static void recall_at(Reader *r, uint64_t index) {
    Py *p = index < (uint64_t)r->memo.n ? r->memo.at[index] : NULL;
    if (p) VEC_PUSH(r->a, r->stack, p);
    else fail(r, "recalls what it has not remembered", "");
}

static uint64_t take_index(Reader *r, int bytes) {      // 0: a line of text
    if (bytes) return take_number(r, bytes);
    const char *s = take_line(r);
    return s ? strtoull(s, NULL, 10) : UINT64_MAX;
}

static void remember(Reader *r, int bytes) { remember_at(r, take_index(r, bytes)); }
static void remember_next(Reader *r, int unused) { remember_at(r, (uint64_t)(r->memo.n + unused)); }
static void recall(Reader *r, int bytes) { recall_at(r, take_index(r, bytes)); }

// ---------------------------------------------------------------- names, and calls of them

typedef enum Role { ROLE_REFUSED, ROLE_OPAQUE, ROLE_DICT, ROLE_LIST, ROLE_FIRST } Role;

// What may be called: FIRST is its first argument, the others that are known make containers or an object.
static const struct { const char *module, *names; Role role; } callable[] = {
    { "collections", " OrderedDict defaultdict Counter ", ROLE_DICT },
    { "collections", " deque ", ROLE_LIST },
    { "torch", " Size ", ROLE_FIRST },
    { "torch", " device dtype Generator ", ROLE_OPAQUE },
    { "torch._utils", " _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter "
        "_rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_tensor _rebuild_nested_tensor "
        "_rebuild_meta_tensor_no_storage _rebuild_device_tensor_from_numpy _rebuild_wrapper_subclass ", ROLE_OPAQUE },
    { "torch._tensor", " _rebuild_from_type_v2 ", ROLE_OPAQUE },
    { "torch.serialization", " _get_layout ", ROLE_OPAQUE },
    { "torch.jit._pickle", " build_intlist build_tensorlist build_doublelist build_boollist restore_type_tag ",
        ROLE_FIRST },
    { "numpy.core.multiarray", " scalar _reconstruct ", ROLE_OPAQUE },
    { "numpy._core.multiarray", " scalar _reconstruct ", ROLE_OPAQUE },
    { "numpy", " dtype ndarray ", ROLE_OPAQUE },
    { "_codecs", " encode ", ROLE_OPAQUE },
    { "copyreg", " _reconstructor ", ROLE_OPAQUE },
    { "copy_reg", " _reconstructor ", ROLE_OPAQUE },
    { "builtins", " set frozenset list ", ROLE_LIST },
    { "__builtin__", " set frozenset list ", ROLE_LIST },
    { "builtins", " slice range complex bytearray object ", ROLE_OPAQUE },
    { "__builtin__", " slice xrange complex bytearray object ", ROLE_OPAQUE },
    { "datetime", " datetime date time timedelta ", ROLE_OPAQUE },
    { "pathlib", " PosixPath WindowsPath PurePosixPath PureWindowsPath ", ROLE_OPAQUE },
    { "argparse", " Namespace ", ROLE_OPAQUE },
};

bool py_is_global(const Py *p, const char *module, const char *name) {
    return p && p->kind == PY_GLOBAL && !strcmp(p->module, module) && !strcmp(p->s, name);
}

static Role role_of(Arena *a, const Py *p) {
    const char *word = p->kind == PY_GLOBAL ? arena_printf(a, " %s ", p->s) : "";
    for (size_t i = 0; *word && i < COUNT(callable); i++)
        if (!strcmp(callable[i].module, p->module) && strstr(callable[i].names, word)) return callable[i].role;
    return ROLE_REFUSED;
}

static void make_global(Reader *r, int of_stack) {
    const char *module, *name;
    if (of_stack) {
        const Py *n = pop(r), *m = pop(r);
        if (r->failed) return;
        if (m->kind != PY_STRING || n->kind != PY_STRING) fail(r, "has a name that is no text", "");
        module = m->s;
        name = n->s;
    } else {
        module = take_line(r);
        name = take_line(r);
    }
    if (r->failed) return;
    Py *p = push(r, PY_GLOBAL);
    p->module = module;
    p->s = name;
    p->n = strlen(name);
}

// A list made of another, a dictionary of another or of a list of pairs, as Python 2 has them.
static void add_given(Reader *r, Py *to, const Py *given) {
    bool pairs = to->kind == PY_DICT && given->kind == PY_LIST;
    r->copied += (size_t)given->at.n;
    if (r->copied > r->most) fail(r, "copies more than it has", "");
    for (int i = 0; i < given->at.n && !r->failed; i++) {
        Py *item = given->at.at[i];
        if (!pairs) add(r, to, item);
        else if (item->at.n == 2 && (item->kind == PY_LIST || item->kind == PY_TUPLE)) {
            add(r, to, item->at.at[0]);
            add(r, to, item->at.at[1]);
        }
    }
}

static void push_made(Reader *r, Py *by, Py *args, Role role) {
    const Py *first = args->at.n ? args->at.at[0] : NULL;
    if (role == ROLE_FIRST && first) {
        VEC_PUSH(r->a, r->stack, args->at.at[0]);
        return;
    }
    Py *p = push(r, role == ROLE_DICT ? PY_DICT : role == ROLE_LIST ? PY_LIST : PY_OBJECT);
    for (int i = 0; i < args->at.n && p->kind != PY_OBJECT; i++) {
        const Py *given = args->at.at[i];
        if (given->kind == PY_LIST || given->kind == p->kind) add_given(r, p, given);
    }
    if (p->kind != PY_OBJECT) return;
    p->made_by = by;
    p->args = args;
}

static void call(Reader *r, int unused) {
    (void)unused;
    Py *args = pop(r), *by = pop(r);
    if (r->failed) return;
    Role role = role_of(r->a, by);
    if (args->kind != PY_TUPLE) fail(r, "calls with what is no tuple", "");
    else if (role != ROLE_REFUSED) push_made(r, by, args, role);
    else if (by->kind != PY_GLOBAL) fail(r, "calls what is no name", "");
    else fail(r, "calls what no file of weights needs (nothing was executed): ",
            arena_printf(r->a, "%.100s.%.100s", by->module, by->s));
}

static void make_instance(Reader *r, int keywords) {
    if (keywords) pop(r);
    Py *args = pop(r), *by = pop(r);
    if (r->failed) return;
    Role role = role_of(r->a, by);
    if (args->kind != PY_TUPLE) fail(r, "calls with what is no tuple", "");
    else push_made(r, by, args, role == ROLE_DICT || role == ROLE_LIST ? role : ROLE_OPAQUE);
}

static void build(Reader *r, int unused) {
    (void)unused;
    Py *state = pop(r), *p = top(r);
    if (!r->failed && p->kind == PY_OBJECT) p->state = state;
}

static void make_stored(Reader *r, int of_stack) {
    Py *id = of_stack ? pop(r) : NULL;
    if (!of_stack) {
        make_line(r, PY_STRING);
        id = pop(r);
    }
    if (r->failed) return;
    Py *p = push(r, PY_STORED);
    p->args = id;
    if (r->stored) VEC_PUSH(r->a, *r->stored, p);
}

static void stop(Reader *r, int unused) {
    (void)unused;
    r->result = pop(r);
}

// ---------------------------------------------------------------- the opcodes

static const struct { void (*step)(Reader *, int); int n; } opcodes[256] = {
    [0x80] = { skip, 1 },                               // PROTO
    [0x95] = { skip, 8 },                               // FRAME
    ['.'] = { stop, 0 },
    ['('] = { make, PY_MARK },
    ['0'] = { drop, 0 },
    ['1'] = { drop, 1 },                                // POP_MARK
    ['2'] = { repeat, 0 },
    ['N'] = { make, PY_NONE },
    [0x88] = { make_bool, 1 },
    [0x89] = { make_bool, 0 },
    ['I'] = { make_line, PY_INT },
    ['J'] = { make_int32, 4 },
    ['K'] = { make_uint, 1 },
    ['M'] = { make_uint, 2 },
    ['L'] = { make_line, PY_INT },
    [0x8a] = { make_long, 1 },
    [0x8b] = { make_long, 4 },
    ['F'] = { make_line, PY_FLOAT },
    ['G'] = { make_float, 8 },
    ['V'] = { make_line, PY_STRING },
    ['T'] = { make_string, 4 },                         // BINSTRING
    ['U'] = { make_string, 1 },
    ['X'] = { make_string, 4 },                         // BINUNICODE
    [0x8c] = { make_string, 1 },
    [0x8d] = { make_string, 8 },
    ['B'] = { make_string, 4 },                         // BINBYTES
    ['C'] = { make_string, 1 },
    [0x8e] = { make_string, 8 },
    [0x96] = { make_string, 8 },                        // BYTEARRAY8
    [')'] = { make, PY_TUPLE },
    ['t'] = { make_marked, PY_TUPLE },
    [0x85] = { make_tuple, 1 },
    [0x86] = { make_tuple, 2 },
    [0x87] = { make_tuple, 3 },
    [']'] = { make, PY_LIST },
    ['l'] = { make_marked, PY_LIST },
    [0x8f] = { make, PY_LIST },                         // EMPTY_SET
    [0x91] = { make_marked, PY_LIST },                  // FROZENSET
    ['a'] = { append, 1 },
    ['e'] = { append, 0 },
    [0x90] = { append, 0 },                             // ADDITEMS
    ['}'] = { make, PY_DICT },
    ['d'] = { make_marked, PY_DICT },
    ['s'] = { set_items, 2 },
    ['u'] = { set_items, 0 },
    ['p'] = { remember, 0 },
    ['q'] = { remember, 1 },
    ['r'] = { remember, 4 },
    [0x94] = { remember_next, 0 },
    ['g'] = { recall, 0 },
    ['h'] = { recall, 1 },
    ['j'] = { recall, 4 },
    ['c'] = { make_global, 0 },
    [0x93] = { make_global, 1 },
    ['R'] = { call, 0 },
    [0x81] = { make_instance, 0 },
    [0x92] = { make_instance, 1 },
    ['b'] = { build, 0 },
    ['P'] = { make_stored, 0 },
    ['Q'] = { make_stored, 1 },
};

Py *pickle_read(Arena *a, const char *path, const uint8_t **at, const uint8_t *end, PyList *stored) {
    Reader r = { .a = a, .path = path, .at = *at, .end = end, .most = (size_t)(end - *at), .stored = stored };
    while (!r.result && !r.failed) {
        const uint8_t *code = take(&r, 1);
        if (!code) break;
        if (opcodes[*code].step) opcodes[*code].step(&r, opcodes[*code].n);
        else fail(&r, "has an opcode that is not known: ", arena_printf(a, "0x%02x", *code));
    }
    *at = r.at;
    return r.failed ? NULL : r.result;
}

const Py *py_get(const Py *dict, const char *key) {
    for (int i = 0; dict && dict->kind == PY_DICT && i + 1 < dict->at.n; i += 2)
        if (dict->at.at[i]->kind == PY_STRING && !strcmp(dict->at.at[i]->s, key)) return dict->at.at[i + 1];
    return NULL;
}
