//! What is printed is read back as the same, and nothing makes the parser panic.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;
use crate::scope::Namespace;

#[test]
fn the_example_is_of_every_default_and_is_read_back() {
    let example = Config::example();
    assert_eq!(
        Config::parse(example.to_yaml().as_bytes()),
        Ok(example.clone())
    );
    let as_said = Config {
        scope: example.scope.clone(),
        plugins: example.plugins.clone(),
        ..with("").unwrap()
    };
    assert_eq!(example, as_said);
}

#[test]
fn a_printed_file_has_every_key() {
    let yaml = Config::example().to_yaml();
    for key in Config::keys() {
        let name = key.path.rsplit('.').next().unwrap();
        let mark = |it: &&str| it.trim_start().trim_start_matches("# ").starts_with(name);
        assert!(yaml.lines().any(|it| mark(&it)), "{}", key.path);
    }
    assert!(yaml.lines().all(|it| it.chars().count() <= 100), "{yaml}");
}

/// Names that YAML may take for something else, among others.
fn namespaces() -> impl Strategy<Value = BTreeSet<Namespace>> {
    let name = prop_oneof![
        "[a-z]{1,5}",
        "[a-z0-9]{1,4}",
        "[0-9]e[0-9]",
        "true|null|no|0x1|1-1"
    ];
    proptest::collection::btree_set(name.prop_map(|it| it.parse().unwrap()), 1..4)
}

fn globs() -> impl Strategy<Value = Vec<Glob>> {
    proptest::collection::btree_set("[-a-z*?]{1,6}", 0..3)
        .prop_map(|it| it.iter().map(|it| it.parse().unwrap()).collect())
}

fn kinds(n: std::ops::Range<usize>) -> impl Strategy<Value = BTreeSet<Kind>> {
    let kind = "[A-Z][A-Za-z0-9]{0,5}|Null|True|No";
    proptest::collection::btree_set(kind.prop_map(|it| it.parse().unwrap()), n)
}

fn scopes() -> impl Strategy<Value = Scope> {
    let cluster = (globs(), globs());
    let reach = prop_oneof![
        namespaces().prop_map(Reach::Namespaces),
        cluster.prop_map(|(include, exclude)| Reach::Cluster { include, exclude }),
    ];
    (reach, kinds(1..4), kinds(0..3))
        .prop_map(|(reach, kinds, cluster)| Scope::new(reach, kinds, cluster).unwrap())
}

fn configs() -> impl Strategy<Value = Config> {
    let plugins = ("\\PC{1,12}|.{1,12}", 0..3_usize);
    let numbers = proptest::collection::vec(0..=1_000_000_u64, 8);
    let address: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
    (scopes(), plugins, numbers).prop_map(move |(scope, (directory, n_order), n)| {
        let mut config = Config::example();
        config.scope = scope;
        config.plugins.directory = PathBuf::from(directory);
        config.plugins.order = ["true", "null", "a-b"][..n_order]
            .iter()
            .map(ToString::to_string)
            .collect();
        config.store.bytes = Size::bytes((1 << 20) + n[0]);
        config.store.time_to_live = Period::seconds(1 + n[1] % 604_800);
        config.outcomes.bytes = Size::bytes((1 << 20) + n[2]);
        config.watch.lists = usize::try_from(1 + n[3] % 64).unwrap();
        config.workers = NonZeroUsize::new(usize::try_from(n[4] % 17).unwrap());
        let tables = (1 + n[5] % 100).to_string();
        config.limits.set("tables", &tables).unwrap();
        config.changes.stdout = n[6].is_multiple_of(2);
        if n[7].is_multiple_of(2) {
            config.admin.listen = address;
            config.log.format = LogFormat::Json;
            config.log.level = LogLevel::Error;
        }
        config
    })
}

proptest! {
    #[test]
    fn whatever_a_configuration_says_is_read_back(config in configs()) {
        let yaml = config.to_yaml();
        prop_assert_eq!(Config::parse(yaml.as_bytes()), Ok(config), "{}", yaml);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
        drop(Config::parse(&bytes));
    }

    /// A good file, with a piece of it taken out and something else put in.
    #[test]
    fn no_damage_makes_it_panic(
        at in any::<proptest::sample::Index>(),
        n in 0..40_usize,
        piece in prop_oneof![
            ".{0,12}".boxed(),
            "[-\\[\\]{}:,&*!|>'\"#%@` \n\t0-9a-z?~]{0,24}".boxed(),
        ],
    ) {
        let yaml = Config::example().to_yaml();
        let at = at.index(yaml.len());
        let before = crate::text::cut(&yaml, at);
        let after = yaml.get(yaml.ceil_char_boundary(at + n)..).unwrap_or_default();
        let damaged = format!("{before}{piece}{after}");
        if let Err(problems) = Config::parse(damaged.as_bytes()) {
            prop_assert!(0 < problems.n());
            prop_assert!(problems.shown().is_sorted_by_key(|it| it.place));
        }
    }
}
