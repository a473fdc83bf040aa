// SPDX-License-Identifier: MIT OR Apache-2.0
// Records of `burncc tune` as text, in and out, and their way to the kernels. A file:
//
//   burncc-records 1
//   # comment
//   native:avx512:l1=48K:l2=2M | conv n=1 g=1 ic=64 oc=64 ... | winograd t=4 mr=14 mf=7 nv=2 tb=56 vp=64 | 0.532 ms,
//       model 0.610 ms
//
// Files may be joined line after line, header included; of two lines for one machine and kernel the later one holds.
// A line that cannot be read is an error with its number: a compilation either obeys a record or says why not.
#include "tune.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char header[] = "burncc-records ";
enum { VERSION = 1 };

// ---------------------------------------------------------------- choices
static int64_t field_get(const TuneField *f, const void *tiles) {
    const char *at = (const char *)tiles + f->offset;
    return f->wide ? *(const int64_t *)(const void *)at : *(const int *)(const void *)at;
}

static bool field_set(const TuneField *f, void *tiles, int64_t value) {
    char *at = (char *)tiles + f->offset;
    if (f->wide) *(int64_t *)(void *)at = value;
    else *(int *)(void *)at = (int)value;
    return field_get(f, tiles) == value;
}

const char *tune_text(Arena *a, const TuneForm *form, const void *tiles) {
    Text t;
    text_init(&t, a);
    text_printf(&t, "%s", form->algorithm);
    for (int i = 0; i < form->n; i++)
        text_printf(&t, " %s=%lld", form->field[i].name, (long long)field_get(&form->field[i], tiles));
    return t.at;
}

// One `name=value` of a choice; NULL when it is none.
static const char *parse_field(const char *s, const char **name, size_t *n, int64_t *value) {
    s += strspn(s, " ");
    *name = s;
    *n = strcspn(s, "= ");
    char *end = NULL;
    if (!*n || s[*n] != '=' || !isdigit((unsigned char)s[*n + 1]) || strlen(s) > 400) return NULL;
    *value = strtoll(s + *n + 1, &end, 10);
    return *end == ' ' || !*end ? end : NULL;
}

bool tune_parse(const TuneForm *form, const char *choice, void *tiles) {
    size_t n = strcspn(choice, " ");
    if (strlen(form->algorithm) != n || memcmp(choice, form->algorithm, n)) return false;
    const char *s = choice + n, *name;
    int set = 0;
    for (int64_t value; *s; set++) {
        if (set == form->n || !(s = parse_field(s, &name, &n, &value))) return false;
        const TuneField *f = &form->field[set];         // in the order that tune_text writes
        if (strlen(f->name) != n || memcmp(f->name, name, n) || !field_set(f, tiles, value)) return false;
    }
    return set == form->n;
}

void tune_neighbours(Arena *a, const TuneForm *form, const void *tiles, size_t bytes,
    bool (*fits)(const void *shape, const void *tiles), const void *shape, Choices *out) {
    for (int i = 0; i < form->n; i++)
        for (int half = 0; half < 2; half++) {
            void *other = arena_copy(a, tiles, bytes);
            const int64_t value = field_get(&form->field[i], tiles);
            if (half && value % 2) continue;
            if (field_set(&form->field[i], other, half ? value / 2 : value * 2) && fits(shape, other))
                VEC_PUSH(a, *out, tune_text(a, form, other));
        }
}

// ---------------------------------------------------------------- machines
// The target as the cost model sees it. What `native` means depends on the machine; other targets are the same
// everywhere.
const char *tune_machine(Arena *a, const Target *t) {
    if (!t->native) return arena_strdup(a, t->name);
    const char *vectors = t->lanes >= 16 ? "avx512" : t->lanes == 8 ? "avx2" : t->registers >= 32 ? "neon" : "sse";
    return arena_printf(a, "%s:%s:l1=%zuK:l2=%zuK", t->name, vectors, t->l1 >> 10, t->l2 >> 10);
}

static const char gpus[] = "vulkan:";

// Bars part the fields of a record.
const char *tune_device(Arena *a, const char *name) {
    char *machine = arena_printf(a, "%s%s", gpus, name);
    for (char *c = machine; *c; c++)
        if (*c == '|' || iscntrl((unsigned char)*c)) *c = '?';
    return machine;
}

// ---------------------------------------------------------------- tables of records
static const char *key_of(Arena *a, const char *machine, const char *kernel) {
    return arena_printf(a, "%s|%s", machine, kernel);
}

void records_init(Records *r, Arena *a) { *r = (Records){ .newest = strmap_new(a) }; }

Record *records_find(const Records *r, Arena *a, const char *machine, const char *kernel) {
    int *at = strmap_get(r->newest, key_of(a, machine, kernel));
    return at ? &r->at.at[*at] : NULL;
}

void records_add(Records *r, Arena *a, Record one) {
    Record *old = records_find(r, a, one.machine, one.kernel);
    if (old) {
        *old = one;
        return;
    }
    int *at = NEW(a, int);
    *at = r->at.n;
    VEC_PUSH(a, r->at, one);
    strmap_put(r->newest, key_of(a, one.machine, one.kernel), at);
}

void records_print(const Records *r, Text *out) {
    text_printf(out, "%s%d\n", header, VERSION);
    for (int i = 0; i < r->at.n; i++) {
        const Record *one = &r->at.at[i];
        text_printf(out, "%s | %s | %s | %.4g ms, model %.4g ms\n", one->machine, one->kernel, one->choice, one->ms,
            one->model_ms);
    }
}

static bool contains(const char *text, const char *part) {
    for (const size_t n = strlen(part); strlen(text) >= n; text++)
        if (!strncasecmp(text, part, n)) return true;
    return false;
}

bool records_choose_device(Records *r, Arena *a, const char *part) {
    Text others;
    text_init(&others, a);
    for (int i = 0; i < r->at.n; i++) {
        const char *machine = r->at.at[i].machine;
        if (strncmp(machine, gpus, strlen(gpus))) continue;
        if (part && *part != '#' && !contains(machine + strlen(gpus), part)) continue;
        if (!r->machine) r->machine = machine;
        else if (strcmp(machine, r->machine) && !strstr(others.n ? others.at : "", machine))
            text_printf(&others, ", %s", machine);
    }
    if (!others.n) return true;
    diag_error_as(EXIT_USAGE, NULL,
        "these records are of several GPUs: %s%s; BURN_VK_DEVICE=PART OF ITS NAME says which", r->machine, others.at);
    return false;
}

// ---------------------------------------------------------------- reading
// The next field of a line, without the spaces around it; *s goes past its bar, to NULL after the last.
static const char *next_field(Arena *a, const char **s) {
    const char *from = *s + strspn(*s, " \t"), *bar = strchr(from, '|'), *end = bar ? bar : from + strlen(from);
    *s = bar ? bar + 1 : NULL;
    while (end > from && isspace((unsigned char)end[-1])) end--;
    return arena_strndup(a, from, (size_t)(end - from));
}

static bool is_choice(const char *choice) {
#define CPU_FORM(name, ...) &tune_##name,
#define GPU_FORM CPU_FORM
    static const TuneForm *const forms[] = {
#include "forms.def"
    };
    size_t n = strcspn(choice, " ");
    bool known = false;
    for (size_t i = 0; i < COUNT(forms); i++)
        known = known || (strlen(forms[i]->algorithm) == n && !memcmp(forms[i]->algorithm, choice, n));
    const char *s = choice + n, *name;
    for (int64_t value; known && s && *s;) s = parse_field(s, &name, &n, &value);
    return known && s;
}

static const char remedy[] = "; remove the line, or measure again with `burncc tune`";

static void read_line(Records *r, Arena *a, const char *place, const char *text) {
    Loc loc = { .file = place, .node = -1 };
    const char *s = text, *field[4] = { 0 };
    int n = 0;
    for (; s && n < 4; n++) field[n] = next_field(a, &s);
    Record one = { .place = place, .machine = field[0], .kernel = field[1], .choice = field[2] };
    if (n < 4 || s) diag_error(&loc, "a record is MACHINE | KERNEL | CHOICE | MEASURED%s", remedy);
    else if (!*one.machine || !strchr(one.kernel, '='))
        diag_error(&loc, "no %s is called '%s'%s", *one.machine ? "kernel" : "machine",
            *one.machine ? one.kernel : one.machine, remedy);
    else if (!is_choice(one.choice)) diag_error(&loc, "no choice is called '%s'%s", one.choice, remedy);
    else if (sscanf(field[3], "%lf ms, model %lf ms", &one.ms, &one.model_ms) != 2)
        diag_error(&loc, "'%s' says no times%s", field[3], remedy);
    else records_add(r, a, one);
}

bool records_read(Records *r, Arena *a, const char *path) {
    File f;
    if (!file_map(&f, path)) return false;
    char *text = arena_strndup(a, (const char *)f.data, f.size), *line = text;
    int errors = diag_errors();
    bool binary = memchr(f.data, 0, f.size) != NULL;
    file_unmap(&f);
    for (int number = 1; line; number++) {
        char *end = strchr(line, '\n'), *stop = end ? end : line + strlen(line);
        bool empty = line + strspn(line, " \t\r") == stop;
        *stop = 0;
        const char *place = arena_printf(a, "%s:%d", path, number);
        Loc loc = { .file = place, .node = -1 };
        bool version = !strncmp(line, header, strlen(header));
        if (version && atoi(line + strlen(header)) != VERSION) {
            diag_error(&loc,
                "'%s' is no version of records that this burncc reads, which is %d; measure again with `burncc tune`",
                line, VERSION);
            break;
        }
        if (number == 1 && (!version || binary)) {
            diag_error(
                &loc, "records begin with the line '%s%d'; this file was not made by `burncc tune`", header, VERSION);
            break;
        }
        if (!version && !empty && *line != '#') read_line(r, a, place, line);
        line = end ? end + 1 : NULL;
    }
    return diag_errors() == errors;
}

// ---------------------------------------------------------------- for planners
Record *tune_record(Arena *a, Kernel *k, const Options *o, const char *signature) {
    k->signature = signature;
    k->tuned = false;
    const Records *r = o->records;
    return r ? records_find(r, a, r->machine ? r->machine : tune_machine(a, &o->machine), signature) : NULL;
}

void tune_refuse(const Kernel *k, Record *r) {
    Loc loc = { .file = r->place, .node = -1 };
    if (!r->refused)
        diag_warn(WARN_records,
            &loc, "'%s' does not fit %s any more, the cost model's choice stands%s", r->choice, k->signature, remedy);
    r->refused = true;
}
