//! The openraft glue: the only place of the workspace, beside the log store, that names openraft.

pub mod types;
