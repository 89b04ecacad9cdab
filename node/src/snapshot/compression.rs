//! How a snapshot's data are packed in the store: zstd, in chunks, with the digest of the packed bytes taken on the way.
//!
//! Knows bytes, not what they mean, and no store. What is unpacked is never trusted: it may not be longer than was said.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Level of compression: the default of zstd, which packs faster than any network takes it.
const LEVEL: i32 = 3;
/// Bytes that are packed in one go; other tasks of the thread wait for so long.
pub const CHUNK_BYTES: usize = 256 * 1024;
/// Compressed bytes that are unpacked in one go. They may hold far more.
const UNPACK_BYTES: usize = 16 * 1024;

/// Measures of data and of what they are packed into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Length of the data, bytes.
    pub size_bytes: u64,
    /// Length as packed, bytes.
    pub stored_bytes: u64,
    /// SHA-256 of the packed bytes, lower-case hex.
    pub sha256: String,
}

/// Length and digest of a stream of bytes.
#[derive(Default)]
struct Measure {
    digest: Sha256,
    bytes: u64,
}

impl Measure {
    fn add(&mut self, data: &[u8]) {
        self.digest.update(data);
        self.bytes += data.len() as u64;
    }

    fn content(self, size_bytes: u64) -> Content {
        Content { size_bytes, stored_bytes: self.bytes, sha256: hex(&self.digest.finalize()) }
    }
}

/// Packs data chunk by chunk.
pub struct Packer {
    encoder: zstd::stream::write::Encoder<'static, Vec<u8>>,
    size_bytes: u64,
    stored: Measure,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("size_bytes", &self.size_bytes).finish_non_exhaustive()
    }
}

impl Packer {
    /// A packer that has seen nothing yet.
    ///
    /// # Errors
    /// When there is no memory for its tables.
    pub fn new() -> io::Result<Packer> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL)?;
        // The digest is of what is stored; this one says that the same comes out that went in.
        encoder.include_checksum(true)?;
        Ok(Packer { encoder, size_bytes: 0, stored: Measure::default() })
    }

    /// Packs the next chunk; gives what is ready, often nothing.
    ///
    /// # Errors
    /// As zstd.
    pub fn pack(&mut self, chunk: &[u8]) -> io::Result<Bytes> {
        self.size_bytes += chunk.len() as u64;
        self.encoder.write_all(chunk)?;
        let ready = std::mem::take(self.encoder.get_mut());
        self.stored.add(&ready);
        Ok(ready.into())
    }

    /// The rest, and what was packed.
    ///
    /// # Errors
    /// As zstd.
    pub fn finish(mut self) -> io::Result<(Bytes, Content)> {
        let rest = self.encoder.finish()?;
        self.stored.add(&rest);
        Ok((rest.into(), self.stored.content(self.size_bytes)))
    }
}

/// What becomes of unpacked data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are only measured.
    Nothing,
    /// They are kept in memory.
    All,
}

/// Unpacks data chunk by chunk, or only measures what is not packed.
pub struct Unpacker {
    form: Form,
    stored: Measure,
    fault: Option<io::Error>,
}

enum Form {
    Plain(Sink),
    Packed(zstd::stream::write::Decoder<'static, Sink>),
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

impl Unpacker {
    /// For packed data that hold at most `limit_bytes`.
    ///
    /// # Errors
    /// When there is no memory for its tables.
    pub fn packed(keep: Keep, limit_bytes: u64) -> io::Result<Unpacker> {
        let decoder = zstd::stream::write::Decoder::new(Sink::new(keep, limit_bytes))?;
        Ok(Unpacker { form: Form::Packed(decoder), stored: Measure::default(), fault: None })
    }

    /// For data as they are, at most `limit_bytes`.
    #[must_use]
    pub fn plain(keep: Keep, limit_bytes: u64) -> Unpacker {
        Unpacker { form: Form::Plain(Sink::new(keep, limit_bytes)), stored: Measure::default(), fault: None }
    }

    /// Takes the next chunk. After a fault the rest is only measured.
    pub fn take(&mut self, chunk: &[u8]) {
        self.stored.add(chunk);
        if self.fault.is_none() {
            self.fault = self.unpack(chunk).err();
        }
    }

    fn unpack(&mut self, chunk: &[u8]) -> io::Result<()> {
        match &mut self.form {
            Form::Plain(sink) => sink.write_all(chunk),
            Form::Packed(decoder) => chunk.chunks(UNPACK_BYTES).try_for_each(|part| decoder.write_all(part)),
        }
    }

    /// What was in it, and the data if they were kept. It is an error if it was not packed data, or more than was said.
    pub fn finish(self) -> (Content, io::Result<Bytes>) {
        let (sink, flushed) = match self.form {
            Form::Plain(sink) => (sink, Ok(())),
            Form::Packed(mut decoder) => {
                let flushed = decoder.flush();
                (decoder.into_inner(), flushed)
            }
        };
        let unpacked = match self.fault {
            Some(fault) => Err(fault),
            None => flushed,
        };
        (self.stored.content(sink.size_bytes), unpacked.map(|()| sink.kept.into()))
    }
}

/// Measures what flows in.
struct Sink {
    size_bytes: u64,
    limit_bytes: u64,
    keep: Keep,
    kept: Vec<u8>,
}

impl Sink {
    fn new(keep: Keep, limit_bytes: u64) -> Sink {
        Sink { size_bytes: 0, limit_bytes, keep, kept: Vec::new() }
    }
}

impl Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.size_bytes += data.len() as u64;
        if self.size_bytes > self.limit_bytes {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("more than {} bytes come out", self.limit_bytes),
            ));
        }
        match self.keep {
            Keep::All => self.kept.extend_from_slice(data),
            Keep::Nothing => {}
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lower-case hex.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(data: &[u8], chunk: usize) -> (Vec<u8>, Content) {
        let mut packer = Packer::new().unwrap();
        let mut stored = Vec::new();
        for part in data.chunks(chunk) {
            stored.extend_from_slice(&packer.pack(part).unwrap());
        }
        let (rest, content) = packer.finish().unwrap();
        stored.extend_from_slice(&rest);
        (stored, content)
    }

    fn unpacked(stored: &[u8], limit_bytes: u64) -> (Content, io::Result<Bytes>) {
        let mut unpacker = Unpacker::packed(Keep::All, limit_bytes).unwrap();
        stored.chunks(7_777).for_each(|chunk| unpacker.take(chunk));
        unpacker.finish()
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        let data: Vec<u8> = (0..700_000_u32).flat_map(|at| (at / 9).to_le_bytes()).collect();
        for (data, chunk) in [(&data[..], CHUNK_BYTES), (&data[..], 1_000), (&data[..1], 1), (&[][..], 1)] {
            let (stored, content) = packed(data, chunk);
            let (found, out) = unpacked(&stored, data.len() as u64);
            assert!(out.unwrap() == data, "{} bytes in chunks of {chunk}", data.len());
            assert_eq!(found, content);
            assert_eq!(found.size_bytes, data.len() as u64);
        }
        let (stored, _) = packed(&data, CHUNK_BYTES);
        assert!(stored.len() < data.len() / 2, "{} of {}", stored.len(), data.len());
    }

    #[test]
    fn no_more_comes_out_than_was_said() {
        let (stored, _) = packed(&vec![0; 50_000_000], CHUNK_BYTES);
        assert!(stored.len() < 10_000);
        let fault = unpacked(&stored, 1_000).1.unwrap_err();
        assert_eq!(fault.to_string(), "more than 1000 bytes come out");
    }

    #[test]
    fn damaged_and_cut_off_data_are_found() {
        let data: Vec<u8> =
            (0..100_000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let (stored, content) = packed(&data, CHUNK_BYTES);
        for at in [0, 5, stored.len() / 2, stored.len() - 1] {
            let mut damaged = stored.clone();
            damaged[at] ^= 0x10;
            assert_ne!(unpacked(&damaged, data.len() as u64).0, content, "byte {at}");
        }
        for end in [0, 3, stored.len() / 2, stored.len() - 1] {
            assert_ne!(unpacked(&stored[..end], data.len() as u64).0, content, "the first {end} bytes");
        }
    }

    #[test]
    fn plain_data_are_measured() {
        let mut unpacker = Unpacker::plain(Keep::Nothing, 3);
        unpacker.take(b"abc");
        let (content, kept) = unpacker.finish();
        assert!(content.sha256.starts_with("ba7816bf") && kept.unwrap().is_empty());
        let mut short = Unpacker::plain(Keep::Nothing, 2);
        short.take(b"abc");
        assert!(short.finish().1.is_err());
    }
}
