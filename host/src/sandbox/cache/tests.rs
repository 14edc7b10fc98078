//! An entry, and everything that it can be instead.

use std::{
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    sync::Barrier,
    thread,
};

use tempfile::TempDir;

use super::*;

const KEY: Key = Key([7; 32]);
const OTHER: Key = Key([8; 32]);

/// A folder that is not there yet, in one that goes with its handle.
fn cache() -> (TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("a/b"), Cache::BYTES);
    (folder, cache)
}

fn entry(cache: &Cache, key: &Key) -> PathBuf {
    cache.folder.join(key.name())
}

/// What is found after an entry was made something else; then it is written anew, and found.
#[track_caller]
fn check_miss(want: Miss, make: impl FnOnce(&Path)) {
    let (_folder, cache) = cache();
    cache.put(&KEY, b"the code");
    let path = entry(&cache, &KEY);
    make(&path);
    assert_eq!(cache.get(&KEY), Err(want));
    if path.is_dir() {
        return;
    }
    cache.put(&KEY, b"the code");
    assert_eq!(cache.get(&KEY).unwrap(), b"the code");
}

#[test]
fn what_was_put_is_found_by_its_key_and_by_no_other() {
    let (_folder, cache) = cache();
    assert_eq!(cache.get(&KEY), Err(Miss::Absent));
    cache.put(&KEY, b"the code");
    assert_eq!(cache.get(&KEY).unwrap(), b"the code");
    assert_eq!(cache.get(&OTHER), Err(Miss::Absent));
    cache.put(&KEY, b"");
    assert_eq!(cache.get(&KEY).unwrap(), b"");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&cache.folder), 0o700);
    assert_eq!(mode(&entry(&cache, &KEY)), 0o600);
    assert!(!cache.has_told.load(Relaxed));
}

#[test]
fn what_is_not_exactly_what_was_written_is_a_miss() {
    let cut = |n: usize| {
        move |path: &Path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..n]).unwrap();
        }
    };
    check_miss(Miss::Damaged, cut(0));
    check_miss(Miss::Damaged, cut(HEADER_BYTES - 1));
    check_miss(Miss::Damaged, cut(HEADER_BYTES));
    check_miss(Miss::Damaged, cut(HEADER_BYTES + 7));
    check_miss(Miss::Damaged, |it| {
        let longer = [&fs::read(it).unwrap()[..], b"x"].concat();
        fs::write(it, longer).unwrap();
    });
    check_miss(Miss::Absent, |it| fs::remove_file(it).unwrap());
}

#[test]
fn whichever_bit_is_another_it_is_a_miss() {
    let (_folder, cache) = cache();
    cache.put(&KEY, b"the code");
    let path = entry(&cache, &KEY);
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let of_another = MAGIC.len() * 8..(MAGIC.len() + 32) * 8;
        let want = if of_another.contains(&bit) {
            Miss::Foreign
        } else {
            Miss::Damaged
        };
        assert_eq!(cache.get(&KEY), Err(want), "bit {bit}");
    }
}

#[test]
fn whatever_happens_to_an_entry_only_its_code_is_ever_handed_out() {
    let (_folder, cache) = cache();
    let codes = [vec![1; 100], (0..200).collect::<Vec<u8>>(), Vec::new()];
    let keys = [Key([1; 32]), Key([2; 32]), Key([3; 32])];
    let mut random = fastrand::Rng::with_seed(1);
    let mut n_found = 0;
    for round in 0..3_000 {
        let at = random.usize(..3);
        cache.put(&keys[at], &codes[at]);
        let path = entry(&cache, &keys[at]);
        let mut bytes = fs::read(&path).unwrap();
        let is_other = match random.u8(..6) {
            0 => {
                let n = random.usize(..bytes.len());
                bytes.truncate(n);
                true
            }
            1 => {
                bytes.extend(std::iter::repeat_n(random.u8(..), random.usize(1..300)));
                true
            }
            2 => {
                for _ in 0..random.usize(1..5) {
                    let place = random.usize(..bytes.len());
                    bytes[place] = bytes[place].wrapping_add(random.u8(1..));
                }
                bytes != fs::read(&path).unwrap()
            }
            3 => {
                let other = random.usize(..3);
                cache.put(&keys[other], &codes[other]);
                bytes = fs::read(entry(&cache, &keys[other])).unwrap();
                other != at
            }
            4 => {
                let (from, to) = (random.usize(..bytes.len()), random.usize(..bytes.len()));
                bytes.swap(from, to);
                bytes != fs::read(&path).unwrap()
            }
            _ => false,
        };
        fs::write(&path, &bytes).unwrap();
        match cache.get(&keys[at]) {
            Ok(found) => {
                assert!(!is_other && found == codes[at], "round {round}");
                n_found += 1;
            }
            Err(_) => assert!(is_other, "round {round}"),
        }
    }
    assert!(400 < n_found, "{n_found}");
}

#[test]
fn an_entry_of_another_name_is_another_s() {
    let (_folder, cache) = cache();
    cache.put(&OTHER, b"other code");
    fs::rename(entry(&cache, &OTHER), entry(&cache, &KEY)).unwrap();
    assert_eq!(cache.get(&KEY), Err(Miss::Foreign));
    cache.put(&KEY, b"the code");
    assert_eq!(cache.get(&KEY).unwrap(), b"the code");
}

#[test]
fn what_others_may_have_written_is_not_even_looked_into() {
    let with_mode = |mode| {
        move |it: &Path| {
            fs::set_permissions(it, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    check_miss(Miss::Untrusted, with_mode(0o620));
    check_miss(Miss::Untrusted, with_mode(0o602));
    check_miss(Miss::Untrusted, |it| {
        let elsewhere = it.with_extension("elsewhere");
        fs::rename(it, &elsewhere).unwrap();
        symlink(&elsewhere, it).unwrap();
    });
    check_miss(Miss::Untrusted, |it| {
        fs::remove_file(it).unwrap();
        symlink("/nowhere", it).unwrap();
    });
    check_miss(Miss::Untrusted, |it| {
        fs::remove_file(it).unwrap();
        fs::create_dir(it).unwrap();
        // So that not even an empty one is replaced.
        fs::write(it.join("file"), "").unwrap();
    });
    // Whoever opened it would wait for ever.
    check_miss(Miss::Untrusted, |it| {
        fs::remove_file(it).unwrap();
        let made = std::process::Command::new("mkfifo").arg(it).status();
        assert!(made.unwrap().success());
    });
    if rustix::process::geteuid().is_root() {
        check_miss(Miss::Untrusted, |it| chown(it, Some(1), None).unwrap());
    }
}

#[test]
fn a_folder_that_others_may_write_to_is_not_used_and_that_is_told_once() {
    let (_folder, cache) = cache();
    cache.put(&KEY, b"the code");
    for mode in [0o770, 0o702, 0o777] {
        fs::set_permissions(&cache.folder, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(cache.get(&KEY), Err(Miss::Untrusted));
        assert!(cache.has_told.load(Relaxed));
        cache.put(&OTHER, b"code");
        assert!(!entry(&cache, &OTHER).exists());
    }
    fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(cache.get(&KEY).unwrap(), b"the code");

    // One of somebody else: everybody's but root's, and root's own made to be.
    let folder = tempfile::tempdir().unwrap();
    let folder = if rustix::process::geteuid().is_root() {
        chown(folder.path(), Some(1), None).unwrap();
        folder.path()
    } else {
        Path::new("/")
    };
    let cache = Cache::new(folder.to_owned(), Cache::BYTES);
    assert!(cache.has_told.load(Relaxed));
    assert_eq!(cache.get(&KEY), Err(Miss::Untrusted));
}

#[test]
fn a_folder_that_cannot_be_made_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let cache = Cache::new(path, Cache::BYTES);
        assert!(cache.has_told.load(Relaxed));
        assert_eq!(cache.get(&KEY), Err(Miss::Untrusted));
        cache.put(&KEY, b"the code");
    }
    assert_eq!(fs::read(&file).unwrap(), b"");
}

/// Says that an entry was used so many seconds after a day long ago.
fn used(cache: &Cache, key: &Key, second: u64) {
    let file = File::options().write(true).open(entry(cache, key)).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    file.set_modified(at).unwrap();
}

#[test]
fn what_was_used_longest_ago_goes_first_and_only_when_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let keys = [Key([1; 32]), Key([2; 32]), Key([3; 32]), Key([4; 32])];
    let code = [5; 100];
    let bytes = |n: usize| u64::try_from(n * (HEADER_BYTES + code.len())).unwrap();
    let cache = Cache::new(folder.path().to_owned(), bytes(3));
    for (second, key) in (1..).zip(&keys[..3]) {
        cache.put(key, &code);
        used(&cache, key, second);
    }
    let there = |cache: &Cache| keys.map(|it| entry(cache, &it).exists());
    assert_eq!(there(&cache), [true, true, true, false], "all have room");

    // The first is used now, so that the second is oldest.
    cache.get(&keys[0]).unwrap();
    cache.put(&keys[3], &code);
    assert_eq!(there(&cache), [true, false, true, true]);
    // What takes the place of itself drives out nobody.
    cache.put(&keys[3], &code);
    assert_eq!(there(&cache), [true, false, true, true]);

    // Less room from now on; what is not of our making stays, and counts for nothing.
    fs::write(folder.path().join("note.txt"), [0; 1000]).unwrap();
    let cache = Cache::new(folder.path().to_owned(), bytes(2));
    assert_eq!(there(&cache), [true, false, false, true]);
    let cache = Cache::new(folder.path().to_owned(), bytes(1) - 1);
    assert_eq!(there(&cache), [false; 4]);
    cache.put(&keys[0], &code);
    assert_eq!(there(&cache), [false; 4], "it would never have room");
    cache.put(&keys[0], &code[1..]);
    assert_eq!(
        there(&cache),
        [true, false, false, false],
        "a byte less has"
    );
    assert!(folder.path().join("note.txt").exists());
}

#[test]
fn what_was_left_half_written_is_removed_when_nobody_can_be_at_it() {
    let (_folder, cache) = cache();
    let at_it = cache.folder.join(".tmpa.part");
    let left = cache.folder.join(".tmpb.part");
    for it in [&at_it, &left] {
        fs::write(it, "half").unwrap();
    }
    let an_hour_ago = now() - Duration::from_hours(1);
    let file = File::options().write(true).open(&left).unwrap();
    file.set_modified(an_hour_ago).unwrap();
    cache.put(&KEY, b"the code");
    assert!(at_it.exists() && !left.exists());
}

#[test]
fn several_at_one_folder_disturb_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let keys = [Key([1; 32]), Key([2; 32]), Key([3; 32])];
    let code = |at: usize| vec![u8::try_from(at).unwrap(); 50_000 + at];
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (folder, barrier) = (folder.path(), &barrier);
            let work = move || {
                // There is room for two of three.
                let cache = Cache::new(folder.to_owned(), 110_000);
                let mut random = fastrand::Rng::with_seed(seed);
                barrier.wait();
                let mut n_found = 0;
                for _ in 0..300 {
                    let at = random.usize(..3);
                    match cache.get(&keys[at]) {
                        Ok(found) => {
                            assert!(found == code(at));
                            n_found += 1;
                        }
                        Err(why) => {
                            assert!(matches!(why, Miss::Absent), "{why:?}");
                            cache.put(&keys[at], &code(at));
                        }
                    }
                }
                assert!(0 < n_found);
            };
            thread::Builder::new().spawn_scoped(scope, work).unwrap();
        }
    });
    let left = fs::read_dir(folder.path()).unwrap();
    assert!(left.flatten().all(|it| has_ending(&it.path(), ENDING)));
}

#[test]
fn a_key_is_of_the_component_and_of_what_compiles_it_and_not_of_the_pool() {
    let engine = Engine::new(&super::super::config()).unwrap();
    let key = Key::new(&[1; 32], &engine);
    assert_eq!(key, Key::new(&[1; 32], &engine));
    assert_ne!(key, Key::new(&[2; 32], &engine));
    let mut other = super::super::config();
    other.epoch_interruption(false);
    assert_ne!(key, Key::new(&[1; 32], &Engine::new(&other).unwrap()));
    // Whoever compiles has no pool, whoever serves has one of this or that size.
    let pooled = super::super::engine(&super::super::Limits::default()).unwrap();
    assert_eq!(key, Key::new(&[1; 32], &pooled));
    let small = super::super::Limits {
        memory_bytes: 65_536,
        tables: 1,
        table_elements: 1,
        ..super::super::Limits::default()
    };
    let pooled = super::super::engine(&small).unwrap();
    assert_eq!(key, Key::new(&[1; 32], &pooled));
}
