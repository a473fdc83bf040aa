// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's descriptor (`burn_model` of burn.h) in Rust, and the one place that is unsafe: runs over tensors whose
//! buffers are slices. Written by burncc, and the same for every model.
#![allow(dead_code)]
use crate::Error;
use std::os::raw::{c_char, c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    data: *mut c_void,
    bytes: usize,
    shape: *mut i64,
    dtype: c_int,
    rank: c_int,
}

type Run = unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void, *const Tensor, *const Tensor) -> c_int;
type Shapes = unsafe extern "C" fn(*const Tensor, *const Tensor) -> c_int;

#[repr(C)]
pub struct Model {
    version: c_int,
    name: *const c_char,
    input_count: c_int,
    output_count: c_int,
    inputs: *const c_void,
    outputs: *const c_void,
    workspace_bytes: usize,
    weights_bytes: usize,
    weights_check: Option<unsafe extern "C" fn(*const c_void, usize) -> c_int>,
    parts: c_int,
    run: Run,
    size_count: c_int,
    sizes: *const c_void,
    shapes: Option<Shapes>,
    metadata: *const *const c_char,
}

// Constant data, and functions that are reentrant.
unsafe impl Sync for Model {}

#[repr(align(64))]
pub struct Aligned<T: ?Sized>(pub T);

/// Scratch memory of one run; one for each thread that runs the model.
pub struct Workspace {
    block: Vec<u64>,
}

impl Workspace {
    pub(crate) fn of(model: &Model) -> Self {
        Workspace { block: vec![0; model.workspace_bytes / 8 + 1] }
    }
}

impl Tensor {
    pub fn read<T>(data: &[T], shape: &mut [i64], dtype: c_int) -> Self {
        let rank = shape.len() as c_int;
        let bytes = std::mem::size_of_val(data);
        Tensor { data: data.as_ptr() as *mut c_void, bytes, shape: shape.as_mut_ptr(), dtype, rank }
    }
    pub fn written<T>(data: &mut [T], shape: &mut [i64], dtype: c_int) -> Self {
        Tensor { data: data.as_mut_ptr() as *mut c_void, ..Tensor::read(data, shape, dtype) }
    }
    pub fn told(shape: &mut [i64], dtype: c_int) -> Self {
        Tensor::read::<u8>(&[], shape, dtype)
    }
}

/// The shape in numbers of C, of so many elements.
pub fn shape<const RANK: usize>(elements: usize, given: [usize; RANK]) -> Result<[i64; RANK], Error> {
    let count = given.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if count != Some(elements) {
        return Err(Error::Shape);
    }
    let mut shape = [0i64; RANK];
    for (to, from) in shape.iter_mut().zip(given) {
        *to = i64::try_from(from).map_err(|_| Error::Shape)?;
    }
    Ok(shape)
}

pub fn count(shape: &[i64]) -> usize {
    shape.iter().product::<i64>() as usize
}

/// The outputs' shapes for inputs of these.
pub fn shapes(model: &Model, inputs: &[Tensor], outputs: &[Tensor]) -> Result<(), Error> {
    match model.shapes {
        Some(f) => Error::check(unsafe { f(inputs.as_ptr(), outputs.as_ptr()) }),
        None => Ok(()),
    }
}

pub fn run(
    model: &Model,
    workspace: &mut Workspace,
    weights: Option<&[u8]>,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<(), Error> {
    if model.version < 1
        || inputs.len() != model.input_count as usize
        || outputs.len() != model.output_count as usize
        || weights.map_or(0, <[u8]>::len) != model.weights_bytes
    {
        return Err(Error::Inval);
    }
    let weights = weights.map_or(std::ptr::null(), <[u8]>::as_ptr) as *const c_void;
    let work = workspace.block.as_mut_ptr() as *mut c_void;
    // The slices live for the whole call, an output is a mutable one, and run compares every buffer with its shape.
    Error::check(unsafe { (model.run)(std::ptr::null(), work, weights, inputs.as_ptr(), outputs.as_ptr()) })
}
