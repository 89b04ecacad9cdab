//! The bounds of fields, one by one, with the words that clients read.

use holdfast_locktable::command::{RequestId, Wait};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn refused<T: DeserializeOwned + fmt::Debug>(value: Value, words: &str) {
    let shown = value.to_string();
    let message = read::<T>(value).expect_err(&shown);
    assert!(message.contains(words), "{shown}: {message} lacks {words}");
}

#[test]
fn numbers_have_both_bounds_and_are_whole() {
    let bound = "a whole number from 1000 to 86400000";
    for bad in [json!(999), json!(86_400_001), json!(-5), json!(1.5), json!(1e20), json!("1000"), json!(null)]
    {
        refused::<TtlMs>(bad, bound);
    }
    assert_eq!(read::<TtlMs>(json!(1_000)).map(TtlMs::get), Ok(1_000));
    assert_eq!(read::<TtlMs>(json!(86_400_000)).map(TtlMs::get), Ok(86_400_000));
    for bad in [json!(0), json!(9_007_199_254_740_992_u64), json!(-1), json!(u64::MAX)] {
        refused::<TokenNumber>(bad, "a whole number from 1 to 9007199254740991");
    }
    assert_eq!(read::<TokenNumber>(json!(9_007_199_254_740_991_u64)).map(|t| t.token().0), Ok((1 << 53) - 1));
    refused::<GroupNumber>(json!(4_294_967_296_u64), "to 4294967295");
}

#[test]
fn a_wait_limit_is_a_try_a_limit_or_none() {
    assert_eq!(WaitMs::wait(None), Wait::Unlimited);
    assert_eq!(WaitMs::wait(read(json!(0)).ok()), Wait::Try);
    assert_eq!(WaitMs::wait(read(json!(3_600_000)).ok()), Wait::AtMost(3_600_000));
    refused::<WaitMs>(json!(3_600_001), "from 0 to 3600000");
}

#[test]
fn names_are_checked_as_on_every_surface() {
    refused::<LockName>(json!(""), "the name is empty");
    refused::<LockName>(json!("a".repeat(2_048)), "2048 bytes");
    refused::<LockName>(json!("a\u{0}b"), "U+0000 at byte 1");
    refused::<LockName>(json!("a\nb"), "U+000A");
    refused::<ElectionName>(json!("a\u{85}b"), "U+0085");
    refused::<LockName>(json!(7), "a name of 1 to 2047 bytes");
    for odd in ["/", "a//b", ".", "a/", "\u{202e}x", "é"] {
        assert_eq!(read::<LockName>(json!(odd)).unwrap().0.text(), odd);
    }
    assert_eq!(read::<NamePrefix>(json!("")).unwrap().0, "");
    refused::<NamePrefix>(json!("a\tb"), "U+0009");
}

#[test]
fn sessions_are_lower_case_hex_without_padding() {
    for bad in ["", "nothex", "0f", "F", "0", "8000000000000000", "1ffffffffffffffff", "-1", "0x1f"] {
        refused::<SessionHex>(json!(bad), "lower-case hex");
    }
    refused::<SessionHex>(json!(12), "lower-case hex");
    let session = read::<SessionHex>(json!("7fffffffffffff01")).unwrap();
    assert_eq!(serde_json::to_value(session).unwrap(), json!("7fffffffffffff01"));
}

#[test]
fn texts_have_bounds_in_bytes() {
    refused::<RequestText>(json!(""), "1 to 256 are allowed");
    refused::<RequestText>(json!("é".repeat(129)), "has 258 bytes");
    refused::<CandidateValue>(json!("v".repeat(65_537)), "has 65537 bytes");
    assert_eq!(read::<CandidateValue>(json!("v".repeat(65_536))).unwrap().0.len(), 65_536);
    refused::<Reason>(json!("  "), "the reason is empty");
    refused::<Reason>(json!("r".repeat(1_025)), "has 1025 bytes");
    refused::<Cursor>(json!(""), "has 0 bytes");
}

#[test]
fn metadata_is_an_object_of_texts_within_bounds() {
    refused::<MetadataMap>(json!({ "pid": 7 }), "expected a string");
    refused::<MetadataMap>(json!(["a"]), "an object of texts");
    refused::<MetadataMap>(json!({ "a": "y".repeat(4_096) }), "4097 bytes");
    let many: Value = (0..33).map(|n| (format!("k{n}"), json!(""))).collect::<serde_json::Map<_, _>>().into();
    refused::<MetadataMap>(many, "33 entries");
    let twice = serde_json::from_str::<MetadataMap>(r#"{"a":"1","a":"2"}"#).unwrap_err();
    assert!(twice.to_string().contains("\"a\" twice"), "{twice}");
}

#[test]
fn requests_without_an_id_get_one_that_nobody_else_has() {
    let (one, two) = (RequestText::or_unique(None), RequestText::or_unique(None));
    assert_ne!(one, two);
    let RequestId::Text(text) = one else { panic!("{one:?} is no text") };
    assert_eq!(text.len(), 32);
    let given = RequestText::or_unique(read(json!("r1")).ok());
    assert_eq!(given, RequestId::Text("r1".into()));
}
