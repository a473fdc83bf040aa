// SPDX-License-Identifier: MIT OR Apache-2.0
// A package of --package npm in node. In: its folder, what to expect (image, batch or several), the digit's image.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, kind, path] = process.argv.slice(2);
const { load, ModelError } = await import(pathToFileURL(`${folder}/index.js`));
const model = await load();
const expect = (holds, what) => { if (!holds) throw new Error(`${kind}: ${what}`); };
const refused = (code, inputs, text) => {
    try {
        model.run(inputs);
    } catch (e) {
        expect(e instanceof ModelError && e.code === code && e.message.includes(text), `${e.code}: ${e.message}`);
        return;
    }
    expect(false, `is not refused: ${text}`);
};
const digit = (logits) => logits.indexOf(Math.max(...logits));

if (kind === "several") {
    const [a, w, b] = [[1, 2, 3, 4, 5, 6], [1, 0, 0, 1, 1, 1], [10, 20]].map((v) => Float32Array.from(v));
    const inputs = { a, w, b };
    const { y } = model.run(inputs);
    expect(String(y.data) === "14,25,20,31" && String(y.dims) === "2,2", `${y.data} of ${y.dims}`);
    refused(-10, { ...inputs, b: undefined }, 'input "b"');
    refused(-11, { ...inputs, b: new Float32Array(3) }, "3 elements for [2]");
} else {
    const image = Float32Array.from(readFileSync(path).subarray(-784), (v) => v / 255);
    if (kind === "image") {
        const { logits } = model.run({ image });
        expect(digit([...logits.data]) === 7 && String(logits.dims) === "1,10", "not a 7");
        const described = '[{"name":"image","dims":[1,1,28,28],"type":"Float32Array"}]';
        expect(JSON.stringify(model.inputs) === described, "inputs");
        refused(-10, { image: new Float64Array(784) }, "wants a Float32Array");
        refused(-11, { image: { data: image, dims: [784] } }, "wants 4 dimensions");
        refused(-11, { image: { data: image, dims: [1, 28, 28, 1] } }, "another rank or of other dimensions");
    } else {
        const three = new Float32Array(3 * 784);
        for (let i = 0; i < 3; i++) three.set(image, i * 784);
        const { logits } = model.run({ image: { data: three, dims: [3, 1, 28, 28] } });
        expect(String(logits.dims) === "3,10", `of ${logits.dims}`);
        for (let i = 0; i < 3; i++) expect(digit([...logits.data.subarray(10 * i, 10 * i + 10)]) === 7, "not a 7");
        expect(model.inputs[0].dims[0] === "batch", "a name for the size");
        refused(-5, { image: { data: new Float32Array(9 * 784), dims: [9, 1, 28, 28] } }, "is more than");
    }
}
