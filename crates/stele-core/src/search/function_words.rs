//! English words that carry grammar and no matter. They are kept in the index (phrases and queries of nothing else
//! need them) but do not count in a query that has other words.

/// Whether the folded word is a function word.
pub(super) fn is_function_word(word: &str) -> bool {
    word.len() <= LONGEST && WORDS.binary_search(&word).is_ok()
}

const LONGEST: usize = 10;

/// Ascending. Articles, pronouns, prepositions, conjunctions, auxiliaries, question words, contractions without
/// their apostrophe.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "aint", "all", "also", "although", "am", "among",
    "an", "and", "another", "any", "are", "arent", "as", "at", "be", "because", "been", "before", "being",
    "below", "between", "both", "but", "by", "can", "cant", "could", "couldnt", "did", "didnt", "do",
    "does", "doesnt", "doing", "done", "dont", "during", "each", "even", "ever", "few", "for", "from",
    "get", "gets", "got", "had", "hadnt", "has", "hasnt", "have", "havent", "having", "he", "her", "here",
    "heres", "hers", "herself", "hes", "him", "himself", "his", "how", "hows", "i", "if", "im", "in",
    "into", "is", "isnt", "it", "itd", "itll", "its", "itself", "ive", "just", "lets", "like", "many",
    "may", "me", "might", "more", "most", "much", "must", "mustnt", "my", "myself", "no", "nor", "not",
    "now", "of", "off", "on", "once", "one", "only", "onto", "or", "other", "ought", "our", "ours",
    "ourselves", "out", "over", "own", "per", "same", "shall", "she", "shes", "should", "shouldnt", "since",
    "so", "some", "still", "such", "than", "that", "thats", "the", "their", "theirs", "them", "themselves",
    "then", "there", "theres", "these", "they", "theyll", "theyre", "theyve", "this", "those", "though",
    "through", "to", "too", "toward", "towards", "under", "unless", "until", "up", "upon", "us", "very",
    "via", "was", "wasnt", "we", "were", "werent", "weve", "what", "whats", "when", "where", "wheres",
    "whether", "which", "while", "who", "whom", "whos", "whose", "why", "will", "with", "within", "without",
    "wont", "would", "wouldnt", "yet", "you", "youd", "youll", "your", "youre", "yours", "yourself",
    "youve",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_its_longest_word_is_known() {
        assert!(WORDS.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(WORDS.iter().map(|word| word.len()).max(), Some(LONGEST));
    }
}
