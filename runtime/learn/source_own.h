/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What kinds of sources (source_*.c) share with source.c, which has a row for each. */
#ifndef BURN_SOURCE_OWN_H
#define BURN_SOURCE_OWN_H

#include "data_own.h"
#include "source.h"

enum { SOURCE_OPTIONS = 24 };
/* PATH,OPTION=VALUE,OPTION taken apart; a flag's value is "". */
typedef struct SourceText {
    char *own;
    const char *path;
    int count;
    const char *names[SOURCE_OPTIONS], *values[SOURCE_OPTIONS];
    const char *wrong;                                     /* the first option whose value cannot be read */
} SourceText;

/* The value of an option; NULL: it is not given. */
const char *source_option(const SourceText *t, const char *name);
int source_flag(SourceText *t, const char *name);
/* Its number, at least `least`, or `usual`. */
double source_number(SourceText *t, const char *name, double least, double usual);
int64_t source_count(SourceText *t, const char *name, int64_t usual);      /* from 0 */
/* Up to n numbers with '/' between; how many there are. */
int source_numbers(SourceText *t, const char *name, int n, double *numbers);
/* Adds an option to the settings. */
void source_setting(burn_source *s, const char *format, ...);

typedef int SourceOpen(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said);
SourceOpen source_mnist, source_cifar10, source_cifar100, source_csv, source_images, source_audio, source_of_text,
    source_sqlite, source_npz, source_safetensors;

/* Is there such a file in the folder, or with .gz behind its name? Then its path is there. */
enum { SOURCE_PATH = 1024 };
int source_file(const char *folder, const char *name, char path[SOURCE_PATH]);

#endif
