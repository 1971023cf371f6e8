//! Archives as tar(1) reads them (POSIX ustar): plain files alone, in their order.

use std::io::{self, Read, Write};

/// Octets of a block.
const BLOCK: usize = 512;
/// Octets of a name in a header; longer ones stand in a header of their own (pax).
const NAME_OCTETS_MAX: usize = 100;
/// Octets of such a header.
const PAX_OCTETS_MAX: u64 = 4096;

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Writes a number in octal, with an octet of zero behind it.
fn octal(field: &mut [u8], number: u64) {
    let text = format!("{number:0width$o}", width = field.len() - 1);
    if let Some(place) = field.get_mut(..text.len()) {
        place.copy_from_slice(text.as_bytes());
    }
}

fn header(name: &str, kind: u8, (octets, at): (u64, u64)) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let name = name.as_bytes();
    let shown = name.get(..NAME_OCTETS_MAX).unwrap_or(name);
    block[..shown.len()].copy_from_slice(shown);
    octal(&mut block[100..108], 0o600);
    octal(&mut block[108..116], 0);
    octal(&mut block[116..124], 0);
    octal(&mut block[124..136], octets);
    octal(&mut block[136..148], at);
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let sum: u64 = block.iter().map(|octet| u64::from(*octet)).sum();
    octal(&mut block[148..155], sum);
    block
}

fn padding(octets: u64) -> usize {
    (BLOCK - (octets % BLOCK as u64) as usize) % BLOCK
}

/// Writes a file: its name, how long it is, and when it was made, in seconds since 1970.
///
/// # Errors
///
/// It cannot be written, or is shorter than that.
pub(super) fn put(
    to: &mut impl Write,
    name: &str,
    (octets, at): (u64, u64),
    content: impl Read,
) -> io::Result<()> {
    if name.len() > NAME_OCTETS_MAX {
        // A record has its own length in front.
        let record = |length: usize| format!("{length} path={name}\n");
        let mut length = record(0).len();
        while record(length).len() != length {
            length = record(length).len();
        }
        let text = record(length);
        to.write_all(&header("path", b'x', (text.len() as u64, at)))?;
        to.write_all(text.as_bytes())?;
        to.write_all(&[0; BLOCK][..padding(text.len() as u64)])?;
    }
    to.write_all(&header(name, b'0', (octets, at)))?;
    if io::copy(&mut content.take(octets), to)? != octets {
        return Err(wrong("a file has become shorter"));
    }
    to.write_all(&[0; BLOCK][..padding(octets)])
}

/// Ends an archive.
pub(super) fn end(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[0; 2 * BLOCK])
}

/// Reads an archive.
#[derive(Debug)]
pub(super) struct Reader<R> {
    from: R,
    /// What is left of the file that was found last, with what fills its last block.
    left: u64,
    padding: u64,
}

impl<R: Read> Reader<R> {
    pub(super) const fn new(from: R) -> Self {
        Self { from, left: 0, padding: 0 }
    }

    /// Returns the name of the next file, and how long it is; `None` at the end.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no archive with plain files alone.
    pub(super) fn next(&mut self) -> io::Result<Option<(String, u64)>> {
        let rest = self.left + self.padding;
        if io::copy(&mut (&mut self.from).take(rest), &mut io::sink())? != rest {
            return Err(wrong("the archive is cut off"));
        }
        (self.left, self.padding) = (0, 0);
        let mut long = None;
        loop {
            let mut block = [0; BLOCK];
            self.from.read_exact(&mut block).map_err(|_| wrong("the archive is cut off"))?;
            if block == [0; BLOCK] {
                return Ok(None);
            }
            let (name, kind, octets) = read_header(&block)?;
            match kind {
                b'0' | 0 => {
                    (self.left, self.padding) = (octets, padding(octets) as u64);
                    return Ok(Some((long.unwrap_or(name), octets)));
                }
                b'x' if octets <= PAX_OCTETS_MAX && long.is_none() => {
                    let mut record = vec![0; octets as usize + padding(octets)];
                    self.from.read_exact(&mut record).map_err(|_| wrong("the archive is cut off"))?;
                    record.truncate(octets as usize);
                    let text = String::from_utf8(record).map_err(|_| wrong("a name is no text"))?;
                    let (length, rest) = text.split_once(' ').ok_or_else(|| wrong("a header is none"))?;
                    let name = rest.strip_prefix("path=").and_then(|rest| rest.strip_suffix('\n'));
                    let name = name.filter(|name| !name.contains('\n') && length.parse() == Ok(text.len()));
                    long = Some(name.ok_or_else(|| wrong("a header is none"))?.to_owned());
                }
                _ => return Err(wrong("the archive has something else than files")),
            }
        }
    }
}

impl<R: Read> Read for Reader<R> {
    /// Reads the file that was found last.
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let octets = (&mut self.from).take(self.left).read(to)?;
        self.left -= octets as u64;
        Ok(octets)
    }
}

fn read_header(block: &[u8; BLOCK]) -> io::Result<(String, u8, u64)> {
    let number = |field: &[u8]| {
        let text = std::str::from_utf8(field).unwrap_or("x");
        let text = text.trim_matches(|c: char| c == '\0' || c == ' ');
        u64::from_str_radix(text, 8).map_err(|_| wrong("the archive is no tar"))
    };
    let mut plain = *block;
    plain[148..156].fill(b' ');
    let sum: u64 = plain.iter().map(|octet| u64::from(*octet)).sum();
    if number(&block[148..156])? != sum {
        return Err(wrong("the archive is no tar, or was changed"));
    }
    let name = block[..NAME_OCTETS_MAX].split(|octet| *octet == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).map_err(|_| wrong("a name is no text"))?;
    Ok((name.to_owned(), block[156], number(&block[124..136])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut all = Vec::new();
        for (name, content) in files {
            put(&mut all, name, (content.len() as u64, 1), *content).expect("written");
        }
        end(&mut all).expect("written");
        all
    }

    fn read(octets: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut reader = Reader::new(octets);
        let mut found = Vec::new();
        while let Some((name, _)) = reader.next()? {
            let mut content = Vec::new();
            reader.read_to_end(&mut content)?;
            found.push((name, content));
        }
        Ok(found)
    }

    #[test]
    fn what_is_written_is_read_and_tar_reads_it_too() {
        let long = format!("zones/{}.base", "x".repeat(200));
        let files: [(&str, &[u8]); 3] = [("a", b""), ("changes/b", &[7; 513]), (&long, b"c")];
        let all = archive(&files);
        let expected: Vec<_> = files.iter().map(|(name, it)| ((*name).to_owned(), it.to_vec())).collect();
        assert_eq!(read(&all).expect("an archive"), expected);
        let folder = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(folder.path().join("a.tar"), &all).expect("written");
        let listed = std::process::Command::new("tar").args(["-tf", "a.tar"]).current_dir(&folder).output();
        let listed = listed.expect("tar(1)");
        let names: String = files.iter().map(|(name, _)| format!("{name}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&listed.stdout), names);
    }

    #[test]
    fn what_is_cut_or_has_other_things_than_files_is_refused() {
        let all = archive(&[("a", &[1; 600]), ("b", b"2")]);
        for len in 0..all.len() - 2 * BLOCK + 1 {
            assert!(read(&all[..len]).is_err(), "{len}");
        }
        let mut link = all.clone();
        link[..BLOCK].copy_from_slice(&header("a", b'2', (0, 1)));
        assert!(read(&link).is_err());
        let mut changed = all;
        changed[0] = b'x';
        assert!(read(&changed).is_err(), "the name");
    }
}
