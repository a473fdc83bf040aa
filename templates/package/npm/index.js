// SPDX-License-Identifier: MIT OR Apache-2.0
// A model compiled to WebAssembly by burncc, for node and browsers. It reads what the model is from the descriptor in the module's
// memory (burn_model of burn.h, pointers of four bytes), so this file is the same for every model.

const TYPES = {
    1: Float32Array, 2: Uint8Array, 3: Int8Array, 4: Uint16Array, 5: Int16Array, 6: Int32Array, 7: BigInt64Array,
    9: Uint8Array, 10: Uint16Array, 11: Float64Array, 12: Uint32Array, 13: BigUint64Array, 16: Uint16Array,
};
const TENSOR = 20, INFO = 28; // bytes of burn_tensor and burn_tensor_info
const BOUNDARY = 64;

export class ModelError extends Error {
    constructor(code, message) {
        super(message);
        this.name = "ModelError";
        this.code = code;
    }
}

const typeOf = (dtype) => TYPES[dtype] ?? Uint8Array;

export class Model {
    #wasm;
    #inputs;
    #outputs;
    #at;
    #end;

    /** An instance of the module, and the bytes of its weights where they are a file. */
    constructor(instance, weights) {
        this.#wasm = instance.exports;
        this.#wasm._initialize?.();
        this.#end = this.#wasm.__heap_base.value;
        const m = this.#wasm.model();
        const [version, name, nIn, nOut, inputs, outputs, workspaceBytes, weightsBytes] = this.#words(m, 8);
        if (version < 1) throw new ModelError(-1, `a model of version ${version}`);
        this.name = this.#string(name);
        this.#inputs = this.#infos(inputs, nIn);
        this.#outputs = this.#infos(outputs, nOut);
        if (weightsBytes && weights?.byteLength !== weightsBytes)
            throw new ModelError(-6, `${this.name}: weights of ${weights?.byteLength ?? 0} bytes, not ${weightsBytes}`);
        this.#at = {
            workspace: this.#take(workspaceBytes), weights: this.#take(weightsBytes),
            inputs: this.#take(nIn * TENSOR), outputs: this.#take(nOut * TENSOR),
        };
        for (const info of [...this.#inputs, ...this.#outputs]) {
            info.data = this.#take(info.bytes);
            info.shapeAt = this.#take(info.rank * 8);
        }
        if (!weightsBytes) return;
        new Uint8Array(this.#wasm.memory.buffer).set(new Uint8Array(weights.buffer ?? weights, weights.byteOffset ?? 0,
            weightsBytes), this.#at.weights);
        this.#check(this.#wasm.check(this.#at.weights, weightsBytes), "weights");
    }

    /** Names, shapes (the largest; names where a size is the caller's) and types of arrays. */
    get inputs() { return this.#inputs.map(described); }
    get outputs() { return this.#outputs.map(described); }

    /** Runs on typed arrays, or { data, dims } where sizes are the caller's; gives { data, dims } for each output. */
    run(inputs) {
        this.#inputs.forEach((info, i) => this.#give(info, i, inputs[info.name]));
        this.#outputs.forEach((info, i) => this.#tensor(this.#at.outputs + i * TENSOR, info, info.bytes));
        const { workspace, weights, inputs: from, outputs: to } = this.#at;
        this.#check(this.#wasm.run(workspace, weights, from, to), "run");
        return Object.fromEntries(this.#outputs.map((info) => [info.name, this.#result(info)]));
    }

    #give(info, i, value) {
        const data = value?.data ?? value, dims = value?.dims ?? info.shape;
        const type = typeOf(info.dtype), what = `input "${info.name}"`;
        if (!(data instanceof type)) throw new ModelError(-10, `${what}: wants a ${type.name}`);
        if (dims.length !== info.rank) throw new ModelError(-11, `${what}: wants ${info.rank} dimensions`);
        const count = dims.reduce((n, d) => n * d, 1);
        if (data.length !== count) throw new ModelError(-11, `${what}: ${data.length} elements for [${dims}]`);
        if (data.byteLength > info.bytes) throw new ModelError(-5, `${what}: [${dims}] is more than [${info.shape}]`);
        this.#tensor(this.#at.inputs + i * TENSOR, info, data.byteLength);
        new type(this.#wasm.memory.buffer, info.data, count).set(data);
        new BigInt64Array(this.#wasm.memory.buffer, info.shapeAt, info.rank).set(dims.map(BigInt));
    }

    #tensor(at, info, bytes) {
        new Int32Array(this.#wasm.memory.buffer, at, 5).set([info.data, bytes, info.shapeAt, info.dtype, info.rank]);
    }

    #result(info) {
        const dims = [...new BigInt64Array(this.#wasm.memory.buffer, info.shapeAt, info.rank)].map(Number);
        const count = dims.reduce((n, d) => n * d, 1);
        return { data: new (typeOf(info.dtype))(this.#wasm.memory.buffer, info.data, count).slice(), dims };
    }

    #check(code, what) {
        if (code) throw new ModelError(code, `${this.name}: ${what}: ${this.#string(this.#wasm.text(code))}`);
    }

    #infos(at, n) {
        return Array.from({ length: n }, (_, i) => {
            const [name, dtype, rank, shape, bytes, , dims] = this.#words(at + i * INFO, 7);
            if (dtype === 8) throw new ModelError(-10, `${this.name}: tensors of strings are not for JavaScript`);
            const names = dims ? this.#words(dims, rank) : [];
            return {
                name: this.#string(name), dtype, rank, bytes, names: names.map((p) => p && this.#string(p)),
                shape: [...new BigInt64Array(this.#wasm.memory.buffer, shape, shape ? rank : 0)].map(Number),
            };
        });
    }

    #words(at, n) { return [...new Uint32Array(this.#wasm.memory.buffer, at, n)]; }

    #string(at) {
        const bytes = new Uint8Array(this.#wasm.memory.buffer, at);
        return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    }

    #take(bytes) {
        const at = Math.ceil(this.#end / BOUNDARY) * BOUNDARY, page = 65536;
        this.#end = at + bytes;
        const missing = this.#end - this.#wasm.memory.buffer.byteLength;
        if (missing > 0) this.#wasm.memory.grow(Math.ceil(missing / page));
        return at;
    }
}

const described = ({ name, shape, names, dtype }) => (
    { name, dims: shape.map((d, i) => names[i] || d), type: typeOf(dtype).name });

async function bytesOf(url) {
    if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
    const answer = await fetch(url);
    if (!answer.ok) throw new ModelError(-3, `${url}: ${answer.status} ${answer.statusText}`);
    return new Uint8Array(await answer.arrayBuffer());
}

/** The model of this package; or its files from elsewhere. */
export async function load({ wasm = new URL("./model.wasm", import.meta.url), weights } = {}) {
    const { instance } = await WebAssembly.instantiate(await bytesOf(new URL(wasm, import.meta.url)), {});
    const m = new DataView(instance.exports.memory.buffer);
    const needs = m.getUint32(instance.exports.model() + 28, true);
    const at = new URL(weights ?? "./model.bin", import.meta.url);
    return new Model(instance, needs ? await bytesOf(at) : undefined);
}
