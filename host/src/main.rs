//! The command line, and what it exits with.

fn main() -> std::process::ExitCode {
    portent::memory::free_at_once();
    portent::cli::run()
}
