//! JSON values one after the other.

use std::io::{self, Write};

use serde::Serialize;

/// How JSON values follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One array.
    Array,
    /// One value a line.
    Lines,
}

/// Writes values one after the other.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    framing: Framing,
    n_written: u64,
}

impl<W: Write> Writer<W> {
    /// Nothing is written yet.
    pub fn new(to: W, framing: Framing) -> Self {
        Self {
            to,
            framing,
            n_written: 0,
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.begin()?;
        serde_json::to_writer(&mut self.to, value)?;
        self.end()
    }

    /// Writes a value that is JSON already.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write_json(&mut self, json: &[u8]) -> io::Result<()> {
        self.begin()?;
        self.to.write_all(json)?;
        self.end()
    }

    fn begin(&mut self) -> io::Result<()> {
        match (self.framing, self.n_written) {
            (Framing::Array, 0) => self.to.write_all(b"[\n")?,
            (Framing::Array, _) => self.to.write_all(b",\n")?,
            (Framing::Lines, _) => {}
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if self.framing == Framing::Lines {
            self.to.write_all(b"\n")?;
        }
        self.n_written += 1;
        Ok(())
    }

    /// Hands on what is written so far.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Writes what is left to write.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        match (self.framing, self.n_written) {
            (Framing::Array, 0) => self.to.write_all(b"[]\n")?,
            (Framing::Array, _) => self.to.write_all(b"\n]\n")?,
            (Framing::Lines, _) => {}
        }
        self.to.flush()
    }
}
