//! The client `bare`.

fn main() -> meter::Result<()> {
    meter::main::<clients::bare::Bare>()
}
