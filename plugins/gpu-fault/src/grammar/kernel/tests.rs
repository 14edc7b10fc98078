//! Lines as drivers print them, and lines as somebody else would.

use portent_sdk::Status;

use super::*;

fn read(note: &str) -> Option<Statement> {
    super::read(&Settings::default(), note)
}

#[track_caller]
fn check(note: &str, code: &str, action: Action, want: &[(&str, &str)]) {
    let statement = read(note).unwrap_or_else(|| panic!("{note}"));
    assert_eq!((statement.code, statement.action), (code, action), "{note}");
    for (key, value) in want {
        assert_eq!(statement.find(key), Some(*value), "{note}: {key}");
    }
}

#[track_caller]
fn check_foreign(note: &str) {
    assert_eq!(read(note), None, "{note}");
}

#[test]
fn an_xid_is_read_in_every_form_of_its_place() {
    let want = [
        ("xid", "31"),
        ("pci", "0000:3b:00"),
        ("pid", "7194"),
        ("process", "python"),
    ];
    let tail = "31, pid=7194, name=python, Ch 00000002, intr 00000000. MMU Fault: ENGINE GRAPHICS";
    for (place, gi, ci) in [
        ("PCI:0000:3b:00", None, None),
        ("0000:3b:00", None, None),
        ("PCI:0000:3b:00 GPU-I:05", Some("5"), None),
        ("PCI:0000:3b:00 GPU-I:05 GPU-CI:01", Some("5"), Some("1")),
    ] {
        let note = format!("NVRM: Xid ({place}): {tail}");
        check(&note, "GpuXidError", Action::FixUser, &want);
        let statement = read(&note).unwrap();
        assert_eq!(
            (statement.find("mig_gi"), statement.find("mig_ci")),
            (gi, ci)
        );
        assert_eq!(statement.category, Category::UserError);
    }
}

#[test]
fn what_a_log_puts_before_a_line_is_passed_over() {
    for before in [
        "",
        "kernel: ",
        "[16450076.435595] ",
        "kernel: [  50.435595] ",
        "<3>[6085126.134786] ",
    ] {
        let note = [
            before,
            "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        ]
        .concat();
        check(&note, "GpuFallenOffBus", Action::Drain, &[("xid", "79")]);
    }
}

#[test]
fn a_process_that_is_not_known_is_left_out() {
    let statement = read("NVRM: Xid (PCI:0000:00:08): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No").unwrap();
    assert_eq!(
        (statement.find("pid"), statement.find("process")),
        (None, None)
    );
    assert_eq!(statement.action, Action::RetrySame);
}

#[test]
fn a_line_that_asks_for_a_reset_gets_one() {
    for (hint, action) in [
        ("RST: No, D-RST: No", Action::RetrySame),
        ("RST: Yes, D-RST: No", Action::Reset),
        ("RST: No, D-RST: Yes", Action::Reset),
    ] {
        let note = format!("NVRM: Xid (PCI:0000:00:08): 94, pid=1, Contained: SM (0x1). {hint}");
        check(&note, "GpuEccUncorrectable", action, &[("xid", "94")]);
    }
}

#[test]
fn what_came_before_a_45_is_what_it_is_about() {
    let note = "NVRM: Xid (PCI:0000:3b:00): 45, pid=20971, name=python, Ch 00000010 caused by previous Xid 79";
    check(
        note,
        "GpuFallenOffBus",
        Action::Drain,
        &[("xid", "45"), ("root_xid", "79")],
    );
    assert_eq!(read(note).unwrap().key, "79/0000:3b:00");
    let note = "NVRM: Xid (PCI:0000:3b:00): 45, pid=20971, name=python, Ch 00000010";
    check(note, "GpuXidError", Action::None, &[("xid", "45")]);
    assert_eq!(read(note).unwrap().category, Category::UserError);
    // Only of a 45, and only at the end.
    let note = "NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=x caused by previous Xid 79";
    assert_eq!(read(note).unwrap().find("root_xid"), None);
    let note = "NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name= caused by previous Xid 79, Ch 1";
    assert_eq!(read(note).unwrap().find("root_xid"), None);
}

#[test]
fn a_154_says_its_action_itself() {
    for (to, action) in [
        ("0x1 (GPU Reset Required)", Action::Reset),
        ("0x2 (Node Reboot Required)", Action::Drain),
        ("0x3 (Drain P2P)", Action::Drain),
        ("0x4 (Drain and Reset)", Action::Drain),
    ] {
        let note = format!(
            "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to {to}"
        );
        check(&note, "GpuXidError", action, &[("xid", "154")]);
        assert_eq!(read(&note).unwrap().status, Status::Active);
    }
    let note = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)";
    let statement = read(note).unwrap();
    assert_eq!(
        (statement.status, statement.key.as_str()),
        (Status::Cleared, "154/0000:01:00")
    );
    assert_eq!(statement.find("recovery"), Some("None"));
}

#[test]
fn the_printed_word_decides_about_nvlink() {
    let line = |word: &str| {
        format!(
            "NVRM: Xid (PCI:0018:01:00): 145, pid=876767, name=ray::WorkerDict, RLW_RXPIPE {word} XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1)"
        )
    };
    let want = [
        ("nvlink_unit", "RLW_RXPIPE"),
        ("link", "13"),
        ("process", "ray::WorkerDict"),
    ];
    check(&line("Nonfatal"), "GpuXidError", Action::None, &want);
    check(&line("Fatal"), "GpuXidError", Action::Reset, &want);
    check(
        &line("Fatal"),
        "GpuXidError",
        Action::Reset,
        &[("fatal", "true")],
    );
    // Without the word, better one reset too many.
    check(
        "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE",
        "GpuXidError",
        Action::Reset,
        &[],
    );
}

#[test]
fn the_place_on_the_die_is_read() {
    let note = "NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 7, TPC 6, SM 0): Illegal Instruction Parameter";
    check(
        note,
        "GpuXidError",
        Action::FixUser,
        &[("gpc", "7"), ("tpc", "6"), ("sm", "0")],
    );
}

#[test]
fn the_number_is_the_first_behind_the_place() {
    let note = "NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name=a): 79, x, Ch 1";
    check(note, "GpuXidError", Action::FixUser, &[("xid", "13")]);
    let note = "NVRM: Xid (PCI:0000:3b:00): 13, pid=79, name=NVRM: Xid (, Ch 1\nNVRM: Xid (PCI:0000:3b:00): 79, x";
    check(note, "GpuXidError", Action::FixUser, &[("xid", "13")]);
}

#[test]
fn an_sxid_is_read_once_and_is_no_xid() {
    let note = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up";
    let want = [
        ("sxid", "20034"),
        ("link", "63"),
        ("fatal", "true"),
        ("pci", "0000:05:00.0"),
        ("nvswitch", "0"),
    ];
    check(note, "GpuNvlinkError", Action::RetryElsewhere, &want);
    assert_eq!(read(note).unwrap().find("xid"), None);
    let note = "[1.5] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 44 egress nonposted PRIV error (First)";
    check(
        note,
        "GpuNvlinkError",
        Action::None,
        &[("fatal", "false"), ("link", "44")],
    );
    // What follows with the same number.
    check_foreign(
        "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine instance 63 Sub-engine instance 00",
    );
    check_foreign(
        "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Data {0x00000001, 0x00000002}",
    );
}

#[test]
fn what_a_switch_takes_back_is_over() {
    let note = "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 28002, Non-fatal, Link 30 Therm Warn Deactivated";
    let statement = read(note).unwrap();
    assert_eq!(
        (statement.status, statement.key.as_str()),
        (Status::Cleared, "28001/0000:05:00.0")
    );
}

#[test]
fn what_has_no_number_is_read_by_its_words() {
    check(
        "NVRM: fallen off the bus and is not responding to commands.",
        "GpuFallenOffBus",
        Action::Drain,
        &[],
    );
    check(
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "GpuFallenOffBus",
        Action::Drain,
        &[("pci", "0000:3b:00.0")],
    );
    check(
        "NVRM: The NVIDIA GPU 0000:01:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.",
        "GpuFallenOffBus",
        Action::Drain,
        &[("pci", "0000:01:00.0")],
    );
    check(
        "NVRM: GPU 0000:c5:00.0: RmInitAdapter failed! (0x62:0x40:2477)",
        "GpuInitFailed",
        Action::Drain,
        &[("pci", "0000:c5:00.0")],
    );
    check(
        "NVRM: API mismatch: the client has the version 1",
        "GpuDriverError",
        Action::RetryElsewhere,
        &[],
    );
}

#[test]
fn another_line_is_not_ours() {
    check_foreign("");
    check_foreign("NVRM: GPU at PCI:0000:3b:00: GPU-6f3c");
    check_foreign("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15");
    check_foreign("NVRM: Xid (PCI:0000:3b:00): 7");
    check_foreign("NVRM: Xid (PCI:0000:3b:00): x, 79");
    check_foreign("NVRM: Xid (): 79, x");
    check_foreign("NVRM: Xid (PCI:0000:3b:00 and more): 79, x");
    check_foreign("NVRM: Xid 79");
    check_foreign("app: NVRM: Xid (PCI:0000:3b:00): 79, x");
    check_foreign("Xid (PCI:0000:3b:00): 79, x");
    check_foreign("nvidia-nvswitchX: SXid (PCI:0000:05:00.0): 20034, Fatal, x");
    check_foreign("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034");
    check_foreign("nvidia-smi[79]: Xid");
}
