//! The model @NAME@, compiled to C by burncc. The C is reentrant: any number of threads may run it, each with a
//! [`Workspace`] of its own.
mod burn;

pub use burn::Workspace;

extern "C" {
    #[link_name = "@NAME@_model"]
    static MODEL: burn::Model;
}

@WEIGHTS@/// What a run returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
@ERRORS@    /// another code
    Other(i32),
}

impl Error {
    fn check(code: i32) -> Result<(), Error> {
        match code {
            0 => Ok(()),
@ERROR_CODES@            other => Err(Error::Other(other)),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
@ERROR_TEXTS@            Error::Other(code) => return write!(f, "code {code}"),
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}

fn model() -> &'static burn::Model {
    unsafe { &*std::ptr::addr_of!(MODEL) }
}

impl Workspace {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Workspace::of(model())
    }
}

@RUN@