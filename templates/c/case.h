// SPDX-License-Identifier: MIT OR Apache-2.0
/* Upper and lower case of single characters: Unicode's simple one-to-one mappings of the Latin, Greek, Cyrillic and
 * Armenian scripts (U+0041-024F, 0370-0587, 1E00-1FFF, FF21-FF5A). What maps to several characters, such as German
 * sharp s to SS, stays as it is, and so do other scripts. Part of generated code that changes case, and of the
 * compiler, which folds constants with it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Capitals first, first + step, ... last; their small letters are `delta` away. ways: 1 to lower case only, 2 to upper
 * only (the row then holds the small letters), 3 both. */
typedef struct burn_case_row { uint16_t first, last, step; int16_t delta; uint16_t ways; } burn_case_row;
static const burn_case_row burn_case_rows[] = {
    {0x41, 0x5a, 1, 32, 3}, {0xb5, 0xb5, 1, 743, 2}, {0xc0, 0xd6, 1, 32, 3}, {0xd8, 0xde, 1, 32, 3},
    {0x100, 0x12e, 2, 1, 3}, {0x131, 0x131, 1, -232, 2}, {0x132, 0x136, 2, 1, 3}, {0x139, 0x147, 2, 1, 3},
    {0x14a, 0x176, 2, 1, 3}, {0x178, 0x178, 1, -121, 3}, {0x179, 0x17d, 2, 1, 3}, {0x17f, 0x17f, 1, -300, 2},
    {0x182, 0x184, 2, 1, 3}, {0x187, 0x187, 1, 1, 3}, {0x18b, 0x18b, 1, 1, 3}, {0x18e, 0x18e, 1, 79, 3},
    {0x191, 0x191, 1, 1, 3}, {0x198, 0x198, 1, 1, 3}, {0x1a0, 0x1a4, 2, 1, 3}, {0x1a7, 0x1a7, 1, 1, 3},
    {0x1ac, 0x1ac, 1, 1, 3}, {0x1af, 0x1af, 1, 1, 3}, {0x1b3, 0x1b5, 2, 1, 3}, {0x1b8, 0x1b8, 1, 1, 3},
    {0x1bc, 0x1bc, 1, 1, 3}, {0x1c4, 0x1c4, 1, 2, 3}, {0x1c5, 0x1c5, 1, -1, 2}, {0x1c5, 0x1c5, 1, 1, 1},
    {0x1c7, 0x1c7, 1, 2, 3}, {0x1c8, 0x1c8, 1, -1, 2}, {0x1c8, 0x1c8, 1, 1, 1}, {0x1ca, 0x1ca, 1, 2, 3},
    {0x1cb, 0x1cb, 1, -1, 2}, {0x1cb, 0x1cb, 1, 1, 1}, {0x1cd, 0x1db, 2, 1, 3}, {0x1de, 0x1ee, 2, 1, 3},
    {0x1f1, 0x1f1, 1, 2, 3}, {0x1f2, 0x1f2, 1, -1, 2}, {0x1f2, 0x1f2, 1, 1, 1}, {0x1f4, 0x1f4, 1, 1, 3},
    {0x1f6, 0x1f6, 1, -97, 3}, {0x1f7, 0x1f7, 1, -56, 3}, {0x1f8, 0x21e, 2, 1, 3}, {0x220, 0x220, 1, -130, 3},
    {0x222, 0x232, 2, 1, 3}, {0x23b, 0x23b, 1, 1, 3}, {0x23d, 0x23d, 1, -163, 3}, {0x241, 0x241, 1, 1, 3},
    {0x243, 0x243, 1, -195, 3}, {0x246, 0x24e, 2, 1, 3}, {0x370, 0x372, 2, 1, 3}, {0x376, 0x376, 1, 1, 3},
    {0x37f, 0x37f, 1, 116, 3}, {0x386, 0x386, 1, 38, 3}, {0x388, 0x38a, 1, 37, 3}, {0x38c, 0x38c, 1, 64, 3},
    {0x38e, 0x38f, 1, 63, 3}, {0x391, 0x3a1, 1, 32, 3}, {0x3a3, 0x3ab, 1, 32, 3}, {0x3c2, 0x3c2, 1, -31, 2},
    {0x3cf, 0x3cf, 1, 8, 3}, {0x3d0, 0x3d0, 1, -62, 2}, {0x3d1, 0x3d1, 1, -57, 2}, {0x3d5, 0x3d5, 1, -47, 2},
    {0x3d6, 0x3d6, 1, -54, 2}, {0x3d8, 0x3ee, 2, 1, 3}, {0x3f0, 0x3f0, 1, -86, 2}, {0x3f1, 0x3f1, 1, -80, 2},
    {0x3f4, 0x3f4, 1, -60, 1}, {0x3f5, 0x3f5, 1, -96, 2}, {0x3f7, 0x3f7, 1, 1, 3}, {0x3f9, 0x3f9, 1, -7, 3},
    {0x3fa, 0x3fa, 1, 1, 3}, {0x3fd, 0x3ff, 1, -130, 3}, {0x400, 0x40f, 1, 80, 3}, {0x410, 0x42f, 1, 32, 3},
    {0x460, 0x480, 2, 1, 3}, {0x48a, 0x4be, 2, 1, 3}, {0x4c0, 0x4c0, 1, 15, 3}, {0x4c1, 0x4cd, 2, 1, 3},
    {0x4d0, 0x52e, 2, 1, 3}, {0x531, 0x556, 1, 48, 3}, {0x1e00, 0x1e94, 2, 1, 3}, {0x1e9b, 0x1e9b, 1, -59, 2},
    {0x1e9e, 0x1e9e, 1, -7615, 1}, {0x1ea0, 0x1efe, 2, 1, 3}, {0x1f08, 0x1f0f, 1, -8, 3}, {0x1f18, 0x1f1d, 1, -8, 3},
    {0x1f28, 0x1f2f, 1, -8, 3}, {0x1f38, 0x1f3f, 1, -8, 3}, {0x1f48, 0x1f4d, 1, -8, 3}, {0x1f59, 0x1f5f, 2, -8, 3},
    {0x1f68, 0x1f6f, 1, -8, 3}, {0x1f88, 0x1f8f, 1, -8, 1}, {0x1f98, 0x1f9f, 1, -8, 1}, {0x1fa8, 0x1faf, 1, -8, 1},
    {0x1fb8, 0x1fb9, 1, -8, 3}, {0x1fba, 0x1fbb, 1, -74, 3}, {0x1fbc, 0x1fbc, 1, -9, 1}, {0x1fbe, 0x1fbe, 1, -7205, 2},
    {0x1fc8, 0x1fcb, 1, -86, 3}, {0x1fcc, 0x1fcc, 1, -9, 1}, {0x1fd8, 0x1fd9, 1, -8, 3}, {0x1fda, 0x1fdb, 1, -100, 3},
    {0x1fe8, 0x1fe9, 1, -8, 3}, {0x1fea, 0x1feb, 1, -112, 3}, {0x1fec, 0x1fec, 1, -7, 3}, {0x1ff8, 0x1ff9, 1, -128, 3},
    {0x1ffa, 0x1ffb, 1, -126, 3}, {0x1ffc, 0x1ffc, 1, -9, 1}, {0xff21, 0xff3a, 1, 32, 3}
};

static uint32_t burn_case(uint32_t c, bool upper)
{
    if (c < 0x80) return upper ? (c >= 'a' && c <= 'z' ? c - 32 : c) : (c >= 'A' && c <= 'Z' ? c + 32 : c);
    for (size_t i = 0; i < sizeof burn_case_rows / sizeof burn_case_rows[0]; i++) {
        const burn_case_row *r = &burn_case_rows[i];
        const bool small = upper && r->ways == 3; /* compare with the row's small letters */
        const int32_t at = (int32_t)c - (small ? r->delta : 0), other = small ? at : at + r->delta;
        if ((r->ways & (upper ? 2u : 1u)) != 0u && at >= r->first && at <= r->last && (at - r->first) % r->step == 0)
            return (uint32_t)other;
    }
    return c;
}

/* The character at *s, which moves behind it; a byte that begins no valid UTF-8 stands for itself and *plain is set. */
static uint32_t burn_case_read(const char **s, bool *plain)
{
    const unsigned char *p = (const unsigned char *)*s;
    const uint32_t more = p[0] >= 0xf0u ? 3u : p[0] >= 0xe0u ? 2u : p[0] >= 0xc2u ? 1u : 0u;
    uint32_t c = more > 0u ? p[0] & (0x3fu >> more) : p[0];
    *plain = more == 0u;
    for (uint32_t i = 1; i <= more && !*plain; i++) {
        *plain = (p[i] & 0xc0u) != 0x80u;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (*plain) c = p[0];
    *s += *plain ? 1u : 1u + more;
    return c;
}

/* Writes c, or the byte that it is, at `to`; the number of bytes. */
static size_t burn_case_write(char *to, uint32_t c, bool plain)
{
    const size_t n = plain || c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6) to[i] = (char)(0x80u | (c & 0x3fu));
    to[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xffu) | c);
    return n;
}
