//! The randomness of a run: whatever asks the system for random bytes on the run's thread gets them from the seed.
//!
//! Session ids, election time-outs and everything else that libraries draw come through the one door of the `getrandom`
//! crate, which `make sim` opens with `getrandom_backend="custom"`. A thread without a seed gets no randomness at all, so
//! that nothing can slip in from outside. Knows nothing of what the bytes are for.

use std::cell::RefCell;

use rand::{RngCore, SeedableRng, rngs::StdRng};

/// A source of random numbers with a seed of its own.
pub type Dice = StdRng;

thread_local! {
    static SOURCE: RefCell<Option<Dice>> = const { RefCell::new(None) };
}

/// Dice for one purpose of a run; the same for the same seed and purpose.
#[must_use]
pub fn dice(seed: u64, purpose: u64) -> Dice {
    Dice::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// From here on the system's randomness on this thread comes from the seed. Once per thread: what a library has drawn
/// before is not taken back.
pub fn seed_this_thread(seed: u64) {
    SOURCE.with(|source| *source.borrow_mut() = Some(dice(seed, u64::from_le_bytes(*b"entropy\0"))));
}

fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    let filled = SOURCE.try_with(|source| match &mut *source.borrow_mut() {
        Some(dice) => {
            dice.fill_bytes(bytes);
            Ok(())
        }
        None => Err(getrandom::Error::UNSUPPORTED),
    });
    filled.unwrap_or(Err(getrandom::Error::UNSUPPORTED))
}

/// Called by the `getrandom` crate, in both of its versions that libraries use.
#[allow(unsafe_code, reason = "the form in which that crate asks for its source")]
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(dest: *mut u8, len: usize) -> Result<(), getrandom::Error> {
    // SAFETY: the caller hands over `len` writable bytes; they are given a value before they are read.
    let bytes = unsafe {
        std::ptr::write_bytes(dest, 0, len);
        std::slice::from_raw_parts_mut(dest, len)
    };
    fill(bytes)
}
