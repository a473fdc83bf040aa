/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Images from their files' bytes: image.h says what and how.
 *
 * In: bytes. Out: rows of red, green and blue, then what the caller wants of them. The idea: every format is one
 * function over the same Target, which is called twice, for the size alone and for the pixels of an image whose
 * size the caller already has room for; so what a file claims allocates nothing. */
#include "image.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NO_MEMORY = -2, BAD_FORMAT = -6, SIZE_ONLY = 1 };    /* -2, -6: BURN_ENOMEM, BURN_EFORMAT */
enum { LONGEST_SIDE = 1 << 20 };

typedef struct Bytes { const uint8_t *at; size_t n; } Bytes;
typedef struct Target { int64_t height, width; uint8_t *rgb; } Target;     /* rgb NULL: only the size is asked for */

/* The file has this size. OK: go on and fill t->rgb; else what the format's function is to return. */
static int meet(Target *t, int64_t height, int64_t width)
{
    if (height < 1 || width < 1 || height > LONGEST_SIDE || width > LONGEST_SIDE) return BAD_FORMAT;
    if (t->rgb) return t->height == height && t->width == width ? OK : BAD_FORMAT;
    t->height = height;
    t->width = width;
    return SIZE_ONLY;
}

static uint8_t *row_of(const Target *t, int64_t y) { return t->rgb + (size_t)y * (size_t)t->width * 3; }

static uint8_t scale(uint64_t v, uint64_t largest) { return (uint8_t)((v * 255 + largest / 2) / largest); }

static bool begins(Bytes in, const char *magic, size_t n) { return in.n >= n && !memcmp(in.at, magic, n); }

/* ---------------------------------------------------------------- BMP
 * Little-endian: Microsoft's BITMAPCOREHEADER, BITMAPINFOHEADER and later. */

static uint32_t u16_at(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t u32_at(const uint8_t *p) { return u16_at(p) | u16_at(p + 2) << 16; }

typedef struct Bmp {
    int64_t height, width;
    bool down;
    uint32_t bits, mask[3];
    const uint8_t *palette;
    size_t entry, colors;
    const uint8_t *pixels;
    size_t stride;
} Bmp;

static bool bmp_masks(Bmp *b, Bytes in, uint32_t header, uint32_t compression)
{
    static const uint32_t usual[2][3] = { { 0x7c00, 0x3e0, 0x1f }, { 0xff0000, 0xff00, 0xff } };
    if (compression == 0) {
        memcpy(b->mask, usual[b->bits != 16], sizeof b->mask);
        return true;
    }
    if ((compression != 3 && compression != 6) || (b->bits != 16 && b->bits != 32) || in.n < 66 || header < 40)
        return false;
    for (int i = 0; i < 3; i++)
        if (!(b->mask[i] = u32_at(in.at + 54 + 4 * i))) return false;
    return true;
}

static bool bmp_header(Bmp *b, Bytes in)
{
    if (in.n < 26) return false;
    uint32_t offset = u32_at(in.at + 10), header = u32_at(in.at + 14), compression = 0;
    bool core = header == 12;
    if ((!core && header < 40) || header > in.n - 14 || offset > in.n) return false;
    b->width = core ? (int64_t)u16_at(in.at + 18) : (int32_t)u32_at(in.at + 18);
    b->height = core ? (int64_t)u16_at(in.at + 20) : (int32_t)u32_at(in.at + 22);
    b->bits = u16_at(in.at + (core ? 24 : 28));
    b->colors = 0;
    if (!core) {
        compression = u32_at(in.at + 30);
        b->colors = u32_at(in.at + 46);
    }
    b->down = b->height < 0;
    if (b->down) b->height = -b->height;
    b->entry = core ? 3 : 4;
    b->palette = in.at + 14 + header;
    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24 && b->bits != 32) return false;
    if (b->bits <= 8) {
        if (compression) return false;                  /* run lengths */
        if (!b->colors || b->colors > (size_t)1 << b->bits) b->colors = (size_t)1 << b->bits;
        if (b->colors * b->entry > in.n - 14 - header) return false;
    } else if (!bmp_masks(b, in, header, compression)) return false;
    b->pixels = in.at + offset;
    if (b->width < 1 || b->width > LONGEST_SIDE || b->height < 1 || b->height > LONGEST_SIDE) return false;
    b->stride = ((size_t)b->width * b->bits + 31) / 32 * 4;
    return b->stride * (size_t)b->height <= in.n - offset;
}

static uint8_t bmp_component(uint32_t v, uint32_t mask)
{
    while (!(mask & 1)) {
        mask >>= 1;
        v >>= 1;
    }
    return scale(v & mask, mask);
}

static int read_bmp(Bytes in, Target *t)
{
    Bmp b;
    int state = bmp_header(&b, in) ? meet(t, b.height, b.width) : BAD_FORMAT;
    if (state) return state;
    for (int64_t y = 0; y < b.height; y++) {
        const uint8_t *from = b.pixels + (size_t)(b.down ? y : b.height - 1 - y) * b.stride;
        uint8_t *to = row_of(t, y);
        for (int64_t x = 0; x < b.width; x++, to += 3) {
            size_t bit = (size_t)x * b.bits;
            const uint8_t *p = from + bit / 8;
            if (b.bits <= 8) {
                size_t i = (size_t)(*p >> (8 - b.bits - bit % 8)) & ((1u << b.bits) - 1);
                if (i >= b.colors) return BAD_FORMAT;
                for (int c = 0; c < 3; c++) to[c] = b.palette[i * b.entry + 2 - (size_t)c];
            } else {
                uint32_t v = u16_at(p) | (b.bits > 16 ? (uint32_t)p[2] << 16 : 0)
                    | (b.bits > 24 ? (uint32_t)p[3] << 24 : 0);
                for (int c = 0; c < 3; c++) to[c] = bmp_component(v, b.mask[c]);
            }
        }
    }
    return OK;
}

/* ---------------------------------------------------------------- PNM: Netpbm's P1 to P6 */

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The next number, past white space and comments; false if there is none below 2^20. */
static bool pnm_number(Bytes in, size_t *at, int64_t *out)
{
    while (*at < in.n && (is_space(in.at[*at]) || in.at[*at] == '#')) {
        if (in.at[*at] == '#')
            while (*at < in.n && in.at[*at] != '\n') (*at)++;
        else (*at)++;
    }
    size_t first = *at;
    for (*out = 0; *at < in.n && in.at[*at] >= '0' && in.at[*at] <= '9'; (*at)++) {
        *out = *out * 10 + (in.at[*at] - '0');
        if (*out >= 1 << 20) return false;
    }
    return *at > first;
}

/* One sample: of a text a number (of a bitmap one digit), else one or two bytes. */
static bool pnm_sample(Bytes in, size_t *at, bool text, bool bitmap, int64_t largest, int64_t *out)
{
    if (text && !bitmap) return pnm_number(in, at, out) && *out <= largest;
    while (text && *at < in.n && is_space(in.at[*at])) (*at)++;
    size_t bytes = largest > 255 ? 2 : 1;
    if (in.n - *at < bytes) return false;
    *out = bytes == 2 ? in.at[*at] << 8 | in.at[*at + 1] : text ? in.at[*at] - '0' : in.at[*at];
    *at += bytes;
    return *out >= 0 && *out <= largest;
}

static int read_pnm(Bytes in, Target *t)
{
    int kind = in.at[1] - '0'; /* 1 to 3: text; 4 to 6: bytes */
    bool text = kind <= 3, bitmap = kind == 1 || kind == 4, color = kind == 3 || kind == 6;
    size_t at = 2;
    int64_t width, height, largest = 1, v = 0;
    if (!pnm_number(in, &at, &width) || !pnm_number(in, &at, &height)) return BAD_FORMAT;
    if (!bitmap && (!pnm_number(in, &at, &largest) || largest < 1 || largest > 65535)) return BAD_FORMAT;
    if (!text && (at >= in.n || !is_space(in.at[at++]))) return BAD_FORMAT;
    int state = meet(t, height, width);
    if (state) return state;
    for (int64_t y = 0; y < height; y++) {
        uint8_t *to = row_of(t, y);
        for (int64_t x = 0; x < width; x++, to += 3) {
            for (int c = 0; c < (color ? 3 : 1); c++) {
                if (kind == 4) {
                    if (at >= in.n) return BAD_FORMAT;
                    v = in.at[at] >> (7 - x % 8) & 1;
                    if (x % 8 == 7 || x + 1 == width) at++;
                } else if (!pnm_sample(in, &at, text, bitmap, largest, &v)) return BAD_FORMAT;
                to[c] = bitmap ? (v ? 0 : 255) : scale((uint64_t)v, (uint64_t)largest);
            }
            if (!color) to[1] = to[2] = to[0];
        }
    }
    return OK;
}

/* ---------------------------------------------------------------- JPEG: libjpeg */

#ifdef BURN_IMAGE_JPEG
#include <jerror.h>
#include <jpeglib.h>

typedef struct JpegErrors { struct jpeg_error_mgr base; jmp_buf out; } JpegErrors;

static void jpeg_failed(j_common_ptr c) { longjmp(((JpegErrors *)c->err)->out, 1); }

static void jpeg_message(j_common_ptr c, int level)
{
    if (level < 0 && c->err->msg_code == JWRN_JPEG_EOF) jpeg_failed(c);      /* cut short */
}

static int jpeg_rows(struct jpeg_decompress_struct *c, Bytes in, Target *t)
{
    jpeg_mem_src(c, in.at, (unsigned long)in.n);
    jpeg_read_header(c, TRUE);
    int state = meet(t, c->image_height, c->image_width);
    if (state) return state;
    c->out_color_space = JCS_RGB;
    jpeg_start_decompress(c);
    while (c->output_scanline < c->output_height) {
        JSAMPROW row = row_of(t, c->output_scanline);
        jpeg_read_scanlines(c, &row, 1);
    }
    jpeg_finish_decompress(c);
    return OK;
}

static int read_jpeg(Bytes in, Target *t)
{
    struct jpeg_decompress_struct c;
    JpegErrors errors;
    volatile int state = BAD_FORMAT;
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jpeg_failed;
    errors.base.emit_message = jpeg_message;
    if (!setjmp(errors.out)) {
        jpeg_create_decompress(&c);
        state = jpeg_rows(&c, in, t);
    }
    jpeg_destroy_decompress(&c);
    return state;
}
#endif

/* ---------------------------------------------------------------- PNG: libpng */

#ifdef BURN_IMAGE_PNG
#include <png.h>

static void png_take(png_structp p, png_bytep to, png_size_t n)
{
    Bytes *in = png_get_io_ptr(p);
    if (n > in->n) png_error(p, "cut short");
    memcpy(to, in->at, n);
    in->at += n;
    in->n -= n;
}

static void png_failed(png_structp p, png_const_charp what)
{
    (void)what;
    png_longjmp(p, 1);
}

static void png_silent(png_structp p, png_const_charp what) { (void)p, (void)what; }

static int png_rows(png_structp p, png_infop info, Target *t, png_bytep *rows)
{
    png_read_info(p, info);
    int state = meet(t, png_get_image_height(p, info), png_get_image_width(p, info));
    if (state) return state;
    png_set_expand(p);
    png_set_strip_16(p);
    png_set_gray_to_rgb(p);
    png_set_strip_alpha(p);
    png_set_interlace_handling(p);
    png_read_update_info(p, info);
    if (png_get_rowbytes(p, info) != (size_t)t->width * 3) return BAD_FORMAT;
    for (int64_t y = 0; y < t->height; y++) rows[y] = row_of(t, y);
    png_read_image(p, rows);
    png_read_end(p, NULL);
    return OK;
}

static int read_png(Bytes in, Target *t)
{
    png_structp p = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, png_failed, png_silent);
    png_infop info = p ? png_create_info_struct(p) : NULL;
    png_bytep *rows = t->rgb ? malloc((size_t)t->height * sizeof *rows) : NULL;
    volatile int state = info && (rows || !t->rgb) ? BAD_FORMAT : NO_MEMORY;
    if (state == BAD_FORMAT && !setjmp(png_jmpbuf(p))) {
        png_set_read_fn(p, &in, png_take);
        state = png_rows(p, info, t, rows);
    }
    if (p) png_destroy_read_struct(&p, &info, NULL);
    free(rows);
    return state;
}
#endif

/* ---------------------------------------------------------------- TIFF: libtiff */

#ifdef BURN_IMAGE_TIFF
#include <tiffio.h>

typedef struct TiffFile { Bytes in; size_t at; } TiffFile;

static tmsize_t tiff_take(thandle_t handle, void *to, tmsize_t n)
{
    TiffFile *f = handle;
    size_t left = f->at < f->in.n ? f->in.n - f->at : 0, taken = (size_t)n < left ? (size_t)n : left;
    memcpy(to, f->in.at + f->at, taken);
    f->at += taken;
    return (tmsize_t)taken;
}

static tmsize_t tiff_put(thandle_t handle, void *from, tmsize_t n) { return (void)handle, (void)from, (void)n, 0; }
static int tiff_close(thandle_t handle) { return (void)handle, 0; }
static toff_t tiff_size(thandle_t handle) { return ((TiffFile *)handle)->in.n; }

static toff_t tiff_seek(thandle_t handle, toff_t offset, int whence)
{
    TiffFile *f = handle;
    f->at = (size_t)offset + (whence == SEEK_CUR ? f->at : whence == SEEK_END ? f->in.n : 0);
    return f->at;
}

#if TIFFLIB_VERSION >= 20221213
static int tiff_silent(TIFF *file, void *user, const char *module, const char *format, va_list ap) {
    return (void)file, (void)user, (void)module, (void)format, (void)ap, 1;
}

static TIFF *tiff_open(TiffFile *f)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, tiff_silent, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, tiff_silent, NULL);
    TIFF *file = TIFFClientOpenExt(
        "image", "rm", f, tiff_take, tiff_put, tiff_seek, tiff_close, tiff_size, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return file;
}
#else
static TIFF *tiff_open(TiffFile *f) {
    return TIFFClientOpen("image", "rm", f, tiff_take, tiff_put, tiff_seek, tiff_close, tiff_size, NULL, NULL);
}
#endif

static int tiff_pixels(TIFF *file, Target *t)
{
    uint32_t width = 0, height = 0;
    if (!TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &width) || !TIFFGetField(file, TIFFTAG_IMAGELENGTH, &height))
        return BAD_FORMAT;
    int state = meet(t, height, width);
    if (state) return state;
    uint32_t *pixels = malloc((size_t)width * height * sizeof *pixels);
    if (!pixels) return NO_MEMORY;
    bool ok = TIFFReadRGBAImageOriented(file, width, height, pixels, ORIENTATION_TOPLEFT, 1) != 0;
    for (size_t i = 0; ok && i < (size_t)width * height; i++) {
        t->rgb[3 * i] = (uint8_t)TIFFGetR(pixels[i]);
        t->rgb[3 * i + 1] = (uint8_t)TIFFGetG(pixels[i]);
        t->rgb[3 * i + 2] = (uint8_t)TIFFGetB(pixels[i]);
    }
    free(pixels);
    return ok ? OK : BAD_FORMAT;
}

static int read_tiff(Bytes in, Target *t)
{
    TiffFile f = { in, 0 };
    TIFF *file = tiff_open(&f);
    int state = file ? tiff_pixels(file, t) : BAD_FORMAT;
    if (file) TIFFClose(file);
    return state;
}
#endif

/* ---------------------------------------------------------------- WebP: libwebp */

#ifdef BURN_IMAGE_WEBP
#include <webp/decode.h>

static int read_webp(Bytes in, Target *t)
{
    int width, height;
    int state = WebPGetInfo(in.at, in.n, &width, &height) ? meet(t, height, width) : BAD_FORMAT;
    if (state) return state;
    return WebPDecodeRGBInto(in.at, in.n, t->rgb, (size_t)width * (size_t)height * 3, width * 3) ? OK : BAD_FORMAT;
}
#endif

/* ---------------------------------------------------------------- JPEG 2000: OpenJPEG */

#ifdef BURN_IMAGE_JPEG2000
#include <openjpeg.h>

static OPJ_SIZE_T j2k_take(void *to, OPJ_SIZE_T n, void *user)
{
    Bytes *in = user;
    if (!in->n) return (OPJ_SIZE_T)-1;
    if (n > in->n) n = in->n;
    memcpy(to, in->at, n);
    in->at += n;
    in->n -= n;
    return n;
}

static OPJ_OFF_T j2k_skip(OPJ_OFF_T n, void *user)
{
    Bytes *in = user;
    if (n < 0 || !in->n) return -1;
    size_t skipped = (size_t)n < in->n ? (size_t)n : in->n;
    in->at += skipped;
    in->n -= skipped;
    return (OPJ_OFF_T)skipped;
}

static void j2k_silent(const char *what, void *user) { (void)what, (void)user; }

static uint8_t j2k_sample(const opj_image_comp_t *c, size_t i)
{
    int64_t v = (int64_t)c->data[i] + (c->sgnd ? (int64_t)1 << (c->prec - 1) : 0),
            largest = ((int64_t)1 << c->prec) - 1;
    return scale((uint64_t)(v < 0 ? 0 : v > largest ? largest : v), (uint64_t)largest);
}

static uint8_t to_byte(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5); }

/* Gray, gray and alpha, RGB, YCbCr (ITU-T T.871), or one of these and alpha; all components of one size. */
static int j2k_pixels(const opj_image_t *image, Target *t)
{
    size_t n = (size_t)t->height * (size_t)t->width;
    unsigned used = image->numcomps < 3 ? 1 : 3;
    for (unsigned c = 0; c < used; c++) {
        const opj_image_comp_t *comp = &image->comps[c];
        if (!comp->data || comp->w != t->width || comp->h != t->height || comp->prec < 1 || comp->prec > 31)
            return BAD_FORMAT;
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t *to = t->rgb + 3 * i;
        for (unsigned c = 0; c < 3; c++) to[c] = j2k_sample(&image->comps[used == 1 ? 0 : c], i);
        if (image->color_space != OPJ_CLRSPC_SYCC || used == 1) continue;
        double y = to[0], b = to[1] - 128.0, r = to[2] - 128.0;
        to[0] = to_byte(y + 1.402 * r);
        to[1] = to_byte(y - 0.344136 * b - 0.714136 * r);
        to[2] = to_byte(y + 1.772 * b);
    }
    return OK;
}

static int j2k_image(opj_codec_t *codec, opj_stream_t *stream, Target *t)
{
    opj_dparameters_t parameters;
    opj_image_t *image = NULL;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_info_handler(codec, j2k_silent, NULL);
    opj_set_warning_handler(codec, j2k_silent, NULL);
    opj_set_error_handler(codec, j2k_silent, NULL);
    bool ok = opj_setup_decoder(codec, &parameters) && opj_read_header(stream, codec, &image) && image->numcomps > 0;
    int state = ok ? meet(t, (int64_t)image->y1 - image->y0, (int64_t)image->x1 - image->x0) : BAD_FORMAT;
    if (!state)
        state = opj_decode(codec, stream, image) && opj_end_decompress(codec, stream) ? j2k_pixels(image, t) :
                                                                                        BAD_FORMAT;
    opj_image_destroy(image);
    return state;
}

static int read_jpeg2000(Bytes in, Target *t)
{
    opj_codec_t *codec = opj_create_decompress(in.at[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    int state = NO_MEMORY;
    if (codec && stream) {
        opj_stream_set_user_data(stream, &in, NULL);
        opj_stream_set_user_data_length(stream, in.n);
        opj_stream_set_read_function(stream, j2k_take);
        opj_stream_set_skip_function(stream, j2k_skip);
        state = j2k_image(codec, stream, t);
    }
    if (stream) opj_stream_destroy(stream);
    if (codec) opj_destroy_codec(codec);
    return state;
}
#endif

/* ---------------------------------------------------------------- any */

static int read_any(Bytes in, Target *t)
{
    if (begins(in, "BM", 2)) return read_bmp(in, t);
    if (in.n > 2 && in.at[0] == 'P' && in.at[1] >= '1' && in.at[1] <= '6') return read_pnm(in, t);
#ifdef BURN_IMAGE_JPEG
    if (begins(in, "\xff\xd8\xff", 3)) return read_jpeg(in, t);
#endif
#ifdef BURN_IMAGE_PNG
    if (begins(in, "\x89PNG\r\n\x1a\n", 8)) return read_png(in, t);
#endif
#ifdef BURN_IMAGE_TIFF
    if (begins(in, "II*\0", 4) || begins(in, "MM\0*", 4)) return read_tiff(in, t);
#endif
#ifdef BURN_IMAGE_WEBP
    if (begins(in, "RIFF", 4) && in.n > 12 && !memcmp(in.at + 8, "WEBP", 4)) return read_webp(in, t);
#endif
#ifdef BURN_IMAGE_JPEG2000
    if (begins(in, "\0\0\0\x0cjP  \r\n\x87\n", 12) || begins(in, "\xff\x4f\xff\x51", 4)) return read_jpeg2000(in, t);
#endif
    return BAD_FORMAT;
}

int burn_image_size(const uint8_t *data, size_t bytes, int64_t size[2])
{
    Target t = { 0, 0, NULL };
    int state = data ? read_any((Bytes){ data, bytes }, &t) : BAD_FORMAT;
    size[0] = t.height;
    size[1] = t.width;
    return state == SIZE_ONLY ? OK : state;
}

int burn_image_decode(const uint8_t *data, size_t bytes, int layout, int64_t height, int64_t width, uint8_t *pixels)
{
    if (!data || !pixels || height < 1 || width < 1 || height > LONGEST_SIDE || width > LONGEST_SIDE) return BAD_FORMAT;
    size_t n = (size_t)height * (size_t)width;
    Target t = { height, width, layout == BURN_IMAGE_GRAY ? malloc(n * 3) : pixels };
    if (!t.rgb) return NO_MEMORY;
    int state = read_any((Bytes){ data, bytes }, &t);
    for (size_t i = 0; !state && i < n && layout != BURN_IMAGE_RGB; i++) {
        uint8_t *p = t.rgb + 3 * i, red = p[0];
        if (layout == BURN_IMAGE_GRAY)
            pixels[i] = (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16);
        else {
            p[0] = p[2];
            p[2] = red;
        }
    }
    if (layout == BURN_IMAGE_GRAY) free(t.rgb);
    return state;
}
