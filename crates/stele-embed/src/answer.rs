//! The answer of an OpenAI-compatible endpoint: `{"data":[{"index":0,"embedding":[0.1,...]},...]}`.

use serde::Deserialize;

/// Most components of a vector: twice what the largest models give.
const MOST_COMPONENTS: usize = 8192;

#[derive(Deserialize)]
struct Body {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    /// Some servers leave it out; then the order tells.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The answer does not hold what was asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Unusable;

/// The vectors of `count` texts, in their order: all of one dimension, finite, none without a direction.
pub(crate) fn vectors(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, Unusable> {
    let Body { data } = serde_json::from_slice(body).map_err(|_| Unusable)?;
    let mut vectors = vec![Vec::new(); count];
    for (at, item) in data.into_iter().enumerate() {
        let place = vectors.get_mut(item.index.unwrap_or(at)).filter(|place| place.is_empty());
        *place.ok_or(Unusable)? = item.embedding;
    }
    let dimension = vectors.first().map_or(0, Vec::len);
    let sound = |vector: &Vec<f32>| {
        vector.len() == dimension && vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0)
    };
    let sound = vectors.iter().all(sound) && dimension <= MOST_COMPONENTS;
    if sound { Ok(vectors) } else { Err(Unusable) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_the_order_of_their_texts() {
        let body = br#"{"object":"list","data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[0.5,-2e-1]}]}"#;
        assert_eq!(vectors(body, 2), Ok(vec![vec![0.5, -0.2], vec![0.0, 1.0]]));
        assert_eq!(
            vectors(br#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#, 2),
            Ok(vec![vec![1.0], vec![2.0]])
        );
    }

    #[test]
    fn anything_else_is_not_used() {
        let bad = [
            "",
            "[]",
            "{}",
            r#"{"data":[]}"#,
            r#"{"data":[{"embedding":[]}]}"#,
            r#"{"data":[{"embedding":[0,0]}]}"#,
            r#"{"data":[{"embedding":[1e99]}]}"#,
            r#"{"data":[{"embedding":["1"]}]}"#,
            r#"{"data":[{"embedding":"AACAPw=="}]}"#,
            r#"{"data":[{"index":1,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            r#"{"error":{"message":"no"}}"#,
        ];
        for body in bad {
            assert_eq!(vectors(body.as_bytes(), 1), Err(Unusable), "{body}");
        }
        let mixed = r#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#;
        assert_eq!(vectors(mixed.as_bytes(), 2), Err(Unusable));
    }
}
