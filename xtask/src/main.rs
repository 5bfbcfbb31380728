//! Developer commands of cepa: `cargo xtask test`, `peers`, `check-layers`, `contracts`, `fuzz`, `soak`, `bench`.

mod bench;
mod budgets;
mod conformance;
mod contracts;
mod field_reports;
mod fuzz;
mod hygiene;
mod layers;
mod licences;
mod peers;
mod pins;
mod report;
mod run;
mod soak;
mod suite;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--no-peers]   everything: format, clippy, layers, contracts, all tests, real peers
  peers [NAME...]     only the checks against programs that nobody here wrote:
                      aimock-openai aimock-responses aimock-anthropic aimock-gemini
                      verdict-openai verdict-responses verdict-anthropic verdict-gemini
                      llamacpp llamacpp-long (takes minutes: `test` leaves it out)
                      requests-openai requests-responses requests-anthropic requests-gemini
                      translate-litellm
  check-layers        crate edges, dependency budgets, licences, file sizes, machine paths
  contracts [--write] which test pins which line of docs/contracts.md and docs/field-reports.md, and which
                      one tries which rule of a judge; --write renews docs/contract-tests.md,
                      docs/field-report-tests.md and docs/conformance.md
  fuzz [MINUTES]      broken bodies for every reader of what servers send, so long each (default 1)
  soak [SERIES]       tests at full length: kills, writers, disk, programs or all (the default)
  bench [OPTIONS]     what cepa costs against loops written by hand and other frameworks, into bench/results:
                      --peers (also Python and JavaScript ones) --scenarios A,B --clients A,B --reps N --peer-reps N
                      --quick (does it run?) --add (into the last results) --render (the tables anew)
  bench --check       instructions of fixed work against bench/baseline.json (needs valgrind); --write renews it,
                      --cases A,B chooses, --profiles FOLDER keeps callgrind's profiles
  bench micro [NAME]  single parts, by divan
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => return suite::test(suite::Peers::Run),
        ["test", "--no-peers"] => return suite::test(suite::Peers::Leave),
        ["peers", names @ ..] => return suite::peers(names),
        ["check-layers"] => layers::command(),
        ["contracts"] => contracts::command(contracts::Mode::Check),
        ["contracts", "--write"] => contracts::command(contracts::Mode::Write),
        ["fuzz"] => fuzz::command("1"),
        ["fuzz", minutes] => fuzz::command(minutes),
        ["soak"] => soak::command("all"),
        ["soak", series] => soak::command(series),
        ["bench", options @ ..] => bench::command(options),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
