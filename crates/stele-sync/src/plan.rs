//! What follows for a path from its three sides: what was the same last, what lies in the folder, what is in the store.
//! The official worker's table, spec/anthropic.md 13, without its loss of the local text where both changed.

use std::collections::BTreeMap;

use stele_core::hash::Sha256;
use stele_core::work::attachment::Access;

/// What lies in the folder at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// Nothing.
    Missing,
    /// A text with this hash.
    Text(Sha256),
    /// A file that cannot be a memory, for this reason.
    Unfit(String),
    /// Something that is no file: it is never touched.
    Foreign(String),
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Both sides agree.
    Same,
    /// Write the store's text into the folder.
    Pull,
    /// The same, and keep what lies there aside first.
    Displace,
    /// Delete the file.
    RemoveHere,
    /// Make a memory of the file.
    Create,
    /// Change the memory, if its text still has this hash.
    Update(Sha256),
    /// Delete the memory, if its text still has this hash.
    DeleteThere(Sha256),
    /// Give the memory at this path, whose text has this hash, the path of the file.
    Move(String, Sha256),
    /// Nothing for now: the store is read-only.
    ReadOnly,
    /// Nothing for now: what lies there cannot be a memory.
    Unfit(String),
    /// Nothing for now: the deletion is one too many.
    HoldBack,
}

/// What follows for one path.
pub(crate) fn step(base: Option<Sha256>, local: &Local, remote: Option<Sha256>, access: Access) -> Step {
    let writes = access == Access::ReadWrite;
    match (local, base, remote) {
        (Local::Missing, _, None) => Step::Same,
        (Local::Text(here), _, Some(there)) if *here == there => Step::Same,
        // A link, a directory or a device in the place of a text is never touched, whatever the store says.
        (Local::Foreign(why), ..) => Step::Unfit(why.clone()),
        (Local::Missing, Some(base), Some(there)) if base == there && writes => Step::DeleteThere(base),
        (Local::Missing, _, Some(_)) => Step::Pull,
        (Local::Text(here), Some(base), Some(_)) if *here == base => Step::Pull,
        (Local::Text(here), Some(base), None) if *here == base => Step::RemoveHere,
        (Local::Text(_), Some(base), Some(there)) if base == there && writes => Step::Update(there),
        (Local::Text(_), Some(base), Some(there)) if base == there => Step::ReadOnly,
        (Local::Text(_), _, Some(_)) => Step::Displace,
        (Local::Text(_), _, None) if writes => Step::Create,
        (Local::Text(_), _, None) => Step::ReadOnly,
        (Local::Unfit(why), _, None) => Step::Unfit(why.clone()),
        (Local::Unfit(why), Some(base), Some(there)) if base == there => Step::Unfit(why.clone()),
        (Local::Unfit(_), _, Some(_)) => Step::Displace,
    }
}

/// How many memories one pass may delete because their files are gone, of so many that were synced.
pub(crate) fn most_deletions(synced: usize) -> usize {
    (synced / 4).clamp(8, 50)
}

/// Turns a deletion and a new file with the same text into a move, so that the memory keeps its id and history.
/// `texts` gives the text of each file.
pub(crate) fn find_moves(steps: &mut BTreeMap<String, Step>, texts: &BTreeMap<String, Sha256>) {
    let mut gone: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
    for (path, step) in steps.iter() {
        if let Step::DeleteThere(hash) = step {
            gone.entry(*hash.as_bytes()).or_default().push(path.clone());
        }
    }
    let mut new: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
    for (path, step) in steps.iter() {
        if let (Step::Create, Some(hash)) = (step, texts.get(path)) {
            new.entry(*hash.as_bytes()).or_default().push(path.clone());
        }
    }
    for (hash, from) in gone {
        // Of several with the same text nobody could say which went where.
        if let ([from], Some([to])) = (from.as_slice(), new.get(&hash).map(Vec::as_slice)) {
            steps.insert(to.clone(), Step::Move(from.clone(), Sha256::from_bytes(hash)));
            steps.remove(from);
        }
    }
}

/// Keeps a folder that was emptied by mistake, or was not mounted, from emptying the store. `synced`: how many paths
/// were the same last; `missing`: how many of them have no file any more, here or elsewhere in the folder. Every file
/// gone at once (two or more) is a wipe: all come back. Of many deletions the first ones count.
pub(crate) fn guard_deletions(steps: &mut BTreeMap<String, Step>, synced: usize, missing: usize) {
    let wiped = synced >= 2 && missing == synced;
    let mut left = most_deletions(synced);
    for step in steps.values_mut().filter(|step| matches!(step, Step::DeleteThere(_))) {
        match left.checked_sub(1) {
            _ if wiped => *step = Step::Pull,
            Some(rest) => left = rest,
            None => *step = Step::HoldBack,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u8) -> Sha256 {
        Sha256::from_bytes([n; 32])
    }

    /// `base local remote`, each a digit for a text, `-` for nothing, `u` for an unfit file, `f` for a foreign thing.
    fn of(sides: &str, access: Access) -> Step {
        let [base, local, remote] = sides.as_bytes() else { panic!("three sides") };
        let text = |side: u8| side.is_ascii_digit().then(|| hash(side - b'0'));
        let local = match local {
            b'u' => Local::Unfit("u".into()),
            b'f' => Local::Foreign("f".into()),
            side => text(*side).map_or(Local::Missing, Local::Text),
        };
        step(text(*base), &local, text(*remote), access)
    }

    #[test]
    fn every_row_of_the_official_table() {
        let unfit = || Step::Unfit("u".into());
        let rows = [
            // base local remote, read_write, read_only
            ("---", Step::Same, Step::Same),
            ("111", Step::Same, Step::Same),
            ("1--", Step::Same, Step::Same),
            ("122", Step::Same, Step::Same),
            ("-11", Step::Same, Step::Same),
            ("--1", Step::Pull, Step::Pull),
            ("112", Step::Pull, Step::Pull),
            ("-1-", Step::Create, Step::ReadOnly),
            ("121", Step::Update(hash(1)), Step::ReadOnly),
            ("123", Step::Displace, Step::Displace),
            ("-12", Step::Displace, Step::Displace),
            ("1-1", Step::DeleteThere(hash(1)), Step::Pull),
            ("1-2", Step::Pull, Step::Pull),
            ("11-", Step::RemoveHere, Step::RemoveHere),
            ("12-", Step::Create, Step::ReadOnly),
            ("-u-", unfit(), unfit()),
            ("1u1", unfit(), unfit()),
            ("1u-", unfit(), unfit()),
            ("1u2", Step::Displace, Step::Displace),
            ("-u1", Step::Displace, Step::Displace),
            ("1f2", Step::Unfit("f".into()), Step::Unfit("f".into())),
        ];
        for (sides, writable, read_only) in rows {
            assert_eq!(of(sides, Access::ReadWrite), writable, "{sides} read_write");
            assert_eq!(of(sides, Access::ReadOnly), read_only, "{sides} read_only");
        }
    }

    fn deletions(number: usize) -> BTreeMap<String, Step> {
        (0..number).map(|n| (format!("/{n:03}"), Step::DeleteThere(hash(1)))).collect()
    }

    fn kept(steps: &BTreeMap<String, Step>, step: &Step) -> usize {
        steps.values().filter(|found| *found == step).count()
    }

    #[test]
    fn an_emptied_folder_is_filled_again_and_of_many_deletions_some_wait() {
        let mut wiped = deletions(5);
        guard_deletions(&mut wiped, 5, 5);
        assert_eq!(kept(&wiped, &Step::Pull), 5);
        let mut single = deletions(1);
        guard_deletions(&mut single, 1, 1);
        assert_eq!(kept(&single, &Step::DeleteThere(hash(1))), 1);
        for (synced, gone, deleted) in [(10, 9, 8), (100, 60, 25), (1_000, 90, 50)] {
            let mut many = deletions(gone);
            guard_deletions(&mut many, synced, gone);
            assert_eq!(kept(&many, &Step::DeleteThere(hash(1))), deleted, "{synced}");
            assert_eq!(kept(&many, &Step::HoldBack), gone - deleted, "{synced}");
        }
    }

    #[test]
    fn a_text_that_lies_elsewhere_now_was_moved_unless_it_is_not_the_only_one() {
        let mut steps = deletions(1);
        steps.insert("/new".into(), Step::Create);
        let texts = BTreeMap::from([("/new".to_owned(), hash(1))]);
        find_moves(&mut steps, &texts);
        assert_eq!(steps, BTreeMap::from([("/new".to_owned(), Step::Move("/000".into(), hash(1)))]));
        let mut twins = deletions(2);
        twins.insert("/new".into(), Step::Create);
        find_moves(&mut twins, &texts);
        assert_eq!(twins["/new"], Step::Create);
    }
}
