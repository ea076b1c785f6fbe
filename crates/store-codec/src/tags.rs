//! The tags of a record beside it, in one column: read with it, while the table of tags is there to be searched.

use stele_core::records::Tag;

/// Tags as they are stored: of each its name (two bytes, big end first), the length of its value, and the value.
pub fn encode_tags(tags: &[Tag]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(tags.iter().map(|tag| 3 + tag.value.len()).sum());
    for Tag { name, value } in tags {
        let length = u8::try_from(value.len()).expect("values of tags are short");
        stored.extend_from_slice(&name.to_be_bytes());
        stored.push(length);
        stored.extend_from_slice(value);
    }
    stored
}

/// The tags in a column; `None` if it is damaged.
pub fn decode_tags(mut stored: &[u8]) -> Option<Vec<Tag>> {
    let mut tags = Vec::new();
    while let Some(([high, low, length], rest)) = stored.split_first_chunk::<3>() {
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        tags.push(Tag { name: u16::from_be_bytes([*high, *low]), value: value.to_vec() });
        stored = rest;
    }
    stored.is_empty().then_some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_and_damage_is_noticed() {
        let tags = vec![
            Tag { name: 1, value: b"one".to_vec() },
            Tag { name: 0xfffe, value: Vec::new() },
            Tag { name: 2, value: vec![7; 64] },
        ];
        let stored = encode_tags(&tags);
        assert_eq!(decode_tags(&stored), Some(tags));
        assert_eq!(decode_tags(&[]), Some(Vec::new()));
        for cut in [1, 2, stored.len() - 1] {
            assert_eq!(decode_tags(&stored[..cut]), None, "{cut}");
        }
    }
}
