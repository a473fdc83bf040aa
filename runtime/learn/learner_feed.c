/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From the fields of a dataset to the tensors of a module, and from what it predicts to observations. In: a batch of
 * the loader. Out: a lane whose tensors point into it, or to copies where the module wants other types or more items.
 *
 * A field's shape fits a tensor's where both are the same behind the tensor's first axis, the batch's, or altogether
 * (a module of one item without such an axis), if dimensions of 1 are not looked at. */
#include "data_own.h"
#include "learner_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t dtype_bytes(burn_dtype dtype)
{
    return burn_field_of("", dtype, 0, NULL).bytes;
}

static int is_whole(burn_dtype dtype)
{
    return dtype == BURN_INT64 || dtype == BURN_INT32 || dtype == BURN_UINT8 || dtype == BURN_BOOL;
}

static int is_real(burn_dtype dtype)
{
    return dtype == BURN_FLOAT || dtype == BURN_DOUBLE;
}

static int converts(burn_dtype from, burn_dtype to)
{
    return from == to || ((is_whole(from) || is_real(from)) && is_real(to)) || (is_whole(from) && is_whole(to));
}

static double real_at(burn_dtype dtype, const void *a, int64_t i)
{
    switch (dtype) {
    case BURN_FLOAT: return (double)((const float *)a)[i];
    case BURN_DOUBLE: return ((const double *)a)[i];
    case BURN_INT64: return (double)((const int64_t *)a)[i];
    case BURN_INT32: return (double)((const int32_t *)a)[i];
    default: return (double)((const uint8_t *)a)[i];
    }
}

static int64_t whole_at(burn_dtype dtype, const void *a, int64_t i)
{
    switch (dtype) {
    case BURN_INT64: return ((const int64_t *)a)[i];
    case BURN_INT32: return ((const int32_t *)a)[i];
    default: return ((const uint8_t *)a)[i];
    }
}

void convert(burn_dtype from, burn_dtype to, int64_t count, const void *source, void *target)
{
    if (from == to) {
        memcpy(target, source, (size_t)count * dtype_bytes(from));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        switch (to) {
        case BURN_FLOAT: ((float *)target)[i] = (float)real_at(from, source, i); break;
        case BURN_DOUBLE: ((double *)target)[i] = real_at(from, source, i); break;
        case BURN_INT64: ((int64_t *)target)[i] = whole_at(from, source, i); break;
        case BURN_INT32: ((int32_t *)target)[i] = (int32_t)whole_at(from, source, i); break;
        default: ((uint8_t *)target)[i] = (uint8_t)whole_at(from, source, i);
        }
}

/* ---- which field is which tensor's */

static int is_open(const burn_tensor_info *info, int axis)
{
    return info->least && info->least[axis] < info->shape[axis];
}

/* Do the tensor's dimensions from `axis` on take the item's? Then shape has them. */
static int shape_fits(const burn_tensor_info *info, int axis, const burn_field *field, int64_t *shape)
{
    int k = 0;
    for (int i = axis; i < info->rank; i++) {
        int64_t most = info->shape[i], least = is_open(info, i) ? info->least[i] : most;
        while (k < field->rank && field->shape[k] == 1 && least > 1) k++;
        int takes = k < field->rank && field->shape[k] >= least && field->shape[k] <= most;
        if (!takes && least > 1) return 0;
        shape[i] = takes ? field->shape[k++] : 1;
    }
    while (k < field->rank && field->shape[k] == 1) k++;
    return k == field->rank;
}

/* The items that the tensor has, of this field; 0 where it does not fit. */
static int64_t items_of(const burn_tensor_info *info, const burn_field *field, int64_t *shape)
{
    if (!converts(field->dtype, info->dtype) || info->rank > MOST_RANK) return 0;
    if (info->rank && shape_fits(info, 1, field, shape)) return shape[0] = info->shape[0];
    return shape_fits(info, 0, field, shape) ? 1 : 0;
}

/* "image f32[32,1,28,28], target i64[32]" */
static size_t write_tensor(char *text, size_t room, const char *name, burn_dtype dtype, int rank, const int64_t *shape)
{
    const char *types[] = { [BURN_FLOAT] = "f32", [BURN_UINT8] = "u8", [BURN_INT32] = "i32", [BURN_INT64] = "i64",
                            [BURN_BOOL] = "bool", [BURN_DOUBLE] = "f64" };
    const char *type = (size_t)dtype < sizeof types / sizeof *types && types[dtype] ? types[dtype] : "other";
    size_t used = (size_t)snprintf(text, room, " %s %s[", name, type);
    for (int i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", i ? "," : "", (long long)shape[i]);
    if (used < room) used += (size_t)snprintf(text + used, room - used, "]");
    return used < room ? used : room - 1;
}

static int say_misfit(const burn_learner *l, const burn_dataset *data, int at, burn_said *said)
{
    char wants[220] = "", has[200] = "";
    size_t used = 0;
    for (int i = 0; i < l->end_count; i++) {
        const burn_tensor_info *info = &l->t->inputs[i];
        used += write_tensor(wants + used, sizeof wants - used, info->name, info->dtype, info->rank, info->shape);
    }
    used = 0;
    for (int f = 0; f < data->field_count; f++) {
        const burn_field *field = &data->fields[f];
        used += write_tensor(has + used, sizeof has - used, field->name, field->dtype, field->rank, field->shape);
    }
    return data_said(said, BURN_EINVAL, "no field for %s: the module wants%s; an item has%s", l->t->inputs[at].name,
                     wants, has);
}

/* Takes the field for the tensor, if it fits. */
static int take(const burn_learner *l, Feeds *feeds, int at, int field)
{
    const burn_tensor_info *info = &l->t->inputs[at];
    const burn_field *of = &feeds->data->fields[field];
    Feed *feed = &feeds->of[at];
    if (!items_of(info, of, feed->shape)) return 0;
    feed->field = field;
    feed->from = of->dtype;
    feed->elements = (int64_t)(of->bytes / dtype_bytes(of->dtype));
    feed->bytes = (size_t)feed->elements * dtype_bytes(info->dtype);
    return 1;
}

/* The first field that nobody has and that fits; same: of the same type. */
static int take_first(const burn_learner *l, Feeds *feeds, int at, int same)
{
    for (int f = 0; f < feeds->data->field_count; f++) {
        int is_free = !same || feeds->data->fields[f].dtype == l->t->inputs[at].dtype;
        for (int i = 0; i < l->end_count; i++) is_free &= feeds->of[i].field != f;
        if (is_free && take(l, feeds, at, f)) return 1;
    }
    return 0;
}

static int find_fields(const burn_learner *l, Feeds *feeds, burn_said *said)
{
    for (int i = 0; i < l->end_count; i++) {
        const char *name = l->how.fields ? l->how.fields[i] : l->t->inputs[i].name;
        int f = burn_data_field(feeds->data, name);
        if (f >= 0 && take(l, feeds, i, f)) continue;
        if (l->how.fields) return say_misfit(l, feeds->data, i, said);
    }
    for (int i = 0; i < l->end_count; i++)
        if (feeds->of[i].field < 0 && !take_first(l, feeds, i, 1) && !take_first(l, feeds, i, 0))
            return say_misfit(l, feeds->data, i, said);
    return BURN_OK;
}

int feeds_open(const burn_learner *l, Feeds *feeds, burn_dataset *data, burn_said *said)
{
    feeds->data = data;
    feeds->of = calloc((size_t)l->end_count + 1, sizeof *feeds->of);
    if (!feeds->of) return data_said(said, BURN_ENOMEM, "no memory");
    for (int i = 0; i < l->end_count; i++) {
        feeds->of[i].field = -1;
        feeds->of[i].shape = calloc(MOST_RANK, sizeof(int64_t));
        if (!feeds->of[i].shape) return data_said(said, BURN_ENOMEM, "no memory");
    }
    return find_fields(l, feeds, said);
}

void feeds_close(const burn_learner *l, Feeds *feeds)
{
    for (int i = 0; feeds->of && i < l->end_count; i++) free(feeds->of[i].shape);
    free(feeds->of);
}

int feeds_sizes(burn_learner *l, const Feeds *feeds, burn_said *said)
{
    int64_t ignored[MOST_RANK];
    for (int i = 0; i < l->end_count; i++) {
        const burn_tensor_info *info = &l->t->inputs[i];
        int64_t most = items_of(info, &feeds->data->fields[feeds->of[i].field], ignored);
        int64_t least = info->rank && is_open(info, 0) ? info->least[0] : most;
        if (i && most != l->most)
            return data_said(said, BURN_EINVAL, "%s: %s is of %lld items, %s of %lld: the first axis of inputs and "
                             "targets must be the batch", l->t->name, l->t->inputs[0].name, (long long)l->most,
                             info->name, (long long)most);
        l->most = most;
        if (!i || least > l->least) l->least = least;
    }
    return BURN_OK;
}

/* ---- lanes */

int lane_open(const burn_learner *l, Lane *lane, int gradients)
{
    const burn_training *t = l->t;
    size_t work = t->predict_bytes;
    if (work < t->evaluate_bytes) work = t->evaluate_bytes;
    if (work < t->gradients_bytes) work = t->gradients_bytes;
    if (work < t->update_bytes) work = t->update_bytes;
    if (work < t->train_step_bytes) work = t->train_step_bytes;
    lane->in = calloc((size_t)l->end_count + 1, sizeof *lane->in);
    lane->shapes = calloc((size_t)(l->end_count + 1) * MOST_RANK, sizeof *lane->shapes);
    lane->rooms = calloc((size_t)l->end_count + 1, sizeof *lane->rooms);
    lane->work = aligned_alloc(64, (work + 64) & ~(size_t)63);
    lane->numbers = calloc((size_t)l->how.batch, sizeof *lane->numbers);
    lane->grads = gradients ? calloc(1, ranks_bytes(l)) : NULL;
    int ok = lane->numbers && lane->in && lane->shapes && lane->rooms && lane->work && (!gradients || lane->grads);
    if (!ok) return BURN_ENOMEM;
    for (int i = 0; i < l->end_count; i++)
        if (!(lane->rooms[i] = calloc(1, t->inputs[i].bytes + 1))) return BURN_ENOMEM;
    return BURN_OK;
}

void lane_close(const burn_learner *l, Lane *lane)
{
    for (int i = 0; lane->rooms && i < l->end_count; i++) free(lane->rooms[i]);
    free(lane->numbers);
    free(lane->in);
    free(lane->shapes);
    free(lane->rooms);
    free(lane->work);
    free(lane->grads);
}

/* Gives the lane's tensors as many rows as the module wants at least: its items, then copies of the first in turn. */
static void pad(const burn_learner *l, const Feeds *feeds, Lane *lane)
{
    int64_t turn = lane->turn < lane->items ? lane->turn : lane->items;
    lane->rows = lane->items < l->least ? l->least : lane->items;
    for (int i = 0; i < l->end_count; i++) {
        const burn_tensor_info *info = &l->t->inputs[i];
        const Feed *feed = &feeds->of[i];
        int64_t *shape = lane->shapes + i * MOST_RANK;
        uint8_t *room = lane->rooms[i];
        memcpy(shape, feed->shape, (size_t)info->rank * sizeof *shape);
        if (info->rank && l->most > 1) shape[0] = lane->rows;
        if (lane->rows > lane->items && lane->in[i].data != room)
            memcpy(room, lane->in[i].data, (size_t)lane->items * feed->bytes);
        for (int64_t k = lane->items; k < lane->rows; k++)
            memcpy(room + (size_t)k * feed->bytes, room + (size_t)(k % turn) * feed->bytes, feed->bytes);
        void *data = lane->rows > lane->items ? room : lane->in[i].data;
        lane->in[i] = (burn_tensor){
            .data = data, .bytes = (size_t)lane->rows * feed->bytes, .shape = info->least ? shape : NULL };
    }
}

void lane_fill(const burn_learner *l, const Feeds *feeds, const burn_batch *batch, int64_t turn, int copied,
               Lane *lane)
{
    lane->turn = turn;
    lane->items = batch->items;
    memcpy(lane->numbers, batch->numbers, (size_t)batch->items * sizeof *lane->numbers);
    for (int i = 0; i < l->end_count; i++) {
        const burn_tensor_info *info = &l->t->inputs[i];
        const Feed *feed = &feeds->of[i];
        int is_there = !copied && feed->from == info->dtype;
        lane->in[i].data = is_there ? batch->fields[feed->field] : lane->rooms[i];
        if (!is_there)
            convert(feed->from, info->dtype, lane->items * feed->elements, batch->fields[feed->field], lane->rooms[i]);
    }
    if (lane->items) pad(l, feeds, lane);
}

void lane_alone(const burn_learner *l, const Feeds *feeds, const Lane *lane, int64_t k, Lane *one)
{
    one->items = one->turn = 1;
    for (int i = 0; i < l->end_count; i++) {
        size_t bytes = feeds->of[i].bytes;
        one->in[i].data = one->rooms[i];
        memcpy(one->rooms[i], (const uint8_t *)lane->in[i].data + (size_t)k * bytes, bytes);
    }
    pad(l, feeds, one);
}

void lane_take_out(const burn_learner *l, const Feeds *feeds, Lane *lane, int64_t k)
{
    size_t behind = (size_t)(--lane->items - k);
    memmove(lane->numbers + k, lane->numbers + k + 1, behind * sizeof *lane->numbers);
    for (int i = 0; i < l->end_count; i++) {
        size_t bytes = feeds->of[i].bytes;
        uint8_t *room = lane->rooms[i];
        if (lane->in[i].data != room) memcpy(room, lane->in[i].data, ((size_t)lane->items + 1) * bytes);
        memmove(room + (size_t)k * bytes, room + (size_t)(k + 1) * bytes, behind * bytes);
        lane->in[i].data = room;
    }
    if (lane->items) pad(l, feeds, lane);
}

/* The tensor's first `count` numbers as `wanted`: where they are, or converted into `room`. */
static const void *numbers_as(burn_dtype wanted, burn_dtype from, const void *data, int64_t count, void *room)
{
    if (from == wanted) return data;
    convert(from, wanted, count, data, room);
    return room;
}

void lane_observe(burn_learner *l, const Feeds *feeds, const Lane *lane, burn_observation *seen, int64_t *shape)
{
    const burn_tensor_info *out = l->t->outputs, *target = &l->t->inputs[l->t->input_count];
    *seen = (burn_observation){ .items = lane->items, .loss = lane->loss, .class_axis = l->how.class_axis };
    if (l->t->output_count && is_real(out->dtype)) {
        const int64_t *dims = out->least ? l->out_shapes : out->shape;
        int64_t count = 1, first = out->rank ? dims[0] : 1, at = 1;
        for (int i = 0; i < out->rank; i++) count *= dims[i];
        shape[0] = lane->items;                           /* what is only there to fill the batch is last */
        if (first != lane->rows && count % lane->rows == 0 && first % lane->rows == 0) shape[at++] = first / lane->rows;
        for (int i = 1; i < out->rank; i++) shape[at++] = dims[i];
        seen->rank = (int)at;
        seen->shape = shape;
        seen->predicted = numbers_as(BURN_FLOAT, out->dtype, l->out[0].data, count, l->seen_predicted);
    }
    if (!l->t->target_count) return;
    int64_t count = lane->items * feeds->of[l->t->input_count].elements;
    const void *data = lane->in[l->t->input_count].data;
    if (is_whole(target->dtype)) seen->classes = numbers_as(BURN_INT64, target->dtype, data, count, l->seen_target);
    else seen->values = numbers_as(BURN_FLOAT, target->dtype, data, count, l->seen_target);
}
