//! What is wrong with a file, and what is said of it.

use super::*;

#[test]
fn a_value_of_the_wrong_form_is_refused_with_what_to_write() {
    for (value, shown) in [
        ("300", "`300`"),
        ("-1", "`-1`"),
        ("1e7", "`1e7`"),
        ("0x1000000", "`0x1000000`"),
        ("-0", "`-0`"),
        ("99999999999999999999999", "`99999999999999999999999`"),
        ("256MB", "`256MB`"),
        ("true", "`true`"),
        ("[]", "a list"),
        ("{}", "a mapping"),
    ] {
        check_problem(
            &format!("store: {{bytes: {value}}}"),
            &format!(
                "3:16: store.bytes: cannot be {shown}: write a size from 1Mi to 64Gi, for example `256Mi`"
            ),
        );
    }
    check_problem(
        "store:\n  bytes:\n",
        "4:8: store.bytes: has no value: write a size from 1Mi to 64Gi, for example `256Mi`",
    );
    for value in ["65", "65 m", "1.5h", "0s", "1d", "65m30"] {
        check_problem(
            &format!("store: {{timeToLive: {value}}}"),
            &format!(
                "3:21: store.timeToLive: cannot be `{value}`: write a duration from 1s to 168h, for example `65m`"
            ),
        );
    }
    for value in ["0", "17", "1.0", "'2'", "0x", "two"] {
        check_problem(
            &format!("workers: {value}"),
            &format!(
                "3:10: workers: cannot be `{}`: write a whole number from 1 to 16, for example `1`",
                value.replace('\'', "\"")
            ),
        );
    }
    for value in ["yes", "1", "'true'"] {
        check_problem(
            &format!("changes: {{stdout: {value}}}"),
            &format!(
                "3:19: changes.stdout: cannot be `{}`: write `true` or `false`",
                value.replace('\'', "\"")
            ),
        );
    }
    check_problem(
        "log: {level: Warning}",
        "3:14: log.level: cannot be `Warning`: write `error`, `warn`, `info`, `debug` or `trace`",
    );
    for value in [":8081", "localhost:8081", "127.0.0.1", "127.0.0.1:65536"] {
        check_problem(
            &format!("admin: {{listen: '{value}'}}"),
            &format!(
                "3:17: admin.listen: cannot be `{value}`: write an IP address and a port, for example `127.0.0.1:8081`"
            ),
        );
    }
    check_problem(
        "store: [bytes, 1Mi]",
        "3:8: store: cannot be a list: write keys and their values, each on a line; the keys are `bytes`, `recordsPerObject`, `objects`, `timeToLive`, `noteBytes`",
    );
}

#[test]
fn an_unknown_key_is_refused_with_the_key_that_was_meant() {
    for (wrong, meant) in [
        ("timeToLve", "timeToLive"),
        ("time_to_live", "timeToLive"),
        ("time-to-live", "timeToLive"),
        ("timetolive", "timeToLive"),
        ("byte", "bytes"),
        ("noteByte", "noteBytes"),
        ("recordPerObject", "recordsPerObject"),
    ] {
        check_problem(
            &format!("store: {{{wrong}: 1}}"),
            &format!("3:9: store.{wrong}: there is no such key: write `{meant}`"),
        );
    }
    check_problem(
        "stroe: {}",
        "3:1: stroe: there is no such key: write `store`",
    );
    check_problem(
        "pageSize: 100",
        "3:1: pageSize: there is no such key here: write it below `watch`",
    );
    check_problem(
        "changes: {webhook: x}",
        "3:11: changes.webhook: there is no such key: the keys are `stdout`",
    );
}

#[test]
fn a_number_is_quoted_as_it_is_written_wherever_it_is() {
    for before in [
        "",
        "# \u{fc}\u{1f980}\n",
        "# x\r\n",
        "\u{feff}",
        "\u{feff}# \u{fc}\n",
    ] {
        let text = format!("{before}{SCOPE}{PLUGINS}workers: 1e3 # no\n0x10: 1");
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        let problems = problems
            .shown()
            .iter()
            .map(|it| (it.place.column, &*it.key, &*it.what));
        let what = "cannot be `1e3`: write a whole number from 1 to 16, for example `1`";
        let problems: Vec<_> = problems.collect();
        assert_eq!(problems[0], (10, "workers", what), "{before:?}");
        assert_eq!((problems[1].0, problems[1].1), (1, "0x10"), "{before:?}");
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    check_problem(
        "workers: 1\nworkers: 2",
        "4:1: workers: is there twice, first in line 3: keep one",
    );
    check_problem(
        "store:\n  bytes: 1Mi\n  bytes: 1Mi",
        "5:3: store.bytes: is there twice, first in line 4: keep one",
    );
    check_problem(
        "limits: {tables: 1, tables: 1}",
        "3:21: limits.tables: is there twice, first in line 3: keep one",
    );
}

#[test]
fn a_limit_is_checked_as_on_the_command_line() {
    check_problem(
        "limits: {tables: 101}",
        "3:18: limits.tables: the limit `tables` cannot be `101`: write a whole number from 1 to 100",
    );
    check_problem(
        "limits: {tables: }",
        "3:16: limits.tables: the limit `tables` cannot be ``: write a whole number from 1 to 100",
    );
    check_problem(
        "limits: {fuelPerEvent: 1}",
        "3:10: limits.fuelPerEvent: there is no such key: write `fuel-per-event`",
    );
    check_problem(
        "limits: 5",
        "3:9: limits: cannot be `5`: write names of limits and their values, for example `{tables: 20}`",
    );
}

#[track_caller]
fn check_scope(scope: &str, want: &[&str]) {
    check_problems(&format!("{PLUGINS}{scope}"), want);
}

#[test]
fn a_scope_says_where_exactly_once() {
    let missing = "scope: is missing: write `scope: {namespaces: [my-namespace]}`, or \
                   `scope: {cluster: {}}` for all namespaces";
    check_scope("", &[&format!("1:1: {missing}")]);
    check_scope("scope:", &[&format!("2:1: {missing}")]);
    check_scope(
        "scope: {kinds: [Pod]}",
        &[
            "2:8: scope: says neither `namespaces` nor `cluster`: write `namespaces: [my-namespace]`, or `cluster: {}` for all",
        ],
    );
    check_scope(
        "scope: {namespaces: [team-a], cluster: {}}",
        &["2:31: scope.cluster: is set, and so is `namespaces`: keep one of them"],
    );
    check_scope(
        "scope:\n  cluster:\n",
        &[
            "3:10: scope.cluster: has no value: write `{}` for all namespaces, or globs in `include`",
        ],
    );
    check_scope(
        "scope: team-a",
        &[
            "2:8: scope: cannot be `team-a`: write keys and their values, each on a line; the keys are `namespaces`, `kinds`, `clusterScopedKinds`, `cluster`",
        ],
    );
}

#[test]
fn every_name_of_a_scope_is_looked_at() {
    check_scope(
        "scope: {namespaces: [team-a, Team, 1e3, team-a, true, [], team-*]}",
        &[
            "2:30: scope.namespaces: `Team` is no namespace: write 1 to 63 lower-case letters, digits and `-`, with no `-` at either end",
            "2:36: scope.namespaces: cannot be `1e3`, which is no text: put it in quotes",
            "2:41: scope.namespaces: `team-a` is there twice, first in line 2: keep one",
            "2:49: scope.namespaces: cannot be `true`, which is no text: put it in quotes",
            "2:55: scope.namespaces: cannot be a list: write a name",
            "2:59: scope.namespaces: `team-*` is a glob, no namespace: write it into `cluster: {include: [...]}` instead",
        ],
    );
    check_scope(
        "scope: {cluster: {include: [Team-*], exclude: team-x}, kinds: [pod], clusterScopedKinds: [no-de]}",
        &[
            "2:29: scope.cluster.include: `Team-*` can match no namespace: write 1 to 63 lower-case letters, digits and `-`, with `*` for any characters and `?` for one",
            "2:47: scope.cluster.exclude: cannot be `team-x`: write a list, for example `[team-x]`",
            "2:64: scope.kinds: `pod` is no kind: write `Pod`, as manifests do",
            "2:91: scope.clusterScopedKinds: `no-de` is no kind: write it as manifests do, a capital and then letters and digits, for example `Pod`",
        ],
    );
    check_scope(
        "scope: {namespaces: []}",
        &[
            "2:21: scope.namespaces: there is no namespace: name one, or write `cluster: {}` for all of them",
        ],
    );
    check_scope(
        "scope: {namespaces: [team-a], kinds: []}",
        &["2:38: scope.kinds: there is no kind: name one, for example `Pod`"],
    );
}

#[test]
fn the_folder_of_the_plugins_has_to_be_said() {
    let what = "write the folder of the plugins, for example `/plugins`";
    let check = |plugins: &str, want: &str| {
        check_problems(&format!("{SCOPE}{plugins}"), &[&format!("{want}: {what}")]);
    };
    check("", "1:1: plugins.directory: is missing");
    check("plugins:", "2:1: plugins.directory: is missing");
    check("plugins: {order: []}", "2:1: plugins.directory: is missing");
    check(
        "plugins: {directory: ''}",
        "2:11: plugins.directory: cannot be `\"\"`",
    );
    check(
        "plugins: {directory: 5}",
        "2:11: plugins.directory: cannot be `5`",
    );
    check(
        "plugins:\n  directory:",
        "3:3: plugins.directory: has no value",
    );
    check_problems(
        &format!("{SCOPE}plugins: {{directory: /p, order: [a, a, Gpu_Fault]}}"),
        &[
            "2:37: plugins.order: `a` is there twice, first in line 2: keep one",
            "2:40: plugins.order: `Gpu_Fault` is the name of no plugin: write lower-case letters, digits and `-`, beginning with a letter, as `portent plugin check` prints it",
        ],
    );
}

#[test]
fn what_is_no_mapping_of_keys_is_one_problem() {
    for (text, want) in [
        ("text", "1:1: cannot be `text`: write keys"),
        ("- a", "1:1: cannot be a list: write keys"),
        ("a: [", "1:4: this is no YAML: "),
        ("a: b: c", "1:5: this is no YAML: "),
        ("scope:\n  a: 1\n b: 1", "3:2: this is no YAML: "),
        ("a: 'x", "1:4: this is no YAML: "),
        ("a: *x", "1:4: this is no YAML: "),
        ("a: !x y", "1:7: this is no YAML: unsupported tag"),
        ("a: \u{1}", "1:4: this is no YAML: "),
        ("a: 1\n---\nb: 1", "2:1: a second document begins here"),
    ] {
        let problems = Config::parse(text.as_bytes()).unwrap_err();
        let [line] = &lines(&problems)[..] else {
            panic!("{problems:?}");
        };
        assert!(line.starts_with(want), "{line}");
    }
}

#[test]
fn what_is_no_utf8_is_told_by_its_place() {
    let problems = Config::parse(b"# \xc3\xbcber\nstore: \xff").unwrap_err();
    assert_eq!(
        lines(&problems),
        ["2:8: a byte here is no UTF-8: save the file as UTF-8"]
    );
}

/// A text that is made to cost much is refused, with one problem that says so.
#[track_caller]
fn check_bomb(text: &str, want: &str) {
    let problems = Config::parse(text.as_bytes()).unwrap_err();
    let [line] = &lines(&problems)[..] else {
        panic!("{problems:?}");
    };
    assert!(line.contains(want), "{line}");
}

#[test]
fn a_file_that_is_made_to_cost_much_is_refused() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n";
    check_bomb(bomb, "2:8: this is an alias, which is not followed");
    let deep = format!("scope: {}{}", "[".repeat(20), "]".repeat(20));
    check_bomb(&deep, "this is 16 deep in others");
    check_bomb(&"[".repeat(1 << 20), "1:");
    check_bomb(&"{a: ".repeat(1 << 18), "1:");
    let blocks = (0..1_400).map(|it| format!("{}a:\n", " ".repeat(it)));
    check_bomb(&blocks.collect::<String>(), "this is 16 deep in others");
    let wide = format!("scope: {{namespaces: [{}]}}", "a,".repeat(60_000));
    check_bomb(&wide, "there are over 50000 values up to here");
    let long = "#".repeat((1 << 20) + 1);
    check_bomb(&long, "1:1: it is over 1048576 bytes");
    let full = format!("{SCOPE}{PLUGINS}");
    let full = format!("{full}{}", "#".repeat((1 << 20) - full.len()));
    assert!(Config::parse(full.as_bytes()).is_ok(), "1 MiB is allowed");
}

#[test]
fn many_problems_are_counted_and_the_first_are_told() {
    let wrong: Vec<_> = (0..20_000).map(|it| format!("k{it}: 1")).collect();
    let problems = with(&wrong.join("\n")).unwrap_err();
    assert_eq!(problems.n(), 20_000);
    let shown = lines(&problems);
    assert_eq!(shown.len(), 100);
    assert!(shown[0].starts_with("3:1: k0: "), "{}", shown[0]);
    assert!(shown[99].starts_with("102:1: k99: "), "{}", shown[99]);
}

#[test]
fn hostile_text_is_shown_short_and_on_one_line() {
    let long = "x".repeat(100_000);
    let text = format!(
        "? \"\\e[31mred\\n{long}\"\n: 1\nstore: {{bytes: \"\\e[31mred\\n{long}\"}}\n\
         limits: {{tables: \"{long}\"}}\nplugins: {{directory: a, order: [\"\\u202e{long}\"]}}"
    );
    let problems = Config::parse(text.as_bytes()).unwrap_err();
    assert_eq!(problems.n(), 5, "{problems:?}");
    for it in lines(&problems) {
        assert!(it.len() < 700, "{it}");
        assert!(
            !it.contains(|it: char| it.is_control() || it == '\u{202e}'),
            "{it:?}"
        );
    }
}
