#!/usr/bin/env node
// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc.wasm in node: with the arguments, the environment and the files of who calls. In a thread of its own, which
// may have a stack as deep as large graphs want.
import { readFileSync } from "node:fs";
import { Worker, isMainThread } from "node:worker_threads";

if (isMainThread) {
    process.removeAllListeners("warning");              // node says of its WASI that it is an experiment
    const thread = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2), execArgv: ["--no-warnings"],
        resourceLimits: { stackSizeMb: 64 } });
    thread.on("exit", (status) => { process.exitCode = status; });
} else {
    const { WASI } = await import("node:wasi");
    const wasi = new WASI({
        version: "preview1",
        args: ["burncc", ...process.argv.slice(2)],
        env: { ...process.env, PWD: process.cwd() },
        preopens: { "/": "/" },
        returnOnExit: true,
    });
    const module = await WebAssembly.compile(readFileSync(new URL("burncc.wasm", import.meta.url)));
    process.exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
}
