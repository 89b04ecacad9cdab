//! Reading the settings of a strategy, with refusals that say what is allowed. For strategies of other crates, too.

use alloc::string::{String, ToString};
use core::ops::RangeInclusive;

use super::{Params, StrategyError};

/// Refuses any setting that is not among `known`.
///
/// # Errors
/// The first unknown setting, with those there are.
pub fn only_known(strategy: &str, params: &Params, known: &[&str]) -> Result<(), StrategyError> {
    match params.keys().find(|param| !known.contains(&param.as_str())) {
        None => Ok(()),
        Some(param) => Err(StrategyError::UnknownParam {
            strategy: strategy.to_string(),
            param: param.clone(),
            known: known.join(", "),
        }),
    }
}

/// The value of a setting that has no default.
///
/// # Errors
/// It is not there; the error says what it must be.
pub fn required<'p>(
    strategy: &str,
    params: &'p Params,
    param: &'static str,
    expected: &'static str,
) -> Result<&'p str, StrategyError> {
    let missing = || StrategyError::MissingParam { strategy: strategy.to_string(), param, expected };
    params.get(param).map(String::as_str).ok_or_else(missing)
}

/// The number that `value`, given for `param`, stands for.
///
/// # Errors
/// It is no number or not an allowed one; the error says what it must be.
pub fn number(
    strategy: &str,
    param: &'static str,
    value: &str,
    allowed: RangeInclusive<u16>,
    expected: &'static str,
) -> Result<u16, StrategyError> {
    match value.parse() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(bad(strategy, param, value, expected)),
    }
}

/// The refusal of a value that is malformed or out of bounds.
#[must_use]
pub fn bad(strategy: &str, param: &'static str, value: &str, expected: &'static str) -> StrategyError {
    StrategyError::BadParam { strategy: strategy.to_string(), param, value: value.to_string(), expected }
}
