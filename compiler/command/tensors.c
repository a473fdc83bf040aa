// SPDX-License-Identifier: MIT OR Apache-2.0
// Reading tensors for verify, run and bench. In: a file, which is untrusted, and the type that the model wants. Out:
// a tensor.
//
//   .pb         ONNX's TensorProto (the importer reads it)
//   .npy        NumPy (npy.c)
//   .pgm .ppm   binary images (Netpbm P5, P6, 8 bits): floats are scaled to 0..1 or as --normalize says, integers kept;
//       N,C,H,W or N,H,W,C or flat
//   .png .jpg ...   what runtime/image.c of this build decodes, the same: red, green, blue, or gray where the model
//       has one channel
//   other       text: numbers between spaces, commas or brackets
//
// Images and text carry no types of their own, so they take the model's; its symbolic dimensions take the file's sizes.
#include "command.h"

#include "config.h"
#include "import/npy.h"
#include "runtime/image.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static Tensor *read_fail(const char *path, const char *fmt, ...) PRINTF_LIKE(2, 3);

static Tensor *read_fail(const char *path, const char *fmt, ...) {
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    Loc loc = { .file = path, .node = -1 };
    diag_error(&loc, "%s", line);
    return NULL;
}

bool tensor_fits(const Tensor *t, const Type *want) {
    if (t->type.dtype != want->dtype || t->type.rank != want->rank) return false;
    for (int i = 0; i < want->rank; i++)
        if (dim_is_const(want->dim[i]) && want->dim[i] != t->type.dim[i]) return false;
    return true;
}

// ---------------------------------------------------------------- images

typedef struct Image { int64_t channels, width, height, white; const uint8_t *pixels; } Image;

static const char *const decoded[] = { ".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".jp2" };

// The next number of a Netpbm header, past white space and comments; -1 if there is none.
static int64_t header_number(const File *f, size_t *at) {
    while (*at < f->size && (isspace(f->data[*at]) || f->data[*at] == '#')) {
        bool comment = f->data[*at] == '#';
        while (comment && *at < f->size && f->data[*at] != '\n') (*at)++;
        if (!comment) (*at)++;
    }
    int64_t v = -1;
    for (; *at < f->size && isdigit(f->data[*at]) && v < 1000000; (*at)++)
        v = (v < 0 ? 0 : v) * 10 + (f->data[*at] - '0');
    return v;
}

static bool parse_image(const File *f, Image *out) {
    if (f->size < 8 || f->data[0] != 'P' || (f->data[1] != '5' && f->data[1] != '6')) return false;
    size_t at = 2;
    out->channels = f->data[1] == '5' ? 1 : 3;
    out->width = header_number(f, &at);
    out->height = header_number(f, &at);
    out->white = header_number(f, &at);
    if (out->width < 1 || out->height < 1 || out->white < 1 || out->white > 255 || at >= f->size
        || !isspace(f->data[at]))
        return false;
    out->pixels = f->data + at + 1;
    return (int64_t)(f->size - at - 1) >= out->channels * out->width * out->height;
}

static bool dim_takes(Dim want, int64_t size) { return !dim_is_const(want) || want == size; }

// Which of the model's axes are channel, height and width: strides in the tensor of one step along each; false if
// none fits.
static bool image_layout(const Image *m, const Type *want, Type *out, int64_t stride[3]) {
    const int64_t first[3] = { m->channels, m->height, m->width }, last[3] = { m->height, m->width, m->channels };
    int lead = want->rank - 3;
    bool flat = want->rank == 1 || want->rank == 2, gray = m->channels == 1 && want->rank == 2;
    *out = *want;
    for (int i = 0; i < want->rank; i++) out->dim[i] = 1;
    stride[0] = m->width * m->height;
    stride[1] = m->width;
    stride[2] = 1;
    for (int i = 0; i < lead; i++)
        if (!dim_takes(want->dim[i], 1)) return false;
    if (lead == 0 || lead == 1) {
        const Dim *d = want->dim + lead;
        if (dim_takes(d[0], first[0]) && dim_takes(d[1], first[1]) && dim_takes(d[2], first[2])) {
            memcpy(out->dim + lead, first, sizeof first);
            return true;
        }
        if (!dim_takes(d[0], last[0]) || !dim_takes(d[1], last[1]) || !dim_takes(d[2], last[2])) return false;
        memcpy(out->dim + lead, last, sizeof last);
        stride[0] = 1;
        stride[1] = m->width * m->channels;
        stride[2] = m->channels;
        return true;
    }
    if (gray && dim_takes(want->dim[0], m->height) && dim_takes(want->dim[1], m->width)) {
        out->dim[0] = m->height;
        out->dim[1] = m->width;
        return true;
    }
    int64_t count = m->channels * m->width * m->height;
    out->dim[want->rank - 1] = count;
    return flat && dim_takes(want->dim[want->rank - 1], count) && (want->rank == 1 || dim_takes(want->dim[0], 1));
}

// By the decoder, in colour where that fits the model, else in gray.
static bool decode_image(Arena *a, const File *f, const Type *want, Image *out) {
    int64_t size[2], stride[3];
    Type type;
    if (burn_image_size(f->data, f->size, size) || size[0] < 1 || size[1] < 1) return false;
    *out = (Image){ .channels = 3, .width = size[1], .height = size[0], .white = 255 };
    Image gray = *out;
    gray.channels = 1;
    bool fits = image_layout(out, want, &type, stride);
    if (!fits && !image_layout(&gray, want, &type, stride)) return true;    // the caller says so
    if (!fits) *out = gray;
    uint8_t *pixels = arena_alloc(a, (size_t)(out->channels * out->width * out->height));
    out->pixels = pixels;
    int layout = out->channels == 1 ? BURN_IMAGE_GRAY : BURN_IMAGE_RGB;
    return !burn_image_decode(f->data, f->size, layout, out->height, out->width, pixels);
}

static void fill_image(Tensor *t, const Image *m, const int64_t stride[3], const Normalize *how) {
    bool real = dtype_is_float(t->type.dtype);
    double scale = real ? (how ? how->white : 1) / (double)m->white : 1;
    for (int64_t y = 0, at = 0; y < m->height; y++)
        for (int64_t x = 0; x < m->width; x++)
            for (int64_t c = 0; c < m->channels; c++, at++) {
                int64_t k = how && how->n > 1 ? c : 0;
                double v = m->pixels[at] * scale;
                if (real && how) v = (v - how->mean[k]) / how->scale[k];
                tensor_set_f(t, c * stride[0] + y * stride[1] + x * stride[2], v);
            }
}

static Tensor *image_read(Arena *a, const Graph *g, const char *path, const Type *want, const Normalize *how) {
    File f;
    if (!file_map(&f, path)) return NULL;
    Image m;
    Type type;
    int64_t stride[3];
    Tensor *t = NULL;
    if (!want) read_fail(path, "an image has no type of its own; use .npy or .pb here");
    else if (!parse_image(&f, &m) && !decode_image(a, &f, want, &m))
        read_fail(path, "not an image that this build decodes (binary PGM or PPM of 8 bits, %s), or cut short",
            IMAGE_FORMATS);
    else if (!image_layout(&m, want, &type, stride))
        read_fail(path, "the image is %lld x %lld with %lld channel%s, the model wants %s", (long long)m.width,
            (long long)m.height, (long long)m.channels, m.channels > 1 ? "s" : "", type_text(a, g, want));
    else if (dtype_class(type.dtype) != CLASS_FLOAT && !dtype_is_int(type.dtype))
        read_fail(path, "an image cannot be %s", dtype_name(type.dtype));
    else if (how && how->n > 1 && how->n != m.channels)
        read_fail(path, "--normalize has numbers for %d channels, the image has %lld", how->n, (long long)m.channels);
    else if (how && !dtype_is_float(type.dtype))
        read_fail(path, "--normalize is for inputs of floats; this one is %s and takes 0 to %lld as they are",
            dtype_name(type.dtype), (long long)m.white);
    else fill_image(t = tensor_new(a, type), &m, stride, how);
    file_unmap(&f);
    return t;
}

// ---------------------------------------------------------------- text

// The type with its one symbolic dimension (if any) chosen so that it has `count` elements; false if that cannot be.
static bool type_of_count(const Type *want, int64_t count, Type *out) {
    int64_t known = 1;
    int open = -1;
    *out = *want;
    for (int i = 0; i < want->rank; i++) {
        if (dim_is_const(want->dim[i])) known *= want->dim[i];
        else if (open < 0) open = i;
        else out->dim[i] = 1;
    }
    if (open < 0) return known == count;
    if (known == 0 || count % known) return false;
    out->dim[open] = count / known;
    return true;
}

typedef VEC(const char *) Words;

static void split_words(Arena *a, char *text, Words *out) {
    for (char *word = strtok(text, " \t\r\n,;[](){}"); word; word = strtok(NULL, " \t\r\n,;[](){}"))
        VEC_PUSH(a, *out, word);
}

static bool set_word(Tensor *t, int64_t i, const char *word) {
    char *end = NULL;
    DClass class = dtype_class(t->type.dtype);
    errno = 0;
    if (t->type.dtype == DT_STRING) {
        ((const char **)t->data)[i] = word;
        return true;
    }
    if (t->type.dtype == DT_BOOL && (!strcasecmp(word, "true") || !strcasecmp(word, "false"))) {
        tensor_set_i(t, i, tolower((unsigned char)*word) == 't');
        return true;
    }
    if (class == CLASS_FLOAT) tensor_set_f(t, i, strtod(word, &end));
    else if (class == CLASS_UINT) tensor_set_i(t, i, (int64_t)strtoull(word, &end, 10));
    else if (class == CLASS_INT || class == CLASS_BOOL) tensor_set_i(t, i, strtoll(word, &end, 10));
    else return false;
    return end != word && !*end && (class == CLASS_FLOAT || errno == 0);
}

static Tensor *text_read(Arena *a, const Graph *g, const char *path, const Type *want) {
    if (!want) return read_fail(path, "numbers in text have no type of their own; use .npy or .pb here");
    File f;
    if (!file_map(&f, path)) return NULL;
    char *text = arena_strndup(a, (const char *)f.data, f.size);
    Words words = { 0 };
    if (strlen(text) == f.size) split_words(a, text, &words);
    else words.n = -1;
    file_unmap(&f);
    if (words.n < 0) return read_fail(path, "neither .npy, .pb or an image by its name, nor text");
    Type type;
    if (!type_of_count(want, words.n, &type))
        return read_fail(path, "%d values do not make a %s", words.n, type_text(a, g, want));
    Tensor *t = tensor_new(a, type);
    for (int i = 0; i < words.n; i++)
        if (!set_word(t, i, words.at[i]))
            return read_fail(path, "value %d, '%.40s', is not a %s", i, words.at[i], dtype_name(type.dtype));
    return t;
}

// ---------------------------------------------------------------- any

static bool has_suffix(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcasecmp(path + n - m, suffix) == 0;
}

static bool is_image(const char *path) {
    bool found = has_suffix(path, ".pgm") || has_suffix(path, ".ppm");
    for (size_t i = 0; i < COUNT(decoded); i++) found = found || has_suffix(path, decoded[i]);
    return found;
}

// NumPy's defaults are f64 and i64; what the model wants instead is the same kind of number.
static Tensor *tensor_convert(Arena *a, const char *path, Tensor *t, DType to) {
    DType from = t->type.dtype;
    bool floats = dtype_is_float(from) && dtype_is_float(to), ints = dtype_is_int(from) && dtype_is_int(to);
    if (from == to || (!floats && !ints)) return t;
    Loc loc = { .file = path, .node = -1 };
    diag_note(&loc, "converted from %s to %s", dtype_name(from), dtype_name(to));
    Type type = t->type;
    type.dtype = to;
    Tensor *out = tensor_new(a, type);
    for (int64_t i = 0, n = type_count(&type); i < n; i++) {
        if (floats) tensor_set_f(out, i, tensor_get_f(t, i));
        else tensor_set_i(out, i, tensor_get_i(t, i));
    }
    return out;
}

static Tensor *pb_read(Arena *a, const char *path) {
    EndData data;
    return end_data_read(a, path, NULL, &data) ? data.at[0] : NULL;
}

Tensor *tensor_read(Arena *a, const Graph *g, const char *path, const Type *want, const Normalize *normalize) {
    if (is_image(path)) return image_read(a, g, path, want, normalize);
    bool pb = has_suffix(path, ".pb"), npy = has_suffix(path, ".npy");
    if (!pb && !npy) return text_read(a, g, path, want);
    Tensor *t = pb ? pb_read(a, path) : npy_read(a, path);
    if (t && want && npy) t = tensor_convert(a, path, t, want->dtype);
    if (t && want && !tensor_fits(t, want))
        return read_fail(path, "holds %s, the model wants %s", type_text(a, NULL, &t->type), type_text(a, g, want));
    return t;
}

// ---------------------------------------------------------------- writing

static const char *file_name(Arena *a, const char *name) {
    char *s = arena_strdup(a, *name ? name : "output");
    for (char *c = s; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c)) *c = '_';
    if (*s == '.') *s = '_';
    return s;
}

bool tensor_write(Arena *a, const char *folder, const char *name, const Tensor *t) {
    if (mkdir(folder, 0777) && errno != EEXIST) {
        diag_error_as(EXIT_IO, NULL, "cannot make the folder '%s': %s", folder, strerror(errno));
        return false;
    }
    return npy_write(a, arena_printf(a, "%s/%s.npy", folder, file_name(a, name)), t);
}
