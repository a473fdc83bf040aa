// SPDX-License-Identifier: MIT OR Apache-2.0
// Data, batches, a metric and a record, without a model: the mean of iris.csv's features over shuffled batches, how
// often the commonest class of the first part is right on the second, and both kept in a file.
#include "learn/data.h"
#include "learn/metric.h"
#include "learn/record.h"

#include <stdio.h>

enum { FEATURES = 4, CLASSES = 3 };

// Sums features, counts classes. Rows after `items` are zeros, which a program that computes whole batches ignores.
static int count(burn_loader *loader, float sums[FEATURES], float counts[CLASSES], burn_said *said)
{
    burn_batch batch;
    int got;
    while ((got = burn_loader_next(loader, &batch, said)) == 1) {
        const float *features = batch.fields[0];
        const int64_t *classes = batch.fields[1];
        for (int64_t i = 0; i < batch.items; i++) {
            for (int k = 0; k < FEATURES; k++) sums[k] += features[i * FEATURES + k];
            counts[classes[i]] += 1;
        }
    }
    return got;
}

// The same scores for each item, as a model that has learnt nothing but how frequent the classes are.
static int measure(burn_dataset *data, const float scores[CLASSES], burn_metric *metric, burn_said *said)
{
    const int64_t shape[] = { 1, CLASSES };
    float features[FEATURES];
    int64_t class;
    for (int64_t i = 0; i < data->count; i++) {
        int error = burn_data_get(data, i, 0, (void *const[]){ features, &class }, said);
        if (error) return error;
        burn_metric_add(metric, &(burn_observation){ .items = 1, .predicted = scores, .rank = 2, .shape = shape,
                                                     .classes = &class });
    }
    return 0;
}

int main(void)
{
    burn_said said = { "" };
    burn_dataset *all = NULL, *first = NULL, *second = NULL;
    burn_loader *loader = NULL;
    burn_metric *metric = NULL;
    float sums[FEATURES] = { 0 }, counts[CLASSES] = { 0 };
    const burn_csv how = { .scale = 1 };
    const burn_loading loading = { .batch = 16, .shuffle = 1, .seed = 1, .workers = 2 };
    int error = burn_data_csv("examples/train/iris.csv", &how, &all, &said);
    if (!error) error = burn_data_split(all, 0.8, 1, &first, &second, &said);
    if (!error) error = burn_loader_open(first, &loading, &loader, &said);
    if (!error) error = count(loader, sums, counts, &said);
    if (!error) error = burn_metric_open("f_beta(beta=2,average=macro)", &metric, said.text, sizeof said.text);
    if (!error) error = measure(second, counts, metric, &said);
    if (!error) printf("%lld items, f_beta %.3f\n", (long long)first->count, burn_metric_value(metric));

    const int64_t shapes[] = { FEATURES, CLASSES };
    const burn_tensor_info info[] = {
        { .name = "sums", .dtype = BURN_FLOAT, .rank = 1, .shape = &shapes[0], .bytes = sizeof sums },
        { .name = "counts", .dtype = BURN_FLOAT, .rank = 1, .shape = &shapes[1], .bytes = sizeof counts },
    };
    const burn_held held = { .more_count = 2, .more = info, .more_data = (void *const[]){ sums, counts } };
    const burn_recording half = { .format = BURN_RECORD_JSON, .precision = BURN_FLOAT16 };
    if (!error) error = burn_record_save("iris.json", &half, &held, &said);
    if (!error) error = burn_record_load("iris.json", &held, &said);
    if (error) fprintf(stderr, "%s\n", said.text);
    burn_metric_close(metric);
    burn_loader_close(loader);
    burn_data_close(second);
    burn_data_close(first);
    burn_data_close(all);
    return error != 0;
}
