// SPDX-License-Identifier: MIT OR Apache-2.0
// Options that take more than a plain value: what their text must be, and what it sets. A mistake is a diagnostic with
// status 2.
#include "option.h"
#include "codegen/codegen.h"
#include "export/onnx.h"
#include "quantize/quantize.h"
#include "schedule/cpu/tune.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool usage_error(const char *fmt, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    diag_error_as(EXIT_USAGE, NULL, "%s", line);
    return false;
}

static bool parse_int(const char *s, const char *end, int64_t *out) {
    char *stop = NULL;
    if (s == end || !isdigit((unsigned char)*s)) return false;
    errno = 0;
    *out = strtoll(s, &stop, 10);
    return stop == end && !errno;
}

bool set_dim(Arena *a, CommandOptions *o, const char *text) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text) return usage_error("--dim wants NAME=V or NAME=LO..HI, not '%s'", text);
    const char *dots = strstr(equals, ".."), *end = text + strlen(text);
    DimOption d = { .name = arena_strndup(a, text, (size_t)(equals - text)) };
    bool ok = dots ? parse_int(equals + 1, dots, &d.lo) && parse_int(dots + 2, end, &d.hi) :
                     parse_int(equals + 1, end, &d.lo);
    if (!dots) d.hi = d.lo;
    if (!ok || d.hi > INT32_MAX || d.lo > d.hi)
        return usage_error("--dim %s: wants a size or a range LO..HI, each 0 to 2147483647", text);
    for (int i = 0; i < o->compile.dims.n; i++)
        if (strcmp(o->compile.dims.at[i].name, d.name) == 0) return usage_error("--dim %s is given twice", d.name);
    VEC_PUSH(a, o->compile.dims, d);
    return true;
}

// A size or a name.
static bool parse_size(Arena *a, const char *s, const char *end, DimOption *out) {
    *out = (DimOption){ 0 };
    if (parse_int(s, end, &out->lo)) return (out->hi = out->lo) <= INT32_MAX;
    const char *name = arena_strndup(a, s, (size_t)(end - s));
    out->name = name;
    return name_is_plain(name);
}

bool set_shape(Arena *a, CommandOptions *o, const char *text) {
    const char *equals = strrchr(text, '=');
    ShapeOption s = { .dim = NEW_ARRAY(a, DimOption, MAX_RANK) };
    bool ok = equals && equals != text;
    for (const char *at = equals; ok && *at; s.rank++) {
        const char *from = at + 1;
        at = from + strcspn(from, ",");
        ok = s.rank < MAX_RANK && parse_size(a, from, at, &s.dim[s.rank]);
    }
    if (!ok)
        return usage_error("--shape wants an input and all of its sizes, numbers or names, such as "
            "image=batch,3,224,224, not '%s'", text);
    s.input = arena_strndup(a, text, (size_t)(equals - text));
    for (int i = 0; i < o->compile.shapes.n; i++)
        if (!strcmp(o->compile.shapes.at[i].input, s.input)) return usage_error("--shape %s is given twice", s.input);
    VEC_PUSH(a, o->compile.shapes, s);
    return true;
}

bool set_target(Arena *a, CommandOptions *o, const char *text) {
    if (backend_target(text, &o->compile.machine)) {
        o->compile.target = text;
        return true;
    }
    Text names, several;
    text_init(&names, a);
    text_init(&several, a);
    for (int i = 0; target_at(i); i++) {
        const Target *t = target_at(i);
        text_printf(&names, "%s%s", i ? ", " : "", t->name);
        if (t->features) text_printf(&several, "%s%s", several.n ? ", " : "", t->name);
    }
    if (strchr(text, ','))
        return usage_error("--target %s: several in one file can be, once each, of %s", text, several.at);
    return usage_error("unknown target '%s'; the targets are %s", text, names.at);
}

static bool set_bytes(int64_t *to, const char *option, const char *text) {
    const char *end = text + strlen(text), *unit = end > text && strchr("kKmMgG", end[-1]) ? end - 1 : end;
    int64_t n;
    if (!parse_int(text, unit, &n) || n > INT64_MAX >> 30)
        return usage_error("%s wants a number of bytes such as 65536, 64K or 4M, not '%s'", option, text);
    int shift = unit == end                  ? 0 :
        tolower((unsigned char)*unit) == 'k' ? 10 :
        tolower((unsigned char)*unit) == 'm' ? 20 :
                                               30;
    *to = n << shift;
    return true;
}

bool set_embed_limit(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    return set_bytes(&o->compile.embed_limit, "--embed-limit", text);
}

bool set_ram(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    return set_bytes(&o->compile.ram, "--ram", text);
}

// NAME:SIZE[=WHAT+WHAT]
bool set_region(Arena *a, CommandOptions *o, const char *text) {
    static const char *const kinds[] = { "work", "weights", "code" };
    const char *colon = strchr(text, ':'), *equals = strchr(text, '=');
    Bank b = { .holds = equals ? 0 : BANK_WORK };
    bool ok = colon && (!equals || colon < equals);
    if (ok) b.name = arena_strndup(a, text, (size_t)(colon - text));
    for (const char *at = equals; ok && at; at = strchr(at, '+')) {
        const size_t n = strcspn(++at, "+");
        unsigned one = 0;
        for (size_t i = 0; i < COUNT(kinds); i++)
            if (strlen(kinds[i]) == n && !memcmp(at, kinds[i], n)) one = 1u << i;
        b.holds |= one;
        ok = one != 0;
    }
    if (!ok || !name_is_plain(b.name))
        return usage_error("--region wants a name, a size and perhaps what lies there, such as dtcm:128K, "
            "itcm:64K=code or qspi:8M=work+weights, not '%s'", text);
    for (int i = 0; i < o->compile.banks.n; i++)
        if (!strcmp(o->compile.banks.at[i].name, b.name)) return usage_error("--region %s is given twice", b.name);
    if (o->compile.banks.n == MOST_BANKS) return usage_error("--region: there may be %d", MOST_BANKS);
    const char *size = arena_strndup(a, colon + 1, equals ? (size_t)(equals - colon - 1) : strlen(colon + 1));
    if (!set_bytes(&b.bytes, "--region", size)) return false;
    VEC_PUSH(a, o->compile.banks, b);
    return true;
}

bool set_flash(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    return set_bytes(&o->compile.flash, "--flash", text);
}

bool set_stack(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    return set_bytes(&o->compile.stack, "--stack", text);
}

bool set_io(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    o->compile.io = !strcmp(text, "int8") ? DT_I8 : !strcmp(text, "uint8") ? DT_U8 : DT_I16;
    return !strcmp(text, "int16") || o->compile.io != DT_I16
        || usage_error("--io: there are int8, uint8 and int16, not '%s'", text);
}

bool set_optimize(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    o->compile.small = !strcmp(text, "size");
    o->compile.fast = !strcmp(text, "speed");
    return o->compile.small || o->compile.fast
        || usage_error("--optimize: there are speed and size, not '%s'", text);
}

bool set_train_memory(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    return set_bytes(&o->compile.train_memory, "--train-memory", text);
}

bool set_string_bytes(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    if (parse_int(text, text + strlen(text), &o->compile.string_bytes) && o->compile.string_bytes > 0
        && o->compile.string_bytes <= INT32_MAX)
        return true;
    return usage_error("--string-bytes wants a number of bytes such as 256, not '%s'", text);
}

bool set_threads(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    const char *colon = strchr(text, ':'), *end = text + strlen(text);
    int64_t n = 0, us = 0;
    bool ok = parse_int(text, colon ? colon : end, &n) && n >= 1 && n <= MAX_THREADS
        && (!colon || parse_int(colon + 1, end, &us)) && us <= 1000000;
    if (!ok)
        return usage_error(
            "--threads wants a number of parts, 1 to %d, and may be the microseconds that a part takes at least, as "
            "in 4:20, not '%s'",
            MAX_THREADS, text);
    o->compile.threads = (int)n;
    if (colon) o->compile.part_us = (double)us;
    return true;
}

bool set_loss(Arena *a, CommandOptions *o, const char *text) {
    VEC_PUSH(a, o->compile.losses, text);
    return true;
}

bool set_class_axis(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    char *end;
    o->compile.class_axis = strtol(text, &end, 10);
    o->compile.has_class_axis = end != text && !*end;
    return o->compile.has_class_axis || usage_error("--class-axis wants an axis such as 1 or -1, not '%s'", text);
}

bool set_data(Arena *a, CommandOptions *o, const char *text) {
    VEC_PUSH(a, o->data, text);
    return true;
}

bool set_input(Arena *a, CommandOptions *o, const char *text) {
    VEC_PUSH(a, o->inputs, text);
    return true;
}

bool set_freeze(Arena *a, CommandOptions *o, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals && *text) {
        VEC_PUSH(a, o->compile.frozen_params, text);
        return true;
    }
    if (!equals || equals == text || !equals[1])
        return usage_error("--freeze wants NAME=FILE, or with --train what is not to learn, not '%s'", text);
    Tensor *t = tensor_read(a, NULL, equals + 1, NULL, NULL);
    if (!t) return false;
    VEC_PUSH(a, o->compile.frozen, (FrozenInput){ arena_strndup(a, text, (size_t)(equals - text)), t });
    return true;
}

// The sizes of one shape after its bracket, and what follows the closing one; NULL when they cannot be read.
static const char *parse_shape(const char *s, Type *out) {
    out->rank = 0;
    while (*s != ']') {
        size_t digits = strspn(s, "0123456789");
        if (out->rank == MAX_RANK || !parse_int(s, s + digits, &out->dim[out->rank])
            || out->dim[out->rank] > INT32_MAX)
            return NULL;
        out->rank++;
        s += digits;
        if (*s == ',') s++;
        else if (*s != ']') return NULL;
    }
    return s + 1;
}

// NAME=LO..HI, or NAME=LO..HI[2,3] with the shape of every element: a length that the program takes, as it takes the
// size NAME_length.
static bool parse_range(Arena *a, CommandOptions *o, const char *s, const char *dots, SequenceOption *given) {
    const char *bracket = strchr(dots, '['), *end = bracket ? bracket : dots + strlen(dots);
    Type *shape = NEW(a, Type);
    if (!parse_int(s, dots, &given->lo) || !parse_int(dots + 2, end, &given->hi) || given->lo > given->hi
        || given->hi > INT32_MAX)
        return false;
    if (bracket && (!(end = parse_shape(bracket + 1, shape)) || *end)) return false;
    given->stacked = true;
    given->elements = bracket ? shape : NULL;
    VEC_PUSH(a, o->compile.dims, (DimOption){ arena_printf(a, "%s_length", given->name), given->lo, given->hi });
    return true;
}

static bool parse_shapes(Arena *a, const char *s, int64_t most, SequenceOption *given, int64_t *n) {
    VEC(Type) types = { 0 };
    while (s && *s == '[' && types.n < most) {
        Type t = { 0 };
        s = parse_shape(s + 1, &t);
        VEC_PUSH(a, types, t);
        if (s && *s == ',' && s[1] == '[') s++;
    }
    given->elements = types.at;
    *n = types.n;
    return s && !*s;
}

bool set_sequence(Arena *a, CommandOptions *o, const char *text) {
    enum { LONGEST = 4096 };
    const char *equals = strchr(text, '='), *end = text + strlen(text);
    if (!equals || equals == text)
        return usage_error("--sequence wants NAME=N, NAME=LO..HI or NAME=[2,3],[4,3], not '%s'", text);
    SequenceOption given = { .name = arena_strndup(a, text, (size_t)(equals - text)) };
    int64_t n = 0;
    const char *s = equals + 1, *dots = strstr(s, "..");
    bool ok = dots ? parse_range(a, o, s, dots, &given) :
        *s == '['  ? parse_shapes(a, s, LONGEST, &given, &n) :
                     parse_int(s, end, &n);
    if (!ok || n > LONGEST)
        return usage_error("--sequence %s: wants a length up to %d, a range of lengths, or shapes such as [2,3],[4,3]",
            text, LONGEST);
    for (int i = 0; i < o->compile.sequences.n; i++)
        if (!strcmp(o->compile.sequences.at[i].name, given.name))
            return usage_error("--sequence %s is given twice", given.name);
    given.n = (int)n;
    VEC_PUSH(a, o->compile.sequences, given);
    return true;
}

bool set_setting(Arena *a, CommandOptions *o, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return usage_error("--set wants NAME=VALUE, not '%s'", text);
    VEC_PUSH(a, o->compile.settings, (SetOption){ arena_strndup(a, text, (size_t)(equals - text)), equals + 1 });
    return true;
}

bool set_hyper(Arena *a, CommandOptions *o, const char *text) {
    const char *equals = strchr(text, '=');
    char *end = NULL;
    if (equals) strtod(equals + 1, &end);
    if (!equals || equals == text || end == equals + 1 || *end)
        return usage_error("--hyper wants NAME=NUMBER, not '%s'", text);
    VEC_PUSH(a, o->fit.hypers, (SetOption){ arena_strndup(a, text, (size_t)(equals - text)), equals + 1 });
    return true;
}

bool set_map(Arena *a, CommandOptions *o, const char *text) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text) return usage_error("--map wants RE=TO, not '%s'", text);
    VEC_PUSH(a, o->compile.maps, (SetOption){ arena_strndup(a, text, (size_t)(equals - text)), equals + 1 });
    return true;
}

bool set_seed(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    o->compile.seeded = true;
    if (!parse_int(text, text + strlen(text), &o->compile.seed) || o->compile.seed < 0)
        return usage_error("--seed wants a whole number, not '%s'", text);
    return true;
}

bool set_opset(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    int64_t n;
    if (!parse_int(text, text + strlen(text), &n) || n < EXPORT_OPSET_OLDEST || n > EXPORT_OPSET_NEWEST)
        return usage_error("--opset wants a version of ONNX's operators from %d to %d, not '%s'", EXPORT_OPSET_OLDEST,
            EXPORT_OPSET_NEWEST, text);
    o->compile.opset = (int)n;
    return true;
}

bool set_weights(Arena *a, CommandOptions *o, const char *text) {
    if (!*text) return usage_error("--weights wants a value");
    VEC_PUSH(a, o->compile.weights, text);
    return true;
}

bool set_group(Arena *a, CommandOptions *o, const char *text) {
    VEC_PUSH(a, o->compile.groups, text);
    return true;
}

bool set_lora(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    const char *colon = strchr(text, ':');
    int64_t rank;
    char *end = NULL;
    bool ok = parse_int(text, colon ? colon : text + strlen(text), &rank) && rank >= 1 && rank <= INT32_MAX;
    double alpha = colon ? strtod(colon + 1, &end) : ok ? (double)rank : 0;
    if (!ok || (colon && (end == colon + 1 || *end || !(alpha > 0) || alpha > 1e9)))
        return usage_error("--lora wants a rank, or RANK:ALPHA, not '%s'", text);
    o->compile.lora_rank = (int)rank;
    o->compile.lora_alpha = alpha;
    return true;
}

bool set_absent(Arena *a, CommandOptions *o, const char *text) {
    VEC_PUSH(a, o->compile.absent, text);
    return true;
}

bool set_silence(Arena *a, CommandOptions *o, const char *text) {
    (void)a, (void)o;
    return diag_silence(text)
        || usage_error("--silence: no warning is called '%s'; there are %s", text, diag_warnings());
}

bool set_precision(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    if (strcmp(text, "f16") && strcmp(text, "bf16") && strcmp(text, "f32"))
        return usage_error("--precision wants f32, f16 or bf16, not '%s'", text);
    o->compile.precision = strcmp(text, "f32") ? text : NULL;
    return true;
}

bool set_blas(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    if (strcmp(text, "openblas")) return usage_error("--blas knows openblas alone, not '%s'", text);
    o->compile.blas = text;
    return true;
}

bool set_records(Arena *a, CommandOptions *o, const char *text) {
    if (!o->compile.records) records_init(o->compile.records = NEW(a, Records), a);
    return records_read(o->compile.records, a, text);
}

static bool set_number(const Option *option, void *field, const char *text) {
    char *end = NULL;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= 0) || v > 1e9)
        return usage_error("--%s wants a number, not '%s'", option->name, text);
    if (option->kind == REAL) {
        *(double *)field = v;
        return true;
    }
    int least = option->kind == COUNTED;
    if (v < least || v > 1e6 || v != (double)(int)v)
        return usage_error("--%s wants a whole number from %d, not '%s'", option->name, least, text);
    *(int *)field = (int)v;
    return true;
}

bool option_set(Arena *a, CommandOptions *o, const Option *option, const char *text) {
    void *field = (char *)o + option->offset;
    switch (option->kind) {
    case FLAG: *(bool *)field = true; return true;
    case TEXT:
        if (!*text) return usage_error("--%s wants a value", option->name);
        *(const char **)field = text;
        return true;
    case COUNTED: case WHOLE: case REAL: return set_number(option, field, text);
    default: return option->set(a, o, text);
    }
}

bool set_package(Arena *a, CommandOptions *o, const char *text) {
    o->package = package_find(text);
    return o->package || usage_error("--package: there is no '%s'; there are %s", text, package_names(a));
}

// The place of text among words; -1 after a diagnostic.
static int word_of(const char *option, int n, const char *const *words, const char *text) {
    for (int i = 0; i < n; i++)
        if (!strcmp(words[i], text)) return i;
    usage_error("--%s: there is no '%s'; see `burncc quantize --help`", option, text);
    return -1;
}

bool set_method(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    o->quantize.method = word_of("method", QUANT_METHODS, quant_methods, text);
    return o->quantize.method >= 0;
}

bool set_weights_only(Arena *a, CommandOptions *o, const char *text) {
    static const char *const words[] = { [ONLY_NOT] = "", [ONLY_INT8] = "int8", [ONLY_INT4] = "int4",
        [ONLY_F16] = "f16" };
    (void)a;
    o->quantize.only = word_of("weights-only", (int)COUNT(words), words, text);
    return o->quantize.only > 0;
}

bool set_weight_type(Arena *a, CommandOptions *o, const char *text) {
    static const char *const words[] = { [ONLY_NOT] = "", [ONLY_INT8] = "int8", [ONLY_INT4] = "int4" };
    (void)a;
    o->quantize.weights = word_of("weight-type", (int)COUNT(words), words, text);
    return o->quantize.weights > 0;
}

bool set_activations(Arena *a, CommandOptions *o, const char *text) {
    static const char *const words[] = { "int8", "uint8", "int16" };
    int which = word_of("activations", (int)COUNT(words), words, text);
    (void)a;
    o->quantize.unsigned_bytes |= which == 1;
    o->quantize.halves = which == 2;
    return which >= 0;
}

bool set_keep(Arena *a, CommandOptions *o, const char *text) {
    VEC_PUSH(a, o->quantize.keep, text);
    return true;
}

bool set_budget(Arena *a, CommandOptions *o, const char *text) {
    (void)a;
    return set_bytes(&o->quantize.budget, "--budget", text);
}

// Numbers with commas up to `end`; how many, 0: they are not that.
static int parse_reals(const char *s, const char *end, double *out, int max) {
    for (int n = 0; n < max;) {
        char *stop;
        out[n++] = strtod(s, &stop);
        if (stop == s || stop > end) return 0;
        if (stop == end) return n;
        if (*stop != ',') return 0;
        s = stop + 1;
    }
    return 0;
}

bool set_normalize(Arena *a, CommandOptions *o, const char *text) {
    // what torchvision's classifiers were trained with
    static const Normalize imagenet = { 1, { 0.485, 0.456, 0.406 }, { 0.229, 0.224, 0.225 }, 3 };
    static const Normalize none = { 255, { 0 }, { 1 }, 1 };
    const char *slash = strchr(text, '/');
    Normalize n = { .white = 1 };
    if (!strcmp(text, "imagenet")) n = imagenet;
    else if (!strcmp(text, "none")) n = none;
    else {
        n.n = slash ? parse_reals(text, slash, n.mean, (int)COUNT(n.mean)) : 0;
        bool ok = n.n && parse_reals(slash + 1, text + strlen(text), n.scale, (int)COUNT(n.scale)) == n.n;
        for (int i = 0; i < n.n && ok; i++) ok = n.scale[i] != 0 && isfinite(n.scale[i]) && isfinite(n.mean[i]);
        if (!ok)
            return usage_error("--normalize wants imagenet, none, or MEAN/SCALE with a number for all channels or for "
                "each, such as 0.5,0.5,0.5/0.5,0.5,0.5, not '%s'", text);
    }
    o->normalize = arena_copy(a, &n, sizeof n);
    return true;
}
