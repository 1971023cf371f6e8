//! Reads the object file of the kernel program: just enough of ELF for what clang writes.
//!
//! Maps are structures in a section `maps`, named by symbols; an instruction that loads a map's
//! address has a relocation which names that symbol. Nothing else is relocated.

use crate::sys::bpf::MapShape;

/// A relocation that puts 64 bits into the pair of instructions that loads them (`R_BPF_64_64`).
const LOAD_64: u32 = 1;
/// The opcode of that pair's first instruction.
const OPCODE_LOAD_64: u64 = 0x18;
/// What the source register says to mean "the map with this descriptor" (`BPF_PSEUDO_MAP_FD`).
const SOURCE_MAP: u64 = 1;

/// A program with the maps it needs.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) instructions: Vec<u64>,
    pub(crate) licence: String,
    pub(crate) maps: Vec<NamedMap>,
    /// Which instructions load which map.
    uses: Vec<(usize, usize)>,
}

/// A map as the source declares it.
#[derive(Debug)]
pub(crate) struct NamedMap {
    pub(crate) name: String,
    pub(crate) shape: MapShape,
    offset: u64,
}

fn read<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    bytes.get(usize::try_from(at).ok()?..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    read(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    read(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    read(bytes, at).map(u64::from_le_bytes)
}

fn text_at(bytes: &[u8], at: u64) -> Option<&str> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
}

/// A section: its name, what it holds, and the link that its type gives a meaning.
struct Section<'a> {
    name: &'a str,
    bytes: &'a [u8],
    link: usize,
    kind: u32,
}

impl Object {
    /// Reads an object; `None` if it is not what we compile.
    pub(crate) fn parse(file: &[u8]) -> Option<Self> {
        // 64 bits, little-endian, for BPF.
        if file.get(..6)? != b"\x7fELF\x02\x01" || u16_at(file, 18)? != 247 {
            return None;
        }
        let sections = sections(file)?;
        let find = |name: &str| sections.iter().position(|section| section.name == name);
        let program = sections.get(find("xdp")?)?.bytes;
        let licence = text_at(sections.get(find("license")?)?.bytes, 0)?.to_string();
        let instructions = program.as_chunks::<8>().0.iter().map(|it| u64::from_le_bytes(*it)).collect();

        let map_section = find("maps")?;
        let map_bytes = sections.get(map_section)?.bytes;
        let symbols = sections.iter().find(|section| section.kind == 2)?;
        let names = sections.get(symbols.link)?.bytes;
        let mut maps = Vec::new();
        for symbol in symbols.bytes.as_chunks::<24>().0 {
            if usize::from(u16_at(symbol, 6)?) != map_section || u64_at(symbol, 16)? == 0 {
                continue;
            }
            let offset = u64_at(symbol, 8)?;
            let word = |index: u64| u32_at(map_bytes, offset + index * 4);
            let shape = MapShape {
                kind: word(0)?,
                key_octets: word(1)?,
                value_octets: word(2)?,
                entries: word(3)?,
                flags: word(4)?,
            };
            maps.push(NamedMap {
                name: text_at(names, u32_at(symbol, 0)?.into())?.to_string(),
                shape,
                offset,
            });
        }

        let mut uses = Vec::new();
        for relocation in sections.get(find(".relxdp")?)?.bytes.as_chunks::<16>().0 {
            let (at, info) = (u64_at(relocation, 0)?, u64_at(relocation, 8)?);
            if info as u32 != LOAD_64 {
                return None;
            }
            let symbol = symbols.bytes.as_chunks::<24>().0.get(usize::try_from(info >> 32).ok()?)?;
            let offset = u64_at(symbol, 8)?;
            let map = maps.iter().position(|map| map.offset == offset)?;
            uses.push((usize::try_from(at / 8).ok()?, map));
        }
        Some(Self { instructions, licence, maps, uses })
    }

    /// Returns the instructions with the descriptors of the maps in their places, in the order of
    /// `maps`.
    pub(crate) fn link(&self, descriptors: &[i32]) -> Option<Vec<u64>> {
        let mut instructions = self.instructions.clone();
        for (at, map) in &self.uses {
            let descriptor = *descriptors.get(*map)?;
            let first = instructions.get_mut(*at)?;
            if *first & 0xff != OPCODE_LOAD_64 {
                return None;
            }
            // Opcode and destination stay; then the source register, no offset, and the low half of
            // the number.
            *first = (*first & 0x0fff) | SOURCE_MAP << 12 | u64::from(descriptor as u32) << 32;
            *instructions.get_mut(*at + 1)? = 0;
        }
        Some(instructions)
    }
}

fn sections(file: &[u8]) -> Option<Vec<Section<'_>>> {
    let table = u64_at(file, 40)?;
    let (count, names) = (u16_at(file, 60)?, u16_at(file, 62)?);
    let header = |index: u16| table + u64::from(index) * 64;
    let bytes = |at: u64| {
        let start = usize::try_from(u64_at(file, at + 24)?).ok()?;
        let octets = usize::try_from(u64_at(file, at + 32)?).ok()?;
        file.get(start..start.checked_add(octets)?)
    };
    let names = bytes(header(names))?;
    let mut sections = Vec::new();
    for index in 0..count {
        let at = header(index);
        sections.push(Section {
            name: text_at(names, u32_at(file, at)?.into())?,
            bytes: bytes(at)?,
            link: u32_at(file, at + 40)? as usize,
            kind: u32_at(file, at + 4)?,
        });
    }
    Some(sections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::bpf;

    const FILE: &[u8] = include_bytes!("../bpf/filter.o");

    #[test]
    fn the_object_has_the_maps_of_its_source() {
        let object = Object::parse(FILE).expect("our object");
        let mut maps: Vec<_> = object.maps.iter().map(|map| (map.name.as_str(), map.shape.kind)).collect();
        maps.sort_unstable();
        let expect = [
            ("blocked_v4", 11),
            ("blocked_v6", 11),
            ("counters", bpf::MAP_PER_CPU_ARRAY),
            ("destinations_v4", 1),
            ("destinations_v6", 1),
            ("settings", 2),
            ("sockets", bpf::MAP_SOCKETS),
        ];
        assert_eq!(maps, expect);
        assert_eq!(object.licence, "Dual MIT/GPL");
    }

    #[test]
    fn every_map_gets_its_descriptor() {
        let object = Object::parse(FILE).expect("our object");
        let descriptors: Vec<_> = (100..100 + object.maps.len() as i32).collect();
        let linked = object.link(&descriptors).expect("descriptors for all");
        let found: std::collections::BTreeSet<_> = linked
            .iter()
            .filter(|it| **it & 0xff == OPCODE_LOAD_64 && **it >> 12 & 0xf == SOURCE_MAP)
            .map(|it| (it >> 32) as i32)
            .collect();
        assert_eq!(found, descriptors.iter().copied().collect());
        assert!(object.link(&descriptors[1..]).is_none());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for len in 0..FILE.len() {
            // Nothing behind the section table is missed if the cut is beyond it; no cut may panic.
            let _ = Object::parse(&FILE[..len]);
        }
        assert!(Object::parse(b"\x7fELF").is_none());
        assert!(Object::parse(&FILE[..FILE.len() / 2]).is_none());
    }
}
