//! What is compressed is what it would be plain, also where it is broken.

use std::io::{self, Write as _};

use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::fast());
    to.write_all(text).unwrap();
    to.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

/// A frame without content.
const SKIPPED: &[u8] = b"\x50\x2a\x4d\x18\x03\0\0\0{\"x";

#[test]
fn the_same_events_give_the_same_records_in_every_form_and_compression() {
    let core: Value =
        serde_json::from_slice(include_bytes!("../../../../tests/fixtures/list-core.json"))
            .unwrap();
    let items = core["items"].as_array().unwrap();
    let lines = |it: &dyn Fn(&Value) -> String| {
        items
            .iter()
            .map(|event| it(event) + "\n")
            .collect::<String>()
    };
    let documents = |it: &[u8]| it.to_vec();
    let forms: [Vec<u8>; 9] = [
        pretty(&core).into_bytes(),
        core.to_string().into_bytes(),
        lines(&Value::to_string).into_bytes(),
        lines(&pretty).into_bytes(),
        items.iter().map(pretty).collect::<String>().into_bytes(),
        lines(&|it| frame("ADDED", it).to_string()).into_bytes(),
        documents(include_bytes!("../../../../tests/fixtures/list-core.yaml")),
        documents(include_bytes!("../../../../tests/fixtures/eventlist.yaml")),
        documents(include_bytes!("../../../../tests/fixtures/eventlist.json")),
    ];
    let want = read_all(&forms[0]);
    assert_eq!((want.records.len(), &*want.problems), (6, &[][..]));
    for form in forms {
        let (one, other) = form.split_at(form.len() / 2);
        for input in [
            form.clone(),
            gzip(&form),
            [gzip(one), gzip(b""), gzip(other)].concat(),
            zstd(&form),
            [zstd(one), SKIPPED.to_vec(), zstd(b""), zstd(other)].concat(),
            [SKIPPED, &zstd(&form), SKIPPED].concat(),
        ] {
            let shown = String::from_utf8_lossy(&form);
            assert_eq!(read_all(&input), want, "{shown}");
        }
    }
}

fn lines_of(names: &[String]) -> String {
    let lines: Vec<_> = names.iter().map(|it| event(it).to_string()).collect();
    lines.join("\n") + "\n"
}

/// Reads what is cut at each byte. What comes out is a prefix, and is more the more
/// there is; where nothing was lost nothing is named.
#[track_caller]
fn check_cuts(packed: &[u8], want: &[String]) {
    let mut n_last = 0;
    for cut in 0..packed.len() {
        let mut all = Read::default();
        let read = read(&packed[..cut], &mut all, Origin::Named);
        assert_eq!(all.items, want[..all.items.len()], "cut at {cut}");
        assert!(n_last <= all.items.len(), "cut at {cut}");
        n_last = all.items.len();
        let n_problems = all.problems.len() + usize::from(read.is_err());
        assert_eq!(
            n_problems,
            usize::from(0 < cut),
            "cut at {cut}: {:?}",
            all.problems
        );
        let is_named = all
            .problems
            .iter()
            .all(|it| it.what.starts_with("cut off: ") || cut < 4);
        assert!(is_named, "cut at {cut}: {:?}", all.problems);
    }
    assert_eq!(n_last, want.len(), "all but the checksum are there");
}

#[test]
fn what_came_before_a_cut_counts() {
    let names: Vec<_> = (0..40).map(|it| format!("e{it}")).collect();
    let want: Vec<_> = names.iter().map(|it| format!("+{it}")).collect();
    let lines = lines_of(&names);
    check_cuts(&gzip(lines.as_bytes()), &want);
    check_cuts(&zstd(lines.as_bytes()), &want);
}

#[test]
fn a_frame_that_is_cut_gives_the_blocks_before_the_cut() {
    // zstd's blocks are of 128 KiB, and its decoder keeps the last of them back.
    let names: Vec<_> = (0..8_000).map(|it| format!("e{it}")).collect();
    let lines = lines_of(&names);
    let packed = zstd(lines.as_bytes());
    let all = read_all(&packed[..packed.len() - 8]);
    assert!(6_500 < all.items.len(), "{}", all.items.len());
    assert_eq!(all.problems.len(), 1, "{:?}", all.problems);
    assert!(all.problems[0].what.starts_with("cut off: "));
}

#[test]
fn what_is_damaged_is_named_where_it_shows() {
    let lines = format!("{}\n{}\n", event("a"), event("b"));
    for mut packed in [gzip(lines.as_bytes()), zstd(lines.as_bytes())] {
        // The checksum.
        let n = packed.len();
        packed[n - 4..].iter_mut().for_each(|it| *it ^= 0xff);
        let all = read_all(&packed);
        assert_eq!(all.items, ["+a", "+b"]);
        let [
            Problem {
                line: 3,
                column: 1,
                what,
            },
        ] = &*all.problems
        else {
            panic!("{:?}", all.problems)
        };
        assert!(what.starts_with("cut off: "), "{what}");
    }
    let behind = [gzip(lines.as_bytes()), b"{garbage}".to_vec()].concat();
    let all = read_all(behind);
    assert_eq!((all.items.len(), all.problems.len()), (2, 1));
}

/// Reads a gigabyte of zeros from a megabyte that is compressed.
fn read_bomb(part: &[u8], n_parts: usize) -> Read {
    let parts = io::Cursor::new(part.repeat(n_parts));
    let mut all = Read::default();
    read(parts, &mut all, Origin::Named).unwrap();
    all
}

#[test]
fn a_bomb_is_one_line_that_is_skipped() {
    let zeros = vec![0; 1 << 20];
    for part in [gzip(&zeros), zstd(&zeros)] {
        assert!(part.len() < 8_192, "{}", part.len());
        let all = read_bomb(&part, 1 << 10);
        let named: Vec<_> = all.problems.iter().map(Problem::to_string).collect();
        assert_eq!(named, ["line 1, column 1: expected value"]);
        assert_eq!(all.items, [""; 0]);
    }
}
