//! The client `genai`.

fn main() -> meter::Result<()> {
    meter::main::<bench_genai::GenAi>()
}
