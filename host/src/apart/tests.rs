//! Both sides, with a shell in place of the child. `host/tests/compile.rs` has the real one.

use std::fs;

use super::*;

const SOON: Duration = Duration::from_mins(1);

/// What comes of a shell that runs this.
fn shell(
    script: &str,
    memory_bytes: usize,
    time: Duration,
    input: &[u8],
) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new("/bin/sh");
    // A dump would be in nobody's interest.
    command.args(["-c", &format!("ulimit -c 0; {script}")]);
    drive(command, Bounds { memory_bytes, time }, &[input])
}

#[track_caller]
fn check_failed(script: &str, want: &Failure) {
    let input = vec![b'x'; 1 << 20];
    assert_eq!(&shell(script, 1000, SOON, &input).unwrap_err(), want);
}

#[test]
fn what_goes_in_and_out_may_be_larger_than_any_pipe() {
    let input: Vec<_> = (0..32_u32 << 20).map(|it| it.to_le_bytes()[1]).collect();
    let output = shell("exec cat", 64 << 20, SOON, &input);
    assert!(output.unwrap() == input);
    // Whoever reads nothing before all is written, and writes nothing before all is read.
    let many = shell(
        "cat >/dev/null; exec head -c 9000000 /dev/zero",
        64 << 20,
        SOON,
        &input,
    );
    assert_eq!(many.unwrap().len(), 9_000_000);
    let many = shell(
        "head -c 9000000 /dev/zero; exec cat",
        64 << 20,
        SOON,
        &input,
    );
    assert_eq!(many.unwrap().len(), 9_000_000 + input.len());
}

#[test]
fn an_answer_has_no_more_bytes_than_there_may_be_memory() {
    let answer = |n: u32| shell(&format!("exec head -c {n} /dev/zero"), 1000, SOON, b"");
    assert_eq!(answer(1000).unwrap().len(), 1000);
    assert_eq!(answer(1001), Err(Failure::Memory));
    // One that never ends does.
    let endless = shell("exec cat /dev/zero", 1000, SOON, b"");
    assert_eq!(endless, Err(Failure::Memory));
}

#[test]
fn who_takes_too_long_is_ended_and_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for what in [
        "exec sleep 1000",
        // It is not enough to have said everything.
        "exec >&- 2>&-; exec sleep 1000",
        "exec <&-; exec sleep 1000",
        "trap '' TERM INT HUP; while :; do :; done",
    ] {
        let pid = folder.path().join("pid");
        let script = format!("echo $$ > {}; {what}", pid.display());
        let began = Instant::now();
        let ended = shell(&script, 1000, Duration::from_millis(300), &vec![0; 1 << 20]);
        assert_eq!(ended, Err(Failure::Time), "{what}");
        assert!(began.elapsed() < SOON / 2, "{what}");
        let pid = fs::read_to_string(pid).unwrap();
        let of_it = Path::new("/proc").join(pid.trim());
        assert!(!of_it.exists(), "{what}: it is there yet");
    }
}

#[test]
fn how_a_child_ends_is_told_apart() {
    check_failed("exit 4", &Failure::Memory);
    check_failed("kill -XCPU $$", &Failure::Time);
    check_failed(
        "echo 'memory allocation of 8 bytes failed' >&2; kill -ABRT $$",
        &Failure::Memory,
    );
    check_failed(
        "echo 'it is no good' >&2; exit 3",
        &Failure::Refused("it is no good".to_owned()),
    );
    for (script, want) in [
        ("kill -SEGV $$", "the child process was ended by SIGSEGV"),
        (
            "echo oh >&2; kill -ABRT $$",
            "the child process was ended by SIGABRT: oh",
        ),
        (
            "kill -KILL $$",
            "the child process was ended by SIGKILL, as the system does when it has no memory left",
        ),
        ("kill -USR1 $$", "the child process was ended by signal 10"),
        (
            "echo oh >&2; exit 101",
            "the child process ended with exit status: 101: oh",
        ),
        // Not even with an answer.
        (
            "echo yes; exit 5",
            "the child process ended with exit status: 5",
        ),
    ] {
        check_failed(script, &Failure::Crashed(want.to_owned()));
    }
    assert!(matches!(
        run(
            Path::new("/nowhere"),
            Task::Compile,
            Bounds {
                memory_bytes: 1,
                time: SOON
            },
            b""
        ),
        Err(Failure::NotRun(_))
    ));
}

#[test]
fn of_what_a_child_says_only_the_first_is_kept() {
    let script = "head -c 9000000 /dev/zero | tr '\\0' x >&2; exit 3";
    let Err(Failure::Refused(said)) = shell(script, 1000, SOON, b"") else {
        panic!("it is refused");
    };
    assert_eq!(said.len(), 4 << 10);
}

#[test]
fn a_child_has_no_environment() {
    let output = shell("exec cat /proc/self/environ", 1 << 20, SOON, b"").unwrap();
    let output = String::from_utf8_lossy(&output).into_owned();
    // What the shell adds by itself.
    let of_ours = output
        .split('\0')
        .filter(|it| !it.is_empty() && !it.starts_with("PWD="));
    assert_eq!(of_ours.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn an_order_is_read_as_it_was_written_and_input_that_is_cut_off_is_none() {
    let bounds = Bounds {
        memory_bytes: 1 << 40,
        time: Duration::from_millis(1_500),
    };
    let order = Order::new(bounds, 3);
    let sent = [order.to_bytes(), b"abc and more".to_vec()].concat();
    let mut from = &sent[..];
    let read = Order::read(&mut from).unwrap();
    assert_eq!(read, order);
    assert_eq!(read.input(&mut from).unwrap(), b"abc");
    for n in 0..35 {
        let mut from = &sent[..n];
        let read = Order::read(&mut from).and_then(|it| it.input(&mut from));
        assert!(matches!(read, Err(Failure::NotRun(_))), "{n}: {read:?}");
    }
    // More than there is memory for is told before anything is read.
    let most = Order::new(bounds, usize::MAX);
    assert_eq!(most.input(&mut io::empty()), Err(Failure::Memory));
}

#[test]
fn every_task_has_a_word_of_its_own() {
    let words: std::collections::BTreeSet<_> = Task::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(words.len(), Task::ALL.len());
}
