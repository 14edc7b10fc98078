//! What is read does not depend on how it comes, nor on how much of it there is.

use std::{cell::Cell, io, rc::Rc};

use proptest::prelude::*;

use super::{random::piece, *};

/// Reads a few bytes at a time.
struct Few<'a> {
    input: &'a [u8],
    /// How many, in turn.
    each: Vec<usize>,
    n_reads: usize,
}

impl io::Read for Few<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.each[self.n_reads % self.each.len()].min(to.len());
        self.n_reads += 1;
        self.input.read(&mut to[..n])
    }
}

fn read_few(input: &[u8], each: Vec<usize>, item_max: usize) -> Read {
    let mut all = Read::default();
    let n_reads = 0;
    let from = Few {
        input,
        each,
        n_reads,
    };
    read_capped(from, &mut all, Origin::Named, item_max).unwrap();
    all
}

fn read_with(input: &[u8], item_max: usize) -> Read {
    let mut all = Read::default();
    read_capped(input, &mut all, Origin::Named, item_max).unwrap();
    all
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        pieces in prop::collection::vec(piece(), 0..10),
        each in prop::collection::vec(1..40_usize, 1..6),
        item_max in prop_oneof![1..400_usize, Just(ITEM_MAX_BYTES)],
    ) {
        let input = pieces.concat();
        prop_assert_eq!(read_few(&input, each, item_max), read_with(&input, item_max));
    }
}

#[test]
fn every_recording_is_the_same_in_pieces_of_any_size() {
    let corpus: [&[u8]; 8] = [
        include_bytes!("../../../../tests/fixtures/list-core.json"),
        include_bytes!("../../../../tests/fixtures/eventlist.json"),
        include_bytes!("../../../../tests/fixtures/list-core.yaml"),
        include_bytes!("../../../../tests/fixtures/eventlist.yaml"),
        include_bytes!("../../../../tests/fixtures/pods.yaml"),
        include_bytes!("../../../../tests/fixtures/frames.jsonl"),
        include_bytes!("../../../../tests/fixtures/broken.jsonl"),
        include_bytes!("../../../../tests/fixtures/hostile-text.jsonl"),
    ];
    for input in corpus {
        let whole = read_all(input);
        for size in 1..14 {
            assert_eq!(read_few(input, vec![size], ITEM_MAX_BYTES), whole);
        }
    }
}

/// Wants an input to be read whose longest line or item has `len` bytes, and that
/// one to be skipped, named at this place, where it is one byte too long.
#[track_caller]
fn check_cap(input: &str, len: usize, items: &[&str], skipped: &str, place: (usize, usize)) {
    let all = read_with(input.as_bytes(), len);
    assert_eq!(all.items, items, "{input}");
    assert_eq!(all.problems, [], "{input}");
    let all = read_with(input.as_bytes(), len - 1);
    let rest: Vec<_> = items.iter().filter(|it| **it != skipped).collect();
    assert_eq!(all.items.iter().collect::<Vec<_>>(), rest, "{input}");
    let [problem] = &*all.problems else {
        panic!("{:?}", all.problems)
    };
    assert_eq!((problem.line, problem.column), place, "{input}");
    assert!(
        problem
            .what
            .contains(&format!("more than {} bytes", len - 1))
    );
}

#[test]
fn what_is_over_the_cap_costs_only_itself() {
    let long = || {
        let mut long = event("long");
        long["note"] = "x{\"]\\".repeat(100).into();
        long
    };
    let (a, b) = (event("a"), event("b"));
    let all = ["+a", "+long", "+b"];
    let line = long().to_string();
    let lines = format!("{a}\n  {line}  \n{b}\n");
    check_cap(&lines, line.len(), &all, "+long", (2, 3));
    let document = pretty(&long());
    let documents = [pretty(&a), document.clone(), pretty(&b)];
    let start = pretty(&a).lines().count() + 1;
    check_cap(
        &documents.join("\n"),
        document.len(),
        &all,
        "+long",
        (start, 1),
    );
    let delta = frame("ADDED", &long()).to_string();
    let frames = format!("{a}\n{delta}\n{b}");
    check_cap(&frames, delta.len(), &all, "+long", (2, 1));

    let of_list = list(&[a.clone(), long(), b.clone()]);
    let compact = of_list.to_string();
    // Of a list only the items count.
    let column = compact.find(&line).unwrap() + 1;
    check_cap(&compact, line.len(), &all, "+long", (1, column));
    let text = pretty(&of_list);
    let indented = document.replace('\n', "\n    ");
    let start = place(&text, text.find(&indented).unwrap());
    check_cap(&text, indented.len(), &all, "+long", start);

    let item = |name: &str, note: &str| {
        format!(
            "- metadata:\n    name: {name}\n    namespace: ns\n  note: {note}\n  regarding: {{kind: Pod, namespace: ns, name: p}}\n"
        )
    };
    let long = item("long", &"x".repeat(300));
    let yaml = format!(
        "items:\n{}{long}{}kind: EventList\n",
        item("a", ""),
        item("b", "")
    );
    check_cap(&yaml, long.len(), &all, "+long", (7, 1));
    let document = |it: &str| it.replace("\n  ", "\n").replace("- ", "");
    let yaml = [item("a", ""), long.clone(), item("b", "")];
    let yaml = yaml.map(|it| document(&it)).join("---\n");
    check_cap(&yaml, document(&long).len(), &all, "+long", (7, 1));
}

/// Text without an end.
struct Endless<'a> {
    start: &'a [u8],
    again: &'a [u8],
    left: usize,
    n_asked_max: Rc<Cell<usize>>,
}

impl io::Read for Endless<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.n_asked_max.set(self.n_asked_max.get().max(to.len()));
        if !self.start.is_empty() {
            return self.start.read(to);
        }
        let n = to.len().min(self.left).min(64 << 10);
        to[..n].copy_from_slice(&self.again[..n]);
        self.left -= n;
        Ok(n)
    }
}

/// Reads so much, with a cap that shows whether anything is kept. Wants these
/// problems, and no room for more than a few times the cap.
#[track_caller]
fn check_endless(start: &str, again: u8, len: usize, problems: &[&str]) {
    const CAP: usize = 256 << 10;
    let n_asked_max = Rc::new(Cell::new(0));
    let from = Endless {
        start: start.as_bytes(),
        again: &vec![again; 64 << 10],
        left: len,
        n_asked_max: Rc::clone(&n_asked_max),
    };
    let mut all = Read::default();
    read_capped(from, &mut all, Origin::Named, CAP).unwrap();
    let named: Vec<_> = all.problems.iter().map(Problem::to_string).collect();
    assert_eq!(named, problems, "{start}");
    assert!(n_asked_max.get() <= 3 * CAP, "{start}: {n_asked_max:?}");
}

#[test]
fn a_gigabyte_without_a_line_end_takes_no_room() {
    let too_long = "a line or item of more than 262144 bytes, which is skipped";
    let at = |place| format!("line 1, column {place}: {too_long}");
    check_endless("", b'\0', 1 << 30, &["line 1, column 1: expected value"]);
    let many = 128 << 20;
    check_endless("", b' ', many, &[]);
    check_endless("{\"note\": \"", b'x', many, &[&at(1)]);
    check_endless("[[", b'[', many, &["line 1, column 130: nested too deep"]);
    let items = [
        "line 1, column 12: invalid type: integer `7`, expected an Event",
        &at(15),
    ];
    check_endless("{\"items\": [7, {\"a\": \"", b'\\', many, &items);
    check_endless("note: ", b'x', many, &[&at(1)]);
    check_endless(
        "items:\n- note: ",
        b'x',
        many,
        &[&at(1).replace("line 1", "line 2")],
    );
}

#[test]
fn who_has_enough_gets_no_more() {
    let events = ["a", "b", "c"].map(event);
    let of_list = list(&events);
    let lines = events.each_ref().map(Value::to_string).join("\n");
    let yaml = events.map(|it| format!("- {it}\n")).concat();
    for input in [lines, of_list.to_string(), pretty(&of_list), yaml] {
        let mut some = Read {
            stops_at: Some(2),
            ..Read::default()
        };
        read(input.as_bytes(), &mut some, Origin::Named).unwrap();
        assert_eq!((some.items.len(), some.problems), (2, vec![]), "{input}");
    }
}

/// Wants nothing said of what is not whole when it was stopped meanwhile.
#[track_caller]
fn check_stopped(input: &str) {
    let mut stopped = Read {
        stops_at: Some(1),
        ..Read::default()
    };
    // Whoever reads ahead ends the input then.
    read(input.as_bytes(), &mut stopped, Origin::Named).unwrap();
    assert_eq!(stopped.items, ["+a"], "{input}");
    assert_eq!(stopped.problems, [], "{input}");
}

#[test]
fn what_is_not_whole_is_no_problem_when_it_was_stopped() {
    let a = event("a");
    let of_list = pretty(&list(&[a.clone(), a.clone()]));
    check_stopped(&format!("{a}\n{{\"kind\":"));
    check_stopped(of_list.rsplit_once("name").unwrap().0);
    check_stopped(&(of_list.split_once("\n    },").unwrap().0.to_owned() + "}"));
    check_stopped(&format!("items:\n- {a}\n- \"x"));
}

/// Gives one text at each read, and notes how many items were out before.
struct Live {
    texts: std::vec::IntoIter<String>,
    n_items: Rc<Cell<usize>>,
    n_before: Rc<std::cell::RefCell<Vec<usize>>>,
}

impl io::Read for Live {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.n_before.borrow_mut().push(self.n_items.get());
        let text = self.texts.next().unwrap_or_default();
        to[..text.len()].copy_from_slice(text.as_bytes());
        Ok(text.len())
    }
}

struct Counting(Rc<Cell<usize>>);

impl Reader for Counting {
    fn item(&mut self, _: Item<'_>) -> Result<(), Rejected> {
        self.0.set(self.0.get() + 1);
        Ok(())
    }

    fn pod(
        &mut self,
        _: crate::pods::decode::WirePod<'_>,
    ) -> Result<(), crate::pods::decode::Rejected> {
        unreachable!("no input is said to hold Pods")
    }

    fn problem(&mut self, _: Problem) {}

    fn refused(&mut self, _: Problem) {}

    fn foreign(&mut self) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

#[test]
fn a_watch_is_told_as_it_happens() {
    let events = ["a", "b", "c"].map(event);
    let of_list = pretty(&list(&events)).replace("\n    },\n", "\n    },\n@");
    for texts in [
        events.iter().map(|it| format!("{it}\n")).collect(),
        events.iter().map(|it| pretty(it) + "\n").collect(),
        of_list.split('@').map(str::to_owned).collect::<Vec<_>>(),
    ] {
        let (n_items, n_before) = (Rc::default(), Rc::default());
        let live = Live {
            texts: texts.clone().into_iter(),
            n_items: Rc::clone(&n_items),
            n_before: Rc::clone(&n_before),
        };
        // What it begins with is looked at first, or it would be read ahead.
        let mut window = Window::new(Box::new(live));
        assert!(window.fill());
        let out = &mut Counting(n_items);
        let input = Input {
            window,
            out: Out::new(out, Origin::Named),
            item_max: ITEM_MAX_BYTES,
        };
        { input }.all();
        assert_eq!(*n_before.borrow(), [0, 1, 2, 3], "{texts:?}");
    }
}

/// Fails behind its text.
struct Failing<'a>(&'a [u8]);

impl io::Read for Failing<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.0.read(to)? {
            0 => Err(io::Error::other("the disk is gone")),
            n => Ok(n),
        }
    }
}

#[test]
fn what_came_before_an_error_counts_and_the_error_is_named_once() {
    let (a, b) = (event("a"), event("b"));
    let cut = |text: String| text.strip_suffix('}').unwrap().to_owned();
    let of_list = pretty(&list(&[a.clone(), b.clone()]));
    let yaml = |it: &str| format!("- metadata: {{name: {it}, namespace: ns}}\n");
    for input in [
        format!("{a}\n{}", cut(b.to_string())),
        format!("{}\n{}", pretty(&a), cut(pretty(&b))),
        of_list.rsplit_once("\n    }").unwrap().0.to_owned(),
        yaml("a") + &yaml("b"),
    ] {
        let mut all = Read::default();
        read(Failing(input.as_bytes()), &mut all, Origin::Named).unwrap();
        assert_eq!(all.items, ["+a"], "{input}");
        let (line, column) = place(&input, input.len());
        let what = "cut off: the disk is gone".to_owned();
        assert_eq!(all.problems, [Problem { line, column, what }], "{input}");
    }
    let mut none = Read::default();
    let err = read(Failing(b""), &mut none, Origin::Named).unwrap_err();
    assert_eq!(err.to_string(), "the disk is gone");
    assert_eq!(none, Read::default());
}
