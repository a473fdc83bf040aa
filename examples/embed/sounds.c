// SPDX-License-Identifier: MIT OR Apache-2.0
// Sounds to learn from, made by arithmetic: a second each, 8 kHz, 16 bits, at any place, pitch and loudness, in noise.
//
//   sounds FOLDER KIND COUNT SEED     writes FOLDER/KIND/0.wav and so on
//
// Whistles: rise and fall go up and down by an octave, trill wavers, beeps are two of one pitch, hush is noise alone.
// Machines: hum is a motor of some speed, with its harmonics; rattle the same with a loose part.
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RATE = 8000 };
static const double pi = 3.14159265358979323846;

static double drawn(double lo, double hi)               // even, by a generator that is the same everywhere
{
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(state >> 40) / 0x1p24;
}

// The octaves above its pitch that a whistle is at, u of its length on; NAN: silent there.
static double octaves(const char *kind, double u)
{
    if (!strcmp(kind, "rise")) return u;
    if (!strcmp(kind, "fall")) return 1 - u;
    if (!strcmp(kind, "trill")) return 0.5 + 0.25 * sin(2 * pi * 6 * u);
    return u < 0.35 || u > 0.65 ? 0.5 : NAN;            // beeps
}

static void whistle(const char *kind, float *x)
{
    const double pitch = drawn(500, 1200), length = drawn(0.45, 0.7), start = drawn(0.05, 0.95 - length);
    const double loud = drawn(0.15, 0.5);
    double phase = 0;
    for (int i = 0; i < RATE; i++) {
        const double u = ((double)i / RATE - start) / length, up = u < 0 || u > 1 ? NAN : octaves(kind, u);
        if (isnan(up)) continue;
        phase += 2 * pi * pitch * exp2(up) / RATE;
        x[i] += (float)(loud * (sin(phase) + 0.3 * sin(2 * phase)));
    }
}

static void machine(const char *kind, float *x)
{
    const double speed = drawn(95, 105), loud = drawn(0.2, 0.3), loose = drawn(7, 13);
    for (int i = 0; i < RATE; i++) {
        const double t = (double)i / RATE, beat = fmod(t * loose, 1);
        for (int k = 1; k <= 6; k++) x[i] += (float)(loud / k * sin(2 * pi * speed * k * t));
        if (!strcmp(kind, "rattle")) x[i] += (float)(0.25 * exp(-beat * 12) * sin(2 * pi * 2300 * t));
    }
}

static void put(FILE *f, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) fputc((int)(value >> 8 * i & 255), f);
}

static int save(const char *path, const float *x)
{
    FILE *f = fopen(path, "wb");
    if (!f) return 1;
    fputs("RIFF", f), put(f, 36 + 2 * RATE, 4), fputs("WAVEfmt ", f), put(f, 16, 4), put(f, 1, 2), put(f, 1, 2);
    put(f, RATE, 4), put(f, 2 * RATE, 4), put(f, 2, 2), put(f, 16, 2), fputs("data", f), put(f, 2 * RATE, 4);
    for (int i = 0; i < RATE; i++) put(f, (uint32_t)(int32_t)lrint(32767 * fmax(-1, fmin(1, (double)x[i]))), 2);
    return fclose(f);
}

int main(int argc, char **argv)
{
    static float x[RATE];
    char path[512];
    if (argc != 5) return fprintf(stderr, "usage: sounds FOLDER KIND COUNT SEED\n"), 2;
    const char *folder = argv[1], *kind = argv[2];
    for (int i = 0; i < 1000 + 37 * atoi(argv[4]); i++) drawn(0, 1);
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, kind);
    if (mkdir(path, 0777) && errno != EEXIST) return perror(path), 1;
    for (int n = 0; n < atoi(argv[3]); n++) {
        const double noise = drawn(0.002, 0.02);
        for (int i = 0; i < RATE; i++) x[i] = (float)drawn(-noise, noise);
        if (!strcmp(kind, "hum") || !strcmp(kind, "rattle")) machine(kind, x);
        else if (strcmp(kind, "hush")) whistle(kind, x);
        snprintf(path, sizeof path, "%s/%s/%d.wav", folder, kind, n);
        if (save(path, x)) return perror(path), 1;
    }
    return 0;
}
