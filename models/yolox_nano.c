// SPDX-License-Identifier: MIT OR Apache-2.0
// YOLOX-nano (Ge et al. 2021) named as its repository names it: CSPDarknet of depth-wise convolutions, a feature
// pyramid up and down again, and for every place a box, an objectness and classes, before they are decoded.
#include <burncc/model.h>

static Tensor plain(Tensor x, const char *name, int channels, int kernel, int stride, int groups)
{
    scope("%s", name) {
        x = conv2d(x, "conv", channels, kernel, .stride = stride, .padding = kernel / 2, .groups = groups, .bias = NO);
        x = silu(batch_norm(x, "bn", .eps = 1e-3));
    }
    return x;
}

static Tensor depthwise(Tensor x, const char *name, int channels, int kernel, int stride)
{
    scope("%s", name) {
        x = plain(x, "dconv", dim(x, 1), kernel, stride, dim(x, 1));
        x = plain(x, "pconv", channels, 1, 1, 1);
    }
    return x;
}

static Tensor csp(Tensor x, const char *name, int channels, int blocks, bool added)
{
    int half = channels / 2;
    scope("%s", name) {
        Tensor a = plain(x, "conv1", half, 1, 1, 1), b = plain(x, "conv2", half, 1, 1, 1);
        for (int i = 0; i < blocks; i++)
            scope("m.%d", i) {
                Tensor y = depthwise(plain(a, "conv1", half, 1, 1, 1), "conv2", half, 3, 1);
                a = added ? add(a, y) : y;
            }
        x = plain(cat(1, a, b), "conv3", channels, 1, 1, 1);
    }
    return x;
}

// Maxima of windows of 5, 9 and 13 beside what there is.
static Tensor spatial_pyramid(Tensor x, const char *name, int channels)
{
    scope("%s", name) {
        x = plain(x, "conv1", channels / 2, 1, 1, 1);
        Tensor wide[4] = { x };
        for (int i = 1; i < 4; i++) wide[i] = max_pool2d(x, 4 * i + 1, .stride = 1, .padding = 2 * i);
        x = plain(cat_list(1, 4, wide), "conv2", channels, 1, 1, 1);
    }
    return x;
}

static void darknet(Tensor x, int width, Tensor *level)
{
    // 2 x 2 pixels become channels: even rows and columns, then odd rows, odd columns, both
    Tensor part[4];                                     // level 0, 1, 2: dark3, dark4, dark5
    for (int i = 0; i < 4; i++) part[i] = slice(slice(x, 2, i % 2, INT64_MAX, 2), 3, i / 2, INT64_MAX, 2);
    x = plain(cat_list(1, 4, part), "stem.conv", width, 3, 1, 1);
    for (int stage = 1; stage < 5; stage++)
        scope("dark%d", stage + 1) {
            x = depthwise(x, "0", width << stage, 3, 2);
            if (stage == 4) x = spatial_pyramid(x, "1", width << stage);
            x = csp(x, stage == 4 ? "2" : "1", width << stage, stage == 2 || stage == 3 ? 3 : 1, stage < 4);
            if (stage > 1) level[stage - 2] = x;
        }
}

static void pyramid(Tensor *level, int width)
{
    Tensor top = plain(level[2], "lateral_conv0", 8 * width, 1, 1, 1), x;
    x = csp(cat(1, interpolate(top, .scale = 2), level[1]), "C3_p4", 8 * width, 1, false);
    Tensor middle = plain(x, "reduce_conv1", 4 * width, 1, 1, 1);
    level[0] = csp(cat(1, interpolate(middle, .scale = 2), level[0]), "C3_p3", 4 * width, 1, false);
    x = cat(1, depthwise(level[0], "bu_conv2", 4 * width, 3, 2), middle);
    level[1] = csp(x, "C3_n3", 8 * width, 1, false);
    x = cat(1, depthwise(level[1], "bu_conv1", 8 * width, 3, 2), top);
    level[2] = csp(x, "C3_n4", 16 * width, 1, false);
}

static Tensor head(Tensor x, int k, int width, int classes)
{
    x = plain(x, named("stems.%d", k), width, 1, 1, 1);
    Tensor c = x, r = x;
    for (int i = 0; i < 2; i++) c = depthwise(c, named("cls_convs.%d.%d", k, i), width, 3, 1);
    for (int i = 0; i < 2; i++) r = depthwise(r, named("reg_convs.%d.%d", k, i), width, 3, 1);
    c = sigmoid(conv2d(c, named("cls_preds.%d", k), classes, 1));
    Tensor boxes = conv2d(r, named("reg_preds.%d", k), 4, 1), there = conv2d(r, named("obj_preds.%d", k), 1, 1);
    return flatten(cat(1, boxes, sigmoid(there), c), 2);
}

MODEL(yolox_nano)
{
    int size = config("size", 416), width = config("width", 16), classes = config("classes", 80);
    Tensor level[3], found[3], x = input("images", F32, symbol("batch"), 3, size, size);
    scope("backbone.backbone") darknet(x, width, level);
    scope("backbone") pyramid(level, width);
    for (int k = 0; k < 3; k++)
        scope("head") found[k] = head(level[k], k, 4 * width, classes);
    output("output", transpose(cat_list(2, 3, found), 1, 2));
}
