//! Query strings: strict UTF-8, each parameter once, none that is unknown.

use std::fmt;

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use serde::{
    Deserializer,
    de::{DeserializeOwned, IntoDeserializer, Unexpected, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};

use super::misfit;
use crate::api::http::problem::Problem;

/// A query that was read into `T`.
#[derive(Debug)]
pub(crate) struct QueryArgs<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest for QueryArgs<T> {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(parse(request.query_string()).map(Self))
    }
}

/// Reads the text after the `?`.
pub(super) fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decode(name)?, Value(decode(value)?)));
    }
    let map = MapDeserializer::<_, Fault>::new(pairs.into_iter());
    serde_path_to_error::deserialize(map).map_err(|error| misfit("the query", error))
}

/// Undoes percent-encoding; unlike common decoders it refuses what is not UTF-8 instead of replacing it.
fn decode(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => match (rest.next().and_then(hex), rest.next().and_then(hex)) {
                (Some(high), Some(low)) => bytes.push(high * 16 + low),
                (_, _) => {
                    return Err(Problem::invalid(format!(
                        "the query has a % without two hex digits behind it in {text:?}"
                    )));
                }
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| Problem::invalid(format!("the query is no UTF-8 in {text:?}")))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// What serde says about a parameter.
#[derive(Debug)]
struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The text of one parameter, read as whatever its field wants.
struct Value(String);

impl IntoDeserializer<'_, Fault> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_string(self.0)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // Only plain digits: `u64::from_str` would take a sign.
        let plain = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit());
        match self.0.parse() {
            Ok(number) if plain => visitor.visit_u64(number),
            Ok(_) | Err(_) => Err(serde::de::Error::invalid_value(Unexpected::Str(&self.0), &visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::http::fields::{NamePrefix, PageLimit, present};

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Args {
        #[serde(default)]
        prefix: NamePrefix,
        #[serde(default, deserialize_with = "present")]
        limit: Option<PageLimit>,
    }

    fn refused(query: &str) -> String {
        parse::<Args>(query).unwrap_err().to_string()
    }

    #[test]
    fn parameters_are_decoded_byte_for_byte() {
        let args = parse::<Args>("prefix=a%2Fb+c%C3%A9&limit=7").unwrap();
        assert_eq!(args.prefix.0, "a/b cé");
        assert_eq!(PageLimit::of(args.limit), 7);
        let args = parse::<Args>("").unwrap();
        assert_eq!((args.prefix.0.as_str(), PageLimit::of(args.limit)), ("", 100));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (query, words) in [
            ("limit=0", ["`limit`", "from 1 to 1000"]),
            ("limit=1001", ["`limit`", "from 1 to 1000"]),
            ("limit=+5", ["`limit`", "from 1 to 1000"]),
            ("limit=", ["`limit`", "from 1 to 1000"]),
            ("limit=99999999999999999999", ["`limit`", "from 1 to 1000"]),
            ("limit=5&limit=6", ["duplicate", "`limit`"]),
            ("page=5", ["unknown", "`page`"]),
            ("prefix=%ff", ["UTF-8", "%ff"]),
            ("prefix=%4", ["hex digits", "%4"]),
            ("prefix=a%00", ["`prefix`", "U+0000"]),
        ] {
            let message = refused(query);
            for word in words {
                assert!(message.contains(word), "{query}: {message} lacks {word}");
            }
        }
    }
}
