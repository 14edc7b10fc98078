//! x
#![allow(clippy::unwrap_used, reason = "a test says what went wrong by failing")]
mod support;
#[test]
fn scratch() {
    for (l, v) in [
        (10, 10),
        (100, 100),
        (200, 200),
        (300, 300),
        (500, 500),
        (1000, 1000),
        (2000, 1000),
    ] {
        let bytes = support::bomb::hard_to_compile("bomb", l, v);
        std::fs::write(format!("/tmp/h1/bomb-{l}-{v}.wasm"), &bytes).unwrap();
        eprintln!("{l} {v}: {}", bytes.len());
    }
}
