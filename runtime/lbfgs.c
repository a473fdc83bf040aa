// SPDX-License-Identifier: MIT OR Apache-2.0
// L-BFGS (Liu and Nocedal 1989) with a line search by cubic interpolation to the strong Wolfe conditions (Nocedal and
// Wright, algorithms 3.5, 3.6 and 7.4), with the constants and the ends that PyTorch's LBFGS took over from minFunc.
//
// In: x, and a function for loss and gradient. Out: a better x. The idea: gradients are in four buffers whose pointers
// move, of the point where the search began, of both ends of a bracket and of the newest point.
#include "lbfgs.h"

#include <math.h>
#include <string.h>

enum { MOST_TRIES = 25, GRADIENTS = 4, VECTORS = GRADIENTS + 3 };

// A point of a line: x0 + t d
typedef struct Point { double t, loss, slope; burn_real *gradient; } Point;
typedef struct Search {
    burn_lbfgs *s;
    burn_real *x, *from, *direction;
    burn_objective *objective;
    void *context;
    int tries;
} Search;

static burn_real *vector(const burn_lbfgs *s, int64_t i) { return s->memory + i * s->n; }
static burn_real *step_at(const burn_lbfgs *s, int i) {
    return vector(s, VECTORS + 2 * ((s->first + i) % s->history));
}
static burn_real *change_at(const burn_lbfgs *s, int i) { return step_at(s, i) + s->n; }
static burn_real *weights(const burn_lbfgs *s) { return vector(s, VECTORS + 2 * (int64_t)s->history); }

static double dot(int64_t n, const burn_real *a, const burn_real *b) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static double largest(int64_t n, const burn_real *a) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i]));
    return most;
}

static void add(int64_t n, burn_real *to, double factor, const burn_real *a) {
    for (int64_t i = 0; i < n; i++) to[i] = (burn_real)((double)to[i] + factor * (double)a[i]);
}

size_t burn_lbfgs_size(int64_t n, int history) {
    return (size_t)n * (VECTORS + 2 * (size_t)history) + (size_t)history;
}

void burn_lbfgs_init(burn_lbfgs *s, int64_t n, int history, burn_real *memory) {
    memset(s, 0, sizeof *s);
    s->rate = 1;
    s->iterations = 20;
    s->evaluations = 25;
    s->least_gradient = 1e-7;
    s->least_change = 1e-9;
    s->n = n;
    s->history = history;
    s->scale = 1;
    s->memory = memory;
}

// ---------------------------------------------------------------- the direction

// The last step and what it changed of the gradient, unless the curvature is none.
static void remember(burn_lbfgs *s, const burn_real *gradient, const burn_real *last, const burn_real *direction) {
    double curvature = 0, square = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double y = (double)(burn_real)(gradient[i] - last[i]);
        curvature += y * (s->length * (double)direction[i]);
        square += y * y;
    }
    if (!(curvature > 1e-10)) return;
    s->scale = curvature / square;
    if (!s->history) return;
    if (s->count == s->history) s->first = (s->first + 1) % s->history;
    else s->count++;
    burn_real *step = step_at(s, s->count - 1), *change = change_at(s, s->count - 1);
    for (int64_t i = 0; i < s->n; i++) {
        step[i] = (burn_real)(s->length * (double)direction[i]);
        change[i] = gradient[i] - last[i];
    }
}

// d = -H g by two loops over the pairs.
static void descend(burn_lbfgs *s, burn_real *d, const burn_real *gradient) {
    burn_real *a = weights(s);
    for (int64_t i = 0; i < s->n; i++) d[i] = -gradient[i];
    for (int i = s->count - 1; i >= 0; i--) {
        const burn_real *step = step_at(s, i), *change = change_at(s, i);
        a[i] = (burn_real)(dot(s->n, step, d) / dot(s->n, change, step));
        add(s->n, d, -(double)a[i], change);
    }
    for (int64_t i = 0; i < s->n; i++) d[i] = (burn_real)((double)d[i] * s->scale);
    for (int i = 0; i < s->count; i++) {
        const burn_real *step = step_at(s, i), *change = change_at(s, i);
        add(s->n, d, (double)a[i] - dot(s->n, change, d) / dot(s->n, change, step), step);
    }
}

// ---------------------------------------------------------------- the line search

static int evaluate(Search *l, double t, Point *p) {
    int64_t n = l->s->n;
    burn_real loss;
    for (int64_t i = 0; i < n; i++) l->x[i] = (burn_real)((double)l->from[i] + t * (double)l->direction[i]);
    int code = l->objective(l->context, l->x, p->gradient, &loss);
    if (code) return code;
    l->tries++;
    p->t = t;
    p->loss = (double)loss;
    p->slope = dot(n, p->gradient, l->direction);
    return 0;
}

static double clamped(double t, double lo, double hi) { return t < lo ? lo : t > hi ? hi : t; }

// The minimum of the cubic through both points and their slopes.
static double cubic(const Point *p, const Point *q, double lo, double hi) {
    if (p->t > q->t) return cubic(q, p, lo, hi);
    double d = p->slope + q->slope - 3 * (p->loss - q->loss) / (p->t - q->t), square = d * d - p->slope * q->slope;
    if (!(square >= 0)) return (lo + hi) / 2;
    double root = sqrt(square);
    return clamped(q->t - (q->t - p->t) * ((q->slope + root - d) / (q->slope - p->slope + 2 * root)), lo, hi);
}

static void exchange(Point *p, Point *q) {
    Point kept = *p;
    *p = *q;
    *q = kept;
}

static int falls(const Point *start, const Point *p) { return p->loss <= start->loss + 1e-4 * p->t * start->slope; }
static int flat(const Point *start, const Point *p) { return fabs(p->slope) <= -0.9 * start->slope; }

// Goes on until [last, new] holds a point that will do; *found: new is one.
static int bracket(Search *l, const Point *start, Point *last, Point *new, int *found) {
    for (l->tries = 1;;) {
        int tried = l->tries - 1;
        if (tried >= MOST_TRIES) {                      // the whole way
            memcpy(last->gradient, start->gradient, (size_t)l->s->n * sizeof *last->gradient);
            *last = (Point){ start->t, start->loss, start->slope, last->gradient };
            return 0;
        }
        if (!falls(start, new) || (tried > 1 && new->loss >= last->loss)) return 0;
        if ((*found = flat(start, new))) return 0;
        if (new->slope >= 0) return 0;
        double next = cubic(last, new, new->t + 0.01 * (new->t - last->t), 10 * new->t);
        exchange(last, new);
        int code = evaluate(l, next, new);
        if (code) return code;
    }
}

// Shrinks the bracket of low, the better end, and high.
static int zoom(Search *l, const Point *start, Point *low, Point *high, Point *new) {
    double width = largest(l->s->n, l->direction);
    int slow = 0;
    while (l->tries - 1 < MOST_TRIES && fabs(high->t - low->t) * width >= l->s->least_change) {
        double lo = fmin(low->t, high->t), hi = fmax(low->t, high->t), edge = 0.1 * (hi - lo);
        double t = cubic(low, high, lo, hi);
        if (fmin(hi - t, t - lo) < edge) {
            int moves = slow || t >= hi || t <= lo;
            if (moves) t = fabs(t - hi) < fabs(t - lo) ? hi - edge : lo + edge;
            slow = !moves;
        } else slow = 0;
        int code = evaluate(l, t, new);
        if (code) return code;
        if (!falls(start, new) || new->loss >= low->loss) {
            exchange(high, new);
            if (high->loss < low->loss) exchange(low, high);
            continue;
        }
        int done = flat(start, new);
        if (!done && new->slope * (high->t - low->t) >= 0) exchange(high, low);
        exchange(low, new);
        if (done) break;
    }
    return 0;
}

// From start along the direction; *to becomes the point found, whose gradient is start's buffer again.
static int search(Search *l, Point *start, double t) {
    burn_lbfgs *s = l->s;
    Point last = { 0, start->loss, start->slope, vector(s, 1) }, new = { .gradient = vector(s, 2) };
    Point spare = { .gradient = vector(s, 3) };
    int found = 0;
    memcpy(last.gradient, start->gradient, (size_t)s->n * sizeof *last.gradient);
    memcpy(l->from, l->x, (size_t)s->n * sizeof *l->x);
    int code = evaluate(l, t, &new);
    if (!code) code = bracket(l, start, &last, &new, &found);
    if (code) return code;
    Point *low = &new, *high = &last;
    if (!found && last.loss <= new.loss) low = &last, high = &new;
    if (!found) code = zoom(l, start, low, high, &spare);
    if (code) return code;
    for (int64_t i = 0; i < s->n; i++) l->x[i] = (burn_real)((double)l->from[i] + low->t * (double)l->direction[i]);
    memcpy(start->gradient, low->gradient, (size_t)s->n * sizeof *low->gradient);
    start->loss = low->loss;
    s->length = low->t;
    return 0;
}

// ---------------------------------------------------------------- the step

int burn_lbfgs_step(burn_lbfgs *s, burn_real *x, burn_objective *objective, void *context, burn_real *loss) {
    burn_real *gradient = vector(s, 0), *last = vector(s, 4), *direction = vector(s, 5);
    Search l = { s, x, vector(s, 6), direction, objective, context, 0 };
    int code = objective(context, x, gradient, loss), evaluations = 1;
    if (code || largest(s->n, gradient) <= s->least_gradient) return code;
    Point now = { 0, (double)*loss, 0, gradient };
    for (int i = 0; i < s->iterations; i++) {
        if (s->done++) remember(s, gradient, last, direction);
        descend(s, direction, gradient);
        memcpy(last, gradient, (size_t)s->n * sizeof *last);
        double before = now.loss, size = 0;
        for (int64_t k = 0; k < s->n; k++) size += fabs((double)gradient[k]);
        s->length = s->done == 1 ? fmin(1, 1 / size) * s->rate : s->rate;
        now.t = 0;
        now.slope = dot(s->n, gradient, direction);
        if (!(now.slope <= -s->least_change)) break;
        code = search(&l, &now, s->length);
        if (code) return code;
        evaluations += l.tries;
        double moved = largest(s->n, direction) * fabs(s->length);
        if (evaluations >= s->evaluations || largest(s->n, gradient) <= s->least_gradient) break;
        if (moved <= s->least_change || fabs(now.loss - before) < s->least_change) break;
    }
    return 0;
}
