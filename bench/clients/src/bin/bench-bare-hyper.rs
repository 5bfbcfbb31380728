//! The client `bare-hyper`.

fn main() -> meter::Result<()> {
    meter::main::<clients::bare_hyper::BareHyper>()
}
