//! The texts that records share.

use std::sync::Arc;

use portent_model::{interner::Interner, sync::thread, texts::Text};
use shuttle::rand::{Rng as _, thread_rng};

use super::check;

/// Threads that each take up texts and let go of them, and keep one at last that they all have.
fn come_and_go() {
    let interner = Arc::new(Interner::default());
    let threads = [(); 3].map(|()| {
        let interner = Arc::clone(&interner);
        thread::spawn(move || {
            let mut held: Option<Text> = None;
            for _ in 0..3 {
                let text = ["all", "some"][thread_rng().gen_range(0..2)];
                let new = Text::of(&interner, text);
                assert_eq!(new.text(), text);
                if let Some(held) = &held
                    && held.text() == text
                {
                    assert!(held.is(&new), "what is held is found");
                }
                held = thread_rng().r#gen::<bool>().then_some(new);
            }
            Text::of(&interner, "all")
        })
    });
    let texts = threads.map(|it| it.join().unwrap());
    assert!(texts.iter().all(|it| it.is(&texts[0])), "it is held once");
    assert_eq!(interner.len(), 1);
    let alone = Interner::default();
    let one = Text::of(&alone, "all");
    assert_eq!(interner.n_bytes(), alone.n_bytes());
    drop(one);
    drop(texts);
    assert_eq!((interner.len(), interner.n_bytes()), (0, 0));
}

/// If the last user of a text takes out another's it fails in run 3, if nobody looks again
/// whether another was first in run 7, if only what is in place is counted out in run 3.
#[test]
fn a_text_is_held_once_while_anyone_has_it_and_forgotten_with_the_last() {
    check(come_and_go);
}
