//! Lines of a list, kept as text until the list has ended.

/// Octets of memory that are taken at once. Above the octets of the longest line, so that little of
/// it stays empty.
const CHUNK_OCTETS: usize = 1 << 20;

/// Lines as text, one behind the other: each takes its octets and one more.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    chunks: Vec<String>,
}

/// Where a line is. Sorted as the lines came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    chunk: u32,
    octet: u32,
}

impl Texts {
    /// Adds a line, which has no line feed.
    pub(crate) fn push(&mut self, line: &str) -> At {
        let needed = line.len() + 1;
        if self.chunks.last().is_none_or(|chunk| chunk.len() + needed > chunk.capacity()) {
            self.chunks.push(String::with_capacity(needed.max(CHUNK_OCTETS)));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let octet = chunk.len();
        chunk.push_str(line);
        chunk.push('\n');
        // Lists have bounds far below 2³² octets.
        At { chunk: number as u32, octet: octet as u32 }
    }

    /// Returns a line.
    pub(crate) fn line(&self, at: At) -> &str {
        let rest = self.chunks.get(at.chunk as usize).and_then(|chunk| chunk.get(at.octet as usize..));
        rest.and_then(|rest| rest.split_once('\n')).map_or("", |(line, _)| line)
    }

    /// Returns all lines as they came.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().flat_map(|chunk| chunk.lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_came_and_take_little_more_than_their_octets() {
        let mut texts = Texts::default();
        let lines: Vec<String> = (0..100_000).map(|number| format!("{number} {}", "é".repeat(20))).collect();
        let long = "a".repeat(3 * CHUNK_OCTETS);
        let mut places: Vec<At> = lines.iter().map(|line| texts.push(line)).collect();
        places.push(texts.push(&long));
        places.push(texts.push("the last"));
        assert!(places.is_sorted());
        assert!(lines.iter().zip(&places).all(|(line, at)| texts.line(*at) == line));
        assert_eq!(texts.lines().take(lines.len()).collect::<Vec<_>>(), lines);
        assert_eq!(texts.lines().skip(lines.len()).collect::<Vec<_>>(), [&*long, "the last"]);
        let octets: usize = texts.lines().map(|line| line.len() + 1).sum();
        let taken: usize = texts.chunks.iter().map(String::capacity).sum();
        assert!(taken < octets + 2 * CHUNK_OCTETS, "{taken} for {octets}");
    }
}
