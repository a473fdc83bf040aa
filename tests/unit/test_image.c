// SPDX-License-Identifier: MIT OR Apache-2.0
// runtime/image.c: the formats it reads itself, the layouts, and files that are damaged or of another size. Other
// formats are tested by ONNX's own tests of ImageDecoder.
#include "../../runtime/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BAD_FORMAT = -6 };

// Decodes an image of h x w and compares; every file cut short, and every other size, must be refused.
static void check(const uint8_t *file, size_t n, int layout, int64_t h, int64_t w, const uint8_t *want) {
    size_t count = (size_t)(h * w) * (layout == BURN_IMAGE_GRAY ? 1 : 3);
    int64_t size[2];
    uint8_t *pixels = malloc(count + 1);
    assert_int_equal(burn_image_size(file, n, size), 0);
    assert_int_equal(size[0], h);
    assert_int_equal(size[1], w);
    pixels[count] = 0xa5;
    assert_int_equal(burn_image_decode(file, n, layout, h, w, pixels), 0);
    assert_memory_equal(pixels, want, count);
    assert_int_equal(pixels[count], 0xa5);
    assert_int_equal(burn_image_decode(file, n, layout, h + 1, w, pixels), BAD_FORMAT);
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);          // so that a sanitizer sees a read behind it
        memcpy(part, file, cut);
        burn_image_size(part, cut, size);
        assert_int_equal(burn_image_decode(part, cut, layout, h, w, pixels), BAD_FORMAT);
        free(part);
    }
    free(pixels);
}

static void check_text(const char *file, int layout, int64_t h, int64_t w, const uint8_t *want) {
    check((const uint8_t *)file, strlen(file), layout, h, w, want);
}

static void test_pnm(void **state) {
    (void)state;
    static const uint8_t rgb[] = { 255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30 },
                         bgr[] = { 0, 0, 255, 0, 255, 0, 255, 0, 0, 30, 20, 10 };
    static const uint8_t gray[] = { 76, 150, 29, 18 };  // 0.299 R + 0.587 G + 0.114 B
    check_text("P6 2 2 255\n\377\1\1\1\377\1\1\1\377\12\24\36", BURN_IMAGE_RGB, 2, 2,
        (const uint8_t[]){ 255, 1, 1, 1, 255, 1, 1, 1, 255, 10, 20, 30 });
    static const uint8_t raw[] = "P6\n# two by two\n2 2\n255\n\377\0\0\0\377\0\0\0\377\12\24\36";
    check(raw, sizeof raw - 1, BURN_IMAGE_RGB, 2, 2, rgb);
    check(raw, sizeof raw - 1, BURN_IMAGE_BGR, 2, 2, bgr);
    check(raw, sizeof raw - 1, BURN_IMAGE_GRAY, 2, 2, gray);
    static const uint8_t wide[] = "P5 2 1 65535\n\377\377\200\0";
    check(wide, sizeof wide - 1, BURN_IMAGE_RGB, 1, 2, (const uint8_t[]){ 255, 255, 255, 128, 128, 128 });
    static const uint8_t bits[] = "P4 9 2\n\125\200\252\0";
    uint8_t want[2 * 9];
    for (int i = 0; i < 18; i++) want[i] = (i < 9 ? i % 2 == 0 && i < 8 : i % 2 == 0) ? 255 : 0;
    want[17] = 255;
    check(bits, sizeof bits - 1, BURN_IMAGE_GRAY, 2, 9, want);
}

// Numbers as text: the last digit may be cut off, so only the whole is checked.
static void test_pnm_text(void **state) {
    (void)state;
    static const struct { const char *file; uint8_t want[6]; } cases[] = {
        { "P3 2 1 15 15 0 3 # red\n 1 2 15 ", { 255, 0, 51, 17, 34, 255 } },
        { "P2 2 1 255\n7 200\n", { 7, 7, 7, 200, 200, 200 } },
        { "P1 2 1\n10\n", { 0, 0, 0, 255, 255, 255 } },
    };
    uint8_t pixels[6];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            burn_image_decode((const uint8_t *)cases[i].file, strlen(cases[i].file), BURN_IMAGE_RGB, 1, 2, pixels), 0);
        assert_memory_equal(pixels, cases[i].want, 6);
    }
    static const char *const bad[] = { "P2 2 1 255\n7", "P2 2 1 255\n7 256", "P3 0 1 255 ", "P6 2 1 0\n",
        "P6 2 1 70000\n", "P1 2 1\n12", "P7 2 1", "P6", "P5 1048576 1048576 255\n", "P6 99999999999999999999 1 1\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(
            burn_image_decode((const uint8_t *)bad[i], strlen(bad[i]), BURN_IMAGE_RGB, 1, 2, pixels), BAD_FORMAT);
}

static void put(uint8_t *at, int bytes, int64_t v) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)((uint64_t)v >> 8 * i);
}

// A BMP of 2 rows and 3 columns. masks, palette: bytes after the header of 40.
static size_t bmp(uint8_t *file, int bits, int64_t height, int compression, size_t extra, const void *after, size_t n,
    const void *pixels) {
    memset(file, 0, 512);
    memcpy(file, "BM", 2);
    put(file + 10, 4, (int64_t)(54 + extra));
    put(file + 14, 4, 40);
    put(file + 18, 4, 3);
    put(file + 22, 4, height);
    put(file + 26, 2, 1);
    put(file + 28, 2, bits);
    put(file + 30, 4, compression);
    memcpy(file + 54, after, extra);
    memcpy(file + 54 + extra, pixels, n);
    return 54 + extra + n;
}

static void test_bmp(void **state) {
    (void)state;
    uint8_t file[512];
    static const uint8_t want[18] = { 255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255, 0 };
    // the last row first, as blue, green, red
    static const uint8_t true_color[24] = { 255, 255, 255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255, 0, 255, 0, 255, 0,
        0, 0, 0, 0 };
    static const uint8_t palette[5][4] = { { 0, 0, 255, 0 }, { 0, 255, 0, 0 }, { 255, 0, 0, 0 }, { 255, 255, 255, 0 },
        { 0, 0, 0, 0 } };
    check(file, bmp(file, 24, 2, 0, 0, "", 24, true_color), BURN_IMAGE_RGB, 2, 3, want);
    uint8_t down[24];
    memcpy(down, true_color + 12, 12);
    memcpy(down + 12, true_color, 12);
    check(file, bmp(file, 24, -2, 0, 0, "", 24, down), BURN_IMAGE_RGB, 2, 3, want);
    uint8_t all[256][4] = { { 0 } };
    memcpy(all, palette, sizeof palette);
    check(file, bmp(file, 4, 2, 0, 64, all, 8, "\x34\x10\0\0\x01\x20\0\0"), BURN_IMAGE_RGB, 2, 3, want);
    static const uint8_t two[2][4] = { { 1, 2, 3, 0 }, { 7, 8, 9, 0 } };
    check(file, bmp(file, 1, 2, 0, 8, two, 8, "\x40\0\0\0\xa0\0\0\0"), BURN_IMAGE_RGB, 2, 3,
        (const uint8_t[]){ 9, 8, 7, 3, 2, 1, 9, 8, 7, 3, 2, 1, 9, 8, 7, 3, 2, 1 });
    uint16_t low[8] = { 0x7fff, 0, 0x3e0, 0, 0x7c00, 0x3e0, 0x1f, 0 };
    uint8_t words[16];
    for (int i = 0; i < 8; i++) put(words + 2 * i, 2, low[i]);
    check(file, bmp(file, 16, 2, 0, 0, "", 16, words), BURN_IMAGE_RGB, 2, 3, want);
    uint32_t deep[6] = { 0x00ffffff, 0, 0x0000ff00, 0x000000ff, 0x0000ff00, 0x00ff0000 };      // masks: red lowest
    uint8_t masks[12], longs[24];
    for (int i = 0; i < 3; i++) put(masks + 4 * i, 4, (int64_t)0xff << 8 * i);
    for (int i = 0; i < 6; i++) put(longs + 4 * i, 4, deep[i]);
    check(file, bmp(file, 32, 2, 3, 12, masks, 24, longs), BURN_IMAGE_RGB, 2, 3, want);
}

static void test_bmp_refused(void **state) {
    (void)state;
    static const uint8_t black[24];
    uint8_t file[512], pixels[18];
    int64_t size[2];
    struct {
        size_t at;
        int bytes;
        int64_t value;
    } wrong[] = { { 10, 4, 4000000000 }, { 14, 4, 41000000 }, { 14, 4, 13 }, { 18, 4, 0 }, { 18, 4, 4000000000 },
        { 22, 4, 2147483647 }, { 22, 4, 2147483648 }, { 28, 2, 7 }, { 30, 4, 1 }, { 30, 4, 3 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t n = bmp(file, 24, 2, 0, 0, "", 24, black);
        put(file + wrong[i].at, wrong[i].bytes, wrong[i].value);
        assert_int_equal(burn_image_size(file, n, size), BAD_FORMAT);
        assert_int_equal(burn_image_decode(file, n, BURN_IMAGE_RGB, 2, 3, pixels), BAD_FORMAT);
    }
    static const uint8_t one[1][4] = { { 1, 2, 3, 0 } };
    size_t n = bmp(file, 1, 2, 0, 4, one, 8, "\x40\0\0\0\xa0\0\0\0");      // a color that the palette lacks
    put(file + 46, 4, 1);
    assert_int_equal(burn_image_decode(file, n, BURN_IMAGE_RGB, 2, 3, pixels), BAD_FORMAT);
}

static void test_unknown(void **state) {
    (void)state;
    int64_t size[2];
    uint8_t pixels[3];
    static const char *const files[] = { "", "GIF89a.........................", "RIFF....WAVE....",
        "\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0", "II*", "II*\1\377\377\377\377", "\xff\x4f\xff\x51" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(burn_image_size((const uint8_t *)files[i], strlen(files[i]), size), BAD_FORMAT);
        assert_int_equal(
            burn_image_decode((const uint8_t *)files[i], strlen(files[i]), BURN_IMAGE_GRAY, 1, 1, pixels), BAD_FORMAT);
    }
    assert_int_equal(burn_image_size(NULL, 0, size), BAD_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pnm), cmocka_unit_test(test_pnm_text),
        cmocka_unit_test(test_bmp), cmocka_unit_test(test_bmp_refused), cmocka_unit_test(test_unknown) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
