//! Random bits: keys from the operating system, stretched by ChaCha12.
//!
//! A key is asked for where noise is about to be drawn and forgotten after. No generator lives from one release to the
//! next, so that neither a forked process nor a resumed run nor a restored machine can draw the same noise twice.

use chacha20::{
    ChaCha12Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::Error;

/// The secret behind one release. Neither printed nor copied: whoever knows it can subtract the noise.
pub(crate) struct Key([u8; 32]);

impl Key {
    /// Fresh bytes of the operating system's generator.
    #[allow(clippy::disallowed_methods, reason = "the one door to the operating system's randomness")]
    pub(crate) fn fresh() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        // Without entropy there is no noise, and without noise no release: never a weaker source instead.
        getrandom::fill(&mut bytes).map_err(|_| Error::NoEntropy)?;
        Ok(Self(bytes))
    }

    /// One of 2⁶⁴ streams, independent if ChaCha12 is a pseudorandom function of (number, block) [Ber08].
    pub(crate) fn stream(&self, number: u64) -> Stream {
        let mut cipher = ChaCha12Rng::from_seed(self.0);
        cipher.set_stream(number);
        Stream(cipher)
    }
}

/// Random bits, at most 2⁷⁰ bytes of them.
///
/// ChaCha with 12 rounds, as in Rust's standard generator and in Adiantum, which Linux encrypts disks with. After 18 years no attack is
/// known that reaches 8 of them. Of 5.2 ns that a rounded number takes on one core, 2.6 are the cipher's; with 20 rounds they would be 4.2, with 8 rounds 1.9.
/// (AES-256 in counter mode, by the `aes` crate on VAES: 1.8 ns, and five more crates to trust.)
pub(crate) struct Stream(ChaCha12Rng);

impl Stream {
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn next_u128(&mut self) -> u128 {
        u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())
    }

    /// Fills a buffer, which is faster than word by word.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Uniform on 0, …, 2^count - 1.
    ///
    /// # Contract
    /// 1 ≤ count ≤ 64.
    pub(crate) fn bits(&mut self, count: u32) -> u64 {
        self.next_u64() >> (64 - count)
    }

    /// Uniform on 0, …, bound - 1, exactly: numbers of the same length are drawn until one is below the bound, twice on average
    /// at most.
    ///
    /// # Contract
    /// bound ≥ 1.
    pub(crate) fn below(&mut self, bound: u128) -> u128 {
        debug_assert!(bound > 0, "there is no number below zero");
        let unused = bound.saturating_sub(1).leading_zeros();
        if unused == 128 {
            return 0;
        }
        loop {
            let draw = if unused >= 64 { u128::from(self.next_u64() >> (unused - 64)) } else { self.next_u128() >> unused };
            if draw < bound {
                return draw;
            }
        }
    }
}

impl Key {
    /// The key that follows from this one: the start of the stream of that number, as different as outputs of a pseudorandom function are.
    pub(crate) fn next(&self, number: u64) -> Self {
        let mut bytes = [0; 32];
        self.stream(number).fill(&mut bytes);
        Self(bytes)
    }
}

/// Where keys come from.
pub(crate) enum Randomness {
    /// The only source for anything that claims to be private.
    OperatingSystem,
    /// Repeatable: for tests, and for runs that are marked as not private.
    Seeded {
        /// What all keys follow from.
        seed: Key,
        /// How many keys were drawn.
        drawn: u64,
    },
}

impl Randomness {
    /// A repeatable source.
    pub(crate) fn seeded(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self::Seeded { seed: Key(bytes), drawn: 0 }
    }

    /// Whether the noise can be repeated, and so taken away.
    pub(crate) fn is_seeded(&self) -> bool {
        matches!(self, Self::Seeded { .. })
    }

    /// A source of its own, for one run.
    pub(crate) fn split(&mut self) -> Self {
        match self {
            Self::OperatingSystem => Self::OperatingSystem,
            Self::Seeded { seed, drawn } => {
                let seed = seed.next(*drawn);
                *drawn += 1;
                Self::Seeded { seed, drawn: 0 }
            }
        }
    }

    /// The next key; never the same twice.
    pub(crate) fn key(&mut self) -> Result<Key, Error> {
        match self {
            Self::OperatingSystem => Key::fresh(),
            Self::Seeded { seed, drawn } => {
                let key = seed.next(*drawn);
                *drawn += 1;
                Ok(key)
            }
        }
    }
}
