//! Ranking: BM25 over weighted fields, and what stands close together. One total order: score, then path.

use super::blend::{WithoutWords, blend};
use super::expand::{correct, matches};
use super::index::{Entry, Index};
use super::matches::{Match, Matches, closeness};
use super::query::{How, Phrase, Query};
use super::{Found, Hit, Nearness, Position, Request, Terms};

/// How soon more occurrences stop to count.
const K1: f32 = 0.9;
/// How much the length of a memory counts.
const B: f32 = 0.4;
/// What two neighbours of the query standing together add, of what the more frequent one is worth.
const PAIR_WEIGHT: f32 = 0.4;

/// Whether typing errors are corrected where nothing matches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Typing {
    /// The nearest words of the index are taken.
    Corrected,
    /// The query means what it says.
    AsWritten,
}

/// Whether quoted phrases must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phrases {
    /// They must.
    Required,
    /// They are words like the others.
    Loose,
}

impl Index {
    /// The answer to a query, or a page of it.
    pub fn search(&self, query: &Query, request: &Request<'_>) -> Found {
        self.find(query, request, Typing::Corrected)
    }

    /// As `search`, with a word on what happens to a query that nothing matches.
    pub(super) fn find(&self, query: &Query, request: &Request<'_>, typing: Typing) -> Found {
        let mut scoring = Scoring::of(self, query);
        let (mut scores, mut phrases) = (scoring.scores(Phrases::Required), Phrases::Required);
        let mut ranked = self.ranked(&scores, request);
        if ranked.is_empty() && !query.phrases.is_empty() && query.has_loose_words {
            (scores, phrases) = (scoring.scores(Phrases::Loose), Phrases::Loose);
            ranked = self.ranked(&scores, request);
        }
        let correct = typing == Typing::Corrected && query.may_be_corrected();
        if ranked.is_empty() && correct && scoring.correct() {
            scores = scoring.scores(Phrases::Required);
            ranked = self.ranked(&scores, request);
        }
        if let Some(nearness) = request.nearness {
            let required = phrases == Phrases::Required && !query.phrases.is_empty();
            let near = if required || query.meaning().is_none() {
                WithoutWords::Never
            } else {
                WithoutWords::IfNear
            };
            blend(&mut scores, &self.by_slot(nearness), near);
            ranked = self.ranked(&scores, request);
        }
        self.page(ranked, request, scoring.terms)
    }

    /// The nearness of every slot, `NAN` where it is not known.
    fn by_slot(&self, nearness: &Nearness) -> Vec<f32> {
        let mut by_slot = vec![f32::NAN; self.entries.len()];
        for (memory, near) in &nearness.0 {
            if let Some(slot) = self.slot(*memory) {
                by_slot[slot as usize] = *near;
            }
        }
        by_slot
    }

    /// The memories with a score, below the asked prefix; in no order.
    fn ranked(&self, scores: &[f32], request: &Request<'_>) -> Vec<(f32, &Entry)> {
        let below =
            |entry: &Entry| request.prefix.is_none_or(|prefix| entry.path.starts_with(prefix.as_str()));
        let found = scores.iter().copied().zip(&self.entries);
        found.filter(|(score, entry)| *score > 0.0 && below(entry)).collect()
    }

    fn page(&self, mut ranked: Vec<(f32, &Entry)>, request: &Request<'_>, terms: Terms) -> Found {
        let total_matches = ranked.len();
        if let Some(after) = request.after {
            let last = (f32::from_bits(after.score_bits), &*after.path);
            ranked.retain(|(score, entry)| order(&last, &(*score, &entry.path)).is_lt());
        }
        let by_rank = |a: &(f32, &Entry), b: &(f32, &Entry)| order(&(a.0, &a.1.path), &(b.0, &b.1.path));
        let more = ranked.len() > request.limit;
        if more {
            ranked.select_nth_unstable_by(request.limit, by_rank);
            ranked.truncate(request.limit);
        }
        ranked.sort_unstable_by(by_rank);
        let hit = |(score, entry): &(f32, &Entry)| Hit {
            memory: entry.memory,
            path: entry.path.clone(),
            score: *score,
            updated_at: entry.updated_at,
        };
        let hits: Vec<Hit> = ranked.iter().map(hit).collect();
        let next = hits.last().filter(|_| more);
        let next = next.map(|hit| Position { score_bits: hit.score.to_bits(), path: hit.path.clone() });
        Found { hits, total_matches, next, terms }
    }
}

/// The order of hits: by falling score, then by the bytes of the path.
fn order(a: &(f32, &str), b: &(f32, &str)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1))
}

/// The clauses of a query with what each matches.
struct Scoring<'a> {
    index: &'a Index,
    query: &'a Query,
    matches: Vec<Matches>,
    /// Where the quoted phrases are.
    phrases: Vec<Matches>,
    terms: Terms,
}

impl<'a> Scoring<'a> {
    fn of(index: &'a Index, query: &'a Query) -> Self {
        let mut found: Vec<Matches> = Vec::with_capacity(query.clauses.len());
        let mut terms = Terms::default();
        for clause in &query.clauses {
            let mut matched = matches(index, clause);
            if clause.how == How::Open {
                let word = query
                    .clauses
                    .iter()
                    .zip(&found)
                    .find(|(c, _)| c.how == How::Term && c.word == clause.word);
                matched = matched.without(word.map_or(&Matches::default(), |(_, matches)| matches));
            }
            let worth = clause.weight * idf(index, matched.items.len());
            match clause.how {
                How::Term if worth > 0.0 => drop(terms.stems.insert(clause.term.clone(), worth)),
                How::Beginning | How::Open => terms.beginnings.push(clause.term.clone()),
                How::Term | How::Form => {}
            }
            found.push(matched);
        }
        let mut scoring = Self { index, query, matches: found, phrases: Vec::new(), terms };
        scoring.phrases = query.phrases.iter().map(|phrase| scoring.phrase(phrase)).collect();
        scoring.prefer_substrings();
        scoring
    }

    /// A text in a script without spaces that occurs as it is, is looked for as it is, and not by its pairs.
    fn prefer_substrings(&mut self) {
        let wholes: Vec<_> = self.query.runs.iter().map(|run| (run, self.phrase(run))).collect();
        let (found, not_found): (Vec<_>, Vec<_>) =
            wholes.into_iter().partition(|(_, whole)| !whole.items.is_empty());
        let needed = |clause: usize| not_found.iter().any(|(run, _)| run.iter().any(|(at, _)| *at == clause));
        for (clause, _) in found.iter().flat_map(|(run, _)| run.iter()).filter(|(clause, _)| !needed(*clause))
        {
            self.matches[*clause] = Matches::default();
        }
        for (run, whole) in found {
            let first = &mut self.matches[run[0].0];
            if first.items.is_empty() {
                *first = whole;
            } else {
                *first = Matches::union(&[std::mem::take(first), whole], self.index.entries.len());
            }
        }
    }

    fn phrase(&self, phrase: &Phrase) -> Matches {
        let parts: Vec<_> = phrase.iter().map(|(clause, at)| (&self.matches[*clause], *at)).collect();
        Matches::phrase(self.index, &parts)
    }

    /// Puts in place of every word the nearest words of the index; whether there are any.
    fn correct(&mut self) -> bool {
        let mut any = false;
        for (clause, matches) in self.query.clauses.iter().zip(&mut self.matches) {
            if clause.how == How::Term && clause.weight >= 1.0 {
                let correction = correct(self.index, &clause.word);
                any |= !correction.matches.items.is_empty();
                *matches = correction.matches;
                self.terms.stems.extend(correction.stems.into_iter().map(|term| (term, 1.0)));
                self.terms.forms.extend(correction.forms.into_iter().map(|form| (form, 1.0)));
            }
        }
        any
    }

    /// The score of every slot; 0 where nothing matches, or a phrase does not that must.
    fn scores(&self, phrases: Phrases) -> Vec<f32> {
        let mut scores = vec![0.0; self.index.entries.len()];
        let average = self.index.average_length();
        for (clause, matches) in self.query.clauses.iter().zip(&self.matches) {
            let worth = clause.weight * idf(self.index, matches.items.len());
            for item in &matches.items {
                scores[item.slot as usize] += worth * self.saturated(item, item.frequency, average);
            }
        }
        for (a, b) in &self.query.pairs {
            self.add_pair(&self.matches[*a], &self.matches[*b], average, &mut scores);
        }
        for found in self.phrases.iter().filter(|_| phrases == Phrases::Required) {
            let mut must = vec![false; scores.len()];
            found.items.iter().for_each(|item| must[item.slot as usize] = true);
            // A phrase of function words alone has no score of its own.
            let keep = |(score, must): (&mut f32, bool)| {
                *score = if must { score.max(f32::MIN_POSITIVE) } else { 0.0 }
            };
            scores.iter_mut().zip(must).for_each(keep);
        }
        scores
    }

    /// What closeness of two neighbours of the query adds.
    fn add_pair(&self, a: &Matches, b: &Matches, average: f32, scores: &mut [f32]) {
        let worth = PAIR_WEIGHT * idf(self.index, a.items.len().max(b.items.len()));
        let mut others = b.items.iter().peekable();
        for item in &a.items {
            while others.next_if(|other| other.slot < item.slot).is_some() {}
            let Some(other) = others.peek().filter(|other| other.slot == item.slot) else { continue };
            let close = closeness(a.positions(item), b.positions(other));
            scores[item.slot as usize] += worth * self.saturated(item, close, average);
        }
    }

    /// BM25's share of a frequency in the memory of `item`: from 0 to `K1 + 1`.
    fn saturated(&self, item: &Match, frequency: f32, average: f32) -> f32 {
        let length = self.index.extents[item.slot as usize].length as f32;
        frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / average))
    }
}

/// What a term that so many memories hold is worth: always above 0.
fn idf(index: &Index, memories: usize) -> f32 {
    let (all, memories) = (index.len() as f32, memories as f32);
    ((all - memories + 0.5) / (memories + 0.5)).ln_1p()
}
