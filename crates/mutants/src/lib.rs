//! Faults put in by hand, to prove that the simulation finds them: which one is in force.
//!
//! Each stands where the code would be wrong, as `if mutant!("its-name") { .. }`. Only a build with
//! `--cfg holdfast_mutants` has them, and there one is chosen at run time, once, by whoever runs the proof. In every other
//! build `mutant!` is the constant `false`, and not even the names are in the binary. Knows no fault itself; the list is
//! `crates/sim/mutants.toml`.

#![no_std]

/// Whether the fault of this name is in force.
#[cfg(holdfast_mutants)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::is_chosen($name)
    };
}

/// Whether the fault of this name is in force: never, in this build.
#[cfg(not(holdfast_mutants))]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}

#[cfg(holdfast_mutants)]
pub use chosen::{choose, is_chosen};

#[cfg(holdfast_mutants)]
mod chosen {
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Fingerprint of the fault in force; 0 for none.
    static CHOSEN: AtomicU64 = AtomicU64::new(0);

    /// Puts a fault in force, for the whole process.
    pub fn choose(name: &str) {
        CHOSEN.store(fingerprint(name), Ordering::Relaxed);
    }

    /// Whether this fault is in force.
    #[must_use]
    #[inline(never)]
    pub fn is_chosen(name: &str) -> bool {
        CHOSEN.load(Ordering::Relaxed) == fingerprint(name)
    }

    /// FNV-1a, 64 bits.
    fn fingerprint(name: &str) -> u64 {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        name.bytes().fold(0xcbf2_9ce4_8422_2325, fold)
    }
}
