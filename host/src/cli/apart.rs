//! `portent apart`, which this program has itself do: see [`crate::apart`].

use std::process::ExitCode;

use clap::Args;

use crate::{
    apart::{self, Task},
    plugins::schema,
    sandbox,
};

/// Do a task for the portent that started this.
#[derive(Debug, Args)]
pub(super) struct Apart {
    /// What to do.
    #[arg(value_parser = task)]
    task: Task,
}

fn task(word: &str) -> Result<Task, &'static str> {
    let task = Task::ALL.iter().find(|it| it.as_str() == word);
    task.copied().ok_or("there is no such task")
}

impl Apart {
    pub(super) fn run(self) -> ExitCode {
        apart::serve(|input| match self.task {
            Task::Compile => sandbox::compile(input),
            Task::CheckSettings => schema::answer(input),
        })
    }
}
