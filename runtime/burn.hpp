/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Models in C++17 and later, by their descriptors: a header that needs nothing besides. A burn::runner owns the memory of
 * a run; tensors are spans of the caller's, and their element types, ranks and shapes are compared with the model's.
 *
 *     burn::runner digits(digits_model);                          // of a model with a .bin: (m_model, burn::weights(...))
 *     std::vector<float> image(784);
 *     auto out = digits.run({burn::view(image, {1, 1, 28, 28})}); // throws burn::error
 *     burn::span<const float> logits = out[0].as<float>();
 *
 * try_run returns a code, throws nothing and allocates nothing. One runner is for one thread at a time; copies of it
 * share the weights and have a workspace each. Where strings come out, they hold until the runner runs again.
 *
 * burn::vk has the same for programs of --target vulkan, which link runtime/vulkan.c: what they free, and in which order.
 */
#ifndef BURN_HPP
#define BURN_HPP
#include "burn.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace burn {

#if __cplusplus >= 202002L
template <class T> using span = std::span<T>;
#else
/* What std::span is from C++20 on, as far as it is needed here. */
template <class T> class span {
public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return !size_; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

/* A BURN_E... code, and what it was about. */
class error : public std::runtime_error {
public:
    error(int code, const std::string &about)
        : std::runtime_error(about + ": " + burn_strerror(code)), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

inline void check(int code, const std::string &about)
{
    if (code)
        throw error(code, about);
}

template <class T> constexpr burn_dtype dtype_of() noexcept
{
    using E = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<E, bool>) return BURN_BOOL;
    else if constexpr (std::is_same_v<E, float>) return BURN_FLOAT;
    else if constexpr (std::is_same_v<E, double>) return BURN_DOUBLE;
    else if constexpr (std::is_same_v<E, burn_string>) return BURN_STRING;
    else if constexpr (std::is_same_v<E, burn_complex64>) return BURN_COMPLEX64;
    else if constexpr (std::is_same_v<E, burn_complex128>) return BURN_COMPLEX128;
    else {
        static_assert(std::is_integral_v<E>, "no element type of models; give its burn_dtype to view");
        constexpr burn_dtype types[2][4] = {{BURN_UINT8, BURN_UINT16, BURN_UINT32, BURN_UINT64},
                                            {BURN_INT8, BURN_INT16, BURN_INT32, BURN_INT64}};
        return types[std::is_signed_v<E>][sizeof(E) == 8 ? 3 : sizeof(E) / 2];
    }
}

/* A tensor in memory of the caller's. */
class view {
public:
    static constexpr int most_rank = 16;

    view(burn_dtype dtype, void *data, std::size_t bytes, span<const std::int64_t> shape) : dtype_(dtype)
    {
        if (shape.size() > most_rank)
            throw error(BURN_ESHAPE, "a view");
        data_ = data;
        bytes_ = bytes;
        rank_ = static_cast<int>(shape.size());
        for (std::size_t i = 0; i < shape.size(); i++)
            shape_[i] = shape[i];
    }
    template <class T>
    view(span<T> data, std::initializer_list<std::int64_t> shape)
        : view(dtype_of<T>(), const_cast<std::remove_cv_t<T> *>(data.data()), data.size() * sizeof(T),
               span<const std::int64_t>(shape.begin(), shape.size()))
    {
    }
    template <class T>
    view(const std::vector<T> &data, std::initializer_list<std::int64_t> shape)
        : view(span<const T>(data.data(), data.size()), shape)
    {
    }
    template <class T>
    view(std::vector<T> &data, std::initializer_list<std::int64_t> shape)
        : view(span<T>(data.data(), data.size()), shape)
    {
    }
    burn_tensor tensor() noexcept { return {data_, bytes_, shape_.data(), dtype_, rank_}; }
    span<const std::int64_t> shape() const noexcept { return {shape_.data(), static_cast<std::size_t>(rank_)}; }

private:
    burn_dtype dtype_;
    void *data_ = nullptr;
    std::size_t bytes_ = 0;
    int rank_ = 0;
    std::array<std::int64_t, most_rank> shape_{};
};

/* A tensor that owns its memory. */
class tensor {
public:
    tensor(burn_dtype dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape))
    {
        block_.resize(count() * burn_element_bytes(dtype) / sizeof(std::max_align_t) + 1);
    }
    burn_dtype dtype() const noexcept { return dtype_; }
    const std::vector<std::int64_t> &shape() const noexcept { return shape_; }
    std::size_t count() const noexcept
    {
        std::size_t n = 1;
        for (std::int64_t d : shape_)
            n *= static_cast<std::size_t>(d);
        return n;
    }
    template <class T> span<const T> as() const
    {
        check(dtype_of<T>() == dtype_ ? BURN_OK : BURN_ETYPE, "a tensor");
        return {reinterpret_cast<const T *>(block_.data()), count()};
    }
    const void *data() const noexcept { return block_.data(); }
    burn_tensor in_place() noexcept
    {
        return {block_.data(), block_.size() * sizeof(std::max_align_t), shape_.data(), dtype_,
                static_cast<int>(shape_.size())};
    }

private:
    burn_dtype dtype_;
    std::vector<std::int64_t> shape_;
    std::vector<std::max_align_t> block_;
};

/* The weights of a model: none, memory of the caller's (at a boundary of 64, for as long as it runs), or a file's, which
 * is read and compared with what the model was made for. runtime/weights.h maps files. */
class weights {
public:
    weights() = default;
    explicit weights(const void *data) : data_(data) {}
    weights(const char *path, const burn_model &model) : weights(path, model.weights_bytes, model.weights_check) {}
    weights(const char *path, std::size_t bytes, int (*check_content)(const void *, std::size_t))
    {
        if (!bytes)
            return;
        std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path, "rb"), std::fclose);
        check(file ? BURN_OK : BURN_EIO, path);
        block_ = std::make_shared<std::vector<line>>((bytes + sizeof(line) - 1) / sizeof(line));
        data_ = block_->data();
        if (std::fread(block_->data(), 1, bytes, file.get()) != bytes || std::getc(file.get()) != EOF)
            throw error(BURN_EFORMAT, path);
        if (check_content)
            check(check_content(data_, bytes), path);
    }
    const void *data() const noexcept { return data_; }

private:
    struct alignas(64) line {
        unsigned char bytes[64];
    };
    std::shared_ptr<std::vector<line>> block_;
    const void *data_ = nullptr;
};

class runner {
public:
    explicit runner(const burn_model &model, weights w = weights(), const burn_threads *threads = nullptr)
        : model_(&model), weights_(std::move(w)), threads_(threads),
          workspace_(model.workspace_bytes / sizeof(std::max_align_t) + 1)
    {
        check(model.version >= 1 && (!model.weights_bytes || weights_.data()) ? BURN_OK : BURN_EINVAL, model.name);
    }
    const burn_model &model() const noexcept { return *model_; }
    /* What runs the parts of later runs, on other threads too; null: this one. The runner keeps the pointer. */
    void on(const burn_threads *threads) noexcept { threads_ = threads; }

    int try_run(span<const burn_tensor> inputs, span<const burn_tensor> outputs) noexcept
    {
        if (inputs.size() != static_cast<std::size_t>(model_->input_count)
            || outputs.size() != static_cast<std::size_t>(model_->output_count))
            return BURN_EINVAL;
        return model_->run(threads_, workspace_.data(), weights_.data(), inputs.data(), outputs.data());
    }

    /* Inputs in the model's order; outputs have the shapes that the run gives them. */
    std::vector<tensor> run(std::vector<view> inputs)
    {
        if (inputs.size() != static_cast<std::size_t>(model_->input_count))
            throw error(BURN_EINVAL, std::string(model_->name) + ": " + std::to_string(inputs.size()) + " inputs for "
                            + std::to_string(model_->input_count));
        std::vector<burn_tensor> in, out;
        for (view &v : inputs)
            in.push_back(v.tensor());
        check_inputs(in);
        std::vector<tensor> results = outputs_for(in);
        for (tensor &t : results)
            out.push_back(t.in_place());
        check(try_run({in.data(), in.size()}, {out.data(), out.size()}), model_->name);
        return results;
    }

private:
    void check_inputs(const std::vector<burn_tensor> &in) const
    {
        for (std::size_t i = 0; i < in.size(); i++)
            check(burn_tensor_check(&model_->inputs[i], &in[i], 0),
                  std::string(model_->name) + ": input \"" + model_->inputs[i].name + '"');
    }
    std::vector<tensor> outputs_for(const std::vector<burn_tensor> &in) const
    {
        std::vector<std::vector<std::int64_t>> shapes;
        std::vector<burn_tensor> told;
        std::vector<tensor> results;
        for (int i = 0; i < model_->output_count; i++) {
            const burn_tensor_info &info = model_->outputs[i];
            shapes.emplace_back(info.shape, info.shape + info.rank);
        }
        for (std::vector<std::int64_t> &shape : shapes)
            told.push_back({nullptr, 0, shape.data(), BURN_UNDEFINED, 0});
        if (model_->shapes)
            check(model_->shapes(in.data(), told.data()), model_->name);
        for (int i = 0; i < model_->output_count; i++)
            results.emplace_back(model_->outputs[i].dtype, std::move(shapes[static_cast<std::size_t>(i)]));
        return results;
    }

    const burn_model *model_;
    weights weights_;
    const burn_threads *threads_;
    std::vector<std::max_align_t> workspace_;
};

/* Models on a GPU. Each object keeps what it was made of alive, so that they may be destroyed in any order; copies of a
 * device or a session are the same one. Errors are thrown with burn_vk_last_error's text.
 *
 *     burn::vk::session digits(burn::vk::device(), digits_program, burn::weights(digits_weights));
 *     burn::vk::workspace lane(digits);                           // of one thread; as many as runs shall be under way
 *     auto out = lane.run({burn::view(image, {1, 1, 28, 28})});
 */
namespace vk {

class device {
public:
    explicit device(const char *name = nullptr)
    {
        burn_vk *opened = nullptr;
        const int code = burn_vk_open(&opened, name);
        if (code)
            throw error(code, burn_vk_last_error(nullptr));
        handle_.reset(opened, burn_vk_close);
    }
    burn_vk *get() const noexcept { return handle_.get(); }
    const char *name() const noexcept { return burn_vk_device_name(get()); }
    /* The folder that keeps what the driver makes of kernels. */
    void cache(const char *path) const { check(burn_vk_cache(get(), path)); }
    std::uint64_t bytes() const noexcept /* allocated now */
    {
        std::uint64_t now, most;
        burn_vk_memory(get(), &now, &most);
        return now;
    }
    void check(int code) const
    {
        if (code < 0)
            throw error(code, burn_vk_last_error(get()));
    }

private:
    std::shared_ptr<burn_vk> handle_;
};

/* Memory of the device. */
class buffer {
public:
    buffer(device on, std::size_t bytes) : buffer(std::move(on), bytes, burn_vk_buffer_new) {}
    /* of the host, which the device copies from and to by itself */
    static buffer on_host(device on, std::size_t bytes)
    {
        return buffer(std::move(on), bytes, burn_vk_buffer_new_host);
    }
    /* Where the host reaches it; nullptr: it does not. */
    void *map() const noexcept { return burn_vk_buffer_map(get()); }
    burn_vk_buffer *get() const noexcept { return handle_.get(); }
    std::size_t bytes() const noexcept { return burn_vk_buffer_bytes(get()); }
    template <class T> void write(span<const T> from, std::size_t offset = 0)
    {
        device_.check(burn_vk_write(get(), offset, from.data(), from.size() * sizeof(T)));
    }
    template <class T> void read(span<T> to, std::size_t offset = 0) const
    {
        device_.check(burn_vk_read(get(), offset, to.data(), to.size() * sizeof(T)));
    }

private:
    buffer(device on, std::size_t bytes, int (*make)(burn_vk *, std::size_t, burn_vk_buffer **))
        : device_(std::move(on)), handle_(nullptr, burn_vk_buffer_free)
    {
        burn_vk_buffer *made = nullptr;
        device_.check(make(device_.get(), bytes, &made));
        handle_.reset(made);
    }
    device device_;
    std::unique_ptr<burn_vk_buffer, void (*)(burn_vk_buffer *)> handle_;
};

/* A program on a device, whose weights it has copied. */
class session {
public:
    session(device on, const burn_vk_program &program, const weights &w = weights())
        : device_(std::move(on)), program_(&program)
    {
        burn_vk_session *loaded = nullptr;
        device_.check(burn_vk_load(device_.get(), program_, w.data(), &loaded));
        handle_.reset(loaded, burn_vk_session_free);
    }
    burn_vk_session *get() const noexcept { return handle_.get(); }
    const device &on() const noexcept { return device_; }
    const burn_vk_program &program() const noexcept { return *program_; }

private:
    device device_; /* first: it goes last */
    const burn_vk_program *program_;
    std::shared_ptr<burn_vk_session> handle_;
};

/* The memory of one run at a time. A run under way is waited for before it goes. */
class workspace {
public:
    explicit workspace(session of) : session_(std::move(of)), handle_(nullptr, burn_vk_workspace_free)
    {
        burn_vk_workspace *made = nullptr;
        session_.on().check(burn_vk_workspace_new(session_.get(), &made));
        handle_.reset(made);
    }
    burn_vk_workspace *get() const noexcept { return handle_.get(); }

    /* Values that stay on the device: see burn_vk_bind_input. The buffer outlives the binding. */
    void bind_input(int i, const buffer &from, std::size_t offset = 0)
    {
        session_.on().check(burn_vk_bind_input(get(), i, from.get(), offset));
    }
    void bind_output(int i, const buffer &to, std::size_t offset = 0)
    {
        session_.on().check(burn_vk_bind_output(get(), i, to.get(), offset));
    }

    /* Inputs and outputs in the model's order. submit returns when inputs are copied; outputs are written by the wait()
     * or poll() that sees the run's end, and stay the caller's. */
    void submit(span<const burn_tensor> inputs, span<const burn_tensor> outputs)
    {
        if (inputs.size() != static_cast<std::size_t>(session_.program().input_count)
            || outputs.size() != static_cast<std::size_t>(session_.program().output_count))
            throw error(BURN_EINVAL, session_.program().name);
        session_.on().check(burn_vk_submit(get(), inputs.data(), outputs.data()));
    }
    bool poll()
    {
        const int code = burn_vk_poll(get());
        session_.on().check(code);
        return code == 1;
    }
    void wait() { session_.on().check(burn_vk_wait(get())); }

    std::vector<tensor> run(std::vector<view> inputs)
    {
        std::vector<burn_tensor> in, out;
        std::vector<tensor> results;
        for (view &v : inputs)
            in.push_back(v.tensor());
        for (int i = 0; i < session_.program().output_count; i++) {
            const burn_tensor_info &info = session_.program().outputs[i].tensor;
            results.emplace_back(info.dtype, std::vector<std::int64_t>(info.shape, info.shape + info.rank));
        }
        for (tensor &t : results)
            out.push_back(t.in_place());
        submit({in.data(), in.size()}, {out.data(), out.size()});
        wait();
        return results;
    }

private:
    session session_;
    std::unique_ptr<burn_vk_workspace, void (*)(burn_vk_workspace *)> handle_;
};

} // namespace vk
} // namespace burn
#endif
