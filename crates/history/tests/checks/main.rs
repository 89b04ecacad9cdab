//! Each check against histories that are broken in its way, and against good ones that come close.

mod ends;
mod fence;
mod order;
mod overlap;
mod sessions;
mod story;
mod text;
mod tokens;
