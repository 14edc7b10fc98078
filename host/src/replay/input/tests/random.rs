//! Inputs made at random, and good ones with some of their bytes changed.

use proptest::prelude::*;

use super::*;

/// Each problem lies within the input.
fn check_places(input: &[u8], all: &Read) -> Result<(), TestCaseError> {
    let lines: Vec<_> = input.split(|it| *it == b'\n').map(<[u8]>::len).collect();
    for it in all.problems.iter().chain(&all.refused) {
        let len = it.line.checked_sub(1).and_then(|line| lines.get(line));
        prop_assert!(
            len.is_some_and(|len| (1..=len + 1).contains(&it.column)),
            "{it}"
        );
        prop_assert!(it.what.len() < 2_000 && !it.what.contains('\n'), "{it}");
    }
    Ok(())
}

/// Pieces that inputs are made of, so that some are nearly right.
pub(super) fn piece() -> impl Strategy<Value = Vec<u8>> {
    let whole = [
        event("a").to_string(),
        pretty(&event("b")),
        list(&[event("c"), event("d")]).to_string(),
        pretty(&list(&[event("e"), json!(7)])),
        frame("DELETED", &event("f")).to_string(),
        frame("ERROR", &json!({})).to_string(),
        json!({ "kind": "Pod" }).to_string(),
        "kind: Event\nmetadata: {name: g, namespace: ns}\n".to_owned(),
        "items:\n- metadata:\n    name: h\n- kind: Pod\n  note: |\n    x\n- [\nkind: List\n"
            .to_owned(),
    ];
    let scraps = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\n",
        "\r\n",
        " ",
        "\u{feff}",
        "null",
        "{\"items\":[",
        "{\"type\":\"ADDED\",\"object\":",
        "# x\n",
        "---\n",
        "- ",
        "key: ",
        "items:\n",
    ];
    prop_oneof![
        3 => prop::sample::select(whole.map(String::into_bytes).to_vec()),
        4 => prop::sample::select(scraps.map(|it| it.as_bytes().to_vec()).to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// A way to spoil a line, without making it two.
#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Overwrite(prop::sample::Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = any::<u8>().prop_filter("a line stays one line", |it| *it != b'\n');
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Damage::Cut),
        (
            any::<prop::sample::Index>(),
            prop::collection::vec(byte, 1..12)
        )
            .prop_map(|(at, with)| Damage::Overwrite(at, with)),
    ]
}

fn spoil(text: &mut Vec<u8>, damage: Damage) {
    match damage {
        Damage::Cut(at) => text.truncate(at.index(text.len())),
        Damage::Overwrite(at, with) => {
            let at = at.index(text.len());
            for (it, byte) in text.iter_mut().skip(at).zip(with) {
                *it = byte;
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let all = read_all(&bytes);
        // What begins as what is compressed has the places of what it decompresses to.
        if !bytes.starts_with(b"\x1f\x8b") && !bytes.starts_with(b"\x28\xb5\x2f\xfd") {
            check_places(&bytes, &all)?;
        }
    }

    #[test]
    fn any_pieces_are_read_without_a_panic(pieces in prop::collection::vec(piece(), 0..12)) {
        let input = pieces.concat();
        let all = read_all(&input);
        check_places(&input, &all)?;
        // An empty list, a comment and the border of a document say nothing.
        let is_blank = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&input).trim_ascii().is_empty();
        let may_be_silent = is_blank || input.iter().any(|it| b"[#-".contains(it))
            || input.windows(6).any(|it| it == b"items:");
        prop_assert!(may_be_silent || all != Read::default(), "something was in there");
    }

    #[test]
    fn one_spoilt_line_costs_no_other(n_lines in 1..8_usize, spoilt in any::<prop::sample::Index>(), damage in damage()) {
        let mut lines: Vec<_> = (0..n_lines).map(|it| event(&format!("e{it}")).to_string().into_bytes()).collect();
        let spoilt = spoilt.index(n_lines);
        spoil(&mut lines[spoilt], damage);
        let is_blank = lines[spoilt].trim_ascii().is_empty();
        let input = lines.join(&b'\n');
        let mut all = read_all(&input);
        check_places(&input, &all)?;

        let others: Vec<_> = (0..n_lines).filter(|it| *it != spoilt).map(|it| format!("+e{it}")).collect();
        // What was spoilt may still be an Event, or be named.
        if all.items.len() == n_lines {
            all.items.remove(spoilt);
        } else {
            // It may be two things now, or a comment.
            let is_nothing = is_blank || lines[spoilt].starts_with(b"#");
            prop_assert!(is_nothing || !all.problems.is_empty());
        }
        prop_assert_eq!(all.items, others);
    }

    #[test]
    fn one_spoilt_document_costs_at_most_the_next(n in 2..6_usize, spoilt in any::<prop::sample::Index>(), damage in damage()) {
        let mut documents: Vec<_> = (0..n).map(|it| pretty(&event(&format!("e{it}"))).into_bytes()).collect();
        let spoilt = spoilt.index(n);
        spoil(&mut documents[spoilt], damage);
        let input = documents.join(&b'\n');
        let all = read_all(&input);
        check_places(&input, &all)?;
        for it in (0..n).filter(|it| *it != spoilt && *it != spoilt + 1) {
            prop_assert!(all.items.contains(&format!("+e{it}")), "e{it} is lost");
        }
    }
}
