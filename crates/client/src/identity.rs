//! What a client says about itself unless told otherwise: host, process id, user. For operators' eyes only.

use std::collections::BTreeMap;

/// Longest text taken from the environment, in bytes.
const MAX_TEXT_BYTES: usize = 255;

/// `host`, `pid` and `user`, as far as they are known.
pub(crate) fn metadata() -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([("pid".to_owned(), std::process::id().to_string())]);
    if let Some(host) = nix::unistd::gethostname().ok().and_then(|host| host.into_string().ok()) {
        metadata.insert("host".into(), shortened(host));
    }
    if let Ok(user) = std::env::var("USER")
        && !user.is_empty()
    {
        metadata.insert("user".into(), shortened(user));
    }
    metadata
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}
