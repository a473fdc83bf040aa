// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: cases.def. Out, on standard output: C text that fills each template once per case, by the same block sizes
 * that the compiler would choose, and a table of the cases. The preprocessor plays the template engine: X.inc is a
 * template without its holes block. An argument LANES,REGISTERS,UNFUSED,L1,L2 names a target; without it the
 * generic one is used. */
#include "shapes.h"
#include <inttypes.h>
#include <stdio.h>

static TileTarget target;

static void define(const char *name, int64_t value)
{
    printf("#undef %s\n#define %s %" PRId64 "\n", name, name, value);
}

static void epilogue(int kind, const char *arguments, const char *channel, const char *index)
{
    define("IDENTITY_EPILOGUE", kind == 0);
    printf("#undef EPILOGUE\n#undef EPILOGUE_PARAMS\n#undef FINISH_PARAMS\n#undef FINISH_ARGS\n");
    printf("#define FINISH_PARAMS EPILOGUE_PARAMS\n#define FINISH_ARGS %s\n",
        kind == 0     ? "" :
            kind == 1 ? ", e_bias" :
                        ", e_add");
    if (kind == 0)
        printf("#define EPILOGUE(%s) (acc)\n#define EPILOGUE_PARAMS\n", arguments);
    else if (kind == 1)
        printf("#define EPILOGUE(%s) ((acc) + e_bias[%s] > 0.0f ? (acc) + e_bias[%s] : 0.0f)\n"
               "#define EPILOGUE_PARAMS , const float *restrict e_bias\n",
               arguments, channel, channel);
    else
        printf("#define EPILOGUE(%s) ((acc) + e_add[%s])\n#define EPILOGUE_PARAMS , const float *restrict e_add\n",
            arguments, index);
}

static void include_kernel(const char *kernel, const char *file)
{
    printf("#undef KERNEL\n#define KERNEL kernel_%s\n#undef FINISH\n#define FINISH finish_%s\n#include \"%s.inc\"\n",
        kernel, kernel, file);
}

static void include(const char *kernel, const char *file, int kind)
{
    include_kernel(kernel, file);
    printf(
        "static void run_%s(const float *a, const float *b, float *c, const float *e, unsigned char *s)\n{\n"
        "    (void)e;\n"
        "    kernel_%s(a, b, c%s, s);\n}\n",
        kernel, kernel, kind ? ", e" : "");
}

/* The same with the shares of a team, one after the other. */
static void include_shared(const char *kernel, const char *file, int kind, int parts)
{
    define("PARTS", parts);
    if (parts == 0) {
        include(kernel, file, kind);
        return;
    }
    include_kernel(kernel, file);
    printf(
        "static void run_%s(const float *a, const float *b, float *c, const float *e, unsigned char *s)\n{\n"
        "    (void)e;\n"
        "    for (int part = 0; part < %d; part++)\n        kernel_%s(a, b, c%s, s, part);\n}\n",
        kernel, parts, kernel, kind ? ", e" : "");
}

static void gemm(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k, int a_t, int b_kind, int kind)
{
    const GemmShape s = { batch, m, n, k, a_t ? 1 : k, a_t ? m : 1, b_kind == 2 ? 1 : n, b_kind == 2 ? k : 1,
        b_kind == 0, 0 };
    const GemmTiles t = gemm_tiles(&s, &target);
    const int64_t nr = t.nv * 16;
    define("BATCH", batch), define("M", m), define("N", n), define("K", k), define("M_FIXED", m), define("N_FIXED", n);
    define("AB", m * k), define("AM", s.am);
    define("AK", s.ak), define("B_PACKED", s.b_packed), define("BB", b_kind ? n * k : (n + nr - 1) / nr * nr * k);
    define("BK", s.bk), define("BN", s.bn), define("PACK_B", t.pack_b), define("PACK_A", t.pack_a), define("CB", m * n);
    define("CM", n), define("MR", t.mr), define("NV", t.nv), define("KC", t.kc), define("NC", t.nc), define("MC", t.mc);
    epilogue(kind, "acc, b, m, n", "n", "(b * M + m) * N + n");
    include(name, "gemm", kind);
    fprintf(stderr, "%s: mr %d nv %d kc %d nc %d mc %d pack_a %d pack_b %d scratch %zu\n", name, t.mr, t.nv, (int)t.kc,
        (int)t.nc, (int)t.mc, t.pack_a, t.pack_b, gemm_scratch_bytes(&s, &t));
}

static ConvShape conv_shape(int64_t n, int64_t g, int64_t ic, int64_t oc, const int64_t *v)
{
    ConvShape s = {.n = n, .groups = g, .ic = ic, .oc = oc};
    for (int i = 0; i < 3; i++) {
        s.in[i] = v[i], s.kernel[i] = v[3 + i], s.stride[i] = v[6 + i], s.dilation[i] = v[9 + i], s.pad[i] = v[12 + i];
        s.out[i] = (s.in[i] + 2 * s.pad[i] - (s.kernel[i] - 1) * s.dilation[i] - 1) / s.stride[i] + 1;
    }
    return s;
}

static void gemv(const char *name, int64_t batch, int64_t n, int64_t k, int layout, int kind, int near)
{
    GemvTiles t = gemv_tiles(n, k, &target, near);
    const int few = layout == 0 && t.nv == 0;
    t.nv = t.nv ? t.nv : 1;
    const int64_t nr = t.nv * 16;
    define("BATCH", batch), define("M", 1), define("N", n), define("K", k), define("AB", k), define("CB", n);
    define("LAYOUT", few ? 3 : layout), define("LB", layout == 1 ? n : k), define("NV", t.nv), define("SIDE", t.side);
    define("BB", few ? (k + 15) / 16 * 16 * n : layout ? n * k : (n + nr - 1) / nr * nr * k);
    epilogue(kind, "acc, b, m, n", "n", "(b * M + m) * N + n");
    include(name, "gemv", kind);
}

static void define_conv(const ConvShape *s)
{
    static const char *const names[5][3] = {
        {"ID", "IH", "IW"}, {"KD", "KH", "KW"}, {"SD", "SH", "SW"}, {"DD", "DH", "DW"}, {"PD", "PH", "PW"}};
    for (int i = 0; i < 3; i++) {
        define(names[0][i], s->in[i]), define(names[1][i], s->kernel[i]), define(names[2][i], s->stride[i]);
        define(names[3][i], s->dilation[i]), define(names[4][i], s->pad[i]);
    }
    define("N", s->n), define("G", s->groups), define("OD", s->out[0]), define("OH", s->out[1]),
        define("OW", s->out[2]);
}

/* Channels last: the strides that a variant has (last.h). */
static void define_layout(const ConvLayout *s)
{
    define_conv(&s->conv);
    define("IC", s->conv.ic), define("OC", s->conv.oc), define("XN", s->xn), define("XD", s->xd), define("XH", s->xh),
        define("XW", s->xw);
    define("XC", s->xc), define("YC", s->yc);
}

static void conv(const char *name, ConvShape c, int kind, int variant)
{
    const ConvLayout s = layout_of(merged_of(c), variant);
    const ConvTiles t = conv_tiles(&s, &target);
    define_layout(&s);
    define("MR", t.mr), define("MF", t.mf), define("NV", t.nv), define("IMAGE", t.image), define("PIXEL", t.pixel),
        define("KB", t.kb);
    define("RC", t.rc), define("CC", t.cc);
    epilogue(kind, "acc, n, p, c", "c", "(n * (OD * OH * OW) + p) * (G * OC) + c");
    include_shared(name, "conv", kind, s.parts);
    fprintf(stderr, "%s: mr %d mf %d nv %d image %d pixel %d kb %d rc %d cc %d scratch %zu\n", name, t.mr,
        t.mf, t.nv, t.image, (int)t.pixel, (int)t.kb, (int)t.rc, (int)t.cc, conv_scratch_bytes(&s, &t));
}

static void conv_taps(const char *name, ConvShape c, int kind, int variant)
{
    const ConvLayout s = layout_of(c, variant);
    const TapTiles t = conv_taps_tiles(&s, &target);
    define_layout(&s);
    define("MR", t.mr), define("MF", t.mf), define("NV", t.nv), define("PITCH", t.pitch), define("TB", t.tb),
        define("RC", t.rc);
    epilogue(kind, "acc, n, p, c", "c", "(n * (OH * OW) + p) * OC + c");
    include_shared(name, "conv_taps", kind, s.parts);
    fprintf(stderr, "%s: mr %d mf %d nv %d pitch %d tb %d rc %d preferred %d scratch %zu\n", name, t.mr, t.mf, t.nv,
        (int)t.pitch, (int)t.tb, (int)t.rc, t.preferred, conv_taps_scratch_bytes(&s, &t));
}

static void conv_dw(const char *name, ConvShape c, int kind, int variant)
{
    const ConvLayout s = layout_of(c, variant);
    const ConvDwTiles t = conv_dw_tiles(&s, &target);
    define_layout(&s);
    define("MULT", c.oc), define("BR", t.br), define("BF", t.bf), define("CB", t.cb), define("IMAGE", t.image),
        define("RC", t.rc);
    epilogue(kind, "acc, n, p, c", "c", "(n * (OD * OH * OW) + p) * (G * MULT) + c");
    include_shared(name, "conv_dw", kind, s.parts);
    fprintf(stderr, "%s: br %d bf %d cb %d image %d rc %d scratch %zu\n", name, t.br, t.bf, (int)t.cb, t.image,
        (int)t.rc, conv_dw_scratch_bytes(&s, &t));
}

static void conv_planes(const char *name, ConvShape c, int kind, int variant)
{
    const ConvLayout s = layout_of(c, variant | PLANES);
    const ConvPlanesTiles t = conv_planes_tiles(&c, &target);
    define_layout(&s);
    define("MULT", c.oc), define("BR", t.br), define("BF", t.bf), define("RC", t.rc),
        define("DIRECT", conv_planes_direct(&s));
    epilogue(kind, "acc, n, c, p", "c", "(n * (G * MULT) + c) * (OD * OH * OW) + p");
    include_shared(name, "conv_planes", kind, s.parts);
    fprintf(
        stderr, "%s: br %d bf %d rc %d scratch %zu\n", name, t.br, t.bf, (int)t.rc, conv_planes_scratch_bytes(&c, &t));
}

static void winograd(const char *name, ConvShape c, int kind, int variant)
{
    const ConvLayout s = layout_of(c, variant);
    const WinogradTiles t = winograd_of(&s, &target, variant);
    define_layout(&s);
    define("TH", t.tile.h), define("TW", t.tile.w), define("MR", t.mr), define("MF", t.mf), define("NV", t.nv),
        define("TB", t.tb), define("VP", t.vp), define("TOGETHER", c.n);
    epilogue(kind, "acc, n, p, c", "c", "(n * (OH * OW) + p) * OC + c");
    include_shared(name, "winograd", kind, s.parts);
    fprintf(stderr, "%s: tile %d %d mr %d mf %d nv %d tb %d vp %d scratch %zu\n", name, (int)t.tile.h,
        (int)t.tile.w, t.mr, t.mf, t.nv, (int)t.tb, (int)t.vp, winograd_scratch_bytes(&s, &t));
}

int main(int argc, char **argv)
{
    target = TILE_GENERIC;
    if (argc > 1)
        sscanf(argv[1], "%d,%d,%d,%zu,%zu", &target.lanes, &target.vector_registers, &target.unfused, &target.l1,
            &target.l2);
    printf(
        "#include \"vec.h\"\n#include \"taps.h\"\n#include \"planes.h\"\n#include \"winograd.h\"\n"
        "#define TARGET {%d, %d, %d, %zu, %zu, 0}\n",
        target.lanes, target.vector_registers, target.unfused, target.l1, target.l2);
#define GEMM(name, timed, batch, m, n, k, a_t, b_kind, kind) gemm(#name, batch, m, n, k, a_t, b_kind, kind);
#define GEMV(name, timed, batch, n, k, layout, kind, near) gemv(#name, batch, n, k, layout, kind, near);
#define SIZES(...) (const int64_t[]){__VA_ARGS__}
#define CONV(name, timed, n, g, ic, oc, id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw, kind, variant)    \
    conv(#name, conv_shape(n, g, ic, oc, SIZES(id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw)), kind,    \
        variant);
#define CONV_TAPS(name, timed, n, ic, oc, ih, iw, kh, kw, sh, sw, dh, dw, ph, pw, kind, variant)                      \
    conv_taps(#name, conv_shape(n, 1, ic, oc, SIZES(1, ih, iw, 1, kh, kw, 1, sh, sw, 1, dh, dw, 0, ph, pw)), kind,    \
        variant);
#define CONV_DW(name, timed, n, g, mult, id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw, kind, variant)   \
    conv_dw(#name, conv_shape(n, g, 1, mult, SIZES(id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw)),      \
        kind, variant);
#define CONV_PLANES(                                                                                                  \
    name, timed, n, g, mult, id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw, kind, variant)               \
    conv_planes(#name, conv_shape(n, g, 1, mult, SIZES(id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw)),  \
        kind, variant);
#define WINOGRAD(name, timed, n, ic, oc, ih, iw, kh, kw, ph, pw, kind, variant) \
    winograd(#name, conv_shape(n, 1, ic, oc, SIZES(1, ih, iw, 1, kh, kw, 1, 1, 1, 1, 1, 1, 0, ph, pw)), kind, variant);
#include "cases.def"
    return 0;
}
