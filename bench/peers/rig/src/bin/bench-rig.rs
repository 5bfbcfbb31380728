//! The client `rig`.

fn main() -> meter::Result<()> {
    meter::main::<bench_rig::Rig>()
}
