// SPDX-License-Identifier: MIT OR Apache-2.0
// A loop of one's own over the loader and the functions of training code: LeNet, a rate that halves, no learner. In:
// data by a word, as mnist:FOLDER. Out: the loss and the accuracy of three epochs. Built as lenet.c is, from
//     burncc models/lenet.c --train --optimizer adam --dim batch=64 --target native -o lenet.c
#include <stdio.h>

#include "learn/metric.h"
#include "learn/source.h"
#include "lenet.h"

int main(int argc, char **argv) {
    static lenet_params params;
    static lenet_state state;
    static lenet_train_step_workspace work;
    static lenet_predict_workspace predict;
    static float logits[64 * 10], loss[1], rate = 0.002f, at;
    const burn_loading in_order = {.batch = 64, .drop_last = 1}, shuffled = {.batch = 64, .drop_last = 1, .shuffle = 1};
    burn_source digits;
    burn_loader *train, *test;
    burn_metric *accuracy;
    burn_batch b;
    burn_said said;
    if (argc != 2 || burn_source_open(argv[1], NULL, &digits, &said)
        || burn_loader_open(digits.train, &shuffled, &train, &said)
        || burn_loader_open(digits.valid, &in_order, &test, &said) || burn_metric_open("accuracy", &accuracy, NULL, 0))
        return fprintf(stderr, "loop: %s\n", argc == 2 ? said.text : "usage: loop SOURCE"), 1;
    lenet_params_init(&params);
    for (int epoch = 1; epoch <= 3; epoch++, rate /= 2) {
        while (burn_loader_next(train, &b, &said) == 1)
            lenet_train_step(&work, b.fields[0], &params, b.fields[1], rate, .9f, .999f, 1e-8f, 0, ++at, &state, loss);
        for (burn_metric_reset(accuracy); burn_loader_next(test, &b, &said) == 1;) {
            lenet_predict(&predict, b.fields[0], &params, logits);
            burn_metric_add(accuracy, &(burn_observation){.items = 64, .predicted = logits, .rank = 2,
                                          .shape = (int64_t[]){64, 10}, .classes = b.fields[1]});
        }
        printf("epoch %d: loss %.4f, accuracy %.4f\n", epoch, (double)loss[0], burn_metric_value(accuracy));
    }
    return 0;
}
