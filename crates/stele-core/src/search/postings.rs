//! Where one term occurs: slots of memories, ascending, with the positions in each, in about two bytes an occurrence.
//!
//! An occurrence is one number in base 128, least significant digit first, whose lowest bit says whether a new slot
//! begins. If so, the rest is the distance from the last slot and the position follows as another number; if not,
//! the rest is the distance from the last position.

/// The occurrences of one term; only ever appended to.
#[derive(Clone, Debug, Default)]
pub(super) struct Postings {
    bytes: Vec<u8>,
    last_slot: u32,
    last_position: u32,
}

/// One occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Occurrence {
    /// The memory.
    pub(super) slot: u32,
    /// The position in its text.
    pub(super) position: u32,
}

impl Postings {
    /// Adds an occurrence; slots come in ascending order. Twice the same one is kept once.
    pub(super) fn push(&mut self, slot: u32, position: u32) {
        if self.bytes.is_empty() || slot != self.last_slot {
            let distance = slot - self.last_slot;
            self.number(u64::from(distance) << 1 | 1);
            self.number(u64::from(position));
            (self.last_slot, self.last_position) = (slot, position);
        } else if position > self.last_position {
            self.number(u64::from(position - self.last_position) << 1);
            self.last_position = position;
        }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number as u8) | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// All occurrences, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Occurrence> {
        let mut bytes = self.bytes.iter();
        let (mut slot, mut position) = (0, 0);
        std::iter::from_fn(move || {
            let number = read(&mut bytes)?;
            if number & 1 == 1 {
                slot += (number >> 1) as u32;
                position = read(&mut bytes)? as u32;
            } else {
                position += (number >> 1) as u32;
            }
            Some(Occurrence { slot, position })
        })
    }

    /// Bytes held on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives back room that is not used.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

#[inline]
fn read(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let first = *bytes.next()?;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let (mut number, mut shift) = (u64::from(first & 0x7f), 7);
    loop {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_read_as_they_were_written() {
        let written = [(0, 0), (0, 1), (0, 70), (1, 3), (900, 0), (900, 200_000), (4_000_000_000, u32::MAX)];
        let mut postings = Postings::default();
        for (slot, position) in written {
            postings.push(slot, position);
            postings.push(slot, position);
        }
        let read: Vec<_> = postings.iter().map(|o| (o.slot, o.position)).collect();
        assert_eq!(read, written);
    }
}
