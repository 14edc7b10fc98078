use super::*;
#[test]
fn probe() {
    for yaml in ["a: 1\na: 2", "a: [", "a: 1\nb: {c: 1\nd: 2\n", "a: 1\n\tb: 2", "a: &x [1]\nb: {<<: *y}", "? [a]\n: b", "f: .nan", "a: 1\n---\nb: 2", "a: \u{1b}[31m", "a\u{202e}b: 1\na\u{202e}b: 2", "'a", "l: 99999999999999999999999"] {
        let err = serde_saphyr::from_str::<serde_json::Value>(yaml);
        let Err(err) = err else { println!("=== {yaml:?} {err:?}"); continue };
        println!("=== {yaml:?}\n{}\n{}\n{:?}", err.without_snippet(), err.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter), err.to_string());
    }
}
