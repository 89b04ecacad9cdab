//! `/v1/elections`: campaign, proclaim, resign, look, observe.

pub(crate) mod campaign;
pub(crate) mod show;

#[cfg(test)]
mod tests;
