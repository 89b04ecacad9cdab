//! The one hash function of routing, frozen: changing a single result would strand every lock of a running cluster.
//!
//! FNV-1a over 64 bits, then the 64-bit finalizer of MurmurHash3 (FNV's low bits alone are weak for short, similar
//! names, and slots are taken from them).

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Hashes bytes: FNV-1a 64, then MurmurHash3's `fmix64`.
#[must_use]
pub const fn hash64(bytes: &[u8]) -> u64 {
    let mut hash = FNV_OFFSET;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(FNV_PRIME);
        rest = tail;
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// The slot of a partition key in a table of `slots` slots; 0 if there are none.
#[must_use]
pub fn slot_of_key(key: &str, slots: u16) -> u16 {
    slot(hash64(key.as_bytes()), slots)
}

/// The home slot of a session id among `slots`, from its eight bytes in big-endian order; 0 if there are none.
#[must_use]
pub fn slot_of_session(session_id: u64, slots: u16) -> u16 {
    slot(hash64(&session_id.to_be_bytes()), slots)
}

/// The remainder, not the high bits: doubling the slots then splits slot `i` into `i` and `i + slots`.
fn slot(hash: u64, slots: u16) -> u16 {
    let remainder = hash.checked_rem(u64::from(slots)).unwrap_or(0);
    u16::try_from(remainder).unwrap_or(0)
}
