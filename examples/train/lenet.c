// SPDX-License-Identifier: MIT OR Apache-2.0
// Teaches LeNet, a model described in C, with the learner of runtime/learn. In: data by a word, as mnist:FOLDER, and
// how many epochs. Out: lines as it goes, checkpoints in lenet.run, from where it goes on when it is called again, and
// lenet.safetensors of the best epoch (99.17 % of MNIST's test images after twelve epochs).
//     burncc models/lenet.c --train --optimizer adam --schedule cosine --dim batch=1..64 --target native -o lenet.c
//     cc -O3 -march=native -I . -I runtime examples/train/lenet.c lenet.c -lburn_learn -lburn_image LIBRARIES -o lenet
#include <stdlib.h>

#include "learn/learner.h"
#include "learn/source.h"
#include "learn/watchers.h"
#include "lenet.h"

static void check(int error, const burn_said *said) {
    if (!error) return;
    fprintf(stderr, "lenet: %s\n", said->text);
    exit(1);
}

int main(int argc, char **argv) {
    static lenet_params best;
    burn_said said = {"no memory"};
    burn_source digits;
    burn_watcher lines;
    burn_learner *learner;
    if (argc != 3) return fprintf(stderr, "usage: %s SOURCE EPOCHS\n", argv[0]), 2;

    check(burn_source_open(argv[1], NULL, &digits, &said), &said);
    check(burn_source_split(&digits, 0.1, 1, &said), &said);
    check(burn_watch_lines(stderr, 0, &lines), &said);

    const char *const metrics[] = {"accuracy"}, *const names[] = {"learning_rate", "steps"};
    const int64_t epochs = atoi(argv[2]), batch = 64, steps = (digits.train->count + batch - 1) / batch * epochs;
    const double values[] = {0.002, (double)steps};
    const burn_learning how = {
        .training = &lenet_training,
        .train = digits.train,
        .valid = digits.valid,
        .epochs = epochs,
        .batch = batch,
        .workers = 1,
        .hyper_count = 2, .hyper_names = names, .hyper_values = values,
        .metric_count = 1, .metrics = metrics, .best_by = "valid accuracy",
        .artifacts = "lenet.run", .resume = 1, .interrupts = 1,
        .watcher_count = 1, .watchers = &lines,
    };
    check(burn_learner_open(&how, &learner, &said), &said);
    check(burn_learner_run(learner, NULL, &said), &said);
    check(burn_learner_best(learner, &best, &said), &said);
    if (lenet_params_save(&best, "lenet.safetensors")) return perror("lenet.safetensors"), 1;

    burn_learner_close(learner);
    lines.close(lines.own);
    burn_source_close(&digits);
    return 0;
}
