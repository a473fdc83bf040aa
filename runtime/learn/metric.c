/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics by name: the table, the text that opens one, and the calls. In: "f_beta(beta=2,average=macro)". Out: a
 * burn_metric whose functions are those of its row's family. */
#include "metric_family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 160 };
struct burn_metric {
    const burn_metric_kind *kind;
    double parameters[BURN_METRIC_PARAMETERS];
    void *state;
    char text[TEXT_BYTES];
};

#define SMALLER BURN_SMALLER
#define LARGER BURN_LARGER
#define NEITHER BURN_NEITHER
static const burn_metric_kind kinds[] = {
#define METRIC(name, unit, better, family, value, parameters) \
    { #name, unit, parameters, better, FAMILY_##family, metric_##value },
#include "metrics.def"
#undef METRIC
};
static const char *const averages[] = { "micro", "macro", "weighted" };

const burn_metric_kind *burn_metric_kinds(int *count)
{
    *count = (int)(sizeof kinds / sizeof *kinds);
    return kinds;
}

/* A number, or the name of an average; false: neither. */
static int read_number(const char *text, size_t bytes, double *number)
{
    char copy[TEXT_BYTES], *end;
    if (!bytes || bytes >= sizeof copy) return 0;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    for (int i = 0; i < 3; i++)
        if (!strcmp(copy, averages[i])) {
            *number = i;
            return 1;
        }
    *number = strtod(copy, &end);
    return !*end && !isnan(*number);
}

/* The parameter at `*at` of "name=value name=value ...", behind which `*at` goes; false at the end. */
static int next_parameter(const char **at, const char **name, size_t *name_bytes, double *usual)
{
    *name = *at += strspn(*at, " ");
    if (!**at) return 0;
    *name_bytes = strcspn(*at, "=");
    const char *value = *at + *name_bytes + 1;
    *at = value + strcspn(value, " ");
    return read_number(value, (size_t)(*at - value), usual);
}

static int usual_parameters(const burn_metric_kind *kind, double *parameters)
{
    const char *at = kind->parameters ? kind->parameters : "", *name;
    size_t bytes;
    int n = 0;
    while (n < BURN_METRIC_PARAMETERS && next_parameter(&at, &name, &bytes, &parameters[n])) n++;
    return n;
}

/* The place of the parameter of that name, or -1. */
static int parameter_of(const burn_metric_kind *kind, const char *wanted, size_t wanted_bytes)
{
    const char *at = kind->parameters, *name;
    size_t bytes;
    double usual;
    for (int i = 0; next_parameter(&at, &name, &bytes, &usual); i++)
        if (bytes == wanted_bytes && !memcmp(name, wanted, bytes)) return i;
    return -1;
}

/* NAME(PARAMETER=VALUE,...), every parameter said. */
static void spell(burn_metric *m)
{
    const char *at = m->kind->parameters ? m->kind->parameters : "", *name;
    size_t bytes, used = (size_t)snprintf(m->text, sizeof m->text, "%s", m->kind->name);
    double usual;
    for (int i = 0; i < BURN_METRIC_PARAMETERS && next_parameter(&at, &name, &bytes, &usual); i++) {
        if (used >= sizeof m->text) return;
        double v = m->parameters[i];
        int is_average = bytes == 7 && !memcmp(name, "average", 7) && v >= 0 && v < 3;
        used += (size_t)snprintf(m->text + used, sizeof m->text - used, "%c%.*s=", i ? ',' : '(', (int)bytes, name);
        if (used >= sizeof m->text) return;
        used += is_average ? (size_t)snprintf(m->text + used, sizeof m->text - used, "%s", averages[(int)v])
                           : (size_t)snprintf(m->text + used, sizeof m->text - used, "%.9g", v);
    }
    if (strchr(m->text, '(') && used + 1 < sizeof m->text) strcpy(m->text + used, ")");
}

int burn_metric_of(const burn_metric_kind *kind, const double *parameters, burn_metric **metric)
{
    if (!metric) return BURN_EINVAL;
    *metric = NULL;
    if (!kind || !kind->name || !kind->begin || !kind->add || !kind->value || !kind->end) return BURN_EINVAL;
    burn_metric *m = calloc(1, sizeof *m);
    if (!m) return BURN_ENOMEM;
    m->kind = kind;
    int n = usual_parameters(kind, m->parameters);
    for (int i = 0; parameters && i < n; i++) m->parameters[i] = parameters[i];
    spell(m);
    m->state = kind->begin(m->parameters);
    if (!m->state) {
        free(m);
        return BURN_ENOMEM;
    }
    *metric = m;
    return BURN_OK;
}

/* "VALUE, NAME=VALUE)": values by place until one has a name. */
static int read_parameters(const burn_metric_kind *kind, const char *at, double *parameters, char *message,
                           size_t bytes)
{
    for (int place = 0;; place++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ",)"), name = strcspn(at, "=,)");
        const char *value = at[name] == '=' ? at + name + 1 : at;
        int i = at[name] == '=' ? parameter_of(kind, at, name) : place;
        size_t value_bytes = (size_t)(at + length - value);
        if (i < 0 || i >= usual_parameters(kind, (double[BURN_METRIC_PARAMETERS]){ 0 }))
            return snprintf(message, bytes, "%s takes no '%.*s'%s%s", kind->name, (int)length, at,
                            *kind->parameters ? "; its parameters are " : ": it has no parameters", kind->parameters),
                   BURN_EINVAL;
        if (!read_number(value, value_bytes, &parameters[i]))
            return snprintf(message, bytes, "%s: '%.*s' is no number", kind->name, (int)value_bytes, value),
                   BURN_EINVAL;
        at += length;
        if (*at == ')' && !at[1 + strspn(at + 1, " ")]) return BURN_OK;
        if (*at++ != ',') return snprintf(message, bytes, "%s(...) does not end in ')'", kind->name), BURN_EINVAL;
    }
}

int burn_metric_open(const char *text, burn_metric **metric, char *message, size_t message_bytes)
{
    int count;
    const burn_metric_kind *all = burn_metric_kinds(&count), *kind = NULL;
    if (!metric) return BURN_EINVAL;
    *metric = NULL;
    if (!text || (!message && message_bytes)) return BURN_EINVAL;
    size_t name = strcspn(text, "(");
    for (int i = 0; i < count && !kind; i++)
        if (strlen(all[i].name) == name && !memcmp(all[i].name, text, name)) kind = &all[i];
    if (!kind) {
        size_t used = (size_t)snprintf(message, message_bytes, "there is no metric '%s'; there are", text);
        for (int i = 0; i < count && used < message_bytes; i++)
            used += (size_t)snprintf(message + used, message_bytes - used, " %s", all[i].name);
        return BURN_EINVAL;
    }
    double parameters[BURN_METRIC_PARAMETERS] = { 0 };
    usual_parameters(kind, parameters);
    int error = text[name] ? read_parameters(kind, text + name + 1, parameters, message, message_bytes) : BURN_OK;
    return error ? error : burn_metric_of(kind, parameters, metric);
}

int burn_metric_reset(burn_metric *m)
{
    if (!m) return BURN_EINVAL;
    void *fresh = m->kind->begin(m->parameters);
    if (!fresh) return BURN_ENOMEM;
    m->kind->end(m->state);
    m->state = fresh;
    return BURN_OK;
}

void burn_metric_close(burn_metric *m)
{
    if (!m) return;
    m->kind->end(m->state);
    free(m);
}

int burn_metric_add(burn_metric *m, const burn_observation *seen)
{
    return m && seen && seen->items >= 0 ? m->kind->add(m->state, seen) : BURN_EINVAL;
}

double burn_metric_value(burn_metric *m)
{
    return m ? m->kind->value(m->state) : NAN;
}

const burn_metric_kind *burn_metric_kind_of(const burn_metric *m)
{
    return m->kind;
}

const char *burn_metric_text(const burn_metric *m)
{
    return m->text;
}

const int64_t *burn_metric_confusion(const burn_metric *m, int64_t *classes)
{
    return m && m->kind->begin == metric_counts_begin ? metric_counts_confusion(m->state, classes) : NULL;
}

int64_t metric_elements(const burn_observation *seen)
{
    int64_t n = seen->predicted && seen->shape && seen->rank > 0 ? 1 : 0;
    for (int i = 0; n && i < seen->rank; i++) n *= seen->shape[i];
    return n;
}

int metric_scores(const burn_observation *seen, Scores *s)
{
    int axis = seen->class_axis ? seen->class_axis : seen->rank - 1;
    if (!seen->predicted || !seen->shape || seen->rank < 1 || axis < 0 || axis >= seen->rank) return BURN_EINVAL;
    *s = (Scores){ seen->predicted, 1, 1, 1 };
    for (int i = 0; i < seen->rank; i++)
        *(i < axis ? &s->outer : i == axis ? &s->classes : &s->inner) *= seen->shape[i];
    if (!axis) s->classes = 1, s->outer = seen->shape[0];         /* [items]: a score each */
    return s->outer < 0 || s->classes < 1 || s->inner < 0 ? BURN_EINVAL : BURN_OK;
}
