//! Placeholder until the samplers arrive.

use crate::Error;

pub(crate) struct Key(#[allow(dead_code)] [u8; 32]);

#[derive(Clone, Copy)]
pub(crate) enum Randomness {
    OperatingSystem,
    Seeded { seed: u64 },
}

impl Randomness {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded { seed }
    }
    pub(crate) fn is_seeded(&self) -> bool {
        matches!(self, Self::Seeded { .. })
    }
    pub(crate) fn split(&mut self) -> Self {
        *self
    }
    pub(crate) fn key(&mut self) -> Result<Key, Error> {
        match self {
            Self::OperatingSystem => Err(Error::NoEntropy),
            Self::Seeded { seed } => Ok(Key([*seed as u8; 32])),
        }
    }
}
