//! The client `cepa`.

fn main() -> meter::Result<()> {
    meter::main::<clients::cepa::Cepa>()
}
