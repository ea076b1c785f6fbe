//! The entries of a tar: regular files written, anything read. Names longer than a header has room for, and names beyond
//! ASCII, stand in a PAX record (POSIX.1-2001), as every tar reads it.

use std::io::{self, Read, Write};

use tar::{EntryType, Header};

use crate::reader::ArchiveError;

const BLOCK: usize = 512;
/// Most bytes of a header's extension: names have 1,024.
const EXTENSION: u64 = 64 * 1024;
/// Most bytes behind the end, all of them zero.
const PADDING: u64 = 1 << 20;
/// Room for a name in a header.
const NAME: usize = 100;

/// Writes a regular file; `mtime` in seconds since the epoch.
pub(crate) fn append(out: &mut impl Write, name: &str, mtime: u64, body: &[u8]) -> io::Result<()> {
    if name.len() > NAME || !name.is_ascii() {
        let record = pax_record("path", name);
        put(out, EntryType::XHeader, "PaxHeader", mtime, record.as_bytes())?;
    }
    let plain: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).take(NAME).collect();
    put(out, EntryType::Regular, &plain, mtime, body)
}

/// Ends the tar.
pub(crate) fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK])
}

fn put(out: &mut impl Write, kind: EntryType, name: &str, mtime: u64, body: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(mtime);
    header.set_size(body.len() as u64);
    header.set_cksum();
    out.write_all(header.as_bytes())?;
    out.write_all(body)?;
    out.write_all(&[0; BLOCK][..padding(body.len() as u64)])
}

/// A record says its own length, digits included.
fn pax_record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

fn padding(size: u64) -> usize {
    (BLOCK - (size % BLOCK as u64) as usize) % BLOCK
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// What nothing is taken from, in words.
    Other(&'static str),
}

/// An entry before its body.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name; `Err` with what can be shown of one that is not UTF-8.
    pub(crate) name: Result<String, String>,
    /// What it is.
    pub(crate) kind: Kind,
    /// Bytes of its body.
    pub(crate) size: u64,
}

/// Reads entries one after the other.
pub(crate) struct Entries<R> {
    read: R,
    /// Bytes of the body at hand that were not read, and of its padding.
    left: u64,
    padding: u64,
}

impl<R: Read> Entries<R> {
    pub(crate) fn new(read: R) -> Self {
        Self { read, left: 0, padding: 0 }
    }

    /// The next entry; what was not read of the last one is passed over. `None` at the end of the tar.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, ArchiveError> {
        let mut long: Option<Vec<u8>> = None;
        loop {
            self.skip()?;
            let Some(header) = self.header()? else { return Ok(None) };
            let size = header.entry_size().map_err(|_| malformed("an entry does not say its size"))?;
            (self.left, self.padding) = (size, padding(size) as u64);
            match header.entry_type() {
                EntryType::XHeader => long = pax_path(&self.extension()?)?.or(long),
                EntryType::GNULongName => {
                    let mut name = self.extension()?;
                    name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                    long = Some(name);
                }
                EntryType::XGlobalHeader | EntryType::GNULongLink => {}
                other => {
                    let name = long.unwrap_or_else(|| header.path_bytes().into_owned());
                    let name = String::from_utf8(name)
                        .map_err(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                    return Ok(Some(Entry { name, kind: kind(other), size }));
                }
            }
        }
    }

    /// The body of the entry at hand, of at most `most` bytes; `None` where it has more.
    pub(crate) fn body(&mut self, most: u64) -> Result<Option<Vec<u8>>, ArchiveError> {
        if self.left > most {
            return Ok(None);
        }
        let length = usize::try_from(self.left).map_err(|_| malformed("an entry is too large"))?;
        let mut body = vec![0; length];
        self.read.read_exact(&mut body)?;
        self.left = 0;
        Ok(Some(body))
    }

    fn extension(&mut self) -> Result<Vec<u8>, ArchiveError> {
        self.body(EXTENSION)?.ok_or_else(|| malformed("the name of an entry is too long"))
    }

    fn skip(&mut self) -> Result<(), ArchiveError> {
        let rest = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.read).take(rest), &mut io::sink())?;
        (self.left, self.padding) = (0, 0);
        if skipped < rest { Err(ArchiveError::Truncated) } else { Ok(()) }
    }

    /// What follows the end: padding up to a record of tar's, and nothing that could be missed, such as a second tar.
    /// Reading on checks the frame's own hash.
    fn end(&mut self) -> Result<(), ArchiveError> {
        let mut behind = (&mut self.read).take(PADDING + 1);
        let (mut buffer, mut read) = ([0; 16 * BLOCK], 0);
        loop {
            let count = match behind.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            read += count as u64;
            if read > PADDING || buffer[..count].iter().any(|byte| *byte != 0) {
                return Err(malformed("it goes on behind its end"));
            }
        }
    }

    fn header(&mut self) -> Result<Option<Header>, ArchiveError> {
        let mut block = [0; BLOCK];
        let mut zeroes = 0;
        loop {
            self.read.read_exact(&mut block)?;
            if block != [0; BLOCK] {
                break;
            }
            zeroes += 1;
            if zeroes == 2 {
                return self.end().map(|()| None);
            }
        }
        let header = Header::from_byte_slice(&block).clone();
        let mut summed = header.clone();
        summed.set_cksum();
        if zeroes > 0 || header.cksum().ok() != summed.cksum().ok() {
            return Err(malformed("it is not a tar, or a damaged one"));
        }
        Ok(Some(header))
    }
}

fn malformed(what: &str) -> ArchiveError {
    ArchiveError::Malformed(what.to_owned())
}

fn kind(entry: EntryType) -> Kind {
    match entry {
        EntryType::Regular | EntryType::Continuous => Kind::File,
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink | EntryType::Link => Kind::Other("a link"),
        EntryType::Char | EntryType::Block => Kind::Other("a device"),
        EntryType::Fifo => Kind::Other("a pipe"),
        EntryType::GNUSparse => Kind::Other("a sparse file"),
        _ => Kind::Other("no file"),
    }
}

/// The path in PAX records, if there is one.
fn pax_path(mut records: &[u8]) -> Result<Option<Vec<u8>>, ArchiveError> {
    let broken = || malformed("an entry has a damaged extended header");
    let mut path = None;
    while !records.is_empty() {
        let space = records.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
        let length: usize = std::str::from_utf8(&records[..space])
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(broken)?;
        let record = records.get(space + 1..length).ok_or_else(broken)?;
        let record = record.strip_suffix(b"\n").ok_or_else(broken)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(broken)?;
        match &record[..equals] {
            b"path" => path = Some(record[equals + 1..].to_vec()),
            b"size" => return Err(malformed("an entry is larger than any memory")),
            _ => {}
        }
        records = &records[length..];
    }
    Ok(path)
}
