//! `/v1/claims`: take part, give back, look.

pub(crate) mod part;
pub(crate) mod show;
