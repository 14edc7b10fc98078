//! Behind [`classifier!`](crate::classifier): what each export does besides calling the author's function.
//!
//! Public for the macro's expansion only. What can be a function here is no line of the macro there.

use crate::bindings::exports::portent::classifier::{classifier, descriptor};
use crate::settings::parse_none;
use crate::{Description, Outcome, Settings, Subject, panic};

/// Makes a function the classifier of this component.
///
/// * `classifier!(classify, description)` for a `fn classify(subject: &Subject) -> Outcome`: the
///   [front page](crate) has an example.
/// * `classifier!(classify, description, settings = MySettings)` for a
///   `fn classify(settings: &MySettings, subject: &Subject) -> Outcome`: [`Settings`](crate::Settings)
///   has one.
///
/// The description is an expression; its version becomes that of the crate in which the macro is used.
#[macro_export]
macro_rules! classifier {
    ($classify:path, $description:expr $(,)?) => {
        $crate::classifier! {
            @component
            $crate::export::describe($description, env!("CARGO_PKG_VERSION")),
            $crate::export::check_no_settings,
            |settings, subjects| $crate::export::classify(&settings, subjects, $classify)
        }
    };
    ($classify:path, $description:expr, settings = $settings:ty $(,)?) => {
        $crate::classifier! {
            @component
            $crate::export::describe_with::<$settings>($description, env!("CARGO_PKG_VERSION")),
            $crate::export::check_settings::<$settings>,
            |settings, subjects| {
                $crate::export::classify_with::<$settings>(&settings, subjects, $classify)
            }
        }
    };
    (@component $describe:expr, $check:expr, $classify:expr) => {
        const _: () = {
            struct Component;

            impl $crate::bindings::exports::portent::classifier::descriptor::Guest for Component {
                fn describe() -> $crate::Description {
                    $describe
                }

                fn check_settings(
                    settings: ::std::string::String,
                ) -> ::std::result::Result<(), ::std::string::String> {
                    $check(&settings)
                }
            }

            impl $crate::bindings::exports::portent::classifier::classifier::Guest for Component {
                fn classify(
                    settings: ::std::string::String,
                    subjects: ::std::vec::Vec<$crate::Subject>,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::Outcome>, ::std::string::String>
                {
                    let classify: fn(::std::string::String, _) -> _ = $classify;
                    classify(settings, subjects)
                }
            }

            // The names that the contract exports are none that a native linker accepts.
            #[cfg(target_arch = "wasm32")]
    $crate::bindings::export!(Component with_types_in $crate::bindings);
            #[cfg(not(target_arch = "wasm32"))]
            $crate::export::is_plugin::<Component>();
        };
    };
}

#[must_use]
pub fn describe(description: Description, version: &str) -> Description {
    panic::report();
    Description {
        version: version.to_owned(),
        ..description
    }
}

#[must_use]
pub fn describe_with<S: Settings>(description: Description, version: &str) -> Description {
    let schema = Some(S::SCHEMA.to_owned());
    Description {
        settings_schema: schema,
        ..describe(description, version)
    }
}

pub fn check_no_settings(settings: &str) -> Result<(), String> {
    panic::report();
    parse_none(settings)
}

pub fn check_settings<S: Settings>(settings: &str) -> Result<(), String> {
    panic::report();
    S::parse(settings).map(drop)
}

pub fn classify(
    settings: &str,
    subjects: Vec<Subject>,
    one: fn(&Subject) -> Outcome,
) -> Result<Vec<Outcome>, String> {
    panic::report();
    parse_none(settings).map_err(unreadable)?;
    let outcomes = subjects.iter().map(one).collect();
    give_back(subjects);
    Ok(outcomes)
}

pub fn classify_with<S: Settings>(
    settings: &str,
    subjects: Vec<Subject>,
    one: fn(&S, &Subject) -> Outcome,
) -> Result<Vec<Outcome>, String> {
    panic::report();
    let settings = S::parse(settings).map_err(unreadable)?;
    let outcomes = subjects
        .iter()
        .map(|subject| one(&settings, subject))
        .collect();
    give_back(subjects);
    Ok(outcomes)
}

/// Where the allocator takes nothing back, a walk through some thousand strings is for nothing.
fn give_back(subjects: Vec<Subject>) {
    if cfg!(all(target_arch = "wasm32", feature = "bump")) {
        std::mem::forget(subjects);
    }
}

/// Makes a native build take the exports for used, as the component's are.
pub const fn is_plugin<T: descriptor::Guest + classifier::Guest>() {}

fn unreadable(mut error: String) -> String {
    error.insert_str(0, "cannot read the settings: ");
    error
}
