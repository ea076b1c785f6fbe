//! Cursors: opaque, keysets, bound to the list that they came from. DESIGN 3.11, spec/anthropic.md 1.6.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stele_core::hash::Sha256;
use stele_core::id::{Epoch, StoreId};
use stele_core::list::StorePosition;
use stele_core::service::Position;
use stele_core::time::Timestamp;

const FORM: u8 = 1;
const BINDING: usize = 8;

/// A list that cursors are valid for: its route, its store and its filters, but not its page size or view.
#[derive(Clone, Debug)]
pub struct List {
    binding: [u8; BINDING],
}

/// A text that is no cursor of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCursor;

impl List {
    /// The list with these distinguishing parts, in order.
    pub fn new(parts: &[&str]) -> Self {
        let hash = Sha256::of(parts.join("\0").as_bytes());
        let mut binding = [0; BINDING];
        binding.copy_from_slice(&hash.as_bytes()[..BINDING]);
        Self { binding }
    }

    /// This list in one store, in one life of the database: in another one its places say nothing.
    #[must_use]
    pub fn of_store(&self, store: StoreId, epoch: Epoch) -> Self {
        let hash = Sha256::of(&[&self.binding[..], store.as_bytes(), epoch.as_bytes()].concat());
        let mut binding = [0; BINDING];
        binding.copy_from_slice(&hash.as_bytes()[..BINDING]);
        Self { binding }
    }

    /// The cursor to go on behind `key`.
    pub fn cursor(&self, key: &[u8]) -> String {
        let mut bytes = vec![FORM];
        bytes.extend_from_slice(&self.binding);
        bytes.extend_from_slice(key);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The key in a cursor.
    ///
    /// # Errors
    /// It is damaged or of another list.
    pub fn key(&self, cursor: &str) -> Result<Vec<u8>, BadCursor> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?;
        let key = bytes.strip_prefix(&[FORM]).and_then(|bytes| bytes.strip_prefix(&self.binding));
        key.map(<[u8]>::to_vec).ok_or(BadCursor)
    }
}

/// The key of a place in a list of stores.
pub fn store_key(position: StorePosition) -> Vec<u8> {
    [&position.created_at.as_micros().to_be_bytes()[..], position.id.as_bytes()].concat()
}

/// The place in a list of stores.
///
/// # Errors
/// It is no such key.
pub fn store_position(key: &[u8]) -> Result<StorePosition, BadCursor> {
    let (time, id) = key.split_first_chunk::<8>().ok_or(BadCursor)?;
    let id: [u8; 16] = id.try_into().map_err(|_| BadCursor)?;
    let created_at = Timestamp::from_micros(i64::from_be_bytes(*time));
    Ok(StorePosition { created_at, id: StoreId::from_bytes(id) })
}

/// The key of a place in a list by creation.
pub fn created_key((created_at, id): Position) -> Vec<u8> {
    [&created_at.as_micros().to_be_bytes()[..], &id].concat()
}

/// The place in a list by creation.
///
/// # Errors
/// It is no such key.
pub fn created_position(key: &[u8]) -> Result<Position, BadCursor> {
    let StorePosition { created_at, id } = store_position(key)?;
    Ok((created_at, *id.as_bytes()))
}

/// The place in a list by path.
///
/// # Errors
/// It is no such key.
pub fn path_position(key: Vec<u8>) -> Result<String, BadCursor> {
    let path = String::from_utf8(key).map_err(|_| BadCursor)?;
    if path.starts_with('/') { Ok(path) } else { Err(BadCursor) }
}

/// The place in a history.
///
/// # Errors
/// It is no such key.
pub fn sequence_position(key: &[u8]) -> Result<u64, BadCursor> {
    Ok(u64::from_be_bytes(key.try_into().map_err(|_| BadCursor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_goes_on_in_its_own_list_and_in_no_other() {
        let list = List::new(&["memories", "store-1", "/notes/"]);
        let cursor = list.cursor(b"/notes/a");
        assert_eq!(list.key(&cursor), Ok(b"/notes/a".to_vec()));
        assert_eq!(List::new(&["memories", "store-2", "/notes/"]).key(&cursor), Err(BadCursor));
        assert_eq!(List::new(&["versions", "store-1", "/notes/"]).key(&cursor), Err(BadCursor));
        for bad in ["", "!!!!", "garbage", "9", &cursor[1..]] {
            assert_eq!(list.key(bad), Err(BadCursor), "{bad}");
        }
    }

    #[test]
    fn a_cursor_of_another_store_or_epoch_is_none() {
        let list = List::new(&["memories"]);
        let of =
            |store, epoch| list.of_store(StoreId::from_bytes([store; 16]), Epoch::from_bytes([epoch; 16]));
        let cursor = of(1, 2).cursor(b"/a");
        assert_eq!(of(1, 2).key(&cursor), Ok(b"/a".to_vec()));
        for other in [of(2, 2), of(1, 1), of(2, 1)] {
            assert_eq!(other.key(&cursor), Err(BadCursor));
        }
    }

    #[test]
    fn positions_read_back() {
        let at = Timestamp::from_micros(1_790_604_131_123_456);
        let position = StorePosition { created_at: at, id: StoreId::mint(at, 7) };
        assert_eq!(store_position(&store_key(position)), Ok(position));
        assert_eq!(store_position(b"short"), Err(BadCursor));
        assert_eq!(sequence_position(&7u64.to_be_bytes()), Ok(7));
        assert_eq!(path_position(b"no slash".to_vec()), Err(BadCursor));
    }
}
