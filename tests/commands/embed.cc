// SPDX-License-Identifier: MIT OR Apache-2.0
// runtime/burn.hpp: a model of one input, the same with its weights in a file and of any batch on threads, and a model of
// several inputs. In: the digit's image. Out: 0, or the number of what is wrong.
#include "apart.h"
#include "batch.h"
#include "burn.hpp"
#include "digit.hh"
#include "digits.h"
#include "several.h"
#include "threads.h"

#include <cmath>
#include <cstdio>
#include <thread>

static std::vector<float> read_image(const char *path)
{
    std::vector<unsigned char> bytes(784);
    std::vector<float> image(784);
    std::FILE *file = std::fopen(path, "rb");
    if (!file || std::fseek(file, -784, SEEK_END) || std::fread(bytes.data(), 1, 784, file) != 784)
        return {};
    std::fclose(file);
    for (std::size_t i = 0; i < 784; i++)
        image[i] = static_cast<float>(bytes[i]) / 255.0f;
    return image;
}

static int many(const std::vector<float> &image)
{
    burn::runner batch(batch_model);
    std::vector<float> three;
    for (int i = 0; i < 3; i++)
        three.insert(three.end(), image.begin(), image.end());
    burn_threads pool;
    if (burn_threads_open(&pool, batch.model().parts, 0))
        return 20;
    batch.on(&pool);
    auto out = batch.run({burn::view(three, {3, 1, 28, 28})});
    burn_threads_close(&pool);
    batch.on(nullptr);
    if (out[0].shape() != std::vector<std::int64_t>{3, 10} || out[0].as<float>().size() != 30)
        return 21;
    for (std::size_t i = 0; i < 3; i++)
        if (digit_of({out[0].as<float>().data() + 10 * i, 10}) != 7)
            return 22;
    three.resize(10 * 784);
    if (code_of([&] { batch.run({burn::view(three, {10, 1, 28, 28})}); }) != BURN_ELIMIT)
        return 23;
    return 0;
}

/* logits = a w + b, of [2,3] [3,2] [2] */
static int several()
{
    burn::runner r(several_model);
    const std::vector<float> a = {1, 2, 3, 4, 5, 6}, w = {1, 0, 0, 1, 1, 1}, b = {10, 20};
    auto out = r.run({burn::view(a, {2, 3}), burn::view(w, {3, 2}), burn::view(b, {2})});
    auto y = out[0].as<float>();
    const float want[4] = {14, 25, 20, 31};
    for (std::size_t i = 0; i < 4; i++)
        if (std::fabs(y[i] - want[i]) > 1e-5f)
            return 30;
    if (code_of([&] { r.run({burn::view(a, {2, 3})}); }) != BURN_EINVAL)
        return 31;
    return 0;
}

int main(int argc, char **argv)
{
    const std::vector<float> image = read_image(argc > 1 ? argv[1] : "");
    if (image.empty())
        return 9;
    burn::runner digits(digits_model), copy = digits;
    if (digit_of(digits.run({burn::view(image, {1, 1, 28, 28})})[0].as<float>()) != 7)
        return 1;
    if (code_of([&] { digits.run({burn::view(image, {784})}); }) != BURN_ESHAPE)
        return 2;
    if (code_of([&] { digits.run({burn::view(std::vector<double>(784), {1, 1, 28, 28})}); }) != BURN_ETYPE)
        return 3;
    if (code_of([&] { copy.run({burn::view(image, {1, 1, 28, 28})})[0].as<double>(); }) != BURN_ETYPE)
        return 4;
    if (code_of([] { burn::weights("there.is.none", apart_model); }) != BURN_EIO)
        return 5;
    if (code_of([] { burn::weights("digits.c", apart_model); }) != BURN_EFORMAT)
        return 6;
    if (code_of([] { burn::runner without(apart_model); }) != BURN_EINVAL)
        return 7;
    burn::runner apart(apart_model, burn::weights("apart.bin", apart_model)), other = apart;
    int found[2] = {0, 0};
    const auto read = [&](burn::runner &r, int &to) {
        to = digit_of(r.run({burn::view(image, {1, 1, 28, 28})})[0].as<float>());
    };
    std::thread one([&] { read(apart, found[0]); }), two([&] { read(other, found[1]); });
    one.join();
    two.join();
    if (found[0] != 7 || found[1] != 7)
        return 8;
    const int code = many(image);
    return code ? code : several();
}
