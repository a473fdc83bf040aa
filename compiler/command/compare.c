// SPDX-License-Identifier: MIT OR Apache-2.0
// Two tensors compared element by element: what generated code computed, and what is right.
//
// In: the tensors and what is allowed. Out: the largest differences, and what is wrong, with the worst elements.
//
// An element passes as with numpy.allclose, |a - b| <= atol + rtol |b|; NaN equals NaN, infinities are equal with
// equal signs, and integers, booleans, strings and floats of 8 bits or fewer (where one step is 6 % and more) must be
// the same. The idea: an element near zero is mostly a sum that cancels, whose rounding errors are in proportion to its
// terms, not to itself. So atol is at least some ULP of the tensor's largest element, unless the user says what to
// allow. By type (1 ULP here: the type's epsilon times the largest):
//
//   f32, f64   128   a sum of K terms in another order errs by about sqrt(K) ULP, Winograd's convolutions by 8, and the
//                    layers of a network add up; wrong code is off by orders of magnitude more
//   f16, bf16    4   computed in f32 and rounded once per operator: the roundings of a few operators show, sums do not.
//                    With --precision bf16 the products' factors are rounded so, and f32 is judged by bf16's ULP
#include "command.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct Unit { DType dtype; double epsilon, allowed; } Unit;
static const Unit units[] = {
    { DT_F32, 0x1p-23, 128 },
    { DT_F64, 0x1p-52, 128 },
    { DT_F16, 0x1p-10, 4 },
    { DT_BF16, 0x1p-7, 4 },
    { DT_C64, 0x1p-23, 128 },
    { DT_C128, 0x1p-52, 128 },
};
enum { WORST = 3 };                                     // elements that are shown

// of the elements that do not pass, the worst first; excess: the difference by what is allowed
typedef struct Worst { int n; int64_t at[WORST]; double excess[WORST]; } Worst;

// rtol and atol are those of ONNX's own test runner
Tolerance usual_tolerance(const char *precision) { return (Tolerance){ 1e-3, 1e-7, -1, precision, "recorded" }; }

static const Unit *unit_of(DType d, const char *precision) {
    const DType rounded = precision && d == DT_F32 ? strcmp(precision, "f16") ? DT_BF16 : DT_F16 : d;
    for (size_t i = 0; i < COUNT(units); i++)
        if (units[i].dtype == rounded) return &units[i];
    return NULL;
}

// ---------------------------------------------------------------- elements

static bool same_exactly(const Tensor *x, const Tensor *y, int64_t i) {
    DType d = x->type.dtype;
    if (d == DT_STRING) {
        const char *s = ((const char *const *)x->data)[i], *t = ((const char *const *)y->data)[i];
        return strcmp(s ? s : "", t ? t : "") == 0;
    }
    return tensor_get_i(x, i) == tensor_get_i(y, i);
}

// Component `part` of a complex element, or the element.
static double number_at(const Tensor *t, int64_t i, int part) {
    if (t->type.dtype == DT_C64) return (double)((const float *)t->data)[2 * i + part];
    if (t->type.dtype == DT_C128) return ((const double *)t->data)[2 * i + part];
    return tensor_get_f(t, i);
}

// By how much the difference of two numbers is more than is allowed: at most 1, they pass.
static double excess_of(double x, double y, const Tolerance *allowed, Difference *r) {
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : HUGE_VAL;
    if (isinf(x) || isinf(y)) return x == y ? 0 : HUGE_VAL;
    double difference = fabs(x - y), bound = allowed->atol + allowed->rtol * fabs(y);
    if (difference > r->max_abs) r->max_abs = difference;
    if (y != 0 && difference / fabs(y) > r->max_rel) r->max_rel = difference / fabs(y);
    if (difference <= bound) return 0;
    return bound > 0 ? difference / bound : DBL_MAX;
}

static double element_excess(const Tensor *got, const Tensor *want, int64_t i, const Tolerance *allowed,
    Difference *r) {
    DClass class = dtype_class(got->type.dtype);
    if (class != CLASS_FLOAT && class != CLASS_COMPLEX) return same_exactly(got, want, i) ? 0 : 1;
    double excess = excess_of(number_at(got, i, 0), number_at(want, i, 0), allowed, r);
    if (class != CLASS_COMPLEX) return excess;
    return fmax(excess, excess_of(number_at(got, i, 1), number_at(want, i, 1), allowed, r));
}

static double largest_of(const Tensor *t) {
    DClass class = dtype_class(t->type.dtype);
    double largest = 0;
    if (class != CLASS_FLOAT && class != CLASS_COMPLEX) return 0;
    for (int64_t i = 0, n = type_count(&t->type); i < n; i++)
        for (int part = 0; part < (class == CLASS_COMPLEX ? 2 : 1); part++) {
            double v = fabs(number_at(t, i, part));
            if (isfinite(v) && v > largest) largest = v;
        }
    return largest;
}

// ---------------------------------------------------------------- what is said

static const char *element_text(Arena *a, const Tensor *t, int64_t i) {
    DClass class = dtype_class(t->type.dtype);
    if (class == CLASS_STRING) {
        const char *s = ((const char *const *)t->data)[i];
        return arena_printf(a, "\"%.60s\"", s ? s : "");
    }
    if (class == CLASS_COMPLEX) return arena_printf(a, "%.9g%+.9gi", number_at(t, i, 0), number_at(t, i, 1));
    if (class == CLASS_FLOAT) return arena_printf(a, "%.9g", tensor_get_f(t, i));
    if (t->type.dtype == DT_U64) return arena_printf(a, "%llu", (unsigned long long)tensor_get_i(t, i));
    return arena_printf(a, "%lld", (long long)tensor_get_i(t, i));
}

// " [0,3]" of element 3; nothing where the number says it all
static void index_text(Text *t, const Type *type, int64_t i) {
    int64_t strides[MAX_RANK];
    if (type->rank < 2) return;
    type_strides(type, strides);
    for (int k = 0; k < type->rank; k++) {
        text_printf(t, "%s%lld", k ? "," : " [", (long long)(i / strides[k]));
        i %= strides[k];
    }
    text_printf(t, "]");
}

static void worst_add(Worst *w, int64_t i, double excess) {
    int at = w->n < WORST ? w->n++ : WORST;
    for (; at > 0 && excess > w->excess[at - 1]; at--) {
        if (at == WORST) continue;
        w->at[at] = w->at[at - 1];
        w->excess[at] = w->excess[at - 1];
    }
    if (at == WORST) return;
    w->at[at] = i;
    w->excess[at] = excess;
}

static const char *fault_text(Arena *a, const Tensor *got, const Tensor *want, const Worst *w, const char *against,
    const Difference *r) {
    Text t;
    text_init(&t, a);
    text_printf(&t, "element");
    for (int i = 0; i < w->n; i++) {
        text_printf(&t, "%s %lld", i ? ";" : "", (long long)w->at[i]);
        index_text(&t, &want->type, w->at[i]);
        text_printf(&t, ": %s, %s %s", element_text(a, got, w->at[i]), against, element_text(a, want, w->at[i]));
    }
    text_printf(&t, " (%lld of %lld differ, max_abs=%.3g max_rel=%.3g ulp=%.3g)", (long long)r->differ,
        (long long)type_count(&want->type), r->max_abs, r->max_rel, r->ulps);
    return t.at;
}

Difference compare_tensors(Arena *a, const Tensor *got, const Tensor *want, Tolerance allowed) {
    Difference r = { 0 };
    if (!type_equal(&got->type, &want->type)) {
        r.fault = arena_printf(
            a, "is %s, %s %s", type_text(a, NULL, &got->type), allowed.against, type_text(a, NULL, &want->type));
        return r;
    }
    const Unit *unit = unit_of(want->type.dtype, allowed.precision);
    r.largest = largest_of(want);
    double ulp = unit ? unit->epsilon * r.largest : 0;
    allowed.atol = fmax(allowed.atol, ulp * (allowed.ulps >= 0 ? allowed.ulps : unit ? unit->allowed : 0));
    Worst worst = { 0 };
    for (int64_t i = 0, count = type_count(&got->type); i < count; i++) {
        double excess = element_excess(got, want, i, &allowed, &r);
        if (excess <= 0) continue;
        r.differ++;
        worst_add(&worst, i, excess);
    }
    r.ulps = ulp > 0 ? r.max_abs / ulp : 0;
    if (r.differ) r.fault = fault_text(a, got, want, &worst, allowed.against, &r);
    return r;
}
