// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the C that burncc made of a model with $CC (cc) and $CFLAGS (-O3), and packs it with $AR (ar).
use std::{env, path::Path, process::Command};

fn words(name: &str, usual: &str) -> Vec<String> {
    println!("cargo:rerun-if-env-changed={name}");
    let text = env::var(name).ok().filter(|s| !s.trim().is_empty()).unwrap_or_else(|| usual.into());
    text.split_whitespace().map(String::from).collect()
}

fn run(command: &[String], more: &[&str]) {
    let status = Command::new(&command[0]).args(&command[1..]).args(more).status();
    match status {
        Ok(s) if s.success() => (),
        Ok(s) => panic!("{} ends with {s}", command[0]),
        Err(e) => panic!("cannot run {}: {e}", command[0]),
    }
}

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = Path::new(&out).join("burn_model.o").display().to_string();
    let library = Path::new(&out).join("libburn_model.a").display().to_string();
    let mut cc = words("CC", "cc");
    cc.extend(words("CFLAGS", "-O3"));
    run(&cc, &["-std=c99", "-fPIC", "-ffp-contract=off", "-Ic", "-c", "c/model.c", "-o", &object]);
    run(&words("AR", "ar"), &["crs", &library, &object]);
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=burn_model");
    if env::var("CARGO_CFG_UNIX").is_ok() {
        println!("cargo:rustc-link-lib=m");
    }
    println!("cargo:rerun-if-changed=c");
}
