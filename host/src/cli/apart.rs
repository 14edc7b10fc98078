//! `portent apart`, which this program has itself do: see [`crate::apart`].

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::{apart, plugins::schema, sandbox};

/// Do a task for the portent that started this.
#[derive(Debug, Args)]
pub(super) struct Apart {
    /// What to do.
    #[arg(value_enum)]
    task: Task,
}

/// [`apart::Task`], as it is written on a command line.
#[derive(Clone, Copy, Debug)]
struct Task(apart::Task);

impl ValueEnum for Task {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(apart::Task::Compile), Self(apart::Task::CheckSettings)]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.as_str()))
    }
}

impl Apart {
    pub(super) fn run(self) -> ExitCode {
        apart::serve(|input| match self.task.0 {
            apart::Task::Compile => sandbox::compile(input),
            apart::Task::CheckSettings => schema::answer(input),
        })
    }
}
