//! The command line, and what it exits with.

fn main() -> std::process::ExitCode {
    portent::cli::run()
}
