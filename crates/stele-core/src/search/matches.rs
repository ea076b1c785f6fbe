//! The memories that one clause of a query matches, and how matches are put together.

use super::index::{Extent, Index};
use super::postings::Postings;

/// The live memories that a clause matches, by ascending slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    pub(super) items: Vec<Match>,
    positions: Vec<u32>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) slot: u32,
    /// Occurrences, weighted by field.
    pub(super) frequency: f32,
    from: u32,
    to: u32,
}

impl Matches {
    /// The live memories of `postings`. This is where a query spends its time.
    pub(super) fn of(index: &Index, postings: &Postings) -> Self {
        // An occurrence takes a byte at least, a new memory two.
        let bytes = postings.heap_bytes();
        let mut matches = Self { items: Vec::with_capacity(bytes / 2), positions: Vec::with_capacity(bytes) };
        let mut extent = None;
        let mut last = Match { slot: u32::MAX, frequency: 0.0, from: 0, to: 0 };
        for at in postings.iter() {
            if at.slot != last.slot {
                matches.items.extend(extent.map(|_: &Extent| last));
                extent = Some(&index.extents[at.slot as usize]).filter(|extent| extent.live);
                let from = matches.positions.len() as u32;
                last = Match { slot: at.slot, frequency: 0.0, from, to: from };
            }
            if let Some(extent) = extent {
                last.frequency += extent.weight(at.position);
                last.to += 1;
                matches.positions.push(at.position);
            }
        }
        matches.items.extend(extent.map(|_| last));
        matches
    }

    fn add(&mut self, slot: u32, position: u32, weight: f32) {
        let from = self.positions.len() as u32;
        self.positions.push(position);
        match self.items.last_mut().filter(|item| item.slot == slot) {
            Some(item) => (item.frequency, item.to) = (item.frequency + weight, from + 1),
            None => self.items.push(Match { slot, frequency: weight, from, to: from + 1 }),
        }
    }

    /// Where in the memory, ascending; empty for a union.
    pub(super) fn positions(&self, item: &Match) -> &[u32] {
        &self.positions[item.from as usize..item.to as usize]
    }

    /// The memory in `slot`.
    pub(super) fn get(&self, slot: u32) -> Option<&Match> {
        self.items.binary_search_by_key(&slot, |item| item.slot).ok().map(|at| &self.items[at])
    }

    /// What any of `parts` matches, as often as the one that matches it most; without positions.
    pub(super) fn union(parts: &[Matches], slots: usize) -> Self {
        let mut most = vec![0.0_f32; slots];
        for item in parts.iter().flat_map(|part| &part.items) {
            let most = &mut most[item.slot as usize];
            *most = most.max(item.frequency);
        }
        let found = most.iter().zip(0..).filter(|(frequency, _)| **frequency > 0.0);
        let items = found.map(|(frequency, slot)| Match { slot, frequency: *frequency, from: 0, to: 0 });
        Self { items: items.collect(), positions: Vec::new() }
    }

    /// Where the parts stand at their distances from the first; a part without a distance may stand anywhere.
    pub(super) fn phrase(index: &Index, parts: &[(&Matches, Option<u32>)]) -> Self {
        let mut found = Self::default();
        let Some(((first, _), others)) = parts.split_first() else { return found };
        for item in &first.items {
            let others: Option<Vec<_>> = others
                .iter()
                .map(|(part, distance)| Some((*part, part.get(item.slot)?, *distance)))
                .collect();
            let Some(others) = others else { continue };
            let extent = &index.extents[item.slot as usize];
            if first.positions(item).is_empty() {
                found.items.push(*item);
            }
            for start in first.positions(item) {
                let stands = others.iter().all(|(part, other, distance)| match distance {
                    Some(distance) => part.positions(other).binary_search(&(start + distance)).is_ok(),
                    None => true,
                });
                if stands {
                    found.add(item.slot, *start, extent.weight(*start));
                }
            }
        }
        found
    }

    /// Those that `others` does not match.
    pub(super) fn without(mut self, others: &Matches) -> Self {
        self.items.retain(|item| others.get(item.slot).is_none());
        self
    }
}

/// How close the positions of two terms come: the sum over the first term's of one over the square of the distance
/// to the nearest of the other's, as far as `WINDOW`.
pub(super) fn closeness(a: &[u32], b: &[u32]) -> f32 {
    const WINDOW: u32 = 8;
    let mut sum = 0.0;
    let mut next = 0;
    for position in a {
        while next < b.len() && b[next] < *position {
            next += 1;
        }
        let after = b.get(next).map(|other| other - position);
        let before = next.checked_sub(1).map(|at| position - b[at]);
        let nearest = after.into_iter().chain(before).min().unwrap_or(u32::MAX).max(1);
        if nearest <= WINDOW {
            sum += 1.0 / (nearest * nearest) as f32;
        }
    }
    sum
}
