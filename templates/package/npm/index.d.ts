// Written by burncc.
export interface Tensor<T> {
    data: T;
    dims: number[];
}

export interface Inputs {
@INPUTS@}

export interface Outputs {
@OUTPUTS@}

export interface Described {
    name: string;
    dims: (number | string)[];
    type: string;
}

export class ModelError extends Error {
    /** a BURN_E... code */
    code: number;
}

/** One at a time; several instances have memory of their own. */
export class Model {
    constructor(instance: WebAssembly.Instance, weights?: Uint8Array);
    readonly name: string;
    readonly inputs: Described[];
    readonly outputs: Described[];
    run(inputs: Inputs): Outputs;
}

/** The model of this package, or its files from elsewhere. */
export function load(from?: { wasm?: string | URL; weights?: string | URL }): Promise<Model>;
