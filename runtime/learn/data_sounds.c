/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folders of sounds. In: WAV files (RIFF; Microsoft, "Multimedia Programming Interface and Data Specifications", and
 * WAVEFORMATEXTENSIBLE). Out: samples of one rate and length, or their log-mel spectra.
 *
 * Resampling is by a sinc of 16 zero crossings to each side under a Hann window, cut off at the lower of the two
 * rates' halves. Spectra come from sums over the window, a table of its cosines and sines for each frequency: a
 * second of sound takes some million multiply-adds. */
#include "data_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
typedef struct Sounds {
    burn_sounds how;
    DataTree *tree;
    int64_t frames, bins;
    float *wave;                                           /* [bins][window][2]: the window times cos, sin */
    float *triangle;                                       /* [mels][bins] */
} Sounds;

static void sounds_free(Sounds *s)
{
    data_tree_close(s->tree);
    free(s->wave);
    free(s->triangle);
    free(s);
}

static void sounds_end(burn_dataset *data)
{
    sounds_free(data->own);
}

/* ---- WAV */
typedef struct Wav {
    int format, channels, bits;                            /* format: 1 integers, 3 floats */
    int64_t rate, frames;
    const uint8_t *samples;
} Wav;

static uint32_t little_endian(const uint8_t *p, int bytes)
{
    uint32_t x = 0;
    for (int i = 0; i < bytes; i++) x |= (uint32_t)p[i] << 8 * i;
    return x;
}

/* Finds the samples; false: no WAV file, or of a kind that is not read. */
static int parse_wav(const uint8_t *file, size_t bytes, Wav *w)
{
    *w = (Wav){ 0 };
    if (bytes < 12 || memcmp(file, "RIFF", 4) || memcmp(file + 8, "WAVE", 4)) return 0;
    for (size_t at = 12; at + 8 <= bytes;) {
        const uint8_t *chunk = file + at + 8;
        size_t size = little_endian(file + at + 4, 4), left = bytes - at - 8, here = size < left ? size : left;
        if (!memcmp(file + at, "fmt ", 4) && here >= 16) {
            w->format = (int)little_endian(chunk, 2);
            w->channels = (int)little_endian(chunk + 2, 2);
            w->rate = little_endian(chunk + 4, 4);
            w->bits = (int)little_endian(chunk + 14, 2);
            if (w->format == 0xfffe && here >= 26) w->format = (int)little_endian(chunk + 24, 2);
        } else if (!memcmp(file + at, "data", 4) && w->channels) {
            int whole = w->format == 1 && (w->bits == 8 || w->bits == 16 || w->bits == 24 || w->bits == 32);
            if (!w->rate || (!whole && !(w->format == 3 && w->bits == 32))) return 0;
            w->samples = chunk;
            w->frames = (int64_t)(here / (size_t)(w->channels * w->bits / 8));
            return 1;
        }
        if (size > left) return 0;
        at += 8 + size + (size & 1);
    }
    return 0;
}

static double sample_of(const Wav *w, int64_t i)
{
    const uint8_t *p = w->samples + i * (w->bits / 8);
    uint32_t bits = little_endian(p, w->bits / 8);
    float x;
    if (w->format == 3) return memcpy(&x, &bits, 4), (double)x;
    if (w->bits == 8) return ((double)bits - 128) / 128;
    return (double)(int32_t)(bits << (32 - w->bits)) * 0x1p-31;
}

/* The mean of the channels; 0 outside. */
static double frame_of(const Wav *w, int64_t i)
{
    double sum = 0;
    if (i < 0 || i >= w->frames) return 0;
    for (int c = 0; c < w->channels; c++) sum += sample_of(w, i * w->channels + c);
    return sum / w->channels;
}

static double resampled(const double *sound, int64_t n, double at, double cut)
{
    double reach = 16 / cut, sum = 0;
    int64_t first = (int64_t)ceil(fmax(at - reach, 0)), last = (int64_t)floor(fmin(at + reach, (double)(n - 1)));
    for (int64_t i = first; i <= last; i++) {
        double d = (double)i - at, x = pi * cut * d, window = 0.5 + 0.5 * cos(pi * d / reach);
        sum += sound[i] * cut * window * (fabs(x) < 1e-9 ? 1 : sin(x) / x);
    }
    return sum;
}

/* The file's sound at `rate`, `samples` of them. */
static int read_sound(const char *path, const burn_sounds *how, float *to, burn_said *said)
{
    size_t bytes;
    Wav w;
    uint8_t *file = data_read(path, &bytes, said);
    if (!file) return BURN_EIO;
    int ok = parse_wav(file, bytes, &w);
    double *sound = ok ? malloc((size_t)(w.frames + 1) * sizeof *sound) : NULL;
    for (int64_t i = 0; sound && i < w.frames; i++) sound[i] = frame_of(&w, i);
    free(file);
    if (!ok) return data_said(said, BURN_EFORMAT, "%s: is no WAV file of samples that can be read", path);
    if (!sound) return data_said(said, BURN_ENOMEM, "no memory");
    double step = (double)w.rate / (double)how->rate, cut = step > 1 ? 1 / step : 1;
    for (int64_t i = 0; i < how->samples; i++) {
        double at = (double)i * step;
        int inside = at < (double)w.frames;
        to[i] = !inside ? 0 : w.rate == how->rate ? (float)sound[i] : (float)resampled(sound, w.frames, at, cut);
    }
    free(sound);
    return BURN_OK;
}

/* The first file's rate and number of samples, where they are not told. */
static int usual_sizes(const char *path, burn_sounds *how, burn_said *said)
{
    size_t bytes;
    Wav w;
    uint8_t *file = data_read(path, &bytes, said);
    if (!file) return BURN_EIO;
    int ok = parse_wav(file, bytes, &w);
    free(file);
    if (!ok) return data_said(said, BURN_EFORMAT, "%s: is no WAV file of samples that can be read", path);
    if (!how->rate) how->rate = w.rate;
    if (!how->samples) how->samples = (int64_t)((double)w.frames * (double)how->rate / (double)w.rate);
    return BURN_OK;
}

/* ---- spectra */

static double mel_of(double f)
{
    return 2595 * log10(1 + f / 700);
}

static double frequency_of(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

static int make_tables(Sounds *s)
{
    int64_t n = s->how.window, mels = s->how.mels;
    double most = mel_of((double)s->how.rate / 2);
    s->bins = n / 2 + 1;
    s->frames = 1 + (s->how.samples - n) / s->how.hop;
    s->wave = malloc((size_t)(s->bins * n * 2) * sizeof *s->wave);
    s->triangle = malloc((size_t)(mels * s->bins) * sizeof *s->triangle);
    if (!s->wave || !s->triangle) return 0;
    for (int64_t b = 0; b < s->bins; b++)
        for (int64_t i = 0; i < n; i++) {
            double hann = 0.5 - 0.5 * cos(2 * pi * (double)i / (double)n);
            double angle = 2 * pi * (double)(b * i % n) / (double)n;
            s->wave[(b * n + i) * 2] = (float)(hann * cos(angle));
            s->wave[(b * n + i) * 2 + 1] = (float)(hann * sin(angle));
        }
    for (int64_t m = 0; m < mels; m++) {
        double corner[3];
        for (int k = 0; k < 3; k++) corner[k] = frequency_of(most * (double)(m + k) / (double)(mels + 1));
        for (int64_t b = 0; b < s->bins; b++) {
            double f = (double)b * (double)s->how.rate / (double)n;
            double up = (f - corner[0]) / (corner[1] - corner[0]), down = (corner[2] - f) / (corner[2] - corner[1]);
            s->triangle[m * s->bins + b] = (float)fmax(0, fmin(up, down));
        }
    }
    return 1;
}

static void spectrum(const Sounds *s, const float *sound, double *power)
{
    for (int64_t b = 0; b < s->bins; b++) {
        const float *wave = s->wave + b * s->how.window * 2;
        float re = 0, im = 0;
        for (int64_t i = 0; i < s->how.window; i++) {
            re += sound[i] * wave[2 * i];
            im += sound[i] * wave[2 * i + 1];
        }
        power[b] = (double)re * (double)re + (double)im * (double)im;
    }
}

static int mel_spectra(const Sounds *s, const float *sound, float *mel)
{
    double *power = malloc((size_t)s->bins * sizeof *power);
    for (int64_t t = 0; power && t < s->frames; t++) {
        spectrum(s, sound + t * s->how.hop, power);
        for (int64_t m = 0; m < s->how.mels; m++) {
            double sum = 0;
            for (int64_t b = 0; b < s->bins; b++) sum += (double)s->triangle[m * s->bins + b] * power[b];
            mel[m * s->frames + t] = (float)log(fmax(sum, 1e-10));
        }
    }
    free(power);
    return power != NULL;
}

static int sounds_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Sounds *s = data->own;
    (void)seed;
    float *sound = s->how.mels ? malloc((size_t)s->how.samples * sizeof *sound) : to[0];
    if (!sound) return data_said(said, BURN_ENOMEM, "no memory");
    int error = read_sound(s->tree->paths[i], &s->how, sound, said);
    if (!error && s->how.mels && !mel_spectra(s, sound, to[0])) error = data_said(said, BURN_ENOMEM, "no memory");
    if (sound != to[0]) free(sound);
    if (!error && data->field_count > 1) *(int64_t *)to[1] = s->tree->labels[i];
    return error;
}

static const char *sounds_path(const burn_dataset *data, int64_t i)
{
    return ((const Sounds *)data->own)->tree->paths[i];
}

int burn_data_sounds(const char *folder, const burn_sounds *how, burn_dataset **data, burn_said *said)
{
    int error;
    if (!folder || !how || how->rate < 0 || how->samples < 0 || how->mels < 0) return BURN_EINVAL;
    Sounds *s = calloc(1, sizeof *s);
    if (!s) return data_said(said, BURN_ENOMEM, "no memory");
    s->how = *how;
    s->tree = data_tree_open(folder, how->like, &error, said);
    if (s->tree && (!how->rate || !how->samples)) error = usual_sizes(s->tree->paths[0], &s->how, said);
    int fits = !how->mels || (how->hop > 0 && how->window > 1 && how->window <= s->how.samples);
    if (!error && !fits)
        error = data_said(said, BURN_EINVAL, "a window of %lld samples, every %lld, of %lld", (long long)how->window,
                          (long long)how->hop, (long long)s->how.samples);
    if (!error && how->mels && !make_tables(s)) error = data_said(said, BURN_ENOMEM, "no memory");
    if (error) return sounds_free(s), error;
    burn_dataset model = { .field_count = 1, .path = sounds_path };
    int64_t mel[2] = { how->mels, s->frames };
    model.fields[0] = how->mels ? burn_field_of("mel", BURN_FLOAT, 2, mel)
                                : burn_field_of("sound", BURN_FLOAT, 1, &s->how.samples);
    data_tree_fields(s->tree, &model);
    return data_make(&model, s->tree->count, s, sounds_get, sounds_end, data, said);
}
