//! The client `cepa` with its allocations counted.

#[global_allocator]
static COUNTED: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

fn main() -> meter::Result<()> {
    meter::main::<clients::cepa::Cepa>()
}
