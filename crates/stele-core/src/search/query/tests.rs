use super::*;

fn terms(text: &str) -> Vec<String> {
    Query::parse(text).clauses.iter().filter(|c| c.how == How::Term).map(|c| c.term.to_string()).collect()
}

#[test]
fn function_words_are_left_out_beside_other_words() {
    assert_eq!(terms("Where did I put the keys?"), ["put", "kei"]);
    assert_eq!(terms("to be or not to be"), ["to", "be", "or", "not"]);
}

#[test]
fn a_term_that_is_said_twice_is_one() {
    assert_eq!(terms("fox foxes FOX. "), ["fox"]);
}

#[test]
fn an_identifier_is_asked_for_whole_and_by_part() {
    assert_eq!(terms("user_id."), ["user", "id", "userid"]);
    assert_eq!(terms("HttpServer."), ["httpserver", "http", "server"]);
}

#[test]
fn only_an_unfinished_last_word_is_a_beginning() {
    let open = |text: &str| Query::parse(text).clauses.iter().any(|c| c.how == How::Open);
    assert!(open("red fo"));
    assert!(!open("red fo?") && !open("red fo ") && !open("\"red fo\"") && !open("f") && !open("red of"));
}
