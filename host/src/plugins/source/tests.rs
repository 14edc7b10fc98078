//! What may happen to a folder of plugins while it is looked at, with files that are none.

use std::{os::unix::fs::symlink, time::SystemTime};

use tempfile::TempDir;

use super::*;

struct Folder {
    dir: TempDir,
    source: Source,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let source = Source::new(dir.path().join("plugins"));
        fs::create_dir(source.folder()).unwrap();
        Self { dir, source }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.source.folder().join(name)
    }

    /// Within a tick of the file system's clock two writes look like one, so it is written again
    /// until they do not. Nobody looks twice within a tick.
    fn write(&self, name: &str, text: &str) {
        let before = Marks::of(&self.path(name).with_extension("wasm"));
        loop {
            fs::write(self.path(name), text).unwrap();
            if Marks::of(&self.path(name).with_extension("wasm")) != before {
                return;
            }
        }
    }

    /// Looks, and reads what is settled: the names of that, those of what is gone, and whether
    /// something is not settled.
    fn look(&mut self, why: Why) -> String {
        let looked = self.source.look(why).unwrap();
        for (path, marks) in &looked.settled {
            self.source.taken(path, *marks);
        }
        let name = |it: &PathBuf| it.file_stem().unwrap().to_string_lossy().into_owned();
        let settled: Vec<_> = looked.settled.iter().map(|it| name(&it.0)).collect();
        let gone: Vec<_> = looked.gone.iter().map(name).collect();
        let unsettled = if looked.is_unsettled { " ..." } else { "" };
        format!("+{} -{}{unsettled}", settled.join(","), gone.join(","))
    }

    /// Has a file read.
    #[track_caller]
    fn settle(&mut self, want: &str) {
        assert_eq!(self.look(Why::Regular), "+ - ...");
        assert_eq!(self.look(Why::Settling), want);
        assert_eq!(self.look(Why::Regular), "+ -");
    }
}

#[test]
fn a_file_is_read_when_two_looks_find_it_the_same() {
    let mut folder = Folder::new();
    assert_eq!(folder.look(Why::Regular), "+ -");
    folder.write("a.wasm", "half");
    assert_eq!(folder.look(Why::Regular), "+ - ...");
    folder.write("a.wasm", "half and more");
    assert_eq!(folder.look(Why::Settling), "+ - ...");
    assert_eq!(folder.look(Why::Settling), "+a -");
    assert_eq!(folder.look(Why::Regular), "+ -");
}

#[test]
fn a_change_of_the_settings_is_one_of_the_plugin_and_so_is_their_coming_and_going() {
    let mut folder = Folder::new();
    folder.write("a.wasm", "a");
    folder.write("b.wasm", "b");
    folder.settle("+a,b -");
    folder.write("a.yaml", "x: 1");
    folder.settle("+a -");
    folder.write("a.yaml", "x: 2");
    folder.settle("+a -");
    fs::remove_file(folder.path("a.yaml")).unwrap();
    folder.settle("+a -");
}

#[test]
fn what_has_the_same_size_and_time_is_told_apart_all_the_same() {
    let mut folder = Folder::new();
    folder.write("a.wasm", "old");
    folder.settle("+a -");
    let time = fs::metadata(folder.path("a.wasm"))
        .unwrap()
        .modified()
        .unwrap();
    let set_time = |path: PathBuf, time: SystemTime| {
        let file = fs::File::options().write(true).open(path);
        file.unwrap().set_modified(time).unwrap();
    };
    // Over it, and in place: neither the size nor the time of the data says so.
    fs::write(folder.path("new"), "new").unwrap();
    set_time(folder.path("new"), time);
    fs::rename(folder.path("new"), folder.path("a.wasm")).unwrap();
    folder.settle("+a -");
    folder.write("a.wasm", "own");
    set_time(folder.path("a.wasm"), time);
    folder.settle("+a -");
}

#[test]
fn a_file_that_is_replaced_by_removing_it_first_is_never_gone() {
    let mut folder = Folder::new();
    folder.write("a.wasm", "old");
    folder.settle("+a -");
    fs::remove_file(folder.path("a.wasm")).unwrap();
    assert_eq!(folder.look(Why::Regular), "+ -");
    // However often it is looked because of something else.
    for _ in 0..5 {
        assert_eq!(folder.look(Why::Settling), "+ -");
    }
    folder.write("a.wasm", "new");
    folder.settle("+a -");
}

#[test]
fn a_file_that_stays_away_is_gone() {
    let mut folder = Folder::new();
    folder.write("a.wasm", "a");
    folder.settle("+a -");
    fs::remove_file(folder.path("a.wasm")).unwrap();
    assert_eq!(folder.look(Why::Regular), "+ -");
    assert_eq!(folder.look(Why::Regular), "+ -a");
    assert_eq!(folder.look(Why::Regular), "+ -");
    folder.write("a.wasm", "a");
    folder.settle("+a -");
}

#[test]
fn of_a_folder_that_is_deleted_nothing_is_concluded_and_restored_it_is_read_again() {
    let mut folder = Folder::new();
    folder.write("a.wasm", "a");
    folder.settle("+a -");
    let elsewhere = folder.dir.path().join("elsewhere");
    fs::rename(folder.source.folder(), &elsewhere).unwrap();
    for _ in 0..5 {
        folder.source.look(Why::Regular).unwrap_err();
    }
    fs::rename(&elsewhere, folder.source.folder()).unwrap();
    assert_eq!(folder.look(Why::Regular), "+ -");
    // As `rm -r` and `cp -r` do it: other files.
    fs::remove_dir_all(folder.source.folder()).unwrap();
    folder.source.look(Why::Regular).unwrap_err();
    fs::create_dir(folder.source.folder()).unwrap();
    folder.write("a.wasm", "a");
    folder.settle("+a -");
}

/// What kubelet's `AtomicWriter` does to a volume of a `ConfigMap`: a folder of the time with all
/// files, a link `..data_tmp` to it that is renamed to `..data`, and the old folder is removed.
/// The files of the volume are links into `..data` for as long as they exist.
fn kubelet_writes(volume: &Path, time: &str, files: &[(&str, &str)]) {
    let old = fs::read_link(volume.join("..data")).ok();
    let folder = volume.join(time);
    fs::create_dir(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    symlink(time, volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    for (name, _) in files {
        symlink(Path::new("..data").join(name), volume.join(name)).ok();
    }
    let Some(old) = old else { return };
    for it in fs::read_dir(volume.join(&old)).unwrap() {
        let name = it.unwrap().file_name();
        if !folder.join(&name).exists() {
            fs::remove_file(volume.join(name)).unwrap();
        }
    }
    fs::remove_dir_all(volume.join(old)).unwrap();
}

#[test]
fn what_kubelet_swaps_under_its_links_is_seen_and_nothing_of_its_own_is_taken_for_a_plugin() {
    let mut folder = Folder::new();
    let volume = folder.source.folder().to_owned();
    let both = [("a.wasm", "a"), ("a.yaml", "x: 1")];
    kubelet_writes(&volume, "..2026_01_01_00_00_00.1", &both);
    folder.settle("+a -");
    // The link itself stays as it is, and so do the sizes.
    let both = [("a.wasm", "a"), ("a.yaml", "x: 2")];
    kubelet_writes(&volume, "..2026_01_01_00_01_00.2", &both);
    folder.settle("+a -");
    let more = [("a.wasm", "a"), ("b.wasm", "b")];
    kubelet_writes(&volume, "..2026_01_01_00_02_00.3", &more);
    folder.settle("+a,b -");
    kubelet_writes(&volume, "..2026_01_01_00_03_00.4", &[("b.wasm", "b")]);
    assert_eq!(folder.look(Why::Regular), "+ - ...");
    assert_eq!(folder.look(Why::Settling), "+b -");
    assert_eq!(folder.look(Why::Regular), "+ -a");
}

#[test]
fn a_link_to_nothing_and_what_is_no_plugin_are_no_news_for_ever() {
    let mut folder = Folder::new();
    symlink("missing", folder.path("a.wasm")).unwrap();
    fs::write(folder.path("README.md"), "no plugin").unwrap();
    folder.settle("+a -");
}
